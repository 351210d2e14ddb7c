"""The flow `trace`: ways and latencies of traced messages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import SparkSession

from acceptance.service_process import wait_until
from kit.stations import stations
from merq.client.messages import Message
from merq.spark.flows.running import Quiet
from merq.spark.flows.trace import Settings, hops, links, routes, run

pytestmark = pytest.mark.xdist_group("spark")

A, B, C = (str(UUID(int=number)) for number in (1, 2, 3))
SENT = datetime(2027, 1, 15, 8, tzinfo=UTC)
REPORT = "correlation_id binary, source_qm string, sent_time timestamp, label string, value string"


def report(
    ordinal: int, teller: str, seconds: int, hop_count: int, next_hop: str = ""
) -> tuple[Any, ...]:
    """A report about a message of A, as queue managers write it."""
    correlation = UUID(A).bytes_le + ordinal.to_bytes(4, "little")
    body = "<MESSAGE ID>0000000A</MESSAGE ID>\r\n<TARGET QUEUE>DIRECT=OS:c\\q</TARGET QUEUE>\r\n"
    if next_hop:
        body += f"<NEXT HOP>{next_hop}</NEXT HOP>\r\n<HOP COUNT>01 </HOP COUNT>\r\n"
    label = f"0000:0000000A:{hop_count:02X} received by {A} at 08:00:01 AM Fri,Jan 15 27"
    return correlation, teller, SENT + timedelta(seconds=seconds), label, body


def test_reports_in_any_order_make_hops_in_order(spark: SparkSession) -> None:
    told = [
        report(10, C, 7, 1),
        report(10, B, 5, 1, "10.0.0.3"),
        report(10, B, 2, 1),
        report(10, A, 1, 0, "10.0.0.2"),
        report(11, A, 1, 0, "10.0.0.2"),
        report(11, B, 4, 1),
    ]
    walked = hops(spark.createDataFrame(told, REPORT), []).orderBy("message_id", "hop").cache()
    rows = walked.collect()
    assert [(row["message_id"][-2:], row["hop"], row["manager"]) for row in rows] == [
        ("10", 1, A),
        ("10", 2, B),
        ("10", 3, C),
        ("11", 1, A),
        ("11", 2, B),
    ]
    assert rows[0]["message_id"] == rf"{{{A}}}\10"
    assert [row["from"] for row in rows[:3]] == [None, A, B]
    assert [row["address"] for row in rows[:3]] == [None, "10.0.0.2", "10.0.0.3"]
    assert [row["travel_s"] for row in rows[:3]] == [None, 1, 2]
    assert [row["held_s"] for row in rows[:3]] == [None, 3, None]
    assert {row["target"] for row in rows} == {r"DIRECT=OS:c\q"}
    ways = {row["route"]: row for row in routes(walked).collect()}
    assert set(ways) == {f"{A} → {B} → {C}", f"{A} → {B}"}
    assert ways[f"{A} → {B} → {C}"]["max_s"] == 6
    steps = {(row["from"], row["to"]): row for row in links(walked).collect()}
    assert (steps[A, B]["messages"], steps[A, B]["min_s"], steps[A, B]["max_s"]) == (2, 1, 3)
    walked.unpersist()


def test_traced_messages_between_queue_managers_become_a_table_and_a_page(
    spark: SparkSession, tmp_path: Path
) -> None:
    with (
        stations(tmp_path, "east", "west") as found,
        found[0].connect() as east,
        found[1].connect() as west,
    ):
        west.create_queue(r".\private$\goal")
        reports = east.create_queue(r".\private$\merq_trace")
        reports.send("not a report")
        message = Message(body="x", report_queue=reports.properties.identifier, recoverable=True)
        for _ in range(3):
            east.send(found[1].direct("goal"), message)
        wait_until(lambda: len(reports) == 7, "two reports of each have come")
        settings = Settings(url=tuple(each.url for each in found), output=str(tmp_path / "traces"))
        summary = run(spark, settings, Quiet())
    assert summary.figures["messages"] == 3
    assert summary.figures["hops"] == 6
    assert summary.figures["routes"] == {"east → west": 3}
    rows = spark.read.parquet(f"{settings.output}/hops").collect()
    assert {(row["hop"], row["manager"]) for row in rows} == {(1, "east"), (2, "west")}
    page = Path(settings.output, "report.html").read_text()
    assert "east → west" in page
    assert page.count("<svg") == 2
