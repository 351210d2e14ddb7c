"""Streams, without a session: offsets, reservations, replays, and what others see meanwhile.

Real queries are in `test_spark_queries.py`; here it is the test that says what Spark would.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from acceptance.service_process import ServiceProcess
from merq.client.manager import Manager
from merq.client.queues import Queue
from merq.errors import MessageQueueError, ReceiveTimeout
from merq.hresult import HResult
from merq.spark.reading import PARTITION_MESSAGES_MIN
from merq.spark.streaming import DataLoss, StreamReader
from spark.driving_readers import (
    Query,
    new_queue,
    schema_of,
    send_in_transaction,
    title_of,
    values_of,
)

GROUP = "g"
How = Callable[[ServiceProcess, Queue], dict[str, str]]


def peeking(alpha: ServiceProcess, queue: Queue, **more: str) -> dict[str, str]:
    return {"url": alpha.url, "queue": queue.path_name, **more}


def receiving(alpha: ServiceProcess, queue: Queue, **more: str) -> dict[str, str]:
    return peeking(alpha, queue, readMode="receive", consumerGroup=GROUP) | more


def planned(query: Query) -> list[object]:
    """Values of the next batch, which there must be."""
    assert query.plan()
    return values_of(query.rows())


def all_of(query: Query) -> list[list[object]]:
    return [values_of(rows) for rows in query.batches()]


# Both ways of reading.


@pytest.mark.parametrize("how", [peeking, receiving])
def test_a_stream_reads_what_is_there_and_then_what_comes(
    alpha: ServiceProcess, manager: Manager, how: How
) -> None:
    queue = new_queue(manager)
    queue.send_many(["a", "b"])
    query = Query(how(alpha, queue))
    assert all_of(query) == [["a", "b"]]
    queue.send("urgent", priority=7)
    queue.send("c")
    assert all_of(query) == [["urgent", "c"]]
    assert len(queue) == (4 if how is peeking else 0)
    query.reader.stop()


@pytest.mark.parametrize("how", [peeking, receiving])
def test_a_batch_has_no_more_messages_than_it_may(
    alpha: ServiceProcess, manager: Manager, how: How
) -> None:
    queue = new_queue(manager)
    queue.send_many(list("abcde"))
    options = how(alpha, queue)
    query = Query({**options, "maxMessagesPerTrigger": "2"}, available_now=True)
    assert all_of(query) == [["a", "b"], ["c", "d"], ["e"]]


@pytest.mark.parametrize("how", [peeking, receiving])
def test_spark_may_say_how_much_a_batch_has_at_most(
    alpha: ServiceProcess, manager: Manager, how: How
) -> None:
    queue = new_queue(manager)
    queue.send_many(list("abcd"))
    query = Query({**how(alpha, queue), "maxMessagesPerTrigger": "3"})
    start = query.reader.initialOffset()
    first = query.reader.latestOffset(start, ReadMaxRows(1))[title_of(queue)]
    assert first == manager.bulk.span(queue).first
    second = query.reader.latestOffset({title_of(queue): first}, ReadAllAvailable())
    assert second == {title_of(queue): manager.bulk.span(queue).last}, "this is for Trigger.Once"


@pytest.mark.limit("merq.spark.streaming.BATCH_MESSAGES_MAX")
@pytest.mark.parametrize("how", [peeking, receiving])
def test_a_batch_without_a_limit_of_its_own_has_no_more_than_any_may_have(
    alpha: ServiceProcess, manager: Manager, how: How, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("merq.spark.streaming.BATCH_MESSAGES_MAX", 2)
    queue = new_queue(manager)
    queue.send_many(list("abc"))
    query = Query(how(alpha, queue))
    assert query.plan()
    assert query.end[title_of(queue)] == manager.bulk.span(queue).first + 1


@pytest.mark.parametrize("how", [peeking, receiving])
def test_a_batch_has_no_more_bytes_than_it_may_but_always_a_message(
    alpha: ServiceProcess, manager: Manager, how: How
) -> None:
    queue = new_queue(manager)
    for each in ("a" * 1000, "b" * 1000, "c" * 3000, "d"):
        queue.send(each.encode())
    options = how(alpha, queue)
    query = Query({**options, "maxBytesPerTrigger": "2500"}, "body")
    sizes = [[len(row["body"]) for row in rows] for rows in query.batches()]
    assert sizes == [[1000, 1000], [3000], [1]]


@pytest.mark.parametrize("how", [peeking, receiving])
def test_a_query_for_what_is_available_now_ends_with_that(
    alpha: ServiceProcess, manager: Manager, how: How
) -> None:
    queue = new_queue(manager)
    queue.send("before")
    options = how(alpha, queue)
    query = Query(options, available_now=True)
    assert planned(query) == ["before"]
    query.commit()
    queue.send("after")
    assert not query.plan()


@pytest.mark.parametrize("how", [peeking, receiving])
def test_a_stream_that_begins_at_the_end_reads_only_what_comes(
    alpha: ServiceProcess, manager: Manager, how: How
) -> None:
    queue = new_queue(manager)
    queue.send("old")
    options = how(alpha, queue)
    query = Query({**options, "startingOffsets": "latest"})
    assert not query.plan()
    queue.send("new")
    assert planned(query) == ["new"]
    query.commit()
    assert not query.plan()
    assert len(queue) == (2 if how is peeking else 1)


@pytest.mark.parametrize("how", [peeking, receiving])
def test_a_stream_may_begin_behind_a_number(
    alpha: ServiceProcess, manager: Manager, how: How
) -> None:
    queue = new_queue(manager)
    queue.send_many(["a", "b", "c"])
    options = how(alpha, queue)
    second = manager.bulk.span(queue).first + 1
    query = Query({**options, "startingOffsets": json.dumps({title_of(queue): second})})
    assert all_of(query) == [["c"]]
    assert queue.peek().body == "a"


@pytest.mark.parametrize("how", [peeking, receiving])
def test_a_stream_may_begin_at_a_time(alpha: ServiceProcess, manager: Manager, how: How) -> None:
    queue = new_queue(manager)
    queue.send("old")
    options = how(alpha, queue)
    late = Query({**options, "startingTimestamp": f"{time.time() + 2000:.0f}"})
    assert not late.plan()
    assert len(queue) == 1
    late.reader.stop()
    early = Query({**options, "startingTimestamp": f"{time.time() - 2000:.0f}"})
    assert planned(early) == ["old"]


@pytest.mark.parametrize("how", [peeking, receiving])
def test_a_batch_is_read_in_parts_if_that_is_wanted(
    alpha: ServiceProcess, manager: Manager, how: How
) -> None:
    count = 9000 if how is receiving else 2 * PARTITION_MESSAGES_MIN
    queue = new_queue(manager)
    for start in range(0, count, 1000):
        queue.send_many([f"{each}" for each in range(start, start + 1000)][: count - start])
    options = how(alpha, queue)
    query = Query({**options, "minPartitions": "2"})
    assert query.plan()
    assert len(query.parts()) == 2
    assert values_of(query.rows()) == [f"{each}" for each in range(count)]
    query.commit()
    assert not query.plan()
    assert len(queue) == (count if how is peeking else 0)


def test_several_queues_have_a_number_each(alpha: ServiceProcess, manager: Manager) -> None:
    one, two = new_queue(manager), new_queue(manager)
    one.send("1")
    names = ",".join(each.path_name for each in (one, two))
    query = Query({"url": alpha.url, "queues": names})
    assert planned(query) == ["1"]
    assert set(query.end) == {title_of(one), title_of(two)}
    query.commit()
    two.send("2")
    assert all_of(query) == [["2"]]


def test_a_stream_waits_a_while_for_messages(alpha: ServiceProcess, manager: Manager) -> None:
    queue = new_queue(manager)
    query = Query(peeking(alpha, queue, pollSeconds="0.3"))
    began = time.monotonic()
    assert not query.plan()
    assert 0.3 <= time.monotonic() - began < 3


# Receiving.


def test_a_batch_that_was_not_committed_is_read_again_by_the_next_query(
    alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager)
    queue.send_many(["a", "b"])
    first = Query(receiving(alpha, queue), "value", "message_id", "sequence")
    assert first.plan()
    rows = first.rows()
    first.reader.stop()
    queue.send("c", priority=7)
    # Spark has both numbers in its offset log, and none in its commit log.
    second = Query(receiving(alpha, queue), "value", "message_id", "sequence", start=first.start)
    second.end = first.end
    assert second.rows() == rows
    second.commit()
    assert second.plan()
    assert values_of(second.rows()) == ["c"]
    assert len(queue) == 1, "a and b are removed, for Spark asked for what follows"


def test_a_first_batch_that_is_run_again_begins_where_it_began(
    alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager)
    queue.send("old")
    first = Query(receiving(alpha, queue, startingOffsets="latest"))
    assert not first.plan()
    queue.send("a")
    assert planned(first) == ["a"]
    queue.send("b")
    # There is nothing in Spark's commit log: it asks again where the query begins.
    second = Query(receiving(alpha, queue, startingOffsets="latest"))
    assert second.reader.initialOffset() == first.start
    first.reader.stop()


def test_a_first_batch_that_cannot_be_run_again_is_a_loss(
    alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager)
    first = Query(peeking(alpha, queue, startingOffsets="latest"))
    assert not first.plan()
    queue.send("a")
    assert first.plan()
    queue.send("b")
    second = Query(peeking(alpha, queue, startingOffsets="latest"))
    second.start, second.end = second.reader.initialOffset(), first.end
    with pytest.raises(DataLoss, match="is to be read again, and would begin at"):
        second.parts()


def test_a_new_checkpoint_of_the_same_group_goes_on_with_what_is_reserved(
    alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager)
    queue.send_many(["a", "b"])
    first = Query(receiving(alpha, queue, maxMessagesPerTrigger="1"))
    assert planned(first) == ["a"]
    first.commit()
    assert planned(first) == ["b"]
    first.reader.stop()
    name = queue.path_name.upper()
    second = Query(receiving(alpha, queue) | {"queue": name})
    assert planned(second) == ["b"]


def test_reserved_messages_are_nobody_elses(alpha: ServiceProcess, manager: Manager) -> None:
    queue = new_queue(manager)
    queue.send_many(["a", "b"])
    query = Query(receiving(alpha, queue, maxMessagesPerTrigger="1"))
    assert planned(query) == ["a"]
    assert queue.receive(timeout=0).body == "b"
    with pytest.raises(ReceiveTimeout):
        queue.receive(timeout=0)
    other = Query(receiving(alpha, queue, consumerGroup="other"))
    assert not other.plan()
    assert values_of(query.rows()) == ["a"]
    query.reader.stop()


def test_two_queries_of_a_group_do_not_read_at_the_same_time(
    alpha: ServiceProcess, manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("merq.spark.streaming.TAKING_OVER_S", 0.3)
    queue = new_queue(manager)
    queue.send_many(["a", "b"])
    first = Query(receiving(alpha, queue, maxMessagesPerTrigger="1"))
    assert planned(first) == ["a"]
    second = Query(receiving(alpha, queue, maxMessagesPerTrigger="1"), start=first.start)
    with pytest.raises(MessageQueueError, match="another reader of the group 'g'") as wrong:
        second.plan()
    assert wrong.value.code == HResult.MQ_ERROR_SHARING_VIOLATION
    first.reader.stop()
    assert planned(second) == ["a"]
    with pytest.raises(MessageQueueError, match="has taken over the group"):
        first.plan()


def test_messages_that_come_back_from_an_aborted_transaction_are_read_then(
    alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager, transactional=True)
    send_in_transaction(manager, queue, "held")
    tx = manager.transaction()
    assert queue.receive(tx=tx).body == "held"
    send_in_transaction(manager, queue, "free")
    query = Query(receiving(alpha, queue))
    assert planned(query) == ["free"]
    query.commit()
    assert not query.plan()
    tx.abort()
    assert planned(query) == ["held"]
    query.commit()
    assert not query.plan()
    assert len(queue) == 0
    query.reader.stop()


def test_what_is_acknowledged_is_received_with_its_journal(
    alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager, journal=True)
    queue.send_many(["a", "b"])
    assert all_of(Query(receiving(alpha, queue))) == [["a", "b"]]
    journal = manager.queue(f"{queue.path_name};JOURNAL")
    assert [each.body for each in journal.peek_all()] == ["a", "b"]


def test_commit_removes_as_well_and_does_no_harm_when_it_is_late(
    alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager)
    queue.send("a")
    query = Query(receiving(alpha, queue))
    assert planned(query) == ["a"]
    query.reader.commit(query.end)
    assert len(queue) == 0
    query.commit()
    queue.send("b")
    assert planned(query) == ["b"]
    query.reader.commit(query.start or {})
    assert values_of(query.rows()) == ["b"]
    query.reader.stop()


# What is lost.


def test_a_batch_that_somebody_released_is_a_loss(alpha: ServiceProcess, manager: Manager) -> None:
    queue = new_queue(manager)
    queue.send("a")
    query = Query(receiving(alpha, queue))
    assert query.plan()
    manager.bulk.release(queue, GROUP)
    with pytest.raises(DataLoss, match=r"is not reserved for the group 'g' any more"):
        query.parts()
    tolerant = Query(receiving(alpha, queue, failOnDataLoss="false"), start=query.start)
    tolerant.end = query.end
    assert tolerant.rows() == []
    query.reader.stop()
    tolerant.commit()
    assert planned(tolerant) == ["a"], "it was given back, and is read as what comes next"


def test_a_purge_in_the_middle_leaves_what_is_reserved(
    alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager)
    queue.send_many(["a", "b"])
    query = Query(receiving(alpha, queue, maxMessagesPerTrigger="1"))
    assert query.plan()
    queue.purge()
    assert values_of(query.rows()) == ["a"]
    query.commit()
    assert not query.plan()
    assert len(queue) == 0


def test_peeking_at_a_queue_that_was_purged_goes_on_behind_it(
    alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager)
    queue.send("a")
    query = Query(peeking(alpha, queue))
    assert query.plan()
    queue.purge()
    assert query.rows() == []
    query.commit()
    queue.send("b")
    assert planned(query) == ["b"]


def test_numbers_ahead_of_the_queue_are_a_loss_unless_that_is_allowed(
    alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager)
    queue.send("a")
    ahead = {title_of(queue): manager.bulk.span(queue).last + 1000}
    with pytest.raises(DataLoss, match="the queue manager was set back"):
        Query(peeking(alpha, queue), start=ahead).plan()
    assert not Query(peeking(alpha, queue, failOnDataLoss="false"), start=ahead).plan()


def test_what_was_read_last_may_be_gone_while_older_messages_stay(
    alpha: ServiceProcess, manager: Manager
) -> None:
    queue = new_queue(manager)
    queue.send("usual", priority=3)
    queue.send("urgent", priority=7)
    query = Query(peeking(alpha, queue))
    assert planned(query) == ["usual", "urgent"]
    query.commit()
    assert queue.receive().body == "urgent"
    assert not query.plan()
    queue.send("next")
    assert planned(query) == ["next"]


def moved_in_turn(manager: Manager) -> tuple[Queue, Callable[[str], None]]:
    """A subqueue, and how a message comes into it, whichever came first of all."""
    queue = new_queue(manager)
    for body in "abc":
        queue.send(body)
    later = queue.subqueue("later")

    def move(body: str) -> None:
        (found,) = [each for each in queue.peek_all() if each.body == body]
        queue.move(found, later)

    return later, move


def test_peeking_at_a_subqueue_misses_what_is_moved_there_after_what_came_later(
    alpha: ServiceProcess, manager: Manager
) -> None:
    later, move = moved_in_turn(manager)
    move("b")
    query = Query(peeking(alpha, later))
    assert planned(query) == ["b"]
    query.commit()
    move("a")
    assert not query.plan()
    move("c")
    assert planned(query) == ["c"]
    assert all_of(Query(peeking(alpha, later))) == [["a", "b", "c"]]


def test_receiving_from_a_subqueue_gets_whatever_is_moved_there(
    alpha: ServiceProcess, manager: Manager
) -> None:
    later, move = moved_in_turn(manager)
    query = Query(receiving(alpha, later))
    for body in "bac":
        move(body)
        assert planned(query) == [body]
        query.commit()
    assert not query.plan()
    assert len(later) == 0


def test_a_stream_of_a_queue_that_is_not_there_fails_at_once(alpha: ServiceProcess) -> None:
    reader = StreamReader({"url": alpha.url, "queue": "missing"}, schema_of("value"))
    with pytest.raises(MessageQueueError, match="missing"):
        reader.initialOffset()


def test_outgoing_queues_can_be_peeked_at_and_not_received(
    alpha: ServiceProcess, manager: Manager
) -> None:
    target = r"DIRECT=OS:away\private$\q"
    manager.send(target, "a")
    options = {"url": alpha.url, "queue": target}
    assert all_of(Query(options)) == [["a"]]
    receive = {**options, "readMode": "receive", "consumerGroup": GROUP}
    with pytest.raises(MessageQueueError, match="is an outgoing queue"):
        Query(receive).plan()
