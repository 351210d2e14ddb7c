"""The log: frames are appended to segments, made durable on demand, and read by position.

One thread appends and syncs at a time; whoever has several lets them take turns. Reading is safe
beside that, and so is the `run` of a sync that has begun. What a segment still holds that is needed
is counted here and decided by the caller, who knows what lives.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, NamedTuple
from uuid import UUID
from zlib import crc32

from merq.errors import StoreCorrupt, StoreFailed, StoreFull
from merq.store.disk import Disk, LogFile
from merq.store.records import (
    FRAME_PAYLOAD_MAX,
    RECORD_HEADER_SIZE,
    Entry,
    frame_size,
    pack_frame,
    record_matches,
)

VERSION: Final = 2
SEGMENT_MAGIC: Final = b"MERQSEGM"
SEGMENT_HEADER_SIZE: Final = 64
SEGMENT_SIZE: Final = 64 << 20
"""When a segment has grown to this, the next begins."""
RESERVE_STEP: Final = 4 << 20
"""Room is made ahead in steps of this size, so that a full disk is noticed before a write."""

_SEGMENT: Final = struct.Struct("<8sI4xQ16sQ12x")


def position_of(segment: int, offset: int) -> int:
    """A place in the log as one number."""
    return segment << 32 | offset


def segment_name(number: int) -> str:
    """The file of a segment."""
    return f"log/{number:016x}.segment"


def pack_segment_header(number: int, store_id: UUID, first_sequence: int) -> bytes:
    """The first 64 bytes of a segment."""
    head = _SEGMENT.pack(SEGMENT_MAGIC, VERSION, number, store_id.bytes, first_sequence)
    return head + crc32(head).to_bytes(4, "little")


def begin_segment(disk: Disk, number: int, store_id: UUID, first_sequence: int) -> LogFile:
    """Makes the file of a new segment, durably, or none at all.

    Raises:
        StoreFull: There is no room.
        StoreFailed: The disk failed.
    """
    name = segment_name(number)
    file = disk.create(name)
    try:
        file.write(0, pack_segment_header(number, store_id, first_sequence))
        file.sync()
        disk.sync_folder("log")
    except StoreFull:
        file.close()
        disk.remove(name)
        # The log goes on in the segment before, which must not have a successor after a crash.
        disk.sync_folder("log")
        raise
    except StoreFailed:
        file.close()
        raise
    return file


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """How the log is cut into files."""

    segment_size: int = SEGMENT_SIZE
    reserve_step: int = RESERVE_STEP


@dataclass(slots=True, kw_only=True)
class Segment:
    """One file of the log. `used` is where its frames end, `living` what is still needed."""

    number: int
    file: LogFile
    used: int
    reserved: int
    living: int = 0


class Appended(NamedTuple):
    """Where a frame went: it is durable when the log is durable up to `end`."""

    sequence: int
    end: int
    positions: tuple[int, ...]


class _Syncs:
    """One sync at a time, and none after one that failed.

    A system tells of lost writes once: the sync after a failed one succeeds, and means nothing.
    """

    def __init__(self, durable: int) -> None:
        self._turn = Lock()
        self._failure: StoreFailed | None = None
        self._durable = durable

    def sync(self, file: LogFile, end: int) -> None:
        with self._turn:
            self._sync(file, end)

    def sync_unless_done(self, file: LogFile, end: int) -> None:
        with self._turn:
            # The log may have gone on to the next segment meanwhile, and this file be gone.
            if self._durable < end:
                self._sync(file, end)

    def _sync(self, file: LogFile, end: int) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            file.sync()
        except StoreFailed as wrong:
            self._failure = wrong
            raise
        self._durable = max(self._durable, end)


@dataclass(slots=True, kw_only=True)
class Syncing:
    """A sync under way: the log will be durable up to `end`, unless it fails."""

    file: LogFile
    end: int
    syncs: _Syncs
    failure: StoreFailed | None = None

    def run(self) -> None:
        """Waits for the disk."""
        try:
            self.syncs.sync_unless_done(self.file, self.end)
        except StoreFailed as wrong:
            self.failure = wrong


@dataclass(slots=True, kw_only=True)
class LogState:
    """Where recovery found the end of the log; the log goes on from there.

    `key` is what the checksums of this store's frames start from.
    """

    store_id: UUID
    key: int
    segments: list[Segment] = field(default_factory=list)
    next_sequence: int = 1


class Log:
    """An append-only log over the segments of a disk."""

    def __init__(self, disk: Disk, state: LogState, settings: LogSettings | None = None) -> None:
        self._disk = disk
        self._store_id = state.store_id
        self._key = state.key
        self._settings = settings or LogSettings()
        self._segments = {segment.number: segment for segment in state.segments}
        self._sequence = state.next_sequence
        self._failed: StoreFailed | None = None
        assert state.segments, "a store has a segment from its first moment on"
        self._tail = state.segments[-1]
        self._durable = self.end
        self._syncs = _Syncs(self._durable)

    @property
    def end(self) -> int:
        """Where the next frame will begin."""
        return position_of(self._tail.number, self._tail.used)

    @property
    def durable(self) -> int:
        """Everything before this position would survive power loss."""
        return self._durable

    @property
    def next_sequence(self) -> int:
        """The sequence number that the next frame gets."""
        return self._sequence

    def append(self, records: Sequence[Entry]) -> Appended:
        """Writes one frame; it is not durable before `sync` has returned.

        Raises:
            StoreFull: There is no room, or the records exceed the limit; nothing was written.
            StoreFailed: The disk failed; the log takes nothing more.
        """
        self._check()
        payload = RECORD_HEADER_SIZE * len(records)
        for record in records:
            if len(record) == 3:
                payload += len(record[1]) + len(record[2])
            elif len(record) == 2:
                payload += len(record[1])
            else:
                payload += RECORD_HEADER_SIZE * (len(record[1]) - 1) + record[3]
        if payload > FRAME_PAYLOAD_MAX:
            raise StoreFull(
                f"{payload} bytes at once, at most {FRAME_PAYLOAD_MAX} are stored in one piece"
            )
        try:
            return self._append(records, frame_size(payload))
        except StoreFailed as wrong:
            self._failed = self._failed or wrong
            raise

    def _append(self, records: Sequence[Entry], size: int) -> Appended:
        tail = self._tail
        end = tail.used + size
        if end > tail.reserved or end > self._settings.segment_size:
            tail = self._tail_with_room(size)
        start = tail.number << 32 | tail.used
        sequence = self._sequence
        frame, positions = pack_frame(records, sequence, self._durable, self._key, start)
        assert len(frame) == size, "room was made for what is written"
        try:
            tail.file.write(tail.used, frame)
        except StoreFull:
            self._wipe(tail)
            raise
        tail.used += size
        self._sequence = sequence + 1
        return Appended(sequence, start + size, positions)

    def roll(self) -> None:
        """Begins the next segment, unless the newest is empty: the one before can be dropped then.

        Raises:
            StoreFull: There is no room; the log goes on where it is.
            StoreFailed: The disk failed; the log takes nothing more.
        """
        self._check()
        if self._tail.used == SEGMENT_HEADER_SIZE:
            return
        try:
            self._roll()
        except StoreFailed as wrong:
            self._failed = self._failed or wrong
            raise

    def sync(self) -> int:
        """Makes everything appended so far durable; gives the position up to which it is."""
        syncing = self.begin_sync()
        if syncing is not None:
            syncing.run()
            self.end_sync(syncing)
        return self._durable

    def begin_sync(self) -> Syncing | None:
        """The sync that makes everything so far durable, or None if it is.

        Its `run` may go on in another thread while more is appended; `end_sync` takes the result.
        """
        self._check()
        if self.end == self._durable:
            return None
        return Syncing(file=self._tail.file, end=self.end, syncs=self._syncs)

    def end_sync(self, syncing: Syncing) -> None:
        """Takes the result of a sync that has run."""
        if syncing.failure is not None:
            self._failed = self._failed or syncing.failure
            raise syncing.failure
        self._durable = max(self._durable, syncing.end)

    def read(self, position: int, size: int) -> bytes:
        """A record's data: all of it, by the position that `append` or recovery gave and its size.

        Raises:
            StoreCorrupt: What is there is not what was written.
        """
        segment = self._segments[position >> 32]
        offset = position & 0xFFFFFFFF
        found = segment.file.read(offset - RECORD_HEADER_SIZE, RECORD_HEADER_SIZE + size)
        data = found[RECORD_HEADER_SIZE:]
        if len(data) != size or not record_matches(found, data):
            reason = f"no whole record of {size} bytes is here"
            raise StoreCorrupt(segment_name(segment.number), offset, reason)
        return data

    def read_raw(self, position: int, size: int) -> bytes:
        """Bytes of a segment as they lie there: records, headers and what is between them."""
        segment = self._segments[position >> 32]
        return segment.file.read(position & 0xFFFFFFFF, size)

    def segments(self) -> list[Segment]:
        """All segments, the oldest first; the last is the one that grows."""
        return [self._segments[number] for number in sorted(self._segments)]

    def keep(self, position: int, size: int) -> None:
        """Counts bytes as needed.

        Raises:
            StoreCorrupt: The segment is not there.
        """
        segment = self._segments.get(position >> 32)
        if segment is None:
            reason = f"the segment is missing, but {size} bytes of messages lie in it"
            raise StoreCorrupt(segment_name(position >> 32), 0, reason)
        segment.living += size

    def release(self, position: int, size: int) -> None:
        """Counts bytes as needed no more."""
        segment = self._segments[position >> 32]
        segment.living -= size
        assert segment.living >= 0, "released more than was kept"

    def drop(self, number: int) -> None:
        """Removes the oldest segment, which nothing needs any more.

        The caller has a durable checkpoint that contains it, and has copied what lives.
        """
        assert number == min(self._segments), "segments go from the oldest on"
        assert number != self._tail.number, "the newest segment stays"
        segment = self._segments.pop(number)
        segment.file.close()
        try:
            self._disk.remove(segment_name(number))
            # Before the next is dropped: if that one were gone and this one back, there is a hole.
            self._disk.sync_folder("log")
        except StoreFailed as wrong:
            self._failed = self._failed or wrong
            raise

    def close(self) -> None:
        """Gives the files back. Nothing is made durable that was not."""
        for segment in self._segments.values():
            segment.file.close()
        self._segments.clear()

    def _check(self) -> None:
        if self._failed is not None:
            raise StoreFailed(f"the store failed before and must be opened anew: {self._failed}")

    def _tail_with_room(self, size: int) -> Segment:
        """The segment that takes a frame of this size, the next one if need be."""
        tail = self._tail
        if tail.used > SEGMENT_HEADER_SIZE and tail.used + size > self._settings.segment_size:
            self._roll()
            tail = self._tail
        self._make_room(tail, tail.used + size)
        return tail

    def _make_room(self, segment: Segment, size: int) -> None:
        if size <= segment.reserved:
            return
        step = self._settings.reserve_step
        wanted = max(size, min(segment.reserved + step, self._settings.segment_size))
        try:
            segment.file.reserve(wanted)
        except StoreFull:
            # Not a whole step, perhaps, but this much may still fit.
            segment.file.reserve(size)
            wanted = size
        segment.reserved = wanted

    def _wipe(self, segment: Segment) -> None:
        """What was written of a frame that had no room must not pass for one later.

        It could: its last bytes may be zeros, as those are that take their place.
        """
        try:
            segment.file.truncate(segment.used)
        except StoreFull as wrong:
            raise StoreFailed(f"cleaning up after a full disk: {wrong}") from wrong
        segment.reserved = segment.used
        self._syncs.sync(segment.file, self.end)
        self._durable = self.end

    def _roll(self) -> None:
        """Begins the next segment; the one before is durable then, wholly."""
        self.sync()
        before = self._tail
        self._tail = self._begin_segment(before.number + 1)
        self._durable = self.end
        # What was reserved of it is not needed any more: zeros or none, its frames end there.
        with suppress(StoreFull):
            before.file.truncate(before.used)
            before.reserved = before.used

    def _begin_segment(self, number: int) -> Segment:
        file = begin_segment(self._disk, number, self._store_id, self._sequence)
        segment = Segment(
            number=number, file=file, used=SEGMENT_HEADER_SIZE, reserved=SEGMENT_HEADER_SIZE
        )
        self._segments[number] = segment
        return segment
