"""What cannot be handled is set aside with its packet, and everything else goes on."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

import pytest

from hostile import stranger_packets as packets
from merq.engine import queue_changes
from merq.engine.arriving import Arrival
from merq.engine.aside_messages import ASIDE_WAITING_MAX
from merq.engine.changes import Change
from merq.engine.limits import Limits
from merq.host import aside
from merq.host.host import Host
from merq.host.reporting import Hall, status
from merq.store.recovery import Identity
from merq.testing import SimulatedDisk
from merq.wire.view import MessageView
from unit.engine.engine_world import GUID, START, World
from unit.engine.foreign_world import ADDRESS, RECEIVER, THERE, arrive, leaving

LIFETIME_S = 10
UNREADABLE = bytes(48) + LIFETIME_S.to_bytes(4, "little") + START.to_bytes(4, "little") + b"?" * 8
"""Where a packet has its lifetime this has one too, and it is no packet otherwise."""


def put_unreadable(world: World, number: int, packet: bytes = UNREADABLE) -> None:
    """As if an earlier release had taken what this one cannot read."""
    change = Change()
    queue = world.engine.queue(number)
    queue_changes.put_packet(world.engine.state, change, queue, packet, 3, recoverable=True)
    world.engine.state.submit(change)
    world.perform()


def opened(disk: SimulatedDisk, now: int = START) -> Host:
    host = Host(disk, Identity(store_id=GUID, created=START), "here", Limits())
    host.start(now, UUID(int=1))
    return host


def test_an_unreadable_message_that_expires_is_set_aside_and_others_expire() -> None:
    world = World()
    orders = world.create("orders")
    put_unreadable(world, orders)
    whole = packets.message(
        THERE.bytes_le,
        2,
        orders,
        address=GUID.bytes_le,
        admin=r"TCP:10.0.0.9\private$\admin",
        asked=packets.NR,
        recoverable=True,
        time_to_receive=LIFETIME_S,
        sent_time=START,
    )
    arrive(world, whole)
    world.now += LIFETIME_S + 5
    world.restart()
    assert world.engine.queue(orders).positions.count == 0
    (set_aside,) = world.engine.state.aside.waiting
    assert set_aside.packet == UNREADABLE
    assert set_aside.doing == "telling that a message was lost"
    assert "WireError" in set_aside.problem
    assert sum(map(len, leaving(world).values())) == 1
    world.restart()
    assert world.engine.state.aside.count == 0


@pytest.mark.parametrize("doing", ["purge", "receive"])
def test_an_unreadable_message_is_purged_or_received_and_set_aside(doing: str) -> None:
    world = World()
    orders = world.create("orders", journaling=True)
    telling = UNREADABLE[:61] + b"\xff" + UNREADABLE[62:]
    put_unreadable(world, orders, telling)
    if doing == "purge":
        world.engine.purge(world.next_request(), orders)
        world.perform()
    else:
        world.receive(orders)
    assert world.engine.queue(orders).positions.count == 0
    assert [each.packet for each in world.engine.state.aside.waiting] == [telling]


def test_what_fails_in_the_middle_of_arriving_stops_nothing_behind_it() -> None:
    world = World()
    orders, broken = world.create("orders"), world.create("broken")
    queue = world.engine.queue(broken)
    properties = queue.properties
    queue.properties = cast("Any", None)  # whatever the reason: nobody foresaw it
    coming = [
        packets.message(THERE.bytes_le, ordinal, number, address=GUID.bytes_le, recoverable=True)
        for ordinal, number in enumerate((orders, broken, orders), 1)
    ]
    arrivals = [Arrival(MessageView(each), ADDRESS, RECEIVER) for each in coming]
    arrived = world.engine.arrivals.arrive(world.next_request(), arrivals)
    queue.properties = properties
    world.perform()
    assert arrived.taken == 3
    assert len(world.messages(orders)) == 2
    assert [each.packet for each in world.engine.state.aside.waiting] == [coming[1]]
    world.restart()
    assert len(world.messages(orders)) == 2


def test_what_was_planned_for_a_notice_that_fails_is_taken_back() -> None:
    world = World()
    nowhere = Arrival(
        MessageView(
            packets.message(
                THERE.bytes_le,
                1,
                r"TCP:10.0.0.1\private$\nowhere",
                admin=r"TCP:10.0.0.9\private$\admin",
                asked=packets.NA,
            )
        ),
        ADDRESS,
        THERE.bytes_le,
    )
    world.engine.state.sends_insecure_nacks = True
    world.engine.state.now = 1 << 32  # no packet has room for that
    world.engine.arrivals.arrive(world.next_request(), [nowhere])
    world.perform()
    assert [each.doing for each in world.engine.state.aside.waiting] == ["acknowledging"]
    assert not any(leaving(world).values())
    world.restart()
    assert not any(leaving(world).values())


def test_packets_set_aside_are_kept_in_files_before_the_message_is_gone() -> None:
    disk = SimulatedDisk()
    host = opened(disk)
    host.engine.state.aside.add(b"a packet", "testing", "it failed")
    host.perform()
    assert disk.names("aside") == ["aside-000001.packet", "aside-000001.txt"]
    assert disk.open("aside/aside-000001.packet").read(0, 100) == b"a packet"
    assert disk.open("aside/aside-000001.txt").read(0, 100) == b"testing\nit failed\n"
    (news,) = host.news.take()
    assert news.is_trouble
    assert news.facts["kept_as"] == "aside/aside-000001.packet"
    assert status(host, Hall()).set_aside == 1
    again = opened(disk.crash("power"))
    assert status(again, Hall()).set_aside == 1
    again.engine.state.aside.add(b"another", "testing", "it failed")
    again.perform()
    assert status(again, Hall()).set_aside == 2


@pytest.mark.limit("merq.host.aside.ASIDE_FILES_MAX", "merq.host.aside.ASIDE_BYTES_MAX")
def test_no_more_is_set_aside_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside, "ASIDE_FILES_MAX", 3)
    monkeypatch.setattr(aside, "ASIDE_BYTES_MAX", 100)
    disk = SimulatedDisk()
    host = opened(disk)
    for packet in (b"a" * 60, b"b" * 60, b"c" * 20, b"d", b"e"):
        host.engine.state.aside.add(packet, "testing", "it failed")
    host.perform()
    kept = [name for name in disk.names("aside") if name.endswith(".packet")]
    assert len(kept) == 3
    assert status(host, Hall()).set_aside == 5
    assert sum("no room" in str(each.facts["kept_as"]) for each in host.news.take()) == 2


@pytest.mark.limit("merq.engine.aside_messages.ASIDE_WAITING_MAX")
def test_beyond_what_waits_for_the_driver_messages_set_aside_are_counted() -> None:
    host = opened(SimulatedDisk())
    for _ in range(ASIDE_WAITING_MAX + 5):
        host.engine.state.aside.add(b"x", "testing", "it failed")
    host.perform()
    assert host.aside.count == ASIDE_WAITING_MAX
    assert status(host, Hall()).set_aside == ASIDE_WAITING_MAX + 5


def test_without_room_on_the_disk_messages_set_aside_are_counted() -> None:
    disk = SimulatedDisk()
    host = opened(disk)
    disk.capacity = disk.used
    host.engine.state.aside.add(b"x" * 1000, "testing", "it failed")
    host.perform()
    assert disk.names("aside") == []
    assert status(host, Hall()).set_aside == 1
