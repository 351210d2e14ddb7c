"""TimeToReachQueue to the second, and what becomes of what expired, where it is and on its way."""

from __future__ import annotations

import pytest

from merq.model.message_class import MessageClass
from merq.wire.view import MessageView
from unit.engine.engine_world import World
from unit.engine.foreign_world import (
    ADMIN,
    REMOTE,
    arrive,
    classes,
    commit,
    depart,
    foreign,
    leaving,
    order_ack,
    outgoing,
    place,
    transfer,
)

TIMEOUT = MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT
DEAD_LETTER = r".\system$;DEADLETTER"
DEAD_XACT = r".\system$;DEADXACT"


@pytest.mark.spec("MS-MQQB 3.1.7.1.2#expired")
def test_a_message_goes_in_its_last_second_and_not_after_it(world: World) -> None:
    world.send_to(REMOTE, body=b"in time", time_to_reach_queue=5)
    world.tick(5)
    assert [MessageView(each.packet).body for each in depart(world)] == [b"in time"]
    world.send_to(REMOTE, body=b"late", time_to_reach_queue=5)
    world.tick(6)
    assert depart(world) == []
    assert world.bodies(outgoing(world).number) == [b"in time"]


@pytest.mark.spec("MS-MQQB 3.1.7.1.2#expired", "E66")
def test_a_message_is_taken_in_its_last_second_and_not_after_it(world: World) -> None:
    number = world.create("q")
    ordered = world.create("tx", transactional=True)
    world.tick(60)
    arrive(world, foreign("q", 1, body=b"in time", time_to_reach_queue=60))
    world.tick(1)
    arrive(world, foreign("q", 2, body=b"late", time_to_reach_queue=60, negative_journaling=True))
    assert world.bodies(number) == [b"in time"]
    assert world.bodies(world.find(DEAD_LETTER)) == [b"late"]
    arrive(world, foreign("tx", 3, time_to_reach_queue=60, transaction=place(1)))
    assert world.bodies(ordered) == []
    (views,) = leaving(world).values()
    assert classes(views) == [TIMEOUT], "a FinalAck: its sender has it still"


@pytest.mark.spec("MS-MQQB 3.1.7.1.2#JN-transactional")
def test_what_expired_goes_to_the_dead_letter_queue_of_its_kind(world: World) -> None:
    own = world.create("dead", transactional=True)
    commit(world, b"a", time_to_reach_queue=5, negative_journaling=True)
    commit(
        world,
        b"b",
        time_to_reach_queue=5,
        negative_journaling=True,
        dead_letter=r".\private$\dead",
    )
    commit(world, b"c", time_to_reach_queue=5)
    world.tick(6)
    assert world.bodies(world.find(DEAD_XACT)) == [b"a"]
    assert world.bodies(own) == [b"b"]
    assert world.bodies(world.find(DEAD_LETTER)) == []


@pytest.mark.spec("MS-MQQB 3.1.7.1.2#NA")
def test_only_who_asked_is_told_that_a_message_expired(world: World) -> None:
    for wanted in (0, 1, 4):
        world.send_to(REMOTE, time_to_reach_queue=5, admin_queue=ADMIN, acknowledgments=wanted)
    world.tick(6)
    (name,) = [each for each in leaving(world) if "admin" in each]
    assert classes(leaving(world)[name]) == [TIMEOUT]


@pytest.mark.spec("MS-MQQB 3.1.5.6#new-sequence")
def test_a_sequence_whose_messages_are_all_acknowledged_is_followed_by_the_next(
    world: World,
) -> None:
    commit(world, b"a")
    first = transfer(world).sequence_id
    depart(world)
    arrive(world, order_ack(first, 1))
    commit(world, b"b")
    (departure,) = depart(world)
    view = MessageView(departure.packet)
    assert view.tx_sequence_id > first
    assert view.tx_sequence_number == 1
