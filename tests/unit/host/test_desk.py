from __future__ import annotations

from dataclasses import replace
from typing import get_args
from uuid import UUID

import pytest

from merq.errors import MessageQueueError, ReceiveTimeout
from merq.hresult import HResult
from merq.model.access import Access, Share
from merq.model.delivered import Delivered
from merq.model.queue import Alteration, QueueSettings
from merq.model.selecting import AtCursor, ByLookup, ByMessageId, First
from merq.protocol.application import requests as asked
from merq.protocol.application.reports import QueueReport, Result, Status
from merq.protocol.application.requests import (
    Begin,
    Cancel,
    CloseCursor,
    CloseQueue,
    End,
    Ending,
    EndPrepared,
    EndReceive,
    Family,
    ListPrepared,
    OpenCursor,
    OpenQueue,
    Prepare,
    Read,
    Request,
    Send,
    SendTo,
)
from merq.testing.world import SMALL
from merq.wire.view import MessageView
from unit.host.desk_world import Bureau, packet

NAME = UUID(int=4711)


@pytest.fixture
def bureau() -> Bureau:
    return Bureau()


def refused(result: Result, code: HResult) -> str:
    assert isinstance(result, MessageQueueError), result
    assert result.code == code, f"{result.code:#x}: {result}"
    return result.text


def body_of(result: Result) -> bytes:
    assert isinstance(result, Delivered), result
    return bytes(MessageView(result.packet).body)


# Every request.


def test_a_desk_knows_every_request(bureau: Bureau) -> None:
    assert set(bureau.desk()._rules) == set(get_args(Request))


def test_messages_are_sent_peeked_received_and_counted(bureau: Bureau) -> None:
    desk, queue = bureau.desk(), bureau.queue("q")
    ids = bureau.ask(desk, Send(queue, [packet(b"one"), packet(b"two")]))
    assert isinstance(ids, bytes)
    assert len(ids) == 40
    assert body_of(bureau.ask(desk, Read(queue, First(), peek=True))) == b"one"
    assert body_of(bureau.ask(desk, Read(queue, ByMessageId(ids[20:])))) == b"two"
    found = bureau.ask(desk, Read(queue, First(), most=5))
    assert isinstance(found, list)
    assert len(found) == 1
    assert isinstance(bureau.ask(desk, Read(queue, First())), ReceiveTimeout)
    assert not desk.pending


def test_copies_go_where_names_lead(bureau: Bureau) -> None:
    desk, queue = bureau.desk(), bureau.queue("q")
    to = ((r"DIRECT=OS:.\private$\q", packet()), (r"DIRECT=OS:far\private$\q", packet()))
    found = bureau.ask(desk, SendTo(to))
    assert isinstance(found, bytes)
    assert len(found) == 20
    assert body_of(bureau.ask(desk, Read(queue, First()))) == b"hello"


def test_a_name_of_several_destinations_is_refused(bureau: Bureau) -> None:
    both = r"DIRECT=OS:a\private$\q,DIRECT=OS:b\private$\q"
    said = bureau.ask(bureau.desk(), SendTo(((both, packet()),)))
    assert "2 destinations" in refused(said, HResult.MQ_ERROR_ILLEGAL_FORMATNAME)


def test_queues_are_made_found_changed_listed_and_deleted(bureau: Bureau) -> None:
    desk = bureau.desk()
    path = r".\private$\made"
    queue = bureau.number(desk, asked.CreateQueue(path, QueueSettings(label="a"), NAME))
    assert bureau.ask(desk, asked.FindQueue(path)) == queue
    changed = asked.ChangeQueue(queue, Alteration(label="b", quota=7))
    assert bureau.ask(desk, changed) is None
    report = bureau.ask(desk, asked.DescribeQueue(queue))
    assert isinstance(report, QueueReport)
    assert (report.properties.label, report.properties.quota) == ("b", 7)
    assert report.properties.journaling is False, "what is not said stays"
    below = bureau.number(desk, asked.CreateSubqueue(queue, "below"))
    listed = bureau.ask(desk, asked.ListQueues(Family.SUBQUEUES, queue))
    assert isinstance(listed, list)
    assert [each.properties.number for each in listed if isinstance(each, QueueReport)] == [below]
    bureau.send(queue)
    assert bureau.ask(desk, asked.Purge(queue)) == 1
    assert bureau.ask(desk, asked.DeleteQueue(queue)) is None
    refused(bureau.ask(desk, asked.FindQueue(path)), HResult.MQ_ERROR_QUEUE_NOT_FOUND)


def test_a_message_moves_to_a_subqueue_and_back(bureau: Bureau) -> None:
    desk, queue = bureau.desk(), bureau.queue("q")
    bureau.send(queue)
    below = bureau.number(desk, asked.CreateSubqueue(queue, "below"))
    (place,) = bureau.state.queues[queue].positions
    assert bureau.ask(desk, asked.Move(queue, place.lookup_id, below)) is None
    assert isinstance(bureau.ask(desk, Read(queue, First())), ReceiveTimeout)
    assert body_of(bureau.ask(desk, Read(below, First()))) == b"hello"


def test_outgoing_queues_are_paused_and_resumed(bureau: Bureau) -> None:
    desk = bureau.desk()
    bureau.ask(desk, SendTo(((r"DIRECT=OS:far\private$\q", packet()),)))
    (outgoing,) = bureau.host.engine.outgoing_queues()
    before = outgoing.state
    assert bureau.ask(desk, asked.PauseQueue(outgoing.number)) is None
    assert outgoing.state is not before
    assert bureau.ask(desk, asked.ResumeQueue(outgoing.number)) is None
    assert outgoing.state is before


def test_it_tells_how_the_queue_manager_is(bureau: Bureau) -> None:
    found = bureau.ask(bureau.desk(), asked.AskStatus())
    assert isinstance(found, Status)
    assert (found.version, found.connections) == ("test 1", 2)


# Transactions.


def test_a_transaction_happens_when_it_commits(bureau: Bureau) -> None:
    desk, queue = bureau.desk(), bureau.queue("t", transactional=True)
    bureau.send_within(desk, 9, queue)
    assert isinstance(bureau.ask(desk, Read(queue, First())), ReceiveTimeout)
    assert bureau.ask(desk, End(9, Ending.COMMIT)) is None
    assert bureau.ask(desk, Begin(9)) is None, "the number can be used again"
    assert body_of(bureau.ask(desk, Read(queue, First(), transaction=9))) == b"hello"
    assert bureau.ask(desk, End(9, Ending.ABORT)) is None
    assert body_of(bureau.ask(desk, Read(queue, First()))) == b"hello"


@pytest.mark.parametrize("number", [0, 9])
def test_a_transaction_has_a_number_that_is_not_in_use(bureau: Bureau, number: int) -> None:
    desk = bureau.desk()
    bureau.ask(desk, Begin(9))
    said = bureau.ask(desk, Begin(number))
    assert str(number) in refused(said, HResult.MQ_ERROR_TRANSACTION_SEQUENCE)


def test_a_transaction_of_another_client_is_none_of_ours(bureau: Bureau) -> None:
    owner, stranger = bureau.desk(), bureau.desk()
    queue = bureau.queue("t", transactional=True)
    bureau.send_within(owner, 9, queue)
    for request in (
        Send(queue, [packet()], 9),
        Read(queue, First(), transaction=9),
        End(9, Ending.COMMIT),
        End(9, Ending.ABORT),
        Prepare(9, NAME),
        asked.Move(queue, 1, queue, 9),
        SendTo(((r"DIRECT=OS:.\private$\t", packet()),), 9),
    ):
        refused(bureau.ask(stranger, request), HResult.MQ_ERROR_TRANSACTION_SEQUENCE)
    assert bureau.ask(stranger, Begin(9)) is None, "numbers are each client's own"
    assert bureau.ask(owner, End(9, Ending.COMMIT)) is None
    assert body_of(bureau.ask(stranger, Read(queue, First()))) == b"hello"


def test_what_is_prepared_outlives_its_client_and_anybody_ends_it(bureau: Bureau) -> None:
    desk, queue = bureau.desk(), bureau.queue("t", transactional=True)
    bureau.send_within(desk, 9, queue)
    assert bureau.ask(desk, Prepare(9, NAME)) is None
    desk.close()
    bureau.settle()
    other = bureau.desk()
    assert bureau.ask(other, ListPrepared()) == [NAME]
    assert bureau.ask(other, EndPrepared(NAME, Ending.COMMIT)) is None
    assert bureau.ask(other, ListPrepared()) == []
    assert body_of(bureau.ask(other, Read(queue, First()))) == b"hello"
    said = bureau.ask(other, EndPrepared(NAME, Ending.ABORT))
    assert str(NAME) in refused(said, HResult.MQ_ERROR_TRANSACTION_SEQUENCE)


def test_what_is_prepared_can_be_ended_by_its_number_too(bureau: Bureau) -> None:
    desk, queue = bureau.desk(), bureau.queue("t", transactional=True)
    bureau.send_within(desk, 9, queue)
    bureau.ask(desk, Prepare(9, NAME))
    assert bureau.ask(desk, End(9, Ending.ABORT)) is None
    assert bureau.ask(desk, ListPrepared()) == []
    assert isinstance(bureau.ask(desk, Read(queue, First())), ReceiveTimeout)


# Messages that are held.


def test_a_held_message_goes_when_that_is_said(bureau: Bureau) -> None:
    desk, queue = bureau.desk(), bureau.queue("q")
    bureau.send(queue)
    lookup_id = bureau.hold(desk, queue)
    assert desk.holds == {queue: {lookup_id}}
    assert isinstance(bureau.ask(bureau.desk(), Read(queue, First())), ReceiveTimeout)
    assert bureau.ask(desk, EndReceive(queue, [lookup_id], delete=True)) is None
    assert desk.holds == {}
    said = bureau.ask(desk, EndReceive(queue, [lookup_id], delete=True))
    refused(said, HResult.MQ_ERROR_TRANSACTION_SEQUENCE)
    assert not bureau.state.queues[queue].positions.count


def test_a_held_message_goes_back_when_that_is_said(bureau: Bureau) -> None:
    desk, queue = bureau.desk(), bureau.queue("q")
    bureau.send(queue)
    lookup_id = bureau.hold(desk, queue)
    assert bureau.ask(desk, EndReceive(queue, [lookup_id], delete=False)) is None
    assert body_of(bureau.ask(bureau.desk(), Read(queue, First()))) == b"hello"


def test_a_message_that_another_client_holds_is_not_ours_to_end(bureau: Bureau) -> None:
    owner, stranger, queue = bureau.desk(), bureau.desk(), bureau.queue("q")
    bureau.send(queue)
    lookup_id = bureau.hold(owner, queue)
    for delete in (True, False):
        said = bureau.ask(stranger, EndReceive(queue, [lookup_id], delete=delete))
        refused(said, HResult.MQ_ERROR_TRANSACTION_SEQUENCE)
    assert bureau.ask(owner, EndReceive(queue, [lookup_id], delete=True)) is None


def test_several_held_messages_end_together_or_not_at_all(bureau: Bureau) -> None:
    desk, queue = bureau.desk(), bureau.queue("q")
    for _ in range(3):
        bureau.send(queue)
    found = bureau.ask(desk, Read(queue, First(), held=True, most=3))
    assert isinstance(found, list)
    ids = [each.lookup_id for each in found if isinstance(each, Delivered)]
    for wrong in ([*ids, 5], [ids[0], ids[0]]):
        said = bureau.ask(desk, EndReceive(queue, wrong, delete=True))
        refused(said, HResult.MQ_ERROR_TRANSACTION_SEQUENCE)
    assert desk.holds == {queue: set(ids)}
    assert bureau.ask(desk, EndReceive(queue, ids[:2], delete=True)) is None
    assert desk.holds == {queue: {ids[2]}}


@pytest.mark.parametrize("how", [{"peek": True}, {"transaction": 9}])
def test_only_plain_receives_can_be_held(bureau: Bureau, how: dict[str, int]) -> None:
    desk, queue = bureau.desk(), bureau.queue("t", transactional=True)
    bureau.ask(desk, Begin(9))
    said = bureau.ask(desk, Read(queue, First(), held=True, **how))  # type: ignore[arg-type]
    refused(said, HResult.MQ_ERROR_INVALID_PARAMETER)
    assert not desk.pending


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_message_that_the_disk_does_not_let_go_is_there_for_everybody(
    is_gone: bool,
) -> None:
    bureau = Bureau(replace(SMALL, ballast_bytes=0))  # or receiving would go on for long
    desk, queue = bureau.desk(), bureau.queue("q")
    count = 400
    for _ in range(count):
        bureau.send(queue)
    held = [bureau.hold(desk, queue) for _ in range(count)]
    bureau.disk.capacity = bureau.disk.used
    said: Result = None
    lookup_id = 0
    while held and said is None:
        lookup_id = held.pop(0)
        number = bureau.begin(desk, EndReceive(queue, [lookup_id], delete=True))
        bureau.settle()
        said = bureau.answers.pop(number)
    refused(said, HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED)
    if is_gone:
        number = bureau.begin(desk, EndReceive(queue, [held.pop()], delete=True))
        desk.close()
    bureau.settle()
    bureau.disk.capacity = None
    first = bureau.ask(bureau.desk(), Read(queue, First(), peek=True))
    assert isinstance(first, Delivered)
    assert first.lookup_id == lookup_id
    assert not desk.ending
    if is_gone:
        assert not bureau.state.queues[queue].held


# Handles and cursors.


def test_a_handle_of_another_client_is_none_of_ours(bureau: Bureau) -> None:
    owner, stranger, queue = bureau.desk(), bureau.desk(), bureau.queue("q")
    handle = bureau.number(owner, OpenQueue(queue, Access.RECEIVE))
    for request in (
        CloseQueue(handle),
        Read(queue, First(), handle=handle),
        Send(queue, [packet()], handle=handle),
        OpenCursor(queue, handle),
        asked.Purge(queue, handle),
        asked.Move(queue, 1, queue, handle=handle),
    ):
        refused(bureau.ask(stranger, request), HResult.MQ_ERROR_INVALID_HANDLE)
    assert bureau.ask(owner, CloseQueue(handle)) is None
    refused(bureau.ask(owner, CloseQueue(handle)), HResult.MQ_ERROR_INVALID_HANDLE)


def test_whoever_denies_receiving_does_so_until_he_is_gone(bureau: Bureau) -> None:
    owner, stranger, queue = bureau.desk(), bureau.desk(), bureau.queue("q")
    bureau.send(queue)
    bureau.number(owner, OpenQueue(queue, Access.RECEIVE, Share.DENY_RECEIVE))
    said = bureau.ask(stranger, Read(queue, First()))
    refused(said, HResult.MQ_ERROR_SHARING_VIOLATION)
    owner.close()
    assert body_of(bureau.ask(stranger, Read(queue, First()))) == b"hello"


def test_a_cursor_walks_through_its_queue(bureau: Bureau) -> None:
    desk, queue = bureau.desk(), bureau.queue("q")
    bureau.send(queue, b"one")
    bureau.send(queue, b"two")
    cursor = bureau.number(desk, OpenCursor(queue))
    assert body_of(bureau.ask(desk, Read(queue, AtCursor(cursor), peek=True))) == b"one"
    following = Read(queue, AtCursor(cursor, next_one=True), peek=True)
    assert body_of(bureau.ask(desk, following)) == b"two"
    assert bureau.ask(desk, CloseCursor(cursor)) is None
    refused(bureau.ask(desk, following), HResult.MQ_ERROR_INVALID_HANDLE)


def test_a_cursor_of_another_client_is_none_of_ours(bureau: Bureau) -> None:
    owner, stranger, queue = bureau.desk(), bureau.desk(), bureau.queue("q")
    cursor = bureau.number(owner, OpenCursor(queue))
    for request in (Read(queue, AtCursor(cursor), peek=True), CloseCursor(cursor)):
        refused(bureau.ask(stranger, request), HResult.MQ_ERROR_INVALID_HANDLE)


def test_a_cursor_is_of_one_queue(bureau: Bureau) -> None:
    desk, queue, other = bureau.desk(), bureau.queue("q"), bureau.queue("other")
    bureau.send(queue)
    cursor = bureau.number(desk, OpenCursor(queue))
    for peek in (True, False):
        said = bureau.ask(desk, Read(other, AtCursor(cursor), peek=peek))
        assert "another queue" in refused(said, HResult.MQ_ERROR_INVALID_HANDLE)


def test_a_cursor_ends_with_the_opening_that_it_was_made_through(bureau: Bureau) -> None:
    desk, queue = bureau.desk(), bureau.queue("q")
    bureau.send(queue)
    handle = bureau.number(desk, OpenQueue(queue, Access.PEEK))
    cursor = bureau.number(desk, OpenCursor(queue, handle))
    bureau.ask(desk, CloseQueue(handle))
    said = bureau.ask(desk, Read(queue, AtCursor(cursor), peek=True))
    refused(said, HResult.MQ_ERROR_INVALID_HANDLE)


# Waiting.


def test_who_waits_can_be_cancelled_once(bureau: Bureau) -> None:
    desk, queue = bureau.desk(), bureau.queue("q")
    waiting = bureau.begin(desk, Read(queue, First(), wait=True))
    bureau.settle()
    assert waiting not in bureau.answers
    assert bureau.ask(desk, Cancel(waiting)) == 1
    assert isinstance(bureau.answers[waiting], ReceiveTimeout)
    assert bureau.ask(desk, Cancel(waiting)) == 0
    assert not desk.pending


def test_who_has_got_a_message_is_not_cancelled(bureau: Bureau) -> None:
    desk, queue = bureau.desk(), bureau.queue("q")
    waiting = bureau.begin(desk, Read(queue, First(), wait=True, held=True))
    bureau.send(queue)
    assert bureau.ask(desk, Cancel(waiting)) == 0
    assert body_of(bureau.answers[waiting]) == b"hello"
    assert desk.holds


def test_nobody_cancels_for_another_client(bureau: Bureau) -> None:
    owner, stranger, queue = bureau.desk(), bureau.desk(), bureau.queue("q")
    waiting = bureau.begin(owner, Read(queue, First(), wait=True))
    assert bureau.ask(stranger, Cancel(waiting)) == 0
    assert owner.pending


def test_a_read_that_is_refused_is_not_waited_for(bureau: Bureau) -> None:
    desk = bureau.desk()
    said = bureau.ask(desk, Read(12345, First(), wait=True))
    refused(said, HResult.MQ_ERROR_QUEUE_DELETED)
    said = bureau.ask(desk, Read(bureau.queue("q"), ByLookup(7), held=True))
    refused(said, HResult.MQ_ERROR_MESSAGE_NOT_FOUND)
    assert not desk.pending


def test_who_waits_at_a_queue_that_is_deleted_is_told(bureau: Bureau) -> None:
    desk, queue = bureau.desk(), bureau.queue("q")
    waiting = bureau.begin(desk, Read(queue, First(), wait=True))
    handle = bureau.number(desk, OpenQueue(queue, Access.RECEIVE))
    cursor = bureau.number(desk, OpenCursor(queue))
    bureau.ask(bureau.desk(), asked.DeleteQueue(queue))
    refused(bureau.answers[waiting], HResult.MQ_ERROR_QUEUE_DELETED)
    assert not desk.pending
    assert (handle, cursor) > (0, 0)
    desk.close()
    bureau.settle()
    assert not bureau.host.engine.opened._descriptors


# The end.


def test_who_goes_leaves_nothing_behind(bureau: Bureau) -> None:
    desk, plain = bureau.desk(), bureau.queue("plain")
    strict = bureau.queue("strict", transactional=True)
    bureau.send(plain)
    bureau.hold(desk, plain)
    waiting = bureau.begin(desk, Read(plain, First(), wait=True))
    bureau.send_within(desk, 3, strict)
    handle = bureau.number(desk, OpenQueue(plain, Access.RECEIVE))
    through = bureau.begin(desk, Read(plain, First(), wait=True, handle=handle))
    cursor = bureau.number(desk, OpenCursor(plain))
    bureau.number(desk, OpenCursor(plain, handle))
    at = bureau.begin(desk, Read(plain, AtCursor(cursor), peek=True, wait=True))
    desk.close()
    bureau.settle()
    assert not bureau.state.transactions
    assert not bureau.state.queues[plain].waiting
    assert not bureau.state.queues[plain].held
    assert not bureau.host.engine.opened._descriptors
    assert not desk.pending
    assert not desk.holds
    assert {waiting, through, at} <= set(bureau.answers)
    other = bureau.desk()
    assert body_of(bureau.ask(other, Read(plain, First()))) == b"hello"
    assert isinstance(bureau.ask(other, Read(strict, First())), ReceiveTimeout)
    desk.close()


def test_what_was_asked_before_the_end_happens(bureau: Bureau) -> None:
    desk, strict = bureau.desk(), bureau.queue("strict", transactional=True)
    bureau.send_within(desk, 3, strict)
    committing = bureau.begin(desk, End(3, Ending.COMMIT))
    desk.close()
    bureau.settle()
    assert bureau.answers[committing] is None
    assert body_of(bureau.ask(bureau.desk(), Read(strict, First()))) == b"hello"


def test_a_message_that_is_received_in_a_transaction_goes_back_with_its_client(
    bureau: Bureau,
) -> None:
    strict, sender = bureau.queue("strict", transactional=True), bureau.desk()
    bureau.send_within(sender, 1, strict)
    bureau.ask(sender, End(1, Ending.COMMIT))
    reader = bureau.desk()
    bureau.ask(reader, Begin(1))
    bureau.ask(reader, Read(strict, First(), transaction=1))
    reader.close()
    bureau.settle()
    found = bureau.ask(bureau.desk(), Read(strict, First()))
    assert isinstance(found, Delivered)
    assert found.aborts == 1
