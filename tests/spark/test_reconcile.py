"""The flow `reconcile`: what became of every message of a fleet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from acceptance.service_process import wait_until
from kit.pages import ROOT, program_of
from kit.stations import Station, new_address, stations, wait_until_sent
from merq.client.manager import Manager
from merq.client.messages import ACKNOWLEDGE_ARRIVAL, ACKNOWLEDGE_RECEIVE
from merq.errors import MerqError
from merq.spark.flows.reconcile import Settings, distinct, evidence, judged, run
from merq.spark.flows.running import Quiet
from merq.spark.options import BadOption

pytestmark = pytest.mark.xdist_group("spark")

WHEN = datetime(2026, 1, 31, 12, tzinfo=UTC)
PIECE = (
    "message_id string, kind string, place bigint, queue string, class string, "
    "arrived_time timestamp, sent_time timestamp, delivery string, label string, live boolean, "
    "destination string, is_ack boolean"
)
PURGED, EXPIRED = "MQMSG_CLASS_NACK_Q_PURGED", "MQMSG_CLASS_NACK_RECEIVE_TIMEOUT"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Station]]:
    with stations(tmp_path_factory.mktemp("fleet"), "north", "south") as found:
        yield found


def piece(
    kind: str,
    *,
    name: str = "",
    place: int = 1,
    live: bool = True,
    delivery: str = "recoverable",
    to: str = r"DIRECT=OS:a\q",
) -> tuple[Any, ...]:
    is_ack = "acknowledged" in kind
    queue = f"a\\private$\\{kind}"
    return (
        *("id", kind, place, queue, name, WHEN, WHEN, delivery, "label", live),
        *(to or None, is_ack),
    )


DEAD = piece("dead letter", name=PURGED)
CASES: dict[str, tuple[list[tuple[Any, ...]], str]] = {
    "received": ([piece("journal")], "delivered"),
    "received and told": ([piece("journal"), piece("receipt acknowledged")], "delivered"),
    "in its queue": ([piece("queue")], "delivered"),
    "in an archive of its queue": ([piece("queue", live=False)], "delivered"),
    "archived and received": ([piece("queue", live=False), piece("journal", place=2)], "delivered"),
    "arrival told": ([piece("arrival acknowledged")], "delivered"),
    "sent, still kept": ([piece("outgoing"), piece("queue")], "delivered"),
    "sent surely": ([piece("sender journal", delivery="transactional")], "delivered"),
    "received twice": ([piece("journal"), piece("journal", place=2)], "twice"),
    "received and there": ([piece("journal"), piece("queue", place=2)], "twice"),
    "there twice": ([piece("queue"), piece("queue", place=2)], "twice"),
    "dead": ([DEAD], "died"),
    "arrived and dead": ([piece("arrival acknowledged"), DEAD], "died"),
    "told dead": ([piece("refusal acknowledged", name=EXPIRED)], "died"),
    "sent and dead": ([piece("sender journal"), DEAD], "died"),
    "dead and received": ([DEAD, piece("journal")], "disputed"),
    "waits": ([piece("outgoing")], "under way"),
    "only sent": ([piece("sender journal")], "unknown"),
    "only expected": ([piece("expected")], "unknown"),
    "expected and received": ([piece("expected", to=""), piece("journal")], "delivered"),
}


def test_pieces_of_evidence_make_a_verdict(spark: SparkSession) -> None:
    rows = [(name, *each[1:]) for name, (pieces, _) in CASES.items() for each in pieces]
    found = judged(spark.createDataFrame(rows, PIECE)).collect()
    assert len(found) == len(CASES)
    assert {row["message_id"]: row["verdict"] for row in found} == {
        name: verdict for name, (_, verdict) in CASES.items()
    }
    by_name = {row["message_id"]: row for row in found}
    assert by_name["dead"]["reason"] == PURGED
    assert by_name["dead"]["died_in"] == r"a\private$\dead letter"
    assert by_name["waits"]["outgoing_since"] is not None
    assert "acknowledgments" in by_name["only sent"]["missing"]
    assert "nothing was found" in by_name["only expected"]["missing"]
    assert by_name["received"]["missing"] is None
    assert "its receipt was acknowledged" in by_name["received and told"]["proof"]


def sent_between(fleet: list[Station], north: Manager, south: Manager) -> dict[str, str]:
    """Messages of all kinds, by what became of them."""
    kept = south.create_queue(r".\private$\kept", journal=True)
    plain = south.create_queue(r".\private$\plain")
    south.create_queue(r".\private$\sums", transactional=True, journal=True)
    north.create_queue(r".\private$\admin")
    local = north.create_queue(r".\private$\local")
    north.create_queue(r".\private$\other")
    there = fleet[1].direct
    admin = fleet[0].direct("admin")
    ids = {
        "received": north.send(there("kept"), "1", recoverable=True, journal=True),
        "waits": north.send(there("plain"), "2", recoverable=True, label="waits"),
        "told": north.send(
            there("plain"),
            "3",
            recoverable=True,
            admin_queue=admin,
            acknowledge=ACKNOWLEDGE_ARRIVAL | ACKNOWLEDGE_RECEIVE,
        ),
        "copied": north.send(there("plain"), "4", recoverable=True, journal=True),
        "dead": local.send("5", dead_letter=True, label="dead"),
        "under way": north.send(rf"DIRECT=TCP:{new_address()}\private$\q", "6", recoverable=True),
        "several": north.send(
            f"{there('plain')},{fleet[0].direct('other')}", "8", recoverable=True
        ),
    }
    with north.transaction() as tx:
        ids["summed"] = north.send(there("sums"), "7", tx=tx)
    local.purge()
    wait_until_sent(north, part="kept")
    wait_until_sent(north, part="plain")
    kept.receive(timeout=20)
    for name in ("told", "copied"):
        wait_until(lambda name=name: is_there(plain, ids[name]), f"{name} has arrived")  # type: ignore[misc]
        plain.receive_by_id(ids[name])
    south.queue(r".\private$\sums").receive(timeout=20)
    acks = north.queue(r".\private$\admin")
    wait_until(lambda: len(acks) == 2, "both acknowledgments have come")
    return ids


def is_there(queue: Any, message_id: str) -> bool:
    try:
        queue.peek_by_id(message_id)
    except MerqError:
        return False
    return True


def test_every_message_between_queue_managers_is_accounted_for(
    spark: SparkSession, fleet: list[Station], tmp_path: Path
) -> None:
    with fleet[0].connect() as north, fleet[1].connect() as south:
        ids = sent_between(fleet, north, south)
        wait_until(lambda: len(north.queue(r".\system$;JOURNAL")) == 2, "journals have copies")
    never = r"{00000000-0000-0000-0000-00000000000a}\7"
    (tmp_path / "sent.csv").write_text(f"message_id\n{never}\n{ids['received']}\n")
    settings = Settings(
        url=tuple(each.url for each in fleet),
        expected=str(tmp_path / "sent.csv"),
        output=str(tmp_path / "out"),
    )
    summary = run(spark, settings, Quiet())
    shown = program_of(ROOT / "docs" / "guide" / "pipelines.md", "reconciled", settings.output)
    exec(shown, {"spark": spark})  # noqa: S102 - it is our own page
    rows = spark.read.parquet(f"{settings.output}/messages").collect()
    source, _, number = ids["several"].rpartition("\\")
    copies = {ids["several"], rf"{source}\{int(number) + 1}"}  # they have identifiers in a row
    several = [row for row in rows if row["message_id"] in copies]
    assert sorted(row["waits_in"] for row in several) == [
        r"north\private$\other",
        r"south\private$\plain",
    ]
    found = {row["message_id"]: row for row in rows}
    assert {name: found[each]["verdict"] for name, each in ids.items()} == {
        "received": "delivered",
        "waits": "delivered",
        "told": "delivered",
        "copied": "unknown",
        "dead": "died",
        "under way": "under way",
        "summed": "delivered",
        "several": "delivered",
    }
    assert found[never]["verdict"] == "unknown"
    assert len(found) == len(ids) + 2, "what never was and the second copy, nothing else"
    assert len(rows) == len(found), "each copy once"
    assert r"in south\private$\kept;JOURNAL" in found[ids["received"]]["proof"]
    assert found[ids["waits"]]["waits_in"] == r"south\private$\plain"
    assert found[ids["waits"]]["label"] == "waits"
    assert found[ids["dead"]]["reason"] == PURGED
    assert found[ids["dead"]]["died_in"] == r"north\system$;DEADLETTER"
    assert found[ids["under way"]]["outgoing_in"].startswith("DIRECT=TCP:")
    assert summary.figures["delivered"] == 6
    assert summary.figures["under_way"] == 1
    assert summary.finding.startswith("of ")
    assert "1 never delivered" in summary.finding
    page = Path(settings.output, "report.html").read_text()
    assert "the queue was purged first" in page
    assert "<svg" in page
    check_archives(spark, settings, found, tmp_path)


def check_archives(
    spark: SparkSession, settings: Settings, live: dict[str, Any], tmp_path: Path
) -> None:
    """An archive of what is there too changes nothing; one of another receipt does."""
    reader = spark.read.format("msmq").option("url", settings.url[1])
    copies = reader.option("queuePattern", r"private$\*").option("columns", "*").load()
    copies.write.parquet(str(tmp_path / "archive"))
    both = replace(settings, lake=(str(tmp_path / "archive"),))
    rows = judged(distinct(evidence(spark, both, Quiet()))).collect()
    assert {row["message_id"]: row["verdict"] for row in rows} == {
        name: row["verdict"] for name, row in live.items()
    }
    received = [name for name, row in live.items() if row["received_in"] is not None]
    again = copies.where(copies["queue"].endswith(";JOURNAL"))
    again.selectExpr(
        "queue", "message_id", "lookup_id + 1000 as lookup_id", "class", "destination"
    ).write.parquet(str(tmp_path / "again"))
    double = replace(both, lake=(f"{tmp_path}/archive,{tmp_path}/again",), url=())
    rows = judged(distinct(evidence(spark, replace(double, expected=""), Quiet()))).collect()
    assert sorted(row["message_id"] for row in rows if row["verdict"] == "twice") == sorted(
        received
    )
    assert len(received) == 2


def test_an_archive_without_ids_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame([("q",)], "queue string").write.parquet(str(tmp_path / "a"))
    settings = Settings(lake=(str(tmp_path / "a"),), output=str(tmp_path))
    with pytest.raises(BadOption, match="message_id"):
        run(spark, settings, Quiet())
