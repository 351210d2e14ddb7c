"""What a queue manager tells applications, beside messages and numbers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias
from uuid import UUID

from merq.errors import MessageQueueError
from merq.model.delivered import Delivered
from merq.model.queue import OutgoingState, QueueProperties
from merq.model.reservations import ClaimReport, QueueSpan, RangeReport, StageReport
from merq.protocol.application.rows import RowsReport


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueReport:
    """A queue and how it stands.

    Attributes:
        messages: How many messages are in it, those included that somebody is receiving.
        size: What they take, in bytes.
        locked: How many of them are being received.
        journal_messages: How many are in its journal.
        readers: Who waits for a message.
        openings: How often it is open.
        arrived: Messages that came since the queue manager started.
        left: Messages that left since then.
        oldest: When the first message came, in seconds since 1970; 0 if there is none.
        state: How far an outgoing queue is.
    """

    properties: QueueProperties
    messages: int
    size: int
    locked: int
    journal_messages: int
    readers: int
    openings: int
    arrived: int
    left: int
    oldest: int
    state: OutgoingState


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A queue manager and how it is.

    Attributes:
        started: When it was started, in seconds since 1970.
        now: When this was told.
        throttled: Disk or memory runs low, and no message is taken until there is more.
        express_bytes: What express messages take in memory.
        free_disk_bytes: Room on the disk, as it was looked at last.
        quota_bytes: The most that all messages together may take; 0 if there is no quota.
        taken_bytes: What they take of it, those on their way into a queue included.
        network_bytes: What messages of other queue managers take of that.
        network_quota_bytes: The most that they may take; 0 if they have no share of their own.
        network_express_bytes: What their express messages take in memory.
        throttled_peers: Addresses of queue managers from which nothing is read, because their
            messages found no room.
        online: [MS-MQDMPR] 3.1.1.1: sessions with other queue managers are allowed.
        sessions: How many of them are open.
        tls_failures: Other queue managers that messages wait for because TLS with them fails, and
            why, a sentence each.
        set_aside: Messages that could not be handled, whose packets are kept in the folder `aside`,
            and those since the start for which there was no room there.
    """

    name: str
    guid: UUID
    version: str
    started: int
    now: int
    throttled: bool
    low_on_disk: bool
    low_on_memory: bool
    queues: int
    outgoing_queues: int
    messages: int
    message_bytes: int
    express_bytes: int
    free_disk_bytes: int
    log_bytes: int
    transactions: int
    prepared: int
    connections: int
    readers: int
    online: bool
    sessions: int
    quota_bytes: int = 0
    taken_bytes: int = 0
    network_bytes: int = 0
    network_quota_bytes: int = 0
    network_express_bytes: int = 0
    throttled_peers: tuple[str, ...] = ()
    tls_failures: tuple[str, ...] = ()
    set_aside: int = 0


# The way to other queue managers.


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionAttempt:
    """[MS-MQDMPR] 3.1.1.3: an entry of an outgoing queue's connection history.

    Attributes:
        status: What happened, by the name that the document has for it: `Established`, say, or
            `SocketConnectFailure`.
        time: Seconds since 1970.
        error: An HRESULT, or 0.
        addresses: Where to.
        text: What was found, for people.
    """

    status: str
    time: int
    error: int
    addresses: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SequencePlace:
    """[MS-MQMQ] 2.2.5: a place in a sequence of transactional messages; all 0 is none.

    Attributes:
        sequence_id: The sequence.
        number: The message's number in it.
        previous: The number of the message before it, 0 for the first.
    """

    sequence_id: int = 0
    number: int = 0
    previous: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferReport:
    """[MS-MQDMPR] 3.1.1.3, 3.1.1.4: an outgoing queue and how far it is with sending.

    Attributes:
        state: How far it is with reaching the destination.
        next_hops: Addresses by which the destination may be reached.
        history: What came of connecting, the newest last.
        waiting: Messages that are not under way.
        under_way: Messages that were transmitted and that nobody has acknowledged for good.
        first_unacknowledged: The first transactional message without an order acknowledgment.
        last_unacknowledged: The last one.
        unacknowledged: How many they are.
        unread: Transactional messages that have arrived; whether they were received there is not
            known yet.
        last_acknowledged: The last message that an order acknowledgment was about.
        acknowledgments: How many order acknowledgments came.
        acknowledged_at: When the last one came, in seconds since 1970; 0 if none did.
        next_place: The place that the next transactional message gets.
        resends: How often transactional messages were sent again since then.
        resend_interval_s: How long an order acknowledgment is waited for.
        resend_at: When they are sent again, in seconds since 1970; 0 if nothing waits.
        retry_at: When it is tried again to connect, in seconds since 1970; 0 if nothing waits.
    """

    state: OutgoingState
    next_hops: tuple[str, ...]
    history: tuple[ConnectionAttempt, ...]
    waiting: int
    under_way: int
    first_unacknowledged: SequencePlace
    last_unacknowledged: SequencePlace
    unacknowledged: int
    unread: int
    last_acknowledged: SequencePlace
    acknowledgments: int
    acknowledged_at: int
    next_place: SequencePlace
    resends: int
    resend_interval_s: int
    resend_at: int
    retry_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceReport:
    """[MS-MQDMPR] 3.1.1.5: how far a sequence is that comes from another queue manager.

    Attributes:
        sender: That queue manager.
        format_name: The name by which it sends to the queue.
        sequence_id: The sequence.
        number: Its last message that is durable here.
        last_access: When the last one came, in seconds since 1970.
        rejects: Messages that were out of order since the last that was not.
        address: Where the messages came from: the sender, or a router.
        dropped: Messages in the name of this sender that were dropped since the start without
            telling whoever sent them, because their sequence cannot be the next.
    """

    sender: UUID
    format_name: str
    sequence_id: int
    number: int
    last_access: int
    rejects: int
    address: str
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkReport:
    """A connection with another queue manager.

    Attributes:
        address: Of the other side.
        queue_manager: Who that is; all 0 as long as it has not said.
        ours: This side has connected.
        secure: It is inside of TLS.
        open: Its session is open: messages can be sent.
        queues: Destinations of outgoing queues that use it, the first ones.
        queue_count: How many use it.
        unacknowledged: Messages that were sent and have no session acknowledgment.
    """

    address: str
    queue_manager: UUID
    ours: bool
    secure: bool
    open: bool
    queues: tuple[str, ...]
    queue_count: int
    unacknowledged: int


class Whereabouts(Enum):
    """Where a message, or a copy of it, is."""

    WAITING = "waiting to be received"
    LOCKED = "being received"
    RESERVED = "reserved by a group of consumers"
    LEAVING = "on its way out"
    OUTGOING = "waiting to be sent"
    TRANSMITTED = "transmitted, and not acknowledged"
    UNORDERED = "transmitted, and waiting for its order acknowledgment"
    UNREAD = "arrived there, and waiting to be received"
    JOURNAL = "in the journal"
    DEAD_LETTER = "in a dead-letter queue"
    UNSENT = "in a transaction that has not committed"
    STAGED = "written, and not published"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A place where a message, a copy of it or an acknowledgment about it is.

    Attributes:
        queue: The path name, or the destination's format name of an outgoing queue.
        arrived: When it came there, in seconds since 1970.
        message_class: Normal; in a dead-letter queue and in an acknowledgment, the reason.
        about: It is not the message but an acknowledgment about it.
    """

    queue: str
    whereabouts: Whereabouts
    lookup_id: int
    arrived: int
    sent: int
    label: str
    destination: str
    message_class: int
    aborts: int
    about: bool


Result: TypeAlias = (
    Delivered
    | list[Delivered]
    | int
    | bytes
    | QueueReport
    | list[QueueReport]
    | Status
    | TransferReport
    | list[SequenceReport]
    | list[LinkReport]
    | list[Sighting]
    | list[UUID]
    | RangeReport
    | list[RangeReport]
    | list[ClaimReport]
    | list[StageReport]
    | QueueSpan
    | RowsReport
    | MessageQueueError
    | None
)
"""What can come of a request; an error is a value until it reaches whoever asked."""


FIELDS_OF_VERSION_2: Final[dict[type, frozenset[str]]] = {
    Status: frozenset(
        {
            "quota_bytes",
            "taken_bytes",
            "network_bytes",
            "network_quota_bytes",
            "network_express_bytes",
            "throttled_peers",
            "tls_failures",
            "set_aside",
        }
    ),
    TransferReport: frozenset({"retry_at"}),
    SequenceReport: frozenset({"dropped"}),
}
"""Who speaks version 1 of the application protocol is not told of these: it refuses the unknown."""
