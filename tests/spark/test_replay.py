"""The flow `replay`: from an archive into a queue again, each message once."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from acceptance.service_process import ServiceProcess
from merq.client.manager import Manager
from merq.client.queues import Queue
from merq.model.body import encode_body
from merq.spark.columns import USUAL
from merq.spark.flows import replay
from merq.spark.flows.replay import Settings, run
from merq.spark.flows.running import FlowFailed, Quiet, Summary
from merq.spark.lake.committing import place_of
from merq.spark.lake.description import Description, described, settle
from merq.spark.lake.folder import Folder

pytestmark = pytest.mark.xdist_group("spark")

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
SENDER = UUID("c37c0dc8-6f6f-4e28-bf1a-514d4fee396c")


def message(sequence: int, text: str, **more: object) -> dict[str, object]:
    kind, body = encode_body(text)
    given: dict[str, object] = {
        "queue": r"alpha\private$\orders",
        "message_id": f"{{{SENDER}}}\\{sequence}",
        "sequence": sequence,
        "arrived_time": NOON,
        "day": NOON.date(),
        "body": body,
        "body_type": kind,
        "value": text,
        "body_text": text,
        "label": "order",
        "priority": 3,
        "app_tag": sequence,
    }
    return given | more


def put(lake: Path, what: Description, messages: list[dict[str, object]]) -> None:
    """Messages in an archive, without running one."""
    folder = Folder(str(lake))
    settle(folder, what)
    for queue in sorted({str(each["queue"]) for each in messages}):
        rows = [each for each in messages if each["queue"] == queue]
        columns = [
            pa.array([each.get(field.name) for each in rows], field.type) for field in what.arrow
        ]
        place = Path(folder.path(place_of("2026-11-16", queue)))
        place.mkdir(parents=True)
        table = pa.Table.from_arrays(columns, schema=what.arrow)
        pq.write_table(table, place / "0.parquet", row_group_size=3)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("lake")
    what = described("parquet", (*USUAL, "extension"))
    one = [message(each, f"text {each}") for each in range(1, 41, 2)]
    two = [
        message(each, f"text {each}", queue=r"alpha\private$\others") for each in range(2, 41, 2)
    ]
    rich = message(
        99,
        "rich",
        label="rich",
        priority=6,
        correlation_id=bytes(range(20)),
        response_queue=r"DIRECT=OS:alpha\private$\answers",
        extension=b"more",
    )
    put(found, what, [*reversed(one), *two, rich])
    return found


@pytest.fixture
def target(manager: Manager) -> Queue:
    return manager.create_queue(rf".\private$\again-{uuid4()}")


def again(
    spark: SparkSession, alpha: ServiceProcess, lake: Path, target: Queue, **more: object
) -> Summary:
    given = {
        "lake": str(lake),
        "url": alpha.url,
        "queue": target.properties.path_name,
        "where": "label = 'order'",
        "name": f"{target.properties.path_name[-12:]}",
    }
    return run(spark, Settings(**{**given, **more}), Quiet())  # type: ignore[arg-type]


def test_without_send_it_is_only_said_what_would_be_sent(
    spark: SparkSession, alpha: ServiceProcess, lake: Path, target: Queue
) -> None:
    done = again(spark, alpha, lake, target, rate=10.0)
    assert done.figures["messages"] == 40
    assert done.figures["queues"] == {
        r"alpha\private$\orders": 20,
        r"alpha\private$\others": 20,
    }
    assert "Nothing was sent: give --send to do it." in str(done)
    assert "At 10 a second that takes 4 s." in str(done)
    assert f"{{{SENDER}}}\\1 “order” 'text 1'" in str(done)
    assert len(target) == 0


def test_what_was_chosen_is_sent_once_in_order_and_the_second_time_not_again(
    spark: SparkSession,
    alpha: ServiceProcess,
    lake: Path,
    target: Queue,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replay, "BATCH_MESSAGES", 7)
    done = again(spark, alpha, lake, target, send=True)
    assert done.figures["sent"] == 40
    assert [each.body for each in target.peek_all()] == [f"text {each}" for each in range(1, 41)]
    assert again(spark, alpha, lake, target, send=True).figures["sent"] == 0
    assert len(target) == 40


def test_a_replay_that_was_cut_off_goes_on_and_sends_nothing_twice(
    spark: SparkSession,
    alpha: ServiceProcess,
    lake: Path,
    target: Queue,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replay, "BATCH_MESSAGES", 7)
    again(spark, alpha, lake, target, send=True)
    # The queue manager has published more than the folder says: as if the power went in between.
    (noted,) = lake.glob(f"_replays/{target.properties.path_name[-12:]}/done.json")
    noted.write_text('{"batches": 2, "messages": 14}')
    done = again(spark, alpha, lake, target, send=True)
    assert done.figures["sent"] == 0
    assert done.figures["sent_before"] == 26
    assert "26 were found to be sent before" in str(done)
    assert len(target) == 40


def test_messages_are_what_they_were(
    spark: SparkSession, alpha: ServiceProcess, lake: Path, target: Queue
) -> None:
    again(spark, alpha, lake, target, send=True, where="label = 'rich'")
    found = target.receive()
    assert found.body == "rich"
    assert (found.label, found.priority, found.app_specific) == ("rich", 6, 99)
    assert found.correlation_id == bytes(range(20))
    assert found.response_queue.lower() == r"direct=os:alpha\private$\answers"
    assert found.extension == b"more"


def test_former_identifiers_go_where_they_are_wanted(
    spark: SparkSession, alpha: ServiceProcess, lake: Path, target: Queue
) -> None:
    again(spark, alpha, lake, target, send=True, where="sequence = 5", keep_id="extension")
    assert target.receive().extension == f"{{{SENDER}}}\\5".encode()
    again(
        spark, alpha, lake, target, send=True, where="sequence = 5", keep_id="correlation", name="c"
    )
    assert target.receive().correlation_id == SENDER.bytes_le + (5).to_bytes(4, "little")
    with pytest.raises(FlowFailed, match="1 of the messages have an extension of their own"):
        again(
            spark,
            alpha,
            lake,
            target,
            send=True,
            where="sequence = 99",
            keep_id="extension",
            name="e",
        )
    assert len(target) == 0


def test_no_more_are_sent_in_a_second_than_the_rate_says(
    spark: SparkSession, alpha: ServiceProcess, lake: Path, target: Queue
) -> None:
    again(spark, alpha, lake, target, where="sequence <= 15")
    began = time.monotonic()
    again(spark, alpha, lake, target, send=True, where="sequence <= 15", rate=10.0)
    assert time.monotonic() - began > 1.0
    assert len(target) == 15


def test_what_cannot_be_is_told_in_a_sentence(
    spark: SparkSession, alpha: ServiceProcess, lake: Path, target: Queue
) -> None:
    with pytest.raises(FlowFailed, match=r"--where 'labl = 1'.*labl") as wrong:
        again(spark, alpha, lake, target, where="labl = 1")
    assert "\n" not in str(wrong.value)
