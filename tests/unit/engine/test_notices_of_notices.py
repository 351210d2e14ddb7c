"""Acknowledgments are not acknowledged, and no copies of them are kept, whatever they ask for."""

from __future__ import annotations

from typing import Any

import pytest

from merq.engine.notices import (
    DEAD_LETTER_NUMBER,
    DEAD_XACT_NUMBER,
    JOURNAL_NUMBER,
    NEGATIVE_ARRIVAL,
    NEGATIVE_RECEIVE,
    POSITIVE_ARRIVAL,
    POSITIVE_RECEIVE,
)
from merq.model.message_class import MessageClass
from merq.model.selecting import First
from merq.wire.view import MessageView
from unit.engine.engine_world import World
from unit.engine.foreign_world import (
    ADMIN,
    REMOTE,
    arrive,
    asked_for,
    classes,
    commit,
    depart,
    final_ack,
    foreign,
    leaving,
    outgoing,
)

ALL = POSITIVE_ARRIVAL | POSITIVE_RECEIVE | NEGATIVE_ARRIVAL | NEGATIVE_RECEIVE
NOTICES = [
    MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE,
    MessageClass.MQMSG_CLASS_ACK_RECEIVE,
    MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q,
    MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT,
]
OTHERS = [MessageClass.MQMSG_CLASS_NORMAL, MessageClass.MQMSG_CLASS_REPORT, 0x0123]


def told(world: World) -> list[MessageView]:
    return leaving(world).get(asked_for(rf"direct={ADMIN}").lower(), [])


@pytest.mark.parametrize("kind", [*NOTICES, *OTHERS])
@pytest.mark.spec("MS-MQQB 3.1.5.8.10", "MS-MQQB note 62")
@pytest.mark.spec("E110")
def test_an_acknowledgment_that_comes_is_not_acknowledged(world: World, kind: int) -> None:
    number = world.create("admin")
    packet = foreign("admin", admin_queue=ADMIN, acknowledgments=ALL, message_class=kind)
    arrive(world, packet)
    assert len(world.messages(number)) == 1
    world.engine.receive(world.next_request(), number, First(), wait=False)
    world.perform()
    assert world.messages(number) == []
    expected = [] if kind in NOTICES else ["ACK_REACH_QUEUE", "ACK_RECEIVE"]
    assert classes(told(world)) == [MessageClass[f"MQMSG_CLASS_{each}"] for each in expected]


@pytest.mark.parametrize("kind", [NOTICES[0], OTHERS[0]])
@pytest.mark.spec("MS-MQQB note 62")
def test_an_acknowledgment_that_finds_no_room_is_not_acknowledged_either(
    world: World, kind: int
) -> None:
    world.create("admin", quota=1)
    fields: dict[str, Any] = {"admin_queue": ADMIN, "acknowledgments": ALL, "message_class": kind}
    arrive(world, foreign("admin", body=bytes(2000), **fields))
    assert bool(told(world)) is (kind not in NOTICES)


@pytest.mark.parametrize("kind", [NOTICES[0], OTHERS[0]])
@pytest.mark.spec("MS-MQQB 1.3.4", "MS-MQQB note 2", "MS-MQMQ note 3", "MS-MQMQ note 4")
def test_no_copy_of_an_acknowledgment_that_came_too_late_is_kept(world: World, kind: int) -> None:
    world.create("admin")
    world.tick(61)
    late = foreign("admin", time_to_reach_queue=60, negative_journaling=True, message_class=kind)
    arrive(world, late)
    assert bool(world.messages(DEAD_LETTER_NUMBER)) is (kind not in NOTICES)


@pytest.mark.spec("MS-MQQB 1.3.4", "MS-MQQB note 2", "MS-MQMQ note 5")
def test_our_own_acknowledgments_leave_without_a_copy_in_the_journal(world: World) -> None:
    world.create("q")
    wanting: dict[str, Any] = {"admin_queue": ADMIN, "acknowledgments": POSITIVE_ARRIVAL}
    arrive(world, foreign("q", positive_journaling=True, negative_journaling=True, **wanting))
    (view,) = told(world)
    assert not view.positive_journaling
    assert not view.negative_journaling
    name = asked_for(rf"DIRECT={ADMIN}")
    (going,) = depart(world, name)
    world.engine.departures.acknowledged(outgoing(world, name), [(going.lookup_id, True)])
    world.perform()
    world.sync()
    assert told(world) == []
    assert world.messages(JOURNAL_NUMBER) == []


@pytest.mark.spec("MS-MQMQ note 4", "MS-MQMQ note 5")
def test_messages_that_are_no_acknowledgments_are_journaled_as_ever(world: World) -> None:
    commit(world, b"a", b"b", positive_journaling=True, negative_journaling=True)
    first, second = (MessageView(each.packet) for each in depart(world, REMOTE))
    arrive(world, final_ack(first))
    arrive(world, final_ack(second, MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q, ordinal=951))
    assert [view.body for view in world.messages(JOURNAL_NUMBER)] == [b"a"]
    assert [view.body for view in world.messages(DEAD_XACT_NUMBER)] == [b"b"]
