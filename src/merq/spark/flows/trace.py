"""The ways of traced messages, put together from what queue managers reported about them.

[MS-MQQB] 3.1.5.8.9, 3.1.7.1.7: every queue manager on a traced message's way sends reports to the
queue that the message names: when it has got it, and when it sends it on. What is written:

* `hops`, a table of Parquet: a row for each queue manager on the way of each message;
* `routes` and `links`: how long messages took, by their whole way and by each step of it;
* a page with charts.

Reports have times in seconds, each by the clock of the queue manager that tells: a step may seem to
take no time, or less than none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sql

from merq.spark.fleet import (
    Member,
    id_of,
    members,
    name_of,
    read,
    since_option,
    split,
    tuples,
    union,
)
from merq.spark.flows.running import Progress, Summary, failing
from merq.spark.options import BadOption
from merq.spark.pages.charts import Spread, bars, spreads
from merq.spark.pages.page import Page, page_path

NAME: Final = "trace"
SUMMARY: Final = "Makes hops and latencies, as tables and charts, from reports of traced messages."

SHOWN_MAX: Final = 50
"""Rows of each table on the page."""

_COLUMNS: Final = ("class", "correlation_id", "source_qm", "sent_time", "label", "value")
_REPORT: Final = "MQMSG_CLASS_REPORT"
_HOPS: Final = "(?i)^[0-9A-F]{4}:[0-9A-F]{8}:([0-9A-F]{2}) "
_NEXT_HOP: Final = "(?s)<NEXT HOP>(.*?)</NEXT HOP>"
_TARGET: Final = "(?s)<TARGET QUEUE>(.*?)</TARGET QUEUE>"
_UNKNOWN_HOPS: Final = 0xFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Which reports to look at, and where to write.

    Attributes:
        url: A queue manager, unix:PATH or tls://HOST:PORT; that of this computer by default.
        token: For queue managers that ask for one.
        tls_ca: Certificates to trust.
        tls_cert: The client's own certificate.
        tls_key: The key of that.
        queue: A queue that reports go to; queue managers that have none are passed over.
        since: Only what came then or later, such as 2026-01-31T12:00:00Z; all if it is empty.
        output: The folder for the tables and the page.
        report: The page's file, if it is to be elsewhere.
    """

    url: tuple[str, ...] = ()
    token: str = ""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    queue: tuple[str, ...] = ("merq_trace",)
    since: str = ""
    output: str = "traces"
    report: str = ""


def look(settings: Settings) -> None:
    """Looks whether it can be done; nothing is changed.

    Raises:
        BadOption: The settings cannot be, or no queue manager has a queue of reports.
        MessageQueueError: A queue manager does not answer.
    """
    page_path(settings.report, settings.output)
    since_option(settings.since)
    _queues(settings, members(settings))


def _queues(settings: Settings, fleet: Sequence[Member]) -> list[tuple[Member, list[str]]]:
    """The queue managers that have queues of reports, and these."""
    named = split(settings.queue)
    found = []
    for each in fleet:
        wanted = {each.path_of(name).lower() for name in named}
        there = [name for name in each.queues() if name.lower() in wanted]
        if there:
            found.append((each, there))
    if not found:
        raise BadOption(
            f"queue is {', '.join(named)}: none of {', '.join(each.name for each in fleet)} has "
            "such a queue; name the one that reports go to"
        )
    return found


def run(spark: SparkSession, settings: Settings, progress: Progress) -> Summary:
    """Shows which ways traced messages took, and how long each step took.

    A message is traced if its sender names a report queue: every queue manager on its way sends
    reports there. (`merq trace` follows one message, and takes its reports away.) Tables of hops,
    routes and links and a page with charts go into the folder --output. Nothing is changed in
    queues.

    merq pipeline run trace --url unix:a/merq.sock --url unix:b/merq.sock
    merq pipeline run trace --queue reports --since 2026-01-31T12:00:00Z

    Raises:
        BadOption: No queue manager has a queue of reports.
        FlowFailed: Spark could not do it.
        MessageQueueError: A queue manager does not answer.
    """
    page = page_path(settings.report, settings.output)
    fleet = members(settings)
    with failing("trace"):
        reports = _reports(spark, settings, fleet, progress)
        _write(hops(reports, fleet), settings, "hops")
        walked = spark.read.parquet(f"{settings.output}/hops")
        _write(routes(walked), settings, "routes")
        _write(links(walked), settings, "links")
        return _written(spark, settings, page)


def _reports(
    spark: SparkSession, settings: Settings, fleet: Sequence[Member], progress: Progress
) -> DataFrame:
    since = since_option(settings.since)
    frames = []
    for each, there in _queues(settings, fleet):
        progress.say(f"{each.name}: {', '.join(there)}")
        frames.append(read(spark, settings, each, there, _COLUMNS, **since))
    return union(spark, frames, "").where(sql.col("class") == _REPORT)


def _write(frame: DataFrame, settings: Settings, name: str) -> None:
    frame.write.mode("overwrite").parquet(f"{settings.output}/{name}")


def hops(reports: DataFrame, fleet: Sequence[Member]) -> DataFrame:
    """A row for each queue manager on the way of each message, in order."""
    told = reports.select(
        id_of(sql.col("correlation_id")).alias("message_id"),
        sql.col("source_qm").alias("guid"),
        sql.col("sent_time").alias("time"),
        _number(sql.regexp_extract("label", _HOPS, 1)).alias("count"),
        sql.trim(sql.regexp_extract("value", _NEXT_HOP, 1)).alias("next_hop"),
        sql.regexp_extract("value", _TARGET, 1).alias("target"),
    )
    leaves = sql.col("next_hop") != ""
    places = told.groupBy("message_id", "guid").agg(
        sql.min("count").alias("count"),
        sql.min("time").alias("first"),
        sql.min(sql.when(~leaves, sql.col("time"))).alias("arrived"),
        sql.max(sql.when(leaves, sql.struct("time", "next_hop"))).alias("leaving"),
        sql.max("target").alias("target"),
    )
    is_start = sql.col("guid") == sql.substring("message_id", 2, 36)
    # Who passes a message on and who gets it say the same count: the first is before the second.
    way = Window.partitionBy("message_id").orderBy(
        (~is_start).cast("int"), "count", sql.col("leaving").isNull().cast("int"), "first", "guid"
    )
    manager = name_of(sql.col("guid"), fleet)
    left = sql.col("leaving.time")
    before = sql.lag(sql.struct(manager.alias("manager"), "leaving")).over(way)
    return places.select(
        "message_id",
        "target",
        sql.row_number().over(way).alias("hop"),
        manager.alias("manager"),
        "arrived",
        left.alias("left"),
        sql.col("leaving.next_hop").alias("next_hop"),
        before["manager"].alias("from"),
        before["leaving"]["next_hop"].alias("address"),
        _seconds(before["leaving"]["time"], sql.col("arrived")).alias("travel_s"),
        _seconds(sql.col("arrived"), left).alias("held_s"),
    )


def _number(digits: Column) -> Column:
    return sql.when(digits == "", _UNKNOWN_HOPS).otherwise(sql.conv(digits, 16, 10).cast("int"))


def _seconds(start: Column, end: Column) -> Column:
    return end.cast("long") - start.cast("long")


def _spread(name: str) -> list[Column]:
    return [
        sql.count("*").alias("messages"),
        sql.min(name).alias("min_s"),
        sql.percentile_approx(name, 0.5).alias("p50_s"),
        sql.percentile_approx(name, 0.95).alias("p95_s"),
        sql.max(name).alias("max_s"),
    ]


def routes(walked: DataFrame) -> DataFrame:
    """How long messages took, by their whole way."""
    step = sql.struct("hop", "manager")
    ways = walked.groupBy("message_id").agg(
        sql.array_join(sql.sort_array(sql.collect_list(step))["manager"], " → ").alias("route"),
        sql.max("target").alias("target"),
        _seconds(
            sql.min(sql.coalesce("arrived", "left")), sql.max(sql.coalesce("arrived", "left"))
        ).alias("total_s"),
    )
    return ways.groupBy("route", "target").agg(*_spread("total_s"))


def links(walked: DataFrame) -> DataFrame:
    """How long messages took from one queue manager to the next."""
    steps = walked.where(sql.col("from").isNotNull())
    return steps.groupBy("from", sql.col("manager").alias("to")).agg(
        sql.max("address").alias("address"), *_spread("travel_s")
    )


def _written(spark: SparkSession, settings: Settings, path: Any) -> Summary:
    walked = spark.read.parquet(f"{settings.output}/hops")
    messages, steps = walked.agg(sql.countDistinct("message_id"), sql.count("*")).first() or (0, 0)
    by_route = spark.read.parquet(f"{settings.output}/routes")
    by_link = spark.read.parquet(f"{settings.output}/links")
    most = sql.col("messages").desc()
    routes_shown = tuples(by_route.orderBy(most, "route", "target"), SHOWN_MAX)
    links_shown = tuples(by_link.orderBy(most, "from", "to"), SHOWN_MAX)
    page = Page("Ways of traced messages", datetime.now(UTC))
    page.figures({"messages": messages, "hops": steps, "routes": by_route.count()})
    page.text(
        "Times are in seconds, each by the clock of the queue manager that tells: clocks that "
        "differ make steps that seem to take less than no time."
    )
    page.chart(bars("Messages by route", [(row[0], row[2]) for row in routes_shown]))
    page.chart(
        spreads(
            "Seconds for each step: least, half of them, most",
            [
                Spread(f"{start} → {end}", low, middle, high)
                for start, end, _, _, low, middle, _, high in links_shown
                if None not in (low, middle, high)
            ],
            " s",
        )
    )
    figures = ("messages", "min s", "p50 s", "p95 s", "max s")
    page.heading("Routes")
    page.table(("route", "target", *figures), routes_shown)
    page.heading("Steps")
    page.table(("from", "to", "address", *figures), links_shown)
    page.write(path)
    lines = [f"{messages:,} traced messages over {steps:,} hops; the page is {path}"]
    lines += [f"{row[2]:,}  {row[0]}" for row in routes_shown]
    return Summary(
        figures={
            "messages": messages,
            "hops": steps,
            "routes": {row[0]: row[2] for row in routes_shown},
            "page": str(path),
        },
        lines=tuple(lines),
    )
