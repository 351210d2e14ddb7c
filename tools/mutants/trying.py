"""Tries a mutant: runs the tests that were chosen for it until one fails.

Most mutants are inside of functions. `WarmSuite` is a process that has imported all tests; for each
mutant it forks a child, which gives the function its mutated code and runs the tests. A mutant that
takes effect when its module is imported (a constant, a default, a class) is tried in a child that
imports the mutated module, and then the tests, afresh.
"""

from __future__ import annotations

import gc
import importlib.abc
import importlib.util
import inspect
import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, FunctionType, ModuleType

from tools.mutants import children
from tools.mutants.mutations import Mutant, mutated_tree
from tools.mutants.suite import FOLDERS, ROOT, Suite, run_pytest

# A test may take this much longer than on the unchanged source. The wall clock is generous: other
# processes share the machine.
PROCESSOR_FACTOR, PROCESSOR_MORE_S = 10.0, 1.0
WALL_FACTOR, WALL_MORE_S = 30.0, 15.0
COLLECTING_S = 120.0
TIMEOUTS = frozenset({signal.SIGPROF, signal.SIGALRM})
IMPORTING = "the import of the tests"
PASSED = "passed"

# Names of tests and the seconds that each takes on the unchanged source.
Tests = Sequence[tuple[str, float]]
# A function's file, its name inside of it, and its first line.
_Key = tuple[str, str, int]


class Verdict(StrEnum):
    """What the tests made of a mutant."""

    KILLED = "killed"
    TIMEOUT = "timeout"
    SURVIVED = "survived"
    UNTESTED = "untested"


@dataclass(frozen=True)
class Outcome:
    """A verdict, and the test that it is owed to."""

    verdict: Verdict
    test: str


def tried_afresh(mutant: Mutant, tests: Tests) -> Outcome:
    """Imports the mutated module in the place of the real one, then the tests, and runs them."""

    def work(note: children.Note) -> None:
        note(IMPORTING)
        children.limit(COLLECTING_S, COLLECTING_S)
        sys.meta_path.insert(0, _MutatedImport(mutant))
        files = dict.fromkeys(name.partition("::")[0] for name, _ in tests)
        run_pytest(lambda suite: _run(suite, tests, note), files)

    return _outcome(children.run(work))


class WarmSuite:
    """A process that has imported all tests, and tries mutants of functions in children."""

    def __init__(self) -> None:
        asking, self._asked = os.pipe()
        self._answered, answering = os.pipe()
        self._child = children.start(lambda: self._serve(asking, answering), tempfile.gettempdir())
        os.close(asking)
        os.close(answering)
        self._questions = os.fdopen(self._asked, "w", encoding="utf-8")
        self._answers = os.fdopen(self._answered, encoding="utf-8")

    def tried(self, mutant: Mutant, tests: Tests) -> Outcome | None:
        """The outcome; None if nothing was found that has the function's code."""
        print(json.dumps([asdict(mutant), list(tests)]), file=self._questions, flush=True)
        answer = self._answers.readline()
        if not answer:
            raise RuntimeError("the process that has imported the tests has ended")
        found = json.loads(answer)
        return Outcome(Verdict(found[0]), found[1]) if found else None

    def close(self) -> None:
        """Ends the process, and the mutant that it tries."""
        os.kill(self._child, signal.SIGTERM)
        os.waitpid(self._child, 0)
        self._questions.close()
        self._answers.close()

    def _serve(self, asking: int, answering: int) -> None:
        os.close(self._asked)
        os.close(self._answered)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
        questions = os.fdopen(asking, encoding="utf-8")
        answers = os.fdopen(answering, "w", encoding="utf-8")

        def loop(suite: Suite) -> None:
            functions = _functions()
            gc.collect()
            gc.freeze()
            for line in questions:
                told, tests = json.loads(line)
                found = _tried_in_place(suite, functions, Mutant(**told), tests)
                print(json.dumps(found), file=answers, flush=True)

        run_pytest(loop, FOLDERS)


class _MutatedImport(importlib.abc.MetaPathFinder):
    """Finds the mutated module in the place of the real one."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant
        self._name = mutant.path.removeprefix("src/").removesuffix(".py").replace("/", ".")
        self._name = self._name.removesuffix(".__init__")

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The real place of the module, with a loader that compiles the mutant."""
        del path, target
        if name != self._name:
            return None
        place = str(ROOT / self._mutant.path)
        return importlib.util.spec_from_file_location(
            name, place, loader=_MutatedLoader(name, place, self._mutant)
        )


class _MutatedLoader(SourceFileLoader):
    def __init__(self, name: str, path: str, mutant: Mutant) -> None:
        super().__init__(name, path)
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        """The mutant's code, never that of a file of compiled code."""
        del fullname
        return _compiled(self._mutant)


def _tried_in_place(
    suite: Suite, functions: dict[_Key, list[FunctionType]], mutant: Mutant, tests: Tests
) -> tuple[str, str] | None:
    place = str(ROOT / mutant.path)
    inside = range(mutant.function_lines[0], mutant.function_lines[1] + 1)
    changes = [
        (function, code)
        for code in _outermost(_compiled(mutant))
        if code.co_firstlineno in inside and code.co_name == mutant.function
        for function in functions.get((place, code.co_qualname, code.co_firstlineno), ())
    ]
    if not changes:
        return None

    def work(note: children.Note) -> None:
        for function, code in changes:
            function.__code__ = code
        _run(suite, tests, note)

    found = _outcome(children.run(work))
    return found.verdict, found.test


def _compiled(mutant: Mutant) -> CodeType:
    code = compile(mutated_tree(ROOT, mutant), str(ROOT / mutant.path), "exec", dont_inherit=True)
    assert isinstance(code, CodeType)
    return code


def _outermost(code: CodeType) -> Iterator[CodeType]:
    """The functions that a module makes when it is imported: its own, and those of classes."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & inspect.CO_NEWLOCALS:  # bodies of classes do not have it
                yield constant
            else:
                yield from _outermost(constant)


def _functions() -> dict[_Key, list[FunctionType]]:
    """Every living function of the project's sources, which must be plain Python."""
    sources = str(ROOT / "src")
    for name, module in sys.modules.items():
        place = str(module.__file__) if name.startswith("merq.") else ""
        if place and not (place.startswith(sources) and place.endswith(".py")):
            raise RuntimeError(f"{place} was imported, not the source")
    found: dict[_Key, list[FunctionType]] = {}
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(sources):
            code = each.__code__
            key = (code.co_filename, code.co_qualname, code.co_firstlineno)
            found.setdefault(key, []).append(each)
    return found


def _run(suite: Suite, tests: Tests, note: children.Note) -> None:
    """Runs the tests in order and ends this process at the first that fails."""
    if suite.unreadable:
        os._exit(1)
    seconds = {name: took for name, took in tests if name in suite.items}
    names = list(seconds)
    for name, following in zip(names, [*names[1:], None], strict=True):
        note(name)
        took = seconds[name]
        children.limit(PROCESSOR_MORE_S + PROCESSOR_FACTOR * took, WALL_MORE_S + WALL_FACTOR * took)
        if suite.run(name, following) is None:
            os._exit(1)
    note(PASSED)
    os._exit(0)


def _outcome(end: children.End) -> Outcome:
    """The last note says how far the child came: all tests, or up to the one that stopped it."""
    if end.note == PASSED:
        return Outcome(Verdict.SURVIVED, "")
    return Outcome(Verdict.TIMEOUT if end.signal in TIMEOUTS else Verdict.KILLED, end.note)
