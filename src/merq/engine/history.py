"""[MS-MQQB] 3.1.1.3, 3.1.5.8.1: which messages came from others already, by their identifiers.

Of each queue manager the latest are remembered. Transactional messages are told by their sequences
(`incoming`).
"""

from __future__ import annotations

import struct
import zlib
from collections import OrderedDict
from typing import Final

from merq.wire.queues import DIRECT, PRIVATE_ON_DESTINATION, PUBLIC

HISTORY_SIZE: Final = 10_000
"""[MS-MQQB] 3.1.1.3: identifiers remembered of each queue manager; Windows remembers as many."""

HISTORY_SOURCES_MAX: Final = 10_000
"""Queue managers whose identifiers are remembered; the one longest silent is forgotten."""

HISTORY_LIFETIME_S: Final = 30 * 60
"""[MS-MQQB] 3.1.2.8: how long an identifier is remembered."""

HISTORY_SOURCES_PER_NETWORK_MAX: Final = 1_000
"""The same for those whose messages came from one network first."""

HISTORY_MAX: Final = 1_000_000
"""Identifiers remembered in all; the network that has the most gives up some of its oldest."""

HISTORY_RELIEF: Final = HISTORY_MAX // 100
"""How many it gives up at once."""

REJECTIONS_MAX: Final = 1_024
"""Messages that were rejected, and of which nothing else is kept, that are known for a while."""

_ENTRY: Final = struct.Struct("<QI")
_ORDINAL: Final = struct.Struct("<II")
_LENGTH: Final = struct.Struct("<H")
_NAME_AT: Final = 64


def identity_of(packet: bytes | memoryview, network: str = "") -> int:
    """By what a message is known when it comes again: its ordinal, where it goes, and comes from.

    A sender may give copies of one message the same ordinal, and they may well be for queues of the
    same computer, or pass through it. And anybody may send in its name, from another network: that
    is no reason to drop what it sends itself.
    """
    ordinal, flags = _ORDINAL.unpack_from(packet, 56)
    size = 20
    if flags >> 10 & 7 == DIRECT:
        size = 2 + _LENGTH.unpack_from(packet, _NAME_AT)[0]
    elif flags >> 10 & 7 == PRIVATE_ON_DESTINATION:
        size = 4
    elif flags >> 10 & 7 == PUBLIC:
        size = 16
    name = bytes(packet[32:48]) + bytes(packet[_NAME_AT : _NAME_AT + size])
    return int(zlib.crc32(name + network.encode("utf-8", "replace")) << 32 | ordinal)


class _History(OrderedDict[int, int]):
    """Identifiers of one queue manager with their times, the oldest first.

    Attributes:
        network: Where the first of them came from; empty if it is from before the start.
    """

    __slots__ = ("network",)

    def __init__(self, network: str) -> None:
        super().__init__()
        self.network = network


class Recent:
    """[MS-MQQB] 3.1.1.3: the MessageIDHistoryTable, by queue manager.

    Attributes:
        size: How many identifiers are remembered of each.
        lifetime_s: For how long.
    """

    __slots__ = ("_by_network", "_by_source", "_count", "_rejected", "lifetime_s", "size")

    def __init__(self, size: int = HISTORY_SIZE, lifetime_s: int = HISTORY_LIFETIME_S) -> None:
        self.size = size
        self.lifetime_s = lifetime_s
        self._by_source: dict[bytes, _History] = {}
        # Each network's queue managers, the one longest silent first.
        self._by_network: dict[str, OrderedDict[bytes, None]] = {}
        self._rejected: OrderedDict[tuple[bytes, int], None] = OrderedDict()
        self._count = 0

    def seen(self, source: bytes, identity: int, now: int) -> bool:
        """[MS-MQQB] 3.1.5.8.1: whether a message was here before; if so, that is renewed."""
        known = self._by_source.get(source)
        if known is None or identity not in known:
            return (source, identity) in self._rejected
        known[identity] = now
        known.move_to_end(identity)
        return True

    def add(self, source: bytes, identity: int, now: int, network: str = "") -> None:
        """[MS-MQQB] 3.1.5.8.2: a message came; the oldest is forgotten if there is no room."""
        known = self._by_source.get(source)
        if known is None:
            known = self._open(source, network)
        else:
            self._by_network[known.network].move_to_end(source)
        if identity not in known:
            self._count += 1
        known[identity] = now
        known.move_to_end(identity)
        while len(known) > self.size:
            known.popitem(last=False)
            self._count -= 1
        if self._count > HISTORY_MAX:
            self._relieve()

    def _open(self, source: bytes, network: str) -> _History:
        """A queue manager of which nothing is known; another one may have to go for it."""
        sources = self._by_network.get(network)
        if sources is None:
            sources = self._by_network[network] = OrderedDict()
        if network and len(sources) >= HISTORY_SOURCES_PER_NETWORK_MAX:
            self._close(next(iter(sources)))
        elif len(self._by_source) >= HISTORY_SOURCES_MAX:
            largest = max(self._by_network, key=lambda each: len(self._by_network[each]))
            self._close(next(iter(self._by_network[largest])))
        self._by_network.setdefault(network, sources)[source] = None
        known = self._by_source[source] = _History(network)
        return known

    def _close(self, source: bytes) -> None:
        """Nothing is known of a queue manager any more."""
        known = self._by_source.pop(source)
        self._count -= len(known)
        sources = self._by_network[known.network]
        del sources[source]
        if not sources:
            del self._by_network[known.network]

    def _relieve(self) -> None:
        """The network that has the most identifiers gives up those of who was silent longest."""
        wanted = HISTORY_RELIEF
        sizes = {
            network: sum(len(self._by_source[each]) for each in sources)
            for network, sources in self._by_network.items()
        }
        largest = max(sizes, key=sizes.__getitem__)
        for source in list(self._by_network[largest]):
            if wanted <= 0:
                return
            known = self._by_source[source]
            if len(known) <= wanted:
                wanted -= len(known)
                self._close(source)
                continue
            for _ in range(wanted):
                known.popitem(last=False)
            self._count -= wanted
            return

    def reject(self, source: bytes, identity: int) -> None:
        """A message was rejected: it is known for a while when it comes again."""
        self._rejected[source, identity] = None
        if len(self._rejected) > REJECTIONS_MAX:
            self._rejected.popitem(last=False)

    def remove(self, source: bytes, identity: int) -> None:
        """A message did not come to stay."""
        self._rejected.pop((source, identity), None)
        known = self._by_source.get(source)
        if known is not None and known.pop(identity, None) is not None:
            self._count -= 1

    def forget(self, now: int) -> None:
        """[MS-MQQB] 3.1.6.7: what is too old goes."""
        oldest = now - self.lifetime_s
        for source, known in list(self._by_source.items()):
            while known and next(iter(known.values())) < oldest:
                known.popitem(last=False)
                self._count -= 1
            if not known:
                self._close(source)

    def renew(self, now: int) -> None:
        """Time in which nothing could come does not count: who was not heard sends again now."""
        for known in self._by_source.values():
            for identity in known:
                known[identity] = now

    def __len__(self) -> int:
        return self._count

    def pack(self) -> list[bytes]:
        """Each queue manager's identifiers with their times."""
        return [
            source + b"".join([_ENTRY.pack(*each) for each in known.items()])
            for sources in self._by_network.values()
            for source in sources
            if (known := self._by_source[source])
        ]

    def unpack(self, data: bytes) -> None:
        """Takes one piece that `pack` made."""
        source = data[:16]
        for identity, time in _ENTRY.iter_unpack(data[16:]):
            self.add(source, identity, time)
