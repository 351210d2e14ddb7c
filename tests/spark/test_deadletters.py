"""The flow `deadletters`: why messages died, and sending them again."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from acceptance.service_process import ServiceProcess, serving
from merq.client.manager import Manager
from merq.errors import MessageQueueError
from merq.spark.flows.deadletters import Settings, run
from merq.spark.flows.running import FlowFailed, Quiet

pytestmark = pytest.mark.xdist_group("spark")

ODD = '<script>alert("1")</script>, "quoted"\nand a line'
PURGED, DELETED = "MQMSG_CLASS_NACK_Q_PURGED", "MQMSG_CLASS_NACK_Q_DELETED"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ServiceProcess]]:
    folder = tmp_path_factory.mktemp("fleet")
    with ExitStack() as stack:
        yield [
            stack.enter_context(serving(folder / name, "--name", name)) for name in ("one", "two")
        ]


def bury(manager: Manager, name: str, bodies: list[Any], **properties: Any) -> None:
    """Messages that die because their queue is purged."""
    queue = manager.create_queue(rf".\private$\{name}")
    queue.send_many(bodies, dead_letter=True, **properties)
    queue.purge()


def bury_transactional(manager: Manager, name: str, bodies: list[str]) -> None:
    queue = manager.create_queue(rf".\private$\{name}", transactional=True)
    with manager.transaction() as tx:
        queue.send_many(bodies, tx=tx, dead_letter=True)
    queue.purge()


@pytest.fixture(scope="module")
def triaged(
    spark: SparkSession,
    fleet: list[ServiceProcess],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Settings, Any]:
    with fleet[0].connect() as one, fleet[1].connect() as two:
        bury(one, "orders", ["first", "second", b"\xff\x00\x01"], label=ODD, recoverable=True)
        bury_transactional(one, "sums", ["a", "b"])
        bury(two, "bills", ["third"])
        gone = two.create_queue(r".\private$\gone")
        gone.send("fourth", dead_letter=True)
        gone.delete()
    settings = Settings(
        url=tuple(each.url for each in fleet), output=str(tmp_path_factory.mktemp("dead"))
    )
    return settings, run(spark, settings, Quiet())


def listed(settings: Settings) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for each in sorted(Path(settings.output, "requeue").glob("*.csv")):
        with each.open(newline="") as file:
            found += csv.DictReader(file)
    return found


def test_dead_letters_of_all_queue_managers_are_counted_by_reason(
    triaged: tuple[Settings, Any],
) -> None:
    _, summary = triaged
    assert summary.figures["messages"] == 7
    assert summary.figures["reasons"] == {PURGED: 6, DELETED: 1}
    assert summary.figures["destinations"] == {
        r"DIRECT=OS:one\private$\orders": 3,
        r"DIRECT=OS:one\private$\sums": 2,
        r"DIRECT=OS:two\private$\bills": 1,
        r"DIRECT=OS:two\private$\gone": 1,
    }
    assert "the queue was purged first" in str(summary)
    assert summary.finding == "there are 7 dead letters"
    assert not summary.failure


def test_the_table_of_counts_has_sender_and_hour(
    spark: SparkSession, triaged: tuple[Settings, Any]
) -> None:
    settings, _ = triaged
    rows = spark.read.parquet(f"{settings.output}/counts").collect()
    assert {row["sender"] for row in rows} == {"one", "two"}
    assert all(row["hour"].minute == 0 for row in rows)
    assert sum(row["messages"] for row in rows) == 7


def test_the_page_has_charts_and_samples_and_nothing_of_a_message_is_taken_for_html(
    triaged: tuple[Settings, Any],
) -> None:
    settings, _ = triaged
    page = Path(settings.output, "report.html").read_text()
    assert page.count("<svg") == 5
    assert "first" in page
    assert "ff 00 01" in page, "what is no text is shown in hex"
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "prefers-color-scheme:dark" in page
    assert 'name="viewport"' in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")


def test_the_list_names_every_dead_letter_and_where_it_is(triaged: tuple[Settings, Any]) -> None:
    settings, _ = triaged
    rows = listed(settings)
    assert len(rows) == 7
    assert {row["queue"] for row in rows} == {
        r"one\system$;DEADLETTER",
        r"one\system$;DEADXACT",
        r"two\system$;DEADLETTER",
    }
    assert ODD in {row["label"] for row in rows}


def test_what_a_list_names_is_sent_again_and_leaves_the_dead_letter_queue(
    spark: SparkSession, fleet: list[ServiceProcess], triaged: tuple[Settings, Any], tmp_path: Path
) -> None:
    settings, _ = triaged
    chosen = [row for row in listed(settings) if "bills" not in row["destination"]]
    path = tmp_path / "again.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(chosen[0]))
        writer.writeheader()
        writer.writerows(chosen)
    again = Settings(url=settings.url, output=settings.output, requeue=str(path))
    summary = run(spark, again, Quiet())
    assert dict(summary.figures) == {"listed": 6, "sent": 5, "gone": 0, "failed": 1}
    assert "gone" in str(summary), "the queue of one of them is not there any more"
    assert summary.failure.startswith("1 of 6 messages could not be sent again; {")
    with fleet[0].connect() as one, fleet[1].connect() as two:
        orders = list(one.queue(r".\private$\orders").peek_all())
        assert [each.body for each in orders] == ["first", "second", b"\xff\x00\x01"]
        assert {each.label for each in orders} == {ODD}
        assert all(each.recoverable and each.dead_letter for each in orders)
        assert [each.body for each in one.queue(r".\private$\sums").peek_all()] == ["a", "b"]
        assert len(one.queue(r".\system$;DEADLETTER")) == 0
        assert len(one.queue(r".\system$;DEADXACT")) == 0
        assert len(two.queue(r".\system$;DEADLETTER")) == 2
    summary = run(spark, again, Quiet())
    assert dict(summary.figures) == {"listed": 6, "sent": 0, "gone": 5, "failed": 1}


def test_what_is_wrong_is_told_in_a_sentence(
    spark: SparkSession, fleet: list[ServiceProcess], tmp_path: Path
) -> None:
    settings = Settings(url=(fleet[0].url,), output=str(tmp_path))
    with pytest.raises(MessageQueueError, match=r"private\$\\nope"):
        run(spark, replace(settings, queue=("nope",)), Quiet())
    # In another order than it was written: that is for Spark to find out.
    path = tmp_path / "other.csv"
    path.write_text("label,url,queue,lookup_id,message_id,class,destination\n1,2,3,4,5,6,7\n")
    with pytest.raises(FlowFailed, match=r"the list .*other\.csv, which has to have url, queue"):
        run(spark, replace(settings, requeue=str(path)), Quiet())


def test_a_list_of_json_can_be_used_as_well(
    spark: SparkSession, fleet: list[ServiceProcess], tmp_path: Path
) -> None:
    with fleet[0].connect() as one:
        bury(one, "letters", ["x"])
    first = Settings(url=(fleet[0].url,), output=str(tmp_path), list_format="json")
    assert run(spark, first, Quiet()).figures["messages"] == 1
    again = Settings(url=(fleet[0].url,), requeue=str(tmp_path / "requeue"), list_format="json")
    assert run(spark, again, Quiet()).figures["sent"] == 1
    with fleet[0].connect() as one:
        assert one.queue(r".\private$\letters").receive(timeout=0).body == "x"


def test_a_list_that_names_another_message_sends_nothing(
    spark: SparkSession, fleet: list[ServiceProcess], tmp_path: Path
) -> None:
    with fleet[0].connect() as one:
        bury(one, "wrong", ["x"])
        (dead,) = one.queue(r".\system$;DEADLETTER").peek_all()
        path = tmp_path / "list.csv"
        path.write_text(
            "url,queue,lookup_id,message_id,class,destination,label\n"
            rf"{fleet[0].url},one\system$;DEADLETTER,{dead.lookup_id},"
            r"{00000000-0000-0000-0000-000000000000}\1,c,DIRECT=OS:one\private$\wrong,l"
            "\n"
        )
        summary = run(spark, Settings(url=(fleet[0].url,), requeue=str(path)), Quiet())
        assert summary.figures["failed"] == 1
        assert len(one.queue(r".\system$;DEADLETTER")) == 1
        assert len(one.queue(r".\private$\wrong")) == 0
