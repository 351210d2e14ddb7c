"""Who claims to be another, or sits at its address, gets nothing that is for the other."""

from __future__ import annotations

from uuid import UUID

import pytest

from hostile import stranger_packets as packets
from kit.exchange import Manager, Town
from kit.raw_sessions import RawSession
from merq.wire.view import MessageView
from unit.exchange.exchange_world import (
    GUIDS,
    ONE,
    PLAIN,
    QUEUE,
    THREE,
    TWO,
    changed,
    manager,
)
from unit.exchange.letter_messages import OTHER

BY_GUID = f"PRIVATE={GUIDS[TWO]}\\00000010"


def bodies(session: RawSession, now: float) -> list[bytes]:
    session.settle(now)
    found = []
    for packet in session.messages():
        size = int.from_bytes(packet[8:12], "little")
        found.append(MessageView(packet[:2] + bytes([packet[2] & ~0x10]) + packet[3:size]).body)
    return found


def sender_of(town: Town, **fields: object) -> Manager:
    town.managers[ONE] = found = manager(ONE, changed(**fields))
    return found


def receiver_of(town: Town) -> Manager:
    town.managers[TWO] = found = manager(TWO)
    assert found.create("q") == QUEUE
    return found


@pytest.mark.parametrize("guid", [OTHER, GUIDS[TWO]])
def test_who_connects_from_the_peers_address_is_not_handed_its_messages(guid: UUID) -> None:
    town = Town()
    sender = sender_of(town)
    thief = RawSession.connect(sender, TWO, guid).establish()
    sender.send(PLAIN, b"secret", recoverable=True)
    town.wait(2.0)
    assert bodies(thief, town.now) == []
    assert TWO in town.dialled, "it is called itself"
    receiver = receiver_of(town)
    town.wait(6.0)
    assert receiver.bodies(QUEUE) == [b"secret"]


@pytest.mark.spec("MS-MQQB 3.1.5.2", "MS-MQQB 3.1.7.5", "E141")
def test_who_claims_an_identifier_is_not_handed_what_is_for_it() -> None:
    town = Town()
    sender, receiver = sender_of(town), receiver_of(town)
    honest = RawSession.connect(sender, TWO, GUIDS[TWO]).establish()
    thief = RawSession.connect(sender, THREE, GUIDS[TWO]).establish()
    sender.send(BY_GUID, b"secret", recoverable=True)
    town.wait(2.0)
    assert bodies(thief, town.now) == []
    assert bodies(honest, town.now) == [], "it was not confirmed; it is called instead"
    assert receiver.bodies(QUEUE) == [b"secret"]
    assert "an identifier is claimed from a second address" in sender.told


def test_a_claim_does_not_move_who_was_confirmed_not_when_its_session_is_over() -> None:
    town = Town()
    sender, receiver = sender_of(town), receiver_of(town)
    sender.send(PLAIN, b"a", recoverable=True)
    town.wait(1.0)
    town.cut()
    thief = RawSession.connect(sender, THREE, GUIDS[TWO]).establish()
    sender.send(BY_GUID, b"secret", recoverable=True)
    town.wait(1.0)
    assert bodies(thief, town.now) == []
    assert receiver.bodies(QUEUE) == [b"a", b"secret"]


def test_what_is_said_about_its_own_messages_goes_through_a_session_that_nobody_confirmed() -> None:
    town = Town()
    receiver = receiver_of(town)
    session = RawSession.connect(receiver, THREE, OTHER).establish()
    told = rf"TCP:{THREE}\private$\told"
    packet = packets.message(
        OTHER.bytes_le, 1, rf"TCP:{TWO}\private$\q", admin=told, asked=packets.PA
    )
    session.say(packet)
    assert len(bodies(session, town.now)) == 1
    assert town.dialled == []


def test_a_message_of_an_application_behind_an_acknowledgment_does_not_follow_it() -> None:
    town = Town()
    receiver = receiver_of(town)
    session = RawSession.connect(receiver, THREE, OTHER).establish()
    told = rf"TCP:{THREE}\private$\told"
    receiver.exchange.received(
        session.link,
        packets.message(OTHER.bytes_le, 1, rf"TCP:{TWO}\private$\q", admin=told, asked=packets.PA),
        0.0,
    )
    receiver.send(f"DIRECT={told}", b"secret")
    town.wait(12.0, step=1.0)
    assert b"secret" not in bodies(session, town.now)
    assert b"secret" in receiver.waiting(f"DIRECT={told}")
    assert THREE in town.dialled
