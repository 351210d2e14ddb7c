"""What applications ask of a queue manager, as values.

The same values drive a queue manager in-process and one behind a socket. Queues are meant by their
numbers, which stay the same for ever; transactions and cursors by numbers that hold for as long as
whoever asks is connected. A transaction of 0 is none, and so is a handle of 0. How long a text may
be stands in its type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias, final
from uuid import UUID

from merq.model.access import Access, Share
from merq.model.length_limits import (
    AnyWriterText,
    GroupText,
    OwnerText,
    QueueNameText,
    StageNumbers,
    WriterText,
)
from merq.model.queue import Alteration, QueueSettings
from merq.model.row_batch import RowBatch
from merq.model.selecting import Selection
from merq.protocol.application.sequence_requests import ForgetSenders

# Messages. These are made for every message: plain classes are quicker to make than frozen ones.


@final
class Send:
    """[MS-MQDMPR] 3.1.7.1.9: messages into a queue; answered with their ids, 20 bytes each.

    Attributes:
        packets: All or none of them are sent.
        dead_letter: A queue of the application's own for those that are not received.
        handle: The opening through which they are sent.
    """

    __slots__ = ("dead_letter", "handle", "packets", "queue", "transaction")

    def __init__(
        self,
        queue: int,
        packets: Sequence[bytes],
        transaction: int = 0,
        dead_letter: QueueNameText = "",
        handle: int = 0,
    ) -> None:
        self.queue = queue
        self.packets = packets
        self.transaction = transaction
        self.dead_letter = dead_letter
        self.handle = handle


@final
class Read:
    """[MS-MQDMPR] 3.1.7.1.10 to 3.1.7.1.15: a message out of a queue, or one that stays in it.

    Attributes:
        wait: If there is none, the answer comes when there is, or when the request is cancelled.
        most: How many messages at once, in a list; 0 for one, alone.
        most_bytes: No further message is added once so many bytes are there; 0 for no such limit.
        held: The message stays, locked, until `EndReceive` says what becomes of it, or until
            whoever asked is gone.
    """

    __slots__ = (
        "handle",
        "held",
        "most",
        "most_bytes",
        "peek",
        "queue",
        "selection",
        "transaction",
        "wait",
    )

    def __init__(  # noqa: PLR0913 - a read has these
        self,
        queue: int,
        selection: Selection,
        *,
        peek: bool = False,
        wait: bool = False,
        transaction: int = 0,
        most: int = 0,
        most_bytes: int = 0,
        handle: int = 0,
        held: bool = False,
    ) -> None:
        self.queue = queue
        self.selection = selection
        self.peek = peek
        self.wait = wait
        self.transaction = transaction
        self.most = most
        self.most_bytes = most_bytes
        self.handle = handle
        self.held = held


@final
class EndReceive:
    """[MS-MQDMPR] 3.1.7.1.12: messages that were handed out and held go, or go back."""

    __slots__ = ("delete", "lookup_ids", "queue")

    def __init__(self, queue: int, lookup_ids: Sequence[int], *, delete: bool) -> None:
        self.queue = queue
        self.lookup_ids = lookup_ids
        self.delete = delete


@dataclass(frozen=True, slots=True)
class Cancel:
    """[MS-MQDMPR] 3.1.7.1.17: a request that waits for a message waits no longer.

    That request is answered then, with a time-out, unless it has just got its message. Whether it
    still waited is the answer to this one.
    """

    request: int


@dataclass(frozen=True, slots=True)
class SendTo:
    """[MS-MQDMPR] 3.1.7.1.27: copies of one message to where format names lead; answers its id."""

    destinations: tuple[tuple[str, bytes], ...]
    transaction: int = 0
    dead_letter: QueueNameText = ""


@final
class SendManyTo:
    """[MS-MQDMPR] 3.1.7.1.27: messages to where one format name leads; answered like `Send`.

    Attributes:
        packets: All or none of them are sent.
        dead_letter: A queue of the application's own for those that are not received.
    """

    __slots__ = ("dead_letter", "name", "packets", "transaction")

    def __init__(
        self,
        name: QueueNameText,
        packets: Sequence[bytes],
        transaction: int = 0,
        dead_letter: QueueNameText = "",
    ) -> None:
        self.name = name
        self.packets = packets
        self.transaction = transaction
        self.dead_letter = dead_letter


@dataclass(frozen=True, slots=True)
class SendRows:
    """Messages that have most in common, into a stage; answered with how many they are."""

    stage: int
    rows: RowBatch


@dataclass(frozen=True, slots=True)
class Move:
    """A message to a subqueue, or from there."""

    queue: int
    lookup_id: int
    target: int
    transaction: int = 0
    handle: int = 0


# Transactions.


@dataclass(frozen=True, slots=True)
class Begin:
    """[MS-MQDMPR] 3.1.7.1.8: a transaction, under a number that whoever asks chooses."""

    transaction: int


class Ending(Enum):
    """How a transaction goes on."""

    COMMIT = "commit"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class End:
    """[MS-MQDMPR] 3.1.4.4, 3.1.4.5: everything happens, or nothing."""

    transaction: int
    ending: Ending


@dataclass(frozen=True, slots=True)
class Prepare:
    """[MS-MQDMPR] 3.1.4.3: it ends as it is told, whatever happens until then, a restart too."""

    transaction: int
    identifier: UUID


@dataclass(frozen=True, slots=True)
class ListPrepared:
    """The transactions that are prepared and have not ended."""


@dataclass(frozen=True, slots=True)
class EndPrepared:
    """How a prepared transaction ends, also one that was prepared before a restart."""

    identifier: UUID
    ending: Ending


# Queues.


@dataclass(frozen=True, slots=True)
class CreateQueue:
    """[MS-MQDMPR] 3.1.7.1.3: makes a private queue; answers its number."""

    path_name: QueueNameText
    settings: QueueSettings
    identifier: UUID


@dataclass(frozen=True, slots=True)
class ChangeQueue:
    """Gives a queue other properties, for good."""

    queue: int
    alteration: Alteration


@dataclass(frozen=True, slots=True)
class DeleteQueue:
    """[MS-MQDMPR] 3.1.7.1.4: the queue, its journal and subqueues go, with their messages."""

    queue: int


@dataclass(frozen=True, slots=True)
class Purge:
    """[MS-MQDMPR] 3.1.7.1.7: all messages go; answers how many there were."""

    queue: int
    handle: int = 0


@dataclass(frozen=True, slots=True)
class FindQueue:
    """A queue by its path name; answers its number."""

    path_name: QueueNameText


@dataclass(frozen=True, slots=True)
class CreateSubqueue:
    """Makes a subqueue, unless it is there; answers its number."""

    queue: int
    name: QueueNameText


@dataclass(frozen=True, slots=True)
class DescribeQueue:
    """What is known of a queue: `QueueReport`."""

    queue: int


class Family(Enum):
    """Which queues are meant."""

    PRIVATE = "private"
    SYSTEM = "system"
    OUTGOING = "outgoing"
    SUBQUEUES = "subqueues"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class ListQueues:
    """The queues of a kind; subqueues are those of one queue."""

    family: Family = Family.PRIVATE
    owner: int = 0


@dataclass(frozen=True, slots=True)
class PauseQueue:
    """[MS-MQDMPR] 3.1.4.14: nothing leaves an outgoing queue until it is resumed."""

    queue: int


@dataclass(frozen=True, slots=True)
class ResumeQueue:
    """[MS-MQDMPR] 3.1.4.15: messages may leave an outgoing queue again."""

    queue: int


# The way to other queue managers.


@dataclass(frozen=True, slots=True)
class DescribeTransfer:
    """[MS-MQDMPR] 3.1.1.4: how far an outgoing queue is with sending: `TransferReport`."""

    queue: int


@dataclass(frozen=True, slots=True)
class ListSequences:
    """[MS-MQDMPR] 3.1.1.5: the sequences that come to a queue: `SequenceReport` for each."""

    queue: int


@dataclass(frozen=True, slots=True)
class ListLinks:
    """The connections with other queue managers: `LinkReport` for each."""


@dataclass(frozen=True, slots=True)
class TakeOffline:
    """[MS-MQDMPR] 3.1.4.12: no sessions with other queue managers until it is brought online."""


@dataclass(frozen=True, slots=True)
class BringOnline:
    """[MS-MQDMPR] 3.1.4.13: sessions with other queue managers are allowed again."""


# Opening.


@dataclass(frozen=True, slots=True)
class OpenQueue:
    """[MS-MQDMPR] 3.1.7.1.5: opens a queue for some use; answers a handle."""

    queue: int
    access: Access
    share: Share = Share.DENY_NONE


@dataclass(frozen=True, slots=True)
class CloseQueue:
    """[MS-MQDMPR] 3.1.7.1.6: the opening is over; who waits through it waits no longer."""

    handle: int


@dataclass(frozen=True, slots=True)
class OpenCursor:
    """[MS-MQDMPR] 3.1.7.1.1: a cursor before the first message; answers its number."""

    queue: int
    handle: int = 0


@dataclass(frozen=True, slots=True)
class CloseCursor:
    """[MS-MQDMPR] 3.1.7.1.2: who waits through the cursor waits no longer."""

    cursor: int


# Many messages at once, for whoever reads and writes in batches.


@dataclass(frozen=True, slots=True)
class DescribeSpan:
    """Which messages a queue has, by the order in which they came: `QueueSpan`.

    Attributes:
        since: If it is not 0, only those that arrived at this second or later, since 1970.
        after: The end is sought behind this number:
        most: so that no more than so many messages are between,
        most_bytes: whose packets take no more than this; 0 is no such limit.
    """

    queue: int
    since: int = 0
    after: int = 0
    most: int = 0
    most_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ReadRows:
    """Messages by the order in which they came, as they lie in the store: `RowsReport`.

    Attributes:
        group: Those that this group has reserved; if it is empty, all that are there.
        start: The range that begins there; or what came behind this number,
        end: and up to this one.
        skip: Messages of the range that are left out.
        most: How many at most.
        most_bytes: What their packets take at most.
    """

    queue: int
    group: GroupText
    start: int
    end: int = 0
    skip: int = 0
    most: int = 2048
    most_bytes: int = 4 << 20


@dataclass(frozen=True, slots=True)
class Reserve:
    """The range of a group that begins behind a number, a new one unless there is one.

    Answered with `RangeReport`; one without messages if there is nothing to reserve.

    Attributes:
        owner: Who speaks for the group; others are refused while it does.
        most: How many messages at most.
        most_bytes: What their packets take at most.
        upto: Only what came up to this number.
        floor: When the group is new: what came up to this number is none of its business.
    """

    queue: int
    group: GroupText
    owner: OwnerText
    after: int
    most: int = 8192
    most_bytes: int = 64 << 20
    upto: int = (1 << 56) - 1
    floor: int = 0


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """The first range of a group goes if it ends there or before; answers how many are left.

    Attributes:
        leave: Whoever asks speaks for the group no longer.
    """

    queue: int
    group: GroupText
    owner: OwnerText
    upto: int
    leave: bool = False


@dataclass(frozen=True, slots=True)
class ListRanges:
    """What a group has reserved of a queue: `RangeReport` for each range."""

    queue: int
    group: GroupText


@dataclass(frozen=True, slots=True)
class ListClaims:
    """All groups of all queues: `ClaimReport` for each."""


@dataclass(frozen=True, slots=True)
class ReleaseClaim:
    """What a group has reserved is anybody's again; answers how many messages that were."""

    queue: int
    group: GroupText
    forget: bool = False


@dataclass(frozen=True, slots=True)
class CreateStage:
    """A place for messages that are published later; answers its number, to which one sends.

    Attributes:
        queue: Where they go then.
        writer: Who writes; the same for all batches of a query.
        batch: The batch that they are part of.
        part: Which part of the batch, and which attempt at it.
    """

    queue: int
    writer: WriterText
    batch: int
    part: WriterText


@dataclass(frozen=True, slots=True)
class Publish:
    """The messages of stages come into their queues, all at once, in this order.

    Answers how many messages; 0 if that batch of that writer, or a later one, was published before.
    Other stages of the same batch and of those before it go.
    """

    writer: WriterText
    batch: int
    stages: StageNumbers


@dataclass(frozen=True, slots=True)
class DropStages:
    """The stages of a writer's batch go, or one stage alone; answers how many messages."""

    writer: AnyWriterText = ""
    batch: int = 0
    stage: int = 0


@dataclass(frozen=True, slots=True)
class ListStages:
    """What was written and is not published: `StageReport` for each stage."""


# Asking how things are.


@dataclass(frozen=True, slots=True)
class AskStatus:
    """How the queue manager is: `Status`."""


@dataclass(frozen=True, slots=True)
class AskWhy:
    """Where a message is, by its id of 20 bytes: `Sighting` for each place."""

    message_id: bytes = field(default=bytes(20))


Request: TypeAlias = (
    Send
    | Read
    | EndReceive
    | Cancel
    | SendTo
    | SendManyTo
    | SendRows
    | Move
    | Begin
    | End
    | Prepare
    | ListPrepared
    | EndPrepared
    | CreateQueue
    | ChangeQueue
    | DeleteQueue
    | Purge
    | FindQueue
    | CreateSubqueue
    | DescribeQueue
    | ListQueues
    | PauseQueue
    | ResumeQueue
    | DescribeTransfer
    | ListSequences
    | ForgetSenders
    | ListLinks
    | TakeOffline
    | BringOnline
    | OpenQueue
    | CloseQueue
    | OpenCursor
    | CloseCursor
    | DescribeSpan
    | ReadRows
    | Reserve
    | Acknowledge
    | ListRanges
    | ListClaims
    | ReleaseClaim
    | CreateStage
    | Publish
    | DropStages
    | ListStages
    | AskStatus
    | AskWhy
)
