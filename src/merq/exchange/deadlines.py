"""Times at which something is due, of things by the thousand of which few are due at a time."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar

_Item = TypeVar("_Item")

STALE_MIN: Final = 64
"""So many places in the heap may be those of items that are due no more, and half of all others."""


class _Place(Generic[_Item]):
    """Where an item is in the heap; none any more if it is due no more."""

    __slots__ = ("at", "count", "item")

    def __init__(self, at: float, count: int, item: _Item) -> None:
        self.at = at
        self.count = count
        self.item: _Item | None = item

    def __lt__(self, other: _Place[_Item]) -> bool:
        return (self.at, self.count) < (other.at, other.count)


class Deadlines(Generic[_Item]):
    """When each item is due; looking costs by how many are due, not by how many there are.

    A time that is put off leaves its place in the heap and is found there to be later: timers are
    put off with every packet, and run out rarely. What is due no more is let go at once, with all
    that hangs on it.
    """

    __slots__ = ("_count", "_due", "_heap", "_placed", "_stale")

    def __init__(self) -> None:
        self._due: dict[_Item, float] = {}
        self._placed: dict[_Item, _Place[_Item]] = {}
        self._heap: list[_Place[_Item]] = []
        self._count = 0
        self._stale = 0

    def __bool__(self) -> bool:
        return bool(self._due)

    def __len__(self) -> int:
        """How much there is in the heap, for who wants to know what it takes."""
        return len(self._heap)

    def get(self, item: _Item) -> float | None:
        """When an item is due; None if it is not."""
        return self._due.get(item)

    def set(self, item: _Item, due: float | None) -> None:
        """An item is due then, instead of when it was before; None: not at all."""
        if due is None:
            if self._due.pop(item, None) is not None:
                self._displace(item)
            return
        self._due[item] = due
        placed = self._placed.get(item)
        if placed is None:
            self._place(item, due)
        elif due < placed.at:
            self._displace(item)
            self._place(item, due)

    def _place(self, item: _Item, due: float) -> None:
        self._count += 1  # equal times come in the order in which they were set
        place = self._placed[item] = _Place(due, self._count, item)
        heappush(self._heap, place)

    def _displace(self, item: _Item) -> None:
        self._placed.pop(item).item = None
        self._stale += 1
        if self._stale > STALE_MIN and self._stale > len(self._heap) // 2:
            self._heap = [place for place in self._heap if place.item is not None]
            heapify(self._heap)
            self._stale = 0

    def next(self) -> float | None:
        """When the first item is due."""
        while self._heap:
            place = self._heap[0]
            item = place.item
            if item is None:
                heappop(self._heap)
                self._stale -= 1
                continue
            due = self._due[item]
            if due == place.at:
                return due
            heappop(self._heap)
            self._place(item, due)
        return None

    def take(self, now: float, most: int | None = None) -> list[_Item]:
        """Items that are due by now, in the order of their times; they have none any more.

        Args:
            now: Whatever the times are in.
            most: How many at most; the others stay due.
        """
        found: list[_Item] = []
        while len(found) != most and (at := self.next()) is not None and at <= now:
            item = heappop(self._heap).item
            assert item is not None, "the next is one that is due"
            del self._placed[item], self._due[item]
            found.append(item)
        return found
