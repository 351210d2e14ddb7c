"""`merq store` as an operator runs it."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from unit.store_tools.building_stores import (
    STORE,
    being_written,
    contents,
    flip,
    seen,
    segments,
    store_at,
)

MERQ = Path(sys.executable).parent / "merq"
PATIENCE_S = 30
FILE_SIZE_MAX = 1024


def store(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [MERQ, "store", *arguments],
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert "Traceback" not in done.stderr + done.stdout
    return done


def test_a_sound_store_is_shown_as_tables(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=60, checkpoint_after=50)
    done = store("check", folder)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert lines[0] == f"store {STORE.store_id}"
    assert lines[1] == f"{folder}  created 2023-11-14 22:13:20 UTC"
    assert lines[2].split()[:5] == ["segment", "size", "used", "frames", "records"]
    rows = [line.split() for line in lines[3 : 3 + len(segments(folder))]]
    assert [int(row[0], 10) for row in rows] == [int(path.stem, 16) for path in segments(folder)]
    assert all(row[-1] == "clean" for row in rows)
    assert rows[-1][-2].endswith("..60")
    assert re.search(r"segment \d+, offset \d+ +51 +1:8 bytes 2:.* ok$", lines[-2])
    assert lines[-1] == "sound"


def test_a_check_is_one_json_object_if_asked_for(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=60, checkpoint_after=50)
    done = store("check", "--json", folder)
    (line,) = done.stdout.splitlines()
    shown = json.loads(line)
    assert list(shown) == [
        "folder",
        "verdict",
        "store_id",
        "created",
        "segments",
        "checkpoints",
        "aside",
        "corruptions",
        "notes",
    ]
    assert (shown["verdict"], shown["store_id"]) == ("sound", str(STORE.store_id))
    assert shown["segments"][-1]["last_sequence"] == 60
    assert shown["segments"][-1]["torn_at"] is None
    assert shown["checkpoints"][0]["sections"][0] == {"kind": 1, "size": 8}


def test_a_torn_tail_is_no_failure(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=3)
    used = json.loads(store("check", "--json", folder).stdout)["segments"][0]["used"]
    with segments(folder)[0].open("r+b") as file:
        file.seek(used)
        file.write(b"half a frame")
    done = store("check", folder)
    assert done.returncode == 0
    assert f"torn at {used}" in done.stdout
    assert done.stdout.endswith("sound, with a torn tail that opening will cut off\n")
    shown = json.loads(store("check", "--json", folder).stdout)
    assert (shown["verdict"], shown["segments"][0]["torn_at"]) == ("torn", used)
    assert seen(folder).opened.torn is not None
    done = store("check", folder)
    assert "cut off by an earlier opening" in done.stdout
    assert done.stdout.endswith("\nsound\n")


def test_corruption_is_listed_and_fails(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=60, checkpoint_after=50)
    flip(folder / "identity", 30)
    flip(segments(folder)[0], 64 + 53)
    done = store("check", folder)
    assert done.returncode == 1
    assert "✗ identity at offset 60: the checksum is 0x" in done.stdout
    assert f"✗ log/{segments(folder)[0].name} at offset 64: frame " in done.stdout
    assert "(opening does not read this place)" in done.stdout
    assert done.stdout.endswith("\ncorrupt\n")
    shown = json.loads(store("check", "--json", folder).stdout)
    assert shown["verdict"] == "corrupt"
    assert [each["offset"] for each in shown["corruptions"]] == [60, 64]
    assert [each["read_at_opening"] for each in shown["corruptions"]] == [True, False]


def test_a_folder_that_is_not_a_store_is_a_failure(tmp_path: Path) -> None:
    for folder, why in (
        (tmp_path, "it has no file named identity"),
        (tmp_path / "none", "there is no such folder"),
    ):
        done = store("check", folder)
        expected = f"merq: {folder} is not a store: {why}\n"
        assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)
    done = store("check", "--json", tmp_path)
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"].endswith("it has no file named identity")
    assert store("backup", tmp_path, tmp_path / "b").returncode == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["check"], ["restore", "a"], ["mend"]])
def test_wrong_usage_has_a_status_of_its_own(arguments: list[str]) -> None:
    done = store(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Usage:" in done.stderr


def test_help_shows_how_it_is_used() -> None:
    for command in ("check", "backup", "restore"):
        done = store(command, "--help")
        assert done.returncode == 0
        assert f"merq store {command} " in done.stdout
    done = subprocess.run([MERQ, "--help"], capture_output=True, check=True, encoding="utf-8")
    assert "merq store check DIR" in done.stdout


def test_a_store_in_use_is_checked_backed_up_and_restored(tmp_path: Path) -> None:
    folder, noted = tmp_path / "s", tmp_path / "noted"
    with being_written(folder, noted):
        assert store("check", folder).returncode == 0
        durable = int(noted.read_text(encoding="ascii"))
        done = store("backup", folder, tmp_path / "b")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"{tmp_path / 'b'}: store {STORE.store_id}, ")
        assert done.stdout.endswith(", checked\n")
    done = store("restore", tmp_path / "b", tmp_path / "r")
    assert done.returncode == 0
    assert f"Warning: only one copy of store {STORE.store_id} may run" in done.stderr
    assert contents(tmp_path / "r") == contents(tmp_path / "b")
    assert durable <= seen(tmp_path / "r").last <= seen(folder).last


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=3)
    store_at(tmp_path / "other", frames=5)
    before = contents(tmp_path)
    for command in ("backup", "restore"):
        done = store(command, folder, tmp_path / "other")
        assert done.returncode == 1
        assert "is not empty: name a folder that is new or empty, or move that" in done.stderr
    assert contents(tmp_path) == before


def test_a_damaged_backup_is_refused_with_what_to_do(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "b", frames=60)
    flip(segments(folder)[1], 80)
    done = store("restore", folder, tmp_path / "r")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"in {folder}, log/{segments(folder)[1].name} is corrupt at offset 64" in done.stderr
    assert f"nothing was copied. `merq store check {folder}`" in done.stderr
    assert not (tmp_path / "r").exists()


def test_a_backup_without_room_leaves_nothing(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=60)
    done = subprocess.run(
        [MERQ, "store", "backup", folder, tmp_path / "b"],
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
        encoding="utf-8",
        preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (FILE_SIZE_MAX, FILE_SIZE_MAX)
        ),
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"merq: copying to {tmp_path / 'b'}: File too large")
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_a_quick_check_shows_no_progress_even_on_a_terminal(tmp_path: Path) -> None:
    folder = store_at(tmp_path / "s", frames=60)
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [MERQ, "store", "check", folder],
        stdout=subprocess.PIPE,
        stderr=theirs,
        check=False,
        timeout=PATIENCE_S,
    )
    os.write(theirs, b"nothing else")
    shown = os.read(ours, 1000)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0
    assert shown == b"nothing else"
