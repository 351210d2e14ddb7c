"""The register's tool on small projects of its own, where each check has something to find."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.conformance import checks, citing, command, page, register

from kit.small_project import DOC, SECTIONS, Project, erratum, specification

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


# --- refresh


def test_normative_is_what_says_must_should_or_may_in_chapters_2_and_3(project: Project) -> None:
    document = project.document()
    assert [row.number for row in document.sections] == ["2.1", "2.10", "3.1"]
    assert [row.number for row in document.other] == ["1", "2", "2.2", "3", "4"]


def test_title_revision_and_date_are_taken_from_the_document(project: Project) -> None:
    document = project.document()
    assert (document.title, document.revision, document.published) == (
        "Messages by Hand",
        "7.0",
        "2024-04-03",
    )


def test_a_section_of_the_seventh_level_is_found_without_a_heading(project: Project) -> None:
    deep = {
        "2.1.1": ("A", ""),
        "2.1.1.1": ("B", ""),
        "2.1.1.1.1": ("C", ""),
        "2.1.1.1.1.1": ("D", "No word of this kind."),
        "2.1.1.1.1.1.1": ("Bare", "It MUST be found."),
        "2.1.1.1.1.1.2": ("Other", "Nothing."),
    }
    project.specification({**SECTIONS, **deep})
    assert project.run("refresh", DOC, "--specs", str(project.root / "specs")) == 0
    numbers = [row.number for row in project.document().sections]
    assert numbers == ["2.1", "2.1.1.1.1.1.1", "2.10", "3.1"]


def test_refresh_keeps_statuses_and_tells_what_changed(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.run("set", DOC, "2.1", "part", "--why", "half of it")
    project.run("set", DOC, "2.2", "done")
    project.run("set", DOC, "3.1", "done")
    capsys.readouterr()
    changed = {number: entry for number, entry in SECTIONS.items() if number != "3.1"}
    changed["2.1"] = ("Carriage", "It MUST be carried.")
    changed["2.10"] = ("Schema", "It is stored.")
    changed["3.2"] = ("Timers", "It MUST be timed.")
    project.specification(changed, revision="8.0")
    assert project.run("refresh", DOC, "--specs", str(project.root / "specs")) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{DOC}: added 3.2 Timers",
        f"{DOC}: renamed 2.1 Transport to Carriage, still part",
        f"{DOC}: removed 3.1 Rules, and with it its status done",
        f"{DOC}: 2.10 is no longer normative",
        f"{DOC}: revision 7.0 is now 8.0",
    ]
    assert project.status("2.1") == ("part", "half of it")
    assert [row.number for row in project.document().also] == ["2.2"]


def test_refresh_of_the_same_document_changes_no_byte(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.run("set", DOC, "2.1", "deviates", "--why", 'a "quoted" \\ why')
    before = project.register.read_bytes()
    capsys.readouterr()
    assert project.run("refresh", DOC, "--specs", str(project.root / "specs")) == 0
    assert capsys.readouterr().out == "nothing changed\n"
    assert project.register.read_bytes() == before


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "# [MS-MQMQ]: Another Document\n- [2 Messages](#Section_2)\n# 2 Messages\n",
        f"# [{DOC}]: No Contents\n# 2 Messages\n",
        f"# [{DOC}]: One Heading Less\n- [2 A](#Section_2)\n- [3 B](#Section_3)\n# 2 A\n",
    ],
)
def test_a_document_that_makes_no_sense_leaves_the_register_untouched(
    project: Project, capsys: pytest.CaptureFixture[str], broken: str
) -> None:
    before = project.register.read_bytes()
    # Another document, which is read first and is sound, must not be written either.
    sound = specification(SECTIONS).replace(DOC, "MC-MQSRM")
    project.file("specs/MC-MQSRM/MC-MQSRM.md", sound)
    project.file(f"specs/{DOC}/{DOC}.md", broken)
    assert project.run("refresh", "MC-MQSRM", DOC, "--specs", str(project.root / "specs")) == 2
    assert capsys.readouterr().err.startswith("conformance: ")
    assert [path.name for path in project.register.parent.iterdir()] == [project.register.name]
    assert project.register.read_bytes() == before


# --- set


def test_several_sections_are_set_at_once(project: Project) -> None:
    assert project.run("set", DOC, "2.1", "3.1", "absent", "--why", "nobody has it") == 0
    assert project.status("2.1") == project.status("3.1") == ("absent", "nobody has it")
    assert project.status("2.10") == ("todo", "")


def test_a_section_that_is_not_normative_can_be_tracked_and_let_go(project: Project) -> None:
    before = project.register.read_bytes()
    assert project.run("set", DOC, "2.2", "4", "done") == 0
    assert [row.number for row in project.document().also] == ["2.2", "4"]
    assert project.run("set", DOC, "4", "2.2", "todo") == 0
    assert project.register.read_bytes() == before


@pytest.mark.parametrize(
    "arguments",
    [
        [DOC, "9.9", "done"],
        [DOC, "2.1", "9.9", "done"],
        [DOC, "two", "done"],
        [DOC, "2.1", "part"],
        [DOC, "2.1", "absent", "--why", "  "],
        [DOC, "2.1", "done", "--why", "not asked for"],
        ["MS-MQDS", "2.1", "done"],
    ],
)
def test_a_setting_that_makes_no_sense_changes_nothing(
    project: Project, arguments: list[str]
) -> None:
    before = project.register.read_bytes()
    assert project.run("set", *arguments) == 2
    assert project.register.read_bytes() == before


# --- files


@given(st.text())
def test_any_text_survives_toml(text: str) -> None:
    assert tomllib.loads(f"it = {register.quoted(text)}") == {"it": text}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('status = "todo"', 'status = "nearly"'),
        ('title = "Transport"', 'name = "Transport"'),
        ('number = "2.10"', 'number = "2.1"'),
        ('number = "2.10"', "number = 2.10"),
        ('number = "2.10"', 'number = "2.x"'),
        ('document = "MS-MQQB"', 'document = "MS-MQMQ"'),
        ("also = []", ""),
        ("also = []", "also = ["),
    ],
)
def test_a_register_that_makes_no_sense_is_an_error_and_not_a_finding(
    project: Project, old: str, new: str
) -> None:
    project.edit(old, new)
    assert project.run("check") == 2


def test_a_project_without_a_register_is_an_error(tmp_path: Path) -> None:
    assert command.main(["--root", str(tmp_path), "check"]) == 2


# --- the checks find what they are for


def test_a_sound_project_gives_no_findings(project: Project) -> None:
    project.run("set", DOC, "2.1", "done")
    project.run("report")
    assert project.run("check") == 0


def test_any_finding_makes_check_end_with_1(project: Project) -> None:
    project.file("src/code.py", f"# [{DOC}] 9.9\n")
    assert project.run("check") == 1


@pytest.mark.parametrize("name", ["src/a/b.py", "tests/test_b.py", "tools/b.py", "docs/guide/b.md"])
def test_a_citation_of_a_section_that_does_not_exist_is_found(project: Project, name: str) -> None:
    project.file(name, f"\n\n[{DOC}] 2.1, 9.9\n")
    assert project.found("citations") == [f"{name}:3: [{DOC}] has no section 9.9"]


def test_citations_in_generated_pages_are_not_looked_at(project: Project) -> None:
    project.file("docs/reference/wire.md", f"[{DOC}] 9.9\n")
    assert project.found("citations") == []


def test_only_known_documents_may_be_cited_without_a_register(project: Project) -> None:
    unknown = "MS-XYZ"
    project.file("src/code.py", f"# [MS-DTYP] 2.3.4\n# [{unknown}]\n")
    assert project.found("citations") == [
        f"src/code.py:2: [{unknown}] is neither registered nor a known document"
    ]


def test_a_done_section_needs_code_and_test_of_its_own(project: Project) -> None:
    project.run("set", DOC, "2.1", "3.1", "done")
    assert project.found("done") == [
        f"{DOC} 3.1: is done, but no code that is used cites it",
        f"{DOC} 3.1: is done, but no test is marked with it",
    ]


def test_a_citation_of_the_parent_does_not_stand_for_the_section(project: Project) -> None:
    project.run("set", DOC, "3.1", "done")
    project.file("src/code.py", f"# [{DOC}] 3\n")
    project.test('"MS-MQQB 3"')
    assert len(project.found("done")) == 2


def test_a_citation_outside_src_does_not_make_a_section_done(project: Project) -> None:
    project.run("set", DOC, "2.1", "done")
    project.file("src/code.py", "")
    project.file("tools/code.py", f"# [{DOC}] 2.1\n")
    assert project.found("done") == [f"{DOC} 2.1: is done, but no code that is used cites it"]


def test_a_tracked_section_that_is_done_needs_code_and_test_too(project: Project) -> None:
    project.run("set", DOC, "4", "done")
    assert len(project.found("done")) == 2


@pytest.mark.parametrize("status", ["part", "deviates", "absent"])
def test_a_status_that_needs_a_why_and_has_none_is_found(project: Project, status: str) -> None:
    project.edit('"Transport", status = "todo"', f'"Transport", status = "{status}"')
    assert project.found("whys") == [f"{DOC} 2.1: is {status} and says no why"]


@pytest.mark.parametrize("status", ["todo", "done"])
def test_a_stray_why_is_found(project: Project, status: str) -> None:
    project.edit('"Transport", status = "todo"', f'"Transport", status = "{status}", why = "so"')
    assert project.found("whys") == [f"{DOC} 2.1: is {status} and has a stray why"]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ('"MS-MQQB 2.1", "MS-MQQB 9.9"', f"[{DOC}] has no section 9.9"),
        ('"MS-XYZ 2.1"', "[MS-X" + "YZ] is neither registered nor a known document"),
        ('"MS-MQQB"', f"a spec mark {checks.MARK_FORM}"),
        ("SECTION", f"a spec mark {checks.MARK_FORM}"),
        ("21", f"a spec mark {checks.MARK_FORM}"),
        ("", f"a spec mark {checks.MARK_FORM}"),
    ],
)
def test_a_mark_that_names_no_section_is_found(project: Project, arguments: str, what: str) -> None:
    project.test(arguments)
    assert project.found("marks") == [f"tests/test_code.py:1: {what}"]


def test_marks_count_wherever_pytest_allows_them(project: Project) -> None:
    project.file(
        "tests/test_code.py",
        "pytestmark = [pytest.mark.spec('MS-MQQB 2.1')]\n"
        "CASES = [pytest.param(1, marks=mark.spec('MS-MQQB 3.1', 'MS-MQQB 4'))]\n",
    )
    marked = [text for _, text in citing.marks_in(project.root)]
    assert marked == ["MS-MQQB 2.1", "MS-MQQB 3.1", "MS-MQQB 4"]


def test_a_page_that_is_out_of_date_is_found(project: Project) -> None:
    assert project.found("report") == []
    project.run("set", DOC, "2.1", "done")
    assert project.found("report") == [f"{page.PAGE}: is not what `report` writes now"]
    (project.root / page.PAGE).unlink()
    assert len(project.found("report")) == 1


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (erratum() + erratum(), "names two errata"),
        (erratum(section=f"{DOC} 9.9"), f"[{DOC}] has no section 9.9"),
        (erratum(section="2.1"), f"'2.1' {checks.SECTION_FORM}"),
        (erratum(found=f"as [{DOC}] 9.9 says"), f"[{DOC}] has no section 9.9"),
        (erratum(found=""), "leaves a field empty"),
    ],
)
def test_a_faulty_erratum_is_found(project: Project, text: str, what: str) -> None:
    project.file("conformance/errata.toml", erratum(name="E00") + text)
    assert project.found("errata") == [f"E01: {what}"]


# --- citations


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("[DOC] 3.1.5.3.1", ["3.1.5.3.1"]),
        ("as [DOC] 4 shows.", ["4"]),
        ("[DOC] section 2.1.", ["2.1"]),
        ("[DOC] 2.2.18, 2.2.19", ["2.2.18", "2.2.19"]),
        ("[DOC] 2.2.18, 2.2.19 and 2.3", ["2.2.18", "2.2.19", "2.3"]),
        ("[DOC] 4.1.3 / 4.1.4", ["4.1.3", "4.1.4"]),
        ("[DOC] 3.1.5.6\u20138", ["3.1.5.6", "3.1.5.7", "3.1.5.8"]),
        ("[DOC] 3.1.5.6-7, 4.2", ["3.1.5.6", "3.1.5.7", "4.2"]),
        ("[DOC] 4.1.1\u20134.1.3", ["4.1.1", "4.1.2", "4.1.3"]),
        ("[DOC] 3.1.9\u20133.2.1", ["3.1.9", "3.2.1"]),
        ("[DOC] 2.1\u20139999", ["2.1", "2.9999"]),
        ("[DOC] 2.1; [DOC] 2.2", ["2.1", "2.2"]),
        ("# see [DOC]\n# 2.1,\n# 2.2", ["2.1", "2.2"]),
        ("    [DOC]\n    2.1", ["2.1"]),
        ("[DOC]\n\n2.1", [""]),
        ("[DOC] 2.1, 16 bytes", ["2.1"]),
        ("[DOC] 2.2.20.x", ["2.2.20"]),
        ("[DOC] 16-byte names", [""]),
        ("[DOC] 50% of it", [""]),
        ("[DOC](link)", [""]),
        ('["DOC"]', []),
    ],
)
def test_a_citation_is_read_as_people_write_it(text: str, numbers: list[str]) -> None:
    found = list(citing.citations(text.replace("DOC", DOC), "file"))
    assert [citation.number for citation in found] == numbers
    assert {citation.code for citation in found} <= {DOC}


# --- the page and the command line


def test_the_page_lists_what_is_not_todo_and_counts_the_rest(project: Project) -> None:
    project.run("set", DOC, "2.1", "part", "--why", "a | b\n<c>")
    project.run("set", DOC, "4", "done")
    project.file("conformance/errata.toml", erratum())
    project.run("report")
    text = (project.root / page.PAGE).read_text(encoding="utf-8")
    assert f"| [{DOC}](#ms-mqqb) | 7.0 | 3 | 2 | 1 | 0 | 0 | 0 |" in text
    assert "3 sections: 2 todo, 1 part." in text
    assert "| 2.1 | Transport | part | a \\| b &lt;c> |" in text
    assert "| 4 † | Examples | done |  |" in text
    assert "Schema" not in text
    assert "### E01\n\nWhere: " in text


def test_the_tool_runs_by_its_path_from_anywhere(tmp_path: Path) -> None:
    tool = [sys.executable, str(ROOT / "tools" / "conformance")]
    shown = subprocess.run([*tool, "--help"], cwd=tmp_path, capture_output=True, check=True)
    assert b"Exit code" in shown.stdout
    failed = subprocess.run(
        [*tool, "--root", str(tmp_path), "check"], cwd=tmp_path, capture_output=True, check=False
    )
    assert failed.returncode == 2
