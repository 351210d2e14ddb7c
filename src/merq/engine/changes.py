"""Changes: what an operation does, as data. A change is durable whole, and only then happens.

The engine plans a change, the driver writes its entries as one frame and says when it is durable,
and the engine carries out its steps and answers. A change without entries needs no disk; it happens
when the changes before it have.

Steps are made for every message: they are plain classes, because frozen dataclasses take three
times as long to make.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias, final

from merq.engine.network_share import Coming
from merq.engine.records import Entry, PutRun
from merq.errors import MessageQueueError
from merq.model.delivered import Delivered
from merq.model.reservations import RangeReport

if TYPE_CHECKING:
    from merq.engine.claims import Claim, Range
    from merq.engine.incoming import Ended, Incoming
    from merq.engine.queue import Note, Queue
    from merq.engine.work import Sending, Transaction
    from merq.model.queue import QueueProperties


Result: TypeAlias = (
    Delivered | list[Delivered] | int | bytes | RangeReport | MessageQueueError | None
)


@final
class Answer:
    """What came of a request; an error is a value here, raised at the edge."""

    __slots__ = ("request", "result")

    def __init__(self, request: int, result: Result) -> None:
        self.request = request
        self.result = result


NO_ENTRY = -1
"""The entry of a message that is kept in memory only."""


@final
class PutStep:
    """A message becomes available; `entry` is its place among the change's entries, or NO_ENTRY."""

    __slots__ = ("arrival", "entry", "lookup_id", "note", "packet", "queue")

    def __init__(
        self,
        queue: Queue,
        lookup_id: int,
        arrival: int,
        packet: bytes,
        entry: int,
        note: Note | None,
    ) -> None:
        self.queue = queue
        self.arrival = arrival
        self.lookup_id = lookup_id
        self.packet = packet
        self.entry = entry
        self.note = note


@final
class PutManyStep:
    """Messages become available, of which nothing else is known.

    Attributes:
        lookup_ids: Of each packet.
        first_ordinal: The first message's of our own; the others follow it.
        keys: By which each is known, if they are of others.
        entry: The first one's place among the change's entries, the others follow it; or NO_ENTRY.
        size: Of all packets together.
    """

    __slots__ = (
        "arrival",
        "entry",
        "first_ordinal",
        "keys",
        "lookup_ids",
        "packets",
        "queue",
        "size",
    )

    def __init__(
        self,
        queue: Queue,
        arrival: int,
        lookup_ids: list[int],
        packets: list[bytes],
        first_ordinal: int,
        entry: int,
        size: int,
    ) -> None:
        self.queue = queue
        self.arrival = arrival
        self.lookup_ids = lookup_ids
        self.packets = packets
        self.first_ordinal = first_ordinal
        self.entry = entry
        self.size = size
        self.keys: list[int] | None = None


@final
class PutRowsStep:
    """Messages come into a stage.

    Attributes:
        entry: The first one's place among the change's entries, the others follow it.
        ids: The lookup identifier of each.
        sizes: Of each packet.
        expiries: When each leaves unreceived.
        keys: By which each is known.
        size: Of all packets together.
    """

    __slots__ = ("entry", "expiries", "ids", "keys", "queue", "size", "sizes")

    def __init__(
        self,
        queue: Queue,
        entry: int,
        ids: array[int],
        sizes: array[int],
        expiries: array[int],
        keys: array[int],
        size: int,
    ) -> None:
        self.queue = queue
        self.entry = entry
        self.ids = ids
        self.sizes = sizes
        self.expiries = expiries
        self.keys = keys
        self.size = size


@final
class RemoveStep:
    """A message is gone."""

    __slots__ = ("lookup_id", "queue")

    def __init__(self, queue: Queue, lookup_id: int) -> None:
        self.queue = queue
        self.lookup_id = lookup_id


@final
class RemoveManyStep:
    """Messages of one queue are gone."""

    __slots__ = ("lookup_ids", "queue")

    def __init__(self, queue: Queue, lookup_ids: Sequence[int]) -> None:
        self.queue = queue
        self.lookup_ids = lookup_ids


@final
class MoveStep:
    """A message is in another queue from now on, at the place that its lookup identifier has."""

    __slots__ = ("lookup_id", "queue", "target")

    def __init__(self, queue: Queue, lookup_id: int, target: Queue) -> None:
        self.queue = queue
        self.lookup_id = lookup_id
        self.target = target


@final
class GiveBackStep:
    """A message that somebody held is available again, whether this could be written or not."""

    __slots__ = ("lookup_id", "note", "queue")

    def __init__(self, queue: Queue, lookup_id: int, note: Note | None) -> None:
        self.queue = queue
        self.lookup_id = lookup_id
        self.note = note


@final
class PurgeStep:
    """More is known of a message that somebody holds: that it goes when it is given back, say."""

    __slots__ = ("lookup_id", "note", "queue")

    def __init__(self, queue: Queue, lookup_id: int, note: Note) -> None:
        self.queue = queue
        self.lookup_id = lookup_id
        self.note = note


@final
class RelocateStep:
    """Packets lie elsewhere, of those messages that are still there.

    Attributes:
        lookup_ids: In the order of the queue.
        entry: The first one's place among the change's entries, the others follow it.
    """

    __slots__ = ("entry", "lookup_ids", "queue")

    def __init__(self, queue: Queue, lookup_ids: Sequence[int], entry: int) -> None:
        self.queue = queue
        self.lookup_ids = lookup_ids
        self.entry = entry


@final
class DefineStep:
    """A queue is there, or has other properties from now on."""

    __slots__ = ("properties", "queue")

    def __init__(self, queue: Queue, properties: QueueProperties) -> None:
        self.queue = queue
        self.properties = properties


@final
class DropStep:
    """A queue is gone, with everything in it."""

    __slots__ = ("queue",)

    def __init__(self, queue: Queue) -> None:
        self.queue = queue


@final
class StageStep:
    """Messages are to be sent to a queue when a transaction commits."""

    __slots__ = ("operations", "transaction")

    def __init__(self, transaction: Transaction, operations: list[Sending]) -> None:
        self.transaction = transaction
        self.operations = operations


@final
class PrepareStep:
    """A transaction has promised to do what it is told next, whatever happens."""

    __slots__ = ("transaction",)

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction


@final
class ResolveStep:
    """A transaction that was prepared has ended."""

    __slots__ = ("transaction",)

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction


@final
class ArriveStep:
    """Messages came from other queue managers, and are known when they come again.

    Attributes:
        sequences: Those that went on, and where they stood before: sequence and number.
        opened: Those of them that are kept since then.
        forgotten: Those that are kept no more, to make room for them or because somebody said so.
        ended: What was known before of earlier sequences that were ended with it.
        rejected: Those of which a message was not the next.
        messages: Source, identity and network of the others.
        coming: What is kept of them, by the addresses that they came from.
        coming_in_memory: The part of it that is in memory alone.
    """

    __slots__ = (
        "coming",
        "coming_in_memory",
        "ended",
        "forgotten",
        "messages",
        "opened",
        "rejected",
        "sequences",
    )

    def __init__(self) -> None:
        self.sequences: dict[Incoming, tuple[int, int]] = {}
        self.opened: dict[Incoming, None] = {}
        self.forgotten: list[Incoming] = []
        self.ended: list[Ended] = []
        self.rejected: dict[Incoming, None] = {}
        self.messages: list[tuple[bytes, int, str]] = []
        self.coming = Coming()
        self.coming_in_memory = Coming()


@final
class TransferStep:
    """The log knows more of an outgoing queue: whom it sends to, or what was acknowledged in order.

    Attributes:
        remote: Whom it sends to from now on; None if that stays.
        lookup_ids: Messages that an OrderAck named.
    """

    __slots__ = ("lookup_ids", "queue", "remote")

    def __init__(self, queue: Queue, remote: bytes | None, lookup_ids: Sequence[int] = ()) -> None:
        self.queue = queue
        self.remote = remote
        self.lookup_ids = lookup_ids


@final
class ReserveStep:
    """A group has reserved a range of messages.

    Attributes:
        before: How far the group was when this was planned; None if it was not known.
    """

    __slots__ = ("before", "claim", "queue", "reserved")

    def __init__(self, queue: Queue, claim: Claim, reserved: Range, before: int | None) -> None:
        self.queue = queue
        self.claim = claim
        self.reserved = reserved
        self.before = before


@final
class AcknowledgeStep:
    """A group is done with a range; the step behind this one removes its messages."""

    __slots__ = ("claim", "queue", "reserved")

    def __init__(self, queue: Queue, claim: Claim, reserved: Range) -> None:
        self.queue = queue
        self.claim = claim
        self.reserved = reserved


@final
class ReleaseStep:
    """What a group has reserved up to a number is anybody's again.

    If it is forgotten with that, so is all that it has reserved.
    """

    __slots__ = ("claim", "end", "is_forgotten", "queue")

    def __init__(self, queue: Queue, claim: Claim, end: int, *, is_forgotten: bool) -> None:
        self.queue = queue
        self.claim = claim
        self.end = end
        self.is_forgotten = is_forgotten


@final
class PublishStep:
    """What was written into stages comes into queues.

    Attributes:
        moves: Stages, where they go, and the number that the first message gets there.
    """

    __slots__ = ("batch", "moves", "time", "writer")

    def __init__(self, writer: str, batch: int, time: int) -> None:
        self.writer = writer
        self.batch = batch
        self.time = time
        self.moves: list[tuple[Queue, Queue, int]] = []


Step: TypeAlias = (
    PutStep
    | PutManyStep
    | PutRowsStep
    | RemoveStep
    | RemoveManyStep
    | MoveStep
    | GiveBackStep
    | PurgeStep
    | RelocateStep
    | DefineStep
    | DropStep
    | StageStep
    | PrepareStep
    | ResolveStep
    | ArriveStep
    | TransferStep
    | ReserveStep
    | AcknowledgeStep
    | ReleaseStep
    | PublishStep
)


@final
class Change:
    """What an operation does. `positions` and `end` come from the store once it is written.

    One that is certain happens even if it cannot be written: it only says what a restart brings
    about as well.
    """

    __slots__ = ("answers", "end", "entries", "is_certain", "positions", "steps")

    def __init__(self) -> None:
        self.entries: list[Entry | PutRun] = []
        self.steps: list[Step] = []
        self.answers: list[Answer] = []
        self.positions: tuple[int, ...] = ()
        self.end = 0
        self.is_certain = False

    def is_ready(self, durable: int) -> bool:
        """Whether it may happen, now that the log is durable up to here."""
        return not self.entries or 0 < self.end <= durable


Effect: TypeAlias = Change | Answer
"""What the driver is to do: write this change's entries as one frame, or give this answer.

A change that has no entries any more came to nothing meanwhile, and is not written."""
