"""[MS-MQDMPR] 3.1.2.4, 3.1.7.2.7: which messages expire when, those of all queues together.

Seconds since 1970, as whole numbers. An entry is two numbers in a sorted map: the second and the
low bits of the lookup identifier, which grow together as messages arrive, and the queue with the
rest of the identifier. That is 17 to 35 bytes a message, whether they expire all at once or each
in a second of its own, and a message that leaves early takes its entry along.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import compress, islice
from operator import lt
from typing import Final

from merq.engine.sorted_map import SortedMap

DUE_MAX: Final = 1024
"""How many messages one call of `due` gives at most."""

_LOW_BITS: Final = 29
_LOW_MASK: Final = (1 << _LOW_BITS) - 1
_HIGH_BITS: Final = 30
_HIGH_MASK: Final = (1 << _HIGH_BITS) - 1
"""A lookup identifier has 59 bits: with 32 for the second or the queue, both numbers stay below
2^62, up to which the compiled build keeps them out of objects."""

_LOADED_ROWS: Final = 1 << 20
"""How many messages are taken at a time from a checkpoint."""


class Expiries:
    """The messages that expire."""

    # `_twins` has what shares its key with an entry of `_entries`: the same second, and identifiers
    # that differ in their high bits alone. That hardly ever happens.
    __slots__ = ("_entries", "_twin_count", "_twins")

    def __init__(self) -> None:
        self._entries = SortedMap()
        self._twins: dict[int, list[int]] = {}
        self._twin_count = 0

    def __len__(self) -> int:
        return len(self._entries) + self._twin_count

    def add(self, expires: int, queue: int, lookup_id: int) -> None:
        """A message expires after this second. It is not here yet."""
        key = expires << _LOW_BITS | lookup_id & _LOW_MASK
        before = self._entries.add(key, queue << _HIGH_BITS | lookup_id >> _LOW_BITS)
        if before is not None:
            self._twins.setdefault(key, []).append(before)
            self._twin_count += 1

    def add_many(
        self, expiries: Sequence[int], queue: int, lookup_ids: Sequence[int], never: int
    ) -> None:
        """Messages of a queue expire after these seconds, but those that `never` do."""
        if never in expiries:
            for expires, lookup_id in zip(expiries, lookup_ids, strict=True):
                if expires != never:
                    self.add(expires, queue, lookup_id)
            return
        pairs = zip(expiries, lookup_ids, strict=True)
        keys = [second << _LOW_BITS | one & _LOW_MASK for second, one in pairs]
        high = queue << _HIGH_BITS
        values = [high | one >> _LOW_BITS for one in lookup_ids]
        for key, before in self._entries.add_many(keys, values):
            self._twins.setdefault(key, []).append(before)
            self._twin_count += 1

    def remove(self, expires: int, queue: int, lookup_id: int) -> bool:
        """A message is gone; False if it was not here or was due already."""
        key = expires << _LOW_BITS | lookup_id & _LOW_MASK
        value = queue << _HIGH_BITS | lookup_id >> _LOW_BITS
        if self._entries.remove(key, value):
            if key in self._twins:
                self._entries.add(key, self._twins[key][-1])
                self._forget_twin(key, self._twins[key][-1])
            return True
        if value in self._twins.get(key, ()):
            self._forget_twin(key, value)
            return True
        return False

    def remove_many(
        self, expiries: array[int], queue: int, lookup_ids: array[int], never: int
    ) -> None:
        """Messages of a queue are gone, some of which may `never` have been to expire."""
        if self._twins or never in expiries:
            for expires, lookup_id in zip(expiries, lookup_ids, strict=True):
                if expires != never:
                    self.remove(expires, queue, lookup_id)
            return
        pairs = zip(expiries, lookup_ids, strict=True)
        keys = array("Q", [second << _LOW_BITS | one & _LOW_MASK for second, one in pairs])
        high = queue << _HIGH_BITS
        self._entries.remove_many(keys, array("Q", [high | one >> _LOW_BITS for one in lookup_ids]))

    def due(self, now: int) -> list[tuple[int, int]]:
        """Takes out queue and lookup identifier of what expired before this second.

        No more than `DUE_MAX`, in order: as long as `next` is below `now`, there are others.
        """
        entries = self._entries.take_below(now << _LOW_BITS, DUE_MAX)
        found = [
            (value >> _HIGH_BITS, (value & _HIGH_MASK) << _LOW_BITS | key & _LOW_MASK)
            for key, value in entries
        ]
        if self._twins:
            for key, _ in entries:
                if key in self._twins:
                    self._entries.add(key, self._twins[key][-1])
                    self._forget_twin(key, self._twins[key][-1])
        return found

    def next(self) -> int | None:
        """The second after which the first message expires, exactly; None if none does."""
        key = self._entries.first_key()
        return None if key is None else key >> _LOW_BITS

    def load(self, queue: int, expiries: array[int], ids: array[int], never: int) -> None:
        """Takes the messages of a queue from a checkpoint, but those that `never` expire."""
        if expiries.count(never) == len(expiries):
            return
        for start in range(0, len(ids), _LOADED_ROWS):
            rows = slice(start, start + _LOADED_ROWS)
            seconds, some = expiries[rows], ids[rows]
            if never in seconds:
                kept = [second != never for second in seconds]
                seconds = array("I", compress(seconds, kept))
                some = array("Q", compress(some, kept))
            self._load(queue << _HIGH_BITS, seconds, some)

    def _load(self, high: int, seconds: array[int], ids: array[int]) -> None:
        pairs = zip(seconds, ids, strict=True)
        keys = array("Q", [second << _LOW_BITS | one & _LOW_MASK for second, one in pairs])
        values = array("Q", [high | one >> _LOW_BITS for one in ids])
        if not all(map(lt, keys, islice(keys, 1, None))):
            order = sorted(range(len(keys)), key=keys.__getitem__)
            keys = array("Q", map(keys.__getitem__, order))
            values = array("Q", map(values.__getitem__, order))
        for key, before in self._entries.load(keys, values):
            self._twins.setdefault(key, []).append(before)
            self._twin_count += 1

    def _forget_twin(self, key: int, value: int) -> None:
        self._twins[key].remove(value)
        if not self._twins[key]:
            del self._twins[key]
        self._twin_count -= 1
