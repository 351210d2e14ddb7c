"""Which parts of a module are not mutated, because no test could or should tell the difference.

`docs/internals/mutants.md` lists these rules for readers.
"""

from __future__ import annotations

import ast

# Methods whose result is read by people.
SHOWN = frozenset({"__repr__", "__str__"})
# Names whose value is for tools and for the interpreter.
DECLARED = frozenset({"__slots__", "__all__", "__match_args__"})
# Calls that do nothing when the program runs, or whose texts are for type checkers.
TYPING = frozenset({"cast", "TypeVar", "NewType", "ParamSpec", "assert_never"})


def excluded_fields(node: ast.AST) -> frozenset[str] | None:
    """The fields of a node that are not looked into; None if the whole node is left alone."""
    if _is_excluded(node):
        return None
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return frozenset({"decorator_list", "returns", "type_comment"})
    if isinstance(node, ast.ClassDef):
        return frozenset({"decorator_list", "bases", "keywords"})
    if isinstance(node, ast.arg | ast.AnnAssign):
        return frozenset({"annotation"})
    if isinstance(node, ast.Call) and _name(node.func) == "isinstance":
        return frozenset({"args"})
    return frozenset()


def _is_excluded(node: ast.AST) -> bool:
    match node:
        case (
            ast.Import()
            | ast.ImportFrom()
            | ast.Assert()
            | ast.JoinedStr()
            | ast.Pass()
            | ast.Expr(value=ast.Constant())  # a docstring, of a field too
        ):
            return True
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name in SHOWN
        case ast.ClassDef(bases=bases):
            return any(_name(base) == "Protocol" for base in bases)
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name in DECLARED or _is_alias(node)
        case ast.If(test=test):
            return _name(test) == "TYPE_CHECKING"
        case ast.Call(func=func) | ast.Expr(value=ast.Call(func=func)):
            return _name(func) in TYPING
        case ast.keyword(arg=arg):
            return arg == "strict"  # zip says what it trusts in
    return False


def is_label(node: ast.AST, ancestors: list[ast.AST]) -> bool:
    """Whether a text is for people: what an error says, and how a member of an enum is shown."""
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return False
    return any(
        isinstance(each, ast.Raise)
        or (isinstance(each, ast.ClassDef) and any("Enum" in _name(base) for base in each.bases))
        for each in ancestors
    )


def _is_alias(node: ast.AST) -> bool:
    annotation = node.annotation if isinstance(node, ast.AnnAssign) else None
    return annotation is not None and _name(annotation) == "TypeAlias"


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript):
        return _name(node.value)
    return node.id if isinstance(node, ast.Name) else ""
