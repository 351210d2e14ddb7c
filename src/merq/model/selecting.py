"""[MS-MQDMPR] 3.1.1.17, 3.1.7.3.3: which message of a queue is meant."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class Seek(Enum):
    """[MS-MQDMPR] 3.1.1.17: MessageSeekAction, which message is meant relative to another."""

    FIRST = "first"
    PREVIOUS = "previous"
    CURRENT = "current"
    NEXT = "next"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class First:
    """The first message that is available."""


@dataclass(frozen=True, slots=True)
class ByLookup:
    """The message at a lookup identifier, or next to it."""

    lookup_id: int
    seek: Seek = Seek.CURRENT


@dataclass(frozen=True, slots=True)
class ByMessageId:
    """The message with this identifier, 20 bytes."""

    message_id: bytes


@dataclass(frozen=True, slots=True)
class ByCorrelationId:
    """The first message with this correlation id, 20 bytes."""

    correlation_id: bytes


@dataclass(frozen=True, slots=True)
class AtCursor:
    """The message at a cursor, which is meant by its number, or the next one."""

    cursor: int
    next_one: bool = False


Selection: TypeAlias = First | ByLookup | ByMessageId | ByCorrelationId | AtCursor
