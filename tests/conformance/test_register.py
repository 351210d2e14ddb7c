"""The committed register against the project as it is, and against the documents if at hand.

What the tests have shown is checked when they have run: `make test` ends with it.
"""

import os
import shutil
from pathlib import Path

import pytest
from tools.conformance import checks, command, page, register

ROOT = Path(__file__).resolve().parents[2]


SPECS = Path(os.environ.get("MERQ_SPECS", ROOT.parent / "shared" / "specs"))


@pytest.fixture(scope="module")
def committed() -> register.Register:
    return register.load(ROOT)


def told(findings: list[checks.Finding]) -> str:
    return "\n".join(str(finding) for finding in findings)


def test_each_citation_names_a_section_that_exists(committed: register.Register) -> None:
    assert told(checks.check_citations(committed, ROOT)) == ""


def test_each_done_is_cited_by_code_and_shown_by_a_marked_test(
    committed: register.Register,
) -> None:
    assert told(checks.check_done(committed, ROOT)) == ""


def test_no_section_is_better_than_its_statements(committed: register.Register) -> None:
    assert told(checks.check_statements(committed, ROOT)) == ""


def test_nothing_done_hands_over_to_what_is_not(committed: register.Register) -> None:
    assert told(checks.check_needs(committed, ROOT)) == ""


def test_nothing_that_an_erratum_deviates_from_is_done(committed: register.Register) -> None:
    assert told(checks.check_deviations(committed, ROOT)) == ""


def test_each_part_deviates_and_absent_says_why_and_nothing_else_does(
    committed: register.Register,
) -> None:
    assert told(checks.check_whys(committed, ROOT)) == ""


def test_each_spec_mark_names_a_section_that_exists(committed: register.Register) -> None:
    assert told(checks.check_marks(committed, ROOT)) == ""


def test_the_reference_page_is_what_the_register_gives_now(committed: register.Register) -> None:
    assert told(checks.check_report(committed, ROOT)) == ""


def test_errata_have_ids_of_their_own_and_name_sections_that_exist(
    committed: register.Register,
) -> None:
    assert told(checks.check_errata(committed, ROOT)) == ""


def test_the_files_are_as_the_tool_writes_them(committed: register.Register) -> None:
    for document in committed.documents:
        path = ROOT / register.FOLDER / f"{document.code}.toml"
        assert path.read_text(encoding="utf-8") == register.dumped(document)


def test_the_register_stands_alone(tmp_path: Path) -> None:
    shutil.copytree(ROOT / register.FOLDER, tmp_path / register.FOLDER)
    assert command.main(["--root", str(tmp_path), "report"]) == 0
    assert (tmp_path / page.PAGE).read_bytes() == (ROOT / page.PAGE).read_bytes()


@pytest.mark.skipif(not SPECS.is_dir(), reason="MERQ_SPECS names no folder")
def test_the_register_has_the_headings_of_the_documents(tmp_path: Path) -> None:
    shutil.copytree(ROOT / register.FOLDER, tmp_path / register.FOLDER)
    assert command.main(["--root", str(tmp_path), "refresh", "--specs", str(SPECS)]) == 0
    committed_files = {path.name: path.read_bytes() for path in register.document_paths(ROOT)}
    fresh_files = {path.name: path.read_bytes() for path in register.document_paths(tmp_path)}
    assert fresh_files == committed_files
