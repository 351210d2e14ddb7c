"""Messages are written into stages first, and published later, all at once."""

from __future__ import annotations

from functools import partial

import pytest

from merq.engine.holdings import STAGE_NUMBER_FIRST
from merq.engine.notices import JOURNAL_NUMBER, POSITIVE_ARRIVAL
from merq.engine.sending import MESSAGES_AT_ONCE_MAX
from merq.hresult import HResult
from merq.model.length_limits import WRITER_NAME_MAX
from merq.model.message_class import MessageClass
from merq.wire.headers import TransactionFields
from merq.wire.message import UserMessage
from unit.engine.bulk_world import WRITER, BulkWorld, written
from unit.engine.conftest import Lower
from unit.engine.engine_world import refused

FULL = HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED


@pytest.fixture
def world() -> BulkWorld:
    """An engine without a disk."""
    return BulkWorld()


# Writing.


def test_nobody_sees_what_is_written_before_it_is_published(world: BulkWorld) -> None:
    number, one, two = written(world)
    assert world.bodies(number) == []
    assert world.code(world.receive(number)) == HResult.MQ_ERROR_IO_TIMEOUT
    assert world.answers[world.publish(one, two)] == 4
    assert world.bodies(number) == [b"a", b"b", b"c", b"d"]
    assert world.body(world.receive(number)) == b"a"
    assert world.engine.stages.all() == []


def test_stages_come_in_the_order_in_which_they_are_named(world: BulkWorld) -> None:
    number, one, two = written(world)
    world.fill(number, b"before")
    world.publish(two, one)
    assert world.bodies(number) == [b"before", b"c", b"d", b"a", b"b"]
    world.fill(number, b"behind")
    assert world.bodies(number)[-1] == b"behind"


def test_messages_keep_their_priorities_when_the_first_and_the_last_have_the_same(
    world: BulkWorld,
) -> None:
    number = world.create("q")
    stage = world.stage(number)
    for body, priority in ((b"a", 3), (b"b", 7), (b"c", 0), (b"d", 3)):
        world.write(stage, body, priority=priority)
    world.publish(stage)
    assert world.bodies(number) == [b"b", b"a", b"d", b"c"]
    assert [each >> 56 for each in world.lookup_ids(number)] == [0, 4, 4, 7]


def test_a_writer_is_told_when_what_it_wrote_is_durable(world: BulkWorld) -> None:
    number = world.create("q")
    stage = world.stage(number)
    world.durable_at_once = False
    request = world.write(stage, b"a", b"b")
    assert not world.answered(request)
    world.sync()
    assert world.answers[request] == 2


def test_whoever_waits_gets_what_is_published(world: BulkWorld) -> None:
    number, one, two = written(world)
    waiting = world.receive(number, wait=True)
    world.publish(one, two)
    assert world.body(waiting) == b"a"


def test_priorities_hold_when_it_is_published(world: BulkWorld) -> None:
    number = world.create("q")
    stage = world.stage(number)
    for body, priority in ((b"a", 3), (b"b", 7), (b"c", 0), (b"d", 7)):
        world.write(stage, body, priority=priority)
    world.publish(stage)
    assert world.bodies(number) == [b"b", b"d", b"a", b"c"]
    world.reserve(number)
    assert world.rows(number, 0) == [b"a", b"b", b"c", b"d"], "by arrival"
    world.restart()
    assert world.rows(number, 0) == [b"a", b"b", b"c", b"d"]


def test_express_messages_in_a_stage_are_on_the_disk(world: BulkWorld) -> None:
    number = world.create("q")
    stage = world.stage(number)
    world.write(stage, b"a", recoverable=False)
    world.restart()
    world.publish(stage)
    world.restart()
    assert world.bodies(number) == [b"a"]


def test_a_message_has_its_sender_and_an_identifier_of_its_own(world: BulkWorld) -> None:
    number, one, two = written(world)
    world.publish(one, two)
    views = world.messages(number)
    assert {view.source_queue_manager for view in views} == {world.engine.state.guid}
    assert len({view.message_id for view in views}) == 4


def test_a_stage_is_for_a_queue_to_which_applications_send(world: BulkWorld) -> None:
    number = world.create("q")
    for other in (
        world.find(r".\private$\q;JOURNAL"),
        world.subqueue(number, "later"),
        world.find(r".\system$;DEADLETTER"),
    ):
        refused(HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION, partial(world.stage, other))


def test_a_stage_is_no_queue(world: BulkWorld) -> None:
    _, one, _ = written(world)
    for ask in (world.receive, world.peek, world.purge, world.delete, world.stage, world.reserve):
        refused(HResult.MQ_ERROR_QUEUE_DELETED, partial(ask, one))


@pytest.mark.limit("merq.model.length_limits.WRITER_NAME_MAX")
def test_names_of_writers_and_parts_have_a_length(world: BulkWorld) -> None:
    number = world.create("q")
    for name in ("", "x" * (WRITER_NAME_MAX + 1)):
        refused(HResult.MQ_ERROR_INVALID_PARAMETER, partial(world.stage, number, writer=name))
        refused(HResult.MQ_ERROR_INVALID_PARAMETER, partial(world.stage, number, name))
    name = '"\N{SNOWMAN}\ud800\n' * (WRITER_NAME_MAX // 4)
    stage = world.stage(number, name, writer=name)
    world.write(stage, b"a")
    world.publish(stage, writer=name)
    before = world.picture()
    world.restart()
    assert world.picture() == before


@pytest.mark.limit("merq.engine.staging.STAGES_MAX")
def test_there_are_so_many_stages(world: BulkWorld, lower: Lower) -> None:
    number = world.create("q")
    lower("merq.engine.staging", "STAGES_MAX", 2)
    first = world.stage(number)
    world.stage(number)
    said = refused(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, partial(world.stage, number))
    assert "drop some" in said
    world.drop(stage=first)
    world.stage(number)


@pytest.mark.limit("merq.engine.sending.MESSAGES_AT_ONCE_MAX")
def test_so_many_messages_are_written_at_once(world: BulkWorld) -> None:
    stage = world.stage(world.create("q"))
    refused(HResult.MQ_ERROR_INVALID_PARAMETER, partial(world.write, stage))
    packets = [world.packet(world.queue(stage).properties.owner)] * (MESSAGES_AT_ONCE_MAX + 1)
    request = world.next_request()
    refused(HResult.MQ_ERROR_INVALID_PARAMETER, partial(world.engine.send, request, stage, packets))
    assert world.bodies(stage) == []


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_number_is_not_given_to_another_stage(world: BulkWorld, checkpoint: bool) -> None:
    """Who was given one before a restart, and wakes up late, must not write into another's."""
    number = world.create("q")
    late = world.stage(number)
    world.drop(stage=late)
    world.come_back(checkpoint=checkpoint)
    assert world.stage(number) != late
    refused(HResult.MQ_ERROR_QUEUE_DELETED, partial(world.engine.send, 1 << 20, late, [b""]))


# Publishing.


def test_what_was_published_is_not_published_again(world: BulkWorld) -> None:
    number, one, two = written(world)
    world.publish(one, two)
    assert world.answers[world.publish(one, two)] == 0
    again = world.stage(number)
    world.write(again, b"a", b"b")
    assert world.answers[world.publish(again)] == 0
    assert world.bodies(number) == [b"a", b"b", b"c", b"d"]
    assert world.engine.stages.all() == [], "and nothing is left of it"


@pytest.mark.parametrize("checkpoint", [False, True])
def test_nor_after_a_restart(world: BulkWorld, checkpoint: bool) -> None:
    number, one, two = written(world)
    world.publish(one, two, batch=0)
    world.come_back(checkpoint=checkpoint)
    again = world.stage(number)
    world.write(again, b"a")
    assert world.answers[world.publish(again)] == 0
    later = world.stage(number, batch=1)
    world.write(later, b"e")
    assert world.answers[world.publish(later, batch=1)] == 1
    assert world.bodies(number) == [b"a", b"b", b"c", b"d", b"e"]


def test_other_attempts_at_a_batch_go_when_it_is_published(world: BulkWorld) -> None:
    number, one, two = written(world)
    lost = world.stage(number, "0 again")
    world.write(lost, b"a", b"b")
    other = world.stage(number, writer="another")
    world.publish(one, two)
    assert [each.stage for each in world.engine.stages.all()] == [other]
    assert world.bodies(number) == [b"a", b"b", b"c", b"d"]


def test_who_publishes_again_before_it_is_durable_waits_as_well(world: BulkWorld) -> None:
    number, one, two = written(world)
    world.durable_at_once = False
    first, again = world.publish(one, two), world.publish(one, two)
    assert not world.answered(again)
    world.sync()
    assert (world.answers[first], world.answers[again]) == (4, 0)
    assert len(world.bodies(number)) == 4


def test_who_publishes_again_is_told_too_that_the_disk_is_full(world: BulkWorld) -> None:
    number, one, two = written(world)
    first, again = world.ask_publish(one, two), world.ask_publish(one, two)
    world.full = 1
    world.perform()
    assert world.code(first) == world.code(again) == FULL
    assert world.bodies(number) == []
    assert world.answers[world.publish(one, two)] == 4


def test_a_later_batch_waits_until_the_one_before_is_published(world: BulkWorld) -> None:
    """If that failed, and this did not, that one could never be published any more."""
    number, one, two = written(world)
    later = world.stage(number, batch=1)
    world.durable_at_once = False
    world.publish(one, two)
    refused(HResult.MQ_ERROR_SHARING_VIOLATION, partial(world.publish, later, batch=1))
    world.sync()
    world.publish(later, batch=1)
    world.sync()
    assert world.engine.state.published[WRITER][0] == 1


def test_a_stage_that_is_named_twice_is_refused(world: BulkWorld) -> None:
    number, one, two = written(world)
    said = refused(HResult.MQ_ERROR_INVALID_PARAMETER, partial(world.publish, one, two, one))
    assert "twice" in said
    assert world.bodies(number) == []
    assert world.answers[world.publish(one, two)] == 4


def test_stages_that_are_not_there_are_refused(world: BulkWorld) -> None:
    number, one, _ = written(world)
    for other in (0, -1, number, STAGE_NUMBER_FIRST + 99, 1 << 70):
        refused(HResult.MQ_ERROR_QUEUE_NOT_FOUND, partial(world.publish, one, other))
    many = range(STAGE_NUMBER_FIRST, STAGE_NUMBER_FIRST + 70_000)
    refused(HResult.MQ_ERROR_QUEUE_NOT_FOUND, partial(world.publish, *many))
    assert len(world.engine.stages.all()) == 2


def test_stages_of_another_batch_are_refused(world: BulkWorld) -> None:
    _, one, two = written(world)
    said = refused(HResult.MQ_ERROR_INVALID_PARAMETER, partial(world.publish, one, batch=1))
    assert "batch 0 of 'query', not of batch 1" in said
    refused(HResult.MQ_ERROR_INVALID_PARAMETER, partial(world.publish, two, writer="x"))


def test_a_batch_without_messages_is_remembered(world: BulkWorld) -> None:
    number = world.create("q")
    empty = world.stage(number)
    assert world.answers[world.publish(empty)] == 0
    assert world.engine.stages.all() == []
    again = world.stage(number)
    world.write(again, b"a")
    assert world.answers[world.publish(again)] == 0
    assert world.answers[world.publish(batch=1)] == 0
    assert world.engine.state.published[WRITER][0] == 1


def test_what_is_still_being_written_is_not_published(world: BulkWorld) -> None:
    number, one, two = written(world)
    world.durable_at_once = False
    world.write(one, b"late")
    said = refused(HResult.MQ_ERROR_SHARING_VIOLATION, partial(world.publish, one, two))
    assert "being written" in said
    world.sync()
    world.publish(one, two)
    world.sync()
    assert world.bodies(number) == [b"a", b"b", b"late", b"c", b"d"]
    assert world.sequences(number) == sorted(set(world.sequences(number)))


def test_nothing_is_written_into_what_is_being_published(world: BulkWorld) -> None:
    _, one, two = written(world)
    world.durable_at_once = False
    world.publish(one, two)
    refused(HResult.MQ_ERROR_QUEUE_DELETED, partial(world.write, one, b"late"))


@pytest.mark.limit("merq.engine.holdings.WRITERS_MAX")
def test_so_many_writers_are_remembered(world: BulkWorld, lower: Lower) -> None:
    number = world.create("q")
    lower("merq.engine.holdings", "WRITERS_MAX", 2)
    for writer in ("a", "b", "a", "c"):
        batch = len(world.engine.state.published)
        stage = world.stage(number, writer=writer, batch=batch)
        world.publish(stage, writer=writer, batch=batch)
    assert list(world.engine.state.published) == ["a", "c"]
    world.checkpoint()
    world.restart()
    assert list(world.engine.state.published) == ["a", "c"]


def test_messages_that_have_expired_go_when_they_are_published(world: BulkWorld) -> None:
    number = world.create("q")
    stage = world.stage(number)
    world.write(stage, b"a", time_to_be_received=10, negative_journaling=True)
    world.tick(60)
    assert world.bodies(stage) == [b"a"], "nobody is told before it was sent"
    world.restart()
    world.publish(stage)
    world.tick(1)
    assert world.bodies(number) == []
    assert world.bodies(world.find(r".\system$;DEADLETTER")) == [b"a"]


def test_senders_hear_of_arrival_when_it_is_published(world: BulkWorld) -> None:
    admin = world.create("admin")
    number = world.create("q")
    stage = world.stage(number)
    told = {"admin_queue": r"OS:.\private$\admin", "acknowledgments": POSITIVE_ARRIVAL}
    world.write(stage, b"a", positive_journaling=True, **told)
    world.write(stage, b"b")
    world.restart()
    assert world.messages(admin) == []
    world.publish(stage)
    (said,) = world.messages(admin)
    assert said.message_class == MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE
    assert world.bodies(JOURNAL_NUMBER) == [b"a"]


# Transactions.


def headers(world: BulkWorld, number: int) -> list[tuple[bytes, TransactionFields]]:
    """Each body, and what the message says of its transaction."""
    found = []
    for view in world.messages(number):
        header = UserMessage.parse(view.packet).transaction_header
        assert header is not None
        found.append((view.body, header.fields))
    return found


def flags(world: BulkWorld, number: int) -> list[tuple[bytes, bool, bool]]:
    return [
        (body, header.flags.first_message, header.flags.last_message)
        for body, header in headers(world, number)
    ]


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_batch_into_a_transactional_queue_is_one_transaction(
    world: BulkWorld, checkpoint: bool
) -> None:
    number, one, two = written(world, transactional=True)
    empty = world.stage(number, "2")
    world.write(two, b"e")
    world.publish(one, empty, two)
    between = [(body, False, False) for body in (b"b", b"c", b"d")]
    expected = [(b"a", True, False), *between, (b"e", False, True)]
    assert flags(world, number) == expected
    assert len({header.flags.identifier for _, header in headers(world, number)}) == 1
    world.come_back(checkpoint=checkpoint)
    assert flags(world, number) == expected


def test_a_message_alone_is_the_first_and_the_last(world: BulkWorld) -> None:
    number = world.create("q", transactional=True)
    stage = world.stage(number)
    world.write(stage, b"a")
    world.publish(stage)
    assert flags(world, number) == [(b"a", True, True)]
    world.restart()
    assert flags(world, number) == [(b"a", True, True)]


def test_a_transaction_over_several_queues_has_one_first_and_one_last(world: BulkWorld) -> None:
    plain = world.create("plain")
    first = world.create("first", transactional=True)
    last = world.create("last", transactional=True)
    stages = []
    for number in (plain, first, last):
        stages.append(world.stage(number, str(number)))
        world.write(stages[-1], b"a", b"b")
    world.publish(*stages)
    assert flags(world, first) == [(b"a", True, False), (b"b", False, False)]
    assert flags(world, last) == [(b"a", False, False), (b"b", False, True)]
    assert not any(view.transactional for view in world.messages(plain))


def test_messages_of_a_stage_count_on_after_one_that_could_not_be_written(
    world: BulkWorld,
) -> None:
    number = world.create("q", transactional=True)
    stage = world.stage(number)
    world.full = 1
    assert world.code(world.write(stage, b"lost")) == FULL
    world.durable_at_once = False
    world.write(stage, b"a")
    world.write(stage, b"b")
    world.sync()
    world.publish(stage)
    world.sync()
    assert [view.tx_sequence_number for view in world.messages(number)] == [1, 2]


# Room.


def test_what_is_written_has_to_fit_into_the_queue(world: BulkWorld) -> None:
    number = world.create("q", quota=2)
    one, two = world.stage(number, "0"), world.stage(number, "1")
    refused(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, partial(world.write, one, bytes(3000)))
    world.write(one, bytes(1200))
    world.write(two, bytes(1200))
    said = refused(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, partial(world.publish, one, two))
    assert "quota of 2 KB" in said
    world.publish(one)
    assert len(world.messages(number)) == 1


def test_what_is_being_published_takes_room_already(world: BulkWorld) -> None:
    number = world.create("q", quota=2)
    stage = world.stage(number)
    world.write(stage, bytes(1200))
    world.durable_at_once = False
    world.publish(stage)
    refused(
        HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
        partial(world.send, number, body=bytes(1200), recoverable=True),
    )
    world.sync()
    assert world.queue(number).staged_bytes == 0
    assert world.queue(number).positions.total_bytes == world.engine.state.taken_bytes


def test_what_could_not_be_published_takes_none(world: BulkWorld) -> None:
    number, one, two = written(world)
    world.full = 1
    world.publish(one, two)
    assert world.queue(number).staged_bytes == 0
