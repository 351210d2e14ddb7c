"""The register and its files: one TOML a document, and `errata.toml`, which is kept by hand.

Not in here: where the headings come from (`specifications`) and whether the register is true
(`checks`).
"""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

FOLDER = Path("conformance")
ERRATA = "errata.toml"

_STATEMENT_ID = re.compile(r"[A-Za-z][A-Za-z0-9-]*")


class RegisterError(Exception):
    """A file of the register, a document or a command makes no sense; nothing is written."""


class Status(StrEnum):
    """How far a section is met."""

    TODO = "todo"
    PART = "part"
    DONE = "done"
    DEVIATES = "deviates"
    ABSENT = "absent"

    @property
    def explained(self) -> bool:
        """Whether the status is worth nothing without a why."""
        return self in (Status.PART, Status.DEVIATES, Status.ABSENT)


class ErratumKind(StrEnum):
    """Whether an erratum chooses between texts or goes against one."""

    READING = "reading"
    DEVIATION = "deviation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One rule of a section that has several, with a test of its own.

    `says` is the rule in our words. `needs` names sections or statements, as marks do, to which the
    rule hands over.
    """

    id: str
    says: str
    status: Status = Status.TODO
    why: str = ""
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading of a document, and what became of it.

    `needs` are the sections on behaviour to which its text hands over, taken from the document.
    """

    number: str
    title: str
    status: Status = Status.TODO
    why: str = ""
    needs: tuple[str, ...] = ()
    statements: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document: `sections` are normative, `also` is tracked with them, `other` is the rest."""

    code: str
    title: str
    revision: str
    published: str
    sections: tuple[Section, ...]
    also: tuple[Section, ...] = ()
    other: tuple[Section, ...] = ()

    @property
    def rows(self) -> tuple[Section, ...]:
        """The sections that have a status."""
        return in_order((*self.sections, *self.also))

    @property
    def headings(self) -> dict[str, Section]:
        """Every section by its number."""
        return {row.number: row for row in (*self.sections, *self.also, *self.other)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Erratum:
    """A place where the documents contradict themselves or say nothing, and what we do.

    A test marked with its id shows the decision, unless `unshown` says why none does.
    """

    id: str
    kind: ErratumKind
    where: str
    found: str
    decision: str
    sections: tuple[str, ...]
    unshown: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """All documents, in the order of their codes, and the errata."""

    documents: tuple[Document, ...]
    errata: tuple[Erratum, ...]

    @property
    def numbers(self) -> dict[str, frozenset[str]]:
        """The section numbers that can be cited, by document."""
        return {document.code: frozenset(document.headings) for document in self.documents}

    @property
    def statuses(self) -> dict[str, Status]:
        """The status of each section and statement that has one, by what a mark says."""
        found: dict[str, Status] = {}
        for document in self.documents:
            for row in document.rows:
                name = f"{document.code} {row.number}"
                found[name] = row.status
                found |= {f"{name}#{each.id}": each.status for each in row.statements}
        return found

    @property
    def marks(self) -> frozenset[str]:
        """Everything that a spec mark can name: sections, statements and errata."""
        headings = {f"{code} {number}" for code, of in self.numbers.items() for number in of}
        return frozenset(headings | self.statuses.keys() | {each.id for each in self.errata})


def order(number: str) -> tuple[int, ...]:
    """Sort key of a section number: 2.10 comes after 2.9."""
    return tuple(int(part) for part in number.split("."))


def in_order(sections: Iterable[Section]) -> tuple[Section, ...]:
    """The sections as the document has them."""
    return tuple(sorted(sections, key=lambda section: order(section.number)))


def set_status(
    document: Document, numbers: Collection[str], status: Status, *, why: str
) -> Document:
    """Give sections or statements a status; one of `other` goes to `also`, and back with `todo`."""
    if bool(why) != status.explained and not (status is Status.TODO and _only_statements(numbers)):
        raise RegisterError(f"{status} {'needs' if status.explained else 'takes no'} why")
    headings = document.headings
    for number in numbers:
        headings |= _given(document.code, headings, number, status, why)
    rest = [headings[row.number] for row in (*document.also, *document.other)]
    return replace(
        document,
        sections=tuple(headings[row.number] for row in document.sections),
        also=tuple(row for row in rest if row.status is not Status.TODO or row.statements),
        other=tuple(row for row in rest if row.status is Status.TODO and not row.statements),
    )


def _only_statements(numbers: Collection[str]) -> bool:
    return all("#" in number for number in numbers)


def _given(
    code: str, headings: dict[str, Section], name: str, status: Status, why: str
) -> dict[str, Section]:
    number, _, statement = name.partition("#")
    if number not in headings:
        raise RegisterError(f"[{code}] has no section {number}")
    row = headings[number]
    if not statement:
        return {number: replace(row, status=status, why=why)}
    if statement not in {each.id for each in row.statements}:
        raise RegisterError(f"[{code}] {number} has no statement {statement}")
    statements = tuple(
        replace(each, status=status, why=why) if each.id == statement else each
        for each in row.statements
    )
    return {number: replace(row, statements=statements)}


def load(root: Path) -> Register:
    """Read the register of the project at `root`."""
    paths = document_paths(root)
    if not paths:
        raise RegisterError(f"{root / FOLDER} holds no register; `refresh` makes one")
    errata = root / FOLDER / ERRATA
    return Register(
        documents=tuple(load_document(path) for path in paths),
        errata=_load_errata(errata) if errata.exists() else (),
    )


def document_paths(root: Path) -> list[Path]:
    """The files of the documents that the register has."""
    return sorted((root / FOLDER).glob("M[CS]-*.toml"))


def load_document(path: Path) -> Document:
    """Read one document's file."""
    table = _toml(path)
    try:
        document = Document(
            code=table["document"],
            title=table["title"],
            revision=table["revision"],
            published=table["published"],
            sections=tuple(_section(**row) for row in table["section"]),
            also=tuple(_section(**row) for row in table["also"]),
            other=tuple(_heading(line) for line in table["other"]),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RegisterError(f"{path}: {type(error).__name__}: {error}") from error
    if document.code != path.stem:
        raise RegisterError(f"{path}: holds {document.code}")
    count = Counter(row.number for row in (*document.rows, *document.other))
    if twice := [number for number, times in count.items() if times > 1]:
        raise RegisterError(f"{path}: more than once: {', '.join(twice)}")
    return document


def _section(
    *,
    number: str,
    title: str,
    status: str,
    why: str = "",
    needs: Iterable[str] = (),
    statements: Iterable[dict[str, Any]] = (),
) -> Section:
    order(number)  # refuses here what could not be sorted later
    found = tuple(_statement(**each) for each in statements)
    if len({each.id for each in found}) < len(found):
        raise ValueError(f"{number} has two statements of one id")
    return Section(
        number=number,
        title=title,
        status=Status(status),
        why=why,
        needs=tuple(needs),
        statements=found,
    )


def _statement(*, status: str, needs: Iterable[str] = (), **rest: str) -> Statement:
    statement = Statement(status=Status(status), needs=tuple(needs), **rest)
    if not _STATEMENT_ID.fullmatch(statement.id):
        raise ValueError(f"{statement.id!r} is no id for a statement")
    return statement


def _heading(line: str) -> Section:
    number, _, title = line.partition(" ")
    order(number)
    return Section(number=number, title=title)


def _load_errata(path: Path) -> tuple[Erratum, ...]:
    try:
        return tuple(
            Erratum(**{**row, "sections": tuple(row["sections"]), "kind": ErratumKind(row["kind"])})
            for row in _toml(path).get("erratum", [])
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RegisterError(f"{path}: {type(error).__name__}: {error}") from error


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RegisterError(f"{path}: {error}") from error


def dumped(document: Document) -> str:
    """The document's file: one line a section or statement, so that one status is one line."""
    return "\n".join(
        [
            "# Kept by tools/conformance: `set` changes a status, `refresh` takes new headings.",
            f"document = {quoted(document.code)}",
            f"title = {quoted(document.title)}",
            f"revision = {quoted(document.revision)}",
            f"published = {quoted(document.published)}",
            "",
            "# Chapters 2 and 3, where the section's own text says MUST, SHOULD or MAY.",
            *_array("section", [_row(row) for row in in_order(document.sections)]),
            "",
            "# Sections without those words that were given a status all the same.",
            *_array("also", [_row(row) for row in in_order(document.also)]),
            "",
            "# The rest: can be cited, has no status.",
            *_array("other", [_line(row) for row in in_order(document.other)]),
            "",
        ]
    )


def quoted(text: str) -> str:
    """The text as a TOML basic string: JSON's escapes, and DEL, which only TOML forbids."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _array(name: str, lines: list[str]) -> list[str]:
    return [f"{name} = [", *(f"  {line}," for line in lines), "]"] if lines else [f"{name} = []"]


def _row(section: Section) -> str:
    pairs = [("number", quoted(section.number)), ("title", quoted(section.title))]
    pairs += _judged(section.status, section.why, section.needs)
    line = f"{{ {_pairs(pairs)}"
    if not section.statements:
        return line + " }"
    rows = [
        _pairs(
            [
                ("id", quoted(each.id)),
                *_judged(each.status, each.why, each.needs),
                ("says", quoted(each.says)),
            ]
        )
        for each in section.statements
    ]
    return "\n".join([line + ", statements = [", *(f"    {{ {row} }}," for row in rows), "  ] }"])


def _judged(status: Status, why: str, needs: tuple[str, ...]) -> list[tuple[str, str]]:
    pairs = [("status", quoted(status.value))]
    if why:
        pairs.append(("why", quoted(why)))
    if needs:
        pairs.append(("needs", f"[{', '.join(quoted(each) for each in needs)}]"))
    return pairs


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in pairs)


def _line(section: Section) -> str:
    return quoted(f"{section.number} {section.title}")


def write(texts: dict[Path, str]) -> None:
    """Write files; each is complete beside its place before the first one takes it."""
    fresh = {path: path.with_name(path.name + ".new") for path in texts}
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh[path].write_text(text, encoding="utf-8", newline="\n")
        for path, temporary in fresh.items():
            temporary.replace(path)
    except OSError as error:
        raise RegisterError(str(error)) from error
    finally:
        for temporary in fresh.values():
            temporary.unlink(missing_ok=True)
