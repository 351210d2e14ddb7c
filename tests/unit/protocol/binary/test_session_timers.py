"""A session's timers: when they start, what they do, and what stops them."""

from __future__ import annotations

import pytest

from kit.sessions import (
    acceptor,
    acknowledgment,
    acks,
    establish,
    give,
    handle,
    initiator,
    joined,
    message,
    opened,
    output,
    parameters,
    said,
)
from merq.protocol.binary.session import Session, SessionState
from merq.protocol.binary.settings import SessionSettings
from merq.wire.connection import SessionAck

# Until it is open.


@pytest.mark.parametrize("packets", [b"", establish()])
@pytest.mark.parametrize("side", [acceptor, initiator])
@pytest.mark.spec("MS-MQQB 3.1.2.1", "MS-MQQB 3.1.6.6", "MS-MQQB 3.1.5.10")
@pytest.mark.spec("MS-MQQB 3.1.5.2.3#timer", "E76")
def test_a_session_must_be_open_within_a_minute(side: object, packets: bytes) -> None:
    session = acceptor(now=5.0) if side is acceptor else initiator(now=5.0)
    session.receive_data(packets, 20.0)
    assert session.next_deadline() == 65.0
    session.tick(64.9)
    assert not session.closing
    session.tick(65.0)
    assert session.state is SessionState.CLOSED
    assert "for too long" in session.closing


@pytest.mark.spec("MS-MQQB 3.1.2.1", "MS-MQQB 3.1.5.4.1", "MS-MQQB 3.1.5.4.2")
@pytest.mark.spec("MS-MQQB 3.1.5.4.1#open", "MS-MQQB 3.1.5.4.2#Established")
def test_an_open_session_has_no_such_limit() -> None:
    first, second = joined()
    for session in (first, second):
        session.tick(61.0)
        assert session.is_open


# Idle.


@pytest.mark.spec("MS-MQQB 3.1.2.2", "MS-MQQB 3.1.6.2", "MS-MQQB 3.1.3.2")
@pytest.mark.spec("MS-MQQB 3.1.6.2#idle")
def test_a_session_on_which_nothing_is_sent_ends() -> None:
    session = opened(SessionSettings(cleanup_s=300.0))
    assert session.next_deadline() == 300.0
    session.tick(299.9)
    assert session.is_open
    session.tick(300.0)
    assert session.state is SessionState.CLOSED
    assert "nothing was sent" in session.closing


@pytest.mark.spec("MS-MQQB 3.1.2.2", "MS-MQQB 3.1.6.2", "MS-MQQB 3.1.5.8.2")
@pytest.mark.spec("MS-MQQB 3.1.5.8.2#SessionActive", "MS-MQQB 3.1.6.2#active")
def test_a_message_that_comes_keeps_a_session_for_one_more_round() -> None:
    session = opened()
    give(session, [message()], 100.0)
    session.tick(300.0)
    assert session.is_open
    session.tick(600.0)
    assert session.closing


@pytest.mark.spec("MS-MQQB 3.1.2.2", "MS-MQQB 3.1.7.1.3")
@pytest.mark.spec("MS-MQQB 3.1.7.1.3#SessionActive")
def test_a_message_that_goes_does_so_too() -> None:
    session = opened()
    session.send(message(), 1, 100.0, is_recoverable=False)
    session.receive_data(acknowledgment(1), 100.0)
    session.tick(300.0)
    assert session.is_open
    session.tick(600.0)
    assert session.closing


@pytest.mark.spec("MS-MQQB 3.1.6.2")
def test_a_session_that_somebody_waits_on_is_not_idle() -> None:
    session = opened()
    session.receive_data(message(), 0.0)
    session.tick(300.0)
    session.tick(600.0)
    assert session.is_open, "what came is not taken care of yet"
    handle(session, 600.0)
    session.tick(610.0)
    session.tick(900.0)
    assert session.closing


@pytest.mark.spec("MS-MQQB 3.1.6.2", "MS-MQQB 3.1.6.4", "MS-MQQB 3.1.5.5.2")
def test_a_session_that_ends_idle_acknowledges_what_came_or_it_would_come_for_ever() -> None:
    session, _ = joined(SessionSettings(cleanup_s=5.0, ack_wait_s=120.0))
    give(session, [message()], 1.0)
    output(session)
    session.tick(5.0)
    session.tick(10.0)
    assert "nothing was sent" in session.closing
    (header,) = acks(session)
    assert header.ack_sequence_number == 1


# Waiting for acknowledgments.


@pytest.mark.parametrize(("direct", "wait"), [(False, 20.0), (True, 40.0)])
@pytest.mark.spec("MS-MQQB 3.1.2.4", "MS-MQQB 3.1.6.3", "MS-MQQB 3.1.7.1.3")
@pytest.mark.spec("MS-MQQB note 46")
@pytest.mark.spec("MS-MQQB 3.1.6.3#silent", "MS-MQQB 3.1.7.1.3#wait-timer")
def test_a_session_whose_messages_nobody_acknowledges_ends(direct: bool, wait: float) -> None:
    first, _ = joined(is_direct=direct)
    first.send(message(), 1, 1.0, is_recoverable=False)
    assert first.next_deadline() == 1.0 + wait
    first.tick(1.0 + wait)
    assert first.is_open, "the answer that opened the session was heard since it began"
    assert first.next_deadline() == 1.0 + 2 * wait
    first.tick(0.9 + 2 * wait)
    assert first.is_open
    first.tick(1.0 + 2 * wait)
    assert first.state is SessionState.CLOSED
    assert f"1 messages were not acknowledged within {wait:g} s" in first.closing


@pytest.mark.spec("MS-MQQB 3.1.2.4", "MS-MQQB 3.1.6.3", "MS-MQQB 3.1.5.1")
@pytest.mark.spec("MS-MQQB 3.1.6.3#heard")
def test_any_packet_gives_the_other_side_more_time_to_acknowledge() -> None:
    first, _ = joined()
    first.send(message(), 1, 0.0, is_recoverable=False)
    first.receive_data(message(), 10.0)
    first.tick(20.0)
    assert first.is_open
    deadline = first.next_deadline()
    assert deadline is not None
    assert not first.closing
    first.tick(80.0)
    assert first.closing, "since then nothing was heard"


@pytest.mark.spec("MS-MQQB 3.1.5.5.5", "MS-MQQB 3.1.2.4")
@pytest.mark.spec("MS-MQQB 3.1.5.5.5#wait-timer")
def test_an_acknowledgment_starts_the_wait_for_the_rest_anew() -> None:
    first, _ = joined()
    for token in range(2):
        first.send(message(), token, 0.0, is_recoverable=False)
    first.receive_data(acknowledgment(1), 15.0)
    assert first.next_deadline() == 35.0
    first.tick(35.0)
    assert first.is_open, "something was heard since the timer started"
    first.tick(55.0)
    assert first.closing


@pytest.mark.spec("MS-MQQB 3.1.6.3")
@pytest.mark.spec("MS-MQQB 3.1.6.3#nothing")
def test_when_all_is_acknowledged_nothing_is_waited_for() -> None:
    first, _ = joined(SessionSettings(merq_window=64))
    first.send(message(), 1, 0.0, is_recoverable=False)
    first.receive_data(acknowledgment(1), 5.0)
    first.tick(20.0)
    assert first.is_open
    assert first.next_deadline() == 300.0
    first.send(message(), 2, 100.0, is_recoverable=False)
    first.tick(120.0)
    assert first.closing, "what was heard before does not count"


@pytest.mark.spec("MS-MQQB 3.1.2.4", "MS-MQQB 3.1.5.4.1")
@pytest.mark.spec("MS-MQQB 3.1.5.4.1#AckWaitTimeout")
def test_the_acceptor_waits_as_long_as_the_initiator_proposed() -> None:
    session = acceptor(SessionSettings(ack_wait_s=20.0))
    session.receive_data(establish() + parameters(wait=50_000), 0.0)
    session.send(message(), 1, 0.0, is_recoverable=False)
    assert session.next_deadline() == 50.0


@pytest.mark.spec("MS-MQQB 3.1.2.4", "MS-MQQB 3.1.5.5.3")
def test_a_recoverable_message_that_came_and_is_not_on_the_disk_is_waited_for() -> None:
    first, _ = joined()
    first.send(message(recoverable=True), 1, 0.0, is_recoverable=True)
    first.receive_data(acknowledgment(1), 1.0)
    first.tick(21.0)
    first.tick(41.0)
    assert "1 messages" in first.closing


# Sending acknowledgments.


def sent_at(session: Session[int], times: list[float]) -> list[float]:
    """At which of these times an acknowledgment goes out."""
    found = []
    for now in times:
        session.tick(now)
        packets = said(session)
        assert all(isinstance(each, SessionAck) for each in packets)
        found += [now] * len(packets)
    return found


@pytest.mark.spec("MS-MQQB 3.1.2.5", "MS-MQQB 3.1.6.4", "MS-MQQB 3.1.5.8.2")
@pytest.mark.spec("MS-MQQB 3.1.5.8.2#ack-timer", "MS-MQQB 3.1.6.4#nothing")
def test_express_messages_are_acknowledged_after_half_the_time_they_are_waited_for() -> None:
    session = opened()
    give(session, [message()], 1.0)
    give(session, [message()], 9.0)
    assert session.next_deadline() == 11.0
    assert sent_at(session, [10.9, 11.0, 21.0, 31.0]) == [11.0]


@pytest.mark.spec("MS-MQQB 3.1.2.5", "MS-MQQB 3.1.5.8.7", "MS-MQQB 3.1.5.4.1")
@pytest.mark.spec("MS-MQQB 3.1.5.4.1#RecoverableAckSendTimeout", "MS-MQQB 3.1.5.8.7#timer")
def test_recoverable_messages_are_acknowledged_sooner() -> None:
    session = acceptor()
    session.receive_data(establish() + parameters(recoverable=700), 0.0)
    output(session)
    give(session, [message()], 1.0)
    give(session, [message(recoverable=True)], 2.0)
    give(session, [message(recoverable=True)], 2.5)
    assert session.next_deadline() == 2.7
    assert sent_at(session, [2.6, 2.7, 3.5, 11.0]) == [2.7]


@pytest.mark.spec("MS-MQQB 3.1.2.5", "MS-MQQB 3.1.6.4")
def test_what_is_on_its_way_to_the_disk_is_acknowledged_when_it_is_there() -> None:
    session = opened()
    session.receive_data(message(recoverable=True), 0.0)
    assert sent_at(session, [0.5, 1.0, 1.5]) == []
    handle(session, 1.6)
    assert sent_at(session, [1.9, 2.0, 2.5]) == [2.0]


@pytest.mark.spec("MS-MQQB 3.1.6.4")
@pytest.mark.spec("MS-MQQB 3.1.6.4#fields")
def test_an_acknowledgment_has_everything_in_it() -> None:
    session = opened(SessionSettings(window=99, merq_window=99))
    give(session, [message(), message(recoverable=True), message(recoverable=True)])
    session.send(message(recoverable=True), 1, 0.0, is_recoverable=True)
    session.send(message(), 2, 0.0, is_recoverable=False)
    output(session)
    session.tick(0.5)
    (header,) = acks(session)
    assert header.ack_sequence_number == 3
    assert header.recoverable_msg_ack_seq_number == 1
    assert header.recoverable_msg_ack_flags == 0b11
    assert header.user_msg_sequence_number == 2
    assert header.recoverable_msg_seq_number == 1
    assert header.window_size == 99


@pytest.mark.spec("MS-MQQB 3.1.6.4", "MS-MQQB 3.1.2.5")
@pytest.mark.spec("E52")
def test_the_timer_starts_again_with_the_next_message() -> None:
    session = opened()
    give(session, [message()], 0.0)
    assert sent_at(session, [10.0]) == [10.0]
    give(session, [message()], 15.0)
    assert sent_at(session, [20.0, 25.0]) == [25.0]
    give(session, [message(recoverable=True)], 30.0)
    assert sent_at(session, [30.4, 30.5]) == [30.5]


@pytest.mark.spec("MS-MQQB 3.1.6.4", "MS-MQQB 3.1.2.5")
def test_what_came_before_an_acknowledgment_and_was_handled_after_it_is_acknowledged_too() -> None:
    session = opened()
    for _ in range(2):
        session.receive_data(message(), 0.0)
        session.take_arrived()
    session.handled(0.0)
    assert sent_at(session, [10.0]) == [10.0]
    session.handled(11.0)
    assert sent_at(session, [12.0, 20.0, 30.0]) == [20.0]
