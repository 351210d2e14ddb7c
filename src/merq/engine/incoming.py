"""[MS-MQQB] 3.1.1.3, 3.1.1.5, 3.1.5.8.1, 3.1.5.8.6: what came from other queue managers already.

Transactional messages are told by their sequences: a queue manager has one for each name that it
sends to, so that is what they are kept by. Others are told by their identifiers, of which each
queue manager's latest are remembered.
"""

from __future__ import annotations

import struct
import zlib
from collections import OrderedDict
from typing import Final, NamedTuple

from merq.wire.queues import DIRECT, PRIVATE_ON_DESTINATION, PUBLIC

HISTORY_SIZE: Final = 10_000
"""[MS-MQQB] 3.1.1.3: identifiers remembered of each queue manager; Windows remembers as many."""

HISTORY_SOURCES_MAX: Final = 10_000
"""Queue managers whose identifiers are remembered; the one longest silent is forgotten."""

HISTORY_LIFETIME_S: Final = 30 * 60
"""[MS-MQQB] 3.1.2.8: how long an identifier is remembered."""

SEQUENCES_MAX: Final = 1_000_000
"""Names and senders whose sequences are kept."""

ENDED_MAX: Final = 100_000
"""Earlier sequences of which it is remembered how far they came."""

_KEYS_MAX: Final = 4096
_SEQUENCE_1: Final = struct.Struct("<16sQIIH")
_SEQUENCE: Final = struct.Struct("<16sQIII16sH")
_ENTRY: Final = struct.Struct("<QI")
_ORDINAL: Final = struct.Struct("<II")
_LENGTH: Final = struct.Struct("<H")
_NAME_AT: Final = 64


class Origin(NamedTuple):
    """Where the messages of a sequence came from, and where its acknowledgments go.

    Attributes:
        address: Of the sender, for messages with direct names; else empty.
        remote: The GUID of the session's other end.
    """

    address: str
    remote: bytes


class SequenceKey(NamedTuple):
    """Who sends, and the name that it sends to, in one spelling."""

    source: bytes
    name: str


class Incoming:
    """[MS-MQDMPR] 3.1.1.5: how far a sequence from another queue manager is.

    Attributes:
        key: Whose it is, and where to.
        sequence_id: The sequence, 0 before the first message.
        number: The last message that was accepted, or decided on.
        settled: Both, as far as it is durable: what may be acknowledged.
        stale: Sequence and number of a message that came of an earlier sequence and is known to
            have arrived, (0, 0) if none did: its sender has forgotten that.
        origin: Where its messages came from. Acknowledgments of the sequence go nowhere else:
            whoever only claims to be the sender would learn its identifier.
        stale_origin: The same for what is stale.
        rejects: [MS-MQQB] 3.1.1.3.1: TxMessageRejectCount, messages that were not accepted since
            the last that was.
        last_access: When the last one came, in seconds since 1970.
    """

    __slots__ = (
        "key",
        "last_access",
        "number",
        "origin",
        "rejects",
        "sequence_id",
        "settled",
        "stale",
        "stale_origin",
    )

    def __init__(self, key: SequenceKey) -> None:
        self.key = key
        self.sequence_id = 0
        self.number = 0
        self.settled = (0, 0)
        self.stale = (0, 0)
        self.origin = self.stale_origin = Origin("", key.source)
        self.rejects = 0
        self.last_access = 0

    def accepts(self, sequence_id: int, number: int, previous: int) -> bool:
        """[MS-MQQB] 3.1.5.8.6: whether a message is the next one, after gaps that are allowed."""
        if sequence_id == self.sequence_id:
            return number > self.number and previous <= self.number
        return sequence_id > self.sequence_id and previous == 0


class Sequences:
    """All sequences that come here."""

    __slots__ = ("_by_key", "_ended", "_names")

    def __init__(self) -> None:
        self._by_key: dict[SequenceKey, Incoming] = {}
        self._ended: OrderedDict[tuple[SequenceKey, int], tuple[int, Origin]] = OrderedDict()
        self._names: dict[tuple[int, bytes], str] = {}

    def key_of(self, source: bytes, kind: int, name: bytes) -> SequenceKey:
        """The key for a sender and a name as it lies in the packet."""
        folded = self._names.get((kind, name))
        if folded is None:
            if len(self._names) >= _KEYS_MAX:
                self._names.clear()
            folded = name.hex()
            if kind == 7:
                folded = name.decode("utf-16-le", "surrogatepass").lower()
            self._names[kind, name] = folded = f"{kind}:{folded}"
        return SequenceKey(source, folded)

    def find(self, key: SequenceKey) -> Incoming | None:
        """How far a sequence is, if anything of it ever came."""
        return self._by_key.get(key)

    def get(self, key: SequenceKey) -> Incoming:
        """How far a sequence is; it is known from now on."""
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = Incoming(key)
        return found

    def ended(self, incoming: Incoming) -> None:
        """Another sequence follows the one that was; it is remembered how far that came."""
        if incoming.number:
            known = incoming.number, incoming.origin
            self._ended[incoming.key, incoming.sequence_id] = known
            if len(self._ended) > ENDED_MAX:
                self._ended.popitem(last=False)

    def arrived(self, incoming: Incoming, sequence_id: int) -> int:
        """The last message that arrived of an earlier sequence; 0 if none is known to have."""
        known = self._ended.get((incoming.key, sequence_id))
        return 0 if known is None else known[0]

    def origin_of(self, key: SequenceKey, sequence_id: int) -> Origin:
        """Where a sequence came from; by the identifier of its sender if that is not known."""
        incoming = self._by_key.get(key)
        if incoming is not None and incoming.sequence_id == sequence_id:
            return incoming.origin
        known = self._ended.get((key, sequence_id))
        return Origin("", key.source) if known is None else known[1]

    def __len__(self) -> int:
        return len(self._by_key)

    def all(self) -> list[Incoming]:
        """All of them."""
        return list(self._by_key.values())

    def learn(self, key: SequenceKey, sequence_id: int, number: int) -> None:
        """A message was accepted, as the log says."""
        found = self.get(key)
        if (sequence_id, number) > (found.sequence_id, found.number):
            if sequence_id != found.sequence_id:
                self.ended(found)
            found.sequence_id, found.number = sequence_id, number
            found.settled = (sequence_id, number)


def identity_of(packet: bytes | memoryview) -> int:
    """By what a message is known when it comes again: its ordinal, and where it goes.

    A sender may give copies of one message the same ordinal, and they may well be for queues of the
    same computer, or pass through it.
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
    return int(zlib.crc32(name) << 32 | ordinal)


def pack_sequence(incoming: Incoming, sequence_id: int, number: int) -> bytes:
    """A sequence as the log keeps it."""
    address = incoming.origin.address.encode("ascii", "replace")
    head = _SEQUENCE.pack(
        incoming.key.source,
        sequence_id,
        number,
        incoming.last_access,
        incoming.rejects,
        incoming.origin.remote,
        len(address),
    )
    return head + address + incoming.key.name.encode("utf-8", "surrogatepass")


def unpack_sequence(data: bytes, sequences: Sequences, *, counts_rejects: bool = True) -> None:
    """Takes what `pack_sequence` wrote; older logs do not count rejects, nor know the session."""
    if counts_rejects:
        form = _SEQUENCE
        source, sequence_id, number, last_access, rejects, remote, size = form.unpack_from(data)
    else:
        form = _SEQUENCE_1
        source, sequence_id, number, last_access, size = form.unpack_from(data)
        rejects, remote = 0, source
    at = form.size
    name = data[at + size :].decode("utf-8", "surrogatepass")
    key = SequenceKey(source, name)
    sequences.learn(key, sequence_id, number)
    found = sequences.get(key)
    found.origin = Origin(data[at : at + size].decode("ascii"), remote)
    found.last_access = last_access
    found.rejects = rejects


class Recent:
    """[MS-MQQB] 3.1.1.3: the MessageIDHistoryTable, by queue manager.

    Attributes:
        size: How many identifiers are remembered of each.
        lifetime_s: For how long.
    """

    __slots__ = ("_by_source", "lifetime_s", "size")

    def __init__(self, size: int = HISTORY_SIZE, lifetime_s: int = HISTORY_LIFETIME_S) -> None:
        self.size = size
        self.lifetime_s = lifetime_s
        self._by_source: OrderedDict[bytes, OrderedDict[int, int]] = OrderedDict()

    def seen(self, source: bytes, identity: int, now: int) -> bool:
        """[MS-MQQB] 3.1.5.8.1: whether a message was here before; if so, that is renewed."""
        known = self._by_source.get(source)
        if known is None or identity not in known:
            return False
        known[identity] = now
        known.move_to_end(identity)
        return True

    def add(self, source: bytes, identity: int, now: int) -> None:
        """[MS-MQQB] 3.1.5.8.2: a message came; the oldest is forgotten if there is no room."""
        known = self._by_source.get(source)
        if known is None:
            known = self._by_source[source] = OrderedDict()
            if len(self._by_source) > HISTORY_SOURCES_MAX:
                self._by_source.popitem(last=False)
        else:
            self._by_source.move_to_end(source)
        known[identity] = now
        known.move_to_end(identity)
        while len(known) > self.size:
            known.popitem(last=False)

    def remove(self, source: bytes, identity: int) -> None:
        """A message did not come to stay."""
        known = self._by_source.get(source)
        if known is not None:
            known.pop(identity, None)

    def forget(self, now: int) -> None:
        """[MS-MQQB] 3.1.6.7: what is too old goes."""
        oldest = now - self.lifetime_s
        for source in list(self._by_source):
            known = self._by_source[source]
            while known and next(iter(known.values())) < oldest:
                known.popitem(last=False)
            if not known:
                del self._by_source[source]

    def renew(self, now: int) -> None:
        """Time in which nothing could come does not count: who was not heard sends again now."""
        for known in self._by_source.values():
            for identity in known:
                known[identity] = now

    def __len__(self) -> int:
        return sum(map(len, self._by_source.values()))

    def pack(self) -> list[bytes]:
        """Each queue manager's identifiers with their times."""
        return [
            source + b"".join([_ENTRY.pack(*each) for each in known.items()])
            for source, known in self._by_source.items()
        ]

    def unpack(self, data: bytes) -> None:
        """Takes one piece that `pack` made."""
        source = data[:16]
        for identity, time in _ENTRY.iter_unpack(data[16:]):
            self.add(source, identity, time)
