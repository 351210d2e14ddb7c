"""Bytes as decisions: what a fuzzer changes in them changes what a machine does next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

STEPS_MAX: Final = 40
"""Steps that a machine takes at most."""

_Item = TypeVar("_Item")


class Broken(Exception):
    """What must hold, whatever is done from outside, does not."""


class Choices:
    """Decisions, taken from bytes one after the other; when these are used up all are the first."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_over(self) -> bool:
        return self._at >= len(self._data)

    def byte(self) -> int:
        """From 0 to 255."""
        self._at += 1
        return self._data[self._at - 1] if self._at <= len(self._data) else 0

    def flag(self, *, rarely: bool = False) -> bool:
        """Yes or no, as often; or yes once in sixteen."""
        return self.byte() & (15 if rarely else 1) == 1

    def below(self, end: int) -> int:
        """From 0 to before the end, which is 65,536 at most."""
        return (self.byte() if end <= 256 else self.byte() << 8 | self.byte()) % end

    def one(self, items: Sequence[_Item]) -> _Item:
        """One of these."""
        return items[self.below(len(items))]

    def play(self, steps: Sequence[Callable[[], object]], check: Callable[[], None]) -> None:
        """Takes one step after the other, and checks what must hold after each."""
        for _ in range(STEPS_MAX):
            if self.is_over:
                break
            self.one(steps)()
            check()

    def some_bytes(self, most: int) -> bytes:
        """As they are."""
        count = self.below(most + 1)
        found = self._data[self._at : self._at + count]
        self._at += count
        return found
