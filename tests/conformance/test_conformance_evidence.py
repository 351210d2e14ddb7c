"""What makes the register believe that a section is done: code that is used, tests that passed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.conformance import results
from tools.conformance.source_code import counting_citations

from kit.small_project import DOC, Project, erratum, statement, with_statements

ROOT = Path(__file__).resolve().parents[2]
CITED = f"[{DOC}] 3.1"
HEADER = "import pytest\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def run_tests(project: Project, *options: str) -> int:
    """Run the small project's tests in a process of their own, recording what they show."""
    ini = "[pytest]\nmarkers = spec\naddopts = -p no:cacheprovider\npythonpath = src\n"
    project.file("pytest.ini", ini)
    path = project.root / results.FOLDER / "tests.json"
    arguments = ["-p", "tools.conformance.recording", f"--spec-results={path}", *options]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *arguments, "tests"],
        cwd=project.root,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        check=False,
    ).returncode


def proved(project: Project, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What `proved` finds or says, without the line that counts."""
    capsys.readouterr()
    code = project.run("proved")
    said = capsys.readouterr()
    found = said.out.splitlines()[:-1]
    assert code == (2 if said.err else bool(found))
    return found or said.err.splitlines()


MARK = f'@pytest.mark.spec("{DOC} 2.1")\n'


# --- the trick that once worked


def test_a_comment_and_a_mark_in_functions_that_nobody_calls_make_nothing_done(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.run("set", DOC, "3.1", "done")
    project.file(
        "src/code.py", f"def idle():\n    # {CITED}: obeyed here, honestly\n    return 1\n"
    )
    mark = '@pytest.mark.spec("MS-MQQB 3.1")\n'
    project.file("tests/test_code.py", f"{HEADER}{mark}def shows_it():\n    assert True\n")
    assert project.found("done") == [f"{DOC} 3.1: is done, but no code that is used cites it"]
    run_tests(project)
    assert proved(project, capsys) == [
        f"proved: {DOC} 3.1: is done, but no test marked with it ran and passed"
    ]


# --- code


@pytest.mark.parametrize(
    "text",
    [
        f'"""{CITED}: a module."""\n',
        f'def work():\n    """{CITED}: a function."""\n    return 1\n\nit = work()\n',
        f"def work():\n    # {CITED}\n    return 1\n\nprint(work())\n",
        f"def work():\n    return 1  # {CITED}\n\nprint(work())\n",
        f"def work():\n    if True:\n        # {CITED}\n        return 1\n\nprint(work())\n",
        f"# {CITED}: why it is so\nLIMIT = 1\nprint(LIMIT)\n",
        f'LIMIT = 1\n"""{CITED}: its docstring."""\nprint(LIMIT)\n',
        f"# {CITED}\ndef work():\n    return 1\n\nprint(work())\n",
        f'class It:\n    """{CITED}"""\n\nIt()\n',
        f"class It:\n    def __init__(self):\n        # {CITED}\n        self.a = 1\n\nIt()\n",
        f"class It:\n    def go(self):\n        # {CITED}\n        return 1\n\nIt().go()\n",
        f"class It:\n    # {CITED}\n    size: int = 4\n\nprint(It.size)\n",
        f"import io\nclass It(io.IOBase):\n    def read(self):\n        return 1 # {CITED}\nIt()\n",
        f'def api():\n    """{CITED}: for applications."""\n    return 1\n\n__all__ = ["api"]\n',
        f"print(1)\n# {CITED}: nothing follows, but the module runs to here\n",
    ],
)
def test_a_citation_in_code_that_is_used_counts(project: Project, text: str) -> None:
    project.file("src/code.py", text)
    assert [each.number for each in counting_citations(project.root)] == ["3.1"]


@pytest.mark.parametrize(
    "text",
    [
        f'def work():\n    """{CITED}: nobody calls it."""\n    return 1\n',
        f"def work():\n    # {CITED}: it calls itself\n    return work()\n",
        f'class It:\n    """{CITED}: nobody makes one."""\n',
        f"class It:\n    def idle(self):\n        # {CITED}\n        return 1\n\nIt()\n",
        f"class It:\n    # {CITED}\n    size: int = 4\n\nIt()\n",
        f"def outer():\n    def work():\n        # {CITED}\n        return 1\n    return work()\n",
        f'def work():\n    """{CITED}: it does nothing."""\n\nwork()\n',
        f'def work():\n    """{CITED}: nor this."""\n    raise NotImplementedError\n\nwork()\n',
        f"def work():\n    # {CITED}\n    pass\n\nwork()\n",
        f"# {CITED}\nLIMIT = 1\n",
        f'LIMIT = 1\n"""{CITED}"""\n',
        f'LIMIT = "{CITED}, in a text that is none of its docstrings"\nprint(LIMIT)\n',
        f'print("{CITED}")\n',
    ],
)
def test_a_citation_in_code_that_nobody_uses_does_not_count(project: Project, text: str) -> None:
    project.file("src/code.py", text)
    assert list(counting_citations(project.root)) == []


def test_a_module_that_nobody_imports_or_starts_does_not_count(project: Project) -> None:
    project.file("src/start/__init__.py", "")
    project.file("src/code.py", f'"""{CITED}"""\n')
    assert list(counting_citations(project.root)) == []
    project.file("src/start/other.py", "from code import something\n")
    assert len(list(counting_citations(project.root))) == 1
    project.file("src/start/other.py", "")
    project.file("pyproject.toml", '[project.scripts]\nit = "code:main"\n')
    assert len(list(counting_citations(project.root))) == 1


def test_an_import_by_a_relative_name_counts(project: Project) -> None:
    project.file("src/start/__init__.py", "")
    project.file("src/start/work.py", f'"""{CITED}"""\n')
    assert list(counting_citations(project.root)) == []
    project.file("src/start/__init__.py", "from . import work\n")
    assert [each.number for each in counting_citations(project.root)] == ["3.1"]
    project.file("src/start/__init__.py", "from .work import it\n")
    assert [each.number for each in counting_citations(project.root)] == ["3.1"]


# --- tests that ran

OUTCOMES = {
    "passed": "{}def test_passed(): pass\n",
    "failed": "{}def test_failed(): assert False\n",
    "skipped": "{}@pytest.mark.skip\ndef test_skipped(): pass\n",
    "skipped-within": "{}def test_skipped_within(): pytest.skip()\n",
    "xfailed": "{}@pytest.mark.xfail\ndef test_xfailed(): assert False\n",
    "xpassed": "{}@pytest.mark.xfail\ndef test_xpassed(): pass\n",
    "setup": "@pytest.fixture\ndef bad(): raise ValueError\n{}def test_setup(bad): pass\n",
    "teardown": """@pytest.fixture
def late():
    yield
    raise ValueError
{}def test_teardown(late): pass
""",
    "one-of-two": "{}@pytest.mark.parametrize('n', [0, 1])\ndef test_each(n): assert n\n",
    "not-collected": "{}def nobody_calls(): pass\n",
}
FAILED = {"failed", "setup", "teardown", "one-of-two"}


@pytest.mark.parametrize("workers", [0, 2])
def test_a_mark_counts_only_from_a_test_that_ran_and_passed(
    project: Project, workers: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with_statements(project, *[statement(name) for name in OUTCOMES], status="part")
    tests = [
        text.format(f'@pytest.mark.spec("{DOC} 3.1#{name}")\n') for name, text in OUTCOMES.items()
    ]
    project.file("tests/test_code.py", HEADER + "".join(tests))
    run_tests(project, f"--numprocesses={workers}")
    assert proved(project, capsys) == [
        f"proved: {DOC} 3.1#{name}: is done, but "
        + (
            "a test marked with it failed"
            if name in FAILED
            else "no test marked with it ran and passed"
        )
        for name in OUTCOMES
        if name != "passed"
    ]


def test_a_failure_in_one_part_of_a_run_outweighs_what_passed_in_another(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.run("set", DOC, "2.1", "done")
    project.file("tests/test_code.py", f"{HEADER}{MARK}def test_it(): pass\n")
    run_tests(project)
    path = project.root / results.FOLDER / "tests.json"
    assert proved(project, capsys) == []
    table = json.loads(path.read_text(encoding="utf-8"))
    table["shown"][0]["outcome"] = "failed"
    path.with_name("compiled.json").write_text(json.dumps(table), encoding="utf-8")
    assert proved(project, capsys) == [
        f"proved: {DOC} 2.1: is done, but a test marked with it failed"
    ]


def test_marks_of_modules_classes_and_parameters_count(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.run("set", DOC, "2.1", "2.10", "3.1", "done")
    project.file(
        "tests/test_code.py",
        f"{HEADER}pytestmark = pytest.mark.spec('{DOC} 2.1')\n"
        f"@pytest.mark.spec('{DOC} 2.10')\nclass TestIt:\n    def test_it(self): pass\n"
        f"@pytest.mark.parametrize('n', [pytest.param(1, marks=pytest.mark.spec('{DOC} 3.1'))])\n"
        "def test_n(n): pass\n",
    )
    run_tests(project)
    assert proved(project, capsys) == []


# --- results that are none


def test_without_results_the_check_says_what_to_run(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    (said,) = proved(project, capsys)
    assert "holds no results of tests: run `make test`" in said


def test_results_of_other_sources_are_refused(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.file("tests/test_code.py", f"{HEADER}{MARK}def test_it(): pass\n")
    run_tests(project)
    assert proved(project, capsys) == []
    project.file("src/code.py", f'"""[{DOC}] 2.1"""\nCHANGED = 1\n')
    (said,) = proved(project, capsys)
    assert "src or tests have changed since" in said


def test_a_run_that_was_broken_off_is_refused(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.file("tests/test_code.py", f"{HEADER}def test_it(): raise KeyboardInterrupt\n")
    run_tests(project)
    (said,) = proved(project, capsys)
    assert "its run was broken off" in said


def test_a_run_during_which_the_sources_changed_is_refused(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    change = "def test_it(): open('src/code.py', 'a').write('# changed')\n"
    project.file("tests/test_code.py", f"{HEADER}{change}")
    assert run_tests(project) == 0
    (said,) = proved(project, capsys)
    assert "src or tests have changed since" in said


def test_a_file_of_results_that_makes_no_sense_is_an_error(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.file(f"{results.FOLDER}/tests.json", "{}")
    (said,) = proved(project, capsys)
    assert "KeyError" in said


# --- errata


def test_an_erratum_needs_a_test_unless_it_says_why_there_is_none(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.file("conformance/errata.toml", erratum(unshown=""))
    assert project.found("done") == ["E01: is decided, but no test is marked with it"]
    project.file("tests/test_code.py", f'{HEADER}@pytest.mark.spec("E01")\ndef test_it(): pass\n')
    assert project.found("done") == project.found("errata") == []
    run_tests(project)
    assert proved(project, capsys) == []
    project.file("conformance/errata.toml", erratum())
    assert project.found("errata") == ["E01: says that no test shows it, but one is marked with it"]
    project.file("tests/test_code.py", f'{HEADER}@pytest.mark.spec("E02")\ndef test_it(): pass\n')
    assert project.found("marks") == ["tests/test_code.py:2: there is no erratum E02"]
