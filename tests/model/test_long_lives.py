"""Long lives of small indexes, from seeds: what only comes about after thousands of steps."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from random import Random

import pytest

from merq.engine.identifiers import MessageIds
from merq.engine.positions import AVAILABLE, LOCKED, NEVER, Place, PositionList

STEPS = 4000
SEEDS = range(6)


class Life:
    """A list of positions and the plain one beside it."""

    def __init__(self, seed: int, block_rows: int) -> None:
        self.random = Random(seed)  # noqa: S311 - from a seed on purpose
        self.real = PositionList(block_rows=block_rows)
        self.states: dict[int, int] = {}
        self.order: list[int] = []
        self.number = 0

    def add(self, lookup_id: int) -> None:
        self.real.append(lookup_id, lookup_id & 0xFFFF, 1, NEVER, lookup_id)
        insort(self.order, lookup_id)
        self.states[lookup_id] = AVAILABLE

    def remove(self, lookup_id: int) -> None:
        assert self.real.remove(lookup_id).lookup_id == lookup_id
        del self.states[lookup_id]
        self.order.remove(lookup_id)

    def set_state(self, lookup_id: int, state: int) -> None:
        self.real.set_state(lookup_id, state)
        self.states[lookup_id] = state

    def some(self) -> list[int]:
        """A few neighbours anywhere."""
        start = self.random.randrange(len(self.order)) if self.order else 0
        return self.order[start : start + self.random.randrange(1, 40)]

    def step(self) -> None:
        match self.random.randrange(8):
            case 0 | 1:
                self.arrive()
            case 2:
                self.come_between()
            case 3:
                self.change(LOCKED)
            case 4:
                self.change(AVAILABLE)
            case 5:
                self.leave(self.some(), share=0.8)
            case 6:
                self.leave(self.order[: self.random.randrange(20)], share=1)
            case _:
                self.look_back()

    def arrive(self) -> None:
        for _ in range(self.random.randrange(1, 25)):
            self.number += self.random.choice([4, 4, 8, 36])
            self.add(self.random.choice([3, 3, 3, 5]) << 56 | self.number)

    def come_between(self) -> None:
        """Messages that come out of order have numbers that those in order leave out."""
        for one in self.some():
            between = one - one % 4 + self.random.randrange(1, 4)
            if between not in self.states:
                self.add(between)

    def change(self, state: int) -> None:
        for one in self.some():
            self.set_state(one, state)

    def leave(self, some: list[int], share: float) -> None:
        for one in some:
            if self.random.random() < share:
                self.remove(one)

    def look_back(self) -> None:
        """Touches a message, sees it go, and finds that it is gone."""
        if self.order:
            one = self.random.choice(self.order)
            assert self.real.get(one) is not None
            self.remove(one)
            assert self.real.get(one) is None
            for other in self.some():
                assert place_id(self.real.get(other)) == other

    def check(self) -> None:
        free = [one for one in self.order if self.states[one] == AVAILABLE]
        assert self.real.available == len(free)
        assert place_id(self.real.first()) == (free[0] if free else None)
        assert place_id(self.real.last()) == (free[-1] if free else None)
        for one in self.some():
            behind, before = bisect_right(free, one), bisect_left(free, one) - 1
            found = self.real.after(one)
            assert place_id(found) == (free[behind] if behind < len(free) else None)
            found = self.real.before(one)
            assert place_id(found) == (free[before] if before >= 0 else None)


def place_id(place: Place | None) -> int | None:
    return None if place is None else place.lookup_id


@pytest.mark.parametrize("block_rows", [4, 16])
@pytest.mark.parametrize("seed", SEEDS)
def test_positions_are_right_after_thousands_of_steps(seed: int, block_rows: int) -> None:
    life = Life(seed, block_rows)
    for number in range(STEPS // 2):
        life.step()
        life.check()
        if number % 50 == 0:
            assert [each.lookup_id for each in life.real] == life.order
            assert list(life.real.columns(without=0).ids) == life.order
    assert {each.lookup_id: each.state for each in life.real} == life.states


@pytest.mark.parametrize("run_rows", [4, 16])
@pytest.mark.parametrize("seed", SEEDS)
def test_message_ids_are_right_after_thousands_of_steps(seed: int, run_rows: int) -> None:
    random = Random(seed)  # noqa: S311 - from a seed on purpose
    real, model = MessageIds(run_rows=run_rows), dict[int, int]()
    ordinal = 0
    for _ in range(STEPS):
        key = random.choice([1, 1, 2, 3]) << 32 | ordinal
        match random.randrange(4):
            case 0 | 1:
                ordinal += random.choice([1, 2])
                assert real.add(key, ordinal) == model.get(key)
                model[key] = ordinal
            case 2:
                near = random.choice([1, 1, 2, 3]) << 32 | random.randrange(ordinal + 1)
                assert real.add(near, ordinal) == model.get(near)
                model[near] = ordinal
            case _:
                keys = sorted(model)
                start = random.choice([0, random.randrange(len(keys) + 1)])
                for gone in keys[start : start + random.randrange(6)]:
                    assert real.remove(gone, model.pop(gone))
        assert len(real) == len(model)
        assert real.first_key() == min(model, default=None)
    assert {key: real.get(key) for key in model} == model
