"""Which messages expire when, and what it costs to know."""

from __future__ import annotations

import tracemalloc
from array import array

import pytest

from merq.engine.expiry import DUE_MAX, Expiries
from merq.engine.positions import NEVER

pytestmark = pytest.mark.spec("MS-MQDMPR 3.1.2.4")

NOW = 1_800_000_000
COUNT = 20_000
SAME_SECOND_BYTES_MAX = 40
OWN_SECOND_BYTES_MAX = 40


def test_a_message_is_due_when_its_second_has_passed() -> None:
    expiries = Expiries()
    expiries.add(NOW + 5, 7, 4 << 56 | 1)
    assert expiries.next() == NOW + 5
    assert expiries.due(NOW + 5) == []
    assert expiries.due(NOW + 6) == [(7, 4 << 56 | 1)]
    assert expiries.due(NOW + 6) == []
    assert expiries.next() is None


def test_messages_are_due_in_the_order_of_their_times() -> None:
    expiries = Expiries()
    for queue, second in enumerate([9, 3, 6]):
        expiries.add(NOW + second, queue, 4 << 56 | queue)
    assert [queue for queue, _ in expiries.due(NOW + 100)] == [1, 2, 0]


def test_the_highest_numbers_that_can_be_come_back_as_they_were() -> None:
    expiries = Expiries()
    highest = (8 << 56) - 1
    expiries.add(NEVER - 1, 0xFFFFFFFF, highest)
    assert expiries.next() == NEVER - 1
    assert expiries.due(NEVER) == [(0xFFFFFFFF, highest)]


def test_a_message_that_left_is_never_due() -> None:
    expiries = Expiries()
    expiries.add(NOW, 7, 1)
    expiries.add(NOW, 7, 2)
    assert expiries.remove(NOW, 7, 1)
    assert not expiries.remove(NOW, 7, 1)
    assert not expiries.remove(NOW + 1, 7, 2)
    assert not expiries.remove(NOW, 8, 2)
    assert expiries.due(NOW + 1) == [(7, 2)]


def test_messages_whose_identifiers_look_alike_are_kept_apart() -> None:
    alike = [lane << 56 | high << 40 | 1 for lane in (0, 7) for high in (0, 1)]
    expiries = Expiries()
    for lookup_id in alike:
        expiries.add(NOW, 7, lookup_id)
    expiries.load(8, array("I", [NOW] * len(alike)), array("Q", alike), NEVER)
    assert len(expiries) == 2 * len(alike)
    assert expiries.remove(NOW, 7, alike[0])
    assert expiries.remove(NOW, 8, alike[3])
    found = []
    while expiries.next() == NOW:
        found += expiries.due(NOW + 1)
    assert sorted(found) == [(7, one) for one in alike[1:]] + [(8, one) for one in alike[:3]]


@pytest.mark.parametrize("is_never_there", [False, True])
def test_many_whose_identifiers_look_alike_come_and_go_together(is_never_there: bool) -> None:
    alike = [lane << 56 | high << 40 | 1 for lane in (0, 7) for high in (0, 1)]
    others = [NEVER] if is_never_there else []
    expiries = Expiries()
    for queue in (7, 8):
        seconds = [NOW] * len(alike) + others
        expiries.add_many(seconds, queue, alike + [2] * len(others), NEVER)
    assert len(expiries) == 2 * len(alike)
    gone = alike[1:3] + [2] * len(others)
    expiries.remove_many(array("I", [NOW] * 2 + others), 8, array("Q", gone), NEVER)
    assert len(expiries) == 2 * len(alike) - 2
    found = []
    while expiries.next() == NOW:
        found += expiries.due(NOW + 1)
    assert sorted(found) == [(7, one) for one in alike] + [(8, alike[0]), (8, alike[3])]


@pytest.mark.limit("merq.engine.expiry.DUE_MAX")
def test_a_call_gives_a_limited_number_and_the_next_call_the_others() -> None:
    expiries = Expiries()
    for number in range(DUE_MAX + 10):
        expiries.add(NOW, 7, number)
    first = expiries.due(NOW + 1)
    assert len(first) == DUE_MAX
    assert expiries.next() == NOW
    second = expiries.due(NOW + 1)
    assert [number for _, number in first + second] == list(range(DUE_MAX + 10))


def test_messages_of_a_checkpoint_expire_but_those_that_never_do() -> None:
    expiries = Expiries()
    expiries.load(7, array("I", [NEVER] * 10), array("Q", range(10)), NEVER)
    assert expiries.next() is None
    seconds = [NOW + number * 7919 % 1009 for number in range(2000)]
    seconds[::3] = [NEVER] * len(seconds[::3])
    expiries.load(7, array("I", seconds), array("Q", range(2000)), NEVER)
    expected = [number for number in range(2000) if number % 3]
    assert expiries.next() == min(seconds)
    found = []
    while some := expiries.due(NEVER):
        found += some
    assert sorted(found) == [(7, number) for number in expected]


@pytest.mark.parametrize(
    ("lifetime", "most"), [(0, SAME_SECOND_BYTES_MAX), (1, OWN_SECOND_BYTES_MAX)]
)
def test_a_message_that_expires_costs_two_numbers(lifetime: int, most: int) -> None:
    tracemalloc.start()
    try:
        expiries = Expiries()
        for number in range(COUNT):
            # Their times come in no order.
            expiries.add(NOW + number * 7919 % COUNT * lifetime, 7, 4 << 56 | number)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / COUNT < most


def test_messages_that_were_received_early_leave_nothing_behind() -> None:
    expiries = Expiries()
    tracemalloc.start()
    try:
        for number in range(COUNT):
            expiries.add(NOW + 1_000_000, 7, number)
            if number >= 100:
                expiries.remove(NOW + 1_000_000, 7, number - 100)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(expiries) == 100
    assert peak < 60_000
