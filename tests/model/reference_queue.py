"""What the reference model is made of: messages, queues, readers, transactions, and operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from merq.hresult import HResult
from merq.model.access import Access, Share

NEVER: Final = 0xFFFFFFFF
QUOTA_KB: Final = 2
FULL: Final = int(HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED)
TIMEOUT: Final = int(HResult.MQ_ERROR_IO_TIMEOUT)
NOT_FOUND: Final = int(HResult.MQ_ERROR_MESSAGE_NOT_FOUND)
DELETED: Final = int(HResult.MQ_ERROR_QUEUE_DELETED)
NO_ROOM: Final = int(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES)
OUT_OF_SEQUENCE: Final = int(HResult.MQ_ERROR_TRANSACTION_SEQUENCE)
DENIED: Final = int(HResult.MQ_ERROR_SHARING_VIOLATION)
CANCELLED: Final = int(HResult.MQ_ERROR_OPERATION_CANCELLED)

TAKING_ROOM: Final = ("staged", "coming", "here", "held", "returning", "leaving", "going", "doomed")
IN_QUEUE: Final = ("here", "held", "returning", "leaving", "going", "doomed")

Told = tuple[str, Any]
OK: Told = ("ok", 0)


@dataclass(eq=False)
class Msg:
    """A message.

    Attributes:
        state: staged (sent, not committed), coming, here, held (by a transaction or a reader),
            returning (the abort is not durable yet), leaving (somebody gets it), going (it was
            purged or has expired), doomed (it was purged, which could not be written), or gone.
        purged: The queue was purged: it goes when it is given back.
        aborts: How often its receive was aborted; `kept_aborts` is what is written of that.
        request: Who sent it, and `place` is which of the messages sent at once it is.
        moves: How often it was moved; quotas do not hinder that.
    """

    number: int
    size: int
    recoverable: bool
    lane: int = 7
    sent: int = 0
    lifetime: int = NEVER
    time_to_reach: int = NEVER
    expires: int = NEVER
    correlation: int = 0
    request: int = 0
    place: int = 0
    arrival: int = 0
    state: str = "coming"
    purged: bool = False
    aborts: int = 0
    kept_aborts: int = 0
    moves: int = 0

    @property
    def order(self) -> tuple[int, int]:
        return self.lane, self.arrival

    def live(self, lifetime: int, queue: Queue) -> None:
        """Says when it expires."""
        if queue.kind == "outgoing":
            lifetime = min(lifetime, self.time_to_reach)
        self.expires = NEVER if lifetime == NEVER else self.sent + lifetime


@dataclass(eq=False)
class Read:
    """Somebody who wants messages: any, one by number, or one by correlation."""

    request: int
    peek: bool = False
    tx: Tx | None = None
    number: int = 0
    correlation: int = 0
    most: int = 0
    held: bool = False
    handle: int = 0

    def wants(self, message: Msg) -> bool:
        if self.number:
            return message.number == self.number
        return not self.correlation or message.correlation == self.correlation


@dataclass(eq=False)
class Opening:
    queue: Queue
    access: Access
    share: Share

    def clashes(self, access: Access, share: Share) -> bool:
        """Whether nobody can open the queue like this while this one is open."""
        if self.share is Share.DENY_RECEIVE and access is Access.RECEIVE:
            return True
        return self.access is Access.RECEIVE and share is Share.DENY_RECEIVE


@dataclass(eq=False)
class Queue:
    """A queue. `kind` is private, journal, subqueue or outgoing; the last two come by use.

    Attributes:
        makers: How many operations under way make it.
    """

    name: str
    kind: str = "private"
    transactional: bool = False
    limited: bool = False
    journaling: bool = False
    poison_after: int = 0
    owner: Queue | None = None
    journal: Queue | None = None
    messages: list[Msg] = field(default_factory=list)
    waiting: list[Read] = field(default_factory=list)
    openings: dict[int, Opening] = field(default_factory=dict)
    closing: bool = False
    makers: int = 0

    @property
    def implied(self) -> bool:
        return self.kind in {"subqueue", "outgoing"}

    @property
    def denied(self) -> bool:
        """Whether somebody denies receiving to who has not opened the queue."""
        return any(each.clashes(Access.RECEIVE, Share.DENY_NONE) for each in self.openings.values())

    def sorted(self, *states: str) -> list[Msg]:
        return sorted((m for m in self.messages if m.state in states), key=lambda m: m.order)

    def bytes_in(self, *states: str) -> int:
        return sum(m.size for m in self.messages if m.state in states)

    def has_room(self, size: int) -> bool:
        return not self.limited or self.bytes_in(*TAKING_ROOM) + size <= QUOTA_KB * 1024

    def is_poison(self, message: Msg) -> bool:
        """Whether one more abort sets a message aside."""
        return 0 < self.poison_after <= message.aborts + 1 and self.kind == "private"


@dataclass(eq=False)
class Work:
    """One thing that is done in a transaction: `what` is send, receive or move."""

    what: str
    queue: Queue
    message: Msg
    target: Queue | None = None


@dataclass(eq=False)
class Tx:
    """A transaction: `phase` is open, preparing, prepared, ending or over."""

    number: int
    name: int = 0
    phase: str = "open"
    work: list[Work] = field(default_factory=list)

    @property
    def queues(self) -> list[Queue]:
        targets = [each.target for each in self.work if each.target is not None]
        return [each.queue for each in self.work] + targets


@dataclass(eq=False)
class Op:
    """What happens when it and all before it are durable; or is undone if the disk is full.

    Attributes:
        certain: It happens even if it cannot be written.
    """

    disk: bool = False
    certain: bool = False
    done: list[Callable[[], None]] = field(default_factory=list)
    undone: list[Callable[[], None]] = field(default_factory=list)
    answers: list[tuple[int, Told]] = field(default_factory=list)
    frame: int = 0
