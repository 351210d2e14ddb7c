"""Real streaming queries: what they read is collected batch by batch.

Also here: a source that looks at Spark's commit log whenever it is asked how far the next batch
goes. What is removed then must have been committed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame, SparkSession

from acceptance.service_process import wait_until
from merq.spark.source import MsmqSource
from merq.spark.streaming import StreamReader

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamReader
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

    from merq.spark.options import Offsets

PATIENCE_S: Final = 120.0
"""How long a query may take that should take seconds."""


def stream_of(spark: SparkSession, options: Mapping[str, str], source: str = "msmq") -> DataFrame:
    """A stream of messages."""
    return spark.readStream.format(source).options(**{"pollSeconds": "0.2", **options}).load()


class Collected:
    """The values of messages that a query has read, by the number of the batch."""

    def __init__(self) -> None:
        self.batches: dict[int, list[str]] = {}

    def __call__(self, frame: DataFrame, number: int) -> None:
        """Spark has a batch."""
        self.batches[number] = [row["value"] for row in frame.select("value").collect()]

    @property
    def values(self) -> list[str]:
        """All of them, in order."""
        return [each for number in sorted(self.batches) for each in self.batches[number]]


@contextmanager
def running(
    frame: DataFrame,
    sink: Callable[[DataFrame, int], None] | Mapping[str, str],
    checkpoint: Path,
    **trigger: Any,
) -> Iterator[StreamingQuery]:
    """A query, to a function or to a queue, until the end of the block."""
    writer = frame.writeStream.option("checkpointLocation", str(checkpoint))
    if trigger:
        writer = writer.trigger(**trigger)
    if callable(sink):
        query = writer.foreachBatch(sink).start()
    else:
        query = writer.format("msmq").options(**sink).start()
    try:
        yield query
    finally:
        query.stop()


def run_through(
    frame: DataFrame,
    sink: Callable[[DataFrame, int], None] | Mapping[str, str],
    checkpoint: Path,
) -> StreamingQuery:
    """A query that reads what is available now, from its start to its end."""
    with running(frame, sink, checkpoint, availableNow=True) as query:
        assert query.awaitTermination(int(PATIENCE_S)), "the query does not end"
        return query


def wait_for(query: StreamingQuery, is_so: Callable[[], bool], what: str) -> None:
    """Returns when something is so, unless the query fails before."""

    def is_so_or_over() -> bool:
        failed = query.exception()
        if failed is not None:
            raise failed
        return is_so()

    wait_until(is_so_or_over, what, PATIENCE_S)


class ProbingSource(MsmqSource):
    """The source, with a look at the commit log; options `probe` and `checkpoint` say where."""

    @classmethod
    def name(cls) -> str:
        """What Spark calls it."""
        return "msmq_probe"

    def schema(self) -> str:
        """One column is enough."""
        return "value string"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """The reader that looks."""
        options = dict(self.options)
        return ProbingReader(Path(options.pop("probe")), options, schema)


class ProbingReader(StreamReader):
    """Writes down, whenever it is asked, whether what it may remove is committed."""

    def __init__(self, probe: Path, options: dict[str, str], schema: StructType) -> None:
        super().__init__(options, schema)
        self._probe = probe

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:  # noqa: N802
        """As usual."""
        with self._probe.open("a") as file:
            print(_is_committed(self._probe.with_name("checkpoint"), start), file=file)
        return super().latestOffset(start, limit)


def _is_committed(checkpoint: Path, start: Offsets) -> str:
    """Whether the batch that ends here is in the commit log; `first` if there is none."""
    for each in (checkpoint / "offsets").glob("[0-9]*"):
        if json.loads(each.read_text().splitlines()[-1]) == start:
            return "yes" if (checkpoint / "commits" / each.name).exists() else "no"
    return "first"
