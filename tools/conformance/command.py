"""The command line of the register."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.conformance import notes
from tools.conformance.checks import CHECKS, Finding, check_proved
from tools.conformance.page import PAGE, rendered
from tools.conformance.register import (
    FOLDER,
    Register,
    RegisterError,
    Status,
    document_paths,
    dumped,
    load,
    load_document,
    set_status,
    write,
)
from tools.conformance.results import FOLDER as RESULTS
from tools.conformance.specifications import DOCUMENTS, refresh

ROOT = Path(__file__).resolve().parents[2]
FOUND_NOTHING, FOUND_SOMETHING, FAILED = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code."""
    given = _parser().parse_args(arguments)
    try:
        match given.command:
            case "check":
                return _check(given.root, given.specs)
            case "proved":
                return _proved(given.root)
            case "report":
                text = rendered(load(given.root)) + notes.chapter(given.root)
                write({given.root / PAGE: text})
                print(f"wrote {PAGE.as_posix()}")
            case "set":
                _set(given.root, given)
            case "refresh":
                present = {path.stem for path in document_paths(given.root)}
                codes = given.documents or {*DOCUMENTS, *present}
                print("\n".join(refresh(given.root, given.specs, codes) or ["nothing changed"]))
    except RegisterError as error:
        print(f"conformance: {error}", file=sys.stderr)
        return FAILED
    return FOUND_NOTHING


def _check(root: Path, specs: Path | None) -> int:
    register = load(root)
    found = [(name, it) for name, check in CHECKS.items() for it in check(register, root)]
    if specs is not None:
        compared = notes.compared(root, specs)
        found += [("notes", Finding(where=where, what=what)) for where, what in compared]
    return _tell(register, found)


def _proved(root: Path) -> int:
    register = load(root)
    return _tell(register, [("proved", it) for it in check_proved(register, root)])


def _tell(register: Register, found: list[tuple[str, Finding]]) -> int:
    sections = sum(len(document.sections) for document in register.documents)
    found_in = f"{sections} sections of {len(register.documents)} documents"
    lines = [f"{name}: {finding}" for name, finding in found]
    print("\n".join([*lines, f"{len(found)} findings in {found_in}"]))
    return FOUND_SOMETHING if found else FOUND_NOTHING


def _set(root: Path, given: argparse.Namespace) -> None:
    path = root / FOLDER / f"{given.document}.toml"
    why = given.why.strip()
    document = set_status(load_document(path), given.sections, given.status, why=why)
    write({path: dumped(document)})
    print(f"{document.code} {', '.join(given.sections)}: {given.status}; `report` writes the page")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="conformance",
        description="Keep the conformance register: sections of the documents and their status.",
        epilog="Exit code: 0 when all is well, 1 when a check finds something, 2 on an error.",
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the project (default: this one)")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    checking = commands.add_parser("check", help="run the checks that read files alone")
    checking.add_argument("--specs", type=Path, help="compare the notes with CODE/CODE.md there")
    commands.add_parser(
        "proved",
        help="check that a test that ran and passed shows whatever is done",
        description="Check that whatever is done, and each erratum, is shown by a marked test "
        f"that ran and passed, and by none that failed. Reads {RESULTS.as_posix()}/*.json, which "
        "the tests write under `make test`; results of other sources are refused.",
    )
    commands.add_parser("report", help=f"write {PAGE.as_posix()}")
    setting = commands.add_parser("set", help="give sections of a document a status")
    setting.add_argument("document", help="for example MS-MQMQ")
    setting.add_argument(
        "sections", nargs="+", metavar="section", help="for example 2.2.19.1 or 2.2.19.1#SE"
    )
    choices = ", ".join(Status)
    setting.add_argument("status", type=Status, choices=list(Status), help=f"one of {choices}")
    setting.add_argument(
        "--why",
        default="",
        help="required by part, deviates and absent; may be given for a statement that is todo",
    )
    renewing = commands.add_parser(
        "refresh", help="take headings and what sections need from the documents"
    )
    renewing.add_argument("documents", nargs="*", metavar="document", help="default: all")
    renewing.add_argument(
        "--specs",
        type=Path,
        default=Path(os.environ.get("MERQ_SPECS", ROOT.parent / "shared" / "specs")),
        help="folder with CODE/CODE.md (default: $MERQ_SPECS, or ../shared/specs)",
    )
    return parser
