"""Which place in a sequence a transactional message to another queue manager gets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merq.engine.outgoing import next_places
from merq.engine.transfer import SEQUENCE_NUMBER_MAX
from unit.engine.engine_world import World
from unit.engine.foreign_world import outgoing, transfer

REMOTE = r"DIRECT=OS:there\PRIVATE$\orders"


def send(world: World, *bodies: bytes) -> None:
    """Sends messages in one transaction."""
    transaction = world.begin()
    for body in bodies:
        world.send_to(REMOTE, transaction, body=body)
    world.commit(transaction)


def places(world: World) -> list[tuple[int, int]]:
    """Sequence and number of what waits."""
    (queue,) = world.engine.outgoing_queues()
    views = world.messages(queue.number)
    return [(view.tx_sequence_id, view.tx_sequence_number) for view in views]


@pytest.mark.spec("MS-MQQB 3.1.1.5")
def test_what_waits_together_is_one_sequence(world: World) -> None:
    send(world, b"a", b"b")
    send(world, b"c")
    first, *rest = places(world)
    assert first[1] == 1
    assert rest == [(first[0], 2), (first[0], 3)]


@pytest.mark.spec("MS-MQQB 3.1.1.5", "MS-MQQB 3.1.1.3.1")
@pytest.mark.parametrize("with_checkpoint", [False, True])
def test_a_start_begins_a_new_sequence_even_if_messages_wait(
    world: World, *, with_checkpoint: bool
) -> None:
    """A folder that was restored would give numbers again that the receiver has seen."""
    send(world, b"a", b"b")
    if with_checkpoint:
        world.checkpoint()
    world.restart()
    send(world, b"c", b"d")
    one, two, three, four = places(world)
    assert one[0] == two[0] < three[0] == four[0]
    assert (three[1], four[1]) == (1, 2)


# Many at once.


@given(counts=st.lists(st.integers(1, 1000), min_size=1, max_size=20), left=st.integers(0, 3000))
@pytest.mark.spec("MS-MQQB 3.1.1.5")
def test_many_get_numbers_in_a_row_of_one_sequence(counts: list[int], left: int) -> None:
    """No number is given twice, none is above the highest, and sequences only grow."""
    world = World()
    send(world, b"a")
    queue, sequence = outgoing(world, REMOTE), transfer(world, REMOTE)
    begun, expected = sequence.sequence_id, SEQUENCE_NUMBER_MAX - left
    sequence.next_number = expected
    for count in counts:
        found, number = next_places(world.engine.state, queue, 0, count)
        if found == begun:
            assert number == expected
        else:
            assert expected + count >= SEQUENCE_NUMBER_MAX, "there was no more room"
            assert (found > begun, number) == (True, 1)
        begun, expected = found, number + count
        assert expected - 1 <= SEQUENCE_NUMBER_MAX
        assert sequence.next_number == expected


@pytest.mark.spec("MS-MQQB 3.1.1.5")
def test_many_begin_a_new_sequence_if_nothing_else_is_there_or_coming(world: World) -> None:
    send(world, b"a")
    queue, sequence = outgoing(world, REMOTE), transfer(world, REMOTE)
    state = world.engine.state
    first = sequence.sequence_id
    assert next_places(state, queue, 500, 3) == (first, 2), "one waits"
    world.purge(queue.number)
    state.stage(queue, 600)
    assert next_places(state, queue, 500, 3) == (first, 5), "another is on its way"
    second, number = next_places(state, queue, 600, 3)
    assert (second > first, number) == (True, 1)
    state.unstage(queue, 600)
    world.tick(-1000)
    third, number = next_places(state, queue, 0, 3)
    assert (third > second, number) == (True, 1), "also if the clock was put back"


@pytest.mark.spec("MS-MQQB 3.1.1.5", "MS-MQQB 3.1.1.3.1")
def test_many_begin_a_new_sequence_after_a_start(world: World) -> None:
    send(world, b"a", b"b")
    first = transfer(world, REMOTE).sequence_id
    world.restart()
    queue = outgoing(world, REMOTE)
    second, number = next_places(world.engine.state, queue, 0, 3)
    assert (second > first, number) == (True, 1)
    assert next_places(world.engine.state, queue, 0, 3) == (second, 4)
