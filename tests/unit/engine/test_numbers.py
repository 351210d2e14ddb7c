"""Numbers that are given out once, singly and many in a row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merq.engine import records
from merq.engine.changes import Change
from merq.engine.numbers import ORDINAL_MASK, RESERVATION, Numbers, lookup_id_of

asked = st.lists(st.integers(1, 2 * RESERVATION + 5), min_size=1, max_size=8)


def reserved(change: Change) -> list[tuple[int, int]]:
    """What a change says in the log, and nothing else is there."""
    assert {entry.kind for entry in change.entries} <= {records.RESERVE}
    return [records.read_reserve(entry.data) for entry in records.singly(change.entries)]


def at(sequential_id: int, ordinal: int) -> Numbers:
    """Numbers that go on behind these."""
    numbers = Numbers()
    numbers.go_on_from(sequential_id, ordinal)
    return numbers


@given(counts=asked)
@pytest.mark.spec("MS-MQDMPR 3.1.7.1.9")
def test_identifiers_in_a_row_are_those_that_would_be_given_one_by_one(counts: list[int]) -> None:
    many, change, given_out = Numbers(), Change(), 0
    for count in counts:
        assert many.lookup_ids(3, count, change) == lookup_id_of(3, given_out + 1)
        given_out += count
        assert reserved(change)[-1][0] >= given_out, "what is given is in the log before"
        assert many.reserved() == reserved(change)[-1]
    assert many.lookup_id(0, change) == lookup_id_of(0, given_out + 1)


@given(counts=asked)
def test_ordinals_in_a_row_are_those_that_would_be_given_one_by_one(counts: list[int]) -> None:
    many, change, given_out = Numbers(), Change(), 0
    for count in counts:
        assert many.ordinals(count, change) == given_out + 1
        given_out += count
        assert reserved(change)[-1][1] >= given_out, "what is given is in the log before"
    assert many.ordinal(change) == given_out + 1


def test_a_reservation_is_written_only_when_the_one_before_is_used_up() -> None:
    numbers = at(0, 0)
    for ask in (numbers.lookup_ids, lambda _, count, change: numbers.ordinals(count, change)):
        numbers.forget_reservation()
        first, within, beyond = Change(), Change(), Change()
        ask(0, 1, first)
        assert len(reserved(first)) == 1
        ask(0, RESERVATION, within)
        assert reserved(within) == []
        ask(0, 1, beyond)
        assert len(reserved(beyond)) == 1


def test_numbers_go_on_behind_the_reservation_after_a_restart() -> None:
    before, change = Numbers(), Change()
    before.lookup_ids(0, 10, change)
    before.ordinals(2 * RESERVATION, change)
    after = at(*reserved(change)[-1])
    again = Change()
    assert after.lookup_ids(0, 1, again) > before.lookup_ids(0, 1, change)
    first = after.ordinals(1, again)
    assert first is not None
    assert first > 2 * RESERVATION
    assert len(reserved(again)) == 1, "one says how far both may go"


@pytest.mark.parametrize("around", [0, 3])
@pytest.mark.spec("MS-MQMQ 2.2.18.1.3")
def test_ordinals_that_start_anew_are_not_in_a_row(around: int) -> None:
    last = (around << 32) + ORDINAL_MASK - 5
    numbers, change = at(0, last), Change()
    assert numbers.ordinals(6, change) is None
    assert (change.entries, numbers.reserved()) == ([], (0, last)), "nothing was given"
    assert numbers.ordinals(5, change) == ORDINAL_MASK - 4
    assert numbers.ordinals(1, change) is None, "0 is no message"
    assert numbers.ordinal(change) == 1
    assert numbers.ordinals(4, change) == 2
    assert numbers.ordinal(change) == 6


@given(left=st.integers(0, 30), counts=st.lists(st.integers(1, 12), min_size=1, max_size=12))
@pytest.mark.spec("MS-MQMQ 2.2.18.1.3")
def test_whoever_asks_one_by_one_instead_gets_the_same_ordinals_as_ever(
    left: int, counts: list[int]
) -> None:
    many, single = (at(0, ORDINAL_MASK - left) for _ in range(2))
    change = Change()
    for count in counts:
        first = many.ordinals(count, change)
        if first is None:
            found = [many.ordinal(change) for _ in range(count)]
        else:
            found = list(range(first, first + count))
        assert found == [single.ordinal(change) for _ in range(count)]
        assert 0 not in found
        assert max(found) <= ORDINAL_MASK
