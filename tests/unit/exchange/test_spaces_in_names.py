"""Queues whose names have spaces, as many on Windows do: messages go to them and come from them."""

from __future__ import annotations

import pytest

from kit.foreign_peers import ForeignPeer
from merq.model.message_class import MessageClass
from unit.exchange.exchange_world import pair

SPACED = r"DIRECT=TCP:10.0.0.2\private$\My Orders"


@pytest.mark.spec("MS-MQMQ 2.1.1", "MS-MQMQ 2.1.2")
def test_messages_reach_a_queue_whose_name_has_spaces() -> None:
    town, sender, receiver = pair()
    number = receiver.create("my orders")
    told = sender.create("what was told")
    sender.send(
        SPACED,
        b"a",
        recoverable=True,
        admin_queue=r"OS:.\private$\what was told",
        acknowledgments=1,
    )
    town.wait(1.0)
    assert receiver.bodies(number) == [b"a"]
    assert [each.message_class for each in sender.messages(told)] == [
        MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE
    ]
    town.restart(receiver)
    assert receiver.bodies(number) == [b"a"]


@pytest.mark.spec("MS-MQMQ 2.1.1", "MS-MQQB 3.1.7.15")
def test_a_peer_that_names_queues_with_spaces_is_answered() -> None:
    town, _, receiver = pair()
    number = receiver.create("my orders")
    peer = ForeignPeer(town, receiver)
    packet = peer.packet(
        r"OS:merqhost\private$\MY orders",
        b"a",
        admin_queue=r"TCP:10.0.0.99\private$\was it there",
        acknowledgments=1,
    )
    peer.say(packet)
    assert receiver.bodies(number) == [b"a"]
    (told,) = peer.messages
    assert told.destination.decode("utf-16-le") == r"TCP:10.0.0.99\PRIVATE$\was it there"
