"""Time to be received: messages leave when their time is over, unless somebody has them."""

from __future__ import annotations

import pytest

from merq.hresult import HResult
from unit.engine.engine_world import World

DEAD_LETTER = r".\system$;DEADLETTER"
pytestmark = pytest.mark.spec("MS-MQDMPR 3.1.7.2.7", "MS-MQDMPR 3.1.2.4")


def test_a_message_can_be_received_until_its_time_is_over(world: World) -> None:
    number = world.create("orders")
    world.send(number, body=b"a", time_to_be_received=10)
    world.tick(10)
    assert world.body(world.peek(number)) == b"a"
    world.tick(1)
    assert world.bodies(number) == []
    assert world.code(world.receive(number)) == HResult.MQ_ERROR_IO_TIMEOUT
    assert world.engine.next_deadline() is None


def test_messages_expire_each_at_its_time_whatever_their_order(world: World) -> None:
    number = world.create("orders")
    for body, lifetime in [(b"a", 30), (b"b", 10), (b"c", 20), (b"d", 0xFFFFFFFF)]:
        world.send(number, body=body, time_to_be_received=lifetime)
    seen = []
    for _ in range(4):
        seen.append(world.bodies(number))
        world.tick(11)
    assert seen == [[b"a", b"b", b"c", b"d"], [b"a", b"c", b"d"], [b"a", b"d"], [b"d"]]


def test_the_longest_time_that_can_be_said_does_not_overflow(world: World) -> None:
    number = world.create("orders")
    world.send(number, body=b"a", time_to_be_received=0xFFFFFFFE)
    world.tick(1_000_000_000)
    assert world.bodies(number) == [b"a"]


def test_an_expired_message_is_not_seen_while_its_removal_is_on_its_way_to_the_disk() -> None:
    world = World()
    number = world.create("orders")
    world.send(number, body=b"a", recoverable=True, time_to_be_received=10)
    world.durable_at_once = False
    world.tick(11)
    assert world.code(world.peek(number)) == HResult.MQ_ERROR_IO_TIMEOUT
    world.sync()
    assert world.bodies(number) == []
    world.restart()
    assert world.bodies(number) == []


def test_a_message_that_expired_while_the_computer_was_off_is_gone_after_the_restart() -> None:
    world = World()
    number = world.create("orders")
    world.send(
        number, body=b"a", recoverable=True, time_to_be_received=10, negative_journaling=True
    )
    world.now += 100
    world.restart()
    assert world.bodies(number) == []
    assert world.bodies(world.find(DEAD_LETTER)) == [b"a"]


def locked(world: World) -> tuple[int, int]:
    number = world.create("orders", transactional=True)
    sending = world.begin()
    world.send(number, sending, body=b"a", time_to_be_received=10)
    world.commit(sending)
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    return number, transaction


def test_a_message_that_expires_while_it_is_locked_is_received_by_a_commit(world: World) -> None:
    number, transaction = locked(world)
    world.tick(100)
    assert world.bodies(number) == [b"a"]
    world.commit(transaction)
    assert world.bodies(number) == []
    assert world.engine.queue(number).expired == set()


def test_a_message_that_expires_while_it_is_locked_expires_after_an_abort(world: World) -> None:
    number, transaction = locked(world)
    world.tick(100)
    world.abort(transaction)
    world.tick(0)
    assert world.bodies(number) == []


def test_a_message_that_is_given_back_in_time_still_expires(world: World) -> None:
    number, transaction = locked(world)
    for _ in range(3):
        world.abort(transaction)
        transaction = world.begin()
        world.receive(number, transaction=transaction)
    world.abort(transaction)
    assert len(world.engine.state.expiries) == 1, "aborts do not pile up in the calendar"
    world.tick(11)
    assert world.bodies(number) == []


def test_copies_in_journals_and_dead_letter_queues_stay(world: World) -> None:
    number = world.create("orders", journaling=True)
    for body in (b"received", b"expired"):
        world.send(
            number,
            body=body,
            time_to_be_received=10,
            negative_journaling=True,
            positive_journaling=True,
            recoverable=True,
        )
    world.receive(number)
    world.tick(11)
    for _ in range(2):
        world.tick(1_000_000)
        assert world.bodies(number | 0x80000000) == [b"received"]
        assert world.bodies(world.find(DEAD_LETTER)) == [b"expired"]
        assert world.bodies(world.find(r".\system$;JOURNAL")) == [b"received", b"expired"]
        world.restart()


def test_an_expiry_that_found_no_room_happens_later(world: World) -> None:
    number = world.create("orders")
    world.send(number, body=b"a", recoverable=True, time_to_be_received=10)
    world.full = 1
    world.tick(11)
    assert world.bodies(number) == [b"a"]
    assert world.engine.next_deadline() is not None
    world.tick(0)
    assert world.bodies(number) == []


def test_a_receipt_that_found_no_room_leaves_an_expired_message_to_expire() -> None:
    world = World()
    number = world.create("orders")
    world.send(number, body=b"a", recoverable=True, time_to_be_received=10)
    request = world.next_request()
    from merq.model.selecting import First

    world.engine.receive(request, number, First(), wait=False)
    world.engine.tick(world.now + 11)
    world.full = 1
    world.perform()
    assert world.code(request) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    world.tick(11)
    assert world.bodies(number) == []


def test_nothing_expires_in_a_queue_that_is_being_deleted() -> None:
    world = World()
    number = world.create("orders")
    world.send(number, body=b"a", recoverable=True, time_to_be_received=10)
    world.durable_at_once = False
    world.delete(number)
    world.tick(11)
    world.sync()
    world.restart()
    assert number not in world.engine.state.queues


def test_the_calendar_of_a_deleted_queue_disturbs_nobody(world: World) -> None:
    number = world.create("orders")
    world.send(number, time_to_be_received=10)
    world.delete(number)
    other = world.create("other")
    world.send(other, body=b"b")
    world.tick(11)
    assert world.bodies(other) == [b"b"]
