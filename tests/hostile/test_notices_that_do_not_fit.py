r"""A message is as large as a packet may be, and what is to be told of it would be larger.

Its destination has four bytes in the message, as a number of a queue. In an acknowledgment, which
says which queue it is about, it has twenty.
"""

from __future__ import annotations

from typing import Final

import pytest

from hostile import stranger_packets as packets
from merq.model.message_class import MessageClass
from merq.wire.headers import PACKET_SIZE_MAX
from merq.wire.view import MessageView
from unit.engine.engine_world import GUID, START, World
from unit.engine.foreign_world import ADMIN, THERE, arrive, asked_for, classes, leaving

ADMIN_QUEUE: Final = asked_for(f"direct={ADMIN}").lower()
LABEL: Final = "a label that is kept"
NO_QUEUE: Final = 999


def largest(destination: int | str, ordinal: int = 1, **fields: object) -> bytes:
    """A message with a body as large as fits."""
    values = {
        "address": GUID.bytes_le,
        "admin": ADMIN,
        "asked": packets.NA | packets.NR,
        "label": LABEL,
        "sent_time": START,
        **fields,
    }
    source = THERE.bytes_le
    empty = packets.message(source, ordinal, destination, **values)  # type: ignore[arg-type]
    body = bytes(PACKET_SIZE_MAX - len(empty))
    return packets.message(source, ordinal, destination, **values, body=body)  # type: ignore[arg-type]


@pytest.mark.spec("MS-MQQB 3.1.7.15", "E130")
def test_what_does_not_fit_into_a_negative_acknowledgment_is_told_without_the_body() -> None:
    world = World()
    world.engine.state.sends_insecure_nacks = True
    packet = largest(NO_QUEUE)
    assert len(packet) == PACKET_SIZE_MAX
    arrive(world, packet)
    (nack,) = leaving(world)[ADMIN_QUEUE]
    assert nack.message_class == MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q
    assert (nack.body_size, nack.label) == (0, LABEL)
    assert nack.correlation_id == MessageView(packet).message_id


@pytest.mark.spec("MS-MQQB 3.1.7.15")
def test_the_largest_message_expires_and_nothing_else_stops() -> None:
    world = World()
    orders = world.create("orders")
    arrive(
        world,
        largest(orders, recoverable=True, time_to_receive=10),
        packets.message(
            THERE.bytes_le,
            2,
            orders,
            address=GUID.bytes_le,
            recoverable=True,
            time_to_receive=10,
            sent_time=START,
            admin=ADMIN,
            asked=packets.NR,
            body=b"small",
        ),
    )
    assert len(world.messages(orders)) == 2
    world.tick(100)
    assert world.messages(orders) == []
    told = leaving(world)[ADMIN_QUEUE]
    assert classes(told) == [MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT] * 2
    assert [nack.body for nack in told] == [b"", b"small"]


@pytest.mark.spec("MS-MQQB 3.1.7.15")
def test_the_largest_message_that_expired_while_the_service_was_down_does_not_keep_it_down() -> (
    None
):
    world = World()
    orders = world.create("orders")
    arrive(world, largest(orders, recoverable=True, time_to_receive=10))
    world.now += 100
    world.restart()
    assert world.messages(orders) == []
    (nack,) = leaving(world)[ADMIN_QUEUE]
    assert nack.body_size == 0
    world.restart()
    assert len(leaving(world)[ADMIN_QUEUE]) == 1


@pytest.mark.spec("MS-MQQB 3.1.7.15")
@pytest.mark.parametrize("end", ["purge", "delete"])
def test_the_largest_message_is_purged_or_goes_with_its_queue(end: str) -> None:
    world = World()
    orders = world.create("orders")
    arrive(world, largest(orders))
    request = world.next_request()
    if end == "purge":
        world.engine.purge(request, orders)
    else:
        world.engine.delete_queue(request, orders)
    world.perform()
    assert request in world.answers
    (nack,) = leaving(world)[ADMIN_QUEUE]
    assert nack.body_size == 0
