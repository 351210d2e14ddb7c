"""What the README shows and what lies in examples/ works as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MERQ = Path(sys.executable).parent / "merq"


def merq(*arguments: str) -> str:
    done = subprocess.run(
        [str(MERQ), *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_readme_s_python_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(code, {})  # noqa: S102 - our own page
    assert capsys.readouterr().out == "order 1 two tins of tea\n"


def test_the_sample_session_decodes_as_the_readme_shows() -> None:
    text = merq("decode", "examples/first_session.hex")
    for line in (
        "UserMessage  2224 bytes  at 1256",
        "0x0002 flags = 0x0003",
        "PR priority = 3",
        r'0x0042 direct_format_name = "OS:a04bm02\\q"',
    ):
        assert line in text
    readme = (ROOT / "README.md").read_text("utf-8")
    shown = re.search(r"\$ \.venv/bin/merq decode examples.*?```", readme, re.DOTALL)
    assert shown is not None
    for line in shown[0].splitlines()[1:-1]:
        assert line.startswith(("$", "…")) or line in text, line


def test_the_name_that_the_readme_explains_is_a_name() -> None:
    assert "JOURNAL" in merq("names", "explain", r"DIRECT=TCP:10.0.0.7\private$\orders;JOURNAL")


def test_the_links_of_the_pages_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    assert len(pages) > 8
    for page in pages:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
