"""Acknowledgments to hosts that no name service knows go to who asked for them."""

from __future__ import annotations

from uuid import UUID

import pytest

from kit.exchange import Town
from kit.foreign_peers import ForeignPeer
from merq.exchange import AllowedAdminQueues, Peer
from merq.model.message_class import MessageClass
from merq.model.queue import OutgoingState
from unit.exchange.exchange_world import GUIDS, QUEUE, THREE, TWO, changed, manager, pair

TO_QUEUE = r"TCP:10.0.0.2\private$\q"
THEIRS = r"OS:winbox\private$\admin"
ARRIVED = MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE


@pytest.mark.spec("MS-MQQB 3.1.7.15")
@pytest.mark.spec("E94")
def test_an_acknowledgment_to_a_host_that_is_not_known_goes_to_who_sent_the_message() -> None:
    town, _, receiver = pair()
    peer = ForeignPeer(town, receiver)
    peer.say(peer.packet(TO_QUEUE, admin_queue=THEIRS, acknowledgments=1))
    (told,) = peer.messages
    assert told.message_class == ARRIVED
    assert told.destination.decode("utf-16-le").lower() == THEIRS.lower()


@pytest.mark.spec("MS-MQQB 3.1.7.15")
def test_a_host_that_is_known_gets_it_and_not_who_claims_its_name() -> None:
    town, _, receiver = pair(changed(allowed_admin_queues=AllowedAdminQueues.ANY))
    town.names["winbox"] = [THREE]
    peer = ForeignPeer(town, receiver)
    peer.say(peer.packet(TO_QUEUE, admin_queue=THEIRS, acknowledgments=1))
    assert peer.messages == []
    assert town.dialled == [THREE]


@pytest.mark.spec("MS-MQQB 3.1.7.15", "E94")
def test_what_is_for_a_computer_of_the_settings_waits_until_its_name_is_found() -> None:
    winbox = Peer(name="winbox", guid=GUIDS[THREE], host="winbox")
    receiver, third = manager(TWO, peers=(winbox,)), manager(THREE)
    assert receiver.create("q") == QUEUE
    third.create("admin")
    town = Town(receiver, third)
    peer = ForeignPeer(town, receiver)
    peer.say(peer.packet(TO_QUEUE, admin_queue=THEIRS, acknowledgments=1))
    town.wait(10.0, step=1.0)
    peer.listen()
    assert peer.messages == [], "it is not for who asked"
    town.names["winbox"] = [THREE]
    town.wait(30.0, step=1.0)
    assert [view.message_class for view in third.messages(QUEUE)] == [ARRIVED]


@pytest.mark.parametrize("is_connected", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.7.15", "E94")
def test_a_hop_on_the_way_to_who_asked_is_not_taken_for_it(is_connected: bool) -> None:
    asker = UUID(int=0xF0F0)
    hop = Peer(name="hop", guid=GUIDS[THREE], host=THREE)
    receiver = manager(TWO, peers=(hop, Peer(name="asker", guid=asker, via="hop")))
    assert receiver.create("q") == QUEUE
    town = Town(receiver, manager(THREE))
    itself = ForeignPeer(town, receiver, guid=asker) if is_connected else None
    # What the asker sends comes through the hop, whose session it is.
    peer = ForeignPeer(town, receiver, address=THREE, guid=hop.guid)
    source = asker.bytes_le
    peer.say(
        peer.packet(TO_QUEUE, admin_queue=THEIRS, acknowledgments=1, source_queue_manager=source)
    )
    if itself is None:
        town.wait(30.0, step=1.0)
    else:
        itself.listen()
        assert [told.message_class for told in itself.messages] == [ARRIVED]
    assert town.dialled == []


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.7.4")
def test_messages_of_applications_never_go_to_who_claims_a_name(is_first: bool) -> None:
    town, _, receiver = pair()
    peer = ForeignPeer(town, receiver)
    asked = peer.packet(TO_QUEUE, admin_queue=THEIRS, acknowledgments=1)
    if is_first:
        receiver.send(rf"DIRECT={THEIRS}", b"secret")
        town.run()
    peer.say(asked)
    if not is_first:
        receiver.send(rf"DIRECT={THEIRS}", b"secret")
    town.wait(12.0, step=1.0)
    peer.listen()
    assert b"secret" not in [each.body for each in peer.messages]
    queue = receiver.outgoing(rf"DIRECT={THEIRS}")
    assert receiver.bodies(queue.number) == [b"secret"]
    assert queue.state is OutgoingState.DISCONNECTED
    town.names["winbox"] = [THREE]
    town.wait(6.0, step=1.0)
    assert town.dialled[-1] == THREE
