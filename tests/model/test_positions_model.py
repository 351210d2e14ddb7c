"""The message positions of a queue against a model that anyone can believe: a sorted dictionary."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from merq.engine.positions import (
    AVAILABLE,
    LOCKED,
    NEVER,
    PURGE_PENDING,
    Place,
    PositionList,
    PositionTaken,
)

identifiers = st.builds(
    lambda lane, number: lane << 56 | number, st.integers(0, 7), st.integers(0, 60)
)
states = st.sampled_from([AVAILABLE, LOCKED, PURGE_PENDING])


@dataclass
class Row:
    location: int
    size: int
    state: int


class Positions(RuleBasedStateMachine):
    """Every operation on both, and the same answers from both."""

    block_rows = 3

    def __init__(self) -> None:
        super().__init__()
        self.real = PositionList(block_rows=self.block_rows)
        self.model: dict[int, Row] = {}
        self.number = 100

    def place(self, lookup_id: int | None) -> Place | None:
        if lookup_id is None:
            return None
        row = self.model[lookup_id]
        return Place(lookup_id, row.location, row.size, NEVER, row.state, lookup_id)

    def available(self) -> list[int]:
        return sorted(one for one, row in self.model.items() if row.state == AVAILABLE)

    @rule(lookup_id=identifiers, size=st.integers(0, 5000), state=states)
    def add_anywhere(self, lookup_id: int, size: int, state: int) -> None:
        if lookup_id in self.model:
            with pytest.raises(PositionTaken):
                self.real.add(Place(lookup_id, 1, size, NEVER, state, 0))
            return
        self.real.add(Place(lookup_id, lookup_id * 3 & 0xFFFF, size, NEVER, state, lookup_id))
        self.model[lookup_id] = Row(lookup_id * 3 & 0xFFFF, size, state)

    @rule(lane=st.integers(0, 7), count=st.integers(1, 9))
    def add_behind(self, lane: int, count: int) -> None:
        for _ in range(count):
            self.number += 1
            lookup_id = lane << 56 | self.number
            self.real.append(lookup_id, self.number, 10, NEVER, lookup_id)
            self.model[lookup_id] = Row(self.number, 10, AVAILABLE)

    @rule(lookup_id=identifiers, size=st.integers(0, 5000))
    def append_anywhere(self, lookup_id: int, size: int) -> None:
        if lookup_id in self.model:
            with pytest.raises(PositionTaken):
                self.real.append(lookup_id, 1, size, NEVER, 0)
            return
        self.real.append(lookup_id, 5, size, NEVER, lookup_id)
        self.model[lookup_id] = Row(5, size, AVAILABLE)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        lookup_id = data.draw(st.sampled_from(sorted(self.model)))
        assert self.real.remove(lookup_id) == self.place(lookup_id)
        del self.model[lookup_id]

    @precondition(lambda self: self.model)
    @rule(step=st.integers(2, 9), offset=st.integers(0, 8))
    def remove_all_but_each(self, step: int, offset: int) -> None:
        """Leaves a few rows in every block."""
        for number, lookup_id in enumerate(sorted(self.model)):
            if (number + offset) % step:
                assert self.real.remove(lookup_id) == self.place(lookup_id)
                del self.model[lookup_id]

    @rule(count=st.integers(1, 30))
    def lock_the_first(self, count: int) -> None:
        for lookup_id in self.available()[:count]:
            found = self.real.first()
            assert found == self.place(lookup_id)
            self.real.set_state(lookup_id, LOCKED)
            self.model[lookup_id].state = LOCKED

    @rule(count=st.integers(1, 12))
    def receive(self, count: int) -> None:
        for _ in range(count):
            waiting = self.available()
            found = self.real.first()
            assert found == self.place(waiting[0] if waiting else None)
            if found is None:
                return
            self.real.remove(found.lookup_id)
            del self.model[found.lookup_id]

    @precondition(lambda self: self.model)
    @rule(data=st.data(), state=states)
    def change_state(self, data: st.DataObject, state: int) -> None:
        lookup_id = data.draw(st.sampled_from(sorted(self.model)))
        self.real.set_state(lookup_id, state)
        self.model[lookup_id].state = state

    @precondition(lambda self: self.model)
    @rule(data=st.data(), location=st.integers(0, 1 << 60))
    def relocate(self, data: st.DataObject, location: int) -> None:
        lookup_id = data.draw(st.sampled_from(sorted(self.model)))
        self.real.relocate(lookup_id, location)
        self.model[lookup_id].location = location

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def look_around_one(self, data: st.DataObject) -> None:
        self.look_around(data.draw(st.sampled_from(sorted(self.model))))

    @rule(lookup_id=identifiers | st.just(-1), most=st.integers(1, 20))
    def walk(self, lookup_id: int, most: int) -> None:
        behind = [one for one in sorted(self.model) if one > lookup_id][:most]
        assert self.real.rows_behind(lookup_id, most) == [self.place(one) for one in behind]

    @rule(without=st.sampled_from([1, 2, 1 << 20, 1 << 63]))
    def copy(self, without: int) -> None:
        kept = [one for one, row in sorted(self.model.items()) if not row.location & without]
        columns = self.real.columns(without=without)
        assert list(columns.ids) == kept
        assert list(columns.locations) == [self.model[one].location for one in kept]
        assert list(columns.sizes) == [self.model[one].size for one in kept]
        assert list(columns.expiries) == [NEVER for _ in kept]
        assert list(columns.keys) == kept

    @rule()
    def restart(self) -> None:
        """What a checkpoint keeps comes back; everything is available then."""
        columns = self.real.columns(without=0)
        self.real = PositionList(block_rows=self.block_rows)
        self.real.load(columns)
        for row in self.model.values():
            row.state = AVAILABLE

    @rule(lookup_id=identifiers)
    def look_around(self, lookup_id: int) -> None:
        waiting = self.available()
        behind = [one for one in waiting if one > lookup_id]
        before = [one for one in waiting if one < lookup_id]
        assert self.real.after(lookup_id) == self.place(behind[0] if behind else None)
        assert self.real.before(lookup_id) == self.place(before[-1] if before else None)
        known = lookup_id if lookup_id in self.model else None
        assert self.real.get(lookup_id) == self.place(known)

    @invariant()
    def both_hold_the_same(self) -> None:
        waiting = self.available()
        assert list(self.real) == [self.place(one) for one in sorted(self.model)]
        assert len(self.real) == len(self.model)
        assert self.real.available == len(waiting)
        assert self.real.total_bytes == sum(row.size for row in self.model.values())
        assert self.real.first() == self.place(waiting[0] if waiting else None)
        assert self.real.last() == self.place(waiting[-1] if waiting else None)


class LongerBlocks(Positions):
    """The same with blocks that are kept when they have few rows or none."""

    block_rows = 24


TestPositions = Positions.TestCase
TestPositions.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
TestLongerBlocks = LongerBlocks.TestCase
TestLongerBlocks.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
