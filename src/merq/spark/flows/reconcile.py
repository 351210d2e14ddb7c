r"""What became of every message of a fleet, proved by what queue managers keep.

Looked at are sender journals (`system$;JOURNAL`), queues and their journals, dead-letter queues,
outgoing queues, and acknowledgments in administration queues, of queue managers that run and of
archives that the flow `archive` wrote. Everything that is found of a message is a piece of evidence
for its id and destination; the pieces are put together by these. A message that was sent to several
queues at once has one id, and a row for each of them.

| verdict | why |
|---|---|
| `delivered` | one receipt: a copy in its queue's journal, or it is in its queue, or an acknowledgment says so, or the sender's journal does (for transactional messages, of which that means it) |
| `twice` | it was received more than once, or was received and is in a queue again |
| `died` | a dead-letter queue has it, or a negative acknowledgment says so |
| `disputed` | it was received, and yet something says that it died |
| `under way` | an outgoing queue has it |
| `unknown` | nothing proves any of these; `missing` says what would |

A message in a queue that keeps no journal, received without acknowledgments, leaves nothing behind:
it is found only if its sender kept a copy or if `expected` names it.

Which journal is read up to where is fixed before the queues are read, so a message that is received
meanwhile is not taken for two. It may be taken for none: then it is `unknown`, and a second run
tells.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sql

from merq.model.message_class import MessageClass
from merq.spark.columns import BY_NAME
from merq.spark.fleet import Member, id_of, members, options_of, read, split, tuples, union
from merq.spark.flows.running import Progress, Summary, failing
from merq.spark.inputs import csv_columns, own_files
from merq.spark.lake.description import read_description
from merq.spark.lake.folder import Folder
from merq.spark.lake.reading import read_lake
from merq.spark.lake.tables import table_of
from merq.spark.options import BadOption, read_options
from merq.spark.pages.charts import bars
from merq.spark.pages.page import Page, page_path

NAME: Final = "reconcile"
SUMMARY: Final = "Proves for each message of a fleet that it was delivered once, or says what else."

VERDICTS: Final = {
    "delivered": "delivered once",
    "twice": "delivered more than once",
    "died": "never delivered",
    "disputed": "received, and yet said to be dead",
    "under way": "still on their way",
    "unknown": "nothing proves what became of them",
}
"""What can be said of a message, and what that means."""

AMISS: Final = ("twice", "died", "disputed", "unknown")
"""Verdicts that somebody should look at."""

SHOWN_MAX: Final = 50
"""Rows of each table on the page."""

_COLUMNS: Final = (
    *("queue", "message_id", "lookup_id", "class", "correlation_id", "arrived_time", "sent_time"),
    *("delivery", "label", "destination", "response_queue"),
)
_KEYS: Final = ("message_id", "destination")
_NO_CORRELATION: Final = bytes(20)
_ARRIVED, _RECEIVED = "MQMSG_CLASS_ACK_REACH_QUEUE", "MQMSG_CLASS_ACK_RECEIVE"
_REPORT, _ORDER = "MQMSG_CLASS_REPORT", "MQMSG_CLASS_ORDER_ACK"
_NEGATIVE: Final = tuple(each.name for each in MessageClass if each.is_negative)
_OWN: Final = ("admin_queue$", "order_queue$", "notify_queue$", "mqis_queue$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    r"""What to look at, and where to write.

    Attributes:
        url: A queue manager, unix:PATH or tls://HOST:PORT; that of this computer if neither one nor
            a lake is named.
        token: For queue managers that ask for one.
        tls_ca: Certificates to trust.
        tls_cert: The client's own certificate.
        tls_key: The key of that.
        lake: An archive of the flow `archive`, or another folder of Parquet with columns of the
            source, `destination` among them.
        catalog: A catalog of PyIceberg's, for archives that need one.
        dead_letter_queue: A queue that applications use as a dead-letter queue of their own, with
            its computer: server\private$\lost.
        expected: A table of Parquet or CSV with a column message_id: messages that were sent, also
            if nothing is found of them.
        output: The folder for the table and the page.
        report: The page's file, if it is to be elsewhere.
        partitions: Into how many parts a queue is split at least, if it has enough messages.
    """

    url: tuple[str, ...] = ()
    token: str = ""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    lake: tuple[str, ...] = ()
    catalog: str = ""
    dead_letter_queue: tuple[str, ...] = ()
    expected: str = ""
    output: str = "reconciled"
    report: str = ""
    partitions: int = 2


def look(settings: Settings) -> None:
    """Looks whether it can be done; nothing is changed.

    Raises:
        BadOption: The settings cannot be, or an archive or the list of expected ids is not there or
            lacks columns.
        LakeError: An archive cannot be read.
        MessageQueueError: A queue manager does not answer.
    """
    page_path(settings.report, settings.output)
    read_options({**options_of(settings), **_parts(settings)})
    lakes = split(settings.lake)
    if settings.url or not lakes:
        members(settings)
    for each in lakes:
        folder = Folder(each)
        description = read_description(folder)
        if description is None:
            # Which columns its files have together is for Spark to find out.
            own_files("lake", each)
        else:
            table_of(folder, description.format, settings.catalog)
            _check_columns(description.columns, each)
    if settings.expected:
        found = csv_columns(own_files("expected", settings.expected))
        if found:
            _check_expected(found, settings.expected)


def _parts(settings: Settings) -> dict[str, str]:
    return {"minPartitions": str(settings.partitions)}


def run(spark: SparkSession, settings: Settings, progress: Progress) -> Summary:
    """Says of each message of a fleet that it was delivered once, or what else became of it.

    The evidence is what queue managers keep: queues, their journals, sender journals, dead letters,
    outgoing queues and acknowledgments; also archives of all that. A table with a verdict for each
    message and a page go into the folder --output. Nothing is changed in queues. With --check the
    exit status is 1 unless every message was delivered once or is on its way.

    merq pipeline run reconcile --url unix:a/merq.sock --url unix:b/merq.sock
    merq pipeline run reconcile --lake ./lake --expected sent.csv

    Raises:
        BadOption: An archive, or the list of expected ids, lacks columns.
        LakeError: An archive cannot be read.
        FlowFailed: Spark could not do it.
        MessageQueueError: A queue manager does not answer.
    """
    look(settings)
    page = page_path(settings.report, settings.output)
    place = f"{settings.output}/messages"
    with failing("reconcile"):
        found = evidence(spark, settings, progress)
        progress.say("putting the evidence together by message id")
        # Everything of a message comes to one task: what follows needs no more exchanges.
        found = found.repartition("message_id")
        if settings.lake:
            found = distinct(found)
        judged(found).write.mode("overwrite").partitionBy("verdict").parquet(place)
        verdicts = spark.read.schema(_SCHEMA).parquet(place)
        return _written(verdicts, settings, page)


# Evidence.


def evidence(spark: SparkSession, settings: Settings, progress: Progress) -> DataFrame:
    """A row for each piece that is found of a message."""
    frames = []
    lakes = split(settings.lake)
    if settings.url or not lakes:
        for member in members(settings):
            queues = member.queues()
            progress.say(f"{member.name}: {len(queues)} queues")
            frames.append(_of_member(spark, settings, member, queues))
    for each in lakes:
        archived = _with_all_columns(_archived(spark, each, settings.catalog), each)
        frames.append(archived.withColumn("live", sql.lit(col=False)))
    pieces = _pieces(union(spark, frames, ""), split(settings.dead_letter_queue))
    if settings.expected:
        pieces = pieces.unionByName(_expected(spark, settings.expected), allowMissingColumns=True)
    return pieces


def _archived(spark: SparkSession, lake: str, catalog: str) -> DataFrame:
    if read_description(Folder(lake)) is not None:
        return read_lake(spark, lake, catalog)
    return spark.read.option("mergeSchema", "true").parquet(lake)


def _of_member(
    spark: SparkSession, settings: Settings, member: Member, queues: Sequence[str]
) -> DataFrame:
    wanted = [each for each in queues if not each.lower().endswith(_OWN)]
    found = read(spark, settings, member, wanted, _COLUMNS, **_parts(settings))
    return found.drop("url", "manager").withColumn("live", sql.lit(col=True))


def _with_all_columns(archived: DataFrame, lake: str) -> DataFrame:
    """An archive may lack columns that were not asked for when it was written."""
    there = set(archived.columns)
    _check_columns(there, lake)
    return archived.select(
        *(
            sql.col(name) if name in there else sql.lit(None).cast(BY_NAME[name].kind).alias(name)
            for name in _COLUMNS
        )
    )


def _check_columns(there: Collection[str], lake: str) -> None:
    # Without destinations, acknowledgments and copies elsewhere would not be told to be of one.
    for name in ("queue", "message_id", "lookup_id", "class", "destination"):
        if name not in there:
            raise BadOption(f"{lake} has no column {name}; it has {', '.join(sorted(there))}")


def _check_expected(there: Collection[str], path: str) -> None:
    if "message_id" not in there:
        raise BadOption(f"expected: {path} has no column message_id")


def _expected(spark: SparkSession, path: str) -> DataFrame:
    is_csv = path.lower().endswith((".csv", ".csv.gz"))
    table = spark.read.option("header", "true").csv(path) if is_csv else spark.read.parquet(path)
    _check_expected(table.columns, path)
    return table.select("message_id", sql.lit("expected").alias("kind")).distinct()


def _pieces(rows: DataFrame, dead_letter_queues: Sequence[str]) -> DataFrame:
    """What each row says, of which message."""
    queue, kind = sql.lower("queue"), sql.col("class")
    own_dead = queue.isin([each.lower() for each in dead_letter_queues])
    is_journal = queue.endswith(";journal")
    is_kept = is_journal | queue.endswith(";deadletter") | queue.endswith(";deadxact") | own_dead
    correlated = sql.col("correlation_id").isNotNull() & (
        sql.col("correlation_id") != sql.lit(_NO_CORRELATION)
    )
    is_ack = kind.isin(_ARRIVED, _RECEIVED, *_NEGATIVE) & ~is_kept & correlated
    what = (
        sql.when(queue.endswith("system$;journal"), "sender journal")
        .when(is_journal, "journal")
        .when(is_kept, "dead letter")
        .when(is_ack & (kind == _ARRIVED), "arrival acknowledged")
        .when(is_ack & (kind == _RECEIVED), "receipt acknowledged")
        .when(is_ack, "refusal acknowledged")
        .when(queue.rlike("^(direct|private|public)="), "outgoing")
        .when(kind.isin(*_NEGATIVE), "dead letter")
        .otherwise("queue")
    )
    computer = sql.when(sql.col("queue").contains("="), "").otherwise(
        sql.substring_index("queue", "\\", 1)
    )
    # Reports and what queue managers tell each other are about messages, not messages.
    return rows.where(~kind.isin(_REPORT, _ORDER)).select(
        sql.when(is_ack, id_of(sql.col("correlation_id")))
        .otherwise(sql.col("message_id"))
        .alias("message_id"),
        what.alias("kind"),
        # The same copy of an archive and of the queue itself, or of a queue and its subqueue.
        sql.xxhash64(computer, "lookup_id").alias("place"),
        *("queue", "class", "arrived_time", "sent_time", "delivery", "label", "live"),
        # [MS-MQQB] 3.1.7.15: the queue that an acknowledgment is about is its response queue.
        sql.when(is_ack, sql.col("response_queue"))
        .otherwise(sql.col("destination"))
        .alias("destination"),
        is_ack.alias("is_ack"),
    )


# Verdicts.


def judged(pieces: DataFrame) -> DataFrame:
    """A row for each message and destination: the verdict and what proves it."""
    counted = pieces.groupBy(*_KEYS).agg(*_figures())
    # Where an expected message was sent is not said: such a row goes if there are others of it.
    others = sql.sum("pieces").over(Window.partitionBy("message_id"))
    counted = counted.withColumn("others", others).where("pieces > 0 or others = 0")
    return counted.select(
        *("message_id", "label", "destination", "delivery", "sent_time"),
        _verdict().alias("verdict"),
        _proof().alias("proof"),
        *("reason", "died_in", "received_in", "waits_in", "outgoing_in", "outgoing_since"),
        *("receipts", "waiting"),
        _missing().alias("missing"),
    )


def distinct(pieces: DataFrame) -> DataFrame:
    """Pieces that were seen twice, live and in an archive, are one."""
    keys = (*_KEYS, "kind", "place")
    others = ("queue", "class", "arrived_time", "sent_time", "delivery", "label")
    return pieces.groupBy(*keys).agg(
        *(sql.max(name).alias(name) for name in others),
        sql.max("live").alias("live"),
        sql.max("is_ack").alias("is_ack"),
    )


def _is(*kinds: str) -> Column:
    return sql.col("kind").isin(*kinds)


def _count(condition: Column) -> Column:
    return sql.sum(condition.cast("int")).cast("int")


def _one(name: str, condition: Column) -> Column:
    return sql.max(sql.when(condition, sql.col(name)))


def _figures() -> list[Column]:
    dead = _is("dead letter", "refusal acknowledged")
    own = ~sql.coalesce(sql.col("is_ack"), sql.lit(col=False))
    return [
        _count(~_is("expected")).alias("pieces"),
        _count(_is("journal")).alias("receipts"),
        _count(_is("queue") & sql.coalesce(sql.col("live"), sql.lit(col=False))).alias("waiting"),
        _count(_is("queue")).alias("arrivals"),
        _count(dead).alias("deaths"),
        _count(_is("arrival acknowledged")).alias("arrival_acks"),
        _count(_is("receipt acknowledged")).alias("receipt_acks"),
        _count(_is("sender journal")).alias("sent_copies"),
        _count(_is("sender journal") & (sql.col("delivery") == "transactional")).alias(
            "sure_copies"
        ),
        _count(_is("outgoing")).alias("outgoing"),
        _one("class", dead).alias("reason"),
        _one("queue", dead).alias("died_in"),
        _one("queue", _is("journal")).alias("received_in"),
        _one("queue", _is("queue")).alias("waits_in"),
        _one("queue", _is("outgoing")).alias("outgoing_in"),
        sql.min(sql.when(_is("outgoing"), sql.col("arrived_time"))).alias("outgoing_since"),
        _one("label", own).alias("label"),
        _one("delivery", own).alias("delivery"),
        _one("sent_time", own).alias("sent_time"),
    ]


def _verdict() -> Column:
    receipts, waiting = sql.col("receipts"), sql.col("waiting")
    received = (receipts > 0) | (sql.col("receipt_acks") > 0)
    arrived = (sql.col("arrivals") > 0) | (sql.col("arrival_acks") > 0)
    return (
        sql.when(received & (sql.col("deaths") > 0), "disputed")
        .when((receipts > 1) | (sql.col("arrivals") > 1), "twice")
        .when(received & (waiting > 0), "twice")
        .when(sql.col("deaths") > 0, "died")
        .when(received | arrived | (sql.col("sure_copies") > 0), "delivered")
        .when(sql.col("outgoing") > 0, "under way")
        .otherwise("unknown")
    )


def _proof() -> Column:
    def told(condition: str, words: str) -> Column:
        return sql.when(sql.expr(condition), sql.lit(words))

    return sql.concat_ws(
        "; ",
        sql.when(sql.col("receipts") > 0, sql.concat(sql.lit("in "), sql.col("received_in"))),
        told("receipt_acks > 0", "its receipt was acknowledged"),
        sql.when(sql.col("arrivals") > 0, sql.concat(sql.lit("in "), sql.col("waits_in"))),
        told("arrival_acks > 0", "its arrival was acknowledged"),
        told("sent_copies > 0", "in its sender's journal"),
        sql.when(sql.col("deaths") > 0, sql.concat(sql.lit("dead in "), sql.col("died_in"))),
        sql.when(sql.col("outgoing") > 0, sql.concat(sql.lit("waits for "), "outgoing_in")),
    )


def _missing() -> Column:
    only_copy = (
        "its sender's journal has it, so somebody took it: switch on the journal of its queue, or "
        "ask for acknowledgments, to know more; if it was received just now, run again"
    )
    nothing = (
        "nothing was found of it: look at all queue managers that it passed, keep journals and "
        "dead letters, and ask for acknowledgments"
    )
    return sql.when(
        _verdict() == "unknown",
        sql.when(sql.col("sent_copies") > 0, only_copy).otherwise(nothing),
    )


_SCHEMA: Final = (
    "message_id string, label string, destination string, delivery string, sent_time timestamp, "
    "verdict string, proof string, reason string, died_in string, received_in string, "
    "waits_in string, outgoing_in string, outgoing_since timestamp, receipts int, waiting int, "
    "missing string"
)


# The page.


def _written(verdicts: DataFrame, settings: Settings, path: Any) -> Summary:
    counted = verdicts.groupBy("verdict").agg(sql.count("*")).collect()
    numbers = dict.fromkeys(VERDICTS, 0) | {row[0]: row[1] for row in counted}
    total = sum(numbers.values())
    page = Page("What became of messages", datetime.now(UTC))
    page.figures({"messages": total, **numbers})
    page.chart(bars("By verdict", [(VERDICTS[name], numbers[name]) for name in VERDICTS]))
    place = sql.coalesce("destination", sql.lit("not said"))
    routes = (
        verdicts.groupBy(place.alias("destination"))
        .agg(
            sql.count("*").alias("messages"),
            *(_count(sql.col("verdict") == name).alias(name) for name in VERDICTS),
        )
        .orderBy(sql.col("messages").desc(), "destination")
    )
    page.heading("By destination")
    page.table(("destination", "messages", *VERDICTS), tuples(routes, SHOWN_MAX))
    if numbers["died"] or numbers["disputed"]:
        _deaths(page, verdicts)
    if numbers["under way"]:
        _under_way(page, verdicts)
    for name in ("twice", "disputed", "unknown"):
        if numbers[name]:
            _named(page, verdicts, name)
    page.write(path)
    lines = [f"{total:,} messages; the table is {settings.output}/messages, the page {path}"]
    lines += [f"{number:,}  {VERDICTS[name]}" for name, number in numbers.items() if number]
    figures = {"messages": total, **{k.replace(" ", "_"): v for k, v in numbers.items()}}
    amiss = [f"{numbers[name]:,} {VERDICTS[name]}" for name in AMISS if numbers[name]]
    finding = f"of {total:,} messages: {', '.join(amiss)}" if amiss else ""
    return Summary(figures={**figures, "page": str(path)}, lines=tuple(lines), finding=finding)


def _deaths(page: Page, verdicts: DataFrame) -> None:
    page.heading("Where and why messages died")
    died = verdicts.where(sql.col("verdict").isin("died", "disputed"))
    rows = died.groupBy("reason", "died_in", "destination").agg(sql.count("*").alias("messages"))
    found = tuples(rows.orderBy(sql.col("messages").desc(), "reason", "died_in"), SHOWN_MAX)
    page.table(
        ("reason", "meaning", "found in", "destination", "messages"),
        [(reason, _meaning(reason), *others) for reason, *others in found],
    )


def _meaning(name: str) -> str:
    known = MessageClass.__members__.get(name)
    return "" if known is None else known.meaning


def _under_way(page: Page, verdicts: DataFrame) -> None:
    page.heading("On their way")
    rows = (
        verdicts.where("verdict = 'under way'")
        .groupBy("outgoing_in")
        .agg(sql.count("*").alias("messages"), sql.min("outgoing_since").alias("oldest"))
        .orderBy("oldest")
    )
    page.table(("outgoing queue", "messages", "the oldest since"), tuples(rows, SHOWN_MAX))


def _named(page: Page, verdicts: DataFrame, name: str) -> None:
    page.heading(f"Some that are {name}")
    page.table(
        ("message", "label", "destination", "evidence", "what is missing"),
        tuples(
            verdicts.where(sql.col("verdict") == name)
            .select("message_id", "label", "destination", "proof", "missing")
            .orderBy("message_id"),
            SHOWN_MAX,
        ),
    )
