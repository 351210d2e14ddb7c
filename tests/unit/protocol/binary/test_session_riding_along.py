"""Acknowledgments that travel on messages, and what they leave behind: flags, timers, counts."""

from __future__ import annotations

from uuid import UUID

import pytest

from kit.sessions import (
    OURS,
    THEIRS,
    acknowledgment,
    acks,
    establish,
    give,
    initiator,
    message,
    opened,
    output,
    parameters,
    said,
    session_header,
    with_header,
)
from merq.model.names import PrivateName
from merq.protocol.binary.acknowledging import HEADER_SIZE
from merq.protocol.binary.session import Session
from merq.protocol.binary.settings import SessionSettings
from merq.wire.build import Outline, build_packet
from merq.wire.connection import EstablishConnection


def riding(session: Session[int], now: float) -> bytes:
    """What goes out when a message is sent on which an acknowledgment travels."""
    session.send(message(b"back"), 1, now, is_recoverable=False)
    return output(session)


@pytest.mark.spec("MS-MQQB 3.1.7.11", "MS-MQMQ 2.2.20.4")
def test_a_message_with_an_acknowledgment_on_it_is_otherwise_unchanged() -> None:
    session = opened()
    give(session, [message()])
    expected = with_header(message(b"back"), session_header(1, sent=1))
    found = riding(session, 9.0)
    assert (found[:-HEADER_SIZE], len(found)) == (expected[:-HEADER_SIZE], len(expected))


@pytest.mark.spec("MS-MQQB 3.1.7.11", "MS-MQQB 3.1.2.5")
def test_an_acknowledgment_that_travelled_along_stops_the_timer() -> None:
    session = opened()
    give(session, [message()])
    assert riding(session, 9.0)[2] & 0x10
    give(session, [message()], 9.5)
    session.tick(10.0)
    session.tick(19.4)
    assert acks(session) == [], "what came since has a time of its own"
    session.tick(19.5)
    (header,) = acks(session)
    assert header.ack_sequence_number == 2


@pytest.mark.spec("MS-MQQB 3.1.5.8.2", "MS-MQQB 3.1.2.4")
def test_a_message_to_a_name_by_identifiers_does_not_make_a_session_direct() -> None:
    session = opened()
    name = PrivateName(computer=THEIRS, number=7)
    packet = build_packet(
        Outline(destination=name, source_queue_manager=OURS.bytes_le, message_ordinal=1)
    )
    give(session, [packet])
    session.tick(10.0)
    output(session)
    session.send(message(), 1, 10.0, is_recoverable=False)
    assert session.next_deadline() == 30.0, "not twice the time"


@pytest.mark.spec("MS-MQQB 3.1.5.3.2", "MS-MQQB 3.1.2.5")
def test_the_initiator_acknowledges_recoverable_messages_in_the_time_that_it_proposed() -> None:
    session = initiator(now=0.0)
    session.receive_data(establish(time_stamp=0), 0.2)
    session.receive_data(parameters(recoverable=1600), 0.2)
    assert session.is_open
    output(session)
    give(session, [message(recoverable=True)], 1.0)
    assert session.next_deadline() == pytest.approx(2.6), "eight times the way there and back"
    session.tick(2.6)
    assert len(acks(session)) == 1


@pytest.mark.parametrize(
    ("is_direct", "expected"), [(False, THEIRS), (True, UUID(int=0))], ids=["guid", "direct"]
)
@pytest.mark.parametrize("pinged", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.5.2.3", "MS-MQQB 2.2.3.1")
def test_a_request_names_whom_it_is_for_unless_the_name_was_direct(
    is_direct: bool, expected: UUID, pinged: bool
) -> None:
    session: Session[int] = Session(
        OURS,
        SessionSettings(),
        0.0,
        is_initiator=True,
        remote_guid=THEIRS,
        is_direct=is_direct,
        pinged=pinged,
    )
    (request,) = said(session)
    assert isinstance(request, EstablishConnection)
    assert (request.header.client_guid, request.header.server_guid) == (OURS, expected)
    assert request.header.operating_system.without_ping is not pinged


@pytest.mark.spec("MS-MQQB 3.1.5.2.3", "MS-MQQB 2.2.3.1")
def test_nobody_is_told_of_a_ping_that_was_not_sent() -> None:
    (request,) = said(initiator())
    assert isinstance(request, EstablishConnection)
    assert request.header.operating_system.without_ping


@pytest.mark.spec("MS-MQQB 3.1.6.4", "MS-MQQB 3.1.2.5")
def test_express_messages_that_an_acknowledgment_left_out_wait_half_the_time_again() -> None:
    session = opened()
    for _ in range(2):
        session.receive_data(message(), 0.0)
        session.take_arrived()
    session.handled(0.0)
    session.tick(10.0)
    assert len(acks(session)) == 1
    assert session.next_deadline() == 20.0
    session.handled(11.0)
    session.tick(19.9)
    assert acks(session) == []
    session.tick(20.0)
    assert [each.ack_sequence_number for each in acks(session)] == [2]


@pytest.mark.spec("MS-MQQB 3.1.5.5.1", "MS-MQQB 3.1.5.9")
def test_an_acknowledgment_that_cannot_be_true_changes_nothing_else() -> None:
    session = opened()
    room = session.room
    session.send(message(), 1, 0.0, is_recoverable=False)
    session.receive_data(acknowledgment(5, sent=9, window=1), 0.0)
    assert session.closing == "the other side acknowledges 4 messages that were not sent"
    assert session.acknowledged == []
    assert session.room == 0
    assert room > 1


@pytest.mark.spec("MS-MQQB 3.1.7.11")
def test_an_acknowledgment_stays_behind_when_exactly_three_quarters_of_its_time_have_passed() -> (
    None
):
    session = opened()
    give(session, [message()])
    assert riding(session, 7.5) == message(b"back")
