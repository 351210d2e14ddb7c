"""One flow at one size: what is prepared, run, looked at, and compared with what was put in."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
from bench.builds import ROOT, environment
from bench.flows import fleet
from bench.flows.filling import fill
from bench.flows.services import Service, alone, together
from bench.flows.watching import KINDS, Watched, watched

import merq

QUEUE = r".\private$\rows"
ROWS_AT_ONCE = 1 << 16


class Wrong(Exception):
    """A flow did not say what was put in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one run found.

    Attributes:
        messages: How many there were.
        prepared_s: How long it took to put them there.
        wall_s: How long the flow took, with the start of Spark.
        cpu_s: Its processor time, by the kind of process.
        peak: The most memory, in bytes, by the kind of process.
        over_time: The median in each quarter of the run, in bytes, by the kind of process.
        read_bytes: What the queue managers have on disk.
        written_bytes: What the flow has written.
        files: In how many files.
        load: How busy the machine was beforehand.
        verdicts: What `reconcile` said.
    """

    messages: int
    prepared_s: float
    wall_s: float
    cpu_s: dict[str, float]
    peak: dict[str, int]
    over_time: dict[str, list[int]]
    read_bytes: int
    written_bytes: int
    files: int
    load: float
    verdicts: dict[str, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Messages a second, with the start of Spark."""
        return self.messages / self.wall_s


def archived(folder: Path, size: int, more: Sequence[str] = ()) -> Figures:
    """A queue into a lake; `more` is what the flow is told besides."""
    lake = folder / "lake"
    with alone(folder) as service:
        begin = time.perf_counter()
        with merq.connect(service.url) as manager:
            queue = manager.create_queue(QUEUE)
            fill(manager, queue, size, label="order")
            span = manager.bulk.span(queue)
        prepared_s = time.perf_counter() - begin
        arguments = ["archive", "--url", service.url, "--queue", QUEUE, "--lake", str(lake)]
        found = _run(folder, [*arguments, *more], [service])
        summary = json.loads(found.printed)
        if summary["messages"] != size:
            raise Wrong(f"{size} messages were there, and the flow says {summary['messages']}")
        _check_lake(lake, size, span.first, span.last)
        figures = _figures(found, size, prepared_s, [service], lake, summary["files"])
    shutil.rmtree(folder)
    return figures


def _check_lake(lake: Path, size: int, first: int, last: int) -> None:
    """Each message is there once: as many as there were, of different numbers."""
    seen = bytearray(last - first + 1)
    count = 0
    for path in sorted(lake.glob("day=*/*/*.parquet")):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=["sequence", "body_text"]):
                for number in batch.column("sequence").to_pylist():
                    seen[number - first] += 1
                count += batch.num_rows
                if pc.any(pc.is_null(batch.column("body_text"))).as_py():
                    raise Wrong(f"{path} has a message without text")
    if count != size or max(seen) != 1:
        raise Wrong(f"{size} messages were sent, and {count} are in the lake, some twice")


def reconciled(folder: Path, size: int, more: Sequence[str] = ()) -> Figures:
    """What became of so many messages of each of three queue managers."""
    output, archive = folder / "reconciled", folder / "archive"
    with together(folder, fleet.NAMES) as services:
        begin = time.perf_counter()
        fleet.prepare(services, size, archive)
        prepared_s = time.perf_counter() - begin
        urls = [word for each in services for word in ("--url", each.url)]
        arguments = ["reconcile", *urls, "--lake", str(archive), "--output", str(output)]
        found = _run(folder, [*arguments, *more], services)
        summary = json.loads(found.printed)
        said = {name: summary[name.replace(" ", "_")] for name in fleet.expected(size)}
        total = sum(fleet.expected(size).values())
        if said != fleet.expected(size) or summary["messages"] != total:
            raise Wrong(f"it should be {fleet.expected(size)}, and the flow says {summary}")
        _check_reasons(output, size)
        files = len(list(output.rglob("*.parquet")))
        figures = _figures(found, total, prepared_s, services, output, files, said)
    shutil.rmtree(folder)
    return figures


def _check_reasons(output: Path, size: int) -> None:
    """Those that died did so for the reasons that they had."""
    wanted = {
        kind.reason: count * len(fleet.NAMES)
        for kind, count in fleet.counts_of(size).items()
        if kind.reason
    }
    found: dict[str, int] = {}
    for path in (output / "messages" / "verdict=died").glob("*.parquet"):
        with pq.ParquetFile(path) as file:
            for each in pc.value_counts(file.read(["reason"]).column(0)).to_pylist():
                found[each["values"]] = found.get(each["values"], 0) + each["counts"]
    if found != wanted:
        raise Wrong(f"messages died for {found}, and should have for {wanted}")


@dataclass(frozen=True, slots=True)
class _Found:
    watched: Watched
    printed: str
    load: float


def _run(folder: Path, arguments: Sequence[str], services: Sequence[Service]) -> _Found:
    command = [sys.executable, "-m", "merq", "pipeline", "run", *arguments, "--json"]
    spark = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_DIRS": str(folder / "spark")}
    load = os.getloadavg()[0]
    seen, printed = watched(
        command,
        [each.process for each in services],
        folder / "flow.log",
        {**environment(ROOT / "src"), **spark},
    )
    return _Found(seen, printed, load)


def _figures(
    found: _Found,
    messages: int,
    prepared_s: float,
    services: Sequence[Service],
    output: Path,
    files: int,
    verdicts: dict[str, int] | None = None,
) -> Figures:
    return Figures(
        messages=messages,
        prepared_s=prepared_s,
        wall_s=found.watched.wall_s,
        cpu_s=found.watched.cpu_s,
        peak={kind: found.watched.peak(kind) for kind in KINDS},
        over_time={kind: found.watched.over_time(kind) for kind in KINDS},
        read_bytes=sum(size_of(each.folder) for each in services),
        written_bytes=size_of(output),
        files=files,
        load=found.load,
        verdicts=verdicts or {},
    )


def size_of(folder: Path) -> int:
    """What is in a folder, in bytes."""
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
