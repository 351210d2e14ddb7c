"""[MS-MQMQ] 2.2.20.7, [MS-MQRR] 2.2.5.1.2: the parts of a packet that have to do with SOAP.

SoapHeader belongs to any user message; SRMPEnvelopeHeader and CompoundMessageHeader are in packets
that came by HTTP (UserHeader.Flags.AH) and hold the message as it came.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from merq.errors import WireError
from merq.wire.headers import PACKET_SIZE_MAX
from merq.wire.layout import Layout, layout, number, spare
from merq.wire.reader import Reader, pack_wide, padding_for

SOAP_HEADER_ID = 0x0320
SOAP_BODY_ID = 0x0384

_WCHARS_MAX = PACKET_SIZE_MAX // 2


@layout("MS-MQMQ 2.2.20.7", size=8)
class SectionFields(Layout):
    """[MS-MQMQ] 2.2.20.7, [MS-MQRR] 2.2.5.1.2.1: what precedes a run of UTF-16 text."""

    section_id: int = number(2)
    reserved: int = spare(2, default=0)
    data_length: int = number(4, high=_WCHARS_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSection:
    """Text with an identifier before it; `data` is None where the length is 0.

    The length counts UTF-16 units and the terminating null. What aligns the next part is kept as
    it came, and made of zeros for text of our own.
    """

    section_id: int
    data: str | None = None
    reserved: int = field(default=0, compare=False, repr=False)
    padding: bytes | None = field(default=None, compare=False, repr=False)

    def pack(self, at: int = 0) -> bytes:
        """The bytes, for a place `at` bytes into the header."""
        text = b"" if self.data is None else pack_wide(self.data, "TextSection.data")
        fields = SectionFields(
            section_id=self.section_id, reserved=self.reserved, data_length=len(text) // 2
        )
        tail = padding_for(at + len(text)) if self.padding is None else self.padding
        return fields.pack() + text + tail

    @classmethod
    def unpack(
        cls, reader: Reader, origin: int, *, expected: int | None = None, next_id: int | None = None
    ) -> Self:
        """The section at the reader's position.

        Args:
            reader: Where to read.
            origin: Where the header begins, from which boundaries are counted.
            expected: The identifier that must stand there, if only one may.
            next_id: The identifier that follows. The documents do not say whether it starts on a
                4-byte boundary, so its place decides; where both places fit, the boundary wins.
        """
        start = reader.position
        fields = SectionFields.unpack(reader)
        if expected is not None and fields.section_id != expected:
            reason = f"{fields.section_id:#x} where {expected:#x} belongs"
            raise reader.fail(reason, "section_id", offset=start)
        size = fields.data_length * 2
        text = reader.wide(size, "data") if size else None
        if next_id is not None and _follows_at_once(reader, origin, next_id):
            padding = b""
        else:
            padding = reader.pad_if_there(origin)
        return cls(
            section_id=fields.section_id, data=text, reserved=fields.reserved, padding=padding
        )


def _follows_at_once(reader: Reader, origin: int, next_id: int) -> bool:
    mark = next_id.to_bytes(2, "little")
    at = reader.position
    aligned = at + -(at - origin) % 4
    return (
        reader.data[aligned : min(aligned + 2, reader.end)] != mark
        and reader.data[at : min(at + 2, reader.end)] == mark
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SoapHeader:
    """[MS-MQMQ] 2.2.20.7: SOAP header and body that an application gave its message."""

    header: TextSection
    body: TextSection

    @classmethod
    def of(cls, header: str, body: str) -> Self:
        """The header for these texts."""
        return cls(
            header=TextSection(section_id=SOAP_HEADER_ID, data=header),
            body=TextSection(section_id=SOAP_BODY_ID, data=body),
        )

    def pack(self) -> bytes:
        """The bytes."""
        found = (self.header.section_id, self.body.section_id)
        if found != (SOAP_HEADER_ID, SOAP_BODY_ID):
            raise WireError(f"sections {found} are not header and body", field="SoapHeader")
        header = self.header.pack()
        return header + self.body.pack(len(header))

    @classmethod
    def unpack(cls, reader: Reader) -> Self:
        """The header at the reader's position."""
        origin = reader.position
        with reader.part("header"):
            header = TextSection.unpack(
                reader, origin, expected=SOAP_HEADER_ID, next_id=SOAP_BODY_ID
            )
        with reader.part("body"):
            body = TextSection.unpack(reader, origin, expected=SOAP_BODY_ID)
        return cls(header=header, body=body)


@dataclass(frozen=True, slots=True, kw_only=True)
class SRMPEnvelopeHeader:
    """[MS-MQRR] 2.2.5.1.2.1: the SOAP envelope in which a message came by HTTP."""

    envelope: TextSection

    def pack(self) -> bytes:
        """The bytes."""
        return self.envelope.pack()

    @classmethod
    def unpack(cls, reader: Reader) -> Self:
        """The header at the reader's position."""
        return cls(envelope=TextSection.unpack(reader, reader.position))


@layout("MS-MQRR 2.2.5.1.2.2", size=16)
class CompoundFields(Layout):
    """[MS-MQRR] 2.2.5.1.2.2: the part of a CompoundMessageHeader that is always there."""

    header_id: int = number(2)
    reserved: int = spare(2, default=0)
    http_body_size: int = number(4, high=PACKET_SIZE_MAX)
    msg_body_size: int = number(4, high=PACKET_SIZE_MAX)
    msg_body_offset: int = number(4, high=PACKET_SIZE_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompoundMessageHeader:
    """[MS-MQRR] 2.2.5.1.2.2: the HTTP request that carried a message, and where its body lies."""

    fields: CompoundFields
    data: bytes
    padding: bytes | None = field(default=None, compare=False, repr=False)

    @property
    def message_body(self) -> bytes:
        """The message's body within the request."""
        start = self.fields.msg_body_offset
        return self.data[start : start + self.fields.msg_body_size]

    def pack(self) -> bytes:
        """The bytes."""
        if problem := _misplaced(self.fields, len(self.data)):
            raise WireError(problem, field="CompoundMessageHeader")
        tail = padding_for(len(self.data)) if self.padding is None else self.padding
        return self.fields.pack() + self.data + tail

    @classmethod
    def unpack(cls, reader: Reader) -> Self:
        """The header at the reader's position."""
        start = reader.position
        fields = CompoundFields.unpack(reader)
        if problem := _misplaced(fields, fields.http_body_size):
            raise reader.fail(problem, offset=start)
        data = reader.raw(fields.http_body_size, "data") if fields.http_body_size else b""
        return cls(fields=fields, data=data, padding=reader.pad_if_there(start))


def _misplaced(fields: CompoundFields, size: int) -> str:
    if fields.http_body_size != size:
        return f"HTTPBodySize is {fields.http_body_size}, {size} bytes are there"
    end = fields.msg_body_offset + fields.msg_body_size
    return f"the body ends at {end}, beyond the {size} bytes of data" if end > size else ""
