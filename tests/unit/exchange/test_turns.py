"""Who is served when: queues that share a connection, senders that share a receiver, timers."""

from __future__ import annotations

import pytest

from kit.exchange import Manager, Town
from merq.engine.limits import Limits
from merq.exchange import Peer
from merq.model.queue import OutgoingState
from merq.wire.stream import PacketSplitter
from merq.wire.view import MessageView
from unit.exchange.exchange_world import (
    GUIDS,
    ONE,
    ORDERED,
    PLAIN,
    THREE,
    TWO,
    changed,
    manager,
    pair,
)

OTHER = r"DIRECT=TCP:10.0.0.2\private$\other"
BY_NAME = r"DIRECT=OS:there\private$\q"
BACK = r"DIRECT=TCP:10.0.0.1\private$\q"


def on_the_wire(sender: Manager, now: float) -> list[str]:
    """The last letters of the destinations of what one connection wants written, in order."""
    sender.turn(now)
    (link,) = sender.exchange.links
    link.collect()
    packets = PacketSplitter().feed(b"".join(link.take_outbox()))
    names = [MessageView(packet).destination.decode("utf-16-le") for packet in packets]
    return [name.rpartition("\\")[2] for name in names]


@pytest.mark.parametrize(
    ("size", "count", "turn"), [(10, 130, 64), (100 << 10, 6, 3)], ids=["messages", "bytes"]
)
@pytest.mark.spec("MS-MQQB 3.1.7.1")
def test_queues_that_share_a_connection_take_turns(size: int, count: int, turn: int) -> None:
    town, sender, _ = pair()
    sender.send(PLAIN, b"a")
    sender.send(OTHER, b"a")
    town.run()
    for name in (PLAIN, OTHER):
        sender.send(name, *[bytes(size)] * count)
    found = on_the_wire(sender, town.now)
    first, second = found[0], found[turn]
    assert {first, second} == {"q", "other"}
    assert found[: 3 * turn] == [first] * turn + [second] * turn + [first] * min(turn, count - turn)
    assert sorted(found) == ["other"] * count + ["q"] * count


@pytest.mark.spec("MS-MQQB 3.1.5.8.8")
def test_only_whose_message_finds_no_room_loses_its_session() -> None:
    receiver = Manager(
        name="m2",
        address=TWO,
        guid=manager(TWO).guid,
        limits=Limits(disk_reserve_bytes=0, machine_quota=60),
    )
    number = receiver.create("q")
    small, large = manager(ONE), manager(THREE)
    town = Town(small, large, receiver)
    for each in (small, large):
        each.send(PLAIN, b"hello")
    town.run()
    assert town.links() == 2
    small.send(PLAIN, b"fits", recoverable=True)
    large.send(PLAIN, bytes(70_000), recoverable=True)
    town._step(small)
    town._step(large)
    town._step(receiver)
    assert receiver.bodies(number) == [b"hello", b"hello", b"fits"]
    assert [link.address for link in receiver.exchange.links] == [ONE]
    assert town.links() == 1


@pytest.mark.spec("MS-MQQB 3.1.2.7", "MS-MQQB 3.1.6.9")
def test_the_exchange_is_to_be_woken_for_the_order_ack_that_is_due_first() -> None:
    town, sender, receiver = pair(changed(order_ack_s=0.2))
    receiver.create("tx2", transactional=True)
    sender.commit(ORDERED, b"a")
    town.run()
    assert receiver.exchange.is_waiting
    assert receiver.exchange.next_deadline() == pytest.approx(0.2)
    town.wait(0.1)
    sender.commit(r"DIRECT=TCP:10.0.0.2\private$\tx2", b"b")
    town.run()
    assert receiver.exchange.next_deadline() == pytest.approx(0.2)
    town.wait(0.1)
    assert receiver.exchange.next_deadline() == pytest.approx(0.3)
    assert receiver.exchange.is_waiting
    town.wait(0.2)
    assert receiver.exchange.inbound.next_deadline() is None


@pytest.mark.spec("MS-MQDMPR 3.1.1.3", "MS-MQQB 3.1.5.2")
def test_each_entry_of_the_history_names_the_address_that_was_tried_and_why_it_failed() -> None:
    town, sender, _ = pair()
    town.names["there"] = ["10.0.0.8", TWO]
    sender.send(BY_NAME, b"a")
    town.run()
    found = [(each.status, each.addresses, each.text) for each in sender.transfer(BY_NAME).history]
    assert found == [
        ("InProcess", ("10.0.0.8",), ""),
        ("SocketConnectFailure", ("10.0.0.8",), "nobody answers"),
        ("InProcess", (TWO,), ""),
        ("EstablishPacketReceived", (TWO,), ""),
        ("Established", (TWO,), ""),
    ]
    town.cut()
    last = sender.transfer(BY_NAME).history[-1]
    assert (last.status, last.addresses) == ("ConnectionNotReady", (TWO,))
    assert last.text in {"the wire was cut", "the other side has closed the connection"}


@pytest.mark.spec("MS-MQQB 3.1.5.2")
def test_a_session_that_is_open_is_used_rather_than_one_that_is_being_made() -> None:
    elsewhere = Peer(name="three", guid=GUIDS[THREE], host=ONE)
    known = Peer(name="one", guid=GUIDS[ONE], trust_inbound=True)
    sender, receiver = manager(ONE), manager(TWO, peers=(elsewhere, known))
    town = Town(sender, receiver)
    assert (sender.create("q"), receiver.create("q")) == (0x10, 0x10)
    sender.send(PLAIN, b"a")
    town.run()
    town.deaf.add(ONE)
    receiver.send(f"PRIVATE={GUIDS[THREE]}\\00000010", b"for somebody else at that address")
    town.run()
    assert [link.is_open for link in receiver.exchange.links] == [True, False]
    town.deaf.clear()
    receiver.send(BACK, b"b")
    receiver.turn(town.now)
    assert receiver.outgoing(BACK).state is OutgoingState.CONNECTED
    assert receiver.history(BACK) == ["Established"]


@pytest.mark.spec("MS-MQQB 3.1.5.2", "MS-MQQB 3.1.5.10")
def test_whoever_connects_and_says_nothing_does_not_hide_a_session_that_is_open() -> None:
    known = Peer(name="one", guid=GUIDS[ONE], trust_inbound=True)
    sender, receiver = manager(ONE), manager(TWO, peers=(known,))
    town = Town(sender, receiver)
    assert (sender.create("q"), receiver.create("q")) == (0x10, 0x10)
    assert receiver.exchange.accepted(ONE, town.now) is not None
    sender.send(PLAIN, b"a")
    town.run()
    receiver.send(BACK, b"b")
    town.run()
    assert sender.bodies(0x10) == [b"b"]
    assert town.dialled == [TWO], "the session that was there is used"
