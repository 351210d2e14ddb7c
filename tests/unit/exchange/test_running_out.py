"""Times that run out on a message's way: what its sender is told, and when."""

from __future__ import annotations

import pytest

from kit.foreign_peers import ForeignPeer
from merq.engine.notices import (
    NEGATIVE_ARRIVAL,
    NEGATIVE_RECEIVE,
    POSITIVE_ARRIVAL,
    POSITIVE_RECEIVE,
)
from merq.model.message_class import MessageClass
from merq.model.selecting import First
from unit.exchange.exchange_world import ORDERED, PLAIN, QUEUE, TWO, TX, pair

ADMIN = r"OS:.\private$\admin"
DEAD_LETTER = 0xFFFF0002
DEAD_XACT = 0xFFFF0003
TIMEOUT = MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT


@pytest.mark.parametrize("wanted", [NEGATIVE_ARRIVAL, NEGATIVE_RECEIVE, 0x0C])
@pytest.mark.parametrize(("reach", "receive"), [(100, 10), (0xFFFFFFFF, 10), (10, 10)])
@pytest.mark.spec("MS-MQMQ 2.2.18.1.6", "MS-MQMQ 2.2.19.3", "MS-MQQB 3.1.7.1.2")
@pytest.mark.spec("E90")
def test_time_to_be_received_that_runs_out_on_the_way_is_told_as_not_having_reached_the_queue(
    wanted: int, reach: int, receive: int
) -> None:
    town, sender, receiver = pair()
    admin = sender.create("admin")
    town.down.add(TWO)
    sender.send(
        PLAIN,
        b"late",
        time_to_reach_queue=reach,
        time_to_be_received=receive,
        admin_queue=ADMIN,
        acknowledgments=wanted,
        negative_journaling=True,
    )
    town.wait(11.0, step=1.0)
    assert [(each.message_class, each.body) for each in sender.messages(admin)] == [
        (TIMEOUT, b"late")
    ]
    (kept,) = sender.messages(DEAD_LETTER)
    assert kept.message_class == TIMEOUT
    town.down.clear()
    town.wait(10.0, step=1.0)
    assert receiver.bodies(QUEUE) == []


@pytest.mark.spec("MS-MQMQ 2.2.19.3", "MS-MQQB 3.1.7.1.2")
def test_time_to_reach_a_queue_that_runs_out_is_told_to_who_asked_for_arrival_alone() -> None:
    town, sender, _ = pair()
    admin = sender.create("admin")
    town.down.add(TWO)
    for wanted in (NEGATIVE_RECEIVE | POSITIVE_ARRIVAL | POSITIVE_RECEIVE, NEGATIVE_ARRIVAL):
        sender.send(
            PLAIN,
            b"%d" % wanted,
            time_to_reach_queue=10,
            admin_queue=ADMIN,
            acknowledgments=wanted,
        )
    town.wait(11.0, step=1.0)
    assert [(each.message_class, each.body) for each in sender.messages(admin)] == [
        (TIMEOUT, b"%d" % NEGATIVE_ARRIVAL)
    ]


@pytest.mark.parametrize("in_transaction", [False, True])
@pytest.mark.spec("MS-MQDMPR 3.1.2.4", "MS-MQDMPR 3.1.7.2.7", "MS-MQMQ 2.2.18.1.6")
def test_no_time_to_be_received_runs_out_before_the_message_leaves(in_transaction: bool) -> None:
    town, sender, receiver = pair()
    admin = sender.create("admin")
    send = sender.commit if in_transaction else sender.send
    send(
        ORDERED if in_transaction else PLAIN,
        b"never",
        time_to_be_received=0,
        admin_queue=ADMIN,
        acknowledgments=NEGATIVE_ARRIVAL,
        negative_journaling=True,
    )
    send(ORDERED if in_transaction else PLAIN, b"behind it")
    town.run()
    assert receiver.bodies(TX if in_transaction else QUEUE) == [b"behind it"]
    assert [each.message_class for each in sender.messages(admin)] == [TIMEOUT]
    assert sender.bodies(DEAD_XACT if in_transaction else DEAD_LETTER) == [b"never"]


@pytest.mark.parametrize("ahead_s", [0, 1000])
@pytest.mark.spec("MS-MQDMPR 3.1.2.4", "MS-MQDMPR 3.1.7.2.7", "MS-MQMQ 2.2.19.2")
@pytest.mark.spec("E91")
def test_what_arrives_with_no_time_to_be_received_expires_at_once(ahead_s: int) -> None:
    town, _, receiver = pair()
    peer = ForeignPeer(town, receiver)
    town.wait(5.0, step=1.0)
    peer.say(
        peer.packet(
            r"TCP:10.0.0.2\private$\q",
            b"gone",
            time_to_be_received=0,
            sent_time=1_000_000_005 + ahead_s,
            admin_queue=r"TCP:10.0.0.99\private$\told",
            acknowledgments=0x0F,
        ),
        peer.packet(r"TCP:10.0.0.2\private$\q", b"stays", time_to_be_received=1),
    )
    assert receiver.bodies(QUEUE) == [b"stays"]
    assert [each.message_class for each in peer.messages] == [
        MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE,
        MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT,
    ]


@pytest.mark.spec("MS-MQDMPR 3.1.2.4")
def test_a_receiver_that_waits_gets_nothing_that_has_no_time_to_be_received() -> None:
    _, _, receiver = pair()
    waiting = receiver.request()
    receiver.host.engine.receive(waiting, QUEUE, First(), wait=True)
    receiver.send(r"DIRECT=OS:.\private$\q", b"gone", time_to_be_received=0)
    receiver.turn(0.0)
    assert waiting not in receiver.answers
    receiver.send(r"DIRECT=OS:.\private$\q", b"here", time_to_be_received=1)
    receiver.turn(0.0)
    assert receiver.answers[waiting].packet.endswith(b"here")  # type: ignore[union-attr]


@pytest.mark.spec("MS-MQQB 3.1.7.1.2")
@pytest.mark.spec("E91")
def test_no_time_to_reach_the_queue_lasts_until_the_second_is_over() -> None:
    """The difference of both times must be greater than it, so what goes at once arrives."""
    town, sender, receiver = pair()
    sender.send(PLAIN, b"at once", time_to_reach_queue=0)
    town.run()
    assert receiver.bodies(QUEUE) == [b"at once"]
    town.down.add(TWO)
    town.cut()
    sender.send(PLAIN, b"late", time_to_reach_queue=0, negative_journaling=True)
    town.wait(1.0, step=1.0)
    town.down.clear()
    town.wait(10.0, step=1.0)
    assert receiver.bodies(QUEUE) == [b"at once"]
    assert sender.bodies(DEAD_LETTER) == [b"late"]
