"""A map from numbers to numbers, both below 2^64, in order of the keys: 17 to 35 bytes an entry.

The entries lie in runs of a few hundred, in arrays. Keys that grow are appended, the lowest are
taken off the front, and anything else is a binary search over the runs, one in a run and a move of
at most a few kilobytes. There is no moment at which everything is copied, as in a dictionary that
grows, and what is removed gives its memory back.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import islice
from operator import lt
from typing import Final

RUN_ROWS: Final = 512

_SPARSE_SHARE: Final = 8
"""A run of one of this many of a full one's entries is joined to a neighbour, if there is room."""


class _Run:
    """Entries in order of their keys. Those before `start` were removed."""

    __slots__ = ("keys", "start", "values")

    def __init__(self, keys: array[int], values: array[int]) -> None:
        self.keys = keys
        self.values = values
        self.start = 0

    def trim(self) -> None:
        """Lets go of what was removed at the front."""
        del self.keys[: self.start]
        del self.values[: self.start]
        self.start = 0


class SortedMap:
    """Numbers by numbers."""

    # `_floors` has for each run a key that none of its own is below, and all before it are. `_last`
    # is the last run, or an empty one, and no key is above `_last_key`.
    __slots__ = ("_count", "_floors", "_last", "_last_key", "_rows", "_runs", "_sparse_rows")

    def __init__(self, run_rows: int = RUN_ROWS) -> None:
        self._rows = run_rows
        self._sparse_rows = run_rows // _SPARSE_SHARE
        self._runs: list[_Run] = []
        self._floors: list[int] = []
        self._last = _Run(array("Q"), array("Q"))
        self._last_key = -1
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, key: int, value: int) -> int | None:
        """Gives a key its value; the one that it had before, if any, is returned."""
        run = self._last
        keys = run.keys
        if key <= self._last_key or len(keys) >= self._rows or not self._runs:
            return self._insert(key, value)
        keys.append(key)
        run.values.append(value)
        self._last_key = key
        self._count += 1
        return None

    def add_many(self, keys: Sequence[int], values: Sequence[int]) -> list[tuple[int, int]]:
        """Gives keys their values; keys that had one already, and that one, are returned."""
        some = array("Q", keys)
        if self._runs and some[0] > self._last_key and all(map(lt, some, islice(some, 1, None))):
            self._extend(some, values)
            return []
        replaced = []
        for key, value in zip(keys, values, strict=True):
            before = self.add(key, value)
            if before is not None:
                replaced.append((key, before))
        return replaced

    def _extend(self, keys: array[int], values: Sequence[int]) -> None:
        """Adds keys that grow and are above all others."""
        at, count = 0, len(keys)
        while at < count:
            run = self._last
            if len(run.keys) >= self._rows:
                if run.start:
                    run.trim()
                else:
                    run = _Run(array("Q"), array("Q"))
                    self._put(len(self._runs), run, keys[at])
            end = min(count, at + self._rows - len(run.keys))
            run.keys.extend(keys[at:end])
            run.values.extend(values[at:end])
            at = end
        self._last_key = keys[-1]
        self._count += count

    def get(self, key: int) -> int | None:
        """The value of a key."""
        index = bisect_right(self._floors, key) - 1
        if index < 0:
            return None
        run = self._runs[index]
        row = bisect_left(run.keys, key, run.start)
        if row == len(run.keys) or run.keys[row] != key:
            return None
        return run.values[row]

    def first_key_from(self, key: int) -> int | None:
        """The lowest key that is not below this one."""
        index = max(bisect_right(self._floors, key) - 1, 0)
        for run in self._runs[index : index + 2]:
            row = bisect_left(run.keys, key, run.start)
            if row < len(run.keys):
                return run.keys[row]
        return None

    def remove(self, key: int, value: int) -> bool:
        """Takes a key out if this is its value; False if it is not."""
        if not self._runs:
            return False
        # Entries leave in order more often than not.
        index = 0
        run = self._runs[0]
        row = run.start
        if row >= len(run.keys) or run.keys[row] != key:
            index = bisect_right(self._floors, key) - 1
            if index < 0:
                return False
            run = self._runs[index]
            row = bisect_left(run.keys, key, run.start)
            if row == len(run.keys) or run.keys[row] != key:
                return False
        if run.values[row] != value:
            return False
        if row == run.start:
            run.start = row + 1
        else:
            del run.keys[row]
            del run.values[row]
        self._count -= 1
        left = len(run.keys) - run.start
        if left < run.start or not left:
            self._tidy(index)
        elif left == self._sparse_rows:
            self._join(index)
        return True

    def remove_many(self, keys: array[int], values: array[int]) -> None:
        """Takes keys out that have these values; those that lie one behind the other go at once."""
        at = 0
        while at < len(keys):
            taken = self._remove_run(keys, values, at)
            if not taken:
                self.remove(keys[at], values[at])
            at += taken or 1

    def _remove_run(self, keys: array[int], values: array[int], at: int) -> int:
        """Takes out two or more that lie in one run, if these are they; gives how many."""
        if not self._runs or at + 1 == len(keys):
            return 0
        index = 0
        run = self._runs[0]
        row = run.start
        if row >= len(run.keys) or run.keys[row] != keys[at]:
            index = bisect_right(self._floors, keys[at]) - 1
            if index < 0:
                return 0
            run = self._runs[index]
            row = bisect_left(run.keys, keys[at], run.start)
        count = min(len(run.keys) - row, len(keys) - at)
        end = row + count
        # Where others lie between it mostly shows at the second.
        if count < 2 or run.keys[row + 1] != keys[at + 1]:
            return 0
        if run.keys[row:end] != keys[at : at + count]:
            return 0
        if run.values[row:end] != values[at : at + count]:
            return 0
        if row == run.start:
            run.start = end
        else:
            del run.keys[row:end]
            del run.values[row:end]
        self._count -= count
        left = len(run.keys) - run.start
        if left < run.start or not left:
            self._tidy(index)
        elif left <= self._sparse_rows:
            self._join(index)
        return count

    def first_key(self) -> int | None:
        """The lowest key."""
        if not self._count:
            return None
        run = self._runs[0]
        return run.keys[run.start]

    def take_below(self, limit: int, most: int) -> list[tuple[int, int]]:
        """Takes out the entries with keys below this, in order, but no more than so many."""
        taken: list[tuple[int, int]] = []
        while self._count and len(taken) < most:
            run = self._runs[0]
            end = bisect_left(run.keys, limit, run.start)
            end = min(end, run.start + most - len(taken))
            if end == run.start:
                break
            rows = slice(run.start, end)
            taken += zip(run.keys[rows], run.values[rows], strict=True)
            self._count -= end - run.start
            run.start = end
            self._tidy(0)
        return taken

    def load(self, keys: array[int], values: array[int]) -> list[tuple[int, int]]:
        """Adds many entries; those whose keys are in order and above all others cost little.

        Returns:
            Keys that had a value already, and that value.
        """
        replaced: list[tuple[int, int]] = []
        if self._runs and self._last.start == len(self._last.keys):
            self._drop(len(self._runs) - 1)
        for start in range(0, len(keys), self._rows):
            some, theirs = keys[start : start + self._rows], values[start : start + self._rows]
            if some[0] > self._last_key and all(map(lt, some, islice(some, 1, None))):
                self._put(len(self._runs), _Run(some, theirs), some[0])
                self._last_key = some[-1]
                self._count += len(some)
            else:
                for key, value in zip(some, theirs, strict=True):
                    before = self.add(key, value)
                    if before is not None:
                        replaced.append((key, before))
        return replaced

    def _insert(self, key: int, value: int) -> int | None:
        """Adds an entry that is not behind the last one, or for which its run has no room."""
        index = max(bisect_right(self._floors, key) - 1, 0)
        if not self._runs:
            self._put(0, _Run(array("Q"), array("Q")), key)
        run = self._runs[index]
        row = bisect_left(run.keys, key, run.start)
        if row < len(run.keys) and run.keys[row] == key:
            before = run.values[row]
            run.values[row] = value
            return before
        if run.start and len(run.keys) >= self._rows:
            row -= run.start
            run.trim()
        elif len(run.keys) >= self._rows:
            index, run, row = self._make_room(index, key, row)
        run.keys.insert(row, key)
        run.values.insert(row, value)
        self._floors[index] = min(self._floors[index], key)
        self._last_key = max(self._last_key, key)
        self._count += 1
        return None

    def _make_room(self, index: int, key: int, row: int) -> tuple[int, _Run, int]:
        """Splits a full run: in the middle, or near its end where it has grown, to stay full."""
        run = self._runs[index]
        rows = len(run.keys)
        half = row if row >= rows - self._sparse_rows else rows // 2
        other = _Run(run.keys[half:], run.values[half:])
        del run.keys[half:]
        del run.values[half:]
        self._put(index + 1, other, other.keys[0] if other.keys else key)
        if row < half:
            return index, run, row
        return index + 1, other, row - half

    def _put(self, index: int, run: _Run, floor: int) -> None:
        self._runs.insert(index, run)
        self._floors.insert(index, floor)
        self._last = self._runs[-1]

    def _tidy(self, index: int) -> None:
        """A run has lost much at its front, or everything."""
        run = self._runs[index]
        left = len(run.keys) - run.start
        if not left and (run is not self._last or run.start > self._sparse_rows):
            self._drop(index)
        elif left and run.start > self._sparse_rows:
            run.trim()
            if left <= self._sparse_rows:
                self._join(index)

    def _join(self, index: int) -> None:
        """Joins a run that has few entries left to a neighbour if there is room."""
        for left in (index - 1, index):
            if left >= 0 and left + 1 < len(self._runs):
                run, other = self._runs[left], self._runs[left + 1]
                if len(run.keys) + len(other.keys) <= self._rows // 2:
                    other.trim()
                    run.keys.extend(other.keys)
                    run.values.extend(other.values)
                    self._drop(left + 1)
                    return

    def _drop(self, index: int) -> None:
        del self._runs[index]
        del self._floors[index]
        self._last = self._runs[-1] if self._runs else _Run(array("Q"), array("Q"))
