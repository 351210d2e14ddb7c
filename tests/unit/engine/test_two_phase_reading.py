"""Reads in two phases: a message is handed out and held, and then goes or comes back."""

from __future__ import annotations

import pytest

from merq.engine.notices import NEGATIVE_RECEIVE, POSITIVE_RECEIVE
from merq.engine.reading import ByCursor
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.delivered import Delivered
from merq.model.message_class import MessageClass
from merq.model.selecting import ByLookup, Seek
from unit.engine.engine_world import World, refused

ADMIN = r"OS:.\private$\admin"


def held(world: World, number: int) -> int:
    """Holds the first message; gives its lookup identifier."""
    answer = world.answers[world.hold(number)]
    assert isinstance(answer, Delivered)
    return answer.lookup_id


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.11", "MS-MQDMPR 3.1.7.1.10")
def test_a_held_message_stays_and_nobody_else_gets_it(world: World) -> None:
    number = world.create("orders", journaling=True)
    first, second = world.fill(number, b"a", b"b")
    assert held(world, number) == first
    assert world.bodies(number) == [b"a", b"b"]
    assert world.body(world.peek(number)) == b"b"
    assert world.body(world.receive(number)) == b"b"
    assert world.code(world.receive(number)) == HResult.MQ_ERROR_IO_TIMEOUT
    assert world.code(world.receive(number, ByLookup(first))) == HResult.MQ_ERROR_MESSAGE_NOT_FOUND
    assert world.bodies(world.find(r".\private$\orders;JOURNAL")) == [b"b"]
    assert second not in world.lookup_ids(number)


@pytest.mark.parametrize("delete", [False, True])
def test_a_message_that_is_named_twice_ends_once(world: World, delete: bool) -> None:
    number = world.create("orders", journaling=True)
    world.fill(number, b"a", b"b")
    lookup_id = held(world, number)
    world.engine.end_receive(900, number, [lookup_id, lookup_id], delete=delete)
    world.perform()
    assert world.answers[900] is None
    assert world.bodies(number) == ([b"b"] if delete else [b"a", b"b"])
    assert world.bodies(world.find(r".\private$\orders;JOURNAL")) == ([b"a"] if delete else [])


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.12")
@pytest.mark.parametrize("recoverable", [False, True])
def test_a_held_message_goes_as_if_it_were_received(world: World, recoverable: bool) -> None:
    admin, number = world.create("admin"), world.create("orders", journaling=True)
    world.send(
        number,
        body=b"a",
        recoverable=recoverable,
        admin_queue=ADMIN,
        acknowledgments=POSITIVE_RECEIVE,
    )
    lookup_id = held(world, number)
    assert world.bodies(admin) == []
    assert world.answers[world.end_hold(number, lookup_id, delete=True)] is None
    assert world.bodies(number) == []
    assert world.bodies(world.find(r".\private$\orders;JOURNAL")) == [b"a"]
    (told,) = world.messages(admin)
    assert told.message_class == MessageClass.MQMSG_CLASS_ACK_RECEIVE
    world.restart()
    assert world.bodies(number) == []


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.12", "MS-MQDMPR 3.1.7.2.2")
def test_a_held_message_comes_back_to_its_place_and_to_those_who_wait(world: World) -> None:
    number = world.create("orders")
    world.fill(number, b"a", b"b")
    lookup_id = held(world, number)
    world.receive(number)
    waiting = world.receive(number, wait=True)
    world.end_hold(number, lookup_id, delete=False)
    assert world.body(waiting) == b"a"


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.12")
def test_what_was_not_held_or_is_no_longer_cannot_end(world: World) -> None:
    number = world.create("orders", transactional=True)
    first, second = world.fill(number, b"a", b"b")
    code = HResult.MQ_ERROR_TRANSACTION_SEQUENCE
    refused(code, lambda: world.end_hold(number, first, delete=True))
    refused(code, lambda: world.end_hold(number, 12345, delete=True))
    transaction = world.begin()
    world.receive(number, ByLookup(second), transaction=transaction)
    refused(code, lambda: world.end_hold(number, second, delete=True))
    world.abort(transaction)
    assert held(world, number) == first
    other = world.create("other")
    refused(code, lambda: world.end_hold(other, first, delete=True))
    world.end_hold(number, first, delete=False)
    refused(code, lambda: world.end_hold(number, first, delete=True))
    assert world.bodies(number) == [b"a", b"b"]


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.12", "MS-MQDMPR 3.1.7.1.7")
@pytest.mark.parametrize("delete", [False, True])
@pytest.mark.parametrize("recoverable", [False, True])
def test_what_was_purged_meanwhile_goes_as_purged_however_it_ends(
    world: World, delete: bool, recoverable: bool
) -> None:
    admin, number = world.create("admin"), world.create("orders")
    world.send(
        number,
        body=b"a",
        recoverable=recoverable,
        negative_journaling=True,
        admin_queue=ADMIN,
        acknowledgments=POSITIVE_RECEIVE | NEGATIVE_RECEIVE,
    )
    lookup_id = held(world, number)
    world.purge(number)
    assert world.bodies(number) == [b"a"]
    world.end_hold(number, lookup_id, delete=delete)
    assert world.bodies(number) == []
    (told,) = world.messages(admin)
    assert told.message_class == MessageClass.MQMSG_CLASS_NACK_Q_PURGED
    assert world.bodies(world.find(r".\system$;DEADLETTER")) == [b"a"]


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_restart_gives_back_what_was_held(world: World, checkpoint: bool) -> None:
    number = world.create("orders")
    world.fill(number, b"a")
    lookup_id = held(world, number)
    if checkpoint:
        world.checkpoint()
    world.restart()
    refused(
        HResult.MQ_ERROR_TRANSACTION_SEQUENCE,
        lambda: world.end_hold(number, lookup_id, delete=True),
    )
    assert world.body(world.receive(number)) == b"a"


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_restart_removes_what_was_held_and_purged(world: World, checkpoint: bool) -> None:
    number = world.create("orders")
    world.fill(number, b"a", negative_journaling=True)
    held(world, number)
    world.purge(number)
    if checkpoint:
        world.checkpoint()
    world.restart()
    assert world.bodies(number) == []
    assert world.bodies(world.find(r".\system$;DEADLETTER")) == [b"a"]
    world.restart()
    assert world.bodies(world.find(r".\system$;DEADLETTER")) == [b"a"]


def test_the_end_is_answered_when_it_is_durable_and_undone_if_it_was_not(world: World) -> None:
    number = world.create("orders")
    world.fill(number, b"a")
    lookup_id = held(world, number)
    world.durable_at_once = False
    request = world.end_hold(number, lookup_id, delete=True)
    assert not world.answered(request)
    assert world.code(world.receive(number)) == HResult.MQ_ERROR_IO_TIMEOUT
    world.restart()
    assert world.bodies(number) == [b"a"]


@pytest.mark.parametrize("delete", [True, False])
def test_a_message_whose_end_finds_no_room_is_held_until_it_is_ended_again(
    world: World, *, delete: bool
) -> None:
    number = world.create("orders")
    world.fill(number, b"a")
    lookup_id = held(world, number)
    world.full = 1
    request = world.end_hold(number, lookup_id, delete=True)
    assert world.code(request) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert world.code(world.receive(number)) == HResult.MQ_ERROR_IO_TIMEOUT
    assert world.answers[world.end_hold(number, lookup_id, delete=delete)] is None
    assert world.bodies(number) == ([] if delete else [b"a"])


def test_a_message_is_ended_once(world: World) -> None:
    number = world.create("orders")
    world.fill(number, b"a")
    lookup_id = held(world, number)
    world.durable_at_once = False
    world.end_hold(number, lookup_id, delete=True)
    with pytest.raises(MessageQueueError) as again:
        world.end_hold(number, lookup_id, delete=True)
    assert again.value.code == HResult.MQ_ERROR_TRANSACTION_SEQUENCE
    world.sync()
    assert world.bodies(number) == []


def test_what_was_purged_does_not_come_back_because_the_disk_is_full(world: World) -> None:
    number = world.create("orders")
    world.fill(number, b"a")
    lookup_id = held(world, number)
    world.purge(number)
    world.full = 1
    request = world.end_hold(number, lookup_id, delete=False)
    assert world.code(request) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert world.code(world.receive(number)) == HResult.MQ_ERROR_IO_TIMEOUT
    world.restart()
    assert world.bodies(number) == []


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.13")
def test_a_message_is_held_by_lookup_identifier(world: World) -> None:
    number = world.create("orders")
    first, second, third = world.fill(number, b"a", b"b", b"c")
    assert world.body(world.hold(number, ByLookup(second))) == b"b"
    assert world.body(world.hold(number, ByLookup(first, Seek.NEXT))) == b"c"
    assert world.code(world.hold(number, ByLookup(second))) == HResult.MQ_ERROR_MESSAGE_NOT_FOUND
    world.end_hold(number, second, delete=True)
    world.end_hold(number, third, delete=False)
    assert world.bodies(number) == [b"a", b"c"]


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.11", "MS-MQDMPR 3.2.7.4")
def test_a_message_is_held_at_a_cursor(world: World) -> None:
    number = world.create("orders")
    _, second = world.fill(number, b"a", b"b")
    cursor = world.engine.open_cursor(number)
    world.peek(number, ByCursor(cursor))
    world.peek(number, ByCursor(cursor, next_one=True))
    assert world.body(world.hold(number, ByCursor(cursor))) == b"b"
    world.end_hold(number, second, delete=True)
    assert world.bodies(number) == [b"a"]


def test_a_reader_that_waited_holds_what_came(world: World) -> None:
    number = world.create("orders")
    request = world.next_request()
    world.engine.receive(request, number, ByLookup(0, Seek.FIRST), wait=False, held=True)
    world.perform()
    assert world.code(request) == HResult.MQ_ERROR_MESSAGE_NOT_FOUND
    waiting = world.hold(number, wait=True)
    (lookup_id,) = world.fill(number, b"a")
    assert world.body(waiting) == b"a"
    assert world.bodies(number) == [b"a"]
    world.end_hold(number, lookup_id, delete=True)
    assert world.bodies(number) == []


@pytest.mark.spec("MS-MQDMPR 3.1.7.2.7")
def test_what_expires_while_it_is_held_is_decided_by_its_end(world: World) -> None:
    number = world.create("orders")
    world.fill(number, b"a", b"b", time_to_be_received=10, negative_journaling=True)
    first, second = held(world, number), held(world, number)
    world.tick(100)
    assert world.bodies(number) == [b"a", b"b"]
    world.end_hold(number, first, delete=True)
    world.end_hold(number, second, delete=False)
    world.tick(1)
    assert world.bodies(number) == []
    assert world.bodies(world.find(r".\system$;DEADLETTER")) == [b"b"]


def test_a_queue_can_be_deleted_while_somebody_holds_a_message(world: World) -> None:
    number = world.create("orders")
    world.fill(number, b"a", negative_journaling=True)
    lookup_id = held(world, number)
    world.delete(number)
    refused(HResult.MQ_ERROR_QUEUE_DELETED, lambda: world.end_hold(number, lookup_id, delete=True))
    assert world.bodies(world.find(r".\system$;DEADLETTER")) == [b"a"]
