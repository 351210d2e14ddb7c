"""[MS-MQQB] 3.1.1.5, 3.1.5.8.6: which transactional messages came from others already.

They are told by their sequences: a queue manager has one for each name that it sends to, so that is
what they are kept by. Other messages are told by their identifiers (`history`).
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from merq.model.network_table import NetworkCounts, NetworkTable
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
has a sequence of its own. The first of them never gives way, and of the others the network that has
the most."""

PEER_IDLE_S: Final = 3600
"""A peer that was silent for so long gives way to another one of the same sender, if each has a
network of its own."""

IDLE_LOOKS_MAX: Final = 32
"""So many of the idlest sequences are looked at for one of which no message is in a queue."""

FUTURE_S: Final = 24 * 3600
"""How far the clock of a sender may be ahead of ours. The high half of a sequence's identifier is a
time with Windows and Merq; the documents let it be anything."""

SEQUENCE_IDLE_S: Final = 90 * 24 * 3600
"""A sequence is forgotten when this queue manager was up for so long and nothing of it came."""

ENDED_MAX: Final = 100_000
"""Earlier sequences of which it is remembered how far they came; the network that has the most
loses its oldest."""

REJECTS_MAX: Final = 0x7FFFFFFF
"""[MS-MQQB] 3.1.1.3.1: TxMessageRejectCount goes no further; the log has a flag above it."""

_NO_SEQUENCE: Final = ((1 << 64) - 1, (1 << 32) - 1)
"""A place behind which there is none."""
_KEYS_MAX: Final = 4096
_KEPT_NAME_BYTES: Final = 512  # longer ones are worked out anew: strangers choose how long they are


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


class Past(NamedTuple):
    """What is remembered of a sequence that is not kept any more.

    Attributes:
        number: The last message of it that was accepted, or decided on.
        origin: Where it came from.
        is_followed: Its peer has begun another one since. If not, it was forgotten to make room, or
            because somebody said so, and goes on where it was.
    """

    number: int
    origin: Origin
    is_followed: bool


Ended: TypeAlias = tuple[tuple[SequenceKey, int], Past | None]
"""A sequence that is over, and what was remembered of it before."""


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
        dropped: Messages that were not accepted, and of which their sender was told nothing, since
            the start: they were of a sequence that cannot be the next.
        last_access: When the last one came, in seconds since 1970.
        rank: The lower it is the earlier the sequence was opened, compared with others that are
            kept.
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
        "number",
        "origin",
        "queue",
        "rank",
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
        self.rejects = 0
        self.dropped = 0
        self.last_access = 0
        self.rank = 0
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
        """Whether a peer can be the one that opened the sequence.

        A computer changes its address within its network of IPv6 as a rule.
        """
        own = self.origin
        if origin == own or not own.address:
            return True
        return origin.remote == own.remote and (
            peer_network(origin.address) == peer_network(own.address)
        )

    @property
    def is_refused(self) -> bool:
        """Whether nothing can follow: its identifier is of a time that is still to come."""
        return (self.sequence_id, self.number) == _NO_SEQUENCE and not self.is_kept

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

    def sort(self) -> None:
        """The order is that of the last messages again."""
        for table in (self.new, self.proven):
            for each in sorted(table, key=_last_access):
                table.move_to_end(each)

    def idlest(self, is_wanted: Callable[[Incoming], bool]) -> Incoming:
        """The one to be forgotten: of those that sent one message, if any did; rather unwanted."""
        table = self.new or self.proven
        for each in islice(table, IDLE_LOOKS_MAX):
            if not is_wanted(each):
                return each
        return next(iter(table))


def _rank(incoming: Incoming) -> int:
    return incoming.rank


def _last_access(incoming: Incoming) -> int:
    return incoming.last_access


def _superfluous(others: list[Incoming], newcomer: Incoming) -> Incoming:
    """Which of the peers that claim one sender gives way to another one.

    Never the first: strangers do not push out who opened the sequence. If a network has several,
    the idlest of the network that has the most; else one that was silent for long, or the last.
    """
    first = min(others, key=_rank)
    rest = [each for each in others if each is not first] or others
    networks = Counter(peer_network(each.origin.address) for each in (*rest, newcomer))
    ((_, most),) = networks.most_common(1)
    if most > 1:
        crowd = [each for each in rest if networks[peer_network(each.origin.address)] == most]
        return min(crowd, key=_last_access)
    idlest = min(rest, key=_last_access)
    is_idle = newcomer.last_access - idlest.last_access > PEER_IDLE_S
    return idlest if is_idle else max(rest, key=_rank)


class Sequences:
    """All sequences that come here.

    A sender has one for each name that it sends to. Anybody may claim to be that sender, so what
    comes from another peer under another identifier is kept beside it: it neither ends the sequence
    nor makes it stale. What has the sequence's own identifier belongs to it wherever it comes from,
    for a sender may move. The peer that was first is never driven out by others of the same sender.

    Attributes:
        ended_before: While a change is planned, what was known before of sequences that it ends.
    """

    __slots__ = (
        "_by_key",
        "_by_network",
        "_counts",
        "_ended",
        "_ended_of",
        "_names",
        "_opened",
        "_rejected",
        "ended_before",
    )

    def __init__(self) -> None:
        self._by_key: dict[SequenceKey, list[Incoming]] = {}
        self._by_network: dict[str, _Network] = {}
        self._rejected: OrderedDict[SequenceKey, Incoming] = OrderedDict()
        self._ended: dict[tuple[SequenceKey, int], Past] = {}
        self._ended_of: NetworkTable[tuple[SequenceKey, int]] = NetworkTable()
        self._names: dict[tuple[int, bytes], str] = {}
        self._counts = NetworkCounts()
        self._opened = 0
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
        return None if found is None else max(found, key=_last_access)

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
            if each.is_from(origin) and (mine is None or each.sequence_id > mine.sequence_id):
                mine = each
        if mine is not None:
            if sequence_id > mine.sequence_id and (key, sequence_id) in self._ended:
                return self._new(key, sequence_id, origin, mine.sequence_id)
            return mine
        return self._from_elsewhere(key, sequence_id, origin, now)

    def _from_elsewhere(
        self, key: SequenceKey, sequence_id: int, origin: Origin, now: int
    ) -> Incoming:
        """The sequence of a peer that did not send for this sender before.

        It goes on where all the others are, for its folder may have been restored elsewhere. A time
        to come is nobody's measure, unless the sender's clock is ahead: so says its first peer.
        """
        found = self._by_key[key]
        clock = now
        if sequence_id >> 32 > now + FUTURE_S:
            first = min(found, key=_rank)
            clock = max(now, (first.sequence_id >> 32) + max(now - first.last_access, 0))
        known = (each.sequence_id for each in found if each.sequence_id >> 32 <= clock)
        fresh = self._new(key, sequence_id, origin, max(known, default=0))
        is_known = fresh.sequence_id == sequence_id
        if sequence_id >> 32 > clock + FUTURE_S and not is_known:
            fresh.sequence_id, fresh.number = _NO_SEQUENCE
        return fresh

    def _new(self, key: SequenceKey, sequence_id: int, origin: Origin, floor: int) -> Incoming:
        """A sequence that has to be above `floor`; one that came before goes on from there.

        One that was forgotten to make room does so below it, too: its peer has begun no other, so
        nothing that comes of it behind its last message was ever here.
        """
        fresh = Incoming(key, origin)
        fresh.sequence_id = floor
        known = self._ended.get((key, sequence_id))
        if known is not None and (sequence_id > floor or not known.is_followed):
            fresh.sequence_id, fresh.number = sequence_id, known.number
        return fresh

    def came(self, incoming: Incoming, origin: Origin, now: int) -> None:
        """Something of a sequence came from there."""
        if not incoming.is_kept:
            incoming.origin, incoming.last_access = origin, now
            return
        if origin != incoming.origin:
            self._leave_network(incoming)
            incoming.origin = origin
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
        own = [each for each in others if each.is_from(incoming.origin)]
        gone += own
        if not gone and len(others) >= PEERS_PER_SENDER_MAX:
            gone.append(_superfluous(others, incoming))
        network = self._by_network.get(peer_network(incoming.origin.address))
        if not gone and network is not None and len(network) >= SEQUENCES_PER_NETWORK_MAX:
            gone.append(network.idlest(is_wanted))
        elif not gone and len(self) >= SEQUENCES_MAX:
            gone.append(self._by_network[self._counts.largest()].idlest(is_wanted))
        for each in gone:
            self.forget(each)
        incoming.rank = min(map(_rank, own), default=0)
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
        if not incoming.rank:
            self._opened += 1
            incoming.rank = self._opened
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
        incoming.is_kept = False
        self._leave_network(incoming)
        self.ended(incoming, is_followed=False)

    def _join_network(self, incoming: Incoming) -> None:
        name = peer_network(incoming.origin.address)
        network = self._by_network.get(name)
        if network is None:
            network = self._by_network[name] = _Network()
        network.table(incoming)[incoming] = None
        self._counts.add(name)

    def _leave_network(self, incoming: Incoming) -> None:
        name = peer_network(incoming.origin.address)
        network = self._by_network[name]
        del network.table(incoming)[incoming]
        self._counts.remove(name)
        if not len(network):
            del self._by_network[name]

    def idle_since(self, time: int) -> list[Incoming]:
        """Sequences of which nothing came since then."""
        return [each for each in self.all() if each.last_access < time]

    def ended(self, incoming: Incoming, *, is_followed: bool = True) -> None:
        """A sequence is over, or another one follows; it is remembered how far it came."""
        if incoming.number:
            at = incoming.key, incoming.sequence_id
            if self.ended_before is not None:
                self.ended_before.append((at, self._ended.get(at)))
            if at not in self._ended and len(self._ended) >= ENDED_MAX:
                self._remember(self._ended_of.first_to_go(), None)
            self._remember(at, Past(incoming.number, incoming.origin, is_followed))

    def _remember(self, at: tuple[SequenceKey, int], past: Past | None) -> None:
        """What is remembered of an earlier sequence; None if it is nothing any more."""
        if past is None:
            self._ended.pop(at, None)
            self._ended_of.discard(at)
        else:
            self._ended[at] = past
            self._ended_of.add(at, peer_network(past.origin.address))

    def take_back(
        self, opened: Iterable[Incoming], forgotten: Iterable[Incoming], ended: list[Ended]
    ) -> None:
        """What is known of sequences is again as it was: what changed it did not happen."""
        for incoming in opened:
            self.forget(incoming)
        for incoming in forgotten:
            self.restore(incoming)
        for at, known in reversed(ended):
            self._remember(at, known)

    def arrived(self, incoming: Incoming, sequence_id: int) -> int:
        """The last message that arrived of an earlier sequence; 0 if none is known to have."""
        known = self._ended.get((incoming.key, sequence_id))
        return 0 if known is None else known.number

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
        return Origin("", key.source) if known is None else known.origin

    def __len__(self) -> int:
        return len(self._counts)

    def all(self) -> list[Incoming]:
        """All of them, those of one network in the order in which they were idle longest."""
        tables = [each for one in self._by_network.values() for each in (one.new, one.proven)]
        return [incoming for table in tables for incoming in table]

    def remembers(self, incoming: Incoming) -> bool:
        """Whether a sequence is kept, or known as rejected."""
        return incoming.is_kept or self._rejected.get(incoming.key) is incoming

    def lasting(self) -> list[Incoming]:
        """Those that survive a restart: all, and those of which every message was rejected.

        They are in the order in which they were opened, so that it survives, too.
        """
        return sorted(self.all(), key=_rank) + list(self._rejected.values())

    def sort(self) -> None:
        """All were read from the log: each network's are in the order of their last messages."""
        for network in self._by_network.values():
            network.sort()

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
        if is_rejected or (rejected is not None and rejected.is_from(origin)):
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
