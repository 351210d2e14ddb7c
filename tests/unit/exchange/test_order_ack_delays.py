"""How long an OrderAck may be put off, measured from the last one that was sent."""

from __future__ import annotations

import itertools

import pytest

from kit.exchange import Manager, Town
from unit.exchange.exchange_world import ORDERED, changed, pair


def streamed(town: Town, sender: Manager, until: float) -> list[float]:
    """A message each tenth of a second; gives when OrderAcks come."""
    found: list[float] = []
    while town.now < until - 1e-9:
        sender.commit(ORDERED, b"x")
        town.run()
        before = sender.transfer(ORDERED).last_ack_count
        town.wait(0.1)
        found += [round(town.now, 1)] * (sender.transfer(ORDERED).last_ack_count - before)
    return found


@pytest.mark.spec("MS-MQQB 3.1.6.9", "MS-MQQB 3.1.5.8.6", "MS-MQQB 3.1.2.7", "MS-MQQB 3.1.1.3.1")
def test_the_delay_of_an_order_ack_is_counted_from_the_last_one_that_was_sent() -> None:
    town, sender, _ = pair(changed(order_ack_s=0.5, order_ack_max_s=2.0))
    found = streamed(town, sender, 12.0)
    assert len(found) >= 4
    gaps = [later - sooner for sooner, later in itertools.pairwise(found)]
    # Put off for 2 s each time, then the timer runs out that was started last.
    assert min(gaps) >= 2.0, gaps
    assert max(gaps) <= 2.7, gaps


@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "MS-MQQB 3.1.2.7")
def test_an_order_ack_is_put_off_only_while_less_than_the_maximum_delay_has_passed() -> None:
    town, sender, _ = pair(changed(order_ack_s=1.0, order_ack_max_s=2.0))
    sender.commit(ORDERED, b"a")  # what is waited for counts from here on
    town.run()
    town.wait(0.9)
    sender.commit(ORDERED, b"b")
    town.run()
    town.wait(0.9)
    sender.commit(ORDERED, b"c")  # at 1.8: put off until 2.8
    town.run()
    town.wait(0.2)
    sender.commit(ORDERED, b"d")  # at 2.0, which is not less than 2.0
    town.run()
    assert sender.transfer(ORDERED).last_ack_count == 0
    town.wait(0.7)
    assert sender.transfer(ORDERED).last_ack_count == 0
    town.wait(0.1)
    assert sender.transfer(ORDERED).last_ack_count == 1, "it is due at 2.8"
    assert sender.transfer(ORDERED).last_ack[1] == 4


@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "MS-MQQB 3.1.2.7")
def test_a_message_after_a_long_silence_is_acknowledged_after_the_usual_time() -> None:
    town, sender, _ = pair(changed(order_ack_s=1.0, order_ack_max_s=2.0))
    sender.commit(ORDERED, b"a")
    town.run()
    town.wait(30.0)
    assert sender.transfer(ORDERED).last_ack_count == 1
    sender.commit(ORDERED, b"b")
    town.run()
    town.wait(0.9)
    assert sender.transfer(ORDERED).last_ack_count == 1
    town.wait(0.1)
    assert sender.transfer(ORDERED).last_ack_count == 2
