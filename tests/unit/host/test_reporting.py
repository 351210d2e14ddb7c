from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from merq.model.access import Access
from merq.model.message_class import MessageClass
from merq.model.queue import Alteration, QueueSettings
from merq.model.selecting import First
from merq.protocol.application import requests as asked
from merq.protocol.application.reports import QueueReport, Sighting, Status, Whereabouts
from merq.protocol.application.requests import (
    AskStatus,
    AskWhy,
    Begin,
    ChangeQueue,
    DescribeQueue,
    End,
    Ending,
    Family,
    ListQueues,
    Read,
    Send,
    SendTo,
)
from unit.host.desk_world import START, Bureau, packet

FAR = r"DIRECT=OS:far\private$\q"


@pytest.fixture
def bureau() -> Bureau:
    return Bureau()


def seen(bureau: Bureau, message_id: bytes) -> list[Sighting]:
    found = bureau.ask(bureau.desk(), AskWhy(message_id))
    assert isinstance(found, list)
    return [each for each in found if isinstance(each, Sighting)]


def only(bureau: Bureau, message_id: bytes) -> Sighting:
    (found,) = seen(bureau, message_id)
    return found


def sent(bureau: Bureau, queue: int, **outline: Any) -> bytes:
    found = bureau.ask(bureau.desk(), Send(queue, [packet(**outline)]))
    assert isinstance(found, bytes), found
    return found


def described(bureau: Bureau, queue: int) -> QueueReport:
    found = bureau.ask(bureau.desk(), DescribeQueue(queue))
    assert isinstance(found, QueueReport)
    return found


# Where a message is.


def test_a_message_that_waits_is_seen_in_its_queue(bureau: Bureau) -> None:
    queue = bureau.queue("q")
    found = only(bureau, sent(bureau, queue, label="mine"))
    assert found.whereabouts is Whereabouts.WAITING
    assert (found.queue, found.label) == (r".\private$\q", "mine")
    assert (found.arrived, found.sent, found.aborts) == (START, START, 0)
    assert found.destination == r"DIRECT=OS:here\private$\q"
    assert not found.about


def test_a_message_that_somebody_holds_is_being_received(bureau: Bureau) -> None:
    queue = bureau.queue("q")
    message_id = sent(bureau, queue)
    desk = bureau.desk()
    bureau.hold(desk, queue)
    assert only(bureau, message_id).whereabouts is Whereabouts.LOCKED
    desk.close()
    bureau.settle()
    assert only(bureau, message_id).whereabouts is Whereabouts.WAITING


def test_a_message_that_is_received_in_a_transaction_is_being_received(bureau: Bureau) -> None:
    queue, desk = bureau.queue("t", transactional=True), bureau.desk()
    message_id = bureau.send_within(desk, 1, queue)
    assert only(bureau, message_id).whereabouts is Whereabouts.UNSENT
    bureau.ask(desk, End(1, Ending.COMMIT))
    assert only(bureau, message_id).whereabouts is Whereabouts.WAITING
    bureau.ask(desk, Begin(1))
    bureau.ask(desk, Read(queue, First(), transaction=1))
    assert only(bureau, message_id).whereabouts is Whereabouts.LOCKED
    bureau.ask(desk, End(1, Ending.ABORT))
    assert only(bureau, message_id).aborts == 1


def test_a_message_to_another_computer_waits_to_be_sent(bureau: Bureau) -> None:
    ids = bureau.ask(bureau.desk(), SendTo(((FAR, packet()),)))
    assert isinstance(ids, bytes)
    found = only(bureau, ids)
    assert found.whereabouts is Whereabouts.OUTGOING
    assert "far" in found.queue


def test_a_message_that_expires_while_the_disk_works_is_on_its_way_out(bureau: Bureau) -> None:
    queue = bureau.queue("q")
    message_id = sent(bureau, queue, time_to_be_received=10)
    bureau.host.engine.tick(START + 20)
    assert only_unsettled(bureau, message_id).whereabouts is Whereabouts.LEAVING
    bureau.settle()
    assert seen(bureau, message_id) == []


def only_unsettled(bureau: Bureau, message_id: bytes) -> Sighting:
    number = bureau.begin(bureau.desk(), AskWhy(message_id))
    found = bureau.answers.pop(number)
    assert isinstance(found, list)
    (each,) = found
    assert isinstance(each, Sighting)
    return each


def test_a_message_that_was_received_is_in_the_journal(bureau: Bureau) -> None:
    desk = bureau.desk()
    settings = QueueSettings(journaling=True)
    queue = bureau.number(desk, asked.CreateQueue(r".\private$\j", settings, UUID(int=9)))
    message_id = sent(bureau, queue)
    bureau.ask(desk, Read(queue, First()))
    assert only(bureau, message_id).whereabouts is Whereabouts.JOURNAL
    assert described(bureau, queue).journal_messages == 1


def test_a_message_that_expired_is_a_dead_letter(bureau: Bureau) -> None:
    queue = bureau.queue("q")
    message_id = sent(bureau, queue, time_to_be_received=10, negative_journaling=True)
    bureau.host.engine.tick(START + 20)
    bureau.settle()
    found = only(bureau, message_id)
    assert found.whereabouts is Whereabouts.DEAD_LETTER
    assert found.message_class == MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT


def test_an_acknowledgment_about_a_message_is_told_as_one(bureau: Bureau) -> None:
    queue, admin = bureau.queue("q"), bureau.queue("admin")
    message_id = sent(bureau, queue, admin_queue=r"OS:here\private$\admin", acknowledgments=5)
    bureau.settle()
    found = seen(bureau, message_id)
    assert [each.about for each in found] == [False, True]
    assert found[1].queue == r".\private$\admin"
    assert found[1].message_class == MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE
    assert described(bureau, admin).messages == 1


@pytest.mark.parametrize("message_id", [bytes(20), b"\xff" * 20])
def test_a_message_that_nobody_knows_is_nowhere(bureau: Bureau, message_id: bytes) -> None:
    bureau.send(bureau.queue("q"))
    assert seen(bureau, message_id) == []


def test_another_message_of_ours_is_not_this_one(bureau: Bureau) -> None:
    queue = bureau.queue("t", transactional=True)
    message_id = bureau.send_within(bureau.desk(), 1, queue)
    other = message_id[:16] + (99).to_bytes(4, "little")
    assert seen(bureau, other) == []
    assert only(bureau, message_id).whereabouts is Whereabouts.UNSENT


# How queues stand.


def test_a_queue_tells_how_it_stands(bureau: Bureau) -> None:
    queue, desk = bureau.queue("q"), bureau.desk()
    empty = described(bureau, queue)
    assert (empty.messages, empty.size, empty.oldest) == (0, 0, 0)
    bureau.send(queue)
    bureau.send(queue)
    bureau.hold(desk, queue)
    bureau.number(desk, asked.OpenQueue(queue, Access.PEEK))
    found = described(bureau, queue)
    assert (found.messages, found.locked, found.openings) == (2, 1, 1)
    assert (found.arrived, found.left, found.oldest) == (2, 0, START)
    assert found.size > 0


def test_readers_are_counted(bureau: Bureau) -> None:
    queue, desk = bureau.queue("q"), bureau.desk()
    bureau.begin(desk, Read(queue, First(), wait=True))
    assert described(bureau, queue).readers == 1
    status = bureau.ask(desk, AskStatus())
    assert isinstance(status, Status)
    assert status.readers == 1


def test_queues_are_listed_by_family(bureau: Bureau) -> None:
    desk, queue = bureau.desk(), bureau.queue("q")
    below = bureau.number(desk, asked.CreateSubqueue(queue, "below"))
    bureau.ask(desk, SendTo(((FAR, packet()),)))

    def listed(family: Family, owner: int = 0) -> set[int]:
        found = bureau.ask(desk, ListQueues(family, owner))
        assert isinstance(found, list)
        return {each.properties.number for each in found if isinstance(each, QueueReport)}

    assert listed(Family.PRIVATE) == {queue}
    assert listed(Family.SUBQUEUES, queue) == {below}
    (outgoing,) = listed(Family.OUTGOING)
    system = listed(Family.SYSTEM)
    assert system
    assert listed(Family.ALL) >= {queue, below, outgoing, *system}
    assert not {queue, below, outgoing} & system


def test_a_queue_manager_tells_how_it_is(bureau: Bureau) -> None:
    desk, queue = bureau.desk(), bureau.queue("t", transactional=True)
    bureau.send_within(desk, 1, queue)
    bureau.ask(desk, asked.Prepare(1, UUID(int=8)))
    bureau.send_within(desk, 2, queue)
    bureau.ask(desk, End(2, Ending.COMMIT))
    bureau.ask(desk, Begin(3))
    bureau.ask(desk, SendTo(((FAR, packet()),)))
    found = bureau.ask(desk, AskStatus())
    assert isinstance(found, Status)
    assert (found.name, found.guid, found.version) == ("here", bureau.state.guid, "test 1")
    assert (found.started, found.now, found.connections) == (START - 5, START, 2)
    assert (found.queues, found.outgoing_queues, found.messages) == (1, 1, 2)
    assert (found.transactions, found.prepared) == (2, 1)
    assert not found.throttled
    assert found.log_bytes > found.message_bytes > 0


def test_a_change_is_seen_at_once(bureau: Bureau) -> None:
    queue = bureau.queue("q")
    change = ChangeQueue(queue, Alteration(journaling=True))
    assert bureau.ask(bureau.desk(), change) is None
    assert described(bureau, queue).properties.journaling
