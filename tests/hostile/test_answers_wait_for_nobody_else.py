"""Acknowledgments wait by who asked: behind no message of an application, nor of another asker."""

from __future__ import annotations

from uuid import UUID

import pytest

from hostile import stranger_packets as packets
from kit.exchange import Manager, Town
from kit.raw_sessions import RawSession
from merq.engine import order_acks, order_queues
from merq.engine.queue import Queue
from merq.exchange import Peer
from unit.exchange.exchange_world import GUIDS, ONE, QUEUE, THREE, TWO, changed, manager

TO_QUEUE = rf"TCP:{TWO}\private$\q"
TOLD = rf"TCP:{THREE}\private$\told"
FIRST, SECOND = UUID(int=0xF1), UUID(int=0xF2)
ASKED = packets.PA


def receiver_of(**fields: object) -> tuple[Town, Manager]:
    found = manager(TWO, changed(**fields))
    assert found.create("q") == QUEUE
    return Town(found), found


def asking(source: UUID, ordinal: int = 1, admin: str = TOLD, **what: object) -> bytes:
    fields: dict[str, object] = {"admin": admin, "asked": ASKED, "recoverable": True, **what}
    return packets.message(source.bytes_le, ordinal, TO_QUEUE, **fields)  # type: ignore[arg-type]


def ask_and_go(town: Town, receiver: Manager, guid: UUID, packet: bytes) -> None:
    """Somebody asks, and is gone before it can be told."""
    session = RawSession.connect(receiver, THREE, guid, town.now).establish(town.now)
    receiver.exchange.received(session.link, packet, town.now)
    receiver.exchange.lost(session.link, "cut", town.now)
    town.run()


def answers(receiver: Manager) -> list[Queue]:
    return [each for each in receiver.host.engine.outgoing_queues() if each.positions.count]


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.spec("MS-MQQB 3.1.7.15", "MS-MQQB 1.3.5.1", "E144")
def test_an_application_that_sends_to_the_same_queue_holds_up_no_acknowledgment(
    *, is_first: bool
) -> None:
    town, receiver = receiver_of()
    if not is_first:
        ask_and_go(town, receiver, FIRST, asking(FIRST, 7))
    receiver.send(rf"DIRECT={TOLD}", b"an application's")
    town.wait(30.0, step=1.0)
    session = RawSession.connect(receiver, THREE, FIRST, town.now).establish(town.now)
    session.say(asking(FIRST), town.now)
    town.wait(2.0)
    session.settle(town.now)
    told = session.messages()
    assert len(told) == (1 if is_first else 2)
    assert all(b"an application's" not in each for each in told), "that is not for who says so"
    assert receiver.waiting(rf"DIRECT={TOLD}") == [b"an application's"]


@pytest.mark.spec("MS-MQQB 3.1.7.15")
def test_an_asker_that_is_gone_holds_up_nobody_else_at_its_address() -> None:
    town, receiver = receiver_of()
    ask_and_go(town, receiver, FIRST, asking(FIRST))
    town.wait(30.0, step=1.0)
    session = RawSession.connect(receiver, THREE, SECOND, town.now).establish(town.now)
    session.messages()
    session.say(asking(SECOND), town.now)
    (told,) = session.messages()
    assert SECOND.bytes_le in told, "it is about its own message"
    session.say(packets.session_ack(1, 1, recoverable=1), town.now)
    (left,) = answers(receiver)
    assert left.properties.path_name.endswith(f";{FIRST.hex}")


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.7.15")
def test_who_comes_back_has_its_own_acknowledgments(*, is_restarted: bool) -> None:
    town, receiver = receiver_of()
    for guid in (FIRST, SECOND):
        ask_and_go(town, receiver, guid, asking(guid))
    if is_restarted:
        town.restart(receiver)
        town.run()
    town.wait(10.0, step=1.0)
    session = RawSession.connect(receiver, THREE, SECOND, town.now).establish(town.now)
    town.wait(2.0)
    session.settle(town.now)
    (told,) = session.messages()
    assert SECOND.bytes_le in told
    assert FIRST.bytes_le not in told
    session.say(packets.session_ack(1, 0, recoverable=1), town.now)
    (left,) = answers(receiver)
    assert left.properties.path_name.endswith(f";{FIRST.hex}")


@pytest.mark.limit("merq.engine.order_queues.SENDERS_PER_NETWORK_MAX")
def test_askers_that_do_not_take_theirs_take_nothing_from_other_networks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(order_queues, "SENDERS_PER_NETWORK_MAX", 5)
    town, receiver = receiver_of()
    # They have acknowledgments sent to an address that is known, and is another's.
    RawSession.connect(receiver, ONE, GUIDS[ONE]).establish().hang_up()
    session = RawSession.connect(receiver, THREE, FIRST, town.now).establish(town.now)
    admin = rf"TCP:{ONE}\private$\told"
    for number in range(50):
        session.say(asking(UUID(int=0xABC00 + number), admin=admin), town.now)
    town.run()
    assert len(answers(receiver)) == 5
    honest = RawSession.connect(receiver, ONE, GUIDS[ONE], town.now).establish(town.now)
    receiver.exchange.received(honest.link, asking(GUIDS[ONE], admin=admin), town.now)
    receiver.exchange.lost(honest.link, "cut", town.now)
    town.run()
    assert any(each.properties.path_name.endswith(GUIDS[ONE].hex) for each in answers(receiver)), (
        "its own network has room"
    )


@pytest.mark.limit("merq.engine.order_acks.ACKS_WAITING_MAX")
def test_acknowledgments_to_one_asker_wait_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_acks, "ACKS_WAITING_MAX", 10)
    town, receiver = receiver_of()
    session = RawSession.connect(receiver, THREE, FIRST, town.now).establish(town.now)
    for number in range(50):
        receiver.exchange.received(session.link, asking(SECOND, number + 1), town.now)
        receiver.turn(town.now)
    session.hang_up()
    (queue,) = answers(receiver)
    assert queue.positions.count == 10
    assert len(receiver.bodies(QUEUE)) == 50, "the messages themselves are taken"


@pytest.mark.limit("merq.engine.order_queues.ORDER_QUEUES_PER_NETWORK_MAX")
def test_private_queues_of_somebody_who_is_known_are_counted_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(order_queues, "ORDER_QUEUES_PER_NETWORK_MAX", 20)
    peer = Peer(name="one", guid=GUIDS[ONE], host=ONE)
    receiver = manager(TWO, peers=(peer,))
    assert receiver.create("q") == QUEUE
    session = RawSession.connect(receiver, THREE, FIRST).establish()
    for number in range(100):
        session.say(_asking_by_number(number + 1, GUIDS[ONE], 0x100 + number))
    assert len(receiver.host.engine.outgoing_queues()) <= 20
    assert len(receiver.bodies(QUEUE)) == 100


def _asking_by_number(ordinal: int, computer: UUID, number: int) -> bytes:
    """The same with an administration queue by its computer's identifier and its number."""
    packet = packets.message(FIRST.bytes_le, ordinal, TO_QUEUE, asked=ASKED, recoverable=True)
    at = 16 + 48 + len(packets.direct_name(TO_QUEUE))
    name = computer.bytes_le + number.to_bytes(4, "little")
    flags = int.from_bytes(packet[60:64], "little") | _PRIVATE << 13
    size = (len(packet) + len(name)).to_bytes(4, "little")
    head = packet[:8] + size + packet[12:60] + flags.to_bytes(4, "little")
    return head + packet[64:at] + name + packet[at:]


_PRIVATE = 6
"""[MS-MQMQ] 2.2.18.1.7.2: a private queue with its computer's identifier."""


def test_nothing_is_told_to_a_subqueue() -> None:
    town, receiver = receiver_of()
    session = RawSession.connect(receiver, THREE, FIRST, town.now).establish(town.now)
    session.messages()
    session.say(asking(FIRST, admin=f"{TOLD};{SECOND.hex}"), town.now)
    assert session.messages() == []
    assert receiver.host.engine.outgoing_queues() == []
    assert len(receiver.bodies(QUEUE)) == 1


def test_empty_queues_of_acknowledgments_go() -> None:
    town, receiver = receiver_of()
    session = RawSession.connect(receiver, THREE, FIRST, town.now).establish(town.now)
    session.messages()
    session.say(asking(FIRST), town.now)
    assert len(session.messages()) == 1
    (queue,) = receiver.host.engine.outgoing_queues()
    session.say(packets.session_ack(1, 1, recoverable=1), town.now)
    assert queue.positions.count == 0
    town.wait(150.0, step=10.0)
    assert receiver.host.engine.outgoing_queues() == []
    assert len(receiver.host.engine.state.admin_queues) == 0
