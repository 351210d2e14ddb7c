"""Finding a message of a queue by its message id, and what that costs in memory."""

from __future__ import annotations

import tracemalloc
from array import array

import pytest

from merq.engine.identifiers import MessageIds

BYTES_MAX = 24
SENDER = 1 << 32
COUNT = 20_000


def test_a_message_is_found_by_its_key_until_it_is_removed() -> None:
    ids = MessageIds()
    ids.add(SENDER | 5, 50)
    assert ids.get(SENDER | 5) == 50
    assert ids.get(SENDER | 4) is None
    assert ids.remove(SENDER | 5, 50)
    assert ids.get(SENDER | 5) is None
    assert len(ids) == 0


def test_a_later_message_with_the_same_key_replaces_the_earlier() -> None:
    ids = MessageIds()
    ids.add(SENDER | 5, 50)
    assert ids.add(SENDER | 5, 51) == 50
    assert ids.get(SENDER | 5) == 51
    assert not ids.remove(SENDER | 5, 50)
    assert ids.get(SENDER | 5) == 51
    assert len(ids) == 1


def test_messages_that_leave_together_do_not_take_one_along_that_has_the_key_of_another() -> None:
    """Whether they are the first of all or lie behind others."""
    for first in (0, 3):
        ids = MessageIds()
        keys = array("Q", range(SENDER, SENDER + 9))
        ids.add_many(keys, array("Q", range(9)))
        ids.add(SENDER | first + 1, 99)
        ids.remove_many(keys[first : first + 4], array("Q", range(first, first + 4)))
        assert ids.get(SENDER | first + 1) == 99
        assert len(ids) == 6
        assert all(ids.get(each) is None for each in keys[first + 2 : first + 4])


def test_keys_of_many_senders_come_in_any_order() -> None:
    ids = MessageIds()
    expected = {}
    for number in range(3000):
        sender, ordinal = number * 7919 % 40 + 1, number * 104_729 % 3001
        ids.add(sender << 32 | ordinal, number)
        expected[sender << 32 | ordinal] = number
    assert {key: ids.get(key) for key in expected} == expected
    assert len(ids) == len(expected)


def test_what_a_checkpoint_gives_is_found_whatever_its_order() -> None:
    first = array("Q", range(SENDER, SENDER + 2000))
    others = array("Q", range(SENDER + 1000, SENDER + 3000, 2))
    keys = first + others
    ids = MessageIds()
    ids.load(keys, array("Q", range(len(keys))))
    expected = dict(zip(keys, range(len(keys)), strict=True))
    assert {key: ids.get(key) for key in expected} == expected
    assert len(ids) == len(expected)


def test_a_checkpoint_is_taken_by_ids_that_were_emptied() -> None:
    ids = MessageIds()
    ids.add(SENDER, 1)
    ids.remove(SENDER, 1)
    ids.load(array("Q", [SENDER + 1]), array("Q", [2]))
    assert ids.first_key() == SENDER + 1
    assert ids.get(SENDER + 1) == 2


def test_a_waiting_message_costs_two_numbers() -> None:
    tracemalloc.start()
    try:
        ids = MessageIds()
        for number in range(COUNT):
            ids.add(SENDER + number, 4 << 56 | number)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / COUNT < BYTES_MAX


def test_memory_follows_the_messages_that_live_wherever_the_others_were() -> None:
    tracemalloc.start()
    try:
        ids = MessageIds()
        for number in range(COUNT):
            ids.add(SENDER + number, number)
        for number in range(COUNT):
            if number % 100:
                ids.remove(SENDER + number, number)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(ids) == COUNT // 100
    assert used < COUNT // 100 * 100


@pytest.mark.parametrize("rows", [2, 512])
def test_it_is_known_whose_messages_are_here(rows: int) -> None:
    ids = MessageIds(run_rows=rows)
    senders = [3, 9, 10, 400]
    for ordinal in (0, 7, 0xFFFFFFFF):
        for sender in senders:
            ids.add(sender << 32 | ordinal, sender)
    assert ids.sources() == senders
    assert [each for each in range(500) if ids.has_source(each)] == senders
    for ordinal in (0, 7, 0xFFFFFFFF):
        ids.remove(9 << 32 | ordinal, 9)
    assert ids.sources() == [3, 10, 400]
    assert not ids.has_source(9)
    assert MessageIds().sources() == []
