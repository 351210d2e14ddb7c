"""[MS-MQDMPR] 3.1.1.10, 3.1.1.17, 3.1.7.3.3: which message a reader wants, and waiting for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from merq.engine.cursor import Cursor
from merq.model.selecting import ByCorrelationId, ByLookup, ByMessageId, First


@dataclass(frozen=True, slots=True)
class ByCursor:
    """The message at a cursor, or the next one."""

    cursor: Cursor
    next_one: bool = False


Selector: TypeAlias = First | ByLookup | ByMessageId | ByCorrelationId | ByCursor


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRead:
    """[MS-MQDMPR] 3.1.1.10: somebody who waits for a message to become available.

    Attributes:
        most: How many messages it takes at once, 0 for one that is answered alone.
        most_bytes: No further message is added once their packets have so many bytes; 0 for no
            such limit.
        handle: The opening through which it reads, 0 if there is none.
        held: [MS-MQDMPR] 3.1.7.1.11: the message stays, locked, until the reader says what becomes
            of it.
    """

    request: int
    selector: Selector
    peek: bool = False
    transaction: int = 0
    most: int = 0
    most_bytes: int = 0
    handle: int = 0
    held: bool = False
