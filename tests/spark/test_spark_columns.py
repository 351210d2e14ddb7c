"""Which columns there are, how they are chosen, and of which types they are."""

from __future__ import annotations

import pytest

from merq.spark import columns
from merq.spark.options import BadOption
from merq.spark.reading import columns_of
from merq.spark.source import MsmqSource
from spark.driving_readers import schema_of, schema_with


def test_the_columns_are_those_that_are_documented_in_their_order() -> None:
    assert tuple(columns.BY_NAME) == (
        "queue", "message_id", "lookup_id", "sequence", "label", "body", "body_type", "value",
        "priority", "delivery", "class", "correlation_id", "sent_time", "arrived_time", "source_qm",
        "response_queue", "admin_queue", "app_tag", "sender_id", "transaction_id", "first_in_xact",
        "last_in_xact", "extension", "abort_count", "move_count", "soap_envelope", "destination",
        "body_text",
    )  # fmt: skip


def test_rare_columns_are_there_only_if_they_are_asked_for() -> None:
    usual = columns.chosen(())
    assert not columns.RARE & set(usual)
    assert {*usual, *columns.RARE} == set(columns.BY_NAME)
    assert columns.chosen(["*"]) == tuple(columns.BY_NAME)
    assert columns.chosen(["extension", "Body", "body"]) == ("extension", "body")
    assert columns.chosen(["label", "*"])[:2] == ("label", "queue")
    assert len(columns.chosen(["label", "*"])) == len(columns.COLUMNS)


def test_a_column_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(BadOption, match="'lable' is not a column; there are queue, message_id"):
        columns.chosen(["lable"])


def test_the_source_tells_spark_the_columns_that_were_chosen() -> None:
    assert MsmqSource({"columns": "body,sequence"}).schema() == "`body` binary, `sequence` bigint"
    assert MsmqSource({}).schema() == columns.ddl(columns.USUAL)


def test_a_schema_of_the_users_chooses_columns_whatever_their_case() -> None:
    assert columns_of(schema_of("Body", "SEQUENCE")) == ("body", "sequence")


def test_a_schema_with_another_column_or_another_type_is_refused() -> None:
    with pytest.raises(BadOption, match="the schema has a column topic; there are queue"):
        columns_of(schema_with(topic="string"))
    with pytest.raises(BadOption, match="the schema has body as string; it is binary"):
        columns_of(schema_with(body="string"))
