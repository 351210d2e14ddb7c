"""Reads one segment of the log frame by frame, and judges how it ends.

Written from the package's docstring, not from what writes the log; part of `inspection`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID
from zlib import crc32

from merq.store.findings import End, Findings, SegmentReport
from merq.store.reading import FRAME_SIZE_MIN, Contents, FrameHead, FrameReader, mismatch
from merq.store.viewing import StoreView, ViewedFile

VERSION: Final = 2
HEADER_SIZE: Final = 64
SETTLE_ROUNDS_MAX: Final = 50
"""How often the end of a log is looked at that changes each time; then it is growing."""

_END_OF_SEGMENT: Final = 1 << 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """From where on opening reads the log, and the checkpoint that says so; empty if none does.

    `oldest` is the first segment that is needed, 0 if that is not known.
    """

    file: str
    position: int
    sequence: int
    oldest: int = 0

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose store it is, and the key of its frames' checksums, as its identity says."""

    store_id: UUID
    created: int
    key: int


class SegmentScan:
    """One reading of one segment. Afterwards `following` is the next frame's number, if known."""

    def __init__(
        self,
        view: StoreView,
        file: ViewedFile,
        owner: Owner | None,
        start: Start | None,
        findings: Findings,
        settle_s: float,
    ) -> None:
        self.following: int | None = None
        self._view = view
        self._file = file
        self._owner = owner
        self._start = start
        self._findings = findings
        self._settle_s = settle_s
        self._reader = FrameReader(file, None if owner is None else owner.key)
        self._is_newest = file is view.segments[-1]
        self._next = 0
        self._frames = self._records = 0
        self._kinds: Counter[int] = Counter()
        self._first: int | None = None
        self._last: int | None = None

    def run(self, expected: int | None) -> SegmentReport:
        """Reads it all. Its first frame ought to be the `expected` one, if that is known."""
        used, end = self._examine(expected)
        size = self._reader.size
        self._findings.advance(size)
        return SegmentReport(
            number=self._file.number,
            file=self._file.name,
            size=size,
            used=min(used, size),
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
            # Nor is there a store whose first segment was not durable.
            is_known = is_known or number == 1
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
            self._reader.look_anew()
            has_frame = next(self._reader.magics(HEADER_SIZE), None) is not None
            head = self._file.read(0, HEADER_SIZE)
            store_id = None if self._owner is None else self._owner.store_id
            problem = header_problem(head, b"MERQSEGM", store_id, owner_at=24)
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
        is_short = self._reader.size < stop
        while at < stop:
            found = self._reader.found_at(at, self._next)
            reason = f"{found}; {start.file} contains the log up to {stop}"
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
            reason = f"{self._reader.found_at(at, self._next)}; the log went on after it"
            self._findings.corrupt(self._file.name, at, reason, read_at_opening=is_read)
            if later is None:
                return at, end
            self._next = later.sequence
            at = later.at

    def _judge(self, at: int) -> tuple[End, FrameHead | None]:
        """What a place without the next frame is; if it is corrupt, also where frames go on."""
        if self._reader.is_empty_from(at):
            return End.CLEAN, None
        if not self._is_newest:
            return End.CORRUPT, next(self._later(at), None)
        before: int | None = None
        for _ in range(SETTLE_ROUNDS_MAX):
            # What would show that this place was durable is looked for before the place is read
            # again: another process may have finished writing here meanwhile.
            is_followed = self._view.has_later_segment(self._file.number)
            later, is_durable = self._proof(at)
            self._reader.look_anew()
            found = self._reader.whole_at(at)
            if found is not None and found[0].sequence == self._next:
                return End.GROWING, None
            if self._reader.is_empty_from(at):
                return End.CLEAN, None
            if is_followed or is_durable:
                return End.CORRUPT, later
            now = self._reader.checksum(at, self._reader.size)
            if now == before:
                return End.TORN, None
            before = now
            time.sleep(self._settle_s)
        return End.GROWING, None

    def _proof(self, at: int) -> tuple[FrameHead | None, bool]:
        """The next frame, and whether one says that the log was durable beyond `at`."""
        here = self._file.number << 32 | at
        first: FrameHead | None = None
        for frame in self._later(at):
            first = first or frame
            if frame.durable > here:
                return first, True
        return first, False

    def _walk(self, at: int, stop: int) -> int:
        """Reads frames that follow each other; gives where the next is not, or lies beyond."""
        while at < stop:
            found = self._reader.whole_at(at)
            if found is None or found[0].sequence != self._next:
                break
            self._take(*found)
            at = found[0].end
        return at

    def _take(self, frame: FrameHead, contents: Contents) -> None:
        """Counts a frame and its records."""
        self._first = frame.sequence if self._first is None else self._first
        self._last = frame.sequence
        self._next = frame.sequence + 1
        self._frames += 1
        self._records += contents.kinds.total()
        self._kinds.update(contents.kinds)
        if self._is_read_at_opening(frame.at):
            for kind in contents.kinds:
                self._findings.judge_record(self._file.name, frame.at, kind)
        for at, what in contents.odd:
            reason = f"frame {frame.sequence}: {what}, which does not exist"
            self._findings.corrupt(self._file.name, at, reason, read_at_opening=False)
        if not self._reader.filling_is_zeros(frame):
            self._findings.notes.append(
                f"{self._file.name} at offset {frame.payload_end}: the filling of frame "
                f"{frame.sequence} is not zeros; nothing is lost"
            )

    def _is_read_at_opening(self, at: int) -> bool:
        start = self._start
        return start is None or self._file.number << 32 | at >= start.position

    def _later(self, at: int) -> Iterator[FrameHead]:
        """Headers of frames after `at` that are later than the next one, and can be true.

        A header says how far the log was durable even if its own frame is not whole.
        """
        end = 0
        for place in self._reader.magics(at + 1):
            frame = self._reader.head_at(place) if place >= end else None
            if (
                frame is not None
                and 0 < frame.sequence - self._next <= (place - at) // FRAME_SIZE_MIN
                and frame.durable <= self._file.number << 32 | place
            ):
                yield frame
                end = frame.end
