"""The messages of one queue in their order, many at a time.

Messages come, are looked for and leave in runs: what lies one behind the other in a block is copied
and marked as slices of arrays.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from operator import lt
from typing import Final

from merq.engine.positions import PositionList
from merq.engine.rows import AVAILABLE, DELETED, LOCKED, Block, Columns, Rows

SEQUENCE_MASK: Final = (1 << 56) - 1
"""The part of a lookup identifier that says when its message came, whatever its priority."""

LANES: Final = 8
_LANE_SHIFT: Final = 56


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

    def remove_run(self, lookup_ids: list[int], at: int) -> Columns | None:
        """Takes out messages from `at` on that lie one behind the other, and gives what they were.

        None if there are fewer than two of them, or others lie between.
        """
        row = self._find(lookup_ids[at])
        if row < 0:
            return None
        block = self._near
        end = row + min(len(lookup_ids) - at, len(block.ids) - row)
        ids = block.ids[row:end]
        if end - row < 2 or ids != array("Q", lookup_ids[at : at + end - row]):
            return None
        states = block.states
        if states.count(DELETED, row, end):
            return None
        found = Columns(
            ids,
            block.locations[row:end],
            block.sizes[row:end],
            block.expiries[row:end],
            block.keys[row:end],
        )
        count = end - row
        self.available -= states.count(AVAILABLE, row, end)
        states[row:end] = bytes([DELETED]) * count
        self.count -= count
        self.total_bytes -= sum(found.sizes)
        block.deleted += count
        if row == block.start:
            block.start = end
        rows = len(states)
        if block.deleted * 4 > rows * 3 and (rows > self._thin_rows or block.deleted == rows):
            self._tidy(self._lanes[ids[0] >> _LANE_SHIFT], block, ids[0])
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

    def lock(self, lookup_ids: Sequence[int]) -> None:
        """Messages that were available are somebody's."""
        at = 0
        while at < len(lookup_ids):
            row = self._find(lookup_ids[at])
            assert row >= 0, f"lookup identifier {lookup_ids[at]:#x} is not in the queue"
            block = self._near
            end = row + min(len(lookup_ids) - at, len(block.ids) - row)
            count = end - row
            if (
                block.ids[row:end] != array("Q", lookup_ids[at : at + count])
                or block.states.count(AVAILABLE, row, end) != count
            ):
                self.set_state(lookup_ids[at], LOCKED)
                at += 1
                continue
            block.states[row:end] = bytes([LOCKED]) * count
            self.available -= count
            if row <= block.hint < end:
                block.hint = end
            at += count

    def last_arrival(self) -> int:
        """The number of the message that came last of all that are or were here."""
        return max((lane.last & SEQUENCE_MASK for lane in self._lanes if lane.blocks), default=0)
