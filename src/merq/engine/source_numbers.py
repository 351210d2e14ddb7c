"""Queue managers whose messages are here have small numbers, by which messages are found."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

SOURCES_LOOKED_AT_MIN: Final = 10_000
"""With so many queue managers that have numbers it is looked whose messages are still here; then
again when they are twice as many as were left."""


class SourceNumbers:
    """A number, from 1 on, for each queue manager of which there are messages."""

    __slots__ = ("_free", "_looked_at", "_numbers", "get")

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._free: list[int] = []
        self._looked_at = SOURCES_LOOKED_AT_MIN
        self.get = self._numbers.get

    def __contains__(self, source: bytes) -> bool:
        return source in self._numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def are_many(self) -> bool:
        """Whether there are so many that it is worth the time to look which are not needed."""
        return len(self._numbers) >= self._looked_at

    def number_of(self, source: bytes) -> int:
        """The number of a queue manager; it has one from now on."""
        number = self._numbers.get(source)
        if number is None:
            number = self._free.pop() if self._free else len(self._numbers) + 1
            self._numbers[source] = number
        return number

    def keep(self, used: AbstractSet[int]) -> None:
        """Only these numbers are in use: the others may be somebody else's."""
        for source, number in list(self._numbers.items()):
            if number not in used:
                del self._numbers[source]
        self._note_free()
        self._looked_at = max(2 * len(self._numbers), SOURCES_LOOKED_AT_MIN)

    def _note_free(self) -> None:
        last = max(self._numbers.values(), default=0)
        self._free = sorted(set(range(1, last)).difference(self._numbers.values()))

    def listed(self) -> list[bytes]:
        """All queue managers in the order of their numbers."""
        sources = {number: source for source, number in self._numbers.items()}
        last = max(sources, default=0)
        # Who reads this takes the last number of a queue manager that is there more than once.
        return [sources.get(number, sources[last]) for number in range(1, last + 1)]

    def restore(self, listed: list[bytes]) -> None:
        """Takes what `listed` gave."""
        assert not self._numbers
        self._numbers.update({source: number for number, source in enumerate(listed, start=1)})
        self._note_free()
