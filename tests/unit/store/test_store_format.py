"""The format, byte by byte: built here by hand from the package's docstring, not by the writer."""

from __future__ import annotations

import struct
from uuid import UUID
from zlib import crc32

import pytest

from merq.errors import StoreCorrupt, StoreError
from merq.store.checkpoints import Checkpoint, Section, write_checkpoint
from merq.store.disk import Disk
from merq.store.log import LogSettings
from merq.store.records import Record
from merq.store.recovery import IDENTITY_SIZE_MAX, Frame, Identity, Opened, open_store
from merq.testing.disk import SimulatedDisk

STORE = UUID("00112233-4455-6677-8899-aabbccddeeff")
SECRET = bytes(range(100, 116))
WHO = Identity(store_id=STORE, created=1_700_000_000, secret=SECRET)
KEY = crc32(STORE.bytes + SECRET)
SEGMENT_1 = "log/0000000000000001.segment"
SEGMENT_2 = "log/0000000000000002.segment"
CHECKPOINT_1 = "checkpoints/0000000000000001.checkpoint"


def sealed(head: bytes) -> bytes:
    return head + struct.pack("<I", crc32(head))


IDENTITY = sealed(
    b"MERQSTOR"
    + bytes.fromhex("02000000 00000000")
    + bytes.fromhex("00112233445566778899aabbccddeeff")
    + struct.pack("<Q", 1_700_000_000)
    + SECRET
    + bytes(4)
)
SEGMENT = sealed(
    b"MERQSEGM"
    + bytes.fromhex("02000000 00000000 0100000000000000")
    + bytes.fromhex("00112233445566778899aabbccddeeff")
    + bytes.fromhex("0100000000000000")
    + bytes(12)
)


SECOND_SEGMENT = sealed(SEGMENT[:16] + b"\x02" + SEGMENT[17:60])


def record(kind: int, data: bytes) -> bytes:
    return struct.pack("<IIB3x", len(data), crc32(data), kind) + data


def frame(sequence: int, durable: int, *records: tuple[int, bytes], key: int = KEY) -> bytes:
    payload = b"".join(record(kind, data) for kind, data in records)
    heads = b"".join(record(kind, data)[:12] for kind, data in records)
    head = b"FRAM" + struct.pack("<IQQI", len(payload), sequence, durable, len(records))
    head += struct.pack("<II", crc32(heads), 0)
    return head + struct.pack("<I", crc32(head, key)) + payload + bytes(-len(payload) % 8)


def checkpoint(position: int, sequence: int, *sections: tuple[int, bytes]) -> bytes:
    head = b"MERQCKPT" + struct.pack("<II", 2, len(sections)) + STORE.bytes
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
    assert (len(IDENTITY), len(SEGMENT)) == (64, 64)
    assert len(frame(1, 0, (1, b"123456789"))) == 40 + 12 + 9 + 3
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
    disk.damage(SEGMENT_1, 64 + 53)
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
    torn = frame(1, 1 << 32 | 64, (1, bytes(4) + lookalike + b"lost"))
    put(disk, SEGMENT_1, SEGMENT + torn)
    assert disk.content(SEGMENT_1).find(lookalike) % 8 == 0
    disk.damage(SEGMENT_1, 64 + len(torn) - 8)
    assert Reader(disk).opened.torn is not None


@pytest.mark.parametrize("key", [0, crc32(STORE.bytes), KEY ^ 1, crc32(bytes(16), KEY)])
def test_a_message_that_is_a_perfect_frame_but_for_the_key_proves_nothing(key: int) -> None:
    disk = SimulatedDisk()
    put(disk, "identity", IDENTITY)
    place = 64 + 40 + 12 + 4
    forged = frame(2, 1 << 32 | place, (1, b"claims"), key=key)
    torn = frame(1, 1 << 32 | 64, (1, bytes(4) + forged + b"lost"))
    put(disk, SEGMENT_1, SEGMENT + torn)
    assert disk.content(SEGMENT_1).find(forged) == place
    disk.damage(SEGMENT_1, 64 + 40 + 12)
    assert Reader(disk).opened.torn is not None


def test_a_header_shows_that_what_is_before_it_was_durable_even_if_its_own_frame_is_torn() -> None:
    disk = SimulatedDisk()
    put(disk, "identity", IDENTITY)
    first = frame(1, 1 << 32 | 64, (1, b"one"))
    second = frame(2, 1 << 32 | 64 + len(first), (1, b"two"))
    put(disk, SEGMENT_1, SEGMENT + first + second[:40])
    disk.damage(SEGMENT_1, 64 + 53)
    with pytest.raises(StoreCorrupt) as caught:
        Reader(disk)
    assert (caught.value.file, caught.value.offset) == (SEGMENT_1, 64)


CUT_FRAME = frame(1, 1 << 32 | 64, (1, bytes(20)), (2, bytes(3)))


@pytest.mark.parametrize("kept", range(1, len(CUT_FRAME)))
def test_a_frame_that_is_cut_anywhere_is_torn(kept: int) -> None:
    assert len(CUT_FRAME) % 8 == 0
    assert CUT_FRAME[-1:] == b"\0", "the filling too must be there"
    disk = SimulatedDisk()
    put(disk, "identity", IDENTITY)
    put(disk, SEGMENT_1, SEGMENT + CUT_FRAME[:kept])
    read = Reader(disk)
    assert read.data() == []
    assert read.opened.torn is not None


@pytest.mark.parametrize("offset", range(40 + 12 + 3 + 12 + 2))
def test_every_byte_of_a_frame_counts(offset: int) -> None:
    disk = SimulatedDisk()
    put(disk, "identity", IDENTITY)
    put(disk, SEGMENT_1, SEGMENT + frame(1, 1 << 32 | 64, (1, b"one"), (2, b"22")))
    disk.damage(SEGMENT_1, 64 + offset)
    read = Reader(disk)
    assert read.data() == []
    assert read.opened.torn is not None


@pytest.mark.parametrize(
    ("payload", "count"),
    [
        (struct.pack("<IIB3x", 9, crc32(bytes(9)), 1) + bytes(8), 1),
        (struct.pack("<IIB3x", 0, 0, 1) + bytes(8), 1),
        (record(1, bytes(8)), 2),
        (record(1, bytes(8)), 0xFFFFFFFF),
        (record(1, bytes(8)) + bytes(8), 2),
    ],
    ids=["beyond the payload", "left over", "a record too few", "far too few", "half a header"],
)
@pytest.mark.parametrize("rest", [b"", bytes(64)], ids=["at the end", "before zeros"])
def test_records_that_do_not_fill_their_frame_are_no_frame(
    payload: bytes, count: int, rest: bytes
) -> None:
    disk = SimulatedDisk()
    put(disk, "identity", IDENTITY)
    head = b"FRAM" + struct.pack("<IQQI", len(payload), 1, 1 << 32 | 64, count)
    head += struct.pack("<II", crc32(payload[:12]), 0)
    made = head + struct.pack("<I", crc32(head, KEY)) + payload
    put(disk, SEGMENT_1, SEGMENT + made + bytes(-len(made) % 8) + rest)
    read = Reader(disk)
    assert read.data() == []
    assert read.opened.torn is not None


@pytest.mark.parametrize("offset", range(64))
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
    put(disk, SEGMENT_2, SECOND_SEGMENT)
    put(disk, CHECKPOINT_1, checkpoint(2 << 32 | 64, 1, (9, b"about")))
    disk.damage(CHECKPOINT_1, offset)
    with pytest.raises(StoreCorrupt) as caught:
        Reader(disk)
    assert (caught.value.file, caught.value.offset) == (CHECKPOINT_1, 0 if offset < 64 else 64)
    assert disk.open_files == 0


@pytest.mark.parametrize("offset", [0, 33, 63, 64, 84])
def test_a_damaged_checkpoint_is_put_aside_if_the_log_before_it_is_there(offset: int) -> None:
    disk = SimulatedDisk()
    put(disk, "identity", IDENTITY)
    first = frame(1, 1 << 32 | 64, (1, b"one"))
    put(disk, SEGMENT_1, SEGMENT + first)
    put(disk, CHECKPOINT_1, checkpoint(1 << 32 | 64 + len(first), 2, (9, b"about")))
    disk.damage(CHECKPOINT_1, offset)
    reader = Reader(disk)
    assert reader.checkpoints == []
    assert reader.data() == [[(1, b"one")]]
    (lost,) = reader.opened.lost_checkpoints
    assert lost.file == CHECKPOINT_1
    assert lost.kept_as in disk.files()
    assert CHECKPOINT_1 not in disk.files()


OLD_IDENTITY = sealed(
    b"MERQSTOR"
    + struct.pack("<II", 1, 0)
    + STORE.bytes
    + struct.pack("<Q", 1_700_000_000)
    + bytes(4)
)


@pytest.mark.parametrize(
    ("identity", "version"),
    [(OLD_IDENTITY, 1), (sealed(IDENTITY[:8] + b"\x07" + IDENTITY[9:60] + bytes(40)), 7)],
    ids=["older", "newer"],
)
def test_another_version_is_refused_by_its_number(identity: bytes, version: int) -> None:
    disk = SimulatedDisk()
    put(disk, "identity", identity)
    put(disk, SEGMENT_1, b"of that version")
    before = disk.content(SEGMENT_1)
    with pytest.raises(
        StoreError, match=f"version {version} of the format, this program knows"
    ) as e:
        Reader(disk)
    assert not isinstance(e.value, StoreCorrupt)
    assert (disk.content("identity"), disk.content(SEGMENT_1)) == (identity, before)


def test_an_identity_of_another_size_is_corrupt() -> None:
    disk = SimulatedDisk()
    put(disk, "identity", sealed(IDENTITY[:60] + bytes(4)))
    with pytest.raises(StoreCorrupt, match="68 bytes are here, an identity has 64"):
        Reader(disk)


def test_every_store_has_a_secret_of_its_own() -> None:
    made = [Identity(store_id=STORE, created=1) for _ in range(3)]
    assert len({each.secret for each in made}) == len({each.key for each in made}) == 3
    assert not any(repr(each.secret) in repr(each) for each in made)
    disk = SimulatedDisk()
    Reader(disk, made[0]).opened.log.close()
    assert Reader(disk, made[1]).opened.identity == made[0]


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


@pytest.mark.limit("merq.store.recovery.IDENTITY_SIZE_MAX")
def test_an_identity_that_is_longer_than_any_is_none() -> None:
    """Of a later version, which is shorter than that, it is said that it is one."""
    for size, said in ((IDENTITY_SIZE_MAX, "version 99"), (IDENTITY_SIZE_MAX + 4, "not the ident")):
        disk = SimulatedDisk(1)
        head = (IDENTITY[:8] + struct.pack("<I", 99)).ljust(size - 4, b"\0")
        put(disk, "identity", sealed(head))
        with pytest.raises(StoreError, match=said):
            Reader(disk)
