"""Stages survive restarts and full disks, are dropped, and go with their queues or by age."""

from __future__ import annotations

from functools import partial

import pytest

from merq.engine import records
from merq.engine.limits import STAGE_KEEP_S, Limits
from merq.engine.relocating import Relocation
from merq.engine.staging import SWEEP_S
from merq.hresult import HResult
from unit.engine.bulk_world import WRITER, BulkWorld, written
from unit.engine.engine_world import refused

FULL = HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED


@pytest.fixture
def world() -> BulkWorld:
    """An engine without a disk."""
    return BulkWorld()


# A full disk, and restarts.


def test_a_stage_that_could_not_be_made_is_not_there(world: BulkWorld) -> None:
    number = world.create("q")
    before = world.picture()
    world.full = 1
    request = world.ask_stage(number)
    world.perform()
    assert world.code(request) == FULL
    assert world.picture() == before
    world.restart()
    assert world.picture() == before


def test_what_could_not_be_written_is_not_there(world: BulkWorld) -> None:
    _, one, _ = written(world)
    before = world.picture()
    world.full = 1
    assert world.code(world.write(one, b"x")) == FULL
    assert world.picture() == before


def test_a_batch_that_could_not_be_published_waits(world: BulkWorld) -> None:
    number, one, two = written(world, transactional=True)
    before = world.picture()
    world.full = 1
    assert world.code(world.publish(one, two)) == FULL
    assert world.picture() == before
    world.write(one, b"more")
    assert world.answers[world.publish(one, two)] == 5
    assert world.bodies(number) == [b"a", b"b", b"more", b"c", b"d"]


def test_what_could_not_be_dropped_is_there(world: BulkWorld) -> None:
    _, one, two = written(world)
    before = world.picture()
    request = world.next_request()
    world.engine.stages.drop(request, writer=WRITER, batch=0, stage=0)
    world.full = 1
    world.perform()
    assert world.code(request) == FULL
    assert world.picture() == before
    assert world.answers[world.publish(one, two)] == 4


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_restart_brings_back_what_was_durable(
    world: BulkWorld, steps: int, checkpoint: bool, transactional: bool
) -> None:
    number = world.create("q", transactional=transactional)
    one, two = world.stage(number, "0"), world.stage(number, "1")
    if steps:
        world.write(one, b"a", b"b", time_to_be_received=50)
        world.write(two, b"c")
    if steps > 1:
        world.publish(one, two)
    before = world.picture()
    world.come_back(checkpoint=checkpoint)
    assert world.picture() == before
    world.come_back(checkpoint=not checkpoint)
    assert world.picture() == before


def test_a_publication_that_was_not_durable_was_none(world: BulkWorld) -> None:
    number, one, two = written(world)
    world.durable_at_once = False
    world.publish(one, two)
    world.restart()
    assert world.bodies(number) == []
    world.durable_at_once = True
    assert world.answers[world.publish(one, two)] == 4


def test_stages_are_copied_when_their_segment_is_given_up(world: BulkWorld) -> None:
    number, one, two = written(world, transactional=True)
    for segment in range(1):
        moving = Relocation(world.engine.state, segment)
        while moving.go_on():
            world.perform()
        world.perform()
    world.restart()
    world.publish(one, two)
    world.restart()
    assert world.bodies(number) == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("priority", [3, 7])
def test_what_was_published_is_copied_under_the_number_that_it_has_now(
    world: BulkWorld, priority: int
) -> None:
    number, one, two = written(world)
    world.write(two, b"e", priority=priority)
    world.publish(one, two)
    state = world.engine.state
    expected = [
        records.relocate(number, arrival, place.lookup_id, packet)
        for place in state.queues[number].positions
        for arrival, packet in [state.stored(place)]
    ]
    before = world.bodies(number)
    assert not Relocation(state, 0).go_on()
    world.perform()
    copied = world.log[-1].entries
    assert [(each.kind, each.whole) for each in copied] == [
        (each.kind, each.whole) for each in expected
    ]
    world.restart()
    assert world.bodies(number) == before


# Dropping.


def test_what_is_dropped_is_gone(world: BulkWorld) -> None:
    number, one, two = written(world)
    assert world.drop(stage=one) == 2
    assert world.drop(stage=one) == 0
    refused(HResult.MQ_ERROR_QUEUE_NOT_FOUND, partial(world.publish, one, two))
    earlier, later = world.stage(number, batch=0), world.stage(number, batch=2)
    assert world.drop(writer=WRITER, batch=1) == 2
    assert [each.stage for each in world.engine.stages.all()] == [later]
    assert earlier not in world.engine.state.queues
    assert world.engine.state.taken_bytes == 0


def test_what_is_not_a_stage_is_not_dropped(world: BulkWorld) -> None:
    number, _, _ = written(world)
    for other in (number, -1, 1 << 80):
        assert world.drop(stage=other) == 0
    assert world.drop(writer="", batch=-1) == 0
    assert number in world.engine.state.queues


def test_a_queue_that_is_deleted_takes_its_stages_along(world: BulkWorld) -> None:
    number, one, _ = written(world)
    other = world.stage(world.create("other"))
    world.delete(number)
    assert [each.stage for each in world.engine.stages.all()] == [other]
    refused(HResult.MQ_ERROR_QUEUE_NOT_FOUND, partial(world.publish, one))
    assert world.engine.state.taken_bytes == 0
    before = world.picture()
    world.restart()
    assert world.picture() == before


def test_and_a_stage_that_is_just_being_made(world: BulkWorld) -> None:
    number = world.create("q")
    world.durable_at_once = False
    world.ask_stage(number)
    world.delete(number)
    world.sync()
    assert world.engine.stages.all() == []
    world.restart()
    assert world.engine.stages.all() == []


@pytest.mark.parametrize("part", ["stage", "subqueue"])
def test_even_if_what_makes_it_comes_to_nothing(world: BulkWorld, part: str) -> None:
    number = world.create("q")
    if part == "stage":
        world.ask_stage(number)
    else:
        world.engine.create_subqueue(world.next_request(), number, "later")
    request = world.next_request()
    world.engine.delete_queue(request, number)
    world.full = 1
    world.perform()
    assert world.answers[request] is None
    before = world.picture()
    world.restart()
    assert world.picture() == before


def test_what_is_being_published_to_a_queue_that_is_deleted_is_lost_and_told(
    world: BulkWorld,
) -> None:
    number = world.create("q")
    stage = world.stage(number)
    world.write(stage, b"a", negative_journaling=True, recoverable=True)
    world.durable_at_once = False
    world.publish(stage)
    world.delete(number)
    world.sync()
    assert world.bodies(world.find(r".\system$;DEADLETTER")) == [b"a"]
    before = world.picture()
    world.restart()
    assert world.picture() == before


def test_a_queue_that_is_deleted_is_not_published_to(world: BulkWorld) -> None:
    number, one, two = written(world)
    world.durable_at_once = False
    world.delete(number)
    refused(HResult.MQ_ERROR_QUEUE_NOT_FOUND, partial(world.publish, one, two))
    refused(HResult.MQ_ERROR_QUEUE_DELETED, partial(world.write, one, b"x"))


def test_what_could_not_be_published_to_a_queue_that_is_deleted_goes_later(
    world: BulkWorld,
) -> None:
    number, one, two = written(world)
    request = world.ask_publish(one, two)
    world.full = 1
    world.delete(number)
    assert world.code(request) == FULL
    assert [each.queue for each in world.engine.stages.all()] == ["", ""]
    refused(HResult.MQ_ERROR_QUEUE_DELETED, partial(world.publish, one, two))
    refused(HResult.MQ_ERROR_QUEUE_DELETED, partial(world.engine.send, 1 << 20, one, [b""]))
    world.restart()
    world.tick(SWEEP_S)
    assert world.engine.stages.all() == []


def test_a_deletion_that_fails_leaves_stages(world: BulkWorld) -> None:
    number, one, two = written(world)
    world.full = 1
    world.delete(number)
    assert world.answers[world.publish(one, two)] == 4


def test_a_purge_leaves_what_is_not_published(world: BulkWorld) -> None:
    number, one, two = written(world)
    world.purge(number)
    assert world.answers[world.publish(one, two)] == 4


def test_what_waits_for_too_long_goes(world: BulkWorld) -> None:
    number, _, _ = written(world)
    world.tick(STAGE_KEEP_S)
    assert len(world.engine.stages.all()) == 2
    late = world.stage(number, "late")
    world.tick(SWEEP_S)
    assert [each.stage for each in world.engine.stages.all()] == [late]
    world.restart()
    assert [each.stage for each in world.engine.stages.all()] == [late]


def test_how_long_it_waits_can_be_chosen() -> None:
    world = BulkWorld(Limits(stage_keep_s=100))
    written(world)
    world.tick(100)
    assert len(world.engine.stages.all()) == 2
    world.tick(SWEEP_S + 1)
    assert world.engine.stages.all() == []


def test_what_could_not_be_swept_is_swept_later(world: BulkWorld) -> None:
    written(world)
    world.full = 1
    world.tick(STAGE_KEEP_S + 1)
    assert len(world.engine.stages.all()) == 2
    world.tick(SWEEP_S)
    assert world.engine.stages.all() == []


def test_stages_are_told_of(world: BulkWorld) -> None:
    number, one, _ = written(world)
    told = world.engine.stages.all()[0]
    assert (told.stage, told.queue, told.writer) == (one, r".\private$\q", WRITER)
    assert (told.batch, told.part, told.messages) == (0, "0", 2)
    assert told.size == world.queue(one).positions.total_bytes
    assert told.created == world.now
    assert number not in {each.stage for each in world.engine.stages.all()}
