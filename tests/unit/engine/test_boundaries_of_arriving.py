"""The last second, the last hop: messages that come just in time, and those that come just not."""

from __future__ import annotations

import pytest

from merq.engine.tracing import report_body, report_label
from merq.model.message_class import MessageClass
from merq.model.names import PrivateName
from merq.wire.view import MessageView
from unit.engine.engine_world import START, World
from unit.engine.foreign_world import (
    ADMIN,
    ELSEWHERE,
    arrive,
    asked_for,
    foreign,
    leaving,
    place,
)

FURTHER = PrivateName(computer=ELSEWHERE, number=0x10)
WANTING = {"admin_queue": ADMIN, "acknowledgments": 0x0F}
DIRECT_ADMIN = f"direct={ADMIN.lower()}"


def hopped(packet: bytes, hops: int) -> bytes:
    return packet[:60] + bytes([packet[60] & 0xE0 | hops]) + packet[61:]


def told(world: World) -> list[int]:
    """The classes of the administration acknowledgments that leave."""
    return [view.message_class for view in leaving(world).get(asked_for(DIRECT_ADMIN), [])]


@pytest.mark.spec("MS-MQQB 3.1.7.1.2", "MS-MQQB 3.1.5.8.8")
def test_a_message_may_take_all_of_the_time_to_reach_its_queue(world: World) -> None:
    number = world.create("q")
    world.engine.tick(START + 60)
    arrive(world, foreign("q", 1, body=b"a", time_to_reach_queue=60, **WANTING))
    assert [view.body for view in world.messages(number)] == [b"a"]
    world.engine.tick(START + 61)
    arrive(world, foreign("q", 2, body=b"b", time_to_reach_queue=60, **WANTING))
    assert [view.body for view in world.messages(number)] == [b"a"]
    assert told(world) == [
        MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE,
        MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT,
    ]


@pytest.mark.spec("MS-MQQB 3.1.7.1.2", "MS-MQQB 3.1.5.8.2")
def test_the_same_holds_for_a_message_that_is_passed_on(world: World) -> None:
    world.engine.arrivals.forwards = True
    world.engine.tick(START + 60)
    arrive(world, foreign(FURTHER, 1, time_to_reach_queue=60, **WANTING))
    assert len(leaving(world)[str(FURTHER).lower()]) == 1
    world.engine.tick(START + 61)
    world.perform()
    late = [MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT]
    assert told(world) == late, "it waited here for too long"
    arrive(world, foreign(FURTHER, 2, time_to_reach_queue=60, **WANTING))
    assert told(world) == late * 2


@pytest.mark.spec("MS-MQMQ 2.2.19.2", "MS-MQQB 3.1.5.8.2")
def test_twenty_nine_queue_managers_may_handle_a_message_on_its_way(world: World) -> None:
    world.engine.arrivals.forwards = True
    arrive(world, hopped(foreign(FURTHER, 1, **WANTING), 28))
    (view,) = leaving(world)[str(FURTHER).lower()]
    assert view.hop_count == 29
    assert told(world) == []
    arrive(world, hopped(foreign(FURTHER, 2, **WANTING), 29))
    assert len(leaving(world)[str(FURTHER).lower()]) == 1
    assert told(world) == [MessageClass.MQMSG_CLASS_NACK_HOP_COUNT_EXCEEDED]


@pytest.mark.parametrize(("hops", "shown"), [(9, "09"), (10, "0A"), (26, "1A"), (29, "1D")])
@pytest.mark.spec("MS-MQQB 3.1.7.1.7", "MS-MQQB 3.1.5.8.9")
def test_a_report_gives_the_hop_count_as_two_hexadecimal_digits(hops: int, shown: str) -> None:
    view = MessageView(hopped(foreign("q", 0xABCDEF12), hops))
    assert f"<HOP COUNT>{shown} </HOP COUNT>" in report_body(view, "10.0.0.7")
    assert report_label(view, START).startswith(f"9999:ABCDEF12:{shown} received by ")


@pytest.mark.spec("MS-MQQB 3.1.7.17", "MS-MQQB 3.1.7.2.2")
def test_a_final_ack_waits_for_its_session_as_long_as_its_sequence_is_known(world: World) -> None:
    world.create("q")
    arrive(world, foreign("q", 1, transaction=place(1)))
    (view,) = [view for views in leaving(world).values() for view in views]
    assert view.label == "QM Ordering Ack"
    assert view.message_class == MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_Q
    assert view.time_to_reach_queue == 0xFFFFFFFF
    assert view.time_to_be_received == 0xFFFFFFFF
    assert view.delivery_mode == 1
    assert view.base_flags & 7 == 0
