"""What callers give, checked before it comes near the engine: each refusal says what belongs there.

Annotations promise nothing at run time, and an engine that stumbles halfway over a value of another
type is not to be trusted any more.
"""

from __future__ import annotations

import math
import reprlib
import sys
from typing import Any, TypeVar

from merq.errors import MessageQueueError
from merq.hresult import HResult

_T = TypeVar("_T")


def of_kind(name: str, value: Any, kind: type[_T]) -> _T:
    """The value, if it is of this type; True and False are no numbers here.

    Raises:
        MessageQueueError: The text says what was found.
    """
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    raise of_wrong_kind(name, value, kind.__name__)


def of_wrong_kind(name: str, value: Any, kind: str) -> MessageQueueError:
    """What is said of a value of another type."""
    return MessageQueueError(
        HResult.MQ_ERROR_INVALID_PARAMETER,
        f"{name} is {reprlib.repr(value)}, a {type(value).__name__}; {kind} belongs there",
    )


def check_timeout(timeout: Any) -> None:
    """Refuses what is no time in seconds; None is for ever.

    Raises:
        MessageQueueError: The text says what was found.
    """
    if timeout is None:
        return
    is_number = isinstance(timeout, float) or type(timeout) is int
    if is_number and not sys.float_info.max < abs(timeout) < math.inf:
        return
    raise MessageQueueError(
        HResult.MQ_ERROR_INVALID_PARAMETER,
        f"timeout is {reprlib.repr(timeout)}; seconds belong there, or None for ever",
    )
