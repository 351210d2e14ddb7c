"""How far an outgoing queue is: what is under way, and what is to be sent again."""

from __future__ import annotations

import pytest

from merq.engine.transfer import HISTORY_MAX, LANES, Attempt, Transfer


def identifier(lane: int, number: int) -> int:
    return lane << 56 | number


@pytest.mark.spec("MS-MQQB 3.1.3.2")
def test_at_first_nothing_is_under_way() -> None:
    transfer = Transfer()
    assert not transfer.is_under_way
    for lane in range(LANES):
        assert not transfer.holds(identifier(lane, 0))
        assert not transfer.may_have_arrived(identifier(lane, 0))
    assert (transfer.sequence_id, transfer.next_number) == (0, 1)
    assert (transfer.last_ack, transfer.last_ack_count, transfer.resend_time) == ((0, 0), 0, 0)


@pytest.mark.spec("MS-MQQB 3.1.1.3.1.2")
def test_a_message_that_was_sent_is_under_way_with_all_before_it_in_its_lane() -> None:
    transfer = Transfer()
    transfer.passed(identifier(4, 10))
    assert transfer.is_under_way
    assert transfer.holds(identifier(4, 10))
    assert transfer.holds(identifier(4, 3))
    assert not transfer.holds(identifier(4, 11))
    assert not transfer.holds(identifier(3, 1))
    assert not transfer.holds(identifier(5, 1))


@pytest.mark.spec("MS-MQQB 3.1.3.2", "MS-MQQB 3.1.6.5")
def test_after_a_rewind_all_is_sent_again_and_may_have_arrived() -> None:
    transfer = Transfer()
    transfer.passed(identifier(0, 5))
    transfer.passed(identifier(7, 6))
    transfer.previous = (9, 9)
    transfer.rewind()
    assert not transfer.is_under_way
    assert transfer.previous == (0, 0)
    for lane, number in ((0, 5), (7, 6)):
        assert not transfer.holds(identifier(lane, number))
        assert transfer.may_have_arrived(identifier(lane, number))
        assert not transfer.may_have_arrived(identifier(lane, number + 1))


@pytest.mark.spec("MS-MQQB 3.1.5.6", "MS-MQQB 3.1.6.5")
def test_what_was_acknowledged_in_order_is_not_sent_again() -> None:
    transfer = Transfer()
    transfer.passed(identifier(7, 6))
    transfer.ordered_up_to = identifier(7, 4)
    transfer.rewind()
    assert transfer.holds(identifier(7, 4))
    assert not transfer.holds(identifier(7, 5))


@pytest.mark.spec("MS-MQQB 3.1.1.3.1")
def test_a_sequence_never_goes_back() -> None:
    transfer = Transfer()
    transfer.restored(7, 3)
    transfer.restored(6, 90)
    transfer.restored(7, 2)
    assert (transfer.sequence_id, transfer.next_number) == (7, 3)
    transfer.restored(8, 1)
    assert (transfer.sequence_id, transfer.next_number) == (8, 1)


@pytest.mark.limit("merq.engine.transfer.HISTORY_MAX")
@pytest.mark.spec("MS-MQDMPR 3.1.1.3")
def test_the_connection_history_keeps_the_latest() -> None:
    transfer = Transfer()
    for time in range(HISTORY_MAX + 5):
        transfer.history.append(Attempt("InProcess", time, 0, ("10.0.0.1",)))
    assert len(transfer.history) == HISTORY_MAX
    assert transfer.history[0].time == 5
