"""`merq names explain` as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MERQ = Path(sys.executable).parent / "merq"
PATIENCE_S = 30

GOOD = r"DIRECT=TCP:10.0.0.7\private$\orders;JOURNAL"
BAD = r"DIRECT=TCP:10.0.0\private$\orders"
BAD_AT = BAD.index("\\")


def explain(*arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [MERQ, "names", "explain", *arguments],
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1", **changes},
    )
    assert "Traceback" not in done.stderr + done.stdout
    return done


@pytest.mark.spec("MS-MQMQ 2.1.2")
def test_a_name_is_explained_part_by_part() -> None:
    done = explain(GOOD)
    assert (done.returncode, done.stderr) == (0, "")
    first, *rest = done.stdout.splitlines()
    assert first == r"DIRECT=TCP:10.0.0.7\PRIVATE$\orders;JOURNAL  direct format name"
    assert [line.split()[:2] for line in rest[:5]] == [
        ["protocol", "TCP"],
        ["computer", "10.0.0.7"],
        ["scope", "private"],
        ["queue", "orders"],
        ["suffix", "JOURNAL"],
    ]


@pytest.mark.spec("MS-MQMQ 2.1.2")
def test_an_explanation_is_one_json_object_if_asked_for() -> None:
    done = explain("--json", GOOD)
    assert done.returncode == 0
    (line,) = done.stdout.splitlines()
    shown = json.loads(line)
    assert list(shown) == ["kind", "canonical", "parts", "notes"]
    assert shown["kind"] == "direct format name"
    assert [(part["label"], part["value"]) for part in shown["parts"]] == [
        ("protocol", "TCP"),
        ("computer", "10.0.0.7"),
        ("scope", "private"),
        ("queue", "orders"),
        ("suffix", "JOURNAL"),
    ]


@pytest.mark.spec("MS-MQMQ 2.1.1")
def test_a_path_name_is_explained_too() -> None:
    done = explain("--json", r".\private$\orders")
    assert done.returncode == 0
    assert json.loads(done.stdout)["kind"] == "path name"


@pytest.mark.parametrize(
    ("name", "marked"),
    [(BAD, BAD_AT), (r"漢字\a\b", len("漢字") * 2 + 2), ("a\x1b[31m\\q", 1), ("", 0)],
)
def test_what_is_wrong_with_a_name_is_marked_where_it_is(name: str, marked: int) -> None:
    done = explain(name)
    assert (done.returncode, done.stdout) == (1, "")
    shown, mark, reason = done.stderr.splitlines()
    assert shown == name.replace("\x1b", "\N{REPLACEMENT CHARACTER}")
    assert mark == " " * marked + "^"
    assert reason.startswith("found ")


def test_what_is_wrong_with_a_name_is_one_json_object_if_asked_for() -> None:
    done = explain("--json", BAD)
    assert done.returncode == 1
    shown = json.loads(done.stdout)
    assert set(shown) == {"error", "position"}
    assert shown["position"] == BAD_AT


def test_letters_that_the_output_cannot_show_are_written_as_escapes() -> None:
    done = explain(r"漢\q", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.startswith(r"\u6f22\q")


def test_a_long_name_is_not_wrapped() -> None:
    names = ",".join(rf"DIRECT=OS:computer{number}\private$\orders" for number in range(100))
    first = explain(names).stdout.splitlines()[0]
    assert first.startswith(names.replace("private$", "PRIVATE$"))


def test_help_shows_names_to_explain() -> None:
    done = explain("--help")
    assert done.returncode == 0
    examples = [line for line in done.stdout.splitlines() if "merq names explain '" in line]
    assert len(examples) >= 3
    for line in examples:
        assert explain(line.split("'")[1]).returncode == 0


def test_a_name_that_is_missing_is_wrong_usage() -> None:
    done = explain()
    assert done.returncode == 2
    assert "NAME" in done.stderr
