"""[MS-MQDMPR] 3.1.1.2, 3.1.1.11: the MessagePositionList, the messages of one queue in their order.

A message's place is its lookup identifier: the high byte is 7 minus its priority and the rest a
number that only grows, so that ascending identifiers are higher priorities first and earlier
arrivals before later ones. What a message weighs in memory is its row here and nothing else:
identifier, where its packet lies in the store, size, expiry, state and a key of the caller's, in
arrays of a few hundred rows. Whatever the length of the queue, adding, taking the first, finding by
identifier and removing anywhere cost the same, but for a binary search over the blocks.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from merq.errors import MerqError

AVAILABLE: Final = 0
LOCKED: Final = 1
PURGE_PENDING: Final = 2
DELETED: Final = 3
"""[MS-MQDMPR] 3.1.1.11: the states of a position; a deleted row goes with its block."""

NEVER: Final = 0xFFFFFFFF
"""The expiry of a message that stays for ever."""

BLOCK_ROWS: Final = 512
LANES: Final = 8
_LANE_SHIFT: Final = 56


class Place(NamedTuple):
    """One row: a message in its queue."""

    lookup_id: int
    location: int
    size: int
    expires: int
    state: int
    key: int


class Columns(NamedTuple):
    """Rows by column, as a checkpoint keeps them."""

    ids: array[int]
    locations: array[int]
    sizes: array[int]
    expiries: array[int]
    keys: array[int]


class PositionTaken(MerqError):
    """A lookup identifier that the queue has already."""


class _Block:
    """Rows in order. Rows before `start` are deleted; before `hint` none is available."""

    __slots__ = (
        "expiries",
        "hint",
        "ids",
        "keys",
        "living",
        "locations",
        "sizes",
        "start",
        "states",
    )

    def __init__(self) -> None:
        self.ids = array("Q")
        self.locations = array("Q")
        self.sizes = array("I")
        self.expiries = array("I")
        self.keys = array("Q")
        self.states = bytearray()
        self.living = 0
        self.start = 0
        self.hint = 0

    def place(self, row: int) -> Place:
        return Place(
            self.ids[row],
            self.locations[row],
            self.sizes[row],
            self.expiries[row],
            self.states[row],
            self.keys[row],
        )

    def append(self, place: Place) -> None:
        self.ids.append(place.lookup_id)
        self.locations.append(place.location)
        self.sizes.append(place.size)
        self.expiries.append(place.expires)
        self.states.append(place.state)
        self.keys.append(place.key)

    def insert(self, row: int, place: Place) -> None:
        self.ids.insert(row, place.lookup_id)
        self.locations.insert(row, place.location)
        self.sizes.insert(row, place.size)
        self.expiries.insert(row, place.expires)
        self.states.insert(row, place.state)
        self.keys.insert(row, place.key)
        self.start = min(self.start, row)
        self.hint = min(self.hint, row)

    def delete(self, row: int) -> None:
        """Takes out a row that is marked as deleted."""
        for column in (self.ids, self.locations, self.sizes, self.expiries, self.states, self.keys):
            del column[row]

    def first_available(self) -> int:
        """The first available row, or the number of rows if there is none."""
        row = self.states.find(AVAILABLE, self.hint)
        self.hint = len(self.states) if row < 0 else row
        return self.hint

    def split(self) -> _Block:
        """Moves the later half to a block of its own."""
        half = len(self.ids) // 2
        other = _Block()
        other.ids, self.ids = self.ids[half:], self.ids[:half]
        other.locations, self.locations = self.locations[half:], self.locations[:half]
        other.sizes, self.sizes = self.sizes[half:], self.sizes[:half]
        other.expiries, self.expiries = self.expiries[half:], self.expiries[:half]
        other.keys, self.keys = self.keys[half:], self.keys[:half]
        other.states, self.states = self.states[half:], self.states[:half]
        other.living = len(other.states) - other.states.count(DELETED)
        self.living -= other.living
        self.start = min(self.start, half)
        self.hint = min(self.hint, half)
        return other


class _Lane:
    """The blocks of one priority, in order, and the first identifier of each."""

    __slots__ = ("blocks", "firsts")

    def __init__(self) -> None:
        self.blocks: list[_Block] = []
        self.firsts: list[int] = []


class PositionList:
    """The messages of a queue in their order.

    Attributes:
        count: How many there are, whatever their state.
        available: How many of them a receiver could get.
        total_bytes: What their packets take.
    """

    __slots__ = ("_block_rows", "_lanes", "available", "count", "total_bytes")

    def __init__(self, block_rows: int = BLOCK_ROWS) -> None:
        self._block_rows = block_rows
        self._lanes = [_Lane() for _ in range(LANES)]
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
        for place in self:
            if not place.location & without:
                found.ids.append(place.lookup_id)
                found.locations.append(place.location)
                found.sizes.append(place.size)
                found.expiries.append(place.expires)
                found.keys.append(place.key)
        return found

    def load(self, columns: Columns) -> None:
        """Takes rows into an empty list, all of them available; they are in order."""
        assert not self.count, "rows are loaded once"
        for start in range(0, len(columns.ids), self._block_rows):
            rows = slice(start, start + self._block_rows)
            for lane, part in _by_lane(columns, rows):
                block = _Block()
                block.ids = columns.ids[part]
                block.locations = columns.locations[part]
                block.sizes = columns.sizes[part]
                block.expiries = columns.expiries[part]
                block.keys = columns.keys[part]
                block.states = bytearray(len(block.ids))
                block.living = len(block.ids)
                self._lanes[lane].blocks.append(block)
                self._lanes[lane].firsts.append(block.ids[0])
        self.count = self.available = len(columns.ids)
        self.total_bytes = sum(columns.sizes)

    def add(self, place: Place) -> None:
        """Puts a message at its place, which is nearly always behind the last of its priority.

        Raises:
            PositionTaken: The identifier is there already.
        """
        lookup_id = place.lookup_id
        assert 0 <= lookup_id >> _LANE_SHIFT < LANES, "the high byte is 7 minus the priority"
        lane = self._lanes[lookup_id >> _LANE_SHIFT]
        blocks = lane.blocks
        if not blocks or lookup_id > blocks[-1].ids[-1]:
            if not blocks or len(blocks[-1].ids) >= self._block_rows:
                blocks.append(_Block())
                lane.firsts.append(lookup_id)
            block = blocks[-1]
            block.append(place)
        else:
            block = self._insert(lane, place)
        block.living += 1
        self.count += 1
        self.total_bytes += place.size
        if place.state == AVAILABLE:
            self.available += 1

    def _insert(self, lane: _Lane, place: Place) -> _Block:
        """Puts a row before others, as messages that are moved from elsewhere need it."""
        index = max(bisect_right(lane.firsts, place.lookup_id) - 1, 0)
        block = lane.blocks[index]
        row = bisect_left(block.ids, place.lookup_id)
        if row < len(block.ids) and block.ids[row] == place.lookup_id:
            if block.states[row] != DELETED:
                raise PositionTaken(
                    f"lookup identifier {place.lookup_id:#x} is in the queue already"
                )
            block.delete(row)
        block.insert(row, place)
        lane.firsts[index] = block.ids[0]
        if len(block.ids) > 2 * self._block_rows:
            other = block.split()
            lane.blocks.insert(index + 1, other)
            lane.firsts.insert(index + 1, other.ids[0])
            if row >= len(block.ids):
                return other
        return block

    def first(self) -> Place | None:
        """The message that a receiver gets next: the first that is available."""
        if not self.available:
            return None
        for lane in self._lanes:
            for block in lane.blocks:
                row = block.first_available()
                if row < len(block.ids):
                    return block.place(row)
        raise AssertionError("an available message was counted and is not there")

    def last(self) -> Place | None:
        """The last message that is available."""
        return self._before(LANES << _LANE_SHIFT)

    def get(self, lookup_id: int) -> Place | None:
        """The message with this identifier, whatever its state."""
        found = self._find(lookup_id)
        return None if found is None else found[1].place(found[2])

    def after(self, lookup_id: int) -> Place | None:
        """The first available message behind this place, which may be empty."""
        start = lookup_id + 1
        for number in range(max(start >> _LANE_SHIFT, 0), LANES):
            lane = self._lanes[number]
            index = max(bisect_right(lane.firsts, start) - 1, 0)
            for block in lane.blocks[index:]:
                row = max(bisect_left(block.ids, start), block.hint)
                row = block.states.find(AVAILABLE, row)
                if row >= 0:
                    return block.place(row)
        return None

    def before(self, lookup_id: int) -> Place | None:
        """The last available message before this place, which may be empty."""
        return self._before(lookup_id)

    def _before(self, lookup_id: int) -> Place | None:
        for number in range(min(lookup_id >> _LANE_SHIFT, LANES - 1), -1, -1):
            lane = self._lanes[number]
            index = bisect_left(lane.firsts, lookup_id)
            for block in reversed(lane.blocks[:index]):
                row = block.states.rfind(AVAILABLE, 0, bisect_left(block.ids, lookup_id))
                if row >= 0:
                    return block.place(row)
        return None

    def rows_behind(self, lookup_id: int, most: int) -> list[Place]:
        """Up to so many messages behind this place, whatever their state, in order."""
        found: list[Place] = []
        start = lookup_id + 1
        for number in range(max(start >> _LANE_SHIFT, 0), LANES):
            lane = self._lanes[number]
            index = max(bisect_right(lane.firsts, start) - 1, 0)
            for block in lane.blocks[index:]:
                for row in range(bisect_left(block.ids, start), len(block.ids)):
                    if block.states[row] != DELETED:
                        found.append(block.place(row))
                        if len(found) == most:
                            return found
        return found

    def set_state(self, lookup_id: int, state: int) -> None:
        """Makes a message available, locked or pending to be purged."""
        assert state != DELETED, "messages are removed by remove()"
        _, block, row = self._found(lookup_id)
        self.available += (state == AVAILABLE) - (block.states[row] == AVAILABLE)
        block.states[row] = state
        if state == AVAILABLE:
            block.hint = min(block.hint, row)

    def relocate(self, lookup_id: int, location: int) -> None:
        """Says where the message's packet lies now."""
        _, block, row = self._found(lookup_id)
        block.locations[row] = location

    def remove(self, lookup_id: int) -> Place:
        """Takes a message out, whatever its state; gives what it was."""
        lane, block, row = self._found(lookup_id)
        place = block.place(row)
        block.states[row] = DELETED
        block.living -= 1
        self.count -= 1
        self.total_bytes -= place.size
        if place.state == AVAILABLE:
            self.available -= 1
        if block.living == 0:
            index = bisect_right(lane.firsts, lookup_id) - 1
            del lane.blocks[index]
            del lane.firsts[index]
        elif row == block.start:
            states = block.states
            while states[block.start] == DELETED:
                block.start += 1
        return place

    def _found(self, lookup_id: int) -> tuple[_Lane, _Block, int]:
        found = self._find(lookup_id)
        assert found is not None, f"lookup identifier {lookup_id:#x} is not in the queue"
        return found

    def _find(self, lookup_id: int) -> tuple[_Lane, _Block, int] | None:
        number = lookup_id >> _LANE_SHIFT
        if not 0 <= number < LANES:
            return None
        lane = self._lanes[number]
        index = bisect_right(lane.firsts, lookup_id) - 1
        if index < 0:
            return None
        block = lane.blocks[index]
        row = bisect_left(block.ids, lookup_id, block.start)
        if row == len(block.ids) or block.ids[row] != lookup_id or block.states[row] == DELETED:
            return None
        return lane, block, row


def _by_lane(columns: Columns, rows: slice) -> Iterator[tuple[int, slice]]:
    """The parts of a run of rows that belong to one priority each."""
    ids = columns.ids
    start, end = rows.start, min(rows.stop, len(ids))
    while start < end:
        lane = ids[start] >> _LANE_SHIFT
        stop = bisect_left(ids, lane + 1 << _LANE_SHIFT, start, end)
        yield lane, slice(start, stop)
        start = stop
