"""What somebody gets who claims another's identifier, or sends what no peer should."""

from __future__ import annotations

from struct import pack
from uuid import UUID

import pytest

from kit.exchange import START, Town
from kit.raw_sessions import RawSession
from merq.engine import order_queues
from merq.model.message_class import MessageClass
from merq.wire.view import MessageView
from unit.exchange.exchange_world import GUIDS, ONE, ORDERED, PLAIN, THREE, TWO, TX, manager, pair
from unit.exchange.letter_messages import OTHER, incoming, session_ack

ONE_GUID = GUIDS[ONE]


@pytest.mark.spec("MS-MQQB 3.1.7.17", "MS-MQQB 3.1.6.9", "E63")
def test_who_claims_a_senders_identifier_first_never_learns_its_sequence() -> None:
    town, sender, receiver = pair()
    liar = RawSession.connect(receiver, THREE, ONE_GUID, town.now).establish(town.now)
    liar.say(incoming("other", b"lie", source=ONE_GUID, number=1), town.now)
    town.wait(1.0)
    sender.commit(ORDERED, b"a")
    town.wait(1.0)
    liar.settle(town.now)
    told = {MessageView(each).body[:8] for each in liar.messages()}
    assert told <= {pack("<Q", 7 << 32 | 1)}, "it hears of its own sequence alone"
    assert receiver.bodies(TX) == [b"a"]
    assert sender.waiting(ORDERED) == [], "and the sender of its own"


@pytest.mark.spec("MS-MQQB 3.1.7.17")
def test_a_flood_of_invented_senders_makes_one_queue_of_acknowledgments() -> None:
    receiver = manager(TWO)
    flood = RawSession.connect(receiver, THREE, OTHER).establish()
    for number in range(200):
        source = UUID(int=0xF0000 + number)
        flood.say(incoming("nowhere", b"x", source=source, number=1, ordinal=number + 1))
    names = [each.properties.path_name for each in receiver.host.engine.outgoing_queues()]
    assert names == [rf"DIRECT=TCP:{THREE}\PRIVATE$\order_queue$;{OTHER.hex}"]


@pytest.mark.spec("MS-MQMQ 2.2.20.4", "MS-MQQB 2.2.6")
def test_a_window_of_zero_closes_the_session() -> None:
    one = manager(ONE)
    one.send(PLAIN, b"a")
    session = RawSession.accept(one, OTHER)
    packet = bytearray(session_ack(1))
    packet[32:34] = b"\0\0"
    session.say(bytes(packet))
    assert "a window of 0" in session.link.closing


@pytest.mark.spec("MS-MQMQ 2.2.20.5")
def test_transactions_have_other_identifiers_after_a_restart() -> None:
    town = Town(manager(ONE))
    (sender,) = town.managers.values()
    found = []
    for _ in range(3):
        sender.commit(ORDERED, b"a")
        sender.commit(ORDERED, b"b")
        sender.turn(0.0)
        town.restart(sender)
    for view in sender.messages(sender.outgoing(ORDERED).number):
        header = view.decode().transaction_header
        assert header is not None
        found.append(header.fields.flags.identifier)
    assert len(set(found)) == 6


@pytest.mark.limit("merq.engine.order_queues.SENDERS_PER_NETWORK_MAX")
@pytest.mark.spec("MS-MQQB 3.1.7.17", "E144")
def test_ever_new_identifiers_at_one_address_do_not_make_ever_new_queues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(order_queues, "SENDERS_PER_NETWORK_MAX", 8)
    receiver = manager(TWO)
    for number in range(60):
        guid = UUID(int=0xE0000 + number)
        session = RawSession.connect(receiver, THREE, guid).establish()
        session.say(incoming("nowhere", b"x", source=guid, number=1, ordinal=number + 1))
        session.hang_up()
    assert len(receiver.host.engine.outgoing_queues()) == 8


@pytest.mark.spec("MS-MQQB 3.1.7.17", "MS-MQQB 3.1.6.9")
def test_each_of_many_senders_behind_one_address_is_told_through_its_own_session() -> None:
    receiver = manager(TWO)
    number = receiver.create("tx", transactional=True)
    sessions = []
    for each in range(100):
        guid = UUID(int=0xE0000 + each)
        session = RawSession.connect(receiver, THREE, guid).establish()
        session.say(incoming("tx", b"x", source=guid, number=1, ordinal=each + 1))
        sessions.append(session)
    receiver.exchange.tick(1.0)
    for session in sessions:
        session.settle(1.0)
        (told,) = session.messages()
        assert MessageView(told).message_class == MessageClass.MQMSG_CLASS_ORDER_ACK
    assert len(receiver.bodies(number)) == 100


@pytest.mark.limit("merq.engine.order_queues.ORDER_QUEUES_PER_NETWORK_MAX")
def test_queues_of_who_was_told_go_after_a_while_and_make_room_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(order_queues, "ORDER_QUEUES_PER_NETWORK_MAX", 5)
    receiver = manager(TWO)
    receiver.create("tx", transactional=True)
    for each in range(20):
        guid = UUID(int=0xE0000 + each)
        session = RawSession.connect(receiver, THREE, guid).establish()
        session.say(incoming("tx", b"x", source=guid, number=1, ordinal=each + 1))
        receiver.exchange.tick(1.0)
        session.settle(1.0)
        (told,) = session.messages()
        assert MessageView(told).message_class == MessageClass.MQMSG_CLASS_ORDER_ACK, each
        session.say(session_ack(1), 1.0)
        session.hang_up(1.0)
        receiver.host.engine.tick(START + (each + 1) * 100)
        receiver.turn(1.0)
    assert len(receiver.host.engine.outgoing_queues()) <= 1
