"""[MS-MQRR] 2.2.5: a message with what a queue manager knows about it, as remote readers get it.

The Message Packet Structure is a UserMessage followed by an ExtensionHeader and the headers that it
announces.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from merq.errors import WireError
from merq.wire.headers import PACKET_SIZE_MAX, BaseHeader, SessionHeader
from merq.wire.layout import (
    BitField,
    Layout,
    bit,
    bit_field,
    bits,
    constant,
    flag_word,
    layout,
    number,
    other_bits,
    raw_bytes,
    spare_bytes,
)
from merq.wire.message import UserMessage, read_base
from merq.wire.reader import Reader, TraceNode, pack_wide, padding_for

SUBQUEUE_NAME_SIZE = 64
ADDRESS_NONE = 0x0000
ADDRESS_IPV4 = 0x0001
ADDRESS_IPV6 = 0x0006


@bit_field("MS-MQRR 2.2.5.2", width=8)
class ExtensionFlags(BitField):
    """[MS-MQRR] 2.2.5.2: which headers follow."""

    dead_letter_header: bool = bit(0, "DL", default=False)
    subqueue_header: bool = bit(1, "SQ", default=True)
    dead_letter_invalid: bool = bit(3, "DI", default=False)
    extended_address_header: bool = bit(4, "EA", default=True)
    reserved: int = other_bits(default=0)


@layout("MS-MQRR 2.2.5.2", size=12)
class ExtensionHeader(Layout):
    """[MS-MQRR] 2.2.5.2: announces the headers after it and their size."""

    header_size: int = constant(4, default=12)
    remaining_headers_size: int = number(4, high=PACKET_SIZE_MAX)
    flags: ExtensionFlags = flag_word(ExtensionFlags)
    reserved: bytes = spare_bytes(3, default=bytes(3))


@bit_field("MS-MQRR 2.2.5.3", width=32)
class SubqueueWord(BitField):
    """[MS-MQRR] 2.2.5.3: TM, AcknowledgementClass and Reserved share 32 bits, in this order."""

    moving: bool = bit(0, "TM", default=False)
    acknowledgement_class: int = bits(1, 16, "AcknowledgementClass", default=0)
    reserved: int = other_bits(default=0)


@layout("MS-MQRR 2.2.5.3", size=148)
class SubqueueHeader(Layout):
    """[MS-MQRR] 2.2.5.3: where a message was moved and how often reading it failed."""

    header_size: int = constant(4, default=148)
    state: SubqueueWord = flag_word(SubqueueWord, default=SubqueueWord())
    abort_counter: int = number(4, default=0)
    move_counter: int = number(4, default=0)
    last_move_time: int = number(4, default=0)
    subqueue_name: bytes = raw_bytes(SUBQUEUE_NAME_SIZE, default=bytes(SUBQUEUE_NAME_SIZE))
    target_subqueue_name: bytes = raw_bytes(SUBQUEUE_NAME_SIZE, default=bytes(SUBQUEUE_NAME_SIZE))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterHeader:
    """[MS-MQRR] 2.2.5.4: the dead-letter queue that the application chose."""

    dead_letter_path_name: str
    padding: bytes = field(default=b"", compare=False, repr=False)

    def pack(self) -> bytes:
        """The bytes."""
        name = pack_wide(self.dead_letter_path_name, "DeadLetterHeader")
        tail = padding_for(len(name), self.padding)
        size = 4 + len(name) + len(tail)
        return size.to_bytes(4, "little") + name + tail

    @classmethod
    def unpack(cls, reader: Reader) -> Self:
        """The header at the reader's position; HeaderSize counts the filling."""
        start = reader.position
        size = reader.u32("header_size")
        if size % 4 or not 8 <= size <= reader.end - start:
            reason = f"{size} is not a multiple of 4 between 8 and {reader.end - start}"
            raise reader.fail(reason, "header_size", offset=start)
        # The name may end 2 bytes before the header does; then its null is the pair before those.
        end = start + size
        filled = reader.data[end - 4 : end - 2] == b"\0\0"
        length = size - 4 - (2 if filled else 0)
        name = reader.wide(length, "dead_letter_path_name")
        return cls(dead_letter_path_name=name, padding=reader.pad(start))


@layout("MS-MQRR 2.2.5.5", size=28)
class ExtendedAddressHeader(Layout):
    """[MS-MQRR] 2.2.5.5: the host from which a message came."""

    header_size: int = constant(4, default=28)
    address_length: int = number(2, high=16)
    address_type: int = number(2, one_of=(ADDRESS_NONE, ADDRESS_IPV4, ADDRESS_IPV6))
    address_scope: int = number(4, default=0)
    address: bytes = raw_bytes(16)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePacket:
    """[MS-MQRR] 2.2.5: a message and the queue manager's facts about it."""

    message: UserMessage
    extension_header: ExtensionHeader
    subqueue_header: SubqueueHeader | None = None
    dead_letter_header: DeadLetterHeader | None = None
    extended_address_header: ExtendedAddressHeader | None = None

    def pack(self) -> bytes:
        """The bytes."""
        flags = self.extension_header.flags
        tail = b""
        for present, part, name in (
            (flags.subqueue_header, self.subqueue_header, "SubqueueHeader"),
            (flags.dead_letter_header, self.dead_letter_header, "DeadLetterHeader"),
            (flags.extended_address_header, self.extended_address_header, "ExtendedAddressHeader"),
        ):
            if present != (part is not None):
                state = "missing" if present else "not announced by its flag"
                raise WireError(f"the header is {state}", field=name)
            tail += b"" if part is None else part.pack()
        if self.extension_header.remaining_headers_size != len(tail):
            raise WireError(
                f"{self.extension_header.remaining_headers_size} bytes are said, {len(tail)} are "
                "there",
                field="ExtensionHeader.remaining_headers_size",
            )
        return self.message.pack() + self.extension_header.pack() + tail

    @classmethod
    def parse(cls, data: bytes, *, trace: TraceNode | None = None) -> Self:
        """The structure of exactly these bytes."""
        reader = Reader(data, trace=trace)
        base = read_base(reader)
        size = base.packet_size + (SessionHeader.SIZE if base.flags.session_header else 0)
        if not BaseHeader.SIZE <= size <= reader.end:
            reason = f"the message takes {size} bytes, {reader.end} are there"
            raise reader.fail(reason, "base_header.packet_size", offset=8)
        with reader.bounded(size):
            message = UserMessage.unpack(reader, base)
        with reader.part("extension_header"):
            extension = ExtensionHeader.unpack(reader)
        if extension.remaining_headers_size != reader.remaining:
            reason = f"{extension.remaining_headers_size} bytes are said, {reader.remaining} follow"
            raise reader.fail(reason, "extension_header.remaining_headers_size", offset=size + 4)
        subqueue = dead_letter = address = None
        if extension.flags.subqueue_header:
            with reader.part("subqueue_header"):
                subqueue = SubqueueHeader.unpack(reader)
        if extension.flags.dead_letter_header:
            with reader.part("dead_letter_header"):
                dead_letter = DeadLetterHeader.unpack(reader)
        if extension.flags.extended_address_header:
            with reader.part("extended_address_header"):
                address = ExtendedAddressHeader.unpack(reader)
        reader.finish()
        return cls(
            message=message,
            extension_header=extension,
            subqueue_header=subqueue,
            dead_letter_header=dead_letter,
            extended_address_header=address,
        )
