"""The flow `migrate`: a queue to another queue, and to RabbitMQ, with a comparison afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from bench.brokers.packages import Unavailable
from bench.brokers.rabbitmq import serving as rabbitmq
from pyspark.sql import SparkSession

from acceptance.service_process import ServiceProcess, serving
from merq.client.asking import id_bytes
from merq.client.manager import Manager
from merq.errors import MessageQueueError
from merq.spark.flows.migrate import Settings, run
from merq.spark.flows.running import FlowFailed, Quiet
from merq.spark.migrating.ledger import compare, digest
from merq.spark.migrating.rabbitmq import digest_of

pytestmark = pytest.mark.xdist_group("spark")

BODIES: list[Any] = ["text", "wörld", b"\x00\xff", 5, None, "text"]


@pytest.fixture(scope="module")
def beta(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with serving(tmp_path_factory.mktemp("beta") / "data", "--name", "beta") as service:
        yield service


@pytest.fixture(scope="module", autouse=True)
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Future[int]]:
    """The port of a RabbitMQ, which takes a while to start: the other tests run meanwhile."""
    folder = tmp_path_factory.mktemp("rabbit") / "broker"
    with ExitStack() as running, ThreadPoolExecutor(1) as thread:
        yield thread.submit(running.enter_context, rabbitmq(folder))


@pytest.fixture
def name(manager: Manager) -> str:
    """A queue with messages."""
    found = f"from_{uuid4().hex[:8]}"
    queue = manager.create_queue(rf".\private$\{found}")
    queue.send_many(BODIES, label="some", recoverable=True, app_specific=7)
    queue.send("urgent", label="other", priority=6)
    return found


def undo_last_commit(output: str) -> None:
    """Spark was killed after the last batch was sent, before it wrote that down."""
    commits = Path(output, "checkpoint", "commits")
    last = max(int(each.name) for each in commits.iterdir() if each.name.isdigit())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)


def test_messages_move_to_a_queue_of_another_queue_manager(
    spark: SparkSession,
    alpha: ServiceProcess,
    beta: ServiceProcess,
    manager: Manager,
    name: str,
    tmp_path: Path,
) -> None:
    settings = Settings(
        url=alpha.url, queue=name, target="goal", target_url=beta.url, output=str(tmp_path / "out")
    )
    settings = replace(settings, group=name)
    with beta.connect() as other:
        with pytest.raises(MessageQueueError, match="goal"):
            run(spark, settings, Quiet())
        goal = other.create_queue(r".\private$\goal")
        goal.send("was there before")
        summary = run(spark, settings, Quiet())
        assert dict(summary.figures) == {
            "moved": 7,
            "found": 7,
            "missing": 0,
            "doubled": 0,
            "strange": 1,
            "exact": True,
        }
        assert not summary.finding
        found = sorted(goal.peek_all(), key=lambda each: each.lookup_id & (1 << 56) - 1)[1:]
        assert [each.body for each in found] == [*BODIES, "urgent"]
        assert [each.label for each in found] == ["some"] * 6 + ["other"]
        assert found[0].app_specific == 7
        assert found[-1].priority == 6
        assert len(manager.queue(rf".\private$\{name}")) == 0


def test_a_batch_that_failed_after_it_was_sent_is_not_sent_twice(
    spark: SparkSession, alpha: ServiceProcess, manager: Manager, name: str, tmp_path: Path
) -> None:
    goal = manager.create_queue(rf".\private$\once_{name}", transactional=True)
    source = manager.queue(rf".\private$\{name}")
    settings = Settings(
        url=alpha.url,
        queue=name,
        target=rf"alpha\private$\once_{name}",
        group=name,
        keep_id="correlation_id",
        output=str(tmp_path),
    )
    ids = [each.id_bytes for each in source.peek_all()]
    in_the_way = tmp_path / "ledger"
    in_the_way.write_text("no folder can be here")
    with pytest.raises(FlowFailed):
        run(spark, settings, Quiet())
    assert len(goal) == 7, "they were sent before the ledger was written"
    in_the_way.unlink()
    late = source.send("late")
    summary = run(spark, settings, Quiet())
    assert (summary.figures["moved"], summary.figures["exact"]) == (8, True)
    assert len(source) == 0
    found = [each.correlation_id for each in goal.peek_all()]
    assert sorted(found) == sorted([*ids, id_bytes(late)])
    # Batches are counted from 0 again now: they are not taken for those of before.
    shutil.rmtree(tmp_path / "checkpoint")
    source.send("again")
    summary = run(spark, replace(settings, keep_id="extension"), Quiet())
    assert (summary.figures["moved"], summary.figures["exact"]) == (1, True)
    assert len(goal) == 9


def test_a_comparison_names_what_is_missing_and_what_is_double(spark: SparkSession) -> None:
    schema = "message_id string, digest string"
    moved = spark.createDataFrame([(each, "d") for each in "abcd"], schema)
    there = spark.createDataFrame([(each, "d") for each in "abbbdx"], schema)
    found = compare(moved, there, "message_id")
    assert (found.moved, found.found, found.missing, found.doubled, found.strange) == (
        *(4, 3, 1, 2, 1),
    )
    assert found.names == ("b: 1 moved, 3 there", "c: 1 moved, 0 there")
    by_digest = compare(moved, there, "digest")
    assert (by_digest.missing, by_digest.doubled) == (0, 2)


def test_both_sides_compute_the_same_digest(spark: SparkSession) -> None:
    rows = [("läbel", 31, b"\x00body"), ("", 0, b""), ("x", 8209, None)]
    frame = spark.createDataFrame(rows, "label string, kind int, body binary")
    found = frame.select(digest(frame["label"], frame["kind"], frame["body"])).collect()
    assert [row[0] for row in found] == [digest_of(a, b, c or b"") for a, b, c in rows]


def test_without_its_connector_kafka_is_refused_with_what_is_needed(
    spark: SparkSession, alpha: ServiceProcess, name: str, tmp_path: Path
) -> None:
    settings = Settings(
        url=alpha.url,
        queue=name,
        to="kafka",
        target="t",
        target_url="127.0.0.1:1",
        output=str(tmp_path),
    )
    with pytest.raises(FlowFailed, match=r"spark-sql-kafka-0-10_2\.13:4\.3\.0"):
        run(spark, settings, Quiet())


def test_messages_move_to_rabbitmq_at_least_once_with_their_ids(
    spark: SparkSession,
    alpha: ServiceProcess,
    manager: Manager,
    name: str,
    broker: Future[int],
    tmp_path: Path,
) -> None:
    pika = pytest.importorskip("pika", reason="the package pika is not installed")
    try:
        amqp = f"amqp://guest:guest@127.0.0.1:{broker.result()}/%2F"
    except Unavailable as missing:
        pytest.skip(f"RabbitMQ cannot be had here: {missing}")
    settings = Settings(
        url=alpha.url,
        queue=name,
        to="rabbitmq",
        target="goal",
        target_url=amqp,
        copy=True,
        output=str(tmp_path / "out"),
    )
    with pytest.raises(FlowFailed, match="goal") as refused:
        run(spark, settings, Quiet())
    assert "guest" not in str(refused.value), "a password is not shown"
    ids = {each.id for each in manager.queue(rf".\private$\{name}").peek_all()}
    connection = pika.BlockingConnection(pika.URLParameters(amqp))
    channel = connection.channel()
    channel.queue_declare("goal", durable=True)
    summary = run(spark, settings, Quiet())
    assert summary.figures["exact"] is True, str(summary)
    assert summary.figures["moved"] == 7
    # A batch that is done again is sent again: the ids are the same, so doubles can be told.
    undo_last_commit(settings.output)
    summary = run(spark, settings, Quiet())
    assert (summary.figures["doubled"], summary.figures["missing"]) == (7, 0)
    assert "1 moved, 2 there" in str(summary)
    seen: dict[str, Any] = {}
    while True:
        method, properties, body = channel.basic_get("goal", auto_ack=True)
        if method is None:
            break
        seen[properties.message_id] = properties, body
    connection.close()
    assert set(seen) == ids
    texts = sorted(body for properties, body in seen.values() if properties.content_encoding)
    assert texts == sorted([b"text", "wörld".encode(), b"text", b"urgent"])
    assert {properties.headers["label"] for properties, _ in seen.values()} == {"some", "other"}
    assert all(properties.delivery_mode == 2 for properties, _ in seen.values())
    assert len(manager.queue(rf".\private$\{name}")) == 7, "a copy leaves them where they are"
