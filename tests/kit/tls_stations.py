"""Queue managers with certificates, and what can be at a TLS port instead of one."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Final

from kit.certificates import Authority, Pair
from kit.stations import Station

TLS_PORT: Final = 1803
BOOKINGS: Final = r".\private$\bookings"

_numbers: Final = count(1)


def tls_address() -> str:
    """A loopback address that nothing else has, whichever tests run beside these."""
    process = os.getpid()
    return f"127.35.{process % 250 + 1}.{next(_numbers)}"


def with_tls(
    data: Path,
    authority: Authority,
    *,
    address: str = "",
    pair: Pair | None = None,
    settings: Mapping[str, object] | None = None,
) -> Station:
    """A queue manager with a certificate for its address, and with nothing said about TLS."""
    address = address or tls_address()
    cert, key = pair or authority.issue(address)
    own: dict[str, object] = {
        "exchange.tls_cert": cert,
        "exchange.tls_key": key,
        "exchange.tls_ca": authority.ca_file,
    }
    return Station(data, own | dict(settings or {}), address)


def without_tls(data: Path) -> Station:
    """A queue manager without a certificate, as good as a Windows."""
    return Station(data, {}, tls_address())


@contextmanager
def silent_listener(address: str) -> Iterator[socket.socket]:
    """Somebody who takes connections at the TLS port and never says a word."""
    with socket.create_server((address, TLS_PORT)) as listener:
        yield listener


@contextmanager
def black_hole(address: str) -> Iterator[None]:
    """A TLS port where packets are dropped: its queue is full, so the system answers nobody."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((address, TLS_PORT), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield
