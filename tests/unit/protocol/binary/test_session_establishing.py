"""How a session begins, from both sides, and who is sent away."""

from __future__ import annotations

from uuid import UUID

import pytest

from kit.sessions import (
    OURS,
    STRANGER,
    THEIRS,
    acceptor,
    acknowledgment,
    establish,
    initiator,
    joined,
    message,
    opened,
    output,
    parameters,
    said,
)
from merq.protocol.binary.session import NULL_GUID, Session, SessionState
from merq.protocol.binary.settings import SessionSettings
from merq.wire.connection import ConnectionParameters, EstablishConnection


def asked(session: Session[int]) -> EstablishConnection:
    (packet,) = said(session)
    assert isinstance(packet, EstablishConnection)
    return packet


def proposed(session: Session[int]) -> ConnectionParameters:
    (packet,) = said(session)
    assert isinstance(packet, ConnectionParameters)
    return packet


# Asking.


@pytest.mark.spec("MS-MQQB 3.1.5.2.3")
@pytest.mark.spec(
    "MS-MQQB 3.1.5.2.3#form", "MS-MQQB 3.1.5.2.3#ServerGuid", "MS-MQQB 3.1.5.2.3#TimeStamp"
)
def test_the_initiator_says_who_it_is_and_whom_it_wants() -> None:
    session = initiator(now=501_140.046)
    assert session.state is SessionState.WAITING_ECR_MSG
    packet = asked(session)
    assert packet.base_header.flags.internal
    assert packet.internal_header.flags.packet_type == 2
    assert not packet.internal_header.flags.refused
    assert packet.header.client_guid == OURS
    assert packet.header.server_guid == THEIRS
    assert packet.header.time_stamp == 501_140_046
    assert packet.header.operating_system.fixed == 0x10
    assert packet.header.operating_system.server_class


@pytest.mark.spec("MS-MQQB 3.1.5.2.3")
@pytest.mark.spec("MS-MQQB 3.1.5.2.3#ServerGuid", "E72")
def test_for_a_direct_name_anybody_may_answer() -> None:
    session = initiator(is_direct=True)
    assert asked(session).header.server_guid == NULL_GUID
    session.receive_data(establish(server=STRANGER), 0.0)
    assert session.state is SessionState.WAITING_CPR_MSG
    assert session.remote_guid == STRANGER


@pytest.mark.parametrize("pinged", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.5.2.3")
def test_the_initiator_says_whether_it_has_asked_by_ping_before(pinged: bool) -> None:
    session: Session[int] = Session(
        OURS, SessionSettings(), 0.0, is_initiator=True, remote_guid=THEIRS, pinged=pinged
    )
    assert asked(session).header.operating_system.without_ping is not pinged


@pytest.mark.spec("MS-MQQB 3.1.5.2.3")
@pytest.mark.spec("MS-MQQB 3.1.5.2.3#TimeStamp")
def test_a_time_stamp_has_32_bits() -> None:
    session = initiator(now=5_000_000.5)
    assert asked(session).header.time_stamp == 5_000_000_500 & 0xFFFFFFFF


# Being asked.


@pytest.mark.spec("MS-MQQB 3.1.5.10", "MS-MQQB 3.1.3.2")
def test_who_is_connected_to_says_nothing_until_it_is_asked() -> None:
    session = acceptor()
    assert session.state is SessionState.WAITING_EC_MSG
    assert output(session) == b""
    assert session.remote_guid == NULL_GUID
    assert not session.is_open
    assert session.room == 0
    assert session.waiting == 0


@pytest.mark.parametrize("server", [THEIRS, NULL_GUID])
@pytest.mark.parametrize("without_ping", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.5.3", "MS-MQQB 3.1.5.3.1")
@pytest.mark.spec(
    "MS-MQQB 3.1.5.3.1#RemoteQMGuid", "MS-MQQB 3.1.5.3.1#CS", "MS-MQQB 3.1.5.3.1#echo", "E07"
)
def test_a_request_for_this_queue_manager_or_for_any_is_granted(
    server: UUID, without_ping: bool
) -> None:
    session = acceptor()
    session.receive_data(
        establish(server=server, time_stamp=0xFEDCBA98, without_ping=without_ping), 7.0
    )
    packet = asked(session)
    assert packet.base_header.flags.internal
    assert packet.internal_header.flags.packet_type == 2
    assert not packet.internal_header.flags.refused
    assert packet.header.client_guid == OURS
    assert packet.header.server_guid == THEIRS
    assert packet.header.time_stamp == 0xFEDCBA98
    assert packet.header.operating_system.without_ping is without_ping
    assert packet.header.padding == b"\x5a" * 512
    assert session.remote_guid == OURS
    assert session.state is SessionState.WAITING_CP_MSG


@pytest.mark.spec("MS-MQQB 3.1.5.3.1")
@pytest.mark.spec("MS-MQQB 3.1.5.3.1#CS")
@pytest.mark.spec("E85")
def test_a_request_for_another_queue_manager_is_refused_and_the_session_ends() -> None:
    session = acceptor()
    session.receive_data(establish(server=STRANGER), 0.0)
    packet = asked(session)
    assert packet.internal_header.flags.refused
    assert packet.header.server_guid == THEIRS
    assert session.state is SessionState.CLOSED
    assert str(STRANGER) in session.closing


# The answer.


@pytest.mark.spec("MS-MQQB 3.1.5.3", "MS-MQQB 3.1.5.3.2")
@pytest.mark.spec("MS-MQQB 3.1.5.3.2#reply")
def test_an_answer_is_followed_by_a_proposal() -> None:
    session = initiator(SessionSettings(window=77, merq_window=77, ack_wait_s=30.0), now=10.0)
    output(session)
    session.receive_data(establish(time_stamp=10_000), 10.1)
    packet = proposed(session)
    assert packet.base_header.flags.internal
    assert packet.internal_header.flags.packet_type == 3
    assert not packet.internal_header.flags.refused
    assert packet.header.recoverable_ack_timeout == 800
    assert packet.header.ack_timeout == 30_000
    assert packet.header.window_size == 77
    assert session.state is SessionState.WAITING_CPR_MSG


@pytest.mark.parametrize(
    ("round_trip_s", "expected_ms"),
    [(0.0, 500), (0.0625, 500), (0.063, 504), (1.0, 8000), (15.0, 120_000), (59.0, 120_000)],
)
@pytest.mark.spec("MS-MQQB 3.1.5.3.2")
@pytest.mark.spec("MS-MQQB 3.1.5.3.2#round-trip")
def test_recoverable_messages_are_acknowledged_within_eight_round_trips(
    round_trip_s: float, expected_ms: int
) -> None:
    session = initiator(now=64.0)
    output(session)
    session.receive_data(establish(time_stamp=64_000), 64.0 + round_trip_s)
    assert proposed(session).header.recoverable_ack_timeout == expected_ms


@pytest.mark.spec("MS-MQQB 3.1.5.3.2")
def test_a_round_trip_may_pass_the_end_of_the_clock() -> None:
    late = (1 << 32) / 1000 - 0.1
    session = initiator(now=late)
    stamp = asked(session).header.time_stamp
    session.receive_data(establish(time_stamp=stamp), late + 0.5)
    assert proposed(session).header.recoverable_ack_timeout == pytest.approx(4000, abs=8)


@pytest.mark.parametrize(
    ("wait_s", "expected_ms"), [(1.0, 20_000), (20.0, 20_000), (119.5, 119_500), (900.0, 120_000)]
)
@pytest.mark.spec("MS-MQQB 3.1.5.3.2")
def test_what_is_proposed_stays_in_the_range_that_a_packet_may_have(
    wait_s: float, expected_ms: int
) -> None:
    session = initiator(SessionSettings(ack_wait_s=wait_s))
    output(session)
    session.receive_data(establish(), 0.0)
    assert proposed(session).header.ack_timeout == expected_ms


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (establish(refused=True), "refused"),
        (establish(client=STRANGER), "not for us"),
        (establish(server=STRANGER), "was expected"),
    ],
)
@pytest.mark.spec("MS-MQQB 3.1.5.3.2", "MS-MQQB 3.1.5.9")
@pytest.mark.spec("MS-MQQB 3.1.5.3.2#invalid", "MS-MQQB 3.1.5.9#no-packet", "E72")
def test_an_answer_that_is_not_ours_ends_the_session(answer: bytes, why: str) -> None:
    session = initiator()
    output(session)
    session.receive_data(answer, 0.0)
    assert session.state is SessionState.CLOSED
    assert why in session.closing
    assert output(session) == b"", "no packet says that a session ends"


# Parameters.


@pytest.mark.spec("MS-MQQB 3.1.5.4", "MS-MQQB 3.1.5.4.1")
@pytest.mark.spec(
    "MS-MQQB 3.1.5.4.1#ReceivedWindowSize", "MS-MQQB 3.1.5.4.1#reply", "MS-MQQB 3.1.5.4.1#open"
)
def test_a_proposal_is_accepted_as_it_is_but_for_our_own_window() -> None:
    session = acceptor(SessionSettings(window=100, merq_window=100))
    session.receive_data(establish(), 0.0)
    output(session)
    session.receive_data(parameters(recoverable=1496, wait=120_000, window=64), 0.0)
    packet = proposed(session)
    assert packet.base_header.flags.internal
    assert packet.internal_header.flags.packet_type == 3
    assert not packet.internal_header.flags.refused
    assert packet.header.recoverable_ack_timeout == 1496
    assert packet.header.ack_timeout == 120_000
    assert packet.header.window_size == 100
    assert session.is_open
    assert session.room == 64


@pytest.mark.spec("MS-MQQB 3.1.5.4", "MS-MQQB 3.1.5.4.2")
def test_the_answer_to_a_proposal_opens_the_session() -> None:
    session = initiator(SessionSettings(window=100, merq_window=100))
    session.receive_data(establish(), 0.0)
    output(session)
    session.receive_data(parameters(window=30), 0.0)
    assert session.is_open
    assert session.room == 30
    assert output(session) == b""


@pytest.mark.parametrize(("own", "other", "room"), [(8, 64, 8), (64, 8, 8), (5, 0, 1)])
@pytest.mark.spec("MS-MQQB 3.1.5.4.1", "MS-MQQB 3.1.5.4.2")
@pytest.mark.spec("E55")
def test_the_lower_of_both_windows_counts(own: int, other: int, room: int) -> None:
    session = acceptor(SessionSettings(window=own, merq_window=own))
    session.receive_data(establish() + parameters(window=other), 0.0)
    assert session.room == room


@pytest.mark.parametrize(
    ("recoverable", "wait", "acknowledged_after", "lost_after"),
    [(0, 20_000, 0.5, 40.0), (500, 0, 0.5, 40.0), (120_001, 140_000, 60.0, 240.0)],
)
@pytest.mark.spec("MS-MQQB 3.1.5.4.1", "MS-MQQB 2.2.2.1")
@pytest.mark.spec("E120")
def test_a_proposal_out_of_range_is_brought_into_it_and_repeated_as_it_came(
    recoverable: int, wait: int, acknowledged_after: float, lost_after: float
) -> None:
    session = acceptor()
    session.receive_data(establish(), 0.0)
    session.take_output()
    packet = bytearray(parameters())
    packet[20:24] = recoverable.to_bytes(4, "little")
    packet[24:28] = wait.to_bytes(4, "little")
    session.receive_data(bytes(packet), 0.0)
    assert session.state is SessionState.OPEN
    (answer,) = session.take_output()
    assert answer[20:28] == packet[20:28]
    session.receive_data(message(recoverable=True), 0.0)
    session.take_arrived()
    session.handled(0.0)
    assert session.next_deadline() == acknowledged_after
    session.send(message(), 1, 0.0, is_recoverable=False)
    session.tick(lost_after)  # until then, something was heard
    lost_after *= 2
    session.tick(lost_after - 0.01)
    assert not session.closing
    session.tick(lost_after)
    assert "not acknowledged" in session.closing


@pytest.mark.spec("MS-MQQB 3.1.5.2", "MS-MQQB 3.1.3.2")
@pytest.mark.spec("MS-MQQB 3.1.1.7.1")
def test_two_sessions_come_to_terms_with_each_other() -> None:
    first, second = joined(
        SessionSettings(window=9, merq_window=9), SessionSettings(window=4, merq_window=4)
    )
    assert (first.remote_guid, second.remote_guid) == (THEIRS, OURS)
    assert first.room == second.room == 4
    assert first.is_initiator
    assert not second.is_initiator


# What the table lacks closes.

PACKETS = {
    "EstablishConnection": establish(),
    "ConnectionParameters": parameters(),
    "SessionAck": acknowledgment(),
    "message": message(),
}


def in_state(state: SessionState) -> Session[int]:
    if state is SessionState.WAITING_EC_MSG:
        return acceptor()
    if state is SessionState.OPEN:
        return opened()
    session = acceptor() if state is SessionState.WAITING_CP_MSG else initiator()
    if state is not SessionState.WAITING_ECR_MSG:
        session.receive_data(establish(), 0.0)
    assert session.state is state
    return session


GOING_ON = {
    (SessionState.WAITING_EC_MSG, "EstablishConnection"),
    (SessionState.WAITING_ECR_MSG, "EstablishConnection"),
    (SessionState.WAITING_CP_MSG, "ConnectionParameters"),
    (SessionState.WAITING_CPR_MSG, "ConnectionParameters"),
    (SessionState.OPEN, "SessionAck"),
    (SessionState.OPEN, "message"),
}


@pytest.mark.parametrize("kind", PACKETS)
@pytest.mark.parametrize("state", [each for each in SessionState if each.name != "CLOSED"])
@pytest.mark.spec(
    "MS-MQQB 3.1.5.1",
    "MS-MQQB 3.1.5.1.1",
    "MS-MQQB 3.1.5.3",
    "MS-MQQB 3.1.5.4",
    "MS-MQQB 3.1.5.5",
    "MS-MQQB 3.1.5.8",
    "MS-MQQB 3.1.5.9",
)
@pytest.mark.spec("E08")
def test_a_packet_out_of_its_time_ends_the_session(state: SessionState, kind: str) -> None:
    session = in_state(state)
    output(session)
    session.receive_data(PACKETS[kind], 0.0)
    if (state, kind) in GOING_ON:
        assert not session.closing
        return
    assert session.state is SessionState.CLOSED
    assert state.value in session.closing
    assert output(session) == b""
    assert session.take_arrived() == []
    session.tick(1000.0)
    assert output(session) == b""


@pytest.mark.spec("MS-MQQB 3.1.5.9")
@pytest.mark.spec("MS-MQQB 3.1.5.9#no-packet", "MS-MQQB 3.1.5.9#timers")
def test_a_closed_session_hears_and_says_nothing() -> None:
    first, _ = joined()
    first.close("enough")
    first.close("more than enough")
    assert first.closing == "enough"
    first.receive_data(message() + b"garbage", 0.0)
    assert first.take_arrived() == []
    assert first.room == 0
    first.pause(0.0)
    assert output(first) == b""
    assert first.next_deadline() is None


@pytest.mark.spec("MS-MQQB 3.1.7.3", "MS-MQQB 3.1.5.9")
def test_how_much_was_not_acknowledged_when_the_network_failed_is_known() -> None:
    first, _ = joined()
    for token in range(4):
        first.send(message(), token, 0.0, is_recoverable=token % 2 == 1)
    first.receive_data(acknowledgment(2), 0.0)
    assert first.acknowledged == [0]
    first.close("the network failed")
    assert first.waiting == 3
