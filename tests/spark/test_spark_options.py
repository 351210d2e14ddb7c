"""Options: what each of them says, and what is said of those that are wrong."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

from merq.spark.options import KNOWN, BadOption, Options, read_options
from merq.spark.packing import properties_of
from merq.spark.source import MsmqSource
from merq.spark.streaming import StreamReader
from spark.driving_readers import schema_of, schema_with


def refusal(**options: str) -> str:
    with pytest.raises(BadOption) as refused:
        properties_of(read_options(options))
    return str(refused.value)


def test_without_options_everything_is_read_once_and_stays() -> None:
    assert read_options({}) == Options()


@pytest.mark.parametrize(
    ("name", "text", "attribute", "value"),
    [
        ("url", "unix:/a", "urls", ("unix:/a",)),
        ("url", "unix:/a, tcp://b:1", "urls", ("unix:/a", "tcp://b:1")),
        ("token", "t", "token", "t"),
        ("tlsCa", "ca.pem", "ca", "ca.pem"),
        ("tlsCert", "cert.pem", "cert", "cert.pem"),
        ("tlsKey", "key.pem", "key", "key.pem"),
        ("queue", r".\private$\a,b", "queues", (r".\private$\a,b",)),
        ("queues", "a, b,c ", "queues", ("a", "b", "c")),
        ("path", "a", "queues", ("a",)),
        ("queuePattern", r"private$\*", "pattern", r"private$\*"),
        ("columns", "body, label", "columns", ("body", "label")),
        ("mode", "failfast", "mode", "FAILFAST"),
        ("readMode", "Peek", "read_mode", "peek"),
        ("consumerGroup", "g", "group", "g"),
        ("startingOffsets", "Latest", "starting", "latest"),
        ("startingOffsets", r'{"Alpha\\Private$\\Q": 5}', "starting", {r"alpha\private$\q": 5}),
        ("endingOffsets", r'{"a\\private$\\q": -1}', "ending", {r"a\private$\q": -1}),
        ("startingTimestamp", "1700000000", "since", 1_700_000_000),
        ("startingTimestamp", "1700000000999", "since", 1_700_000_000),
        ("startingTimestamp", "2023-11-14T22:13:20Z", "since", 1_700_000_000),
        ("startingTimestamp", "2023-11-14T23:13:20+01:00", "since", 1_700_000_000),
        ("startingTimestamp", "2023-11-14T22:13:20", "since", 1_700_000_000),
        ("maxMessagesPerTrigger", "7", "most", 7),
        ("maxBytesPerTrigger", "8", "most_bytes", 8),
        ("minPartitions", "3", "partitions", 3),
        ("failOnDataLoss", "No", "fail_on_loss", False),
        ("failOnDataLoss", "1", "fail_on_loss", True),
        ("pollSeconds", "0.25", "poll_s", 0.25),
        ("writer", "w", "writer", "w"),
        ("label", "l", "properties", (("label", "l"),)),
        ("priority", "7", "properties", (("priority", 7),)),
        ("journal", "true", "properties", (("journal", True),)),
    ],
)
def test_an_option_says_what_it_says(name: str, text: str, attribute: str, value: Any) -> None:
    assert getattr(read_options({name: text}), attribute) == value


def test_the_case_of_an_options_name_does_not_matter() -> None:
    assert read_options({"QUEUEPATTERN": "*", "Minpartitions": "2"}).partitions == 2


def test_queues_may_be_named_in_several_ways_at_once() -> None:
    found = read_options({"path": "c", "queues": "b", "queue": "a"})
    assert found.queues == ("a", "b", "c")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, {"recoverable": True}),
        ({"delivery": "Express"}, {"recoverable": False}),
        ({"delivery": "recoverable"}, {"recoverable": True}),
        ({"acknowledge": "none"}, {"recoverable": True, "acknowledge": 0}),
        ({"acknowledge": "arrival"}, {"recoverable": True, "acknowledge": 5}),
        ({"acknowledge": "receive"}, {"recoverable": True, "acknowledge": 14}),
        ({"acknowledge": "All"}, {"recoverable": True, "acknowledge": 15}),
        ({"timeToReachQueue": "9"}, {"recoverable": True, "time_to_reach_queue": 9}),
        ({"timeToBeReceived": "9"}, {"recoverable": True, "time_to_be_received": 9}),
        ({"journal": "true"}, {"recoverable": True, "journal": True}),
        ({"deadLetter": "true"}, {"recoverable": True, "dead_letter": True}),
        ({"responseQueue": "r"}, {"recoverable": True, "response_queue": "r"}),
        ({"adminQueue": "a"}, {"recoverable": True, "admin_queue": "a"}),
        ({"appTag": "5"}, {"recoverable": True, "app_specific": 5}),
        ({"label": "l", "priority": "1"}, {"recoverable": True, "label": "l", "priority": 1}),
    ],
)
def test_options_of_the_sink_say_what_messages_are_like(
    given: dict[str, str], wanted: dict[str, Any]
) -> None:
    assert properties_of(read_options(given)) == wanted


@pytest.mark.parametrize(
    ("name", "text", "belongs"),
    [
        ("url", " , ", "separated by commas"),
        ("queues", "", "separated by commas"),
        ("columns", ",", "separated by commas"),
        ("mode", "loose", "PERMISSIVE, DROPMALFORMED, FAILFAST"),
        ("readMode", "take", "peek, receive"),
        ("startingOffsets", "first", "earliest, latest or"),
        ("startingOffsets", "[1]", "earliest, latest or"),
        ("startingOffsets", '{"q": "1"}', "earliest, latest or"),
        ("startingOffsets", '{"q": true}', "earliest, latest or"),
        ("startingOffsets", '{"q": -3}', "earliest, latest or"),
        ("endingOffsets", "{", "earliest, latest or"),
        ("startingTimestamp", "yesterday", "2026-01-31T12:00:00Z"),
        ("startingTimestamp", "²", "2026-01-31T12:00:00Z"),
        ("startingTimestamp", "1960-01-01", "2026-01-31T12:00:00Z"),
        ("startingTimestamp", "99999999999999999", "2026-01-31T12:00:00Z"),
        ("maxMessagesPerTrigger", "0", "a number from 1 to"),
        ("maxMessagesPerTrigger", "many", "a number from 1 to"),
        ("maxBytesPerTrigger", "-1", "a number from 1 to"),
        ("minPartitions", "10001", "a number from 1 to 10000"),
        ("failOnDataLoss", "maybe", "true or false"),
        ("pollSeconds", "-1", "seconds from 0 to 3600"),
        ("pollSeconds", "nan", "seconds from 0 to 3600"),
        ("pollSeconds", "soon", "seconds from 0 to 3600"),
        ("priority", "8", "a number from 0 to 7"),
        ("appTag", "-1", "a number from 0 to 4294967295"),
        ("timeToReachQueue", "x", "a number from 0 to 4294967295"),
        ("timeToBeReceived", "4294967296", "a number from 0 to 4294967295"),
        ("journal", "on", "true or false"),
        ("deadLetter", "", "true or false"),
        ("delivery", "fast", "express, recoverable"),
        ("acknowledge", "some", "none, arrival, receive, all"),
    ],
)
def test_a_bad_value_names_the_option_what_was_found_and_what_belongs_there(
    name: str, text: str, belongs: str
) -> None:
    told = refusal(**{name: text})
    assert f"option {name}:" in told
    assert belongs in told
    assert repr(text) in told or "empty" in told


def test_an_option_that_is_not_known_is_refused_with_those_that_are() -> None:
    told = refusal(topic="a")
    assert "option topic is not known" in told
    assert all(name in told for name in KNOWN)


def test_receiving_needs_a_name_for_who_receives() -> None:
    assert "consumerGroup is not set" in refusal(readMode="receive")
    assert read_options({"readMode": "receive", "consumerGroup": "g"}).group == "g"


def test_sinks_are_shown_options_of_sparks_own() -> None:
    assert read_options({"checkpointLocation": "/c"}) == Options()
    assert read_options({"asyncProgressTrackingEnabled": "false"}) == Options()


def test_a_sink_refuses_to_say_that_a_batch_is_done_before_it_is() -> None:
    source = MsmqSource({"queue": "q", "asyncProgressTrackingEnabled": "True"})
    with pytest.raises(BadOption, match="asyncProgressTrackingEnabled is true"):
        source.streamWriter(schema_with(value="string"), overwrite=False)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, ReadAllAvailable()),
        ({"maxMessagesPerTrigger": "5"}, ReadMaxRows(5)),
        ({"maxBytesPerTrigger": "6"}, ReadMaxBytes(6)),
        ({"maxMessagesPerTrigger": "5", "maxBytesPerTrigger": "6"}, ReadMaxRows(5)),
    ],
)
def test_what_one_micro_batch_takes_is_told_to_spark(
    options: dict[str, str], wanted: object
) -> None:
    reader = StreamReader({"queue": "q", **options}, schema_of("value"))
    assert reader.getDefaultReadLimit() == wanted
