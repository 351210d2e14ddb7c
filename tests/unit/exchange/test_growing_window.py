"""A peer that was short of memory once gets its messages as fast as before, after a while."""

from __future__ import annotations

import pytest

from kit.sessions import acknowledgment
from merq.protocol.binary.settings import SessionSettings
from unit.exchange.exchange_world import PLAIN, QUEUE, TWO, changed, pair


@pytest.mark.spec("MS-MQMQ 2.2.20.4", "MS-MQMQ note 15")
@pytest.mark.spec("E111")
def test_a_sender_goes_slowly_for_who_is_short_of_memory_and_faster_every_30_seconds() -> None:
    session = SessionSettings(window=64, ack_wait_s=120.0)
    town, sender, receiver = pair(changed(session=session))
    sender.send(PLAIN, b"first", recoverable=True)
    town.wait(1.0)
    assert (receiver.bodies(QUEUE), sender.waiting(PLAIN)) == ([b"first"], [])
    (link,) = sender.exchange.links
    # The receiver says 1, and from then on nothing: it may have no memory even for that.
    sender.exchange.received(link, acknowledgment(1, window=1), town.now)
    town.deaf.add(TWO)
    sender.send(PLAIN, *[b"x"] * 100)
    town.run()
    assert link.session is not None
    found = [link.session.waiting]
    for _ in range(6):
        town.wait(30.0, step=1.0)
        found.append(link.session.waiting)
    assert found == [1, 2, 4, 8, 16, 32, 64]
