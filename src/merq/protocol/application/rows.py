"""Many messages at once, as they lie in the store: the ROWS frame.

Whoever reads a queue by the hundred thousand takes messages apart itself, by columns. The queue
manager only says where each of them is in the bytes that it sends along.

| size | |
|---|---|
| 4 | count, the number of messages |
| 4 | how many of them have notes |
| 8 each | lookup identifiers |
| 4 each | where each packet begins in the data |
| 4 each | the packets' sizes |
| 12 each | notes: which message, counted from 0, how often its receive was aborted, and moves |
| | the data |

Before each packet lie 28 bytes: the size of what follows from the 13th byte on, its CRC-32, four
bytes without meaning here; then the number of a queue, when the message arrived in seconds since
1970, and a lookup identifier that it may have had before. What lies between is of no concern.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final
from zlib import crc32

from merq.errors import WireError
from merq.protocol.application.frames import HEADER_SIZE, Frame, Kind, frame

ROWS_MAX: Final = 65_536
"""Messages in one frame."""

ROWS_BYTES_MAX: Final = 8 << 20
"""What their packets take, unless a single one takes more."""

PREFIX_SIZE: Final = 28
NOTE_SIZE: Final = 12
_HEAD: Final = Struct("<II")
_PREFIX: Final = Struct("<IIB3xIIQ")
_CHECKED_AT: Final = 12
_PUT: Final = 1


@dataclass(frozen=True, slots=True)
class RowsReport:
    """Messages, by columns; each is bytes of little-endian numbers.

    Attributes:
        count: How many messages there are.
        ids: Their lookup identifiers, 8 bytes each.
        offsets: Where their packets begin in the data, 4 bytes each.
        sizes: Their packets' sizes, 4 bytes each.
        notes: Which of them, how often receiving it was aborted, and how often it was moved, 4
            bytes each.
        data: In one or more pieces.
    """

    count: int
    ids: bytes | memoryview
    offsets: bytes | memoryview
    sizes: bytes | memoryview
    notes: bytes | memoryview
    data: tuple[bytes | memoryview, ...]


def prefixed(queue: int, arrival: int, lookup_id: int, packet: bytes) -> bytes:
    """A packet that does not lie in the store, as if it did."""
    whole = _PREFIX.pack(16 + len(packet), 0, _PUT, queue, arrival, lookup_id) + packet
    checksum = crc32(memoryview(whole)[_CHECKED_AT:])
    return whole[:4] + checksum.to_bytes(4, "little") + whole[8:]


def encode_rows(number: int, rows: RowsReport) -> bytes:
    """Messages as a frame."""
    head = _HEAD.pack(rows.count, len(rows.notes) // NOTE_SIZE)
    parts = (head, rows.ids, rows.offsets, rows.sizes, rows.notes, *rows.data)
    return frame(Kind.ROWS, number, *[bytes(each) for each in parts])


def decode_rows(found: Frame) -> RowsReport:
    """The messages of a frame; their bytes are not copied.

    Raises:
        WireError: It does not have what it says.
    """
    body = memoryview(found.buffer)[found.start + HEADER_SIZE : found.end]
    if len(body) < _HEAD.size:
        raise WireError(f"the body has {len(body)} bytes; it needs {_HEAD.size}", field="rows")
    count, notes = _HEAD.unpack_from(body)
    at = _HEAD.size
    if count > ROWS_MAX or notes > count or at + 16 * count + NOTE_SIZE * notes > len(body):
        raise WireError(f"{count} messages and {notes} notes in {len(body)} bytes", field="rows")
    columns = []
    for size in (8 * count, 4 * count, 4 * count, NOTE_SIZE * notes):
        columns.append(body[at : at + size])
        at += size
    return RowsReport(count, columns[0], columns[1], columns[2], columns[3], (body[at:],))
