"""What the bench of brokers concludes from figures, and that it leaves nothing running."""

from __future__ import annotations

import os
import random
import struct
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from bench.brokers import amqp, packages, tables
from bench.brokers.catalogue import CORE, NO_SYNC, QUORUM, SYNCS
from bench.brokers.chart import BAR_WIDTH_MAX, drawn
from bench.brokers.contender import MEMORY, PIPELINED, SEND, SEND_P50, Contender, Load, figures
from bench.brokers.page import write_page
from bench.brokers.results import Found, p50_ratios, ratios
from bench.brokers.running import NotReady, running
from bench.brokers.yardsticks import ECHO_P50, FDATASYNC_P50, MACHINE

OURS = "merq, plain"
SVG = "{http://www.w3.org/2000/svg}"


def found(ours: list[dict[str, float]], quorum: list[dict[str, float]]) -> Found:
    """A run of ours beside a quorum queue and core NATS."""
    rounds = {
        OURS: ours,
        QUORUM: quorum,
        CORE: [{MEMORY: 400_000.0}] * len(ours),
        MACHINE: [{FDATASYNC_P50: 80.0, ECHO_P50: 20.0}] * len(ours),
    }
    return Found(
        rounds=rounds,
        ours=[OURS],
        before={OURS: SYNCS, QUORUM: SYNCS, CORE: NO_SYNC},
        libraries=[],
        versions={"rabbitmq-server": "3.10"},
        missing=["Redis Streams: it ended with 1 instead of starting"],
        load=0.5,
    )


def a_run() -> Found:
    ours = [{PIPELINED: 80.0, SEND: 9.0, SEND_P50: 125.0}, {PIPELINED: 90.0, SEND: 9.0}]
    ours[1][SEND_P50] = 120.0
    return found(ours, [{PIPELINED: 8.0, SEND: 4.0}, {PIPELINED: 10.0, SEND: 4.0}])


def test_a_ratio_is_taken_within_its_own_round() -> None:
    assert ratios(a_run(), OURS, QUORUM, PIPELINED) == [9.0, 10.0]


def test_what_was_not_measured_has_no_ratio() -> None:
    assert ratios(a_run(), OURS, "NATS", PIPELINED) is None
    assert ratios(a_run(), OURS, CORE, PIPELINED) is None


def test_a_send_alone_is_compared_with_one_sync_and_one_echo() -> None:
    assert p50_ratios(a_run(), OURS) == [1.2, 1.25]


def test_a_missed_goal_is_called_missed_and_a_reached_one_is_not() -> None:
    lines = tables.goals(a_run())
    (pipelined,) = (line for line in lines if line.startswith(f"| {PIPELINED} ") and QUORUM in line)
    (single,) = (line for line in lines if line.startswith(f"| {SEND} ") and QUORUM in line)
    assert "9.50 x (9.00-10.00)" in pipelined
    assert "missed" not in pipelined
    assert "**2.25 x (2.25-2.25), missed**" in single


def test_the_longest_bar_of_a_block_is_the_fastest_and_the_others_are_in_proportion() -> None:
    picture = ET.fromstring(drawn(a_run()))  # noqa: S314 - our own
    widths = [
        float(bar.attrib["width"])
        for bar in picture.iter(f"{SVG}rect")
        if bar.attrib.get("x") == "300"
    ]
    # One at a time: ours, quorum; pipelined: ours, quorum; memory only: core NATS.
    assert widths == pytest.approx(
        [BAR_WIDTH_MAX * share for share in (1, 4 / 9, 1, 9 / 85, 1)], abs=0.1
    )


def test_the_page_names_who_was_left_out_and_has_no_gap(tmp_path: Path) -> None:
    write_page(a_run(), tmp_path)
    text = (tmp_path / "brokers.md").read_text(encoding="utf-8")
    assert "Left out: Redis Streams: it ended with 1 instead of starting" in text
    assert "$" not in text
    assert (tmp_path / "brokers.svg").is_file()


def test_every_message_that_was_sent_is_asked_for_again() -> None:
    sent = asked = 0

    def send() -> None:
        nonlocal sent
        sent += 1

    def pipelined(load: Load) -> int:
        nonlocal sent
        sent += load.batch
        return load.batch

    def receive(count: int) -> None:
        nonlocal asked
        asked = count

    measured = figures(
        Contender(send=send, pipelined=pipelined, receive=receive, close=lambda: None)
    )
    assert asked == sent
    assert all(figure > 0 for figure in measured.values())


def acknowledged(tag: int, *, multiple: bool) -> bytes:
    return amqp.method(amqp.ACK, struct.pack(">QB", tag, multiple))


def test_confirmations_of_one_and_of_many_are_counted_once_however_they_are_cut() -> None:
    data = b"".join(
        acknowledged(tag, multiple=multiple)
        for tag, multiple in ((2, False), (3, True), (5, False), (4, False), (9, True))
    )
    for seed in range(20):
        chance = random.Random(seed)  # noqa: S311 - the same cuts each time
        confirms = amqp.Confirms()
        count = at = 0
        while at < len(data):
            size = chance.randint(1, 30)
            count += confirms.count(data[at : at + size])
            at += size
        assert count == 9


def test_a_broker_is_ended_when_the_measuring_fails(tmp_path: Path) -> None:
    number = tmp_path / "number"
    program = (
        "import os, pathlib, time; "
        "pathlib.Path('new').write_text(str(os.getpid())); os.rename('new', 'number'); "
        "time.sleep(60)"
    )
    command = [sys.executable, "-c", program]
    with pytest.raises(KeyboardInterrupt), running(command, tmp_path, number.is_file):
        raise KeyboardInterrupt
    with pytest.raises(ProcessLookupError):
        os.kill(int(number.read_text(encoding="utf-8")), 0)


def test_a_broker_that_ends_at_once_is_not_waited_for(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit(3)"]
    with pytest.raises(NotReady, match="ended with 3"), running(command, tmp_path, lambda: False):
        pass


def test_a_system_without_debian_packages_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    nothing = packages.Packages("nothing-of-the-kind", ("nothing",))
    with pytest.raises(packages.Unavailable, match="apt-get is missing"):
        packages.unpacked(nothing)
