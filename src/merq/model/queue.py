"""[MS-MQDMPR] 3.1.1.2, 3.1.1.3: what a queue is, apart from its messages."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any, Final
from uuid import UUID

KILOBYTE: Final = 1024
"""Quotas are kilobytes."""

UNLIMITED: Final = 0xFFFFFFFF
"""[MS-MQDMPR] 3.1.7.1.33: the quota of a queue that has none."""

NULL_GUID: Final = UUID(int=0)


class QueueKind(Enum):
    """What a queue is for; [MS-MQDMPR] 3.1.1.2 has the first two as QueueType."""

    PRIVATE = "private"
    SYSTEM = "system"
    JOURNAL = "journal"
    SUBQUEUE = "subqueue"
    OUTGOING = "outgoing"
    STAGE = "stage"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """What a queue's maker chooses; [MS-MQDMPR] 3.1.7.1.33 has the defaults."""

    label: str = ""
    transactional: bool = False
    journaling: bool = False
    quota: int = UNLIMITED
    journal_quota: int = UNLIMITED
    base_priority: int = 0
    type_id: UUID = NULL_GUID
    poison_after: int = 0
    authenticate: bool = False
    privacy_level: PrivacyLevel = PrivacyLevel.OPTIONAL
    multicast_address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """What is to be changed of a queue; None stays as it is."""

    label: str | None = None
    journaling: bool | None = None
    quota: int | None = None
    journal_quota: int | None = None
    base_priority: int | None = None
    type_id: UUID | None = None
    poison_after: int | None = None
    authenticate: bool | None = None
    privacy_level: PrivacyLevel | None = None
    multicast_address: str | None = None


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
