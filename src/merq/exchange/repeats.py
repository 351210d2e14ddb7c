"""Which events of a source are told, so that none fills the log: once in a while for each."""

from __future__ import annotations

from typing import Final

TOLD_S: Final = 60.0
"""Seconds between two lines about the same source."""

SOURCES_MAX: Final = 1_000
"""Sources of which it is known when they were told of; beyond it the first of them is forgotten,
and told of again when something happens."""


class Repeats:
    """Counts what happens by source, and says when to tell it."""

    def __init__(self) -> None:
        self._waiting: dict[str, int] = {}
        self._tell_at: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._tell_at)

    def __contains__(self, source: str) -> bool:
        return source in self._tell_at

    def known_of(self, start: str) -> int:
        """How many sources are known whose names begin like this."""
        return sum(each.startswith(start) for each in self._tell_at)

    def count(self, source: str, count: int, now: float) -> int:
        """So many more happened; gives how many to tell of, 0 if it is too early."""
        waiting = self._waiting.pop(source, 0) + count
        if now < self._tell_at.get(source, now):
            self._waiting[source] = waiting
            return 0
        self._tell_at.pop(source, None)
        if len(self._tell_at) >= SOURCES_MAX:
            oldest = next(iter(self._tell_at))
            del self._tell_at[oldest]
            self._waiting.pop(oldest, None)
        self._tell_at[source] = now + TOLD_S
        return waiting

    def due(self, now: float) -> list[str]:
        """Sources of which something happened that was not told, and can be now."""
        return [source for source in self._waiting if now >= self._tell_at[source]]
