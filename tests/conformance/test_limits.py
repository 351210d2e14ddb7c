"""The register of limits: every limit is in it, and each says what happens and who shows it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.conformance import results
from tools.limits import checks, command
from tools.limits.declared import Setting, declared
from tools.limits.page import rendered
from tools.limits.register import FILE, Entry, Kind, load

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = [
    Setting("limits.idle_s", '"90 s"', "Silence."),
    Setting("exchange.links_max", "4096", "Links."),
    Setting("exchange.port", "1801", "The port."),
]
SOURCE = '''
from other import STEP
ROWS_MAX = 4 * STEP
"""Rows at a time."""
MAX_ROUNDS: Final = 1 << 20
_HOPS_LIMIT = 3
MAXIMAL = 7
PORT = 1801


class Settings:
    lost_max: int = 5
    links_max: int = 4096
    most: int = 4


def work():
    INNER_MAX = 9
'''


class Small:
    """A small project with limits, a register and tests."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.file("src/other.py", "STEP = 16\n")
        self.file("src/code.py", SOURCE)
        self.entries = {
            name: f'{{ name = "{name}", reached = "It ends." }},'
            for name in (
                "code.ROWS_MAX",
                "code.MAX_ROUNDS",
                "code._HOPS_LIMIT",
                "code.Settings.lost_max",
                "limits.idle_s",
                "exchange.links_max",
            )
        }
        self.tests = dict.fromkeys(self.entries, "def test_it(): pass")

    def file(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def write(self) -> None:
        lines = "\n".join(self.entries.values())
        self.file(FILE.as_posix(), f"limits = [\n{lines}\n]\n")
        tests = [
            f'@pytest.mark.limit("{name}")\n{text.replace("_it", f"_{number}")}\n'
            for number, (name, text) in enumerate(self.tests.items())
        ]
        self.file("tests/test_code.py", "import pytest\n" + "".join(tests))

    def run(self, *arguments: str) -> int:
        self.write()
        return command.main(["--root", str(self.root), *arguments], SETTINGS)

    def found(self) -> list[str]:
        self.write()
        known = declared(self.root, SETTINGS)
        return [str(each) for each in checks.check(self.root, load(self.root), known)]


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path)


def test_the_register_of_this_project_is_in_order() -> None:
    known = declared(ROOT, command.settings_of_the_service())
    assert [str(each) for each in checks.check(ROOT, load(ROOT), known)] == []


def test_limits_are_found_in_constants_fields_and_settings(small: Small) -> None:
    known = declared(small.root, SETTINGS)
    assert {name for name, each in known.items() if each.is_limit} == set(small.entries)
    assert known["code.ROWS_MAX"].value == 64
    assert known["code.ROWS_MAX"].says == "Rows at a time."
    assert known["code.MAX_ROUNDS"].value == 1 << 20


def test_a_project_in_order_gives_no_findings(small: Small) -> None:
    assert small.found() == []


def test_a_limit_that_is_not_registered_is_refused_with_the_line_to_add(small: Small) -> None:
    del small.entries["code.ROWS_MAX"]
    first, second = small.found()
    assert first.startswith("src/code.py:3: is not registered; conformance/limits.toml needs {")
    assert 'name = "code.ROWS_MAX"' in first
    assert "is marked with 'code.ROWS_MAX', which is not registered" in second


def test_an_entry_whose_limit_is_gone_is_refused(small: Small) -> None:
    small.file("src/code.py", SOURCE.replace("ROWS_MAX = 4 * STEP", "ROWS = 4"))
    assert small.found() == ["code.ROWS_MAX: is registered, but there is no such limit any more"]


def test_whatever_exists_may_be_registered_too(small: Small) -> None:
    for name in ("code.PORT", "exchange.port"):
        small.entries[name] = f'{{ name = "{name}", kind = "format", reached = "x" }},'
    assert small.found() == []


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ('reached = " "', "does not say what happens"),
        ('reached = "x", unshown = "why"', "says that no test reaches it, but one is marked"),
        ('reached = "x", of = "code.PORT"', "has an `of`"),
        ('kind = "copy", of = "code.NONE"', "is a copy of code.NONE, which there is not"),
        ('kind = "copy", of = "code.PORT"', "is 64, and code.PORT, which it is a copy of, is 1801"),
    ],
)
def test_an_entry_says_what_it_has_to(small: Small, entry: str, fault: str) -> None:
    small.entries["code.ROWS_MAX"] = f'{{ name = "code.ROWS_MAX", {entry} }},'
    (found,) = small.found()
    assert found.startswith("code.ROWS_MAX: ")
    assert fault in found


def test_a_limit_without_a_test_is_refused_unless_it_says_why(small: Small) -> None:
    del small.tests["code.ROWS_MAX"]
    (found,) = small.found()
    assert "no test is marked with it" in found
    for more in ('unshown = "too large"', 'kind = "format"', 'kind = "display"'):
        entry = f'{{ name = "code.ROWS_MAX", reached = "x", {more} }},'
        small.entries["code.ROWS_MAX"] = entry
        assert small.found() == []


def test_a_name_that_stands_there_twice_is_refused(small: Small) -> None:
    small.entries["again"] = small.entries["code.ROWS_MAX"]
    assert small.found() == ["code.ROWS_MAX: stands there twice"]


@pytest.mark.parametrize("text", ["limits = [{}]", "limits = [{ name = 1 }]", "x = [", "y = 1"])
def test_a_file_that_makes_no_sense_is_an_error(
    small: Small, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    small.file(FILE.as_posix(), text)
    assert command.main(["--root", str(small.root), "check"], SETTINGS) == command.FAILED
    assert FILE.name in capsys.readouterr().err


def test_an_entry_with_an_unknown_key_is_an_error(small: Small) -> None:
    small.entries["x"] = '{ name = "code.PORT", test = "none" },'
    assert small.run("check") == command.FAILED


def test_the_page_has_every_limit_and_counts_those_without_a_test(small: Small) -> None:
    del small.tests["code.ROWS_MAX"]
    entry = '{ name = "code.ROWS_MAX", reached = "It | ends.", unshown = "too large" },'
    small.entries["code.ROWS_MAX"] = entry
    assert small.run("report") == small.run("check") == command.FOUND_NOTHING
    page = (small.root / "docs/reference/limits.md").read_text(encoding="utf-8")
    assert "6 limits keep something from growing or from taking for ever: 5 are" in page
    assert "reached by a test, 1 not yet" in page
    row = "| `code.ROWS_MAX` | 64 | Rows at a time. | It \\| ends. | none yet: too large |"
    assert row in page
    assert "| `exchange.links_max` | `4096` | Links. | It ends. | [test_" in page
    small.file("src/other.py", "STEP = 17\n")
    assert small.run("check") == command.FOUND_SOMETHING


def test_a_mark_counts_only_from_a_test_that_ran_and_passed(
    small: Small, capsys: pytest.CaptureFixture[str]
) -> None:
    small.tests["code.ROWS_MAX"] = "@pytest.mark.skip\ndef test_it(): pass"
    small.tests["code.MAX_ROUNDS"] = "def test_it(): assert False"
    small.tests["limits.idle_s"] = "@pytest.mark.xfail\ndef test_it(): assert False"
    small.write()
    small.file("pytest.ini", "[pytest]\nmarkers = limit\naddopts = -p no:cacheprovider\n")
    path = small.root / results.FOLDER / "tests.json"
    recording = ["-p", "tools.conformance.recording", f"--spec-results={path}"]
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *recording, "tests"],
        cwd=small.root,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        check=False,
    )
    assert small.run("proved") == command.FOUND_SOMETHING
    assert capsys.readouterr().out.splitlines()[:-1] == [
        "limits: code.ROWS_MAX: no test marked with it ran and passed",
        "limits: code.MAX_ROUNDS: a test marked with it failed",
        "limits: limits.idle_s: no test marked with it ran and passed",
    ]


def test_without_results_the_check_says_what_to_run(
    small: Small, capsys: pytest.CaptureFixture[str]
) -> None:
    assert small.run("proved") == command.FAILED
    assert "run `make test`" in capsys.readouterr().err


def test_copies_are_not_on_the_page(small: Small) -> None:
    small.file("src/code.py", SOURCE + "COPY_MAX = 64\n")
    entries = [Entry(name="code.COPY_MAX", kind=Kind.COPY, of="code.ROWS_MAX")]
    assert "COPY_MAX" not in rendered(small.root, entries, declared(small.root, SETTINGS))
