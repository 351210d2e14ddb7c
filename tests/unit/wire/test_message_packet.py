"""The Message Packet Structure of remote reads: a message and what its queue manager knows."""

from dataclasses import replace
from typing import Any

import pytest

from merq.errors import WireError
from merq.wire.extension import (
    DeadLetterHeader,
    ExtendedAddressHeader,
    ExtensionFlags,
    ExtensionHeader,
    MessagePacket,
    SubqueueHeader,
    SubqueueWord,
)
from merq.wire.message import UserMessage
from merq.wire.reader import Reader

GUID_HEX = "00112233 4455 6677 8899 aabbccddeeff"
# To OS:h\q, from 10.0.0.1: the address lies where QueueManagerAddress would be.
MESSAGE = (
    "10 00 0300 4c494f52 88000000 4433225a"
    + GUID_HEX
    + "0400 0100 00000000 0a000001 00000000"
    + "ffffffff 77665544 ee080000 001c2000 0e00 4f00 5300 3a00 6800 5c00 7100 0000"
    + "00 00 0000"
    + "00" * 20
    + "00000000 00000000 00000000 00000000 00000000 0e800000 10660000 00000000"
)
NAME = b"s\0u\0b\0" + bytes(58)
SUBQUEUE_HEX = "94000000 fe7f0100 03000000 02000000 01000000" + NAME.hex() + "00" * 64
SUBQUEUE = SubqueueHeader(
    state=SubqueueWord(moving=False, acknowledgement_class=0xBFFF),
    abort_counter=3,
    move_counter=2,
    last_move_time=1,
    subqueue_name=NAME,
)
ADDRESS_HEX = "1c000000 0400 0100 00000000 0a000001" + "00" * 12
ADDRESS = ExtendedAddressHeader(
    address_length=4, address_type=1, address_scope=0, address=bytes.fromhex("0a000001") + bytes(12)
)


def packet(flags: str, *parts: str, said: int | None = None) -> bytes:
    tail = bytes.fromhex("".join(parts))
    size = (len(tail) if said is None else said).to_bytes(4, "little").hex()
    return bytes.fromhex(f"{MESSAGE} 0c000000 {size} {flags} 000000") + tail


@pytest.mark.spec("MS-MQRR 2.2.5", "MS-MQRR 2.2.5.2", "MS-MQRR 2.2.5.3", "MS-MQRR 2.2.5.5")
@pytest.mark.spec("E34")
def test_a_message_with_the_two_headers_that_always_follow() -> None:
    data = packet("12", SUBQUEUE_HEX, ADDRESS_HEX)
    value = MessagePacket(
        message=UserMessage.parse(bytes.fromhex(MESSAGE)),
        extension_header=ExtensionHeader(
            header_size=12,
            remaining_headers_size=148 + 28,
            flags=ExtensionFlags(subqueue_header=True, extended_address_header=True),
        ),
        subqueue_header=SUBQUEUE,
        extended_address_header=ADDRESS,
    )
    assert MessagePacket.parse(data) == value
    assert value.pack() == data


@pytest.mark.spec("MS-MQRR 2.2.5", "MS-MQRR 2.2.5.2", "MS-MQRR 2.2.5.4")
def test_the_dead_letter_header_stands_between_the_other_two() -> None:
    dead_letter = "10000000 6100 5c00 6200 6300 6400 0000"
    data = packet("1b", SUBQUEUE_HEX, dead_letter, ADDRESS_HEX)
    found = MessagePacket.parse(data)
    assert found.extension_header.flags.dead_letter_header is True
    assert found.extension_header.flags.dead_letter_invalid is True
    assert found.dead_letter_header == DeadLetterHeader(dead_letter_path_name="a\\bcd")
    assert found.subqueue_header == SUBQUEUE
    assert found.extended_address_header == ADDRESS
    assert found.pack() == data


@pytest.mark.spec("MS-MQRR 2.2.5.1", "MS-MQRR 2.2.5.1.1")
def test_the_senders_address_lies_in_the_user_header() -> None:
    message = MessagePacket.parse(packet("12", SUBQUEUE_HEX, ADDRESS_HEX)).message
    address = message.user_header.fields.queue_manager_address.bytes_le
    assert address == bytes.fromhex("0400 0100 00000000 0a000001 00000000")
    assert message.base_header.time_to_reach_queue == 0x5A223344
    assert message.srmp_envelope_header is None
    assert message.compound_message_header is None


@pytest.mark.spec("MS-MQRR 2.2.5.1.2", "MS-MQRR 2.2.5.1.2.1", "MS-MQRR 2.2.5.1.2.2")
def test_a_message_that_came_by_http_brings_envelope_and_request() -> None:
    message = bytearray.fromhex(MESSAGE)
    extra = bytes.fromhex(
        "f401 0000 02000000 3c00 0000 5802 0000 04000000 02000000 01000000 a0a1a2a3"
    )
    message[8:12] = (0x88 + len(extra)).to_bytes(4, "little")
    message[63] |= 0x02
    data = bytes(message) + extra + packet("12", SUBQUEUE_HEX, ADDRESS_HEX)[0x88:]
    found = MessagePacket.parse(data)
    assert found.message.srmp_envelope_header is not None
    assert found.message.srmp_envelope_header.envelope.data == "<"
    assert found.message.compound_message_header is not None
    assert found.message.compound_message_header.message_body == bytes.fromhex("a1a2")
    assert found.pack() == data


@pytest.mark.spec("MS-MQRR 2.2.5.1")
def test_a_session_header_on_the_message_comes_before_the_extension() -> None:
    message = bytearray.fromhex(MESSAGE)
    message[2] |= 0x10
    session = bytes.fromhex("0100 0000 00000000 0000 0000 4000 0000")
    data = bytes(message) + session + packet("12", SUBQUEUE_HEX, ADDRESS_HEX)[0x88:]
    found = MessagePacket.parse(data)
    assert found.message.session_header is not None
    assert found.message.session_header.window_size == 64
    assert found.pack() == data


@pytest.mark.spec("MS-MQRR 2.2.5.2", "MS-MQRR 2.2.5.3")
def test_unused_bits_and_reserved_bytes_are_ignored_and_kept() -> None:
    data = bytearray(packet("f6", SUBQUEUE_HEX, ADDRESS_HEX))
    data[0x88 + 9 : 0x88 + 12] = b"\xaa\xbb\xcc"
    data[0x88 + 12 + 4 : 0x88 + 12 + 8] = bytes.fromhex("fe7fffff")
    found = MessagePacket.parse(bytes(data))
    assert found == MessagePacket.parse(packet("12", SUBQUEUE_HEX, ADDRESS_HEX))
    assert found.extension_header.flags.reserved == 0xE4
    assert found.pack() == data


@pytest.mark.spec("MS-MQRR 2.2.5.3")
@pytest.mark.parametrize(
    ("word", "moving", "acknowledgement", "reserved"),
    [
        (0x00000001, True, 0, 0),
        (0x00000002, False, 1, 0),
        (0x0001FFFE, False, 0xFFFF, 0),
        (0x00008000, False, 0x4000, 0),
        (0xFFFE0000, False, 0, 0xFFFE0000),
    ],
)
@pytest.mark.spec("E18")
def test_the_subqueue_word_has_its_fields_from_the_lowest_bit(
    word: int, moving: bool, acknowledgement: int, reserved: int
) -> None:
    found = SubqueueWord.unpack(word)
    assert (found.moving, found.acknowledgement_class) == (moving, acknowledgement)
    assert found.reserved == reserved
    assert found.pack() == word


@pytest.mark.spec("MS-MQRR 2.2.5.4")
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("", "08000000 0000 0000"),
        ("a", "08000000 6100 0000"),
        ("ab", "0c000000 6100 6200 0000 0000"),
        ("abc", "0c000000 6100 6200 6300 0000"),
        ("\u0100", "08000000 0001 0000"),
    ],
)
@pytest.mark.spec("E38")
def test_a_dead_letter_path_is_filled_up_and_its_size_counts_the_filling(
    name: str, data: str
) -> None:
    header = DeadLetterHeader(dead_letter_path_name=name)
    assert header.pack() == bytes.fromhex(data)
    reader = Reader(bytes.fromhex(data) + b"next")
    assert DeadLetterHeader.unpack(reader) == header
    assert reader.remaining == 4


@pytest.mark.spec("MS-MQRR 2.2.5.4")
def test_the_filling_of_a_dead_letter_path_is_kept() -> None:
    data = bytes.fromhex("0c000000 6100 6200 0000 beef")
    found = DeadLetterHeader.unpack(Reader(data))
    assert found == DeadLetterHeader(dead_letter_path_name="ab")
    assert found.pack() == data


@pytest.mark.spec("MS-MQRR 2.2.5.5")
@pytest.mark.parametrize(
    ("data", "kind", "length", "scope"),
    [
        ("1c000000 0000 0000 00000000" + "00" * 16, 0, 0, 0),
        ("1c000000 0400 0100 00000000 0a000001" + "00" * 12, 1, 4, 0),
        ("1c000000 1000 0600 05000000 fe80" + "00" * 13 + "01", 6, 16, 5),
    ],
)
def test_an_address_is_none_ipv4_or_ipv6(data: str, kind: int, length: int, scope: int) -> None:
    found = ExtendedAddressHeader.parse(bytes.fromhex(data))
    assert (found.address_type, found.address_length) == (kind, length)
    assert found.address_scope == scope
    assert found.pack() == bytes.fromhex(data)


EXTENSION_AT = 0x88
AFTER_AT = EXTENSION_AT + 12


@pytest.mark.spec(
    "MS-MQRR 2.2.5", "MS-MQRR 2.2.5.2", "MS-MQRR 2.2.5.3", "MS-MQRR 2.2.5.4", "MS-MQRR 2.2.5.5"
)
@pytest.mark.parametrize(
    ("data", "offset", "field"),
    [
        pytest.param(bytes.fromhex(MESSAGE), EXTENSION_AT, "extension_header", id="no extension"),
        pytest.param(
            bytes.fromhex(MESSAGE + "0b000000 00000000 00 000000"),
            EXTENSION_AT,
            "extension_header.header_size",
            id="extension of 11 bytes",
        ),
        pytest.param(
            packet("12", SUBQUEUE_HEX, ADDRESS_HEX, said=175),
            EXTENSION_AT + 4,
            "extension_header.remaining_headers_size",
            id="fewer bytes said than follow",
        ),
        pytest.param(
            packet("12", SUBQUEUE_HEX, ADDRESS_HEX, said=177),
            EXTENSION_AT + 4,
            "extension_header.remaining_headers_size",
            id="more bytes said than follow",
        ),
        pytest.param(
            packet("12", said=0x400001),
            EXTENSION_AT + 4,
            "extension_header.remaining_headers_size",
            id="over 4 MiB said",
        ),
        pytest.param(packet("02", SUBQUEUE_HEX[:-2]), AFTER_AT, "subqueue_header", id="SQ cut"),
        pytest.param(
            packet("12", SUBQUEUE_HEX), AFTER_AT + 148, "extended_address_header", id="no EA"
        ),
        pytest.param(
            packet("02", "95000000" + SUBQUEUE_HEX[8:]),
            AFTER_AT,
            "subqueue_header.header_size",
            id="subqueue of 149 bytes",
        ),
        pytest.param(
            packet("10", "1b000000" + ADDRESS_HEX[8:]),
            AFTER_AT,
            "extended_address_header.header_size",
            id="address of 27 bytes",
        ),
        pytest.param(
            packet("10", "1c000000 1100 0100" + ADDRESS_HEX[18:]),
            AFTER_AT + 4,
            "extended_address_header.address_length",
            id="address of 17 bytes in its field",
        ),
        pytest.param(
            packet("10", "1c000000 0400 0200" + ADDRESS_HEX[18:]),
            AFTER_AT + 6,
            "extended_address_header.address_type",
            id="address of another type",
        ),
        pytest.param(packet("00", ADDRESS_HEX), AFTER_AT, "", id="headers that no flag announces"),
        *(
            pytest.param(
                packet("01", text),
                AFTER_AT + (0 if at == "header_size" else 4),
                f"dead_letter_header.{at}",
                id=f"dead letter: {name}",
            )
            for name, text, at in (
                ("size cut", "080000", "header_size"),
                ("size 4", "04000000", "header_size"),
                ("size 0", "00000000 6100 0000", "header_size"),
                ("size 10", "0a000000 6100 6200 0000 0000", "header_size"),
                ("size beyond", "0c000000 6100 0000", "header_size"),
                ("size 4 GiB", "fcffffff 6100 0000", "header_size"),
                ("no terminator", "08000000 6100 6200", "dead_letter_path_name"),
                ("null inside", "0c000000 6100 0000 6200 0000", "dead_letter_path_name"),
            )
        ),
    ],
)
def test_headers_that_do_not_follow_the_document_are_refused(
    data: bytes, offset: int, field: str
) -> None:
    with pytest.raises(WireError) as caught:
        MessagePacket.parse(data)
    assert (caught.value.offset, caught.value.field) == (offset, field)


@pytest.mark.spec("MS-MQRR 2.2.5")
def test_a_message_longer_than_the_structure_is_refused() -> None:
    with pytest.raises(WireError, match="the message takes 136 bytes, 135 are there") as caught:
        MessagePacket.parse(bytes.fromhex(MESSAGE)[:-1])
    assert (caught.value.offset, caught.value.field) == (8, "base_header.packet_size")


@pytest.mark.spec("MS-MQRR 2.2.5")
@pytest.mark.parametrize(
    ("part", "field"),
    [
        ("subqueue_header", "SubqueueHeader"),
        ("dead_letter_header", "DeadLetterHeader"),
        ("extended_address_header", "ExtendedAddressHeader"),
    ],
)
def test_a_header_after_the_extension_and_its_flag_go_together(part: str, field: str) -> None:
    full = MessagePacket.parse(packet("13", SUBQUEUE_HEX, "08000000 6100 0000", ADDRESS_HEX))
    bare = MessagePacket.parse(packet("00"))
    without: dict[str, Any] = {part: None}
    with pytest.raises(WireError, match="the header is missing") as caught:
        replace(full, **without).pack()
    assert caught.value.field == field
    with pytest.raises(WireError, match="not announced by its flag") as caught:
        replace(bare, **{part: getattr(full, part)}).pack()
    assert caught.value.field == field


@pytest.mark.spec("MS-MQRR 2.2.5.2")
def test_a_sum_of_sizes_that_is_not_true_is_not_written() -> None:
    bare = MessagePacket.parse(packet("00"))
    extension = replace(bare.extension_header, remaining_headers_size=4)
    with pytest.raises(WireError, match="4 bytes are said, 0 are there") as caught:
        replace(bare, extension_header=extension).pack()
    assert caught.value.field == "ExtensionHeader.remaining_headers_size"
