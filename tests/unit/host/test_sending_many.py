"""Many messages to one destination in one request."""

from __future__ import annotations

from typing import Any

import pytest

from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.queue import QueueKind, QueueSettings
from merq.model.selecting import First
from merq.protocol.application.requests import (
    Begin,
    CreateQueue,
    End,
    Ending,
    Family,
    ListQueues,
    Read,
    Send,
    SendManyTo,
)
from merq.wire.view import MessageView
from unit.host.desk_world import GUID, Bureau, packet

FAR = r"DIRECT=OS:far\PRIVATE$\q"
HERE = r"DIRECT=OS:here\private$\q"
ID_SIZE = 20


@pytest.fixture
def bureau() -> Bureau:
    return Bureau()


def packets(count: int, **outline: Any) -> list[bytes]:
    chosen = {"destination": r"OS:far\private$\q", **outline}
    return [packet(b"%d" % number, **chosen) for number in range(count)]


def ids_of(found: object, count: int) -> list[bytes]:
    assert isinstance(found, bytes), found
    assert len(found) == ID_SIZE * count
    return [found[at : at + ID_SIZE] for at in range(0, len(found), ID_SIZE)]


def waiting(bureau: Bureau, name: str = FAR) -> list[MessageView]:
    """What waits for a destination, in order."""
    queue = bureau.state.find_outgoing(name)
    if queue is None:
        return []
    return [MessageView(bureau.state.stored(each)[1]) for each in queue.positions]


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.27")
@pytest.mark.parametrize("recoverable", [True, False])
def test_each_message_is_one_of_its_own_and_in_its_place(bureau: Bureau, recoverable: bool) -> None:
    asked = SendManyTo(FAR, packets(50, recoverable=recoverable))
    ids = ids_of(bureau.ask(bureau.desk(), asked), 50)
    assert len(set(ids)) == 50
    assert [(each.message_id, each.body) for each in waiting(bureau)] == [
        (each, b"%d" % number) for number, each in enumerate(ids)
    ]
    queue = bureau.state.find_outgoing(FAR)
    assert queue is not None
    assert queue in bureau.state.outbound, "somebody is to send them"
    assert queue.staged_bytes == 0
    more = ids_of(bureau.ask(bureau.desk(), SendManyTo(FAR, packets(3))), 3)
    assert [each.message_id for each in waiting(bureau)] == ids + more


def test_they_are_one_write_and_the_queue_is_made_with_them(bureau: Bureau) -> None:
    before = bureau.host.log.segments()[-1].used
    bureau.begin(bureau.desk(), SendManyTo(FAR, packets(100)))
    assert bureau.state.find_outgoing(FAR) is None, "nothing happens before it is durable"
    bureau.settle()
    assert len(waiting(bureau)) == 100
    used = bureau.host.log.segments()[-1].used - before
    assert used < 100 * (len(packets(1)[0]) + 60)


def test_what_the_disk_does_not_take_is_not_sent_and_is_not_counted(bureau: Bureau) -> None:
    desk = bureau.desk()
    taken = bureau.state.taken_bytes
    bureau.disk.capacity = bureau.disk.used
    found = bureau.ask(desk, SendManyTo(FAR, packets(2000, body_type=8)))
    assert isinstance(found, MessageQueueError)
    assert found.code == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert waiting(bureau) == []
    assert bureau.state.taken_bytes == taken


def test_a_name_of_this_computer_leads_to_its_queue(bureau: Bureau) -> None:
    number = bureau.queue("q")
    ids_of(bureau.ask(bureau.desk(), SendManyTo(HERE, packets(3))), 3)
    assert bureau.state.queues[number].positions.count == 3
    assert bureau.ask(bureau.desk(), ListQueues(Family.OUTGOING)) == []


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (r"DIRECT=OS:here\private$\none", HResult.MQ_ERROR_QUEUE_NOT_FOUND),
        (f"{FAR},{HERE}", HResult.MQ_ERROR_ILLEGAL_FORMATNAME),
        ("nonsense", HResult.MQ_ERROR_ILLEGAL_FORMATNAME),
        (f"PUBLIC={GUID}", HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION),
        (rf"{FAR};sub", HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION),
    ],
)
def test_a_name_that_leads_nowhere_is_refused(bureau: Bureau, name: str, code: HResult) -> None:
    bureau.queue("q")
    found = bureau.ask(bureau.desk(), SendManyTo(name, packets(2)))
    assert isinstance(found, MessageQueueError)
    assert found.code == code
    assert not [each for each in bureau.state.queues.values() if each.is_outgoing]


def test_one_packet_that_is_none_keeps_all_back(bureau: Bureau) -> None:
    found = bureau.ask(bureau.desk(), SendManyTo(FAR, [*packets(3), b"none"]))
    assert isinstance(found, MessageQueueError)
    assert waiting(bureau) == []


def test_in_a_transaction_they_are_sent_when_it_commits(bureau: Bureau) -> None:
    desk = bureau.desk()
    bureau.ask(desk, Begin(1))
    ids = ids_of(bureau.ask(desk, SendManyTo(FAR, packets(4), 1)), 4)
    assert waiting(bureau) == []
    bureau.ask(desk, End(1, Ending.COMMIT))
    found = waiting(bureau)
    assert [each.message_id for each in found] == ids
    assert [each.tx_sequence_number for each in found] == [1, 2, 3, 4]
    assert all(each.transactional for each in found)


def test_messages_of_different_kinds_can_be_sent_at_once(bureau: Bureau) -> None:
    mixed = packets(1, recoverable=True) + packets(1, recoverable=False)
    mixed += packets(1, positive_journaling=True, priority=7)
    ids_of(bureau.ask(bureau.desk(), SendManyTo(FAR, mixed)), 3)
    assert sorted(each.priority for each in waiting(bureau)) == [3, 3, 7]


def test_messages_that_want_a_copy_or_an_acknowledgment_go_the_same_way(bureau: Bureau) -> None:
    """Nobody is told before they are there."""
    bureau.queue("admin")
    asked = packets(
        2, positive_journaling=True, admin_queue=r"OS:here\private$\admin", acknowledgments=5
    )
    ids_of(bureau.ask(bureau.desk(), SendManyTo(FAR, asked)), 2)
    assert len(waiting(bureau)) == 2
    others = [each for each in bureau.state.queues.values() if not each.is_outgoing]
    assert not any(each.positions.count for each in others)


def test_a_dead_letter_queue_is_remembered_for_each(bureau: Bureau) -> None:
    bureau.queue("mine")
    asked = SendManyTo(FAR, packets(2, negative_journaling=True), 0, r".\private$\mine")
    ids_of(bureau.ask(bureau.desk(), asked), 2)
    queue = bureau.state.find_outgoing(FAR)
    assert queue is not None
    assert len(queue.notes) == 2


def test_many_into_an_outgoing_queue_by_its_number_are_to_be_sent_too(bureau: Bureau) -> None:
    ids_of(bureau.ask(bureau.desk(), SendManyTo(FAR, packets(1))), 1)
    queue = bureau.state.find_outgoing(FAR)
    assert queue is not None
    assert queue.properties.kind is QueueKind.OUTGOING
    bureau.state.outbound.clear()
    ids_of(bureau.ask(bureau.desk(), Send(queue.number, packets(2))), 2)
    assert queue in bureau.state.outbound


def test_a_queue_takes_what_its_quota_allows(bureau: Bureau) -> None:
    settings = QueueSettings(quota=1)
    desk = bureau.desk()
    number = bureau.number(desk, CreateQueue(r".\private$\q", settings, GUID))
    found = bureau.ask(desk, SendManyTo(HERE, packets(50)))
    assert isinstance(found, MessageQueueError)
    assert found.code == HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    assert isinstance(bureau.ask(desk, Read(number, First())), MessageQueueError)
