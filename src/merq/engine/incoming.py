"""[MS-MQQB] 3.1.1.5, 3.1.5.8.6: which transactional messages came from others already.

They are told by their sequences: a queue manager has one for each name that it sends to, so that is
what they are kept by. Other messages are told by their identifiers (`history`).
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from merq.model.peer_networks import peer_network
from merq.wire.queues import DIRECT

REJECTIONS_MAX: Final = 1_024
"""Sequences of which a message was rejected and nothing is kept, that are known for a while."""

SEQUENCES_MAX: Final = 100_000
"""Sequences that are kept; the network that has the most loses its idlest for a new one."""

SEQUENCES_PER_NETWORK_MAX: Final = 10_000
"""Sequences that are kept of one network; it loses its idlest for a new one."""

PEERS_PER_SENDER_MAX: Final = 8
"""Peers that sequences of one sender to one name are kept of: whoever claims a sender's identifier
has a sequence of its own."""

PEER_IDLE_S: Final = 3600
"""A peer that was silent for so long gives way to another one of the same sender."""

IDLE_LOOKS_MAX: Final = 32
"""So many of the idlest sequences are looked at for one of which no message is in a queue."""

FUTURE_S: Final = 24 * 3600
"""How far the clock of a sender may be ahead of ours. The high half of a sequence's identifier is a
time with Windows and Merq; the documents let it be anything."""

SEQUENCE_IDLE_S: Final = 90 * 24 * 3600
"""A sequence is forgotten when this queue manager was up for so long and nothing of it came."""

ENDED_MAX: Final = 100_000
"""Earlier sequences of which it is remembered how far they came."""

REJECTS_MAX: Final = 0x7FFFFFFF
"""[MS-MQQB] 3.1.1.3.1: TxMessageRejectCount goes no further; the log has a flag above it."""

LEFT_MAX: Final = 4
"""Peers that a sequence came from before its sender moved that are remembered: acknowledgments that
wait there follow it."""

FOLLOWED: Final = 1 << 64
"""Behind every message: nothing is left there that has to follow."""

_REJECTED: Final = 1 << 31
_NO_SEQUENCE: Final = ((1 << 64) - 1, (1 << 32) - 1)
"""A place behind which there is none."""
_KEYS_MAX: Final = 4096
_KEPT_NAME_BYTES: Final = 512  # longer ones are worked out anew: strangers choose how long they are
_SEQUENCE_1: Final = struct.Struct("<16sQIIH")
_SEQUENCE: Final = struct.Struct("<16sQIII16sH")


class Origin(NamedTuple):
    """The other end of the session through which the messages of a sequence came.

    Attributes:
        address: Where it is; empty if an older log does not say.
        remote: Its GUID.
    """

    address: str
    remote: bytes


class SequenceKey(NamedTuple):
    """Who sends, and the name that it sends to, in one spelling."""

    source: bytes
    name: str

    @property
    def is_direct(self) -> bool:
        """Whether the name is a direct one, so that the sender is at the other end itself."""
        return self.name.startswith(f"{DIRECT}:")


Ended: TypeAlias = tuple[tuple[SequenceKey, int], tuple[int, Origin] | None]
"""A sequence that is over, and what was known of it before: how far it came, and from where."""


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
        left: Where its messages came from before, and up to which message of the queue for that
            peer no FinalAck has to follow the sender.
        rejects: [MS-MQQB] 3.1.1.3.1: TxMessageRejectCount, messages that were not accepted since
            the last that was.
        dropped: Messages that were not accepted, and of which their sender was told nothing, since
            the start: they were of a sequence that cannot be the next.
        last_access: When the last one came, in seconds since 1970.
        is_kept: Messages of it were accepted, and it is one of `Sequences`.
        is_rejected: It is remembered for a while that all of its messages were rejected.
        is_proven: More than one message of it was accepted, or it is from before the start.
        queue: The number of the queue where its messages go, 0 before the first since the start.
        told_place: What the last OrderAck said.
        told_at: When that was, by the exchange's clock; None before the first message.
    """

    __slots__ = (
        "dropped",
        "is_kept",
        "is_proven",
        "is_rejected",
        "key",
        "last_access",
        "left",
        "number",
        "origin",
        "queue",
        "rejects",
        "sequence_id",
        "settled",
        "stale",
        "stale_origin",
        "told_at",
        "told_place",
    )

    def __init__(self, key: SequenceKey, origin: Origin | None = None) -> None:
        self.key = key
        self.sequence_id = 0
        self.number = 0
        self.settled = (0, 0)
        self.stale = (0, 0)
        self.origin = self.stale_origin = origin or Origin("", key.source)
        self.left: dict[Origin, int] = {}
        self.rejects = 0
        self.dropped = 0
        self.last_access = 0
        self.is_kept = self.is_rejected = False
        self.is_proven = False
        self.queue = 0
        self.told_place = (0, 0)
        self.told_at: float | None = None

    def accepts(self, sequence_id: int, number: int, previous: int) -> bool:
        """[MS-MQQB] 3.1.5.8.6: whether a message is the next one, after gaps that are allowed."""
        if sequence_id == self.sequence_id:
            return number > self.number and previous <= self.number
        return sequence_id > self.sequence_id and previous == 0

    def is_from(self, origin: Origin) -> bool:
        """Whether a peer can be the one that opened the sequence."""
        return origin == self.origin or not self.origin.address

    def moved_to(self, origin: Origin) -> None:
        """Its sender proved by the sequence's identifier that it is there now."""
        self.left.pop(origin, None)
        self.left[self.origin] = -1
        if len(self.left) > LEFT_MAX:
            del self.left[next(iter(self.left))]
        self.origin = origin

    def untold(self) -> int:
        """How many messages of the current sequence its sender was not told of."""
        sequence_id, number = self.settled
        return number - (self.told_place[1] if self.told_place[0] == sequence_id else 0)


class _Network:
    """The sequences that came from one network, the idlest first: those of one message apart."""

    __slots__ = ("new", "proven")

    def __init__(self) -> None:
        self.new: OrderedDict[Incoming, None] = OrderedDict()
        self.proven: OrderedDict[Incoming, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self.new) + len(self.proven)

    def table(self, incoming: Incoming) -> OrderedDict[Incoming, None]:
        return self.proven if incoming.is_proven else self.new

    def idlest(self, is_wanted: Callable[[Incoming], bool]) -> Incoming:
        """The one to be forgotten: of those that sent one message, if any did; rather unwanted."""
        table = self.new or self.proven
        for each in islice(table, IDLE_LOOKS_MAX):
            if not is_wanted(each):
                return each
        return next(iter(table))


class Sequences:
    """All sequences that come here.

    A sender has one for each name that it sends to. Anybody may claim to be that sender, so what
    comes from another peer under another identifier is kept beside it: it neither ends the sequence
    nor makes it stale. What has the sequence's own identifier belongs to it wherever it comes from,
    for a sender may move.

    Attributes:
        ended_before: While a change is planned, what was known before of sequences that it ends.
    """

    __slots__ = (
        "_by_key",
        "_by_network",
        "_count",
        "_ended",
        "_names",
        "_rejected",
        "ended_before",
    )

    def __init__(self) -> None:
        self._by_key: dict[SequenceKey, list[Incoming]] = {}
        self._by_network: dict[str, _Network] = {}
        self._rejected: OrderedDict[SequenceKey, Incoming] = OrderedDict()
        self._ended: OrderedDict[tuple[SequenceKey, int], tuple[int, Origin]] = OrderedDict()
        self._names: dict[tuple[int, bytes], str] = {}
        self._count = 0
        self.ended_before: list[Ended] | None = None

    def key_of(self, source: bytes, kind: int, name: bytes) -> SequenceKey:
        """The key for a sender and a name as it lies in the packet."""
        folded = self._names.get((kind, name))
        if folded is None:
            folded = name.hex()
            if kind == DIRECT:
                folded = name.decode("utf-16-le", "surrogatepass").lower()
            folded = f"{kind}:{folded}"
            if len(name) <= _KEPT_NAME_BYTES:
                if len(self._names) >= _KEYS_MAX:
                    self._names.clear()
                self._names[kind, name] = folded
        return SequenceKey(source, folded)

    def find(self, key: SequenceKey) -> Incoming | None:
        """The sequence of a sender to a name of which something came last, if any is kept."""
        found = self._by_key.get(key)
        return None if found is None else max(found, key=lambda each: each.last_access)

    def match(self, key: SequenceKey, sequence_id: int, origin: Origin, now: int) -> Incoming:
        """The sequence by which a message is judged; a new one is not kept before `keep`."""
        found = self._by_key.get(key)
        if found is None:
            rejected = self._rejected.get(key)
            if rejected is not None and (
                rejected.sequence_id == sequence_id or rejected.is_from(origin)
            ):
                return rejected
            return self._new(key, sequence_id, origin, 0)
        mine = None
        for each in found:
            if each.sequence_id == sequence_id:
                return each
            if each.is_from(origin):
                mine = each
        if mine is not None:
            if sequence_id > mine.sequence_id and (key, sequence_id) in self._ended:
                return self._new(key, sequence_id, origin, mine.sequence_id)
            return mine
        # A peer that did not send for this sender before: it goes on where all the others are, for
        # its folder may have been restored elsewhere. A time to come is nobody's measure.
        known = (each.sequence_id for each in found if each.sequence_id >> 32 <= now)
        fresh = self._new(key, sequence_id, origin, max(known, default=0))
        if sequence_id >> 32 > now + FUTURE_S:
            fresh.sequence_id, fresh.number = _NO_SEQUENCE
        return fresh

    def _new(self, key: SequenceKey, sequence_id: int, origin: Origin, floor: int) -> Incoming:
        """A sequence that has to be above `floor`; one that came before goes on from there."""
        fresh = Incoming(key, origin)
        fresh.sequence_id = floor
        known = self._ended.get((key, sequence_id))
        if known is not None and sequence_id > floor:
            fresh.sequence_id, fresh.number = sequence_id, known[0]
        return fresh

    def came(self, incoming: Incoming, origin: Origin, now: int) -> None:
        """Something of a sequence came from there."""
        if not incoming.is_kept:
            if origin != incoming.origin:
                incoming.moved_to(origin)
            incoming.last_access = now
            return
        if origin != incoming.origin:
            self._leave_network(incoming)
            incoming.moved_to(origin)
            self._join_network(incoming)
        elif now != incoming.last_access:
            network = self._by_network[peer_network(origin.address)]
            network.table(incoming).move_to_end(incoming)
        incoming.last_access = now

    def proven(self, incoming: Incoming) -> None:
        """Another message of a sequence that is kept was accepted."""
        self._leave_network(incoming)
        incoming.is_proven = True
        self._join_network(incoming)

    def reject(self, incoming: Incoming) -> list[Incoming]:
        """A message of a sequence that is not kept was rejected; gives what is forgotten for it.

        It is known for a while: until its sender knows it too, the queue may have been made, or
        have room.
        """
        gone = []
        other = self._rejected.get(incoming.key)
        if other is not None and other is not incoming:
            gone.append(other)
        elif other is None and len(self._rejected) >= REJECTIONS_MAX:
            gone.append(next(iter(self._rejected.values())))
        for each in gone:
            self.forget(each)
        incoming.is_rejected = True
        self._rejected[incoming.key] = incoming
        self._rejected.move_to_end(incoming.key)
        return gone

    def keep(self, incoming: Incoming, is_wanted: Callable[[Incoming], bool]) -> list[Incoming]:
        """A sequence is kept from now on; gives those that are forgotten for it.

        Those that `is_wanted` says have messages in a queue go last.
        """
        gone: list[Incoming] = []
        others = self._by_key.get(incoming.key, [])
        gone += [each for each in others if each.is_from(incoming.origin)]
        if not gone and len(others) >= PEERS_PER_SENDER_MAX:
            idlest = min(others, key=lambda each: each.last_access)
            is_idle = incoming.last_access - idlest.last_access > PEER_IDLE_S
            gone.append(idlest if is_idle else others[-1])
        network = self._by_network.get(peer_network(incoming.origin.address))
        if not gone and network is not None and len(network) >= SEQUENCES_PER_NETWORK_MAX:
            gone.append(network.idlest(is_wanted))
        elif not gone and self._count >= SEQUENCES_MAX:
            gone.append(max(self._by_network.values(), key=len).idlest(is_wanted))
        for each in gone:
            self.forget(each)
        if incoming.is_rejected:
            self.forget(incoming)
            incoming.is_rejected = False
        self.restore(incoming)
        return gone

    def restore(self, incoming: Incoming) -> None:
        """A sequence is kept, or known as rejected, whatever the limits are: it was before."""
        if incoming.is_rejected:
            self._rejected[incoming.key] = incoming
            return
        self._by_key.setdefault(incoming.key, []).append(incoming)
        self._count += 1
        incoming.is_kept = True
        self._join_network(incoming)

    def forget(self, incoming: Incoming) -> None:
        """A sequence is not kept any more; how far it came is remembered for a while."""
        if not incoming.is_kept:
            self._rejected.pop(incoming.key, None)
            return
        others = self._by_key[incoming.key]
        others.remove(incoming)
        if not others:
            del self._by_key[incoming.key]
        self._count -= 1
        incoming.is_kept = False
        self._leave_network(incoming)
        self.ended(incoming)

    def _join_network(self, incoming: Incoming) -> None:
        name = peer_network(incoming.origin.address)
        network = self._by_network.get(name)
        if network is None:
            network = self._by_network[name] = _Network()
        network.table(incoming)[incoming] = None

    def _leave_network(self, incoming: Incoming) -> None:
        name = peer_network(incoming.origin.address)
        network = self._by_network[name]
        del network.table(incoming)[incoming]
        if not len(network):
            del self._by_network[name]

    def idle_since(self, time: int) -> list[Incoming]:
        """Sequences of which nothing came since then."""
        return [each for each in self.all() if each.last_access < time]

    def ended(self, incoming: Incoming) -> None:
        """Another sequence follows the one that was; it is remembered how far that came."""
        if incoming.number:
            at = incoming.key, incoming.sequence_id
            if self.ended_before is not None:
                self.ended_before.append((at, self._ended.get(at)))
            self._ended[at] = incoming.number, incoming.origin
            if len(self._ended) > ENDED_MAX:
                self._ended.popitem(last=False)

    def take_back(
        self, opened: Iterable[Incoming], forgotten: Iterable[Incoming], ended: list[Ended]
    ) -> None:
        """What is known of sequences is again as it was: what changed it did not happen."""
        for incoming in opened:
            self.forget(incoming)
        for incoming in forgotten:
            self.restore(incoming)
        for at, known in reversed(ended):
            self._ended.pop(at, None)
            if known is not None:
                self._ended[at] = known

    def arrived(self, incoming: Incoming, sequence_id: int) -> int:
        """The last message that arrived of an earlier sequence; 0 if none is known to have."""
        known = self._ended.get((incoming.key, sequence_id))
        return 0 if known is None else known[0]

    def origin_of(self, key: SequenceKey, sequence_id: int) -> Origin:
        """Where a sequence came from; by the identifier of its sender if that is not known."""
        kept: Sequence[Incoming] = self._by_key.get(key, ())
        for each in kept:
            if each.sequence_id == sequence_id:
                return each.origin
        rejected = self._rejected.get(key)
        if rejected is not None and rejected.sequence_id == sequence_id:
            return rejected.origin
        known = self._ended.get((key, sequence_id))
        if known is None:
            return Origin("", key.source)
        # Who had it went on with another sequence, and moved with that.
        moved = (each.origin for each in kept if known[1] in each.left)
        return next(moved, known[1])

    def __len__(self) -> int:
        return self._count

    def all(self) -> list[Incoming]:
        """All of them, those of one network in the order in which they were idle longest."""
        tables = [each for one in self._by_network.values() for each in (one.new, one.proven)]
        return [incoming for table in tables for incoming in table]

    def remembers(self, incoming: Incoming) -> bool:
        """Whether a sequence is kept, or known as rejected."""
        return incoming.is_kept or self._rejected.get(incoming.key) is incoming

    def lasting(self) -> list[Incoming]:
        """Those that survive a restart: all, and those of which every message was rejected."""
        return self.all() + list(self._rejected.values())

    def learn(
        self,
        key: SequenceKey,
        place: tuple[int, int],
        origin: Origin,
        *,
        is_rejected: bool = False,
    ) -> Incoming | None:
        """A message was accepted, as the log says; (0, 0): the sequence was forgotten.

        Gives the sequence, unless more is known of it already or it is gone.
        """
        rejected = self._rejected.get(key)
        if is_rejected or (rejected is not None and rejected.origin == origin):
            self._rejected.pop(key, None)
        if is_rejected:
            return self._learn_rejected(key, place, origin)
        others = self._by_key.get(key, [])
        found = next((each for each in others if each.sequence_id == place[0]), None)
        if found is None:
            found = next((each for each in others if each.is_from(origin)), None)
        if place == (0, 0):
            if found is not None:
                self.forget(found)
            return None
        if found is None:
            found = Incoming(key, origin)
            found.is_proven = True
            self.restore(found)
        elif place < (found.sequence_id, found.number):
            return None
        elif place[0] != found.sequence_id:
            self.ended(found)
        found.sequence_id, found.number = found.settled = place
        return found

    def _learn_rejected(
        self, key: SequenceKey, place: tuple[int, int], origin: Origin
    ) -> Incoming | None:
        """Every message of a sequence was rejected, as the log says."""
        if place == (0, 0):
            return None
        found = Incoming(key, origin)
        found.sequence_id, found.number = found.settled = place
        self.reject(found)
        return found


def pack_sequence(incoming: Incoming, sequence_id: int, number: int) -> bytes:
    """A sequence as the log keeps it; (0, 0) is one that was forgotten."""
    address = incoming.origin.address.encode("ascii", "replace")
    head = _SEQUENCE.pack(
        incoming.key.source,
        sequence_id,
        number,
        incoming.last_access,
        incoming.rejects | (_REJECTED if incoming.is_rejected else 0),
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
    origin = Origin(data[at : at + size].decode("ascii"), remote)
    found = sequences.learn(
        SequenceKey(source, name),
        (sequence_id, number),
        origin,
        is_rejected=rejects & _REJECTED != 0,
    )
    if found is not None:
        sequences.came(found, origin, last_access)
        found.rejects = rejects & REJECTS_MAX
