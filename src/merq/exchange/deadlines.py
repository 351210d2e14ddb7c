"""Times at which something is due, of things by the thousand of which few are due at a time."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Generic, TypeVar

_Item = TypeVar("_Item")


class Deadlines(Generic[_Item]):
    """When each item is due; looking costs by how many are due, not by how many there are.

    A time that is put off leaves its place in the heap and is found there to be later: timers are
    put off with every packet, and run out rarely.
    """

    __slots__ = ("_count", "_due", "_heap", "_placed")

    def __init__(self) -> None:
        self._due: dict[_Item, float] = {}
        self._placed: dict[_Item, float] = {}
        self._heap: list[tuple[float, int, _Item]] = []
        self._count = 0

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
            self._due.pop(item, None)
            return
        self._due[item] = due
        placed = self._placed.get(item)
        if placed is None or due < placed:
            self._place(item, due)

    def _place(self, item: _Item, due: float) -> None:
        self._count += 1  # equal times come in the order in which they were set
        self._placed[item] = due
        heappush(self._heap, (due, self._count, item))

    def next(self) -> float | None:
        """When the first item is due."""
        while self._heap:
            at, _, item = self._heap[0]
            due = self._due.get(item)
            if self._placed.get(item) == at:
                if due == at:
                    return at
                del self._placed[item]
            heappop(self._heap)
            if due is not None and item not in self._placed:
                self._place(item, due)
        return None

    def take(self, now: float) -> list[_Item]:
        """The items that are due by now, in the order of their times; they have none any more."""
        found: list[_Item] = []
        while (at := self.next()) is not None and at <= now:
            _, _, item = heappop(self._heap)
            del self._placed[item], self._due[item]
            found.append(item)
        return found
