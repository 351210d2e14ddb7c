"""Outgoing queues for what others' messages caused: their names, whose they are, how they go."""

from __future__ import annotations

from uuid import UUID

import pytest

from merq.errors import MessageQueueError, NameSyntaxError
from merq.model.names import parse_format_name
from merq.model.outgoing_names import OutgoingName, parse_outgoing_name
from unit.engine.engine_world import World
from unit.engine.foreign_world import (
    ADMIN,
    ELSEWHERE,
    arrive,
    asked_for,
    depart,
    foreign,
    leaving,
    outgoing,
)

ASKED = asked_for(rf"DIRECT={ADMIN}")
NAMES = [
    r"DIRECT=TCP:10.0.0.9\PRIVATE$\told",
    r"DIRECT=OS:host\PRIVATE$\told;journal",
    f"PRIVATE={ELSEWHERE}\\00000010",
    f"PUBLIC={ELSEWHERE}",
]
GONE_S = 61
"""Seconds after which it is looked for queues in which nothing waits."""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("asker", [None, UUID(int=0xABC)])
def test_the_name_of_an_outgoing_queue_says_where_to_and_who_asked(
    name: str, asker: UUID | None
) -> None:
    found = parse_format_name(name)
    written = OutgoingName(found, asker)  # type: ignore[arg-type]
    assert parse_outgoing_name(str(written)) == written
    assert parse_outgoing_name(str(written).lower()) == written
    assert (asker is None) == (str(written) == str(found))


def test_what_is_no_name_is_not_read() -> None:
    with pytest.raises(NameSyntaxError):
        parse_outgoing_name(f"told;{ELSEWHERE.hex}")


def asking(ordinal: int) -> bytes:
    return foreign("q", ordinal, recoverable=True, admin_queue=ADMIN, acknowledgments=1)


@pytest.mark.spec("MS-MQQB 3.1.7.15", "MS-MQQB 3.1.7.17")
def test_what_comes_while_an_empty_queue_is_about_to_go_is_not_lost_with_it() -> None:
    world = World()
    world.create("q")
    arrive(world, asking(1))
    (going,) = depart(world, ASKED)
    world.engine.departures.acknowledged(outgoing(world, ASKED), [(going.lookup_id, False)])
    world.perform()
    world.sync()
    first = outgoing(world, ASKED)
    world.durable_at_once = False
    world.tick(GONE_S)
    assert first.closing
    arrive(world, asking(2))
    world.perform()
    world.sync()
    assert outgoing(world, ASKED) is not first
    (told,) = leaving(world)[ASKED.lower()]
    assert told.correlation_id[16:] == (2).to_bytes(4, "little")


@pytest.mark.spec("MS-MQQB 3.1.5.8.2")
def test_nothing_is_passed_on_to_a_subqueue() -> None:
    world = World()
    world.engine.arrivals.forwards = True
    name = rf"TCP:10.0.0.7\private$\told;{ELSEWHERE.hex}"
    packet = foreign(name)
    arrive(world, packet[:32] + ELSEWHERE.bytes_le + packet[48:])
    assert leaving(world) == {}
    with pytest.raises(MessageQueueError, match="subqueue"):
        world.send_to(f"DIRECT={name}", body=b"a")
