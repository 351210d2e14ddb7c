"""A queue is purged or deleted: most messages go as runs, and it is as if each went alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merq.engine import records
from merq.engine.notices import NEGATIVE_RECEIVE
from merq.engine.positions import LOCKED, PURGE_PENDING
from merq.engine.purging import LOST_AT_ONCE
from merq.engine.relocating import Relocation
from merq.hresult import HResult
from merq.model.message_class import MessageClass
from merq.model.selecting import ByLookup
from unit.engine.bulk_world import BulkWorld
from unit.engine.foreign_world import (
    ORDER_QUEUE,
    REMOTE,
    THERE,
    arrive,
    depart,
    foreign,
    leaving,
    outgoing,
    place,
)
from unit.engine.test_removing_runs import seen

ADMIN = r"OS:.\private$\admin"
DEAD_LETTER = r".\system$;DEADLETTER"
LIFETIME_S = 50


@dataclass(frozen=True)
class Sent:
    """What matters of a message for how it is lost."""

    is_recoverable: bool
    priority: int
    lives: bool
    is_kept: bool
    is_told: bool

    @property
    def fields(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "recoverable": self.is_recoverable,
            "priority": self.priority,
            "negative_journaling": self.is_kept,
        }
        if not self.lives:
            found["time_to_be_received"] = LIFETIME_S
        if self.is_told:
            found |= {"admin_queue": ADMIN, "acknowledgments": NEGATIVE_RECEIVE}
        return found


rarely = st.sampled_from([False, False, False, True])
sent = st.builds(
    Sent, st.sampled_from([True, True, False]), st.sampled_from([3, 3, 4]), rarely, rarely, rarely
)
sends = st.lists(sent, min_size=1, max_size=14)
fates = st.sampled_from(["purge", "delete"])


def filled(messages: list[Sent], gone: set[int]) -> tuple[BulkWorld, int, list[tuple[bytes, Sent]]]:
    """A queue with these messages, of which some were received; those left in their order."""
    world = BulkWorld()
    world.create("admin")
    number = world.create("orders")
    for row, each in enumerate(messages):
        world.send(number, body=bytes([row]), **each.fields)
    ids = world.lookup_ids(number)
    for lookup_id in [ids[row] for row in gone if row < len(ids)]:
        world.receive(number, ByLookup(lookup_id))
    left = [(body, messages[body[0]]) for body in world.bodies(number)]
    return world, number, left


def lose(world: BulkWorld, number: int, fate: str) -> int:
    return world.purge(number) if fate == "purge" else world.delete(number)


@settings(max_examples=150)
@given(messages=sends, gone=st.sets(st.integers(0, 13), max_size=7), fate=fates)
@pytest.mark.spec("MS-MQDMPR 3.1.7.1.7", "MS-MQDMPR 3.1.7.1.4")
def test_all_go_and_those_who_asked_are_told_in_the_order_of_the_queue(
    messages: list[Sent], gone: set[int], fate: str
) -> None:
    world, number, left = filled(messages, gone)
    state = world.engine.state
    request = lose(world, number, fate)
    if fate == "purge":
        assert world.answers[request] == len(left)
        assert world.bodies(number) == []
        queue = state.queues[number]
        assert (len(queue.by_message_id), queue.left, queue.expired) == (0, len(messages), set())
    kept = [body for body, each in left if each.is_kept]
    told = [body for body, each in left if each.is_told]
    dead, admin = world.find(DEAD_LETTER), world.find(r".\private$\admin")
    assert world.bodies(dead) == kept
    assert world.bodies(admin) == told
    assert len(state.expiries) == 0
    assert sum(world.packets.kept.values()) + state.memory_bytes == state.taken_bytes
    world.restart()
    stored = [body for body, each in left if each.is_recoverable and each.is_kept]
    assert world.bodies(world.find(DEAD_LETTER)) == stored
    assert number not in world.engine.state.queues or world.bodies(number) == []


@settings(max_examples=100)
@given(messages=sends, gone=st.sets(st.integers(0, 13), max_size=7), fate=fates)
def test_a_full_disk_takes_all_of_it_back(messages: list[Sent], gone: set[int], fate: str) -> None:
    # One that is written in any case, so that there is something to fail.
    surely = Sent(is_recoverable=True, priority=3, lives=True, is_kept=False, is_told=False)
    world, number, left = filled([*messages, surely], gone - {len(messages)})
    before = seen(world)
    world.full = 1
    request = lose(world, number, fate)
    assert world.code(request) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert seen(world) == before
    # Whoever receives gets them as before.
    for body, _ in left:
        assert world.body(world.receive(number)) == body


@pytest.mark.parametrize("is_full", [False, True])
def test_what_others_have_stays_or_is_marked_and_the_rest_goes(is_full: bool) -> None:
    """Locked, held, reserved, on its way out and given back, with others between them."""
    world = BulkWorld()
    number = world.create("orders", transactional=True)
    world.fill(number, *[bytes([row]) for row in range(20)])
    queue = world.engine.state.queues[number]
    ids = world.lookup_ids(number)
    reserved = world.reserve(number, most=2)
    locking = world.begin()
    world.receive(number, ByLookup(ids[5]), transaction=locking)
    aborted = world.begin()
    world.receive(number, ByLookup(ids[9]), transaction=aborted)
    world.abort(aborted)
    world.receive(number, ByLookup(ids[9]), transaction=locking)
    world.hold(number, ByLookup(ids[12]))
    world.durable_at_once = False
    world.receive(number, ByLookup(ids[15]))
    before = seen(world)
    world.full = int(is_full)
    request = world.purge(number)
    if is_full:
        assert world.code(request) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
        assert seen(world) == before
        return
    states = {ids.index(each.lookup_id): each.state for each in queue.positions}
    assert states == {row: LOCKED if row < 2 else PURGE_PENDING for row in range(20)}
    world.sync()
    assert world.answers[request] == 18
    assert world.lookup_ids(number) == [*ids[:2], ids[5], ids[9], ids[12]]
    world.durable_at_once = True
    world.abort(locking)
    world.end_hold(number, ids[12], delete=False)
    world.acknowledge(number, reserved.end)
    assert world.bodies(number) == []
    assert (queue.notes, queue.held, queue.reserved()) == ({}, {}, set())
    assert world.engine.state.taken_bytes == 0


def test_what_is_being_given_back_goes_at_once_and_comes_back_if_the_disk_is_full() -> None:
    for is_full in (False, True):
        world = BulkWorld()
        number = world.create("orders", transactional=True)
        world.fill(number, b"a", b"b", b"c")
        within = world.begin()
        world.receive(number, ByLookup(world.lookup_ids(number)[1]), transaction=within)
        world.durable_at_once = False
        world.abort(within)
        world.full = int(is_full)
        world.purge(number)
        assert world.available(number) == (2 if is_full else 0), "not before it was given back"
        world.durable_at_once = True
        world.sync()
        assert world.bodies(number) == ([b"a", b"b", b"c"] if is_full else [])
        if is_full:
            assert world.available(number) == 3, "and anybody can get it"


def test_messages_with_notes_and_their_own_dead_letter_queue_are_minded() -> None:
    world = BulkWorld()
    own = world.create("own")
    mine = r".\private$\own"
    for row in range(6):
        world.send_to(
            r"DIRECT=OS:.\private$\own" if row == 5 else REMOTE,
            body=bytes([row]),
            recoverable=True,
            negative_journaling=row % 2 == 0,
            dead_letter=mine if row == 2 else "",
        )
    world.receive(own)
    world.purge(outgoing(world).number)
    assert world.bodies(own) == [b"\2"], "the application chose that"
    assert world.bodies(world.find(DEAD_LETTER)) == [b"\0", b"\4"]
    # What is kept of a message is not the message: nobody is told of it.
    world.purge(own)
    assert world.bodies(world.find(DEAD_LETTER)) == [b"\0", b"\4"]
    world.restart()
    assert (world.bodies(own), world.bodies(world.find(DEAD_LETTER))) == ([], [b"\0", b"\4"])


def test_an_outgoing_queue_keeps_what_is_under_way_and_loses_what_waits() -> None:
    world = BulkWorld()
    for row in range(3):
        world.send_to(REMOTE, body=bytes([row]), recoverable=True, priority=3)
    depart(world)
    for row in range(3, 6):
        world.send_to(REMOTE, body=bytes([row]), recoverable=row != 4, priority=3)
    queue = outgoing(world)
    assert world.answers[world.purge(queue.number)] == 3
    assert world.bodies(queue.number) == [b"\0", b"\1", b"\2"]
    world.restart()
    assert world.bodies(queue.number) == [b"\0", b"\1", b"\2"]


@pytest.mark.spec("MS-MQQB 3.1.7.2.2", "MS-MQDMPR 3.1.7.1.7")
def test_the_sender_elsewhere_learns_after_a_restart_of_what_was_purged_while_it_was_held() -> None:
    world = BulkWorld()
    number = world.create("orders", transactional=True)
    arrive(world, foreign("orders", 1, transaction=place(1), negative_journaling=True))
    world.receive(number)
    world.purge(outgoing(world, ORDER_QUEUE).number)  # the queue is there, and empty
    arrive(world, foreign("orders", 2, transaction=place(2), negative_journaling=True))
    world.receive(number, transaction=world.begin())
    world.purge(number)
    world.sync()
    world.restart()
    assert world.bodies(number) == []
    (told,) = leaving(world)[ORDER_QUEUE.lower()]
    assert told.message_class == MessageClass.MQMSG_CLASS_NACK_Q_PURGED


@pytest.mark.spec("MS-MQQB 3.1.7.2.2")
def test_the_sender_elsewhere_learns_of_transactional_messages_among_quiet_ones() -> None:
    world = BulkWorld()
    number = world.create("orders", transactional=True)
    world.fill(number, b"mine", b"mine too")
    arrive(
        world,
        foreign("orders", 1, transaction=place(1), body=b"a", negative_journaling=True),
        foreign("orders", 2, transaction=place(2), body=b"b"),
        foreign("orders", 3, transaction=place(3), body=b"c", positive_journaling=True),
    )
    before = sum(len(views) for views in leaving(world).values())
    assert world.answers[world.purge(number)] == 5
    told = [view for views in leaving(world).values() for view in views]
    reasons = [view.message_class for view in told]
    assert len(told) == before + 2
    assert reasons.count(MessageClass.MQMSG_CLASS_NACK_Q_PURGED) == 2
    assert THERE.bytes_le in told[-1].body


def test_a_journal_is_purged_without_a_word() -> None:
    world = BulkWorld()
    number = world.create("orders", journaling=True)
    world.fill(number, b"a", b"b", negative_journaling=True)
    world.receive(number)
    world.receive(number)
    journal = world.find(r".\private$\orders;JOURNAL")
    assert world.answers[world.purge(journal)] == 2
    assert world.bodies(world.find(DEAD_LETTER)) == []


def test_many_go_by_few_records_that_are_bounded_and_come_back_if_the_disk_is_full() -> None:
    world = BulkWorld()
    number = world.create("orders")
    packet = world.packet(number, body=b"x", recoverable=True)
    count = 3 * 1024
    assert LOST_AT_ONCE < count < 2 * LOST_AT_ONCE
    for _ in range(count // 1024):
        world.engine.send(world.next_request(), number, [packet] * 1024)
        world.perform()
    somebodys = world.lookup_ids(number)[700]
    world.hold(number, ByLookup(somebodys))
    world.full = 1
    assert world.code(world.purge(number)) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert world.available(number) == count - 1
    assert world.body(world.receive(number)) == b"x"
    assert world.answers[world.purge(number)] == count - 1
    frame = world.log[-1]
    kinds = [entry.kind for entry in frame.entries]
    assert sorted(kinds) == sorted([records.REMOVE_MANY] * 2 + [records.NOTE])
    sizes = [len(entry.whole) for entry in frame.entries if entry.kind == records.REMOVE_MANY]
    assert max(sizes) <= 8 + 8 * LOST_AT_ONCE
    assert world.lookup_ids(number) == [somebodys]
    world.restart()
    assert world.lookup_ids(number) == []


def test_a_message_that_is_purged_while_its_packet_is_copied_is_gone() -> None:
    world = BulkWorld()
    number = world.create("orders")
    world.fill(number, b"a", b"b", b"c")
    moving = Relocation(world.engine.state, 0)
    world.durable_at_once = False
    world.purge(number)
    while moving.go_on():
        world.perform()
    world.perform()
    world.sync()
    assert world.bodies(number) == []
    assert world.packets.kept == {}
    world.restart()
    assert world.bodies(number) == []
