"""The command line of the mutation tests."""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from tools.mutants.choosing import PACKAGES, chosen, files_of, tests_for
from tools.mutants.coverage import Coverage, measured
from tools.mutants.mutations import Mutant
from tools.mutants.reporting import KEPT_TESTS, Result, Run, figures, unnoticed, write
from tools.mutants.suite import ROOT
from tools.mutants.trying import Outcome, Verdict, WarmSuite, tried_afresh

FOLDER = ROOT / ".build" / "mutants"
PROGRESS_S = 30.0
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Tries the mutants that are asked for and writes the report."""
    asked = _parser().parse_args(arguments)
    packages = asked.package or list(PACKAGES)
    todo = [
        (package, mutant)
        for package in packages
        for mutant in chosen(package, asked.sample, asked.seed)
    ]
    if asked.again:
        kept = unnoticed(asked.again)
        todo = [(package, it) for package, it in todo if (it.path, it.number) in kept]
    if asked.list:
        print("\n".join(mutant.title for _, mutant in todo))
        return 0
    results: list[Result] = []
    finished = False
    # What asks this process to end is answered as Ctrl-C is: with what was found so far.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        coverage = measured(
            asked.folder, [path for package in PACKAGES for path in files_of(package)]
        )
        for name in coverage.failing:
            print(f"left out, for it fails on the unchanged source: {name}")
        _try_all(todo, coverage, asked.budget, results)
        finished = True
    except KeyboardInterrupt:
        print("interrupted; what was found so far:")
    run = Run(asked.sample, asked.seed, asked.budget, finished, tuple(results))
    written = write(run, asked.folder, asked.name)
    print("\n".join([*figures(run), *(f"wrote {path}" for path in written)]))
    return 0 if finished else INTERRUPTED


def _try_all(
    todo: Sequence[tuple[str, Mutant]], coverage: Coverage, budget_s: float, results: list[Result]
) -> None:
    started = said = time.monotonic()
    warm = WarmSuite()
    try:
        for package, mutant in todo:
            tests = tests_for(mutant, package, coverage, budget_s)
            outcome = _tried(warm, mutant, tests)
            first = tuple(name for name, _ in tests[:KEPT_TESTS])
            results.append(Result(package, mutant, outcome, len(tests), first))
            if outcome.verdict in {Verdict.SURVIVED, Verdict.UNTESTED}:
                print(f"{outcome.verdict} {mutant.title}", flush=True)
            now = time.monotonic()
            if now - said > PROGRESS_S:
                said = now
                rest = (now - started) / len(results) * (len(todo) - len(results))
                print(f"{len(results)} of {len(todo)}, {rest / 60:.0f} min to go", flush=True)
    finally:
        warm.close()


def _tried(warm: WarmSuite, mutant: Mutant, tests: list[tuple[str, float]]) -> Outcome:
    if not tests:
        return Outcome(Verdict.UNTESTED, "")
    outcome = None if mutant.imported else warm.tried(mutant, tests)
    return outcome or tried_afresh(mutant, tests)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mutants",
        description="Change one thing in the code at a time, and see whether a test fails.",
        epilog="See docs/internals/mutants.md. Mutants that no test notices are listed in the "
        "report; the exit code does not depend on them.",
    )
    parser.add_argument(
        "--package", action="append", choices=list(PACKAGES), help="may be repeated (default: all)"
    )
    parser.add_argument(
        "--sample",
        type=_sample,
        default=300,
        help="mutants of each package, or 'all' (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=1, help="chooses the sample (default: 1)")
    parser.add_argument(
        "--budget",
        type=float,
        default=20.0,
        metavar="SECONDS",
        help="how long the tests of one mutant may take together (default: %(default)g)",
    )
    parser.add_argument(
        "--again",
        type=Path,
        metavar="REPORT.json",
        help="only mutants of the sample that this report says no test noticed",
    )
    parser.add_argument("--list", action="store_true", help="show the mutants, try none")
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="where reports go (default: .build/mutants)"
    )
    parser.add_argument("--name", default="report", help="the report's name (default: report)")
    return parser


def _sample(text: str) -> int | None:
    if text == "all":
        return None
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r}, expected a number or all")
