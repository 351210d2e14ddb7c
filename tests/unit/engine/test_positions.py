"""The order of messages in a queue, and what it costs."""

from __future__ import annotations

import tracemalloc

import pytest

from merq.engine.positions import AVAILABLE, LOCKED, NEVER, Place, PositionList

ROW_BYTES_MAX = 60


def place(lookup_id: int, location: int, size: int) -> Place:
    return Place(lookup_id, location, size, NEVER, AVAILABLE, 0)


def identifier(priority: int, number: int) -> int:
    return 7 - priority << 56 | number


@pytest.mark.spec("MS-MQDMPR 3.1.1.2", "MS-MQDMPR 3.1.1.12")
def test_messages_stand_by_priority_and_then_by_arrival() -> None:
    queue = PositionList()
    for number, priority in enumerate([3, 0, 7, 3, 7], start=1):
        queue.add(place(identifier(priority, number), number, 1))
    assert [each.location for each in queue] == [3, 5, 1, 4, 2]


@pytest.mark.spec("MS-MQDMPR 3.1.1.11")
def test_a_locked_message_is_passed_over_and_keeps_its_place() -> None:
    queue = PositionList()
    for number in (1, 2, 3):
        queue.add(place(identifier(3, number), number, 1))
    first = identifier(3, 1)
    queue.set_state(first, LOCKED)
    assert queue.first() == place(identifier(3, 2), 2, 1)
    assert queue.get(first) == place(first, 1, 1)._replace(state=LOCKED)
    queue.set_state(first, 0)
    found = queue.first()
    assert found is not None
    assert found.location == 1


def test_identifiers_outside_every_priority_are_not_found() -> None:
    queue = PositionList()
    queue.add(place(identifier(0, 1), 1, 1))
    assert queue.get(8 << 56) is None
    assert queue.after(8 << 56) is None
    before = queue.before(8 << 56)
    assert before is not None
    assert before.location == 1


def test_a_waiting_message_costs_a_row_and_no_more() -> None:
    count = 50_000
    tracemalloc.start()
    try:
        queue = PositionList()
        for number in range(count):
            queue.add(place(identifier(3, number), number << 20, 1024))
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / count < ROW_BYTES_MAX


def test_what_was_received_gives_its_memory_back() -> None:
    queue = PositionList()
    tracemalloc.start()
    try:
        for number in range(100_000):
            queue.add(place(identifier(3, number), number, 1))
            if number >= 1000:
                queue.remove(identifier(3, number - 1000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(queue) == 1000
    assert peak < 400_000
