"""The checker reads frames: by hand made ones, damaged ones, and ones that only look so."""

from __future__ import annotations

import struct
from pathlib import Path
from zlib import crc32

import pytest

from merq.store.findings import Verdict
from unit.store_tools.building_stores import STORE, flip, segment, store_at
from unit.store_tools.judging_stores import frame_offsets, inspect, judged


def made_frame(
    sequence: int, durable: int, count: int, payload: bytes, *, key: int = STORE.key
) -> bytes:
    """A frame of anything, with right checksums if its only record begins the payload."""
    head = struct.pack("<4sIQQI", b"FRAM", len(payload), sequence, durable, count)
    head += struct.pack("<II", crc32(payload[:12]), 0)
    return head + struct.pack("<I", crc32(head, key)) + payload + bytes(-len(payload) % 8)


def made_record(kind: int, data: bytes) -> bytes:
    return struct.pack("<IIB3x", len(data), crc32(data), kind) + data


@pytest.mark.parametrize("key", [0, crc32(STORE.store_id.bytes), STORE.key])
def test_a_message_that_contains_a_frame_does_not_pass_for_one(tmp_path: Path, key: int) -> None:
    folder = store_at(tmp_path / "s", frames=3)
    path = segment(folder, 1)
    used = inspect(folder).segments[0].used
    forged = made_frame(5, 1 << 32 | used + 64, 1, made_record(1, b"claims"), key=key)
    path.write_bytes(path.read_bytes()[:used] + b"FRAM torn".ljust(64, b"t") + forged)
    # With the right key it is no message: the store itself has written it.
    expected = Verdict.CORRUPT if key == STORE.key else Verdict.TORN
    assert judged(folder).verdict is expected


def test_a_header_shows_that_what_is_before_it_was_durable(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=6)
    path = segment(folder, 1)
    offsets = frame_offsets(path.read_bytes())
    path.write_bytes(path.read_bytes()[: offsets[-1] + 40])
    flip(path, offsets[-2] + 53)
    found = judged(folder)
    assert found.corruptions[0].offset == offsets[-2]


@pytest.mark.parametrize(
    ("payload", "count"),
    [
        (struct.pack("<IIB3x", 9, crc32(bytes(9)), 1) + bytes(8), 1),
        (struct.pack("<IIB3x", 0, 0, 1) + bytes(8), 1),
        (made_record(1, bytes(8)), 0xFFFFFFFF),
        (struct.pack("<IIB3x", 8, 0, 1) + bytes(8), 1),
        (b"", 0),
    ],
)
def test_records_that_do_not_fill_their_frame_are_not_whole(
    tmp_path: Path, payload: bytes, count: int
) -> None:
    folder = store_at(tmp_path / "s", frames=1)
    path = segment(folder, 1)
    path.write_bytes(path.read_bytes()[:64] + made_frame(1, 1 << 32 | 64, count, payload))
    found = judged(folder)
    assert (found.verdict, found.segments[0].frames) == (Verdict.TORN, 0)


def test_a_kind_that_does_not_exist_is_corrupt(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=1)
    path = segment(folder, 1)
    wrong = made_frame(1, 1 << 32 | 64, 1, made_record(0, b"whose?"))
    path.write_bytes(path.read_bytes()[:64] + wrong)
    (found,) = judged(folder).corruptions
    assert found.offset == 64 + 40
    assert found.reason == "frame 1: record 1 is of kind 0, which does not exist"


def test_lengths_are_not_believed(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=3)
    path = segment(folder, 1)
    used = inspect(folder).segments[0].used
    huge = struct.pack("<4sIQQIII", b"FRAM", 0xFFFFFFFF, 4, 0, 0xFFFFFFFF, 0, 0)
    huge += struct.pack("<I", crc32(huge, STORE.key))
    path.write_bytes(path.read_bytes()[:used] + huge)
    assert judged(folder).verdict is Verdict.TORN


def test_filling_that_is_not_zeros_is_noted(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=6)
    path = segment(folder, 1)
    for offset in frame_offsets(path.read_bytes()):
        size = int.from_bytes(path.read_bytes()[offset + 4 : offset + 8], "little")
        if size % 8:
            flip(path, offset + 40 + size)
            break
    found = judged(folder)
    assert found.verdict is Verdict.SOUND
    assert "the filling of frame" in found.notes[0]


def test_frames_are_read_even_if_the_identity_is_lost(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=60)
    sound = inspect(folder)
    flip(folder / "identity", 40)
    found = judged(folder)
    assert [each.file for each in found.corruptions] == ["identity"]
    assert found.segments == sound.segments
    flip(segment(folder, 1), 64 + 53)
    assert [each.file for each in inspect(folder).corruptions] == [
        "identity",
        sound.segments[0].file,
    ]
