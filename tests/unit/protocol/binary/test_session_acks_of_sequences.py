"""OrderAcks and FinalAcks on a session: they are messages there, at either end."""

from __future__ import annotations

import pytest

from kit.sessions import (
    acceptor,
    acknowledgment,
    acks,
    establish,
    give,
    initiator,
    opened,
    output,
)
from merq.model.message_class import MessageClass
from merq.model.names import PrivateName
from merq.protocol.binary.session import SessionState
from merq.wire.acks import FinalAck, OrderAck
from merq.wire.build import Outline, build_packet
from merq.wire.packet import parse_packet
from unit.engine.engine_world import GUID


def ack(kind: MessageClass, *, recoverable: bool) -> bytes:
    """An acknowledgment of a sequence as it travels."""
    return build_packet(
        Outline(
            destination=PrivateName(computer=GUID, number=4),
            label="QM Ordering Ack",
            message_class=kind,
            body=bytes(8) + b"\1" + bytes(27),
            priority=0,
            recoverable=recoverable,
        )
    )


ORDER = ack(MessageClass.MQMSG_CLASS_ORDER_ACK, recoverable=False)
FINAL = ack(MessageClass.MQMSG_CLASS_ACK_RECEIVE, recoverable=True)


def test_they_are_what_they_are_taken_for() -> None:
    assert isinstance(parse_packet(ORDER), OrderAck)
    assert isinstance(parse_packet(FINAL), FinalAck)


@pytest.mark.parametrize("state", [each for each in SessionState if each.name.startswith("WAIT")])
@pytest.mark.parametrize(
    "packet",
    [
        pytest.param(ORDER, marks=pytest.mark.spec("MS-MQQB 3.1.5.6#not-open"), id="OrderAck"),
        pytest.param(FINAL, marks=pytest.mark.spec("MS-MQQB 3.1.5.7#not-open"), id="FinalAck"),
    ],
)
def test_before_the_session_is_open_they_end_it(state: SessionState, packet: bytes) -> None:
    session = acceptor() if "EC_MSG" in state.name or "CP_MSG" in state.name else initiator()
    if state in (SessionState.WAITING_CP_MSG, SessionState.WAITING_CPR_MSG):
        session.receive_data(establish(), 0.0)
    assert session.state is state
    output(session)
    session.receive_data(packet, 0.0)
    assert session.state is SessionState.CLOSED
    assert session.take_arrived() == []
    assert output(session) == b""


@pytest.mark.spec("E49")
def test_they_are_counted_where_they_come_and_where_they_go() -> None:
    session = opened()
    give(session, [ORDER, FINAL])
    session.send(ORDER, 1, 0.0, is_recoverable=False)
    session.send(FINAL, 2, 0.0, is_recoverable=True)
    output(session)
    session.tick(0.5)
    (header,) = acks(session)
    assert (header.ack_sequence_number, header.recoverable_msg_ack_flags) == (2, 0b1)
    assert (header.user_msg_sequence_number, header.recoverable_msg_seq_number) == (2, 1)
    session.receive_data(acknowledgment(2, recoverable=1, flags=1, sent=2, recoverable_sent=1), 1.0)
    assert session.acknowledged == [1, 2]
    assert not session.closing


@pytest.mark.spec("E50")
def test_a_message_counts_whatever_becomes_of_it() -> None:
    session = opened()
    twice = [FINAL, FINAL]
    give(session, twice)
    session.receive_data(acknowledgment(0, sent=2, recoverable_sent=2), 1.0)
    assert not session.closing
    session.tick(2.0)
    (header,) = acks(session)
    assert (header.ack_sequence_number, header.recoverable_msg_ack_flags) == (2, 0b11)
