"""Frames and records: bytes to values and back. No file is touched here.

The forms are described in the package's docstring. Whatever happens once a record is plain code
without dataclasses, so that the optional compiled build can take this module.
"""

from __future__ import annotations

import builtins
import struct
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias
from zlib import crc32

FRAME_MAGIC: Final = b"FRAM"
FRAME_HEADER_SIZE: Final = 40
RECORD_HEADER_SIZE: Final = 12
FRAME_ALIGNMENT: Final = 8
FRAME_SIZE_MIN: Final = 56
"""A frame with one record that has no data."""
FRAME_PAYLOAD_MAX: Final = 1 << 30
"""The most that is appended in one piece: 1 GiB."""

KIND_MAX: Final = 255

_CHECKED_SIZE: Final = FRAME_HEADER_SIZE - 4
_FRAME: Final = struct.Struct("<4sIQQII4x")
_SEALED: Final = struct.Struct("<4sIQQII4xI")
_CRC: Final = struct.Struct("<I")
_RECORD: Final = struct.Struct("<IIB3x")


_Header = tuple[bytes, int, int, int, int, int, int]


class Record(NamedTuple):
    """A kind, from 1 to 255, and data."""

    kind: int
    data: bytes


class FoundRecord(NamedTuple):
    """A record as it was read, with the position of its data."""

    kind: int
    position: int
    data: builtins.memoryview  # the compiled build finds this type only by its module


class Mark(NamedTuple):
    """What the header of a frame says of the log: it came after all that is before `durable`."""

    sequence: int
    durable: int


class Frame:
    """A whole frame as it was read; the log was known to be durable up to `durable` then."""

    __slots__ = ("_records", "durable", "position", "sequence", "size")

    def __init__(
        self, position: int, size: int, sequence: int, durable: int, records: list[FoundRecord]
    ) -> None:
        self.position = position
        self.size = size
        self.sequence = sequence
        self.durable = durable
        self._records = records

    def records(self) -> list[FoundRecord]:
        """What was appended in one piece."""
        return self._records


Entry: TypeAlias = (
    tuple[int, bytes] | tuple[int, bytes, bytes] | tuple[int, list[bytes], list[bytes], int]
)
"""A record to be written: its kind and its data, which may be in two parts.

Or many of one kind: the first parts, the second parts, and the size of all of them together.
"""


def frame_size(payload: int) -> int:
    """The size of a frame with its header and filling."""
    return FRAME_HEADER_SIZE + payload + -payload % FRAME_ALIGNMENT


def pack_frame(
    records: Sequence[Entry], sequence: int, durable: int, key: int, position: int
) -> tuple[bytes, tuple[int, ...]]:
    """A whole frame that will be at `position`, and the positions of its records' data."""
    assert records, "a frame has at least one record"
    pack = _RECORD.pack
    parts: list[bytes] = [b""]
    positions: list[int] = []
    begin = position + FRAME_HEADER_SIZE
    at = begin
    heads: list[bytes] = []
    for record in records:
        if len(record) == 4:
            at = _pack_run(record, at, parts, heads, positions)
            continue
        kind, data = record[0], record[1]
        assert 0 < kind <= KIND_MAX, "kind 0 does not exist"
        size, checksum = len(data), crc32(data)
        if len(record) == 3:
            more = record[2]
            size += len(more)
            checksum = crc32(more, checksum)
            head = pack(size, checksum, kind)
            parts += (head, data, more)
        else:
            head = pack(size, checksum, kind)
            parts += (head, data)
        heads.append(head)
        at += RECORD_HEADER_SIZE
        positions.append(at)
        at += size
    payload = at - begin
    assert payload <= FRAME_PAYLOAD_MAX, "the caller keeps to the limit"
    checksum = crc32(heads[0] if len(heads) == 1 else b"".join(heads))
    head = _FRAME.pack(FRAME_MAGIC, payload, sequence, durable, len(positions), checksum)
    parts[0] = head + _CRC.pack(crc32(head, key))
    parts.append(bytes(-payload % FRAME_ALIGNMENT))
    return b"".join(parts), tuple(positions)


def _pack_run(
    run: tuple[int, list[bytes], list[bytes], int],
    at: int,
    parts: list[bytes],
    heads: list[bytes],
    positions: list[int],
) -> int:
    """Adds many records of one kind, the first of them at `at`; gives where they end."""
    kind, firsts, seconds, _ = run
    assert 0 < kind <= KIND_MAX, "kind 0 does not exist"
    pack = _RECORD.pack
    for data, more in zip(firsts, seconds, strict=True):
        size = len(data) + len(more)
        checksum = crc32(data)
        if more:
            checksum = crc32(more, checksum)
        head = pack(size, checksum, kind)
        parts += (head, data, more)
        heads.append(head)
        at += RECORD_HEADER_SIZE
        positions.append(at)
        at += size
    return at


def read_mark(log: memoryview, at: int, key: int) -> Mark | None:
    """What the header there says of the log, or None if it is none that this store has written."""
    header = _header(log, at, key)
    return None if header is None else Mark(header[2], header[3])


def read_frame(log: memoryview, at: int, key: int, position: int) -> Frame | None:
    """The frame that begins at `at`, which is `position` in the log, or None if it is not whole."""
    header = _header(log, at, key)
    if header is None:
        return None
    _, payload, sequence, durable, count, checksum, _ = header
    size = frame_size(payload)
    if at + size > len(log):
        return None
    begin = at + FRAME_HEADER_SIZE
    records = _records(log, begin, begin + payload, count, checksum, position - at)
    return None if records is None else Frame(position, size, sequence, durable, records)


def record_matches(head: bytes, data: bytes) -> bool:
    """Whether data is what the header of its record, with which `head` begins, says."""
    if len(head) < RECORD_HEADER_SIZE:
        return False
    size, checksum, _ = _RECORD.unpack_from(head)
    return bool(size == len(data) and checksum == crc32(data))


def checked_records(
    piece: bytes, begin: int, positions: Sequence[int], sizes: Sequence[int]
) -> list[bytes | None]:
    """The data of the records at these positions, out of a piece of the log that begins there.

    None for one that is not of this size, or not as it was written.
    """
    unpack = _RECORD.unpack_from
    found: list[bytes | None] = []
    for position, size in zip(positions, sizes, strict=True):
        start = position - begin
        data = piece[start : start + size]
        if start <= len(piece):
            written, checksum, _ = unpack(piece, start - RECORD_HEADER_SIZE)
            if written == size == len(data) and checksum == crc32(data):
                found.append(data)
                continue
        found.append(None)
    return found


def _header(
    log: memoryview, at: int, key: int
) -> tuple[bytes, int, int, int, int, int, int] | None:
    """Magic, size of the payload, sequence, mark, number of records and the two checksums."""
    if at + FRAME_HEADER_SIZE > len(log):
        return None
    header: _Header = _SEALED.unpack_from(log, at)
    if header[0] != FRAME_MAGIC or header[6] != crc32(log[at : at + _CHECKED_SIZE], key):
        return None
    return header


def _records(
    log: memoryview, at: int, end: int, count: int, checksum: int, base: int
) -> list[FoundRecord] | None:
    """The records there, `base` being the position of the log's first byte, if all are whole."""
    unpack = _RECORD.unpack_from
    new = tuple.__new__  # FoundRecord(…) takes twice as long
    records: list[FoundRecord] = []
    found = 0
    for _ in range(count):
        start = at + RECORD_HEADER_SIZE
        if start > end:
            return None
        size, expected, kind = unpack(log, at)
        found = crc32(log[at:start], found)
        at = start + size
        data = log[start:at]
        if expected != crc32(data):
            return None
        records.append(new(FoundRecord, (kind, base + start, data)))
    return records if at == end and found == checksum else None
