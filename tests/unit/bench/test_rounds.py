"""How contenders take turns, and what becomes of one that fails."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from bench.brokers.rounds import Failed, measured_in_child, measured_in_rounds, started
from bench.brokers.running import NotReady
from bench.brokers.yardsticks import MACHINE
from bench.builds import ROOT

PATIENCE_S = 30


@dataclass(frozen=True)
class Runner:
    """Somebody to measure."""

    name: str


RUNNERS = [Runner("a"), Runner("b"), Runner("c")]


def test_each_round_begins_with_another_and_who_fails_is_left_out(tmp_path: Path) -> None:
    turns: list[str] = []
    missing: list[str] = []

    def measured(each: Runner) -> dict[str, float]:
        turns.append(each.name)
        if each.name == "b" and turns.count("b") == 2:
            raise Failed("out of breath")
        return {"speed": float(len(turns))}

    rounds = measured_in_rounds(3, RUNNERS, measured, tmp_path, missing, settling_s=0.0)
    assert turns == ["a", "b", "c", "b", "c", "a", "c", "a"]
    assert set(rounds) == {"a", "c", MACHINE}
    assert rounds["a"] == [{"speed": 1.0}, {"speed": 6.0}, {"speed": 8.0}]
    assert missing == ["b: out of breath"]


def test_a_server_that_does_not_start_is_said_to_be_missing_and_the_others_run(
    tmp_path: Path,
) -> None:
    ended: list[Path] = []

    @contextmanager
    def good(folder: Path) -> Iterator[str]:
        yield "somewhere"
        ended.append(folder)

    def bad(folder: Path) -> AbstractContextManager[str]:
        raise NotReady(f"{folder.name} is no place to live")

    missing: list[str] = []
    with started({"bad": bad, "good": good}, tmp_path, missing) as addresses:
        assert addresses == {"good": "somewhere"}
        assert ended == []
    assert ended == [tmp_path / "1"]
    assert missing == ["bad: 0 is no place to live"]


def test_a_client_that_ends_badly_or_too_late_has_measured_nothing() -> None:
    with pytest.raises(Failed, match="its client ended with 1"):
        measured_in_child("no_such_module", build=ROOT / "src", within_s=PATIENCE_S)
    sleeping = ("-n", "1", f"import time; time.sleep({PATIENCE_S})")
    with pytest.raises(Failed, match="a round took longer than 0 s"):
        measured_in_child("timeit", *sleeping, build=ROOT / "src", within_s=0.2)


def test_a_program_that_is_terminated_ends_what_it_started() -> None:
    program = (
        "import time\n"
        "from bench.brokers.rounds import end_servers_when_terminated\n"
        "end_servers_when_terminated()\n"
        "try:\n"
        "    print('ready', flush=True)\n"
        f"    time.sleep({PATIENCE_S})\n"
        "finally:\n"
        "    print('ended', flush=True)\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGTERM)
        assert child.stdout.read() == "ended\n"
        assert child.wait(PATIENCE_S) == 128 + signal.SIGTERM
