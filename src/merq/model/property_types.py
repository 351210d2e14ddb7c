"""Properties of messages and queues are of one type each; what callers give may be of another."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping

from merq.errors import MessageQueueError
from merq.hresult import HResult


def check_types(properties: object, kinds: Mapping[str, type]) -> None:
    """Refuses properties of other types than these; True and False are no numbers here.

    Raises:
        MessageQueueError: The text says which, and what belongs there.
    """
    for name, kind in kinds.items():
        value = getattr(properties, name)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise MessageQueueError(
                HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT,
                f"{name} is {reprlib.repr(value)}, a {type(value).__name__}; "
                f"{kind.__name__} belongs there",
            )
