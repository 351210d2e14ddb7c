"""The command line of the register of limits."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from tools.conformance.checks import Finding
from tools.conformance.register import RegisterError, write
from tools.conformance.results import FOLDER as RESULTS
from tools.limits import checks
from tools.limits.declared import Setting, declared
from tools.limits.page import PAGE, rendered
from tools.limits.register import FILE, load

from merq.service.settings import describe

ROOT = Path(__file__).resolve().parents[2]
FOUND_NOTHING, FOUND_SOMETHING, FAILED = 0, 1, 2


def settings_of_the_service() -> list[Setting]:
    """Every key with what it is by default and means."""
    return [Setting(each.key, each.default, each.meaning) for each in describe()]


def main(arguments: Sequence[str] | None = None, settings: Iterable[Setting] | None = None) -> int:
    """Run one command and give its exit code."""
    given = _parser().parse_args(arguments)
    root: Path = given.root
    try:
        entries = load(root)
        known = declared(root, settings_of_the_service() if settings is None else settings)
        match given.command:
            case "check":
                findings = checks.check(root, entries, known)
                page = root / PAGE
                text = page.read_text(encoding="utf-8") if page.exists() else ""
                if text != rendered(root, entries, known):
                    findings.append(
                        Finding(where=PAGE.as_posix(), what="is not what `make docs` writes now")
                    )
            case "proved":
                findings = checks.proved(root, entries)
            case _:
                write({root / PAGE: rendered(root, entries, known)})
                print(f"wrote {PAGE.as_posix()}")
                return FOUND_NOTHING
    except RegisterError as error:
        print(f"limits: {error}", file=sys.stderr)
        return FAILED
    lines = [f"limits: {finding}" for finding in findings]
    print("\n".join([*lines, f"{len(findings)} findings in {len(entries)} limits"]))
    return FOUND_SOMETHING if findings else FOUND_NOTHING


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="limits",
        description=f"Keep the register of limits, {FILE.as_posix()}.",
        epilog="Exit code: 0 when all is well, 1 when a check finds something, 2 on an error.",
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the project (default: this one)")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("check", help="check that each limit is registered, and each entry is one")
    commands.add_parser(
        "proved",
        help="check that a test that ran and passed reaches each limit",
        description=f"Reads {RESULTS.as_posix()}/*.json, which the tests write under `make test`.",
    )
    commands.add_parser("report", help=f"write {PAGE.as_posix()}")
    return parser
