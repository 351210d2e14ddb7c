"""What the README shows and what lies in examples/ works as it stands."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kit.pages import ROOT, blocks_of, has_shape, steps_of, terminal_in

MERQ = Path(sys.executable).parent / "merq"
README = ROOT / "README.md"
PATIENCE_S = 60
SPARK_S = 180
"""Spark takes long to start where others are busy too."""

EXAMPLES = {
    "async_pipeline": ["900 of 1000 readings make sense; their sum is 450000", "0 messages are"],
    "audit_with_journals": [r"6 to nobody: .\system$;DEADLETTER", "MQMSG_CLASS_ACK_RECEIVE"],
    "disconnected_data_entry": [
        "office: got order 1\noffice: got order 2\noffice: 0 left",
        "laptop: order 3 did not arrive in time",
    ],
    "order_service": ["coal? there is no coal", "tea? tea costs 4"],
    "testing_an_application": ["careful:", "careless:"],
    "worker_pool": ["19 of 20 jobs are done, 0 are left", "set aside after 3 failures: job 7"],
}
NO_PROGRAMS = {"local_service"}
"""What the others import."""

ELSEWHERE = {"spark_notebook"}
"""What tests of its own run, in the one session of Spark that all of them share."""


def merq(*arguments: str) -> str:
    done = subprocess.run(
        [str(MERQ), *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_readme_s_terminals_print_what_it_shows(tmp_path: Path) -> None:
    """`make run` in one terminal, commands in another, and the program beside them."""
    first, second = blocks_of(README, "console")
    (run,) = steps_of(first.text)
    assert run.command == "make run"
    said = tmp_path / "said.txt"
    with terminal_in(tmp_path) as terminal:
        terminal.start(f"merq demo --data data --lake data/lake --name alpha > {said.name}")
        deadline = time.monotonic() + SPARK_S
        while "Serving until" not in said.read_text("utf-8"):
            assert time.monotonic() < deadline, said.read_text("utf-8")
            time.sleep(0.05)
        # In a clone the scripts are where the page has them.
        printed = said.read_text("utf-8").replace(str(MERQ.parent), ".venv/bin")
        assert has_shape(printed, run.shown), printed
        terminal.run(second.text)
        (program,) = blocks_of(README, "python")
        assert terminal.python(program.text) == "order 3 three candles\n"
    # The pipeline was ended with it, and cleanly.
    log = (tmp_path / "data" / "lake.log").read_text("utf-8")
    assert "Stopped; started again with the same name it goes on from here." in log, log


def test_every_example_is_known_here() -> None:
    found = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert found == {*EXAMPLES, *NO_PROGRAMS, *ELSEWHERE}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_and_shows_what_it_says(name: str) -> None:
    environment = {key: each for key, each in os.environ.items() if not key.startswith("MERQ_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", f"examples/{name}.py"],
        cwd=ROOT,
        env=environment | {"PYTHONUTF8": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    for words in EXAMPLES[name]:
        assert words in done.stdout, done.stdout


def test_an_example_uses_the_service_that_it_is_told_of(tmp_path: Path) -> None:
    with terminal_in(tmp_path) as terminal:
        terminal.start("merq serve --log-level error")
        url = f"unix:{tmp_path / 'data' / 'merq.sock'}"
        subprocess.run(
            [sys.executable, "examples/order_service.py"],
            cwd=ROOT,
            env=terminal.environment | {"MERQ_URL": url},
            capture_output=True,
            check=True,
            timeout=PATIENCE_S,
        )
        assert "replies" in terminal.type(steps_of("$ merq queue list\n"))[0]


def test_make_run_ends_with_its_signal_and_leaves_nothing_running(tmp_path: Path) -> None:
    """The Makefile's line, with `make` in front, as somebody in a terminal ends it."""
    with terminal_in(tmp_path) as terminal:
        found = re.search(r"^run: setup .*\n(\t.*)$", makefile(), re.MULTILINE)
        assert found
        (tmp_path / "Makefile").write_text(f"run:\n{found[1]}\n", encoding="utf-8")
        said = tmp_path / "said.txt"
        with said.open("wb") as file:
            process = subprocess.Popen(
                ["make", "run", "BIN=.venv/bin"],  # noqa: S607
                cwd=tmp_path,
                # Without Java all else is shown; with it, the README's terminals show everything.
                env=terminal.environment | {"JAVA_HOME": str(tmp_path)},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        deadline = time.monotonic() + PATIENCE_S
        try:
            while "Serving until" not in said.read_text("utf-8"):
                assert time.monotonic() < deadline, said.read_text("utf-8")
                time.sleep(0.05)
        finally:
            os.killpg(process.pid, signal.SIGINT)
            process.wait(PATIENCE_S)
    assert "not now: JAVA_HOME is" in said.read_text("utf-8")
    assert "Stopped." in said.read_text("utf-8")
    assert not (tmp_path / "data" / "merq.sock").exists()


def makefile() -> str:
    return (ROOT / "Makefile").read_text("utf-8")


def test_the_sample_session_decodes_as_the_readme_shows() -> None:
    text = merq("decode", "examples/first_session.hex")
    for line in (
        "UserMessage  2224 bytes  at 1256",
        "0x0002 flags = 0x0003",
        "PR priority = 3",
        r'0x0042 direct_format_name = "OS:a04bm02\\q"',
    ):
        assert line in text
    shown = re.search(r"\$ \.venv/bin/merq decode examples.*?```", README.read_text(), re.DOTALL)
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
