"""Frames and records: bytes to values and back. No file is touched here.

The forms are described in the package's docstring.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from zlib import crc32

FRAME_MAGIC: Final = b"FRAM"
FRAME_HEADER_SIZE: Final = 32
RECORD_HEADER_SIZE: Final = 8
FRAME_ALIGNMENT: Final = 8
FRAME_SIZE_MIN: Final = FRAME_HEADER_SIZE + RECORD_HEADER_SIZE
FRAME_PAYLOAD_MAX: Final = 1 << 30
"""The most that is appended in one piece: 1 GiB."""

KIND_MAX: Final = 255

_FRAME: Final = struct.Struct("<4sIQQI")
_CRC: Final = struct.Struct("<I")
_RECORD: Final = struct.Struct("<IB3x")
_ZEROS: Final = bytes(FRAME_ALIGNMENT)


class Record(NamedTuple):
    """A kind, from 1 to 255, and data."""

    kind: int
    data: bytes


class FoundRecord(NamedTuple):
    """A record as it was read, with the position of its data."""

    kind: int
    position: int
    data: memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameHeader:
    """What a frame says of itself before its payload."""

    payload_size: int
    sequence: int
    durable: int
    count: int
    checksum: int

    @property
    def size(self) -> int:
        """The frame with its header and filling."""
        return FRAME_HEADER_SIZE + self.payload_size + -self.payload_size % FRAME_ALIGNMENT


def pack_frame(
    records: Sequence[tuple[int, bytes]], sequence: int, durable: int
) -> tuple[bytes, list[int]]:
    """A whole frame, and where in it each record's data begins."""
    parts: list[bytes] = [b""]
    places: list[int] = []
    at = FRAME_HEADER_SIZE
    for kind, data in records:
        assert 0 < kind <= KIND_MAX, "kind 0 does not exist"
        parts.append(_RECORD.pack(len(data), kind))
        parts.append(data)
        at += RECORD_HEADER_SIZE
        places.append(at)
        at += len(data)
    size = at - FRAME_HEADER_SIZE
    assert records, "a frame has at least one record"
    assert size <= FRAME_PAYLOAD_MAX, "the caller keeps to the limit"
    head = _FRAME.pack(FRAME_MAGIC, size, sequence, durable, len(records))
    checksum = crc32(head)
    for part in parts:
        checksum = crc32(part, checksum)
    parts[0] = head + _CRC.pack(checksum)
    parts.append(_ZEROS[: -size % FRAME_ALIGNMENT])
    return b"".join(parts), places


def unpack_header(data: bytes) -> FrameHeader | None:
    """The header at the start of `data`, or None if no frame begins there."""
    if len(data) < FRAME_HEADER_SIZE or data[:4] != FRAME_MAGIC:
        return None
    _, size, sequence, durable, count = _FRAME.unpack_from(data)
    (checksum,) = _CRC.unpack_from(data, FRAME_HEADER_SIZE - 4)
    if size > FRAME_PAYLOAD_MAX:
        return None
    return FrameHeader(
        payload_size=size, sequence=sequence, durable=durable, count=count, checksum=checksum
    )


def is_whole(header: FrameHeader, frame: bytes) -> bool:
    """Whether `frame`, header and payload, is what its checksum says."""
    end = FRAME_HEADER_SIZE + header.payload_size
    if len(frame) < end:
        return False
    view = memoryview(frame)
    found = crc32(view[FRAME_HEADER_SIZE:end], crc32(view[: FRAME_HEADER_SIZE - 4]))
    return found == header.checksum


def unpack_records(header: FrameHeader, frame: bytes, position: int) -> Iterator[FoundRecord]:
    """The records of a whole frame that begins at `position` in the log."""
    view = memoryview(frame)
    at = FRAME_HEADER_SIZE
    for _ in range(header.count):
        size, kind = _RECORD.unpack_from(frame, at)
        at += RECORD_HEADER_SIZE
        yield FoundRecord(kind, position + at, view[at : at + size])
        at += size
