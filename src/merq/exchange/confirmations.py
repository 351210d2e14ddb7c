"""Which queue manager answered at which address when this side connected there."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final
from uuid import UUID

CONFIRMED_MAX: Final = 10_000
"""Addresses of which that is remembered; the oldest is forgotten, and called again."""

MANAGERS_PER_ADDRESS_MAX: Final = 8
"""Queue managers that are remembered of one address."""


class Confirmations:
    """Who was reached where, while that is fresh.

    Whoever connects here may say that it is anybody. Whoever is connected to is at least at the
    address where messages are meant to go.
    """

    def __init__(self, lifetime_s: float) -> None:
        self._lifetime_s = lifetime_s
        self._by_address: OrderedDict[str, OrderedDict[UUID, float]] = OrderedDict()

    def add(self, address: str, guid: UUID, now: float) -> None:
        """This side has connected to an address, and this queue manager answered."""
        there = self._by_address.setdefault(address, OrderedDict())
        self._by_address.move_to_end(address)
        there[guid] = now + self._lifetime_s
        there.move_to_end(guid)
        while len(there) > MANAGERS_PER_ADDRESS_MAX:
            there.popitem(last=False)
        while len(self._by_address) > CONFIRMED_MAX:
            self._by_address.popitem(last=False)

    def holds(self, address: str, guid: UUID, now: float) -> bool:
        """Whether that queue manager answered there, not long ago."""
        there = self._by_address.get(address)
        return there is not None and now < there.get(guid, now)

    def forget(self, address: str) -> None:
        """Nobody answers there any more, or somebody else."""
        self._by_address.pop(address, None)
