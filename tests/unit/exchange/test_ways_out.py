"""The way out of an outgoing queue: while it is looked for, held, traced, waited for, forgotten."""

from __future__ import annotations

from uuid import UUID

import pytest

from kit.exchange import Manager, Town
from kit.sessions import acknowledgment
from merq.engine.arriving import Arrival
from merq.exchange import Link, Peer, Peers, TlsMode, routes
from merq.model.names import PrivateName
from merq.model.queue import OutgoingState
from merq.protocol.binary.settings import SessionSettings
from merq.wire.connection import SessionAck
from merq.wire.packet import parse_packet
from merq.wire.stream import PacketSplitter
from merq.wire.view import MessageView
from unit.engine.foreign_world import asked_for, foreign
from unit.engine.test_tracing import REPORTS, traced
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

BY_NAME = r"DIRECT=OS:there\private$\q"
OTHER = r"DIRECT=TCP:10.0.0.2\private$\other"


def link_of(side: Manager) -> Link:
    (link,) = side.exchange.links
    return link


# While it is looked for.


@pytest.mark.spec("MS-MQQB 3.1.5.2", "MS-MQDMPR 3.1.1.3")
def test_a_message_that_follows_while_a_connection_is_made_waits_for_it() -> None:
    town, sender, receiver = pair()
    sender.send(PLAIN, b"a")
    sender.turn(0.0)
    sender.send(PLAIN, b"b")
    sender.turn(0.0)
    assert sender.outgoing(PLAIN).state is OutgoingState.WAITING
    assert sender.history(PLAIN) == ["InProcess"]
    town.run()
    assert town.dialled == [TWO]
    assert receiver.bodies(QUEUE) == [b"a", b"b"]


@pytest.mark.spec("MS-MQQB 3.1.5.2.1", "MS-MQDMPR 3.1.1.3")
def test_the_next_hops_are_all_addresses_until_one_of_them_answers() -> None:
    town, sender, _ = pair()
    sender.send(BY_NAME, b"a")
    sender.turn(0.0)
    assert sender.exchange.take_lookups() == ["there"]
    sender.exchange.looked_up("there", ["10.0.0.8", TWO], 0.0)
    assert sender.transfer(BY_NAME).next_hops == ("10.0.0.8", TWO)
    town.run()
    assert sender.transfer(BY_NAME).next_hops == (TWO,)


@pytest.mark.spec("MS-MQQB 3.1.5.2.1", "MS-MQDMPR 3.1.1.3")
def test_a_name_that_is_not_known_any_more_has_no_address_in_the_history() -> None:
    town, sender, _ = pair()
    town.names["there"] = [TWO]
    sender.send(BY_NAME, b"a")
    town.run()
    town.names.clear()
    town.cut()
    town.wait(5.2)
    last = sender.transfer(BY_NAME).history[-1]
    assert (last.status, last.addresses) == ("DnsFailure", ())


@pytest.mark.spec("MS-MQQB 3.1.7.12")
def test_a_name_of_another_transport_is_left_to_that() -> None:
    name = "DIRECT=HTTP://there/msmq/private$/q"
    town, sender, _ = pair()
    town.names["there"] = [TWO]
    sender.send(name, b"a")
    town.wait(6.0, step=1.0)
    assert town.dialled == []
    assert sender.waiting("DIRECT=http://there/msmq/private$/q") == [b"a"]
    assert sender.history("DIRECT=http://there/msmq/private$/q") == []


@pytest.mark.spec("MS-MQDMPR 3.1.4.12")
def test_a_connection_that_is_being_made_is_given_up_offline() -> None:
    _, sender, _ = pair()
    sender.send(PLAIN, b"a")
    sender.turn(0.0)
    (link,) = sender.exchange.take_dialing()
    assert link.report().open is False
    sender.host.engine.take_offline()
    sender.turn(0.0)
    assert (link.closing, link in sender.exchange.dirty) == (
        "the queue manager was taken offline",
        True,
    )
    assert link.collect() is False
    sender.exchange.lost(link, "given up", 0.0)
    assert sender.outgoing(PLAIN).state is OutgoingState.DISCONNECTED


# On hold.


def acks_of(link: Link) -> int:
    link.collect()
    packets = PacketSplitter().feed(b"".join(link.take_outbox()))
    return sum(isinstance(parse_packet(packet), SessionAck) for packet in packets)


@pytest.mark.spec("MS-MQQB 3.1.7.13")
def test_a_pause_is_told_to_the_other_side_once() -> None:
    town, sender, _ = pair()
    sender.send(PLAIN, b"a")
    town.run()
    sender.host.engine.pause(sender.outgoing(PLAIN).number)
    sender.turn(town.now)
    assert acks_of(link_of(sender)) == 1
    sender.send(PLAIN, b"b")
    sender.turn(town.now)
    assert acks_of(link_of(sender)) == 0


@pytest.mark.spec("MS-MQQB 3.1.7.13", "MS-MQQB 3.1.7.1", "MS-MQDMPR 3.1.4.14")
def test_a_queue_that_was_put_on_hold_half_way_lets_others_pass() -> None:
    town, sender, receiver = pair(changed(session=SessionSettings(window=4, merq_window=4)))
    receiver.create("other")
    sender.send(PLAIN, b"first")
    town.run()
    town.deaf.add(TWO)
    sender.send(PLAIN, *[b"x"] * 50)
    sender.send(OTHER, b"o")
    town.run()
    session = link_of(sender).session
    assert session is not None
    assert session.room == 0
    sender.host.engine.pause(sender.outgoing(PLAIN).number)
    sender.turn(town.now)
    before = session.waiting
    session.receive_data(acknowledgment(session.waiting, window=64), town.now)
    sender.exchange.received(link_of(sender), b"", town.now)
    link_of(sender).take_outbox()
    sender.turn(town.now)
    link_of(sender).collect()
    packets = PacketSplitter().feed(b"".join(link_of(sender).take_outbox()))
    names = [MessageView(each).destination.decode("utf-16-le") for each in packets]
    assert before == 4
    assert [name.rpartition("\\")[2] for name in names] == ["other"]


# Tracing.


@pytest.mark.spec("MS-MQQB 3.1.7.1.7", "MS-MQMQ 2.2.20.8")
def test_only_messages_that_are_traced_are_reported_when_they_leave() -> None:
    peer = Peer(name="two", guid=GUIDS[TWO], host=TWO)
    router, receiver = manager(ONE, changed(forwards=True), peers=(peer,)), manager(TWO)
    assert receiver.create("q") == QUEUE
    town = Town(router, receiver)
    name = PrivateName(computer=GUIDS[TWO], number=QUEUE)
    packets = [foreign(name, 1, body=b"a"), traced(foreign(name, 2, body=b"b"))]
    arrivals = [Arrival(MessageView(packet), "10.0.0.9", bytes(16)) for packet in packets]
    router.host.engine.arrivals.arrive(router.request(), arrivals)
    town.run()
    assert receiver.bodies(QUEUE) == [b"a", b"b"]
    bodies = [body.decode("utf-16-le") for body in router.waiting(asked_for(f"PUBLIC={REPORTS}"))]
    assert ["<MESSAGE ID>00000002<" in body for body in bodies] == [True, True]
    assert [f"<NEXT HOP>{TWO}</NEXT HOP>" in body for body in bodies] == [False, True]


# Waiting.


def is_waiting(side: Manager) -> bool:
    return side.exchange.is_waiting


def silent() -> tuple[Town, Manager, Manager]:
    """A receiver that says nothing about sequences unless it is told to."""
    quiet = SessionSettings(ack_wait_s=120.0, cleanup_s=1e6)
    mute = changed(session=quiet, order_ack_s=1e6, order_ack_every=1 << 30)
    return pair(changed(session=quiet, resend_s=(1.0,)), mute)


@pytest.mark.spec("MS-MQQB 3.1.5.6", "MS-MQQB 3.1.2.6", "MS-MQQB 3.1.6.5")
def test_what_an_order_ack_leaves_out_is_waited_for_anew() -> None:
    town, sender, receiver = silent()
    sender.commit(ORDERED, b"a")
    town.run()
    town.wait(0.5)
    receiver.exchange.inbound.tick(2e6)  # "a" is told of, and "b" is under way meanwhile
    sender.commit(ORDERED, b"b")
    town._step(sender)
    town.run()
    assert sender.transfer(ORDERED).last_ack[1] == 1
    assert sender.waiting(ORDERED) == [b"b"]
    assert sender.exchange.outbound.next_deadline() == pytest.approx(town.now + 1.0)
    (incoming,) = receiver.host.engine.state.sequences.all()
    town.wait(0.9)
    assert incoming.rejects == 0
    town.wait(0.2)
    assert incoming.rejects == 1, "it was sent again"
    assert receiver.bodies(TX) == [b"a", b"b"]


@pytest.mark.spec("MS-MQQB 3.1.6.1", "MS-MQQB 3.1.6.5")
def test_the_exchange_is_to_be_woken_for_the_way_that_is_tried_again_first() -> None:
    town, sender, receiver = pair(changed(retry_s=5.0))
    assert not is_waiting(sender)
    town.down.add(TWO)
    sender.send(PLAIN, b"a")
    town.run()
    town.wait(2.0)
    sender.send(OTHER, b"b")
    town.run()
    assert is_waiting(sender)
    assert sender.exchange.next_deadline() == 5.0
    town.down.clear()
    town.wait(6.0)
    assert receiver.bodies(QUEUE) == [b"a"]
    assert not is_waiting(sender)
    assert sender.exchange.outbound.next_deadline() is None


# Who is where.


@pytest.mark.spec("MS-MQQB 3.1.7.4")
def test_who_is_to_be_reached_inside_of_tls_is_so_by_each_of_its_names() -> None:
    peer = Peer(name="Two", guid=GUIDS[TWO], host="Host.Two", tls=TlsMode.ALWAYS)
    other = Peer(name="three", guid=GUIDS[THREE], host=THREE)
    peers = Peers([peer, other])
    for host in ("two", "TWO", "host.two", "HOST.TWO"):
        assert peers.tls_mode(host) is TlsMode.ALWAYS, host
    assert peers.tls_mode(THREE) is None


@pytest.fixture
def few_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than three queue managers of each kind are remembered."""
    monkeypatch.setattr(routes, "LEARNED_MAX", 3)
    monkeypatch.setattr(routes, "DIALLED_MAX", 3)


def known_of(peers: Peers, *numbers: int) -> list[int]:
    return [number for number in numbers if peers.find(UUID(int=number)) is not None]


@pytest.mark.limit("merq.exchange.routes.LEARNED_MAX")
@pytest.mark.usefixtures("few_learned")
@pytest.mark.spec("MS-MQQB 3.1.7.5")
def test_of_the_network_that_has_the_most_the_queue_manager_that_was_met_first_is_forgotten() -> (
    None
):
    peers = Peers()
    peers.learn(UUID(int=1), TWO)
    for number in (2, 3, 4, 5):
        peers.learn(UUID(int=number), f"2001:db8::{number}")
    assert known_of(peers, 1, 2, 3, 4, 5) == [1, 4, 5]
    peers.learn(UUID(int=4), THREE)
    found = peers.find(UUID(int=4))
    assert found is not None
    assert found.host == THREE, "who is known may move"
    peers.learn(UUID(int=6), "2001:db8:0:1::6")
    assert 6 in known_of(peers, 1, 4, 5, 6), "who comes new is learnt in any case"


@pytest.mark.limit("merq.exchange.routes.DIALLED_MAX")
@pytest.mark.usefixtures("few_learned")
@pytest.mark.spec("MS-MQQB 3.1.7.5")
def test_whom_the_settings_name_or_this_side_has_called_is_not_forgotten_for_strangers() -> None:
    named = Peer(name="named", guid=UUID(int=1), trust_inbound=True)
    peers = Peers([named])
    peers.learn(UUID(int=1), ONE)
    for number in (2, 3, 4):
        peers.learn(UUID(int=number), TWO, is_dialled=True)
    for number in range(10, 30):
        peers.learn(UUID(int=number), f"10.7.7.{number}")
    assert known_of(peers, 1, 2, 3, 4) == [1, 2, 3, 4]
    peers.learn(UUID(int=5), TWO, is_dialled=True)
    assert known_of(peers, 1, 2, 3, 4, 5) == [1, 3, 4, 5], "only others that were called"
