"""Messages on an open session, and who is told of them when."""

from __future__ import annotations

import pytest

from kit.sessions import (
    acknowledgment,
    acks,
    give,
    handle,
    joined,
    message,
    opened,
    output,
    session_header,
    with_header,
)
from merq.protocol.binary.session import Session, SessionState
from merq.protocol.binary.settings import SessionSettings
from merq.wire.build import TransactionPlace
from merq.wire.headers import SessionHeader
from merq.wire.stream import PacketSplitter
from merq.wire.view import MessageView

PLACE = TransactionPlace(sequence_id=1, sequence_number=1, previous_sequence_number=0)


def one_ack(session: Session[int]) -> SessionHeader:
    (header,) = acks(session)
    return header


# Coming.


@pytest.mark.spec("MS-MQQB 3.1.5.8", "MS-MQQB 3.1.1.4")
def test_messages_come_in_order_and_are_handed_over() -> None:
    session = opened()
    session.receive_data(message(b"a") + message(b"b", recoverable=True), 0.0)
    assert [view.body for view in session.take_arrived()] == [b"a", b"b"]
    assert session.take_arrived() == []
    session.receive_data(message(b"c"), 0.0)
    assert [view.body for view in session.take_arrived()] == [b"c"]


@pytest.mark.spec("MS-MQQB 3.1.5.8.7", "MS-MQQB 3.1.1.6.1")
@pytest.mark.spec("MS-MQQB 3.1.5.8.7#AckSequenceNumber", "E54")
def test_nothing_is_acknowledged_before_it_is_taken_care_of() -> None:
    session = opened()
    session.receive_data(message(recoverable=True) + message(), 0.0)
    session.tick(10.0)
    session.tick(20.0)
    assert acks(session) == []
    handle(session, 20.0)
    session.tick(30.0)
    header = one_ack(session)
    assert header.ack_sequence_number == 2
    assert header.recoverable_msg_ack_seq_number == 1
    assert header.recoverable_msg_ack_flags == 1


@pytest.mark.spec("MS-MQQB 3.1.1.4", "MS-MQQB 3.1.5.8.7")
def test_transactional_messages_count_among_the_recoverable_ones() -> None:
    session = opened()
    give(session, [message(), message(transaction=PLACE), message(recoverable=True)])
    session.tick(0.5)
    header = one_ack(session)
    assert header.ack_sequence_number == 3
    assert header.recoverable_msg_ack_seq_number == 1
    assert header.recoverable_msg_ack_flags == 0b11


@pytest.mark.parametrize(("window", "count"), [(64, 32), (10, 5), (3, 1), (1, 1)])
@pytest.mark.spec("MS-MQQB 3.1.1.6.1")
@pytest.mark.spec("E54")
def test_half_a_window_of_messages_does_not_wait_for_the_timer(window: int, count: int) -> None:
    session = opened(SessionSettings(window=window, merq_window=window))
    give(session, [message()] * (count - 1))
    assert acks(session) == []
    give(session, [message()])
    header = one_ack(session)
    assert header.ack_sequence_number == count
    assert header.window_size == window


@pytest.mark.spec("MS-MQQB 3.1.5.8.7")
@pytest.mark.spec("MS-MQQB 3.1.5.8.7#full-flags")
def test_as_many_recoverable_messages_as_the_bit_field_has_do_not_wait_either() -> None:
    session = opened(SessionSettings(window=1000, merq_window=1000))
    give(session, [message(recoverable=True)] * 31)
    assert acks(session) == []
    give(session, [message(recoverable=True)])
    header = one_ack(session)
    assert header.recoverable_msg_ack_seq_number == 1
    assert header.recoverable_msg_ack_flags == 0xFFFFFFFF
    give(session, [message(recoverable=True)] * 70)
    assert [each.recoverable_msg_ack_seq_number for each in acks(session)] == [33, 65]
    session.tick(0.5)
    header = one_ack(session)
    assert header.recoverable_msg_ack_seq_number == 97
    assert header.recoverable_msg_ack_flags == 0b111111
    assert header.ack_sequence_number == 102


@pytest.mark.spec("MS-MQQB 3.1.5.8.2")
@pytest.mark.spec("MS-MQQB 3.1.5.8.2#DirectFormatSession")
def test_a_direct_name_makes_a_direct_session() -> None:
    session = opened()
    assert not session.is_direct
    session.receive_data(message(), 0.0)
    assert session.is_direct


@pytest.mark.limit("merq.protocol.binary.settings.SessionSettings.unhandled_bytes_max")
@pytest.mark.spec("MS-MQQB 3.1.5.8")
def test_a_session_says_when_too_much_has_come() -> None:
    size = len(message(b"x" * 100))
    session = opened(SessionSettings(unhandled_bytes_max=2 * size))
    found = []
    for count in (2, 1):
        session.receive_data(message(b"x" * 100) * count, 0.0)
        found.append(session.is_congested)
    handle(session)
    assert [*found, session.is_congested] == [False, True, False]


# Headers that travel along.


@pytest.mark.spec("MS-MQQB 3.1.5.8.4", "MS-MQQB 3.1.5.5", "MS-MQMQ 2.2.20.4")
def test_an_acknowledgment_on_a_message_is_taken_and_taken_off() -> None:
    session = opened()
    session.send(message(), 7, 0.0, is_recoverable=False)
    packet = message(b"along")
    session.receive_data(with_header(packet, session_header(1, sent=1)), 0.0)
    assert session.acknowledged == [7]
    assert not session.closing
    (view,) = session.take_arrived()
    assert view.packet == packet


@pytest.mark.parametrize("recoverable_sent", [0, 1])
@pytest.mark.spec("MS-MQQB 3.1.5.5.5", "MS-MQQB 3.1.5.8.4")
@pytest.mark.spec("E51")
def test_whether_a_recoverable_message_counts_in_its_own_header_does_not_matter(
    recoverable_sent: int,
) -> None:
    session = opened()
    header = session_header(sent=1, recoverable_sent=recoverable_sent)
    session.receive_data(with_header(message(recoverable=True), header), 0.0)
    assert not session.closing


@pytest.mark.parametrize("sent", [0, 1])
@pytest.mark.spec("MS-MQQB 3.1.5.5.5", "MS-MQQB 3.1.5.8.4", "MS-MQMQ 2.2.20.4")
def test_whether_a_message_counts_in_its_own_header_does_not_matter(sent: int) -> None:
    session = opened()
    session.receive_data(with_header(message(), session_header(sent=sent)), 0.0)
    assert not session.closing


@pytest.mark.parametrize("counts", [(0xFFFF, 0), (2, 0), (1, 1)])
@pytest.mark.spec("MS-MQQB 3.1.5.5.5", "MS-MQMQ 2.2.20.4")
@pytest.mark.spec("MS-MQMQ note 14")
def test_a_message_whose_header_counts_wrong_is_taken_and_the_session_ends(
    counts: tuple[int, int],
) -> None:
    session = opened()
    header = session_header(sent=counts[0], recoverable_sent=counts[1])
    session.receive_data(with_header(message(b"last"), header), 0.0)
    assert [view.body for view in session.take_arrived()] == [b"last"]
    assert session.state is SessionState.CLOSED
    assert "the other side has sent" in session.closing


def both_ways(now: float, *, recoverable: bool) -> Session[int]:
    """A session that got a message at 0.0 and sends one later."""
    session = opened()
    give(session, [message(recoverable=recoverable)])
    session.send(message(b"back", recoverable=True), 1, now, is_recoverable=True)
    return session


@pytest.mark.parametrize(
    ("recoverable", "late", "early"), [(False, 7.51, 7.49), (True, 0.376, 0.374)]
)
@pytest.mark.spec("MS-MQQB 3.1.7.11", "MS-MQQB 3.1.7.1.3")
@pytest.mark.spec("MS-MQQB 3.1.7.11#last-quarter", "MS-MQQB 3.1.7.11#said", "E51", "E52")
def test_an_acknowledgment_travels_along_in_the_last_quarter_of_its_time(
    recoverable: bool, late: float, early: float
) -> None:
    session = both_ways(early, recoverable=recoverable)
    (packet,) = PacketSplitter().feed(output(session))
    assert packet == message(b"back", recoverable=True)

    session = both_ways(late, recoverable=recoverable)
    (packet,) = PacketSplitter().feed(output(session))
    view = MessageView(packet)
    assert view.body == b"back"
    header = view.decode().session_header
    assert header is not None
    assert header.ack_sequence_number == 1
    assert header.recoverable_msg_ack_seq_number == recoverable
    assert header.recoverable_msg_ack_flags == recoverable
    assert header.user_msg_sequence_number == 1, "the message itself is counted"
    assert header.recoverable_msg_seq_number == 1
    assert header.window_size == SessionSettings().merq_window
    session.tick(60.0)
    assert output(session) == b"", "it was said once"


@pytest.mark.spec("MS-MQQB 3.1.7.11")
@pytest.mark.spec("MS-MQQB 3.1.7.11#nothing")
def test_nothing_travels_along_when_there_is_nothing_to_say() -> None:
    first, second = joined()
    second.receive_data(message(), 0.0)
    second.send(message(b"back"), 1, 9.99, is_recoverable=False)
    (packet,) = PacketSplitter().feed(output(second))
    assert not packet[2] & 0x10, "what came is not taken care of yet"
    first.receive_data(packet, 9.99)
    assert [view.body for view in first.take_arrived()] == [b"back"]


# Going.


@pytest.mark.spec("MS-MQQB 3.1.7.1", "MS-MQQB 3.1.7.1.3", "MS-MQQB 3.1.1.6.1")
@pytest.mark.spec("MS-MQQB 3.1.5.5.1#UnAckedMessageCount", "E56")
def test_a_full_window_has_no_room_until_it_is_acknowledged() -> None:
    first, _ = joined(SessionSettings(window=3, merq_window=3))
    for token in range(3):
        assert first.room == 3 - token
        first.send(message(), token, 0.0, is_recoverable=token == 1)
    assert first.room == 0
    first.receive_data(acknowledgment(2, window=3), 0.0)
    assert first.room == 2
    assert first.acknowledged == [0]
    assert first.waiting == 2, "one has not come, one is not on the disk"


@pytest.mark.spec("MS-MQQB 3.1.5.5")
@pytest.mark.spec("E55")
def test_the_other_side_may_change_its_window_with_every_acknowledgment() -> None:
    first, _ = joined(SessionSettings(window=50, merq_window=50))
    first.receive_data(acknowledgment(window=1), 0.0)
    assert first.room == 1
    first.receive_data(acknowledgment(window=20), 0.0)
    assert first.room == 20
    first.receive_data(acknowledgment(window=60_000), 0.0)
    assert first.room == 50


@pytest.mark.parametrize(
    ("bogus", "reason"),
    [
        ({"received": 5}, "acknowledges 3 messages that were not sent"),
        (
            {"received": 2, "recoverable": 3, "flags": 1},
            "acknowledges 2 recoverable messages that were not sent",
        ),
        (
            {"received": 2, "recoverable": 1, "flags": 0b100},
            "acknowledges 2 recoverable messages that were not sent",
        ),
        ({"received": 2, "sent": 1}, "has sent 1 messages, 0 came"),
        ({"received": 2, "recoverable_sent": 1}, "has sent 1 recoverable messages, 0 came"),
    ],
)
@pytest.mark.spec("MS-MQQB 3.1.5.5.1", "MS-MQQB 3.1.5.5.3", "MS-MQQB 3.1.5.5.5", "MS-MQQB 3.1.5.9")
@pytest.mark.spec(
    "MS-MQQB 3.1.5.5.5#UserMsgSequenceNumber", "MS-MQQB 3.1.5.5.5#RecoverableMsgSeqNumber"
)
def test_an_acknowledgment_that_cannot_be_true_ends_the_session(
    bogus: dict[str, int], reason: str
) -> None:
    first, _ = joined()
    output(first)
    first.send(message(), 0, 0.0, is_recoverable=False)
    first.send(message(recoverable=True), 1, 0.0, is_recoverable=True)
    output(first)
    first.receive_data(acknowledgment(**bogus), 0.0)
    assert first.state is SessionState.CLOSED
    assert first.closing == f"the other side {reason}"
    assert output(first) == b""


@pytest.mark.spec("MS-MQQB 3.1.7.13")
@pytest.mark.spec("MS-MQQB 3.1.7.13#SessionAck")
def test_pausing_acknowledges_at_once_and_asks_the_other_side_to_go_slowly() -> None:
    first, second = joined()
    give(second, [message(), message(recoverable=True)])
    second.send(message(), 1, 0.0, is_recoverable=False)
    output(second)
    second.pause(0.0)
    header = one_ack(second)
    assert header.ack_sequence_number == 2
    assert header.recoverable_msg_ack_seq_number == 1
    assert header.recoverable_msg_ack_flags == 1
    assert header.user_msg_sequence_number == 1
    assert header.recoverable_msg_seq_number == 0
    assert header.window_size == 1
    second.tick(100.0)
    assert acks(second) == [], "all was said, and the timer is stopped"
    assert first.room == SessionSettings().merq_window
    first.receive_data(acknowledgment(window=1), 0.0)
    assert first.room == 1


@pytest.mark.spec("MS-MQQB 3.1.7.13", "MS-MQQB 3.1.6.2")
@pytest.mark.spec("MS-MQQB 3.1.7.13#SessionActive")
def test_a_paused_session_counts_as_idle() -> None:
    session = opened(SessionSettings(cleanup_s=300.0))
    give(session, [message()])
    session.pause(1.0)
    session.tick(300.0)
    assert session.closing
