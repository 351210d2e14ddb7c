"""Queues: made, used, purged and deleted; quotas, refusals, and numbers that are given once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from merq.engine.administration import FIRST_PRIVATE_NUMBER
from merq.engine.limits import Limits
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.queue import QueueSettings
from merq.model.selecting import ByLookup, ByMessageId, First
from unit.engine.engine_world import GUID, World


def refused(code: int, ask: Callable[[], object]) -> MessageQueueError:
    with pytest.raises(MessageQueueError) as caught:
        ask()
    assert caught.value.code == code
    assert caught.value.text
    return caught.value


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.3", "MS-MQDMPR 3.1.7.1.33")
def test_a_new_queue_has_a_journal_and_the_defaults_of_the_document(world: World) -> None:
    number = world.create("orders")
    assert number == FIRST_PRIVATE_NUMBER
    properties = world.engine.queue(number).properties
    assert properties.path_name == r".\private$\orders"
    assert (properties.quota, properties.journal_quota) == (0xFFFFFFFF, 0xFFFFFFFF)
    assert (properties.transactional, properties.journaling, properties.base_priority) == (
        False,
        False,
        0,
    )
    assert world.find(r".\private$\orders;JOURNAL") == number | 0x80000000


@pytest.mark.parametrize("path", [r".\PRIVATE$\Orders", r"HERE\private$\orders"])
def test_names_that_differ_in_case_or_name_this_computer_are_the_same_queue(
    world: World, path: str
) -> None:
    number = world.create("orders")
    assert world.find(path) == number


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.3")
def test_a_queue_that_exists_cannot_be_made_again(world: World) -> None:
    world.create("orders")
    refused(HResult.MQ_ERROR_QUEUE_EXISTS, lambda: world.create("ORDERS"))


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.3")
def test_a_queue_that_is_being_made_cannot_be_made_again() -> None:
    world = World(durable_at_once=False)
    world.create("orders")
    refused(HResult.MQ_ERROR_QUEUE_EXISTS, lambda: world.create("orders"))


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.3")
def test_queues_that_are_made_at_the_same_time_have_numbers_of_their_own() -> None:
    world = World(durable_at_once=False)
    requests = [-world.create(name) for name in ("one", "two", "three")]
    assert not any(world.answered(request) for request in requests)
    world.sync()
    numbers = [world.answers[request] for request in requests]
    assert len(set(numbers)) == 3
    assert [world.find(rf".\private$\{name}") for name in ("one", "two", "three")] == numbers


def test_a_queue_that_the_disk_had_no_room_for_can_be_made_later(world: World) -> None:
    world.full = 1
    request = -world.create("orders")
    assert world.code(request) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    refused(HResult.MQ_ERROR_QUEUE_NOT_FOUND, lambda: world.find(r".\private$\orders"))
    assert world.create("orders") > 0


def test_the_number_of_a_deleted_queue_does_not_lead_to_another_queue(world: World) -> None:
    old = world.create("old")
    world.delete(old)
    assert world.create("new") != old
    refused(HResult.MQ_ERROR_QUEUE_DELETED, lambda: world.send(old))


@pytest.mark.parametrize(
    "path",
    [
        r".\orders",
        r".\private$\orders;JOURNAL",
        r".\private$\orders;sub",
        r".\system$;DEADLETTER",
        r"elsewhere\private$\orders",
        r".\private$",
        "orders",
        "",
        r".\private$\a/b;c;d",
    ],
)
@pytest.mark.spec("MS-MQDMPR 3.1.7.1.3")
def test_what_is_not_the_name_of_a_private_queue_here_makes_none(world: World, path: str) -> None:
    before = dict(world.engine.state.queues)
    refused(
        HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME,
        lambda: world.engine.create_queue(1, path, QueueSettings(), GUID),
    )
    assert world.engine.state.queues == before


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"label": "x" * 125}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ({"quota": -1}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ({"quota": 1 << 32}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ({"journal_quota": -1}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ({"base_priority": 32768}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ({"quota": 1.5}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        ({"quota": True}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        ({"label": 7}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        ({"transactional": "yes"}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
    ],
)
def test_settings_that_cannot_be_make_no_queue(
    world: World, settings: dict[str, object], code: int
) -> None:
    error = refused(code, lambda: world.create("orders", **settings))
    assert next(iter(settings)) in error.text
    assert world.create("orders") > 0


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.9", "MS-MQDMPR 3.1.1.12")
def test_messages_are_in_the_order_of_priority_then_arrival(world: World) -> None:
    number = world.create("orders")
    for priority, body in [(3, b"a"), (7, b"b"), (3, b"c"), (0, b"d"), (7, b"e"), (4, b"f")]:
        world.send(number, body=body, priority=priority)
    assert world.bodies(number) == [b"b", b"e", b"f", b"a", b"c", b"d"]
    assert [world.body(world.receive(number)) for _ in range(6)] == [
        b"b",
        b"e",
        b"f",
        b"a",
        b"c",
        b"d",
    ]
    assert world.code(world.receive(number)) == HResult.MQ_ERROR_IO_TIMEOUT


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.9")
@pytest.mark.spec("E11")
def test_a_lookup_identifier_is_seven_minus_the_priority_and_a_number_that_grows(
    world: World,
) -> None:
    number = world.create("orders")
    for priority in (0, 7, 3):
        world.send(number, priority=priority)
    places = sorted(world.engine.queue(number).positions, key=lambda place: place.lookup_id << 8)
    found = sorted((place.lookup_id & (1 << 56) - 1, place.lookup_id >> 56) for place in places)
    assert [high for _, high in found] == [7, 0, 4]
    assert found[0][0] < found[1][0] < found[2][0]


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.9")
def test_the_queue_manager_itself_says_who_sent_a_message_and_when(world: World) -> None:
    number = world.create("orders")
    first = world.message_id(world.send(number))
    second = world.message_id(world.send(number))
    views = world.messages(number)
    assert [view.message_id for view in views] == [first, second]
    assert {view.source_queue_manager for view in views} == {GUID}
    assert {view.sent_time for view in views} == {world.now}
    assert first != second


def test_nothing_is_answered_before_it_is_durable() -> None:
    world = World()
    number = world.create("orders")
    world.durable_at_once = False
    sent = world.send(number, recoverable=True, body=b"safe")
    assert not world.answered(sent)
    assert world.bodies(number) == []
    world.sync()
    assert world.bodies(number) == [b"safe"]
    received = world.receive(number)
    assert not world.answered(received)
    peeked = world.peek(number)
    assert world.code(peeked) == HResult.MQ_ERROR_IO_TIMEOUT
    world.sync()
    assert world.body(received) == b"safe"


def test_an_express_message_is_not_seen_before_what_was_asked_for_earlier() -> None:
    world = World()
    number = world.create("orders")
    world.durable_at_once = False
    world.send(number, recoverable=True, body=b"1")
    express = world.send(number, body=b"2")
    assert not world.answered(express)
    world.sync()
    assert world.answered(express)
    assert world.bodies(number) == [b"1", b"2"]


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.9")
def test_a_message_beyond_the_queues_quota_is_refused(world: World) -> None:
    number = world.create("small", quota=1)
    world.send(number, body=bytes(500))
    refused(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, lambda: world.send(number, body=bytes(500)))
    assert len(world.bodies(number)) == 1
    world.receive(number)
    world.send(number, body=bytes(500))


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.9")
def test_a_quota_is_used_up_to_its_last_byte(world: World) -> None:
    number = world.create("small", quota=1)
    empty = len(_packet(world, number))
    room = 1024 - empty
    refused(
        HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, lambda: world.send(number, body=bytes(room + 1))
    )
    world.send(number, body=bytes(room))
    assert world.engine.queue(number).positions.total_bytes == 1024


def _packet(world: World, number: int) -> bytes:
    request = world.send(number)
    assert world.answered(request)
    return world.delivered(world.receive(number)).packet


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.9")
def test_messages_on_their_way_count_towards_the_quota() -> None:
    world = World()
    number = world.create("small", quota=1)
    world.durable_at_once = False
    world.send(number, body=bytes(500), recoverable=True)
    refused(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, lambda: world.send(number, body=bytes(500)))


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.9", "MS-MQDMPR 3.1.1.1")
@pytest.mark.spec("MS-MQMQ note 24", "MS-MQDMPR note 3")
def test_a_message_beyond_the_computers_quota_is_refused() -> None:
    world = World(limits=Limits(machine_quota=2))
    one, two = world.create("one"), world.create("two")
    world.send(one, body=bytes(900))
    world.send(two, body=bytes(600))
    error = refused(
        HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, lambda: world.send(one, body=bytes(600))
    )
    assert "computer" in error.text
    world.receive(two)
    world.send(one, body=bytes(600))


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.9", "MS-MQDMPR 3.1.1.1")
def test_a_throttled_queue_manager_takes_no_messages_but_gives_them(world: World) -> None:
    number = world.create("orders")
    world.send(number, body=b"before")
    world.engine.watch_resources(0)
    refused(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, lambda: world.send(number))
    assert world.body(world.receive(number)) == b"before"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"body": bytes(0x400000)}, HResult.MQ_ERROR_INSUFFICIENT_RESOURCES),
        ({"label": "x" * 250}, HResult.MQ_ERROR_LABEL_TOO_LONG),
        ({"priority": 8}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ({"priority": -1}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ({"correlation_id": bytes(19)}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ({"time_to_be_received": -1}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ({"acknowledgments": 16}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
    ],
)
@pytest.mark.parametrize("transactional", [False, True])
def test_a_message_that_has_no_packet_is_refused_and_changes_nothing(
    world: World, fields: dict[str, object], code: int, transactional: bool
) -> None:
    number = world.create("orders", transactional=transactional)
    transaction = world.begin() if transactional else 0
    refused(code, lambda: world.send(number, transaction, **fields))
    assert world.engine.queue(number).staged_bytes == 0
    world.send(number, transaction, body=b"fine")
    if transaction:
        world.commit(transaction)
    assert world.bodies(number) == [b"fine"]


def test_a_message_that_fits_only_outside_of_a_transaction_is_refused_within(world: World) -> None:
    number = world.create("orders", transactional=True)
    plain = world.create("plain")
    spare = 0x400000 - len(_packet(world, plain))
    names = len("orders".encode("utf-16-le")) - len("plain".encode("utf-16-le"))
    transaction = world.begin()
    refused(
        HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
        lambda: world.send(number, transaction, body=bytes(spare - names - 8)),
    )
    assert world.engine.queue(number).staged_bytes == 0


def test_only_the_queue_manager_writes_into_journals_and_its_own_queues(world: World) -> None:
    world.create("orders")
    for path in (
        r".\private$\orders;JOURNAL",
        r".\system$;JOURNAL",
        r".\system$;DEADLETTER",
        r".\system$;DEADXACT",
    ):
        number = world.find(path)
        refused(HResult.MQ_ERROR_ACCESS_DENIED, lambda number=number: world.send(number))  # type: ignore[misc]
        refused(HResult.MQ_ERROR_ACCESS_DENIED, lambda number=number: world.delete(number))  # type: ignore[misc]


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.7")
def test_a_purge_takes_what_is_available_and_locked_messages_when_they_come_back(
    world: World,
) -> None:
    number = world.create("orders", transactional=True)
    filling = world.begin()
    for body in (b"a", b"b", b"c"):
        world.send(number, filling, body=body)
    world.commit(filling)
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    purged = world.purge(number)
    assert world.answers[purged] == 3
    assert world.bodies(number) == [b"a"]
    assert world.code(world.receive(number)) == HResult.MQ_ERROR_IO_TIMEOUT
    world.abort(transaction)
    assert world.bodies(number) == []


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.7")
def test_a_locked_message_of_a_purged_queue_is_received_if_its_transaction_commits(
    world: World,
) -> None:
    number = world.create("orders", transactional=True, journaling=True)
    filling = world.begin()
    world.send(number, filling, body=b"a")
    world.commit(filling)
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    world.purge(number)
    world.commit(transaction)
    assert world.bodies(number) == []
    assert world.bodies(number | 0x80000000) == [b"a"]


def test_a_purge_that_the_disk_had_no_room_for_purges_nothing(world: World) -> None:
    number = world.create("orders", transactional=True)
    filling = world.begin()
    for body in (b"a", b"b"):
        world.send(number, filling, body=body)
    world.commit(filling)
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    world.full = 1
    assert world.code(world.purge(number)) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    world.abort(transaction)
    assert world.bodies(number) == [b"a", b"b"]
    assert world.body(world.receive(number)) == b"a"


def test_a_second_purge_does_not_take_messages_twice() -> None:
    world = World()
    number = world.create("orders")
    world.send(number, recoverable=True)
    world.durable_at_once = False
    world.purge(number)
    world.purge(number)
    world.sync()
    assert world.bodies(number) == []
    world.restart()
    assert world.bodies(number) == []


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.4")
def test_a_deleted_queue_is_gone_with_its_journal_and_messages(world: World) -> None:
    number = world.create("orders", journaling=True)
    for body in (b"a", b"b"):
        world.send(number, body=body, recoverable=True)
    world.receive(number)
    world.delete(number)
    assert number not in world.engine.state.queues
    assert number | 0x80000000 not in world.engine.state.queues
    refused(HResult.MQ_ERROR_QUEUE_NOT_FOUND, lambda: world.find(r".\private$\orders"))
    assert world.packets.kept == {}
    world.restart()
    assert number not in world.engine.state.queues


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.4")
def test_whoever_waits_at_a_deleted_queue_is_told_when_it_is_gone() -> None:
    world = World()
    number = world.create("orders")
    waiting = [world.receive(number, wait=True), world.peek(number, wait=True)]
    world.durable_at_once = False
    deleted = world.delete(number)
    assert not any(world.answered(request) for request in [*waiting, deleted])
    refused(HResult.MQ_ERROR_QUEUE_DELETED, lambda: world.receive(number))
    world.sync()
    assert [world.code(request) for request in waiting] == [HResult.MQ_ERROR_QUEUE_DELETED] * 2
    assert world.answers[deleted] is None


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.4")
def test_sends_that_were_under_way_when_the_queue_was_deleted_are_answered_and_gone() -> None:
    world = World()
    number = world.create("orders")
    world.durable_at_once = False
    sent = world.send(number, recoverable=True, body=b"late", negative_journaling=True)
    world.delete(number)
    world.sync()
    assert world.answered(sent)
    assert world.bodies(world.find(r".\system$;DEADLETTER")) == [b"late"]
    world.restart()
    assert world.bodies(world.find(r".\system$;DEADLETTER")) == [b"late"]


def test_a_message_that_was_received_as_the_queue_was_deleted_is_not_dead() -> None:
    world = World()
    number = world.create("orders")
    world.send(number, recoverable=True, body=b"taken", negative_journaling=True)
    world.durable_at_once = False
    received = world.receive(number)
    world.delete(number)
    world.sync()
    assert world.body(received) == b"taken"
    assert world.bodies(world.find(r".\system$;DEADLETTER")) == []


def test_a_deletion_that_the_disk_had_no_room_for_leaves_the_queue_as_it_was(world: World) -> None:
    number = world.create("orders")
    world.send(number, body=b"a", recoverable=True, time_to_be_received=5)
    world.full = 1
    assert world.code(world.delete(number)) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert world.body(world.peek(number)) == b"a"
    world.send(number, body=b"b")
    world.tick(6)
    assert world.bodies(number) == [b"b"]
    assert world.answers[world.delete(number)] is None


def test_the_queues_that_every_queue_manager_has_cannot_be_deleted(world: World) -> None:
    refused(
        HResult.MQ_ERROR_ACCESS_DENIED, lambda: world.delete(world.find(r".\private$\admin_queue$"))
    )


def test_a_restart_brings_back_what_was_durable_in_the_same_order(world: World) -> None:
    number = world.create("orders", label="all of them", quota=77)
    for priority, body in [(3, b"a"), (7, b"b"), (3, b"c")]:
        world.send(number, body=body, priority=priority, recoverable=True)
    world.send(number, body=b"express", priority=7)
    before = [place.lookup_id for place in world.engine.queue(number).positions]
    properties = world.engine.queue(number).properties
    world.restart()
    assert world.bodies(number) == [b"b", b"a", b"c"]
    after = [place.lookup_id for place in world.engine.queue(number).positions]
    assert after == [before[0], *before[2:]]
    assert world.engine.queue(number).properties == properties


def test_numbers_are_never_given_twice_across_restarts(world: World) -> None:
    number = world.create("orders")
    identifiers: list[bytes] = []
    lookups: list[int] = []
    for _ in range(4):
        sent = [world.send(number, recoverable=recoverable) for recoverable in (False, True)]
        identifiers += map(world.message_id, sent)
        lookups += [place.lookup_id for place in world.engine.queue(number).positions]
        world.purge(number)
        world.restart()
    assert len(set(identifiers)) == len(identifiers)
    assert sorted(set(lookups)) == lookups


@pytest.mark.parametrize("express", [False, True])
def test_numbers_whose_reservation_found_no_room_are_reserved_by_who_comes_next(
    express: bool,
) -> None:
    world = World(durable_at_once=False)
    number_request = -world.create("orders")
    world.sync()
    number = world.answers[number_request]
    assert isinstance(number, int)
    # Two sends are planned before the first, which carries the reservation, is written.
    first, second = world.next_request(), world.next_request()
    packet = world.packet(number, recoverable=True, body=b"1")
    world.engine.send(first, number, [packet])
    packet = world.packet(number, recoverable=not express, body=b"2")
    world.engine.send(second, number, [packet])
    world.full = 1
    world.perform()
    world.sync()
    assert world.code(first) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    kept = world.message_id(second)
    world.restart()
    world.sync()
    fresh = world.send(number, recoverable=True)
    world.sync()
    assert world.message_id(fresh) != kept
    assert len(world.bodies(number)) == (1 if express else 2)


def test_a_message_whose_write_found_no_room_never_was(world: World) -> None:
    number = world.create("orders", quota=1)
    world.full = 1
    request = world.send(number, recoverable=True, body=bytes(600))
    assert world.code(request) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert world.engine.queue(number).staged_bytes == 0
    assert world.bodies(number) == []
    assert world.answered(world.send(number, recoverable=True, body=bytes(600)))


def test_a_message_whose_removal_found_no_room_stays_and_can_be_received(world: World) -> None:
    number = world.create("orders")
    world.send(number, recoverable=True, body=b"a")
    world.full = 1
    assert world.code(world.receive(number)) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert world.body(world.receive(number)) == b"a"
    assert world.bodies(number) == []


def test_what_is_unknown_is_looked_for_and_leaves_no_trace(world: World) -> None:
    number = world.create("orders")
    before = world.engine.state.sources.listed()
    for each in range(10):
        message_id = bytes([each]) * 20
        assert world.code(world.peek(number, ByMessageId(message_id))) == (
            HResult.MQ_ERROR_MESSAGE_NOT_FOUND
        )
    assert world.engine.state.sources.listed() == before


def test_the_effects_of_a_refused_request_are_none(world: World) -> None:
    number = world.create("orders", transactional=True)
    frames = len(world.log)
    asks: list[Callable[[], object]] = [
        lambda: world.send(number),
        lambda: world.send(999),
        lambda: world.receive(999),
        lambda: world.peek(999, First()),
        lambda: world.purge(999),
        lambda: world.delete(999),
        lambda: world.receive(number, ByLookup(1), transaction=99),
    ]
    for ask in asks:
        with pytest.raises(MessageQueueError):
            ask()
    assert world.engine.take_effects() == []
    assert len(world.log) == frames
