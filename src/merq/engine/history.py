"""[MS-MQQB] 3.1.1.3, 3.1.5.8.1: which messages came from others already, by their identifiers.

Of each queue manager the latest are remembered, those from each network by themselves: whoever
claims to be it elsewhere makes nobody forget what it sent. Transactional messages are told by their
sequences (`incoming`).
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter, OrderedDict
from typing import Final, TypeAlias

from merq.model.network_table import NetworkTable
from merq.model.peer_networks import neighbourhood
from merq.wire.queues import DIRECT, PRIVATE_ON_DESTINATION, PUBLIC

HISTORY_SIZE: Final = 10_000
"""[MS-MQQB] 3.1.1.3: identifiers remembered of each queue manager; Windows remembers as many."""

HISTORY_SOURCES_MAX: Final = 10_000
"""Queue managers whose identifiers are remembered, counted once for each network that they are
heard from; of the network that has the most the one longest silent is forgotten."""

HISTORY_LIFETIME_S: Final = 30 * 60
"""[MS-MQQB] 3.1.2.8: how long an identifier is remembered."""

HISTORY_SOURCES_PER_NETWORK_MAX: Final = 1_000
"""The same for one network."""

HISTORY_MAX: Final = 1_000_000
"""Identifiers remembered in all; the network that has the most gives up some of its oldest."""

BEFORE_START: Final = ""
"""Stands for the networks of what came before the start: the log does not say them."""

BEFORE_START_TIMES: Final = 4
"""Of what came before the start so many times more is remembered of each queue manager: others may
have sent in its name."""

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


_History: TypeAlias = OrderedDict[int, int]
"""Identifiers with their times, the oldest first."""

_Sender: TypeAlias = tuple[bytes, str]
"""A queue manager, and the network that it was heard from."""


class Recent:
    """[MS-MQQB] 3.1.1.3: the MessageIDHistoryTable, by queue manager.

    Attributes:
        size: How many identifiers are remembered of each.
        lifetime_s: For how long.
    """

    __slots__ = ("_by_sender", "_count", "_rejected", "_senders", "lifetime_s", "size")

    def __init__(self, size: int = HISTORY_SIZE, lifetime_s: int = HISTORY_LIFETIME_S) -> None:
        self.size = size
        self.lifetime_s = lifetime_s
        self._by_sender: dict[_Sender, _History] = {}
        self._senders: NetworkTable[_Sender] = NetworkTable()
        self._rejected: OrderedDict[tuple[bytes, int], None] = OrderedDict()
        self._count = 0

    def seen(self, source: bytes, identity: int, now: int, network: str = BEFORE_START) -> bool:
        """[MS-MQQB] 3.1.5.8.1: whether a message was here before; if so, that is renewed."""
        for sender in ((source, network), (source, BEFORE_START)):
            known = self._by_sender.get(sender)
            if known is not None and identity in known:
                known[identity] = now
                known.move_to_end(identity)
                return True
        return (source, identity) in self._rejected

    def is_from_before(self, source: bytes) -> bool:
        """Whether anything is remembered of a queue manager from before the start."""
        return (source, BEFORE_START) in self._by_sender

    def add(self, source: bytes, identity: int, now: int, network: str = BEFORE_START) -> None:
        """[MS-MQQB] 3.1.5.8.2: a message came; the oldest is forgotten if there is no room."""
        sender = source, network
        known = self._by_sender.get(sender)
        if known is None:
            known = self._open(sender)
        else:
            self._senders.use(sender)
        if identity not in known:
            self._count += 1
        known[identity] = now
        known.move_to_end(identity)
        most = self.size if network else self.size * BEFORE_START_TIMES
        while len(known) > most:
            known.popitem(last=False)
            self._count -= 1
        if self._count > HISTORY_MAX:
            self._relieve()

    def _open(self, sender: _Sender) -> _History:
        """A queue manager of which nothing is known; another one may have to go for it."""
        network = sender[1]
        if network and self._senders.count(network) >= HISTORY_SOURCES_PER_NETWORK_MAX:
            self._close(self._senders.of(network)[0])
        elif len(self._by_sender) >= HISTORY_SOURCES_MAX:
            self._close(self._senders.first_to_go())
        self._senders.add(sender, network)
        known = self._by_sender[sender] = OrderedDict()
        return known

    def _close(self, sender: _Sender) -> None:
        """Nothing is known of a queue manager any more."""
        self._count -= len(self._by_sender.pop(sender))
        self._senders.discard(sender)

    def _relieve(self) -> None:
        """The network that has the most identifiers gives up those of who was silent longest."""
        around: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for (_, network), known in self._by_sender.items():
            sizes[network] += len(known)
            around[neighbourhood(network)] += len(known)
        widest = max(around, key=around.__getitem__)
        largest = max(
            (each for each in sizes if neighbourhood(each) == widest), key=sizes.__getitem__
        )
        wanted = HISTORY_RELIEF
        for sender in self._senders.of(largest):
            if wanted <= 0:
                return
            known = self._by_sender[sender]
            if len(known) <= wanted:
                wanted -= len(known)
                self._close(sender)
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

    def remove(self, source: bytes, identity: int, network: str = BEFORE_START) -> None:
        """A message did not come to stay."""
        self._rejected.pop((source, identity), None)
        known = self._by_sender.get((source, network))
        if known is not None and known.pop(identity, None) is not None:
            self._count -= 1

    def forget(self, now: int) -> None:
        """[MS-MQQB] 3.1.6.7: what is too old goes."""
        oldest = now - self.lifetime_s
        for sender, known in list(self._by_sender.items()):
            while known and next(iter(known.values())) < oldest:
                known.popitem(last=False)
                self._count -= 1
            if not known:
                self._close(sender)

    def renew(self, now: int) -> None:
        """Time in which nothing could come does not count: who was not heard sends again now."""
        for known in self._by_sender.values():
            for identity in known:
                known[identity] = now

    def __len__(self) -> int:
        return self._count

    def pack(self) -> list[bytes]:
        """Each queue manager's identifiers with their times, in the order in which they go."""
        return [
            sender[0] + b"".join([_ENTRY.pack(*each) for each in known.items()])
            for sender in self._senders.falling()
            if (known := self._by_sender[sender])
        ]

    def unpack(self, data: bytes) -> None:
        """Takes one piece that `pack` made."""
        source = data[:16]
        for identity, time in _ENTRY.iter_unpack(data[16:]):
            self.add(source, identity, time)
