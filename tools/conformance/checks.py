"""The checks that tie the register to code, tests and pages, and those of errata and notes.

Each takes the register and the project's folder, and gives what it found wrong.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.conformance import notes
from tools.conformance.citing import SCANNED, citations, citations_in, marks_in, place
from tools.conformance.page import PAGE, rendered
from tools.conformance.register import Register, Status

MARK_FORM = "is not of the form 'MS-MQQB 3.1.5.3.1'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is wrong, and where."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def check_citations(register: Register, root: Path) -> list[Finding]:
    """Each citation names a section that exists, or a known document outside the register."""
    numbers = register.numbers
    return [
        Finding(where=citation.where, what=fault)
        for folder in SCANNED
        for citation in citations_in(root, folder)
        if (fault := citation.fault(numbers))
    ]


def check_done(register: Register, root: Path) -> list[Finding]:
    """Each `done` is cited under src and marked on a test, itself and not through its parent."""
    cited = {(citation.code, citation.number) for citation in citations_in(root, "src")}
    marked = {(mark.code, mark.number) for _, mark in marks_in(root) if mark}
    return [
        Finding(where=f"{document.code} {row.number}", what=f"is done, but {lack}")
        for document in register.documents
        for row in document.rows
        if row.status is Status.DONE
        for lack, shown in (("no code cites it", cited), ("no test is marked with it", marked))
        if (document.code, row.number) not in shown
    ]


def check_whys(register: Register, _root: Path) -> list[Finding]:
    """Each `part`, `deviates` and `absent` says why, and `todo` and `done` do not."""
    return [
        Finding(
            where=f"{document.code} {row.number}",
            what=f"is {row.status} and {'says no' if row.status.explained else 'has a stray'} why",
        )
        for document in register.documents
        for row in document.rows
        if bool(row.why.strip()) != row.status.explained
    ]


def check_marks(register: Register, root: Path) -> list[Finding]:
    """Each spec mark is a literal that names a section which exists."""
    numbers = register.numbers
    return [
        Finding(where=where, what=fault)
        for where, mark in marks_in(root)
        if (fault := mark.fault(numbers) if mark else f"a spec mark {MARK_FORM}")
    ]


def check_report(register: Register, root: Path) -> list[Finding]:
    """The reference page is what the register gives now."""
    page = root / PAGE
    if page.exists() and page.read_text(encoding="utf-8") == rendered(register) + notes.chapter(
        root
    ):
        return []
    return [Finding(where=PAGE.as_posix(), what="is not what `report` writes now")]


def check_errata(register: Register, _root: Path) -> list[Finding]:
    """Errata have ids of their own, leave nothing unsaid, and name sections that exist."""
    numbers = register.numbers
    count = Counter(erratum.id for erratum in register.errata)
    findings = [Finding(where=name, what="names two errata") for name in count if count[name] > 1]
    for erratum in register.errata:
        faults = [
            named.fault(numbers) if (named := place(text, erratum.id)) else f"{text!r} {MARK_FORM}"
            for text in erratum.sections
        ]
        said = f"{erratum.where}\n\n{erratum.found}\n\n{erratum.decision}"
        faults += [citation.fault(numbers) for citation in citations(said, erratum.id)]
        if not (erratum.sections and erratum.where and erratum.found and erratum.decision):
            faults.append("leaves a field empty")
        findings += [Finding(where=erratum.id, what=fault) for fault in faults if fault]
    return findings


def check_notes(register: Register, root: Path) -> list[Finding]:
    """Each product note has a decision, and what shows it is there."""
    return [Finding(where=where, what=what) for where, what in notes.faults(register.numbers, root)]


CHECKS: dict[str, Callable[[Register, Path], list[Finding]]] = {
    "citations": check_citations,
    "done": check_done,
    "whys": check_whys,
    "marks": check_marks,
    "report": check_report,
    "errata": check_errata,
    "notes": check_notes,
}
