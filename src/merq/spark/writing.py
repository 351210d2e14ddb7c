"""Sending rows as messages, each batch once.

A task writes its rows into stages of the queue manager, where nobody sees them. When all tasks are
done the driver publishes their stages at once, by the name of the writer and the number of the
batch: a batch that Spark tries again finds that it was published, and is not sent twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from merq.allocating import keep_freed_memory
from merq.client.bulk import Stage
from merq.client.packets import Packer
from merq.errors import MerqError
from merq.spark.gathering import gathered
from merq.spark.managers import Access, accesses, title
from merq.spark.options import BadOption, Options, read_options
from merq.spark.overlapping import Handover
from merq.spark.packing import pack_batch, properties_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_LOG: Final = logging.getLogger(__name__)

ROWS: Final = 1024
"""Messages that are handed to the queue manager at once, and for which its other clients wait;
measured: more are slower as well."""

ROWS_BYTES: Final = 2 << 20
"""What they take, unless a single one takes more: texts take twice as much in a message."""

TYPES: Final = {
    "queue": "string",
    "body": "binary",
    "value": "string",
    "body_type": "int",
    "label": "string",
    "priority": "int",
    "correlation_id": "binary",
    "app_tag": "bigint",
    "response_queue": "string",
    "admin_queue": "string",
    "extension": "binary",
}
"""Columns that are sent; what else rows have is for the queue manager to say."""


@dataclass
class Written(WriterCommitMessage):
    """What a task has written.

    Attributes:
        access: The queue manager that has it.
        writer: Who writes.
        batch: Of which batch it is.
        stages: Where it is.
        rows: How many rows it has.
    """

    access: Access
    writer: str
    batch: int
    stages: tuple[int, ...]
    rows: int


class _Writing:
    """What both kinds of writers do."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise BadOption(
                'a queue is not overwritten: write with mode("append"), and purge it first if you '
                "want it to have nothing else"
            )
        self._options: Options = read_options(options)
        self._columns = _checked(schema)
        properties_of(self._options)
        named = len(self._options.queues)
        if named > 1 or self._options.pattern:
            raise BadOption("rows go to one queue: name it by option queue, or by a column queue")
        if not named and "queue" not in self._columns:
            raise BadOption(
                "no queue is named: set option queue to a path name, or give rows a column queue"
            )
        if len(self._options.urls) != 1:
            raise BadOption("option url: rows go to one queue manager")
        self._access = accesses(self._options)[0]

    def _write(self, batches: Iterator[pa.RecordBatch], writer: str, batch: int) -> Written:
        keep_freed_memory()
        task = _Task(self._access, self._options, self._columns, writer, batch)
        try:
            with task.handover:
                for each in batches:
                    task.take(each)
                return task.done()
        except BaseException:
            task.give_up()
            raise


def _checked(schema: StructType) -> tuple[str, ...]:
    names = []
    for each in schema.fields:
        name = each.name.lower()
        wanted = TYPES.get(name)
        if wanted is None:
            continue
        found = each.dataType.simpleString()
        if found != wanted and not (name == "app_tag" and found == "int"):
            raise BadOption(f"column {each.name} is {found}; it has to be {wanted}")
        if name in names:
            raise BadOption(f"there is more than one column {name}, if case does not matter")
        names.append(name)
    if "body" not in names and "value" not in names:
        raise BadOption(
            f"rows have no column body (binary) and no column value (string); they have "
            f"{', '.join(schema.names)}"
        )
    return tuple(names)


class _Task:
    """One task's rows on their way into stages."""

    def __init__(
        self, access: Access, options: Options, columns: tuple[str, ...], writer: str, batch: int
    ) -> None:
        self._access = access
        self._manager = access.manager()
        self._columns = columns
        self._writer = writer
        self._batch = batch
        self._default = options.queues[0] if options.queues else ""
        self._common = properties_of(options)
        self._stages: dict[str, tuple[Stage, Packer]] = {}
        self._rows = 0
        self.handover = Handover()
        context = TaskContext.get()
        # Retries and speculation write their own; the driver publishes those of who was done.
        self._part = (
            f"{uuid4()}"
            if context is None
            else f"{context.partitionId()}.{context.attemptNumber()}.{uuid4()}"
        )

    def take(self, batch: pa.RecordBatch) -> None:
        """Writes rows."""
        # Spark's names of columns are the same in any case.
        batch = batch.rename_columns([name.lower() for name in batch.schema.names])
        for some in pieces(batch):
            if "queue" in self._columns and not self._default:
                for name in some.column("queue").unique().to_pylist():
                    meant = pc.equal(some.column("queue"), name)
                    self._send(name, some.filter(meant))
            else:
                self._send(self._default, some)
        self._rows += batch.num_rows

    def _send(self, name: str | None, batch: pa.RecordBatch) -> None:
        if name is None:
            raise BadOption("a row has no queue: column queue is null")
        stage, packer = self._stage(name)
        self.handover.call(sending(stage, batch, packer, self._common))

    def _stage(self, name: str) -> tuple[Stage, Packer]:
        found = self._stages.get(name)
        if found is None:
            path = name if "\\" in name else rf".\private$\{name}"
            queue = self._manager.queue(path)
            stage = self._manager.bulk.stage(queue, self._writer, self._batch, self._part)
            destination = f"OS:{title(self._manager.name, path)}"
            found = self._stages[name] = stage, Packer(destination)
        return found

    def give_up(self) -> None:
        """Nothing is left of it; what cannot be dropped now is swept later."""
        for stage, _ in self._stages.values():
            with suppress(MerqError):
                self._manager.bulk.drop_stage(stage.number)

    def done(self) -> Written:
        """What the driver has to know, when all of it is on the disk."""
        self.handover.finish()
        stages = tuple(stage.number for stage, _ in self._stages.values())
        return Written(self._access, self._writer, self._batch, stages, self._rows)


def _of_stream(name: str) -> tuple[str, str | None]:
    """A writer's name within the stream that this task is of, and the batch's number.

    With a new checkpoint Spark counts batches from 0 again: under a name alone they would be taken
    for those that were written before, and left out. A query's identifier lies in its checkpoint.
    """
    context = TaskContext.get()
    query = None if context is None else context.getLocalProperty("sql.streaming.queryId")
    if context is None or query is None:
        return name, None
    batch = context.getLocalProperty("streaming.sql.batchId")
    return f"{name} of query {query}" if name else f"query {query}", batch


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Rows as they are handed to the queue manager: not too many, and not too large, at once."""
    if batch.num_rows > ROWS or (batch.num_rows > 1 and batch.nbytes > ROWS_BYTES):
        rows = min(ROWS, (batch.num_rows + 1) // 2)
        for start in range(0, batch.num_rows, rows):
            yield from pieces(batch.slice(start, rows))
    elif batch.num_rows:
        yield batch


def sending(
    stage: Stage, batch: pa.RecordBatch, packer: Packer, common: dict[str, Any]
) -> Callable[[], int]:
    """What writes rows into a stage, when it is called.

    Raises:
        MessageQueueError: A value is not what it can be; the text says which and why.
    """
    rows = gathered(batch, packer, common)
    if rows is None:
        return partial(stage.send, pack_batch(batch, packer, common))
    return partial(stage.send_rows, rows)


def _publish(messages: list[WriterCommitMessage | None]) -> None:
    written = [each for each in messages if isinstance(each, Written)]
    if not written:
        return
    first = written[0]
    stages = [number for each in written for number in each.stages]
    published = first.access.manager().bulk.publish(first.writer, first.batch, stages)
    rows = sum(each.rows for each in written)
    if rows and not published:
        _LOG.warning(
            "batch %d of writer %r was sent before: its %d rows are not sent again",
            first.batch,
            first.writer,
            rows,
        )


def _drop(messages: list[WriterCommitMessage | None]) -> bool:
    """All parts of a batch go, those too of tasks that did not live to tell; if one did."""
    for each in messages:
        if isinstance(each, Written):
            each.access.manager().bulk.drop(each.writer, each.batch)
            return True
    return False


class BatchWriter(_Writing, DataSourceArrowWriter):
    """Sends the rows of a job, all or none."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        super().__init__(options, schema, overwrite=overwrite)
        self._writer = self._options.writer or f"job {uuid4()}"

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Writes the rows of a task."""
        # Within `foreachBatch` a job is one of a stream's.
        writer = _of_stream(self._writer)[0] if self._options.writer else self._writer
        return self._write(iterator, writer, self._options.batch)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All tasks are done: their rows become messages."""
        _publish(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """The job failed: nothing is left of it, whatever its tasks could tell."""
        if not _drop(messages):
            self._access.manager().bulk.drop(self._writer, self._options.batch)


class StreamWriter(_Writing, DataSourceStreamArrowWriter):
    """Sends the rows of micro-batches, each once."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Writes the rows of a task."""
        writer, batch = _of_stream(self._options.writer)
        if batch is None:
            raise BadOption(
                "Spark does not say which query and batch this is: write streams with writeStream"
            )
        return self._write(iterator, writer, int(batch))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        """All tasks are done: their rows become messages, unless they did before."""
        _publish(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        """The batch failed: nothing is left of it."""
        _drop(messages)
