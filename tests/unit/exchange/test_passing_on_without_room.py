"""A queue manager that passes messages on and has no room for them."""

from __future__ import annotations

import pytest

from kit.exchange import Manager, Town
from merq.exchange import Peer
from merq.testing import SimulatedDisk
from unit.exchange.exchange_world import GUIDS, ONE, QUEUE, THREE, TWO, changed, manager

FAR = f"PRIVATE={GUIDS[THREE]}\\00000010"


@pytest.mark.spec("MS-MQQB 3.1.5.8.2#not-stored", "E70")
def test_a_message_to_be_passed_on_that_cannot_be_stored_stays_at_its_sender() -> None:
    hub = Peer(name="two", guid=GUIDS[TWO], host=TWO)
    first = manager(ONE, peers=(hub, Peer(name="three", guid=GUIDS[THREE], via="two")))
    router = Manager(
        name="m2",
        address=TWO,
        guid=GUIDS[TWO],
        settings=changed(forwards=True),
        peers=(Peer(name="three", guid=GUIDS[THREE], host=THREE),),
        disk=SimulatedDisk(1, reserves=False),
    )
    last = manager(THREE)
    assert last.create("q") == QUEUE
    town = Town(first, router, last)
    router.disk.capacity = router.disk.used
    first.send(FAR, b"x" * 50_000, recoverable=True)
    town.run()
    assert town.links() == 0, "the session is closed"
    assert first.waiting(FAR) == [b"x" * 50_000]
    router.disk.capacity = None
    town.wait(20.0, step=1.0)
    assert last.bodies(QUEUE) == [b"x" * 50_000]
    assert first.waiting(FAR) == []
