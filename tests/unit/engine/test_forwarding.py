"""Messages for other queue managers that come here are passed on, one hop further."""

from __future__ import annotations

from typing import Any

import pytest

from merq.engine.arriving import HOPS_MAX
from merq.model.message_class import MessageClass
from merq.model.names import PrivateName
from merq.wire.acks import FinalAck
from merq.wire.packet import parse_packet
from merq.wire.view import MessageView
from unit.engine.engine_world import World
from unit.engine.foreign_world import (
    ADMIN,
    ELSEWHERE,
    THERE,
    arrive,
    asked_for,
    classes,
    depart,
    foreign,
    leaving,
    place,
)

FURTHER = PrivateName(computer=ELSEWHERE, number=0x10)
NAME = str(FURTHER).lower()
WANTING: dict[str, Any] = {"admin_queue": ADMIN, "acknowledgments": 4}


@pytest.fixture
def router(world: World) -> World:
    """A queue manager that passes on."""
    world.engine.arrivals.forwards = True
    world.engine.state.sends_insecure_nacks = True
    return world


def hopped(packet: bytes, hops: int) -> bytes:
    return packet[:60] + bytes([packet[60] & 0xE0 | hops]) + packet[61:]


@pytest.mark.spec("MS-MQQB 3.1.5.8.2", "MS-MQQB 3.1.5.8.5")
@pytest.mark.spec("MS-MQQB 3.1.5.8.2#hops")
def test_a_message_for_another_goes_on_with_one_more_hop_and_nothing_else_changed(
    router: World,
) -> None:
    packet = foreign(FURTHER, body=b"a", recoverable=True, acknowledgments=15, admin_queue=ADMIN)
    arrive(router, hopped(packet, 4))
    assert list(leaving(router)) == [NAME], "nobody is told that it has arrived"
    (view,) = leaving(router)[NAME]
    assert view.hop_count == 5
    assert view.packet == hopped(packet, 5)
    (departure,) = depart(router, NAME)
    assert departure.packet == view.packet
    assert (departure.is_recoverable, departure.is_ordered) == (True, False)


@pytest.mark.spec("MS-MQQB 3.1.5.8.1")
def test_what_is_passed_on_is_passed_on_once(router: World) -> None:
    for _ in range(3):
        arrive(router, foreign(FURTHER, body=b"a"))
    assert len(leaving(router)[NAME]) == 1


@pytest.mark.spec("MS-MQQB 3.1.1.6.2", "MS-MQQB 3.1.5.8.6")
@pytest.mark.spec("MS-MQQB 3.1.1.3.1#forwarded")
def test_a_sequence_is_none_of_the_business_of_who_passes_it_on(router: World) -> None:
    numbers = [2, 3, 2]
    for number in numbers:
        packet = foreign(FURTHER, number, transaction=place(number, number - 1))
        arrived = arrive(router, packet)
        assert arrived.sequences == []
    assert len(router.engine.state.sequences) == 0
    departures = depart(router, NAME)
    views = [MessageView(each.packet) for each in departures]
    assert [view.tx_sequence_number for view in views] == numbers
    assert [view.previous_tx_sequence_number for view in views] == [1, 2, 1]
    assert not any(each.is_ordered for each in departures)
    queue = router.engine.state.find_outgoing(NAME)
    assert queue is not None
    done = [(each.lookup_id, False) for each in departures]
    router.engine.departures.acknowledged(queue, done)
    router.perform()
    assert leaving(router) == {}, "the next hop has them"


@pytest.mark.limit("merq.engine.arriving.HOPS_MAX")
@pytest.mark.spec("MS-MQQB 3.1.5.8.2")
@pytest.mark.spec("MS-MQQB 3.1.5.8.2#too-many-hops")
def test_a_message_that_went_through_too_many_hands_is_not_passed_on(router: World) -> None:
    arrive(router, hopped(foreign(FURTHER, 1, **WANTING), HOPS_MAX - 1))
    assert len(leaving(router)[NAME]) == 1
    arrive(router, hopped(foreign(FURTHER, 2, **WANTING), HOPS_MAX))
    assert len(leaving(router)[NAME]) == 1
    expected = MessageClass.MQMSG_CLASS_NACK_HOP_COUNT_EXCEEDED
    assert classes(leaving(router)[asked_for(f"direct={ADMIN.lower()}")]) == [expected]
    arrive(router, hopped(foreign(FURTHER, 3, transaction=place(1)), HOPS_MAX))
    (view,) = leaving(router)[f"private={THERE}\\00000004"]
    assert isinstance(parse_packet(view.packet), FinalAck)
    assert view.message_class == expected


@pytest.mark.spec("MS-MQQB 3.1.5.8.2", "E167")
def test_by_default_nothing_is_passed_on_but_hops_are_counted(router: World) -> None:
    router.engine.arrivals.forwards = False
    arrive(router, foreign(FURTHER, 1, transaction=place(1)))
    arrive(router, hopped(foreign(FURTHER, 2, transaction=place(1)), HOPS_MAX))
    assert list(leaving(router)) == [f"private={THERE}\\00000004"]
    assert classes(leaving(router)[f"private={THERE}\\00000004"]) == [
        MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q,
        MessageClass.MQMSG_CLASS_NACK_HOP_COUNT_EXCEEDED,
    ]


@pytest.mark.spec("MS-MQQB 3.1.7.1.2")
def test_a_message_that_is_late_is_not_passed_on(router: World) -> None:
    router.tick(61)
    arrive(router, foreign(FURTHER, time_to_reach_queue=60, **WANTING))
    (views,) = leaving(router).values()
    assert classes(views) == [MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT]


@pytest.mark.spec("MS-MQQB 3.1.5.8.2")
def test_who_does_not_pass_on_says_that_there_is_no_such_queue(router: World) -> None:
    router.engine.arrivals.forwards = False
    arrive(router, foreign(FURTHER, **WANTING))
    (views,) = leaving(router).values()
    assert classes(views) == [MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q]


@pytest.mark.spec("MS-MQQB 3.1.5.8.2", "MS-MQQB 3.1.5.6", "MS-MQQB 3.1.5.7")
def test_acknowledgments_for_others_are_passed_on_too(router: World) -> None:
    packet = foreign(
        PrivateName(computer=ELSEWHERE, number=4),
        label="QM Ordering Ack",
        message_class=MessageClass.MQMSG_CLASS_ORDER_ACK,
        body=bytes(8) + b"\1" + bytes(27),
        priority=0,
    )
    assert arrive(router, packet).ordered == []
    (views,) = leaving(router).values()
    assert views[0].body == MessageView(packet).body


@pytest.mark.spec("MS-MQQB 3.1.7.1.2")
def test_of_anothers_sequence_the_destination_decides_and_in_the_end_its_sender_is_told(
    router: World,
) -> None:
    router.engine.departures.in_doubt_s = 100
    arrive(router, foreign(FURTHER, transaction=place(1), time_to_reach_queue=5, **WANTING))
    router.tick(6)
    assert list(leaving(router)) == [NAME]  # a copy that came before may have arrived
    router.tick(101)
    found = leaving(router)
    assert NAME not in found
    expected = [MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT]
    assert classes(found[asked_for(f"direct={ADMIN.lower()}")]) == expected
    assert classes(found[f"private={THERE}\\00000004"]) == expected
