"""The classic capture format, and telling captures from other files."""

import tracemalloc

import pytest

from merq.capture import is_capture
from merq.capture.files import read_frames
from merq.capture.source import CAPTURED_LENGTH_MAX, READ_SIZE_MAX, CapturedFrame
from merq.errors import CaptureError
from unit.capture.building_captures import (
    DrippingFile,
    as_file,
    pcap,
    pcap_header,
    pcap_record,
    pcapng,
    until_error,
)


def frames_until_error(data: bytes) -> tuple[list[CapturedFrame], CaptureError]:
    found, error = until_error(read_frames(as_file(data)))
    assert error is not None
    return found, error


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_microsecond_file_is_read_in_both_byte_orders(order: str) -> None:
    data = pcap_header(order=order, link_type=1) + pcap_record(
        b"frame", order=order, time=(1_700_000_000, 123_456), original=9
    )
    assert list(read_frames(as_file(data))) == [
        CapturedFrame(
            number=1,
            time_ns=1_700_000_000_123_456_000,
            link_type=1,
            original_length=9,
            data=b"frame",
        )
    ]


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_nanosecond_file_is_read_in_both_byte_orders(order: str) -> None:
    data = pcap_header(order=order, nanoseconds=True) + pcap_record(
        b"x", order=order, time=(5, 123_456_789)
    )
    (frame,) = read_frames(as_file(data))
    assert frame.time_ns == 5_123_456_789


def test_frames_are_numbered_from_one() -> None:
    frames = list(read_frames(as_file(pcap([b"a", b"", b"c"]))))
    assert [(frame.number, frame.data) for frame in frames] == [(1, b"a"), (2, b""), (3, b"c")]


def test_notes_about_a_frame_check_sequence_are_no_part_of_the_link_type() -> None:
    data = pcap_header(link_type=0x2400_0001) + pcap_record(b"x")
    (frame,) = read_frames(as_file(data))
    assert frame.link_type == 1


@pytest.mark.parametrize("minor", [0, 2, 3])
def test_early_versions_have_the_two_lengths_exchanged(minor: int) -> None:
    # Their record says first how long the frame was, then how much of it is here.
    record = bytearray(pcap_record(b"abc", original=10))
    record[8:12], record[12:16] = record[12:16], record[8:12]
    data = pcap_header(version=(2, minor)) + bytes(record)
    (frame,) = read_frames(as_file(data))
    assert (frame.data, frame.original_length) == (b"abc", 10)


def test_version_2_3_is_also_read_with_the_lengths_in_today_s_order() -> None:
    data = pcap_header(version=(2, 3)) + pcap_record(b"abc", original=10)
    (frame,) = read_frames(as_file(data))
    assert (frame.data, frame.original_length) == (b"abc", 10)


def test_another_major_version_is_refused() -> None:
    with pytest.raises(CaptureError, match=r"version 3\.4"):
        list(read_frames(as_file(pcap_header(version=(3, 4)))))


def test_an_original_length_below_the_captured_one_is_raised_to_it() -> None:
    data = pcap_header() + pcap_record(b"four", original=1)
    (frame,) = read_frames(as_file(data))
    assert frame.original_length == 4


@pytest.mark.parametrize("data", [b"", b"\xd4\xc3\xb2", b"plain text, not a capture"])
def test_what_is_no_capture_is_refused_at_its_beginning(data: bytes) -> None:
    _, error = frames_until_error(data)
    assert error.offset == 0


def test_a_file_cut_inside_its_header_is_refused() -> None:
    _, error = frames_until_error(pcap_header()[:20])
    assert (error.offset, error.reason) == (
        0,
        "the file ends after 16 of 20 bytes of the file header",
    )


def test_frames_before_a_cut_record_header_are_delivered() -> None:
    whole = pcap([b"one", b"two"])
    found, error = frames_until_error(whole + bytes(7))
    assert [frame.data for frame in found] == [b"one", b"two"]
    assert error.offset == len(whole)


def test_a_cut_last_frame_is_delivered_with_the_bytes_it_has() -> None:
    first = pcap([b"one"])
    found, error = frames_until_error(first + pcap_record(b"0123456789")[:-4])
    assert [frame.data for frame in found] == [b"one", b"012345"]
    assert found[1].original_length == 10
    assert error.offset == len(first)


@pytest.mark.limit("merq.capture.source.CAPTURED_LENGTH_MAX")
def test_a_frame_of_the_greatest_length_is_read_and_a_longer_one_refused() -> None:
    longest = pcap_record(bytes(CAPTURED_LENGTH_MAX))
    found, error = frames_until_error(
        pcap_header() + longest + pcap_record(bytes(CAPTURED_LENGTH_MAX + 1))
    )
    assert [len(frame.data) for frame in found] == [CAPTURED_LENGTH_MAX]
    assert error.offset == len(pcap_header()) + len(longest)


@pytest.mark.limit("merq.capture.source.READ_SIZE_MAX")
def test_a_claimed_length_costs_no_memory_that_the_file_does_not_fill() -> None:
    claim = pcap_header() + bytes(8) + CAPTURED_LENGTH_MAX.to_bytes(4, "little") * 2 + b"few"
    tracemalloc.start()
    try:
        found, _ = frames_until_error(claim)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [frame.data for frame in found] == [b"few"]
    assert peak < READ_SIZE_MAX * 2


def test_short_reads_of_the_file_object_are_no_end_of_file() -> None:
    (frame,) = read_frames(DrippingFile(pcap([b"0123456789"])))
    assert frame.data == b"0123456789"


def test_both_formats_are_recognised_by_their_first_bytes() -> None:
    for data in (
        pcap_header(order="<"),
        pcap_header(order=">"),
        pcap_header(nanoseconds=True),
        pcapng([], order="<"),
        pcapng([], order=">"),
    ):
        assert is_capture(data)
        assert is_capture(data[:12])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xd4\xc3\xb2",
        b"\x10\x00\x03\x00LIOR",
        b"\x0a\x0d\x0d\x0a" + bytes(8),
    ],
)
def test_other_files_are_not_taken_for_captures(data: bytes) -> None:
    assert not is_capture(data)
