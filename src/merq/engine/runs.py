"""The messages of one queue in their order, many at a time.

Messages come, are looked for and leave in runs: what lies one behind the other in a block is copied
and marked as slices of arrays.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import lt
from typing import Final

from merq.engine.positions import PositionList
from merq.engine.rows import AVAILABLE, DELETED, LOCKED, PURGE_PENDING, Block, Columns, Rows, Sight

SEQUENCE_MASK: Final = (1 << 56) - 1
"""The part of a lookup identifier that says when its message came, whatever its priority."""

LANES: Final = 8
_LANE_SHIFT: Final = 56

_REOPENED: Final = bytes(DELETED if each == DELETED else AVAILABLE for each in range(256))
"""For each state what it is when its message is available again."""


class Positions(PositionList):
    """The messages of a queue in their order."""

    __slots__ = ()

    def append_many(
        self,
        lookup_ids: Sequence[int],
        locations: Sequence[int],
        sizes: Sequence[int],
        expiries: Sequence[int],
        keys: Sequence[int],
    ) -> None:
        """The same for many; those that grow and are of one priority go as blocks.

        Raises:
            PositionTaken: An identifier is there already.
        """
        number = lookup_ids[0] >> _LANE_SHIFT
        assert 0 <= number < LANES, "the high byte is 7 minus the priority"
        lane = self._lanes[number]
        ids = array("Q", lookup_ids)
        if (
            ids[0] <= lane.last
            or ids[-1] >> _LANE_SHIFT != number
            or not all(map(lt, ids, islice(ids, 1, None)))
        ):
            for row in zip(lookup_ids, locations, sizes, expiries, keys, strict=True):
                self.append(*row)
            return
        at, count = 0, len(ids)
        while at < count:
            if not lane.blocks or len(lane.tail.ids) >= self._block_rows:
                lane.insert(len(lane.blocks), Block(), ids[at])
            block = lane.tail
            end = min(count, at + self._block_rows - len(block.ids))
            block.ids.extend(ids[at:end])
            block.locations.extend(locations[at:end])
            block.sizes.extend(sizes[at:end])
            block.expiries.extend(expiries[at:end])
            block.keys.extend(keys[at:end])
            block.states.extend(bytes(end - at))
            at = end
        lane.last = ids[-1]
        self._front = min(self._front, number)
        self.count += count
        self.available += count
        self.total_bytes += sum(sizes)

    def remove_run(self, lookup_ids: Sequence[int], at: int) -> Columns | None:
        """Takes out messages from `at` on that lie one behind the other, and gives what they were.

        None if there are fewer than two of them, or others that live are between.
        """
        if at + 1 == len(lookup_ids):
            return None
        row = self._find(lookup_ids[at])
        if row < 0:
            return None
        block = self._near
        count, end = block.neighbours(row, lookup_ids, at)
        if count < 2:
            return None
        found = block.columns_of(row, end, count)
        states = block.states
        self.available -= states.count(AVAILABLE, row, end)
        states[row:end] = bytes([DELETED]) * (end - row)
        self.count -= count
        self.total_bytes -= sum(found.sizes)
        block.deleted += count
        if row == block.start:
            block.start = end
        rows = len(states)
        if block.deleted * 4 > rows * 3 and (rows > self._thin_rows or block.deleted == rows):
            self._tidy(self._lanes[found.ids[0] >> _LANE_SHIFT], block, found.ids[0])
        return found

    def arrivals(self, after: int, upto: int, most: int, *, locked: bool) -> Rows:
        """Up to so many messages that came behind one number and up to another, in that order.

        Numbers are the low seven bytes of lookup identifiers: priorities make no difference. If
        `locked`, those that somebody holds are meant too.
        """
        parts = [
            rows
            for number, lane in enumerate(self._lanes)
            if lane.blocks and (rows := self._lane_arrivals(number, after, upto, most, locked)).ids
        ]
        if not parts:
            return Rows(array("Q"), array("Q"), array("I"))
        if len(parts) == 1:
            return parts[0]
        ids, locations, sizes = (
            [each for part in parts for each in part[column]] for column in range(3)
        )
        order = sorted(range(len(ids)), key=lambda row: ids[row] & SEQUENCE_MASK)[:most]
        return Rows(
            array("Q", [ids[row] for row in order]),
            array("Q", [locations[row] for row in order]),
            array("I", [sizes[row] for row in order]),
        )

    def _lane_arrivals(self, number: int, after: int, upto: int, most: int, locked: bool) -> Rows:  # noqa: FBT001
        lane = self._lanes[number]
        low, high = number << _LANE_SHIFT | after, number << _LANE_SHIFT | upto
        found = Rows(array("Q"), array("Q"), array("I"))
        for index in range(max(lane.index_of(low), 0), len(lane.blocks)):
            block = lane.blocks[index]
            if not lane.opened[index] and not locked:
                continue
            first = bisect_right(block.ids, low, block.start)
            end = bisect_right(block.ids, high)
            block.copy_rows(found, first, end, most - len(found.ids), locked=locked)
            if end < len(block.ids) or len(found.ids) == most:
                break
        return found

    def locate(self, lookup_ids: Sequence[int]) -> Rows:
        """Where these messages lie, whatever their state; those that are gone are left out."""
        found = Rows(array("Q"), array("Q"), array("I"))
        at = 0
        while at < len(lookup_ids):
            row = self._find(lookup_ids[at])
            if row < 0 or self._near.states[row] == DELETED:
                at += 1
                continue
            block = self._near
            end = row + min(len(lookup_ids) - at, len(block.ids) - row)
            ids = block.ids[row:end]
            if ids != array("Q", lookup_ids[at : at + end - row]) or block.states.count(
                DELETED, row, end
            ):
                ids, end = ids[:1], row + 1
            found.ids.extend(ids)
            found.locations.extend(block.locations[row:end])
            found.sizes.extend(block.sizes[row:end])
            at += end - row
        return found

    def behind(self, lookup_id: int, most: int) -> tuple[Rows, bytearray]:
        """Up to so many messages behind this place, whatever their state, in order.

        Gives where they lie, and the state of each.
        """
        found, states = Rows(array("Q"), array("Q"), array("I")), bytearray()
        for block, first in self._blocks_behind(lookup_id):
            block.copy_living(found, states, first, most - len(found.ids))
            if len(found.ids) == most:
                break
        return found, states

    def lying_in(self, segment: int, lookup_id: int, most: int) -> Sight:
        """The next messages behind this place whose packets lie in a segment of the log.

        About so many are looked at, and those of one block are given.
        """
        rows = Rows(array("Q"), array("Q"), array("I"))
        looked_at = 0
        for block, first in self._blocks_behind(lookup_id):
            looked_at += len(block.ids)
            if block.may_lie_in(segment):
                rows = block.rows_in(segment, first)
            if rows.ids or looked_at >= most:
                return Sight(rows, looked_at, block.ids[-1])
        return Sight(rows, looked_at, -1)

    def _blocks_behind(self, lookup_id: int) -> Iterator[tuple[Block, int]]:
        """Blocks with rows behind this place, deleted ones too, and the first of those in each."""
        start = max(lookup_id + 1, 0)
        for number in range(start >> _LANE_SHIFT, LANES):
            lane = self._lanes[number]
            low = max(start, number << _LANE_SHIFT)
            for index in range(max(lane.index_of(low), 0), len(lane.blocks)):
                block = lane.blocks[index]
                first = bisect_left(block.ids, low, block.start)
                if first < len(block.ids):
                    yield block, first

    def lock(self, lookup_ids: Sequence[int]) -> None:
        """Messages that were available are somebody's."""
        self._close(lookup_ids, LOCKED)

    def withdraw(self, lookup_ids: Sequence[int]) -> None:
        """Messages are on their way out, and to nobody."""
        self._close(lookup_ids, PURGE_PENDING)

    def _close(self, lookup_ids: Sequence[int], state: int) -> None:
        """Messages, most of which were available, are so no more."""
        closed = bytes([state, *range(1, 256)])
        at = 0
        while at < len(lookup_ids):
            row = self._find(lookup_ids[at])
            assert row >= 0, f"lookup identifier {lookup_ids[at]:#x} is not in the queue"
            block = self._near
            count, end = block.neighbours(row, lookup_ids, at)
            if block.states.count(AVAILABLE, row, end) != count or count < 2:
                self.set_state(lookup_ids[at], state)
                at += 1
                continue
            block.states[row:end] = block.states[row:end].translate(closed)
            self.available -= count
            if row <= block.hint < end:
                block.hint = end
            at += count

    def reopen(self, lookup_ids: Sequence[int]) -> None:
        """Messages are available again."""
        at = 0
        while at < len(lookup_ids):
            first = lookup_ids[at]
            row = self._find(first)
            assert row >= 0, f"lookup identifier {first:#x} is not in the queue"
            block = self._near
            count, end = block.neighbours(row, lookup_ids, at)
            if count < 2:
                self.set_state(first, AVAILABLE)
                at += 1
                continue
            self.available += count - block.states.count(AVAILABLE, row, end)
            block.states[row:end] = block.states[row:end].translate(_REOPENED)
            block.hint = min(block.hint, row)
            number = first >> _LANE_SHIFT
            lane = self._lanes[number]
            lane.opened[lane.index_of(first)] = 1
            self._front = min(self._front, number)
            at += count

    def relocate_many(
        self, lookup_ids: Sequence[int], locations: array[int]
    ) -> tuple[array[int], array[int]]:
        """Says where packets lie now, of those messages that are here; the identifiers grow.

        Gives where they lay before, and their sizes.
        """
        before, sizes = array("Q"), array("I")
        ids = array("Q", lookup_ids)
        at = 0
        while at < len(ids):
            row = self._find(ids[at])
            if row < 0:
                at += 1
                continue
            block = self._near
            end = bisect_right(ids, block.ids[-1], at)
            done = block.relocate(row, ids[at:end], locations[at:end])
            before.extend(done[0])
            sizes.extend(done[1])
            at = end
        return before, sizes

    def last_arrival(self) -> int:
        """The number of the message that came last of all that are or were here."""
        return max((lane.last & SEQUENCE_MASK for lane in self._lanes if lane.blocks), default=0)


def by_arrival(columns: Columns) -> Columns:
    """Rows of several priorities in the order in which they came."""
    ids = columns.ids
    order = sorted(range(len(ids)), key=lambda row: ids[row] & SEQUENCE_MASK)
    ordered = [array(each.typecode, [each[row] for row in order]) for each in columns]
    return Columns(*ordered)
