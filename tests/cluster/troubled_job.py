"""A job that writes numbers to a queue, with a task that fails once and one that is slow once.

The slow one is started a second time while the first attempt still runs. Each attempt leaves a file
that says by its name which part and which attempt it is.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAILING, SLOW = 0, 1
"""The parts of which the first attempt fails, and is slow."""

ATTEMPTS: Final = frozenset({f"{FAILING}.0", f"{FAILING}.1", f"{SLOW}.0", f"{SLOW}.1", "2.0"})
"""What must have begun."""

PARTS: Final = 3
ROWS: Final = 3_000
BATCH_ROWS: Final = 100
STAGED: Final = 3
"""Behind so many batches of Arrow something goes wrong."""

WIDTH: Final = 1_000
"""Characters of a row: so that what goes from process to process is not kept in buffers."""

SLOW_S: Final = 120.0
"""The slow one would not be done before; a second attempt is quicker."""

BEGIN_S: Final = 60.0
"""So long the second attempt waits for the first, whose Python may be slow to start."""


def text_of(number: int) -> str:
    """What a message says."""
    return f"{number:0{WIDTH}}"


def write_numbers(spark: SparkSession, url: str, queue: str, begun: Path) -> None:
    """Writes all of them; the session has to have speculation on."""
    begun.mkdir(exist_ok=True)

    def trouble(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        part, attempt = context.partitionId(), context.attemptNumber()
        (begun / f"{part}.{attempt}").touch()
        deadline = time.monotonic() + BEGIN_S
        while not (begun / f"{part}.0").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        for number, each in enumerate(batches):
            yield each
            if number < STAGED:
                continue
            # What came before is in a stage by now.
            if part == FAILING and attempt == 0:
                raise ZeroDivisionError("on purpose")
            if part == SLOW and attempt == 0:
                time.sleep(SLOW_S)

    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(BATCH_ROWS))
    rows = spark.range(0, ROWS, 1, PARTS).selectExpr(f"lpad(id, {WIDTH}, '0') as value")
    writing = rows.mapInArrow(trouble, "value string").write.format("msmq")
    writing.option("url", url).option("queue", queue).mode("append").save()
