"""Lists the mutants of a module, and builds the syntax tree of one of them.

A mutant is known by its module and its number in the module's list, which is the same as long as
the source is. Building one parses the source again and changes the one place, so that nothing of a
mutant can be left behind in another.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.mutants.excluding import excluded_fields, is_label
from tools.mutants.operators import OPERATORS

Functions = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Mutant:
    """One change of one place."""

    path: str
    number: int
    line: int
    last_line: int
    statement_lines: tuple[int, int]
    operator: str
    original: str
    mutated: str
    # The outermost function that the place is in the body of: its name and lines. Without one, the
    # place is run when the module is imported.
    function: str
    function_lines: tuple[int, int]
    imported: bool

    @property
    def title(self) -> str:
        """How a report names it."""
        return f"{self.path}:{self.line} [{self.operator}] {self.original}  →  {self.mutated}"


@dataclass(frozen=True)
class _Place:
    """Where a node hangs in its tree, and what it is inside of."""

    node: ast.AST
    parent: ast.AST
    field: str
    index: int | None
    ancestors: list[ast.AST]

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def mutants_of(root: Path, path: Path) -> list[Mutant]:
    """All mutants of one source file, in the order of its lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    relative = path.relative_to(root).as_posix()
    return [
        _described(relative, number, place, operator, replacement)
        for number, (place, operator, replacement) in enumerate(_changes(tree))
    ]


def mutated_tree(root: Path, mutant: Mutant) -> ast.Module:
    """The module's tree with the one change made."""
    tree = ast.parse((root / mutant.path).read_text(encoding="utf-8"))
    for number, (place, _, replacement) in enumerate(_changes(tree)):
        if number == mutant.number:
            place.put(ast.copy_location(replacement, place.node))
            return ast.fix_missing_locations(tree)
    raise LookupError(f"{mutant.path} has no mutant {mutant.number}: the source has changed")


def _changes(tree: ast.Module) -> Iterator[tuple[_Place, str, ast.AST]]:
    for place in list(_places(tree, [])):
        for name, operator in OPERATORS.items():
            for replacement in operator(place.node):
                yield place, name, replacement


def _places(node: ast.AST, ancestors: list[ast.AST]) -> Iterator[_Place]:
    skipped = excluded_fields(node)
    if skipped is None:
        return
    inside = [*ancestors, node]
    for field, value in ast.iter_fields(node):
        if field in skipped:
            continue
        children = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        for index, child in children:
            if not isinstance(child, ast.AST) or excluded_fields(child) is None:
                continue
            if not is_label(child, inside):
                yield _Place(child, node, field, index, inside)
            yield from _places(child, inside)


def _described(
    path: str, number: int, place: _Place, operator: str, replacement: ast.AST
) -> Mutant:
    chain = [*place.ancestors, place.node]
    statement = next(each for each in reversed(chain) if isinstance(each, ast.stmt))
    original = _shown(statement)
    place.put(replacement)
    mutated = _shown(replacement if statement is place.node else statement)
    place.put(place.node)
    function = next((each for each in chain[:-1] if isinstance(each, Functions)), None)
    in_body = function is not None and any(each in function.body for each in chain)
    header = _header(statement)
    line = getattr(place.node, "lineno", statement.lineno)
    last_line = getattr(place.node, "end_lineno", line) or line
    return Mutant(
        path=path,
        number=number,
        line=line,
        last_line=min(last_line, max(line, header[1])),
        statement_lines=header,
        operator=operator,
        original=original,
        mutated=mutated,
        function=function.name if function else "",
        function_lines=_lines(function),
        imported=not in_body,
    )


def _lines(function: Functions | None) -> tuple[int, int]:
    if function is None:
        return 0, 0
    first = min([function.lineno, *(each.lineno for each in function.decorator_list)])
    return first, function.end_lineno or function.lineno


def _header(statement: ast.stmt) -> tuple[int, int]:
    """The lines of a statement without those of the statements inside of it."""
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    last = statement.end_lineno or statement.lineno
    if isinstance(body, list) and isinstance(body[0], ast.stmt):
        last = max(statement.lineno, body[0].lineno - 1)
    return statement.lineno, last


def _shown(statement: ast.AST) -> str:
    """A statement on one line, without the statements inside of it."""
    kept = {
        field: getattr(statement, field)
        for field in ("body", "orelse", "finalbody", "handlers", "cases", "decorator_list")
        if isinstance(getattr(statement, field, None), list)
    }
    for field in kept:
        setattr(statement, field, [])
    try:
        return " ".join(ast.unparse(statement).split())
    finally:
        for field, value in kept.items():
            setattr(statement, field, value)
