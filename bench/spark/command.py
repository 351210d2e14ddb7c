"""The program: starts a session and a queue manager of each build, measures, prints tables."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path

from bench.brokers.running import running
from bench.brokers.tables import table
from bench.builds import environment, found_builds, print_load, working_folder
from bench.spark.measuring import Figures, Session, filled

import merq
from merq.spark.session import CHECKPOINTS, LOCAL_CHECKPOINTS, prepare

COUNT, QUICK_COUNT = 600_000, 60_000
"""Messages of 1 KiB."""

ROUNDS, QUICK_ROUNDS = 3, 1
SINGLES, QUICK_SINGLES = 40, 8

GOALS = (
    ("batch, 1", "parquet, batch", 0.6),
    ("batch, 2", "parquet, batch", 0.6),
    ("stream, 1", "parquet, stream", 0.5),
    ("stream, 2", "parquet, stream", 0.5),
    ("write", "parquet, write", 0.5),
)
"""What is compared with what, and the least that it should be."""

RATES = (("write", 250_000), ("queue to queue", 150_000))
"""Rows a second that would be good; writing is good enough if the ratio is."""

SLOWER_MAX = 2.0
"""So many times as long may the slowest hundredth of another client's sends take."""

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "spark-figures.md"
HEAD = """# Queues in Spark, in figures

<!-- Written by `python bench/spark --write`; do not edit. -->

`make bench` reads and writes messages of 1 KiB by `format("msmq")` and the same rows as Parquet, in
one Spark session with two threads, beside the queue manager on the same machine. There are
20,000 different bodies, which shrink to a half if they are compressed, as Parquet does. A client
sends a recoverable message every two milliseconds meanwhile: how long the slowest hundredth of
these takes is compared with the same on a quiet machine and with the same while Spark
reads and writes Parquet.
Writing is as it should be if either of its two goals is met. Before it is measured, the queue
manager has tidied up what was purged before. **Only ratios of one run mean
anything**; [performance](performance.md) says why.

"""


def main() -> int:
    """Measures all builds."""
    parser = argparse.ArgumentParser(description="Measures queues as sources and sinks of Spark.")
    parser.add_argument("--rounds", type=int, help="how often everything is measured")
    parser.add_argument("--quick", action="store_true", help="one round with fewer messages")
    parser.add_argument("--folder", type=Path, help="where to work; .build/bench by default")
    parser.add_argument("--json", action="store_true", help="print every round as JSON instead")
    parser.add_argument("--write", action="store_true", help="write the page of the guide as well")
    options = parser.parse_args()
    count = QUICK_COUNT if options.quick else COUNT
    singles = QUICK_SINGLES if options.quick else SINGLES
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    print_load()
    found = {}
    with working_folder(options.folder) as folder:
        for number, (name, build) in enumerate(found_builds().items()):
            found[name] = _measured(folder / str(number), build, count, rounds, singles)
    if options.json:
        print(json.dumps(found))
        return 0
    text = "\n".join(shown(found, count))
    print(text)
    if options.write:
        PAGE.write_text(HEAD + text + "\n", encoding="utf-8")
    return 0


def _measured(folder: Path, build: Path, count: int, rounds: int, singles: int) -> list[Figures]:
    folder.mkdir()
    variables = {
        **environment(build),
        "MERQ_NAME": "bench",
        "MERQ_EXCHANGE_LISTEN": "false",
        "MERQ_EXCHANGE_OFFLINE": "true",
    }
    listening = folder / "data" / "merq.sock"
    command = [sys.executable, "-m", "merq", "serve", "--data", str(folder / "data")]
    with running(command, folder, listening.is_socket, variables) as process:
        return _rounds(folder, (f"unix:{listening}", process), count, rounds, singles)


def _rounds(
    folder: Path, service: tuple[str, int], count: int, rounds: int, singles: int
) -> list[Figures]:
    url, process = service
    prepare("local")
    from pyspark.sql import SparkSession  # noqa: PLC0415 - it takes a while

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "2048")
        .config("spark.sql.streaming.metricsEnabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        # As sessions of pipelines have it.
        .config("spark.python.daemon.module", "merq.spark.daemon")
        .config(CHECKPOINTS, LOCAL_CHECKPOINTS)
        .getOrCreate()
    )
    found = []
    try:
        with merq.connect(url) as manager:
            filled(manager, count)
            session = Session(spark, url, process, folder, count)
            session.read()  # warms everything
            for number in range(rounds):
                print(f"round {number + 1} of {rounds}", file=sys.stderr)
                figures = session.read()
                figures |= session.disturbance(manager)
                figures |= session.write(manager)
                figures |= session.latency(manager, singles)
                found.append(figures)
    finally:
        spark.stop()
    return found


def shown(found: Mapping[str, list[Figures]], count: int) -> list[str]:
    """The tables."""
    lines = [f"Medians; {count:,} messages of 1 KiB for each rate.", ""]
    rows = []
    for what, beside, goal in GOALS:
        cells = [what, beside, f"≥ {goal:g} x"]
        for rounds in found.values():
            ratio = statistics.median(each[what] / each[beside] for each in rounds)
            cells.append(f"{ratio:.2f} x" if ratio >= goal else f"**{ratio:.2f} x, missed**")
        rows.append(cells)
    for what, least in RATES:
        cells = [what, "", f"≥ {least:,} rows/s"]
        for rounds in found.values():
            middle = statistics.median(each[what] for each in rounds)
            cells.append(f"{middle:,.0f}" if middle >= least else f"**{middle:,.0f}, missed**")
        rows.append(cells)
    for what in ("send, beside reading", "send, beside writing"):
        for beside in ("send, alone", "send, beside Parquet"):
            cells = [f"{what}, p99", beside, f"≤ {SLOWER_MAX:g} x"]
            for rounds in found.values():
                ratio = statistics.median(each[what] / each[beside] for each in rounds)
                fine = ratio <= SLOWER_MAX
                cells.append(f"{ratio:.2f} x" if fine else f"**{ratio:.2f} x, missed**")
            rows.append(cells)
    lines += [*table(["", "to", "goal", *found], rows), ""]
    names = list(next(iter(found.values()))[0])
    rows = [
        [name, *(_said(name, [each[name] for each in rounds]) for rounds in found.values())]
        for name in names
    ]
    return lines + table(["", *found], rows)


def _said(name: str, series: list[float]) -> str:
    middle = statistics.median(series)
    if name.startswith(("latency", "send")):
        return f"{1000 * middle:,.1f} ms"
    return f"{middle:,.0f} rows/s"
