"""Whether another queue manager is spoken to inside of TLS, and what is remembered of that.

TLS between queue managers is Merq's own: a Windows MSMQ has no port for it. Where the settings
leave it open, TLS is tried first. Who was reached inside of it once is never spoken to in clear
again, or whoever can cut connections could have messages sent in clear
(docs/adr/0024-tls-where-both-can.md).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final

from merq.exchange.routes import Peers, plain_host
from merq.exchange.settings import ExchangeSettings, TlsMode

REMEMBERED_MAX: Final = 10_000
"""Hosts that were reached inside of TLS and are remembered, over restarts too."""

SEEN_MAX: Final = 10_000
"""Addresses with which there was a session inside of TLS, whoever made it, since the start."""

ABSENT_MAX: Final = 10_000
"""Addresses of which it is remembered that nobody is at their TLS port, or that it was silent."""

SILENCES: Final = 3
"""So often in a row a TLS port is silent before nobody is held to be there."""


class TlsUse(Enum):
    """How a host is to be connected to."""

    CLEAR = "clear"
    """In clear."""

    TRIED = "tried"
    """Inside of TLS; in clear if nobody is at the port for it."""

    REQUIRED = "required"
    """Inside of TLS, or not at all."""


class TlsPolicy:
    """Says for each host how it is connected to.

    Hosts are what messages or settings call them, a name or an address: that is what certificates
    are checked against. What was learnt without being dialled is known by address.

    Args:
        tell: Told when a host is forgotten: which one, and why.
    """

    def __init__(
        self, peers: Peers, settings: ExchangeSettings, tell: Callable[[str, str], None]
    ) -> None:
        self._tell = tell
        self._peers = peers
        self._default = settings.tls
        self._is_set_up = settings.is_tls_set_up
        self._absent_s = settings.tls_absent_s
        self._remembered: OrderedDict[str, None] = OrderedDict()
        self._is_changed = False
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._absent: OrderedDict[str, float] = OrderedDict()
        self._silences: OrderedDict[str, int] = OrderedDict()

    # What is asked.

    def use(self, host: str, address: str, now: float) -> TlsUse:
        """How a host is connected to at one of its addresses."""
        mode = self._mode(host, address)
        if mode is TlsMode.ALWAYS:
            return TlsUse.REQUIRED
        if mode is TlsMode.NEVER:
            return TlsUse.CLEAR
        if self._was_secure(host) or self._was_secure(address):
            return TlsUse.REQUIRED
        if not self._is_set_up or now < self._absent.get(address, now):
            return TlsUse.CLEAR
        return TlsUse.TRIED

    def is_demanded(self, host: str, address: str) -> bool:
        """Whether the settings want TLS there, even for what is said about its own messages."""
        return self._mode(host, address) is TlsMode.ALWAYS

    def _mode(self, host: str, address: str) -> TlsMode:
        """What the settings say of a host or its address: the stricter, if they say both."""
        found = {self._peers.tls_mode(host), self._peers.tls_mode(address)}
        for mode in (TlsMode.ALWAYS, TlsMode.NEVER, TlsMode.AUTO):
            if mode in found:
                return mode
        return self._default

    def _was_secure(self, host: str) -> bool:
        plain = plain_host(host)
        return plain in self._remembered or plain in self._seen

    # What happened.

    def reached(self, host: str) -> None:
        """A host was connected to, and its certificate is one for that name or address."""
        plain = plain_host(host)
        if plain in self._remembered:
            self._remembered.move_to_end(plain)
            return
        self._remembered[plain] = None
        self._is_changed = True
        while len(self._remembered) > REMEMBERED_MAX:
            oldest, _ = self._remembered.popitem(last=False)
            self._tell(oldest, f"{REMEMBERED_MAX} others were reached inside of TLS since")

    def met(self, address: str) -> None:
        """A session inside of TLS is open with somebody at an address."""
        self._silences.pop(address, None)
        self._seen[address] = None
        self._seen.move_to_end(address)
        while len(self._seen) > SEEN_MAX:
            self._seen.popitem(last=False)

    def was_silent(self, address: str) -> bool:
        """A TLS port did not answer in time; whether that is enough to hold it for absent."""
        count = self._silences.pop(address, 0) + 1
        if count >= SILENCES:
            return True
        self._silences[address] = count
        while len(self._silences) > ABSENT_MAX:
            self._silences.popitem(last=False)
        return False

    def absent(self, address: str, now: float) -> None:
        """Nobody is at the TLS port of an address, which has a queue manager all the same."""
        self._silences.pop(address, None)
        self._absent[address] = now + self._absent_s
        self._absent.move_to_end(address)
        while len(self._absent) > ABSENT_MAX:
            self._absent.popitem(last=False)

    def unreachable(self, address: str) -> None:
        """Nobody answers in clear either: that says nothing about TLS when somebody does again."""
        self._absent.pop(address, None)

    # What is kept on disk.

    def remember(self, hosts: Iterable[str]) -> None:
        """Takes over what an earlier life has kept, the one that was reached last at the end."""
        self._remembered = OrderedDict.fromkeys([*map(plain_host, hosts)][-REMEMBERED_MAX:])

    def take_changed(self) -> tuple[str, ...] | None:
        """What is to be kept on disk now; None if that has not changed."""
        if not self._is_changed:
            return None
        self._is_changed = False
        return tuple(self._remembered)
