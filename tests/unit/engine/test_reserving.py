"""Groups of consumers reserve ranges of messages, and acknowledge or release them."""

from __future__ import annotations

from functools import partial

import pytest

from merq.engine.notices import JOURNAL_NUMBER, POSITIVE_RECEIVE
from merq.hresult import HResult
from merq.model.length_limits import GROUP_NAME_MAX
from merq.model.message_class import MessageClass
from unit.engine.bulk_world import ALL, BODIES, GROUP, BulkWorld, filled
from unit.engine.conftest import Lower
from unit.engine.engine_world import refused


@pytest.fixture
def world() -> BulkWorld:
    """An engine without a disk."""
    return BulkWorld()


# Reserving.


def test_a_range_is_what_came_first_up_to_what_was_asked_for(world: BulkWorld) -> None:
    number = filled(world)
    found = world.reserve(number, most=3)
    assert (found.start, found.end, found.messages) == (0, world.sequences(number)[2], 3)
    assert found.size == sum(len(view.packet) for view in world.messages(number)[:3])
    assert world.rows(number, 0) == [b"a", b"b", b"c"]


def test_what_is_reserved_is_nobody_elses(world: BulkWorld) -> None:
    number = filled(world)
    world.reserve(number, most=3)
    assert world.body(world.receive(number)) == b"d"
    assert world.code(world.receive(number)) == HResult.MQ_ERROR_IO_TIMEOUT
    other = world.reserve(number, group="others", owner="two")
    assert (other.start, other.end, other.messages) == (0, 0, 0)
    refused(
        HResult.MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION,
        partial(world.move, number, world.lookup_ids(number)[0], world.subqueue(number, "later")),
    )


def test_two_groups_share_a_queue_and_no_message(world: BulkWorld) -> None:
    number = filled(world)
    world.reserve(number, most=2)
    world.reserve(number, group="others", owner="two", most=2)
    assert world.rows(number, 0) == [b"a", b"b"]
    assert world.rows(number, 0, "others") == [b"c", b"d"]


def test_a_range_is_answered_when_it_is_durable_and_read_only_then(world: BulkWorld) -> None:
    number = filled(world)
    world.durable_at_once = False
    request = world.ask_reserve(number)
    world.perform()
    assert not world.answered(request)
    assert world.ranges(number) == []
    refused(HResult.MQ_ERROR_MESSAGE_NOT_FOUND, partial(world.rows, number, 0))
    world.sync()
    assert world.range(request).messages == 4
    assert world.rows(number, 0) == list(BODIES)


def test_who_asks_again_before_it_is_durable_waits_as_well(world: BulkWorld) -> None:
    number = filled(world)
    world.durable_at_once = False
    first, again = world.ask_reserve(number), world.ask_reserve(number)
    world.perform()
    assert not world.answered(again)
    world.sync()
    assert world.range(first) == world.range(again)
    world.durable_at_once = True
    assert world.reserve(number) == world.range(first)


def test_who_asks_again_is_told_too_that_the_disk_is_full(world: BulkWorld) -> None:
    number = filled(world)
    first, again = world.ask_reserve(number), world.ask_reserve(number)
    world.full = 1
    world.perform()
    assert world.code(first) == world.code(again) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED


def test_the_next_range_begins_where_the_one_before_ends(world: BulkWorld) -> None:
    number = filled(world)
    first = world.reserve(number, most=2)
    second = world.reserve(number, first.end, most=2)
    assert second.start == first.end
    assert world.rows(number, second.start) == [b"c", b"d"]
    assert world.ranges(number) == [first, second]
    said = refused(HResult.MQ_ERROR_INVALID_PARAMETER, partial(world.reserve, number, 1))
    assert "acknowledge or release that first" in said


def test_one_range_at_a_time_is_on_its_way(world: BulkWorld) -> None:
    number = filled(world)
    world.durable_at_once = False
    world.ask_reserve(number, most=2)
    end = world.queue(number).claims[GROUP].end
    refused(HResult.MQ_ERROR_SHARING_VIOLATION, partial(world.ask_reserve, number, end))
    refused(HResult.MQ_ERROR_SHARING_VIOLATION, partial(world.ask_release, number))


def test_nothing_is_kept_of_a_group_that_finds_nothing(world: BulkWorld) -> None:
    number = world.create("q")
    found = world.reserve(number)
    assert (found.start, found.end, found.messages) == (0, 0, 0)
    assert world.engine.reservations.all() == []


def test_priorities_make_no_difference_to_the_order_of_arrival(world: BulkWorld) -> None:
    number = world.create("q")
    for body, priority in ((b"a", 3), (b"b", 7), (b"c", 0), (b"d", 7)):
        world.fill(number, body, priority=priority)
    first = world.reserve(number, most=3)
    assert world.rows(number, 0) == [b"a", b"b", b"c"]
    assert first.end == world.sequences(number)[2]
    world.reserve(number, first.end)
    assert world.rows(number, first.end) == [b"d"]


def test_a_range_keeps_within_bytes_but_has_one_message_at_least(world: BulkWorld) -> None:
    number = filled(world, b"x" * 1000, b"y" * 1000, b"z" * 1000)
    size = len(world.messages(number)[0].packet)
    first = world.reserve(number, most_bytes=1)
    assert first.messages == 1
    second = world.reserve(number, first.end, most_bytes=2 * size)
    assert (second.messages, second.size) == (2, 2 * size)


def test_only_what_came_up_to_a_number_is_reserved(world: BulkWorld) -> None:
    number = filled(world)
    second = world.sequences(number)[1]
    assert world.reserve(number, upto=second).end == second
    assert world.reserve(number, second, upto=second).messages == 0


def test_a_floor_leaves_what_came_before_to_others(world: BulkWorld) -> None:
    number = filled(world)
    second = world.sequences(number)[1]
    world.reserve(number, second, floor=second)
    assert world.rows(number, second) == [b"c", b"d"]
    assert world.body(world.receive(number)) == b"a"
    assert world.body(world.receive(number)) == b"b"


def test_what_comes_back_from_a_transaction_is_in_a_later_range(world: BulkWorld) -> None:
    number = filled(world, transactional=True)
    transaction = world.begin()
    assert world.body(world.receive(number, transaction=transaction)) == b"a"
    first = world.reserve(number)
    assert world.rows(number, 0) == [b"b", b"c", b"d"]
    world.abort(transaction)
    second = world.reserve(number, first.end)
    assert second.start == first.end < second.end, "its end is a number of its own"
    assert world.rows(number, second.start) == [b"a"]
    world.fill(number, b"e")
    assert world.sequences(number)[-1] > second.end, "which no message gets"


def test_messages_within_a_transaction_are_not_reserved(world: BulkWorld) -> None:
    number = filled(world, transactional=True)
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    world.reserve(number)
    assert world.rows(number, 0) == [b"b", b"c", b"d"]
    world.commit(transaction)
    assert world.bodies(number) == [b"b", b"c", b"d"]


# What cannot be.


@pytest.mark.limit("merq.model.length_limits.GROUP_NAME_MAX")
def test_a_name_has_a_length(world: BulkWorld) -> None:
    number = filled(world)
    for name in ("", "x" * (GROUP_NAME_MAX + 1)):
        refused(HResult.MQ_ERROR_INVALID_PARAMETER, partial(world.reserve, number, group=name))
    name = "\N{SNOWMAN}\ud800" * (GROUP_NAME_MAX // 2) + "x"
    assert world.reserve(number, group=name).messages == 4
    world.restart()
    assert world.ranges(number, name)[0].messages == 4


def test_outgoing_queues_are_not_reserved(world: BulkWorld) -> None:
    world.send_to("DIRECT=OS:elsewhere\\private$\\q", body=b"a")
    (outgoing,) = world.engine.outgoing_queues()
    refused(
        HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION, partial(world.reserve, outgoing.number)
    )


@pytest.mark.limit("merq.engine.reserving.GROUPS_MAX")
def test_a_queue_knows_so_many_groups(world: BulkWorld, lower: Lower) -> None:
    number = filled(world)
    lower("merq.engine.reserving", "GROUPS_MAX", 1)
    world.reserve(number, most=1)
    said = refused(
        HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
        partial(world.reserve, number, group="others", owner="two"),
    )
    assert "forget some" in said
    world.release(number, forget=True)
    assert world.reserve(number, group="others", owner="two").messages == 4


@pytest.mark.limit("merq.engine.reserving.RANGES_MAX")
def test_a_group_has_so_many_ranges(world: BulkWorld, lower: Lower) -> None:
    number = filled(world)
    lower("merq.engine.reserving", "RANGES_MAX", 1)
    first = world.reserve(number, most=1)
    refused(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, partial(world.reserve, number, first.end))
    world.acknowledge(number, first.end)
    assert world.reserve(number, first.end).messages == 3


@pytest.mark.limit(
    "merq.engine.reserving.RANGE_BYTES_MAX", "merq.engine.reserving.RANGE_MESSAGES_MAX"
)
def test_a_range_has_so_many_messages_and_bytes(world: BulkWorld, lower: Lower) -> None:
    number = filled(world)
    lower("merq.engine.reserving", "RANGE_MESSAGES_MAX", 3)
    first = world.reserve(number, most=1 << 40)
    assert first.messages == 3
    lower("merq.engine.reserving", "RANGE_BYTES_MAX", 1)
    world.fill(number, b"e")
    assert world.reserve(number, first.end, most_bytes=1 << 50).messages == 1


def test_a_number_that_no_message_ever_had_is_refused(world: BulkWorld) -> None:
    number = filled(world)
    said = refused(HResult.MQ_ERROR_INVALID_PARAMETER, partial(world.reserve, number, ALL))
    assert "set back" in said
    assert world.reserve(number, 0).messages == 4, "and nothing has changed"


def test_what_was_acknowledged_is_not_there_to_be_reserved(world: BulkWorld) -> None:
    number = filled(world)
    first = world.reserve(number, most=2)
    world.acknowledge(number, first.end)
    said = refused(HResult.MQ_ERROR_MESSAGE_NOT_FOUND, partial(world.reserve, number, 0))
    assert "that is gone" in said
    refused(HResult.MQ_ERROR_MESSAGE_NOT_FOUND, partial(world.rows, number, 0))


def test_asking_for_no_messages_gives_none(world: BulkWorld) -> None:
    number = filled(world)
    assert world.reserve(number, most=0).messages == 0


# Acknowledging.


def test_what_is_acknowledged_is_gone_range_by_range(world: BulkWorld) -> None:
    number = filled(world)
    first = world.reserve(number, most=2)
    second = world.reserve(number, first.end, most=1)
    assert world.answers[world.acknowledge(number, second.end)] == 1, "one is left"
    assert world.bodies(number) == [b"c", b"d"]
    assert world.answers[world.acknowledge(number, second.end)] == 0
    assert world.answers[world.acknowledge(number, second.end)] == 0
    assert world.bodies(number) == [b"d"]
    assert world.available(number) == 1


def test_a_range_that_ends_later_stays(world: BulkWorld) -> None:
    number = filled(world)
    found = world.reserve(number)
    assert world.answers[world.acknowledge(number, found.end - 1)] == 0
    assert world.ranges(number) == [found]


def test_a_group_that_never_was_has_nothing_to_acknowledge(world: BulkWorld) -> None:
    number = filled(world)
    assert world.answers[world.acknowledge(number, ALL)] == 0
    assert world.engine.reservations.all() == []


def test_a_range_that_is_not_durable_is_not_acknowledged(world: BulkWorld) -> None:
    number = filled(world)
    world.durable_at_once = False
    world.ask_reserve(number)
    request = world.ask_acknowledge(number, ALL)
    world.full = 1
    world.perform()
    world.sync()
    assert world.answers[request] == 0
    assert world.bodies(number) == list(BODIES)
    assert world.available(number) == 4


def test_who_acknowledges_again_is_told_when_the_first_is_durable(world: BulkWorld) -> None:
    number = filled(world)
    first = world.reserve(number, most=2)
    second = world.reserve(number, first.end)
    world.durable_at_once = False
    one, two = world.acknowledge(number, second.end), world.acknowledge(number, second.end)
    assert not world.answered(two)
    world.sync()
    assert (world.answers[one], world.answers[two]) == (1, 1)
    assert world.ranges(number) == [second]


def test_an_acknowledgment_that_fails_leaves_ranges_in_their_order(world: BulkWorld) -> None:
    number = filled(world)
    first = world.reserve(number, most=2)
    second = world.reserve(number, first.end)
    one, two = world.ask_acknowledge(number, second.end), world.ask_acknowledge(number, second.end)
    world.full = 1
    world.perform()
    assert world.code(one) == world.code(two) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert world.ranges(number) == [first, second]
    assert world.available(number) == 0
    before = world.picture()
    world.restart()
    assert world.picture() == before
    assert world.answers[world.acknowledge(number, second.end)] == 1
    assert world.bodies(number) == [b"c", b"d"]


def test_the_next_range_may_be_reserved_while_the_one_before_goes(world: BulkWorld) -> None:
    number = filled(world)
    first = world.reserve(number, most=2)
    world.ask_acknowledge(number, first.end)
    second = world.ask_reserve(number, first.end)
    world.perform()
    assert world.range(second).messages == 2
    before = world.picture()
    world.restart()
    assert world.picture() == before


def test_what_could_not_go_is_there_with_the_range_behind_it(world: BulkWorld) -> None:
    number = filled(world)
    first = world.reserve(number, most=2)
    world.ask_acknowledge(number, first.end)
    request = world.ask_reserve(number, first.end)
    world.full = 1
    world.perform()
    assert world.ranges(number) == [first, world.range(request)]
    before = world.picture()
    world.restart()
    assert world.picture() == before
    assert world.rows(number, 0) == [b"a", b"b"]


def test_a_range_on_its_way_out_is_not_reserved_again(world: BulkWorld) -> None:
    number = filled(world)
    first = world.reserve(number, most=2)
    world.durable_at_once = False
    world.acknowledge(number, first.end)
    refused(HResult.MQ_ERROR_INVALID_PARAMETER, partial(world.ask_reserve, number, 0))


@pytest.mark.spec("MS-MQQB 3.1.7.2.1")
def test_journals_and_senders_hear_of_it_when_it_is_acknowledged(world: BulkWorld) -> None:
    admin = world.create("admin")
    number = world.create("q", journaling=True)
    world.fill(number, b"a", admin_queue=r"OS:.\private$\admin", acknowledgments=POSITIVE_RECEIVE)
    world.fill(number, b"b")
    found = world.reserve(number)
    assert world.messages(admin) == []
    world.acknowledge(number, found.end)
    (told,) = world.messages(admin)
    assert told.message_class == MessageClass.MQMSG_CLASS_ACK_RECEIVE
    assert world.bodies(world.find(r".\private$\q;JOURNAL")) == [b"a", b"b"]
    assert world.bodies(JOURNAL_NUMBER) == []


def test_journals_hear_of_nothing_if_the_disk_is_full(world: BulkWorld) -> None:
    number = filled(world, journaling=True)
    found = world.reserve(number)
    before = world.picture()
    world.full = 1
    assert world.code(world.acknowledge(number, found.end)) == (
        HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    )
    assert world.picture() == before
    world.acknowledge(number, found.end)
    assert world.bodies(world.find(r".\private$\q;JOURNAL")) == list(BODIES)


# Releasing.


def test_what_is_released_is_anybodys_and_the_group_goes_on_behind_it(world: BulkWorld) -> None:
    number = filled(world)
    first = world.reserve(number, most=2)
    second = world.reserve(number, first.end, most=1)
    assert world.answers[world.release(number)] == 3
    assert world.body(world.receive(number)) == b"a"
    refused(HResult.MQ_ERROR_MESSAGE_NOT_FOUND, partial(world.reserve, number, 0))
    third = world.reserve(number, second.end)
    assert world.rows(number, third.start) == [b"b", b"c", b"d"]


def test_a_group_that_is_forgotten_begins_anew(world: BulkWorld) -> None:
    number = filled(world)
    world.reserve(number, most=2)
    world.release(number, forget=True)
    assert world.engine.reservations.all() == []
    assert world.reserve(number, owner="another").messages == 4


def test_whoever_waits_gets_what_is_released(world: BulkWorld) -> None:
    number = filled(world, b"a")
    world.reserve(number)
    waiting = world.receive(number, wait=True)
    world.release(number)
    assert world.body(waiting) == b"a"


def test_releasing_what_nobody_reserved_is_refused(world: BulkWorld) -> None:
    number = filled(world)
    refused(HResult.MQ_ERROR_INVALID_PARAMETER, partial(world.release, number))


def test_while_it_is_released_nothing_else_is_planned_upon_it(world: BulkWorld) -> None:
    number = filled(world)
    found = world.reserve(number)
    world.durable_at_once = False
    world.release(number)
    for ask in (
        partial(world.ask_reserve, number),
        partial(world.ask_acknowledge, number, found.end),
        partial(world.ask_release, number),
    ):
        refused(HResult.MQ_ERROR_SHARING_VIOLATION, ask)
    world.sync()
    assert world.available(number) == 4


@pytest.mark.parametrize("forget", [False, True])
def test_a_release_that_fails_leaves_everything(world: BulkWorld, forget: bool) -> None:
    number = filled(world)
    found = world.reserve(number)
    before = world.picture()
    world.full = 1
    assert world.code(world.release(number, forget=forget)) == (
        HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    )
    assert world.picture() == before
    world.acknowledge(number, found.end)
    assert world.bodies(number) == []


@pytest.mark.parametrize("forget", [False, True])
@pytest.mark.parametrize("full", [0, 1])
def test_a_release_behind_an_acknowledgment_releases_what_is_left(
    world: BulkWorld, forget: bool, full: int
) -> None:
    number = filled(world)
    first = world.reserve(number, most=2)
    world.reserve(number, first.end, most=1)
    world.ask_acknowledge(number, first.end)
    world.ask_release(number, forget=forget)
    world.full = full
    world.perform()
    assert world.ranges(number) == []
    assert world.bodies(number) == (list(BODIES) if full else [b"c", b"d"])
    assert world.available(number) == (4 if full else 2)
    before = world.picture()
    world.restart()
    assert world.picture() == before
