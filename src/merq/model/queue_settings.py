"""[MS-MQDMPR] 3.1.1.2: which values the properties of a queue can have."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from merq.errors import MessageQueueError, NameSyntaxError
from merq.hresult import HResult
from merq.model.names import MulticastName, parse_format_name
from merq.model.property_types import check_types
from merq.model.queue import UNLIMITED, PrivacyLevel, QueueSettings

QUEUE_LABEL_MAX: Final = 124
POISON_AFTER_MAX: Final = 1_000_000
BASE_PRIORITY_MIN: Final = -32768
BASE_PRIORITY_MAX: Final = 32767
"""[MS-MQMQ] 2.3.1.6."""

_SETTING_TYPES: Final[dict[str, type]] = {
    "label": str,
    "transactional": bool,
    "journaling": bool,
    "quota": int,
    "journal_quota": int,
    "base_priority": int,
    "type_id": UUID,
    "poison_after": int,
    "authenticate": bool,
    "privacy_level": PrivacyLevel,
    "multicast_address": str,
}

_SETTING_RANGES: Final = (
    ("quota", 0, UNLIMITED, "kilobytes, the largest is no limit"),
    ("journal_quota", 0, UNLIMITED, "kilobytes, the largest is no limit"),
    (
        "base_priority",
        BASE_PRIORITY_MIN,
        BASE_PRIORITY_MAX,
        "of a public queue, added to the priority of messages that are sent to it",
    ),
    ("poison_after", 0, POISON_AFTER_MAX, "aborted receives, 0 is off"),
)


def check_settings(settings: QueueSettings) -> None:
    """Refuses what cannot be a queue's property.

    Raises:
        MessageQueueError: The text says which, and what belongs there.
    """
    check_types(settings, _SETTING_TYPES)
    if len(settings.label) > QUEUE_LABEL_MAX:
        raise MessageQueueError(
            HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
            f"a label of {len(settings.label)} characters; {QUEUE_LABEL_MAX} are the most",
        )
    if settings.multicast_address:
        _check_multicast(settings)
    for name, low, high, meaning in _SETTING_RANGES:
        value = getattr(settings, name)
        if not low <= value <= high:
            raise MessageQueueError(
                HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
                f"{name} is {value}; it is from {low} to {high:#x} ({meaning})",
            )


def _check_multicast(settings: QueueSettings) -> None:
    """[MS-MQMQ] 2.3.1.23: an address and a port; transactional queues cannot have one."""
    try:
        name = parse_format_name(f"MULTICAST={settings.multicast_address}")
    except NameSyntaxError as wrong:
        raise MessageQueueError(
            HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, f"multicast_address: {wrong}"
        ) from wrong
    if settings.transactional or not isinstance(name, MulticastName):
        raise MessageQueueError(
            HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
            "multicast_address: one address, and only for queues that are not transactional",
        )
