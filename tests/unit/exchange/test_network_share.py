"""Other queue managers have a share of the quota: who fills it is slowed, and nobody else is."""

from __future__ import annotations

from uuid import UUID

import pytest

from kit.exchange import Manager, Town
from merq.engine.limits import Limits
from merq.errors import MessageQueueError
from merq.exchange import inbound

SMALL = Limits(disk_reserve_bytes=0, machine_quota=100, network_quota_percent=50)
QUEUE = r"DIRECT=TCP:10.0.0.9\private$\q"
ORDERED = r"DIRECT=TCP:10.0.0.9\private$\ordered"
BODY = bytes(1000)


def peer(number: int) -> Manager:
    return Manager(name=f"peer{number}", address=f"10.0.0.{number}", guid=UUID(int=number))


def target(limits: Limits = SMALL) -> tuple[Manager, int, int]:
    found = Manager(name="target", address="10.0.0.9", guid=UUID(int=9), limits=limits)
    return found, found.create("q"), found.create("ordered", transactional=True)


def send_here(manager: Manager, count: int = 1) -> None:
    for _ in range(count):
        manager.send(r"DIRECT=OS:.\private$\q", BODY, recoverable=True)


@pytest.mark.spec("MS-MQQB 3.1.5.8.8", "MS-MQQB 3.1.5.8.8#manager-quota", "E150")
def test_who_fills_is_throttled_while_other_peers_and_applications_go_on() -> None:
    receiver, queue, _ = target()
    filler, honest = peer(1), peer(2)
    town = Town(filler, honest, receiver)
    filler.send(QUEUE, *[BODY] * 200, recoverable=True)
    town.run()
    taken = len(receiver.messages(queue))
    assert 15 <= taken <= 25, "half of the network's half of 100 KB"
    assert "a peer is throttled" in receiver.told
    assert receiver.exchange.throttled == ("10.0.0.1",)
    honest.send(QUEUE, *[b"honest"] * 5, recoverable=True)
    town.run()
    assert receiver.bodies(queue).count(b"honest") == 5
    send_here(receiver, 40)
    receiver.turn(town.now)
    assert len(receiver.messages(queue)) == taken + 45


def test_many_fillers_together_leave_the_applications_their_half() -> None:
    receiver, _, _ = target()
    fillers = [peer(number) for number in range(1, 8)]
    town = Town(*fillers, receiver)
    for each in fillers:
        each.send(QUEUE, *[BODY] * 100, recoverable=True)
    town.run()
    state = receiver.host.engine.state
    assert state.network.total_bytes <= SMALL.network_quota_bytes
    assert state.network.total_bytes == state.taken_bytes
    send_here(receiver, 40)
    with pytest.raises(MessageQueueError, match="quota of 100 KB"):
        send_here(receiver, 40)


@pytest.mark.spec("MS-MQQB 3.1.5.8.8", "MS-MQQB 3.1.5.9")
def test_a_backlog_is_slowed_and_comes_as_room_comes_in_order_and_once() -> None:
    receiver, _, ordered = target()
    honest = peer(1)
    town = Town(honest, receiver)
    bodies = [b"%d" % number + BODY for number in range(60)]
    for body in bodies:
        honest.commit(ORDERED, body)
    town.run()
    assert "10.0.0.1" in receiver.exchange.throttled
    got: list[bytes] = []
    for _ in range(60):
        while receiver.messages(ordered):
            got.append(receiver.receive(ordered))
        if len(got) == len(bodies):
            break
        town.wait(10.0)
    assert got == bodies
    assert not receiver.exchange.throttled
    assert "a peer is throttled no longer" in receiver.told
    assert receiver.host.engine.state.network.total_bytes == 0


def test_of_a_throttled_peer_nothing_is_taken_until_there_is_room() -> None:
    receiver, queue, _ = target()
    filler = peer(1)
    town = Town(filler, receiver)
    filler.send(QUEUE, *[BODY] * 100, recoverable=True)
    town.run()
    taken = len(receiver.messages(queue))
    town.wait(60.0)
    assert len(receiver.messages(queue)) == taken < 100
    receiver.receive(queue)
    town.wait(60.0)
    assert len(receiver.messages(queue)) == taken - 1, "one message is not worth it"
    while receiver.messages(queue):
        receiver.receive(queue)
    town.wait(60.0)
    assert len(receiver.messages(queue)) > 1


def test_express_messages_of_strangers_leave_memory_for_applications() -> None:
    limits = Limits(disk_reserve_bytes=0, memory_bytes=100_000)
    receiver, queue, _ = target(limits)
    filler = peer(1)
    town = Town(filler, receiver)
    filler.send(QUEUE, *[BODY] * 300)
    town.run()
    state = receiver.host.engine.state
    assert 15_000 <= state.network_memory.total_bytes <= 25_000
    assert state.memory_bytes == state.network_memory.total_bytes
    receiver.host.watch_resources()
    assert not state.throttled
    receiver.send(r"DIRECT=OS:.\private$\q", *[BODY] * 40)
    receiver.turn(town.now)
    while receiver.messages(queue):
        receiver.receive(queue)
    assert (state.network_memory.total_bytes, state.network.total_bytes) == (0, 0)


def test_the_last_room_on_the_disk_is_for_applications() -> None:
    limits = Limits(disk_reserve_bytes=1000)
    receiver, queue, _ = target(limits)
    honest = peer(1)
    town = Town(honest, receiver)
    receiver.host.engine.watch_resources(3_999)
    honest.send(QUEUE, b"from far", recoverable=True)
    town.run()
    assert receiver.bodies(queue) == []
    send_here(receiver)
    receiver.turn(town.now)
    assert receiver.bodies(queue) == [BODY]
    receiver.host.engine.watch_resources(7_999)
    assert receiver.exchange.inbound.is_full, "not before there is twice as much"
    receiver.host.engine.watch_resources(8_000)
    town.run()
    assert receiver.bodies(queue) == [BODY, b"from far"]


@pytest.mark.parametrize("with_checkpoint", [False, True])
def test_what_the_network_takes_is_known_after_a_restart(*, with_checkpoint: bool) -> None:
    receiver, queue, _ = target()
    filler = peer(1)
    town = Town(filler, receiver)
    send_here(receiver, 3)
    filler.send(QUEUE, *[BODY] * 5, recoverable=True)
    town.run()
    taken = receiver.host.engine.state.network.total_bytes
    assert taken > 5 * len(BODY)
    if with_checkpoint:
        receiver.host.close_with_checkpoint()
    else:
        receiver.host.close()
    receiver.start(town.now)
    assert receiver.host.engine.state.network.total_bytes == taken
    while receiver.messages(queue):
        receiver.receive(queue)
    assert receiver.host.engine.state.network.total_bytes == 0


def test_a_share_of_all_makes_no_difference_between_peers_and_applications() -> None:
    receiver, queue, _ = target(
        Limits(disk_reserve_bytes=0, machine_quota=100, network_quota_percent=100)
    )
    filler = peer(1)
    town = Town(filler, receiver)
    filler.send(QUEUE, *[BODY] * 200, recoverable=True)
    town.run()
    assert len(receiver.messages(queue)) > 80


def test_a_share_of_nothing_takes_nothing_from_the_network() -> None:
    receiver, queue, _ = target(
        Limits(disk_reserve_bytes=0, machine_quota=100, network_quota_percent=0)
    )
    filler = peer(1)
    town = Town(filler, receiver)
    filler.send(QUEUE, b"x", recoverable=True)
    town.run()
    assert receiver.messages(queue) == []
    send_here(receiver, 60)


@pytest.mark.limit("merq.exchange.inbound.THROTTLED_MAX")
def test_of_too_many_throttled_peers_the_first_is_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if str(inbound.__file__).endswith((".so", ".pyd")):
        pytest.skip("it is built into the compiled module; plain Python tests it")
    monkeypatch.setattr(inbound, "THROTTLED_MAX", 2)
    receiver, _, _ = target()
    fillers = [peer(number) for number in range(1, 4)]
    town = Town(*fillers, receiver)
    for each in fillers:
        each.send(QUEUE, *[BODY] * 200, recoverable=True)
        town.run()
        assert receiver.exchange.throttled[-1] == each.address
    assert len(receiver.exchange.throttled) == 2
    assert fillers[0].address not in receiver.exchange.throttled


def test_a_peer_that_is_throttled_again_and_again_is_told_of_once_a_minute() -> None:
    receiver, queue, _ = target()
    filler = peer(1)
    town = Town(filler, receiver)
    filler.send(QUEUE, *[BODY] * 400, recoverable=True)
    town.run()
    for _ in range(8):
        while receiver.messages(queue):
            receiver.receive(queue)
        town.wait(6.0)
    told = receiver.told.count("a peer is throttled")
    assert told == 1, "though it was throttled several times within a minute"
    assert receiver.told.count("a peer is throttled no longer") == 1
    while receiver.messages(queue):
        receiver.receive(queue)
    filler.send(QUEUE, *[BODY] * 400, recoverable=True)
    town.wait(60.0)
    assert receiver.told.count("a peer is throttled") == told + 1
