"""What is reserved survives restarts, full disks and what befalls its queue; who speaks for it."""

from __future__ import annotations

from functools import partial

import pytest

from merq.engine.limits import Limits
from merq.engine.positions import LOCKED
from merq.hresult import HResult
from merq.model.selecting import ByLookup
from unit.engine.bulk_world import ALL, BODIES, GROUP, BulkWorld, filled
from unit.engine.engine_world import refused


@pytest.fixture
def world() -> BulkWorld:
    """An engine without a disk."""
    return BulkWorld()


# A full disk, and restarts.


def test_a_group_that_could_not_be_written_never_was(world: BulkWorld) -> None:
    number = filled(world)
    world.full = 1
    request = world.ask_reserve(number)
    world.perform()
    assert world.code(request) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert world.available(number) == 4
    assert world.engine.reservations.all() == []
    refused(HResult.MQ_ERROR_INVALID_PARAMETER, partial(world.release, number, forget=True))
    world.restart()
    assert world.reserve(number).messages == 4


def test_a_range_that_could_not_be_written_moves_the_group_nowhere(world: BulkWorld) -> None:
    number = filled(world)
    first = world.reserve(number, most=1)
    world.acknowledge(number, first.end)
    later = world.sequences(number)[0]
    world.full = 1
    world.ask_reserve(number, later)
    world.perform()
    assert world.reserve(number, first.end).messages == 3


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize(
    "steps", [["reserve"], ["reserve", "acknowledge"], ["reserve", "release"], ["forget"]]
)
def test_a_restart_brings_back_what_was_durable(
    world: BulkWorld, steps: list[str], checkpoint: bool
) -> None:
    number = world.create("q")
    for body, priority in ((b"a", 3), (b"b", 7), (b"c", 0), (b"d", 7)):
        world.fill(number, body, priority=priority)
    first = world.reserve(number, most=1)
    second = world.reserve(number, first.end, most=1)
    if "acknowledge" in steps:
        world.acknowledge(number, second.end)
    if "release" in steps:
        world.release(number)
    if "forget" in steps:
        world.release(number, forget=True)
    before = world.picture()
    world.come_back(checkpoint=checkpoint)
    assert world.picture() == before
    world.come_back(checkpoint=not checkpoint)
    assert world.picture() == before


def test_what_was_not_durable_is_not_reserved_after_a_restart(world: BulkWorld) -> None:
    number = filled(world)
    world.durable_at_once = False
    world.ask_reserve(number)
    world.perform()
    world.restart()
    assert world.available(number) == 4
    assert world.engine.reservations.all() == []


def test_an_acknowledgment_that_was_not_durable_comes_again(world: BulkWorld) -> None:
    number = filled(world)
    found = world.reserve(number)
    world.durable_at_once = False
    world.acknowledge(number, found.end)
    world.restart()
    assert world.rows(number, 0) == list(BODIES)
    world.durable_at_once = True
    world.acknowledge(number, found.end)
    assert world.bodies(number) == []


@pytest.mark.parametrize("checkpoint", [False, True])
def test_express_messages_of_a_range_do_not_survive_it_does(
    world: BulkWorld, checkpoint: bool
) -> None:
    number = world.create("q")
    world.send(number, body=b"express")
    world.fill(number, b"recoverable")
    found = world.reserve(number)
    assert world.rows(number, 0) == [b"express", b"recoverable"]
    world.come_back(checkpoint=checkpoint)
    assert world.rows(number, 0) == [b"recoverable"]
    assert world.ranges(number)[0].end == found.end
    world.acknowledge(number, found.end)
    assert world.bodies(number) == []
    assert world.engine.state.memory_bytes == 0


def test_a_range_of_express_messages_alone_is_empty_after_a_restart(world: BulkWorld) -> None:
    number = world.create("q")
    world.send(number, body=b"express")
    found = world.reserve(number)
    world.restart()
    again = world.reserve(number)
    assert (again.start, again.end, again.messages) == (0, found.end, 0)
    world.fill(number, b"a")
    assert world.reserve(number, found.end).messages == 1, "the group goes on behind it"


def test_express_messages_are_acknowledged_like_others(world: BulkWorld) -> None:
    number = world.create("q", journaling=True)
    world.send(number, body=b"express")
    found = world.reserve(number)
    world.acknowledge(number, found.end)
    assert world.bodies(number) == []
    assert world.bodies(world.find(r".\private$\q;JOURNAL")) == [b"express"]


# What befalls a queue meanwhile.


def test_a_purge_leaves_what_is_reserved(world: BulkWorld) -> None:
    number = filled(world)
    found = world.reserve(number, most=2)
    assert world.answers[world.purge(number)] == 2
    assert world.rows(number, 0) == [b"a", b"b"]
    world.acknowledge(number, found.end)
    assert world.bodies(number) == []


def test_a_purge_leaves_what_is_on_its_way_out_to_who_acknowledged_it(world: BulkWorld) -> None:
    number = filled(world)
    found = world.reserve(number, most=2)
    world.ask_acknowledge(number, found.end)
    purge = world.next_request()
    world.engine.purge(purge, number)
    world.full = 1
    world.perform()
    assert world.answers[purge] == 2
    assert world.rows(number, 0) == [b"a", b"b"]


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_queue_that_is_deleted_takes_its_groups_along(world: BulkWorld, checkpoint: bool) -> None:
    number = filled(world)
    found = world.reserve(number)
    world.delete(number)
    assert world.engine.reservations.all() == []
    refused(HResult.MQ_ERROR_QUEUE_DELETED, partial(world.acknowledge, number, found.end))
    world.come_back(checkpoint=checkpoint)
    assert world.engine.reservations.all() == []


def test_a_deletion_that_fails_leaves_what_is_reserved(world: BulkWorld) -> None:
    number = filled(world)
    world.reserve(number)
    world.full = 1
    world.delete(number)
    assert world.rows(number, 0) == list(BODIES)


def test_what_expires_while_it_is_reserved_is_still_read(world: BulkWorld) -> None:
    number = world.create("q")
    world.fill(number, b"a", time_to_be_received=10)
    found = world.reserve(number)
    world.tick(60)
    assert world.rows(number, 0) == [b"a"]
    world.acknowledge(number, found.end)
    assert world.bodies(number) == []
    assert world.queue(number).expired == set()


@pytest.mark.parametrize("checkpoint", [False, True])
def test_what_has_expired_meanwhile_goes_when_it_is_released(
    world: BulkWorld, checkpoint: bool
) -> None:
    number = world.create("q")
    world.fill(number, b"a", time_to_be_received=10, negative_journaling=True)
    world.reserve(number)
    world.tick(60)
    world.come_back(checkpoint=checkpoint)
    assert world.rows(number, 0) == [b"a"]
    world.release(number)
    world.tick(1)
    assert world.bodies(number) == []
    assert world.bodies(world.find(r".\system$;DEADLETTER")) == [b"a"]


def test_what_is_moved_into_a_subqueue_can_be_reserved_there(world: BulkWorld) -> None:
    number = filled(world)
    later = world.subqueue(number, "later")
    world.move(number, world.lookup_ids(number)[1], later)
    found = world.reserve(later)
    assert world.rows(later, 0) == [b"b"]
    world.restart()
    assert world.rows(later, 0) == [b"b"]
    world.acknowledge(later, found.end)
    world.restart()
    assert world.bodies(number) == [b"a", b"c", b"d"]


def test_a_message_that_was_aborted_too_often_is_poison_and_reserved_there(
    world: BulkWorld,
) -> None:
    number = filled(world, b"a", transactional=True, poison_after=1)
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    world.abort(transaction)
    poison = world.find(r".\private$\q;poison")
    assert world.reserve(number).messages == 0
    assert world.reserve(poison).messages == 1


def test_a_message_by_its_identifier_is_not_had_while_it_is_reserved(world: BulkWorld) -> None:
    number = filled(world)
    first = world.lookup_ids(number)[0]
    world.reserve(number)
    request = world.receive(number, ByLookup(first))
    assert world.code(request) == HResult.MQ_ERROR_MESSAGE_NOT_FOUND
    assert world.queue(number).positions.get(first).state == LOCKED  # type: ignore[union-attr]


# Who speaks for a group.


def test_only_one_speaks_for_a_group(world: BulkWorld) -> None:
    number = filled(world)
    world.reserve(number, most=1)
    for ask in (
        partial(world.reserve, number, owner="two"),
        partial(world.acknowledge, number, ALL, owner="two"),
    ):
        said = refused(HResult.MQ_ERROR_SHARING_VIOLATION, ask)
        assert "try again in 5 s" in said


def test_who_is_silent_for_too_long_may_not_speak_any_more(world: BulkWorld) -> None:
    number = filled(world)
    first = world.reserve(number)
    world.tick(5)
    assert world.reserve(number, owner="two") == first, "the same range"
    said = refused(HResult.MQ_ERROR_STALE_HANDLE, partial(world.acknowledge, number, first.end))
    assert "taken over" in said
    world.tick(60)
    refused(HResult.MQ_ERROR_STALE_HANDLE, partial(world.reserve, number))
    world.acknowledge(number, first.end, owner="two")
    assert world.bodies(number) == []


def test_who_speaks_is_heard_of(world: BulkWorld) -> None:
    number = filled(world)
    first = world.reserve(number)
    world.tick(4)
    world.acknowledge(number, 0)
    world.tick(4)
    refused(HResult.MQ_ERROR_SHARING_VIOLATION, partial(world.reserve, number, owner="two"))
    assert world.rows(number, first.start) == list(BODIES)


def test_who_leaves_lets_others_in_at_once(world: BulkWorld) -> None:
    number = filled(world)
    found = world.reserve(number)
    world.acknowledge(number, 0, leave=True)
    assert world.reserve(number, owner="two") == found


def test_the_lease_can_be_chosen() -> None:
    world = BulkWorld(Limits(lease_s=60))
    number = filled(world)
    found = world.reserve(number)
    world.tick(59)
    refused(HResult.MQ_ERROR_SHARING_VIOLATION, partial(world.reserve, number, owner="two"))
    world.tick(1)
    assert world.reserve(number, owner="two") == found


def test_so_many_former_speakers_are_remembered(world: BulkWorld) -> None:
    number = filled(world)
    for owner in range(66):
        world.reserve(number, owner=str(owner))
        world.tick(5)
    refused(HResult.MQ_ERROR_STALE_HANDLE, partial(world.reserve, number, owner="1"))
    assert world.reserve(number, owner="0").messages == 4


def test_after_a_restart_anybody_may_speak(world: BulkWorld) -> None:
    number = filled(world)
    found = world.reserve(number)
    world.restart()
    assert world.reserve(number, owner="two") == found


# What is told.


def test_groups_are_told_of(world: BulkWorld) -> None:
    number = filled(world)
    first = world.reserve(number, most=1)
    world.acknowledge(number, first.end)
    second = world.reserve(number, first.end, most=2)
    world.tick(2)
    (told,) = world.engine.reservations.all()
    assert told.queue == r".\private$\q"
    assert (told.group, told.owner, told.lease_s) == (GROUP, "one", 3)
    assert (told.acknowledged, told.reserved_up_to) == (first.end, second.end)
    assert (told.ranges, told.messages) == (1, 2)
    world.restart()
    (told,) = world.engine.reservations.all()
    assert (told.owner, told.lease_s) == ("", 0)
