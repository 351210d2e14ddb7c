"""Triage of what could not be delivered, across queue managers, and sending it again.

Without `requeue` the dead-letter queues are only looked at. What is written:

* `counts`, a table of Parquet: messages by reason, destination, sender and hour;
* `requeue`, a list of all of them as CSV or JSON; a copy of it is cut down to those to be sent
  again;
* a page with charts and sample bodies.

With `requeue`, the messages of such a list are sent again to where it says, and leave the
dead-letter queue. A transactional one is received and sent in one transaction: exactly once. Others
are held while they are sent: if this program dies in between, the one that was under way may be
sent a second time when the list is worked off again. Those that are gone are counted as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as sql

from merq.client.asking import by_lookup
from merq.client.manager import Manager
from merq.client.messages import Message, ReceivedMessage
from merq.client.queues import Queue
from merq.errors import MerqError, MessageQueueError
from merq.hresult import HResult
from merq.model.body import TypedBytes
from merq.model.message_class import MessageClass
from merq.model.selecting import Seek
from merq.spark.csv_cells import neutral, restored
from merq.spark.fleet import (
    DEAD_LETTERS,
    Member,
    members,
    name_of,
    read,
    since_option,
    split,
    text_columns,
    tuples,
    union,
)
from merq.spark.flows.running import FlowFailed, Progress, Summary, failing
from merq.spark.inputs import csv_columns, own_files
from merq.spark.pages.charts import bars, columns
from merq.spark.pages.page import Page, page_path

NAME: Final = "deadletters"
SUMMARY: Final = "Shows why messages died, across queue managers, and sends them again."

GROUPS_SHOWN_MAX: Final = 200
"""Reasons, queues, senders that a page shows."""

HOURS_SHOWN_MAX: Final = 24 * 31
SAMPLES_SHOWN_MAX: Final = 100
FAILURES_NAMED_MAX: Final = 20
"""So many messages that could not be sent again are named."""

PROGRESS_MESSAGES: Final = 100
"""So often it is told how far requeuing is."""

_COLUMNS: Final = (
    *("queue", "message_id", "lookup_id", "class", "destination", "source_qm", "arrived_time"),
    *("label", "body", "value"),
)
_LISTED: Final = ("url", "queue", "lookup_id", "message_id", "class", "destination", "label")
_TEXTS: Final = ("url", "queue", "class", "destination", "label")
"""Those of them that could be taken for formulas."""
_CSV: Final = {"header": "true", "quote": '"', "escape": '"', "multiLine": "true"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What to look at, and what becomes of it.

    Attributes:
        url: A queue manager, unix:PATH or tls://HOST:PORT; that of this computer by default.
        token: For queue managers that ask for one.
        tls_ca: Certificates to trust.
        tls_cert: The client's own certificate.
        tls_key: The key of that.
        queue: A queue beside the system's that applications use as a dead-letter queue of their
            own; all queue managers have to have it.
        since: Only what came then or later, such as 2026-01-31T12:00:00Z; all if it is empty.
        output: The folder for the tables, the list and the page.
        report: The page's file, if it is to be elsewhere.
        samples: Bodies that are shown for each reason and destination.
        sample_bytes: How much of a body is shown.
        list_format: What the list is written as and read as: csv or json.
        requeue: A list, a file or a folder, whose messages are sent again; nothing else is done
            then.
    """

    url: tuple[str, ...] = ()
    token: str = ""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    queue: tuple[str, ...] = ()
    since: str = ""
    output: str = "deadletters"
    report: str = ""
    samples: int = 3
    sample_bytes: int = 200
    list_format: Literal["csv", "json"] = "csv"
    requeue: str = ""


def look(settings: Settings) -> None:
    """Looks whether it can be done; nothing is changed.

    Raises:
        BadOption: The settings do not fit together, or the list is not there.
        FlowFailed: The list is another one.
        MessageQueueError: A queue manager does not answer, or does not have a queue.
    """
    if settings.requeue:
        members(settings)
        _check_list(settings)
    else:
        page_path(settings.report, settings.output)
        _fleet(settings)


def _fleet(settings: Settings) -> list[Member]:
    """The queue managers, all of which have all queues."""
    since_option(settings.since)
    fleet = members(settings)
    for member in fleet:
        for name in _queues(settings):
            member.access.manager().queue(member.path_of(name))
    return fleet


def _queues(settings: Settings) -> tuple[str, ...]:
    return (*DEAD_LETTERS, *split(settings.queue))


def _check_list(settings: Settings) -> None:
    """A list that is on another file system is left to Spark."""
    files = own_files("requeue", settings.requeue)
    found = csv_columns(files) if settings.list_format == "csv" else []
    if found and not set(_LISTED) <= {each.lower() for each in found}:
        raise FlowFailed(f"{_list_of(settings)}: it has {', '.join(found)}")


def _list_of(settings: Settings) -> str:
    return f"the list {settings.requeue}, which has to have {', '.join(_LISTED)}"


def run(spark: SparkSession, settings: Settings, progress: Progress) -> Summary:
    """Shows which messages could not be delivered, and why; sends those again that you choose.

    Without --requeue nothing is changed: a page with charts and samples, a table of counts, and a
    list of the messages go into the folder --output. Cut a copy of the list down to what is to be
    sent again, correct destinations in it, and give it back by --requeue. The exit status is 1 if
    one of them could not be sent; and with --check if there are dead letters.

    merq pipeline run deadletters --url unix:a/merq.sock --url unix:b/merq.sock
    merq pipeline run deadletters --since 2026-01-31T12:00:00Z --output ./dead
    merq pipeline run deadletters --requeue chosen.csv

    Raises:
        BadOption: The settings do not fit together.
        FlowFailed: Spark could not do it.
        MessageQueueError: A queue manager does not answer, or does not have a queue.
    """
    if settings.requeue:
        return _requeue(spark, settings, progress)
    page = page_path(settings.report, settings.output)
    fleet = _fleet(settings)
    progress.say(f"looking at the dead letters of {', '.join(each.name for each in fleet)}")
    with failing("dead letters"):
        letters = _letters(spark, settings, fleet)
        counts = _counts(spark, settings, letters, fleet)
        _write_list(settings, letters)
        samples = _samples(settings, letters)
        figures, lines = _written(settings, counts, samples, page)
    total = figures["messages"]
    finding = f"there are {total:,} dead letters" if total else ""
    return Summary(figures=figures, lines=lines, finding=finding)


def _letters(spark: SparkSession, settings: Settings, fleet: Sequence[Member]) -> DataFrame:
    since, queues = since_option(settings.since), _queues(settings)
    frames = [read(spark, settings, each, queues, _COLUMNS, **since) for each in fleet]
    return union(spark, frames, "")


def _counts(
    spark: SparkSession, settings: Settings, letters: DataFrame, fleet: Sequence[Member]
) -> DataFrame:
    """By everything that matters; written, so that it is counted once."""
    place = f"{settings.output}/counts"
    letters.groupBy(
        "manager",
        sql.col("class").alias("reason"),
        "destination",
        name_of(sql.col("source_qm"), fleet).alias("sender"),
        sql.date_trunc("hour", "arrived_time").alias("hour"),
    ).agg(sql.count("*").alias("messages")).write.mode("overwrite").parquet(place)
    return spark.read.parquet(place)


def _write_list(settings: Settings, letters: DataFrame) -> None:
    place = f"{settings.output}/requeue"
    if settings.list_format == "csv":
        cells = [neutral(each) if each in _TEXTS else each for each in _LISTED]
        letters.select(*cells).write.mode("overwrite").options(**_CSV).csv(place)
    else:
        letters.select(*_LISTED).write.mode("overwrite").json(place)


def _samples(settings: Settings, letters: DataFrame) -> list[Row]:
    """The newest of each reason and destination."""
    if settings.samples < 1:
        return []
    newest = Window.partitionBy("class", "destination").orderBy(sql.col("arrived_time").desc())
    size = settings.sample_bytes
    return (
        letters.select(
            "class",
            "destination",
            "queue",
            "message_id",
            "label",
            "arrived_time",
            sql.substring("body", 1, size).alias("body"),
            sql.substring("value", 1, size).alias("value"),
            sql.row_number().over(newest).alias("rank"),
        )
        .where(sql.col("rank") <= settings.samples)
        .orderBy("class", "destination", "rank")
        .limit(SAMPLES_SHOWN_MAX)
        .collect()
    )


def _written(
    settings: Settings, counts: DataFrame, samples: Sequence[Row], path: Any
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The page, and what is told at the end."""
    by = {name: _by(counts, name) for name in ("reason", "destination", "sender", "manager")}
    total = sum(number for _, number in by["manager"])
    hours = counts.groupBy("hour").agg(sql.sum("messages")).orderBy(sql.col("hour").desc())
    page = Page("Dead letters", datetime.now(UTC))
    page.figures(
        {"messages": total, **{name: len(rows) for name, rows in by.items() if name != "manager"}}
    )
    page.chart(bars("By reason", [(_meaning(name), number) for name, number in by["reason"]]))
    page.chart(bars("By destination", by["destination"]))
    page.chart(bars("By sender", by["sender"]))
    page.chart(bars("By queue manager that keeps them", by["manager"]))
    shown = [(f"{hour:%m-%d %H:00}", number) for hour, number in tuples(hours, HOURS_SHOWN_MAX)]
    page.chart(columns("By hour, UTC", shown[::-1]))
    page.heading("Samples")
    page.table(
        ("reason", "destination", "message", "label", "arrived", "body"),
        [
            (
                each["class"],
                each.destination,
                each.message_id,
                each.label,
                each.arrived_time,
                _body(each),
            )
            for each in samples
        ],
    )
    page.heading("Sending them again")
    page.text(
        f"The list is in {settings.output}/requeue. Cut it down to what is to be sent again, and "
        "run this flow with requeue set to the file."
    )
    page.write(path)
    lines = [f"{total:,} dead letters; the page is {path}, the list {settings.output}/requeue"]
    lines += [f"{number:,}  {_meaning(name)}" for name, number in by["reason"]]
    figures = {
        "messages": total,
        "reasons": dict(by["reason"]),
        "destinations": dict(by["destination"]),
        "page": str(path),
    }
    return figures, tuple(lines)


def _by(counts: DataFrame, name: str) -> list[tuple[str, int]]:
    rows = counts.groupBy(name).agg(sql.sum("messages").alias("messages"))
    found = tuples(rows.orderBy(sql.col("messages").desc(), name), GROUPS_SHOWN_MAX)
    return [("not said" if value is None else str(value), number) for value, number in found]


def _meaning(name: str) -> str:
    known = MessageClass.__members__.get(name)
    return name if known is None else f"{known.meaning} ({name})"


def _body(sample: Row) -> str:
    """What of a body can be shown."""
    if sample["value"] is not None:
        return str(sample["value"])
    data = bytes(sample.body or b"")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return data.hex(" ")
    return text if text.isprintable() else data.hex(" ")


# Sending again.


class _Gone(Exception):
    """The message is not where the list says."""


def _requeue(spark: SparkSession, settings: Settings, progress: Progress) -> Summary:
    """Sends the messages of a list again, one by one, in its order."""
    fleet = {each.access.url: each for each in members(settings)}
    _check_list(settings)
    with failing(_list_of(settings)):
        rows = _read_list(spark, settings)
        total = rows.count()
        sent = gone = 0
        failures: list[str] = []
        failed = 0
        for done, row in enumerate(rows.toLocalIterator(), 1):
            try:
                _send_again(fleet, row)
                sent += 1
            except _Gone:
                gone += 1
            except MerqError as wrong:
                failed += 1
                if len(failures) < FAILURES_NAMED_MAX:
                    failures.append(f"{row.message_id}: {wrong}")
            if done % PROGRESS_MESSAGES == 0 or done == total:
                progress.step("messages of the list", done, total)
    lines = [f"{sent:,} of {total:,} messages sent again, {gone:,} were gone, {failed:,} failed"]
    figures = {"listed": total, "sent": sent, "gone": gone, "failed": failed}
    failure = ""
    if failed:
        why = f"the first is {failures[0]}" if failed > 1 else failures[0]
        failure = f"{failed:,} of {total:,} messages could not be sent again; {why}"
    return Summary(figures=figures, lines=(*lines, *failures), failure=failure)


def _read_list(spark: SparkSession, settings: Settings) -> DataFrame:
    reader = spark.read.schema(text_columns(*_LISTED))
    if settings.list_format == "csv":
        found = reader.options(**_CSV, enforceSchema="false").csv(settings.requeue)
        found = found.select(*(restored(each) if each in _TEXTS else each for each in _LISTED))
    else:
        found = reader.json(settings.requeue)
    return found.where(sql.col("lookup_id").isNotNull())


def _send_again(fleet: dict[str, Member], row: Row) -> None:
    member = fleet.get(row.url or "")
    if member is None:
        raise FlowFailed(
            f"the list has the queue manager {row.url}, which url does not name; it names "
            f"{', '.join(fleet)}"
        )
    if not row.destination:
        raise FlowFailed("the list does not say its destination: write a format name there")
    manager = member.access.manager()
    queue = manager.queue(row.queue)
    lookup_id = int(row.lookup_id)
    try:
        is_transactional = queue.peek_by_lookup_id(lookup_id).transactional
        if is_transactional:
            _in_transaction(manager, queue, lookup_id, row)
        else:
            with queue.hold(timeout=0, selection=by_lookup(lookup_id, Seek.CURRENT)) as found:
                manager.send(row.destination, again(_checked(found[0], row)))
    except MessageQueueError as wrong:
        if wrong.code == HResult.MQ_ERROR_MESSAGE_NOT_FOUND:
            raise _Gone from wrong
        raise


def _in_transaction(manager: Manager, queue: Queue, lookup_id: int, row: Row) -> None:
    with manager.transaction() as tx:
        found = queue.receive_by_lookup_id(lookup_id, tx=tx)
        manager.send(row.destination, again(_checked(found, row)), tx=tx)


def _checked(message: ReceivedMessage, row: Row) -> ReceivedMessage:
    if message.id != row.message_id:
        raise FlowFailed(
            f"{row.queue} has {message.id} at {row.lookup_id}: the list is of another time or "
            "another queue manager"
        )
    return message


def again(message: ReceivedMessage) -> Message:
    """The same message, to be sent once more."""
    return Message(
        body=TypedBytes(message.body_type, message.body_bytes),
        label=message.label,
        priority=0 if message.transactional else message.priority,
        recoverable=message.recoverable,
        time_to_reach_queue=message.time_to_reach_queue,
        time_to_be_received=message.time_to_be_received,
        journal=message.journal,
        dead_letter=message.dead_letter,
        acknowledge=message.acknowledge if message.admin_queue else 0,
        admin_queue=message.admin_queue,
        response_queue=message.response_queue,
        correlation_id=message.correlation_id,
        app_specific=message.app_specific,
        extension=message.extension,
    )
