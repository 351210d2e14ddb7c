"""Which place in a sequence a transactional message to another queue manager gets."""

from __future__ import annotations

import pytest

from unit.engine.engine_world import World

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
