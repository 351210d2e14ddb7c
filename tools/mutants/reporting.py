"""What a run found: as text for people, as JSON for programs."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tools.mutants.mutations import Mutant
from tools.mutants.trying import Outcome, Verdict

SHOWN_TESTS = 5
KEPT_TESTS = 20


@dataclass(frozen=True)
class Result:
    """A mutant, what became of it, how many tests were to run, and the first of them."""

    package: str
    mutant: Mutant
    outcome: Outcome
    tests_count: int
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """What was asked for, and the results so far."""

    sample: int | None
    seed: int
    budget_s: float
    finished: bool
    results: tuple[Result, ...]


def figures(run: Run) -> list[str]:
    """One line a package: how many of its mutants the tests noticed."""
    lines = []
    for package in dict.fromkeys(result.package for result in run.results):
        verdicts = Counter(
            result.outcome.verdict for result in run.results if result.package == package
        )
        total = verdicts.total()
        noticed = verdicts[Verdict.KILLED] + verdicts[Verdict.TIMEOUT]
        lines.append(
            f"{package}: {noticed} of {total} mutants noticed ({noticed / total:.1%}): "
            + ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in Verdict)
        )
    return lines


def rendered(run: Run) -> str:
    """The report as text: the figures, then every mutant that no test noticed."""
    asked = "all mutants" if run.sample is None else f"a sample of {run.sample} a package"
    lines = [
        f"Mutants: {asked}, seed {run.seed}, up to {run.budget_s:g} s of tests for each"
        + ("" if run.finished else " (interrupted)"),
        *figures(run),
        "",
    ]
    for result in run.results:
        if result.outcome.verdict is Verdict.SURVIVED:
            shown = ", ".join(result.tests[:SHOWN_TESTS])
            more = result.tests_count - SHOWN_TESTS
            lines += [
                f"survived {result.mutant.title}",
                f"    {result.tests_count} tests ran: {shown}" + (" …" if more > 0 else ""),
            ]
        elif result.outcome.verdict is Verdict.UNTESTED:
            lines += [f"untested {result.mutant.title}", "    no test runs this line"]
    return "\n".join(lines) + "\n"


def write(run: Run, folder: Path, name: str) -> tuple[Path, Path]:
    """Writes both forms into the folder; gives their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    text, data = folder / f"{name}.txt", folder / f"{name}.json"
    text.write_text(rendered(run), encoding="utf-8")
    data.write_text(json.dumps(asdict(run), indent=1, ensure_ascii=False), encoding="utf-8")
    return text, data


def unnoticed(path: Path) -> set[tuple[str, int]]:
    """The mutants that a report says no test noticed: their files and numbers."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return {
        (result["mutant"]["path"], result["mutant"]["number"])
        for result in found["results"]
        if result["outcome"]["verdict"] in {Verdict.SURVIVED, Verdict.UNTESTED}
    }
