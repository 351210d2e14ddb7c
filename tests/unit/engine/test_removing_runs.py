"""Messages that leave together: as if each had left alone, now and after a restart."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merq.engine import records
from merq.model.selecting import First
from unit.engine.engine_world import World
from unit.engine.foreign_world import REMOTE, depart, outgoing

LIFETIME_S = 50


class Sent(NamedTuple):
    """What matters of a message for how it leaves."""

    is_recoverable: bool
    priority: int
    lives: bool


sent = st.builds(
    Sent, st.sampled_from([True, True, False]), st.sampled_from([3, 3, 3, 4]), st.booleans()
)
plain = st.just(Sent(is_recoverable=True, priority=3, lives=False))
sends = st.lists(sent, min_size=1, max_size=12) | st.lists(plain, min_size=2, max_size=12)
BURDENS = ["nothing", "a held one", "an expired one", "locked ones", "a noted one"]


def lifetime(each: Sent) -> dict[str, int]:
    return {} if each.lives else {"time_to_be_received": LIFETIME_S}


def seen(world: World) -> object:
    """Everything that can be seen, and how the queues and the store count it."""
    state = world.engine.state
    counts = {
        queue.number: (
            [(place._replace(location=0), state.stored(place)) for place in queue.positions],
            dict(queue.notes),
            queue.staged_bytes,
            queue.positions.count,
            queue.positions.available,
            queue.positions.total_bytes,
            queue.left,
            queue.arrived,
            len(queue.by_message_id),
            [queue.by_message_id.get(place.key) for place in queue.positions],
            dict(queue.held),
            set(queue.expired),
        )
        for queue in state.queues.values()
    }
    room = state.taken_bytes, state.memory_bytes, dict(world.packets.kept)
    return counts, room, len(state.expiries), state.expiries.next()


def removals(world: World) -> int:
    """How many records say that several messages left."""
    kinds = [entry.kind for frame in world.log for entry in frame.entries]
    return kinds.count(records.REMOVE_MANY)


def loaded(messages: list[Sent], burden: str) -> tuple[World, int]:
    """A queue with these messages, and something in it that has to be minded."""
    world = World()
    if burden in ("locked ones", "a noted one"):
        number = world.create("orders", transactional=True)
        transaction = world.begin()
        for row in range(len(messages)):
            world.send(number, transaction, body=bytes(row))
        world.commit(transaction)
        within = world.begin()
        for _ in messages[::3]:
            world.receive(number, transaction=within)
        if burden == "a noted one":
            world.abort(within)
        return world, number
    number = world.create("orders")
    if burden != "nothing":
        world.send(number, recoverable=True, priority=7, time_to_be_received=5)
        world.hold(number)
    for row, each in enumerate(messages):
        world.send(
            number,
            body=bytes(row),
            recoverable=each.is_recoverable,
            priority=each.priority,
            **lifetime(each),
        )
    if burden == "an expired one":
        world.tick(10)
        assert world.engine.state.queues[number].expired
    return world, number


def receive_together(world: World, number: int, most: int) -> None:
    request = world.next_request()
    world.engine.receive(request, number, First(), wait=False, most=most)
    world.perform()


@settings(max_examples=150)
@given(
    messages=sends,
    most=st.integers(2, 12),
    burden=st.sampled_from(BURDENS),
    is_checkpointed=st.booleans(),
)
def test_a_run_is_received_as_its_messages_would_be_one_by_one(
    messages: list[Sent], most: int, burden: str, is_checkpointed: bool
) -> None:
    (together, number), (singly, _) = (loaded(messages, burden) for _ in range(2))
    for world in (together, singly):
        if is_checkpointed:
            world.checkpoint()
    before = len(singly.lookup_ids(number))
    receive_together(together, number, most)
    for _ in range(before - len(together.lookup_ids(number))):
        singly.receive(number)
    assert seen(together) == seen(singly)
    for world in (together, singly):
        world.restart()
    assert seen(together) == seen(singly)
    together.tick(LIFETIME_S + 1)
    singly.tick(LIFETIME_S + 1)
    assert seen(together) == seen(singly)


@pytest.mark.parametrize("burden", BURDENS)
def test_a_restart_reads_again_that_several_left(burden: str) -> None:
    """Whatever else is in the queue, and though some were kept in memory only."""
    messages = [
        Sent(is_recoverable=row % 4 != 1, priority=3, lives=row % 2 == 0) for row in range(9)
    ]
    world, number = loaded(messages, burden)
    receive_together(world, number, 4)
    assert removals(world) == 1
    is_transactional = world.engine.queue(number).properties.transactional
    left = [
        place.lookup_id
        for place in world.engine.state.queues[number].positions
        if is_transactional or place.location < 1 << 63
    ]
    if burden == "an expired one":
        del left[0]  # nobody holds it any more
    world.restart()
    assert world.lookup_ids(number) == left
    assert sum(world.packets.kept.values()) == world.engine.state.taken_bytes


@settings(max_examples=100)
@given(
    messages=sends,
    gone=st.sets(st.integers(0, 11), min_size=1),
    is_noted=st.booleans(),
    is_late=st.booleans(),
    is_checkpointed=st.booleans(),
)
@pytest.mark.spec("MS-MQQB 3.1.5.5.2", "MS-MQQB 3.1.5.5.3")
def test_what_is_acknowledged_together_leaves_as_it_would_one_by_one(
    messages: list[Sent], gone: set[int], is_noted: bool, is_late: bool, is_checkpointed: bool
) -> None:
    """Also out of the middle of an outgoing queue, past messages with notes, and too late."""
    worlds = World(), World()
    for world in worlds:
        world.create("mine", transactional=False)
        for row, each in enumerate(messages):
            own = r".\private$\mine" if is_noted and not row % 4 else ""
            world.send_to(
                REMOTE,
                body=bytes(row),
                recoverable=each.is_recoverable,
                priority=each.priority,
                dead_letter=own,
                **lifetime(each),
            )
        depart(world)
        if is_checkpointed:
            world.checkpoint()
        if is_late:
            world.tick(LIFETIME_S + 1)
    together, singly = worlds
    queue = outgoing(together)
    ids = [one for row, one in enumerate(together.lookup_ids(queue.number)) if row in gone]
    together.engine.departures.acknowledged(queue, [(one, False) for one in ids])
    together.perform()
    for one in ids:
        singly.engine.departures.acknowledged(outgoing(singly), [(one, False)])
        singly.perform()
    assert not set(ids) & set(together.lookup_ids(queue.number))
    assert seen(together) == seen(singly)
    for world in worlds:
        world.restart()
    assert seen(together) == seen(singly)


@settings(max_examples=60)
@given(messages=sends, most=st.integers(1, 12), is_late=st.booleans())
@pytest.mark.spec("MS-MQDMPR 3.1.7.1.12")
def test_what_was_held_goes_together_as_it_would_one_by_one(
    messages: list[Sent], most: int, is_late: bool
) -> None:
    """Nothing is left behind of those that were held, nor of those whose time was over."""
    worlds = [loaded(messages, "nothing") for _ in range(2)]
    for row, (world, number) in enumerate(worlds):
        request = world.next_request()
        world.engine.receive(request, number, First(), wait=False, most=most, held=True)
        world.perform()
        if is_late:
            world.tick(LIFETIME_S + 1)
        held = sorted(world.engine.state.queues[number].held)
        for ids in [[one] for one in held] if row else [held]:
            world.engine.end_receive(world.next_request(), number, ids, delete=True)
            world.perform()
        queue = world.engine.state.queues[number]
        assert (queue.held, queue.expired & set(held)) == ({}, set())
    (together, _), (singly, _) = worlds
    assert seen(together) == seen(singly)
    together.restart()
    singly.restart()
    assert seen(together) == seen(singly)


def test_what_could_not_leave_together_is_all_there_and_leaves_later() -> None:
    world, number = loaded([Sent(is_recoverable=True, priority=3, lives=False)] * 6, "nothing")
    before = seen(world)
    world.full = 1
    receive_together(world, number, 4)
    assert seen(world) == before
    receive_together(world, number, 4)
    assert len(world.lookup_ids(number)) == 2
    world.restart()
    assert len(world.lookup_ids(number)) == 2


# As the log has it.


@given(
    queue=st.integers(0, 0xFFFFFFFF),
    lookup_ids=st.lists(st.integers(0, (1 << 64) - 1), min_size=2, max_size=50),
)
def test_what_is_written_of_several_is_read_again(queue: int, lookup_ids: list[int]) -> None:
    entry = records.remove_many(queue, lookup_ids)
    assert entry.kind == records.REMOVE_MANY
    assert records.read_remove_many(memoryview(entry.whole)) == (queue, lookup_ids)
    assert len(entry.whole) == 8 + 8 * len(lookup_ids)


def test_a_single_one_is_written_as_ever() -> None:
    assert records.remove_many(7, [1 << 58]) == records.remove(7, 1 << 58)
