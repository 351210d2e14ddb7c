"""[MS-MQDMPR] 3.1.1.2: a queue: its properties, its messages, and who waits for one."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from merq.engine.positions import PositionList
from merq.model.names import PathName, parse_path_name

if TYPE_CHECKING:
    from merq.engine.reading import WaitingRead

UNLIMITED: Final = 0xFFFFFFFF
"""[MS-MQDMPR] 3.1.7.1.33: the quota of a queue that has none."""

KILOBYTE: Final = 1024
NULL_GUID: Final = UUID(int=0)


class QueueKind(Enum):
    """What a queue is for; [MS-MQDMPR] 3.1.1.2 has the first two as QueueType."""

    PRIVATE = "private"
    SYSTEM = "system"
    JOURNAL = "journal"
    SUBQUEUE = "subqueue"
    OUTGOING = "outgoing"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueProperties:
    """[MS-MQDMPR] 3.1.1.2, 3.1.7.1.33: the attributes of a queue that survive, with their defaults.

    Attributes:
        number: Identifies the queue on this queue manager, PrivateQueueNumber for private ones.
        owner: The queue that a journal or subqueue belongs to, 0 for others.
        quota: The most that its messages may take, in kilobytes.
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
    privacy_level: int = 1
    base_priority: int = 0
    multicast_address: str = ""

    def to_bytes(self) -> bytes:
        """As the log keeps them."""
        values = asdict(self)
        values["kind"] = self.kind.value
        values["identifier"] = str(self.identifier)
        values["type_id"] = str(self.type_id)
        return json.dumps(values, separators=(",", ":"), sort_keys=True).encode("utf-8")

    @classmethod
    def from_bytes(cls, data: bytes) -> QueueProperties:
        """What `to_bytes` wrote."""
        values: dict[str, Any] = json.loads(data)
        values["kind"] = QueueKind(values["kind"])
        values["identifier"] = UUID(values["identifier"])
        values["type_id"] = UUID(values["type_id"])
        return cls(**values)


class Queue:
    """[MS-MQDMPR] 3.1.1.2: a queue at work.

    Attributes:
        positions: The messages in their order.
        by_message_id: Lookup identifiers by the key that a message id has here.
        staged_bytes: What messages on their way into the queue will take.
        aborts: How often a receive of a message was aborted, for those where it was.
        expired: Messages whose time ran out and which are still here: somebody holds them, or they
            are on their way out.
        closing: Its deletion is under way; nothing more can be asked of it.
    """

    __slots__ = (
        "aborts",
        "by_message_id",
        "closing",
        "expired",
        "journal",
        "path",
        "positions",
        "properties",
        "staged_bytes",
        "subqueues",
        "waiting",
    )

    def __init__(self, properties: QueueProperties) -> None:
        self.properties = properties
        self.path: PathName | None = None
        if properties.kind is not QueueKind.OUTGOING:
            self.path = parse_path_name(properties.path_name)
        self.positions = PositionList()
        self.by_message_id: dict[int, int] = {}
        self.waiting: deque[WaitingRead] = deque()
        self.journal: Queue | None = None
        self.subqueues: dict[str, Queue] = {}
        self.staged_bytes = 0
        self.aborts: dict[int, int] = {}
        self.expired: set[int] = set()
        self.closing = False

    @property
    def number(self) -> int:
        """Identifies the queue on this queue manager."""
        return self.properties.number

    def has_room(self, size: int) -> bool:
        """[MS-MQDMPR] 3.1.7.1.9: whether a packet of this size keeps within the quota."""
        quota = self.properties.quota
        taken = self.positions.total_bytes + self.staged_bytes
        return quota == UNLIMITED or taken + size <= quota * KILOBYTE
