"""The checker: what it reports, and that it judges as opening does."""

from __future__ import annotations

import ast
import random
import shutil
import struct
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from zlib import crc32

import pytest

from merq.errors import StoreError
from merq.store import inspection, scanning, viewing
from merq.store.findings import CORRUPTIONS_MAX, End, Verdict
from merq.store.viewing import names_in
from unit.store_tools.building_stores import (
    OTHER,
    PATIENCE_S,
    STORE,
    Writer,
    being_written,
    checkpoint_file,
    flip,
    segment,
    segments,
    store_at,
)
from unit.store_tools.judging_stores import frame_offsets, inspect, judged

WRITERS = {"records", "log", "recovery", "checkpoints", "disk"}


def test_the_checker_shares_no_code_with_the_writer() -> None:
    folder = Path(inspection.__file__).parent
    waiting, done = {"inspection"}, set[str]()
    while waiting:
        name = waiting.pop()
        done.add(name)
        for node in ast.walk(ast.parse((folder / f"{name}.py").read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("merq.store."):
                waiting |= {(node.module or "").split(".")[2]} - done
            assert not (isinstance(node, ast.Import) and "merq" in ast.dump(node))
    assert done == {"inspection", "findings", "viewing", "scanning", "reading"}
    assert not done & WRITERS


def test_a_sound_store_is_described(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=60, checkpoint_after=33)
    found = judged(folder)
    assert found.verdict is Verdict.SOUND
    assert (found.store_id, found.created) == (STORE.store_id, STORE.created)
    assert (found.corruptions, found.notes, found.aside) == ((), (), ())
    assert [each.file for each in found.segments] == [
        f"log/{path.name}" for path in segments(folder)
    ]
    assert all(each.end is End.CLEAN for each in found.segments)
    first = found.segments[0].first_sequence
    assert first is not None
    assert first > 1
    expected = first
    for each in found.segments:
        assert each.first_sequence == expected
        assert each.last_sequence == expected + each.frames - 1
        expected += each.frames
        assert each.records == sum(count for _, count in each.kinds)
        assert {kind for kind, _ in each.kinds} == {1, 2, 3}
        assert each.used <= each.size
    assert expected == 61
    (checkpoint,) = found.checkpoints
    assert (checkpoint.number, checkpoint.next_sequence, checkpoint.whole) == (1, 34, True)
    assert checkpoint.sections[0] == (1, 8)


def test_an_empty_store_is_sound(tmp_path: Path) -> None:
    Writer(tmp_path / "s").close()
    found = judged(tmp_path / "s")
    assert found.verdict is Verdict.SOUND
    (only,) = found.segments
    assert (only.frames, only.used, only.first_sequence) == (0, 64, None)


def test_a_store_that_has_only_its_identity_has_lost_its_log(tmp_path: Path) -> None:
    Writer(tmp_path / "s").close()
    segment(tmp_path / "s", 1).unlink()
    assert judged(tmp_path / "s").verdict is Verdict.CORRUPT


@pytest.mark.parametrize("kept", [1, 20, 40, 41, 50])
def test_half_a_frame_at_the_end_is_torn(tmp_path: Path, kept: int) -> None:
    folder = store_at(tmp_path / "s", frames=5)
    before = inspect(folder).segments[0]
    flip(segment(folder, 1), before.used - 9)
    path = segment(folder, 1)
    last = frame_offsets(path.read_bytes())[-1]
    path.write_bytes(path.read_bytes()[: last + kept])
    found = judged(folder)
    assert found.verdict is Verdict.TORN
    assert (found.segments[0].end, found.segments[0].used) == (End.TORN, last)
    assert (found.segments[0].frames, found.last_sequence) == (4, 4)
    again = inspect(folder)
    assert again.verdict is Verdict.SOUND
    (aside,) = again.aside
    assert aside.size <= kept


def test_garbage_after_the_last_frame_is_torn(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=5)
    with segment(folder, 1).open("ab") as file:
        file.write(b"garbage FRAM garbage")
    found = judged(folder)
    assert found.verdict is Verdict.TORN
    assert found.segments[0].frames == 5


def test_a_damaged_frame_is_corrupt_if_a_later_one_says_it_was_durable(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=6)
    offsets = frame_offsets(segment(folder, 1).read_bytes())
    flip(segment(folder, 1), offsets[1] + 53)
    flip(segment(folder, 1), offsets[3] + 4)
    found = judged(folder)
    assert found.verdict is Verdict.CORRUPT
    places = [(each.file, each.offset) for each in found.corruptions]
    name = f"log/{segment(folder, 1).name}"
    assert places == [(name, offsets[1]), (name, offsets[3])]
    reasons = [each.reason for each in found.corruptions]
    assert reasons[0].startswith("frame 2 is here: record 1 of 2: the checksum is 0x")
    assert reasons[1].startswith("frame 4 is expected here and the checksum is 0x")
    assert found.segments[0].frames == 4


def test_a_damaged_frame_is_torn_if_nothing_says_it_was_durable(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=2, unsynced=4)
    offsets = frame_offsets(segment(folder, 1).read_bytes())
    flip(segment(folder, 1), offsets[2] + 53)
    found = judged(folder)
    assert found.verdict is Verdict.TORN
    assert (found.segments[0].frames, found.segments[0].used) == (2, offsets[2])


def test_a_damaged_frame_is_corrupt_if_a_later_segment_exists(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=0, unsynced=30)
    offsets = frame_offsets(segment(folder, 1).read_bytes())
    flip(segment(folder, 1), offsets[-1] + 41)
    found = judged(folder)
    assert [each.offset for each in found.corruptions] == [offsets[-1]]


def _missing(folder: Path) -> str:
    segment(folder, 2).unlink()
    return f"log/{2:016x}.segment at offset 0: the segment is missing"


def _first_missing(folder: Path) -> str:
    segment(folder, 1).unlink()
    return f"log/{1:016x}.segment at offset 0: the segment is missing"


def _exchanged(folder: Path) -> str:
    shutil.copyfile(segment(folder, 1), segment(folder, 2))
    return f"log/{2:016x}.segment at offset 16: it is segment 1, the file's name says 2"


def _foreign(folder: Path) -> str:
    writer = Writer(folder.parent / "other", who=OTHER)
    writer.append(40)
    writer.close()
    shutil.copyfile(segment(folder.parent / "other", 2), segment(folder, 2))
    return (
        f"log/{2:016x}.segment at offset 24: it belongs to store {OTHER.store_id}, "
        f"this is store {STORE.store_id}"
    )


def _newer(folder: Path) -> str:
    _rewrite(segment(folder, 2), 8, struct.pack("<I", 3), 60)
    return f"log/{2:016x}.segment at offset 8: version 3; this program knows 2"


def _renumbered(folder: Path) -> str:
    found = inspect(folder).segments[1].first_sequence
    assert found is not None
    _rewrite(segment(folder, 2), 40, struct.pack("<Q", found + 1), 60)
    reason = f"it begins with frame {found + 1}, but frame {found} is missing"
    return f"log/{2:016x}.segment at offset 40: {reason}"


def _header(folder: Path) -> str:
    flip(segment(folder, 2), 50)
    return f"log/{2:016x}.segment at offset 60: the checksum is 0x"


def _newest_header(folder: Path) -> str:
    flip(segments(folder)[-1], 3)
    return f"log/{segments(folder)[-1].name} at offset 0: b'MERPSEGM' is here"


def _identity(folder: Path) -> str:
    flip(folder / "identity", 20)
    return "identity at offset 60: the checksum is 0x"


def _short_identity(folder: Path) -> str:
    path = folder / "identity"
    path.write_bytes(path.read_bytes()[:40])
    return "identity at offset 0: 40 bytes are here, an identity has 64"


def _other_identity(folder: Path) -> str:
    (folder / "identity").write_bytes(b"an identity of something else".ljust(64))
    return "identity at offset 0: b'an ident' is here, an identity begins with b'MERQSTOR'"


def _no_identity(folder: Path) -> str:
    (folder / "identity").unlink()
    return "identity at offset 0: the file is missing beside a log"


def _rewrite(path: Path, offset: int, new: bytes, checksum_at: int) -> None:
    """Alters a header so that its checksum is right."""
    data = bytearray(path.read_bytes())
    data[offset : offset + len(new)] = new
    data[checksum_at : checksum_at + 4] = struct.pack("<I", crc32(data[:checksum_at]))
    path.write_bytes(data)


@pytest.mark.parametrize(
    "damage",
    [
        _missing,
        _first_missing,
        _exchanged,
        _foreign,
        _newer,
        _renumbered,
        _header,
        _newest_header,
        _identity,
        _short_identity,
        _other_identity,
        _no_identity,
    ],
)
def test_damage_is_named_with_file_and_offset(
    tmp_path: Path, damage: Callable[[Path], str]
) -> None:
    folder = store_at(tmp_path / "s", frames=60)
    expected = damage(folder)
    found = judged(folder)
    assert found.verdict is Verdict.CORRUPT
    assert str(found.corruptions[0]).startswith(expected)
    assert found.corruptions[0].read_at_opening


@pytest.mark.parametrize("size", [0, 40, 64, 200])
def test_a_newest_segment_that_was_begun_without_a_header_is_sound(
    tmp_path: Path, size: int
) -> None:
    folder = store_at(tmp_path / "s", frames=60)
    number = len(segments(folder)) + 1
    segment(folder, number).write_bytes(bytes(size))
    found = judged(folder)
    assert found.verdict is Verdict.SOUND
    assert found.segments[-1].end is End.BEGUN
    assert not segment(folder, number).exists()


def test_a_segment_in_which_a_checkpoint_ends_does_not_lack_its_header(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "s")
    writer.checkpoint()
    writer.close()
    segment(tmp_path / "s", 1).write_bytes(bytes(64))
    assert judged(tmp_path / "s").verdict is Verdict.CORRUPT


@pytest.mark.parametrize("offset", [0, 8, 20, 33, 45, 60, 64, 73, 77, 80, 88])
def test_a_damaged_checkpoint_is_corrupt(tmp_path: Path, offset: int) -> None:
    folder = store_at(tmp_path / "s", frames=60, checkpoint_after=30)
    flip(checkpoint_file(folder), offset)
    found = judged(folder)
    assert not found.checkpoints[0].whole
    (only,) = found.corruptions
    assert only.file == f"checkpoints/{checkpoint_file(folder).name}"


def test_a_short_checkpoint_is_corrupt(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=60, checkpoint_after=30)
    path = checkpoint_file(folder)
    path.write_bytes(path.read_bytes()[:-1])
    assert "bytes, " in judged(folder).corruptions[0].reason
    path.write_bytes(path.read_bytes()[:70])
    assert "section 1 of 2 is missing" in judged(folder).corruptions[0].reason


def test_a_checkpoint_ends_at_the_beginning_of_a_frame(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=60, checkpoint_after=30)
    found = inspect(folder).checkpoints[0]
    assert found.position is not None
    _rewrite(checkpoint_file(folder), 32, struct.pack("<Q", found.position + 8), 60)
    (wrong, *_) = inspect(folder).corruptions
    assert (wrong.file, wrong.offset) == (found.file, 32)
    assert "is within a frame" in wrong.reason


def test_a_checkpoint_names_the_frame_that_comes_next(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=60, checkpoint_after=30)
    _rewrite(checkpoint_file(folder), 40, struct.pack("<Q", 33), 60)
    (wrong,) = inspect(folder).corruptions
    assert wrong.reason == "it says that frame 33 comes next, in the log 31 does"


def test_a_log_that_ends_before_its_checkpoint_is_corrupt(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=10, checkpoint_after=10)
    path = segments(folder)[-1]
    offsets = frame_offsets(path.read_bytes())
    path.write_bytes(path.read_bytes()[: offsets[-1]])
    (wrong,) = judged(folder).corruptions
    assert wrong.offset == offsets[-1]
    assert "contains the log up to" in wrong.reason


def test_a_checkpoint_whose_segment_is_missing_is_corrupt(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=60, checkpoint_after=60)
    segments(folder)[-1].unlink()
    assert "needs the log from offset" in judged(folder).corruptions[0].reason


def test_damage_that_opening_does_not_read_is_found_all_the_same(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=60, checkpoint_after=55)
    flip(segments(folder)[0], 100)
    flip(segments(folder)[1], 300)
    found = judged(folder)
    assert found.verdict is Verdict.CORRUPT
    names = [f"log/{path.name}" for path in segments(folder)[:2]]
    assert [each.file for each in found.corruptions] == names
    assert not any(each.read_at_opening for each in found.corruptions)


@pytest.mark.parametrize("version", [1, 3])
def test_a_store_of_another_version_is_not_judged(tmp_path: Path, version: int) -> None:
    folder = store_at(tmp_path / "s", frames=3)
    _rewrite(folder / "identity", 8, struct.pack("<I", version), 60)
    with pytest.raises(StoreError, match=f"has version {version} of the format"):
        inspect(folder)


def test_what_is_no_part_of_a_store_is_noted(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=3)
    (folder / "log" / "notes.txt").write_text("mine", encoding="ascii")
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints" / "draft").write_bytes(b"MERQ")
    found = judged(folder)
    assert found.verdict is Verdict.SOUND
    assert len(found.notes) == 2


@pytest.mark.limit("merq.store.findings.CORRUPTIONS_MAX")
def test_the_list_of_corruptions_has_an_end(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=4)
    segment(folder, 0xFFFFFFFFFF).write_bytes(b"")
    found = inspect(folder)
    assert len(found.corruptions) == CORRUPTIONS_MAX
    assert "not listed" in found.notes[0]


@pytest.mark.parametrize("make", [False, True])
def test_a_folder_without_a_store_is_refused(tmp_path: Path, make: bool) -> None:
    folder = tmp_path / "s"
    if make:
        (folder / "log").mkdir(parents=True)
        (folder / "log" / "syslog").write_bytes(b"")
    with pytest.raises(StoreError, match="is not a store"):
        inspect(folder)


def test_progress_goes_from_nothing_to_all(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=60, checkpoint_after=30)
    steps: list[tuple[int, int]] = []
    inspection.inspect(folder, lambda done, total: steps.append((done, total)), settle_s=0)
    assert steps == sorted(steps)
    assert steps[-1][0] == steps[-1][1] > 0


def test_check_and_opening_agree_on_any_flipped_bit(tmp_path: Path) -> None:
    bases = [
        store_at(tmp_path / "plain", frames=40, unsynced=5),
        store_at(tmp_path / "checkpoint", frames=70, checkpoint_after=50, unsynced=3),
        store_at(tmp_path / "single", frames=8, checkpoint_after=3, unsynced=2),
        store_at(tmp_path / "short", frames=3, unsynced=6),
    ]
    verdicts: list[Verdict] = []
    for seed in range(200):
        chance = random.Random(seed)  # noqa: S311 - repeatable is what is wanted
        folder = tmp_path / f"case-{seed}"
        shutil.copytree(bases[seed % len(bases)], folder)
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        path = chance.choice([path for path in files if path.name != "lock"])
        for _ in range(chance.choice([1, 1, 1, 2])):
            flip(path, chance.randrange(path.stat().st_size), chance.randrange(8))
        try:
            verdicts.append(judged(folder).verdict)
        except AssertionError as wrong:
            raise AssertionError(f"seed {seed}, {path.name}: {wrong}") from wrong
        shutil.rmtree(folder)
    assert verdicts.count(Verdict.TORN) > 10
    assert verdicts.count(Verdict.CORRUPT) > 10


def test_check_and_opening_agree_wherever_the_log_is_cut_off(tmp_path: Path) -> None:
    base = store_at(tmp_path / "base", frames=12, unsynced=4)
    size = segments(base)[-1].stat().st_size
    for kept in range(0, size, 23):
        folder = tmp_path / f"case-{kept}"
        shutil.copytree(base, folder)
        path = segments(folder)[-1]
        path.write_bytes(path.read_bytes()[:kept])
        judged(folder)
        shutil.rmtree(folder)


def test_a_store_that_another_process_writes_to_is_sound(tmp_path: Path) -> None:
    folder, noted = tmp_path / "s", tmp_path / "noted"
    last: list[int] = []
    with being_written(folder, noted):
        began = time.monotonic()
        # By what was seen, not by the clock: how fast the other process is allowed to be varies.
        while len(set(last)) < 20 and time.monotonic() < began + PATIENCE_S:
            durable = int(noted.read_text(encoding="ascii"))
            found = inspection.inspect(folder, settle_s=0.05)
            assert found.verdict is Verdict.SOUND, found.corruptions
            assert found.last_sequence is not None
            # The writer puts two records in each frame but the first.
            assert found.last_sequence * 2 - 1 >= durable
            last.append(found.last_sequence)
    assert len(set(last)) == 20
    assert last == sorted(last)
    assert judged(folder).verdict is Verdict.SOUND


def finishing(path: Path, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever the checker waits, another process finishes what it was writing."""

    def sleep(seconds: float) -> None:
        if seconds:
            path.write_bytes(data)

    monkeypatch.setattr(time, "sleep", sleep)


def test_a_frame_that_is_being_written_is_growth_and_not_torn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = store_at(tmp_path / "s", frames=5)
    path = segment(folder, 1)
    whole = path.read_bytes()
    last = frame_offsets(whole)[-1]
    path.write_bytes(whole[: last + 20] + bytes(len(whole) - last - 20))
    finishing(path, whole, monkeypatch)
    found = inspection.inspect(folder)
    assert found.verdict is Verdict.SOUND
    assert (found.segments[0].end, found.segments[0].used) == (End.GROWING, last)
    assert judged(folder).last_sequence == 5


def test_a_segment_whose_header_is_being_written_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = store_at(tmp_path / "s", frames=60)
    path = segments(folder)[-1]
    whole = path.read_bytes()
    path.write_bytes(b"")
    finishing(path, whole, monkeypatch)
    found = inspection.inspect(folder)
    assert (found.verdict, found.last_sequence) == (Verdict.SOUND, 60)


@pytest.mark.limit("merq.store.scanning.SETTLE_ROUNDS_MAX")
def test_an_end_that_changes_at_every_look_counts_as_growing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = store_at(tmp_path / "s", frames=5)
    path = segment(folder, 1)
    last = frame_offsets(path.read_bytes())[-1]
    path.write_bytes(path.read_bytes()[: last + 40])
    assert inspect(folder).segments[0].end is End.TORN
    monkeypatch.setattr(scanning, "SETTLE_ROUNDS_MAX", 1)
    assert inspect(folder).segments[0].end is End.GROWING


@pytest.mark.limit("merq.store.viewing.ATTEMPTS_MAX")
def test_a_store_that_drops_its_files_at_every_look_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = store_at(tmp_path / "s", frames=60, checkpoint_after=33)
    looks = count(1)

    def with_a_writer(place: Path) -> list[str]:
        """What is there; right afterwards a writer puts the next checkpoint in its place."""
        found = names_in(place)
        if place.name == "checkpoints":
            number = next(looks)
            (place / found[-1]).rename(place / f"{number + 100:016x}.checkpoint")
        return found

    monkeypatch.setattr(viewing, "names_in", with_a_writer)
    with pytest.raises(StoreError, match=f"changed {viewing.ATTEMPTS_MAX} times"):
        inspect(folder)
    assert next(looks) > viewing.ATTEMPTS_MAX
