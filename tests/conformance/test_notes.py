"""The product notes: the committed ones, and what the checks find in a small project."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tools.conformance import citing, command, notes, page, register

from merq.service.settings import describe

ROOT = Path(__file__).resolve().parents[2]
SPECS = Path(os.environ.get("MERQ_SPECS", ROOT.parent / "shared" / "specs"))

COUNTS = {"MS-MQQB": 70, "MS-MQMQ": 44, "MS-MQDMPR": 31, "MS-MQSO": 17, "MS-MQOD": 6}

# Never written as one word in this file, whose marks are looked at like all others.
DOC = "MS-MQQB"
MARK = f"{DOC} note"


def committed() -> list[notes.Note]:
    return [note for appendix in notes.load(ROOT) for note in appendix.notes]


# The project's own.


def test_every_note_of_the_five_documents_has_a_decision() -> None:
    found = {appendix.code: appendix.count for appendix in notes.load(ROOT)}
    assert found == COUNTS
    for appendix in notes.load(ROOT):
        assert [note.number for note in appendix.notes] == list(range(1, appendix.count + 1))


def test_nothing_is_wrong_with_them() -> None:
    assert list(notes.faults(register.load(ROOT).numbers, ROOT)) == []


def test_their_settings_are_settings_of_the_service_with_these_defaults() -> None:
    defaults = {each.key: each.default.strip('"') for each in describe()}
    said = {note.name: (note.setting, note.default) for note in committed() if note.setting}
    found = {name: (key, defaults.get(key)) for name, (key, _) in said.items()}
    assert found == said


@pytest.mark.skipif(not SPECS.is_dir(), reason="MERQ_SPECS names no folder")
def test_numbers_and_sections_are_those_of_the_documents() -> None:
    assert list(notes.compared(ROOT, SPECS)) == []


@pytest.mark.skipif(not SPECS.is_dir(), reason="MERQ_SPECS names no folder")
def test_no_sentence_of_the_documents_was_copied() -> None:
    for note in committed():
        document = SPECS / note.document / f"{note.document}.md"
        if document.is_file():
            text = " ".join(document.read_text(encoding="utf-8").replace("*", "").split())
            for sentence in (note.about, note.why):
                assert len(sentence) < 40 or sentence not in text, note.name


# A small one.


class Project:
    """A project with three notes in order: one done, one a setting, one absent."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.file("src/code.py", "class Code:\n    attribute = 1\n")
        self.file("tests/test_code.py", self.test(1) + self.test(2))
        self.file("conformance/notes.toml", self.notes(count=3))

    def file(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    @staticmethod
    def test(number: int) -> str:
        return f'@pytest.mark.spec("{MARK} {number}")\ndef test_{number}() -> None: ...\n'

    @staticmethod
    def notes(*, count: int, extra: str = "") -> str:
        shown = 'code = ["src/code.py:Code.attribute"], test = "tests/test_code.py::test_{}"'
        rows = [
            'number = 1, section = "2.1", about = "A", decision = "done", ' + shown.format(1),
            'number = 2, section = "2.2", about = "B", decision = "setting", setting = "x.y", '
            'default = "7", ' + shown.format(2),
            'number = 3, section = "2.1", about = "C", decision = "absent", why = "Too old."',
        ]
        lines = "".join(f"  {{ {row} }},\n" for row in rows)
        return f'[[document]]\ncode = "{DOC}"\ncount = {count}\nnotes = [\n{lines}{extra}]\n'

    def edit(self, old: str, new: str) -> None:
        path = self.root / "conformance/notes.toml"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def found(self) -> list[str]:
        numbers = {DOC: frozenset({"2.1", "2.2"})}
        return [f"{where}: {what}" for where, what in notes.faults(numbers, self.root)]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_notes_in_order_have_nothing_wrong(project: Project) -> None:
    assert project.found() == []


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("count = 3", "count = 5", f"{DOC}: has no decision for note 4, 5"),
        ("count = 3", "count = 2", f"{MARK} 3: is beyond the 2"),
        ("number = 3", "number = 1", f"{MARK} 1: is there 2 times"),
        ('section = "2.2"', 'section = "9.9"', "of a section '9.9' that does not exist"),
        ('about = "A"', 'about = " "', f"{MARK} 1: does not say what it is about"),
        ('why = "Too old."', 'why = ""', f"{MARK} 3: is absent and does not say why"),
        ('decision = "absent"', 'decision = "done"', f"{MARK} 3: is done and names no code"),
        ('decision = "done"', 'decision = "todo"', f"{MARK} 1: is todo and does not say why"),
        ('decision = "done"', 'decision = "setting"', "a setting and its default belong to"),
        ('default = "7", ', "", "a setting and its default belong to"),
        ("src/code.py", "src/none.py", f"{MARK} 1: names src/none.py, which is not there"),
        ("src/code.py", "tests/test_code.py", "names tests/test_code.py, which is not there"),
        ("Code.attribute", "Code.other", "names other, which is not in src/code.py"),
        ("::test_1", "::test_2", f"has no mark '{MARK} 1'"),
        ("::test_1", "::test_9", "names the test 'tests/test_code.py::test_9'"),
    ],
)
def test_what_is_wrong_is_found(project: Project, old: str, new: str, finding: str) -> None:
    project.edit(old, new)
    assert any(finding in each for each in project.found()), project.found()


@pytest.mark.parametrize(
    "text",
    [
        "def helper() -> None:\n    @pytest.mark.spec({0})\n    def test_1() -> None: ...\n",
        "@pytest.mark.spec({0})\ndef helper() -> None: ...\ndef test_1() -> None: ...\n",
        "# @pytest.mark.spec({0})\ndef test_1() -> None: ...\n",
        "class Other:\n    @pytest.mark.spec({0})\n    def test_1(self) -> None: ...\n",
        "",
    ],
)
def test_a_mark_counts_only_on_what_is_collected(project: Project, text: str) -> None:
    project.file("tests/test_code.py", text.format(f'"{MARK} 1"') + project.test(2))
    (finding,) = project.found()
    assert finding.startswith(
        f"{MARK} 1: names the test 'tests/test_code.py::test_1', which is not"
    )


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("pytestmark = pytest.mark.spec({0})\ndef test_1() -> None: ...\n", "test_1"),
        ("pytestmark = [pytest.mark.spec({0})]\ndef test_1() -> None: ...\n", "test_1"),
        ("@pytest.mark.spec({0})\nasync def test_1() -> None: ...\n", "test_1"),
        (
            "@pytest.mark.spec({0})\nclass TestIt:\n    def test_1(self) -> None: ...\n",
            "TestIt::test_1",
        ),
    ],
)
def test_a_mark_may_stand_around_its_test(project: Project, text: str, node: str) -> None:
    project.file("tests/test_code.py", text.format(f'"{MARK} 1"') + project.test(2))
    project.edit("::test_1", f"::{node}")
    found = [each for each in project.found() if f"{MARK} 1:" in each]
    assert found == []


def test_a_mark_of_a_note_that_is_not_done_or_not_there_is_found(project: Project) -> None:
    text = "".join(map(project.test, (1, 2, 3, 4)))
    project.file("tests/test_code.py", text)
    where = "tests/test_code.py::test_"
    assert project.found() == [
        f"{where}3: is marked with {MARK} 3, which is not done",
        f"{where}4: is marked with {MARK} 4, which is not in the register",
    ]


@pytest.mark.parametrize(
    "text",
    ["count = 3", "document = 7", '[[document]]\ncode = "X"\ncount = 1\nnotes = [{ number = 1 }]'],
)
def test_a_file_that_makes_no_sense_is_refused(project: Project, text: str) -> None:
    project.file("conformance/notes.toml", text)
    with pytest.raises(register.RegisterError, match=r"notes\.toml"):
        notes.load(project.root)


def test_a_project_without_notes_has_none_and_no_chapter(tmp_path: Path) -> None:
    assert notes.load(tmp_path) == ()
    assert notes.chapter(tmp_path) == ""


def test_the_chapter_counts_and_lists_them(project: Project) -> None:
    text = notes.chapter(project.root)
    assert f"| {DOC} | 3 | 1 | 1 | 1 | 0 |" in text
    assert "| 1 | 2.1 | A | done | `src/code.py:Code.attribute` |" in text
    assert "| 2 | 2.2 | B | setting | `x.y` = 7; `src/code.py:Code.attribute` |" in text
    assert "| 3 | 2.1 | C | absent | Too old. |" in text


# Against a document.

TEXT = """# 2.1 A
It MAY.<1> It SHOULD.<2>
Also.<3>
# 6 Appendix
<1> Section 2.1: One.

<2> Section 2.2: Two.

<3> Section 2.1: Three.
"""


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("", "", []),
        ("<3> Section 2.1", "<3> Section 2.2", [f"{MARK} 3: is of section 2.2, not 2.1"]),
        ("Also.<3>", "", [f"{MARK} 3: is not in the document, or nothing refers to it"]),
        (
            "Also.<3>",
            "Also.<3><4>",
            [f"{MARK} 4: is not in the document, or nothing refers to it"],
        ),
        (
            "Three.",
            "Three.\n\n<4> Section 2.1: Four.",
            [
                f"{DOC}: has 4 notes, not 3",
                f"{MARK} 4: is not in the document, or nothing refers to it",
            ],
        ),
    ],
)
def test_what_differs_from_a_document_is_found(
    project: Project, old: str, new: str, finding: list[str]
) -> None:
    project.file(f"specs/{DOC}/{DOC}.md", TEXT.replace(old, new) if old else TEXT)
    found = notes.compared(project.root, project.root / "specs")
    assert [f"{where}: {what}" for where, what in found] == finding


def test_documents_that_are_not_there_are_not_compared(project: Project) -> None:
    assert list(notes.compared(project.root, project.root / "specs")) == []


# With the rest of the tool.


def test_check_and_report_know_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(ROOT / register.FOLDER, tmp_path / register.FOLDER)
    assert command.main(["--root", str(tmp_path), "report"]) == 0
    assert "## Product notes" in (tmp_path / page.PAGE).read_text(encoding="utf-8")
    specs = tmp_path / "specs"
    (specs / DOC).mkdir(parents=True)
    (specs / DOC / f"{DOC}.md").write_text(TEXT, encoding="utf-8")
    assert command.main(["--root", str(tmp_path), "check", "--specs", str(specs)]) == 1
    text = capsys.readouterr().out
    assert f"notes: {MARK} 2: names src/merq/engine/notices.py, which is not there" in text
    assert f"notes: {DOC}: has 3 notes, not 70" in text


def test_marks_of_notes_are_no_marks_of_sections(tmp_path: Path) -> None:
    Project(tmp_path)
    assert list(citing.marks_in(tmp_path)) == []
