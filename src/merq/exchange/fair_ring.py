"""Items of several groups, taken in turns: a group with many items waits as the others do."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

_Group = TypeVar("_Group", bound=Hashable)
_Item = TypeVar("_Item")


class FairRing(Generic[_Group, _Item]):
    """A queue for each group, and the groups in a ring.

    Items of one group come out in the order in which they went in.
    """

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: dict[_Group, deque[_Item]] = {}

    def __bool__(self) -> bool:
        return bool(self._groups)

    @property
    def group_count(self) -> int:
        """How many groups have items."""
        return len(self._groups)

    def add(self, group: _Group, item: _Item) -> None:
        """An item waits behind those of its group."""
        waiting = self._groups.get(group)
        if waiting is None:
            self._groups[group] = deque((item,))
        else:
            waiting.append(item)

    def pop(self) -> _Item:
        """The first item of the group whose turn it is; then it is the turn of the next group."""
        group = next(iter(self._groups))
        waiting = self._groups.pop(group)
        item = waiting.popleft()
        if waiting:
            self._groups[group] = waiting
        return item

    def put_back(self, group: _Group, item: _Item) -> None:
        """An item that was taken too early is the first of its group again."""
        self._groups.setdefault(group, deque()).appendleft(item)
