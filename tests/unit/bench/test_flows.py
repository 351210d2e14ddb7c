"""What `bench/flows` says of a run: its tables, what it expects, and what it sees of processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from bench.flows import fleet, page
from bench.flows.filling import BODY_BYTES, bodies
from bench.flows.measuring import Figures
from bench.flows.page import printed, write_page
from bench.flows.watching import (
    JAVA,
    KINDS,
    PROGRAM,
    SERVICE,
    WORKERS,
    FlowStopped,
    Watched,
    watched,
)

MEBIBYTE = 1 << 20


def figures(messages: int, cpu_s: float) -> Figures:
    return Figures(
        messages=messages,
        prepared_s=1.0,
        wall_s=10.0,
        cpu_s={JAVA: cpu_s},
        peak=dict.fromkeys(KINDS, 7 * MEBIBYTE),
        over_time={kind: [MEBIBYTE, 2 * MEBIBYTE, 3 * MEBIBYTE, 4 * MEBIBYTE] for kind in KINDS},
        read_bytes=5 * MEBIBYTE,
        written_bytes=MEBIBYTE,
        files=3,
        load=1.5,
    )


def test_what_one_more_message_costs_is_the_difference_to_the_size_before() -> None:
    text = printed({"archive": [figures(1_000, 20.0), figures(11_000, 20.5)]})
    assert "50 µs" in text
    assert "1,100" in text, "messages a second"
    assert "7 MiB" in text


def test_the_page_has_the_tables_of_both_flows_and_says_what_was_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "PAGE", tmp_path / "figures.md")
    write_page({"archive": [figures(1_000, 20.0)]})
    text = (tmp_path / "figures.md").read_text(encoding="utf-8")
    assert "Not measured." in text
    assert "| quarter 4 |" in text
    assert "$" not in text.replace("private$", "")


def test_all_messages_of_a_fleet_have_a_verdict() -> None:
    assert sum(kind.share for kind in fleet.KINDS) == fleet.THOUSAND
    assert sum(fleet.expected(1_000).values()) == 1_000 * len(fleet.NAMES)
    assert fleet.expected(1_000)["twice"] == len(fleet.NAMES)


def test_bodies_are_of_one_size_and_no_two_are_the_same() -> None:
    found = [each for some in bodies(0, 5_000) for each in some]
    assert {len(each) for each in found} == {BODY_BYTES}
    assert len(set(found)) == 5_000


def test_memory_over_time_is_the_median_of_each_quarter() -> None:
    samples = [(float(second), {WORKERS: second}) for second in range(8)]
    seen = Watched(samples=samples, wall_s=8.0)
    assert seen.over_time(WORKERS) == [0, 2, 4, 6]
    assert seen.peak(WORKERS) == 7
    assert seen.peak(JAVA) == 0


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="reads /proc")
def test_a_program_is_looked_at_while_it_runs_and_its_failure_is_told(tmp_path: Path) -> None:
    held = "held = bytearray(60 << 20); import time; time.sleep(0.3); print('done')"
    seen, said = watched(
        [sys.executable, "-c", held], [os.getpid()], tmp_path / "log", dict(os.environ)
    )
    assert said == "done\n"
    assert seen.peak(SERVICE) > MEBIBYTE
    assert seen.peak(PROGRAM) > 0
    with pytest.raises(FlowStopped, match=r"ended with 1: .*no such flow"):
        watched(
            [sys.executable, "-c", "raise SystemExit('no such flow')"],
            [],
            tmp_path / "log",
            dict(os.environ),
        )
