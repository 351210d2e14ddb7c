"""[MS-MQMQ] 2.5.1 to 2.5.3: which bytes of a message its digital signature is about.

Each of the three kinds of signature hashes some fields of the packet, in an order of its own. Here
is what is hashed; hashing, signing and verifying are not here, they come with message security.

A field's value is its bytes as they lie in the packet, little-endian, without what fills it up to
the next boundary; a field that the packet does not have adds nothing (erratum E98). The body is the
clear one: a message is signed before it is encrypted ([MS-MQQB] 3.1.7.1).
"""

from __future__ import annotations

from merq.wire.message import UserMessage
from merq.wire.queues import DirectQueueFormatName, QueueFormat
from merq.wire.reader import pack_wide

_ACKNOWLEDGMENTS = 0x0F


def hashed_by_msmq_1(message: UserMessage, clear_body: bytes | None = None) -> bytes:
    """[MS-MQMQ] 2.5.1: what the MSMQ 1.0 digital signature is about.

    Args:
        message: The message.
        clear_body: Its body, if the one in the packet is encrypted.
    """
    return b"".join(_common(message, clear_body))


def hashed_by_msmq_2(message: UserMessage, clear_body: bytes | None = None) -> bytes:
    """[MS-MQMQ] 2.5.2: what the MSMQ 2.0 digital signature is about; arguments as above."""
    parts = [
        *_common(message, clear_body),
        *_delivery(message),
        _name(message.user_header.destination_queue),
    ]
    return b"".join(parts)


def hashed_by_msmq_3(message: UserMessage, clear_body: bytes | None = None) -> bytes:
    """[MS-MQMQ] 2.5.3: what the MSMQ 3.0 digital signature is about; arguments as above.

    The message's own destination is not part of it, for every copy has another: all destinations
    are.
    """
    destinations = message.multi_queue_format_header
    parts = [
        *_common(message, clear_body),
        message.message_properties_header.extension_data,
        b"" if destinations is None else destinations.destination.pack_names(),
        *_delivery(message),
    ]
    return b"".join(parts)


def _common(message: UserMessage, clear_body: bytes | None) -> list[bytes]:
    """The fields with which all three begin."""
    properties, user = message.message_properties_header, message.user_header
    return [
        properties.fields.correlation_id,
        properties.fields.application_tag.to_bytes(4, "little"),
        properties.body if clear_body is None else clear_body,
        b"" if properties.label is None else pack_wide(properties.label, "label"),
        _name(user.response_queue),
        _name(user.admin_queue),
    ]


def _delivery(message: UserMessage) -> list[bytes]:
    """From SourceQueueManager to ConnectorType, which 2.0 and 3.0 share."""
    user, properties = message.user_header, message.message_properties_header.fields
    flags = user.fields.flags
    numbers = (
        flags.delivery_mode,
        message.base_header.flags.priority,
        flags.positive_journaling << 1 | flags.negative_journaling,
        properties.flags.pack() & _ACKNOWLEDGMENTS,
    )
    return [
        user.fields.source_queue_manager.bytes_le,
        bytes(numbers),
        properties.message_class.to_bytes(2, "little"),
        properties.body_type.to_bytes(4, "little"),
        b"" if user.connector_type is None else user.connector_type.bytes_le,
    ]


def _name(queue: QueueFormat | None) -> bytes:
    if queue is None:
        return b""
    if isinstance(queue, DirectQueueFormatName):
        return queue.pack_unpadded()
    return queue.pack()
