"""Streaming queries in a real session: what is removed when, and what a restart does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from acceptance.service_process import ServiceProcess
from merq.client.manager import Manager
from merq.client.queues import Queue
from spark.driving_readers import new_queue, title_of
from spark.running_queries import (
    Collected,
    ProbingSource,
    run_through,
    running,
    stream_of,
    wait_for,
)

pytestmark = pytest.mark.xdist_group("spark")


def receiving(alpha: ServiceProcess, queue: Queue, **more: str) -> dict[str, str]:
    options = {"url": alpha.url, "queue": queue.path_name, "consumerGroup": "g"}
    return options | {"readMode": "receive"} | more


def bodies(queue: Queue) -> list[object]:
    return [each.body for each in queue.peek_all()]


def test_a_query_for_what_is_available_removes_all_of_it_and_goes_on_when_it_is_started_again(
    spark: SparkSession, alpha: ServiceProcess, manager: Manager, tmp_path: Path
) -> None:
    queue = new_queue(manager)
    queue.send_many(["a", "b", "c"], recoverable=True)
    collected = Collected()
    options = receiving(alpha, queue, maxMessagesPerTrigger="2")
    run_through(stream_of(spark, options), collected, tmp_path / "checkpoint")
    assert collected.batches == {0: ["a", "b"], 1: ["c"]}
    assert len(queue) == 0, "the last batch is removed too"
    queue.send("urgent", priority=7)
    run_through(stream_of(spark, options), collected, tmp_path / "checkpoint")
    assert collected.values == ["a", "b", "c", "urgent"]
    assert len(queue) == 0


def test_a_stream_from_queue_to_queue_reads_what_comes_and_removes_it_afterwards(
    spark: SparkSession, alpha: ServiceProcess, manager: Manager, tmp_path: Path
) -> None:
    queue, target = new_queue(manager), new_queue(manager, transactional=True)
    sink = {"url": alpha.url, "queue": target.path_name}
    frame = stream_of(spark, receiving(alpha, queue))
    with running(frame, sink, tmp_path / "checkpoint") as query:
        for number in range(3):
            queue.send(f"{number}", priority=2 * number, label="l", recoverable=True)
            wait_for(query, lambda number=number: len(target) == number + 1, "it is there")  # type: ignore[misc]
        wait_for(query, lambda: len(queue) == 0, "all of them are removed")
    assert [(each.body, each.label) for each in target.peek_all()] == [
        ("0", "l"),
        ("1", "l"),
        ("2", "l"),
    ]


def test_a_batch_whose_sink_failed_is_the_same_when_the_query_is_started_again(
    spark: SparkSession, alpha: ServiceProcess, manager: Manager, tmp_path: Path
) -> None:
    queue = new_queue(manager)
    queue.send_many(["a", "b"])
    collected = Collected()

    def failing(frame: DataFrame, number: int) -> None:
        collected(frame, number)
        raise ZeroDivisionError("on purpose")

    frame = stream_of(spark, receiving(alpha, queue))
    with pytest.raises(StreamingQueryException, match="on purpose"):
        run_through(frame, failing, tmp_path / "checkpoint")
    assert collected.batches == {0: ["a", "b"]}
    queue.send("c", priority=7)
    assert queue.receive(timeout=0).body == "c", "what is reserved is not for others"
    queue.send("d")
    again = Collected()
    run_through(stream_of(spark, receiving(alpha, queue)), again, tmp_path / "checkpoint")
    assert again.batches == {0: ["a", "b"], 1: ["d"]}
    assert len(queue) == 0


def test_a_batch_that_was_written_but_not_committed_is_not_written_twice(
    spark: SparkSession, alpha: ServiceProcess, manager: Manager, tmp_path: Path
) -> None:
    queue, target = new_queue(manager), new_queue(manager)
    queue.send_many(["a", "b"])
    sink = {"url": alpha.url, "queue": target.path_name}
    commits = tmp_path / "checkpoint" / "commits"
    frame = stream_of(spark, receiving(alpha, queue))
    # Spark asks for what comes next only after this time: nothing is removed before.
    with running(frame, sink, tmp_path / "checkpoint", processingTime="1 hour") as query:
        wait_for(query, (commits / "0").exists, "the batch is committed")
    assert bodies(target) == ["a", "b"]
    assert len(queue) == 2
    # As if the driver had died between the sink's commit and Spark's.
    for each in (commits / "0", commits / ".0.crc"):
        each.unlink(missing_ok=True)
    queue.send("c")
    run_through(stream_of(spark, receiving(alpha, queue)), sink, tmp_path / "checkpoint")
    assert bodies(target) == ["a", "b", "c"]
    assert len(queue) == 0
    assert [each for each in manager.bulk.stages() if each.queue == target.path_name] == []


def test_jobs_of_a_named_writer_within_a_stream_are_the_stream_s_own(
    spark: SparkSession, alpha: ServiceProcess, manager: Manager, tmp_path: Path
) -> None:
    """Another query, or the same with a new checkpoint, counts its batches from 0 as well."""
    queue, target = new_queue(manager), new_queue(manager)
    queue.send_many(["a", "b"])

    def write(frame: DataFrame, number: int) -> None:
        writer = frame.select("value").write.format("msmq").option("url", alpha.url)
        writer = writer.option("queue", target.path_name).option("writer", target.path_name)
        writer.option("batch", number).mode("append").save()

    def write_twice(frame: DataFrame, number: int) -> None:
        write(frame, number)
        write(frame, number)

    run_through(stream_of(spark, receiving(alpha, queue)), write_twice, tmp_path / "checkpoint")
    assert bodies(target) == ["a", "b"]
    write(spark.createDataFrame([("c",)], "value string"), 0)
    assert bodies(target) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "trigger",
    [{}, {"processingTime": "50 milliseconds"}, {"availableNow": True}],
    ids=["default", "processingTime", "availableNow"],
)
def test_spark_asks_for_what_comes_next_only_when_all_before_is_in_its_commit_log(
    spark: SparkSession,
    alpha: ServiceProcess,
    manager: Manager,
    tmp_path: Path,
    trigger: dict[str, Any],
) -> None:
    """Spark does not promise this, and messages are removed by it: a new Spark may differ."""
    queue = new_queue(manager)
    queue.send_many(list("abcd"))
    spark.dataSource.register(ProbingSource)
    options = receiving(alpha, queue, maxMessagesPerTrigger="1", probe=str(tmp_path / "probe"))
    collected = Collected()
    frame = stream_of(spark, options, "msmq_probe")
    with running(frame, collected, tmp_path / "checkpoint", **trigger) as query:
        wait_for(query, lambda: collected.values == list("abcd"), "all is read")
        wait_for(query, lambda: len(queue) == 0, "all is removed")
    found = (tmp_path / "probe").read_text().split()
    assert found[0] == "first"
    assert found.count("yes") >= 4
    assert "no" not in found


def test_peeking_leaves_messages_and_a_restart_goes_on_behind_them(
    spark: SparkSession, alpha: ServiceProcess, manager: Manager, tmp_path: Path
) -> None:
    queue = new_queue(manager, journal=True)
    journal = manager.queue(f"{queue.path_name};JOURNAL")
    queue.send_many(["a", "b"])
    queue.receive_many(2)
    options = {"url": alpha.url, "queue": journal.path_name}
    collected = Collected()
    run_through(stream_of(spark, options), collected, tmp_path / "checkpoint")
    queue.send("c")
    queue.receive()
    run_through(stream_of(spark, options), collected, tmp_path / "checkpoint")
    assert collected.values == ["a", "b", "c"]
    assert len(journal) == 3
    offsets = (tmp_path / "checkpoint" / "offsets" / "0").read_text()
    assert title_of(queue).replace("\\", "\\\\") in offsets
