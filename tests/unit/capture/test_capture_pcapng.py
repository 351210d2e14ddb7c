"""The newer capture format."""

import struct
import tracemalloc

import pytest

from merq.capture.files import read_frames
from merq.capture.pcapng import BLOCK_SIZE_MAX, INTERFACE_COUNT_MAX
from merq.capture.source import CAPTURED_LENGTH_MAX, READ_SIZE_MAX, TIME_NS_MAX, CapturedFrame
from merq.errors import CaptureError
from unit.capture.building_captures import (
    as_file,
    block,
    enhanced,
    interface,
    obsolete,
    option,
    pcapng,
    section,
    simple,
    until_error,
)

RESOLUTION, OFFSET = 9, 14


def read(data: bytes) -> list[CapturedFrame]:
    return list(read_frames(as_file(data)))


def frames_until_error(data: bytes) -> tuple[list[CapturedFrame], CaptureError]:
    found, error = until_error(read_frames(as_file(data)))
    assert error is not None
    return found, error


@pytest.mark.parametrize("order", ["<", ">"])
def test_an_enhanced_packet_is_read_in_both_byte_orders(order: str) -> None:
    data = (
        section(order=order)
        + interface(order=order, link_type=113)
        + enhanced(b"frame", order=order, units=1_700_000_000_123_456, original=9)
    )
    assert read(data) == [
        CapturedFrame(
            number=1,
            time_ns=1_700_000_000_123_456_000,
            link_type=113,
            original_length=9,
            data=b"frame",
        )
    ]


@pytest.mark.parametrize("order", ["<", ">"])
def test_an_obsolete_packet_is_read_in_both_byte_orders(order: str) -> None:
    data = (
        section(order=order)
        + interface(order=order)
        + obsolete(b"frame", order=order, units=5 << 32)
    )
    (frame,) = read(data)
    assert (frame.data, frame.time_ns) == (b"frame", (5 << 32) * 1000)


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_simple_packet_has_no_time(order: str) -> None:
    data = section(order=order) + interface(order=order) + simple(b"frame", order=order)
    (frame,) = read(data)
    assert (frame.data, frame.time_ns, frame.original_length) == (b"frame", None, 5)


def test_a_simple_packet_is_cut_at_its_interface_s_snap_length() -> None:
    data = section() + interface(snap_length=3) + simple(b"abc", original=99)
    (frame,) = read(data)
    assert (frame.data, frame.original_length) == (b"abc", 99)


@pytest.mark.parametrize(
    ("resolution", "units", "time_ns"),
    [
        (9, 1_234_567_890, 1_234_567_890),
        (3, 1_234, 1_234_000_000),
        (0, 7, 7_000_000_000),
        (12, 1_999, 1),
        (0x80 | 10, 1024 + 512, 1_500_000_000),
        (0x80, 2, 2_000_000_000),
        (127, 2**64 - 1, 0),
    ],
)
def test_time_stamps_are_counted_in_the_interface_s_resolution(
    resolution: int, units: int, time_ns: int
) -> None:
    options = option(2, b"en0") + option(RESOLUTION, bytes([resolution])) + option(0, b"")
    data = section() + interface(options=options) + enhanced(b"x", units=units)
    (frame,) = read(data)
    assert frame.time_ns == time_ns


def test_an_interface_may_shift_its_time_stamps() -> None:
    options = option(OFFSET, struct.pack("<q", 1000))
    data = section() + interface(options=options) + enhanced(b"x", units=500_000)
    (frame,) = read(data)
    assert frame.time_ns == 1_000_500_000_000


@pytest.mark.parametrize(("resolution", "offset_s"), [(0, 0), (6, -(2**62))])
def test_a_time_outside_the_calendar_is_no_time(resolution: int, offset_s: int) -> None:
    options = option(RESOLUTION, bytes([resolution])) + option(OFFSET, struct.pack("<q", offset_s))
    units = TIME_NS_MAX // 1_000_000_000 + 1
    data = section() + interface(options=options) + enhanced(b"x", units=units)
    (frame,) = read(data)
    assert frame.time_ns is None


def test_options_behind_the_end_mark_and_of_odd_sizes_are_not_read() -> None:
    options = option(RESOLUTION, b"\x00\x00") + option(0, b"") + option(RESOLUTION, b"\x00")
    data = section() + interface(options=options) + enhanced(b"x", units=3)
    (frame,) = read(data)
    assert frame.time_ns == 3000


def test_every_packet_has_the_link_type_of_its_interface() -> None:
    data = (
        section()
        + interface(link_type=1)
        + interface(link_type=113)
        + enhanced(b"x", interface_id=1)
        + enhanced(b"y", interface_id=0)
    )
    assert [frame.link_type for frame in read(data)] == [113, 1]


def test_unknown_blocks_and_packet_options_are_passed_over() -> None:
    data = (
        section()
        + block(0x0BAD, b"unknown")
        + interface()
        + block(5, bytes(100_000))
        + enhanced(b"x", options=option(1, b"a comment") + option(0, b""))
        + block(0x8000_0001, b"")
        + enhanced(b"y")
    )
    assert [(frame.number, frame.data) for frame in read(data)] == [(1, b"x"), (2, b"y")]


def test_a_new_section_has_its_own_byte_order_and_interfaces() -> None:
    data = pcapng([b"one"], order="<", link_type=1) + pcapng([b"two"], order=">", link_type=101)
    assert [(frame.number, frame.data, frame.link_type) for frame in read(data)] == [
        (1, b"one", 1),
        (2, b"two", 101),
    ]


def test_a_packet_of_an_interface_not_described_in_its_section_is_refused() -> None:
    before = pcapng([b"one"]) + section()
    found, error = frames_until_error(before + enhanced(b"two"))
    assert [frame.data for frame in found] == [b"one"]
    assert error.offset == len(before)
    assert "interface 0 of 0" in error.reason


@pytest.mark.parametrize(
    "data",
    [
        section(version=(2, 0)),
        section()[:8] + b"\x00\x00\x00\x00" + section()[12:],
        section()[:10],
    ],
    ids=["another version", "unknown byte order", "cut off"],
)
def test_a_section_header_that_cannot_be_read_is_refused(data: bytes) -> None:
    found, error = frames_until_error(data)
    assert (found, error.offset) == ([], 0)


@pytest.mark.limit("merq.capture.pcapng.BLOCK_SIZE_MAX")
@pytest.mark.parametrize("size", [0, 8, 13, 15, BLOCK_SIZE_MAX + 4, 0xFFFF_FFFC])
def test_a_block_of_an_impossible_size_is_refused(size: int) -> None:
    before = pcapng([b"one"])
    found, error = frames_until_error(before + struct.pack("<II", 0x0BAD, size) + bytes(64))
    assert len(found) == 1
    assert error.offset == len(before)
    assert "a multiple of 4" in error.reason or f"at most {BLOCK_SIZE_MAX}" in error.reason


def test_a_block_that_closes_with_another_length_is_refused_after_its_frame() -> None:
    before = section() + interface()
    torn = enhanced(b"frame")[:-4] + bytes(4)
    found, error = frames_until_error(before + torn)
    assert [frame.data for frame in found] == [b"frame"]
    assert error.offset == len(before)


def test_a_packet_longer_than_its_block_is_refused() -> None:
    body = struct.pack("<IIIII", 0, 0, 0, 100, 100) + bytes(8)
    _, error = frames_until_error(section() + interface() + block(6, body))
    assert "8 bytes left where 100 belong" in error.reason


def test_a_block_too_short_for_its_fields_is_refused() -> None:
    _, error = frames_until_error(section() + block(1, b""))
    assert "0 bytes left where 8 belong" in error.reason


@pytest.mark.limit("merq.capture.pcapng.INTERFACE_COUNT_MAX")
def test_more_interfaces_than_the_limit_are_refused() -> None:
    data = section() + interface() * INTERFACE_COUNT_MAX
    assert read(data + enhanced(b"x", interface_id=INTERFACE_COUNT_MAX - 1))
    _, error = frames_until_error(data + interface())
    assert str(INTERFACE_COUNT_MAX) in error.reason


@pytest.mark.parametrize("kept", range(1, len(enhanced(b"0123456789"))))
def test_a_cut_last_packet_gives_what_is_there_of_it(kept: int) -> None:
    before = pcapng([b"one"])
    found, error = frames_until_error(before + enhanced(b"0123456789")[:kept])
    readable = b"0123456789"[: max(kept - 28, 0)]
    assert [frame.data for frame in found] == [b"one"] + [readable] * bool(readable)
    assert error.offset == len(before)


@pytest.mark.parametrize(
    "claim",
    [
        struct.pack("<II", 0x0BAD, BLOCK_SIZE_MAX),
        struct.pack("<II", 1, BLOCK_SIZE_MAX) + bytes(8),
        struct.pack("<IIIIIII", 6, BLOCK_SIZE_MAX, 0, 0, 0, CAPTURED_LENGTH_MAX, 0),
        struct.pack("<III", 3, BLOCK_SIZE_MAX, CAPTURED_LENGTH_MAX),
    ],
    ids=["unknown", "interface", "enhanced", "simple"],
)
def test_a_claimed_size_costs_no_memory_that_the_file_does_not_fill(
    claim: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # A real file: unlike one in memory it allocates whatever it is asked to read.
    path = tmp_path_factory.mktemp("claims") / "claim.pcapng"
    path.write_bytes(section() + interface() + claim)
    with path.open("rb") as file:
        tracemalloc.start()
        try:
            _, error = until_error(read_frames(file))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert error is not None
    assert peak < READ_SIZE_MAX * 2


def test_a_frame_beyond_the_captured_length_is_refused_though_its_block_is_not() -> None:
    body = struct.pack("<IIIII", 0, 0, 0, CAPTURED_LENGTH_MAX + 1, 0)
    found, error = frames_until_error(
        section() + interface() + block(6, body + bytes(CAPTURED_LENGTH_MAX + 1))
    )
    assert found == []
    assert str(CAPTURED_LENGTH_MAX) in error.reason
