"""Which citations under src count: those that stand in code which something uses.

A citation says that code obeys a section, so it counts only from a docstring or a comment, and
only if all of this holds for the place where it stands:

* its module is imported by another module under src, or is started: a package's `__init__`, a
  `__main__`, or named in pyproject.toml;
* each definition around it (class, function, constant, field) is used: its name is read somewhere
  under src outside of that definition, or is public API, that is, listed in an `__all__`. Special
  methods are used if their class is, and so are methods of a class that derives from a class of
  another package, such as `asyncio.Protocol`, which calls them;
* a function around it does something: more than a docstring, `pass`, `...` or raising
  NotImplementedError.

A comment belongs to the statement that it stands in, or else to the one that follows it. A text
below an assignment is the docstring of that assignment. Files are parsed, never imported, and a
name counts by its spelling, so the use of another thing of the same name is taken for a use: the
rule finds code that nobody uses, and the tests have to show that the rest does what it says.
"""

import ast
import io
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tools.conformance.citing import Citation, citations, files, parsed

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Module:
    """A file under src: its dotted name, its text and its syntax tree."""

    file: str
    name: str
    text: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.file.endswith("__init__.py")


@dataclass(slots=True)
class _Uses:
    """How often each name is read in a piece of code, and which modules it imports."""

    names: Counter[str] = field(default_factory=Counter)
    modules: set[str] = field(default_factory=set)
    public: set[str] = field(default_factory=set)


def counting_citations(root: Path) -> Iterator[Citation]:
    """The citations under src that stand in code which something uses."""
    modules = [
        _Module(file=name, name=_dotted(name), text=text, tree=parsed(name, text))
        for name, text in files(root, "src")
    ]
    uses = _Uses()
    for module in modules:
        _collect(module, uses)
    started = _started(root)
    for module in modules:
        if module.is_package or module.name in uses.modules | started or _is_main(module):
            yield from _Reading(module, uses).citations()


def _dotted(file: str) -> str:
    return file.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _is_main(module: _Module) -> bool:
    return module.name.rpartition(".")[2] == "__main__"


def _started(root: Path) -> set[str]:
    """Modules that pyproject.toml starts: `name = "package.module:function"`."""
    path = root / "pyproject.toml"
    if not path.exists():
        return set()
    project = tomllib.loads(path.read_text(encoding="utf-8")).get("project", {})
    groups = [project.get("scripts", {}), *project.get("entry-points", {}).values()]
    return {target.partition(":")[0] for group in groups for target in group.values()}


def _collect(module: _Module, uses: _Uses) -> None:
    uses.names += _names(module.tree)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            uses.modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            source = _source(module, node)
            uses.modules |= {source, *(f"{source}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            uses.public |= {
                each.value
                for each in ast.walk(node.value)
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            }


def _source(module: _Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    parts = parts[: len(parts) - node.level + module.is_package]
    return ".".join([*parts, node.module] if node.module else parts)


def _names(tree: ast.AST) -> Counter[str]:
    """How often each name is read, imported from or given as a keyword in a tree."""
    found: Counter[str] = Counter()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name):
                found[name] += 1
            case ast.keyword(arg=str(name)):
                found[name] += 1
            case ast.ImportFrom():
                found.update(alias.name for alias in node.names)
    return found


class _Reading:
    """Finds in one module what its citations belong to."""

    def __init__(self, module: _Module, uses: _Uses) -> None:
        self.module = module
        self.uses = uses
        self.comments = _comments(module.text)

    def citations(self) -> Iterator[Citation]:
        """The citations of this module that count."""
        yield from self._in_block(self.module.tree, 1, len(self.module.text.splitlines()) + 1)

    def _in_block(self, owner: ast.AST, first: int, end: int) -> Iterator[Citation]:
        """The citations of the lines `first` to `end`, which are the body of `owner`."""
        body: list[ast.stmt] = getattr(owner, "body", [])
        if isinstance(owner, (ast.Module, *_DEFINITIONS)) and _is_text(body[0] if body else None):
            yield from self._in_lines(body[0].lineno, _after(body[0]))
        start = first
        for position, statement in enumerate(body):
            last = position == len(body) - 1
            until = end if last else _after(statement)
            text = body[position + 1] if not last and _is_text(body[position + 1]) else None
            if self._is_called_by_others(owner, statement) or self._is_used(statement):
                yield from self._in_statement(statement, start, until)
                if text is not None and isinstance(statement, (ast.Assign, ast.AnnAssign)):
                    yield from self._in_lines(text.lineno, _after(text))
            start = _after(statement)

    def _in_statement(self, statement: ast.stmt, first: int, until: int) -> Iterator[Citation]:
        if isinstance(statement, _DEFINITIONS):
            inside = _header_end(statement) + 1
            yield from self._in_comments(first, inside)
            yield from self._in_block(statement, inside, until)
        else:
            yield from self._in_comments(first, until)

    def _in_lines(self, first: int, until: int) -> Iterator[Citation]:
        lines = self.module.text.splitlines(keepends=True)
        yield from citations("".join(lines[first - 1 : until - 1]), self.module.file)

    def _in_comments(self, first: int, until: int) -> Iterator[Citation]:
        lines = [self.comments.get(line, "\n") for line in range(first, until)]
        yield from citations("".join(lines), self.module.file)

    def _is_used(self, statement: ast.stmt) -> bool:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                return _does_something(statement) and self._is_named(statement, name)
            case ast.ClassDef(name=name):
                return self._is_named(statement, name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                return self._is_named(statement, name)
        return True

    def _is_called_by_others(self, owner: ast.AST, statement: ast.stmt) -> bool:
        """Whether it is a method of a class that derives from one of another package."""
        return (
            isinstance(owner, ast.ClassDef)
            and isinstance(statement, _FUNCTIONS)
            and any(
                isinstance(base, ast.Attribute)
                and ast.unparse(base).partition(".")[0] != self.module.name.partition(".")[0]
                for base in owner.bases
            )
        )

    def _is_named(self, statement: ast.stmt, name: str) -> bool:
        if name in self.uses.public or (name.startswith("__") and name.endswith("__")):
            return True
        return self.uses.names[name] > _names(statement)[name]


def _after(statement: ast.stmt) -> int:
    return (statement.end_lineno or statement.lineno) + 1


def _header_end(definition: ast.stmt) -> int:
    """The last line of a definition before its body."""
    parts: list[ast.AST | None] = [*getattr(definition, "bases", ())]
    if isinstance(definition, _FUNCTIONS):
        given = definition.args
        parts += [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        parts.append(definition.returns)
    ends = [getattr(part, "end_lineno", None) or 0 for part in parts]
    return max(definition.lineno, *ends, 0)


def _is_text(statement: ast.stmt | None) -> bool:
    match statement:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


def _does_something(function: ast.stmt) -> bool:
    return any(
        not isinstance(statement, ast.Pass)
        and not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        and "NotImplementedError" not in ast.unparse(statement).partition("\n")[0]
        for statement in getattr(function, "body", [])
    )


def _comments(text: str) -> dict[int, str]:
    """The comments of a file by line."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {each.start[0]: each.string + "\n" for each in tokens if each.type == tokenize.COMMENT}
