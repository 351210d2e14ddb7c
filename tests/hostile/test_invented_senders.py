"""Ever new senders that a stranger invents leave nothing behind that grows without end.

The first ones came to 318 MB of memory for 5 MB that were sent. What is counted is what is kept.
"""

from __future__ import annotations

import gc
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple
from uuid import UUID

import pytest

from hostile import stranger_packets as packets
from kit.exchange import START, Manager
from kit.raw_sessions import RawSession
from merq.engine import history, incoming, order_acks, order_queues
from merq.exchange import Link
from merq.exchange.tls_policy import TlsUse
from unit.exchange.exchange_world import GUIDS, ONE, ORDERED, QUEUE, THREE, TWO, TX, manager, pair

FLOOD_BYTES: Final = 5_000_000
ROUND: Final = 200
"""Messages that a stranger sends before it looks whether they are acknowledged."""
STRANGER: Final = UUID(int=0x57)


class Tables(NamedTuple):
    """What a queue manager keeps of others."""

    sequences: int
    identifiers: int
    queues: int
    waiting: int


def tables(receiver: Manager) -> Tables:
    state = receiver.host.engine.state
    outgoing = receiver.host.engine.outgoing_queues()
    return Tables(
        len(state.sequences),
        len(state.recent),
        len(outgoing),
        sum(each.positions.count for each in outgoing),
    )


def invented(count: int = 1 << 30) -> Iterator[bytes]:
    """GUIDs that nobody has."""
    for number in range(count):
        yield struct.pack("<QQ", number, 0xBAD)


def flood(
    receiver: Manager,
    destination: str | int,
    *,
    is_transactional: bool,
    size: int = FLOOD_BYTES,
    address: str = THREE,
    now: float = 0.0,
) -> int:
    """Sends one message of each of ever new senders, as many as make so many bytes."""
    session = RawSession.connect(receiver, address, STRANGER, now).establish(now)
    to = receiver.guid.bytes_le if isinstance(destination, int) else packets.NOBODY
    sent, batch = 0, b""
    for count, guid in enumerate(invented(), start=1):
        place = packets.Transaction(START << 32, 1, 0) if is_transactional else None
        packet = packets.message(
            guid, 1, destination, address=to, transaction=place, recoverable=not is_transactional
        )
        batch += packet
        sent += len(packet)
        if not count % ROUND or sent >= size:
            session.say(batch, now)
            batch = b""
            session.written.clear()
            if session.link.is_lost:
                session = RawSession.connect(receiver, address, STRANGER, now).establish(now)
        if sent >= size:
            return count
    raise AssertionError("there are always others")


NOWHERE: Final = rf"TCP:{TWO}\private$\nowhere"


@pytest.mark.parametrize("is_transactional", [False, True])
@pytest.mark.parametrize("destination", [NOWHERE, 0x999], ids=["direct", "by number"])
@pytest.mark.spec("MS-MQQB 3.1.5.8.2", "MS-MQQB 3.1.5.8.2#history", "E137")
def test_what_goes_to_queues_that_do_not_exist_leaves_nothing(
    destination: str | int, *, is_transactional: bool
) -> None:
    receiver = manager(TWO)
    flood(receiver, destination, is_transactional=is_transactional, size=300_000)
    receiver.exchange.tick(10.0)
    before = tables(receiver)
    assert before.sequences == before.identifiers == 0
    assert before.queues <= 1
    gc.collect()
    objects = len(gc.get_objects())
    flood(receiver, destination, is_transactional=is_transactional, now=10.0)
    receiver.exchange.tick(20.0)
    receiver.turn(20.0)
    gc.collect()
    grown = len(gc.get_objects()) - objects
    after = tables(receiver)
    assert after.sequences == after.identifiers == 0
    assert after.queues == before.queues
    assert after.waiting <= order_acks.ACKS_WAITING_MAX + ROUND
    assert grown < 5_000


@pytest.mark.limit("merq.engine.order_acks.ACKS_WAITING_MAX")
@pytest.mark.parametrize("queue", ["nowhere", "plain", "full"])
@pytest.mark.spec("MS-MQQB 3.1.5.8.8", "E137")
@pytest.mark.spec("MS-MQQB 3.1.5.8.2#bad-queue", "MS-MQQB 3.1.5.8.2#not-transactional-queue")
@pytest.mark.spec("MS-MQQB 3.1.5.8.8#queue-quota")
def test_a_stranger_that_takes_no_acknowledgments_is_refused_at_some_point(
    monkeypatch: pytest.MonkeyPatch, queue: str
) -> None:
    monkeypatch.setattr(order_acks, "ACKS_WAITING_MAX", 100)
    receiver = manager(TWO)
    receiver.create("plain")
    receiver.create("full", transactional=True, quota=0)
    name = rf"TCP:{TWO}\private$\{queue}"
    session = RawSession.connect(receiver, THREE, STRANGER).establish()
    for guid in invented(101):
        place = packets.Transaction(START << 32, 1, 0)
        session.say(packets.message(guid, 1, name, transaction=place))
    assert "100 acknowledgments wait" in session.link.closing
    assert tables(receiver).waiting == 100


@pytest.mark.spec("MS-MQQB 3.1.5.8.2", "MS-MQQB 3.1.5.8.8", "E137")
def test_what_is_for_somebody_else_makes_no_more_acknowledgments_than_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(order_acks, "ACKS_WAITING_MAX", 100)
    receiver = manager(TWO)
    session = RawSession.connect(receiver, THREE, STRANGER).establish()
    place = packets.Transaction(START << 32, 1, 0)
    packet = packets.message(
        STRANGER.bytes_le, 1, 7, address=UUID(int=99).bytes_le, transaction=place
    )
    for _ in range(101):
        session.say(packet)
    assert "100 acknowledgments wait" in session.link.closing
    assert tables(receiver).waiting == 100


@pytest.mark.limit("merq.engine.order_acks.FINAL_ACKS_WAITING_MAX")
@pytest.mark.spec("MS-MQQB 3.1.5.8.8", "MS-MQQB 3.1.7.2.2", "E137")
def test_of_who_takes_no_final_acks_no_more_messages_are_taken_that_ask_for_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(order_acks, "FINAL_ACKS_WAITING_MAX", 50)
    receiver = manager(TWO)
    queue = receiver.create("tx", transactional=True)
    session = RawSession.connect(receiver, THREE, STRANGER).establish()
    name, sent = rf"TCP:{TWO}\private$\tx", 0
    while not session.link.closing and sent < 200:
        sent += 1
        place = packets.Transaction(START << 32, sent, sent - 1)
        session.say(
            packets.message(STRANGER.bytes_le, sent, name, transaction=place, dead_letter=True)
        )
        if not session.link.closing:
            receiver.receive(queue)
    assert "acknowledgments wait" in session.link.closing
    assert tables(receiver).waiting == 50


@pytest.mark.limit("merq.engine.incoming.SEQUENCES_PER_NETWORK_MAX")
@pytest.mark.parametrize("is_checkpointed", [False, True])
@pytest.mark.spec("MS-MQDMPR 3.1.1.5", "E137")
def test_a_flood_to_a_queue_stays_below_its_cap_and_drives_out_nobody(
    monkeypatch: pytest.MonkeyPatch, *, is_checkpointed: bool
) -> None:
    monkeypatch.setattr(incoming, "SEQUENCES_PER_NETWORK_MAX", 1000)
    town, sender, receiver = pair()
    sender.commit(ORDERED, b"before")
    town.wait(3.0)
    assert receiver.receive(TX) == b"before"
    tx = rf"TCP:{TWO}\private$\tx"
    count = flood(receiver, tx, is_transactional=True, size=700_000, now=town.now)
    assert count > 3 * incoming.SEQUENCES_PER_NETWORK_MAX
    assert tables(receiver).sequences == incoming.SEQUENCES_PER_NETWORK_MAX + 1
    if is_checkpointed:
        writing, _ = receiver.host.begin_checkpoint()
        assert writing is not None
        writing.run()
        receiver.host.end_checkpoint(writing)
    town.restart(receiver)
    assert tables(receiver).sequences == incoming.SEQUENCES_PER_NETWORK_MAX + 1
    (known,) = [
        each
        for each in receiver.host.engine.state.sequences.all()
        if each.key.source == GUIDS[ONE].bytes_le
    ]
    again = packets.Transaction(known.sequence_id, 1, 0)
    honest = RawSession.connect(receiver, ONE, GUIDS[ONE], town.now).establish(town.now)
    packet = packets.message(GUIDS[ONE].bytes_le, 1, tx, body=b"before", transaction=again)
    honest.say(packet, town.now)
    sender.commit(ORDERED, b"after")
    town.wait(10.0)
    bodies = [each for each in receiver.bodies(TX) if each]
    assert bodies == [b"after"], "once, and in order"


@pytest.mark.limit("merq.engine.history.HISTORY_SOURCES_PER_NETWORK_MAX")
@pytest.mark.spec("MS-MQQB 3.1.5.8.1", "E137")
def test_a_flood_of_senders_does_not_make_us_forget_what_came_from_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(history, "HISTORY_SOURCES_PER_NETWORK_MAX", 100)
    monkeypatch.setattr(history, "HISTORY_SOURCES_MAX", 300)
    receiver = manager(TWO)
    receiver.create("q")
    honest = RawSession.connect(receiver, ONE, GUIDS[ONE]).establish()
    name = rf"TCP:{TWO}\private$\q"
    packet = packets.message(GUIDS[ONE].bytes_le, 7, name, body=b"once", recoverable=True)
    honest.say(packet)
    for number in range(5):
        flood(receiver, name, is_transactional=False, size=100_000, address=f"10.9.9.{number}")
    assert tables(receiver).identifiers <= 5 * 300 + 1, "each address has its own"
    honest.say(packet)
    assert receiver.bodies(QUEUE).count(b"once") == 1


@pytest.mark.limit("merq.engine.history.HISTORY_MAX")
def test_identifiers_have_a_limit_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "HISTORY_MAX", 1000)
    monkeypatch.setattr(history, "HISTORY_RELIEF", 10)
    recent = history.Recent()
    quiet = bytes(16)
    recent.add(quiet, 1, 100, "10.0.0.1")
    for number in range(5000):
        recent.add(struct.pack("<QQ", number % 7 + 1, 1), number, 100, "10.0.0.2")
    assert 990 <= len(recent) <= 1000
    assert recent.seen(quiet, 1, 100, "10.0.0.1"), "the network that has the most gives up its own"


@pytest.mark.limit("merq.engine.order_queues.ORDER_QUEUES_PER_NETWORK_MAX")
@pytest.mark.parametrize("is_routed", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.7.17", "MS-MQQB 3.1.7.17#queued", "E137")
def test_a_network_of_ever_new_addresses_has_only_so_many_queues_of_acknowledgments(
    monkeypatch: pytest.MonkeyPatch, *, is_routed: bool
) -> None:
    monkeypatch.setattr(order_queues, "ORDER_QUEUES_PER_NETWORK_MAX", 20)
    receiver = manager(TWO)
    receiver.create("q")
    number = receiver.create("tx", transactional=True)
    destination: str | int = number if is_routed else rf"TCP:{TWO}\private$\tx"
    to = receiver.guid.bytes_le if is_routed else packets.NOBODY
    for at, guid in enumerate(invented(60)):
        session = RawSession.connect(receiver, f"2001:db8::{at + 1:x}", UUID(bytes_le=guid))
        session.establish()
        place = packets.Transaction(START << 32, 1, 0)
        session.say(packets.message(guid, 1, destination, address=to, transaction=place))
        receiver.exchange.tick(at + 1.0)
        session.hang_up(at + 1.0)
    receiver.turn(60.0)
    assert tables(receiver).queues == 20
    assert len(receiver.bodies(number)) == 60, "what came is taken in spite of that"


@pytest.mark.limit("merq.engine.order_queues.ORDER_QUEUES_MAX")
@pytest.mark.spec("E137")
def test_all_networks_together_leave_most_destinations_to_applications(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(order_queues, "ORDER_QUEUES_MAX", 5)
    receiver = manager(TWO)
    for at, guid in enumerate(invented(20)):
        session = RawSession.connect(receiver, f"10.8.8.{at}", UUID(bytes_le=guid)).establish()
        place = packets.Transaction(START << 32, 1, 0)
        session.say(packets.message(guid, 1, NOWHERE, transaction=place))
    assert tables(receiver).queues == 5


@pytest.mark.spec("MS-MQQB 3.1.5.8.2", "E57", "E137")
def test_a_rejected_sequence_goes_on_when_its_queue_is_made() -> None:
    town, sender, receiver = pair()
    name = rf"DIRECT=TCP:{TWO}\private$\later"
    sender.commit(name, b"a", b"b", negative_journaling=True)
    town.wait(3.0)
    dead = sender.bodies(0xFFFF0003)
    assert dead == [b"a", b"b"], "each of them was answered"
    number = receiver.create("later", transactional=True)
    sender.commit(name, b"c")
    town.wait(8.0)
    assert receiver.bodies(number) == [b"c"]
    assert sender.waiting(name) == []


@pytest.mark.limit("merq.engine.incoming.REJECTIONS_MAX")
@pytest.mark.spec("MS-MQQB 3.1.5.8.2", "E137")
def test_a_rejected_message_that_comes_again_is_answered_once_while_it_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(incoming, "REJECTIONS_MAX", 2)
    receiver = manager(TWO)
    session = RawSession.connect(receiver, THREE, STRANGER).establish()
    place = packets.Transaction(START << 32, 1, 0)
    packet, *others = [packets.message(guid, 1, NOWHERE, transaction=place) for guid in invented(3)]
    session.say(packet)
    session.say(packet)
    assert tables(receiver).waiting == 1
    for each in (*others, packet):
        session.say(each)
    assert tables(receiver).waiting == 4, "it is answered again, which its sender does not mind"


def test_five_hundred_connections_from_one_address_are_not_looked_through_for_each_queue() -> None:
    receiver = manager(TWO)
    sessions = [
        RawSession.connect(receiver, THREE, UUID(bytes_le=guid)).establish()
        for guid in invented(512)
    ]
    looks = 0

    class Counted(Link):
        """Counts how often somebody asks whether it is open."""

        __slots__ = ()

        @property
        def is_open(self) -> bool:
            nonlocal looks
            looks += 1
            return super().is_open

    for session in sessions:
        session.link.__class__ = Counted
    board = receiver.exchange.outbound._board
    for session in sessions:
        assert board.find_asker(THREE, session.guid, is_secure=False) is session.link
        assert board.find(THREE, session.guid, 0.0, TlsUse.CLEAR) is None, "nobody confirms it"
    assert board.find(THREE, UUID(int=0), 0.0, TlsUse.CLEAR) is None, "nor who else it may be"
    assert looks <= 4 * len(sessions)
    for session in sessions:
        session.hang_up()
    assert board.find_asker(THREE, sessions[0].guid, is_secure=False) is None
