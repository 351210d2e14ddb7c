"""[MS-MQQB] 2.2.4, 2.2.5: OrderAck and FinalAck, the end-to-end acknowledgments.

Both are user messages to the sender's `order_queue$`, told from others by destination, label and
class ([MS-MQQB] 3.1.5.1.1), with a body of 36 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from merq.errors import WireError
from merq.model.message_class import MessageClass
from merq.wire.headers import BaseFlags, BaseHeader, TxSequenceID
from merq.wire.layout import Layout, guid_field, layout, nested, number, spare_bytes
from merq.wire.message import UserMessage
from merq.wire.properties import MessagePropertiesHeader, PropertiesFields
from merq.wire.queues import (
    DIRECT,
    PRIVATE_ON_DESTINATION,
    DirectQueueFormatName,
    PrivateQueueFormatNameId,
)
from merq.wire.reader import Reader
from merq.wire.user import EXPRESS, NULL_GUID, RECOVERABLE, UserFields, UserFlags, UserHeader

_L = TypeVar("_L", bound=Layout)

ORDER_QUEUE_ID = 4
"""[MS-MQQB] 2.2.4: the private queue identifier of `order_queue$`."""

ORDER_QUEUE_PATH = r"\private$\order_queue$"
ORDER_ACK_LABEL = "QM Ordering Ack"
ACK_BODY_SIZE = 0x24
FINAL_ACK_CLASS_MIN = 0x4000

_ACK_FLAGS = (
    UserFlags(delivery_mode=RECOVERABLE, destination_queue_type=DIRECT).pack()
    | dict(UserFlags.BITS)["hop_count"].mask
    | UserFlags.RESERVED_MASK
)
"""[MS-MQQB] 2.2.4, 2.2.5: MP, DM and DQ may be set in UserHeader.Flags, and nothing else that means
something; routing servers count in RC, and reserved bits are ignored."""


@layout("MS-MQQB 2.2.4.1", size=ACK_BODY_SIZE)
class OrderAckBody(Layout):
    """[MS-MQQB] 2.2.4.1: the last message that was accepted in order."""

    tx_sequence_id: TxSequenceID = nested(TxSequenceID)
    tx_sequence_number: int = number(4, low=1)
    tx_previous_sequence_number: int = number(4, high=0xFFFFFFFE)
    reserved: bytes = spare_bytes(20, default=bytes(20))


@layout("MS-MQQB 2.2.5.1", size=ACK_BODY_SIZE)
class FinalAckBody(Layout):
    """[MS-MQQB] 2.2.5.1: the message that was received for good, or rejected."""

    tx_sequence_id: TxSequenceID = nested(TxSequenceID)
    tx_sequence_number: int = number(4, low=1)
    tx_previous_sequence_number: int = number(4, high=0xFFFFFFFE)
    source_guid: UUID = guid_field()
    message_id: int = number(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderAck:
    """[MS-MQQB] 2.2.4: acknowledges that transactional messages arrived in order."""

    message: UserMessage
    body: OrderAckBody

    def pack(self) -> bytes:
        """The bytes."""
        return _pack(self.message, self.body, "OrderAck")


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalAck:
    """[MS-MQQB] 2.2.5: says what became of one transactional message in the end."""

    message: UserMessage
    body: FinalAckBody

    def pack(self) -> bytes:
        """The bytes."""
        return _pack(self.message, self.body, "FinalAck")


@dataclass(frozen=True, slots=True, kw_only=True)
class AckEnvelope:
    """Who acknowledges to whom: what both acknowledgments' headers need.

    `destination` is the direct format name of the sender's order queue without its prefix, or the
    GUID of its queue manager.
    """

    source_queue_manager: UUID
    destination: str | UUID
    sent_time: int
    message_id: int


def order_ack(envelope: AckEnvelope, body: OrderAckBody) -> OrderAck:
    """[MS-MQQB] 2.2.4: the packet that carries this body."""
    message = _message(envelope, body, MessageClass.MQMSG_CLASS_ORDER_ACK, EXPRESS)
    return OrderAck(message=message, body=body)


def final_ack(envelope: AckEnvelope, body: FinalAckBody, message_class: int) -> FinalAck:
    """[MS-MQQB] 2.2.5: the packet that carries this body and verdict."""
    if message_class < FINAL_ACK_CLASS_MIN:
        raise WireError(
            f"class {message_class:#x} is below {FINAL_ACK_CLASS_MIN:#x}", field="FinalAck"
        )
    message = _message(envelope, body, message_class, RECOVERABLE)
    return FinalAck(message=message, body=body)


def recognise(message: UserMessage, reader: Reader) -> UserMessage | OrderAck | FinalAck:
    """[MS-MQQB] 3.1.5.1.1: the acknowledgment that a user message is, or the message itself."""
    properties = message.message_properties_header
    if (
        not has_ack_flags(message.base_header.flags.pack(), message.user_header.fields.flags.pack())
        or properties.label != ORDER_ACK_LABEL
        or not _to_order_queue(message.user_header)
    ):
        return message
    kind = properties.fields.message_class
    if kind == MessageClass.MQMSG_CLASS_ORDER_ACK and len(properties.body) == ACK_BODY_SIZE:
        return OrderAck(
            message=message, body=_body(OrderAckBody, "order_ack_body", message, reader)
        )
    if kind >= FINAL_ACK_CLASS_MIN:
        return FinalAck(
            message=message, body=_body(FinalAckBody, "final_ack_body", message, reader)
        )
    return message


def has_ack_flags(base_flags: int, user_flags: int) -> bool:
    """[MS-MQQB] 2.2.4, 2.2.5: whether no flag is set that an acknowledgment must not have."""
    return not base_flags and not user_flags & ~_ACK_FLAGS


def _to_order_queue(user: UserHeader) -> bool:
    queue = user.destination_queue
    if isinstance(queue, PrivateQueueFormatNameId):
        return queue.private_queue_identifier == ORDER_QUEUE_ID
    return isinstance(
        queue, DirectQueueFormatName
    ) and queue.direct_format_name.casefold().endswith(ORDER_QUEUE_PATH)


def _message(
    envelope: AckEnvelope, body: Layout, message_class: int, delivery_mode: int
) -> UserMessage:
    to = envelope.destination
    direct = isinstance(to, str)
    data = body.pack()
    return UserMessage(
        base_header=BaseHeader(flags=BaseFlags(priority=0), packet_size=BaseHeader.SIZE),
        user_header=UserHeader(
            fields=UserFields(
                source_queue_manager=envelope.source_queue_manager,
                queue_manager_address=to if isinstance(to, UUID) else NULL_GUID,
                sent_time=envelope.sent_time,
                message_id=envelope.message_id,
                flags=UserFlags(
                    delivery_mode=delivery_mode,
                    destination_queue_type=DIRECT if direct else PRIVATE_ON_DESTINATION,
                ),
            ),
            destination_queue=DirectQueueFormatName(direct_format_name=to)
            if isinstance(to, str)
            else PrivateQueueFormatNameId(private_queue_identifier=ORDER_QUEUE_ID),
        ),
        message_properties_header=MessagePropertiesHeader(
            fields=PropertiesFields(
                label_length=len(ORDER_ACK_LABEL) + 1,
                message_class=message_class,
                message_size=len(data),
                allocation_body_size=len(data),
            ),
            label=ORDER_ACK_LABEL,
            message_body=data,
        ),
    ).measured()


def _body(form: type[_L], name: str, message: UserMessage, reader: Reader) -> _L:
    """The body as a structure of its own, shown to the trace where it lies in the packet."""
    properties = message.message_properties_header
    # No header follows the properties of an acknowledgment, so the body is found from the end.
    behind = len(properties.padding) + len(message.trailing)
    start = reader.end - behind - len(properties.message_body)
    if len(properties.body) != ACK_BODY_SIZE:
        reason = f"{len(properties.body)} bytes where {ACK_BODY_SIZE} belong"
        raise reader.fail(reason, "message_properties_header.message_body", offset=start)
    return reader.nested(name, start, form.unpack)


def _pack(message: UserMessage, body: Layout, name: str) -> bytes:
    if message.message_properties_header.body != body.pack():
        raise WireError("the message carries another body", field=name)
    return message.pack()
