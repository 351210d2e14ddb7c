"""Opening and closing queues, alone or with others, and what each opening may be used for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from merq.engine.reading import ByCursor
from merq.hresult import HResult
from merq.model.access import Access, Share
from merq.model.selecting import First
from unit.engine.conftest import Lower
from unit.engine.engine_world import World, refused

REMOTE = r"DIRECT=OS:there\private$\orders"
NONE, DENY = Share.DENY_NONE, Share.DENY_RECEIVE
VIOLATION = HResult.MQ_ERROR_SHARING_VIOLATION


def opened(world: World, number: int, access: Access, share: Share = NONE) -> int:
    return world.engine.open_queue(number, access, share).handle


def receive(world: World, number: int, handle: int, *, wait: bool = False) -> int:
    request = world.next_request()
    world.engine.receive(request, number, First(), wait=wait, handle=handle)
    world.perform()
    return request


def peek(world: World, number: int, handle: int) -> int:
    request = world.next_request()
    world.engine.peek(request, number, First(), wait=False, handle=handle)
    world.perform()
    return request


RECEIVE, PEEK, SEND, MOVE = Access.RECEIVE, Access.PEEK, Access.SEND, Access.MOVE

TABLE = [
    # who has it open already; who comes; whether that is refused
    (RECEIVE, DENY, RECEIVE, DENY, True),
    (RECEIVE, DENY, RECEIVE, NONE, True),
    (RECEIVE, DENY, PEEK, DENY, True),
    (RECEIVE, DENY, PEEK, NONE, False),
    (RECEIVE, DENY, SEND, NONE, False),
    (RECEIVE, DENY, MOVE, NONE, False),
    (PEEK, DENY, RECEIVE, DENY, True),
    (PEEK, DENY, RECEIVE, NONE, True),
    (PEEK, DENY, PEEK, DENY, False),
    (PEEK, DENY, PEEK, NONE, False),
    (PEEK, DENY, SEND, NONE, False),
    (RECEIVE, NONE, RECEIVE, DENY, True),
    (RECEIVE, NONE, PEEK, DENY, True),
    (RECEIVE, NONE, RECEIVE, NONE, False),
    (RECEIVE, NONE, PEEK, NONE, False),
    (RECEIVE, NONE, SEND, NONE, False),
    (PEEK, NONE, RECEIVE, DENY, False),
    (PEEK, NONE, RECEIVE, NONE, False),
    (PEEK, NONE, PEEK, DENY, False),
    (SEND, NONE, RECEIVE, DENY, False),
    (MOVE, NONE, RECEIVE, DENY, False),
    (SEND, NONE, SEND, NONE, False),
]


@pytest.mark.parametrize(("access", "share", "then", "then_share", "is_refused"), TABLE)
@pytest.mark.spec("MS-MQDMPR 3.1.7.1.5", "MS-MQDMPR 3.1.1.17")
@pytest.mark.spec("E42")
def test_who_has_a_queue_open_shuts_out_whom_the_table_says(
    world: World, access: Access, share: Share, then: Access, then_share: Share, is_refused: bool
) -> None:
    number = world.create("orders")
    first = opened(world, number, access, share)
    if is_refused:
        text = refused(VIOLATION, lambda: opened(world, number, then, then_share))
        assert access.value in text
        assert share.value in text
        assert then.value in text
        assert len(world.engine.queue(number).descriptors) == 1
        world.engine.close_queue(first)
    opened(world, number, then, then_share)
    other = world.create("other")
    opened(world, other, RECEIVE, DENY)


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.5", "MS-MQDMPR 3.1.1.16", "MS-MQDMPR 3.1.1.2")
def test_an_opening_has_a_handle_of_its_own_and_makes_the_queue_active(world: World) -> None:
    number = world.create("orders")
    queue = world.engine.queue(number)
    active = [queue.is_active]
    first, second = opened(world, number, PEEK), opened(world, number, PEEK)
    assert first != second
    assert set(queue.descriptors) == {first, second}
    descriptor = queue.descriptors[first]
    assert (descriptor.queue, descriptor.access, descriptor.share) == (queue, PEEK, NONE)
    for handle in (first, second):
        active.append(queue.is_active)
        world.engine.close_queue(handle)
    active.append(queue.is_active)
    assert active == [False, True, True, False]
    assert opened(world, number, PEEK) not in {first, second}


@pytest.mark.parametrize("access", [SEND, MOVE])
def test_who_does_not_read_cannot_deny_receiving(world: World, access: Access) -> None:
    number = world.create("orders")
    text = refused(
        HResult.MQ_ERROR_UNSUPPORTED_ACCESS_MODE, lambda: opened(world, number, access, DENY)
    )
    assert access.value in text


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.5")
def test_administrative_access_is_for_outgoing_queues(world: World) -> None:
    number = world.create("orders")
    for access in (Access.RECEIVE_ADMIN, Access.PEEK_ADMIN):
        refused(
            HResult.MQ_ERROR_UNSUPPORTED_ACCESS_MODE,
            partial(opened, world, number, access),
        )
    world.send_to(REMOTE, body=b"far")
    (outgoing,) = world.engine.outgoing_queues()
    for access in (RECEIVE, PEEK, MOVE):
        text = refused(
            HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION,
            partial(opened, world, outgoing.number, access),
        )
        assert outgoing.properties.path_name in text
    handle = opened(world, outgoing.number, Access.PEEK_ADMIN)
    assert world.body(peek(world, outgoing.number, handle)) == b"far"
    refused(HResult.MQ_ERROR_ACCESS_DENIED, lambda: receive(world, outgoing.number, handle))
    handle = opened(world, outgoing.number, Access.RECEIVE_ADMIN)
    assert world.body(receive(world, outgoing.number, handle)) == b"far"


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.5")
def test_a_queue_that_is_not_there_cannot_be_opened(world: World) -> None:
    number = world.create("orders")
    world.delete(number)
    refused(HResult.MQ_ERROR_QUEUE_DELETED, lambda: opened(world, number, RECEIVE))


ALLOWED = {
    RECEIVE: {"receive", "peek", "purge", "cursor"},
    PEEK: {"peek", "cursor"},
    SEND: {"cursor"},
    MOVE: {"cursor"},
}


@pytest.mark.parametrize("access", list(ALLOWED))
@pytest.mark.spec("MS-MQDMPR 3.1.1.17", "MS-MQDMPR 3.1.1.16")
def test_an_opening_is_for_what_it_was_opened_for(world: World, access: Access) -> None:
    number = world.create("orders")
    handle = opened(world, number, access)
    asks: dict[str, Callable[[], object]] = {
        "peek": lambda: peek(world, number, handle),
        "cursor": lambda: world.engine.open_cursor(number, handle),
        "receive": lambda: receive(world, number, handle),
        "purge": lambda: world.engine.purge(world.next_request(), number, handle),
    }
    for name, ask in asks.items():
        world.fill(number, b"a")
        count = len(world.bodies(number))
        if name in ALLOWED[access]:
            ask()
            continue
        text = refused(HResult.MQ_ERROR_ACCESS_DENIED, ask)
        assert access.value in text
        assert len(world.bodies(number)) == count


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.5")
@pytest.mark.parametrize("access", [RECEIVE, PEEK])
def test_who_denies_receiving_denies_it_to_those_who_have_not_opened(
    world: World, access: Access
) -> None:
    number = world.create("orders", transactional=False)
    later = world.subqueue(number, "later")
    (only,) = world.fill(number, b"a")
    handle = opened(world, number, access, DENY)
    asks: list[Callable[[], object]] = [
        lambda: world.receive(number),
        lambda: world.purge(number),
        lambda: world.move(number, only, later),
    ]
    for ask in asks:
        text = refused(VIOLATION, ask)
        assert "orders" in text
    assert world.body(world.peek(number)) == b"a"
    world.fill(number, b"b")
    world.engine.close_queue(handle)
    assert world.body(world.receive(number)) == b"a"


def test_who_has_a_queue_alone_can_do_everything_with_it(world: World) -> None:
    number = world.create("orders")
    later = world.subqueue(number, "later")
    first, _, _ = world.fill(number, b"a", b"b", b"c")
    handle = opened(world, number, RECEIVE, DENY)
    assert world.body(peek(world, number, handle)) == b"a"
    request = world.next_request()
    world.engine.move(request, number, first, later, handle=handle)
    world.perform()
    assert world.bodies(later) == [b"a"]
    assert world.body(receive(world, number, handle)) == b"b"
    request = world.next_request()
    world.engine.purge(request, number, handle)
    world.perform()
    assert world.answers[request] == 1


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.6", "MS-MQDMPR 3.1.7.1.17")
@pytest.mark.spec("E41")
def test_closing_tells_those_who_wait_through_it_and_no_others(world: World) -> None:
    number = world.create("orders")
    handle, other = opened(world, number, RECEIVE), opened(world, number, RECEIVE)
    waiting = receive(world, number, handle, wait=True)
    elsewhere = receive(world, number, other, wait=True)
    freely = world.receive(number, wait=True)
    world.engine.close_queue(handle)
    world.perform()
    assert world.code(waiting) == HResult.MQ_ERROR_OPERATION_CANCELLED
    assert not world.answered(elsewhere)
    world.fill(number, b"a", b"b")
    assert (world.body(elsewhere), world.body(freely)) == (b"a", b"b")


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.6")
@pytest.mark.spec("E41")
def test_nothing_can_be_done_through_what_was_closed(world: World) -> None:
    number = world.create("orders")
    world.fill(number, b"a")
    handle = opened(world, number, RECEIVE)
    cursor = world.engine.open_cursor(number, handle)
    world.engine.close_queue(handle)
    asks: list[Callable[[], object]] = [
        lambda: receive(world, number, handle),
        lambda: peek(world, number, handle),
        lambda: world.engine.open_cursor(number, handle),
        lambda: world.engine.purge(world.next_request(), number, handle),
        lambda: world.engine.close_queue(handle),
        lambda: world.engine.peek(
            world.next_request(), number, ByCursor(cursor), wait=False, handle=handle
        ),
    ]
    for ask in asks:
        refused(HResult.MQ_ERROR_INVALID_HANDLE, ask)
    assert world.bodies(number) == [b"a"]


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.4", "MS-MQDMPR 3.1.7.1.6")
def test_a_queue_can_be_deleted_while_it_is_open_and_the_opening_closed_after(
    world: World,
) -> None:
    number = world.create("orders")
    handle = opened(world, number, RECEIVE, DENY)
    waiting = receive(world, number, handle, wait=True)
    world.delete(number)
    assert world.code(waiting) == HResult.MQ_ERROR_QUEUE_DELETED
    refused(HResult.MQ_ERROR_QUEUE_DELETED, lambda: receive(world, number, handle))
    world.engine.close_queue(handle)
    again = world.create("orders")
    opened(world, again, RECEIVE, DENY)


@pytest.mark.limit("merq.engine.opening.CURSORS_MAX")
@pytest.mark.spec("MS-MQDMPR 3.1.7.1.1", "MS-MQDMPR 3.1.7.1.2", "MS-MQDMPR 3.1.1.16")
def test_cursors_belong_to_an_opening_and_are_closed_one_by_one(world: World, lower: Lower) -> None:
    lower("merq.engine.manager", "CURSORS_MAX", 2)
    number = world.create("orders")
    handle = opened(world, number, PEEK)
    first = world.engine.open_cursor(number, handle)
    second = world.engine.open_cursor(number, handle)
    assert first.handle != second.handle
    descriptor = world.engine.queue(number).descriptors[handle]
    assert set(descriptor.cursors) == {first.handle, second.handle}
    refused(
        HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, lambda: world.engine.open_cursor(number, handle)
    )
    world.engine.close_cursor(number, first, handle)
    assert set(descriptor.cursors) == {second.handle}
    world.engine.open_cursor(number, handle)
    world.engine.close_queue(handle)
    assert descriptor.cursors == {}


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.2")
def test_closing_a_cursor_ends_the_waiting_through_it(world: World) -> None:
    number = world.create("orders")
    handle = opened(world, number, RECEIVE)
    cursor = world.engine.open_cursor(number, handle)
    other = world.engine.open_cursor(number, handle)
    requests = []
    for each in (cursor, other):
        request = world.next_request()
        world.engine.receive(request, number, ByCursor(each), wait=True, handle=handle)
        requests.append(request)
    world.perform()
    world.engine.close_cursor(number, cursor, handle)
    world.perform()
    assert world.code(requests[0]) == HResult.MQ_ERROR_OPERATION_CANCELLED
    world.fill(number, b"a")
    assert world.body(requests[1]) == b"a"


@pytest.mark.limit("merq.engine.opening.DESCRIPTORS_MAX")
def test_only_so_many_queues_are_open_at_a_time(world: World, lower: Lower) -> None:
    lower("merq.engine.opening", "DESCRIPTORS_MAX", 2)
    number = world.create("orders")
    handle = opened(world, number, PEEK)
    opened(world, number, SEND)
    text = refused(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, lambda: opened(world, number, PEEK))
    assert "close some" in text
    world.engine.close_queue(handle)
    opened(world, number, PEEK)


def test_a_handle_is_for_its_own_queue(world: World) -> None:
    number, other = world.create("orders"), world.create("other")
    world.fill(number, b"a")
    handle = opened(world, other, RECEIVE)
    opened(world, number, RECEIVE, DENY)
    refused(HResult.MQ_ERROR_INVALID_HANDLE, lambda: receive(world, number, handle))
    refused(HResult.MQ_ERROR_INVALID_HANDLE, lambda: peek(world, number, handle))
    refused(
        HResult.MQ_ERROR_INVALID_HANDLE,
        lambda: world.engine.purge(world.next_request(), number, handle),
    )
    assert world.bodies(number) == [b"a"]


def test_openings_do_not_outlive_the_process(world: World) -> None:
    number = world.create("orders")
    opened(world, number, RECEIVE, DENY)
    world.restart()
    assert world.engine.queue(number).descriptors == {}
    opened(world, number, RECEIVE, DENY)
