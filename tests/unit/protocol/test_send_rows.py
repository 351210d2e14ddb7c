"""Messages that have most in common as a frame: SEND_ROWS."""

from __future__ import annotations

import struct

import pytest

from merq.errors import WireError
from merq.model.row_batch import TEMPLATES_MAX, RowBatch
from merq.protocol.application.batches import MESSAGES_MAX
from merq.protocol.application.codec import decode_request, encode_request
from merq.protocol.application.frames import HEADER_SIZE, Frame, FrameReader, Kind, frame
from merq.protocol.application.requests import SendRows
from merq.protocol.application.server import is_lasting

BATCH = RowBatch(
    count=2,
    templates=(b"one template", b"another"),
    kinds=b"\1\0",
    tags=bytes(range(56)),
    label_sizes=b"\1\2",
    labels=b"a\0b\0c\0",
    body_sizes=struct.pack("<II", 3, 4),
    bodies=b"onefour",
)
PLAIN = RowBatch(1, (b"template",), b"", b"", b"", b"", struct.pack("<I", 4), b"body")


def only_frame(data: bytes) -> Frame:
    reader = FrameReader(1 << 30)
    reader.feed(data)
    found = reader.next()
    assert found is not None
    return found


def decoded(body: bytes, flags: int = 0) -> object:
    return decode_request(only_frame(frame(Kind.SEND_ROWS, 1, body, flags=flags)))


def test_a_frame_lies_as_the_page_says() -> None:
    data = encode_request(9, SendRows(7, BATCH), 5)
    assert struct.unpack_from("<IBBHII", data) == (len(data), 10, 0x07, 0, 9, 5)
    assert data[HEADER_SIZE:] == b"".join(
        [
            struct.pack("<IIHHI", 7, 2, 2, 0, 6),
            struct.pack("<II", 12, 7),
            BATCH.kinds,
            BATCH.tags,
            BATCH.label_sizes,
            BATCH.body_sizes,
            *BATCH.templates,
            BATCH.labels,
            BATCH.bodies,
        ]
    )


def test_columns_that_are_as_in_the_template_are_left_out() -> None:
    data = encode_request(9, SendRows(7, PLAIN))
    assert data[5] == 0
    assert len(data) == HEADER_SIZE + 16 + 4 + 4 + len(b"template") + len(b"body")
    assert decode_request(only_frame(data)) == SendRows(7, PLAIN)


def test_rows_are_not_written_twice_when_a_connection_is_lost() -> None:
    assert is_lasting(SendRows(7, PLAIN))


def head(count: int = 1, templates: int = 1, zero: int = 0, labels: int = 0) -> bytes:
    return struct.pack("<IIHHI", 7, count, templates, zero, labels)


@pytest.mark.limit("merq.model.row_batch.TEMPLATES_MAX")
@pytest.mark.parametrize(
    ("body", "flags", "text"),
    [
        (b"", 0, "16 bytes too early"),
        (head()[:-1], 0, "1 bytes too early"),
        (head(count=0) + bytes(40), 0, "0 messages of 1 templates"),
        (head(count=MESSAGES_MAX + 1) + bytes(40), 0, f"{MESSAGES_MAX + 1} messages"),
        (head(templates=0) + bytes(40), 0, "1 messages of 0 templates"),
        (head(templates=TEMPLATES_MAX + 1) + bytes(40), 0, f"of {TEMPLATES_MAX + 1} templates"),
        (head(zero=1) + bytes(40), 0, "0x1 where 0 belongs"),
        (head() + bytes(40), 0x08, "flags 0x8"),
        (head(), 0, "4 bytes too early"),
        (head() + bytes(7), 0, "1 bytes too early"),
        (head() + bytes(8), 0x01, "1 bytes too early"),
        (head() + bytes(8), 0x02, "28 bytes too early"),
        (head() + bytes(8), 0x04, "1 bytes too early"),
        (head(labels=3) + bytes(10), 0, "1 bytes too early"),
        (head(labels=0xFFFFFFFF) + bytes(40), 0, "bytes too early"),
        (head() + struct.pack("<I", 0xFFFFFFFF) + bytes(40), 0, "bytes too early"),
        (head(count=MESSAGES_MAX) + bytes(40), 0x07, "bytes too early"),
    ],
)
def test_a_frame_that_does_not_have_what_it_says_is_refused(
    body: bytes, flags: int, text: str
) -> None:
    with pytest.raises(WireError, match=text):
        decoded(body, flags)


def test_whether_sizes_fit_the_bodies_is_left_to_the_queue_manager() -> None:
    found = decoded(head() + bytes(8) + b"more than nothing")
    assert isinstance(found, SendRows)
    assert found.rows.bodies == b"more than nothing"
