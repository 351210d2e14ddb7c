"""Checkpoints: what the log adds up to at a position, so that opening need not read all of it.

What is in the sections is the business of whoever writes them.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID
from zlib import crc32

from merq.errors import StoreCorrupt, StoreFull
from merq.store.disk import Buffer, Disk, LogFile
from merq.store.log import VERSION

CHECKPOINT_MAGIC: Final = b"MERQCKPT"
CHECKPOINT_HEADER_SIZE: Final = 64
SECTIONS_MAX: Final = (1 << 32) - 1
"""As many as the header can say. Each has at least 16 bytes, so 64 GiB come before that."""

_HEADER: Final = struct.Struct("<8sII16sQQQ4x")
_SECTION: Final = struct.Struct("<QII")
_CHECKED: Final = struct.Struct("<QI")
_NAME: Final = re.compile(r"([0-9a-f]{16})\.checkpoint")


class Section(NamedTuple):
    """A kind and data. What is large may be several sections of one kind: they keep their order.

    Data is bytes when it was read.
    """

    kind: int
    data: Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A snapshot: the log up to `position` is contained, `next_sequence` is the frame there.

    The log is durable up to there before the checkpoint is written. What the sections speak of may
    lie in any segment from `oldest_segment` on; 0 if that is not known.
    """

    number: int
    position: int
    next_sequence: int
    sections: tuple[Section, ...]
    oldest_segment: int = 0


def checkpoint_name(number: int) -> str:
    """The file of a checkpoint."""
    return f"checkpoints/{number:016x}.checkpoint"


def write_checkpoint(disk: Disk, store_id: UUID, checkpoint: Checkpoint) -> None:
    """Writes a checkpoint, durably, and removes those before it.

    It touches nothing but the folder of the checkpoints, so another thread may append to the log,
    sync it and read it meanwhile. Two checkpoints at once, or dropping segments before this has
    returned, are not allowed. Sections are written from where they are, without a copy: they must
    not change until this has returned.

    Raises:
        StoreFull: There was no room; the checkpoint before it stays.
    """
    assert len(checkpoint.sections) <= SECTIONS_MAX, "whoever writes millions packs them"
    name = checkpoint_name(checkpoint.number)
    draft = "checkpoints/draft"
    if disk.exists(draft):
        disk.remove(draft)
    file = disk.create(draft)
    try:
        _write_all(file, store_id, checkpoint)
        file.sync()
    except StoreFull:
        disk.remove(draft)
        raise
    finally:
        file.close()
    disk.rename(draft, name)
    disk.sync_folder("checkpoints")
    for old in checkpoint_numbers(disk):
        if old < checkpoint.number:
            disk.remove(checkpoint_name(old))


def _write_all(file: LogFile, store_id: UUID, checkpoint: Checkpoint) -> None:
    head = _HEADER.pack(
        CHECKPOINT_MAGIC,
        VERSION,
        len(checkpoint.sections),
        store_id.bytes,
        checkpoint.position,
        checkpoint.next_sequence,
        checkpoint.oldest_segment,
    )
    file.write(0, head + crc32(head).to_bytes(4, "little"))
    at = CHECKPOINT_HEADER_SIZE
    for kind, data in checkpoint.sections:
        view = memoryview(data).cast("B")
        file.write(at, _SECTION.pack(len(view), _checksum(kind, view), kind))
        file.write(at + _SECTION.size, view)
        at += _SECTION.size + len(view)


def _checksum(kind: int, data: bytes | memoryview) -> int:
    """A section whose kind was altered is as wrong as one whose data was."""
    return crc32(data, crc32(_CHECKED.pack(len(data), kind)))


def checkpoint_numbers(disk: Disk) -> list[int]:
    """The checkpoints that are there, the oldest first."""
    found = (_NAME.fullmatch(name) for name in disk.names("checkpoints"))
    return sorted(int(match[1], 16) for match in found if match)


class DamagedCheckpoint(NamedTuple):
    """A checkpoint whose checksums are wrong: what it said has to be known from elsewhere.

    Attributes:
        position: Up to there the log was durable when it was written; 0 if its header is wrong too.
        problem: Where it is wrong, and how.
    """

    number: int
    position: int
    problem: StoreCorrupt


class _Damaged(StoreCorrupt):
    """Bytes of a checkpoint that rotted; one of another store or version is something else."""

    position = 0


def find_checkpoint(
    disk: Disk, store_id: UUID
) -> tuple[Checkpoint | None, list[DamagedCheckpoint]]:
    """The newest checkpoint that is whole, or None; and those that are newer and damaged.

    Raises:
        StoreCorrupt: The newest is of another store, or another version of the format.
    """
    damaged: list[DamagedCheckpoint] = []
    for number in reversed(checkpoint_numbers(disk)):
        try:
            return _read(disk, store_id, number), damaged
        except _Damaged as wrong:
            damaged.append(DamagedCheckpoint(number, wrong.position, wrong))
    return None, damaged


def _read(disk: Disk, store_id: UUID, number: int) -> Checkpoint:
    name = checkpoint_name(number)
    file = disk.open(name)
    try:
        head = file.read(0, CHECKPOINT_HEADER_SIZE)
        if (
            len(head) < CHECKPOINT_HEADER_SIZE
            or int.from_bytes(head[60:], "little") != crc32(head[:60])
            or head[:8] != CHECKPOINT_MAGIC
        ):
            raise _Damaged(name, 0, "the header's checksum is wrong")
        _, version, count, owner, position, sequence, oldest = _HEADER.unpack_from(head)
        if version != VERSION or owner != store_id.bytes:
            raise StoreCorrupt(name, 8, f"version {version} of store {UUID(bytes=owner)}")
        try:
            sections = _read_sections(file, name, count)
        except _Damaged as wrong:
            wrong.position = position
            raise
    finally:
        file.close()
    return Checkpoint(
        number=number,
        position=position,
        next_sequence=sequence,
        sections=sections,
        oldest_segment=oldest,
    )


def _read_sections(file: LogFile, name: str, count: int) -> tuple[Section, ...]:
    size = file.size()
    sections: list[Section] = []
    at = CHECKPOINT_HEADER_SIZE
    for _ in range(count):
        entry = file.read(at, _SECTION.size)
        if len(entry) < _SECTION.size:
            raise _Damaged(name, at, "a section is missing")
        length, checksum, kind = _SECTION.unpack(entry)
        start = at + _SECTION.size
        if length > size - start:
            raise _Damaged(name, at, f"a section of {length} bytes goes beyond the file")
        data = file.read(start, length)
        if _checksum(kind, data) != checksum:
            raise _Damaged(name, at, f"the checksum of section {kind} is wrong")
        sections.append(Section(kind, data))
        at = start + length
    return tuple(sections)
