"""Messages between queue managers: all arrive, once and in order, through cuts and kills."""

from __future__ import annotations

import random

import pytest

from kit.exchange import Manager, Town
from merq.exchange import Peer
from merq.model.message_class import MessageClass
from merq.protocol.binary.settings import SessionSettings
from merq.testing import SimulatedDisk
from unit.exchange.exchange_world import (
    GUIDS,
    ONE,
    ORDERED,
    PLAIN,
    QUEUE,
    THREE,
    TWO,
    TX,
    changed,
    manager,
    pair,
)

JOURNAL = 0xFFFF0001
DEAD_LETTER = 0xFFFF0002
DEAD_XACT = 0xFFFF0003
ADMIN = r"TCP:10.0.0.1\private$\admin"


def numbered(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


# Plain sailing.


@pytest.mark.parametrize("window", [1, 5, 1024])
@pytest.mark.spec("MS-MQQB 3.1.7.1", "MS-MQQB 3.1.5.5", "MS-MQQB 3.1.1.6.1")
@pytest.mark.spec("MS-MQQB 3.1.7.1.1", "MS-MQQB 3.1.7.1.6", "MS-MQQB 3.1.7.10", "MS-MQQB 3.1.7.16")
@pytest.mark.spec("MS-MQQB note 38", "MS-MQQB note 39", "MS-MQQB note 40")
def test_everything_arrives_in_order_through_any_window(window: int) -> None:
    town, sender, receiver = pair(
        changed(session=SessionSettings(window=window, merq_window=window))
    )
    sender.send(PLAIN, *numbered(100), recoverable=True)
    sender.send(PLAIN, *numbered(100, 100))
    sender.commit(ORDERED, *numbered(100))
    town.wait(12.0, step=0.5)
    assert receiver.bodies(QUEUE) == numbered(200)
    assert receiver.bodies(TX) == numbered(100)
    assert sender.waiting(PLAIN) == sender.waiting(ORDERED) == []


@pytest.mark.spec("MS-MQQB 3.1.5.5.4", "MS-MQQB 3.1.5.7", "MS-MQQB 3.1.7.2.2")
@pytest.mark.spec("MS-MQQB 3.1.5.7#journal")
def test_copies_are_kept_when_it_is_known_what_became_of_a_message() -> None:
    town, sender, receiver = pair()
    sender.send(PLAIN, b"a", recoverable=True, positive_journaling=True)
    sender.commit(ORDERED, b"b", positive_journaling=True)
    town.wait(1.0)
    assert sender.bodies(JOURNAL) == [b"a"]
    assert sender.waiting(ORDERED) == [b"b"], "it arrived, and is not received yet"
    assert len(sender.transfer(ORDERED).awaiting_final) == 1
    assert receiver.receive(TX) == b"b"
    town.wait(1.0)
    assert sender.bodies(JOURNAL) == [b"a", b"b"]
    assert sender.waiting(ORDERED) == []


@pytest.mark.spec("MS-MQQB 3.1.5.7", "MS-MQQB 3.1.5.8.2", "MS-MQQB 3.1.7.17")
def test_what_cannot_be_delivered_comes_back_into_the_dead_letter_queue() -> None:
    town, sender, _ = pair()
    nowhere = r"DIRECT=TCP:10.0.0.2\private$\nowhere"
    sender.commit(nowhere, b"a", negative_journaling=True)
    sender.commit(r"DIRECT=TCP:10.0.0.2\private$\q", b"b", negative_journaling=True)
    town.wait(1.0)
    dead = {view.body: MessageClass.of(view.message_class) for view in sender.messages(DEAD_XACT)}
    assert dead == {
        b"a": MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q,
        b"b": MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_Q,
    }
    assert sender.waiting(nowhere) == []


@pytest.mark.spec("MS-MQQB 3.1.5.8.10", "MS-MQQB 3.1.5.11", "MS-MQQB 3.1.7.15", "MS-MQQB 3.1.7.2.1")
def test_administration_acknowledgments_come_back() -> None:
    town, sender, receiver = pair()
    admin = sender.create("admin")
    sender.send(PLAIN, b"a", admin_queue=ADMIN, acknowledgments=15)
    sender.send(ORDERED, b"b", admin_queue=ADMIN, acknowledgments=15)
    town.wait(0.5)
    receiver.receive(QUEUE)
    town.wait(0.5)
    assert [MessageClass.of(view.message_class) for view in sender.messages(admin)] == [
        MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE,
        MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_MSG,
        MessageClass.MQMSG_CLASS_ACK_RECEIVE,
    ]


@pytest.mark.spec("MS-MQQB 3.1.7.1.2")
def test_what_expires_on_the_way_does_not_arrive() -> None:
    town, sender, receiver = pair()
    town.down.add(TWO)
    sender.send(PLAIN, b"late", time_to_reach_queue=3, negative_journaling=True)
    sender.send(PLAIN, b"patient")
    town.wait(4.2)
    town.down.clear()
    town.wait(2.0)
    assert receiver.bodies(QUEUE) == [b"patient"]
    assert sender.bodies(DEAD_LETTER) == [b"late"]


# Cuts and kills.


def expect_exactly_once(receiver: Manager, count: int) -> None:
    assert receiver.bodies(TX) == numbered(count)
    assert receiver.bodies(QUEUE) == numbered(count)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.spec("MS-MQQB 3.1.1.5", "MS-MQQB 3.1.5.8.6", "MS-MQQB 3.1.5.8.1", "MS-MQQB 3.1.6.5")
def test_cuts_and_kills_neither_lose_nor_double_anything(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same story every time
    window = chance.choice([2, 8, 64])
    settings = changed(
        session=SessionSettings(window=window, merq_window=window),
        retry_s=0.3,
        resend_s=(1.0, 2.0),
        order_ack_s=0.2,
    )
    town, sender, receiver = pair(settings)
    sent = 0
    for _ in range(15):
        some = numbered(chance.randint(1, 12), sent)
        sent += len(some)
        sender.commit(ORDERED, *some)
        sender.send(PLAIN, *some, recoverable=True)
        for manager_ in (sender, receiver):
            manager_.turn(town.now)
        what = chance.randrange(6)
        if what == 0:
            town.run()
            town.cut()
        elif what == 1:
            town.wait(chance.choice([0.1, 0.3]))
            town.restart(receiver)
        elif what == 2:
            sender.host.settle()
            town.restart(sender)
        elif what == 3:
            town.deaf.add(chance.choice([ONE, TWO]))
            town.wait(0.3)
            town.cut()
            town.deaf.clear()
        town.wait(chance.choice([0.0, 0.2, 0.5]))
    town.wait(40.0, step=0.5)
    expect_exactly_once(receiver, sent)
    assert sender.waiting(ORDERED) == sender.waiting(PLAIN) == []


@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "MS-MQQB 3.1.6.5")
def test_a_receiver_that_forgot_everything_takes_the_sequence_up_where_it_is() -> None:
    town, sender, receiver = pair()
    sender.commit(ORDERED, b"a", b"b")
    town.wait(1.0)
    sender.commit(ORDERED, b"c")
    town.run()
    town.cut()
    stranger = manager(TWO)
    stranger.create("q")
    stranger.create("tx", transactional=True)
    town.managers[TWO] = stranger
    town.wait(6.0)
    assert stranger.bodies(TX) == [b"c"]
    assert receiver.bodies(TX) == [b"a", b"b", b"c"]


@pytest.mark.spec("MS-MQQB 3.1.5.8.8")
@pytest.mark.spec("MS-MQQB 3.1.5.8.2#not-stored")
def test_a_full_disk_closes_the_session_and_all_comes_again() -> None:
    sender = manager(ONE)
    disk = SimulatedDisk(1, reserves=False)
    receiver = Manager(name="m2", address=TWO, guid=GUIDS[TWO], disk=disk)
    assert receiver.create("q") == QUEUE
    assert receiver.create("tx", transactional=True) == TX
    town = Town(sender, receiver)
    sender.send(PLAIN, b"a")
    town.run()
    receiver.disk.capacity = receiver.disk.used
    sender.commit(ORDERED, b"x" * 50_000, b"y")
    town.run()
    assert receiver.bodies(TX) == []
    assert town.links() == 0
    receiver.disk.capacity = None
    town.wait(40.0, step=1.0)
    assert receiver.bodies(TX) == [b"x" * 50_000, b"y"]
    assert sender.waiting(ORDERED) == []


# Through a third.


def three() -> tuple[Town, Manager, Manager, Manager]:
    """One and three know each other only through two."""
    two = Peer(name="two", guid=GUIDS[TWO], host=TWO)
    ends = {
        ONE: (two, Peer(name="three", guid=GUIDS[THREE], via="two")),
        THREE: (two, Peer(name="one", guid=GUIDS[ONE], via="two")),
    }
    middle = tuple(
        Peer(name=address, guid=GUIDS[address], host=address) for address in (ONE, THREE)
    )
    first, last = manager(ONE, peers=ends[ONE]), manager(THREE, peers=ends[THREE])
    router = manager(TWO, changed(forwards=True), peers=middle)
    assert last.create("q") == QUEUE
    assert last.create("tx", transactional=True) == TX
    return Town(first, router, last), first, router, last


FAR = f"PRIVATE={GUIDS[THREE]}\\00000010"
FAR_TX = f"PRIVATE={GUIDS[THREE]}\\00000011"


@pytest.mark.spec("MS-MQQB 3.1.7.5", "MS-MQQB 3.1.5.8.2", "MS-MQQB 3.1.1.6.2", "MS-MQQB 3.1.5.8.5")
@pytest.mark.spec("E63")
def test_messages_go_through_a_third_and_are_acknowledged_end_to_end() -> None:
    town, first, router, last = three()
    first.send(FAR, *numbered(5), recoverable=True)
    first.commit(FAR_TX, *numbered(5), positive_journaling=True)
    town.wait(2.0)
    assert last.bodies(QUEUE) == last.bodies(TX) == numbered(5)
    assert {view.hop_count for view in last.messages(QUEUE)} == {1}
    assert first.waiting(FAR) == []
    assert len(first.transfer(FAR_TX).awaiting_final) == 5, "the OrderAck came all the way"
    for _ in range(5):
        last.receive(TX)
    town.wait(2.0)
    assert first.waiting(FAR_TX) == []
    assert first.bodies(JOURNAL) == numbered(5)
    assert sorted(set(town.dialled)) == [TWO, THREE]
    for queue in router.host.engine.outgoing_queues():
        assert queue.positions.count == 0


@pytest.mark.spec("MS-MQQB 3.1.1.6.2", "MS-MQQB 3.1.6.5")
def test_a_third_that_is_killed_loses_nothing_of_a_sequence() -> None:
    town, first, router, last = three()
    town.down.add(THREE)
    first.commit(FAR_TX, *numbered(20))
    town.wait(0.2)
    assert len(router.waiting(FAR_TX)) == 20
    town.restart(router)
    first.commit(FAR_TX, *numbered(20, 20))
    town.down.clear()
    town.wait(45.0, step=0.5)
    assert last.bodies(TX) == numbered(40)
    assert first.waiting(FAR_TX) == []


@pytest.mark.spec("MS-MQQB 3.1.5.8.2")
def test_who_does_not_pass_on_rejects() -> None:
    town, first, router, last = three()
    router.host.engine.arrivals.forwards = False
    first.commit(FAR_TX, b"a", negative_journaling=True)
    town.wait(2.0)
    (dead,) = first.messages(DEAD_XACT)
    assert dead.message_class == MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q
    assert last.bodies(TX) == []
