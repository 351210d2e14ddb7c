"""Batch queries, without a session: which queues, which messages, in which parts."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acceptance.service_process import ServiceProcess, serving, wait_until
from merq.client.manager import Manager
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.spark.columns import BY_NAME
from merq.spark.options import BadOption
from merq.spark.reading import PARTITION_MESSAGES_MIN, BatchReader, Part
from spark.driving_readers import (
    new_queue,
    read_batch,
    rows_of,
    schema_of,
    send_in_transaction,
    title_of,
    values_of,
)

ALL = tuple(BY_NAME)
MANY = 2 * PARTITION_MESSAGES_MIN + 10


def test_a_queue_is_read_in_the_order_in_which_messages_came_and_nothing_is_removed(
    alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager)
    for number in range(4):
        queue.send(f"{number}", priority=number, recoverable=number % 2 == 0)
    options = {"url": alpha.url, "queue": queue.path_name}
    rows = read_batch(options, "value", "priority", "delivery", "sequence", "queue")
    assert values_of(rows) == ["0", "1", "2", "3"]
    assert values_of(rows, "priority") == [0, 1, 2, 3]
    assert values_of(rows, "delivery") == ["recoverable", "express"] * 2
    assert values_of(rows, "sequence") == sorted(values_of(rows, "sequence"))
    assert set(values_of(rows, "queue")) == {title_of(queue)}
    assert len(queue) == 4
    assert read_batch(options, "value") == [{"value": each} for each in "0123"]


def test_every_column_says_what_a_client_is_told(alpha: ServiceProcess, manager: Manager) -> None:
    queue = new_queue(manager, transactional=True)
    send_in_transaction(
        manager, queue, "text", label="lábel", app_specific=9, extension=b"ext",
        correlation_id=bytes(range(20)), response_queue=r".\private$\r",
        acknowledge=5, admin_queue=r".\private$\a",
    )  # fmt: skip
    tx = manager.transaction()
    queue.receive(tx=tx)
    tx.abort()
    later = queue.subqueue("later")
    queue.move(queue.peek(), later)
    later.move(later.peek(), queue)
    seen = queue.peek()
    (row,) = read_batch({"url": alpha.url, "queue": queue.path_name}, *ALL)
    assert row["message_id"] == seen.id
    assert row["lookup_id"] == seen.lookup_id
    assert row["abort_count"] == seen.abort_count == 1
    assert row["move_count"] == seen.move_count == 2
    assert row["label"] == "lábel"
    assert (row["body"], row["body_type"], row["value"]) == (seen.body_bytes, 31, "text")
    assert row["correlation_id"] == bytes(range(20))
    assert (row["app_tag"], row["extension"]) == (9, b"ext")
    assert row["sent_time"] == seen.sent_at
    assert row["arrived_time"] == seen.arrived_at
    assert row["response_queue"] == seen.response_queue
    assert row["admin_queue"] == seen.admin_queue
    assert row["destination"] == seen.destination_queue
    assert row["class"] == "MQMSG_CLASS_NORMAL"
    assert row["source_qm"] == str(manager.guid)
    assert row["delivery"] == "transactional"
    assert (row["first_in_xact"], row["last_in_xact"]) == (True, True)


def test_several_queues_are_read_by_name_or_by_pattern(
    alpha: ServiceProcess, manager: Manager
) -> None:
    for name in ("pattern.a", "pattern.b", "other.c"):
        manager.create_queue(rf".\private$\{name}").send(name)
    url = {"url": alpha.url}
    assert values_of(read_batch(url | {"queues": "pattern.a,other.c"}, "value")) == [
        "pattern.a",
        "other.c",
    ]
    assert values_of(read_batch(url | {"queuePattern": r"PRIVATE$\pattern.*"}, "value")) == [
        "pattern.a",
        "pattern.b",
    ]
    assert values_of(read_batch(url | {"path": r".\private$\other.c"}, "value")) == ["other.c"]
    with pytest.raises(BadOption, match=r"queuePattern: 'nothing\*' matches no queue"):
        read_batch(url | {"queuePattern": "nothing*"}, "value")
    with pytest.raises(BadOption, match="is meant more than once"):
        read_batch(url | {"queues": "other.c,OTHER.C"}, "value")
    with pytest.raises(BadOption, match="no queue is named: set option queue"):
        read_batch(url, "value")


def test_journals_and_subqueues_are_queues_too(alpha: ServiceProcess, manager: Manager) -> None:
    queue = new_queue(manager, journal=True)
    queue.send("done")
    queue.receive()
    queue.send("aside")
    queue.move(queue.peek(), queue.subqueue("later"))
    for suffix, wanted in ((";JOURNAL", "done"), (";later", "aside")):
        name = queue.path_name + suffix
        rows = read_batch({"url": alpha.url, "queue": name}, "value", "queue")
        assert rows == [{"value": wanted, "queue": title_of(queue) + suffix}]


def test_dead_letters_are_read_with_what_killed_them(
    alpha: ServiceProcess, manager: Manager
) -> None:
    plain, ordered = new_queue(manager), new_queue(manager, transactional=True)
    plain.send("late", time_to_be_received=0, dead_letter=True, label="dead")
    send_in_transaction(
        manager, ordered, "late too", time_to_be_received=0, dead_letter=True, label="dead"
    )
    for name, value in ((".\\system$;DEADLETTER", "late"), (".\\system$;DEADXACT", "late too")):
        options = {"url": alpha.url, "queue": name}
        wait_until(lambda options=options: bool(read_batch(options, "label")), "it is dead")  # type: ignore[misc]
        rows = read_batch(options, "label", "value", "class", "queue")
        assert rows == [
            {
                "label": "dead",
                "value": value,
                "class": "MQMSG_CLASS_NACK_RECEIVE_TIMEOUT",
                "queue": name.replace(".", "alpha", 1),
            }
        ]


def test_messages_on_their_way_to_others_are_read_by_their_format_name(
    alpha: ServiceProcess, manager: Manager
) -> None:
    target = r"DIRECT=OS:elsewhere\private$\q"
    outgoing = r"DIRECT=OS:elsewhere\PRIVATE$\q"
    manager.send(target, "outgoing")
    rows = read_batch({"url": alpha.url, "queue": target}, "value", "queue", "destination")
    assert rows == [{"value": "outgoing", "queue": target, "destination": outgoing}]
    with pytest.raises(MessageQueueError, match="no messages wait on alpha for DIRECT=OS:nobody"):
        read_batch({"url": alpha.url, "queue": r"DIRECT=OS:nobody\private$\q"}, "value")


def test_several_managers_are_read_at_once(
    alpha: ServiceProcess, manager: Manager, tmp_path: Path
) -> None:
    queue = new_queue(manager)
    queue.send("from alpha")
    with serving(tmp_path / "data", "--name", "beta") as beta:
        with beta.connect() as other:
            other.create_queue(queue.path_name).send("from beta")
        options = {"url": f"{alpha.url},{beta.url}", "queue": queue.path_name}
        assert read_batch(options, "queue", "value") == [
            {"queue": title_of(queue), "value": "from alpha"},
            {"queue": title_of(queue, "beta"), "value": "from beta"},
        ]
        with pytest.raises(BadOption, match="is meant more than once"):
            read_batch({**options, "url": f"{alpha.url},{alpha.url}"}, "value")


def test_offsets_say_where_a_batch_begins_and_ends(alpha: ServiceProcess, manager: Manager) -> None:
    queue = new_queue(manager)
    queue.send_many(list("abcdef"))
    options = {"url": alpha.url, "queue": queue.path_name}
    numbers = values_of(read_batch(options, "sequence"), "sequence")

    def between(start: object, end: object) -> str:
        offsets = {
            name: each if isinstance(each, str) else json.dumps({title_of(queue): each})
            for name, each in (("startingOffsets", start), ("endingOffsets", end))
        }
        return "".join(values_of(read_batch(options | offsets, "value")))

    assert between("earliest", "latest") == "abcdef"
    assert between(numbers[1], "latest") == "cdef"
    assert between("earliest", numbers[1]) == "ab"
    assert between(numbers[1], numbers[3]) == "cd"
    assert between(-2, -1) == "abcdef"
    assert between(-1, -1) == between("latest", "latest") == between(5, 4) == ""
    assert between(0, 1 << 60) == "abcdef"
    with pytest.raises(BadOption, match=r"an offset is not said for alpha\\private\$"):
        read_batch(options | {"startingOffsets": '{"q": 1}'}, "value")


def test_a_time_says_where_a_batch_begins(alpha: ServiceProcess, manager: Manager) -> None:
    queue = new_queue(manager)
    queue.send("before")
    time.sleep(1.1)
    queue.send("after")
    then = queue.peek_by_lookup_id(
        values_of(
            read_batch({"url": alpha.url, "queue": queue.path_name}, "lookup_id"), "lookup_id"
        )[1]
    ).arrived_at

    def since(text: str, **more: str) -> list[object]:
        options = {"url": alpha.url, "queue": queue.path_name, "startingTimestamp": text}
        return values_of(read_batch({**options, **more}, "value"))

    assert since(then.isoformat()) == ["after"]
    assert since(str(int(then.timestamp()) - 1000)) == ["before", "after"]
    assert since(f"{datetime.now(UTC).timestamp() + 1000:.0f}") == []
    assert since("1", startingOffsets="latest") == []
    zero = json.dumps({title_of(queue): 0})
    assert since(then.isoformat(), startingOffsets=zero) == ["after"]


def test_a_large_queue_is_read_in_parts_if_that_is_wanted(
    alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager)
    for start in range(0, MANY, 1000):
        queue.send_many([f"{each}" for each in range(start, min(start + 1000, MANY))])
    options = {"url": alpha.url, "queue": queue.path_name}
    for wanted, parts in (("1", 1), ("2", 2), ("9", 2)):
        reader = BatchReader({**options, "minPartitions": wanted}, schema_of("value"))
        found = list(reader.partitions())
        assert len(found) == parts
        rows = rows_of(batch for part in found for batch in reader.read(part))
        assert values_of(rows) == [f"{each}" for each in range(MANY)]


def test_a_part_is_the_same_however_often_it_is_read(
    alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager)
    queue.send_many(["a", "b"])
    reader = BatchReader({"url": alpha.url, "queue": queue.path_name}, schema_of("value"))
    (part,) = reader.partitions()
    assert isinstance(part, Part)
    queue.send("later")
    for _ in range(2):
        assert values_of(rows_of(reader.read(part))) == ["a", "b"]


def test_an_empty_queue_has_no_parts(alpha: ServiceProcess, manager: Manager) -> None:
    queue = new_queue(manager)
    reader = BatchReader({"url": alpha.url, "queue": queue.path_name}, schema_of("value"))
    assert list(reader.partitions()) == []
    queue.send("a")
    queue.receive()
    assert list(reader.partitions()) == []


def test_a_queue_that_is_not_there_is_named_in_the_error(alpha: ServiceProcess) -> None:
    with pytest.raises(MessageQueueError, match="missing") as wrong:
        read_batch({"url": alpha.url, "queue": "missing"}, "value")
    assert wrong.value.code == HResult.MQ_ERROR_QUEUE_NOT_FOUND


def test_a_schema_may_have_names_in_another_case(alpha: ServiceProcess, manager: Manager) -> None:
    queue = new_queue(manager)
    queue.send("a", label="l")
    rows = read_batch({"url": alpha.url, "queue": queue.path_name}, "Value", "LABEL")
    assert rows == [{"Value": "a", "LABEL": "l"}]
