"""The limits that there are: constants and fields under `src/`, found by parsing, and settings.

A constant of a module is a limit if MAX, LIMIT or MOST is a word of its name; a field of a class if
`max` or `limit` is one. A field that has the name of a setting is what that setting sets, and no
limit of its own. A setting is a limit if it is one of `[limits]`, or its name ends in `_max`,
`_max_s`, `_bytes`, `_kb` or `_size`. Others may be registered too, if they exist.
"""

import ast
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.conformance.citing import files, parsed

_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
_CONSTANT_LIMIT = re.compile(r"(?:^|_)(?:MAX|LIMIT|MOST)(?:_|$)")
_FIELD_LIMIT = re.compile(r"(?:^|_)(?:max|limit)(?:_|$)")
_SETTING_LIMIT = re.compile(r"limits\..*|.*_(?:max|max_s|bytes|kb|size)")
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """Something that is, or may be registered as, a limit.

    Attributes:
        value: As it is written, where it is no number.
        is_limit: Whether it has to be registered.
        says: Its docstring's first paragraph, or a setting's meaning.
    """

    name: str
    where: str
    value: int | str
    is_limit: bool
    says: str = ""
    is_setting: bool = False


@dataclass(frozen=True, slots=True)
class Setting:
    """A key of the service's settings: what it is by default, and what it means."""

    key: str
    default: str
    meaning: str


def declared(root: Path, settings: Iterable[Setting]) -> dict[str, Declared]:
    """Everything that the register may name."""
    known = list(settings)
    found = {
        each.key: Declared(
            name=each.key,
            where="settings",
            value=each.default,
            is_limit=bool(_SETTING_LIMIT.fullmatch(each.key)),
            says=each.meaning,
            is_setting=True,
        )
        for each in known
    }
    set_fields = {each.key.rpartition(".")[2] for each in known}
    modules = {_module_name(name): (name, parsed(name, text)) for name, text in files(root, "src")}
    values = _Values({module: tree for module, (_, tree) in modules.items()})
    for module, (file, tree) in modules.items():
        for each in _constants(module, file, tree, values):
            found[each.name] = each
        for each in _fields(module, file, tree, values, set_fields):
            found[each.name] = each
    return found


def _module_name(file: str) -> str:
    parts = list(Path(file).with_suffix("").parts[1:])
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _constants(module: str, file: str, tree: ast.Module, values: "_Values") -> Iterator[Declared]:
    for name, value, line, says in _assignments(tree.body):
        if _CONSTANT.fullmatch(name):
            yield Declared(
                name=f"{module}.{name}",
                where=f"{file}:{line}",
                value=values.shown(module, value),
                is_limit=bool(_CONSTANT_LIMIT.search(name)),
                says=says,
            )


def _fields(
    module: str, file: str, tree: ast.Module, values: "_Values", set_fields: set[str]
) -> Iterator[Declared]:
    for holder in tree.body:
        if not isinstance(holder, ast.ClassDef):
            continue
        for name, value, line, says in _assignments(holder.body):
            shown = values.shown(module, value)
            if _FIELD_LIMIT.search(name) and isinstance(shown, int):
                yield Declared(
                    name=f"{module}.{holder.name}.{name}",
                    where=f"{file}:{line}",
                    value=shown,
                    is_limit=name not in set_fields,
                    says=says,
                )


def _assignments(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr, int, str]]:
    """Names that are given a value here, with the value, the line and the text that follows."""
    for node, following in zip(body, [*body[1:], None], strict=True):
        says = ""
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            text = following.value.value
            says = " ".join(text.split("\n\n")[0].split()) if isinstance(text, str) else ""
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value, node.lineno, says
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value, node.lineno, says


class _Values:
    """Works out what constants are, over modules, without importing any."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        self._written = {
            module: {name: value for name, value, _, _ in _assignments(tree.body)}
            for module, tree in trees.items()
        }
        self._imported = {
            module: {
                alias.asname or alias.name: (node.module, alias.name)
                for node in tree.body
                if isinstance(node, ast.ImportFrom) and node.module
                for alias in node.names
            }
            for module, tree in trees.items()
        }

    def shown(self, module: str, expression: ast.expr) -> int | str:
        """The number, or else how it is written."""
        found = self._number(module, expression)
        return ast.unparse(expression) if found is None else found

    def _number(self, module: str, expression: ast.expr) -> int | None:
        match expression:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=name):
                return self._named(module, name)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                first, second = self._number(module, left), self._number(module, right)
                if first is None or second is None:
                    return None
                return _OPERATORS[type(op)](first, second)
        return None

    def _named(self, module: str, name: str) -> int | None:
        written = self._written.get(module, {}).get(name)
        if written is not None:
            return self._number(module, written)
        home, there = self._imported.get(module, {}).get(name, ("", ""))
        return self._named(home, there) if home in self._written else None
