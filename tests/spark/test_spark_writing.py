"""Writing, without a session: rows become messages once, all of a batch or none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.types import StructType

import merq
from acceptance.service_process import ServiceProcess
from merq.client.embedded import Driver
from merq.client.manager import Manager
from merq.client.queues import Queue
from merq.errors import MessageQueueError
from merq.spark.options import BadOption
from merq.spark.source import MsmqSource
from merq.spark.writing import ROWS, BatchWriter, StreamWriter, Written
from spark.driving_readers import new_queue, schema_with

ARROW = {"string": pa.string(), "binary": pa.binary(), "int": pa.int32(), "bigint": pa.int64()}
VALUE = schema_with(value="string")


def rows(schema: StructType, *values: tuple[Any, ...]) -> Iterator[pa.RecordBatch]:
    """Rows as Spark hands them over."""
    fields = [(each.name, ARROW[each.dataType.simpleString()]) for each in schema.fields]
    columns = [pa.array([row[at] for row in values], kind) for at, (_, kind) in enumerate(fields)]
    yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def writer_to(
    alpha: ServiceProcess, queue: Queue | None, schema: StructType = VALUE, **options: str
) -> BatchWriter:
    named = {} if queue is None else {"queue": queue.path_name}
    return BatchWriter({"url": alpha.url, **named, **options}, schema, overwrite=False)


def bodies(queue: Queue) -> list[object]:
    return [each.body for each in queue.peek_all()]


def stages_for(manager: Manager, *queues: Queue) -> list[object]:
    paths = {each.path_name for each in queues}
    return [each for each in manager.bulk.stages() if each.queue in paths]


@pytest.fixture
def batch_number() -> Iterator[dict[str, str]]:
    """What Spark tells a task of a stream; the test may change the number of the batch."""
    context = TaskContext._getOrCreate()
    told = {"sql.streaming.queryId": "query-1", "streaming.sql.batchId": "0"}
    context._localProperties = told
    context._partitionId = 0
    context._attemptNumber = 0
    yield told
    TaskContext._setTaskContext(None)


@pytest.mark.parametrize("transactional", [True, False])
def test_rows_become_messages_when_all_tasks_are_done(
    alpha: ServiceProcess, manager: Manager, transactional: bool
) -> None:
    queue = new_queue(manager, transactional=transactional)
    writer = writer_to(alpha, queue)
    one = writer.write(rows(VALUE, ("a",), ("b",)))
    two = writer.write(rows(VALUE, ("c",)))
    assert len(queue) == 0, "nobody sees what is not published"
    writer.commit([one, two])
    assert bodies(queue) == ["a", "b", "c"]
    assert not stages_for(manager, queue)
    found = list(queue.peek_all())
    assert all(each.recoverable for each in found)
    assert [each.transactional for each in found] == [transactional] * 3
    if transactional:
        headers = [each.details.transaction_header for each in found]
        flags = [each.fields.flags for each in headers if each is not None]
        assert [each.first_message for each in flags] == [True, False, False]
        assert [each.last_message for each in flags] == [False, False, True]
    writer.commit([one, two])
    assert bodies(queue) == ["a", "b", "c"], "a second publish does nothing"


def test_more_rows_than_are_handed_over_at_once_keep_their_order(
    alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager)
    values = [f"{number}" for number in range(2 * ROWS + 7)]
    writer = writer_to(alpha, queue)
    writer.commit([writer.write(rows(VALUE, *((each,) for each in values)))])
    assert bodies(queue) == values


def test_columns_say_what_each_message_is_like(alpha: ServiceProcess, manager: Manager) -> None:
    queue = new_queue(manager)
    schema = schema_with(
        value="string", label="string", priority="int", correlation_id="binary", app_tag="bigint",
        response_queue="string", admin_queue="string", extension="binary", message_id="string",
    )  # fmt: skip
    writer = writer_to(
        alpha, queue, schema, label="common", priority="6", appTag="8", acknowledge="arrival"
    )
    full = ("a", "own", 2, bytes(range(20)), 7, r"a\private$\r", r"a\private$\d", b"ext", "ignored")
    writer.commit([writer.write(rows(schema, full, ("b", *[None] * 8)))])
    one, two = sorted(queue.peek_all(), key=lambda each: str(each.body))
    assert (one.body, one.label, one.priority, one.app_specific) == ("a", "own", 2, 7)
    assert (one.correlation_id, one.extension) == (bytes(range(20)), b"ext")
    assert one.response_queue.lower() == r"direct=os:a\private$\r"
    assert one.admin_queue.lower() == r"direct=os:a\private$\d"
    assert (one.acknowledge, two.acknowledge) == (5, 0), "the other names nobody to be told"
    assert (two.body, two.label, two.priority, two.app_specific) == ("b", "common", 6, 8)
    assert (two.correlation_id, two.extension, two.response_queue) == (bytes(20), b"", "")


def test_a_column_without_values_says_nothing(alpha: ServiceProcess, manager: Manager) -> None:
    queue = new_queue(manager)
    schema = schema_with(value="string", label="string")
    writer = writer_to(alpha, queue, schema, label="common")
    writer.commit([writer.write(rows(schema, ("a", None), ("b", None)))])
    assert [each.label for each in queue.peek_all()] == ["common", "common"]


def test_bodies_are_bytes_text_or_bytes_of_a_type(alpha: ServiceProcess, manager: Manager) -> None:
    schema = schema_with(body="binary", body_type="int", value="string")
    queue = new_queue(manager)
    writer = writer_to(alpha, queue, schema)
    given = [
        (b"x", None, "unused"),
        (None, None, "text"),
        (b"\x05\0\0\0", 3, None),
        (None, None, None),
    ]
    writer.commit([writer.write(rows(schema, *given))])
    assert bodies(queue) == [b"x", "text", 5, None]


@pytest.mark.parametrize(
    ("name", "kind", "value", "wanted"),
    [("Value", "string", "a", "a"), ("BODY", "binary", b"a", b"a")],
)
def test_the_case_of_a_columns_name_does_not_matter(
    alpha: ServiceProcess, manager: Manager, name: str, kind: str, value: Any, wanted: Any
) -> None:
    queue = new_queue(manager)
    schema = schema_with(**{name: kind, "Label": "string"})
    writer = writer_to(alpha, queue, schema)
    writer.commit([writer.write(rows(schema, (value, "l")))])
    assert [(each.body, each.label) for each in queue.peek_all()] == [(wanted, "l")]


def test_a_column_names_the_queue_of_each_row(alpha: ServiceProcess, manager: Manager) -> None:
    one, two = new_queue(manager), new_queue(manager, transactional=True)
    schema = schema_with(queue="string", value="string")
    short = one.path_name.rpartition("\\")[2]
    writer = writer_to(alpha, None, schema)
    given = [(one.path_name, "a"), (two.path_name, "b"), (short, "c"), (two.path_name, "d")]
    writer.commit([writer.write(rows(schema, *given))])
    assert (bodies(one), bodies(two)) == (["a", "c"], ["b", "d"])
    with pytest.raises(BadOption, match="a row has no queue: column queue is null"):
        writer_to(alpha, None, schema).write(rows(schema, (None, "x")))
    with pytest.raises(MessageQueueError, match="nowhere"):
        writer_to(alpha, None, schema).write(rows(schema, (one.path_name, "x"), ("nowhere", "y")))
    assert not stages_for(manager, one, two), "a task that failed leaves nothing"


def test_a_named_queue_counts_more_than_a_column(alpha: ServiceProcess, manager: Manager) -> None:
    queue = new_queue(manager)
    schema = schema_with(queue="string", value="string")
    writer = writer_to(alpha, queue, schema)
    writer.commit([writer.write(rows(schema, ("nowhere", "a")))])
    assert bodies(queue) == ["a"]


@pytest.mark.parametrize(
    ("schema", "options", "told"),
    [
        (schema_with(text="string"), {"queue": "q"}, r"no column body .* they have text"),
        (
            schema_with(value="binary"),
            {"queue": "q"},
            "column value is binary; it has to be string",
        ),
        (schema_with(body="string"), {"queue": "q"}, "column body is string; it has to be binary"),
        (
            schema_with(value="string", priority="bigint"),
            {"queue": "q"},
            "column priority is bigint; it has to be int",
        ),
        (
            schema_with(value="string", Value="string"),
            {"queue": "q"},
            "there is more than one column value",
        ),
        (VALUE, {}, "no queue is named: set option queue"),
        (VALUE, {"queues": "a,b"}, "rows go to one queue"),
        (VALUE, {"queuePattern": "*"}, "rows go to one queue"),
        (VALUE, {"queue": "q", "url": "unix:/a,unix:/b"}, "rows go to one queue manager"),
        (VALUE, {"queue": "q", "delivery": "x"}, "option delivery"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is(
    schema: StructType, options: dict[str, str], told: str
) -> None:
    with pytest.raises(BadOption, match=told):
        BatchWriter(options, schema, overwrite=False)


def test_a_queue_is_not_overwritten() -> None:
    source = MsmqSource({"queue": "q"})
    with pytest.raises(BadOption, match="a queue is not overwritten"):
        source.writer(VALUE, overwrite=True)
    with pytest.raises(BadOption, match="a queue is not overwritten"):
        source.streamWriter(VALUE, overwrite=True)


def test_an_app_tag_may_be_an_int(alpha: ServiceProcess, manager: Manager) -> None:
    queue = new_queue(manager)
    schema = schema_with(value="string", app_tag="int")
    writer = writer_to(alpha, queue, schema)
    writer.commit([writer.write(rows(schema, ("a", 5)))])
    assert queue.peek().app_specific == 5


def test_a_job_that_is_aborted_leaves_nothing(alpha: ServiceProcess, manager: Manager) -> None:
    queue = new_queue(manager)
    writer = writer_to(alpha, queue)
    done = writer.write(rows(VALUE, ("a",)))
    lost = writer.write(rows(VALUE, ("b",)))
    assert isinstance(lost, Written)
    assert len(stages_for(manager, queue)) == 2
    # A task that was killed has told the driver nothing.
    writer.abort([done, None])
    assert not stages_for(manager, queue)
    assert len(queue) == 0


def test_a_task_that_fails_in_the_middle_leaves_nothing(
    alpha: ServiceProcess, manager: Manager
) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from rows(VALUE, ("a",), ("b",))
        raise ZeroDivisionError

    queue = new_queue(manager)
    writer = writer_to(alpha, queue)
    with pytest.raises(ZeroDivisionError):
        writer.write(failing())
    assert not stages_for(manager, queue)
    assert len(queue) == 0


def test_of_two_attempts_at_a_part_only_the_one_that_the_driver_knows_is_published(
    alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager)
    writer = writer_to(alpha, queue)
    writer.write(rows(VALUE, ("a",)))
    counted = writer.write(rows(VALUE, ("a",)))
    writer.write(rows(VALUE, ("a",)))
    writer.commit([counted])
    assert bodies(queue) == ["a"]
    assert not stages_for(manager, queue)


def test_a_job_with_a_name_is_done_once(alpha: ServiceProcess, manager: Manager) -> None:
    queue = new_queue(manager)
    for _ in range(2):
        writer = writer_to(alpha, queue, writer=f"nightly {queue.path_name}")
        writer.commit([writer.write(rows(VALUE, ("a",)))])
    assert bodies(queue) == ["a"]
    assert not stages_for(manager, queue)


def test_who_uses_a_name_twice_is_told_that_nothing_was_sent(
    alpha: ServiceProcess, manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    queue = new_queue(manager)
    for _ in range(2):
        assert not caplog.messages
        writer = writer_to(alpha, queue, writer=queue.path_name, batch="4")
        writer.commit([writer.write(rows(VALUE, ("a",), ("b",)))])
    (said,) = caplog.messages
    assert (
        said
        == f"batch 4 of writer {queue.path_name!r} was sent before: its 2 rows are not sent again"
    )


def test_an_aborted_job_of_a_later_batch_leaves_nothing(
    alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager)
    for told in (True, False):
        writer = writer_to(alpha, queue, writer=f"{queue.path_name} {told}", batch="7")
        written = writer.write(rows(VALUE, ("a",)))
        writer.abort([written if told else None])
        assert not stages_for(manager, queue)


@pytest.mark.parametrize("kind", [BatchWriter, StreamWriter])
def test_with_a_new_checkpoint_the_batches_of_a_name_are_others(
    kind: type[BatchWriter | StreamWriter],
    alpha: ServiceProcess,
    manager: Manager,
    batch_number: dict[str, str],
) -> None:
    """Spark counts them from 0 again, and rows that are left out would be lost."""
    queue = new_queue(manager)
    options = {"url": alpha.url, "queue": queue.path_name, "writer": "w", "batch": "0"}
    for query in ("first", "first", "second"):
        batch_number["sql.streaming.queryId"] = f"{query} {queue.path_name}"
        writer = kind(options, VALUE, overwrite=False)
        written = writer.write(rows(VALUE, (query,)))
        if isinstance(writer, StreamWriter):
            writer.commit([written], 0)
        else:
            writer.commit([written])
    assert bodies(queue) == ["first", "second"]


def test_jobs_without_rows_send_nothing(alpha: ServiceProcess, manager: Manager) -> None:
    queue = new_queue(manager)
    writer = writer_to(alpha, queue)
    writer.commit([writer.write(iter(())), writer.write(rows(VALUE))])
    writer_to(alpha, queue).commit([])
    assert len(queue) == 0
    assert not stages_for(manager, queue)


def test_a_batch_of_a_stream_that_comes_again_is_not_written_twice(
    alpha: ServiceProcess, manager: Manager, batch_number: dict[str, str]
) -> None:
    queue = new_queue(manager)
    batch_number["sql.streaming.queryId"] = queue.path_name

    def run(number: int, *values: str) -> None:
        batch_number["streaming.sql.batchId"] = f"{number}"
        writer = StreamWriter({"url": alpha.url, "queue": queue.path_name}, VALUE, overwrite=False)
        writer.commit([writer.write(rows(VALUE, *((each,) for each in values)))], number)

    run(0, "a")
    run(0, "a")
    run(1, "b")
    run(0, "a")
    assert bodies(queue) == ["a", "b"]
    assert not stages_for(manager, queue)
    run(2)
    run(3, "c")
    assert bodies(queue) == ["a", "b", "c"]


def test_a_batch_of_a_stream_that_is_aborted_leaves_nothing(
    alpha: ServiceProcess, manager: Manager, batch_number: dict[str, str]
) -> None:
    queue = new_queue(manager)
    batch_number["sql.streaming.queryId"] = queue.path_name
    writer = StreamWriter({"url": alpha.url, "queue": queue.path_name}, VALUE, overwrite=False)
    written = writer.write(rows(VALUE, ("a",)))
    writer.abort([written, None], 0)
    assert not stages_for(manager, queue)
    again = writer.write(rows(VALUE, ("a",)))
    writer.commit([again], 0)
    assert bodies(queue) == ["a"]


def test_stages_of_a_driver_that_died_are_swept(tmp_path: Any) -> None:
    with merq.open(tmp_path / "data") as manager:
        queue = manager.create_queue(r".\private$\q")
        stage = manager.bulk.stage(queue, "dead driver", 0, "part")
        driver = manager._driver
        assert isinstance(driver, Driver)
        with driver._turn:
            stages = driver.engine.stages
            stages._swept_at = 0
            stages.sweep()
        assert [each.stage for each in manager.bulk.stages()] == [stage.number]
        with driver._turn:
            stages.keep_s = -1
            stages._swept_at = 0
            stages.sweep()
        queue.send("so that it is carried out", recoverable=True)
        assert manager.bulk.stages() == []


def test_rows_that_take_more_than_a_request_may_are_written(
    alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager)
    schema = schema_with(body="binary")
    writer = writer_to(alpha, queue, schema)
    large = [(bytes([number]) * (1 << 20),) for number in range(18)]
    writer.commit([writer.write(rows(schema, *large))])
    assert bodies(queue) == [each for (each,) in large]
