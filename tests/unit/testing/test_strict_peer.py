"""The strict peer by itself: two of them talk, and one sees that each does what is written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.strict_pairs import HERE, PLAIN, SAFE, THERE, StrictPair
from merq.testing.strict_peer import Readings, UserMessage, direct
from merq.testing.strict_peer.incoming import IncomingSequence
from merq.testing.strict_peer.packets import (
    ACK_RECEIVE,
    NACK_BAD_DST_Q,
    NACK_Q_EXCEED_QUOTA,
    NACK_REACH_QUEUE_TIMEOUT,
    NOBODY,
    ORDER_ACK,
    Establish,
    Packet,
    Parameters,
    SessionFields,
    frame,
    read_packet,
    write_establish,
)
from merq.testing.strict_peer.session import nearest


def letter(path: str, body: bytes = b"x", **fields: object) -> UserMessage:
    message = UserMessage(
        source=NOBODY, destination=direct(f"TCP:{THERE}\\{path}"), label="l", body=body
    )
    return replace(message, **fields)  # type: ignore[arg-type]


def packets(pair: StrictPair, address: str, kind: type) -> list[Packet]:
    """What one of them has written, of one kind."""
    read = [read_packet(data) for who, data in pair.sent if who == address]
    return [each for each in read if isinstance(each, kind)]


def messages(pair: StrictPair, address: str, message_class: int = 0) -> list[UserMessage]:
    found = [each for each in packets(pair, address, UserMessage) if isinstance(each, UserMessage)]
    return [each for each in found if each.message_class == message_class]


# Sessions.


@pytest.mark.spec("MS-MQQB 3.1.1.7.1", "MS-MQQB 3.1.5.3", "MS-MQQB 3.1.5.4", "MS-MQQB 3.1.5.2.3")
def test_a_session_is_established_in_four_packets() -> None:
    pair = StrictPair(here=Readings(ack_timeout_ms=120_000))
    pair.here.send(letter(PLAIN), pair.now)
    pair.flow()
    kinds = [(who, type(read_packet(data))) for who, data in pair.sent[:4]]
    assert kinds == [(HERE, Establish), (THERE, Establish), (HERE, Parameters), (THERE, Parameters)]
    (request,), (answer,) = packets(pair, HERE, Establish), packets(pair, THERE, Establish)
    assert isinstance(request, Establish)
    assert isinstance(answer, Establish)
    assert (request.client, request.server) == (pair.here.guid, NOBODY)
    assert (answer.client, answer.server) == (pair.here.guid, pair.there.guid)
    assert answer.padding == b"\x5a" * 512
    assert answer.timestamp == request.timestamp
    assert packets(pair, THERE, Parameters) == [Parameters(500, 120_000, 64)]
    assert pair.bodies(THERE, PLAIN) == [b"x"]


@pytest.mark.spec("MS-MQQB 3.1.5.3.1")
def test_a_request_for_another_queue_manager_is_refused() -> None:
    pair = StrictPair()
    session = pair.there.accepted(HERE, 0.0)
    request = Establish(pair.here.guid, b"q" * 16, 1, 0x110, bytes(512))
    session.receive(write_establish(request, pair.here.chance), 0.0)
    (answer,) = session.take_output()
    assert getattr(read_packet(answer), "refused", None)


@pytest.mark.spec("MS-MQQB 3.1.6.2", "MS-MQQB 3.1.2.2")
def test_an_idle_session_is_closed_after_five_minutes() -> None:
    pair = StrictPair()
    pair.here.send(letter(PLAIN), pair.now)
    pair.run(299.0)
    assert len(pair.here.connections.sessions) == 1
    pair.run(600.0)
    assert not pair.here.connections.sessions
    assert "idle" in pair.here.connections.closures + pair.there.connections.closures


@pytest.mark.spec("MS-MQQB 3.1.6.4", "MS-MQQB 3.1.5.8.2")
@pytest.mark.parametrize("timeout_s", [20, 120])
def test_express_messages_are_acknowledged_after_half_the_ack_timeout(timeout_s: int) -> None:
    pair = StrictPair(here=Readings(ack_timeout_ms=timeout_s * 1000))
    pair.here.send(letter(PLAIN), pair.now)
    pair.run(timeout_s / 2 - 0.1)
    assert not packets(pair, THERE, SessionFields)
    pair.run(0.2)
    assert packets(pair, THERE, SessionFields) == [SessionFields(1, 0, 0, 0, 0, 64)]
    assert all(not queue.table for queue in pair.here.outgoing.queues.values())


@pytest.mark.spec("MS-MQQB 3.1.1.6.1", "MS-MQQB 3.1.3.2")
@pytest.mark.parametrize(("window", "expected"), [(64, 32), (10, 5), (1, 1)])
def test_they_are_acknowledged_when_half_of_the_senders_window_is_used(
    window: int, expected: int
) -> None:
    pair = StrictPair(here=Readings(window=window))
    for _ in range(expected - 1):
        pair.here.send(letter(PLAIN), pair.now)
    pair.flow()
    assert not packets(pair, THERE, SessionFields)
    pair.here.send(letter(PLAIN), pair.now)
    pair.flow()
    assert len(packets(pair, THERE, SessionFields)) == 1


@pytest.mark.spec("MS-MQQB 3.1.5.8.7", "MS-MQMQ 2.2.20.4")
def test_recoverable_messages_are_acknowledged_bit_by_bit() -> None:
    pair = StrictPair(here=Readings(window=1000))
    for at in range(34):
        pair.here.send(letter(PLAIN, recoverable=at != 5), pair.now)
    pair.run(5.0)
    first, second = packets(pair, THERE, SessionFields)
    assert first == SessionFields(34, 1, 0xFFFFFFFF, 0, 0, 64)
    assert second == SessionFields(34, 33, 1, 0, 0, 64)


@pytest.mark.spec("MS-MQQB 3.1.6.3", "MS-MQQB 3.1.2.4")
def test_a_session_on_which_nothing_is_heard_is_closed_and_all_is_sent_again() -> None:
    pair = StrictPair()
    pair.here.send(letter(PLAIN), pair.now)
    pair.flow()
    (session,) = pair.here.connections.sessions
    pair.break_wires()
    assert session.reason == ""
    pair.run(6.0)
    assert len(messages(pair, HERE)) == 2, "it is sent again after five seconds"
    assert pair.bodies(THERE, PLAIN) == [b"x"], "and known by its identifier"


# Coding errors.


@pytest.mark.spec("MS-MQMQ 2.2.20.4", "MS-MQQB 3.1.5.5.5")
def test_a_message_with_a_miscounting_header_is_delivered_and_the_session_closed() -> None:
    pair = StrictPair(there=Readings(miscounts=1.0))
    pair.here.send(letter(PLAIN, recoverable=True), pair.now)
    pair.run(1.0)
    assert pair.there.miscounts
    assert any("counts" in each for each in pair.here.connections.closures)
    assert pair.bodies(THERE, PLAIN) == [b"x"]


@pytest.mark.spec("MS-MQMQ 2.2.20.4")
def test_who_is_short_of_memory_gets_one_message_at_a_time_and_more_every_half_minute() -> None:
    pair = StrictPair(there=Readings(short_of_memory=1.0))
    pair.here.send(letter(PLAIN, recoverable=True), pair.now)
    pair.run(1.0)
    (session,) = pair.here.connections.sessions
    assert session.window == 1
    pair.run(61.0)
    assert session.window == 4


# Transactional messages.


@pytest.mark.spec("MS-MQQB 3.1.1.5", "MS-MQQB 3.1.7.1.3", "MS-MQQB 3.1.5.6", "MS-MQQB 3.1.6.9")
def test_a_sequence_is_acknowledged_half_a_second_later_and_the_next_one_begins() -> None:
    pair = StrictPair()
    for _ in range(2):
        pair.here.commit([letter(SAFE, b"1"), letter(SAFE, b"2")], pair.now)
        pair.run(2.0)
    places = [each.transaction for each in messages(pair, HERE)]
    assert [(each.number, each.previous) for each in places if each] == [(1, 0), (2, 1)] * 2
    assert places[0] is not None
    assert places[2] is not None
    assert places[2].sequence == places[0].sequence + 1
    acks = messages(pair, THERE, ORDER_ACK)
    assert [each.body[8:16] for each in acks] == [b"\x02\0\0\0\x01\0\0\0"] * 2
    assert pair.bodies(THERE, SAFE) == [b"1", b"2", b"1", b"2"]
    assert all(queue.is_empty for queue in pair.here.outgoing.queues.values())


@pytest.mark.spec("MS-MQQB 3.1.5.8.6")
def test_a_gap_is_rejected_and_a_bridge_over_it_accepted() -> None:
    incoming = IncomingSequence()
    assert incoming.accepts(5, 1, 0)
    incoming.sequence, incoming.number = 5, 1
    assert not incoming.accepts(5, 1, 0), "a duplicate"
    assert not incoming.accepts(5, 3, 2), "a gap"
    assert incoming.accepts(5, 3, 1), "what was between them expired"
    assert incoming.accepts(5, 3, 0)
    assert not incoming.accepts(4, 9, 0), "an earlier sequence"
    assert not incoming.accepts(6, 2, 1), "a later one, but not its beginning"
    assert incoming.accepts(6, 2, 0)


@pytest.mark.spec("MS-MQQB 3.1.6.5", "MS-MQQB 3.1.7.1.3", "MS-MQQB 3.1.6.9")
def test_without_an_order_ack_all_is_sent_again_and_the_first_has_no_previous_one() -> None:
    pair = StrictPair(there=Readings(order_ack_s=10_000.0))
    pair.here.commit([letter(SAFE, b"1"), letter(SAFE, b"2")], pair.now)
    pair.run(31.0)
    places = [each.transaction for each in messages(pair, HERE)]
    assert [(each.number, each.previous) for each in places if each] == [(1, 0), (2, 1)] * 2
    assert pair.bodies(THERE, SAFE) == [b"1", b"2"]


@pytest.mark.spec("MS-MQQB 3.1.1.3.1", "MS-MQQB 3.1.1.3.2", "MS-MQQB 3.1.5.7")
@pytest.mark.parametrize("who", [HERE, THERE])
def test_what_must_survive_survives_a_failure_at_any_time(who: str) -> None:
    pair = StrictPair()
    pair.here.commit([letter(SAFE, b"%d" % at, journal=True) for at in range(3)], pair.now)
    pair.here.send(letter(PLAIN, b"express"), pair.now)
    pair.here.send(letter(PLAIN, b"recoverable", recoverable=True), pair.now)
    pair.keep()
    pair.restart(who)
    pair.run(40.0)
    pair.restart(who)
    pair.run(40.0)
    assert pair.bodies(THERE, SAFE) == [b"0", b"1", b"2"]
    assert b"recoverable" in pair.bodies(THERE, PLAIN)
    pair.flow()
    pair.restart(who)
    pair.run(40.0)
    assert all(queue.is_empty for queue in pair.here.outgoing.queues.values())
    if who is THERE:
        assert len(pair.events(HERE, "journal")) == 3


@pytest.mark.spec("MS-MQQB 3.1.5.6", "MS-MQQB 3.1.5.7", "MS-MQQB 3.1.1.3.1")
def test_acknowledgments_of_others_change_nothing() -> None:
    pair = StrictPair(there=Readings(order_ack_s=10_000.0))
    (sent,) = pair.here.commit([letter(SAFE, journal=True)], pair.now)
    pair.run(5.0)
    (queue,) = pair.here.outgoing.queues.values()
    stranger = b"s" * 16
    pair.here.outgoing.ordered(stranger, queue.sequence, 1, pair.now)
    pair.here.outgoing.final(stranger, sent.message_id, ACK_RECEIVE)
    assert len(queue.table) == 1
    assert not pair.events(HERE, "journal")
    pair.here.outgoing.ordered(pair.there.guid, queue.sequence, 1, pair.now)
    assert (len(queue.table), len(queue.awaiting_final)) == (0, 1)
    pair.here.outgoing.final(pair.there.guid, sent.message_id, ACK_RECEIVE)
    assert queue.is_empty
    assert len(pair.events(HERE, "journal")) == 1


@pytest.mark.spec("MS-MQQB 3.1.5.8.2", "MS-MQQB 2.2.4", "MS-MQQB 2.2.5")
@pytest.mark.parametrize("orders", [False, True])
def test_a_message_for_no_queue_gets_a_negative_final_ack(orders: bool) -> None:
    pair = StrictPair(there=Readings(orders_rejected=orders))
    pair.here.commit([letter(r"private$\none", dead_letter=True)], pair.now)
    pair.run(3.0)
    assert len(messages(pair, THERE, NACK_BAD_DST_Q)) == 1
    assert bool(messages(pair, THERE, ORDER_ACK)) == orders
    assert len(pair.events(HERE, "dead")) == 1
    assert all(queue.is_empty for queue in pair.here.outgoing.queues.values())


@pytest.mark.spec("MS-MQQB 3.1.7.1.2", "MS-MQQB 3.1.5.8.8", "MS-MQQB 3.1.7.15")
def test_what_expires_or_finds_no_room_is_told_of() -> None:
    pair = StrictPair()
    pair.here.create_queue(r"private$\admin", 30)
    pair.there.create_queue(r"private$\small", 31, quota=0)
    admin = direct(f"TCP:{HERE}\\private$\\admin")
    pair.cut = True
    pair.here.send(letter(PLAIN, asked=4, admin=admin, time_to_reach=2, dead_letter=True), pair.now)
    pair.run(3.0)
    pair.cut = False
    pair.here.send(letter(r"private$\small", asked=4, admin=admin), pair.now)
    pair.run(10.0)
    assert len(pair.events(HERE, "dead")) == 1
    queue = pair.here.incoming.queues[r"private$\admin"]
    told = [each.message.message_class for each in queue.messages.values()]
    assert sorted(told) == [NACK_REACH_QUEUE_TIMEOUT, NACK_Q_EXCEED_QUOTA]


@pytest.mark.spec("MS-MQQB 3.1.5.8", "MS-MQMQ 2.2.19.1")
@pytest.mark.parametrize("first", [True, False])
def test_what_comes_late_is_ignored_or_takes_its_place_as_one_reads_it(first: bool) -> None:
    pair = StrictPair(there=Readings(expires_first=first))
    pair.here.commit([letter(SAFE, time_to_reach=5)], pair.now)
    pair.there.wall += 100
    pair.flow()
    assert bool(pair.there.incoming.sequences) != first
    assert bool(messages(pair, THERE, NACK_REACH_QUEUE_TIMEOUT)) != first
    assert not pair.bodies(THERE, SAFE)


# Helpers.


@pytest.mark.parametrize(
    ("count", "near", "expected"),
    [(5, 3, 5), (0xFFFF, 0x10001, 0xFFFF), (2, 0xFFFE, 0x10002), (0, 0, 0)],
)
def test_a_count_of_sixteen_bits_is_the_nearest(count: int, near: int, expected: int) -> None:
    assert nearest(count, near) == expected


@pytest.mark.spec("MS-MQQB 3.1.5.1.3")
def test_what_does_not_conform_closes_the_session() -> None:
    pair = StrictPair()
    pair.here.send(letter(PLAIN), pair.now)
    pair.flow()
    (session,) = pair.there.connections.sessions
    data = bytearray(pair.sent[-1][1])
    data[4] ^= 1
    session.receive(bytes(data), pair.now)
    assert "not conforming" in session.reason
    assert frame(pair.sent[-1][1])
