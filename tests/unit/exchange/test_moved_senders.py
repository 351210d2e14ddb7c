"""FinalAcks follow a sender that comes back from another address, and nobody who only says so."""

from __future__ import annotations

import pytest

from hostile import stranger_packets as packets
from kit.exchange import START, Manager, Town
from kit.raw_sessions import RawSession
from merq.engine import incoming, order_acks
from merq.engine.sequence_keys import Origin, SequenceKey
from merq.exchange import Peer
from merq.model.message_class import MessageClass
from merq.wire.view import MessageView
from unit.exchange.exchange_world import GUIDS, ONE, QUEUE, THREE, TWO, TX, manager

TO_TX = rf"TCP:{TWO}\private$\tx"
SENDER = GUIDS[ONE]
SEQUENCE = (START - 100) << 32 | 0xC0FFEE
LATER = (START - 50) << 32 | 0xBEEF
ELSEWHERE = "10.0.9.9"
RECEIVED = MessageClass.MQMSG_CLASS_ACK_RECEIVE


def receiver_of(*peers: Peer) -> tuple[Town, Manager]:
    receiver = manager(TWO, peers=peers)
    assert receiver.create("q") == QUEUE
    assert receiver.create("tx", transactional=True) == TX
    return Town(receiver), receiver


def ordered(number: int, sequence: int = SEQUENCE) -> bytes:
    place = packets.Transaction(sequence, number, number - 1)
    return packets.message(
        SENDER.bytes_le, number, TO_TX, transaction=place, journal=True, body=b"%d" % number
    )


def connect(town: Town, receiver: Manager, address: str) -> RawSession:
    return RawSession.connect(receiver, address, SENDER, town.now).establish(town.now)


def send_and_go(town: Town, receiver: Manager, count: int, address: str = ONE) -> None:
    """The sender sends, is gone, and its messages are received."""
    session = connect(town, receiver, address)
    for number in range(1, count + 1):
        session.say(ordered(number), town.now)
    session.hang_up(town.now)
    for _ in range(count):
        receiver.receive(TX)
    town.wait(3.0, step=0.5)


def final_acks(session: RawSession, town: Town) -> list[int]:
    """The numbers of the messages that it is told were received."""
    session.settle(town.now)
    views = [MessageView(each[:-16] if each[2] & 0x10 else each) for each in session.messages()]
    return [
        int.from_bytes(view.body[8:12], "little")
        for view in views
        if view.message_class == RECEIVED
    ]


@pytest.mark.spec("MS-MQQB 3.1.7.2.2", "MS-MQQB 3.1.7.17", "E144")
def test_what_waits_at_the_old_address_comes_to_the_new_one() -> None:
    town, receiver = receiver_of()
    send_and_go(town, receiver, 3)
    session = connect(town, receiver, ELSEWHERE)
    session.say(ordered(4), town.now)
    town.wait(2.0)
    assert final_acks(session, town) == [1, 2, 3]
    receiver.receive(TX)
    town.wait(1.0)
    assert final_acks(session, town) == [4], "and so does what comes afterwards"
    name = rf"DIRECT=TCP:{ONE}\private$\order_queue$;{SENDER.hex}"
    left = receiver.messages(receiver.outgoing(name).number)
    assert RECEIVED not in [view.message_class for view in left]


def test_what_waits_of_an_earlier_sequence_of_the_same_peer_follows_too() -> None:
    town, receiver = receiver_of()
    send_and_go(town, receiver, 2)
    session = connect(town, receiver, ONE)
    receiver.exchange.received(session.link, ordered(1, LATER), town.now)
    receiver.exchange.lost(session.link, "cut", town.now)
    town.run()
    session = connect(town, receiver, ELSEWHERE)
    session.say(ordered(2, LATER), town.now)
    town.wait(2.0)
    assert sorted(final_acks(session, town)) == [1, 2]


@pytest.mark.spec("E63")
def test_who_only_claims_the_identifier_is_told_nothing() -> None:
    town, receiver = receiver_of()
    send_and_go(town, receiver, 3)
    liar = connect(town, receiver, ELSEWHERE)
    liar.say(ordered(1, LATER), town.now)
    town.wait(5.0)
    assert final_acks(liar, town) == []
    session = connect(town, receiver, ONE)
    town.wait(2.0)
    assert final_acks(session, town) == [1, 2, 3]


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_sender_that_the_settings_know_is_told_wherever_it_is(*, is_restarted: bool) -> None:
    peer = Peer(name="laptop", guid=SENDER, trust_inbound=True)
    town, receiver = receiver_of(peer)
    send_and_go(town, receiver, 3)
    if is_restarted:
        town.restart(receiver)
        town.run()
    session = connect(town, receiver, ELSEWHERE)
    town.wait(3.0)
    assert final_acks(session, town) == [1, 2, 3], "though it sends nothing"


def test_a_receiver_that_was_restarted_lets_them_follow() -> None:
    town, receiver = receiver_of()
    send_and_go(town, receiver, 3)
    town.restart(receiver)
    town.run()
    session = connect(town, receiver, ELSEWHERE)
    session.say(ordered(4), town.now)
    town.wait(2.0)
    assert final_acks(session, town) == [1, 2, 3]


@pytest.mark.limit("merq.engine.order_acks.FOLLOWED_MAX")
def test_many_follow_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("merq.exchange.inbound.FOLLOWED_MAX", 10)
    assert order_acks.FOLLOWED_MAX > 10
    town, receiver = receiver_of()
    send_and_go(town, receiver, 35)
    session = connect(town, receiver, ELSEWHERE)
    session.say(ordered(36), town.now)
    town.wait(0.6)
    first = final_acks(session, town)
    assert 0 < len(first) <= 10
    town.wait(4.0)
    assert first + final_acks(session, town) == list(range(1, 36))


@pytest.mark.limit("merq.engine.incoming.LEFT_MAX")
def test_of_the_places_where_a_sender_was_the_last_few_are_known() -> None:
    origins = [Origin(f"10.0.0.{number}", SENDER.bytes_le) for number in range(10)]
    sequence = incoming.Incoming(SequenceKey(SENDER.bytes_le, "7:x"), origins[0])
    for origin in origins[1:]:
        sequence.moved_to(origin)
    assert list(sequence.left) == origins[9 - incoming.LEFT_MAX : 9]
    assert sequence.origin == origins[9]
    sequence.moved_to(origins[7])
    assert origins[7] not in sequence.left


def test_going_back_and_forth_loses_nothing() -> None:
    town, receiver = receiver_of()
    send_and_go(town, receiver, 2)
    session = connect(town, receiver, THREE)
    receiver.exchange.received(session.link, ordered(3), town.now)
    receiver.exchange.lost(session.link, "cut", town.now)
    town.wait(1.0)
    session = connect(town, receiver, ONE)
    session.say(ordered(4), town.now)
    town.wait(2.0)
    assert sorted(final_acks(session, town)) == [1, 2]
