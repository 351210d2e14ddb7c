"""[MS-MQDMPR] 3.1.1.2, 3.1.1.11: the MessagePositionList, the messages of one queue in their order.

A message's place is its lookup identifier: the high byte is 7 minus its priority and the rest a
number that only grows, so that ascending identifiers are higher priorities first and earlier
arrivals before later ones. What a message weighs in memory is its row here and nothing else:
identifier, where its packet lies in the store, size, expiry, state and a key of the caller's, in
arrays of a few hundred rows (`merq.engine.rows`). Whatever the length of the queue and however many
of its messages are locked, adding, taking the first, finding by identifier and removing anywhere
cost the same, but for a binary search over the blocks. Blocks of which little lives are thinned
out and joined, so that memory follows the messages that live.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

from merq.engine.byte_order import to_little
from merq.engine.rows import (
    AVAILABLE,
    DELETED,
    LOCKED,
    NEVER,
    PURGE_PENDING,
    Block,
    Columns,
    Lane,
    Place,
    every_row,
    new_place,
)
from merq.errors import MerqError

__all__ = [
    "AVAILABLE",
    "BLOCK_ROWS",
    "DELETED",
    "LOCKED",
    "NEVER",
    "PURGE_PENDING",
    "Columns",
    "Place",
    "PositionList",
    "PositionTaken",
]

ROW_BYTES: Final = 32
"""What a row takes in a checkpoint."""

BLOCK_ROWS: Final = 512
LANES: Final = 8
_LANE_SHIFT: Final = 56

_THIN_SHARE: Final = 8
"""Blocks of fewer rows than one of this many of a full one are not thinned out."""


class PositionTaken(MerqError):
    """A lookup identifier that the queue has already."""


class PositionList:
    """The messages of a queue in their order.

    Attributes:
        count: How many there are, whatever their state.
        available: How many of them a receiver could get.
        total_bytes: What their packets take.
    """

    # No lane before `_front` has an available message. `_near` and `_near_row` are where a message
    # was found last: who looks at a message often changes or removes it next.
    __slots__ = (
        "_block_rows",
        "_front",
        "_lanes",
        "_near",
        "_near_row",
        "_thin_rows",
        "available",
        "count",
        "total_bytes",
    )

    def __init__(self, block_rows: int = BLOCK_ROWS) -> None:
        self._block_rows = block_rows
        self._thin_rows = block_rows // _THIN_SHARE
        self._lanes = [Lane() for _ in range(LANES)]
        self._front = 0
        self._near = Block()
        self._near_row = 0
        self.count = 0
        self.available = 0
        self.total_bytes = 0

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Place]:
        """All messages, whatever their state, in order."""
        for lane in self._lanes:
            for block in lane.blocks:
                for row in range(block.start, len(block.ids)):
                    if block.states[row] != DELETED:
                        yield block.place(row)

    def columns(self, without: int) -> Columns:
        """All rows but those whose location has a bit of `without` set."""
        found = Columns(array("Q"), array("Q"), array("I"), array("I"), array("Q"))
        for part in self._living(without):
            found.ids.extend(part.ids)
            found.locations.extend(part.locations)
            found.sizes.extend(part.sizes)
            found.expiries.extend(part.expiries)
            found.keys.extend(part.keys)
        return found

    def packed(self, without: int, before: int) -> tuple[int, bytearray]:
        """The same as little-endian bytes, column behind column, and how many rows they are.

        Others wait while a checkpoint is made of them: each is copied once only.

        Args:
            without: As above.
            before: So many bytes are left free before them.
        """
        parts = self._living(without)
        count = sum([len(part.ids) for part in parts])
        data = bytearray(before + count * ROW_BYTES if count else 0)
        view = memoryview(data)
        at = before
        for number in range(len(Columns._fields)):
            for part in parts:
                column = to_little(part[number])
                end = at + len(column)
                view[at:end] = column
                at = end
        return count, data

    def _living(self, without: int) -> list[Columns]:
        mask = every_row(without, 2 * self._block_rows)
        return [block.living(without, mask) for lane in self._lanes for block in lane.blocks]

    def load(self, columns: Columns) -> None:
        """Takes rows into an empty list, all of them available; they are in order."""
        assert not self.count, "rows are loaded once"
        for start in range(0, len(columns.ids), self._block_rows):
            rows = slice(start, start + self._block_rows)
            for number, part in _by_lane(columns, rows):
                block = Block()
                block.take(columns, part)
                lane = self._lanes[number]
                lane.insert(len(lane.blocks), block, block.ids[0])
                lane.last = block.ids[-1]
        self._front = 0
        self.count = self.available = len(columns.ids)
        self.total_bytes = sum(columns.sizes)

    def append(self, lookup_id: int, location: int, size: int, expires: int, key: int) -> None:
        """Puts an available message at its place, nearly always behind the last of its priority.

        Raises:
            PositionTaken: The identifier is there already.
        """
        number = lookup_id >> _LANE_SHIFT
        assert 0 <= number < LANES, "the high byte is 7 minus the priority"
        lane = self._lanes[number]
        block = lane.tail
        ids = block.ids
        if lookup_id <= lane.last or len(ids) >= self._block_rows or not lane.blocks:
            self.add(Place(lookup_id, location, size, expires, AVAILABLE, key))
            return
        ids.append(lookup_id)
        block.locations.append(location)
        block.sizes.append(size)
        block.expiries.append(expires)
        block.keys.append(key)
        block.states.append(AVAILABLE)
        lane.last = lookup_id
        if number < self._front:  # noqa: PLR1730 - min() would cost more than an append
            self._front = number
        self.count += 1
        self.available += 1
        self.total_bytes += size

    def add(self, place: Place) -> None:
        """Puts a message at its place, whatever its state.

        Raises:
            PositionTaken: The identifier is there already.
        """
        lookup_id = place.lookup_id
        number = lookup_id >> _LANE_SHIFT
        assert 0 <= number < LANES, "the high byte is 7 minus the priority"
        lane = self._lanes[number]
        if lookup_id > lane.last or not lane.blocks:
            if not lane.blocks or len(lane.tail.ids) >= self._block_rows:
                lane.insert(len(lane.blocks), Block(), lookup_id)
            lane.tail.insert(len(lane.tail.ids), place)
            lane.last = max(lane.last, lookup_id)
        else:
            self._insert(lane, place)
        self.count += 1
        self.total_bytes += place.size
        if place.state == AVAILABLE:
            self.available += 1
            self._front = min(self._front, number)

    def _insert(self, lane: Lane, place: Place) -> None:
        """Puts a row before others, as messages that are moved from elsewhere need it."""
        lookup_id = place.lookup_id
        index = max(lane.index_of(lookup_id), 0)
        block = lane.blocks[index]
        row = bisect_left(block.ids, lookup_id)
        if row < len(block.ids) and block.ids[row] == lookup_id:
            if block.states[row] != DELETED:
                raise PositionTaken(f"lookup identifier {lookup_id:#x} is in the queue already")
            block.erase(row)
        block.insert(row, place)
        lane.firsts[index] = min(lane.firsts[index], lookup_id)
        lane.opened[index] = 1
        if len(block.ids) > 2 * self._block_rows:
            other = block.split()
            lane.insert(index + 1, other, other.ids[0])

    def first(self) -> Place | None:
        """The message that a receiver gets next: the first that is available."""
        if not self.available:
            return None
        number = self._front
        while number < LANES:
            if self._seek(self._lanes[number], 0):
                self._front = number
                return self._near.place(self._near_row)
            number += 1
        raise AssertionError("an available message was counted and is not there")

    def last(self) -> Place | None:
        """The last message that is available."""
        return self.before(LANES << _LANE_SHIFT)

    def get(self, lookup_id: int) -> Place | None:
        """The message with this identifier, whatever its state."""
        row = self._find(lookup_id)
        if row < 0 or self._near.states[row] == DELETED:
            return None
        return self._near.place(row)

    def after(self, lookup_id: int) -> Place | None:
        """The first available message behind this place, which may be empty."""
        start = lookup_id + 1
        index = 0
        number = max(start >> _LANE_SHIFT, self._front)
        if number == start >> _LANE_SHIFT and number < LANES:
            lane = self._lanes[number]
            index = lane.index_of(start)
            if index >= 0:
                block = lane.blocks[index]
                row = block.states.find(AVAILABLE, bisect_left(block.ids, start))
                if row >= 0:
                    return self._at(block, row)
            index += 1
        while number < LANES:
            if self._seek(self._lanes[number], index):
                return self._near.place(self._near_row)
            number += 1
            index = 0
        return None

    def before(self, lookup_id: int) -> Place | None:
        """The last available message before this place, which may be empty."""
        number = min(lookup_id >> _LANE_SHIFT, LANES - 1)
        while number >= self._front:
            lane = self._lanes[number]
            index = bisect_left(lane.firsts, lookup_id) - 1
            if index >= 0:
                block = lane.blocks[index]
                row = block.states.rfind(AVAILABLE, 0, bisect_left(block.ids, lookup_id))
                if row >= 0:
                    return self._at(block, row)
            while (index := lane.opened.rfind(1, 0, max(index, 0))) >= 0:
                block = lane.blocks[index]
                row = block.states.rfind(AVAILABLE)
                if row >= 0:
                    return self._at(block, row)
                lane.opened[index] = 0
            number -= 1
        return None

    def lane_behind(self, lookup_id: int, most: int) -> list[Place]:
        """Up to so many messages behind this place, of the priority that the next place has."""
        found: list[Place] = []
        start = lookup_id + 1
        lane = self._lanes[start >> _LANE_SHIFT]
        if lane.last < start:
            return found
        for index in range(max(lane.index_of(start), 0), len(lane.blocks)):
            block = lane.blocks[index]
            for row in range(bisect_left(block.ids, start, block.start), len(block.ids)):
                if block.states[row] != DELETED:
                    found.append(block.place(row))
                    if len(found) == most:
                        return found
        return found

    def count_up_to(self, lookup_id: int) -> int:
        """How many messages of the same priority are at this place or before it."""
        lane = self._lanes[lookup_id >> _LANE_SHIFT]
        index = lane.index_of(lookup_id)
        if index < 0:
            return 0
        found = sum(len(each.ids) - each.deleted for each in lane.blocks[:index])
        block = lane.blocks[index]
        rows = bisect_right(block.ids, lookup_id)
        return found + rows - block.states.count(DELETED, 0, rows)

    def set_state(self, lookup_id: int, state: int) -> None:
        """Makes a message available, locked or pending to be purged."""
        assert state != DELETED, "messages are removed by remove()"
        row = self._find(lookup_id)
        assert row >= 0, _missing(lookup_id)
        block = self._near
        states = block.states
        before = states[row]
        assert before != DELETED, _missing(lookup_id)
        if before == AVAILABLE:
            self.available -= 1
        states[row] = state
        if row == block.hint:
            block.hint = row + 1
        if state == AVAILABLE:
            self.available += 1
            block.hint = min(block.hint, row)
            number = lookup_id >> _LANE_SHIFT
            lane = self._lanes[number]
            lane.opened[lane.index_of(lookup_id)] = 1
            self._front = min(self._front, number)

    def relocate(self, lookup_id: int, location: int) -> None:
        """Says where the message's packet lies now."""
        row = self._find(lookup_id)
        assert row >= 0, _missing(lookup_id)
        assert self._near.states[row] != DELETED, _missing(lookup_id)
        self._near.locations[row] = location

    def remove(self, lookup_id: int) -> Place:
        """Takes a message out, whatever its state; gives what it was."""
        row = self._find(lookup_id)
        assert row >= 0, _missing(lookup_id)
        block = self._near
        states = block.states
        state = states[row]
        assert state != DELETED, _missing(lookup_id)
        size = block.sizes[row]
        place = new_place(
            Place,
            (
                lookup_id,
                block.locations[row],
                size,
                block.expiries[row],
                state,
                block.keys[row],
            ),
        )
        if state == AVAILABLE:
            self.available -= 1
        states[row] = DELETED
        rows = len(states)
        deleted = block.deleted + 1
        block.deleted = deleted
        self.count -= 1
        self.total_bytes -= size
        if row == block.start:
            block.start = row + 1
        if deleted * 4 > rows * 3 and (rows > self._thin_rows or deleted == rows):
            self._tidy(self._lanes[lookup_id >> _LANE_SHIFT], block, lookup_id)
        return place

    def _tidy(self, lane: Lane, block: Block, lookup_id: int) -> None:
        """Drops a block if nothing in it lives, else thins it out and joins it to a neighbour."""
        rows = len(block.ids)
        if block.deleted == rows and block is lane.tail and rows <= self._thin_rows:
            return  # the next message comes soon; a block for each would cost more than its rows
        index = lane.index_of(lookup_id)
        assert lane.blocks[index] is block, "the block is where its first identifier says"
        if block.deleted == rows:
            lane.remove(index)
            self._near = Block()
            return
        block.thin_out()
        for left in (index - 1, index):
            if left >= 0 and left + 1 < len(lane.blocks):
                joined = len(lane.blocks[left].ids) + len(lane.blocks[left + 1].ids)
                if joined <= self._block_rows // 2:
                    lane.join(left)
                    self._near = Block()
                    return

    def _seek(self, lane: Lane, index: int) -> bool:
        """Finds the first available message of a lane in the blocks from `index` on."""
        opened = lane.opened
        count = len(opened)
        while index < count:
            if not opened[index]:
                index = opened.find(1, index)  # the last one is open, so there is one
            block = lane.blocks[index]
            row = block.hint
            states = block.states
            if row >= len(states) or states[row] != AVAILABLE:
                row = block.find_available()
            if row >= 0:
                self._near = block
                self._near_row = row
                return True
            index += 1
            if index < count:
                opened[index - 1] = 0
        return False

    def _at(self, block: Block, row: int) -> Place:
        self._near = block
        self._near_row = row
        return block.place(row)

    def _find(self, lookup_id: int) -> int:
        """The row of a message in the block that is `_near` now, or -1.

        The row may be one that is deleted.
        """
        block = self._near
        row = self._near_row
        ids = block.ids
        if row < len(ids) and ids[row] == lookup_id:
            return row
        row += 1  # who goes through many goes to the next
        if row < len(ids) and ids[row] == lookup_id:
            self._near_row = row
            return row
        number = lookup_id >> _LANE_SHIFT
        if not 0 <= number < LANES:
            return -1
        lane = self._lanes[number]
        if not lane.blocks:
            return -1
        # Messages leave in order more often than not.
        block = lane.blocks[0]
        row = block.start
        ids = block.ids
        if row >= len(ids) or ids[row] != lookup_id:
            block.skip_deleted()
            index = bisect_right(lane.firsts, lookup_id) - 1
            if index < 0:
                return -1
            block = lane.blocks[index]
            ids = block.ids
            row = bisect_left(ids, lookup_id, block.start)
            if row == len(ids) or ids[row] != lookup_id:
                return -1
        self._near = block
        self._near_row = row
        return row


def _missing(lookup_id: int) -> str:
    return f"lookup identifier {lookup_id:#x} is not in the queue"


def _by_lane(columns: Columns, rows: slice) -> Iterator[tuple[int, slice]]:
    """The parts of a run of rows that belong to one priority each."""
    ids = columns.ids
    start, end = rows.start, min(rows.stop, len(ids))
    while start < end:
        lane = ids[start] >> _LANE_SHIFT
        stop = bisect_left(ids, lane + 1 << _LANE_SHIFT, start, end)
        yield lane, slice(start, stop)
        start = stop
