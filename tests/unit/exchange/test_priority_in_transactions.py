"""[MS-MQDMPR] 3.1.7.1.32: the priority bits of a transactional packet mean nothing."""

from __future__ import annotations

import pytest

from kit.exchange import Town
from kit.foreign_peers import ForeignPeer
from merq.client.messages import ReceivedMessage
from merq.exchange import Peer
from merq.model.delivered import Delivered
from merq.model.names import PrivateName
from merq.wire.build import Destination
from unit.exchange.exchange_world import GUIDS, THREE, TWO, TX, changed, manager, pair

BITS = (3, 0, 7, 0, 5)


def with_priority(packet: bytes, priority: int) -> bytes:
    return packet[:2] + bytes([packet[2] & ~7 | priority]) + packet[3:]


def transactional(peer: ForeignPeer, destination: Destination) -> list[bytes]:
    return [
        with_priority(peer.in_order(destination, b"%d" % number), bits)
        for number, bits in enumerate(BITS)
    ]


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.spec("MS-MQDMPR 3.1.7.1.32", "MS-MQMQ 2.2.19.1")
def test_transactional_messages_stay_in_order_whatever_their_priority_bits_say(
    together: bool,
) -> None:
    town, _, receiver = pair()
    peer = ForeignPeer(town, receiver)
    packets = transactional(peer, r"TCP:10.0.0.2\private$\tx")
    for said in [packets] if together else [[each] for each in packets]:
        peer.say(b"".join(said))
    assert receiver.bodies(TX) == [b"0", b"1", b"2", b"3", b"4"]
    assert [view.priority for view in receiver.messages(TX)] == [0] * 5
    town.restart(receiver)
    assert receiver.bodies(TX) == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.32")
def test_an_application_is_shown_priority_0() -> None:
    town, _, receiver = pair()
    peer = ForeignPeer(town, receiver)
    peer.say(with_priority(peer.in_order(r"TCP:10.0.0.2\private$\tx", b"x"), 6))
    queue = receiver.host.engine.state.queues[TX]
    (place,) = queue.positions
    arrival, packet = receiver.host.engine.state.stored(place)
    assert ReceivedMessage(Delivered(packet, place.lookup_id, arrival, 0)).priority == 0


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.32", "MS-MQQB 3.1.5.8.2")
def test_who_passes_them_on_keeps_them_in_order() -> None:
    peers = (Peer(name="end", guid=GUIDS[THREE], host=THREE),)
    hop, end = manager(TWO, changed(forwards=True), peers=peers), manager(THREE)
    queue = end.create("tx", transactional=True)
    town = Town(hop, end)
    peer = ForeignPeer(town, hop)
    peer.say(b"".join(transactional(peer, PrivateName(computer=GUIDS[THREE], number=queue))))
    town.wait(2.0)
    assert end.bodies(queue) == [b"0", b"1", b"2", b"3", b"4"]
