"""The mutation operators: what one node of a syntax tree may be replaced by.

Each operator is a function from a node to the nodes that may stand in its place. An operator never
changes the node that it is given; it builds new ones.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

BOUNDARIES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
NEGATIONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
EXTREMES = {"min": "max", "max": "min"}
OTHER_TEXT = "mutant"


def comparison(node: ast.AST) -> Iterator[ast.AST]:
    """Moves the boundary of a comparison, and negates it."""
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            for table in (BOUNDARIES, NEGATIONS):
                if other := table.get(type(operator)):
                    mutated = copy.deepcopy(node)
                    mutated.ops[place] = other()
                    yield mutated


def arithmetic(node: ast.AST) -> Iterator[ast.AST]:
    """Puts another arithmetic or bitwise operator in the place of one; drops a minus."""
    if isinstance(node, ast.BinOp | ast.AugAssign) and (other := ARITHMETIC.get(type(node.op))):
        mutated = copy.deepcopy(node)
        mutated.op = other()
        yield mutated
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Invert):
        yield copy.deepcopy(node.operand)


def boolean(node: ast.AST) -> Iterator[ast.AST]:
    """Exchanges `and` and `or`; drops a `not`."""
    if isinstance(node, ast.BoolOp):
        mutated = copy.deepcopy(node)
        mutated.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield mutated
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield copy.deepcopy(node.operand)


def constant(node: ast.AST) -> Iterator[ast.AST]:
    """One more and one less for a number, the other truth, another text."""
    if not isinstance(node, ast.Constant):
        return
    value = node.value
    others: tuple[float | str | bytes, ...] = ()
    if isinstance(value, bool):
        others = (not value,)
    elif isinstance(value, int | float):
        others = (value + 1, value - 1)
    elif isinstance(value, str) and " " not in value:
        others = (value + OTHER_TEXT,)
    elif isinstance(value, bytes):
        others = (value + OTHER_TEXT.encode(),)
    for other in others:
        yield ast.Constant(other)


def condition(node: ast.AST) -> Iterator[ast.AST]:
    """Takes a branch always, or never; a loop never; a comprehension's filter always."""
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        truths = (False,) if isinstance(node, ast.While) else (True, False)
        for truth in truths:
            if not (isinstance(node.test, ast.Constant) and isinstance(node, ast.While)):
                mutated = copy.deepcopy(node)
                mutated.test = ast.Constant(truth)
                yield mutated
    if isinstance(node, ast.comprehension):
        for place in range(len(node.ifs)):
            filtering = copy.deepcopy(node)
            filtering.ifs[place] = ast.Constant(True)  # noqa: FBT003 - the value of a literal
            yield filtering


def removal(node: ast.AST) -> Iterator[ast.AST]:
    """Leaves a statement out that has an effect: a call, a change of a field, a `raise`."""
    called = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await)
    changed = isinstance(node, ast.AugAssign | ast.Delete | ast.Raise)
    stored = (isinstance(node, ast.Assign) and _stores(node.targets)) or (
        isinstance(node, ast.AnnAssign) and node.value is not None and _stores([node.target])
    )
    guarded = isinstance(node, ast.Return) and node.value is None
    if called or changed or stored or guarded:
        yield ast.Pass()


def returned(node: ast.AST) -> Iterator[ast.AST]:
    """Returns None in the place of a value."""
    if isinstance(node, ast.Return) and node.value is not None:
        nothing = isinstance(node.value, ast.Constant) and node.value.value is None
        if not nothing:
            yield ast.Return(ast.Constant(None))


def leap(node: ast.AST) -> Iterator[ast.AST]:
    """Exchanges `break` and `continue`."""
    if isinstance(node, ast.Break):
        yield ast.Continue()
    if isinstance(node, ast.Continue):
        yield ast.Break()


def extreme(node: ast.AST) -> Iterator[ast.AST]:
    """Exchanges `min` and `max`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in EXTREMES:
        mutated = copy.deepcopy(node)
        mutated.func = ast.Name(EXTREMES[node.func.id], ast.Load())
        yield mutated


def _stores(targets: list[ast.expr]) -> bool:
    """Whether nothing but fields and items is assigned: without a local name others would fail."""
    return all(isinstance(target, ast.Attribute | ast.Subscript) for target in targets)


OPERATORS: dict[str, Callable[[ast.AST], Iterator[ast.AST]]] = {
    each.__name__: each
    for each in (
        comparison,
        arithmetic,
        boolean,
        constant,
        condition,
        removal,
        returned,
        leap,
        extreme,
    )
}
