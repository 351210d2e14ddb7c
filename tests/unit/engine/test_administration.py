"""Queues are made, changed, emptied and deleted; what is known of them and survives."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

import pytest

from merq.engine.administration import SYSTEM_QUEUES
from merq.hresult import HResult
from merq.model.message_class import MessageClass
from merq.model.queue import UNLIMITED, QueueKind
from merq.model.queue_settings import POISON_AFTER_MAX, QUEUE_LABEL_MAX
from merq.model.selecting import ByLookup
from unit.engine.engine_world import START, World, refused

ADMIN = r"OS:.\private$\admin"
DEAD_XACT = r".\system$;DEADXACT"
TYPE = UUID(int=0x1234)


def change(world: World, number: int, **changed: Any) -> int:
    request = world.next_request()
    world.engine.change_queue(request, number, changed)
    world.perform()
    return request


# Making and starting.


@pytest.mark.spec("MS-MQDMPR 3.1.4.1", "MS-MQDMPR 3.1.3")
def test_every_start_finds_the_queues_of_the_system(world: World) -> None:
    for _ in range(2):
        for number, path, kind, transactional in SYSTEM_QUEUES:
            properties = world.engine.queue(number).properties
            assert properties.path_name == path
            assert (properties.kind, properties.transactional) == (kind, transactional)
        world.checkpoint()
        world.restart()
    frames = len(world.log)
    world.restart()
    assert len(world.log) == frames, "nothing is made that is there"


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.3", "MS-MQDMPR 3.1.7.1.33")
def test_a_new_queue_has_a_journal_and_the_defaults(world: World) -> None:
    number = world.create("orders")
    queue = world.engine.queue(number)
    properties = queue.properties
    assert (properties.label, properties.transactional, properties.journaling) == ("", False, False)
    assert (properties.quota, properties.journal_quota) == (UNLIMITED, UNLIMITED)
    assert (properties.base_priority, properties.poison_after) == (0, 0)
    assert (properties.created, properties.modified) == (START, START)
    assert queue.journal is not None
    assert queue.journal.properties.kind is QueueKind.JOURNAL
    assert (queue.positions.total_bytes, queue.is_active) == (0, False)
    assert world.create("second") != number


def test_a_queue_is_made_once_also_while_its_making_is_under_way(world: World) -> None:
    world.durable_at_once = False
    first = world.create("orders")
    refused(HResult.MQ_ERROR_QUEUE_EXISTS, lambda: world.create("ORDERS"))
    world.sync()
    assert isinstance(world.answers[-first], int)
    refused(HResult.MQ_ERROR_QUEUE_EXISTS, lambda: world.create("Orders"))


def test_a_making_without_room_leaves_no_trace_and_can_be_repeated(world: World) -> None:
    before = world.digest()
    world.full = 1
    request = -world.create("orders")
    assert world.code(request) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert world.digest() == before
    assert world.create("orders") > 0


# Changing.


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.spec("MS-MQDMPR 3.1.1.2")
def test_properties_are_changed_for_good_and_others_stay(world: World, checkpoint: bool) -> None:
    number = world.create("orders", label="before", quota=5)
    (only,) = world.fill(number, b"a")
    world.tick(100)
    changed = {
        "label": "after",
        "journaling": True,
        "journal_quota": 7,
        "type_id": TYPE,
        "poison_after": 4,
    }
    assert world.answers[change(world, number, **changed)] is None
    if checkpoint:
        world.checkpoint()
    for _ in range(2):
        queue = world.engine.queue(number)
        assert {name: getattr(queue.properties, name) for name in changed} == changed
        assert (queue.properties.quota, queue.properties.created) == (5, START)
        assert queue.properties.modified == START + 100
        assert queue.journal is not None
        assert queue.journal.properties.quota == 7
        assert world.lookup_ids(number) == [only]
        world.restart()
    world.receive(number)
    assert world.bodies(world.find(r".\private$\orders;JOURNAL")) == [b"a"]


@pytest.mark.spec("MS-MQMQ 2.3.1.6")
@pytest.mark.spec("E96")
def test_a_private_queue_has_no_base_priority_whatever_it_is_given(world: World) -> None:
    number = world.create("orders", label="before", base_priority=5)
    assert world.engine.queue(number).properties.base_priority == 0
    world.tick(100)
    change(world, number, base_priority=-3)
    properties = world.engine.queue(number).properties
    assert (properties.base_priority, properties.modified) == (0, START), "nothing has changed"
    change(world, number, base_priority=7, label="after")
    properties = world.engine.queue(number).properties
    assert (properties.base_priority, properties.label) == (0, "after")
    assert properties.modified == START + 100
    world.restart()
    assert world.engine.queue(number).properties.base_priority == 0


def test_a_change_counts_when_it_is_durable(world: World) -> None:
    number = world.create("orders", label="before")
    world.durable_at_once = False
    request = change(world, number, label="after")
    assert not world.answered(request)
    assert world.engine.queue(number).properties.label == "before"
    world.restart()
    assert world.engine.queue(number).properties.label == "before"


def test_a_change_without_room_changes_nothing(world: World) -> None:
    number = world.create("orders", label="before")
    before = world.digest()
    world.full = 1
    request = change(world, number, label="after", quota=3)
    assert world.code(request) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert world.digest() == before


def test_two_changes_under_way_are_both_kept(world: World) -> None:
    number = world.create("orders")
    world.durable_at_once = False
    change(world, number, label="new")
    change(world, number, quota=9)
    world.sync()
    properties = world.engine.queue(number).properties
    assert (properties.label, properties.quota) == ("new", 9)
    world.restart()
    properties = world.engine.queue(number).properties
    assert (properties.label, properties.quota) == ("new", 9)


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("transactional", True, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("identifier", TYPE, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("nonsense", 5, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("label", 5, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        ("label", "x" * (QUEUE_LABEL_MAX + 1), HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("journaling", 1, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        ("quota", -1, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("quota", UNLIMITED + 1, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("quota", 1.5, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        ("quota", True, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        ("journal_quota", "9", HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        ("base_priority", 32768, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("base_priority", -32769, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("type_id", str(TYPE), HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        ("poison_after", -1, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("poison_after", POISON_AFTER_MAX + 1, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("poison_after", None, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
    ],
)
def test_what_cannot_be_a_property_is_refused_by_name(
    world: World, name: str, value: object, code: int
) -> None:
    number = world.create("orders")
    before = world.digest()
    text = refused(code, lambda: change(world, number, **{name: value}))
    assert name in text
    assert world.digest() == before
    if name in {"transactional", "identifier", "nonsense"}:
        return
    assert refused(code, lambda: world.create("another", **{name: value}))
    assert world.digest() == before


@pytest.mark.parametrize("value", [0, UNLIMITED])
def test_the_ends_of_the_ranges_are_within(world: World, value: int) -> None:
    number = world.create("orders", quota=value, journal_quota=value, poison_after=POISON_AFTER_MAX)
    change(world, number, base_priority=-32768, label="x" * QUEUE_LABEL_MAX)
    change(world, number, base_priority=32767)
    assert world.engine.queue(number).properties.quota == value


def test_only_private_queues_have_properties_to_be_changed(world: World) -> None:
    number = world.create("orders")
    later = world.subqueue(number, "later")
    journal = world.find(r".\private$\orders;JOURNAL")
    for each in (later, journal, world.find(DEAD_XACT)):
        refused(HResult.MQ_ERROR_ACCESS_DENIED, partial(change, world, each, label="x"))


# Purging.


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.7", "MS-MQDMPR 3.1.7.2.1")
def test_a_purge_takes_what_is_available_and_marks_what_somebody_has(world: World) -> None:
    admin = world.create("admin")
    number = world.create("orders", transactional=True)
    world.fill(
        number, b"a", b"b", negative_journaling=True, admin_queue=ADMIN, acknowledgments=0x0A
    )
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    assert world.answers[world.purge(number)] == 2
    assert world.bodies(number) == [b"a"]
    assert world.bodies(world.find(DEAD_XACT)) == [b"b"]
    world.abort(transaction)
    assert world.bodies(number) == []
    assert world.bodies(world.find(DEAD_XACT)) == [b"b", b"a"]
    told = [view.message_class for view in world.messages(admin)]
    assert told == [MessageClass.MQMSG_CLASS_NACK_Q_PURGED] * 2
    assert world.engine.queue(number).positions.total_bytes == 0


def test_what_was_purged_and_is_committed_counts_as_received(world: World) -> None:
    admin = world.create("admin")
    number = world.create("orders", transactional=True)
    world.fill(number, b"a", negative_journaling=True, admin_queue=ADMIN, acknowledgments=0x0A)
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    world.purge(number)
    world.commit(transaction)
    assert (world.bodies(number), world.bodies(world.find(DEAD_XACT))) == ([], [])
    told = [view.message_class for view in world.messages(admin)]
    assert told == [MessageClass.MQMSG_CLASS_ACK_RECEIVE]


@pytest.mark.parametrize("checkpoint", [False, True])
def test_the_mark_of_a_purge_survives_a_crash(world: World, checkpoint: bool) -> None:
    number = world.create("orders", transactional=True)
    world.fill(number, b"a", negative_journaling=True)
    world.receive(number, transaction=world.begin())
    world.purge(number)
    if checkpoint:
        world.checkpoint()
    world.restart()
    assert world.bodies(number) == [], "nobody has it any more"
    assert world.bodies(world.find(DEAD_XACT)) == [b"a"]
    world.restart()
    assert world.bodies(world.find(DEAD_XACT)) == [b"a"]


def test_the_mark_of_a_purge_that_was_not_durable_is_gone_after_a_crash(world: World) -> None:
    number = world.create("orders", transactional=True)
    world.fill(number, b"a", b"b")
    world.receive(number, transaction=world.begin())
    world.durable_at_once = False
    request = world.purge(number)
    assert not world.answered(request)
    world.restart()
    assert world.bodies(number) == [b"a", b"b"]


def test_a_purge_without_room_changes_nothing(world: World) -> None:
    number = world.create("orders", transactional=True)
    first, second = world.fill(number, b"a", b"b")
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    before = world.digest()
    world.full = 1
    assert world.code(world.purge(number)) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert world.digest() == before
    world.abort(transaction)
    for lookup_id, body in ((first, b"a"), (second, b"b")):
        assert world.body(world.receive(number, ByLookup(lookup_id))) == body


def test_a_purged_message_does_not_come_back_because_the_disk_is_full(world: World) -> None:
    number = world.create("orders", transactional=True)
    world.fill(number, b"a")
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    world.purge(number)
    world.full = 2
    assert world.answers[world.abort(transaction)] is None
    assert world.code(world.receive(number)) == HResult.MQ_ERROR_IO_TIMEOUT
    world.full = 0
    world.restart()
    assert world.bodies(number) == []


def test_a_purge_on_its_way_can_be_repeated(world: World) -> None:
    number = world.create("orders")
    world.fill(number, b"a", negative_journaling=True)
    world.durable_at_once = False
    world.purge(number)
    world.purge(number)
    world.sync()
    assert world.bodies(world.find(r".\system$;DEADLETTER")) == [b"a"]
    world.restart()
    assert world.bodies(number) == []


def test_what_comes_behind_a_purge_stays(world: World) -> None:
    number = world.create("orders")
    world.fill(number, b"a")
    world.durable_at_once = False
    world.purge(number)
    world.send(number, body=b"b", recoverable=True)
    world.sync()
    assert world.bodies(number) == [b"b"]


def test_journals_and_dead_letter_queues_are_emptied_without_a_word(world: World) -> None:
    admin = world.create("admin")
    number = world.create("orders", journaling=True)
    world.fill(number, b"a", negative_journaling=True, admin_queue=ADMIN, acknowledgments=0x08)
    world.receive(number)
    journal = world.find(r".\private$\orders;JOURNAL")
    assert world.answers[world.purge(journal)] == 1
    assert (world.bodies(journal), world.bodies(admin)) == ([], [])
    assert world.bodies(world.find(r".\system$;DEADLETTER")) == []


# Deleting.


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.4")
def test_a_deletion_without_room_changes_nothing(world: World) -> None:
    number = world.create("orders")
    world.fill(number, b"a", negative_journaling=True)
    world.subqueue(number, "later")
    before = world.digest()
    world.full = 1
    assert world.code(world.delete(number)) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert world.digest() == before
    world.send(number, body=b"b")
    assert world.bodies(number) == [b"a", b"b"]


def test_a_deletion_that_was_not_durable_never_happened(world: World) -> None:
    number = world.create("orders")
    world.fill(number, b"a")
    world.durable_at_once = False
    request = world.delete(number)
    assert not world.answered(request)
    refused(HResult.MQ_ERROR_QUEUE_DELETED, lambda: world.send(number))
    refused(HResult.MQ_ERROR_QUEUE_NOT_FOUND, lambda: world.find(r".\private$\orders"))
    world.restart()
    assert world.bodies(number) == [b"a"]


def test_a_deleted_queue_is_gone_with_its_notes_and_parts(world: World) -> None:
    number = world.create("orders", transactional=True)
    world.fill(number, b"a", b"b")
    later = world.subqueue(number, "later")
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    world.abort(transaction)
    world.move(number, world.lookup_ids(number)[1], later)
    world.delete(number)
    state = world.engine.state
    assert state.taken_bytes == 0
    assert world.packets.kept == {}
    for each in (number, later, number | 0x80000000):
        assert each not in state.queues
    again = world.create("orders")
    assert again != number, "whoever knows the old number does not meet the new queue"
    world.checkpoint()
    world.restart()
    assert world.engine.state.taken_bytes == 0
    assert (world.bodies(again), world.engine.queue(again).notes) == ([], {})


@pytest.mark.parametrize("path", [r".\private$\admin_queue$", r".\system$;DEADLETTER"])
def test_the_systems_queues_stay(world: World, path: str) -> None:
    before = world.digest()
    text = refused(HResult.MQ_ERROR_ACCESS_DENIED, lambda: world.delete(world.find(path)))
    assert path in text
    assert world.digest() == before


@pytest.mark.parametrize("checkpoint", [False, True])
def test_the_number_of_a_deleted_queue_is_not_given_again_after_a_restart(
    world: World, *, checkpoint: bool
) -> None:
    numbers = [world.create(f"q{each}") for each in range(3)]
    for number in numbers[1:]:
        world.delete(number)
    if checkpoint:
        world.checkpoint()
    world.restart()
    assert world.create("new") > max(numbers)
