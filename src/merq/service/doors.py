"""What to do about a port that cannot be listened on, in the words of the settings."""

from __future__ import annotations

from merq.errors import ListenError
from merq.net.accepting import port_of
from merq.service.settings import ServiceSettings


def advised(wrong: ListenError, settings: ServiceSettings) -> ListenError:
    """The same failure, with the settings that decide on that port."""
    if wrong.advice:
        return wrong
    return ListenError(wrong.place, wrong.reason, _advice(wrong.place, settings))


def _advice(place: str, settings: ServiceSettings) -> str:
    exchange = settings.exchange
    host = exchange.host or settings.address
    if place == port_of("TCP", host, exchange.port):
        return (
            "queue managers have this port, one on each address: give this one an address of its "
            "own (address, --address), or set exchange.listen = false if no other queue manager "
            "is to connect"
        )
    if place == port_of("UDP", host, exchange.ping_port):
        return (
            "give this service an address of its own (address, --address), or set "
            "exchange.ping_answer = false"
        )
    if place == port_of("TCP", host, exchange.tls_port):
        return "set another exchange.tls_port, or an address of its own (address, --address)"
    return "set another tcp.port (--tcp-port) or tcp.host"
