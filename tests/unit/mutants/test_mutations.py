"""Which mutants a source has, which it has not, and what each of them looks like."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tools.mutants.mutations import Mutant, mutants_of, mutated_tree


def listed(folder: Path, source: str) -> list[Mutant]:
    path = folder / "module.py"
    path.write_text(source, encoding="utf-8")
    return mutants_of(folder, path)


def changes(folder: Path, source: str) -> list[tuple[str, str]]:
    return [(mutant.operator, mutant.mutated) for mutant in listed(folder, source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", [("comparison", "a <= b"), ("comparison", "a >= b")]),
        ("a >= b", [("comparison", "a > b"), ("comparison", "a < b")]),
        ("a == b", [("comparison", "a != b")]),
        ("a is not b", [("comparison", "a is b")]),
        ("a not in b", [("comparison", "a in b")]),
        ("a + b", [("arithmetic", "a - b")]),
        ("a & b", [("arithmetic", "a | b")]),
        ("a << b", [("arithmetic", "a >> b")]),
        ("-a", [("arithmetic", "a")]),
        ("a += b", [("arithmetic", "a -= b"), ("removal", "pass")]),
        ("a and b", [("boolean", "a or b")]),
        ("not a", [("boolean", "a")]),
        ("a = 29", [("constant", "a = 30"), ("constant", "a = 28")]),
        ("a = 0x1D", [("constant", "a = 30"), ("constant", "a = 28")]),
        ("a = True", [("constant", "a = False")]),
        ("a = 'b'", [("constant", "a = 'bmutant'")]),
        ("a = b'b'", [("constant", "a = b'bmutant'")]),
        ("def f(a=1): ...", [("constant", "def f(a=2):"), ("constant", "def f(a=0):")]),
        (
            "a = b if c else d",
            [("condition", "a = b if True else d"), ("condition", "a = b if False else d")],
        ),
        ("while a: ...", [("condition", "while False:")]),
        ("a = [b for b in c if b]", [("condition", "a = [b for b in c if True]")]),
        ("a()", [("removal", "pass")]),
        ("a.b = c", [("removal", "pass")]),
        ("a[b] = c", [("removal", "pass")]),
        ("del a[b]", [("removal", "pass")]),
        ("raise a", [("removal", "pass")]),
        ("def f():\n    return a", [("returned", "return None")]),
        ("def f():\n    return", [("removal", "pass")]),
        ("for a in b:\n    break", [("leap", "continue")]),
        ("for a in b:\n    continue", [("leap", "break")]),
        ("a = min(b, c)", [("extreme", "a = max(b, c)")]),
    ],
)
def test_each_operator_changes_one_thing(
    tmp_path: Path, source: str, expected: list[tuple[str, str]]
) -> None:
    assert changes(tmp_path, source) == expected


def test_a_branch_is_taken_always_and_never(tmp_path: Path) -> None:
    assert changes(tmp_path, "if a:\n    b = c\nelif d:\n    b = e") == [
        ("condition", "if True:"),
        ("condition", "if False:"),
        ("condition", "if True:"),
        ("condition", "if False:"),
    ]


@pytest.mark.parametrize(
    "source",
    [
        '"""What is in it."""',
        "a: Final = b\n'''What it is.'''",
        "import a",
        "from a import b",
        "a: dict[str, 'b'] = c",
        "def f(a: 'b') -> 'c': ...",
        "class A:\n    __slots__ = ('b',)",
        "__all__ = ['a']",
        "A: TypeAlias = 'b'",
        "assert a < 1, 'b'",
        "class A(Protocol):\n    b: int = 1",
        "class A(Enum):\n    B = 'b'",
        "@dataclass(frozen=True)\nclass A: ...",
        "def __repr__(self):\n    return a + 1",
        "a = 'a text for people'",
        "a = f'{b + 1}'",
        "if TYPE_CHECKING:\n    a()",
        "a = isinstance(b, int | str)",
        "a = cast('b', c)",
        "assert_never(a)",
        "a = zip(b, c, strict=True)",
        "a = b",
        "return_value = None",
    ],
)
def test_what_no_test_could_or_should_see_is_left_alone(tmp_path: Path, source: str) -> None:
    assert changes(tmp_path, source) == []


def test_what_an_error_says_is_left_alone_and_its_figures_are_not(tmp_path: Path) -> None:
    assert changes(tmp_path, "raise A('b', 1)") == [
        ("removal", "pass"),
        ("constant", "raise A('b', 2)"),
        ("constant", "raise A('b', 0)"),
    ]


def test_a_mutant_knows_its_place(tmp_path: Path) -> None:
    source = "A = 1\nclass B:\n    @c\n    def d(self, e=2):\n        if e:\n            return 3\n"
    found = {(it.original, it.mutated): it for it in listed(tmp_path, source)}
    constant = found["A = 1", "A = 2"]
    assert (constant.line, constant.function, constant.imported) == (1, "", True)
    default = found["def d(self, e=2):", "def d(self, e=3):"]
    assert (default.function, default.function_lines, default.imported) == ("d", (3, 6), True)
    condition = found["if e:", "if True:"]
    assert (condition.line, condition.last_line) == (5, 5), "its body is not what is mutated"
    returned = found["return 3", "return None"]
    assert (returned.line, returned.function, returned.imported) == (6, "d", False)
    assert condition.title == "module.py:5 [condition] if e:  →  if True:"


def test_each_mutant_differs_from_its_source_in_one_place(tmp_path: Path) -> None:
    source = "def f(a, b=1):\n    for c in a:\n        if c > b and not c == 3:\n            g(c)\n"
    found = listed(tmp_path, source)
    trees = [ast.unparse(mutated_tree(tmp_path, mutant)) for mutant in found]
    assert len(set(trees)) == len(found) > 8
    original = ast.unparse(ast.parse(source)).splitlines()
    for mutant, text in zip(found, trees, strict=True):
        different = [
            (ours, theirs)
            for ours, theirs in zip(original, text.splitlines(), strict=True)
            if ours != theirs
        ]
        assert [(ours.strip(), theirs.strip()) for ours, theirs in different] == [
            (mutant.original, mutant.mutated)
        ]


def test_a_mutant_of_another_source_is_refused(tmp_path: Path) -> None:
    mutant = listed(tmp_path, "a = 1\nb = 2\n")[-1]
    (tmp_path / "module.py").write_text("a = 1\n", encoding="utf-8")
    with pytest.raises(LookupError, match="the source has changed"):
        mutated_tree(tmp_path, mutant)
