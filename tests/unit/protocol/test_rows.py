"""Many messages at once as a frame: ROWS."""

from __future__ import annotations

import struct
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merq.errors import WireError
from merq.protocol.application.frames import HEADER_SIZE, Frame, FrameReader, Kind, frame
from merq.protocol.application.rows import (
    PREFIX_SIZE,
    ROWS_MAX,
    RowsReport,
    decode_rows,
    encode_rows,
    prefixed,
)


def only_frame(data: bytes) -> Frame:
    reader = FrameReader(1 << 30)
    reader.feed(data)
    found = reader.next()
    assert found is not None
    return found


def decoded(body: bytes) -> RowsReport:
    return decode_rows(only_frame(frame(Kind.ROWS, 1, body)))


REPORT = RowsReport(
    count=2,
    ids=struct.pack("<QQ", 7, 3 << 56 | 8),
    offsets=struct.pack("<II", 28, 60),
    sizes=struct.pack("<II", 4, 5),
    notes=struct.pack("<III", 1, 3, 5),
    data=(b"first piece", b"second"),
)


def test_a_frame_lies_as_the_page_says() -> None:
    data = encode_rows(9, REPORT)
    size, kind, _, _, number = struct.unpack_from("<IBBHI", data)
    assert (size, kind, number) == (len(data), 72, 9)
    body = data[HEADER_SIZE:]
    assert struct.unpack_from("<II", body) == (2, 1)
    assert body[8:] == b"".join(
        [REPORT.ids, REPORT.offsets, REPORT.sizes, REPORT.notes, *REPORT.data]
    )


def test_columns_come_out_as_they_went_in() -> None:
    found = decode_rows(only_frame(encode_rows(9, REPORT)))
    assert found.count == 2
    for name in ("ids", "offsets", "sizes", "notes"):
        assert bytes(getattr(found, name)) == getattr(REPORT, name)
    assert b"".join(found.data) == b"first piecesecond"


def test_no_messages_are_a_frame_too() -> None:
    empty = RowsReport(0, b"", b"", b"", b"", ())
    found = decode_rows(only_frame(encode_rows(1, empty)))
    assert (found.count, b"".join(found.data)) == (0, b"")


@pytest.mark.parametrize(
    ("count", "notes"), [(3, 0), (2, 3), (2, 2), (ROWS_MAX + 1, 0), (0xFFFFFFFF, 0xFFFFFFFF)]
)
def test_a_frame_that_does_not_have_what_it_says_is_refused(count: int, notes: int) -> None:
    body = struct.pack("<II", count, notes) + bytes(40)
    with pytest.raises(WireError, match=f"{count} messages and {notes} notes in 48 bytes"):
        decoded(body)


@pytest.mark.limit("merq.protocol.application.rows.ROWS_MAX")
def test_as_many_messages_as_a_frame_may_have_are_taken() -> None:
    body = struct.pack("<II", ROWS_MAX, 0) + bytes(16 * ROWS_MAX)
    assert decoded(body).count == ROWS_MAX
    with pytest.raises(WireError):
        decoded(struct.pack("<II", ROWS_MAX + 1, 0) + bytes(16 * (ROWS_MAX + 1)))


@pytest.mark.parametrize("size", range(8))
def test_a_body_without_a_head_is_refused(size: int) -> None:
    with pytest.raises(WireError, match="it needs 8"):
        decoded(bytes(size))


@given(st.binary(max_size=200))
def test_any_bytes_give_columns_or_a_wire_error(body: bytes) -> None:
    try:
        found = decoded(body)
    except WireError:
        return
    assert len(found.ids) == 8 * found.count
    assert len(found.offsets) == len(found.sizes) == 4 * found.count


def test_what_does_not_lie_in_the_store_looks_as_if_it_did() -> None:
    data = prefixed(16, 1_700_000_000, 5 << 56 | 1, b"packet")
    assert len(data) == PREFIX_SIZE + len(b"packet")
    size, checksum, kind, queue, arrival, lookup_id = struct.unpack_from("<IIB3xIIQ", data)
    assert (size, queue, arrival, lookup_id) == (22, 16, 1_700_000_000, 5 << 56 | 1)
    assert (kind, checksum) == (1, crc32(data[12:]))
    assert data[PREFIX_SIZE:] == b"packet"
