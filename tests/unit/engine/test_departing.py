"""Messages leave for other queue managers, and stay until the other side has them."""

from __future__ import annotations

from typing import Any

import pytest

from merq.engine.departing import SKIPPED_S, UNDER_WAY_S
from merq.engine.transfer import Departure
from merq.hresult import HResult
from merq.model.message_class import MessageClass
from merq.wire.view import MessageView
from unit.engine.conftest import Lower
from unit.engine.engine_world import START, World, refused
from unit.engine.foreign_world import (
    ELSEWHERE,
    ORDER_QUEUE,
    RECEIVER,
    REMOTE,
    SEQUENCE,
    arrive,
    commit,
    depart,
    final_ack,
    foreign,
    order_ack,
    outgoing,
    place,
    transfer,
)

JOURNAL = r".\system$;JOURNAL"
DEAD_LETTER = r".\system$;DEADLETTER"
DEAD_XACT = r".\system$;DEADXACT"


def bodies(departures: list[Departure]) -> list[bytes]:
    return [MessageView(each.packet).body for each in departures]


def places(departures: list[Departure]) -> list[tuple[int, int]]:
    """Number and previous number of each."""
    views = [MessageView(each.packet) for each in departures]
    return [(view.tx_sequence_number, view.previous_tx_sequence_number) for view in views]


def sequence_of(world: World) -> int:
    return transfer(world).sequence_id


def acknowledge(world: World, departures: list[Departure]) -> None:
    messages = [(each.lookup_id, each.packet[61] & 2 != 0) for each in departures]
    world.engine.departures.acknowledged(outgoing(world), messages)
    world.perform()


def left(world: World) -> list[bytes]:
    return world.bodies(outgoing(world).number)


# Order.


@pytest.mark.spec("MS-MQQB 3.1.7.1", "MS-MQQB 3.1.7.12")
def test_messages_leave_by_priority_and_then_in_the_order_of_sending(world: World) -> None:
    for body, priority in ((b"a", 3), (b"b", 3), (b"c", 7), (b"d", 0)):
        world.send_to(REMOTE, body=body, priority=priority, recoverable=body == b"b")
    found = depart(world)
    assert bodies(found) == [b"c", b"a", b"b", b"d"]
    assert [each.is_recoverable for each in found] == [False, False, True, False]
    assert not any(each.is_ordered or each.is_traced for each in found)
    assert depart(world) == []
    world.send_to(REMOTE, body=b"e", priority=5)
    assert bodies(depart(world)) == [b"e"]


@pytest.mark.spec("MS-MQQB 3.1.7.1")
def test_no_more_leave_than_there_is_room_for_but_one_always(world: World) -> None:
    for number in range(5):
        world.send_to(REMOTE, body=b"%d" % number)
    departures, queue = world.engine.departures, outgoing(world)
    assert bodies(departures.next(queue, 2, 1 << 20, RECEIVER)) == [b"0", b"1"]
    assert bodies(departures.next(queue, 100, 1, RECEIVER)) == [b"2"]
    assert bodies(departures.next(queue, 100, 1 << 20, RECEIVER)) == [b"3", b"4"]


@pytest.mark.spec("MS-MQQB 3.1.3.2", "MS-MQQB 3.1.5.9")
def test_what_was_not_acknowledged_leaves_again_after_a_rewind(world: World) -> None:
    for number in range(4):
        world.send_to(REMOTE, body=b"%d" % number)
    acknowledge(world, depart(world)[1:2])
    world.engine.state.outbound.clear()
    world.engine.departures.rewind(outgoing(world))
    assert outgoing(world) in world.engine.state.outbound
    assert bodies(depart(world)) == [b"0", b"2", b"3"]


@pytest.mark.spec("MS-MQQB 3.1.4.1", "MS-MQQB 3.1.3.2")
@pytest.mark.spec("MS-MQQB 3.1.1.3.2")
@pytest.mark.spec("MS-MQQB 3.1.1.3.1#OutgoingMessageTable")
def test_after_a_restart_what_is_recoverable_leaves_again(world: World) -> None:
    for body in (b"a", b"b"):
        world.send_to(REMOTE, body=body, recoverable=body == b"b")
    depart(world)
    world.restart()
    assert not transfer(world).is_under_way
    assert bodies(depart(world)) == [b"b"]


# Session acknowledgments.


@pytest.mark.spec("MS-MQQB 3.1.5.5.2", "MS-MQQB 3.1.5.5.3", "MS-MQQB 3.1.5.5.4")
def test_a_message_that_the_other_side_has_goes_into_the_journal_if_that_was_wanted(
    world: World,
) -> None:
    world.send_to(REMOTE, body=b"a", recoverable=True, positive_journaling=True)
    world.send_to(REMOTE, body=b"b", recoverable=True, negative_journaling=True)
    found = depart(world)
    assert world.bodies(world.find(JOURNAL)) == []
    acknowledge(world, found)
    acknowledge(world, found)
    assert left(world) == []
    assert world.bodies(world.find(JOURNAL)) == [b"a"]
    world.restart()
    assert world.engine.outgoing_queues() == []
    assert world.bodies(world.find(JOURNAL)) == [b"a"]


@pytest.mark.spec("MS-MQQB 3.1.5.5.4")
def test_what_is_passed_on_for_others_is_not_in_our_journal(world: World) -> None:
    world.engine.arrivals.forwards = True
    packet = foreign(r"TCP:10.0.0.9\private$\orders", body=b"a", positive_journaling=True)
    arrive(world, packet[:32] + ELSEWHERE.bytes_le + packet[48:])
    acknowledge(world, depart(world))
    assert left(world) == []
    assert world.bodies(world.find(JOURNAL)) == []


@pytest.mark.spec("MS-MQQB 3.1.5.5.3")
def test_a_removal_that_the_disk_does_not_take_leaves_the_message(world: World) -> None:
    world.send_to(REMOTE, body=b"a", recoverable=True)
    found = depart(world)
    world.full = 1
    acknowledge(world, found)
    assert left(world) == [b"a"]
    world.engine.departures.rewind(outgoing(world))
    found = depart(world)
    assert bodies(found) == [b"a"]
    acknowledge(world, found)
    assert left(world) == []


# Sequences.


@pytest.mark.spec("MS-MQQB 3.1.1.5", "MS-MQQB 3.1.7.1.3", "MS-MQQB 3.1.1.3.1")
@pytest.mark.spec("MS-MQQB 3.1.1.3.1#OutgoingTxSequenceNumber", "MS-MQQB 3.1.7.1.3#sequence")
def test_committed_messages_are_numbered_from_one_in_a_sequence_of_their_own(world: World) -> None:
    commit(world, b"a", b"b")
    commit(world, b"c")
    found = depart(world)
    assert bodies(found) == [b"a", b"b", b"c"]
    assert places(found) == [(1, 0), (2, 1), (3, 2)]
    assert all(each.is_ordered and each.is_recoverable for each in found)
    views = [MessageView(each.packet) for each in found]
    assert {view.tx_sequence_id for view in views} == {START << 32 | 1}
    assert [each.number for each in transfer(world).unordered] == [1, 2, 3]


@pytest.mark.spec("MS-MQQB 3.1.1.5")
@pytest.mark.spec("MS-MQQB 3.1.7.1.3#sequence")
def test_numbers_are_given_in_the_order_of_the_commits(world: World) -> None:
    first, second = world.begin(), world.begin()
    world.send_to(REMOTE, first, body=b"first")
    world.send_to(REMOTE, second, body=b"second")
    world.commit(second)
    world.abort(world.begin())
    world.commit(first)
    assert [
        (body, place) for body, place in zip(left(world), places(depart(world)), strict=True)
    ] == [
        (b"second", (1, 0)),
        (b"first", (2, 1)),
    ]


@pytest.mark.spec("MS-MQQB 3.1.1.5")
@pytest.mark.spec("E58")
def test_each_destination_has_its_own_sequence(world: World) -> None:
    other = r"DIRECT=TCP:10.0.0.8\private$\orders"
    commit(world, b"a")
    commit(world, b"b", name=other)
    commit(world, b"c")
    assert places(depart(world)) == [(1, 0), (2, 1)]
    assert places(depart(world, other)) == [(1, 0)]
    assert sequence_of(world) != transfer(world, other).sequence_id


@pytest.mark.spec("MS-MQQB 3.1.5.6", "MS-MQQB 3.1.1.3.1")
@pytest.mark.spec("MS-MQQB 3.1.5.6#delete", "MS-MQQB 3.1.5.6#new-sequence", "E61")
def test_an_empty_queue_begins_a_new_sequence_above_all_before(world: World) -> None:
    commit(world, b"a", b"b")
    first = sequence_of(world)
    depart(world)
    arrive(world, order_ack(first, 2))
    assert left(world) == []
    commit(world, b"c")
    assert sequence_of(world) > first
    assert places(depart(world)) == [(1, 0)]


@pytest.mark.spec("MS-MQQB 3.1.1.3.1")
def test_a_sequence_goes_on_while_anything_of_it_is_on_its_way_to_the_disk(world: World) -> None:
    world.durable_at_once = False
    for body in (b"a", b"b"):
        transaction = world.begin()
        world.send_to(REMOTE, transaction, body=body)
        world.commit(transaction)
    world.sync()
    assert places(depart(world)) == [(1, 0), (2, 1)]


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("clock", [10, -1000])
@pytest.mark.spec("MS-MQQB 3.1.1.3.1")
@pytest.mark.spec(
    "MS-MQQB 3.1.1.3.1#OutgoingTxSequenceID", "MS-MQQB 3.1.1.3.1#OutgoingTxSequenceNumber", "E59"
)
def test_after_a_restart_sequences_are_above_all_before_whatever_the_clock_says(
    world: World, checkpoint: bool, clock: int
) -> None:
    commit(world, b"a", b"b")
    first = sequence_of(world)
    if checkpoint:
        world.checkpoint()
    world.now += clock
    world.restart()
    commit(world, b"c")
    second = sequence_of(world)
    assert second > first, "who knows which numbers were given since"
    assert places(depart(world)) == [(1, 0), (2, 1)], "the next begins when this one has arrived"
    arrive(world, order_ack(first, 2))
    assert places(depart(world)) == [(1, 0)]
    arrive(world, order_ack(second, 1, ordinal=901))
    assert left(world) == []
    if checkpoint:
        world.checkpoint()
    world.restart()
    commit(world, b"d")
    assert sequence_of(world) > second


@pytest.mark.limit("merq.engine.transfer.SEQUENCE_NUMBER_MAX")
def test_a_sequence_that_has_no_numbers_left_is_followed_by_another(
    world: World, lower: Lower
) -> None:
    lower("merq.engine.outgoing", "SEQUENCE_NUMBER_MAX", 3)
    commit(world, b"a", b"b")
    first = transfer(world).sequence_id
    commit(world, b"c", b"d")
    found = depart(world)
    assert bodies(found) == [b"a", b"b"], "the next begins when this one has arrived"
    arrive(world, order_ack(first, 2))
    assert places(depart(world)) == [(1, 0), (2, 1)]


@pytest.mark.parametrize("is_full", [False, True])
def test_nothing_overtakes_what_is_being_given_up(world: World, is_full: bool) -> None:
    commit(world, b"a", time_to_reach_queue=5)
    commit(world, b"b")
    world.engine.tick(world.now + 6)
    going = world.engine.departures.next(outgoing(world), 10, 1 << 30, RECEIVER)
    assert going == [], "it is not gone yet, and may have to stay"
    world.full = 1 if is_full else 0
    world.perform()
    assert left(world) == ([b"a", b"b"] if is_full else [b"b"])
    world.tick(7)
    assert places(depart(world)) == [(2, 0)]


@pytest.mark.spec("MS-MQQB 3.1.7.1.3", "MS-MQQB 3.1.6.5")
@pytest.mark.spec("MS-MQQB 3.1.7.1.3#previous", "E60")
def test_the_first_that_leaves_again_bridges_the_gap_before_it(world: World) -> None:
    commit(world, b"a", b"b", b"c")
    depart(world)
    arrive(world, order_ack(sequence_of(world), 1))
    world.engine.departures.rewind(outgoing(world))
    assert places(depart(world)) == [(2, 0), (3, 2)]


@pytest.mark.spec("MS-MQQB 3.1.7.1.2", "MS-MQQB 3.1.7.1.3", "MS-MQQB 3.1.1.5")
@pytest.mark.spec("MS-MQQB 3.1.7.1.3#previous", "E60")
def test_a_message_that_expired_before_it_left_makes_a_gap_that_is_told(world: World) -> None:
    commit(world, b"a")
    commit(world, b"b", time_to_reach_queue=5, negative_journaling=True)
    commit(world, b"c")
    world.tick(6)
    assert places(depart(world)) == [(1, 0), (3, 1)]
    (dead,) = world.messages(world.find(DEAD_XACT))
    assert dead.message_class == MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT


# OrderAcks.


@pytest.mark.spec("MS-MQQB 3.1.5.6", "MS-MQQB 3.1.1.6.2", "MS-MQDMPR 3.1.1.4")
@pytest.mark.spec(
    "MS-MQQB 3.1.5.5.3#transactional", "MS-MQQB 3.1.5.6#LastAck", "MS-MQQB 3.1.5.6#UnackedSequence"
)
def test_an_order_ack_ends_what_it_names_and_all_before(world: World) -> None:
    commit(world, b"a", b"b", b"c")
    acknowledged = depart(world)
    assert left(world) == [b"a", b"b", b"c"], "a session acknowledgment does not end them"
    world.tick(3)
    arrived = arrive(world, order_ack(sequence_of(world), 2))
    assert arrived.ordered == [outgoing(world)]
    assert left(world) == [b"c"]
    state = transfer(world)
    assert [each.number for each in state.unordered] == [3]
    assert state.ordered_up_to == acknowledged[1].lookup_id
    assert (state.last_ack, state.last_ack_time) == ((sequence_of(world), 2), START + 3)
    assert state.last_ack_count == 1
    arrive(world, order_ack(sequence_of(world), 1, ordinal=901))
    assert (state.last_ack, state.last_ack_count) == ((sequence_of(world), 2), 2)
    assert len(acknowledged) == 3
    assert world.bodies(world.find(r".\private$\order_queue$")) == [], "they are not kept"


@pytest.mark.parametrize(
    "name", [r"TCP:10.0.0.1\PRIVATE$\order_queue$", r"tcp:fe80::1\private$\ORDER_QUEUE$"]
)
@pytest.mark.spec("MS-MQQB 3.1.5.1.1", "MS-MQQB 3.1.5.6")
def test_an_order_ack_may_come_by_a_direct_name(world: World, name: str) -> None:
    commit(world, b"a")
    depart(world)
    arrive(world, order_ack(sequence_of(world), 1, name=name))
    assert left(world) == []


@pytest.mark.spec("MS-MQQB 3.1.5.6")
@pytest.mark.spec("MS-MQQB 3.1.5.6#delete", "E61")
def test_an_order_ack_of_what_was_never_sent_ends_nothing(world: World) -> None:
    commit(world, b"a")
    assert arrive(world, order_ack(SEQUENCE, 9)).ordered == []
    assert arrive(world, order_ack(sequence_of(world), 1, ordinal=901)).ordered == []
    assert left(world) == [b"a"]
    assert bodies(depart(world)) == [b"a"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"label": "QM Ordering Ack "},
        {"body": bytes(35)},
        {"body": bytes(37)},
        {"message_class": 1},
        {"message_class": 0},
    ],
)
@pytest.mark.spec("MS-MQQB 3.1.5.1.1")
def test_what_only_looks_like_an_acknowledgment_is_none(
    world: World, wrong: dict[str, Any]
) -> None:
    commit(world, b"a")
    depart(world)
    fields: dict[str, Any] = {
        "label": "QM Ordering Ack",
        "message_class": MessageClass.MQMSG_CLASS_ORDER_ACK,
        "body": sequence_of(world).to_bytes(8, "little") + b"\1\0\0\0" + bytes(24),
    }
    arrive(world, foreign(r"OS:here\private$\order_queue$", **(fields | wrong)))
    assert left(world) == [b"a"]


@pytest.mark.spec("MS-MQQB 3.1.5.6", "MS-MQQB 3.1.5.5.4", "MS-MQQB 3.1.1.6.2")
@pytest.mark.spec("MS-MQQB 3.1.5.6#AwaitingFinalACK", "MS-MQQB 3.1.5.7#journal")
def test_a_message_that_wants_a_copy_stays_for_its_final_ack(world: World) -> None:
    commit(world, b"a", positive_journaling=True)
    commit(world, b"b")
    commit(world, b"c", negative_journaling=True)
    views = [MessageView(each.packet) for each in depart(world)]
    assert [view.final_ack_required for view in views] == [True, False, True]
    arrive(world, order_ack(sequence_of(world), 3))
    assert left(world) == [b"a", b"c"]
    assert len(transfer(world).awaiting_final) == 2
    world.engine.departures.rewind(outgoing(world))
    assert depart(world) == [], "they have arrived, and are not sent again"
    arrive(world, final_ack(views[0]))
    assert left(world) == [b"c"]
    assert world.bodies(world.find(JOURNAL)) == [b"a"]
    arrive(world, final_ack(views[2], ordinal=951))
    assert (left(world), transfer(world).awaiting_final) == ([], set())
    assert world.bodies(world.find(DEAD_XACT)) == []


# FinalAcks.


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.5.7", "MS-MQQB 3.1.5.5.4")
@pytest.mark.spec("MS-MQQB 3.1.5.7#dead-letter")
def test_a_negative_final_ack_puts_the_message_into_the_dead_letter_queue(
    world: World, ordered: bool, restarted: bool
) -> None:
    commit(world, b"a", negative_journaling=True)
    commit(world, b"b", positive_journaling=True)
    views = [MessageView(each.packet) for each in depart(world)]
    if ordered:
        arrive(world, order_ack(sequence_of(world), 2))
    if restarted:
        world.restart()
    reason = MessageClass.MQMSG_CLASS_NACK_Q_DELETED
    for ordinal, view in enumerate(views):
        arrive(world, final_ack(view, reason, ordinal=950 + ordinal))
    assert left(world) == []
    (dead,) = world.messages(world.find(DEAD_XACT))
    assert (dead.body, dead.message_class) == (b"a", reason)
    assert world.bodies(world.find(JOURNAL)) == []
    arrive(world, order_ack(views[0].tx_sequence_id, 2, ordinal=990))
    assert left(world) == []


@pytest.mark.spec("MS-MQQB 3.1.5.7", "MS-MQDMPR 3.1.1.12")
@pytest.mark.spec("MS-MQQB 3.1.5.7#own-dead-letter")
def test_the_applications_own_dead_letter_queue_is_used_if_it_named_one(world: World) -> None:
    own = world.create("dead", transactional=True)
    commit(world, b"a", negative_journaling=True, dead_letter=r".\private$\dead")
    (departure,) = depart(world)
    view = MessageView(departure.packet)
    arrive(world, final_ack(view, MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q))
    assert world.bodies(own) == [b"a"]
    assert world.bodies(world.find(DEAD_XACT)) == []


@pytest.mark.spec("MS-MQQB 3.1.5.7")
@pytest.mark.spec("MS-MQQB 3.1.5.7#MessageID")
def test_a_final_ack_of_somebody_elses_message_does_nothing(world: World) -> None:
    commit(world, b"a", negative_journaling=True)
    view = MessageView(depart(world)[0].packet)
    arrive(world, final_ack(view, source=ELSEWHERE))
    unknown = MessageView(view.packet[:56] + b"\xee\xee\0\0" + view.packet[60:])
    arrive(world, final_ack(unknown, ordinal=951))
    assert left(world) == [b"a"]


# Expiry of what may have arrived.


@pytest.mark.spec("MS-MQQB 3.1.7.1.2")
def test_what_never_left_expires_in_time(world: World) -> None:
    world.send_to(REMOTE, body=b"a", time_to_reach_queue=5, negative_journaling=True)
    world.tick(6)
    assert (left(world), world.bodies(world.find(DEAD_LETTER))) == ([], [b"a"])
    assert depart(world) == []


@pytest.mark.spec("MS-MQQB 3.1.7.1.2", "MS-MQQB 3.1.5.7")
@pytest.mark.spec("MS-MQQB 3.1.7.1.2#transmitted", "E65")
def test_what_is_under_way_does_not_expire_because_the_other_side_may_have_it(
    world: World,
) -> None:
    commit(world, b"a", time_to_reach_queue=5, negative_journaling=True)
    view = MessageView(depart(world)[0].packet)
    world.tick(60)
    assert left(world) == [b"a"]
    world.engine.departures.rewind(outgoing(world))
    assert bodies(depart(world)) == [b"a"], "and is asked what became of it"
    arrive(world, final_ack(view))
    assert (left(world), world.bodies(world.find(DEAD_XACT))) == ([], [])


@pytest.mark.spec("MS-MQQB 3.1.7.1.2")
@pytest.mark.spec("MS-MQQB 3.1.7.1.2#transmitted", "E65")
def test_what_nobody_says_anything_about_is_given_up_in_the_end(world: World) -> None:
    world.engine.departures.in_doubt_s = 100
    world.send_to(
        REMOTE, body=b"a", recoverable=True, time_to_reach_queue=5, negative_journaling=True
    )
    depart(world)
    world.tick(6)
    world.engine.departures.rewind(outgoing(world))
    assert world.engine.departures.next_deadline() == START + 106
    assert world.engine.next_deadline() == START + 106
    world.tick(99)
    assert left(world) == [b"a"]
    world.tick(2)
    assert (left(world), world.bodies(world.find(DEAD_LETTER))) == ([], [b"a"])
    assert world.engine.departures.next_deadline() is None


@pytest.mark.spec("MS-MQQB 3.1.7.1.2", "MS-MQQB 3.1.6.5", "E101")
def test_what_is_given_up_for_two_reasons_in_one_tick_leaves_once(world: World) -> None:
    world.engine.departures.in_doubt_s = 100
    commit(world, b"in time")
    commit(world, b"late", time_to_reach_queue=5, negative_journaling=True)
    commit(world, b"behind it")
    queue = outgoing(world)
    sequence = MessageView(depart(world)[0].packet).tx_sequence_id
    arrive(world, order_ack(sequence, 1))
    world.tick(6)
    world.engine.departures.resend(queue)
    assert bodies(depart(world)) == [b"late", b"behind it"]
    arrive(world, order_ack(sequence, 1, ordinal=901))
    world.tick(100)  # the time of doubt ends with the next second
    world.engine.departures.resend(queue)
    world.tick(1)
    assert left(world) == [b"behind it"]
    assert world.bodies(world.find(DEAD_XACT)) == [b"late"]
    assert bodies(depart(world)) == [b"behind it"]


@pytest.mark.spec("MS-MQQB 3.1.7.1.2")
def test_what_is_on_its_way_just_then_is_looked_at_again_later(world: World) -> None:
    world.engine.departures.in_doubt_s = 100
    world.send_to(REMOTE, body=b"a", time_to_reach_queue=5)
    depart(world)
    world.tick(6)
    world.engine.departures.rewind(outgoing(world))
    found = depart(world)
    assert bodies(found) == [b"a"]
    world.tick(200)
    assert left(world) == [b"a"]
    assert world.engine.departures.next_deadline() == START + 206 + UNDER_WAY_S
    acknowledge(world, found)
    world.tick(UNDER_WAY_S + 1)
    assert world.engine.departures.next_deadline() is None


# What others want with it.


@pytest.mark.spec("MS-MQQB 3.1.7.13", "MS-MQDMPR 3.1.1.3")
def test_what_is_under_way_is_not_for_anybody_else_to_receive(world: World) -> None:
    world.send_to(REMOTE, body=b"a")
    number = outgoing(world).number
    found = depart(world)
    text = refused(HResult.MQ_ERROR_OPERATION_CANCELLED, lambda: world.receive(number))
    assert "on their way" in text
    acknowledge(world, found)
    world.engine.departures.rewind(outgoing(world))
    world.send_to(REMOTE, body=b"b")
    assert world.body(world.receive(number)) == b"b"


@pytest.mark.parametrize(("delete", "expected"), [(False, [(1, 0), (2, 1)]), (True, [(2, 0)])])
@pytest.mark.spec("MS-MQQB 3.1.7.1", "MS-MQQB 3.1.1.5")
def test_a_message_that_somebody_holds_is_waited_for(
    world: World, delete: bool, expected: list[tuple[int, int]]
) -> None:
    commit(world, b"a", b"b")
    number = outgoing(world).number
    (held, _) = world.lookup_ids(number)
    world.hold(number)
    assert depart(world) == [], "nothing may overtake it"
    world.engine.state.outbound.clear()
    world.end_hold(number, held, delete=delete)
    assert outgoing(world) in world.engine.state.outbound, "what waits has its turn"
    assert places(depart(world)) == expected


@pytest.mark.spec("MS-MQQB 3.1.5.9", "MS-MQQB 3.1.5.5.3")
def test_a_purge_takes_what_waits_and_leaves_what_is_under_way(world: World) -> None:
    for body in (b"a", b"b", b"c"):
        world.send_to(REMOTE, body=body, recoverable=True)
    number = outgoing(world).number
    found = depart(world, most=1)
    world.purge(number)
    assert left(world) == [b"a"], "the other side may have it"
    assert depart(world) == []
    acknowledge(world, found)
    assert left(world) == []
    acknowledge(world, found)


@pytest.mark.spec("MS-MQQB 2.2.4", "MS-MQQB 3.1.7.17")
def test_final_acks_leave_as_any_recoverable_message(world: World) -> None:
    world.create("q")
    arrive(world, foreign("q", transaction=place(1)))
    (departure,) = depart(world, ORDER_QUEUE)
    assert (departure.is_recoverable, departure.is_ordered) == (True, False)


@pytest.mark.spec("MS-MQQB 3.1.7.1.2")
def test_time_that_the_clock_skipped_does_not_count_for_what_is_in_doubt(world: World) -> None:
    world.engine.departures.in_doubt_s = 100
    world.send_to(REMOTE, body=b"a", recoverable=True, time_to_reach_queue=5)
    depart(world)
    world.tick(6)
    world.engine.departures.rewind(outgoing(world))
    world.tick(SKIPPED_S + 1)  # the computer slept: nobody could have said anything
    assert left(world) == [b"a"]
    world.tick(101)
    assert left(world) == []
