"""Reading: which message a selector means, and waiting for one in the order of asking."""

from __future__ import annotations

import pytest

from merq.engine.reading import ByCursor, Selector
from merq.errors import ReceiveTimeout
from merq.hresult import HResult
from merq.model.selecting import ByCorrelationId, ByLookup, ByMessageId, First, Seek
from unit.engine.engine_world import World


def lookups(world: World, number: int) -> list[int]:
    return [place.lookup_id for place in world.engine.queue(number).positions]


@pytest.mark.spec("MS-MQDMPR 3.1.7.3.3", "MS-MQDMPR 3.1.7.1.13", "MS-MQDMPR 3.1.1.17")
def test_every_seek_finds_its_neighbour(world: World) -> None:
    number = world.create("orders")
    for body in (b"a", b"b", b"c"):
        world.send(number, body=body)
    first, second, third = lookups(world, number)
    expected = {
        (second, Seek.FIRST): b"a",
        (second, Seek.PREVIOUS): b"a",
        (second, Seek.CURRENT): b"b",
        (second, Seek.NEXT): b"c",
        (second, Seek.LAST): b"c",
        (0, Seek.NEXT): b"a",
        ((1 << 64) - 1, Seek.PREVIOUS): b"c",
    }
    for (lookup_id, seek), body in expected.items():
        assert world.body(world.peek(number, ByLookup(lookup_id, seek))) == body
    for lookup_id, seek in [
        (first, Seek.PREVIOUS),
        (third, Seek.NEXT),
        (second + 1000, Seek.CURRENT),
        (-1, Seek.CURRENT),
        (1 << 80, Seek.CURRENT),
        (1 << 80, Seek.NEXT),
        (-1, Seek.PREVIOUS),
    ]:
        for ask in (world.peek, world.receive):
            request = ask(number, ByLookup(lookup_id, seek))
            assert world.code(request) == HResult.MQ_ERROR_MESSAGE_NOT_FOUND
    assert world.bodies(number) == [b"a", b"b", b"c"]


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.13")
def test_a_message_is_received_by_its_lookup_identifier_once(world: World) -> None:
    number = world.create("orders")
    for body in (b"a", b"b"):
        world.send(number, body=body, recoverable=True)
    second = lookups(world, number)[1]
    assert world.body(world.receive(number, ByLookup(second))) == b"b"
    assert world.code(world.receive(number, ByLookup(second))) == HResult.MQ_ERROR_MESSAGE_NOT_FOUND
    assert world.bodies(number) == [b"a"]


def test_a_read_by_lookup_identifier_does_not_wait(world: World) -> None:
    number = world.create("orders")
    request = world.receive(number, ByLookup(5, Seek.NEXT), wait=True)
    assert world.code(request) == HResult.MQ_ERROR_MESSAGE_NOT_FOUND


def test_a_message_is_found_by_its_id_wherever_it_stands(world: World) -> None:
    number = world.create("orders")
    requests = [world.send(number, body=bytes([each])) for each in range(5)]
    wanted = world.message_id(requests[3])
    assert world.body(world.peek(number, ByMessageId(wanted))) == b"\3"
    assert world.body(world.receive(number, ByMessageId(wanted))) == b"\3"
    gone = world.receive(number, ByMessageId(wanted))
    assert world.code(gone) == HResult.MQ_ERROR_MESSAGE_NOT_FOUND
    assert world.bodies(number) == [b"\0", b"\1", b"\2", b"\4"]


def test_a_message_that_somebody_holds_is_not_found_by_its_id(world: World) -> None:
    number = world.create("orders", transactional=True)
    sending = world.begin()
    wanted = world.message_id(world.send(number, sending, body=b"a"))
    world.commit(sending)
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    assert world.code(world.peek(number, ByMessageId(wanted))) == HResult.MQ_ERROR_MESSAGE_NOT_FOUND
    world.abort(transaction)
    assert world.body(world.peek(number, ByMessageId(wanted))) == b"a"


def test_the_first_message_with_a_correlation_id_is_found(world: World) -> None:
    number = world.create("orders")
    world.send(number, body=b"other")
    for body in (b"a", b"b"):
        world.send(number, body=body, correlation_id=b"c" * 20)
    assert world.body(world.receive(number, ByCorrelationId(b"c" * 20))) == b"a"
    assert world.body(world.receive(number, ByCorrelationId(b"c" * 20))) == b"b"
    none = world.receive(number, ByCorrelationId(b"c" * 20))
    assert world.code(none) == HResult.MQ_ERROR_MESSAGE_NOT_FOUND


@pytest.mark.spec("MS-MQDMPR 3.1.7.3.1", "MS-MQDMPR 3.1.7.2.2", "MS-MQDMPR 3.1.1.10")
def test_whoever_waits_is_served_in_the_order_of_asking(world: World) -> None:
    number = world.create("orders")
    waiting = [world.receive(number, wait=True) for _ in range(3)]
    for body in (b"a", b"b", b"c"):
        world.send(number, body=body)
    assert [world.body(request) for request in waiting] == [b"a", b"b", b"c"]


def test_who_waits_longer_goes_before_who_asks_as_the_message_comes(world: World) -> None:
    number = world.create("orders")
    waiting = world.receive(number, wait=True)
    world.durable_at_once = False
    world.send(number, body=b"a", recoverable=True)
    # The message is there, and before anybody is served another one asks.
    world.engine.durable(world.log[-1].end)
    late = world.next_request()
    world.engine.receive(late, number, First(), wait=False)
    world.perform()
    world.sync()
    assert world.body(waiting) == b"a"
    assert world.code(late) == HResult.MQ_ERROR_IO_TIMEOUT


def test_who_peeks_leaves_the_message_to_the_next_who_waits(world: World) -> None:
    number = world.create("orders")
    peeking = [world.peek(number, wait=True) for _ in range(2)]
    taking = world.receive(number, wait=True)
    late = world.peek(number, wait=True)
    world.send(number, body=b"a")
    assert [world.body(request) for request in [*peeking, taking]] == [b"a"] * 3
    assert not world.answered(late)


def test_who_waits_for_a_certain_message_lets_others_pass(world: World) -> None:
    number = world.create("orders")
    wanted = b"w" * 20
    particular = world.receive(number, ByCorrelationId(wanted), wait=True)
    anything = world.receive(number, wait=True)
    world.send(number, body=b"a")
    assert world.body(anything) == b"a"
    assert not world.answered(particular)
    world.send(number, body=b"b", correlation_id=wanted)
    assert world.body(particular) == b"b"


@pytest.mark.parametrize(
    "selector", [First(), ByMessageId(bytes(20)), ByCorrelationId(b"c" * 20)], ids=repr
)
@pytest.mark.spec("MS-MQDMPR 3.1.7.1.17", "MS-MQDMPR 3.1.6.3")
def test_a_reader_that_is_cancelled_is_told_once_and_gets_nothing(
    world: World, selector: Selector
) -> None:
    number = world.create("orders")
    waiting = world.receive(number, selector, wait=True)
    assert world.cancel(waiting, number)
    assert isinstance(world.answers[waiting], ReceiveTimeout)
    assert not world.cancel(waiting, number)
    world.send(number, body=b"a", correlation_id=b"c" * 20)
    assert world.bodies(number) == [b"a"]


def test_a_reader_that_was_served_cannot_be_cancelled(world: World) -> None:
    number = world.create("orders")
    waiting = world.receive(number, wait=True)
    world.durable_at_once = False
    world.send(number, body=b"a", recoverable=True)
    world._become_durable()
    world.perform()
    assert not world.answered(waiting)
    assert not world.cancel(waiting, number)
    world.sync()
    assert world.body(waiting) == b"a"


def test_one_message_is_never_given_to_two_readers(world: World) -> None:
    number = world.create("orders")
    world.send(number, body=b"a", recoverable=True)
    world.durable_at_once = False
    first, second = world.receive(number), world.receive(number, wait=True)
    world.sync()
    assert world.body(first) == b"a"
    assert not world.answered(second)


@pytest.mark.spec("MS-MQDMPR 3.2.7.2", "MS-MQDMPR 3.2.7.3", "MS-MQDMPR 3.1.7.1.14")
def test_a_cursor_walks_over_the_queue_and_takes_where_it_stands(world: World) -> None:
    number = world.create("orders")
    for body in (b"a", b"b", b"c"):
        world.send(number, body=body)
    cursor = world.engine.open_cursor(number)
    early = world.peek(number, ByCursor(cursor, next_one=True))
    assert world.code(early) == HResult.MQ_ERROR_ILLEGAL_CURSOR_ACTION
    assert world.body(world.peek(number, ByCursor(cursor))) == b"a"
    assert world.body(world.peek(number, ByCursor(cursor))) == b"a"
    assert world.body(world.peek(number, ByCursor(cursor, next_one=True))) == b"b"
    assert world.body(world.receive(number, ByCursor(cursor))) == b"b"
    assert world.body(world.peek(number, ByCursor(cursor))) == b"c"
    assert world.bodies(number) == [b"a", b"c"]


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.10", "MS-MQDMPR 3.2.7.4")
def test_a_cursor_says_when_its_message_was_taken_or_there_is_none(world: World) -> None:
    number = world.create("orders")
    world.send(number, body=b"a")
    cursor = world.engine.open_cursor(number)
    world.peek(number, ByCursor(cursor))
    world.receive(number)
    taken = world.receive(number, ByCursor(cursor))
    assert world.code(taken) == HResult.MQ_ERROR_MESSAGE_ALREADY_RECEIVED
    other = world.engine.open_cursor(number)
    none = world.receive(number, ByCursor(other))
    assert world.code(none) == HResult.MQ_ERROR_MESSAGE_NOT_FOUND


@pytest.mark.spec("MS-MQDMPR 3.2.7.5", "MS-MQDMPR 3.2.7.6")
def test_a_cursor_waits_for_the_next_message_and_goes_on_after_waiting_in_vain(
    world: World,
) -> None:
    number = world.create("orders")
    world.send(number, body=b"a")
    cursor = world.engine.open_cursor(number)
    world.peek(number, ByCursor(cursor))
    waiting = world.peek(number, ByCursor(cursor, next_one=True), wait=True)
    assert not world.answered(waiting)
    world.send(number, body=b"b")
    assert world.body(waiting) == b"b"
    again = world.peek(number, ByCursor(cursor, next_one=True), wait=True)
    world.cancel(again, number)
    assert world.code(again) == HResult.MQ_ERROR_IO_TIMEOUT
    world.send(number, body=b"c")
    assert world.body(world.peek(number, ByCursor(cursor))) == b"c"
