"""Readers and writers without a session: they are plain objects, and this does what Spark does.

Also here: queues whose names nobody else has, and messages as dictionaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from merq.client.manager import Manager
from merq.client.queues import Queue
from merq.spark.columns import BY_NAME
from merq.spark.options import Offsets
from merq.spark.reading import BatchReader
from merq.spark.streaming import StreamReader

KINDS: Final[dict[str, DataType]] = {
    "string": StringType(),
    "bigint": LongType(),
    "int": IntegerType(),
    "binary": BinaryType(),
    "timestamp": TimestampType(),
    "boolean": BooleanType(),
}
"""The types of columns by their names in SQL."""

Row = dict[str, Any]
_numbers: Final = count(1)


def schema_of(*names: str) -> StructType:
    """A schema of columns of the source."""
    return StructType([StructField(name, KINDS[BY_NAME[name.lower()].kind]) for name in names])


def schema_with(**kinds: str) -> StructType:
    """A schema of any columns, by their types in SQL."""
    return StructType([StructField(name, KINDS[kind]) for name, kind in kinds.items()])


def new_queue(manager: Manager, **options: Any) -> Queue:
    """A queue that nothing else here uses."""
    return manager.create_queue(rf".\private$\spark{next(_numbers)}", **options)


def send_in_transaction(manager: Manager, queue: Queue, *bodies: str, **properties: Any) -> None:
    """Sends to a transactional queue."""
    with manager.transaction() as tx:
        for body in bodies:
            queue.send(body, tx=tx, **properties)


def title_of(queue: Queue, computer: str = "alpha") -> str:
    """What offsets and rows call it."""
    return computer + queue.path_name.removeprefix(".")


def rows_of(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    """Arrow as dictionaries."""
    return [row for each in batches for row in each.to_pylist()]


def read_batch(options: Mapping[str, str], *columns: str, filters: Iterable[Any] = ()) -> list[Row]:
    """What a batch query gets, in the order of its partitions."""
    reader = BatchReader(options, schema_of(*columns))
    left = list(reader.take_filters(list(filters)))
    assert not left, "Spark would have to carry these out"
    return rows_of(batch for part in reader.partitions() for batch in reader.read(part))


def values_of(rows: Iterable[Row], name: str = "value") -> list[Any]:
    """One column."""
    return [row[name] for row in rows]


class Query:
    """A streaming query, one micro-batch after another; what is committed is for the test to say.

    Attributes:
        start: Up to here everything is committed; None before the first batch.
        end: Up to here it is planned.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        *columns: str,
        start: Offsets | None = None,
        available_now: bool = False,
    ) -> None:
        self.reader = StreamReader(
            {"pollSeconds": "0", **options}, schema_of(*columns or ("value",))
        )
        self.start = start
        self.end: Offsets = {}
        self._available_now = available_now

    def plan(self) -> bool:
        """Finds out how far the next batch goes; whether there is one."""
        if self.start is None:
            self.start = self.reader.initialOffset()
        if self._available_now:
            self.reader.prepareForTriggerAvailableNow()
            self._available_now = False
        self.end = self.reader.latestOffset(self.start, self.reader.getDefaultReadLimit())
        return self.end != self.start

    def parts(self) -> list[InputPartition]:
        """The parts of the batch that is planned."""
        assert self.start is not None
        return list(self.reader.partitions(self.start, self.end))

    def rows(self) -> list[Row]:
        """Reads the batch that is planned, as often as one wants."""
        return rows_of(batch for part in self.parts() for batch in self.reader.read(part))

    def commit(self) -> None:
        """The batch is in the commit log."""
        self.start = self.end

    def batches(self, most: int = 20) -> Iterator[list[Row]]:
        """All batches that there are now, each committed when the next is asked for."""
        for _ in range(most):
            if not self.plan():
                return
            yield self.rows()
            self.commit()
        raise AssertionError(f"more than {most} batches")
