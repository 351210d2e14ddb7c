"""[MS-MQMQ] 2.2.19.3: the MessagePropertiesHeader, with label, extension and body."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from merq.errors import WireError
from merq.wire.headers import PACKET_SIZE_MAX
from merq.wire.layout import (
    BitField,
    Layout,
    bit,
    bit_field,
    flag_word,
    layout,
    number,
    other_bits,
    raw_bytes,
)
from merq.wire.reader import Reader, pack_wide, padded

LABEL_LENGTH_MAX = 0xFA
"""[MS-MQMQ] 2.2.19.3: characters in a label, the terminating null counted."""

CORRELATION_ID_SIZE = 20
NO_CORRELATION = bytes(CORRELATION_ID_SIZE)
HASH_SHA_512 = 0x800E
"""[MS-MQMQ] 2.2.19.3: the algorithm that new signatures should use."""
ENCRYPTION_AES_256 = 0x6610


@bit_field("MS-MQMQ 2.2.19.3", width=8)
class AcknowledgmentFlags(BitField):
    """[MS-MQMQ] 2.2.19.3: the administration acknowledgments that the sender wants."""

    positive_arrival: bool = bit(0, "PA", default=False)
    positive_receive: bool = bit(1, "PR", default=False)
    negative_arrival: bool = bit(2, "NA", default=False)
    negative_receive: bool = bit(3, "NR", default=False)
    reserved: int = other_bits(default=0)


@layout("MS-MQMQ 2.2.19.3", size=56)
class PropertiesFields(Layout):
    """[MS-MQMQ] 2.2.19.3: the part of a MessagePropertiesHeader that is always there."""

    flags: AcknowledgmentFlags = flag_word(AcknowledgmentFlags, default=AcknowledgmentFlags())
    label_length: int = number(1, high=LABEL_LENGTH_MAX, default=0)
    message_class: int = number(2, default=0)
    correlation_id: bytes = raw_bytes(CORRELATION_ID_SIZE, default=NO_CORRELATION)
    body_type: int = number(4, default=0)
    application_tag: int = number(4, default=0)
    message_size: int = number(4, high=PACKET_SIZE_MAX, default=0)
    allocation_body_size: int = number(4, high=PACKET_SIZE_MAX, default=0)
    privacy_level: int = number(4, default=0)
    hash_algorithm: int = number(4, default=HASH_SHA_512)
    encryption_algorithm: int = number(4, default=ENCRYPTION_AES_256)
    extension_size: int = number(4, high=PACKET_SIZE_MAX, default=0)

    @property
    def body_length(self) -> int:
        """How many bytes the body takes on the wire.

        [MS-MQQB] 3.1.7.1.5: an encrypted body is as long as AllocationBodySize says, while
        MessageSize stays the length of the clear text.
        """
        return max(self.message_size, self.allocation_body_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePropertiesHeader:
    """[MS-MQMQ] 2.2.19.3: what an application says about its message, and the message itself."""

    fields: PropertiesFields
    label: str | None = None
    extension_data: bytes = b""
    message_body: bytes = b""
    padding: bytes = field(default=b"", compare=False, repr=False)

    @property
    def body(self) -> bytes:
        """The message without the room that only an encrypted form needs."""
        return self.message_body[: self.fields.message_size]

    def pack(self) -> bytes:
        """The bytes."""
        label = b"" if self.label is None else pack_wide(self.label, "label")
        for found, expected, what in (
            (self.fields.label_length, len(label) // 2, "label_length"),
            (self.fields.extension_size, len(self.extension_data), "extension_size"),
            (self.fields.body_length, len(self.message_body), "message_size"),
        ):
            if found != expected:
                raise WireError(
                    f"{found} is said, {expected} is there", field=f"MessagePropertiesHeader.{what}"
                )
        parts = (self.fields.pack(), label, self.extension_data, self.message_body)
        return padded(b"".join(parts), self.padding)

    @classmethod
    def unpack(cls, reader: Reader) -> Self:
        """The header at the reader's position."""
        start = reader.position
        fields = PropertiesFields.unpack(reader)
        size = fields.label_length * 2
        label = reader.wide(size, "label") if size else None
        extension = b""
        if fields.extension_size:
            extension = reader.raw(fields.extension_size, "extension_data")
        body = reader.raw(fields.body_length, "message_body") if fields.body_length else b""
        return cls(
            fields=fields,
            label=label,
            extension_data=extension,
            message_body=body,
            padding=reader.pad(start),
        )
