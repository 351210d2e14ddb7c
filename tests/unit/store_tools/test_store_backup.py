"""Backups: whole, in order, nothing durable missing; and nothing half done."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from merq.errors import StoreCorrupt, StoreError
from merq.store.backup import back_up, restore
from merq.store.findings import Verdict
from merq.store.inspection import inspect
from merq.store.log import LogSettings
from merq.store.viewing import HELD_MAX
from unit.store_tools.building_stores import (
    PATIENCE_S,
    STORE,
    Writer,
    being_written,
    checkpoint_file,
    contents,
    flip,
    seen,
    segments,
    store_at,
)


@pytest.mark.parametrize("checkpoint_after", [0, 35])
def test_a_backup_opens_as_the_store_does(tmp_path: Path, checkpoint_after: int) -> None:
    folder = store_at(tmp_path / "s", frames=60, checkpoint_after=checkpoint_after, unsynced=3)
    before = contents(folder)
    report = back_up(folder, tmp_path / "b")
    assert contents(folder) == before
    assert (report.store_id, report.last_sequence) == (STORE.store_id, 63)
    assert report.checkpoint == (1 if checkpoint_after else None)
    assert (report.target, report.segments) == (tmp_path / "b", len(segments(folder)))
    first, copy = seen(folder), seen(tmp_path / "b")
    assert (copy.contained, copy.living, copy.numbers) == (
        first.contained,
        first.living,
        first.numbers,
    )
    assert copy.opened.torn is None


def test_what_a_backup_copies_is_private(tmp_path: Path) -> None:
    back_up(store_at(tmp_path / "s", frames=3), tmp_path / "b")
    modes = {path.stat().st_mode & 0o77 for path in (tmp_path / "b").rglob("*")}
    assert modes | {(tmp_path / "b").stat().st_mode & 0o77} == {0}


def test_a_backup_while_another_process_writes_holds_all_that_was_durable(tmp_path: Path) -> None:
    folder, noted = tmp_path / "s", tmp_path / "noted"
    made: list[tuple[Path, int]] = []
    with being_written(folder, noted):
        began = time.monotonic()
        dropped = 0
        # Until segments went away between two backups often enough, however long that takes.
        while dropped < 8 and time.monotonic() < began + PATIENCE_S:
            durable = int(noted.read_text(encoding="ascii"))
            oldest = segments(folder)[0]
            back_up(folder, tmp_path / f"b{len(made)}")
            made.append((tmp_path / f"b{len(made)}", durable))
            dropped += not oldest.exists()
    assert dropped == 8
    for target, durable in made:
        copy = seen(target)
        assert copy.numbers == list(range(copy.contained + 1, copy.last + 1))
        assert copy.last >= durable
        assert copy.opened.torn is None
    whole = seen(folder)
    assert seen(made[0][0]).last < seen(made[-1][0]).last <= whole.last
    assert seen(made[-1][0]).contained > 0
    assert [path.name for path in tmp_path.iterdir() if "unfinished" in path.name] == []


def test_a_torn_tail_is_not_copied(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=5)
    with segments(folder)[-1].open("ab") as file:
        file.write(b"FRAM and half a header")
    back_up(folder, tmp_path / "b")
    assert inspect(tmp_path / "b").verdict is Verdict.SOUND
    copy = seen(tmp_path / "b")
    assert copy.opened.torn is None
    assert copy.last == seen(folder).last


def test_a_segment_that_was_only_begun_is_not_copied(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=60)
    count = len(segments(folder))
    (folder / "log" / f"{count + 1:016x}.segment").write_bytes(b"")
    assert back_up(folder, tmp_path / "b").segments == count
    assert inspect(tmp_path / "b").verdict is Verdict.SOUND


@pytest.mark.limit("merq.store.viewing.HELD_MAX")
def test_a_store_of_more_segments_than_are_held_open_is_copied(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "s", LogSettings(segment_size=128, reserve_step=128))
    writer.append(HELD_MAX + 20, sync=False)
    writer.close()
    report = back_up(tmp_path / "s", tmp_path / "b")
    assert report.segments > HELD_MAX + 10
    assert seen(tmp_path / "b").last == writer.number


def test_an_empty_store_is_copied(tmp_path: Path) -> None:
    Writer(tmp_path / "s").close()
    report = back_up(tmp_path / "s", tmp_path / "b")
    assert (report.frames, report.last_sequence) == (0, None)
    assert seen(tmp_path / "b").opened.identity == STORE


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=3)
    (tmp_path / "b").mkdir()
    back_up(folder, tmp_path / "b")
    assert seen(tmp_path / "b").last == seen(folder).last


def test_a_corrupt_store_is_not_backed_up(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=60, checkpoint_after=50)
    flip(segments(folder)[0], 100)
    with pytest.raises(StoreCorrupt) as caught:
        back_up(folder, tmp_path / "b")
    assert caught.value.file == f"log/{segments(folder)[0].name}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s"]


def test_a_place_that_cannot_be_taken_is_refused_and_left_alone(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=3)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_bytes(b"1")
    (tmp_path / "file").write_bytes(b"2")
    before = contents(tmp_path)
    for target in (
        tmp_path / "full",
        tmp_path / "file",
        tmp_path / "none" / "b",
        folder,
        folder / "b",
        folder / "log" / "b",
    ):
        with pytest.raises(StoreError):
            back_up(folder, target)
        with pytest.raises(StoreError):
            restore(folder, target)
    with pytest.raises(StoreError, match="is not a store"):
        back_up(tmp_path / "full", tmp_path / "b")
    assert contents(tmp_path) == before


class _Stopped(BaseException):
    """As Ctrl-C is."""


@pytest.mark.parametrize("step", range(0, 12, 3))
def test_an_interrupted_backup_leaves_nothing(tmp_path: Path, step: int) -> None:
    folder = store_at(tmp_path / "s", frames=60)
    calls = 0

    def stop(_done: int, _total: int) -> None:
        nonlocal calls
        calls += 1
        if calls > step:
            raise _Stopped

    with pytest.raises(_Stopped):
        back_up(folder, tmp_path / "b", stop)
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_progress_of_a_backup_goes_up_to_all(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=60, checkpoint_after=30)
    shares: list[float] = []
    back_up(folder, tmp_path / "b", lambda done, total: shares.append(done / total))
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_a_restored_store_is_the_one_that_was_backed_up(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=60, checkpoint_after=35)
    back_up(folder, tmp_path / "b")
    before = contents(tmp_path / "b")
    report = restore(tmp_path / "b", tmp_path / "r")
    assert report.store_id == STORE.store_id
    assert contents(tmp_path / "r") == contents(tmp_path / "b") == before
    assert seen(tmp_path / "r").numbers == seen(folder).numbers


def _corrupt(backup: Path) -> None:
    flip(segments(backup)[-1], 100)


def _torn(backup: Path) -> None:
    path = segments(backup)[-1]
    path.write_bytes(path.read_bytes()[:-8])


def _checkpoint(backup: Path) -> None:
    flip(checkpoint_file(backup), 90)


def _missing(backup: Path) -> None:
    segments(backup)[1].unlink()


def _headless(backup: Path) -> None:
    path = segments(backup)[-1]
    path.write_bytes(path.read_bytes()[:40])


@pytest.mark.parametrize("damage", [_corrupt, _torn, _checkpoint, _missing, _headless])
def test_a_damaged_backup_is_refused_and_nothing_is_changed(tmp_path: Path, damage: object) -> None:
    back_up(store_at(tmp_path / "s", frames=60, checkpoint_after=20), tmp_path / "b")
    shutil.rmtree(tmp_path / "s")
    assert callable(damage)
    damage(tmp_path / "b")
    before = contents(tmp_path)
    with pytest.raises(StoreCorrupt):
        restore(tmp_path / "b", tmp_path / "r")
    assert contents(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
