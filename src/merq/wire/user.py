"""[MS-MQMQ] 2.2.19.2: the UserHeader, which says where a message comes from and where it goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self
from uuid import UUID

from merq.errors import WireError
from merq.wire import queues
from merq.wire.headers import INFINITE
from merq.wire.layout import (
    BitField,
    Layout,
    bit,
    bit_field,
    bits,
    flag_word,
    guid_field,
    layout,
    number,
    other_bits,
)
from merq.wire.queues import QueueFormat, read_queue, write_queue
from merq.wire.reader import Reader

EXPRESS = 0
RECOVERABLE = 1
HOPS_MAX = 0x1D
"""[MS-MQMQ] 2.2.19.2: the largest number of routing servers a message may pass."""

NULL_GUID = UUID(int=0)


@bit_field("MS-MQMQ 2.2.19.2", width=32)
class UserFlags(BitField):
    """[MS-MQMQ] 2.2.19.2: how a message is delivered, and which parts its packet has."""

    hop_count: int = bits(0, 5, "RC", one_of=tuple(range(HOPS_MAX + 1)), default=0)
    delivery_mode: int = bits(5, 2, "DM", one_of=(EXPRESS, RECOVERABLE), default=0)
    negative_journaling: bool = bit(8, "JN", default=False)
    positive_journaling: bool = bit(9, "JP", default=False)
    destination_queue_type: int = bits(10, 3, "DQ", one_of=queues.DESTINATION_TYPES, default=0)
    admin_queue_type: int = bits(13, 3, "AQ", one_of=queues.ADMIN_TYPES, default=0)
    response_queue_type: int = bits(16, 3, "RQ", default=0)
    security_header: bool = bit(19, "SH", default=False)
    transaction_header: bool = bit(20, "TH", default=False)
    message_properties_header: bool = bit(21, "MP", default=True)
    connector_type: bool = bit(22, "CQ", default=False)
    multi_queue_format_header: bool = bit(23, "MQ", default=False)
    from_http: bool = bit(25, "AH", default=False)
    soap_header: bool = bit(28, "HH", default=False)
    reserved: int = other_bits(default=0)


@layout("MS-MQMQ 2.2.19.2", size=48)
class UserFields(Layout):
    """[MS-MQMQ] 2.2.19.2: the part of a UserHeader that is always there."""

    source_queue_manager: UUID = guid_field()
    queue_manager_address: UUID = guid_field(default=NULL_GUID)
    time_to_be_received: int = number(4, default=INFINITE)
    sent_time: int = number(4)
    message_id: int = number(4)
    flags: UserFlags = flag_word(UserFlags)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserHeader:
    """[MS-MQMQ] 2.2.19.2: source, destination, administration and response queue of a message."""

    fields: UserFields
    destination_queue: QueueFormat | None
    admin_queue: QueueFormat | None = None
    response_queue: QueueFormat | None = None
    connector_type: UUID | None = None

    def pack(self) -> bytes:
        """The bytes."""
        flags = self.fields.flags
        if problem := contradiction(flags):
            raise WireError(problem, field="UserHeader.flags")
        if flags.connector_type != (self.connector_type is not None):
            raise WireError(
                "flags.connector_type and ConnectorType must be present together",
                field="UserHeader",
            )
        return b"".join(
            (
                self.fields.pack(),
                write_queue(
                    self.destination_queue, flags.destination_queue_type, "destination_queue"
                ),
                write_queue(self.admin_queue, flags.admin_queue_type, "admin_queue"),
                write_queue(self.response_queue, flags.response_queue_type, "response_queue"),
                b"" if self.connector_type is None else self.connector_type.bytes_le,
            )
        )

    @classmethod
    def unpack(cls, reader: Reader) -> Self:
        """The header at the reader's position."""
        start = reader.position
        fields = UserFields.unpack(reader)
        flags = fields.flags
        if problem := contradiction(flags):
            raise reader.fail(problem, "flags", offset=start + UserFields.SIZE - 4)
        return cls(
            fields=fields,
            destination_queue=read_queue(reader, flags.destination_queue_type, "destination_queue"),
            admin_queue=read_queue(reader, flags.admin_queue_type, "admin_queue"),
            response_queue=read_queue(reader, flags.response_queue_type, "response_queue"),
            connector_type=reader.guid("connector_type") if flags.connector_type else None,
        )


def contradiction(flags: UserFlags) -> str:
    """[MS-MQMQ] 2.2.19.2: what these flags say that cannot be true together; empty if nothing."""
    if not flags.message_properties_header:
        return "MP is clear, but every user message has a MessagePropertiesHeader"
    if flags.transaction_header and flags.delivery_mode == EXPRESS:
        return "TH is set on an express message, but transactional messages are recoverable"
    return ""
