"""What happens at limits of the exchange that no other test comes near."""

from __future__ import annotations

from uuid import UUID

import pytest

from hostile import stranger_packets as packets
from kit.exchange import Manager
from kit.raw_sessions import RawSession
from merq.errors import WireError
from merq.exchange import Peer, Peers, inbound
from merq.exchange.routes import VIA_MAX
from merq.wire.multiqueue import MQF_ELEMENTS_MAX
from merq.wire.packet import parse_packet

HERE, THERE = "10.0.0.1", "10.0.0.2"
NAME = rf"TCP:{HERE}\private$\orders"
STRANGER = UUID(int=9)


@pytest.mark.limit("merq.exchange.inbound.ARRIVALS_MAX")
def test_what_is_too_much_for_one_change_is_taken_with_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inbound, "ARRIVALS_MAX", 10)
    manager = Manager("m1", HERE, UUID(int=1))
    queue = manager.create("orders")
    session = RawSession.connect(manager, THERE, STRANGER).establish()
    sent = [b"%d" % number for number in range(45)]
    for at in range(0, len(sent), 5):
        manager.exchange.received(
            session.link,
            b"".join(
                packets.message(STRANGER.bytes_le, 100 * at + each, NAME, body=body)
                for each, body in enumerate(sent[at : at + 5], 1)
            ),
            0.0,
        )
    session.settle()
    assert manager.bodies(queue) == sent


@pytest.mark.limit("merq.exchange.routes.VIA_MAX")
def test_hops_that_lead_in_a_circle_lead_nowhere() -> None:
    def chain(count: int, *, host: str = "", via: str = "") -> Peers:
        peers = [
            Peer(name=f"p{number}", guid=UUID(int=number + 1), via=f"p{number + 1}")
            for number in range(count)
        ]
        last = Peer(name=f"p{count}", guid=UUID(int=count + 1), host=host, via=via)
        return Peers([*peers, last])

    found = chain(VIA_MAX, host="10.0.0.9").find(UUID(int=1))
    assert found is not None
    assert found.host == "10.0.0.9"
    assert chain(VIA_MAX + 1, host="10.0.0.9").find(UUID(int=1)) is None
    assert chain(2, via="p0").find(UUID(int=1)) is None


@pytest.mark.limit("merq.wire.multiqueue.MQF_ELEMENTS_MAX")
def test_a_packet_with_more_names_than_may_be_closes_its_session() -> None:
    names = [packets.private_element(STRANGER.bytes_le, each) for each in range(MQF_ELEMENTS_MAX)]
    parse_packet(packets.message(STRANGER.bytes_le, 1, NAME, copies_to=names))
    too_many = packets.message(STRANGER.bytes_le, 2, NAME, copies_to=[*names, names[0]])
    with pytest.raises(WireError):
        parse_packet(too_many)
    manager = Manager("m1", HERE, UUID(int=1))
    session = RawSession.connect(manager, THERE, STRANGER).establish()
    session.say(too_many)
    assert session.link.is_lost
    assert str(MQF_ELEMENTS_MAX) in session.link.closing or "outside" in session.link.closing
