"""How long an OrderAck can be put off: the delay counts from the last one that was sent."""

from __future__ import annotations

import itertools

import pytest

from unit.exchange.exchange_world import ORDERED, changed, pair


@pytest.mark.limit("exchange.order_ack_max_s")
@pytest.mark.spec("MS-MQQB 3.1.6.9#LastOrderAckSendTime")
def test_the_longest_delay_counts_from_the_last_order_ack() -> None:
    town, sender, _ = pair(changed(order_ack_s=0.5, order_ack_max_s=2.0))
    found: list[float] = []
    for number in range(80):
        sender.commit(ORDERED, b"%d" % number)
        town.run()
        before = sender.transfer(ORDERED).last_ack_count
        town.wait(0.1)
        found += [town.now] * (sender.transfer(ORDERED).last_ack_count - before)
    gaps = [later - sooner for sooner, later in itertools.pairwise(found)]
    assert len(gaps) >= 2
    assert min(gaps) >= 2.0, "a stream of messages puts it off as long as it may be put off"
    assert max(gaps) <= 2.7


@pytest.mark.spec("MS-MQQB 3.1.5.8.6#OrderAck-timer")
def test_a_message_starts_the_timer_and_the_next_starts_it_again() -> None:
    town, sender, _ = pair(changed(order_ack_s=0.5, order_ack_max_s=10.0))
    for _ in range(4):
        sender.commit(ORDERED, b"x")
        town.wait(0.4)
    assert sender.transfer(ORDERED).last_ack_count == 0
    town.wait(0.2)
    assert sender.transfer(ORDERED).last_ack_count == 1


@pytest.mark.spec("MS-MQQB 3.1.6.9#closed-session", "E62")
def test_an_order_ack_is_sent_though_the_session_of_its_messages_was_closed() -> None:
    town, sender, _ = pair(changed(retry_s=60.0, order_ack_s=2.0))
    sender.commit(ORDERED, b"a")
    town.run()
    town.cut()
    assert sender.waiting(ORDERED) == [b"a"]
    town.wait(4.0)
    assert sender.waiting(ORDERED) == [], "it came through a session that the receiver made"
    assert town.dialled[:2] == ["10.0.0.2", "10.0.0.1"]
