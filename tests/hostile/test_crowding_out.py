"""Strangers who come in crowds push out one another, and nobody who was known before.

Of everything that is kept of others there is only so much. The crowd has many addresses, or claims
many identifiers; an honest sender has one of each, and may have been silent for hours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import UUID

import pytest

from hostile import stranger_packets as packets
from hostile.test_sequence_poisoning import in_sequence
from kit.exchange import START, Manager, Town
from kit.raw_sessions import RawSession
from merq.engine import history, order_queues
from merq.engine.departing import SKIPPED_S
from merq.engine.incoming import FUTURE_S, PEER_IDLE_S, PEERS_PER_SENDER_MAX, SEQUENCE_IDLE_S
from merq.engine.order_acks import ORDER_ACK_LIFETIME_S
from merq.exchange import routes
from unit.exchange.exchange_world import (
    GUIDS,
    ONE,
    PLAIN,
    QUEUE,
    THREE,
    TWO,
    TX,
    changed,
    manager,
    pair,
)

SENDER: Final = GUIDS[ONE]
ANYWHERE: Final = bytes(4 * [0xFF])
"""TimeToReachQueue of a message that has all the time."""
NOWHERE: Final = rf"TCP:{TWO}\private$\nowhere"
TO_QUEUE: Final = rf"TCP:{TWO}\private$\q"
YEAR_S: Final = 366 * 86_400


def receiver_with_queues() -> Manager:
    found = manager(TWO)
    assert (found.create("q"), found.create("tx", transactional=True)) == (QUEUE, TX)
    return found


def knock(receiver: Manager, number: int, address: str, now: float = 0.0) -> RawSession:
    """A stranger under an identifier of its own."""
    return RawSession.connect(receiver, address, UUID(int=0xBAD000 + number), now).establish(now)


def checkpoint(receiver: Manager) -> None:
    writing, _ = receiver.host.begin_checkpoint()
    assert writing is not None
    writing.run()
    receiver.host.end_checkpoint(writing)


CROWDS: Final[dict[str, Callable[[int], str]]] = {
    "one address": lambda _: THREE,
    "one network of IPv6": lambda number: f"2001:db8::{number:x}",
    "a network each": lambda number: f"10.9.{number}.1",
}


# Sequences.


@pytest.mark.parametrize("address_of", CROWDS.values(), ids=CROWDS)
@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.limit("merq.engine.incoming.PEERS_PER_SENDER_MAX")
@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "E136")
def test_a_sender_that_was_silent_for_hours_is_not_pushed_out_of_its_own_sequence(
    address_of: Callable[[int], str], *, is_restarted: bool
) -> None:
    receiver = receiver_with_queues()
    sequence = START << 32 | 0x1234567
    honest = RawSession.connect(receiver, ONE, SENDER).establish()
    for number in (1, 2, 3):
        honest.say(in_sequence(SENDER, sequence, number, b"%d" % number, previous=number - 1))
    honest.hang_up()
    later = PEER_IDLE_S + 100
    for batch in range(2):
        receiver.host.engine.tick(START + (batch + 1) * later)
        for number in range(2 * PEERS_PER_SENDER_MAX):
            at = batch * 100 + number
            liar = knock(receiver, at, address_of(at), later)
            forged = START + (batch + 1) * later - 5 << 32 | at
            for place in (1, 2):
                liar.say(in_sequence(SENDER, forged, place, b"lie", previous=place - 1), later)
            liar.hang_up(later)
        if is_restarted:
            checkpoint(receiver)
            Town(receiver).restart(receiver)
    assert len(receiver.host.engine.state.sequences) == PEERS_PER_SENDER_MAX
    honest = RawSession.connect(receiver, ONE, SENDER, later).establish(later)
    for number in (3, 4, 5):
        honest.say(in_sequence(SENDER, sequence, number, b"%d" % number, previous=number - 1))
    taken = [each for each in receiver.bodies(TX) if each != b"lie"]
    assert taken == [b"1", b"2", b"3", b"4", b"5"], "once each, in order"


@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "E136")
def test_a_sequence_that_had_to_give_way_goes_on_where_it_was() -> None:
    # The liar was first, so it is the one that stays; the sender came second, and fell silent.
    receiver = receiver_with_queues()
    knock(receiver, 999, THREE).say(in_sequence(SENDER, START - 500 << 32, 1, b"lie"))
    sequence = START << 32 | 0x1234567
    honest = RawSession.connect(receiver, ONE, SENDER).establish()
    for number in (1, 2):
        honest.say(in_sequence(SENDER, sequence, number, b"%d" % number, previous=number - 1))
    receiver.host.engine.tick(START + PEER_IDLE_S + 1)
    for number in range(PEERS_PER_SENDER_MAX):
        liar = knock(receiver, number, f"10.9.{number}.1")
        liar.say(in_sequence(SENDER, START + PEER_IDLE_S - 9 + number << 32, 1, b"lie"))
    known = {each.origin.address for each in receiver.host.engine.state.sequences.all()}
    assert ONE not in known, "there is no room for all"
    for number in (2, 3):
        honest.say(in_sequence(SENDER, sequence, number, b"%d" % number, previous=number - 1))
    assert [each for each in receiver.bodies(TX) if each != b"lie"] == [b"1", b"2", b"3"]


# Senders that move, and clocks that are ahead.


@pytest.mark.parametrize(
    ("first", "then"), [("2001:db8::1", "2001:db8::2"), (ONE, THREE)], ids=["in its /64", "away"]
)
@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "MS-MQMQ 2.2.18.1.2", "E136")
def test_a_sender_whose_clock_is_ten_years_ahead_may_move(first: str, then: str) -> None:
    receiver = receiver_with_queues()
    ahead = START + 10 * YEAR_S
    own = RawSession.connect(receiver, first, SENDER).establish()
    own.say(in_sequence(SENDER, ahead << 32, 1, b"a"))
    receiver.host.engine.tick(START + 100)
    moved = RawSession.connect(receiver, then, SENDER).establish()
    moved.say(in_sequence(SENDER, ahead + 99 << 32, 1, b"b"))
    moved.say(in_sequence(SENDER, ahead + 99 << 32, 2, b"c", previous=1))
    assert receiver.bodies(TX) == [b"a", b"b", b"c"]
    older = RawSession.connect(receiver, "10.9.9.9", SENDER).establish()
    older.say(in_sequence(SENDER, ahead + 50 << 32, 1, b"again"))
    assert receiver.bodies(TX) == [b"a", b"b", b"c"], "a folder that was restored elsewhere"
    liar = RawSession.connect(receiver, "10.9.9.8", SENDER).establish()
    liar.say(in_sequence(SENDER, (1 << 64) - 1, 1, b"lie"))
    assert receiver.bodies(TX) == [b"a", b"b", b"c"], "its clock is not that far ahead"


@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "E136")
def test_a_computer_that_takes_another_address_of_its_network_has_the_same_sequence() -> None:
    receiver = receiver_with_queues()
    for number in range(2 * PEERS_PER_SENDER_MAX):
        own = RawSession.connect(receiver, f"2001:db8::{number + 1:x}", SENDER).establish()
        own.say(in_sequence(SENDER, START + number << 32, 1, b"%d" % number))
    assert len(receiver.bodies(TX)) == 2 * PEERS_PER_SENDER_MAX
    assert len(receiver.host.engine.state.sequences) == 1


def told_of_drop(receiver: Manager) -> dict[str, str]:
    (found,) = [facts for text, facts in receiver.exchange.take_told() if "were dropped" in text]
    return {name: str(value) for name, value in found.items()}


@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "E136")
def test_the_log_says_of_a_clock_that_is_ahead_what_was_found_and_what_to_do() -> None:
    receiver = receiver_with_queues()
    own = RawSession.connect(receiver, ONE, SENDER).establish()
    own.say(in_sequence(SENDER, START << 32, 1, b"a"))
    receiver.exchange.take_told()
    moved = RawSession.connect(receiver, THREE, SENDER).establish()
    moved.say(in_sequence(SENDER, START + FUTURE_S + 60 << 32, 1, b"b"))
    assert receiver.bodies(TX) == [b"a"]
    told = told_of_drop(receiver)
    assert "24 hours ahead" in told["expected"]
    assert "2001-09-10 01:47:40" in told["reason"], "the time that its identifier says"
    assert f"merq queue forget-senders` with --sender {SENDER}" in told["reason"]


@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "E136")
def test_the_log_says_whose_sequence_an_address_that_is_new_is_behind() -> None:
    receiver = receiver_with_queues()
    own = RawSession.connect(receiver, ONE, SENDER).establish()
    own.say(in_sequence(SENDER, START << 32, 1, b"a"))
    receiver.exchange.take_told()
    moved = RawSession.connect(receiver, THREE, SENDER).establish()
    moved.say(in_sequence(SENDER, START - 60 << 32, 1, b"b"))
    told = told_of_drop(receiver)
    assert told["expected"] == f"later than {START << 32:016x}, which came from {ONE}"
    assert "new for this sender" in told["reason"]


@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "E136")
def test_the_log_says_of_a_sequence_that_begins_in_the_middle_that_it_does() -> None:
    receiver = receiver_with_queues()
    own = RawSession.connect(receiver, ONE, SENDER).establish()
    own.say(in_sequence(SENDER, START << 32, 7, b"g", previous=6))
    told = told_of_drop(receiver)
    assert told["expected"] == "its first message"
    assert "not known here" in told["reason"]


# Acknowledgments.


def leave_an_acknowledgment(receiver: Manager, number: int, address: str) -> None:
    """A stranger has a message rejected, and is gone before it is told."""
    stranger = knock(receiver, number, address)
    place = packets.Transaction(START << 32, 1, 0)
    packet = packets.message(stranger.guid.bytes_le, 1, NOWHERE, transaction=place)
    receiver.exchange.received(stranger.link, packet, 0.0)
    stranger.hang_up()
    receiver.turn(0.0)


def acknowledged_newcomer(receiver: Manager, address: str, number: int = 0x900D) -> bool:
    """Whether somebody who comes new is told that its message has arrived."""
    newcomer = knock(receiver, number, address, 50.0)
    place = packets.Transaction(START << 32, 1, 0)
    to = rf"TCP:{TWO}\private$\tx"
    newcomer.say(packets.message(newcomer.guid.bytes_le, 1, to, transaction=place), 50.0)
    receiver.exchange.tick(60.0)
    newcomer.settle(60.0)
    return len(newcomer.messages()) == 1


def waiting_queues(receiver: Manager) -> int:
    return sum(each.positions.count > 0 for each in receiver.host.engine.outgoing_queues())


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.7.17", "E160")
def test_final_acks_for_strangers_who_never_come_back_go_in_the_end(*, is_restarted: bool) -> None:
    receiver = receiver_with_queues()
    for number in range(5):
        leave_an_acknowledgment(receiver, number, f"10.9.{number}.1")
    assert waiting_queues(receiver) == 5
    if is_restarted:
        Town(receiver).restart(receiver)
    engine = receiver.host.engine
    engine.arrivals.forget_idle()
    now = START + 2 * SEQUENCE_IDLE_S
    engine.tick(now)
    engine.arrivals.forget_idle()
    receiver.turn(1.0)
    assert waiting_queues(receiver) == 5, "a clock that is put forward ends nothing"
    for _ in range(SEQUENCE_IDLE_S // SKIPPED_S - 1):
        now += SKIPPED_S
        engine.tick(now)
    engine.arrivals.forget_idle()
    receiver.turn(1.0)
    assert waiting_queues(receiver) == 5, "a laptop may be in its drawer for as long"
    for _ in range(2):
        now += SKIPPED_S
        engine.tick(now)
    engine.arrivals.forget_idle()
    receiver.turn(1.0)
    assert engine.outgoing_queues() == []


@pytest.mark.spec("MS-MQQB 3.1.7.17", "E160")
def test_order_acks_for_strangers_who_are_gone_go_after_an_hour() -> None:
    receiver = receiver_with_queues()
    stranger = knock(receiver, 1, THREE)
    place = packets.Transaction(START << 32, 1, 0)
    to = rf"TCP:{TWO}\private$\tx"
    stranger.say(packets.message(stranger.guid.bytes_le, 1, to, transaction=place))
    stranger.hang_up()
    receiver.exchange.tick(1.0)
    receiver.turn(1.0)
    assert waiting_queues(receiver) == 1
    for later in (10, 200):
        receiver.host.engine.tick(START + ORDER_ACK_LIFETIME_S + later)
        receiver.turn(1.0)
    assert receiver.host.engine.outgoing_queues() == []


@pytest.mark.spec("MS-MQQB 3.1.7.17", "MS-MQQB 2.2.4", "MS-MQQB 2.2.5", "E160")
def test_how_long_an_acknowledgment_waits_is_not_said_to_the_other_side() -> None:
    receiver = receiver_with_queues()
    stranger = knock(receiver, 1, THREE)
    place = packets.Transaction(START << 32, 1, 0)
    for to in (NOWHERE, rf"TCP:{TWO}\private$\tx"):
        stranger.say(packets.message(stranger.guid.bytes_le, 1, to, transaction=place))
    receiver.exchange.tick(1.0)
    stranger.settle(1.0)
    told = stranger.messages()
    assert len(told) == 3, "of one message an OrderAck, of the other a FinalAck, too"
    assert {each[12:16] for each in told} == {ANYWHERE}


@pytest.mark.parametrize("address_of", CROWDS.values(), ids=CROWDS)
@pytest.mark.limit("merq.engine.order_queues.ORDER_QUEUES_MAX")
@pytest.mark.spec("MS-MQQB 3.1.7.17", "E144")
def test_what_strangers_left_waiting_gives_way_to_who_comes_new(
    monkeypatch: pytest.MonkeyPatch, address_of: Callable[[int], str]
) -> None:
    monkeypatch.setattr(order_queues, "ORDER_QUEUES_MAX", 10)
    receiver = receiver_with_queues()
    leave_an_acknowledgment(receiver, 999, ONE)
    for number in range(40):
        leave_an_acknowledgment(receiver, number, address_of(number))
    assert waiting_queues(receiver) == 10
    for number in range(3):
        assert acknowledged_newcomer(receiver, f"10.8.{number}.1", 0x900D + number)
    names = [each.properties.path_name for each in receiver.host.engine.outgoing_queues()]
    assert any(ONE in each for each in names), "nor is who was there before them pushed out"
    assert len(names) <= 10


@pytest.mark.limit("merq.engine.order_queues.SENDERS_PER_NETWORK_MAX")
@pytest.mark.spec("MS-MQQB 3.1.7.17", "E144")
def test_what_others_behind_the_same_address_left_waiting_gives_way_to_who_comes_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(order_queues, "SENDERS_PER_NETWORK_MAX", 5)
    receiver = receiver_with_queues()
    for number in range(20):
        leave_an_acknowledgment(receiver, number, THREE)
    assert waiting_queues(receiver) == 5
    assert acknowledged_newcomer(receiver, THREE)


@pytest.mark.spec("MS-MQQB 3.1.7.17", "E144")
def test_who_gave_way_and_comes_back_is_told_again_what_it_sends_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(order_queues, "ORDER_QUEUES_MAX", 3)
    receiver = receiver_with_queues()
    stranger = knock(receiver, 1, THREE)
    place = packets.Transaction(START << 32, 1, 0)
    packet = packets.message(
        stranger.guid.bytes_le, 1, rf"TCP:{TWO}\private$\tx", transaction=place
    )
    stranger.say(packet)
    stranger.hang_up()
    receiver.exchange.tick(1.0)
    for number in range(2, 12):
        leave_an_acknowledgment(receiver, number, THREE)
    Town(receiver).restart(receiver)
    stranger = knock(receiver, 1, THREE)
    stranger.say(packet, 50.0)
    receiver.exchange.tick(60.0)
    stranger.settle(60.0)
    assert len(stranger.messages()) == 1
    assert len(receiver.bodies(TX)) == 1


@pytest.mark.spec("E144")
def test_queues_that_are_gone_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_queues, "ORDER_QUEUES_MAX", 4)
    receiver = receiver_with_queues()
    for number in range(12):
        stranger = knock(receiver, number, f"10.9.{number}.1")
        place = packets.Transaction(START << 32, 1, 0)
        stranger.say(packets.message(stranger.guid.bytes_le, 1, NOWHERE, transaction=place))
        assert len(stranger.messages()) == 1, "each is told"
        stranger.say(packets.session_ack(1, 1, recoverable=1))
        stranger.hang_up()
        receiver.host.engine.tick(START + 100 * (number + 1))
        receiver.turn(0.0)
    assert len(receiver.host.engine.state.order_queues) <= 1


def test_who_connects_does_not_have_all_queues_looked_through_that_wait() -> None:
    receiver = receiver_with_queues()
    for number in range(100):
        leave_an_acknowledgment(receiver, number, f"10.9.{number}.1")
    index = receiver.exchange.outbound._index
    for number in (0, 50, 99):
        found = index.shown_by(f"10.9.{number}.1", UUID(int=0xBAD000 + number))
        assert len(found) == 1
    assert index.shown_by("10.7.7.7", UUID(int=0x999)) == []
    stranger = knock(receiver, 50, "10.7.7.7", 100.0)
    stranger.settle(100.0)
    assert receiver.host.engine.outgoing_queues() != []


# Duplicates.


def recoverable(source: UUID, ordinal: int, body: bytes = b"") -> bytes:
    return packets.message(source.bytes_le, ordinal, TO_QUEUE, body=body, recoverable=True)


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.limit("exchange.history_size")
@pytest.mark.spec("MS-MQQB 3.1.5.8.1", "MS-MQQB 3.1.1.3", "E151")
def test_who_sends_in_a_senders_name_does_not_have_its_messages_doubled(
    *, is_restarted: bool
) -> None:
    receiver = Manager(name="m2", address=TWO, guid=GUIDS[TWO], settings=changed(history_size=50))
    assert receiver.create("q") == QUEUE
    honest = RawSession.connect(receiver, ONE, SENDER).establish()
    for ordinal in range(1, 51):
        honest.say(recoverable(SENDER, ordinal, b"honest"))
    liar = RawSession.connect(receiver, THREE, SENDER).establish()
    for ordinal in range(1000, 1080):
        liar.say(recoverable(SENDER, ordinal))
    if is_restarted:
        Town(receiver).restart(receiver)
        honest = RawSession.connect(receiver, ONE, SENDER).establish()
    for ordinal in range(1, 51):
        honest.say(recoverable(SENDER, ordinal, b"honest"))
    assert receiver.bodies(QUEUE).count(b"honest") == 50, "neither dropped nor doubled"


@pytest.mark.parametrize("width", [16, 64], ids=["addresses", "networks of IPv6"])
@pytest.mark.limit("merq.engine.history.HISTORY_SOURCES_MAX")
@pytest.mark.spec("MS-MQQB 3.1.5.8.1", "E137")
def test_ten_thousand_senders_make_nobody_forget_what_came_from_an_office(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr(history, "HISTORY_SOURCES_MAX", 40)
    receiver = receiver_with_queues()
    office = [UUID(int=0x0FF1CE + number) for number in range(5)]
    sessions = [RawSession.connect(receiver, ONE, guid).establish() for guid in office]
    for session in sessions:
        session.say(recoverable(session.guid, 7, b"honest"))
    for number in range(200):
        address = f"2001:db8:0:{number:x}::1" if width == 64 else f"10.9.9.{number}"
        stranger = knock(receiver, number, address)
        stranger.say(recoverable(stranger.guid, 1))
        stranger.hang_up()
    for session in sessions:
        session.say(recoverable(session.guid, 7, b"honest"))
    assert receiver.bodies(QUEUE).count(b"honest") == len(office)
    assert len(receiver.host.engine.state.recent) == 40


# Where queue managers are.


@pytest.mark.limit("merq.exchange.routes.LEARNED_MAX")
@pytest.mark.spec("MS-MQQB 3.1.7.5")
def test_whom_this_side_has_called_is_known_however_many_connect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(routes, "LEARNED_MAX", 5)
    town, sender, receiver = pair()
    sender.send(PLAIN, b"a")
    town.wait(1.0)
    assert receiver.bodies(QUEUE) == [b"a"]
    town.cut()
    for number in range(50):
        knock(sender, number, f"10.9.{number}.1", town.now)
    peers = sender.exchange.outbound._board.peers
    assert peers.learned(GUIDS[TWO]) == TWO
    assert sum(peers.learned(UUID(int=0xBAD000 + number)) is not None for number in range(50)) == 5
    sender.commit(f"PRIVATE={GUIDS[TWO]}\\{TX:08x}", b"b")
    town.wait(10.0)
    assert receiver.bodies(TX) == [b"b"]
