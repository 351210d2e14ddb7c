"""[MS-MQMQ] 2.2.19.1, 2.2.20.4, 2.2.20.5, 2.2.20.8: the headers that hardly branch.

BaseHeader opens every packet; SessionHeader, TransactionHeader and DebugHeader are optional parts
of a UserMessage. The headers that carry names, security and bodies have modules of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self
from uuid import UUID

from merq.errors import WireError
from merq.wire.layout import (
    BitField,
    Layout,
    bit,
    bit_field,
    bits,
    constant,
    flag_word,
    guid_field,
    layout,
    nested,
    number,
    other_bits,
    spare,
)
from merq.wire.reader import Reader

PACKET_SIZE_MAX = 0x00400000
"""[MS-MQMQ] 2.2.19.1: the largest PacketSize, 4 MiB."""

VERSION = 0x10
SIGNATURE = 0x524F494C
"""[MS-MQMQ] 2.2.19.1: "LIOR" as it lies on the wire."""

INFINITE = 0xFFFFFFFF
"""A time that never runs out."""


@bit_field("MS-MQMQ 2.2.19.1", width=16)
class BaseFlags(BitField):
    """[MS-MQMQ] 2.2.19.1: what kind of packet this is and which headers travel along."""

    priority: int = bits(0, 3, "PR", default=3)
    internal: bool = bit(3, "IN", default=False)
    session_header: bool = bit(4, "SH", default=False)
    debug_header: bool = bit(5, "DH", default=False)
    traced: bool = bit(8, "TR", default=False)
    reserved: int = other_bits(default=0)


@layout("MS-MQMQ 2.2.19.1", size=16)
class BaseHeader(Layout):
    """[MS-MQMQ] 2.2.19.1: the first 16 bytes of every packet."""

    version_number: int = constant(1, default=VERSION)
    reserved: int = spare(1, default=0)
    flags: BaseFlags = flag_word(BaseFlags)
    signature: int = constant(4, default=SIGNATURE)
    packet_size: int = number(4, low=16, high=PACKET_SIZE_MAX)
    time_to_reach_queue: int = number(4, default=INFINITE)


@layout("MS-MQMQ 2.2.20.4", size=16)
class SessionHeader(Layout):
    """[MS-MQMQ] 2.2.20.4: acknowledges what arrived on a session and says what was sent."""

    ack_sequence_number: int = number(2)
    recoverable_msg_ack_seq_number: int = number(2)
    recoverable_msg_ack_flags: int = number(4)
    user_msg_sequence_number: int = number(2)
    recoverable_msg_seq_number: int = number(2)
    window_size: int = number(2, low=1)
    reserved: int = spare(2, default=0)


@layout("MS-MQMQ 2.2.18.1.2", size=8)
class TxSequenceID(Layout):
    """[MS-MQMQ] 2.2.18.1.2: names a sequence of transactional messages."""

    ordinal: int = number(4)
    time_stamp: int = number(4)

    def __int__(self) -> int:
        return self.time_stamp << 32 | self.ordinal

    @classmethod
    def of(cls, value: int) -> Self:
        """The identifier of a 64-bit number, as sequences are compared."""
        return cls(ordinal=value & 0xFFFFFFFF, time_stamp=value >> 32)


@layout("MS-MQMQ 2.2.18.1.3", size=20)
class MessageIdentifier(Layout):
    r"""[MS-MQMQ] 2.2.18.1.3: names a message for ever; people write it `{guid}\ordinal`."""

    queue_manager_guid: UUID = guid_field()
    ordinal: int = number(4)

    def __str__(self) -> str:
        return f"{{{self.queue_manager_guid}}}\\{self.ordinal}"


@bit_field("MS-MQMQ 2.2.20.5", width=32)
class TransactionFlags(BitField):
    """[MS-MQMQ] 2.2.20.5: the place of a message within its transaction."""

    connector_guid: bool = bit(0, "CG", default=False)
    final_ack_required: bool = bit(1, "FA", default=False)
    first_message: bool = bit(2, "FM", default=False)
    last_message: bool = bit(3, "LM", default=False)
    identifier: int = bits(4, 20, "ID", default=0)
    reserved: int = other_bits(default=0)


@layout("MS-MQMQ 2.2.20.5", size=20)
class TransactionFields(Layout):
    """[MS-MQMQ] 2.2.20.5: the part of a TransactionHeader that is always there."""

    flags: TransactionFlags = flag_word(TransactionFlags)
    tx_sequence_id: TxSequenceID = nested(TxSequenceID)
    tx_sequence_number: int = number(4, low=1)
    previous_tx_sequence_number: int = number(4, high=0xFFFFFFFE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionHeader:
    """[MS-MQMQ] 2.2.20.5: makes a message transactional and gives its place in the sequence."""

    fields: TransactionFields
    connector_qm_guid: UUID | None = None

    def pack(self) -> bytes:
        """The bytes."""
        if self.fields.flags.connector_guid != (self.connector_qm_guid is not None):
            raise WireError(
                "flags.connector_guid and ConnectorQMGuid must be present together",
                field="TransactionHeader",
            )
        tail = b"" if self.connector_qm_guid is None else self.connector_qm_guid.bytes_le
        return self.fields.pack() + tail

    @classmethod
    def unpack(cls, reader: Reader) -> Self:
        """The header at the reader's position."""
        fields = TransactionFields.unpack(reader)
        connector = reader.guid("connector_qm_guid") if fields.flags.connector_guid else None
        return cls(fields=fields, connector_qm_guid=connector)


DEBUG_QUEUE_NONE = 0
DEBUG_QUEUE_PUBLIC = 1


@bit_field("MS-MQMQ 2.2.20.8", width=16)
class DebugFlags(BitField):
    """[MS-MQMQ] 2.2.20.8: whether a report queue is named."""

    queue_type: int = bits(0, 2, "QT", one_of=(DEBUG_QUEUE_NONE, DEBUG_QUEUE_PUBLIC), default=0)
    reserved: int = other_bits(default=0)


@layout("MS-MQMQ 2.2.20.8", size=4)
class DebugFields(Layout):
    """[MS-MQMQ] 2.2.20.8: the part of a DebugHeader that is always there."""

    flags: DebugFlags = flag_word(DebugFlags)
    reserved: int = spare(2, default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DebugHeader:
    """[MS-MQMQ] 2.2.20.8: the queue that receives trace messages about this message."""

    fields: DebugFields
    queue_identifier: UUID | None = None

    def pack(self) -> bytes:
        """The bytes."""
        if (self.fields.flags.queue_type == DEBUG_QUEUE_PUBLIC) != (
            self.queue_identifier is not None
        ):
            raise WireError(
                "flags.queue_type 1 and QueueIdentifier must be present together",
                field="DebugHeader",
            )
        tail = b"" if self.queue_identifier is None else self.queue_identifier.bytes_le
        return self.fields.pack() + tail

    @classmethod
    def unpack(cls, reader: Reader) -> Self:
        """The header at the reader's position."""
        fields = DebugFields.unpack(reader)
        public = fields.flags.queue_type == DEBUG_QUEUE_PUBLIC
        return cls(
            fields=fields, queue_identifier=reader.guid("queue_identifier") if public else None
        )
