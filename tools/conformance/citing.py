"""Where code, tests and pages name sections: citations in brackets and marks on tests.

Files are read and parsed, never imported. Not in here: what has to be named (`checks`), and which
of the citations in code are worth anything (`source_code`).
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.conformance.register import RegisterError

# What the queue documents stand on: may be cited, but no section number is checked.
KNOWN_DOCUMENTS = frozenset(
    {
        "MC-COMQC",  # queued components
        "MC-MQAC",  # the ActiveX client
        "MC-MQDSRP",  # directory replication
        "MC-NBFS",  # .NET binary formats
        "MC-NBFSE",
        "MC-NBFX",
        "MC-NMF",  # .NET message framing
        "MS-ADA1",  # Active Directory's schema
        "MS-ADA2",
        "MS-ADA3",
        "MS-ADSC",
        "MS-ADTS",  # Active Directory
        "MS-DCOM",
        "MS-DTCO",  # distributed transactions
        "MS-DTYP",  # data types
        "MS-ERREF",  # error codes
        "MS-KILE",  # Kerberos
        "MS-LSAD",  # local security authority
        "MS-LSAT",
        "MS-MQOD",  # the overview, new
        "MS-MQSO",  # the overview, old
        "MS-NETOD",  # .NET, the overview
        "MS-NLMP",  # NTLM
        "MS-NRBF",  # .NET remoting's binary format
        "MS-OAUT",  # OLE automation
        "MS-PAC",  # Kerberos, what it says of a user
        "MS-RPCE",  # RPC
        "MS-SAMR",  # accounts
        "MS-SFU",  # Kerberos, acting for a user
        "MS-SPNG",  # negotiation of a security protocol
        "MS-WSPOL",  # web service policies
    }
)
SCANNED = {"src": ".py", "tests": ".py", "tools": ".py", "docs": ".md"}
GENERATED = "docs/reference/"
RANGE_MAX = 50

_CODE = r"M[CS]-[A-Z][A-Z0-9]+"
_NUMBER = r"[1-9][0-9]*(?:\.[0-9]+)*"
_RANGE = rf"(?:[\u2013-]({_NUMBER}))?"
_GAP = r"[ \t]*(?:\n[ \t]*(?:#[ \t]+)?)?"  # a citation may be broken once, in a comment too
_END = r"(?![\w%]|\.[0-9]|-[A-Za-z])"  # "[MS-DTYP] 16-byte" cites no section
_AND = rf"(?:{_GAP}[,;/&]{_GAP}(?:(?:and|or)\b{_GAP})?|{_GAP}\b(?:and|or|to|through)\b{_GAP})"
_CITED = re.compile(rf"\[({_CODE})\]")
_FIRST = re.compile(rf"{_GAP}(?:(?:sections?|§){_GAP})?({_NUMBER}){_RANGE}{_END}")
# "[MS-MQQB] 2.1, 16 bytes" cites one section: what follows the first has a dot.
_NEXT = re.compile(rf"{_AND}([1-9][0-9]*(?:\.[0-9]+)+){_RANGE}{_END}")
_PLACE = re.compile(rf"({_CODE}) ({_NUMBER})(?:#([A-Za-z][A-Za-z0-9-]*))?")
NOTE_MARK = re.compile(rf"{_CODE} note [1-9][0-9]*")  # is looked after by `notes`


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A document named somewhere, with one section of it or, `number` being empty, with none.

    Marks and errata can name a statement of the section, too.
    """

    where: str
    code: str
    number: str
    statement: str = ""

    def fault(self, numbers: Mapping[str, frozenset[str]]) -> str:
        """Why it names nothing that exists, or an empty string."""
        if self.code not in numbers:
            known = self.code in KNOWN_DOCUMENTS
            return "" if known else f"[{self.code}] is neither registered nor a known document"
        if self.number and self.number not in numbers[self.code]:
            return f"[{self.code}] has no section {self.number}"
        return ""


def citations(text: str, name: str) -> Iterator[Citation]:
    """The citations in a text: `[DOC] 2.1`, lists such as `2.1, 2.2` and ranges such as `2.1-3`."""
    for found in _CITED.finditer(text):
        where = f"{name}:{text.count(chr(10), 0, found.start()) + 1}"
        following = _FIRST.match(text, found.end())
        if not following:
            yield Citation(where=where, code=found[1], number="")
        while following:
            for number in _between(following[1], following[2] or following[1]):
                yield Citation(where=where, code=found[1], number=number)
            following = _NEXT.match(text, following.end())


def _between(first: str, last: str) -> list[str]:
    start, end = first.split("."), last.split(".")
    end = [*start[: max(0, len(start) - len(end))], *end]  # 3.1.5.6-8 is short for 3.1.5.6-3.1.5.8
    steps = int(end[-1]) - int(start[-1])
    if start[:-1] == end[:-1] and 0 <= steps <= RANGE_MAX:
        return [".".join([*start[:-1], str(int(start[-1]) + step)]) for step in range(steps + 1)]
    return [first, ".".join(end)]


def place(text: str, where: str) -> Citation | None:
    """What a mark or an erratum names as `DOC 2.1` or `DOC 2.1#ID`; None if it has another form."""
    found = _PLACE.fullmatch(text)
    if not found:
        return None
    return Citation(where=where, code=found[1], number=found[2], statement=found[3] or "")


def citations_in(root: Path, folder: str) -> Iterator[Citation]:
    """The citations in one of the scanned folders."""
    for name, text in files(root, folder):
        yield from citations(text, name)


def marks_in(root: Path) -> Iterator[tuple[str, str]]:
    """Where tests carry `pytest.mark.spec`, and each argument; empty if it is no literal.

    Marks of product notes are not among them.
    """
    for name, text in files(root, "tests"):
        for line, mark in _marks(name, text):
            if not NOTE_MARK.fullmatch(mark):
                yield f"{name}:{line}", mark


@cache
def _marks(name: str, text: str) -> tuple[tuple[int, str], ...]:
    """The marks of a file by line; several checks ask."""
    return tuple(
        (node.lineno, mark)
        for node in ast.walk(parsed(name, text))
        if isinstance(node, ast.Call) and _is_mark(node.func)
        for mark in [_literal(argument) for argument in node.args] or [""]
    )


def parsed(name: str, text: str) -> ast.Module:
    """The syntax tree of a file."""
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise RegisterError(f"{name}: {error}") from error


def spec_marks(expression: ast.expr) -> Iterator[str]:
    """What the marks in an expression name, such as a decorator or the value of `pytestmark`."""
    for _, mark in _marks_of(expression, "spec"):
        yield mark


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedTest:
    """A test, or a class or module of them, that carries a mark: which, where and by which name."""

    mark: str
    where: str
    test: str


def marked_tests(root: Path, mark: str) -> list[MarkedTest]:
    """The tests that carry `pytest.mark.<mark>`, once for each argument of it."""
    found: list[MarkedTest] = []
    for name, text in files(root, "tests"):
        if f"mark.{mark}(" not in text:
            continue
        for node in ast.walk(parsed(name, text)):
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    test, carrying = node.name, node.decorator_list
                case ast.Assign(targets=[ast.Name(id="pytestmark")]):
                    test, carrying = Path(name).stem, [node.value]
                case _:
                    continue
            found += [
                MarkedTest(mark=each, where=f"{name}:{line}", test=test)
                for expression in carrying
                for line, each in _marks_of(expression, mark)
            ]
    return found


def _marks_of(expression: ast.expr, mark: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(expression):
        if isinstance(node, ast.Call) and _is_mark(node.func, mark):
            yield from ((node.lineno, _literal(argument)) for argument in node.args)


def _is_mark(function: ast.expr, mark: str = "spec") -> bool:
    if not isinstance(function, ast.Attribute) or function.attr != mark:
        return False
    return ast.unparse(function) in (f"pytest.mark.{mark}", f"mark.{mark}")


def _literal(argument: ast.expr) -> str:
    value = argument.value if isinstance(argument, ast.Constant) else ""
    return value if isinstance(value, str) else ""


def files(root: Path, folder: str) -> Iterator[tuple[str, str]]:
    """Name and text of each file in one of the scanned folders, without generated ones."""
    for path in sorted((root / folder).rglob("*" + SCANNED[folder])):
        name = path.relative_to(root).as_posix()
        if not name.startswith(GENERATED):
            yield name, path.read_text(encoding="utf-8", errors="replace")
