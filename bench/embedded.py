"""Measures embedded use: `make bench`, or `python bench/embedded.py [--rounds N]`.

Each round runs every contender once, in a folder of its own on the same disk, and every figure is
the median of the rounds. The yardsticks are bare appends, each made durable, and SQLite with
`synchronous=FULL` in WAL mode. Only ratios of one run mean anything.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import merq

BODY = b"x" * 1024
SINGLES = 1_000
BATCH = 100
BATCHES = 50
EXPRESS = 5_000


def rate(run: Callable[[], object], count: int) -> float:
    """Messages a second."""
    start = time.perf_counter()
    run()
    return count / (time.perf_counter() - start)


def raw_appends(folder: Path) -> dict[str, float]:
    """One file, one fdatasync a write: what the disk allows."""
    descriptor = os.open(folder / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    sync = getattr(os, "fdatasync", os.fsync)

    def append(data: bytes, times: int) -> None:
        for _ in range(times):
            os.write(descriptor, data)
            sync(descriptor)

    try:
        return {
            "durable, one at a time": rate(lambda: append(BODY, SINGLES), SINGLES),
            "durable, by 100": rate(lambda: append(BODY * BATCH, BATCHES), BATCH * BATCHES),
        }
    finally:
        os.close(descriptor)


def sqlite(folder: Path) -> dict[str, float]:
    """A table as a queue."""
    base = sqlite3.connect(folder / "queue.db", isolation_level=None)
    base.execute("PRAGMA journal_mode=WAL")
    base.execute("PRAGMA synchronous=FULL")
    base.execute("CREATE TABLE queue (id INTEGER PRIMARY KEY, body BLOB)")

    def put(count: int) -> None:
        base.execute("BEGIN IMMEDIATE")
        base.executemany("INSERT INTO queue (body) VALUES (?)", [(BODY,)] * count)
        base.execute("COMMIT")

    def take(count: int) -> None:
        base.execute("BEGIN IMMEDIATE")
        found = base.execute("SELECT id, body FROM queue ORDER BY id LIMIT ?", (count,)).fetchall()
        base.executemany("DELETE FROM queue WHERE id = ?", [(row[0],) for row in found])
        base.execute("COMMIT")

    def repeat(step: Callable[[int], None], count: int, times: int) -> None:
        for _ in range(times):
            step(count)

    try:
        return {
            "durable, one at a time": rate(lambda: repeat(put, 1, SINGLES), SINGLES),
            "durable, by 100": rate(lambda: repeat(put, BATCH, BATCHES), BATCH * BATCHES),
            "receive, one at a time": rate(lambda: repeat(take, 1, SINGLES), SINGLES),
            "receive, by 100": rate(lambda: repeat(take, BATCH, BATCHES), BATCH * BATCHES),
        }
    finally:
        base.close()


def ours(folder: Path) -> dict[str, float]:
    """`merq.open`."""
    found: dict[str, float] = {}
    with merq.open(folder / "merq") as mq:
        plain = mq.create_queue(r".\private$\plain")
        strict = mq.create_queue(r".\private$\strict", transactional=True)

        def send(count: int, *, recoverable: bool) -> None:
            for _ in range(count):
                plain.send(BODY, recoverable=recoverable)

        def receive(count: int) -> None:
            for _ in range(count):
                plain.receive(timeout=0)

        def in_transactions(step: Callable[[merq.Transaction], object]) -> None:
            for _ in range(BATCHES):
                with mq.transaction() as tx:
                    for _ in range(BATCH):
                        step(tx)

        found["durable, one at a time"] = rate(lambda: send(SINGLES, recoverable=True), SINGLES)
        last = plain.send(BODY, recoverable=True)

        def peek() -> None:
            for _ in range(SINGLES):
                plain.peek_by_id(last)

        found["peek by id"] = rate(peek, SINGLES)
        found["receive, one at a time"] = rate(lambda: receive(SINGLES), SINGLES)
        found["durable, by 100"] = rate(
            lambda: in_transactions(lambda tx: strict.send(BODY, tx=tx)), BATCH * BATCHES
        )
        found["receive, by 100"] = rate(
            lambda: in_transactions(lambda tx: strict.receive(timeout=0, tx=tx)), BATCH * BATCHES
        )
        found["express"] = rate(lambda: send(EXPRESS, recoverable=False), EXPRESS)
    return found


CONTENDERS: dict[str, Callable[[Path], dict[str, float]]] = {
    "merq": ours,
    "raw fdatasync": raw_appends,
    "SQLite FULL": sqlite,
}


def main() -> int:
    """Runs all contenders in turn and prints medians and ratios."""
    parser = argparse.ArgumentParser(description="Measures merq.open beside other stores.")
    parser.add_argument("--rounds", type=int, default=3, help="how often each one is measured")
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder by default")
    options = parser.parse_args()
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in CONTENDERS}
    for number in range(options.rounds):
        for name, contender in CONTENDERS.items():
            print(f"round {number + 1} of {options.rounds}, {name}", file=sys.stderr)
            with tempfile.TemporaryDirectory(prefix="merq-bench-", dir=options.folder) as folder:
                runs[name].append(contender(Path(folder)))
    medians = {
        name: {key: median(run[key] for run in found) for key in found[0]}
        for name, found in runs.items()
    }
    print(f"{'1 KiB messages a second':28}" + "".join(f"{name:>24}" for name in CONTENDERS))
    for key, value in medians["merq"].items():
        cells = f"{value:>24,.0f}"
        for name in list(CONTENDERS)[1:]:
            other = medians[name].get(key)
            text = "" if other is None else f"{other:,.0f} (ours {value / other:.2f} x)"
            cells += f"{text:>24}"
        print(f"{key:28}{cells}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
