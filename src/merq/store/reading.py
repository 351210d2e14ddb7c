"""Reads frames out of a segment, whatever its bytes claim; memory is bounded.

Written from the package's docstring, not from what writes the log; part of `inspection`.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from zlib import crc32

from merq.store.viewing import CHUNK, ViewedFile

ALIGNMENT: Final = 8
FRAME_SIZE_MIN: Final = 40 + 12 + 4
"""Header, the header of one record without data, and filling."""

_MAGIC: Final = b"FRAM"
_FRAME: Final = struct.Struct("<4sIQQIIII")
_RECORD: Final = struct.Struct("<IIB3s")
_SEALED_SIZE: Final = _FRAME.size - 4


def mismatch(found: int, expected: int) -> str:
    """A checksum that is not right."""
    return f"the checksum is {found:#010x}, of what is here it would be {expected:#010x}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameHead:
    """A frame's header that is as it was written; what follows may not be."""

    at: int
    payload_size: int
    sequence: int
    durable: int
    count: int
    records_checksum: int

    @property
    def payload_end(self) -> int:
        """Where the last record's data ends."""
        return self.at + _FRAME.size + self.payload_size

    @property
    def end(self) -> int:
        """Where the next frame begins."""
        return self.payload_end + -self.payload_size % ALIGNMENT


@dataclass(slots=True, kw_only=True)
class Contents:
    """What is in a frame: records by kind if there is no `problem`, and what is `odd` about them.

    What is odd has the right checksums, so that whoever wrote it must have been wrong.
    """

    problem: str = ""
    kinds: Counter[int] = field(default_factory=Counter)
    odd: list[tuple[int, str]] = field(default_factory=list)


class FrameReader:
    """The frames of one segment. Without a key headers are believed if all of the frame is whole.

    Attributes:
        size: How long the file was when it was last looked at.
    """

    def __init__(self, file: ViewedFile, key: int | None) -> None:
        self.size = file.size()
        self._file = file
        self._key = key
        self._window = b""
        self._window_at = 0

    def look_anew(self) -> None:
        """Another process may have written meanwhile."""
        self.size = self._file.size()
        self._window = b""

    def head_at(self, at: int) -> FrameHead | None:
        """The header there, if this store has written it."""
        head = self._read(at, _FRAME.size)
        if len(head) < _FRAME.size or head[:4] != _MAGIC:
            return None
        _, size, sequence, durable, count, records_checksum, _, checksum = _FRAME.unpack(head)
        if self._key is not None and checksum != crc32(head[:_SEALED_SIZE], self._key):
            return None
        frame = FrameHead(
            at=at,
            payload_size=size,
            sequence=sequence,
            durable=durable,
            count=count,
            records_checksum=records_checksum,
        )
        return None if self._key is None and self.contents(frame).problem else frame

    def whole_at(self, at: int) -> tuple[FrameHead, Contents] | None:
        """The frame there and what is in it, if all of it is there and as it was written."""
        frame = self.head_at(at)
        if frame is None:
            return None
        contents = self.contents(frame)
        return None if contents.problem else (frame, contents)

    def contents(self, frame: FrameHead) -> Contents:
        """Reads the records, or finds why they are not what was written."""
        contents = Contents()
        contents.problem = self._read_records(frame, contents)
        return contents

    def _read_records(self, frame: FrameHead, contents: Contents) -> str:
        at, end = frame.at + _FRAME.size, frame.payload_end
        if frame.end > self.size:
            lacking = frame.end - self.size
            return f"a frame of {frame.payload_size} bytes, the file ends {lacking} before it"
        checksum = 0
        for index in range(1, frame.count + 1):
            head = self._read(at, min(_RECORD.size, end - at))
            left = end - at - _RECORD.size
            size, expected, kind, zeros = _RECORD.unpack(head.ljust(_RECORD.size, b"\0"))
            if size > left:
                return f"record {index} of {frame.count} has {size} bytes, {left} are left"
            checksum = crc32(head, checksum)
            at += _RECORD.size
            found = self.checksum(at, at + size)
            if found != expected:
                return f"record {index} of {frame.count}: {mismatch(expected, found)}"
            if not kind or any(zeros):
                contents.odd.append((at - _RECORD.size, f"record {index} is of kind {kind}"))
            contents.kinds[kind] += 1
            at += size
        if at != end or not frame.count:
            return f"{frame.count} records and {end - at} bytes after them"
        if checksum != frame.records_checksum:
            return f"the headers of its records: {mismatch(frame.records_checksum, checksum)}"
        return ""

    def filling_is_zeros(self, frame: FrameHead) -> bool:
        """Whether what fills the frame up to its alignment is as it was written."""
        return not any(self._read(frame.payload_end, frame.end - frame.payload_end))

    def found_at(self, at: int, expected: int) -> str:
        """What is there instead of the `expected` frame."""
        head = self._read(at, _FRAME.size)
        if len(head) < _FRAME.size or head[:4] != _MAGIC:
            return f"{head[:4]!r} is here, frame {expected} begins with {_MAGIC!r}"
        *_, sequence, _, _, _, _, checksum = _FRAME.unpack(head)
        found = crc32(head[:_SEALED_SIZE], self._key or 0)
        if self._key is not None and checksum != found:
            return f"frame {expected} is expected here and {mismatch(checksum, found)}"
        frame = self.head_at(at)
        problem = "it is not whole" if frame is None else self.contents(frame).problem
        if problem:
            return f"frame {sequence} is here: {problem}"
        return f"frame {sequence} is here, frame {expected} is expected"

    def magics(self, at: int) -> Iterator[int]:
        """Where frames may begin."""
        at += -at % ALIGNMENT
        while data := self._file.read(at, CHUNK):
            found = data.find(_MAGIC)
            while found >= 0:
                if found % ALIGNMENT == 0:
                    yield at + found
                found = data.find(_MAGIC, found + 1)
            # Only the end of the file cuts a piece elsewhere than at a multiple of the alignment.
            at += len(data) + -len(data) % ALIGNMENT

    def is_empty_from(self, at: int) -> bool:
        """Whether there are zeros to the end of the segment."""
        while at < self.size:
            data = self._file.read(at, min(CHUNK, self.size - at))
            if data.count(0) != len(data):
                return False
            at += len(data) or self.size
        return True

    def checksum(self, at: int, end: int) -> int:
        """The checksum of the bytes there."""
        checksum = 0
        while at < end:
            data = self._read(at, min(CHUNK, end - at))
            if not data:
                break
            checksum = crc32(data, checksum)
            at += len(data)
        return checksum

    def _read(self, at: int, size: int) -> bytes:
        """Reads through a window, so that small frames do not cost a call each."""
        begin = at - self._window_at
        if begin < 0 or begin + size > len(self._window):
            self._window = self._file.read(at, CHUNK)
            self._window_at = at
            begin = 0
        return self._window[begin : begin + size]
