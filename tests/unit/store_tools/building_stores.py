"""Stores made by the real writer, for tests of what reads them.

Record n of a store holds n and some bytes that follow from it, so that whoever opens a store can
tell what is missing. Run as a program it writes to a store until it is told to stop:
`python building_stores.py FOLDER NOTED` keeps in the file NOTED the last number that was durable.
"""

from __future__ import annotations

import random
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from merq.errors import StoreCorrupt
from merq.store.checkpoints import Checkpoint, Section, write_checkpoint
from merq.store.disk import FileDisk
from merq.store.log import Log, LogSettings
from merq.store.records import Record
from merq.store.recovery import Frame, Identity, Opened, open_store

STORE = Identity(store_id=UUID(int=0x1234), created=1_700_000_000, secret=bytes(range(16)))
OTHER = Identity(store_id=UUID(int=0x9876), created=1_800_000_000)
SMALL = LogSettings(segment_size=2048, reserve_step=512)
LIVING = struct.Struct("<QQI")
SEGMENTS_KEPT = 3
PATIENCE_S = 30


def data_of(number: int) -> bytes:
    filling = random.Random(number)  # noqa: S311 - repeatable is what is wanted
    return struct.pack("<Q", number) + filling.randbytes(number * 37 % 150)


def record(number: int) -> Record:
    return Record(1 + number % 3, data_of(number))


@dataclass(slots=True, kw_only=True)
class Seen:
    """What opening a store gives."""

    opened: Opened
    contained: int = 0
    """The numbers up to this one were in the checkpoint."""
    living: list[tuple[int, int, int]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    @property
    def last(self) -> int:
        return self.numbers[-1] if self.numbers else self.contained


def seen(folder: Path, identity: Identity = STORE) -> Seen:
    """Opens a store, notes all that it holds, and closes it."""
    contained = 0
    living: list[tuple[int, int, int]] = []
    numbers: list[int] = []

    def restore(checkpoint: Checkpoint) -> None:
        nonlocal contained
        (contained,) = struct.unpack("<Q", checkpoint.sections[0].data)
        living.extend(LIVING.iter_unpack(checkpoint.sections[1].data))

    def replay(frame: Frame) -> None:
        for found in frame.records():
            number = int.from_bytes(found.data[:8], "little")
            assert bytes(found.data) == data_of(number)
            numbers.append(number)

    disk = FileDisk(folder)
    disk.lock()
    try:
        opened = open_store(disk, identity, restore, replay, SMALL)
        for number, position, size in living:
            assert opened.log.read(position, size) == data_of(number)
        opened.log.close()
    finally:
        disk.unlock()
    return Seen(opened=opened, contained=contained, living=living, numbers=numbers)


def is_refused(folder: Path) -> bool:
    """Whether opening calls the store corrupt."""
    disk = FileDisk(folder)
    disk.lock()
    try:
        open_store(disk, STORE, lambda _: None, lambda _: None, SMALL).log.close()
    except StoreCorrupt:
        return True
    finally:
        disk.unlock()
    return False


class Writer:
    """Appends numbered records, one or two a frame, to a store that is new."""

    def __init__(self, folder: Path, settings: LogSettings = SMALL, who: Identity = STORE) -> None:
        self.disk = FileDisk(folder)
        self.disk.lock()
        self.who = who
        self.log: Log = open_store(self.disk, who, lambda _: None, lambda _: None, settings).log
        self.number = 0
        self.checkpoints = 0
        self.living: list[tuple[int, int, int]] = []

    def append(self, frames: int = 1, *, sync: bool = True) -> None:
        for _ in range(frames):
            numbers = range(self.number + 1, self.number + 2 + self.number % 2)
            done = self.log.append([record(number) for number in numbers])
            self.number = numbers[-1]
            for number, position in zip(numbers, done.positions, strict=True):
                self.living.append((number, position, len(data_of(number))))
            if sync:
                self.log.sync()

    def checkpoint(self) -> None:
        """Writes one that needs the newest segments, and drops the others."""
        end = self.log.sync()
        segments = self.log.segments()
        oldest = segments[-SEGMENTS_KEPT:][0].number
        self.living = [each for each in self.living if each[1] >> 32 >= oldest]
        self.checkpoints += 1
        sections = (
            Section(1, struct.pack("<Q", self.number)),
            Section(2, b"".join(LIVING.pack(*each) for each in self.living)),
        )
        checkpoint = Checkpoint(
            number=self.checkpoints,
            position=end,
            next_sequence=self.log.next_sequence,
            sections=sections,
        )
        write_checkpoint(self.disk, self.who.store_id, checkpoint)
        for segment in segments:
            if segment.number < oldest:
                self.log.drop(segment.number)

    def close(self) -> None:
        self.log.close()
        self.disk.unlock()


def store_at(
    folder: Path, *, frames: int = 60, checkpoint_after: int = 0, unsynced: int = 0
) -> Path:
    """A store of some segments; with a checkpoint somewhere in it, or frames that never synced."""
    writer = Writer(folder)
    writer.append(checkpoint_after)
    if checkpoint_after:
        writer.checkpoint()
    writer.append(frames - checkpoint_after)
    writer.append(unsynced, sync=False)
    writer.close()
    return folder


def segment(folder: Path, number: int) -> Path:
    return folder / "log" / f"{number:016x}.segment"


def segments(folder: Path) -> list[Path]:
    return sorted((folder / "log").iterdir())


def checkpoint_file(folder: Path) -> Path:
    (found,) = (folder / "checkpoints").iterdir()
    return found


def flip(path: Path, offset: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1 << bit
    path.write_bytes(data)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@contextmanager
def being_written(folder: Path, noted: Path) -> Iterator[None]:
    """Another process writes to a new store meanwhile."""
    command = [sys.executable, __file__, str(folder), str(noted)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        try:
            deadline = time.monotonic() + PATIENCE_S
            while not noted.exists() and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            assert noted.exists(), "the writer has not begun"
            yield
            assert process.poll() is None, "the writer ended early"
        finally:
            process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0


def write_until_told(folder: Path, noted: Path) -> None:
    """Appends, rolls, checkpoints and drops until standard input ends."""
    writer = Writer(folder, LogSettings(segment_size=8192, reserve_step=2048))
    rounds = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        writer.append(4, sync=False)
        writer.log.sync()
        draft = noted.with_suffix(".draft")
        draft.write_text(str(writer.number), encoding="ascii")
        draft.replace(noted)
        rounds += 1
        if rounds % 15 == 0:
            writer.checkpoint()
    writer.close()


if __name__ == "__main__":
    write_until_told(Path(sys.argv[1]), Path(sys.argv[2]))
