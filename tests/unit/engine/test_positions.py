"""The order of messages in a queue, and what it costs."""

from __future__ import annotations

import tracemalloc

import pytest

from merq.engine.positions import LOCKED, NEVER, Place, PositionList

ROW_BYTES_MAX = 60


def identifier(priority: int, number: int) -> int:
    return 7 - priority << 56 | number


@pytest.mark.spec("MS-MQDMPR 3.1.1.2", "MS-MQDMPR 3.1.1.12")
def test_messages_stand_by_priority_and_then_by_arrival() -> None:
    queue = PositionList()
    for number, priority in enumerate([3, 0, 7, 3, 7], start=1):
        queue.add(identifier(priority, number), location=number, size=1)
    assert [place.location for place in queue] == [3, 5, 1, 4, 2]


@pytest.mark.spec("MS-MQDMPR 3.1.1.11")
def test_a_locked_message_is_passed_over_and_keeps_its_place() -> None:
    queue = PositionList()
    for number in (1, 2, 3):
        queue.add(identifier(3, number), location=number, size=1)
    first = identifier(3, 1)
    queue.set_state(first, LOCKED)
    assert queue.first() == Place(identifier(3, 2), 2, 1, NEVER, 0)
    assert queue.get(first) == Place(first, 1, 1, NEVER, LOCKED)
    queue.set_state(first, 0)
    found = queue.first()
    assert found is not None
    assert found.location == 1


def test_identifiers_outside_every_priority_are_not_found() -> None:
    queue = PositionList()
    queue.add(identifier(0, 1), location=1, size=1)
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
            queue.add(identifier(3, number), location=number << 20, size=1024)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / count < ROW_BYTES_MAX


def test_what_was_received_gives_its_memory_back() -> None:
    queue = PositionList()
    tracemalloc.start()
    try:
        for number in range(100_000):
            queue.add(identifier(3, number), location=number, size=1)
            if number >= 1000:
                queue.remove(identifier(3, number - 1000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(queue) == 1000
    assert peak < 400_000
