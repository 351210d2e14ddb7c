"""Values that a sender has to set and that decide nothing: read as they come."""

from __future__ import annotations

import pytest

from kit.sessions import acknowledgment, give, handle, message, opened, said
from merq.wire.build import TransactionPlace
from merq.wire.connection import SessionAck
from merq.wire.packet import parse_packet
from merq.wire.view import MessageView

PLACE = TransactionPlace(sequence_id=1, sequence_number=1, previous_sequence_number=0)


def with_time_to_reach_queue(packet: bytes) -> bytes:
    return packet[:12] + (5).to_bytes(4, "little") + packet[16:]


def with_cs(packet: bytes) -> bytes:
    """Internal packets carry CS in bit 4 of the flags of their InternalHeader."""
    return packet[:18] + bytes([packet[18] | 0x10]) + packet[19:]


def with_priority(packet: bytes) -> bytes:
    return packet[:2] + bytes([packet[2] & 0xF8 | 5]) + packet[3:]


@pytest.mark.parametrize(
    "packet",
    [
        pytest.param(with_time_to_reach_queue(acknowledgment()), id="TimeToReachQueue"),
        pytest.param(with_cs(acknowledgment()), id="CS of a SessionAck"),
        pytest.param(with_priority(message(transaction=PLACE)), id="priority"),
    ],
)
@pytest.mark.spec("E37", "E120")
def test_a_value_that_only_its_sender_has_to_set_closes_nothing(packet: bytes) -> None:
    session = opened()
    session.receive_data(packet, 0.0)
    handle(session)
    assert not session.closing
    assert parse_packet(packet).pack() == packet, "and it is kept as it came"


@pytest.mark.spec("E37")
def test_we_set_those_values_as_the_document_says() -> None:
    session = opened()
    give(session, [message()])
    session.tick(60.0)
    (packet,) = said(session)
    assert isinstance(packet, SessionAck)
    assert packet.base_header.time_to_reach_queue == 0xFFFFFFFF
    assert not packet.internal_header.flags.refused
    wrong = parse_packet(with_cs(packet.pack()))
    assert isinstance(wrong, SessionAck)
    assert wrong.internal_header.flags.refused, "that is where it lies"
    assert MessageView(message(transaction=PLACE)).priority == 0
