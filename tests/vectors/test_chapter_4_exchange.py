"""[MS-MQQB] 4.1: the published exchange, said to an acceptor, and what it answers."""

from __future__ import annotations

from uuid import UUID

import pytest

from kit.vectors import frame
from merq.protocol.binary.session import Session, SessionState
from merq.protocol.binary.settings import SessionSettings
from merq.wire.connection import ConnectionParameters, EstablishConnection, SessionAck
from merq.wire.packet import parse_packet

WINDOWS = SessionSettings(window=64)
"""What the queue managers of the example kept to."""


def request() -> EstablishConnection:
    packet = parse_packet(frame(3))
    assert isinstance(packet, EstablishConnection)
    return packet


def acceptor() -> Session[int]:
    """The queue manager that frame 3 asks for."""
    return Session(request().header.server_guid, WINDOWS, 0.0, is_initiator=False)


def answer(session: Session[int], number: int, now: float = 0.0) -> bytes:
    session.receive_data(frame(number), now)
    return b"".join(session.take_output())


@pytest.mark.spec("MS-MQQB 4.1.3", "MS-MQQB 4.1.4", "MS-MQQB 3.1.5.3.1")
def test_frame_3_is_answered_by_frame_4() -> None:
    session = acceptor()
    found = parse_packet(answer(session, 3))
    expected = parse_packet(frame(4))
    assert isinstance(found, EstablishConnection)
    assert isinstance(expected, EstablishConnection)
    assert found.internal_header == expected.internal_header
    # Frame 4 is of another session than frame 3: the identifiers are the request's (E02).
    assert found.header.client_guid == request().header.client_guid
    assert found.header.server_guid == request().header.server_guid
    assert found.header.time_stamp == expected.header.time_stamp
    assert found.header.operating_system == expected.header.operating_system
    assert found.header.padding == expected.header.padding
    assert found.base_header.version_number == expected.base_header.version_number
    assert found.base_header.reserved == expected.base_header.reserved
    assert found.base_header.signature == expected.base_header.signature
    assert found.base_header.packet_size == expected.base_header.packet_size
    assert found.base_header.time_to_reach_queue == expected.base_header.time_to_reach_queue
    assert found.base_header.flags.internal is expected.base_header.flags.internal is True
    assert session.state is SessionState.WAITING_CP_MSG


@pytest.mark.spec("MS-MQQB 4.1.4")
@pytest.mark.spec("E06")
def test_the_answer_has_the_bytes_by_which_scanners_know_such_a_queue_manager() -> None:
    found = answer(acceptor(), 3)
    assert found[:2] == frame(4)[:2] == b"\x10\x5a"
    assert found[3:16] == frame(4)[3:16]
    assert found[-512:] == frame(4)[-512:] == b"\x5a" * 512


@pytest.mark.spec("MS-MQQB 4.1.5", "MS-MQQB 4.1.6", "MS-MQQB 3.1.5.4.1")
def test_frame_5_is_answered_by_frame_6() -> None:
    session = acceptor()
    answer(session, 3)
    found = parse_packet(answer(session, 5))
    expected = parse_packet(frame(6))
    assert isinstance(found, ConnectionParameters)
    assert isinstance(expected, ConnectionParameters)
    assert found.internal_header == expected.internal_header
    assert found.header == expected.header
    assert found.base_header.packet_size == expected.base_header.packet_size
    assert session.is_open


@pytest.mark.spec("MS-MQQB 4.1.7", "MS-MQQB 4.1.8", "MS-MQQB 3.1.6.4", "MS-MQQB 3.1.5.8")
def test_frame_7_is_acknowledged_by_frame_8() -> None:
    session = acceptor()
    answer(session, 3)
    answer(session, 5)
    assert answer(session, 7) == b""
    (view,) = session.take_arrived()
    assert view.packet == frame(7)
    session.handled(0.0)
    # AckTimeout is 120 s in frame 5; an acknowledgment is sent after half of it.
    session.tick(59.9)
    assert session.take_output() == []
    session.tick(60.0)
    found = parse_packet(b"".join(session.take_output()))
    expected = parse_packet(frame(8))
    assert isinstance(found, SessionAck)
    assert isinstance(expected, SessionAck)
    assert found.header == expected.header
    assert found.internal_header == expected.internal_header
    assert found.base_header.packet_size == expected.base_header.packet_size == 36
    assert found.base_header.flags.internal
    assert found.base_header.flags.session_header


@pytest.mark.spec("MS-MQQB 4.1", "MS-MQQB 3.1.5.3.2", "MS-MQQB 3.1.5.4.2", "MS-MQQB 3.1.5.5.2")
def test_the_other_side_of_the_exchange_is_understood_too() -> None:
    expected = parse_packet(frame(4))
    assert isinstance(expected, EstablishConnection)
    session: Session[UUID] = Session(
        expected.header.client_guid,
        WINDOWS,
        501_140.046,
        is_initiator=True,
        remote_guid=expected.header.server_guid,
    )
    asked = parse_packet(b"".join(session.take_output()))
    assert isinstance(asked, EstablishConnection)
    assert asked.header.time_stamp == expected.header.time_stamp
    # 187 ms there and back make the 1496 of frames 5 and 6.
    session.receive_data(frame(4), 501_140.233)
    proposal = parse_packet(b"".join(session.take_output()))
    assert isinstance(proposal, ConnectionParameters)
    agreed = parse_packet(frame(6))
    assert isinstance(agreed, ConnectionParameters)
    assert proposal.header.recoverable_ack_timeout == agreed.header.recoverable_ack_timeout
    session.receive_data(frame(6), 501_140.3)
    assert session.is_open
    session.send(frame(7), UUID(int=7), 501_141.0, is_recoverable=False)
    assert session.take_output() == [frame(7)]
    session.receive_data(frame(8), 501_142.0)
    assert session.acknowledged == [UUID(int=7)]
    assert not session.closing
