"""Reads one segment of the log frame by frame, and judges how it ends.

Written from the package's docstring, not from what writes the log; part of `inspection`.
"""

from __future__ import annotations

import struct
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID
from zlib import crc32

from merq.store.findings import End, Findings, SegmentReport
from merq.store.viewing import CHUNK, StoreView, ViewedFile

VERSION: Final = 1
HEADER_SIZE: Final = 64
SETTLE_ROUNDS_MAX: Final = 50
"""How often the end of a log is looked at that changes each time; then it is growing."""

_ALIGNMENT: Final = 8
_MAGIC: Final = b"FRAM"
_FRAME: Final = struct.Struct("<4sIQQII")
_RECORD: Final = struct.Struct("<IB3s")
_FRAME_SIZE_MIN: Final = _FRAME.size + _RECORD.size
_END_OF_SEGMENT: Final = 1 << 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """From where on opening reads the log, and the checkpoint that says so; empty if none does."""

    file: str
    position: int
    sequence: int

    @property
    def number(self) -> int:
        """The segment."""
        return self.position >> 32

    @property
    def offset(self) -> int:
        """The place in the segment."""
        return self.position & 0xFFFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderProblem:
    """Where a header is wrong, and why; it is `lacking` if it is no header at all."""

    offset: int
    reason: str
    lacking: bool


def header_problem(
    head: bytes, magic: bytes, store_id: UUID | None, owner_at: int
) -> HeaderProblem | None:
    """What is wrong with a segment's or checkpoint's header, which has its owner at `owner_at`."""
    if len(head) < HEADER_SIZE:
        reason = f"{len(head)} bytes are here, a header has {HEADER_SIZE}"
        return HeaderProblem(offset=0, reason=reason, lacking=True)
    if head[:8] != magic:
        reason = f"{head[:8]!r} is here, a header begins with {magic!r}"
        return HeaderProblem(offset=0, reason=reason, lacking=True)
    found = int.from_bytes(head[60:], "little")
    if found != crc32(head[:60]):
        reason = mismatch(found, crc32(head[:60]))
        return HeaderProblem(offset=60, reason=reason, lacking=True)
    version = int.from_bytes(head[8:12], "little")
    if version != VERSION:
        reason = f"version {version}; this program knows {VERSION}"
        return HeaderProblem(offset=8, reason=reason, lacking=False)
    owner = head[owner_at : owner_at + 16]
    if store_id is not None and owner != store_id.bytes:
        reason = f"it belongs to store {UUID(bytes=owner)}, this is store {store_id}"
        return HeaderProblem(offset=owner_at, reason=reason, lacking=False)
    return None


def mismatch(found: int, expected: int) -> str:
    """A checksum that is not right."""
    return f"the checksum is {found:#010x}, of what is here it would be {expected:#010x}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """A whole frame."""

    at: int
    payload_size: int
    sequence: int
    durable: int
    count: int

    @property
    def payload_end(self) -> int:
        return self.at + _FRAME.size + self.payload_size

    @property
    def end(self) -> int:
        return self.payload_end + -self.payload_size % _ALIGNMENT


class SegmentScan:
    """One reading of one segment. Afterwards `following` is the next frame's number, if known."""

    def __init__(
        self,
        view: StoreView,
        file: ViewedFile,
        store_id: UUID | None,
        start: Start | None,
        findings: Findings,
        settle_s: float,
    ) -> None:
        self.following: int | None = None
        self._view = view
        self._file = file
        self._store_id = store_id
        self._start = start
        self._findings = findings
        self._settle_s = settle_s
        self._size = file.size()
        self._is_newest = file is view.segments[-1]
        self._window = b""
        self._window_at = 0
        self._next = 0
        self._frames = self._records = 0
        self._kinds: Counter[int] = Counter()
        self._first: int | None = None
        self._last: int | None = None

    def run(self, expected: int | None) -> SegmentReport:
        """Reads it all. Its first frame ought to be the `expected` one, if that is known."""
        used, end = self._examine(expected)
        self._findings.advance(self._size)
        return SegmentReport(
            number=self._file.number,
            file=self._file.name,
            size=self._size,
            used=min(used, self._size),
            frames=self._frames,
            records=self._records,
            kinds=tuple(sorted(self._kinds.items())),
            first_sequence=self._first,
            last_sequence=self._last,
            end=end,
        )

    def _examine(self, expected: int | None) -> tuple[int, End]:
        number, start = self._file.number, self._start
        head, problem, has_frame = self._header()
        if problem is not None:
            # A checkpoint that lies in it shows that the segment had become durable.
            is_known = start is not None and start.file != "" and number <= start.number
            if self._is_newest and problem.lacking and not is_known and not has_frame:
                self.following = expected
                return 0, End.BEGUN
            self._findings.corrupt(
                self._file.name, problem.offset, problem.reason, read_at_opening=True
            )
            return 0, End.CORRUPT
        self._next = int.from_bytes(head[40:48], "little")
        if expected is not None and self._next != expected:
            reason = f"it begins with frame {self._next}, but frame {expected} is missing"
            is_read = start is None or number > start.number or not start.file
            self._findings.corrupt(self._file.name, 40, reason, read_at_opening=is_read)
        if start is not None and number == start.number and start.file:
            return self._read_on(self._read_contained(start))
        return self._read_on(HEADER_SIZE)

    def _header(self) -> tuple[bytes, HeaderProblem | None, bool]:
        """The header, what is wrong with it, and whether a frame came after it.

        The newest segment gets a second look: another process may just be writing its header.
        """
        head, problem, has_frame = b"", None, False
        for pause_s in (0.0, self._settle_s):
            time.sleep(pause_s)
            self._size = self._file.size()
            has_frame = next(self._magics(HEADER_SIZE), None) is not None
            head = self._file.read(0, HEADER_SIZE)
            problem = header_problem(head, b"MERQSEGM", self._store_id, owner_at=24)
            if problem is None or not self._is_newest:
                break
        found = int.from_bytes(head[16:24], "little")
        if problem is None and found != self._file.number:
            reason = f"it is segment {found}, the file's name says {self._file.number}"
            problem = HeaderProblem(offset=16, reason=reason, lacking=False)
        return head, problem, has_frame

    def _read_contained(self, start: Start) -> int:
        """Reads up to the checkpoint's place, which opening does not; gives where to read on."""
        stop = start.offset
        at = self._walk(HEADER_SIZE, stop)
        if at == stop and self._next != start.sequence:
            reason = f"it says that frame {start.sequence} comes next, in the log {self._next} does"
            self._findings.corrupt(start.file, 40, reason, read_at_opening=True)
        elif at > stop:
            reason = f"its place in the log, {stop} in {self._file.name}, is within a frame"
            self._findings.corrupt(start.file, 32, reason, read_at_opening=True)
        if at >= stop:
            return at
        is_short = self._size < stop
        while at < stop:
            reason = f"{self._found_at(at)}; {start.file} contains the log up to {stop}"
            self._findings.corrupt(self._file.name, at, reason, read_at_opening=is_short)
            frame = next(self._later(at), None)
            if frame is None or frame.at >= stop:
                break
            self._next = frame.sequence
            at = self._walk(frame.at, stop)
        self._next = start.sequence
        return stop

    def _read_on(self, at: int) -> tuple[int, End]:
        """Reads to the end of the frames; gives that place and what is there."""
        number, start = self._file.number, self._start
        is_read = start is None or number >= start.number
        while True:
            at = self._walk(at, _END_OF_SEGMENT)
            end, later = self._judge(at)
            if end is not End.CORRUPT:
                self.following = self._next
                return at, end
            reason = f"{self._found_at(at)}; the log went on after it"
            self._findings.corrupt(self._file.name, at, reason, read_at_opening=is_read)
            if later is None:
                return at, end
            self._next = later.sequence
            at = later.at

    def _judge(self, at: int) -> tuple[End, _Frame | None]:
        """What a place without the next frame is; if it is corrupt, also where frames go on."""
        if self._is_empty_from(at):
            return End.CLEAN, None
        if not self._is_newest:
            return End.CORRUPT, next(self._later(at), None)
        before: int | None = None
        for _ in range(SETTLE_ROUNDS_MAX):
            # What would show that this place was durable is looked for before the place is read
            # again: another process may have finished writing here meanwhile.
            is_followed = self._view.has_later_segment(self._file.number)
            later, is_durable = self._proof(at)
            self._size = self._file.size()
            self._window = b""
            frame = self._frame_at(at)
            if frame is not None and frame.sequence == self._next:
                return End.GROWING, None
            if self._is_empty_from(at):
                return End.CLEAN, None
            if is_followed or is_durable:
                return End.CORRUPT, later
            now = self._checksum(at, self._size, 0)
            if now == before:
                return End.TORN, None
            before = now
            time.sleep(self._settle_s)
        return End.GROWING, None

    def _proof(self, at: int) -> tuple[_Frame | None, bool]:
        """The next whole frame, and whether one says that the log was durable beyond `at`."""
        here = self._file.number << 32 | at
        first: _Frame | None = None
        for frame in self._later(at):
            first = first or frame
            if frame.durable > here:
                return first, True
        return first, False

    def _walk(self, at: int, stop: int) -> int:
        """Reads frames that follow each other; gives where the next is not, or lies beyond."""
        while at < stop:
            frame = self._frame_at(at)
            if frame is None or frame.sequence != self._next:
                break
            self._take(frame)
            at = frame.end
        return at

    def _take(self, frame: _Frame) -> None:
        """Counts a frame and its records."""
        self._first = frame.sequence if self._first is None else self._first
        self._last = frame.sequence
        self._next = frame.sequence + 1
        self._frames += 1
        at, end = frame.at + _FRAME.size, frame.payload_end
        for index in range(frame.count):
            head = self._read(at, min(_RECORD.size, end - at))
            size, kind, zeros = _RECORD.unpack(head.ljust(_RECORD.size, b"\0"))
            if len(head) < _RECORD.size or size > end - at - _RECORD.size or not kind or any(zeros):
                what = f"record {index + 1} of {frame.count} of frame {frame.sequence}"
                self._misshapen(at, f"{what}: kind {kind}, {size} bytes, {end - at} are left")
                return
            self._records += 1
            self._kinds[kind] += 1
            at += _RECORD.size + size
        if at != end or not frame.count:
            what = f"frame {frame.sequence} has {frame.count} records"
            self._misshapen(at, f"{what} and {end - at} bytes after them")
        elif any(self._read(end, frame.end - end)):
            self._findings.notes.append(
                f"{self._file.name} at offset {end}: the filling of frame {frame.sequence} is not "
                "zeros; nothing is lost"
            )

    def _misshapen(self, at: int, reason: str) -> None:
        is_read = self._start is None or (self._file.number << 32 | at) >= self._start.position
        self._findings.corrupt(self._file.name, at, reason, read_at_opening=is_read)

    def _frame_at(self, at: int) -> _Frame | None:
        """The frame that begins there, if all of it is there and its checksum is right."""
        head = self._read(at, _FRAME.size)
        if len(head) < _FRAME.size or head[:4] != _MAGIC:
            return None
        _, size, sequence, durable, count, checksum = _FRAME.unpack(head)
        frame = _Frame(at=at, payload_size=size, sequence=sequence, durable=durable, count=count)
        if frame.end > self._size:
            return None
        found = self._checksum(at + _FRAME.size, frame.payload_end, crc32(head[:28]))
        return frame if found == checksum else None

    def _found_at(self, at: int) -> str:
        """What is there instead of the next frame."""
        head = self._read(at, _FRAME.size)
        if len(head) < _FRAME.size or head[:4] != _MAGIC:
            return f"{head[:4]!r} is here, frame {self._next} begins with {_MAGIC!r}"
        _, size, sequence, _, _, checksum = _FRAME.unpack(head)
        end = at + _FRAME.size + size
        if end > self._size:
            return f"a frame of {size} bytes is here, the file ends {end - self._size} before it"
        found = self._checksum(at + _FRAME.size, end, crc32(head[:28]))
        if found != checksum:
            return f"frame {self._next} is expected here and {mismatch(checksum, found)}"
        return f"frame {sequence} is here, frame {self._next} is expected"

    def _later(self, at: int) -> Iterator[_Frame]:
        """Whole frames after `at` that are later than the next one, and can be true.

        A message may contain bytes that look like a frame.
        """
        end = 0
        for place in self._magics(at + 1):
            frame = self._frame_at(place) if place >= end else None
            if (
                frame is not None
                and 0 < frame.sequence - self._next <= (place - at) // _FRAME_SIZE_MIN
                and frame.durable <= self._file.number << 32 | place
            ):
                yield frame
                end = frame.end

    def _magics(self, at: int) -> Iterator[int]:
        """Where frames may begin."""
        at += -at % _ALIGNMENT
        while data := self._file.read(at, CHUNK):
            found = data.find(_MAGIC)
            while found >= 0:
                if found % _ALIGNMENT == 0:
                    yield at + found
                found = data.find(_MAGIC, found + 1)
            # Only the end of the file cuts a piece elsewhere than at a multiple of the alignment.
            at += len(data) + -len(data) % _ALIGNMENT

    def _is_empty_from(self, at: int) -> bool:
        """Whether there are zeros to the end of the segment."""
        while at < self._size:
            data = self._file.read(at, min(CHUNK, self._size - at))
            if data.count(0) != len(data):
                return False
            at += len(data) or self._size
        return True

    def _checksum(self, at: int, end: int, checksum: int) -> int:
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
