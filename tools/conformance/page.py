"""The reference page that is made from the register, the same text for the same register."""

from collections import Counter
from pathlib import Path

from tools.conformance.register import Document, Erratum, ErratumKind, Register, Status

PAGE = Path("docs/reference/conformance.md")


def rendered(register: Register) -> str:
    """The text of the page."""
    lines = [
        "# Conformance",
        "",
        "<!-- Written by `python tools/conformance report` from conformance/*.toml. -->",
        "",
        "Every section of chapters 2 and 3 whose own text says MUST, SHOULD or MAY has a status:",
        "`done` is cited by code that is used and shown by a test that ran and passed; `part`,",
        "`deviates` and `absent` say why; `todo` is open. Where a section has several rules, each",
        "is a statement with a status of its own. [How it works](../internals/conformance.md).",
        "",
        *_summary(register),
        "",
        *_statement_summary(register),
    ]
    for document in register.documents:
        lines += _chapter(document)
    kinds = Counter(erratum.kind for erratum in register.errata)
    unshown = sum(bool(erratum.unshown) for erratum in register.errata)
    lines += [
        "",
        "## Errata",
        "",
        "Where the documents contradict themselves or say nothing, or we",
    ]
    lines += ["do other than they say. " + ", ".join(f"{kinds[it]} {it}s" for it in ErratumKind)]
    lines[-1] += f". Tests show all but {unshown}."
    for erratum in register.errata:
        lines += _erratum(erratum)
    return "\n".join([*lines, ""])


def _summary(register: Register) -> list[str]:
    """How many normative sections of each document have which status."""
    lines = [
        _cells("document", "revision", "sections", *(status.value for status in Status)),
        _cells("---", "---", *["---:"] * (len(Status) + 1)),
    ]
    total: Counter[Status] = Counter()
    for document in register.documents:
        count = _count(document)
        total += count
        link = f"[{document.code}](#{document.code.lower()})"
        lines.append(_cells(link, document.revision, *_figures(count)))
    return [*lines, _cells(f"{len(register.documents)} documents", "", *_figures(total))]


def _statement_summary(register: Register) -> list[str]:
    """The same for statements, of the documents that have some."""
    lines = [
        _cells("document", "sections with statements", "statements", *Status),
        _cells("---", *["---:"] * (len(Status) + 2)),
    ]
    for document in register.documents:
        rows = [row for row in document.rows if row.statements]
        if rows:
            count = Counter(each.status for row in rows for each in row.statements)
            lines.append(_cells(document.code, str(len(rows)), *_figures(count)))
    return lines if len(lines) > 2 else ["No section is registered by statement."]


def _chapter(document: Document) -> list[str]:
    count = _count(document)
    said = ", ".join(f"{count[status]} {status}" for status in Status if count[status])
    edition = f"Revision {document.revision} of {document.published}."
    lines = ["", f"## {document.code}", "", f"{_plain(document.title)}. {edition}", ""]
    lines.append(f"{len(document.sections)} sections: {said or 'none'}.")
    rows = [row for row in document.rows if row.status is not Status.TODO or row.statements]
    if rows:
        lines += ["", _cells("section", "title", "status", "why"), _cells(*["---"] * 4)]
    also = {row.number for row in document.also}
    for row in rows:
        number = f"{row.number} †" if row.number in also else row.number
        lines.append(_cells(number, row.title, row.status.value, row.why))
        lines += [
            _cells(f"{row.number}#{each.id}", each.says, each.status.value, each.why)
            for each in row.statements
        ]
    if also:
        lines += ["", "† has no MUST, SHOULD or MAY of its own, and is not counted above."]
    return lines


def _erratum(erratum: Erratum) -> list[str]:
    lines = [f"### {erratum.id}", f"Where: {_plain(erratum.where)}"]
    lines += [f"Found: {_plain(erratum.found)}", f"Decision: {_plain(erratum.decision)}"]
    lines.append(f"Kind: {erratum.kind}")
    if erratum.unshown:
        lines.append(f"No test shows it: {_plain(erratum.unshown)}")
    return [part for line in lines for part in ("", line)]


def _count(document: Document) -> Counter[Status]:
    return Counter(row.status for row in document.sections)


def _figures(count: Counter[Status]) -> list[str]:
    return [str(count.total()), *(str(count[status]) for status in Status)]


def _cells(*cells: str) -> str:
    return "| " + " | ".join(_plain(cell).replace("|", "\\|") for cell in cells) + " |"


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;")
