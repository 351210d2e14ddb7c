"""The public API: format names, batches, moving, openings, cursors, preparing, changing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import pytest

import merq
from merq.client.manager import Manager
from merq.client.messages import ACKNOWLEDGE_ARRIVAL
from merq.engine.limits import Limits
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.access import Access, Share
from merq.model.message_class import MessageClass
from merq.model.queue import OutgoingState
from merq.model.selecting import Seek
from unit.client.using_managers import ORDERS, refused, waiting_at

REMOTE = r"DIRECT=OS:far\PRIVATE$\orders"
OTHER = r"DIRECT=TCP:10.0.0.7\PRIVATE$\orders"
SAFE = r".\private$\safe"
NAME = UUID("aaaaaaaa-0000-0000-0000-000000000001")


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    with merq.open(tmp_path / "data", name="here") as opened:
        yield opened


def bodies(queue: merq.Queue) -> list[object]:
    return [message.body for message in queue.peek_all()]


# By format name.


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.27", "MS-MQDMPR 3.1.1.3")
def test_messages_to_other_computers_wait_over_a_restart(tmp_path: Path) -> None:
    with merq.open(tmp_path, name="here") as mq:
        sent = mq.send(REMOTE, "safe", recoverable=True, label="l")
        mq.send(REMOTE, "express")
        with mq.transaction() as tx:
            mq.send(OTHER, "together", tx=tx)
        assert [queue.destination for queue in mq.outgoing_queues()] == [REMOTE, OTHER]
        assert mq.queues() == [], "outgoing queues are not among the others"
    with merq.open(tmp_path, name="here") as mq:
        first, second = mq.outgoing_queues()
        assert (bodies(first), bodies(second)) == (["safe"], ["together"])
        message = first.peek(timeout=0)
        assert (message.id, message.label) == (sent, "l")
        assert message.destination_queue.lower() == REMOTE.lower()
        assert second.peek(timeout=0).transactional


def test_one_message_goes_to_several_queues(manager: Manager) -> None:
    here = manager.create_queue(ORDERS)
    name = rf"DIRECT=OS:here\private$\orders,{REMOTE},{OTHER}"
    sent = manager.send(name, "to all", response_queue=ORDERS)
    message = here.receive(timeout=0)
    assert message.body == "to all"
    assert len(message.destination_queues) == 3
    assert {each.lower() for each in message.destination_queues} >= {REMOTE.lower(), OTHER.lower()}
    guid, _, ordinal = sent.partition("\\")
    ids = {message.id, *(queue.peek(timeout=0).id for queue in manager.outgoing_queues())}
    assert ids == {rf"{guid}\{int(ordinal) + at}" for at in range(3)}


def test_a_private_format_name_leads_home_and_abroad(manager: Manager) -> None:
    here = manager.create_queue(ORDERS)
    number = here.properties.number
    manager.send(f"PRIVATE={manager.guid}\\{number:08x}", "home")
    manager.send(f"PRIVATE={NAME}\\{number:08x}", "abroad")
    assert bodies(here) == ["home"]
    (outgoing,) = manager.outgoing_queues()
    assert (bodies(outgoing), outgoing.destination.lower()[:45]) == (
        ["abroad"],
        f"private={NAME}\\"[:45],
    )


def test_more_can_be_sent_through_the_outgoing_queue_to_where_it_leads(manager: Manager) -> None:
    manager.send(REMOTE, "first")
    (outgoing,) = manager.outgoing_queues()
    outgoing.send("second")
    outgoing.send_many(["third"])
    messages = list(outgoing.peek_all())
    assert [message.body for message in messages] == ["first", "second", "third"]
    assert {message.destination_queue.lower() for message in messages} == {REMOTE.lower()}


@pytest.mark.spec("MS-MQDMPR 3.1.4.14", "MS-MQDMPR 3.1.4.15")
def test_an_outgoing_queue_is_paused_looked_into_and_emptied(manager: Manager) -> None:
    manager.send(REMOTE, "x", dead_letter=True)
    (outgoing,) = manager.outgoing_queues()
    outgoing.pause()
    assert outgoing.state is OutgoingState.ON_HOLD
    manager.send(REMOTE, "y")
    outgoing.resume()
    assert (outgoing.state, len(outgoing)) == (OutgoingState.INACTIVE, 2)
    assert outgoing.purge() == 2
    assert bodies(manager.queue(r".\system$;DEADLETTER")) == ["x"]


def test_the_application_has_its_own_dead_letter_queue(manager: Manager) -> None:
    own = manager.create_queue(r".\private$\dead")
    manager.send(REMOTE, "x", dead_letter=True, dead_letter_queue=r".\private$\dead")
    manager.outgoing_queues()[0].purge()
    assert bodies(own) == ["x"]


def test_acknowledgments_go_to_administration_queues_elsewhere(manager: Manager) -> None:
    queue = manager.create_queue(ORDERS)
    queue.send("x", acknowledge=ACKNOWLEDGE_ARRIVAL, admin_queue=r"far\private$\admin")
    (outgoing,) = manager.outgoing_queues()
    assert outgoing.peek(timeout=0).message_class == MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE


# Batches.


def test_many_messages_are_sent_and_received_at_once(manager: Manager) -> None:
    queue = manager.create_queue(ORDERS)
    ids = queue.send_many((n for n in range(500)), label="n")
    assert len(set(ids)) == 500
    first = queue.receive_many(300, timeout=0)
    assert [message.id for message in first] == ids[:300]
    assert [message.body for message in queue.receive_many(300, timeout=0)] == list(range(300, 500))
    with pytest.raises(merq.ReceiveTimeout):
        queue.receive_many(1, timeout=0)
    assert queue.send_many([]) == []


def test_a_batch_has_bodies_and_messages(manager: Manager) -> None:
    queue = manager.create_queue(ORDERS)
    queue.send_many(["a", merq.Message(body="b", priority=7), None])
    assert bodies(queue) == ["b", "a", None]


def test_a_batch_is_part_of_a_transaction(manager: Manager) -> None:
    queue = manager.create_queue(SAFE, transactional=True)
    with manager.transaction() as tx:
        queue.send_many(["a", "b", "c"], tx=tx)
    tx = manager.transaction()
    assert [message.body for message in queue.receive_many(2, timeout=0, tx=tx)] == ["a", "b"]
    tx.abort()
    assert [message.abort_count for message in queue.peek_all()] == [1, 1, 0]


def test_who_waits_for_many_gets_what_comes(manager: Manager) -> None:
    queue = manager.create_queue(ORDERS)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(queue.receive_many, 10, timeout=30)
        waiting_at(manager, queue, 1)
        queue.send_many(["a", "b"])
        assert [message.body for message in waiting.result(30)] == ["a", "b"]


# Subqueues.


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.16")
def test_messages_move_to_subqueues_and_back_also_in_transactions(manager: Manager) -> None:
    queue = manager.create_queue(SAFE, transactional=True)
    with manager.transaction() as tx:
        queue.send_many(["a", "b", "c"], tx=tx)
    later = queue.subqueue("later")
    second = list(queue.peek_all())[1]
    queue.move(second, later)
    assert (bodies(queue), bodies(later)) == (["a", "c"], ["b"])
    with manager.transaction() as tx:
        later.move(second.lookup_id, queue, tx=tx)
        queue.move(queue.peek(timeout=0), later, tx=tx)
    assert (bodies(queue), bodies(later)) == (["b", "c"], ["a"])
    assert [each.move_count for each in (*queue.peek_all(), *later.peek_all())] == [2, 0, 1]
    assert [each.path_name for each in queue.subqueues()] == [SAFE + ";later"]
    assert bodies(manager.queue(SAFE + ";LATER")) == ["a"]


def test_poison_is_set_aside_also_over_restarts(tmp_path: Path) -> None:
    with merq.open(tmp_path) as mq:
        queue = mq.create_queue(SAFE, transactional=True, poison_after=2)
        with mq.transaction() as tx:
            queue.send_many(["bad", "good"], tx=tx)
        tx = mq.transaction()
        queue.receive(timeout=0, tx=tx)
        tx.abort()
    with merq.open(tmp_path) as mq:
        queue = mq.queue(SAFE)
        assert queue.peek(timeout=0).abort_count == 1
        tx = mq.transaction()
        queue.receive(timeout=0, tx=tx)
        tx.abort()
        # Set aside when the abort returns, not some time later.
        assert [(each.path_name, bodies(each)) for each in queue.subqueues()] == [
            (f"{SAFE};poison", ["bad"])
        ]
        assert bodies(queue) == ["good"]


def test_what_a_message_says_of_itself(tmp_path: Path) -> None:
    with merq.open(tmp_path) as mq:
        queue = mq.create_queue(ORDERS)
        queue.send("x", label="l", recoverable=True)
        found = queue.receive(timeout=0)
        assert found.source_machine == mq.guid
        assert found.arrived_at == found.sent_at
        assert found.details.user_header.fields.source_queue_manager == mq.guid
        assert found.details.base_header.packet_size == len(found.packet)


def test_what_cannot_be_changed_is_named_with_what_can(tmp_path: Path) -> None:
    with merq.open(tmp_path) as mq:
        queue = mq.create_queue(ORDERS)
        before = queue.properties
        with pytest.raises(merq.MessageQueueError, match=r"colour.*journal_quota_kb.*quota_kb"):
            queue.change(colour="red")
        assert queue.properties == before


# Openings.


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.5", "MS-MQDMPR 3.1.7.1.6")
def test_a_queue_is_opened_alone_and_closed_by_its_block(manager: Manager) -> None:
    queue = manager.create_queue(ORDERS)
    queue.send_many(["a", "b", "c"])
    code = HResult.MQ_ERROR_SHARING_VIOLATION
    with manager.open_queue(ORDERS, Access.RECEIVE, Share.DENY_RECEIVE) as mine:
        refused(code, lambda: queue.receive(timeout=0))
        refused(code, lambda: manager.open_queue(ORDERS))
        assert mine.receive(timeout=0).body == "a"
        mine.move(mine.peek(timeout=0), queue.subqueue("later"))
        assert mine.cursor().peek().body == "c"
        assert queue.peek(timeout=0).body == "c"
        queue.send("d")
    assert queue.receive(timeout=0).body == "c"
    refused(HResult.MQ_ERROR_INVALID_HANDLE, lambda: mine.receive(timeout=0))


def test_closing_wakes_who_waits_through_it(manager: Manager) -> None:
    queue = manager.create_queue(ORDERS)
    opened = manager.open_queue(ORDERS)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(opened.receive, timeout=30)
        waiting_at(manager, queue, 1)
        opened.close()
        with pytest.raises(MessageQueueError) as caught:
            waiting.result(30)
    assert caught.value.code == HResult.MQ_ERROR_OPERATION_CANCELLED


def test_a_queue_is_opened_to_send(manager: Manager) -> None:
    queue = manager.create_queue(ORDERS)
    with manager.open_queue(ORDERS, Access.SEND) as sending:
        sending.send("a")
        sending.send_many(["b", "c"])
    assert bodies(queue) == ["a", "b", "c"]


# Cursors.


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.1", "MS-MQDMPR 3.1.7.1.14", "MS-MQDMPR 3.1.7.1.15")
def test_a_cursor_walks_and_takes(manager: Manager) -> None:
    queue = manager.create_queue(ORDERS)
    queue.send_many(["a", "b", "c"])
    cursor = queue.cursor()
    assert cursor.peek().body == "a"
    assert cursor.peek_next().body == "b"
    assert cursor.receive().body == "b"
    assert cursor.peek().body == "c"
    queue.receive_by_lookup_id(0, Seek.LAST)
    refused(HResult.MQ_ERROR_MESSAGE_ALREADY_RECEIVED, cursor.peek)
    with pytest.raises(merq.ReceiveTimeout):
        cursor.peek_next()
    assert bodies(queue) == ["a"]


def test_a_cursor_waits_for_what_comes(manager: Manager) -> None:
    queue = manager.create_queue(ORDERS)
    queue.send("a")
    cursor = queue.cursor()
    cursor.peek()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(cursor.peek_next, timeout=30)
        waiting_at(manager, queue, 1)
        queue.send("b")
        assert waiting.result(30).body == "b"
    assert len(queue) == 2


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.2")
def test_closing_a_cursor_wakes_who_waits_through_it(manager: Manager) -> None:
    queue = manager.create_queue(ORDERS)
    cursor = queue.cursor()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(cursor.receive, timeout=30)
        waiting_at(manager, queue, 1)
        cursor.close()
        with pytest.raises(MessageQueueError) as caught:
            waiting.result(30)
    assert caught.value.code == HResult.MQ_ERROR_OPERATION_CANCELLED
    queue.send("a")
    assert len(queue) == 1, "nobody takes it any more"


def test_a_cursor_takes_in_a_transaction(manager: Manager) -> None:
    queue = manager.create_queue(SAFE, transactional=True)
    with manager.transaction() as tx:
        queue.send_many(["a", "b"], tx=tx)
    cursor = queue.cursor()
    cursor.peek()
    tx = manager.transaction()
    assert cursor.receive(tx=tx).body == "a"
    assert cursor.receive(tx=tx).body == "b"
    tx.abort()
    assert bodies(queue) == ["a", "b"]


# Preparing.


@pytest.mark.spec("MS-MQDMPR 3.1.4.3", "MS-MQDMPR 3.1.4.4", "MS-MQDMPR 3.1.4.5")
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_a_prepared_transaction_is_found_after_a_restart(tmp_path: Path, end: str) -> None:
    with merq.open(tmp_path) as mq:
        queue = mq.create_queue(SAFE, transactional=True)
        with mq.transaction() as tx:
            queue.send("old", tx=tx)
        with mq.transaction() as tx:
            queue.receive(timeout=0, tx=tx)
            queue.send("new", tx=tx)
            assert tx.prepare(NAME) == NAME
        assert "prepared" in repr(tx)
        assert bodies(queue) == []
    with merq.open(tmp_path) as mq:
        queue = mq.queue(SAFE)
        assert bodies(queue) == []
        (found,) = mq.prepared_transactions()
        assert found.name == NAME
        getattr(found, end)()
        assert bodies(queue) == (["new"] if end == "commit" else ["old"])
        assert mq.prepared_transactions() == []
        refused(HResult.MQ_ERROR_TRANSACTION_SEQUENCE, found.commit)
    with merq.open(tmp_path) as mq:
        assert bodies(mq.queue(SAFE)) == (["new"] if end == "commit" else ["old"])


def test_an_exception_in_the_block_aborts_what_was_prepared_in_it(manager: Manager) -> None:
    queue = manager.create_queue(SAFE, transactional=True)

    def fail() -> None:
        with manager.transaction() as tx:
            queue.send("x", tx=tx)
            tx.prepare()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (manager.prepared_transactions(), bodies(queue)) == ([], [])


def test_names_are_made_if_none_are_given(manager: Manager) -> None:
    names = {manager.transaction().prepare() for _ in range(3)}
    assert {each.name for each in manager.prepared_transactions()} == names
    assert len(names) == 3


# Changing.


def test_properties_are_changed_for_good(tmp_path: Path) -> None:
    with merq.open(tmp_path) as mq:
        queue = mq.create_queue(ORDERS, label="before", quota_kb=5)
        queue.change(label="after", journal=True, poison_after=3)
        queue.change()
    with merq.open(tmp_path) as mq:
        properties = mq.queue(ORDERS).properties
        assert (properties.label, properties.journaling) == ("after", True)
        assert (properties.quota, properties.poison_after) == (5, 3)


def test_changes_from_many_threads_are_all_kept(manager: Manager) -> None:
    queue = manager.create_queue(ORDERS)
    start = threading.Barrier(4)
    changes = [{"label": "x"}, {"quota_kb": 9}, {"journal": True}, {"poison_after": 4}]

    def change(properties: dict[str, object]) -> None:
        start.wait()
        queue.change(**properties)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(change, changes))
    properties = queue.properties
    assert (properties.label, properties.quota) == ("x", 9)
    assert (properties.journaling, properties.poison_after) == (True, 4)


# Flow control.


@pytest.mark.spec("MS-MQDMPR 3.1.7.2.5")
def test_with_too_little_room_on_the_disk_no_message_is_taken(tmp_path: Path) -> None:
    limits = Limits(disk_reserve_bytes=1 << 62)
    with merq.open(tmp_path, limits=limits) as mq:
        queue = mq.create_queue(ORDERS)
        assert mq.throttled
        error = refused(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, lambda: queue.send("x"))
        assert "disk" in str(error)
    with merq.open(tmp_path) as mq:
        assert not mq.throttled
        mq.queue(ORDERS).send("x")
