"""Product notes: what the appendices say of Windows' own behaviour, each with our decision.

In here: `conformance/notes.toml`, which is kept by hand, its checks, and its chapter of the
reference page. A note is named `MS-MQQB note 14`, also by the marks of tests. Not in here: the
sections that notes belong to (`register`).
"""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tools.conformance.citing import NOTE_MARK, spec_marks
from tools.conformance.register import FOLDER, RegisterError

FILE = FOLDER / "notes.toml"

_SECTION = re.compile(r"[1-9][0-9]*(?:\.[0-9]+)*")
_APPENDED = re.compile(r"^<([0-9]+)> Section ([0-9.]+):", re.MULTILINE)
_REFERRED = re.compile(r"<([0-9]+)>")
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)

Fault = tuple[str, str]
"""Where something is wrong, and what."""


class Decision(StrEnum):
    """What we do about a note."""

    DONE = "done"
    SETTING = "setting"
    ABSENT = "absent"
    TODO = "todo"

    @property
    def shown(self) -> bool:
        """Whether code and a test have to show it; otherwise a reason has to be given."""
        return self in (Decision.DONE, Decision.SETTING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One note of an appendix.

    Attributes:
        about: What it is about, in our own words.
        code: `path` or `path:Name.attribute` of what obeys it.
        setting: The setting that decides it, with its section; `default` is what it is by default.
        test: Node id of a test that carries the note's mark.
        why: Why it is not for us, or what is missing; for the others, what is different here.
    """

    document: str
    number: int
    section: str
    about: str
    decision: Decision
    code: tuple[str, ...] = ()
    setting: str = ""
    default: str = ""
    test: str = ""
    why: str = ""

    @property
    def name(self) -> str:
        """How marks name it."""
        return f"{self.document} note {self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Appendix:
    """The notes of one document, and how many it has."""

    code: str
    count: int
    notes: tuple[Note, ...]


def load(root: Path) -> tuple[Appendix, ...]:
    """Read the notes of the project at `root`; none if it keeps none."""
    path = root / FILE
    if not path.exists():
        return ()
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        return tuple(_appendix(**document) for document in table["document"])
    except (KeyError, OSError, TypeError, ValueError) as error:
        raise RegisterError(f"{path}: {type(error).__name__}: {error}") from error


def _appendix(*, code: str, count: int, notes: list[dict[str, object]]) -> Appendix:
    return Appendix(code=code, count=count, notes=tuple(_note(code, **row) for row in notes))


def _note(document: str, **row: object) -> Note:
    code = row.pop("code", [])
    decision = Decision(str(row.pop("decision")))
    if not isinstance(code, list):
        raise TypeError(f"code of note {row.get('number')} is not a list")
    return Note(document=document, decision=decision, code=tuple(code), **row)  # type: ignore[arg-type]


def faults(numbers: Mapping[str, frozenset[str]], root: Path) -> Iterator[Fault]:
    """What is wrong with the notes; `numbers` are the sections of registered documents."""
    appendices = load(root)
    marks = note_marks(root)
    known = {note.name: note for appendix in appendices for note in appendix.notes}
    for appendix in appendices:
        yield from _counted(appendix)
        for note in appendix.notes:
            found = [*_said(note, numbers), *_shown(note, root, marks)]
            yield from ((note.name, what) for what in found)
    for name, nodes in marks.items():
        if name not in known or not known[name].decision.shown:
            what = "is not in the register" if name not in known else "is not done"
            yield from ((node, f"is marked with {name}, which {what}") for node in sorted(nodes))


def _counted(appendix: Appendix) -> Iterator[Fault]:
    """Every number up to the last one is there once."""
    count = Counter(note.number for note in appendix.notes)
    expected = range(1, appendix.count + 1)
    if missing := [str(number) for number in expected if not count[number]]:
        yield appendix.code, f"has no decision for note {', '.join(missing)}"
    for number, times in count.items():
        if times > 1 or number not in expected:
            what = f"is there {times} times" if times > 1 else f"is beyond the {appendix.count}"
            yield f"{appendix.code} note {number}", what


def _said(note: Note, numbers: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """The note is about something, and says what its decision needs."""
    sections = numbers.get(note.document)
    if not _SECTION.fullmatch(note.section) or (sections and note.section not in sections):
        yield f"is of a section {note.section!r} that does not exist"
    if not note.about.strip():
        yield "does not say what it is about"
    if bool(note.setting and note.default) != (note.decision is Decision.SETTING):
        yield f"is {note.decision}: a setting and its default belong to `setting`, and only there"
    if note.decision.shown:
        return
    if not note.why.strip():
        yield f"is {note.decision} and does not say why"
    if note.code or note.test:
        yield f"is {note.decision}, and names code or a test"


def _shown(note: Note, root: Path, marks: Mapping[str, set[str]]) -> Iterator[str]:
    """What is done has its code, and its test carries the mark."""
    if not note.decision.shown:
        return
    if not note.code:
        yield f"is {note.decision} and names no code"
    for place in note.code:
        path, _, names = place.partition(":")
        file = root / path
        if not path.startswith("src/") or not file.is_file():
            yield f"names {path}, which is not there"
            continue
        words = set(re.findall(r"\w+", file.read_text(encoding="utf-8")))
        if absent := [name for name in names.split(".") if name and name not in words]:
            yield f"names {', '.join(absent)}, which is not in {path}"
    if note.test not in marks.get(note.name, set()):
        yield f"names the test {note.test!r}, which is not there or has no mark {note.name!r}"


def note_marks(root: Path) -> dict[str, set[str]]:
    """Which tests carry which note's mark, by node id.

    Only what pytest would collect counts: functions `test_…` of files `test_….py`, alone or in a
    class `Test…`. A mark of a module or class is one of each test in it.
    """
    found: dict[str, set[str]] = {}
    for path in sorted((root / "tests").rglob("test_*.py")):
        name = path.relative_to(root).as_posix()
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except SyntaxError as error:
            raise RegisterError(f"{name}: {error}") from error
        for node, marks in _marked(tree, name):
            for mark in marks:
                if NOTE_MARK.fullmatch(mark):
                    found.setdefault(mark, set()).add(node)
    return found


def _marked(scope: ast.Module | ast.ClassDef, name: str) -> Iterator[tuple[str, list[str]]]:
    """The tests of a module or class, each with its marks and those of its surroundings."""
    around = [
        mark
        for each in scope.body
        if isinstance(each, ast.Assign)
        and any(isinstance(to, ast.Name) and to.id == "pytestmark" for to in each.targets)
        for mark in spec_marks(each.value)
    ]
    for each in scope.body:
        if isinstance(each, ast.ClassDef) and each.name.startswith("Test"):
            own = [mark for one in each.decorator_list for mark in spec_marks(one)]
            for node, marks in _marked(each, f"{name}::{each.name}"):
                yield node, [*around, *own, *marks]
        elif isinstance(each, _FUNCTION) and each.name.startswith("test_"):
            own = [mark for one in each.decorator_list for mark in spec_marks(one)]
            yield f"{name}::{each.name}", [*around, *own]


def compared(root: Path, specs: Path) -> Iterator[Fault]:
    """What differs from the documents that are under `specs`; others are not looked at."""
    for appendix in load(root):
        path = specs / appendix.code / f"{appendix.code}.md"
        if not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        published = {int(number): section for number, section in _APPENDED.findall(text)}
        first = _APPENDED.search(text)
        body = text[: first.start()] if first else text
        referred = {int(number) for number in _REFERRED.findall(body)}
        ours = {note.number: note.section for note in appendix.notes}
        if appendix.count != max(published, default=0):
            yield appendix.code, f"has {max(published, default=0)} notes, not {appendix.count}"
        for number in sorted(ours.keys() | published.keys() | referred):
            said = f"{appendix.code} note {number}"
            if number not in published or number not in referred:
                yield said, "is not in the document, or nothing refers to it"
            elif ours.get(number) != published[number]:
                yield said, f"is of section {published[number]}, not {ours.get(number)}"


def chapter(root: Path) -> str:
    """The chapter of the reference page; empty if there are no notes."""
    appendices = load(root)
    if not appendices:
        return ""
    lines = [
        "",
        "## Product notes",
        "",
        "What the appendices say of Windows' own behaviour. `done` and `setting` name code and a",
        "test; `absent` and `todo` say why.",
        "",
        _cells("document", "notes", *(each.value for each in Decision)),
        _cells("---", *["---:"] * (len(Decision) + 1)),
    ]
    total: Counter[Decision] = Counter()
    for appendix in appendices:
        count = Counter(note.decision for note in appendix.notes)
        total += count
        lines.append(_cells(appendix.code, *_figures(count)))
    lines.append(_cells("all", *_figures(total)))
    for appendix in appendices:
        lines += ["", f"### Notes of {appendix.code}", ""]
        lines += [_cells("note", "section", "about", "decision", "where or why")]
        lines += [_cells(*["---"] * 5), *map(_row, appendix.notes)]
    return "\n".join([*lines, ""])


def _row(note: Note) -> str:
    setting = f"`{note.setting}` = {note.default}" if note.setting else ""
    places = ", ".join(f"`{place.removeprefix('src/merq/')}`" for place in note.code)
    told = "; ".join(part for part in (setting, places, note.why) if part)
    return _cells(str(note.number), note.section, note.about, note.decision.value, told)


def _figures(count: Counter[Decision]) -> list[str]:
    return [str(count.total()), *(str(count[each]) for each in Decision)]


def _cells(*cells: str) -> str:
    plain = (" ".join(cell.split()).replace("<", "&lt;").replace("|", "\\|") for cell in cells)
    return "| " + " | ".join(plain) + " |"
