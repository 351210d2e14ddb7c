"""The flow `archive`: from queues into a lake, each message once."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import DataFrame, SparkSession

from acceptance.service_process import ServiceProcess, serving
from kit.pages import ROOT, program_of
from merq.client.manager import Manager
from merq.client.queues import Queue
from merq.spark.flows.archive import Settings, run
from merq.spark.flows.running import FlowFailed, Quiet, Summary
from merq.spark.lake import reading
from merq.spark.lake.days import with_day
from merq.spark.lake.folder import LakeError
from merq.spark.lake.reading import read_lake

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture
def queue(manager: Manager) -> Queue:
    return manager.create_queue(rf".\private$\archived-{uuid4()}", journal=True)


def name_of(queue: Queue) -> str:
    return queue.properties.path_name


def archive(spark: SparkSession, service: ServiceProcess, lake: Path, **more: object) -> Summary:
    given = {"url": (service.url,), "lake": str(lake)} | more
    return run(spark, Settings(**given), Quiet())  # type: ignore[arg-type]


def texts_in(found: DataFrame) -> list[str]:
    return sorted(row["body_text"] for row in found.select("body_text").collect())


def forget_last_commit(lake: Path) -> None:
    """As if the driver was killed when the batch was in the lake and not in Spark's log."""
    commits = lake / "_checkpoints" / "archive" / "commits"
    last = max((path for path in commits.iterdir() if path.name.isdigit()), key=lambda p: p.name)
    last.unlink()
    (commits / f".{last.name}.crc").unlink(missing_ok=True)


def test_messages_come_into_the_lake_once_by_day_and_queue_and_stay_in_their_queue(
    spark: SparkSession, alpha: ServiceProcess, queue: Queue, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    queue.send_many(["one", "two"], label="first", app_specific=7, recoverable=True)
    queue.send(b"\x00\x01", label="raw", priority=7)
    first = archive(spark, alpha, lake, queue=(name_of(queue),), columns=("label",))
    assert first.figures["messages"] == 3
    assert "app_tag" not in read_lake(spark, str(lake)).columns
    shown = program_of(ROOT / "docs" / "guide" / "pipelines.md", "./lake", str(lake))
    exec(shown, {"spark": spark})  # noqa: S102 - it is our own page
    forget_last_commit(lake)
    queue.send(5, label="later", app_specific=8)
    second = archive(spark, alpha, lake, queue=(name_of(queue),), columns=("label,app_tag",))
    assert second.figures["messages"] == 1
    assert "1 messages archived" in str(second)
    assert "1 batches were found to be there, and were not added again." in str(second)
    assert json.loads(second.as_json())["batches"] == 1
    rows = read_lake(spark, str(lake)).orderBy("sequence").collect()
    assert [row["body_text"] for row in rows] == ["one", "two", None, "5"]
    assert [row["value"] for row in rows] == ["one", "two", None, None]
    assert [row["label"] for row in rows] == ["first", "first", "raw", "later"]
    # A column that came later is null in older rows.
    assert [row["app_tag"] for row in rows] == [None, None, None, 8]
    assert {row["message_id"] for row in rows} == {each.id for each in queue.peek_all()}
    today = datetime.now(UTC).date()
    assert {(row["day"], row["queue"]) for row in rows} == {
        (today, "alpha" + name_of(queue).removeprefix("."))
    }


def test_iceberg_tables_have_the_messages(
    spark: SparkSession, alpha: ServiceProcess, queue: Queue, tmp_path: Path
) -> None:
    queue.send_many(["a", "b"], recoverable=True)
    done = archive(
        spark, alpha, tmp_path, queue=(name_of(queue),), format="iceberg", read_mode="receive"
    )
    assert len(queue) == 0
    assert done.figures["format"] == "iceberg"
    assert texts_in(read_lake(spark, str(tmp_path))) == ["a", "b"]


def test_small_files_of_a_delta_table_are_joined_and_every_message_is_still_there(
    spark: SparkSession, alpha: ServiceProcess, queue: Queue, tmp_path: Path
) -> None:
    queue.send_many(["a", "b", "c"], recoverable=True)
    done = archive(
        spark,
        alpha,
        tmp_path,
        queue=(name_of(queue),),
        max_messages=1,
        compact=True,
        format="delta",
    )
    assert (done.figures["compacted_files"], done.figures["compacted_into"]) == (3, 1)
    assert "3 files became 1." in str(done)
    found = read_lake(spark, str(tmp_path))
    assert texts_in(found) == ["a", "b", "c"]
    assert found.where(f"queue = 'alpha{name_of(queue)[1:]}'".replace("\\", "\\\\")).count() == 3


def test_journals_of_several_managers_come_into_one_lake(
    spark: SparkSession, alpha: ServiceProcess, queue: Queue, tmp_path: Path
) -> None:
    queue.send("from alpha")
    queue.receive()
    with serving(tmp_path / "beta", "--name", "beta") as beta, beta.connect() as other:
        there = other.create_queue(name_of(queue), journal=True)
        there.send("from beta")
        there.receive()
        archive(
            spark,
            alpha,
            tmp_path / "lake",
            queue=(f"{name_of(queue)};JOURNAL",),
            url=(alpha.url, beta.url),
        )
        rows = read_lake(spark, str(tmp_path / "lake")).collect()
        found = {row["queue"].partition("\\")[0]: row["body_text"] for row in rows}
        assert found == {"alpha": "from alpha", "beta": "from beta"}


def test_the_day_of_a_message_is_that_of_its_arrival_in_utc(spark: SparkSession) -> None:
    late = datetime(2026, 11, 16, 23, 30, tzinfo=UTC)
    found = with_day(spark.createDataFrame([(late,)], "arrived_time timestamp")).collect()
    assert [row["day"] for row in found] == [late.date()]


def test_reading_waits_for_a_compaction_and_says_so_if_it_does_not_end(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "archive.json").write_text(
        '{"version": 1, "format": "parquet", "columns": {"message_id": "string"}}'
    )
    assert read_lake(spark, str(tmp_path)).count() == 0
    (tmp_path / "_compacting").mkdir()
    (tmp_path / "_compacting" / "x.json").write_text("{}")
    monkeypatch.setattr(reading, "PATIENCE_S", 0.2)
    with pytest.raises(LakeError, match="--compact, which ends what was begun"):
        read_lake(spark, str(tmp_path))


@pytest.mark.limit("merq.spark.flows.archive.Settings.max_messages")
def test_a_batch_that_failed_half_way_is_there_once_and_then_leaves_the_queue(
    spark: SparkSession, alpha: ServiceProcess, queue: Queue, tmp_path: Path
) -> None:
    queue.send_many(["a", "b", "c"], recoverable=True)
    wanted = {"queue": (name_of(queue),), "read_mode": "receive", "max_messages": 2}
    # The batch is written and committed, and then its files cannot be moved.
    in_the_way = tmp_path / f"day={datetime.now(UTC).date()}"
    in_the_way.touch()
    with pytest.raises(FlowFailed, match="day=") as wrong:
        archive(spark, alpha, tmp_path, **wanted)
    assert "\n" not in str(wrong.value)
    assert len(queue) == 3
    in_the_way.unlink()
    done = archive(spark, alpha, tmp_path, **wanted)
    assert (done.figures["batches_again"], done.figures["batches"]) == (1, 1)
    assert texts_in(read_lake(spark, str(tmp_path))) == ["a", "b", "c"]
    assert len(queue) == 0
