"""Hex text as people paste it."""

from __future__ import annotations

import pytest

from merq.cli.hex_text import REPEATED_BYTES_MAX, HexText
from merq.errors import WireError


def read(text: str) -> bytes:
    """The bytes of a whole text."""
    hex_text = HexText()
    data = b"".join(hex_text.feed(line) for line in text.splitlines(keepends=True))
    hex_text.finish()
    assert hex_text.byte_count == len(data)
    return data


def error_of(text: str) -> WireError:
    with pytest.raises(WireError) as caught:
        read(text)
    return caught.value


SIXTEEN = bytes.fromhex("10c00b004c494f5220000000ffffffff")


@pytest.mark.parametrize(
    "text",
    [
        "10c00b00",
        "10C00B00",
        "10 C0 0B 00",
        "10:c0:0b:00",
        "10-C0-0B-00",
        "0x10, 0xC0, 0x0B, 0x00",
        "0x10c00b00",
        r"\x10\xc0\x0b\x00",
        "10 c0\n0b 00\n",
        "\t10 c0\r\n\r\n0b 00\r\n",
        "1\n0c00b0\n0",
        "# a whole line\n10c0 # the rest of one\n0b00",
        "10c0 0b00",
        "10; c0; 0b; 00",
    ],
)
def test_plain_digits_are_read_however_they_are_set_apart(text: str) -> None:
    assert read(text) == bytes.fromhex("10c00b00")


def test_a_dump_of_xxd_is_read_without_its_offsets_and_characters() -> None:
    text = (
        "00000000: 10c0 0b00 4c49 4f52 2000 0000 ffff ffff  ....LIOR .......\n"
        "00000010: 0000 0300 d805 0000 c0d4 0100 0000 4000  ..............@.\n"
        "00000020: 6162                                     ab\n"
    )
    assert read(text) == SIXTEEN + bytes.fromhex("00000300d8050000c0d401000000400061 62")


def test_a_dump_of_xxd_may_have_lines_of_any_length() -> None:
    text = f"00000000: {'ab' * 16} {'cd' * 16}  {'.' * 32}\n00000020: 01 02  ..\n"
    assert read(text) == b"\xab" * 16 + b"\xcd" * 16 + b"\x01\x02"


def test_a_dump_of_hexdump_is_read_up_to_its_last_offset() -> None:
    text = (
        "00000000  10 c0 0b 00 4c 49 4f 52  20 00 00 00 ff ff ff ff  |....LIOR .......|\n"
        "00000010  61 62                                             |ab|\n"
        "00000012\n"
    )
    assert read(text) == SIXTEEN + b"ab"


@pytest.mark.parametrize("gap", ["  ", "   "])
def test_a_dump_of_wireshark_is_read(gap: str) -> None:
    text = (
        f"0000{gap}10 c0 0b 00 4c 49 4f 52 20 00 00 00 ff ff ff ff   ....LIOR .......\n"
        f"0010{gap}61 62 63                                          abc\n"
    )
    assert read(text) == SIXTEEN + b"abc"


def test_dumps_of_several_packets_may_follow_each_other() -> None:
    text = "0000   10 c0   ..\n\n0000   0b 00   ..\n"
    assert read(text) == bytes.fromhex("10c00b00")


@pytest.mark.parametrize(
    "line",
    [
        "00000000: 6162 2020 6364                           ab  cd",
        "00000000: 6162 2020 6364 6566  ab  cdef",
        "00000000: 61 62 20 20 63 64 65 66  ab  cdef",
        "00000000  61 62 20 20 63 64 65 66                           |ab  cdef|",
        "0000  61 62 20 20 63 64 65 66                           ab  cdef",
        "0000   61 62 20 20 63 64 65 66   ab  cdef",
    ],
)
def test_characters_that_look_like_digits_are_still_left_out(line: str) -> None:
    assert read(line) in {b"ab  cdef", b"ab  cd"}


def test_sixteen_characters_that_look_like_digits_are_left_out() -> None:
    digits = b"0123456789abcdef"
    assert read(f"00000000: {digits.hex(' ', 2)}  {digits.decode()}") == digits
    halves = f"{digits[:8].hex(' ')}  {digits[8:].hex(' ')}"
    assert read(f"00000000  {halves}  |{digits.decode()}|") == digits


def test_a_star_stands_for_the_lines_that_a_dump_leaves_out() -> None:
    text = (
        "00000000  10 c0                                             |..|\n"
        "00000002  5a 5a 5a 5a 5a 5a 5a 5a  5a 5a 5a 5a 5a 5a 5a 5a  |ZZZZZZZZZZZZZZZZ|\n"
        "*\n"
        "00000042  5b                                                |[|\n"
        "00000043\n"
    )
    assert read(text) == b"\x10\xc0" + b"\x5a" * 64 + b"\x5b"


def test_a_star_before_the_last_offset_stands_for_lines_too() -> None:
    line = "00000000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
    assert read(f"{line}*\n00000040\n") == bytes(64)


def test_a_star_that_no_offset_follows_is_refused() -> None:
    wrong = error_of("00000000  00 00  |..|\n*\n")
    assert "'*'" in wrong.reason
    assert wrong.offset == 2


@pytest.mark.limit("merq.cli.hex_text.REPEATED_BYTES_MAX")
@pytest.mark.parametrize(
    "after", ["00000003  00  |.|", "00000000  00  |.|", f"{REPEATED_BYTES_MAX + 4:08x}", "ffffffff"]
)
def test_a_star_is_refused_where_whole_lines_do_not_fit(after: str) -> None:
    wrong = error_of(f"00000000  00 00  |..|\n*\n{after}\n")
    assert wrong.reason.startswith("line 3: ")


def test_a_star_outside_a_dump_is_no_digit() -> None:
    assert "'*'" in error_of("10 c0\n*\n").reason


def test_digits_after_a_dump_that_are_not_its_last_offset_are_read() -> None:
    assert read("00000000: 10c0  ..\n0b004c49\n") == bytes.fromhex("10c00b004c49")


@pytest.mark.parametrize(
    ("text", "letter", "line", "offset"),
    [
        ("10 c0\n0b zz\n", "'z'", 2, 2),
        ("hello", "'h'", 1, 0),
        ("10 c0 \N{REPLACEMENT CHARACTER}", "'\N{REPLACEMENT CHARACTER}'", 1, 0),
    ],
)
def test_what_is_no_digit_is_named_with_its_line(
    text: str, letter: str, line: int, offset: int
) -> None:
    wrong = error_of(text)
    assert wrong.reason.startswith(f"line {line}: {letter}")
    assert wrong.offset == offset


def test_half_a_byte_at_the_end_is_refused() -> None:
    wrong = error_of("10 c0 0")
    assert "half a byte" in wrong.reason
    assert wrong.offset == 2


def test_a_text_without_digits_gives_no_bytes() -> None:
    assert read("# nothing\n\n  \n") == b""
