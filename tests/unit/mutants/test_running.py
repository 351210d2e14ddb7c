"""The whole tool on a project of a few lines, in whose tests the holes are known."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]

SOURCE = '''"""Small."""

LIMIT = 10
UNKNOWN = 5


def allowed(count, most=LIMIT):
    if count > most:
        return False
    return True


def counted(items):
    found = 0
    while items:
        items.pop()
        found += 1
    return found


def forgotten():
    return 1
'''

TESTS = '''"""Of the small one."""

import tempfile
from pathlib import Path

from merq.exchange import small


def test_ten_are_allowed(tmp_path):
    assert small.allowed(3)
    assert small.allowed(10)


def test_twenty_are_not():
    assert small.allowed(20) is False


def test_all_are_counted():
    Path(tempfile.mkdtemp(), "left").touch()
    assert small.counted([1, 2, 3]) == 3
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the tool beside a source and its tests."""
    root = tmp_path / "project"
    shutil.copytree(
        ROOT / "tools" / "mutants",
        root / "tools" / "mutants",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for name, text in {
        "src/merq/__init__.py": "",
        "src/merq/exchange/__init__.py": "",
        "src/merq/exchange/small.py": SOURCE,
        "tests/unit/exchange/test_small.py": TESTS,
        "pytest.ini": "[pytest]\naddopts = --import-mode=importlib\n",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def started(project: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(project / "tools" / "mutants"), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(project.parent)},
    )


def ran(project: Path, *arguments: str) -> str:
    with started(project, *arguments) as process:
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return said


def report(project: Path, name: str = "report") -> dict[str, Any]:
    path = project / ".build" / "mutants" / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def verdicts(project: Path, name: str = "report") -> dict[tuple[str, str], str]:
    return {
        (it["mutant"]["original"], it["mutant"]["mutated"]): it["outcome"]["verdict"]
        for it in report(project, name)["results"]
    }


def test_what_the_tests_notice_is_told_from_what_they_do_not(project: Path) -> None:
    said = ran(project, "--sample", "all")
    found = verdicts(project)
    assert found["if count > most:", "if count >= most:"] == "killed"
    assert found["if count > most:", "if False:"] == "killed"
    assert found["LIMIT = 10", "LIMIT = 9"] == "killed", "it counts when the module is imported"
    assert found["LIMIT = 10", "LIMIT = 11"] == "survived"
    assert found["UNKNOWN = 5", "UNKNOWN = 6"] == "survived"
    assert found["found += 1", "found -= 1"] == "killed"
    assert found["found += 1", "pass"] == "killed"
    assert found["return 1", "return 2"] == "untested"
    assert "items.pop()" in {
        original for (original, _), verdict in found.items() if verdict == "timeout"
    }, "without it the loop does not end"
    assert "survived src/merq/exchange/small.py:3 [constant] LIMIT = 10  →  LIMIT = 11" in said
    text = (project / ".build" / "mutants" / "report.txt").read_text(encoding="utf-8")
    assert "3 tests ran: tests/unit/exchange/test_small.py::test_" in text
    assert "no test runs this line" in text
    assert [path.name for path in project.parent.iterdir()] == ["project"], "nothing is left behind"


def test_a_new_test_is_enough_for_those_that_nobody_noticed(project: Path) -> None:
    ran(project, "--sample", "all")
    tests = project / "tests" / "unit" / "exchange" / "test_small.py"
    text = tests.read_text(encoding="utf-8")
    more = "def test_eleven_are_too_many():\n    assert not small.allowed(11)\n"
    tests.write_text(f"{text}\n\n{more}", encoding="utf-8")
    before = project / ".build" / "mutants" / "report.json"
    ran(project, "--sample", "all", "--again", str(before), "--name", "again")
    found = verdicts(project, "again")
    assert found["LIMIT = 10", "LIMIT = 11"] == "killed"
    assert ("LIMIT = 10", "LIMIT = 9") not in found, "that was noticed before"


def test_a_seed_gives_the_same_sample_each_time(project: Path) -> None:
    first = ran(project, "--sample", "5", "--seed", "1", "--list")
    assert len(first.splitlines()) == 5
    assert ran(project, "--sample", "5", "--seed", "1", "--list") == first
    assert ran(project, "--sample", "5", "--seed", "2", "--list") != first


def test_tests_that_fail_anyway_are_left_out(project: Path) -> None:
    tests = project / "tests" / "unit" / "exchange" / "test_small.py"
    failing = "def test_wrong():\n    assert small.allowed(3) is None\n"
    tests.write_text(f"{TESTS}\n\n{failing}", encoding="utf-8")
    said = ran(project, "--sample", "all")
    assert "fails on the unchanged source: tests/unit/exchange/test_small.py::test_wrong" in said
    assert verdicts(project)["LIMIT = 10", "LIMIT = 11"] == "survived"


def test_an_interruption_writes_what_was_found_and_leaves_nothing_running(project: Path) -> None:
    source = project / "src" / "merq" / "exchange" / "small.py"
    slow = "import time\n\n\ndef waits():\n    time.sleep(0.2)\n"
    source.write_text(SOURCE + "\n\n" + slow, encoding="utf-8")
    tests = project / "tests" / "unit" / "exchange" / "test_small.py"
    more = "def test_it_waits():\n    for _ in range(10):\n        small.waits()\n"
    tests.write_text(f"{TESTS}\n\n{more}", encoding="utf-8")
    with started(project, "--sample", "all") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("survived"):
                break
        time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        assert process.wait(timeout=30) == 130
    assert "interrupted" in rest
    found = report(project)
    assert not found["finished"]
    assert found["results"]
    assert [path.name for path in project.parent.iterdir()] == ["project"]
