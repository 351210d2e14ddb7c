"""Which queues a message names, as applications see them, whatever form its sender chose."""

from __future__ import annotations

from uuid import UUID

import pytest

from kit.exchange import Manager
from kit.foreign_peers import ForeignPeer
from kit.naming_queues import FORMS, OTHER, SHOWN, SID, SOURCE, TARGET, from_sender, naming
from merq.client.messages import ReceivedMessage
from merq.model.delivered import Delivered
from merq.model.message_class import MessageClass
from merq.model.names import PrivateName, PublicName
from merq.wire.build import Destination
from unit.exchange.exchange_world import GUIDS, QUEUE, TWO, pair

NULL = UUID(int=0)
TO_QUEUE = r"TCP:10.0.0.2\private$\q"
ADMIN_TYPES = (0, 2, 3, 5, 6, 7)
RESPONSE_TYPES = tuple(FORMS)


def received(receiver: Manager, number: int = QUEUE) -> ReceivedMessage:
    """The first message of a queue, as an application gets it."""
    state = receiver.host.engine.state
    place = next(iter(state.queues[number].positions))
    arrival, packet = state.stored(place)
    return ReceivedMessage(Delivered(packet, place.lookup_id, arrival, 0))


def shown(admin: int, response: int) -> str:
    if response == 4:
        computers = {2: SOURCE, 3: GUIDS[TWO], 6: OTHER}
        return rf"PRIVATE={computers[admin]}\0000002a" if admin in computers else ""
    return SHOWN[admin if response == 1 else response].replace(str(TARGET), str(GUIDS[TWO]))


@pytest.mark.parametrize("admin", ADMIN_TYPES)
@pytest.mark.parametrize("response", RESPONSE_TYPES)
@pytest.mark.spec("MS-MQMQ 2.2.19.2", "MS-MQMQ 2.2.18.1.5", "MS-MQDMPR 3.1.7.1.31")
def test_administration_and_response_queues_of_every_type_are_format_names(
    admin: int, response: int
) -> None:
    town, _, receiver = pair()
    peer = ForeignPeer(town, receiver, guid=SOURCE)
    packet = peer.packet(PrivateName(computer=GUIDS[TWO], number=QUEUE))
    peer.say(naming(packet, admin=admin, response=response, target=GUIDS[TWO]))
    message = received(receiver)
    assert message.admin_queue == SHOWN[admin].replace(str(TARGET), str(GUIDS[TWO]))
    assert message.response_queue == shown(admin, response)


@pytest.mark.parametrize(
    ("destination", "expected"),
    [
        (TO_QUEUE, rf"DIRECT={TO_QUEUE}"),
        (PrivateName(computer=GUIDS[TWO], number=QUEUE), rf"PRIVATE={GUIDS[TWO]}\00000010"),
        (PublicName(queue=UUID(int=1)), f"PUBLIC={UUID(int=1)}"),
    ],
)
@pytest.mark.spec("MS-MQMQ 2.2.19.2", "MS-MQDMPR 3.1.7.1.31")
def test_the_destination_of_every_type_is_a_format_name(
    destination: Destination, expected: str
) -> None:
    town, _, receiver = pair()
    peer = ForeignPeer(town, receiver)
    peer.say(peer.packet(destination))
    assert received(receiver).destination_queue == expected


@pytest.mark.spec("MS-MQMQ 2.2.20.1")
@pytest.mark.spec("E93")
def test_queues_that_are_named_in_a_list_alone_are_shown_from_it() -> None:
    town, _, receiver = pair()
    peer = ForeignPeer(town, receiver)
    both = (TO_QUEUE, r"OS:b\q")
    packet = peer.packet(
        TO_QUEUE,
        destinations=both,
        admin_queue=PublicName(queue=UUID(int=9)),
        response_queue=r"OS:c\r",
    )
    peer.say(naming(packet, admin=0, response=0, source=peer.guid, target=NULL))
    message = received(receiver)
    assert message.admin_queue == f"PUBLIC={UUID(int=9)}"
    assert message.response_queue == r"DIRECT=OS:c\r"
    assert message.destination_queues == (rf"DIRECT={TO_QUEUE}", r"DIRECT=OS:b\q")


@pytest.mark.spec("MS-MQMQ 2.2.19.2", "MS-MQQB 3.1.7.15")
def test_a_queue_on_the_destination_of_a_direct_name_is_on_this_queue_manager() -> None:
    """Such a message has no QueueManagerAddress to say which computer that is."""
    town, _, receiver = pair()
    there = receiver.create("there")
    peer = ForeignPeer(town, receiver)
    packet = peer.packet(TO_QUEUE, acknowledgments=1)
    named = naming(packet, admin=3, response=3, source=peer.guid, target=NULL)
    named = named.replace((0x2A).to_bytes(4, "little"), there.to_bytes(4, "little"))
    peer.say(named)
    (told,) = receiver.messages(there)
    assert told.message_class == MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE
    answer = received(receiver).response_queue
    assert answer == rf"PRIVATE={NULL}\{there:08x}"
    receiver.send(answer, b"answer")
    receiver.turn(0.0)
    assert receiver.bodies(there)[-1] == b"answer"


@pytest.mark.parametrize(("kind", "identity"), [(1, SID), (2, SOURCE.bytes_le), (0, b"")])
@pytest.mark.spec("MS-MQMQ 2.2.20.6", "MS-MQDMPR 3.1.7.1.31")
def test_who_sent_a_message_is_shown_as_it_says(kind: int, identity: bytes) -> None:
    town, _, receiver = pair()
    peer = ForeignPeer(town, receiver)
    peer.say(from_sender(peer.packet(TO_QUEUE), identity, kind), peer.packet(TO_QUEUE))
    assert received(receiver).sender_id == identity
