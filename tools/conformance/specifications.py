"""What the register takes from the documents: their headings, and which of them are normative.

A section is normative when it is in chapter 2 or 3 and its own text, without that of the sections
below it, says MUST, SHOULD or MAY. A normative section on behaviour, one of 3.x.4 to 3.x.7, needs
the other such sections that its text names. Nothing else of the text is kept.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from tools.conformance.register import (
    FOLDER,
    Document,
    RegisterError,
    Section,
    Status,
    dumped,
    in_order,
    load_document,
    order,
    write,
)

# The thirteen queue documents, and the one that carries .NET message framing over queues.
DOCUMENTS = (
    "MC-MQSRM",
    "MS-MQBR",
    "MS-MQCN",
    "MS-MQDMPR",
    "MS-MQDS",
    "MS-MQDSSM",
    "MS-MQMP",
    "MS-MQMQ",
    "MS-MQMR",
    "MS-MQQB",
    "MS-MQQP",
    "MS-MQRR",
    "MS-MQSD",
    "MS-NMFMB",
)
NORMATIVE_CHAPTERS = (2, 3)
HEADING_LEVELS = 6

_NUMBER = r"[1-9][0-9]*(?:\.[0-9]+)*"
_TITLE = re.compile(r"^# \[([A-Z0-9-]+)\]: (.+)$", re.MULTILINE)
_CONTENTS = re.compile(rf"^ *- \[({_NUMBER}) (.+)\]\(#Section_[\w.]+\)$", re.MULTILINE)
_HEADING = re.compile(rf"#{{1,6}} ({_NUMBER}) .+")
_REVISION = re.compile(r"^\| *(\d+)/(\d+)/(\d{4}) *\| *([\d.]+) *\|", re.MULTILINE)
_REQUIREMENT = re.compile(r"\b(?:MUST|SHOULD|MAY)\b")
_BEHAVIOUR = re.compile(r"3\.[0-9]+\.[4-7](?:\.[0-9]+)*")
_DEEP = r"([0-9]+(?:\.[0-9]+)+)"
_ELSEWHERE = re.compile(rf"\[?(M[CS]-[A-Z0-9]+)\]?(?:\([^)]*\))?\]?,?\s*sections?\s*{_DEEP}")
_HERE = re.compile(rf"(?:section\s*\[?|#Section_){_DEEP}")


def refresh(root: Path, specs: Path, codes: Collection[str]) -> list[str]:
    """Take the headings from the documents, keep statuses and whys, and tell what changed."""
    texts: dict[Path, str] = {}
    said: list[str] = []
    for code in sorted(codes):
        path = root / FOLDER / f"{code}.toml"
        old = load_document(path) if path.exists() else None
        new = merged(old, read_specification(specs / code / f"{code}.md"))
        said += changes(old, new)
        texts[path] = dumped(new)
    write(texts)
    return said


def read_specification(path: Path) -> Document:
    """A document in Markdown as a page of the register where all is still to do."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise RegisterError(f"{path}: {error}") from error
    title, revisions = _TITLE.search(text), _REVISION.findall(text)
    if not title or title[1] != path.stem:
        raise RegisterError(f"{path}: its first heading is not that of [{path.stem}]")
    titles = dict(_CONTENTS.findall(text))
    bodies = _bodies(text, titles)
    if not titles or (differing := sorted(bodies.keys() ^ titles.keys(), key=order)):
        found = ", ".join(differing) if titles else "every section"
        raise RegisterError(f"{path}: its table of contents and its headings differ in {found}")
    normative = {
        number
        for number, body in bodies.items()
        if order(number)[0] in NORMATIVE_CHAPTERS and _REQUIREMENT.search(body)
    }
    needed = {number: _needed(path.stem, number, bodies) for number in normative}
    month, day, year, revision = revisions[-1] if revisions else ("", "", "", "")
    headings = in_order(
        Section(number=number, title=titles[number], needs=needed.get(number, ()))
        for number in titles
    )
    return Document(
        code=path.stem,
        title=title[2],
        revision=revision,
        published=f"{year}-{month:0>2}-{day:0>2}" if year else "",
        sections=tuple(row for row in headings if row.number in normative),
        other=tuple(row for row in headings if row.number not in normative),
    )


def _bodies(text: str, titles: dict[str, str]) -> dict[str, str]:
    # Markdown has six levels: a section of the seventh is a bare line under its parent's heading.
    bare = {
        (number.rpartition(".")[0], title): number
        for number, title in titles.items()
        if number.count(".") >= HEADING_LEVELS
    }
    bodies: dict[str, list[str]] = {}
    heading = current = ""
    for line in text.splitlines():
        if found := _HEADING.fullmatch(line):
            heading = current = found[1]
            bodies[current] = []
        elif deeper := bare.pop((heading, line), ""):
            current = deeper
            bodies[current] = []
        elif current:
            bodies[current].append(line)
    return {number: "\n".join(lines) for number, lines in bodies.items()}


def _needed(code: str, number: str, bodies: Mapping[str, str]) -> tuple[str, ...]:
    """The sections on behaviour that a section on behaviour names, but itself."""
    if not _BEHAVIOUR.fullmatch(number):
        return ()
    named = set(_ELSEWHERE.findall(bodies[number]))
    here = set(_HERE.findall(_ELSEWHERE.sub("", bodies[number])))
    named |= {(code, its) for its in here & bodies.keys()}
    named -= {(code, number)}
    behaviour = [it for it in named if it[0] in DOCUMENTS and _BEHAVIOUR.fullmatch(it[1])]
    behaviour.sort(key=lambda it: (it[0], order(it[1])))
    return tuple(f"{document} {its}" for document, its in behaviour)


def merged(old: Document | None, fresh: Document) -> Document:
    """The fresh headings with the statuses and whys that the register already has."""
    known = {row.number: row for row in old.rows} if old else {}

    def kept(row: Section) -> Section:
        was = known.get(row.number, row)
        return replace(row, status=was.status, why=was.why, statements=was.statements)

    rest = [kept(row) for row in fresh.other]
    return replace(
        fresh,
        sections=tuple(kept(row) for row in fresh.sections),
        also=tuple(row for row in rest if row.status is not Status.TODO or row.statements),
        other=tuple(row for row in rest if row.status is Status.TODO and not row.statements),
    )


def changes(old: Document | None, new: Document) -> list[str]:
    """What a refresh does to a document, in words."""
    if old is None:
        return [f"{new.code}: new, {len(new.sections)} normative sections, {len(new.other)} others"]
    before, after = old.headings, new.headings
    said = [f"added {number} {after[number].title}" for number in after if number not in before]
    for number, was in before.items():
        now = after.get(number)
        if now is None:
            lost = "" if was.status is Status.TODO else f", and with it its status {was.status}"
            said.append(f"removed {number} {was.title}{lost}")
        elif was.title != now.title:
            said.append(f"renamed {number} {was.title} to {now.title}, still {now.status}")
        if now is not None and was.needs != now.needs:
            said.append(f"{number} needs {', '.join(now.needs) or 'nothing'}")
    was_normative, normative = ({row.number for row in it.sections} for it in (old, new))
    moved = (normative ^ was_normative) & before.keys() & after.keys()
    said += [
        f"{number} is {'now' if number in normative else 'no longer'} normative"
        for number in sorted(moved, key=order)
    ]
    if old.revision != new.revision:
        said.append(f"revision {old.revision} is now {new.revision}")
    return [f"{new.code}: {line}" for line in said]
