"""Reading that never overruns, and alignment."""

from uuid import UUID

import pytest

from merq.errors import WireError
from merq.wire.reader import Reader, TraceNode, pack_wide, padded, padding_for


def test_numbers_are_little_endian_and_the_position_moves() -> None:
    reader = Reader(bytes.fromhex("3412 78563412 aa"))
    assert (reader.u16("a"), reader.u32("b"), reader.raw(1, "c")) == (0x1234, 0x12345678, b"\xaa")
    assert (reader.position, reader.remaining) == (7, 0)
    reader.finish()


def test_a_guid_has_its_first_three_parts_little_endian() -> None:
    reader = Reader(bytes.fromhex("00112233 4455 6677 8899 aabbccddeeff"))
    assert reader.guid("id") == UUID("33221100-5544-7766-8899-aabbccddeeff")


@pytest.mark.parametrize(
    ("method", "size"), [("u16", 2), ("u32", 4), ("guid", 16)], ids=["u16", "u32", "guid"]
)
def test_what_is_not_there_is_refused_and_nothing_is_taken(method: str, size: int) -> None:
    reader = Reader(bytes(3 + size), start=4)
    with reader.part("some_header"), pytest.raises(WireError) as caught:
        getattr(reader, method)("field")
    assert (caught.value.offset, caught.value.field) == (4, "some_header.field")
    assert caught.value.reason == f"{size} bytes are needed, {size - 1} are left"
    assert reader.position == 4


@pytest.mark.spec("MS-MQMQ 2.2.19.1")
@pytest.mark.parametrize(
    ("position", "expected"), [(4, ""), (5, "050607"), (6, "0607"), (7, "07"), (8, "")]
)
def test_padding_reaches_to_the_next_boundary(position: int, expected: str) -> None:
    reader = Reader(bytes(range(12)), start=position)
    assert reader.pad(0) == bytes.fromhex(expected)
    assert reader.position % 4 == 0


def test_boundaries_are_counted_from_where_the_header_starts() -> None:
    reader = Reader(bytes(range(12)), start=6)
    assert reader.pad(3) == bytes([6])


def test_padding_that_is_cut_off_is_refused_but_for_the_last_part_of_a_packet() -> None:
    with pytest.raises(WireError, match="3 bytes are needed, 2 are left") as caught:
        Reader(bytes(7), start=5).pad(0)
    assert (caught.value.offset, caught.value.field) == (5, "padding")
    assert Reader(bytes(7), start=5).pad_if_there(0) == bytes(2)
    assert Reader(bytes(5), start=5).pad_if_there(0) == b""
    assert Reader(bytes(9), start=5).pad_if_there(0) == bytes(3)


def test_text_ends_with_its_only_null_character() -> None:
    assert Reader(bytes.fromhex("6100 e400 0000")).wide(6, "text") == "aä"
    assert Reader(bytes(2)).wide(2, "text") == ""


def test_a_null_pair_that_straddles_two_characters_is_no_null_character() -> None:
    # 'a' and U+4100 lie as 61 00 00 41.
    reader = Reader(bytes.fromhex("6100 0041 0000"))
    assert reader.wide(6, "text") == "a\u4100"


@pytest.mark.parametrize("text", ["\ud800", "x\udfffy", "\U0001f600", "\ufeffx", "\uffff"])
def test_text_passes_unaltered_even_with_half_a_surrogate_pair(text: str) -> None:
    data = pack_wide(text, "text")
    assert Reader(data).wide(len(data), "text") == text


@pytest.mark.parametrize(
    ("data", "size"),
    [("", 0), ("00", 1), ("610000", 3), ("6100", 2), ("61006200", 4), ("6100000000", 5)],
)
def test_text_without_a_terminator_or_of_odd_size_is_refused(data: str, size: int) -> None:
    reader = Reader(b"\xff" + bytes.fromhex(data), start=1)
    with reader.part("header"), pytest.raises(WireError, match="ends with a null") as caught:
        reader.wide(size, "text")
    assert (caught.value.offset, caught.value.field) == (1, "header.text")


@pytest.mark.parametrize(
    ("data", "at"), [("610000000000", 1), ("00000000", 0), ("000061000000", 0)]
)
def test_text_that_ends_early_is_refused(data: str, at: int) -> None:
    with pytest.raises(WireError, match=f"ends the text early, at {at}") as caught:
        Reader(bytes.fromhex(data)).wide(len(data) // 2, "text")
    assert (caught.value.offset, caught.value.field) == (0, "text")


def test_a_bound_hides_what_comes_after_it() -> None:
    reader = Reader(bytes(8))
    with reader.bounded(4):
        assert reader.remaining == 4
        with pytest.raises(WireError, match="5 bytes are needed, 4 are left"):
            reader.raw(5, "x")
        reader.raw(4, "x")
        reader.finish()
    assert reader.remaining == 4


def test_bytes_left_over_are_refused_where_they_start() -> None:
    reader = Reader(bytes(8))
    reader.u16("x")
    with reader.part("header"), pytest.raises(WireError, match="6 bytes are left over") as caught:
        reader.finish()
    assert (caught.value.offset, caught.value.field) == (2, "header")


def test_a_failure_names_structures_from_the_outside_in() -> None:
    reader = Reader(b"")
    with reader.part("outer"), reader.part("inner"):
        assert reader.fail("wrong", "field", offset=9).field == "outer.inner.field"
        assert reader.fail("wrong").field == "outer.inner"
        assert reader.fail("wrong").offset == 0
    assert reader.fail("wrong", "field").field == "field"
    assert str(reader.fail("wrong")) == "wrong (at offset 0)"


def test_a_trace_shows_each_field_in_its_structure_with_place_and_size() -> None:
    trace = TraceNode("packet", 0)
    reader = Reader(bytes.fromhex("0100 02000000 6100 0000 ffff"), trace=trace)
    assert reader.tracing
    reader.u16("first")
    with reader.part("header"):
        reader.u32("second")
        reader.wide(4, "text")
        reader.pad(0)
    assert trace.children == [
        TraceNode("first", 0, 2, 1),
        TraceNode(
            "header",
            2,
            10,
            None,
            [
                TraceNode("second", 2, 4, 2),
                TraceNode("text", 6, 4, "a"),
                TraceNode("padding", 10, 2, b"\xff\xff"),
            ],
        ),
    ]
    assert not Reader(b"").tracing


def test_a_nested_structure_is_read_within_bytes_that_were_taken() -> None:
    trace = TraceNode("packet", 0)
    reader = Reader(bytes.fromhex("aabb0100ccdd"), trace=trace)
    reader.raw(6, "all")
    assert reader.nested("inner", 2, lambda inner: inner.u16("number")) == 1
    assert reader.position == 6
    assert trace.children[1] == TraceNode("inner", 2, 2, None, [TraceNode("number", 2, 2, 1)])


def test_text_of_ours_gets_its_terminator_and_may_hold_no_null() -> None:
    assert pack_wide("aß", "label") == bytes.fromhex("6100 df00 0000")
    assert pack_wide("", "label") == bytes(2)
    with pytest.raises(WireError, match="null character") as caught:
        pack_wide("a\0b", "label")
    assert caught.value.field == "label"


@pytest.mark.parametrize(
    ("size", "kept", "expected"),
    [
        (0, b"xyz", b""),
        (1, b"", bytes(3)),
        (1, b"xyz", b"xyz"),
        (2, b"xyz", b"xy"),
        (3, b"xyz", b"x"),
        (1, b"x", b"x\0\0"),
        (4, b"xyz", b""),
    ],
)
def test_filling_is_what_was_received_or_zeros(size: int, kept: bytes, expected: bytes) -> None:
    assert padding_for(size, kept) == expected
    assert padded(b"d" * size, kept) == b"d" * size + expected
