"""[MS-MQDMPR] 3.1.1.2, 3.1.1.3: a queue: its properties, its messages, and who waits for one."""

from __future__ import annotations

import json
import struct
from collections import deque
from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from merq.engine.identifiers import MessageIds
from merq.engine.positions import NEVER, PositionList
from merq.model.names import PathName, parse_path_name

if TYPE_CHECKING:
    from merq.engine.opening import Descriptor
    from merq.engine.reading import WaitingRead

UNLIMITED: Final = 0xFFFFFFFF
"""[MS-MQDMPR] 3.1.7.1.33: the quota of a queue that has none."""

KILOBYTE: Final = 1024
NULL_GUID: Final = UUID(int=0)

_TIMES: Final = struct.Struct("<II")
_U32: Final = struct.Struct("<I")


class QueueKind(Enum):
    """What a queue is for; [MS-MQDMPR] 3.1.1.2 has the first two as QueueType."""

    PRIVATE = "private"
    SYSTEM = "system"
    JOURNAL = "journal"
    SUBQUEUE = "subqueue"
    OUTGOING = "outgoing"


class PrivacyLevel(Enum):
    """[MS-MQDMPR] 3.1.1.2: which messages a queue takes, by whether their bodies are encrypted."""

    NONE = 0
    OPTIONAL = 1
    BODY = 2


class OutgoingState(Enum):
    """[MS-MQDMPR] 3.1.1.3: how far an outgoing queue is with reaching its destination."""

    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    DISCONNECTING = "disconnecting"
    INACTIVE = "inactive"
    LOCKED = "locked"
    NEED_VALIDATION = "need validation"
    WAITING = "waiting"
    ON_HOLD = "on hold"


class Note(NamedTuple):
    """What is known of a message beside its packet; most messages have none.

    Attributes:
        aborts: How often a receive of it was aborted.
        purged: The queue was purged while somebody held it: it goes when it is given back.
        dead_letter: [MS-MQDMPR] 3.1.1.12: the path name of the dead-letter queue that the
            application chose, empty if none.
        kept: It is a copy of a message that is dead: its fate was told.
    """

    aborts: int = 0
    purged: bool = False
    dead_letter: str = ""
    kept: bool = False


NO_NOTE: Final = Note()


KEEPING: Final = frozenset({QueueKind.SYSTEM, QueueKind.JOURNAL})
"""Queues in which messages do not expire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueProperties:
    """[MS-MQDMPR] 3.1.1.2, 3.1.7.1.33: the attributes of a queue that survive, with their defaults.

    Attributes:
        number: Identifies the queue on this queue manager, PrivateQueueNumber for private ones.
        path_name: Its path name; the destination's format name for an outgoing queue.
        owner: The queue that a journal or subqueue belongs to, 0 for others.
        quota: The most that its messages may take, in kilobytes.
        poison_after: After how many aborted receives a message moves to the subqueue `poison`; 0
            is never.
    """

    number: int
    path_name: str
    kind: QueueKind
    identifier: UUID
    created: int
    modified: int
    owner: int = 0
    label: str = ""
    type_id: UUID = NULL_GUID
    transactional: bool = False
    journaling: bool = False
    quota: int = UNLIMITED
    journal_quota: int = UNLIMITED
    authenticate: bool = False
    privacy_level: PrivacyLevel = PrivacyLevel.OPTIONAL
    base_priority: int = 0
    multicast_address: str = ""
    poison_after: int = 0

    def to_bytes(self) -> bytes:
        """As the log keeps them."""
        values = asdict(self)
        values["kind"] = self.kind.value
        values["privacy_level"] = self.privacy_level.value
        values["identifier"] = str(self.identifier)
        values["type_id"] = str(self.type_id)
        return json.dumps(values, separators=(",", ":"), sort_keys=True).encode("utf-8")

    @classmethod
    def from_bytes(cls, data: bytes) -> QueueProperties:
        """What `to_bytes` wrote."""
        values: dict[str, Any] = json.loads(data)
        values["kind"] = QueueKind(values["kind"])
        values["privacy_level"] = PrivacyLevel(values["privacy_level"])
        values["identifier"] = UUID(values["identifier"])
        values["type_id"] = UUID(values["type_id"])
        return cls(**values)


class Queue:
    """[MS-MQDMPR] 3.1.1.2, 3.1.1.3: a queue at work.

    Attributes:
        positions: The messages in their order.
        by_message_id: Lookup identifiers by the key that a message id has here.
        staged_bytes: What messages on their way into the queue will take.
        notes: What is known of messages beside their packets, for those of which something is.
        expired: Messages whose time ran out and which are still here: somebody holds them, or they
            are on their way out.
        held: Messages that were handed out to be ended later, and whether that is under way.
        descriptors: Who has it open.
        closing: Its deletion is under way; nothing more can be asked of it.
        state: How far an outgoing queue is; it has no meaning for others.
    """

    __slots__ = (
        "by_message_id",
        "closing",
        "descriptors",
        "expired",
        "held",
        "journal",
        "notes",
        "path",
        "positions",
        "properties",
        "staged_bytes",
        "state",
        "subqueues",
        "waiting",
    )

    def __init__(self, properties: QueueProperties) -> None:
        self.properties = properties
        self.path: PathName | None = None
        if properties.kind is not QueueKind.OUTGOING:
            self.path = parse_path_name(properties.path_name)
        self.positions = PositionList()
        self.by_message_id = MessageIds()
        self.waiting: deque[WaitingRead] = deque()
        self.journal: Queue | None = None
        self.subqueues: dict[str, Queue] = {}
        self.staged_bytes = 0
        self.notes: dict[int, Note] = {}
        self.expired: set[int] = set()
        self.held: dict[int, bool] = {}
        self.descriptors: dict[int, Descriptor] = {}
        self.closing = False
        self.state = OutgoingState.INACTIVE

    @property
    def number(self) -> int:
        """Identifies the queue on this queue manager."""
        return self.properties.number

    @property
    def is_outgoing(self) -> bool:
        """[MS-MQDMPR] 3.1.1.3: whether its messages wait to be sent to another queue manager."""
        return self.properties.kind is QueueKind.OUTGOING

    @property
    def is_active(self) -> bool:
        """[MS-MQDMPR] 3.1.1.2: somebody has it open, or it has something to send."""
        return bool(self.descriptors) or (self.is_outgoing and self.positions.count > 0)

    def expiry_of(self, packet: bytes | memoryview) -> int:
        """When a message leaves unreceived, in seconds since 1970; NEVER if it stays."""
        times: tuple[int, int] = _TIMES.unpack_from(packet, 48)
        lifetime, sent = times
        kind = self.properties.kind
        if kind is QueueKind.OUTGOING:
            lifetime = min(lifetime, *_U32.unpack_from(packet, 12))
        if lifetime == NEVER or kind in KEEPING:
            # A copy in a journal or dead-letter queue stays: its time was the message's.
            return NEVER
        return min(sent + lifetime, NEVER - 1)

    def has_room(self, size: int) -> bool:
        """[MS-MQDMPR] 3.1.7.1.9: whether a packet of this size keeps within the quota."""
        quota = self.properties.quota
        if quota == UNLIMITED:
            return True
        return self.positions.total_bytes + self.staged_bytes + size <= quota * KILOBYTE
