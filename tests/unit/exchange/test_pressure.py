"""What is too much waits: paused queues, a throttled engine, full windows and full quotas."""

from __future__ import annotations

import pytest

from kit.exchange import Manager, Town
from merq.engine.limits import Limits
from merq.exchange import Link
from merq.model.queue import OutgoingState
from merq.protocol.binary.settings import SessionSettings
from unit.exchange.exchange_world import (
    GUIDS,
    ONE,
    ORDERED,
    PLAIN,
    QUEUE,
    TWO,
    TX,
    changed,
    manager,
    pair,
)

OTHER = r"DIRECT=TCP:10.0.0.2\private$\other"


def link_of(side: Manager) -> Link:
    (link,) = side.exchange.links
    return link


# Pause and resume.


@pytest.mark.spec("MS-MQQB 3.1.7.13", "MS-MQQB 3.1.7.14", "MS-MQQB 3.1.7.12", "MS-MQDMPR 3.1.4.14")
@pytest.mark.spec(
    "MS-MQQB 3.1.7.1#Connected", "MS-MQQB 3.1.7.13#timer", "MS-MQQB 3.1.7.13#OnHold", "E75"
)
def test_nothing_leaves_a_queue_that_is_on_hold() -> None:
    town, sender, receiver = pair()
    sender.send(PLAIN, b"a")
    town.run()
    number = sender.outgoing(PLAIN).number
    assert sender.host.engine.pause(number) is OutgoingState.ON_HOLD
    town.run()
    sender.send(PLAIN, b"b")
    sender.commit(ORDERED, b"c")
    town.wait(1.0)
    assert receiver.bodies(QUEUE) == [b"a"]
    assert receiver.bodies(TX) == [b"c"], "others share the session and go on"
    assert sender.outgoing(PLAIN).state is OutgoingState.ON_HOLD
    sender.host.engine.resume(number)
    town.run()
    assert receiver.bodies(QUEUE) == [b"a", b"b"]
    assert sender.outgoing(PLAIN).state is OutgoingState.CONNECTED


@pytest.mark.spec("MS-MQQB 3.1.7.13")
@pytest.mark.spec("MS-MQQB 3.1.7.13#SessionAck")
def test_a_pause_asks_the_other_side_to_go_slowly() -> None:
    town, sender, receiver = pair()
    sender.send(PLAIN, b"a")
    town.run()
    session = link_of(receiver).session
    assert session is not None
    before = session.room
    sender.host.engine.pause(sender.outgoing(PLAIN).number)
    town.run()
    assert (before, session.room) == (SessionSettings().merq_window, 1)


@pytest.mark.spec("MS-MQQB 3.1.7.14", "MS-MQDMPR 3.1.4.15")
@pytest.mark.spec("MS-MQQB 3.1.7.12#held", "MS-MQQB 3.1.7.14#session")
def test_a_queue_on_hold_makes_no_session_until_it_is_resumed() -> None:
    town, sender, receiver = pair()
    town.down.add(TWO)
    sender.send(PLAIN, b"a")
    town.run()
    number = sender.outgoing(PLAIN).number
    sender.host.engine.pause(number)
    town.down.clear()
    town.wait(20.0, step=1.0)
    assert town.dialled == [TWO]
    assert sender.outgoing(PLAIN).state is OutgoingState.ON_HOLD
    sender.host.engine.resume(number)
    town.run()
    assert receiver.bodies(QUEUE) == [b"a"]


@pytest.mark.spec("MS-MQQB 3.1.5.9", "MS-MQQB 3.1.7.14")
@pytest.mark.spec("MS-MQQB 3.1.7.14#again")
def test_what_was_under_way_when_a_held_queue_lost_its_session_goes_again_when_resumed() -> None:
    town, sender, receiver = pair()
    sender.commit(ORDERED, b"a")
    town.run()
    number = sender.outgoing(ORDERED).number
    sender.host.engine.pause(number)
    town.run()
    town.cut()
    town.wait(10.0, step=0.5)
    assert sender.outgoing(ORDERED).state is OutgoingState.ON_HOLD
    sender.host.engine.resume(number)
    town.wait(6.0)
    assert sender.waiting(ORDERED) == []
    assert receiver.bodies(TX) == [b"a"]


# Too much.


@pytest.mark.spec("MS-MQQB 3.1.7.1", "MS-MQQB 3.1.1.6.1")
@pytest.mark.spec("MS-MQQB 3.1.7.1#window")
def test_a_sender_stops_at_the_window() -> None:
    town, sender, _ = pair(changed(session=SessionSettings(window=10, merq_window=10)))
    sender.send(PLAIN, b"a")
    town.run()
    town.deaf.add(TWO)
    sender.send(PLAIN, *[b"x"] * 50)
    town.run()
    session = link_of(sender).session
    assert session is not None
    assert (session.room, session.waiting) == (0, 10)


def test_a_sender_stops_when_what_is_unwritten_is_too_much() -> None:
    town, sender, receiver = pair(changed(outbox_high_bytes=300_000))
    sender.send(PLAIN, b"a")
    town.run()
    link = link_of(sender)
    link.unwritten_bytes = 300_001
    sender.send(PLAIN, *[b"x" * 10_000] * 20)
    town.run()
    assert receiver.bodies(QUEUE) == [b"a"]
    link.unwritten_bytes = 0
    sender.exchange.written(link, town.now)
    town.run()
    assert len(receiver.bodies(QUEUE)) == 21


@pytest.mark.spec("MS-MQQB 3.1.7.1")
def test_queues_that_share_a_session_take_turns() -> None:
    town, sender, receiver = pair(changed(session=SessionSettings(window=256, merq_window=256)))
    receiver.create("other")
    town.down.add(TWO)
    sender.send(PLAIN, *[b"x"] * 1000)
    sender.send(OTHER, *[b"y"] * 10)
    town.run()
    town.down.clear()
    town.wait(5.1)
    assert len(receiver.bodies(QUEUE)) == 1000
    assert len(receiver.bodies(0x12)) == 10
    # Lookup identifiers are given in the order of arrival.
    state = receiver.host.engine.state
    last = max(row.lookup_id for row in state.queues[0x12].positions)
    before = sum(row.lookup_id < last for row in state.queues[QUEUE].positions)
    assert before <= 128


@pytest.mark.spec("MS-MQDMPR 3.1.1.1", "MS-MQQB 3.1.5.8.8")
def test_a_throttled_queue_manager_stops_reading_and_goes_on_later() -> None:
    town, sender, receiver = pair()
    sender.send(PLAIN, b"a")
    town.run()
    link = link_of(receiver)
    assert not receiver.exchange.is_paused(link)
    receiver.host.engine.state.low_on_disk = True
    assert receiver.exchange.is_paused(link)
    sender.commit(ORDERED, b"b")
    town.run()
    assert receiver.bodies(TX) == []
    assert town.links() == 1, "it waits, and nothing is closed"
    receiver.host.engine.state.low_on_disk = False
    town.wait(1.0)
    assert receiver.bodies(TX) == [b"b"]
    assert sender.waiting(ORDERED) == []


@pytest.mark.limit("merq.protocol.binary.settings.SessionSettings.unhandled_bytes_max")
def test_a_link_on_which_too_much_came_is_not_read() -> None:
    settings = changed(session=SessionSettings(unhandled_bytes_max=1000))
    town, sender, receiver = pair(settings)
    sender.send(PLAIN, b"a")
    town.run()
    link = link_of(receiver)
    receiver.host.engine.state.low_on_disk = True
    sender.send(PLAIN, b"x" * 2000)
    town.run()
    receiver.host.engine.state.low_on_disk = False
    assert receiver.exchange.is_paused(link)
    town.run()
    assert not receiver.exchange.is_paused(link)
    assert len(receiver.bodies(QUEUE)) == 2


@pytest.mark.limit("engine.machine_quota_kb")
@pytest.mark.spec("MS-MQQB 3.1.5.8.8", "MS-MQQB 3.1.5.9")
@pytest.mark.spec("MS-MQQB 3.1.5.8.8#manager-quota")
def test_a_full_quota_of_the_computer_closes_the_session_until_there_is_room() -> None:
    sender = manager(ONE)
    receiver = Manager(
        name="small",
        address=TWO,
        guid=GUIDS[TWO],
        limits=Limits(disk_reserve_bytes=0, machine_quota=3, network_quota_percent=100),
    )
    receiver.create("q")
    town = Town(sender, receiver)
    sender.send(PLAIN, *[bytes(1000)] * 5, recoverable=True)
    town.run()
    assert len(receiver.bodies(QUEUE)) == 2
    assert town.links() == 0
    assert "session closed" in receiver.told
    for _ in range(2):
        receiver.receive(QUEUE)
    town.wait(6.0)
    assert len(receiver.bodies(QUEUE)) == 2
    for _ in range(2):
        receiver.receive(QUEUE)
    town.wait(6.0)
    assert len(receiver.bodies(QUEUE)) == 1
    town.wait(6.0)
    assert sender.waiting(PLAIN) == []


@pytest.mark.spec("MS-MQQB 3.1.5.8.8")
def test_another_sessions_messages_are_taken_when_one_finds_no_room() -> None:
    sender, third = manager(ONE), manager("10.0.0.3")
    receiver = Manager(
        name="small",
        address=TWO,
        guid=GUIDS[TWO],
        limits=Limits(disk_reserve_bytes=0, machine_quota=2),
    )
    receiver.create("q")
    town = Town(sender, third, receiver)
    for side in (sender, third):
        side.send(PLAIN, b"hello")
    town.run()
    assert len(receiver.bodies(QUEUE)) == 2
    sender.send(PLAIN, bytes(3000))
    town.run()
    third.send(PLAIN, b"more")
    town.run()
    assert receiver.bodies(QUEUE) == [b"hello", b"hello", b"more"]


def test_garbage_ends_one_session_and_no_other() -> None:
    town, sender, receiver = pair()
    sender.send(PLAIN, b"a")
    town.run()
    stranger = receiver.exchange.accepted("10.0.0.66", town.now)
    assert stranger is not None
    receiver.exchange.received(stranger, b"GET / HTTP/1.1\r\n\r\n", town.now)
    assert "cannot be read" in stranger.closing
    receiver.exchange.received(stranger, b"more", town.now)
    town.run()
    assert stranger.is_lost
    sender.send(PLAIN, b"b")
    town.run()
    assert receiver.bodies(QUEUE) == [b"a", b"b"]
    assert "no session" in receiver.told
