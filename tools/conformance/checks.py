"""The checks that tie the register to code, tests and pages, and those of errata and notes.

Those in `CHECKS` read files alone. `check_proved` asks what the tests of a run have shown. Each
takes the register and the project's folder, and gives what it found wrong.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.conformance import notes
from tools.conformance.citing import SCANNED, citations, citations_in, marks_in, place
from tools.conformance.page import PAGE, rendered
from tools.conformance.register import ErratumKind, Register, Section, Statement, Status
from tools.conformance.results import Outcome, by_mark, load_all
from tools.conformance.source_code import counting_citations

MARK_FORM = "is not of the form 'MS-MQQB 3.1.5.3.1', 'MS-MQQB 3.1.5.3.1#SE' or 'E51'"
SECTION_FORM = "is not of the form 'MS-MQQB 3.1.5.3.1'"
CLAIMING = (Status.DONE, Status.DEVIATES)
"""The statuses that say that a rule is met as the register describes it."""

_ERRATUM = re.compile(r"\bE[0-9]+\b")


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
    """Each `done` section is cited by code that counts, and each `done` has a marked test."""
    cited = {f"{each.code} {each.number}" for each in counting_citations(root)}
    marked = {text for _, text in marks_in(root)}
    findings = [
        Finding(where=name, what="is done, but no code that is used cites it")
        for name, row in _rows(register)
        if row.status is Status.DONE and name not in cited
    ]
    return findings + [
        Finding(where=name, what=f"{says}, but no test is marked with it")
        for name, says in _claims(register)
        if name not in marked
    ]


def check_proved(register: Register, root: Path) -> list[Finding]:
    """Whatever is claimed has a marked test that ran and passed, and none that failed."""
    shown = by_mark(load_all(root))
    findings: list[Finding] = []
    decided = [
        (note.name, f"is {note.decision}")
        for appendix in notes.load(root)
        for note in appendix.notes
        if note.decision.shown
    ]
    for name, says in _claims(register) + decided:
        outcomes = shown.get(name, set())
        if Outcome.FAILED in outcomes:
            findings.append(Finding(where=name, what=f"{says}, but a test marked with it failed"))
        elif Outcome.PASSED not in outcomes:
            what = f"{says}, but no test marked with it ran and passed"
            findings.append(Finding(where=name, what=what))
    return findings


def _claims(register: Register) -> list[tuple[str, str]]:
    """What needs a test of its own, with what is claimed about it.

    A `done` section needs one unless it has statements, each of which needs its own. A statement
    that `deviates` has one as well: it shows what is done instead.
    """
    claims: list[tuple[str, str]] = []
    for name, row in _rows(register):
        if row.status is Status.DONE and not row.statements:
            claims.append((name, "is done"))
        claims += [
            (f"{name}#{each.id}", "is done" if each.status is Status.DONE else "deviates")
            for each in row.statements
            if each.status in CLAIMING
        ]
    claims += [(each.id, "is decided") for each in register.errata if not each.unshown]
    return claims


def _rows(register: Register) -> list[tuple[str, Section]]:
    return [
        (f"{document.code} {row.number}", row)
        for document in register.documents
        for row in document.rows
    ]


def _judged(register: Register) -> list[tuple[str, Section | Statement]]:
    """Sections and statements by what a mark says."""
    found: list[tuple[str, Section | Statement]] = []
    for name, row in _rows(register):
        found.append((name, row))
        found += [(f"{name}#{each.id}", each) for each in row.statements]
    return found


def check_whys(register: Register, _root: Path) -> list[Finding]:
    """Each `part`, `deviates` and `absent` says why, and `todo` and `done` do not.

    But a statement that is `todo` may: others of its section are done.
    """
    return [
        Finding(
            where=name,
            what=f"is {it.status} and {'says no' if it.status.explained else 'has a stray'} why",
        )
        for name, it in _judged(register)
        if bool(it.why.strip()) != it.status.explained
        and not (isinstance(it, Statement) and it.status is Status.TODO)
    ]


def check_statements(register: Register, _root: Path) -> list[Finding]:
    """A section is not better than its statements, and each statement says something."""
    findings: list[Finding] = []
    for name, row in _rows(register):
        found = {each.status for each in row.statements}
        allowed = {Status.DONE: {Status.DONE}, Status.DEVIATES: set(CLAIMING)}.get(row.status)
        if allowed is not None and not found <= allowed:
            worse = ", ".join(each.id for each in row.statements if each.status not in allowed)
            findings.append(Finding(where=name, what=f"is {row.status}, but not its {worse}"))
        elif row.status in (Status.TODO, Status.ABSENT) and found & set(CLAIMING):
            findings.append(Finding(where=name, what=f"is {row.status}, but has done statements"))
        findings += [
            Finding(where=f"{name}#{each.id}", what="says nothing")
            for each in row.statements
            if not each.says.strip()
        ]
    return findings


def check_needs(register: Register, _root: Path) -> list[Finding]:
    """What is `done` hands over to nothing that is `todo` or `absent`; needs name what exists."""
    statuses, marks = register.statuses, register.marks
    findings: list[Finding] = []
    for name, it in _judged(register):
        for needed in it.needs:
            status = statuses.get(needed)
            if needed not in marks:
                findings.append(Finding(where=name, what=f"needs {needed}, which does not exist"))
            elif it.status is Status.DONE and status in (Status.TODO, Status.ABSENT):
                what = f"is done, but hands over to {needed}, which is {status}"
                findings.append(Finding(where=name, what=what))
    return findings


def check_deviations(register: Register, _root: Path) -> list[Finding]:
    """Nothing that a `deviation` names is `done`, and what `deviates` names a deviation."""
    statuses = register.statuses
    findings = [
        Finding(where=text, what=f"is done, but {erratum.id} deviates from it")
        for erratum in register.errata
        if erratum.kind is ErratumKind.DEVIATION
        for text in erratum.sections
        if statuses.get(text) is Status.DONE
    ]
    deviating = {each.id for each in register.errata if each.kind is ErratumKind.DEVIATION}
    return findings + [
        Finding(where=name, what="deviates, but its why names no erratum of that kind")
        for name, it in _judged(register)
        if it.status is Status.DEVIATES and not deviating & set(_ERRATUM.findall(it.why))
    ]


def check_marks(register: Register, root: Path) -> list[Finding]:
    """Each spec mark is a literal that names a section, statement or erratum which exists."""
    numbers, marks = register.numbers, register.marks
    return [
        Finding(where=where, what=fault)
        for where, text in marks_in(root)
        if text not in marks and (fault := _mark_fault(text, where, numbers))
    ]


def _mark_fault(text: str, where: str, numbers: Mapping[str, frozenset[str]]) -> str:
    if _ERRATUM.fullmatch(text):
        return f"there is no erratum {text}"
    named = place(text, where)
    if named is None:
        return f"a spec mark {MARK_FORM}"
    if fault := named.fault(numbers):
        return fault
    missing = f"[{named.code}] {named.number} has no statement {named.statement}"
    return missing if named.statement else ""


def check_report(register: Register, root: Path) -> list[Finding]:
    """The reference page is what the register gives now."""
    page = root / PAGE
    if page.exists() and page.read_text(encoding="utf-8") == rendered(register) + notes.chapter(
        root
    ):
        return []
    return [Finding(where=PAGE.as_posix(), what="is not what `report` writes now")]


def check_errata(register: Register, root: Path) -> list[Finding]:
    """Errata have ids of their own, leave nothing unsaid and name what exists."""
    numbers, statuses = register.numbers, register.statuses
    marked = {text for _, text in marks_in(root)}
    count = Counter(erratum.id for erratum in register.errata)
    findings = [Finding(where=name, what="names two errata") for name in count if count[name] > 1]
    for erratum in register.errata:
        faults = [_named_fault(text, numbers, statuses) for text in erratum.sections]
        said = f"{erratum.where}\n\n{erratum.found}\n\n{erratum.decision}"
        faults += [citation.fault(numbers) for citation in citations(said, erratum.id)]
        if not (erratum.sections and erratum.where and erratum.found and erratum.decision):
            faults.append("leaves a field empty")
        if erratum.unshown and erratum.id in marked:
            faults.append("says that no test shows it, but one is marked with it")
        findings += [Finding(where=erratum.id, what=fault) for fault in faults if fault]
    return findings


def _named_fault(
    text: str, numbers: Mapping[str, frozenset[str]], statuses: Mapping[str, Status]
) -> str:
    named = place(text, "")
    if named is None:
        return f"{text!r} {SECTION_FORM}"
    if named.statement and text not in statuses:
        return f"[{named.code}] {named.number} has no statement {named.statement}"
    return named.fault(numbers)


def check_notes(register: Register, root: Path) -> list[Finding]:
    """Each product note has a decision, and what shows it is there."""
    return [Finding(where=where, what=what) for where, what in notes.faults(register.numbers, root)]


CHECKS: dict[str, Callable[[Register, Path], list[Finding]]] = {
    "citations": check_citations,
    "done": check_done,
    "whys": check_whys,
    "statements": check_statements,
    "needs": check_needs,
    "deviations": check_deviations,
    "marks": check_marks,
    "report": check_report,
    "errata": check_errata,
    "notes": check_notes,
}
