"""When disk or memory runs low no message is taken, until there is clearly more room again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from merq.engine.limits import Limits
from merq.errors import MessageQueueError
from merq.hresult import HResult
from unit.engine.engine_world import World

REMOTE = r"DIRECT=OS:there\private$\orders"
LIMITS = Limits(memory_bytes=10_000, disk_reserve_bytes=1_000)
SHORT = HResult.MQ_ERROR_INSUFFICIENT_RESOURCES


@pytest.fixture
def world() -> World:
    return World(limits=LIMITS)


def refused(ask: Callable[[], object]) -> str:
    with pytest.raises(MessageQueueError) as caught:
        ask()
    assert caught.value.code == SHORT
    return str(caught.value)


@pytest.mark.limit("engine.disk_reserve_bytes")
@pytest.mark.spec("MS-MQDMPR 3.1.7.2.5", "MS-MQDMPR 3.1.7.2.6", "MS-MQDMPR 3.1.1.1")
@pytest.mark.spec("MS-MQSO note 6")
def test_it_begins_below_the_reserve_and_ends_at_twice_as_much(world: World) -> None:
    state = world.engine.state
    course = [
        (1_000, False),
        (999, True),
        (0, True),
        (1_000, True),
        (1_999, True),
        (2_000, False),
        (1_000, False),
        (999, True),
    ]
    for free, throttled in course:
        world.engine.watch_resources(free)
        assert (free, state.throttled) == (free, throttled)


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.9", "MS-MQDMPR 3.1.1.1")
@pytest.mark.parametrize("recoverable", [False, True])
def test_no_message_is_taken_while_it_lasts_whatever_its_kind(
    world: World, recoverable: bool
) -> None:
    number = world.create("orders")
    safe = world.create("safe", transactional=True)
    transaction = world.begin()
    world.engine.watch_resources(0)
    before = world.digest()
    asks: list[Callable[[], object]] = [
        lambda: world.send(number, body=b"a", recoverable=recoverable),
        lambda: world.send(safe, transaction, body=b"a"),
        lambda: world.send_to(REMOTE, body=b"a", recoverable=recoverable),
        lambda: world.send_to(rf"DIRECT=OS:.\private$\orders,{REMOTE}", body=b"a"),
    ]
    for ask in asks:
        assert "disk" in refused(ask)
    assert world.digest() == before
    world.engine.watch_resources(2_000)
    for ask in asks:
        ask()
    assert len(world.bodies(number)) == 2


def test_what_makes_room_goes_on(world: World) -> None:
    number = world.create("orders", transactional=True)
    first, _, _, last = world.fill(number, b"a", b"b", b"c", b"d")
    later = world.subqueue(number, "later")
    transaction = world.begin()
    world.send(number, transaction, body=b"sent before")
    world.engine.watch_resources(0)
    assert world.body(world.receive(number)) == b"a"
    assert first not in world.lookup_ids(number)
    reading = world.begin()
    assert world.body(world.receive(number, transaction=reading)) == b"b"
    assert world.answers[world.commit(reading)] is None
    world.move(number, last, later)
    assert world.answers[world.commit(transaction)] is None, "its room was taken before"
    assert world.bodies(number) == [b"c", b"sent before"]
    assert world.answers[world.purge(number)] == 2
    world.delete(number)


@pytest.mark.limit("engine.memory_bytes")
@pytest.mark.spec("MS-MQDMPR 3.1.7.2.5", "MS-MQDMPR 3.1.7.2.6")
def test_express_messages_fill_the_memory_until_a_fifth_of_it_is_free_again(world: World) -> None:
    number = world.create("orders")
    while world.engine.state.memory_bytes <= LIMITS.memory_bytes:
        world.engine.watch_resources(None)
        world.send(number, body=bytes(1_000))
    world.engine.watch_resources(None)
    assert "memory" in refused(lambda: world.send(number, body=b"a"))
    while world.engine.state.memory_bytes > LIMITS.memory_bytes * 4 // 5:
        assert world.engine.state.throttled
        refused(lambda: world.send(number, body=b"a", recoverable=True))
        world.receive(number)
        world.engine.watch_resources(None)
    assert not world.engine.state.throttled
    world.send(number, body=b"a")


def test_the_memory_is_not_overrun_between_two_looks(world: World) -> None:
    number = world.create("orders")
    for _ in range(9):
        world.send(number, body=bytes(1_000))
    assert "memory" in refused(lambda: world.send(number, body=b"a"))
    assert len(world.bodies(number)) == 9


def test_recoverable_messages_take_no_memory(world: World) -> None:
    number = world.create("orders")
    for _ in range(20):
        world.send(number, body=bytes(1_000), recoverable=True)
        world.engine.watch_resources(None)
    assert (world.engine.state.memory_bytes, world.engine.state.throttled) == (0, False)


def test_disk_and_memory_are_watched_apart(world: World) -> None:
    number = world.create("orders")
    for _ in range(9):
        world.send(number, body=bytes(1_000))
    world.engine.watch_resources(0)
    world.engine.watch_resources(5_000)
    assert "memory" in refused(lambda: world.send(number))
    world.purge(number)
    world.engine.watch_resources(None)
    world.send(number)
    world.engine.watch_resources(0)
    world.engine.watch_resources(None)
    assert "disk" in refused(lambda: world.send(number))


def test_memory_is_given_back_by_every_way_out(world: World) -> None:
    number = world.create("orders")
    later = world.subqueue(number, "later")
    world.send(number, body=b"received")
    world.receive(number)
    world.send(number, body=b"purged")
    world.purge(number)
    world.send(number, body=b"expired", time_to_be_received=1)
    world.tick(2)
    world.send(number, body=b"moved")
    world.move(number, world.lookup_ids(number)[0], later)
    assert world.engine.state.memory_bytes > 0
    world.send(number, body=b"deleted")
    world.delete(number)
    assert (world.engine.state.memory_bytes, world.engine.state.taken_bytes) == (0, 0)


def test_it_does_not_outlive_the_process(world: World) -> None:
    number = world.create("orders")
    world.engine.watch_resources(0)
    world.restart()
    world.send(number, body=b"a", recoverable=True)
    assert world.bodies(number) == [b"a"]
