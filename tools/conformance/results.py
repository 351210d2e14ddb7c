"""What the tests of a run have shown: one file a part of the run, in `.build/conformance`.

A file names each marked test that ran, what became of it, and the sources that it ran over by a
fingerprint. Results of other sources are not results of these: they are refused. `recording` writes
the files; not in here: what has to be shown (`checks`).
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from tools.conformance.register import RegisterError, write

FOLDER = Path(".build/conformance")
TESTED = ("src", "tests", "pyproject.toml")
ADVICE = "run `make test`, which runs all tests and then this check"


class Outcome(StrEnum):
    """What became of a test; one that was skipped or was expected to fail shows nothing."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A marked test that ran, by its node id: what it is marked with, and what became of it."""

    node: str
    marks: tuple[str, ...]
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What one run of pytest has shown."""

    fingerprint: str
    complete: bool
    shown: tuple[Shown, ...]


def fingerprint(root: Path) -> str:
    """A digest of everything that decides what the tests show: sources, tests, settings."""
    digest = hashlib.sha256()
    for top in TESTED:
        path = root / top
        files = path.rglob("*") if path.is_dir() else [path]
        for file in sorted(files):
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(f"{file.relative_to(root).as_posix()}\0".encode())
                digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def save(path: Path, results: Results) -> None:
    """Write what a run has shown."""
    table = {
        "fingerprint": results.fingerprint,
        "complete": results.complete,
        "shown": [
            {"node": each.node, "marks": each.marks, "outcome": each.outcome.value}
            for each in results.shown
        ],
    }
    write({path: json.dumps(table, indent=1) + "\n"})


def load_all(root: Path) -> list[Shown]:
    """What the runs over the sources as they are now have shown; an error if there is none."""
    paths = sorted((root / FOLDER).glob("*.json"))
    if not paths:
        raise RegisterError(f"{root / FOLDER} holds no results of tests: {ADVICE}")
    current = fingerprint(root)
    found: list[Shown] = []
    for path in paths:
        results = _load(path)
        if results.fingerprint != current:
            raise RegisterError(f"{path}: src or tests have changed since: {ADVICE}")
        if not results.complete:
            raise RegisterError(f"{path}: its run was broken off: {ADVICE}")
        found += results.shown
    return found


def _load(path: Path) -> Results:
    try:
        table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return Results(
            fingerprint=table["fingerprint"],
            complete=table["complete"],
            shown=tuple(
                Shown(
                    node=each["node"],
                    marks=tuple(each["marks"]),
                    outcome=Outcome(each["outcome"]),
                )
                for each in table["shown"]
            ),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RegisterError(f"{path}: {type(error).__name__}: {error}; {ADVICE}") from error


def by_mark(shown: Iterable[Shown]) -> dict[str, set[Outcome]]:
    """What became of the tests with each mark."""
    found: dict[str, set[Outcome]] = {}
    for each in shown:
        for mark in each.marks:
            found.setdefault(mark, set()).add(each.outcome)
    return found
