"""Strangers name addresses for acknowledgments: whom the queue manager calls because of that."""

from __future__ import annotations

import pytest

from hostile import stranger_packets as packets
from kit.exchange import Manager, Town
from kit.raw_sessions import RawSession
from merq.engine import packet_names
from merq.exchange import AllowedAdminQueues, Peer
from merq.model.message_class import MessageClass
from unit.exchange.exchange_world import GUIDS, ONE, QUEUE, THREE, TWO, changed, manager
from unit.exchange.letter_messages import OTHER

STRANGER = "10.9.9.9"
VICTIM = "10.7.7.7"
TO_QUEUE = rf"TCP:{TWO}\private$\q"
ARRIVED = MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE


def receiver_of(town: Town | None = None, **fields: object) -> Manager:
    found = manager(TWO, changed(**fields))
    assert found.create("q") == QUEUE
    if town is not None:
        town.managers[TWO] = found
    return found


def asking(ordinal: int, admin: str, **what: object) -> bytes:
    fields: dict[str, object] = {"admin": admin, "asked": packets.PA, **what}
    return packets.message(OTHER.bytes_le, ordinal, TO_QUEUE, **fields)  # type: ignore[arg-type]


def stranger(receiver: Manager, address: str = STRANGER) -> RawSession:
    return RawSession.connect(receiver, address, OTHER).establish()


@pytest.mark.spec("MS-MQQB 3.1.7.15", "MS-MQQB 3.1.5.8.10", "E140")
def test_a_thousand_addresses_that_a_stranger_names_are_not_called() -> None:
    town = Town()
    receiver = receiver_of(town)
    session = stranger(receiver)
    for number in range(1000):
        admin = rf"TCP:10.7.{number >> 8}.{number & 255}\private$\told"
        session.say(asking(number + 1, admin))
    town.run()
    assert town.dialled == []
    assert receiver.host.engine.outgoing_queues() == []
    assert len(receiver.bodies(QUEUE)) == 1000, "the messages themselves are taken"
    assert "acknowledgments are not sent" in receiver.told
    assert receiver.exchange.inbound.refused_askers == 1000


def test_who_asks_is_told_through_its_session_whatever_the_setting() -> None:
    for policy in AllowedAdminQueues:
        receiver = receiver_of(allowed_admin_queues=policy)
        session = stranger(receiver)
        session.messages()
        session.say(asking(1, rf"TCP:{STRANGER}\private$\told"))
        (told,) = session.messages()
        assert told[60:64] != bytes(4)


def test_with_any_the_victim_is_called_as_the_document_has_it() -> None:
    town = Town()
    receiver = receiver_of(town, allowed_admin_queues=AllowedAdminQueues.ANY)
    stranger(receiver).say(asking(1, rf"TCP:{VICTIM}\private$\told"))
    town.run()
    assert town.dialled == [VICTIM]


def test_a_name_that_leads_to_a_victim_is_not_called_either() -> None:
    town = Town()
    receiver = receiver_of(town)
    town.names["victim"] = [VICTIM]
    stranger(receiver).say(asking(1, r"OS:victim\private$\told"))
    town.wait(10.0, step=1.0)
    assert town.dialled == []


def test_known_ones_are_told_be_they_behind_a_router() -> None:
    peer = Peer(name="one", guid=GUIDS[ONE], host=ONE)
    sender, receiver = manager(ONE), manager(TWO, peers=(peer,))
    receiver.create("q")
    sender.create("told")
    town = Town(sender, receiver)
    # The session is with a router, the message is of somebody in the file of peers.
    router = RawSession.connect(receiver, THREE, GUIDS[THREE]).establish()
    packet = packets.message(
        GUIDS[ONE].bytes_le, 1, TO_QUEUE, admin=rf"TCP:{ONE}\private$\told", asked=packets.PA
    )
    router.say(packet)
    town.run()
    (told,) = sender.messages(0x10)
    assert told.message_class == ARRIVED


def test_where_our_applications_send_may_be_told_but_not_with_peer_alone() -> None:
    for policy, expected in ((AllowedAdminQueues.KNOWN, 1), (AllowedAdminQueues.PEER, 0)):
        town = Town()
        receiver = receiver_of(town, allowed_admin_queues=policy)
        town.managers[ONE] = sender = manager(ONE)
        sender.create("told")
        receiver.send(rf"DIRECT=TCP:{ONE}\private$\other", b"a")
        town.run()
        town.cut()
        stranger(receiver).say(asking(1, rf"TCP:{ONE}\private$\told"))
        town.wait(6.0, step=1.0)
        assert len(sender.messages(0x10)) == expected


@pytest.mark.spec("MS-MQQB 3.1.7.15", "MS-MQQB 3.1.7.15#attributes", "E140")
def test_an_acknowledgment_that_cannot_be_delivered_does_not_wait_for_ever() -> None:
    town = Town()
    receiver = receiver_of(town, acknowledgment_lifetime_s=100)
    session = stranger(receiver)
    session.hang_up()
    session = stranger(receiver)
    told = rf"TCP:{STRANGER}\private$\told"
    receiver.exchange.received(session.link, asking(1, told, recoverable=True), 0.0)
    receiver.exchange.lost(session.link, "cut", 0.0)
    town.run()
    name = rf"DIRECT=TCP:{STRANGER}\private$\told;{OTHER.hex}"
    assert len(receiver.waiting(name)) == 1
    town.wait(99.0, step=1.0)
    assert len(receiver.waiting(name)) == 1
    town.wait(3.0, step=1.0)
    assert receiver.waiting(name) == []


def test_dials_do_not_use_up_the_room_for_those_who_connect() -> None:
    town = Town()
    policy = AllowedAdminQueues.ANY
    receiver = receiver_of(town, allowed_admin_queues=policy, links_max=4, dialled_links_max=12)
    session = stranger(receiver)
    for number in range(10):
        session.say(asking(number + 1, rf"TCP:10.7.7.{number}\private$\told"))
    assert len(receiver.exchange.links) == 1 + 3
    honest = [receiver.exchange.accepted(f"10.0.0.{number}", 0.0) for number in range(3)]
    assert all(link is not None and not link.is_refused for link in honest)
    refused = receiver.exchange.accepted("10.0.0.9", 0.0)
    assert refused is not None
    assert refused.is_refused, "that is the limit of those who connect"


def test_a_computer_with_two_addresses_is_told_at_either_once_it_has_used_both() -> None:
    town = Town()
    receiver = receiver_of(town)
    second = stranger(receiver, "10.9.9.10")
    second.hang_up()
    session = stranger(receiver)
    session.say(asking(1, r"TCP:10.9.9.10\private$\told"))
    town.run()
    assert town.dialled == ["10.9.9.10"]


@pytest.mark.spec("MS-MQQB 3.1.7.2.1", "MS-MQQB 3.1.7.2.1#wanted", "E140")
def test_that_a_message_was_received_is_told_to_no_address_that_is_not_known() -> None:
    town = Town()
    receiver = receiver_of(town)
    session = stranger(receiver)
    told = rf"TCP:{VICTIM}\private$\told", rf"TCP:{STRANGER}\private$\told"
    for ordinal, admin in enumerate(told):
        session.say(asking(ordinal, admin, asked=packets.PR, recoverable=True))
    session.messages()
    for _ in told:
        receiver.receive(QUEUE)
    town.run()
    session.settle()
    assert len(session.messages()) == 1, "of the one whose sender is to be told"
    assert town.dialled == []


@pytest.mark.limit("merq.engine.packet_names.NAME_KEPT_MAX")
def test_a_name_that_is_too_long_to_be_remembered_is_read_all_the_same() -> None:
    town = Town()
    receiver = receiver_of(town)
    session = stranger(receiver)
    session.messages()
    name = rf"OS:{'h' * 200}\private$\{'q' * 100}"
    assert len(name) * 2 > packet_names.NAME_KEPT_MAX
    for ordinal in (1, 2):
        session.say(asking(ordinal, name))
        town.run()
    session.settle()
    assert len(session.messages()) == 2, "no name service knows it: who asked is told"
