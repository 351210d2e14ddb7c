"""Messages between queue managers: which way they go, and what became of them. No I/O."""

from merq.exchange.exchange import Exchange
from merq.exchange.links import Link
from merq.exchange.routes import Peer, Peers
from merq.exchange.settings import AllowedAdminQueues, ExchangeSettings, TlsMode

__all__ = ["AllowedAdminQueues", "Exchange", "ExchangeSettings", "Link", "Peer", "Peers", "TlsMode"]
