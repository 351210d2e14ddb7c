"""Opening a store: who it is, the newest checkpoint, and every frame since.

Where the log ends and what is torn or corrupt is decided as the package's docstring says.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final
from uuid import UUID
from zlib import crc32

from merq.errors import StoreCorrupt, StoreError
from merq.store.checkpoints import (
    Checkpoint,
    DamagedCheckpoint,
    checkpoint_name,
    find_checkpoint,
)
from merq.store.disk import Disk, LogFile
from merq.store.log import (
    SEGMENT_HEADER_SIZE,
    SEGMENT_MAGIC,
    VERSION,
    Log,
    LogSettings,
    LogState,
    Segment,
    begin_segment,
    position_of,
    segment_name,
)
from merq.store.records import (
    FRAME_ALIGNMENT,
    FRAME_MAGIC,
    FRAME_SIZE_MIN,
    Frame,
    read_frame,
    read_mark,
)

__all__ = ["Frame", "Identity", "Opened", "Replay", "Restore", "Torn", "open_store"]

IDENTITY_MAGIC: Final = b"MERQSTOR"
IDENTITY_SIZE: Final = 64
IDENTITY_SIZE_MAX: Final = 4096
"""The most that an identity of any version has."""
SECRET_SIZE: Final = 16
_IDENTITY: Final = struct.Struct("<8sI4x16sQ16s4x")
_ZEROS: Final = bytes(1 << 20)
_SEGMENT: Final = struct.Struct("<8sI4xQ16sQ12x")
_DRAFT: Final = "identity.draft"
_NAME: Final = re.compile(r"([0-9a-f]{16})\.segment")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Whose store a folder is. The secret is made with the store and never leaves its folder."""

    store_id: UUID
    created: int
    secret: bytes = field(default_factory=lambda: os.urandom(SECRET_SIZE), repr=False)

    @property
    def key(self) -> int:
        """What the checksums of this store's frames start from: no message can foretell them."""
        return crc32(self.secret, crc32(self.store_id.bytes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Torn:
    """Bytes that were cut off the log because nothing shows that they had become durable."""

    file: str
    offset: int
    size: int
    kept_as: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LostCheckpoint:
    """A damaged checkpoint that was done without, because the log before it is all there."""

    file: str
    reason: str
    kept_as: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An open store: its log goes on where it ended."""

    identity: Identity
    log: Log
    torn: Torn | None
    lost_checkpoints: tuple[LostCheckpoint, ...] = ()


Restore = Callable[[Checkpoint], None]
Replay = Callable[[Frame], None]


def open_store(
    disk: Disk,
    fresh: Identity,
    restore: Restore,
    replay: Replay,
    settings: LogSettings | None = None,
    *,
    identify: Callable[[Identity], None] | None = None,
) -> Opened:
    """Opens the store on this disk, which must be locked, or makes it with the identity given.

    Args:
        disk: The folder.
        fresh: Who the store will be if there is none yet.
        restore: Called at most once, first, with the newest checkpoint that is whole.
        replay: Called with each frame since, in order.
        settings: How the log is cut from now on.
        identify: Called before these, with who the store is.

    Raises:
        StoreCorrupt: Something that had become durable is not what was written.
        StoreError: The store has another version of the format.
    """
    identity = _identify(disk, fresh)
    if identify is not None:
        identify(identity)
    checkpoint, damaged = find_checkpoint(disk, identity.store_id)
    if damaged and checkpoint is None:
        _need_whole_log(disk, damaged[0])
    if checkpoint is not None:
        restore(checkpoint)
        # A name that a killed process gave may not be durable, and segments go because of it.
        disk.sync_folder("checkpoints")
    scan = _Scan(disk, identity, checkpoint, max([0, *(each.position for each in damaged)]))
    state, torn = scan.run(replay)
    try:
        lost = tuple(_put_aside(disk, each) for each in damaged)
    except BaseException:
        for segment in state.segments:
            segment.file.close()
        raise
    log = Log(disk, state, settings)
    return Opened(identity=identity, log=log, torn=torn, lost_checkpoints=lost)


def _need_whole_log(disk: Disk, damaged: DamagedCheckpoint) -> None:
    """Without a checkpoint all of the log is read; some of it may have been dropped long ago."""
    first = segment_name(1)
    if first.rpartition("/")[2] not in disk.names("log"):
        wrong = damaged.problem
        reason = (
            f"{wrong.reason}. There is no other checkpoint, and the log alone is not enough: it "
            f"has been tidied up, {first} is gone. Restore the newest backup (merq store restore); "
            "nothing was changed here"
        )
        raise StoreCorrupt(wrong.file, wrong.offset, reason)


def _put_aside(disk: Disk, damaged: DamagedCheckpoint) -> LostCheckpoint:
    """What a checkpoint says is known from the log: it goes out of the way, for people to see."""
    name = checkpoint_name(damaged.number)
    kept_as = f"aside/{damaged.number:016x}.checkpoint"
    disk.rename(name, kept_as)
    disk.sync_folder("aside")
    disk.sync_folder("checkpoints")
    return LostCheckpoint(file=name, reason=str(damaged.problem), kept_as=kept_as)


def _identify(disk: Disk, fresh: Identity) -> Identity:
    if not disk.exists("identity"):
        if not _is_unborn(disk):
            raise StoreCorrupt("identity", 0, "the file is missing beside a log")
        return _introduce(disk, fresh)
    file = disk.open("identity")
    data = file.read(0, IDENTITY_SIZE_MAX)
    file.close()
    # Of any version it is known where it says so, and that its last bytes are its checksum.
    if data[:8] != IDENTITY_MAGIC or int.from_bytes(data[-4:], "little") != crc32(data[:-4]):
        raise StoreCorrupt("identity", 0, "it is not the identity of a store")
    version = int.from_bytes(data[8:12], "little")
    if version != VERSION:
        raise StoreError(
            f"the store has version {version} of the format, this program knows only {VERSION}: "
            "open it with the release that made it"
        )
    if len(data) != IDENTITY_SIZE:
        reason = f"{len(data)} bytes are here, an identity has {IDENTITY_SIZE}"
        raise StoreCorrupt("identity", 0, reason)
    _, _, owner, created, secret = _IDENTITY.unpack_from(data)
    disk.sync_folder(".")
    return Identity(store_id=UUID(bytes=owner), created=created, secret=secret)


def _is_unborn(disk: Disk) -> bool:
    """Whether there is no log, but perhaps the empty segment of a store that was being made."""
    segments = [name for name in disk.names("log") if _NAME.fullmatch(name)]
    if disk.names("checkpoints") or len(segments) > 1:
        return False
    if not segments:
        return True
    first = segment_name(1)
    if f"log/{segments[0]}" != first or not disk.exists(_DRAFT):
        return False
    file = disk.open(first)
    try:
        return file.size() <= SEGMENT_HEADER_SIZE
    finally:
        file.close()


def _introduce(disk: Disk, fresh: Identity) -> Identity:
    """Makes a store. Its first segment is durable before its identity, so none ever lacks it."""
    assert len(fresh.secret) == SECRET_SIZE
    head = _IDENTITY.pack(
        IDENTITY_MAGIC, VERSION, fresh.store_id.bytes, max(0, fresh.created), fresh.secret
    )
    first = segment_name(1)
    if disk.exists(first):
        # Of an attempt that was interrupted. It goes before the draft that explains it.
        disk.remove(first)
        disk.sync_folder("log")
    if disk.exists(_DRAFT):
        disk.remove(_DRAFT)
    file = disk.create(_DRAFT)
    try:
        file.write(0, head + crc32(head).to_bytes(4, "little"))
        file.sync()
    finally:
        file.close()
    # Its draft is to be found beside the segment, whenever the power goes.
    disk.sync_folder(".")
    begin_segment(disk, 1, fresh.store_id, 1).close()
    disk.rename(_DRAFT, "identity")
    disk.sync_folder(".")
    return fresh


class _Scan:
    """Reads the segments from the checkpoint on, and finds the end of the log."""

    def __init__(
        self, disk: Disk, identity: Identity, checkpoint: Checkpoint | None, needed: int
    ) -> None:
        self._disk = disk
        # A damaged checkpoint says that the log was durable up to there.
        self._needed = needed
        self._store_id = identity.store_id
        self._key = identity.key
        self._start = checkpoint.position if checkpoint else position_of(1, SEGMENT_HEADER_SIZE)
        self._sequence = checkpoint.next_sequence if checkpoint else 1
        # Before this position the log is known to be durable.
        self._proven = checkpoint.position if checkpoint else 0
        self._oldest = checkpoint.oldest_segment if checkpoint else 1
        self._torn: Torn | None = None
        self._files: list[LogFile] = []

    def run(self, replay: Replay) -> tuple[LogState, Torn | None]:
        try:
            segments = self._segments(replay)
        except BaseException:
            for file in self._files:
                file.close()
            raise
        state = LogState(
            store_id=self._store_id,
            key=self._key,
            segments=segments,
            next_sequence=self._sequence,
        )
        return state, self._torn

    def _segments(self, replay: Replay) -> list[Segment]:
        numbers = self._numbers()
        segments: list[Segment] = []
        for number in numbers:
            file = self._disk.open(segment_name(number))
            self._files.append(file)
            is_last = number == numbers[-1]
            if number < self._start >> 32:
                used = self._contained(file, number)
            elif is_last and self._is_stillborn(file, number):
                file.close()
                self._disk.remove(segment_name(number))
                break
            else:
                used = self._segment(file, number, replay, is_last=is_last)
            segments.append(Segment(number=number, file=file, used=used, reserved=file.size()))
        if numbers:
            # A segment that was begun by a killed process stays, one that was removed stays away.
            self._disk.sync_folder("log")
        return segments

    def _numbers(self) -> list[int]:
        found = (_NAME.fullmatch(name) for name in self._disk.names("log"))
        numbers = sorted(int(match[1], 16) for match in found if match)
        first_needed = self._start >> 32
        if not numbers and not self._proven:
            reason = (
                "the segment is missing, with everything that was in it; if nothing was ever kept "
                "here, remove the file identity"
            )
            raise StoreCorrupt(segment_name(1), 0, reason)
        if not numbers or first_needed not in numbers:
            raise StoreCorrupt(segment_name(first_needed), 0, "the segment is missing")
        if numbers[0] > (self._oldest or first_needed):
            reason = "the segment is missing, but messages may lie in it"
            raise StoreCorrupt(segment_name(self._oldest), 0, reason)
        for number, following in pairwise(numbers):
            if following != number + 1:
                raise StoreCorrupt(segment_name(number + 1), 0, "the segment is missing")
        return numbers

    def _contained(self, file: LogFile, number: int) -> int:
        """A segment whose frames the checkpoint contains; they are not read. Gives its size."""
        head = file.read(0, SEGMENT_HEADER_SIZE)
        if problem := _header_problem(head, number, self._store_id):
            raise StoreCorrupt(segment_name(number), 0, problem)
        return file.size()

    def _is_stillborn(self, file: LogFile, number: int) -> bool:
        """Whether the newest segment was begun and never became durable: it holds nothing.

        The first never is: it was durable before the store had its identity.
        """
        if number == 1:
            return False
        head = file.read(0, SEGMENT_HEADER_SIZE)
        # A whole header of another store or version is no sign of a crash.
        if _is_whole_header(head) or number in {self._proven >> 32, self._needed >> 32}:
            return False
        rest = file.read(0, file.size())
        return rest.find(FRAME_MAGIC, SEGMENT_HEADER_SIZE) < 0

    def _segment(self, file: LogFile, number: int, replay: Replay, *, is_last: bool) -> int:
        """Reads one segment; gives where its frames end."""
        name = segment_name(number)
        data = file.read(0, file.size())
        if problem := _header_problem(data, number, self._store_id):
            raise StoreCorrupt(name, 0, problem)
        first_sequence = _SEGMENT.unpack_from(data)[4]
        at = SEGMENT_HEADER_SIZE
        if number == self._start >> 32:
            at = self._start & 0xFFFFFFFF
            if at > len(data):
                reason = f"the file ends, but the checkpoint contains the log up to {at}"
                raise StoreCorrupt(name, len(data), reason)
            self._compare_with_checkpoint(name, memoryview(data), at)
        elif first_sequence != self._sequence:
            reason = f"it begins with frame {first_sequence}, frame {self._sequence} is missing"
            raise StoreCorrupt(name, 0, reason)
        at = self._replay(memoryview(data), number, at, replay)
        if is_last and position_of(number, at) < self._needed:
            needed = f"segment {self._needed >> 32}, offset {self._needed & 0xFFFFFFFF}"
            reason = f"no whole frame is here, but a checkpoint contained the log up to {needed}"
            raise StoreCorrupt(name, at, reason)
        if not _is_empty_from(data, at):
            if not is_last or self._was_durable(data, number, at):
                raise StoreCorrupt(name, at, "no whole frame is here, but the log went on after it")
            self._cut(file, number, at, data[at:])
        if is_last:
            self._make_durable(file, number, memoryview(data)[:at])
        return at

    def _replay(self, log: memoryview, number: int, at: int, replay: Replay) -> int:
        """Gives out the frames that follow each other; gives where the next is not."""
        key, sequence, proven = self._key, self._sequence, self._proven
        base = position_of(number, 0)
        while True:
            frame = read_frame(log, at, key, base + at)
            if frame is None or frame.sequence != sequence:
                break
            replay(frame)
            sequence += 1
            proven = max(proven, frame.durable)
            at += frame.size
        self._sequence, self._proven = sequence, proven
        return at

    def _compare_with_checkpoint(self, name: str, log: memoryview, at: int) -> None:
        """Where the checkpoint ends, its next frame goes on; another whole one must not be cut."""
        frame = read_frame(log, at, self._key, at)
        if frame is not None and frame.sequence != self._sequence:
            reason = f"frame {frame.sequence} is here, the checkpoint expects {self._sequence}"
            raise StoreCorrupt(name, at, reason)

    def _make_durable(self, file: LogFile, number: int, data: memoryview) -> None:
        """Whatever was found counts from now on, so it must survive from now on.

        A killed process may have synced none of it. Nor is syncing it enough: a sync that failed
        may have left it in the system's memory, marked as written; so it is written again.
        """
        proven = self._proven & 0xFFFFFFFF if self._proven >> 32 == number else 0
        if proven < len(data):
            file.write(proven, data[proven:])
        file.sync()

    def _was_durable(self, data: bytes, number: int, at: int) -> bool:
        """Whether the header of a later frame says that the log was durable beyond this place."""
        here = position_of(number, at)
        log = memoryview(data)
        place = data.find(FRAME_MAGIC, at + 1)
        while place >= 0:
            mark = read_mark(log, place, self._key) if place % FRAME_ALIGNMENT == 0 else None
            # The key keeps out what messages claim. That it can be true is asked for all the same.
            if (
                mark is not None
                and here < mark.durable <= position_of(number, place)
                and 0 < mark.sequence - self._sequence <= (place - at) // FRAME_SIZE_MIN
            ):
                return True
            place = data.find(FRAME_MAGIC, place + 1)
        return False

    def _cut(self, file: LogFile, number: int, at: int, rest: bytes) -> None:
        """Keeps the torn bytes aside, durably, and makes the end of the log clean."""
        kept = rest.rstrip(b"\0")
        aside = f"aside/{number:016x}-{at:08x}-{self._sequence}.torn"
        if self._disk.exists(aside):
            self._disk.remove(aside)
        copy = self._disk.create(aside)
        try:
            copy.write(0, kept)
            copy.sync()
        finally:
            copy.close()
        self._disk.sync_folder("aside")
        file.truncate(at)
        self._torn = Torn(file=segment_name(number), offset=at, size=len(kept), kept_as=aside)


def _header_problem(head: bytes, number: int, store_id: UUID) -> str:
    """What is wrong with a segment's header; empty if nothing."""
    if not _is_whole_header(head):
        return "no whole header of a segment is here"
    _, version, found, owner, _ = _SEGMENT.unpack_from(head)
    if version != VERSION:
        return f"version {version}; this program knows {VERSION}"
    if found != number or owner != store_id.bytes:
        return f"it is segment {found} of store {UUID(bytes=owner)}"
    return ""


def _is_empty_from(data: bytes, at: int) -> bool:
    """Whether there are zeros to the end."""
    step = len(_ZEROS)
    return all(_ZEROS.startswith(data[each : each + step]) for each in range(at, len(data), step))


def _is_whole_header(head: bytes) -> bool:
    return (
        len(head) >= SEGMENT_HEADER_SIZE
        and head[:8] == SEGMENT_MAGIC
        and int.from_bytes(head[60:64], "little") == crc32(head[:60])
    )
