"""Which tests run which lines, and how long each test takes.

Every test is run and timed, then run again under a tracer. What was found is kept in a file until
the sources or the test's module change. A test that fails on the unchanged source is left out.
"""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from tools.mutants import children
from tools.mutants.suite import FOLDERS, ROOT, Suite, run_pytest


@dataclass(frozen=True)
class Coverage:
    """Processor seconds of every test that passes, and the tests that run every line."""

    seconds: dict[str, float]
    failing: list[str]
    lines: dict[str, dict[int, list[str]]]

    def running(self, path: str, first: int, last: int) -> set[str]:
        """The tests that run one of the lines of a file."""
        known = self.lines.get(path, {})
        return {name for line in range(first, last + 1) for name in known.get(line, ())}

    def touching(self, paths: Iterable[str]) -> set[str]:
        """The tests that run anything in one of the files."""
        return {
            name for path in paths for names in self.lines.get(path, {}).values() for name in names
        }


def measured(folder: Path, watched: list[Path]) -> Coverage:
    """How the tests cover the watched files now.

    What the folder's file knows of test modules that have not changed is taken from there.
    """
    kept = folder / "coverage.json"
    sources = _digest(path for path in _files("src/merq", "tests") if not _is_test(path))
    found = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
    if found.get("sources") != sources:
        found = {"sources": sources, "modules": {}}
    modules = {
        path.relative_to(ROOT).as_posix(): _digest([path])
        for path in _files(*FOLDERS)
        if _is_test(path)
    }
    known = {
        name: module
        for name, module in found["modules"].items()
        if module["digest"] == modules.get(name)
    }
    stale = [name for name in modules if name not in known]
    if stale:
        folder.mkdir(parents=True, exist_ok=True)
        print(f"timing the tests of {len(stale)} modules", flush=True)
        seconds = _gathered(folder, stale, _timed)
        print("running them again to see which lines they run", flush=True)
        lines = _gathered(folder, stale, lambda suite: _traced(suite, watched))
        for name in stale:
            known[name] = {
                "digest": modules[name],
                "seconds": {it: took for it, took in seconds.items() if _module(it) == name},
                "lines": {it: ran for it, ran in lines.items() if _module(it) == name},
            }
        found["modules"] = known
        kept.write_text(json.dumps(found), encoding="utf-8")
    return _joined(known.values())


def _joined(modules: Iterable[dict[str, Any]]) -> Coverage:
    seconds: dict[str, float] = {}
    failing: list[str] = []
    lines: dict[str, dict[int, list[str]]] = {}
    for module in modules:
        for test, took in module["seconds"].items():
            if took is None:
                failing.append(test)
            else:
                seconds[test] = took
        for test, ran in module["lines"].items():
            for path, numbers in ran.items() if test in seconds else ():
                known = lines.setdefault(path, {})
                for number in numbers:
                    known.setdefault(number, []).append(test)
    return Coverage(seconds, failing, lines)


def _files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def _is_test(path: Path) -> bool:
    return path.name.startswith("test_")


def _module(test: str) -> str:
    return test.partition("::")[0]


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _gathered(folder: Path, modules: list[str], look: Callable[[Suite], Any]) -> Any:
    """What `look` finds, in a child: this process never imports what is mutated."""
    path = folder / "gathered.json"
    path.unlink(missing_ok=True)
    log = folder / "tests.log"

    def work(_: children.Note) -> None:
        run_pytest(
            lambda suite: path.write_text(json.dumps(look(suite)), encoding="utf-8"),
            modules,
            log=str(log),
        )

    children.run(work)
    if not path.is_file():
        raise RuntimeError(f"the tests could not be run: {log} says why")
    found = json.loads(path.read_text(encoding="utf-8"))
    path.unlink()
    return found


def _timed(suite: Suite) -> dict[str, float | None]:
    if suite.unreadable:
        raise RuntimeError("a test module cannot be imported")
    return suite.run_all(list(suite.items))


def _traced(suite: Suite, watched: list[Path]) -> dict[str, dict[str, list[int]]]:
    tracer = _Tracer({str(path) for path in watched})
    found: dict[str, dict[str, list[int]]] = {}
    names = list(suite.items)
    for name, following in zip(names, [*names[1:], None], strict=True):
        tracer.start()
        suite.run(name, following)
        found[name] = {
            Path(path).relative_to(ROOT).as_posix(): sorted(lines)
            for path, lines in tracer.stop().items()
        }
    return found


class _Tracer:
    """Notes the lines that run in the watched files, in all threads."""

    def __init__(self, watched: set[str]) -> None:
        self._watched = watched
        self._lines: dict[CodeType, set[int]] = {}

    def start(self) -> None:
        self._lines = {}
        threading.settrace(self._call)
        sys.settrace(self._call)

    def stop(self) -> dict[str, set[int]]:
        sys.settrace(None)
        threading.settrace(None)
        found: dict[str, set[int]] = {}
        for code, lines in self._lines.items():
            found.setdefault(code.co_filename, set()).update(lines)
        return found

    def _call(self, frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        if event != "call" or code.co_filename not in self._watched:
            return None
        lines = self._lines.setdefault(code, set())
        lines.add(frame.f_lineno)

        def local(frame: FrameType, _event: str, _argument: object) -> Any:
            lines.add(frame.f_lineno)
            return local

        return local
