"""Strangers ask for dead letters: copies of their messages here have a limit, ours go beyond it."""

from __future__ import annotations

import pytest

from hostile import stranger_packets as packets
from merq.engine.notices import DEAD_LETTER_NUMBER, FOREIGN_DEAD_LETTER_BYTES_MAX
from merq.model.queue import UNLIMITED
from unit.engine.engine_world import GUID, START, World
from unit.engine.foreign_world import THERE, arrive

BODY_BYTES = 4_000_000
COUNT = FOREIGN_DEAD_LETTER_BYTES_MAX // BODY_BYTES + 3


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


@pytest.mark.limit("merq.engine.notices.FOREIGN_DEAD_LETTER_BYTES_MAX")
@pytest.mark.spec("MS-MQQB 3.1.5.8.8", "MS-MQQB 3.1.5.8.8#JN", "E131")
@pytest.mark.parametrize("fate", ["over quota", "late", "expired", "purged"])
def test_copies_of_strangers_messages_have_a_limit(fate: str) -> None:
    world = World()
    orders = world.create("orders", quota=0 if fate == "over quota" else UNLIMITED)
    world.now += 100
    world.tick(0)
    for ordinal in range(1, COUNT + 1):
        fields = {"time_to_reach": 10} if fate == "late" else {}
        if fate == "expired":
            fields = {"time_to_receive": 100 + ordinal}
        arrive(world, from_stranger(orders, ordinal, **fields))
        if fate == "expired":
            world.tick(2)
        elif fate == "purged":
            world.engine.purge(world.next_request(), orders)
            world.perform()
    world.tick(100)
    dead = world.engine.queue(DEAD_LETTER_NUMBER).positions
    most = FOREIGN_DEAD_LETTER_BYTES_MAX
    assert most - BODY_BYTES < dead.total_bytes + BODY_BYTES // 10 <= most + BODY_BYTES // 10
    ours = world.create("ours")
    world.send(ours, recoverable=True, negative_journaling=True, time_to_be_received=0)
    world.tick(5)
    labels = [view.packet[16:32] for view in world.messages(DEAD_LETTER_NUMBER)]
    assert labels.count(GUID.bytes_le) == 1
