"""What a queue manager tells applications, beside messages and numbers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias
from uuid import UUID

from merq.errors import MessageQueueError
from merq.model.delivered import Delivered
from merq.model.queue import OutgoingState, QueueProperties


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


class Whereabouts(Enum):
    """Where a message, or a copy of it, is."""

    WAITING = "waiting to be received"
    LOCKED = "being received"
    LEAVING = "on its way out"
    OUTGOING = "waiting to be sent"
    JOURNAL = "in the journal"
    DEAD_LETTER = "in a dead-letter queue"
    UNSENT = "in a transaction that has not committed"


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
    | list[Sighting]
    | list[UUID]
    | MessageQueueError
    | None
)
"""What can come of a request; an error is a value until it reaches whoever asked."""
