"""How many messages of a priority are before a place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from merq.engine.positions import NEVER, PositionList

LANE = 1 << 56


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(1, 60)), unique=True, max_size=60),
    st.lists(st.integers(0, 59), max_size=30),
    st.integers(0, 7),
    st.integers(0, 62),
)
def test_messages_before_a_place_are_counted_as_if_one_by_one(
    places: list[tuple[int, int]], gone: list[int], lane: int, number: int
) -> None:
    positions = PositionList(block_rows=4)
    ids = sorted(each_lane * LANE + each for each_lane, each in places)
    for lookup_id in ids:
        positions.append(lookup_id, 1, 1, NEVER, lookup_id)
    for index in gone:
        if index < len(ids) and positions.get(ids[index]) is not None:
            positions.remove(ids[index])
    goal = lane * LANE + number
    left = [each.lookup_id for each in positions if each.lookup_id // LANE == lane]
    assert positions.count_up_to(goal) == sum(each <= goal for each in left)
