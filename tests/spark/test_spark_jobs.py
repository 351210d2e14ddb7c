"""Batch jobs in a real session: reading and writing with `format("msmq")`."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from acceptance.service_process import ServiceProcess
from merq.client.manager import Manager
from merq.client.queues import Queue
from merq.spark.columns import BY_NAME, USUAL
from merq.spark.source import register
from spark.driving_readers import new_queue, schema_of

pytestmark = pytest.mark.xdist_group("spark")


def bodies(queue: Queue) -> list[object]:
    return [each.body for each in queue.peek_all()]


def test_a_queue_is_a_table_that_spark_finds_by_itself(
    spark: SparkSession, alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager)
    queue.send_many(["a", "b"], label="l", recoverable=True)
    queue.send("c", label="m")
    reader = spark.read.format("msmq").option("url", alpha.url)
    frame = reader.load(queue.path_name)
    assert frame.columns == list(USUAL)
    grouped = frame.groupBy("label").count().orderBy("label").collect()
    assert [tuple(each) for each in grouped] == [("l", 2), ("m", 1)]
    every = reader.option("columns", "*").load(queue.path_name)
    assert every.columns == list(BY_NAME)
    assert [row["message_id"] for row in every.collect()] == [each.id for each in queue.peek_all()]
    assert len(queue) == 3


def test_an_empty_queue_is_a_table_without_rows(
    spark: SparkSession, alpha: ServiceProcess, manager: Manager
) -> None:
    """Spark makes up a part for a source that says that it has none."""
    queue = new_queue(manager)
    assert spark.read.format("msmq").option("url", alpha.url).load(queue.path_name).collect() == []


def test_a_schema_of_ones_own_is_all_that_is_decoded(
    spark: SparkSession, alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager)
    queue.send("a")
    reader = spark.read.format("msmq").option("url", alpha.url).option("queue", queue.path_name)
    frame = reader.schema(schema_of("Value", "sequence")).load()
    assert frame.columns == ["Value", "sequence"]
    assert [row["Value"] for row in frame.collect()] == ["a"]
    with pytest.raises(PySparkException, match="the schema has a column topic; there are"):
        reader.schema("topic string").load().collect()


def test_the_source_can_be_registered(
    spark: SparkSession, alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager)
    queue.send("a")
    register(spark)
    assert spark.read.format("msmq").option("url", alpha.url).load(queue.path_name).count() == 1


def test_what_is_wrong_is_told_by_its_name(spark: SparkSession, alpha: ServiceProcess) -> None:
    reader = spark.read.format("msmq").option("url", alpha.url)
    with pytest.raises(PySparkException, match="option topic is not known; known are"):
        reader.option("topic", "x").load("q")
    reader = spark.read.format("msmq").option("url", alpha.url)
    with pytest.raises(PySparkException, match=r"private\$\\missing"):
        reader.load("missing").collect()


def test_a_frame_is_written_to_a_queue(
    spark: SparkSession, alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager, transactional=True)
    frame = spark.range(0, 10, 1, 2).selectExpr("string(id) as value", "'l' as label", "id")
    writer = frame.write.format("msmq").option("url", alpha.url).option("queue", queue.path_name)
    writer.mode("append").save()
    assert bodies(queue) == [f"{number}" for number in range(10)]


def test_overwriting_and_wrong_columns_are_refused(
    spark: SparkSession, alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager)
    frame = spark.range(1).selectExpr("string(id) as value")
    writer = frame.write.format("msmq").option("url", alpha.url).option("queue", queue.path_name)
    with pytest.raises(PySparkException, match="a queue is not overwritten"):
        writer.mode("overwrite").save()
    writer = spark.range(1).write.format("msmq").option("queue", queue.path_name)
    with pytest.raises(PySparkException, match="rows have no column body"):
        writer.mode("append").save()
    assert len(queue) == 0


def test_a_job_of_which_a_task_fails_leaves_nothing(
    spark: SparkSession, alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager)
    frame = spark.range(0, 20000, 1, 2).selectExpr(
        "if(id = 19999, raise_error('on purpose'), string(id)) as value"
    )
    writer = frame.write.format("msmq").option("url", alpha.url).option("queue", queue.path_name)
    with pytest.raises(PySparkException, match="on purpose"):
        writer.mode("append").save()
    assert len(queue) == 0
    assert [each for each in manager.bulk.stages() if each.queue == queue.path_name] == []
