"""Strangers ask for dead letters: copies of their messages here have a limit, ours go beyond it."""

from __future__ import annotations

import pytest

from hostile import stranger_packets as packets
from merq.engine import notices
from merq.engine.notices import DEAD_LETTER_NUMBER, FOREIGN_DEAD_LETTER_BYTES_MAX
from unit.engine.engine_world import GUID, START, World
from unit.engine.foreign_world import THERE, arrive

BODY_BYTES = 1_000
LIMIT_BYTES = 10_000


def from_stranger(number: int, ordinal: int, **fields: object) -> bytes:
    return packets.message(
        THERE.bytes_le,
        ordinal,
        number,
        address=GUID.bytes_le,
        body=bytes(BODY_BYTES),
        recoverable=True,
        dead_letter=True,
        sent_time=START,
        **fields,  # type: ignore[arg-type]
    )


@pytest.mark.spec("MS-MQQB 3.1.5.8.8", "E131")
@pytest.mark.parametrize("fate", ["over quota", "late", "expired", "purged"])
def test_copies_of_strangers_messages_have_a_limit(
    fate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "FOREIGN_DEAD_LETTER_BYTES_MAX", LIMIT_BYTES)
    world = World()
    orders = world.create("orders", quota=0 if fate == "over quota" else 100)
    world.now += 100
    world.tick(0)
    for ordinal in range(1, 31):
        fields = {"time_to_reach": 10} if fate == "late" else {}
        if fate == "expired":
            fields = {"time_to_receive": 150}
        arrive(world, from_stranger(orders, ordinal, **fields))
    if fate == "expired":
        world.tick(100)
    elif fate == "purged":
        world.engine.purge(world.next_request(), orders)
        world.perform()
    dead = world.engine.queue(DEAD_LETTER_NUMBER).positions
    assert LIMIT_BYTES - 2 * BODY_BYTES < dead.total_bytes <= LIMIT_BYTES
    ours = world.create("ours")
    world.send(ours, recoverable=True, negative_journaling=True, time_to_be_received=0)
    world.tick(5)
    labels = [view.packet[16:32] for view in world.messages(DEAD_LETTER_NUMBER)]
    assert labels.count(GUID.bytes_le) == 1


def test_the_limit_is_what_a_person_can_look_through() -> None:
    assert FOREIGN_DEAD_LETTER_BYTES_MAX == 64 << 20
