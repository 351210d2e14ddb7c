"""[MS-MQMQ] 2.2.18.1.4, 2.2.20.1, 2.2.20.2, 2.2.20.3: one message to many queues.

The MultiQueueFormatHeader lists all destinations of a message, its administration and response
queues, and a signature over them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self
from uuid import UUID

from merq.errors import WireError
from merq.wire.headers import PACKET_SIZE_MAX
from merq.wire.layout import Layout, constant, guid_field, layout, number, spare
from merq.wire.queues import PrivateQueueFormatName, PublicQueueFormatName
from merq.wire.reader import HEADER_ALIGNMENT, Reader, null_character, pack_wide, padding_for

ELEMENT_PUBLIC = 1
ELEMENT_PRIVATE = 2
ELEMENT_DIRECT = 3
ELEMENT_DISTRIBUTION_LIST = 6

MQF_ELEMENTS_MAX = 1024
"""Names in one list: far beyond any real one, and few enough to be looked at in one go."""

DESTINATION_ID = 0x0064
ADMIN_ID = 0x00C8
RESPONSE_ID = 0x012C
SIGNATURE_ID = 0x015E


@layout("MS-MQMQ 2.2.18.1.4.2", size=16)
class MQFDistributionQueueFormatName(Layout):
    """[MS-MQMQ] 2.2.18.1.4.2: a distribution list."""

    distribution_list_identifier: UUID = guid_field()


@dataclass(frozen=True, slots=True, kw_only=True)
class MQFDirectQueueFormatName:
    """[MS-MQMQ] 2.2.18.1.4.1: a direct format name, ended by its null character alone."""

    direct_format_name: str

    def pack(self) -> bytes:
        """The bytes."""
        return pack_wide(self.direct_format_name, "direct_format_name")

    @classmethod
    def unpack(cls, reader: Reader) -> Self:
        """The name at the reader's position."""
        start = reader.position
        at = null_character(reader.data, start, reader.end)
        if at < 0:
            raise reader.fail("the name has no terminating null character")
        return cls(direct_format_name=reader.wide(at + 2 - start, "direct_format_name"))


MQFFormatName = (
    PublicQueueFormatName
    | PrivateQueueFormatName
    | MQFDirectQueueFormatName
    | MQFDistributionQueueFormatName
)

_FORMS: dict[int, type[MQFFormatName]] = {
    ELEMENT_PUBLIC: PublicQueueFormatName,
    ELEMENT_PRIVATE: PrivateQueueFormatName,
    ELEMENT_DIRECT: MQFDirectQueueFormatName,
    ELEMENT_DISTRIBUTION_LIST: MQFDistributionQueueFormatName,
}
_TYPES = {form: number for number, form in _FORMS.items()}
_FIXED_SIZES = {
    ELEMENT_PUBLIC: PublicQueueFormatName.SIZE,
    ELEMENT_PRIVATE: PrivateQueueFormatName.SIZE,
    ELEMENT_DISTRIBUTION_LIST: MQFDistributionQueueFormatName.SIZE,
}
"""Bytes of a name, where all bytes are allowed in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MQFFormatNameElement:
    """[MS-MQMQ] 2.2.18.1.4: one name of a list. A GUID in it starts on a 4-byte boundary."""

    format_name: MQFFormatName
    padding: bytes = field(default=b"", compare=False, repr=False)

    @property
    def format_type(self) -> int:
        """Which of the four forms the name has."""
        return _TYPES[type(self.format_name)]

    def pack(self, at: int) -> bytes:
        """The bytes, for a place `at` bytes into the header."""
        head = self.format_type.to_bytes(2, "little")
        if self.format_type != ELEMENT_DIRECT:
            head += padding_for(at + 2, self.padding)
        return head + self.format_name.pack()

    @classmethod
    def unpack(cls, reader: Reader, origin: int) -> Self:
        """The element at the reader's position in a header that starts at `origin`."""
        start = reader.position
        kind = reader.u16("format_type")
        form = _FORMS.get(kind)
        if form is None:
            known = ", ".join(map(str, _FORMS))
            raise reader.fail(f"{kind} is not one of {known}", "format_type", offset=start)
        padding = b"" if kind == ELEMENT_DIRECT else reader.pad(origin)
        return cls(format_name=form.unpack(reader), padding=padding)


@layout("MS-MQMQ 2.2.20.2", size=12)
class MQFAddressFields(Layout):
    """[MS-MQMQ] 2.2.20.2: the part of an MQFAddressHeader that is always there."""

    header_size: int = number(4, low=12, high=PACKET_SIZE_MAX)
    header_id: int = number(2, one_of=(DESTINATION_ID, ADMIN_ID, RESPONSE_ID))
    reserved: int = spare(2, default=0)
    element_count: int = number(4, high=MQF_ELEMENTS_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class MQFAddressHeader:
    """[MS-MQMQ] 2.2.20.2: a list of names.

    Whether HeaderSize counts the bytes that round the list up is left open; both are read, and
    what was read is written again. Our own lists count them.
    """

    header_id: int
    format_name_list: tuple[MQFFormatNameElement, ...] = ()
    reserved: int = field(default=0, compare=False, repr=False)
    counted_padding: bytes | None = field(default=None, compare=False, repr=False)
    padding: bytes = field(default=b"", compare=False, repr=False)

    def pack(self) -> bytes:
        """The bytes, up to the next boundary."""
        data = bytearray(MQFAddressFields.SIZE) + self.pack_names()
        counted = self.counted_padding
        data += padding_for(len(data)) if counted is None else counted
        fields = MQFAddressFields(
            header_size=len(data),
            header_id=self.header_id,
            reserved=self.reserved,
            element_count=len(self.format_name_list),
        )
        data[: MQFAddressFields.SIZE] = fields.pack()
        return bytes(data) + padding_for(len(data), self.padding)

    def pack_names(self) -> bytes:
        """The bytes of the names, without what rounds the list up."""
        data = bytearray(MQFAddressFields.SIZE)
        for element in self.format_name_list:
            data += element.pack(len(data))
        return bytes(data[MQFAddressFields.SIZE :])

    @classmethod
    def unpack(cls, reader: Reader, header_id: int) -> Self:
        """The list at the reader's position, which must be the one with this identifier."""
        start = reader.position
        fields = MQFAddressFields.unpack(reader)
        if fields.header_id != header_id:
            reason = f"{fields.header_id:#x} where {header_id:#x} belongs"
            raise reader.fail(reason, "header_id", offset=start + 4)
        if fields.header_size > reader.end - start:
            reason = f"{fields.header_size} bytes are said, {reader.end - start} are left"
            raise reader.fail(reason, "header_size", offset=start)
        elements: list[MQFFormatNameElement] = []
        if not fields.element_count:
            reader.note("format_name_list", reader.position, 0, [])
        with reader.bounded(start + fields.header_size):
            first = _skim(reader, start, fields.element_count) if reader.skims else 0
            for index in range(first, fields.element_count):
                with reader.part(f"format_name_list[{index}]"):
                    elements.append(MQFFormatNameElement.unpack(reader, start))
            if reader.remaining >= 4:
                raise reader.fail(f"{reader.remaining} bytes are left over after the last name")
            counted = reader.raw(reader.remaining, "padding") if reader.remaining else b""
        return cls(
            header_id=header_id,
            format_name_list=tuple(elements),
            reserved=fields.reserved,
            counted_padding=counted,
            padding=reader.pad(start),
        )


def _skim(reader: Reader, origin: int, count: int) -> int:
    """Passes over names that are in order, without making values; how many there were.

    What is wrong with the one behind them is said by reading it.
    """
    data, end, at = reader.data, reader.end, reader.position
    for index in range(count):
        head = data[at : at + 2]
        kind = head[0] | head[1] << 8 if at + 2 <= end else 0
        if kind == ELEMENT_DIRECT:
            after = null_character(data, at + 2, end) + 2
            if after == 1:
                return index
        elif size := _FIXED_SIZES.get(kind):
            after = at + 2
            after += -(after - origin) % HEADER_ALIGNMENT + size
            if after > end:
                return index
        else:
            return index
        reader.position = at = after
    return count


@layout("MS-MQMQ 2.2.20.3", size=8)
class MQFSignatureFields(Layout):
    """[MS-MQMQ] 2.2.20.3: the part of an MQFSignatureHeader that is always there."""

    id: int = constant(2, default=SIGNATURE_ID)
    reserved: int = spare(2, default=0)
    size: int = number(4, high=PACKET_SIZE_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiQueueFormatHeader:
    """[MS-MQMQ] 2.2.20.1: every queue that gets a copy of a message."""

    destination: MQFAddressHeader
    administration: MQFAddressHeader
    response: MQFAddressHeader
    signature: bytes = b""
    signature_reserved: int = field(default=0, compare=False, repr=False)
    padding: bytes | None = field(default=None, compare=False, repr=False)

    def pack(self) -> bytes:
        """The bytes."""
        expected = (DESTINATION_ID, ADMIN_ID, RESPONSE_ID)
        parts = (self.destination, self.administration, self.response)
        for part, header_id in zip(parts, expected, strict=True):
            if part.header_id != header_id:
                raise WireError(
                    f"{part.header_id:#x} where {header_id:#x} belongs",
                    field="MultiQueueFormatHeader.header_id",
                )
        head = MQFSignatureFields(size=len(self.signature), reserved=self.signature_reserved)
        tail = padding_for(len(self.signature)) if self.padding is None else self.padding
        return b"".join([*(part.pack() for part in parts), head.pack(), self.signature, tail])

    @classmethod
    def unpack(cls, reader: Reader) -> Self:
        """The header at the reader's position."""
        start = reader.position
        lists: list[MQFAddressHeader] = []
        for name, header_id in (
            ("destination", DESTINATION_ID),
            ("administration", ADMIN_ID),
            ("response", RESPONSE_ID),
        ):
            with reader.part(name):
                lists.append(MQFAddressHeader.unpack(reader, header_id))
        with reader.part("signature"):
            head = MQFSignatureFields.unpack(reader)
            signature = reader.raw(head.size, "signature") if head.size else b""
            padding = reader.pad_if_there(start)
        return cls(
            destination=lists[0],
            administration=lists[1],
            response=lists[2],
            signature=signature,
            signature_reserved=head.reserved,
            padding=padding,
        )
