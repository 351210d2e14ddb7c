"""Messages that make every receiver fail are set aside in the subqueue `poison`."""

from __future__ import annotations

from uuid import UUID

import pytest

from merq.engine.poison import POISON
from merq.hresult import HResult
from merq.model.selecting import ByLookup
from unit.engine.engine_world import World

NAME = UUID(int=0xBAD)


def orders(world: World, poison_after: int = 2) -> int:
    return world.create("orders", transactional=True, poison_after=poison_after)


def fail(world: World, number: int) -> bytes:
    """Receives in a transaction that aborts; gives what it got."""
    transaction = world.begin()
    request = world.receive(number, transaction=transaction)
    body = world.body(request)
    world.abort(transaction)
    return body


def poisoned(world: World, number: int) -> list[bytes]:
    found = world.engine.queue(number).subqueues.get(POISON)
    return [] if found is None else world.bodies(found.number)


def test_a_message_moves_aside_after_so_many_aborts_and_others_come_through(
    world: World,
) -> None:
    number = orders(world)
    first, _ = world.fill(number, b"bad", b"good")
    assert fail(world, number) == b"bad"
    assert (world.bodies(number), poisoned(world, number)) == ([b"bad", b"good"], [])
    assert fail(world, number) == b"bad"
    assert (world.bodies(number), poisoned(world, number)) == ([b"good"], [b"bad"])
    aside = world.engine.queue(number).subqueues[POISON]
    assert world.lookup_ids(aside.number) == [first]
    assert aside.notes[first].aborts == 2
    assert world.body(world.receive(number)) == b"good"


def test_it_is_off_unless_it_was_asked_for(world: World) -> None:
    number = orders(world, poison_after=0)
    world.fill(number, b"a")
    for _ in range(20):
        assert fail(world, number) == b"a"
    assert (world.bodies(number), world.engine.queue(number).subqueues) == ([b"a"], {})


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.spec("MS-MQDMPR 3.1.4.5")
def test_aborts_are_counted_over_restarts(world: World, checkpoint: bool) -> None:
    number = orders(world, poison_after=3)
    (only,) = world.fill(number, b"a")
    for times in (1, 2):
        fail(world, number)
        if checkpoint:
            world.checkpoint()
        world.restart()
        assert world.engine.queue(number).notes[only].aborts == times
    fail(world, number)
    assert (world.bodies(number), poisoned(world, number)) == ([], [b"a"])
    if checkpoint:
        world.checkpoint()
    world.restart()
    assert (world.bodies(number), poisoned(world, number)) == ([], [b"a"])
    aside = world.engine.queue(number).subqueues[POISON]
    assert aside.notes[only].aborts == 3


def test_the_count_goes_with_the_message_that_it_is_about(world: World) -> None:
    number = orders(world)
    world.fill(number, b"a")
    fail(world, number)
    world.receive(number)
    assert world.engine.queue(number).notes == {}
    world.fill(number, b"b")
    fail(world, number)
    assert (world.bodies(number), poisoned(world, number)) == ([b"b"], [])
    world.restart()
    assert len(world.engine.queue(number).notes) == 1


def test_the_reader_is_told_how_often_it_failed(world: World) -> None:
    number = orders(world, poison_after=9)
    world.fill(number, b"a")
    for times in range(3):
        request = world.peek(number)
        assert world.answers[request].aborts == times  # type: ignore[union-attr]
        fail(world, number)


def test_without_room_to_set_it_aside_it_goes_back_and_is_tried_again(world: World) -> None:
    number = orders(world, poison_after=1)
    world.fill(number, b"a")
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    world.full = 1
    assert world.answers[world.abort(transaction)] is None, "an abort always happens"
    assert (world.bodies(number), poisoned(world, number)) == ([b"a"], [])
    assert fail(world, number) == b"a"
    assert (world.bodies(number), poisoned(world, number)) == ([], [b"a"])


def test_without_room_to_count_an_abort_it_happens_all_the_same(world: World) -> None:
    number = orders(world, poison_after=5)
    (only,) = world.fill(number, b"a")
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    world.full = 1
    assert world.answers[world.abort(transaction)] is None
    assert world.body(world.receive(number, ByLookup(only))) == b"a"


def test_whoever_waits_gets_the_next_message_not_the_poison(world: World) -> None:
    number = orders(world, poison_after=1)
    world.fill(number, b"bad")
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    waiting = world.receive(number, wait=True)
    world.abort(transaction)
    assert not world.answered(waiting)
    world.fill(number, b"good")
    assert world.body(waiting) == b"good"


def test_before_it_is_durable_nobody_gets_it_and_a_crash_brings_it_back(world: World) -> None:
    number = orders(world, poison_after=1)
    world.fill(number, b"a")
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    world.durable_at_once = False
    world.abort(transaction)
    assert world.code(world.receive(number)) == HResult.MQ_ERROR_IO_TIMEOUT
    world.restart()
    assert (world.bodies(number), poisoned(world, number)) == ([b"a"], [])


@pytest.mark.parametrize("restarted", [False, True])
def test_the_abort_of_a_prepared_transaction_counts_as_well(world: World, restarted: bool) -> None:
    number = orders(world, poison_after=1)
    world.fill(number, b"a")
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    world.prepare(transaction, NAME)
    if restarted:
        world.checkpoint()
        world.restart()
        transaction = world.engine.transactions.prepared()[NAME]
    before = world.digest()
    world.full = 1
    assert world.code(world.abort(transaction)) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert world.digest() == before
    world.abort(transaction)
    assert (world.bodies(number), poisoned(world, number)) == ([], [b"a"])
    world.restart()
    assert (world.bodies(number), poisoned(world, number)) == ([], [b"a"])


def test_what_fails_in_a_subqueue_stays_there(world: World) -> None:
    number = orders(world, poison_after=1)
    world.fill(number, b"a")
    fail(world, number)
    aside = world.engine.queue(number).subqueues[POISON].number
    fail(world, aside)
    assert world.bodies(aside) == [b"a"]


def test_several_of_one_transaction_are_set_aside_together(world: World) -> None:
    number = orders(world, poison_after=1)
    world.fill(number, b"a", b"b", b"c")
    transaction = world.begin()
    for _ in range(2):
        world.receive(number, transaction=transaction)
    world.abort(transaction)
    assert (world.bodies(number), poisoned(world, number)) == ([b"c"], [b"a", b"b"])


def test_a_poison_message_can_be_moved_back_and_starts_where_it_was(world: World) -> None:
    number = orders(world, poison_after=1)
    (only,) = world.fill(number, b"a")
    fail(world, number)
    aside = world.engine.queue(number).subqueues[POISON].number
    world.move(aside, only, number)
    assert (world.bodies(number), world.bodies(aside)) == ([b"a"], [])
    assert world.body(world.receive(number)) == b"a"


def test_the_limit_can_be_changed_while_messages_fail(world: World) -> None:
    number = orders(world, poison_after=0)
    world.fill(number, b"a")
    fail(world, number)
    request = world.next_request()
    world.engine.change_queue(request, number, {"poison_after": 2})
    world.perform()
    fail(world, number)
    assert (world.bodies(number), poisoned(world, number)) == ([], [b"a"])
