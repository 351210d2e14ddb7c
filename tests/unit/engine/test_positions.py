"""The order of messages in a queue, and what it costs."""

from __future__ import annotations

import tracemalloc

import pytest

from merq.engine.positions import (
    AVAILABLE,
    LOCKED,
    NEVER,
    Place,
    PositionList,
    PositionTaken,
)

ROW_BYTES_MAX = 40
MEMORY = 1 << 63


def place(lookup_id: int, location: int, size: int) -> Place:
    return Place(lookup_id, location, size, NEVER, AVAILABLE, 0)


def identifier(priority: int, number: int) -> int:
    return 7 - priority << 56 | number


def filled(count: int) -> PositionList:
    queue = PositionList()
    for number in range(count):
        queue.append(identifier(3, number), number, 1, NEVER, number)
    return queue


def located(found: Place | None) -> int:
    assert found is not None
    return found.location


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
    count = 20_000
    tracemalloc.start()
    try:
        queue = PositionList()
        for number in range(count):
            queue.add(place(identifier(3, number), number << 20, 1024))
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / count < ROW_BYTES_MAX


def test_a_message_can_be_appended_by_its_columns() -> None:
    queue = PositionList()
    queue.append(identifier(3, 1), 1, 10, NEVER, 5)
    queue.append(identifier(3, 3), 3, 10, 77, 6)
    queue.append(identifier(3, 2), 2, 10, NEVER, 7)
    queue.append(identifier(7, 4), 4, 10, NEVER, 8)
    assert [each.location for each in queue] == [4, 1, 2, 3]
    assert queue.get(identifier(3, 3)) == Place(identifier(3, 3), 3, 10, 77, AVAILABLE, 6)
    assert (queue.count, queue.available, queue.total_bytes) == (4, 4, 40)
    with pytest.raises(PositionTaken):
        queue.append(identifier(3, 2), 9, 10, NEVER, 9)
    assert queue.count == 4


def test_a_removed_message_cannot_be_touched_again() -> None:
    queue = filled(3)
    queue.remove(identifier(3, 1))
    assert queue.get(identifier(3, 1)) is None
    for touch in (
        lambda: queue.remove(identifier(3, 1)),
        lambda: queue.set_state(identifier(3, 1), LOCKED),
        lambda: queue.relocate(identifier(3, 1), 5),
        lambda: queue.remove(identifier(3, 9)),
    ):
        with pytest.raises(AssertionError, match="is not in the queue"):
            touch()


@pytest.mark.parametrize("block_rows", [1, 512])
def test_a_message_that_comes_back_to_its_place_is_found_there(block_rows: int) -> None:
    queue = PositionList(block_rows=block_rows)
    for location in (1, 2):
        queue.append(identifier(3, 1), location, 1, NEVER, 0)
        assert located(queue.get(identifier(3, 1))) == location
        assert queue.remove(identifier(3, 1)).location == location


def test_reading_passes_over_any_number_of_locked_messages_at_the_head() -> None:
    count = 5000
    queue = filled(count)
    for number in range(count - 2):
        queue.set_state(identifier(3, number), LOCKED)
    for _ in range(3):
        assert located(queue.first()) == count - 2
        assert located(queue.after(identifier(3, 0))) == count - 2
        assert queue.before(identifier(3, count - 2)) is None
        assert located(queue.last()) == count - 1
        # An abort gives the first back, and it is received again.
        queue.set_state(identifier(3, 0), AVAILABLE)
        assert located(queue.first()) == 0
        assert located(queue.before(identifier(3, count - 2))) == 0
        queue.set_state(identifier(3, 0), LOCKED)


def test_a_copy_leaves_out_what_has_the_bit_and_what_is_gone() -> None:
    count = 3000
    queue = PositionList()
    for number in range(count):
        flag = MEMORY if number % 1500 == 7 else 0
        queue.append(identifier(3, number), flag | number, number, NEVER, number)
    for number in [*range(100), 1000, 2500]:
        queue.remove(identifier(3, number))
    kept = [n for n in range(100, count) if n not in (1000, 2500, 1507)]
    columns = queue.columns(without=MEMORY)
    assert list(columns.ids) == [identifier(3, number) for number in kept]
    assert [list(column) for column in columns[1:]] == [kept, kept, [NEVER] * len(kept), kept]
    other = PositionList()
    other.load(columns)
    assert list(other) == [one for one in queue if not one.location & MEMORY]


def test_one_old_message_in_each_block_does_not_keep_the_memory_of_the_others() -> None:
    count, step = 20_000, 200
    tracemalloc.start()
    try:
        queue = filled(count)
        for number in range(count):
            if number % step:
                queue.remove(identifier(3, number))
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [each.location for each in queue] == list(range(0, count, step))
    assert used < count // step * 300


def test_what_was_received_gives_its_memory_back() -> None:
    queue = PositionList()
    tracemalloc.start()
    try:
        for number in range(20_000):
            queue.add(place(identifier(3, number), number, 1))
            if number >= 1000:
                queue.remove(identifier(3, number - 1000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(queue) == 1000
    assert peak < 400_000
