"""A connection from the first byte to the last: what is asked, written, lost, and told."""

from __future__ import annotations

import pytest

from kit.exchange import Manager
from merq.exchange import ExchangeSettings, Link
from merq.wire.connection import EstablishConnection
from merq.wire.packet import parse_packet
from unit.exchange.exchange_world import ONE, ORDERED, PLAIN, TWO, changed, manager, pair


def only_link(manager: Manager) -> Link:
    (link,) = manager.exchange.links
    return link


# Room.


def has_room(manager: Manager) -> bool:
    return manager.exchange.has_room


@pytest.mark.spec("MS-MQQB 3.1.7.7")
def test_there_is_room_until_there_are_as_many_connections_as_the_settings_allow() -> None:
    receiver = manager(TWO, changed(links_max=2))
    assert has_room(receiver)
    first = receiver.exchange.accepted(ONE, 0.0)
    assert has_room(receiver)
    assert receiver.exchange.accepted(ONE, 0.0) is not None
    assert not has_room(receiver)
    assert first is not None
    receiver.exchange.lost(first, "gone", 0.0)
    assert has_room(receiver)


@pytest.mark.spec("MS-MQQB 3.1.7.7", "MS-MQDMPR 3.1.1.1", "MS-MQDMPR 3.1.4.12")
def test_there_is_no_room_with_hardened_security_nor_offline() -> None:
    assert not has_room(manager(TWO, changed(hardened=True)))
    receiver = manager(TWO)
    receiver.host.engine.take_offline()
    assert not has_room(receiver)
    receiver.host.engine.bring_online()
    assert has_room(receiver)


# The first packet.


@pytest.mark.parametrize("pinged", [None, False, True])
@pytest.mark.spec("MS-MQQB 3.1.5.2.3", "MS-MQQB 2.2.3.1")
def test_the_request_says_whether_the_other_side_was_pinged(pinged: bool | None) -> None:
    sender = manager(ONE)
    sender.send(PLAIN, b"a")
    sender.turn(0.0)
    (link,) = sender.exchange.take_dialing()
    if pinged is None:
        sender.exchange.connected(link, 0.0)
    else:
        sender.exchange.connected(link, 0.0, pinged=pinged)
    assert link in sender.exchange.dirty
    request = parse_packet(b"".join(link.take_outbox()))
    assert isinstance(request, EstablishConnection)
    assert request.header.operating_system.without_ping is not bool(pinged)


# Writing.


@pytest.mark.spec("MS-MQQB 3.1.7.1")
def test_when_what_was_to_be_written_is_gone_more_is_sent_at_once() -> None:
    town, sender, _ = pair(changed(outbox_high_bytes=0))
    sender.send(PLAIN, b"first")
    town.run()
    link = only_link(sender)
    sender.send(PLAIN, *[b"x"] * 150)
    sender.turn(town.now)
    link.collect()
    sizes = [len(link.take_outbox())]
    for _ in range(2):
        sender.exchange.written(link, town.now)
        link.collect()
        sizes.append(len(link.take_outbox()))
    assert all(sizes), sizes
    assert sum(sizes) == 150


@pytest.mark.spec("MS-MQQB 3.1.7.1")
def test_bytes_that_the_driver_has_not_written_hold_the_next_messages_back() -> None:
    town, sender, _ = pair(changed(outbox_high_bytes=10_000))
    sender.send(PLAIN, b"first")
    town.run()
    link = only_link(sender)
    link.unwritten_bytes = 10_001
    sender.send(PLAIN, b"second")
    sender.turn(town.now)
    assert not link.collect()
    link.unwritten_bytes = 10_000
    sender.exchange.written(link, town.now)
    assert link.collect()


# The end.


@pytest.mark.spec("MS-MQQB 3.1.7.3", "MS-MQQB 3.1.5.9")
def test_a_connection_is_lost_once_however_often_that_is_said() -> None:
    town, sender, _ = pair()
    sender.send(PLAIN, b"a")
    town.run()
    link = only_link(sender)
    sender.exchange.take_told()
    for _ in range(2):
        sender.exchange.lost(link, "gone", 1.0)
    told = sender.exchange.take_told()
    assert [(text, facts["reason"]) for text, facts in told] == [("session closed", "gone")]
    assert sender.history(PLAIN).count("ConnectionNotReady") == 1


@pytest.mark.spec("MS-MQQB 3.1.5.9", "MS-MQQB 3.1.7.3")
def test_what_closed_a_session_is_told_rather_than_how_the_connection_ended() -> None:
    town, sender, receiver = pair()
    sender.send(PLAIN, b"a")
    town.run()
    link = only_link(receiver)
    receiver.exchange.take_told()
    receiver.exchange.received(link, b"\xff" * 100, town.now)
    assert link.closing
    assert link in receiver.exchange.dirty
    receiver.exchange.lost(link, "reset by peer", town.now)
    ((text, facts),) = receiver.exchange.take_told()
    assert (text, facts["peer"], facts["reason"]) == ("session closed", ONE, link.closing)
    assert link.session is not None
    assert link.session.closing == link.closing
    assert len(receiver.exchange) == 0


# OrderAcks by number.


@pytest.mark.spec("MS-MQQB 3.1.1.6.2", "MS-MQQB 3.1.6.9")
def test_messages_are_counted_from_the_last_order_ack_on() -> None:
    town, sender, _ = pair(changed(order_ack_every=10, order_ack_s=5.0, order_ack_max_s=100.0))
    # It waits for its FinalAck, so that the queue is never empty and the sequence goes on.
    sender.commit(ORDERED, b"stays", positive_journaling=True)
    found = []
    for _ in range(24):
        town.run()
        town.wait(0.1)
        found.append(sender.transfer(ORDERED).last_ack_count)
        sender.commit(ORDERED, b"x")
    assert found == [0] * 9 + [1] * 10 + [2] * 5
    assert sender.transfer(ORDERED).last_ack[1] == 20, "all of one sequence"


def test_the_limits_that_are_documented_are_the_defaults() -> None:
    settings = ExchangeSettings()
    assert (settings.forwards, settings.hardened, settings.ping) == (False, False, False)
    assert (settings.links_max, settings.links_per_peer_max) == (4096, 512)
    assert (settings.order_ack_every, settings.outbox_high_bytes) == (1000, 4 << 20)
    assert settings.in_doubt_s == 6 * 3600
    assert settings.session.unhandled_bytes_max == 16 << 20
