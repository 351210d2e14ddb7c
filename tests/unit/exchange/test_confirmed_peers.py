"""Which connections that others make carry our messages: honest peers in all kinds of networks."""

from __future__ import annotations

from uuid import UUID

import pytest

from kit.exchange import Manager, Town
from kit.raw_sessions import RawSession
from merq.exchange import Peer
from merq.exchange.confirmations import CONFIRMED_MAX, MANAGERS_PER_ADDRESS_MAX, Confirmations
from merq.protocol.binary.settings import SessionSettings
from merq.wire.view import MessageView
from unit.exchange.exchange_world import GUIDS, ONE, PLAIN, QUEUE, THREE, TWO, changed, manager

BACK = rf"DIRECT=TCP:{ONE}\private$\back"
BY_GUID = f"PRIVATE={GUIDS[ONE]}\\00000010"


def one_way(peers: tuple[Peer, ...] = (), **fields: object) -> tuple[Town, Manager, Manager]:
    """One can connect to two, and nobody can connect to one: NAT, or a firewall."""
    inside, outside = manager(ONE, changed(**fields)), manager(TWO, changed(**fields), peers=peers)
    assert (inside.create("back"), outside.create("q")) == (0x10, QUEUE)
    town = Town(inside, outside)
    town.down.add(ONE)
    return town, inside, outside


@pytest.mark.parametrize("name", [BACK, BY_GUID])
@pytest.mark.parametrize("host", ["", ONE])
def test_who_is_behind_nat_gets_its_messages_if_the_file_of_peers_says_so(
    name: str, host: str
) -> None:
    peer = Peer(name="inside", guid=GUIDS[ONE], host=host, trust_inbound=True)
    town, inside, outside = one_way((peer,))
    outside.send(name, b"waits", recoverable=True)
    town.run()
    inside.send(PLAIN, b"hello")
    town.wait(1.2)
    assert inside.bodies(0x10) == [b"waits"]
    outside.send(name, b"answer", recoverable=True)
    town.run()
    assert inside.bodies(0x10) == [b"waits", b"answer"]


def test_an_entry_with_an_address_lets_nobody_in_from_another() -> None:
    peer = Peer(name="inside", guid=GUIDS[ONE], host=THREE, trust_inbound=True)
    town, inside, outside = one_way((peer,))
    inside.send(PLAIN, b"hello")
    town.run()
    outside.send(BACK, b"secret", recoverable=True)
    town.wait(6.0)
    assert inside.bodies(0x10) == []
    assert outside.waiting(BACK) == [b"secret"]


def test_without_that_the_history_says_what_to_do() -> None:
    town, inside, outside = one_way()
    inside.send(PLAIN, b"hello")
    town.run()
    outside.send(BACK, b"waits", recoverable=True)
    town.run()
    assert "trust_inbound" in outside.transfer(BACK).history[-1].text
    assert inside.bodies(0x10) == []


def test_acknowledgments_come_through_a_firewall_without_any_entry() -> None:
    town, inside, _ = one_way()
    inside.create("told")
    inside.send(PLAIN, b"a", admin_queue=rf"TCP:{ONE}\private$\told", acknowledgments=1)
    inside.commit(rf"DIRECT=TCP:{TWO}\private$\nowhere", b"b", negative_journaling=True)
    town.wait(2.0)
    assert len(inside.messages(0x11)) == 1, "the administration acknowledgment"
    assert inside.waiting(rf"DIRECT=TCP:{TWO}\private$\nowhere") == [], "the FinalAck"


def test_who_sends_and_is_never_called_back_needs_only_its_own_direction() -> None:
    town, inside, outside = one_way()
    outside.create("tx", transactional=True)
    inside.commit(rf"DIRECT=TCP:{TWO}\private$\tx", b"a", b"b")
    town.wait(2.0)
    assert outside.bodies(0x11) == [b"a", b"b"]
    assert inside.waiting(rf"DIRECT=TCP:{TWO}\private$\tx") == [], "the OrderAcks"
    assert town.dialled == [TWO]


def test_a_computer_with_two_addresses_is_reached_by_each() -> None:
    town = Town(sender := manager(ONE), receiver := manager(TWO))
    assert receiver.create("q") == QUEUE
    town.managers["10.0.1.2"] = receiver
    receiver.host.engine.state.answer_to(["10.0.1.2"])
    sender.send(PLAIN, b"first")
    town.run()
    sender.send(r"DIRECT=TCP:10.0.1.2\private$\q", b"second")
    sender.send(f"PRIVATE={GUIDS[TWO]}\\00000010", b"third")
    town.run()
    assert sorted(receiver.bodies(QUEUE)) == [b"first", b"second", b"third"]


@pytest.mark.parametrize("was_called", [False, True])
def test_a_laptop_that_comes_back_with_another_address_gets_what_is_for_it(
    was_called: bool,
) -> None:
    session = SessionSettings(cleanup_s=30.0)
    office = manager(TWO, changed(session=session))
    laptop = manager(ONE, changed(session=session))
    assert (office.create("q"), laptop.create("back")) == (QUEUE, 0x10)
    town = Town(office, laptop)
    laptop.send(PLAIN, b"from home")
    town.run()
    if was_called:
        office.send(BY_GUID, b"there")
        town.run()
    town.cut()
    # It is elsewhere now.
    del town.managers[ONE]
    laptop.address = THREE
    town.managers[THREE] = laptop
    laptop.host.engine.state.answer_to([THREE])
    laptop.send(PLAIN, b"from the train")
    town.wait(6.0)
    office.send(BY_GUID, b"here", recoverable=True)
    town.wait(130.0, step=1.0)
    assert b"here" in laptop.bodies(0x10)


def test_a_certificate_confirms_who_connects() -> None:
    sender = manager(ONE)
    link = sender.exchange.accepted(TWO, 0.0, is_secure=True)
    assert link is not None
    session = RawSession(sender, GUIDS[TWO], link).establish()
    sender.send(PLAIN, b"a")
    session.settle()
    assert [MessageView(each).body for each in session.messages()] == [b"a"]
    assert sender.exchange.take_dialing() == []


@pytest.mark.spec("MS-MQQB 3.1.5.2", "E141")
def test_what_was_confirmed_is_not_for_ever() -> None:
    town = Town(sender := manager(ONE, changed(trust_inbound_s=100.0)), receiver := manager(TWO))
    assert receiver.create("q") == QUEUE
    sender.send(PLAIN, b"a")
    town.run()
    town.wait(50.0, step=1.0)
    town.cut()
    other = RawSession.connect(sender, TWO, GUIDS[TWO], town.now).establish(town.now)
    sender.send(PLAIN, b"b")
    sender.turn(town.now)
    other.settle(town.now)
    assert [MessageView(each).body for each in other.messages()] == [b"b"]
    assert town.dialled == [TWO], "it was reached there a minute ago"
    other.hang_up(town.now)
    town.wait(120.0, step=1.0)  # it is called after 5 s
    town.cut()
    dialled = len(town.dialled)
    RawSession.connect(sender, TWO, GUIDS[TWO], town.now).establish(town.now)
    sender.send(PLAIN, b"c")
    town.run()
    assert len(town.dialled) == dialled + 1


@pytest.mark.limit(
    "merq.exchange.confirmations.CONFIRMED_MAX",
    "merq.exchange.confirmations.MANAGERS_PER_ADDRESS_MAX",
)
def test_only_so_many_addresses_are_remembered_and_the_oldest_is_called_again() -> None:
    found = Confirmations(100.0)
    for number in range(CONFIRMED_MAX + 1):
        found.add(f"a{number}", GUIDS[ONE], 0.0)
    assert not found.holds("a0", GUIDS[ONE], 1.0)
    assert found.holds("a1", GUIDS[ONE], 1.0)
    assert not found.holds("a1", GUIDS[TWO], 1.0)
    assert not found.holds("a1", GUIDS[ONE], 100.0)
    for number in range(MANAGERS_PER_ADDRESS_MAX + 1):
        found.add("a1", UUID(int=number), 1.0)
    assert not found.holds("a1", UUID(int=0), 2.0)
    assert found.holds("a1", UUID(int=1), 2.0)
