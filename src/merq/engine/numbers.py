"""Numbers that are given out once: lookup identifiers, message ordinals, queue numbers.

What was given out before a crash is not given out after it: numbers are reserved in the log, many
at a time, before the first of them is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merq.engine import records

if TYPE_CHECKING:
    from merq.engine.changes import Change

RESERVATION: Final = 100_000
"""How many identifiers are given out before the next reservation is written."""

SEQUENTIAL_MAX: Final = (1 << 56) - 1
ORDINAL_MASK: Final = 0xFFFFFFFF
"""[MS-MQMQ] 2.2.18.1.3: a message identifier has 32 bits for the ordinal; it starts anew then."""


def lookup_id_of(priority: int, sequential_id: int) -> int:
    """[MS-MQDMPR] 3.1.7.1.9: 7 minus the priority, then a number that only grows."""
    return 7 - priority << 56 | sequential_id


class Numbers:
    """[MS-MQDMPR] 3.1.1.1: the SequentialID, and the ordinals of messages."""

    __slots__ = ("_ordinal", "_ordinal_reserved", "_sequential_id", "_sequential_reserved")

    def __init__(self) -> None:
        self._sequential_id = 0
        self._ordinal = 0
        self._sequential_reserved = 0
        self._ordinal_reserved = 0

    def lookup_id(self, priority: int, change: Change) -> int:
        """[MS-MQDMPR] 3.1.7.1.9: 7 minus the priority, then a number that only grows."""
        self._sequential_id += 1
        if self._sequential_id > self._sequential_reserved:
            self._reserve(change)
        return lookup_id_of(priority, self._sequential_id)

    def ordinal(self, change: Change) -> int:
        """The number of the next message that this queue manager sends."""
        self._ordinal += 1
        if not self._ordinal & ORDINAL_MASK:
            self._ordinal += 1  # 0 is no message
        if self._ordinal > self._ordinal_reserved:
            self._reserve(change)
        return self._ordinal & ORDINAL_MASK

    def ordinals(self, count: int, change: Change) -> int | None:
        """As many ordinals in a row, the first of them; None if they start anew on the way."""
        if self._ordinal & ORDINAL_MASK > ORDINAL_MASK - count:
            return None
        first = (self._ordinal + 1) & ORDINAL_MASK
        self._ordinal += count
        if self._ordinal > self._ordinal_reserved:
            self._reserve(change)
        return first

    def lookup_ids(self, priority: int, count: int, change: Change) -> int:
        """As many lookup identifiers in a row, the first of them."""
        first = self._sequential_id + 1
        self._sequential_id += count
        if self._sequential_id > self._sequential_reserved:
            self._reserve(change)
        return lookup_id_of(priority, first)

    def many(self, count: int, change: Change) -> tuple[int, int] | None:
        """As many sequential identifiers and ordinals in a row; the first of each.

        None if the ordinals would not be in a row: they start anew on the way.
        """
        if self._ordinal & ORDINAL_MASK > ORDINAL_MASK - count:
            return None
        first = self._sequential_id + 1, (self._ordinal + 1) & ORDINAL_MASK
        self._sequential_id += count
        self._ordinal += count
        if (
            self._sequential_id > self._sequential_reserved
            or self._ordinal > self._ordinal_reserved
        ):
            self._reserve(change)
        return first

    def _reserve(self, change: Change) -> None:
        assert self._sequential_id < SEQUENTIAL_MAX - RESERVATION, "2**56 messages were here"
        self._sequential_reserved = self._sequential_id + RESERVATION
        self._ordinal_reserved = self._ordinal + RESERVATION
        entry = records.reserve(self._sequential_reserved, self._ordinal_reserved)
        change.entries.append(entry)

    @property
    def last(self) -> int:
        """The last sequential identifier that was given out, or a later one."""
        return self._sequential_id

    def forget_reservation(self) -> None:
        """The last reservation was not written: the next number asks for another."""
        self._sequential_reserved = self._ordinal_reserved = 0

    def reserved(self) -> tuple[int, int]:
        """Nothing above these was given out."""
        sequential_id = max(self._sequential_reserved, self._sequential_id)
        return sequential_id, max(self._ordinal_reserved, self._ordinal)

    def go_on_from(self, sequential_id: int, ordinal: int) -> None:
        """Goes on behind what was reserved."""
        self._sequential_reserved, self._ordinal_reserved = sequential_id, ordinal
        self._sequential_id = max(self._sequential_id, sequential_id)
        self._ordinal = max(self._ordinal, ordinal)
