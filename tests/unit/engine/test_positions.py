"""The order of messages in a queue, and what it costs."""

from __future__ import annotations

import tracemalloc

import pytest

from merq.engine.positions import (
    AVAILABLE,
    BLOCK_ROWS,
    LOCKED,
    NEVER,
    Place,
    PositionTaken,
)
from merq.engine.runs import Positions

ROW_BYTES_MAX = 40
MEMORY = 1 << 63


def place(lookup_id: int, location: int, size: int) -> Place:
    return Place(lookup_id, location, size, NEVER, AVAILABLE, 0)


def identifier(priority: int, number: int) -> int:
    return 7 - priority << 56 | number


def filled(count: int) -> Positions:
    queue = Positions()
    for number in range(count):
        queue.append(identifier(3, number), number, 1, NEVER, number)
    return queue


def located(found: Place | None) -> int:
    assert found is not None
    return found.location


@pytest.mark.spec("MS-MQDMPR 3.1.1.2", "MS-MQDMPR 3.1.1.12")
def test_messages_stand_by_priority_and_then_by_arrival() -> None:
    queue = Positions()
    for number, priority in enumerate([3, 0, 7, 3, 7], start=1):
        queue.add(place(identifier(priority, number), number, 1))
    assert [each.location for each in queue] == [3, 5, 1, 4, 2]


@pytest.mark.spec("MS-MQDMPR 3.1.1.11")
def test_a_locked_message_is_passed_over_and_keeps_its_place() -> None:
    queue = Positions()
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
    queue = Positions()
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
        queue = Positions()
        for number in range(count):
            queue.add(place(identifier(3, number), number << 20, 1024))
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / count < ROW_BYTES_MAX


def test_a_message_can_be_appended_by_its_columns() -> None:
    queue = Positions()
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
    queue = Positions(block_rows=block_rows)
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
    queue = Positions()
    for number in range(count):
        flag = MEMORY if number % 1500 == 7 else 0
        queue.append(identifier(3, number), flag | number, number, NEVER, number)
    for number in [*range(100), 1000, 2500]:
        queue.remove(identifier(3, number))
    kept = [n for n in range(100, count) if n not in (1000, 2500, 1507)]
    columns = queue.columns(without=MEMORY)
    assert list(columns.ids) == [identifier(3, number) for number in kept]
    assert [list(column) for column in columns[1:]] == [kept, kept, [NEVER] * len(kept), kept]
    other = Positions()
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
    queue = Positions()
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


# Many at once.


def numbers_of(queue: Positions) -> list[int]:
    return [each.location for each in queue]


def test_many_that_come_together_are_placed_across_blocks() -> None:
    queue = Positions(block_rows=4)
    queue.append(identifier(3, 0), 0, 1, NEVER, 0)
    rows = range(1, 11)
    ids = [identifier(3, row) for row in rows]
    queue.append_many(ids, rows, [5] * 10, [NEVER] * 9 + [77], rows)
    assert numbers_of(queue) == list(range(11))
    assert (queue.count, queue.available, queue.total_bytes) == (11, 11, 51)
    assert queue.get(ids[-1]) == Place(ids[-1], 10, 5, 77, AVAILABLE, 10)
    with pytest.raises(PositionTaken):
        queue.append_many([identifier(3, 11), ids[4]], [11, 4], [5, 5], [NEVER, NEVER], [11, 4])
    assert numbers_of(queue) == list(range(12)), "what stood before it was placed"


def test_neighbours_are_taken_at_once_as_far_as_their_block_goes() -> None:
    queue = filled(BLOCK_ROWS + 10)
    ids = [identifier(3, row) for row in range(BLOCK_ROWS - 3, BLOCK_ROWS + 3)]
    first = queue.remove_run(ids, 0)
    assert first is not None
    assert list(first.ids) == ids[:3]
    second = queue.remove_run(ids, 3)
    assert second is not None
    assert list(second.ids) == ids[3:]
    assert queue.count == BLOCK_ROWS + 4
    whole = queue.remove_run([identifier(3, row) for row in range(BLOCK_ROWS - 3)], 0)
    assert whole is not None
    assert len(whole.ids) == BLOCK_ROWS - 3
    assert numbers_of(queue) == list(range(BLOCK_ROWS + 3, BLOCK_ROWS + 10))


@pytest.mark.parametrize(
    "rows", [[2], [9], [9, 2], [0, 2, 1, 3], [1, 3], [3, 2], [5, 6, 7], [6, 7], [4, 5, 6], [2, 2]]
)
def test_what_does_not_lie_together_is_not_taken_as_a_run(rows: list[int]) -> None:
    """Six is gone and nine was never there."""
    queue = filled(8)
    queue.remove(identifier(3, 6))
    before = list(queue)
    assert queue.remove_run([identifier(3, row) for row in rows], 0) is None
    assert list(queue) == before
    assert (queue.count, queue.available, queue.total_bytes) == (7, 7, 7)


def test_locked_messages_leave_with_their_neighbours() -> None:
    queue = filled(6)
    for row in (1, 2):
        queue.set_state(identifier(3, row), LOCKED)
    assert queue.remove_run([identifier(3, row) for row in (0, 1, 2, 3)], 1) is not None
    assert (queue.count, queue.available) == (3, 3)
    assert numbers_of(queue) == [0, 4, 5]


def test_runs_that_were_received_give_their_memory_back() -> None:
    queue, run = Positions(), 100
    tracemalloc.start()
    try:
        for start in range(0, 20_000, run):
            rows = range(start, start + run)
            ids = [identifier(3, row) for row in rows]
            queue.append_many(ids, rows, [1] * run, [NEVER] * run, rows)
            if start >= 1000:
                queue.remove_run([one - 1000 for one in ids], 0)
                for one in ids:
                    if queue.get(one - 1000) is not None:
                        queue.remove(one - 1000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(queue) == 1000
    assert peak < 400_000


def test_messages_that_come_back_together_are_found_in_a_block_that_was_given_up() -> None:
    queue = filled(3 * BLOCK_ROWS)
    ids = [identifier(3, number) for number in range(2 * BLOCK_ROWS)]
    queue.lock(ids)
    assert located(queue.first()) == 2 * BLOCK_ROWS, "no block before has any"
    queue.reopen(ids[5:8])
    assert located(queue.first()) == 5
    assert queue.available == BLOCK_ROWS + 3
    queue.withdraw(ids[4:9])
    assert located(queue.first()) == 2 * BLOCK_ROWS
