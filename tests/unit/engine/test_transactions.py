"""Transactions: all or nothing, in their order, back to their places."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from merq.engine.limits import Limits
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.selecting import ByLookup, Seek
from unit.engine.conftest import Lower
from unit.engine.engine_world import World


def filled(world: World, name: str, *bodies: bytes, **settings: object) -> int:
    number = world.create(name, transactional=True, **settings)
    transaction = world.begin()
    for body in bodies:
        world.send(number, transaction, body=body)
    world.commit(transaction)
    return number


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.8", "MS-MQDMPR 3.1.4.4")
@pytest.mark.spec("E14")
def test_what_is_sent_in_a_transaction_comes_when_it_commits_in_the_order_of_sending(
    world: World,
) -> None:
    number = world.create("orders", transactional=True)
    transaction = world.begin()
    for body in (b"a", b"b", b"c"):
        world.send(number, transaction, body=body, priority=5)
    assert world.bodies(number) == []
    world.commit(transaction)
    views = world.messages(number)
    assert [view.body for view in views] == [b"a", b"b", b"c"]
    assert [view.tx_sequence_number for view in views] == [1, 2, 3]
    assert [view.previous_tx_sequence_number for view in views] == [0, 1, 2]
    assert {(view.priority, view.delivery_mode, view.transactional) for view in views} == {
        (0, 1, True)
    }


@pytest.mark.spec("MS-MQDMPR 3.1.4.5")
def test_what_is_sent_in_a_transaction_that_aborts_never_comes(world: World) -> None:
    number = world.create("orders", transactional=True)
    transaction = world.begin()
    world.send(number, transaction, body=b"a")
    world.abort(transaction)
    assert world.bodies(number) == []
    assert world.engine.queue(number).staged_bytes == 0


@pytest.mark.spec("MS-MQDMPR 3.1.4.5", "MS-MQDMPR 3.1.1.13")
def test_what_was_received_goes_back_to_its_place_with_a_count_of_aborts(world: World) -> None:
    number = filled(world, "orders", b"a", b"b", b"c")
    queue = world.engine.queue(number)
    before = list(queue.positions)
    for times in (1, 2):
        transaction = world.begin()
        assert world.body(world.receive(number, transaction=transaction)) == b"a"
        assert world.body(world.receive(number, transaction=transaction)) == b"b"
        assert world.body(world.peek(number)) == b"c"
        world.abort(transaction)
        assert list(queue.positions) == before
        assert {n: note.aborts for n, note in queue.notes.items()} == {
            before[0].lookup_id: times,
            before[1].lookup_id: times,
        }
    world.receive(number)
    assert {n: note.aborts for n, note in queue.notes.items()} == {before[1].lookup_id: 2}


@pytest.mark.spec("MS-MQDMPR 3.1.4.4")
def test_moving_from_queue_to_queue_is_one_step(world: World) -> None:
    source = filled(world, "source", b"a")
    target = world.create("target", transactional=True)
    world.durable_at_once = False
    transaction = world.begin()
    body = world.body(world.receive(source, transaction=transaction))
    world.send(target, transaction, body=body)
    world.sync()
    frames = len(world.log)
    committed = world.commit(transaction)
    assert len(world.log) == frames + 1, "one frame, there whole or not at all"
    assert not world.answered(committed)
    world.sync()
    assert (world.bodies(source), world.bodies(target)) == ([], [b"a"])
    world.restart()
    assert (world.bodies(source), world.bodies(target)) == ([], [b"a"])


def test_a_transaction_that_was_not_durable_never_happened(world: World) -> None:
    source = filled(world, "source", b"a")
    target = world.create("target", transactional=True)
    world.durable_at_once = False
    transaction = world.begin()
    world.receive(source, transaction=transaction)
    world.send(target, transaction, body=b"x")
    world.commit(transaction)
    world.restart()
    assert (world.bodies(source), world.bodies(target)) == ([b"a"], [])


def test_a_commit_that_found_no_room_gives_everything_back(world: World) -> None:
    source = filled(world, "source", b"a")
    target = world.create("target", transactional=True, quota=1)
    transaction = world.begin()
    world.receive(source, transaction=transaction)
    world.send(target, transaction, body=bytes(600))
    world.full = 1
    assert world.code(world.commit(transaction)) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert world.body(world.receive(source)) == b"a"
    assert (world.bodies(target), world.engine.queue(target).staged_bytes) == ([], 0)
    with pytest.raises(MessageQueueError) as ended:
        world.abort(transaction)
    assert ended.value.code == HResult.MQ_ERROR_TRANSACTION_SEQUENCE


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.spec("MS-MQDMPR 3.1.7.1.9")
def test_queues_take_only_messages_of_their_own_kind(world: World, transactional: bool) -> None:
    number = world.create("orders", transactional=transactional)
    transaction = 0 if transactional else world.begin()
    with pytest.raises(MessageQueueError) as wrong:
        world.send(number, transaction)
    assert wrong.value.code == HResult.MQ_ERROR_TRANSACTION_USAGE
    assert world.bodies(number) == []


def test_receiving_in_a_transaction_needs_a_transactional_queue(world: World) -> None:
    number = world.create("orders")
    world.send(number, body=b"a")
    with pytest.raises(MessageQueueError) as wrong:
        world.receive(number, transaction=world.begin())
    assert wrong.value.code == HResult.MQ_ERROR_TRANSACTION_USAGE
    assert world.body(world.peek(number)) == b"a"


def test_a_transactional_queue_can_be_received_from_outside_of_transactions(world: World) -> None:
    number = filled(world, "orders", b"a")
    assert world.body(world.receive(number)) == b"a"
    assert world.bodies(number) == []


@pytest.mark.parametrize("end", ["commit", "abort"])
@pytest.mark.spec("MS-MQDMPR 3.1.4.4", "MS-MQDMPR 3.1.4.5")
def test_nothing_can_be_done_in_a_transaction_that_has_ended(world: World, end: str) -> None:
    number = filled(world, "orders", b"a")
    transaction = world.begin()
    getattr(world, end)(transaction)
    asks: list[Callable[[], object]] = [
        lambda: world.send(number, transaction),
        lambda: world.receive(number, transaction=transaction),
        lambda: world.commit(transaction),
        lambda: world.abort(transaction),
        lambda: world.commit(12345),
    ]
    for ask in asks:
        with pytest.raises(MessageQueueError) as ended:
            ask()
        assert ended.value.code == HResult.MQ_ERROR_TRANSACTION_SEQUENCE
    assert world.bodies(number) == [b"a"]


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_whoever_waits_in_a_transaction_that_ends_is_told_and_disturbs_nobody(
    world: World, end: str
) -> None:
    number = world.create("orders", transactional=True)
    transaction = world.begin()
    waiting = world.receive(number, wait=True, transaction=transaction)
    other = world.receive(number, wait=True)
    getattr(world, end)(transaction)
    assert world.code(waiting) == HResult.MQ_ERROR_TRANSACTION_SEQUENCE
    assert not world.answered(other)
    sending = world.begin()
    world.send(number, sending, body=b"a")
    world.commit(sending)
    assert world.body(other) == b"a"


@pytest.mark.parametrize("durable", [False, True])
def test_a_transaction_over_a_deleted_queue_can_only_abort(world: World, durable: bool) -> None:
    kept, deleted = filled(world, "kept", b"k"), filled(world, "deleted", b"d")
    transaction = world.begin()
    world.receive(kept, transaction=transaction)
    world.receive(deleted, transaction=transaction)
    world.send(deleted, transaction, body=b"new")
    world.durable_at_once = durable
    world.delete(deleted)
    with pytest.raises(MessageQueueError) as refused:
        world.commit(transaction)
    assert refused.value.code == HResult.MQ_ERROR_QUEUE_DELETED
    world.abort(transaction)
    world.sync()
    assert world.bodies(kept) == [b"k"]
    received = world.receive(kept)
    world.sync()
    assert world.body(received) == b"k"
    world.restart()
    assert world.bodies(kept) == []


def test_a_purged_and_deleted_queue_can_be_replayed_after_its_transaction_aborted() -> None:
    world = World()
    number = filled(world, "orders", b"a")
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    world.purge(number)
    world.durable_at_once = False
    world.delete(number)
    world.abort(transaction)
    world.sync()
    world.restart()
    assert number not in world.engine.state.queues


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.9")
def test_room_is_taken_when_a_message_is_staged_and_given_back_by_an_abort(world: World) -> None:
    number = world.create("small", transactional=True, quota=1)
    transaction = world.begin()
    world.send(number, transaction, body=bytes(500))
    other = world.begin()
    with pytest.raises(MessageQueueError) as full:
        world.send(number, other, body=bytes(500))
    assert full.value.code == HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    world.abort(transaction)
    world.send(number, other, body=bytes(500))
    world.commit(other)
    assert world.engine.queue(number).staged_bytes == 0
    assert len(world.bodies(number)) == 1


def test_staged_messages_count_towards_the_computers_quota() -> None:
    world = World(limits=Limits(machine_quota=1))
    number = world.create("orders", transactional=True)
    world.send(number, world.begin(), body=bytes(600))
    with pytest.raises(MessageQueueError):
        world.send(number, world.begin(), body=bytes(600))


@pytest.mark.limit("merq.engine.transactions.OPERATIONS_MAX")
def test_a_transaction_with_too_much_in_it_takes_no_more_but_can_end(
    world: World, lower: Lower
) -> None:
    lower("merq.engine.transactions", "OPERATIONS_MAX", 2)
    number = filled(world, "orders", b"a", b"b")
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    waiting_number = world.create("empty", transactional=True)
    waiting = world.receive(waiting_number, wait=True, transaction=transaction)
    world.send(number, transaction, body=b"c")
    asks: list[Callable[[], object]] = [
        lambda: world.send(number, transaction),
        lambda: world.receive(number, transaction=transaction),
    ]
    for ask in asks:
        with pytest.raises(MessageQueueError) as full:
            ask()
        assert full.value.code == HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    sending = world.begin()
    world.send(waiting_number, sending, body=b"x")
    world.commit(sending)
    assert world.code(waiting) == HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    world.commit(transaction)
    assert world.bodies(number) == [b"b", b"c"]


def test_a_locked_message_is_passed_over_by_everybody_else(world: World) -> None:
    number = filled(world, "orders", b"a", b"b", b"c")
    queue = world.engine.queue(number)
    first, second, third = (place.lookup_id for place in queue.positions)
    transaction = world.begin()
    world.receive(number, ByLookup(second), transaction=transaction)
    assert world.body(world.peek(number, ByLookup(first, Seek.NEXT))) == b"c"
    assert world.body(world.peek(number, ByLookup(third, Seek.PREVIOUS))) == b"a"
    assert world.code(world.peek(number, ByLookup(second))) == HResult.MQ_ERROR_TRANSACTION_USAGE
    assert world.code(world.receive(number, ByLookup(second))) == HResult.MQ_ERROR_MESSAGE_NOT_FOUND


def test_an_abort_wakes_those_who_wait(world: World) -> None:
    number = filled(world, "orders", b"a")
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    waiting = world.receive(number, wait=True)
    assert not world.answered(waiting)
    world.abort(transaction)
    assert world.body(waiting) == b"a"


def test_a_crash_aborts_what_was_under_way(world: World) -> None:
    number = filled(world, "orders", b"a", b"b")
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    world.send(number, transaction, body=b"c")
    world.restart()
    assert world.bodies(number) == [b"a", b"b"]
    assert world.body(world.receive(number)) == b"a"
