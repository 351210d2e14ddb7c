"""How much the other side lets us leave unacknowledged, and how that grows again."""

from __future__ import annotations

import pytest

from kit.sessions import acknowledgment, joined, message
from merq.protocol.binary.session import Session
from merq.protocol.binary.settings import SessionSettings


def shrunk(window: int = 1, *, agreed: int = 64) -> Session[int]:
    """A session whose other side has said that it wants less, at 100 s."""
    first, _ = joined(
        SessionSettings(window=agreed, merq_window=agreed, cleanup_s=10_000.0, ack_wait_s=100.0)
    )
    first.receive_data(acknowledgment(window=window), 100.0)
    return first


@pytest.mark.spec("MS-MQMQ 2.2.20.4", "MS-MQMQ note 15")
def test_a_window_that_shrank_doubles_every_30_seconds_up_to_what_was_agreed() -> None:
    first = shrunk()
    found = [first.room]
    for step in range(1, 9):
        due = 100.0 + 30.0 * step
        first.tick(due - 0.1)
        assert first.room == found[-1]
        first.tick(due)
        found.append(first.room)
    assert found == [1, 2, 4, 8, 16, 32, 64, 64, 64]


@pytest.mark.spec("MS-MQMQ note 15")
def test_the_time_of_the_next_doubling_is_a_deadline_until_the_window_is_whole() -> None:
    first = shrunk(32)
    assert first.next_deadline() == 130.0
    first.tick(130.0)
    assert first.room == 64
    assert first.next_deadline() == 10_000.0


@pytest.mark.spec("MS-MQMQ note 15")
def test_time_that_nobody_looked_at_counts_too() -> None:
    first = shrunk()
    first.tick(195.0)
    assert first.room == 8
    assert first.next_deadline() == 220.0


@pytest.mark.spec("MS-MQMQ note 15")
def test_who_says_the_same_again_does_not_keep_the_window_small_for_ever() -> None:
    first = shrunk()
    for second in range(110, 280, 10):
        first.receive_data(acknowledgment(window=1), float(second))
        first.tick(float(second))
    assert first.room == 32
    first.tick(280.0)
    assert first.room == 64


@pytest.mark.spec("MS-MQMQ note 15")
def test_what_the_other_side_says_anew_counts_at_once() -> None:
    first = shrunk()
    first.tick(160.0)
    assert first.room == 4
    first.receive_data(acknowledgment(window=16), 161.0)
    assert first.room == 16
    first.receive_data(acknowledgment(window=2), 162.0)
    assert first.room == 2
    first.tick(191.9)
    assert first.room == 2
    first.tick(192.0)
    assert first.room == 4


@pytest.mark.spec("MS-MQMQ note 15")
def test_unacknowledged_messages_count_against_the_window_while_it_grows() -> None:
    first = shrunk()
    first.send(message(), 1, 100.0, is_recoverable=False)
    assert first.room == 0
    first.tick(130.0)
    assert first.room == 1
