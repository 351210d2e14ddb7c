"""What the message positions are made of: rows in blocks of arrays, blocks in lanes.

A lane is one priority. Its last block grows; the others only lose rows, but for messages that come
out of order. A deleted row stays, marked, until its block is thinned out, joined or dropped.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import compress, islice
from typing import Final, NamedTuple

from merq.engine.byte_order import to_little

AVAILABLE: Final = 0
LOCKED: Final = 1
PURGE_PENDING: Final = 2
DELETED: Final = 3
"""[MS-MQDMPR] 3.1.1.11: the states of a position; a deleted row goes with its block."""

NEVER: Final = 0xFFFFFFFF
"""The expiry of a message that stays for ever."""

_LIVING: Final = bytes(state != DELETED for state in range(256))
"""For each state whether its row lives."""


class Place(NamedTuple):
    """One row: a message in its queue."""

    lookup_id: int
    location: int
    size: int
    expires: int
    state: int
    key: int


new_place: Final = tuple.__new__
"""`new_place(Place, (...))` makes a place in a third of the time that `Place(...)` takes."""


class Columns(NamedTuple):
    """Rows by column, as a checkpoint keeps them."""

    ids: array[int]
    locations: array[int]
    sizes: array[int]
    expiries: array[int]
    keys: array[int]


class Rows(NamedTuple):
    """Messages and where they lie."""

    ids: array[int]
    locations: array[int]
    sizes: array[int]


class Sight(NamedTuple):
    """Messages that were looked for.

    Attributes:
        looked_at: How many were looked at for that.
        after: The last of those; -1 if there is none behind.
    """

    rows: Rows
    looked_at: int
    after: int


class Block:
    """Rows in order. Before `start` all are deleted, before `hint` none is available."""

    __slots__ = (
        "deleted",
        "expiries",
        "hint",
        "ids",
        "keys",
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
        self.deleted = 0
        self.start = 0
        self.hint = 0

    def place(self, row: int) -> Place:
        """One row."""
        return new_place(
            Place,
            (
                self.ids[row],
                self.locations[row],
                self.sizes[row],
                self.expiries[row],
                self.states[row],
                self.keys[row],
            ),
        )

    def insert(self, row: int, place: Place) -> None:
        """Puts a row before that one."""
        self.ids.insert(row, place.lookup_id)
        self.locations.insert(row, place.location)
        self.sizes.insert(row, place.size)
        self.expiries.insert(row, place.expires)
        self.states.insert(row, place.state)
        self.keys.insert(row, place.key)
        self.start = min(self.start, row)
        self.hint = min(self.hint, row)

    def erase(self, row: int) -> None:
        """Takes out a row that is marked as deleted."""
        del self.ids[row]
        del self.locations[row]
        del self.sizes[row]
        del self.expiries[row]
        del self.states[row]
        del self.keys[row]
        self.deleted -= 1
        self.start = min(self.start, row)
        self.hint = min(self.hint, row)

    def skip_deleted(self) -> None:
        """Moves the start to the first row that lives."""
        states = self.states
        row = self.start
        while row < len(states) and states[row] == DELETED:
            row += 1
        self.start = row

    def find_available(self) -> int:
        """The first available row, or -1."""
        row = self.states.find(AVAILABLE, self.hint)
        self.hint = len(self.states) if row < 0 else row
        return row

    def copy_rows(self, found: Rows, first: int, end: int, most: int, *, locked: bool) -> None:
        """Adds up to so many rows from `first` to `end` that are available, or locked ones too."""
        wanted = self.states.count(AVAILABLE, first, end)
        if locked:
            wanted += self.states.count(LOCKED, first, end)
        if wanted == end - first:
            end = min(end, first + most)
            found.ids.extend(self.ids[first:end])
            found.locations.extend(self.locations[first:end])
            found.sizes.extend(self.sizes[first:end])
            return
        for row in range(first, end):
            if most == 0:
                break
            state = self.states[row]
            if state == AVAILABLE or (locked and state == LOCKED):
                found.ids.append(self.ids[row])
                found.locations.append(self.locations[row])
                found.sizes.append(self.sizes[row])
                most -= 1

    def neighbours(self, first: int, lookup_ids: Sequence[int], at: int) -> tuple[int, int]:
        """Whether the rows from `first` on that live are these messages, from `at` on.

        Gives how many there are, and where they end; one is there in any case.
        """
        ids, states = self.ids, self.states
        end = first + min(len(lookup_ids) - at, len(ids) - first)
        if not states.count(DELETED, first, end):
            if ids[first:end] == array("Q", lookup_ids[at : at + end - first]):
                return end - first, end
            return 1, first + 1
        # Whether it is worth to look at all of them shows at the second.
        row = first + 1
        while row < len(ids) and states[row] == DELETED:
            row += 1
        if row == len(ids) or at + 1 == len(lookup_ids) or ids[row] != lookup_ids[at + 1]:
            return 1, first + 1
        living = array("Q", compress(ids[first:], states[first:].translate(_LIVING)))
        count = min(len(living), len(lookup_ids) - at)
        if living[:count] != array("Q", lookup_ids[at : at + count]):
            return 1, first + 1
        if count < len(living):
            return count, bisect_left(ids, living[count], first)
        return count, len(ids)

    def columns_of(self, first: int, end: int, count: int) -> Columns:
        """The rows from `first` to `end` that live, of which there are so many."""
        rows = slice(first, end)
        found = Columns(
            self.ids[rows],
            self.locations[rows],
            self.sizes[rows],
            self.expiries[rows],
            self.keys[rows],
        )
        if count == end - first:
            return found
        living = self.states[rows].translate(_LIVING)
        return Columns(*[array(each.typecode, compress(each, living)) for each in found])

    def copy_living(self, found: Rows, states: bytearray, first: int, most: int) -> None:
        """Adds up to so many rows from `first` on, and their states, but no deleted ones."""
        here = self.states
        if not here.count(DELETED, first):
            end = min(len(here), first + most)
            found.ids.extend(self.ids[first:end])
            found.locations.extend(self.locations[first:end])
            found.sizes.extend(self.sizes[first:end])
            states += here[first:end]
            return
        end = len(found.ids) + most
        kept = here[first:].translate(_LIVING)
        found.ids.extend(compress(self.ids[first:], kept))
        found.locations.extend(compress(self.locations[first:], kept))
        found.sizes.extend(compress(self.sizes[first:], kept))
        states += here[first:].translate(None, bytes([DELETED]))
        for column in found:
            del column[end:]
        del states[end:]

    def may_lie_in(self, segment: int) -> bool:
        """False if surely no row's packet lies in a segment of the log."""
        # The lowest byte of all segments at once: fifty times as fast as one row after the other.
        return segment & 0xFF in to_little(self.locations)[4::8]

    def rows_in(self, segment: int, first: int) -> Rows:
        """The rows from `first` on that live and whose packets lie in a segment of the log."""
        # Byte by byte for all rows at once, as one number: one where it is so, else zero.
        column = to_little(self.locations)
        found = int.from_bytes(self.states.translate(_LIVING), "little")
        for at in range(4):
            alike = bytearray(256)
            alike[segment >> 8 * at & 0xFF] = 1
            found &= int.from_bytes(column[4 + at :: 8].translate(alike), "little")
        wanted = found.to_bytes(len(self.states), "little")[first:]
        return Rows(
            array("Q", compress(self.ids[first:], wanted)),
            array("Q", compress(self.locations[first:], wanted)),
            array("I", compress(self.sizes[first:], wanted)),
        )

    def relocate(
        self, first: int, lookup_ids: array[int], locations: array[int]
    ) -> tuple[array[int], array[int]]:
        """Packets lie elsewhere now, of those messages that are here; `first` has the first of all.

        Gives where they lay before, and their sizes.
        """
        count = len(lookup_ids)
        rows: Sequence[int] = range(first, first + count)
        if self.ids[first : first + count] != lookup_ids or self.states.count(
            DELETED, first, first + count
        ):
            living = self.states[first:].translate(_LIVING)
            rows = list(islice(compress(range(first, len(self.ids)), living), count))
            if array("Q", map(self.ids.__getitem__, rows)) != lookup_ids:
                return self._relocate_some(first, lookup_ids, locations)
        before = array("Q", map(self.locations.__getitem__, rows))
        sizes = array("I", map(self.sizes.__getitem__, rows))
        for row, location in zip(rows, locations, strict=True):
            self.locations[row] = location
        return before, sizes

    def _relocate_some(
        self, first: int, lookup_ids: array[int], locations: array[int]
    ) -> tuple[array[int], array[int]]:
        """The same where others lie between them, or some are not here any more."""
        before, sizes = array("Q"), array("I")
        row = first
        for lookup_id, location in zip(lookup_ids, locations, strict=True):
            row = bisect_left(self.ids, lookup_id, row)
            if self.ids[row] == lookup_id and self.states[row] != DELETED:
                before.append(self.locations[row])
                sizes.append(self.sizes[row])
                self.locations[row] = location
        return before, sizes

    def take(self, columns: Columns, part: slice) -> None:
        """Fills an empty block with rows that are available."""
        self.ids = columns.ids[part]
        self.locations = columns.locations[part]
        self.sizes = columns.sizes[part]
        self.expiries = columns.expiries[part]
        self.keys = columns.keys[part]
        self.states = bytearray(len(self.ids))

    def living(self, without: int, mask: int) -> Columns:
        """The rows that live, but those whose location has a bit of `without` set.

        `mask` is `without` at every row, as `every_row` makes it. If that is all rows they are the
        block's own arrays: good until it changes.
        """
        # All locations as one number: a hundred times as fast as one after the other.
        if int.from_bytes(self.locations.tobytes(), "little") & mask:
            pairs = zip(self.states, self.locations, strict=True)
            return self._pick(bytes(s != DELETED and not at & without for s, at in pairs))
        if self.deleted != self.start:
            return self._pick(self.states.translate(_LIVING))
        if not self.start:
            return Columns(self.ids, self.locations, self.sizes, self.expiries, self.keys)
        rows = slice(self.start, len(self.ids))
        return Columns(
            self.ids[rows],
            self.locations[rows],
            self.sizes[rows],
            self.expiries[rows],
            self.keys[rows],
        )

    def _pick(self, kept: bytes | bytearray) -> Columns:
        """The rows that have a 1."""
        return Columns(
            array("Q", compress(self.ids, kept)),
            array("Q", compress(self.locations, kept)),
            array("I", compress(self.sizes, kept)),
            array("I", compress(self.expiries, kept)),
            array("Q", compress(self.keys, kept)),
        )

    def thin_out(self) -> None:
        """Lets go of the deleted rows."""
        if self.deleted == self.start:
            rows = slice(self.start, len(self.ids))
            self.ids = self.ids[rows]
            self.locations = self.locations[rows]
            self.sizes = self.sizes[rows]
            self.expiries = self.expiries[rows]
            self.keys = self.keys[rows]
            self.states = self.states[rows]
        else:
            kept = self.states.translate(_LIVING)
            self.ids = array("Q", compress(self.ids, kept))
            self.locations = array("Q", compress(self.locations, kept))
            self.sizes = array("I", compress(self.sizes, kept))
            self.expiries = array("I", compress(self.expiries, kept))
            self.keys = array("Q", compress(self.keys, kept))
            self.states = self.states.translate(None, bytes([DELETED]))
        self.deleted = 0
        self.start = 0
        self.hint = 0

    def split(self) -> Block:
        """Moves the later half to a block of its own."""
        half = len(self.ids) // 2
        other = Block()
        other.ids, self.ids = self.ids[half:], self.ids[:half]
        other.locations, self.locations = self.locations[half:], self.locations[:half]
        other.sizes, self.sizes = self.sizes[half:], self.sizes[:half]
        other.expiries, self.expiries = self.expiries[half:], self.expiries[:half]
        other.keys, self.keys = self.keys[half:], self.keys[:half]
        other.states, self.states = self.states[half:], self.states[:half]
        other.deleted = other.states.count(DELETED)
        self.deleted -= other.deleted
        other.start = max(self.start - half, 0)
        self.start = min(self.start, half)
        self.hint = min(self.hint, half)
        return other

    def absorb(self, other: Block) -> None:
        """Takes the rows of the block behind this one."""
        self.ids.extend(other.ids)
        self.locations.extend(other.locations)
        self.sizes.extend(other.sizes)
        self.expiries.extend(other.expiries)
        self.keys.extend(other.keys)
        self.states += other.states
        self.deleted += other.deleted


def every_row(bits: int, rows: int) -> int:
    """Bits of a location, as they stand in the locations of so many rows seen as one number."""
    return int.from_bytes(array("Q", [bits]).tobytes() * rows, "little")


class Lane:
    """The blocks of one priority, in order.

    Attributes:
        firsts: For each block an identifier that none of its own is below, and all before it are.
        opened: For each block 0 if surely none of its rows is available. It is set by whoever makes
            one available and cleared by whoever looks and finds none; the last block stays open.
        tail: The last block, or an empty one if there is none.
        last: No identifier of the lane is higher; some higher one may have been here.
    """

    __slots__ = ("blocks", "firsts", "last", "opened", "tail")

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.firsts: list[int] = []
        self.opened = bytearray()
        self.tail = Block()
        self.last = -1

    def index_of(self, lookup_id: int) -> int:
        """The index of the block in which this identifier is or would be, -1 before the first."""
        return bisect_right(self.firsts, lookup_id) - 1

    def insert(self, index: int, block: Block, first: int) -> None:
        """Puts a block before that one."""
        self.blocks.insert(index, block)
        self.firsts.insert(index, first)
        self.opened.insert(index, 1)
        self.tail = self.blocks[-1]

    def remove(self, index: int) -> None:
        """Drops a block in which nothing lives."""
        del self.blocks[index]
        del self.firsts[index]
        del self.opened[index]
        self._mind_tail()

    def join(self, index: int) -> None:
        """Makes a block and the next one a single block."""
        self.blocks[index].absorb(self.blocks[index + 1])
        self.opened[index] = 1
        self.remove(index + 1)

    def _mind_tail(self) -> None:
        if self.blocks:
            self.tail = self.blocks[-1]
            self.opened[-1] = 1
        else:
            self.tail = Block()
