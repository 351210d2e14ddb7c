"""The format, byte by byte: built here by hand from the package's docstring, not by the writer."""

from __future__ import annotations

import struct
from uuid import UUID
from zlib import crc32

import pytest

from merq.errors import StoreCorrupt
from merq.store.checkpoints import Checkpoint, Section, write_checkpoint
from merq.store.disk import Disk
from merq.store.log import LogSettings
from merq.store.records import Record
from merq.store.recovery import Frame, Identity, Opened, open_store
from merq.testing.disk import SimulatedDisk

STORE = UUID("00112233-4455-6677-8899-aabbccddeeff")
WHO = Identity(store_id=STORE, created=1_700_000_000)
SEGMENT_1 = "log/0000000000000001.segment"
CHECKPOINT_1 = "checkpoints/0000000000000001.checkpoint"


def sealed(head: bytes) -> bytes:
    return head + struct.pack("<I", crc32(head))


IDENTITY = sealed(
    b"MERQSTOR"
    + bytes.fromhex("01000000 00000000")
    + bytes.fromhex("00112233445566778899aabbccddeeff")
    + struct.pack("<Q", 1_700_000_000)
    + bytes(4)
)
SEGMENT = sealed(
    b"MERQSEGM"
    + bytes.fromhex("01000000 00000000 0100000000000000")
    + bytes.fromhex("00112233445566778899aabbccddeeff")
    + bytes.fromhex("0100000000000000")
    + bytes(12)
)


def frame(sequence: int, durable: int, *records: tuple[int, bytes]) -> bytes:
    payload = b"".join(struct.pack("<IBBBB", len(d), k, 0, 0, 0) + d for k, d in records)
    head = b"FRAM" + struct.pack("<IQQI", len(payload), sequence, durable, len(records))
    filling = bytes(-len(payload) % 8)
    return head + struct.pack("<I", crc32(head + payload)) + payload + filling


def checkpoint(position: int, sequence: int, *sections: tuple[int, bytes]) -> bytes:
    head = b"MERQCKPT" + struct.pack("<II", 1, len(sections)) + STORE.bytes
    made = sealed(head + struct.pack("<QQ", position, sequence) + bytes(12))
    for kind, data in sections:
        checked = struct.pack("<QI", len(data), kind) + data
        made += struct.pack("<QII", len(data), crc32(checked), kind) + data
    return made


def put(disk: Disk, name: str, data: bytes) -> None:
    file = disk.create(name)
    file.write(0, data)
    file.close()


class Reader:
    """Opens a store and keeps what it is told."""

    def __init__(self, disk: SimulatedDisk, who: Identity = WHO) -> None:
        self.checkpoints: list[Checkpoint] = []
        self.frames: list[Frame] = []
        settings = LogSettings(segment_size=4096, reserve_step=1024)
        self.opened: Opened = open_store(
            disk, who, self.checkpoints.append, self.frames.append, settings
        )

    def data(self) -> list[list[tuple[int, bytes]]]:
        return [[(r.kind, bytes(r.data)) for r in frame.records()] for frame in self.frames]


def test_the_sizes_are_as_described() -> None:
    assert (len(IDENTITY), len(SEGMENT)) == (48, 64)
    assert len(frame(1, 0, (1, b"123456789"))) == 32 + 8 + 9 + 7
    assert len(checkpoint(0, 1)) == 64


def test_what_is_written_is_what_is_described() -> None:
    disk = SimulatedDisk()
    log = Reader(disk).opened.log
    log.append([Record(1, b"one"), Record(255, b"")])
    log.sync()
    log.append([Record(2, b"two")])
    first = frame(1, 1 << 32 | 64, (1, b"one"), (255, b""))
    second = frame(2, 1 << 32 | 64 + len(first), (2, b"two"))
    assert disk.content("identity") == IDENTITY
    assert disk.content(SEGMENT_1).rstrip(b"\0") == (SEGMENT + first + second).rstrip(b"\0")
    sections = (Section(7, b"seven"), Section(8, b""))
    there = Checkpoint(number=1, position=log.end, next_sequence=3, sections=sections)
    write_checkpoint(disk, STORE, there)
    assert disk.content(CHECKPOINT_1) == checkpoint(log.end, 3, (7, b"seven"), (8, b""))


def test_what_is_described_is_read() -> None:
    disk = SimulatedDisk()
    put(disk, "identity", IDENTITY)
    first = frame(1, 1 << 32 | 64, (1, b"one"), (2, b""))
    second = frame(2, 1 << 32 | 64 + len(first), (3, b"three"))
    put(disk, SEGMENT_1, SEGMENT + first + second + bytes(100))
    read = Reader(disk, Identity(store_id=UUID(int=0), created=0))
    assert read.opened.identity == WHO
    assert read.opened.torn is None
    assert read.data() == [[(1, b"one"), (2, b"")], [(3, b"three")]]
    assert read.opened.log.next_sequence == 3
    assert read.opened.log.end == 1 << 32 | 64 + len(first + second)


def test_frames_are_read_from_the_checkpoint_on() -> None:
    disk = SimulatedDisk()
    put(disk, "identity", IDENTITY)
    first = frame(1, 1 << 32 | 64, (1, b"one"))
    place = 1 << 32 | 64 + len(first)
    put(disk, SEGMENT_1, SEGMENT + first + frame(2, place, (1, b"two")))
    put(disk, CHECKPOINT_1, checkpoint(place, 2, (9, b"contained")))
    read = Reader(disk)
    (found,) = read.checkpoints
    assert found == Checkpoint(
        number=1, position=place, next_sequence=2, sections=(Section(9, b"contained"),)
    )
    assert read.data() == [[(1, b"two")]]


def test_a_torn_frame_is_cut_off_and_kept_aside() -> None:
    disk = SimulatedDisk()
    put(disk, "identity", IDENTITY)
    first, second = frame(1, 1 << 32 | 64, (1, b"one")), frame(2, 1 << 32 | 64, (1, b"two"))
    put(disk, SEGMENT_1, SEGMENT + first + second[:-9] + bytes(64))
    read = Reader(disk)
    torn = read.opened.torn
    assert torn is not None
    assert (torn.file, torn.offset) == (SEGMENT_1, 64 + len(first))
    assert disk.content(torn.kept_as) == second[:-9].rstrip(b"\0")
    assert disk.content(SEGMENT_1) == SEGMENT + first


def test_a_broken_frame_is_corrupt_if_a_later_one_shows_that_it_was_durable() -> None:
    disk = SimulatedDisk()
    put(disk, "identity", IDENTITY)
    first = frame(1, 1 << 32 | 64, (1, b"one"))
    second = frame(2, 1 << 32 | 64 + len(first), (1, b"two"))
    put(disk, SEGMENT_1, SEGMENT + first + second)
    disk.damage(SEGMENT_1, 64 + 41)
    with pytest.raises(StoreCorrupt) as caught:
        Reader(disk)
    assert (caught.value.file, caught.value.offset) == (SEGMENT_1, 64)


@pytest.mark.parametrize(
    ("sequence", "durable"),
    [(2, 1 << 62), (1 << 40, 1 << 32 | 100), (1, 1 << 32 | 100), (2, 1 << 32 | 64), (9, 0)],
    ids=["beyond itself", "too many between", "an old one", "not beyond the place", "no mark"],
)
def test_a_message_that_looks_like_a_frame_proves_nothing(sequence: int, durable: int) -> None:
    disk = SimulatedDisk()
    put(disk, "identity", IDENTITY)
    lookalike = frame(sequence, durable, (1, b"claims"))
    torn = frame(1, 1 << 32 | 64, (1, lookalike + b"lost"))
    put(disk, SEGMENT_1, SEGMENT + torn)
    disk.damage(SEGMENT_1, 64 + len(torn) - 8)
    assert Reader(disk).opened.torn is not None


@pytest.mark.parametrize("offset", range(48))
def test_every_byte_of_the_identity_counts(offset: int) -> None:
    disk = SimulatedDisk()
    put(disk, "identity", IDENTITY)
    disk.damage("identity", offset)
    with pytest.raises(StoreCorrupt, match="identity is corrupt"):
        Reader(disk)


@pytest.mark.parametrize("offset", range(64))
def test_every_byte_of_a_segments_header_counts_if_frames_are_in_it(offset: int) -> None:
    disk = SimulatedDisk()
    put(disk, "identity", IDENTITY)
    put(disk, SEGMENT_1, SEGMENT + frame(1, 1 << 32 | 64, (1, b"one")))
    disk.damage(SEGMENT_1, offset)
    with pytest.raises(StoreCorrupt) as caught:
        Reader(disk)
    assert (caught.value.file, caught.value.offset) == (SEGMENT_1, 0)


@pytest.mark.parametrize("offset", range(64 + 16 + 5))
def test_every_byte_of_a_checkpoint_counts(offset: int) -> None:
    disk = SimulatedDisk()
    put(disk, "identity", IDENTITY)
    put(disk, SEGMENT_1, SEGMENT)
    put(disk, CHECKPOINT_1, checkpoint(1 << 32 | 64, 1, (9, b"about")))
    disk.damage(CHECKPOINT_1, offset)
    with pytest.raises(StoreCorrupt) as caught:
        Reader(disk)
    assert (caught.value.file, caught.value.offset) == (CHECKPOINT_1, 0 if offset < 64 else 64)


def test_another_version_is_refused_by_its_number() -> None:
    disk = SimulatedDisk()
    put(disk, "identity", sealed(IDENTITY[:8] + b"\2" + IDENTITY[9:44]))
    with pytest.raises(StoreCorrupt, match="version 2; this program knows 1"):
        Reader(disk)


def test_a_segment_of_another_store_is_refused() -> None:
    disk = SimulatedDisk()
    put(disk, "identity", IDENTITY)
    foreign = sealed(SEGMENT[:24] + bytes(16) + SEGMENT[40:60])
    put(disk, SEGMENT_1, foreign + frame(1, 1 << 32 | 64, (1, b"one")))
    with pytest.raises(StoreCorrupt, match="of store 00000000-0000"):
        Reader(disk)


def test_a_log_without_identity_is_refused() -> None:
    disk = SimulatedDisk()
    put(disk, SEGMENT_1, SEGMENT)
    with pytest.raises(StoreCorrupt, match="missing beside a log"):
        Reader(disk)


def test_files_with_other_names_are_left_alone() -> None:
    disk = SimulatedDisk()
    put(disk, "identity", IDENTITY)
    put(disk, SEGMENT_1, SEGMENT + frame(1, 1 << 32 | 64, (1, b"one")))
    put(disk, "log/copy of 1.segment", b"not ours")
    put(disk, "checkpoints/notes.checkpoint", b"not ours")
    assert Reader(disk).data() == [[(1, b"one")]]
    assert disk.content("log/copy of 1.segment") == b"not ours"
