"""Messages that leave twice, or are acknowledged twice, are counted once."""

from __future__ import annotations

import pytest

from unit.engine.engine_world import World
from unit.engine.foreign_world import REMOTE, commit, depart, outgoing, transfer


@pytest.mark.spec("MS-MQQB 3.1.5.5.2", "MS-MQQB 3.1.5.5.3")
def test_an_acknowledgment_counts_for_those_that_are_there_if_others_are_gone(
    world: World,
) -> None:
    for body in (b"a", b"b", b"c", b"d"):
        world.send_to(REMOTE, body=body, recoverable=True)
    found = depart(world)
    queue = outgoing(world)
    for some in (found[1:2], found[:3], found):
        world.engine.departures.acknowledged(queue, [(each.lookup_id, False) for each in some])
        world.perform()
        if some is not found:
            assert world.bodies(queue.number)[-1] == b"d"
    assert world.bodies(queue.number) == []


@pytest.mark.spec("MS-MQQB 3.1.6.5", "MS-MQQB 3.1.5.9", "MS-MQQB 3.1.1.3.1")
def test_what_is_sent_again_waits_for_one_order_ack_not_for_two(world: World) -> None:
    commit(world, b"a", b"b", b"c")
    first = depart(world)
    waiting = [each.lookup_id for each in transfer(world).unordered]
    assert waiting == [each.lookup_id for each in first]
    world.engine.departures.rewind(outgoing(world))
    again = depart(world)
    assert [each.packet for each in again] == [each.packet for each in first]
    assert [each.lookup_id for each in transfer(world).unordered] == waiting
    assert world.engine.departures.count_under_way(outgoing(world)) == 3


def test_the_queues_that_every_queue_manager_has_have_the_numbers_that_others_know(
    world: World,
) -> None:
    found = {
        name: world.find(rf".\private$\{name}")
        for name in ("admin_queue$", "notify_queue$", "order_queue$")
    }
    assert found == {"admin_queue$": 2, "notify_queue$": 3, "order_queue$": 4}
    assert not any(world.engine.queue(number).properties.transactional for number in found.values())
