"""What a packet that cannot be means to who wanted to send it."""

from __future__ import annotations

from merq.errors import MessageQueueError, WireError
from merq.hresult import HResult


def refusal(wrong: WireError) -> MessageQueueError:
    """What a packet that cannot be means to who wanted to send it."""
    code = HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE
    if wrong.field == "packet_size":
        code = HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    elif wrong.field == "label_length":
        code = HResult.MQ_ERROR_LABEL_TOO_LONG
    return MessageQueueError(code, f"{wrong.field}: {wrong.reason}")
