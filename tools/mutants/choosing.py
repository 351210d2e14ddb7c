"""Chooses the mutants of a run by a seed, and for each of them the tests that can see it."""

from __future__ import annotations

import ast
import random
from functools import cache
from pathlib import Path

from tools.mutants.coverage import Coverage
from tools.mutants.mutations import Mutant, mutants_of
from tools.mutants.suite import ROOT

# By the name that the command line has for each package: its sources, and its own tests, which are
# tried first.
PACKAGES = {
    "binary": ("src/merq/protocol/binary", "tests/unit/protocol/"),
    "exchange": ("src/merq/exchange", "tests/unit/exchange/"),
    "engine": ("src/merq/engine", "tests/unit/engine/"),
}

# What takes longer comes after everything else.
SLOW_S = 1.0


def files_of(package: str) -> list[Path]:
    """The source files of a package."""
    return sorted((ROOT / PACKAGES[package][0]).rglob("*.py"))


def chosen(package: str, sample: int | None, seed: int) -> list[Mutant]:
    """The mutants to try, in the order of the sources: a sample by the seed, or all."""
    everything = [mutant for path in files_of(package) for mutant in mutants_of(ROOT, path)]
    if sample is None or sample >= len(everything):
        return everything
    # A package's sample is its own: the same with or without the others.
    chance = random.Random(f"{package} {seed}")  # noqa: S311 - nothing is secret
    numbers = chance.sample(range(len(everything)), sample)
    return [everything[number] for number in sorted(numbers)]


def tests_for(
    mutant: Mutant, package: str, coverage: Coverage, budget_s: float
) -> list[tuple[str, float]]:
    """The tests that run the mutated line: the package's own first, slow ones last.

    Together they take no longer than the budget on the unchanged source.
    """
    near = PACKAGES[package][1]
    names = sorted(
        _running(mutant, coverage),
        key=lambda name: (
            coverage.seconds[name] > SLOW_S,
            not name.startswith(near),
            coverage.seconds[name],
            name,
        ),
    )
    found: list[tuple[str, float]] = []
    for name in names:
        budget_s -= coverage.seconds[name]
        if budget_s < 0 and found:
            break
        found.append((name, coverage.seconds[name]))
    return found


def _running(mutant: Mutant, coverage: Coverage) -> set[str]:
    if not mutant.imported:
        # A part of a longer statement may have no line of its own when it runs.
        return coverage.running(mutant.path, mutant.line, mutant.last_line) or coverage.running(
            mutant.path, *mutant.statement_lines
        )
    if mutant.function:
        return coverage.running(mutant.path, *mutant.function_lines)
    # Its line runs once, at the import. Who uses its name runs lines of modules that import it; a
    # test may also do so itself, by the module or by the package that gives the name on.
    module = mutant.path.removeprefix("src/").removesuffix(".py").replace("/", ".")
    files = [file for each in PACKAGES for file in files_of(each)]
    users = [relative(file) for file in files if module in _imported(file)]
    names = {module, module.rpartition(".")[0]}
    asking = {
        name for name in coverage.seconds if names & _imported(ROOT / name.partition("::")[0])
    }
    return coverage.touching([mutant.path, *users]) | asking


def relative(path: Path) -> str:
    """A file's path inside of the project."""
    return path.relative_to(ROOT).as_posix()


@cache
def _imported(path: Path) -> frozenset[str]:
    """The modules from which a file imports something."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module is not None
    )
