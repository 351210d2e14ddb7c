"""Cursors: the state machine of the document, step by step."""

from __future__ import annotations

import pytest

from merq.engine.cursor import Cursor, CursorState, Outcome
from merq.engine.positions import AVAILABLE, LOCKED, NEVER, Place, PositionList

LANE = 4 << 56


def place(lookup_id: int, location: int, size: int) -> Place:
    return Place(lookup_id, location, size, NEVER, AVAILABLE, 0)


def queue_of(*numbers: int) -> PositionList:
    queue = PositionList()
    for number in numbers:
        queue.add(place(LANE | number, number, 1))
    return queue


def number_of(answer: tuple[Outcome, object]) -> int:
    outcome, found = answer
    assert outcome is Outcome.SUCCEEDED
    return found.location  # type: ignore[attr-defined, no-any-return]


@pytest.mark.spec("MS-MQDMPR 3.2.7.1", "MS-MQDMPR 3.2.7.2", "MS-MQDMPR 3.2.7.3")
def test_a_cursor_peeks_its_message_again_until_it_is_moved() -> None:
    cursor = Cursor(1, queue_of(1, 2, 3))
    assert number_of(cursor.peek()) == 1
    assert number_of(cursor.peek()) == 1
    assert number_of(cursor.peek_next()) == 2
    assert number_of(cursor.peek()) == 2
    assert number_of(cursor.peek_next()) == 3


@pytest.mark.spec("MS-MQDMPR 3.2.7.3")
def test_a_new_cursor_cannot_move_to_the_next_message() -> None:
    cursor = Cursor(1, queue_of(1, 2))
    assert cursor.peek_next().outcome is Outcome.ILLEGAL_ACTION
    assert cursor.state is CursorState.UNREAD
    assert number_of(cursor.peek()) == 1


@pytest.mark.spec("MS-MQDMPR 3.2.7.2", "MS-MQDMPR 3.2.7.4")
def test_a_message_that_somebody_else_took_was_received_already() -> None:
    queue = queue_of(1, 2)
    cursor = Cursor(1, queue)
    cursor.peek()
    queue.remove(LANE | 1)
    assert cursor.peek().outcome is Outcome.ALREADY_RECEIVED
    assert cursor.receive(no_wait=True).outcome is Outcome.ALREADY_RECEIVED
    assert number_of(cursor.peek_next()) == 2


@pytest.mark.spec("MS-MQDMPR 3.2.7.2")
def test_a_locked_message_is_received_already_until_its_lock_is_given_back() -> None:
    queue = queue_of(1)
    cursor = Cursor(1, queue)
    cursor.peek()
    queue.set_state(LANE | 1, LOCKED)
    assert cursor.peek().outcome is Outcome.ALREADY_RECEIVED
    queue.set_state(LANE | 1, AVAILABLE)
    assert number_of(cursor.peek()) == 1


@pytest.mark.spec("MS-MQDMPR 3.2.7.4")
def test_receiving_takes_the_message_that_was_peeked_and_then_the_next() -> None:
    queue = queue_of(1, 2, 3)
    cursor = Cursor(1, queue)
    assert number_of(cursor.peek()) == 1
    assert number_of(cursor.receive(no_wait=True)) == 1
    queue.remove(LANE | 1)
    assert cursor.state is CursorState.UNREAD
    assert number_of(cursor.receive(no_wait=True)) == 2
    queue.remove(LANE | 2)
    assert number_of(cursor.peek()) == 3


@pytest.mark.spec("MS-MQDMPR 3.2.7.4")
def test_an_empty_queue_is_waited_at_or_not_found() -> None:
    cursor = Cursor(1, PositionList())
    assert cursor.receive(no_wait=True).outcome is Outcome.NOT_FOUND
    assert cursor.state is CursorState.UNREAD
    waiting = Cursor(2, PositionList())
    assert waiting.receive(no_wait=False).outcome is Outcome.WAITING
    assert waiting.state is CursorState.WAIT_RECEIVE


@pytest.mark.spec("MS-MQDMPR 3.2.7.5")
@pytest.mark.parametrize(
    ("peeking", "state"), [(True, CursorState.READ), (False, CursorState.UNREAD)]
)
def test_what_a_cursor_waited_for_becomes_its_place(*, peeking: bool, state: CursorState) -> None:
    queue = PositionList()
    cursor = Cursor(1, queue)
    answer = cursor.peek() if peeking else cursor.receive(no_wait=False)
    assert answer.outcome is Outcome.WAITING
    queue.add(place(LANE | 5, 5, 1))
    found = queue.first()
    assert found is not None
    cursor.message_available(found)
    assert cursor.state is state
    assert cursor.place == LANE | 5


@pytest.mark.spec("MS-MQDMPR 3.2.7.6")
def test_a_receive_that_waited_in_vain_leaves_the_cursor_at_the_end() -> None:
    queue = queue_of(1)
    cursor = Cursor(1, queue)
    cursor.peek()
    assert cursor.peek_next().outcome is Outcome.WAITING
    cursor.wait_expired()
    assert cursor.state is CursorState.UNREAD
    queue.add(place(LANE | 2, 2, 1))
    assert number_of(cursor.peek()) == 2

    other = Cursor(2, PositionList())
    assert other.receive(no_wait=False).outcome is Outcome.WAITING
    other.wait_expired()
    other.queue.add(place(LANE | 3, 3, 1))
    assert other.peek().outcome is Outcome.WAITING


@pytest.mark.spec("MS-MQDMPR 3.2.1.2")
def test_a_message_of_higher_priority_does_not_pull_a_cursor_back() -> None:
    queue = queue_of(1, 2)
    cursor = Cursor(1, queue)
    cursor.peek()
    queue.add(place(0 << 56 | 9, 9, 1))
    assert number_of(cursor.peek_next()) == 2
    assert queue.first() is not None
