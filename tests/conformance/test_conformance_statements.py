"""Sections that are registered by statement, what they hand over to, and from what we deviate."""

from pathlib import Path

import pytest
from tools.conformance import page

from kit.small_project import DOC, SECTIONS, Project, erratum, statement, with_statements


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


# --- the file


def test_statements_are_read_and_written_as_they_are(project: Project) -> None:
    with_statements(
        project,
        statement("SE"),
        statement("when-late", "todo", why="not yet"),
        statement("other", "part", why="half", needs=f"{DOC} 2.1"),
        status="part",
    )
    before = project.register.read_bytes()
    project.run("set", DOC, "2.10", "todo")
    assert project.register.read_bytes() == before
    row = project.document().headings["3.1"]
    assert [each.id for each in row.statements] == ["SE", "when-late", "other"]
    assert row.statements[2].needs == (f"{DOC} 2.1",)


def test_a_statement_is_set_by_its_name(project: Project) -> None:
    with_statements(project, statement("a"), statement("b"), status="done")
    assert project.run("set", DOC, "3.1#a", "todo", "--why", "others do it") == 0
    assert project.run("set", DOC, "3.1#b", "todo") == 0
    assert project.run("set", DOC, "3.1#a", "3.1#b", "deviates", "--why", "E01") == 0
    assert project.run("set", DOC, "3.1#c", "done") == 2
    assert project.run("set", DOC, "3.1#a", "part") == 2
    found = [
        (each.status.value, each.why) for each in project.document().headings["3.1"].statements
    ]
    assert found == [("deviates", "E01")] * 2


@pytest.mark.parametrize(
    "statements",
    [
        [statement("a"), statement("a")],
        [statement("a b")],
        [statement("a", "nearly")],
        ['id = "a", status = "done"'],
        ['id = "a", status = "done", says = "so", title = "so"'],
    ],
)
def test_statements_that_make_no_sense_are_an_error(
    project: Project, statements: list[str]
) -> None:
    with_statements(project, *statements)
    assert project.run("check") == 2


def test_refresh_keeps_statements(project: Project) -> None:
    with_statements(project, statement("a"), status="part")
    before = project.register.read_bytes()
    assert project.run("refresh", DOC, "--specs", str(project.root / "specs")) == 0
    assert project.register.read_bytes() == before


def test_the_page_has_statements_under_their_section_and_counts_them(project: Project) -> None:
    with_statements(project, statement("SE"), statement("x", "todo", why="late"), status="part")
    project.file("conformance/errata.toml", erratum(kind="deviation"))
    project.run("report")
    text = (project.root / page.PAGE).read_text(encoding="utf-8")
    assert "| 3.1 | Rules | part | so |\n| 3.1#SE | it is so | done |  |\n" in text
    assert "| 3.1#x | it is so | todo | late |" in text
    assert f"| {DOC} | 1 | 2 | 1 | 0 | 1 | 0 | 0 |" in text
    assert "0 readings, 1 deviations. Tests show all but 1." in text
    assert "Kind: deviation\n\nNo test shows it: a matter of commentary" in text


# --- what they ask for


def test_each_done_statement_needs_a_test_of_its_own(project: Project) -> None:
    with_statements(project, statement("a"), statement("b"), status="done")
    project.file("src/code.py", f'"""[{DOC}] 3.1"""\n')
    project.test(f'"{DOC} 3.1", "{DOC} 3.1#a"')
    assert project.found("done") == [f"{DOC} 3.1#b: is done, but no test is marked with it"]
    project.test(f'"{DOC} 3.1#a", "{DOC} 3.1#b"')
    assert project.found("done") == []
    assert project.found("marks") == []


def test_a_mark_that_names_no_statement_is_found(project: Project) -> None:
    with_statements(project, statement("a"))
    project.test(f'"{DOC} 3.1#c"')
    assert project.found("marks") == [f"tests/test_code.py:1: [{DOC}] 3.1 has no statement c"]


@pytest.mark.parametrize(
    ("status", "statements", "found"),
    [
        ("done", ["done", "done"], []),
        ("done", ["done", "todo"], ["is done, but not its s1"]),
        ("done", ["part", "absent", "done"], ["is done, but not its s0, s1"]),
        ("done", ["deviates", "done"], ["is done, but not its s0"]),
        ("deviates", ["deviates", "done"], []),
        ("deviates", ["deviates", "todo"], ["is deviates, but not its s1"]),
        ("part", ["done", "todo"], []),
        ("todo", ["todo"], []),
        ("todo", ["done"], ["is todo, but has done statements"]),
        ("absent", ["done"], ["is absent, but has done statements"]),
    ],
)
def test_a_section_is_not_better_than_its_statements(
    project: Project, status: str, statements: list[str], found: list[str]
) -> None:
    rows = [statement(f"s{number}", each) for number, each in enumerate(statements)]
    with_statements(project, *rows, status=status)
    assert project.found("statements") == [f"{DOC} 3.1: {each}" for each in found]


def test_a_statement_says_why_as_sections_do_and_may_when_it_is_todo(project: Project) -> None:
    with_statements(
        project,
        statement("a", "part"),
        statement("b", "done", why="no"),
        statement("c", "todo", why="later"),
        statement("d", "todo"),
    )
    assert project.found("whys") == [
        f"{DOC} 3.1#a: is part and says no why",
        f"{DOC} 3.1#b: is done and has a stray why",
    ]


def test_a_statement_without_words_is_found(project: Project) -> None:
    with_statements(project, 'id = "a", status = "todo", says = " "')
    assert project.found("statements") == [f"{DOC} 3.1#a: says nothing"]


# --- handing over


SECOND = "[Second (section 3.1.4.2)](#Section_3.1.4.2)"
ELSEWHERE = "[MS-MQDMPR](../MS-MQDMPR/MS-MQDMPR.md) section 3.1.7.1.9"
HANDING_OVER = {
    "3.1": ("Rules", ""),
    "3.1.4": ("Events", ""),
    "3.1.4.1": (
        "First",
        f"It MUST be done as {SECOND} and {ELSEWHERE} say, as section 2.1 has it; see 3.1.4.1.",
    ),
    "3.1.4.2": ("Second", "It MAY be done ([MS-MQMQ] section 2.2.3)."),
}


def test_refresh_takes_from_the_documents_what_a_section_hands_over_to(project: Project) -> None:
    project.specification({**SECTIONS, **HANDING_OVER})
    assert project.run("refresh", DOC, "--specs", str(project.root / "specs")) == 0
    headings = project.document().headings
    assert headings["3.1.4.1"].needs == ("MS-MQDMPR 3.1.7.1.9", f"{DOC} 3.1.4.2")
    assert headings["3.1.4.2"].needs == ()


@pytest.mark.parametrize(
    ("status", "found"),
    [("todo", True), ("absent", True), ("part", False), ("done", False), ("deviates", False)],
)
def test_done_is_refused_while_what_it_hands_over_to_is_not(
    project: Project, status: str, found: bool
) -> None:
    with_statements(project, statement("a", needs=f"{DOC} 2.10"))
    why = ', why = "so"' if status in ("part", "deviates", "absent") else ""
    project.edit('"Schema", status = "todo"', f'"Schema", status = "{status}"{why}')
    what = f"{DOC} 3.1#a: is done, but hands over to {DOC} 2.10, which is {status}"
    assert project.found("needs") == ([what] if found else [])


def test_a_need_of_something_that_does_not_exist_is_found(project: Project) -> None:
    with_statements(project, statement("a", "todo", needs=f"{DOC} 9.9"))
    assert project.found("needs") == [f"{DOC} 3.1#a: needs {DOC} 9.9, which does not exist"]


# --- deviations


def test_done_is_refused_while_a_deviation_names_the_section(project: Project) -> None:
    project.run("set", DOC, "2.1", "done")
    project.file("conformance/errata.toml", erratum(kind="reading"))
    assert project.found("deviations") == []
    project.file("conformance/errata.toml", erratum(kind="deviation"))
    assert project.found("deviations") == [f"{DOC} 2.1: is done, but E01 deviates from it"]
    project.run("set", DOC, "2.1", "deviates", "--why", "E01: two sizes")
    assert project.found("deviations") == []


def test_a_deviation_may_name_a_statement(project: Project) -> None:
    with_statements(project, statement("a"), statement("b", "todo"))
    project.file("conformance/errata.toml", erratum(kind="deviation", section=f"{DOC} 3.1#a"))
    assert project.found("errata") == []
    assert project.found("deviations") == [f"{DOC} 3.1#a: is done, but E01 deviates from it"]
    project.file("conformance/errata.toml", erratum(kind="deviation", section=f"{DOC} 3.1#c"))
    assert project.found("errata") == [f"E01: [{DOC}] 3.1 has no statement c"]


def test_what_deviates_names_the_erratum_that_decided_it(project: Project) -> None:
    project.file("conformance/errata.toml", erratum(kind="reading"))
    project.run("set", DOC, "2.1", "deviates", "--why", "E01, as it stands")
    assert project.found("deviations") == [
        f"{DOC} 2.1: deviates, but its why names no erratum of that kind"
    ]


def test_an_erratum_without_a_kind_is_an_error(project: Project) -> None:
    project.file("conformance/errata.toml", erratum().replace('kind = "reading"\n', ""))
    assert project.run("check") == 2
    project.file("conformance/errata.toml", erratum(kind="opinion"))
    assert project.run("check") == 2
