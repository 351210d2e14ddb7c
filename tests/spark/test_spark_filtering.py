"""Filters that are carried out before rows go to Spark choose what Spark itself would."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession, datasource

from acceptance.service_process import ServiceProcess
from merq.client.manager import Manager
from merq.client.queues import Queue
from merq.spark.filtering import FILTERED, Filter
from merq.spark.reading import BatchReader
from spark.driving_readers import new_queue, read_batch, schema_of, title_of

pytestmark = pytest.mark.xdist_group("spark")

COLUMNS = ("message_id", *sorted(FILTERED))
LABELS = ["", "a", "b", "ab", "ba", "é", "e", "\U0001d11e", "\uff00", "%", "a_b", "A"]
NOW = datetime.now(UTC).replace(microsecond=0)
SIGNS = {
    datasource.EqualTo: "=",
    datasource.GreaterThan: ">",
    datasource.GreaterThanOrEqual: ">=",
    datasource.LessThan: "<",
    datasource.LessThanOrEqual: "<=",
}
SEARCHES = {
    datasource.StringStartsWith: "startswith",
    datasource.StringEndsWith: "endswith",
    datasource.StringContains: "contains",
}


class Case(NamedTuple):
    """A filter as Spark pushes it, and in SQL."""

    filter: Any
    sql: str


@pytest.fixture(scope="module")
def queue(manager: Manager) -> Queue:
    """A queue of all kinds of messages."""
    found = new_queue(manager)
    for number, label in enumerate(LABELS):
        found.send(f"{number}", label=label, priority=number % 8)
    return found


@pytest.fixture(scope="module")
def options(alpha: ServiceProcess, queue: Queue) -> dict[str, str]:
    return {"url": alpha.url, "queue": queue.path_name}


def literal(value: Any) -> str:
    if isinstance(value, datetime):
        return f"timestamp'{value:%Y-%m-%d %H:%M:%S}Z'"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\")
        return f"'{escaped}'"
    return f"{value}"


def cases(queue: Queue, rows: list[dict[str, Any]]) -> Iterator[Case]:
    numbers = sorted(row["sequence"] for row in rows)
    times = [NOW - timedelta(days=1), rows[0]["arrived_time"], NOW + timedelta(days=1)]
    values: dict[str, list[Any]] = {
        "queue": [title_of(queue), "other"],
        "label": ["a", "", "é", "\U0001d11e", "%"],
        "class": ["MQMSG_CLASS_NORMAL", "MQMSG_CLASS_REPORT"],
        "priority": [0, 3, 7, 100],
        "sequence": [0, numbers[0], numbers[5], numbers[-1], 1 << 60],
        "sent_time": times,
        "arrived_time": times,
    }
    for column, some in values.items():
        for value in some:
            for kind, sign in SIGNS.items():
                yield Case(kind((column,), value), f"`{column}` {sign} {literal(value)}")
            if isinstance(value, str):
                for search, name in SEARCHES.items():
                    sql = f"{name}(`{column}`, {literal(value)})"
                    yield Case(search((column,), value), sql)
        texts = ", ".join(map(literal, some[:2]))
        yield Case(datasource.In((column,), tuple(some[:2])), f"`{column}` in ({texts})")


def test_every_filter_on_every_column_chooses_what_spark_would(
    spark: SparkSession, options: dict[str, str], queue: Queue
) -> None:
    rows = read_batch(options, *COLUMNS)
    assert len(rows) == len(LABELS)
    wanted = list(cases(queue, rows))
    # One query for all: a row says which of the conditions hold for it.
    local = spark.createDataFrame([tuple(each.values()) for each in rows], schema_of(*COLUMNS))
    texts = [f"({each.sql}) as c{number}" for number, each in enumerate(wanted)]
    answers = local.selectExpr("message_id", *texts).collect()
    for number, each in enumerate(wanted):
        chosen = [row["message_id"] for row in answers if row[f"c{number}"]]
        found = read_batch(options, "message_id", filters=[each.filter])
        assert [row["message_id"] for row in found] == chosen, each.sql


def test_several_filters_have_to_hold_together(options: dict[str, str], queue: Queue) -> None:
    filters = [
        datasource.GreaterThan(("priority",), 2),
        datasource.StringContains(("label",), "a"),
        datasource.EqualTo(("queue",), title_of(queue)),
    ]
    assert [row["label"] for row in read_batch(options, "label", filters=filters)] == ["ab", "ba"]


def test_a_column_may_be_filtered_by_that_nobody_sees(options: dict[str, str]) -> None:
    filters = [datasource.EqualTo(("label",), "ab")]
    assert read_batch(options, "value", filters=filters) == [{"value": "3"}]


@pytest.mark.parametrize(
    "found",
    [
        datasource.IsNotNull(("label",)),
        datasource.IsNull(("label",)),
        datasource.Not(datasource.EqualTo(("label",), "a")),
        datasource.EqualNullSafe(("label",), "a"),
        datasource.EqualTo(("value",), "a"),
        datasource.EqualTo(("label", "inner"), "a"),
        datasource.EqualTo(("label",), None),
        datasource.In(("label",), ("a", None)),
    ],
)
def test_other_filters_are_left_to_spark(options: dict[str, str], found: Any) -> None:
    assert Filter.of(found) is None
    reader = BatchReader(options, schema_of("label"))
    assert list(reader.pushFilters([found])) == [found]


def test_queues_that_cannot_be_meant_are_not_read(
    alpha: ServiceProcess, manager: Manager, queue: Queue
) -> None:
    other = new_queue(manager)
    other.send("x")
    names = f"{queue.path_name},{other.path_name}"
    for found in (
        datasource.EqualTo(("queue",), title_of(other)),
        datasource.In(("queue",), (title_of(other), "no such")),
    ):
        reader = BatchReader({"url": alpha.url, "queues": names}, schema_of("value"))
        assert list(reader.pushFilters([found])) == []
        assert len(reader.partitions()) == 1


@pytest.mark.parametrize("pushed", ["true", "false"])
def test_the_same_rows_come_whether_spark_pushes_filters_or_not(
    spark: SparkSession, options: dict[str, str], pushed: str
) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", pushed)
    try:
        frame = spark.read.format("msmq").options(**options).load()
        first = read_batch(options, "sequence")[0]["sequence"]
        for condition, wanted in (
            (f"sequence > {first + 8} and label <> 'A'", LABELS[9:-1]),
            (
                "label like 'a%' and priority between 1 and 3 and sent_time <= now()",
                ["a", "ab", "a_b"],
            ),
            ("label in ('é', 'e') and class = 'MQMSG_CLASS_NORMAL'", ["é", "e"]),
        ):
            found = frame.where(condition).select("label").collect()
            assert [row["label"] for row in found] == wanted, condition
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
