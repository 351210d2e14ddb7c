"""Queues of acknowledgments to others: which give way, and that it can come to nothing."""

from __future__ import annotations

from uuid import UUID

import pytest

from merq.engine.arriving import Arrival
from merq.errors import MessageQueueError
from merq.model.queue import OutgoingState
from merq.wire.view import MessageView
from unit.engine.conftest import Lower
from unit.engine.engine_world import World
from unit.engine.foreign_world import arrive, foreign, leaving, place


def rejected(number: int) -> tuple[bytes, str, UUID]:
    """A message that its sender is told was rejected, where it comes from, and who sent it."""
    guid = UUID(int=0xE000 + number)
    packet = foreign("nowhere", transaction=place(1), source_queue_manager=guid.bytes_le)
    return packet, f"10.9.{number}.1", guid


def come(world: World, number: int) -> set[int]:
    """Somebody's message is rejected; gives who has acknowledgments waiting then."""
    packet, address, guid = rejected(number)
    assert arrive(world, packet, address=address, guid=guid).refusal == ""
    return waiting(world)


def waiting(world: World) -> set[int]:
    return {int(name.rpartition(";")[2], 16) - 0xE000 for name in leaving(world)}


@pytest.fixture
def crowded(world: World, lower: Lower) -> World:
    """There is room for three, and three are there."""
    lower("merq.engine.order_queues", "ORDER_QUEUES_MAX", 3)
    for number in range(3):
        come(world, number)
    return world


@pytest.mark.limit("merq.engine.order_queues.ORDER_QUEUES_MAX")
@pytest.mark.spec("MS-MQQB 3.1.7.17", "E144")
def test_the_last_of_equals_gives_way_and_is_gone_after_a_restart_too(crowded: World) -> None:
    assert waiting(crowded) == {0, 1, 2}
    assert come(crowded, 3) == {0, 1, 3}
    crowded.restart()
    assert waiting(crowded) == {0, 1, 3}
    assert len(come(crowded, 4)) == 3, "how many there are is known"


@pytest.mark.spec("MS-MQQB 3.1.7.17", "E144")
def test_who_gave_way_is_there_again_if_that_could_not_be_written(crowded: World) -> None:
    packet, address, guid = rejected(3)
    crowded.full = 1
    request = crowded.next_request()
    arrival = Arrival(MessageView(packet), address, guid.bytes_le)
    crowded.engine.arrivals.arrive(request, [arrival])
    crowded.perform()
    assert isinstance(crowded.answers[request], MessageQueueError)
    assert waiting(crowded) == {0, 1, 2}
    assert not any(queue.closing for queue in crowded.engine.outgoing_queues())
    assert 3 in come(crowded, 3)
    assert 2 in come(crowded, 2) or 2 in waiting(crowded), "and is told again"


@pytest.mark.spec("MS-MQQB 3.1.7.17", "E144")
def test_two_give_way_with_one_change_and_who_comes_back_with_it_has_a_new_queue(
    crowded: World,
) -> None:
    numbers = [3, 2]
    arrivals = []
    for number in numbers:
        packet, address, guid = rejected(number)
        other = foreign("nowhere", 2, transaction=place(2), source_queue_manager=guid.bytes_le)
        chosen = other if number == 2 else packet
        arrivals.append(Arrival(MessageView(chosen), address, guid.bytes_le))
    request = crowded.next_request()
    crowded.engine.arrivals.arrive(request, arrivals)
    crowded.perform()
    assert crowded.answers[request] == len(numbers)
    assert waiting(crowded) == {0, 2, 3}
    crowded.restart()
    assert waiting(crowded) == {0, 2, 3}


@pytest.mark.spec("MS-MQQB 3.1.7.17", "E144")
def test_who_is_connected_stays(crowded: World) -> None:
    for queue in crowded.engine.outgoing_queues():
        queue.state = OutgoingState.CONNECTED
    packet, address, guid = rejected(3)
    assert arrive(crowded, packet, address=address, guid=guid).refusal != "", "it comes again"
    assert waiting(crowded) == {0, 1, 2}
