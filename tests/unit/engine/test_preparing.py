"""Transactions that are prepared first: they survive a restart, and end as they are told."""

from __future__ import annotations

from functools import partial
from uuid import UUID

import pytest

from merq.hresult import HResult
from merq.model.message_class import MessageClass
from merq.model.selecting import ByLookup
from unit.engine.engine_world import World, refused

NAME = UUID("aaaaaaaa-0000-0000-0000-000000000001")
OTHER = UUID("aaaaaaaa-0000-0000-0000-000000000002")
REMOTE = r"DIRECT=OS:there\PRIVATE$\orders"


def working(world: World) -> tuple[int, int, int]:
    """A source of two and a target, and a transaction that takes from one and sends to both."""
    source = world.create("source", transactional=True)
    target = world.create("target", transactional=True)
    world.fill(source, b"a", b"b")
    transaction = world.begin()
    world.receive(source, transaction=transaction)
    world.send(target, transaction, body=b"x", label="first")
    world.send(target, transaction, body=b"y")
    return source, target, transaction


def again(world: World, *, checkpoint: bool) -> int:
    """The prepared transaction's number after a restart."""
    if checkpoint:
        world.checkpoint()
    world.restart()
    return world.engine.transactions.prepared()[NAME]


@pytest.mark.spec("MS-MQDMPR 3.1.4.3")
def test_a_prepared_transaction_has_done_nothing_and_takes_nothing_more(world: World) -> None:
    source, target, transaction = working(world)
    assert world.answers[world.prepare(transaction, NAME)] is None
    assert (world.bodies(source), world.bodies(target)) == ([b"a", b"b"], [])
    assert world.body(world.peek(source)) == b"b"
    text = refused(
        HResult.MQ_ERROR_TRANSACTION_SEQUENCE, lambda: world.send(target, transaction, body=b"z")
    )
    assert "prepared" in text
    refused(
        HResult.MQ_ERROR_TRANSACTION_SEQUENCE,
        lambda: world.receive(source, transaction=transaction),
    )
    refused(HResult.MQ_ERROR_TRANSACTION_SEQUENCE, lambda: world.prepare(transaction, OTHER))
    world.commit(transaction)
    assert (world.bodies(source), world.bodies(target)) == ([b"b"], [b"x", b"y"])


@pytest.mark.spec("MS-MQDMPR 3.1.4.3", "MS-MQDMPR 3.1.4.4", "MS-MQDMPR 3.1.1.14")
@pytest.mark.parametrize("checkpoint", [False, True])
def test_it_commits_after_a_restart(world: World, checkpoint: bool) -> None:
    source, target, transaction = working(world)
    world.prepare(transaction, NAME)
    found = again(world, checkpoint=checkpoint)
    assert world.body(world.peek(source)) == b"b", "what it received is still its own"
    world.commit(found)
    assert (world.bodies(source), world.bodies(target)) == ([b"b"], [b"x", b"y"])
    first, last = world.messages(target)
    assert (first.label, first.transactional) == ("first", True)
    for checkpointed in (False, True):
        if checkpointed:
            world.checkpoint()
        world.restart()
        assert world.engine.transactions.prepared() == {}
        assert (world.bodies(source), world.bodies(target)) == ([b"b"], [b"x", b"y"])
    assert first.message_id != last.message_id


@pytest.mark.spec("MS-MQDMPR 3.1.4.5", "MS-MQDMPR 3.1.1.13")
@pytest.mark.parametrize("checkpoint", [False, True])
def test_it_aborts_after_a_restart(world: World, checkpoint: bool) -> None:
    source, target, transaction = working(world)
    world.prepare(transaction, NAME)
    world.abort(again(world, checkpoint=checkpoint))
    for _ in range(2):
        assert (world.bodies(source), world.bodies(target)) == ([b"a", b"b"], [])
        notes = world.engine.queue(source).notes
        assert [note.aborts for note in notes.values()] == [1]
        assert world.engine.queue(target).staged_bytes == 0
        assert world.engine.transactions.prepared() == {}
        world.restart()
    assert world.body(world.receive(source)) == b"a"


@pytest.mark.spec("MS-MQDMPR 3.1.4.3", "MS-MQDMPR 3.1.4.4")
def test_the_first_and_the_last_message_say_that_they_are(world: World) -> None:
    _, target, transaction = working(world)
    world.send(target, transaction, body=b"z")
    world.prepare(transaction, NAME)
    world.commit(transaction)
    marks = []
    for view in world.messages(target):
        header = view.decode().transaction_header
        assert header is not None
        marks.append((header.fields.flags.first_message, header.fields.flags.last_message))
    assert marks == [(True, False), (False, False), (False, True)]


def test_it_is_answered_when_it_is_durable_and_forgotten_if_it_was_not(world: World) -> None:
    source, target, transaction = working(world)
    world.durable_at_once = False
    request = world.prepare(transaction, NAME)
    assert not world.answered(request)
    assert world.engine.transactions.prepared() == {}
    world.restart()
    assert world.engine.transactions.prepared() == {}
    assert (world.bodies(source), world.bodies(target)) == ([b"a", b"b"], [])
    assert world.body(world.peek(source)) == b"a"


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_an_end_that_was_not_durable_is_to_be_said_again(world: World, end: str) -> None:
    source, target, transaction = working(world)
    world.prepare(transaction, NAME)
    world.durable_at_once = False
    request = getattr(world, end)(transaction)
    assert not world.answered(request)
    refused(HResult.MQ_ERROR_TRANSACTION_SEQUENCE, lambda: world.commit(transaction))
    world.restart()
    world.durable_at_once = True
    world.commit(world.engine.transactions.prepared()[NAME])
    assert (world.bodies(source), world.bodies(target)) == ([b"b"], [b"x", b"y"])


def test_without_room_to_prepare_it_stays_open(world: World) -> None:
    source, target, transaction = working(world)
    world.full = 1
    assert world.code(world.prepare(transaction, NAME)) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    world.send(target, transaction, body=b"z")
    world.prepare(transaction, NAME)
    world.commit(transaction)
    assert (world.bodies(source), world.bodies(target)) == ([b"b"], [b"x", b"y", b"z"])


@pytest.mark.parametrize("end", ["commit", "abort"])
@pytest.mark.parametrize("restarted", [False, True])
def test_without_room_to_end_it_stays_prepared_and_nothing_has_changed(
    world: World, end: str, restarted: bool
) -> None:
    source, target, transaction = working(world)
    world.prepare(transaction, NAME)
    if restarted:
        transaction = again(world, checkpoint=False)
    before = world.digest()
    for _ in range(2):
        world.full = 1
        request = getattr(world, end)(transaction)
        assert world.code(request) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
        assert world.digest() == before
    getattr(world, end)(transaction)
    if end == "commit":
        assert (world.bodies(source), world.bodies(target)) == ([b"b"], [b"x", b"y"])
    else:
        assert (world.bodies(source), world.bodies(target)) == ([b"a", b"b"], [])
        assert [note.aborts for note in world.engine.queue(source).notes.values()] == [1]
    assert world.engine.queue(target).staged_bytes == 0


def test_two_transactions_cannot_have_one_name(world: World) -> None:
    number = world.create("orders", transactional=True)
    first, second = world.begin(), world.begin()
    world.send(number, first, body=b"1")
    world.send(number, second, body=b"2")
    world.durable_at_once = False
    world.prepare(first, NAME)
    text = refused(HResult.MQ_ERROR_TRANSACTION_SEQUENCE, lambda: world.prepare(second, NAME))
    assert str(NAME) in text
    world.sync()
    refused(HResult.MQ_ERROR_TRANSACTION_SEQUENCE, lambda: world.prepare(second, NAME))
    world.commit(first)
    refused(HResult.MQ_ERROR_TRANSACTION_SEQUENCE, lambda: world.prepare(second, NAME))
    world.sync()
    world.prepare(second, NAME)
    world.sync()
    world.restart()
    world.durable_at_once = True
    world.commit(world.engine.transactions.prepared()[NAME])
    assert world.bodies(number) == [b"1", b"2"]


@pytest.mark.spec("MS-MQDMPR 3.1.4.3", "MS-MQDMPR 3.1.4.4", "MS-MQDMPR 3.1.4.5")
def test_a_transaction_that_is_not_there_cannot_be_prepared_or_ended(world: World) -> None:
    for ask in (lambda: world.prepare(99, NAME), lambda: world.commit(99), lambda: world.abort(99)):
        refused(HResult.MQ_ERROR_TRANSACTION_SEQUENCE, ask)


def test_whoever_waits_in_it_is_told_when_it_is_prepared(world: World) -> None:
    number = world.create("orders", transactional=True)
    transaction = world.begin()
    waiting = world.receive(number, wait=True, transaction=transaction)
    world.prepare(transaction, NAME)
    assert world.code(waiting) == HResult.MQ_ERROR_TRANSACTION_SEQUENCE
    world.fill(number, b"a")
    assert world.body(world.receive(number)) == b"a"


def test_an_empty_transaction_can_be_prepared(world: World) -> None:
    world.prepare(world.begin(), NAME)
    world.restart()
    found = world.engine.transactions.prepared()[NAME]
    assert world.answers[world.commit(found)] is None
    world.restart()
    assert world.engine.transactions.prepared() == {}


def test_a_queue_that_it_needs_cannot_be_deleted_until_it_has_ended(world: World) -> None:
    source, target, transaction = working(world)
    world.prepare(transaction, NAME)
    for number in (source, target):
        before = world.digest()
        text = refused(HResult.MQ_ERROR_TRANSACTION_USAGE, partial(world.delete, number))
        assert str(NAME) in text
        assert world.digest() == before
    found = again(world, checkpoint=True)
    refused(HResult.MQ_ERROR_TRANSACTION_USAGE, lambda: world.delete(source))
    world.commit(found)
    world.delete(source)
    assert source not in world.engine.state.queues


def test_a_transaction_over_a_deleted_queue_cannot_be_prepared(world: World) -> None:
    source, target, transaction = working(world)
    world.delete(target)
    refused(HResult.MQ_ERROR_QUEUE_DELETED, lambda: world.prepare(transaction, NAME))
    world.abort(transaction)
    assert world.body(world.peek(source)) == b"a"


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.7", "MS-MQDMPR 3.1.4.5")
@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_what_it_received_and_was_purged_meanwhile_never_comes_back(
    world: World, end: str, checkpoint: bool
) -> None:
    admin = world.create("admin")
    number = world.create("orders", transactional=True)
    world.fill(number, b"a", admin_queue=r"OS:.\private$\admin", acknowledgments=0x0A)
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    world.prepare(transaction, NAME)
    world.purge(number)
    assert world.bodies(number) == [b"a"], "somebody has it"
    found = again(world, checkpoint=checkpoint)
    assert world.bodies(number) == [b"a"]
    getattr(world, end)(found)
    assert world.bodies(number) == []
    told = [view.message_class for view in world.messages(admin)]
    if end == "commit":
        assert told == [MessageClass.MQMSG_CLASS_ACK_RECEIVE]
    else:
        assert told == [MessageClass.MQMSG_CLASS_NACK_Q_PURGED]
    world.restart()
    assert world.bodies(number) == []


@pytest.mark.spec("MS-MQDMPR 3.1.7.2.7")
@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_what_it_received_and_expired_meanwhile_is_decided_by_its_end(
    world: World, end: str, restarted: bool
) -> None:
    number = world.create("orders", transactional=True)
    world.fill(number, b"a", time_to_be_received=10, negative_journaling=True)
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    world.prepare(transaction, NAME)
    world.tick(100)
    if restarted:
        transaction = again(world, checkpoint=True)
    assert world.bodies(number) == [b"a"]
    getattr(world, end)(transaction)
    world.tick(1)
    dead = world.bodies(world.find(r".\system$;DEADXACT"))
    assert (world.bodies(number), dead) == ([], [] if end == "commit" else [b"a"])


@pytest.mark.parametrize("checkpoint", [False, True])
def test_it_holds_its_room_in_quotas_over_a_restart(world: World, checkpoint: bool) -> None:
    number = world.create("small", transactional=True, quota=1)
    transaction = world.begin()
    world.send(number, transaction, body=bytes(600))
    world.prepare(transaction, NAME)
    found = again(world, checkpoint=checkpoint)
    other = world.begin()
    refused(
        HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
        lambda: world.send(number, other, body=bytes(600)),
    )
    world.abort(found)
    world.send(number, other, body=bytes(600))
    world.commit(other)
    assert len(world.bodies(number)) == 1
    assert world.engine.queue(number).staged_bytes == 0


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_sends_to_other_computers_are_prepared_as_well(
    world: World, end: str, checkpoint: bool
) -> None:
    dead_letters = world.create("undelivered", transactional=True)
    transaction = world.begin()
    world.send_to(
        REMOTE,
        transaction,
        body=b"far",
        time_to_reach_queue=50,
        negative_journaling=True,
        dead_letter=r".\private$\undelivered",
    )
    world.prepare(transaction, NAME)
    found = again(world, checkpoint=checkpoint)
    getattr(world, end)(found)
    world.restart()
    outgoing = world.engine.outgoing_queues()
    if end == "abort":
        assert outgoing == []
        return
    assert [queue.properties.path_name for queue in outgoing] == [REMOTE]
    assert world.bodies(outgoing[0].number) == [b"far"]
    world.tick(51)
    assert world.bodies(dead_letters) == [b"far"], "it remembers its own dead-letter queue"


def test_several_are_prepared_and_each_ends_by_its_name(world: World) -> None:
    number = world.create("orders", transactional=True)
    for name, body in ((NAME, b"1"), (OTHER, b"2")):
        transaction = world.begin()
        world.send(number, transaction, body=body)
        world.prepare(transaction, name)
    open_one = world.begin()
    world.send(number, open_one, body=b"3")
    world.restart()
    found = world.engine.transactions.prepared()
    assert set(found) == {NAME, OTHER}
    world.commit(found[OTHER])
    world.restart()
    assert world.bodies(number) == [b"2"]
    assert set(world.engine.transactions.prepared()) == {NAME}


def test_a_new_transaction_does_not_meet_a_prepared_one_after_a_restart(world: World) -> None:
    source, target, transaction = working(world)
    world.prepare(transaction, NAME)
    found = again(world, checkpoint=True)
    new = world.begin()
    assert new != found
    world.send(target, new, body=b"new")
    world.commit(new)
    assert world.bodies(target) == [b"new"]
    world.commit(found)
    assert (world.bodies(source), world.bodies(target)) == ([b"b"], [b"new", b"x", b"y"])


def test_a_received_message_can_be_found_by_nobody_while_it_is_prepared(world: World) -> None:
    number = world.create("orders", transactional=True)
    (only,) = world.fill(number, b"a")
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    world.prepare(transaction, NAME)
    again(world, checkpoint=True)
    asked = world.receive(number, ByLookup(only))
    assert world.code(asked) == HResult.MQ_ERROR_MESSAGE_NOT_FOUND
    assert world.code(world.receive(number)) == HResult.MQ_ERROR_IO_TIMEOUT
