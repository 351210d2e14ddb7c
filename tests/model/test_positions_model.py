"""The message positions of a queue against a model that anyone can believe: a sorted dictionary."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kit.shares import share_of
from merq.engine.positions import (
    AVAILABLE,
    LOCKED,
    NEVER,
    PURGE_PENDING,
    Columns,
    Place,
    PositionTaken,
)
from merq.engine.runs import Positions

identifiers = st.builds(
    lambda lane, number: lane << 56 | number, st.integers(0, 7), st.integers(0, 60)
)
states = st.sampled_from([AVAILABLE, LOCKED, PURGE_PENDING])
segments = st.sampled_from([0, 1, 2, 257, 258])
CHANGES = {"lock": LOCKED, "withdraw": PURGE_PENDING, "reopen": AVAILABLE}
changes = st.sampled_from(sorted(CHANGES))
moments = st.sampled_from([1_800_000_000, 1_800_000_001, NEVER])


@dataclass
class Row:
    location: int
    size: int
    state: int
    expires: int = NEVER


class Placing(RuleBasedStateMachine):
    """Every operation on both, and the same answers from both."""

    block_rows = 3

    def __init__(self) -> None:
        super().__init__()
        self.real = Positions(block_rows=self.block_rows)
        self.model: dict[int, Row] = {}
        self.ever: set[int] = set()
        self.number = 100

    def place(self, lookup_id: int | None) -> Place | None:
        if lookup_id is None:
            return None
        row = self.model[lookup_id]
        return Place(lookup_id, row.location, row.size, row.expires, row.state, lookup_id)

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

    def append_many(self, lookup_ids: Sequence[int], size: int, expires: int) -> None:
        """Puts them in together; the model takes one after the other, up to one that is there."""
        count = len(lookup_ids)
        locations = [one * 5 & 0xFFFFF for one in lookup_ids]
        sizes = [size + row for row in range(count)]
        expiries = [expires if row % 3 else NEVER for row in range(count)]
        rows = zip(lookup_ids, locations, sizes, expiries, strict=True)
        is_taken = False
        for one, location, its_size, its_expiry in rows:
            is_taken = one in self.model
            if is_taken:
                break
            self.model[one] = Row(location, its_size, AVAILABLE, its_expiry)
        if is_taken:
            with pytest.raises(PositionTaken):
                self.real.append_many(lookup_ids, locations, sizes, expiries, lookup_ids)
        else:
            self.real.append_many(lookup_ids, locations, sizes, expiries, lookup_ids)

    @rule(
        lane=st.integers(0, 7),
        steps=st.lists(st.integers(1, 3), min_size=1, max_size=30),
        size=st.integers(0, 5000),
        expires=moments,
    )
    def append_a_run(self, lane: int, steps: list[int], size: int, expires: int) -> None:
        lookup_ids = []
        for step in steps:
            self.number += step
            lookup_ids.append(lane << 56 | self.number)
        self.append_many(lookup_ids, size, expires)

    @rule(
        lookup_ids=st.lists(identifiers, min_size=1, max_size=12),
        is_sorted=st.booleans(),
        size=st.integers(0, 5000),
        expires=moments,
    )
    def append_many_anywhere(
        self, lookup_ids: list[int], is_sorted: bool, size: int, expires: int
    ) -> None:
        """Priorities are mixed; some are before others, some twice, some are there already."""
        self.append_many(sorted(set(lookup_ids)) if is_sorted else lookup_ids, size, expires)

    def take_columns(self, run: Columns, lookup_ids: list[int]) -> None:
        """What was given is what the first of these were, two at least."""
        assert len(run.ids) >= 2
        ids = lookup_ids[: len(run.ids)]
        rows = [self.model.pop(one) for one in ids]
        assert list(run.ids) == list(run.keys) == ids
        assert list(run.locations) == [row.location for row in rows]
        assert list(run.sizes) == [row.size for row in rows]
        assert list(run.expiries) == [row.expires for row in rows]

    @precondition(lambda self: self.model)
    @rule(
        data=st.data(),
        count=st.integers(1, 30),
        with_gone=st.booleans(),
        odd=st.lists(identifiers, max_size=2),
    )
    def remove_neighbours(
        self, data: st.DataObject, count: int, with_gone: bool, odd: list[int]
    ) -> None:
        """As the queue manager does it: what lies together at once, and anything else singly.

        Some that are asked for may be gone, or never have been there.
        """
        known = sorted(self.ever if with_gone else self.model)
        start = data.draw(st.integers(0, len(known) - 1))
        lookup_ids = known[start : start + count]
        for one in odd:
            lookup_ids.insert(data.draw(st.integers(0, len(lookup_ids))), one)
        at = 0
        while at < len(lookup_ids):
            run = self.real.remove_run(lookup_ids, at)
            if run is not None:
                self.take_columns(run, lookup_ids[at:])
                at += len(run.ids)
                continue
            self.both_hold_the_same()
            one = lookup_ids[at]
            assert self.real.get(one) == self.place(one if one in self.model else None)
            if one in self.model:
                assert self.real.remove(one) == self.place(one)
                del self.model[one]
            at += 1

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove_a_run_in_any_order(self, data: st.DataObject) -> None:
        known = sorted(self.model)
        start = data.draw(st.integers(0, len(known) - 1))
        some = known[start : start + data.draw(st.integers(2, 6))]
        lookup_ids = [some[0], *data.draw(st.permutations(some[1:-1])), some[-1]]
        run = self.real.remove_run(lookup_ids, 0)
        if run is not None:
            assert list(run.ids) == sorted(set(run.ids))
            self.take_columns(run, lookup_ids)

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
    @rule(data=st.data(), count=st.integers(1, 30), step=st.integers(1, 3), how=changes)
    def change_many(self, data: st.DataObject, count: int, step: int, how: str) -> None:
        """Neighbours, or with others between them, some of which may have that state already."""
        known = sorted(self.model)
        start = data.draw(st.integers(0, len(known) - 1))
        some = known[start : start + count : step]
        getattr(self.real, how)(some)
        for one in some:
            self.model[one].state = CHANGES[how]

    @precondition(lambda self: self.model)
    @rule(data=st.data(), count=st.integers(1, 30), step=st.integers(1, 3), with_gone=st.booleans())
    def relocate_many(self, data: st.DataObject, count: int, step: int, with_gone: bool) -> None:
        """The same of where they lie; some of them may be gone."""
        known = sorted(self.ever if with_gone else self.model)
        start = data.draw(st.integers(0, len(known) - 1))
        some = known[start : start + count : step]
        segment = data.draw(segments) << 32
        here = [one for one in some if one in self.model]
        before = [(self.model[one].location, self.model[one].size) for one in here]
        locations = array("Q", [segment | row for row in range(len(some))])
        found = self.real.relocate_many(some, locations)
        assert list(zip(*found, strict=True)) == before
        for one, location in zip(some, locations, strict=True):
            if one in self.model:
                self.model[one].location = location

    @rule(lookup_id=identifiers | st.just(-1), segment=segments, most=st.integers(1, 20))
    def look_in_segment(self, lookup_id: int, segment: int, most: int) -> None:
        """All that lie there are found by going on and on."""
        wanted = [
            (one, row.location, row.size)
            for one, row in sorted(self.model.items())
            if one > lookup_id and row.location >> 32 == segment
        ]
        found: list[tuple[int, ...]] = []
        after = lookup_id
        while True:
            sight = self.real.lying_in(segment, after, most)
            found += zip(*sight.rows, strict=True)
            if sight.after < 0:
                break
            assert sight.after > after
            after = sight.after
        assert found == wanted

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def look_around_one(self, data: st.DataObject) -> None:
        self.look_around(data.draw(st.sampled_from(sorted(self.model))))

    @rule(lookup_id=identifiers | st.just(-1), most=st.integers(1, 20))
    def walk(self, lookup_id: int, most: int) -> None:
        behind = [one for one in sorted(self.model) if one > lookup_id][:most]
        rows, states = self.real.behind(lookup_id, most)
        found = zip(*rows, states, strict=True)
        assert list(found) == [
            (one, row.location, row.size, row.state) for one in behind for row in [self.model[one]]
        ]
        lane = [one for one in sorted(self.model) if one >> 56 == lookup_id + 1 >> 56]
        behind = [one for one in lane if one > lookup_id][:most]
        assert self.real.lane_behind(lookup_id, most) == [self.place(one) for one in behind]

    @rule(without=st.sampled_from([1, 2, 1 << 20, 1 << 63]))
    def copy(self, without: int) -> None:
        kept = [one for one, row in sorted(self.model.items()) if not row.location & without]
        columns = self.real.columns(without=without)
        assert list(columns.ids) == kept
        assert list(columns.locations) == [self.model[one].location for one in kept]
        assert list(columns.sizes) == [self.model[one].size for one in kept]
        assert list(columns.expiries) == [self.model[one].expires for one in kept]
        assert list(columns.keys) == kept

    @rule()
    def restart(self) -> None:
        """What a checkpoint keeps comes back; everything is available then."""
        columns = self.real.columns(without=0)
        self.real = Positions(block_rows=self.block_rows)
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
        self.ever |= self.model.keys()
        waiting = self.available()
        assert list(self.real) == [self.place(one) for one in sorted(self.model)]
        assert len(self.real) == len(self.model)
        assert self.real.available == len(waiting)
        assert self.real.total_bytes == sum(row.size for row in self.model.values())
        assert self.real.first() == self.place(waiting[0] if waiting else None)
        assert self.real.last() == self.place(waiting[-1] if waiting else None)


class LongerBlocks(Placing):
    """The same with blocks that are kept when they have few rows or none."""

    block_rows = 24


TestPositions = Placing.TestCase
TestPositions.settings = settings(max_examples=share_of(120), stateful_step_count=40, deadline=None)
TestLongerBlocks = LongerBlocks.TestCase
TestLongerBlocks.settings = settings(
    max_examples=share_of(80), stateful_step_count=40, deadline=None
)
