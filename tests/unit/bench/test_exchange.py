"""What the bench between queue managers concludes from figures, and what it counts."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bench.brokers.running import spare_port
from bench.brokers.yardsticks import ECHO_P50, FDATASYNC_P50, MACHINE
from bench.exchange import tables
from bench.exchange.figures import Figures, Kind, Measure, named, percentile
from bench.exchange.page import NAME, write_page
from bench.exchange.processes import cpu_s, stopped
from bench.exchange.relay import Relay
from bench.exchange.results import Found, added, to_local, to_narrow, to_peer

OURS = "merq, plain"
SHOVEL = "RabbitMQ shovel, quorum queues"


def a_round(local: float, rate: float, hop_us: float) -> Figures:
    """The figures of one round of ours."""
    figures = Figures()
    figures.put(Kind.RECOVERABLE, Measure.LOCAL, local)
    for kind in Kind:
        figures.put(kind, Measure.RATE, rate)
        figures.put(kind, Measure.NARROW, rate / 4)
        figures.put(kind, Measure.TRANSFER, 2 * rate)
        figures.put(kind, Measure.THERE, 1208.0)
        figures.put(kind, Measure.BACK, 1.5)
    figures.put(Kind.EXPRESS, Measure.LOCAL_P50, 100.0)
    figures.put(Kind.EXPRESS, Measure.LOCAL_P99, 300.0)
    figures.put(Kind.EXPRESS, Measure.HOP_P50, hop_us)
    figures.put(Kind.EXPRESS, Measure.HOP_P99, 3 * hop_us)
    return figures


def a_run(rate: float = 40.0) -> Found:
    """Two rounds of ours beside a shovel."""
    theirs = Figures()
    theirs.put(Kind.RECOVERABLE, Measure.RATE, 10.0)
    theirs.put(Kind.RECOVERABLE, Measure.LOCAL, 30.0)
    return Found(
        rounds={
            OURS: [a_round(100.0, rate, 250.0), a_round(50.0, rate, 350.0)],
            SHOVEL: [theirs, theirs],
            MACHINE: [{FDATASYNC_P50: 80.0, ECHO_P50: 20.0}] * 2,
        },
        ours=[OURS],
        versions={"rabbitmq-server": "3.10"},
        missing=["merq, compiled: it ended with 1 instead of starting"],
        load=0.5,
        messages=10_000,
    )


def test_a_rate_is_compared_with_the_local_one_of_its_own_round() -> None:
    assert to_local(a_run(), OURS, Kind.TRANSACTIONAL) == [0.4, 0.8]


def test_the_window_and_the_peer_are_compared_round_by_round() -> None:
    assert to_narrow(a_run(), OURS, Kind.EXPRESS) == [4.0, 4.0]
    assert to_peer(a_run(), OURS, Kind.TRANSACTIONAL, Measure.RATE, SHOVEL) == [4.0, 4.0]


def test_what_was_not_measured_has_no_ratio_and_no_difference() -> None:
    run = a_run()
    assert to_peer(run, OURS, Kind.RECOVERABLE, Measure.TRANSFER, SHOVEL) is None
    assert to_local(run, "NATS", Kind.EXPRESS) is None
    assert added(run, OURS, Kind.EXPRESS, Measure.CHAIN_P50, Measure.LOCAL_P50) is None


def test_what_a_hop_adds_is_the_usual_difference_within_a_round() -> None:
    run = a_run()
    assert added(run, OURS, Kind.EXPRESS, Measure.HOP_P50, Measure.LOCAL_P50) == 200.0
    (line,) = (line for line in tables.latencies(run) if line.startswith(f"| {OURS}"))
    assert "100 / 300" in line
    assert "200 / 600" in line


def test_a_missed_goal_is_called_missed_and_a_reached_one_is_not() -> None:
    assert "missed" not in tables.goals(a_run())[-1]
    assert "**0.30 x (0.20-0.40), missed**" in tables.goals(a_run(rate=20.0))[-1]


def test_bytes_that_are_not_body_are_told_apart() -> None:
    assert any("1,208.0" in line and "184.0" in line for line in tables.wire(a_run()))


def test_a_percentile_is_a_value_that_was_measured() -> None:
    series = [float(number) for number in range(100, 0, -1)]
    assert percentile(series, 50) == 50.0
    assert percentile(series, 99) == 99.0
    assert percentile([7.0], 99) == 7.0


def test_times_are_kept_in_microseconds() -> None:
    figures = Figures()
    figures.put_latency(Kind.EXPRESS, Measure.HOP_P50, Measure.HOP_P99, [0.001, 0.002, 0.003])
    assert figures[named(Kind.EXPRESS, Measure.HOP_P50)] == pytest.approx(2000.0)
    assert figures[named(Kind.EXPRESS, Measure.HOP_P99)] == pytest.approx(3000.0)


def test_the_page_names_who_was_left_out_and_has_no_gap(tmp_path: Path) -> None:
    write_page(a_run(), tmp_path)
    text = (tmp_path / NAME).read_text(encoding="utf-8")
    assert "Left out: merq, compiled: it ended with 1 instead of starting" in text
    assert "$" not in text
    assert SHOVEL in text


def test_the_relay_counts_what_goes_and_what_comes_back() -> None:
    async def talk() -> tuple[int, int, str, bytes]:
        port = spare_port()
        seen = ""

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal seen
            seen = writer.get_extra_info("peername")[0]
            writer.write((await reader.readexactly(5))[:3])
            await reader.read()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.3", port)
        async with Relay("127.0.0.2", "127.0.0.3", "127.0.0.4", port) as relay:
            reader, writer = await asyncio.open_connection("127.0.0.2", port)
            writer.write(b"hello")
            got = await reader.readexactly(3)
            writer.close()
            await writer.wait_closed()
        server.close()
        return relay.there, relay.back, seen, got

    assert asyncio.run(talk()) == (5, 3, "127.0.0.4", b"hel")


def test_the_cpu_time_of_a_process_grows_by_what_it_uses() -> None:
    before = cpu_s(os.getpid())
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    assert 0.05 <= cpu_s(os.getpid()) - before < 5


def interrupt_when_stopped(process: int) -> None:
    _, status = os.waitpid(process, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    raise KeyboardInterrupt


def test_a_process_that_stood_still_goes_on_when_the_measuring_fails() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        with pytest.raises(KeyboardInterrupt), stopped(process.pid):
            interrupt_when_stopped(process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == -signal.SIGTERM
    finally:
        process.kill()
        process.wait()
