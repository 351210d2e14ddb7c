"""Connections that are to be made: how many at the same time, and which of them first.

An address where nobody answers keeps an attempt waiting for many seconds. So that those do not hold
up others, attempts are of three kinds, and two of them have only a share of the room.
"""

from __future__ import annotations

from collections import OrderedDict
from enum import Enum
from typing import Final

from merq.exchange.links import Link

SLICE_S: Final = 2.0
"""An attempt that takes longer than this is given up if others wait for their turn: of two places
the one that answers at once is not to wait for the one that never does."""


class DialKind(Enum):
    """What an attempt to connect is for; the value is the part of the room that its kind may use.

    The order is that in which they are made.
    """

    FRESH = 1.0
    """For messages of applications; the last attempt did not fail, or there was none."""

    AGAIN = 0.5
    """For messages of applications, to where the last attempt failed."""

    ANSWER = 0.25
    """For acknowledgments alone: another queue manager's message caused it."""


class Dials:
    """Attempts to connect that wait for their turn, and those that are under way."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: dict[DialKind, OrderedDict[Link, None]] = {
            kind: OrderedDict() for kind in DialKind
        }
        self._under_way: dict[Link, DialKind] = {}
        self._counts = dict.fromkeys(DialKind, 0)
        self._began: dict[Link, float] = {}

    def __len__(self) -> int:
        """How many are under way."""
        return len(self._under_way)

    def add(self, link: Link, kind: DialKind) -> None:
        """A connection is to be made."""
        self._waiting[kind][link] = None

    def hasten(self, link: Link, kind: DialKind) -> None:
        """One that waits is wanted for something else too, perhaps more urgently."""
        for each, links in self._waiting.items():
            if link in links and kind.value > each.value:
                del links[link]
                self._waiting[kind][link] = None
                return

    def take(self) -> list[Link]:
        """Those that are to be made now."""
        taken = []
        for kind, waiting in self._waiting.items():
            most = self._most_of(kind)
            while waiting and len(self._under_way) < self._most and self._counts[kind] < most:
                link, _ = waiting.popitem(last=False)
                self._under_way[link] = kind
                self._counts[kind] += 1
                taken.append(link)
        return taken

    def ended(self, link: Link) -> None:
        """One is made, failed, or is not wanted any more."""
        kind = self._under_way.pop(link, None)
        self._began.pop(link, None)
        if kind is not None:
            self._counts[kind] -= 1
            return
        for links in self._waiting.values():
            links.pop(link, None)

    def next_deadline(self) -> float | None:
        """When `overdue` has something to find next, at the earliest."""
        if not any(self._waiting.values()):
            return None
        if len(self._began) < len(self._under_way):
            return 0.0  # at once: it is to be known since when they are under way
        return min(self._began.values(), default=0.0) + SLICE_S

    def overdue(self, now: float) -> list[Link]:
        """Those to be given up so that others of their kind, or more urgent ones, have a turn."""
        for link in self._under_way:
            self._began.setdefault(link, now)
        slow = {
            link: kind
            for link, kind in self._under_way.items()
            if now - self._began[link] >= SLICE_S
        }
        found: list[Link] = []
        for kind, waiting in self._waiting.items():
            room = min(self._most - len(self._under_way), self._most_of(kind) - self._counts[kind])
            wanted = max(len(waiting) - max(room, 0), 0)
            given_up = [
                link for link, its in slow.items() if its is kind or kind is DialKind.FRESH
            ][:wanted]
            found += given_up
            for link in given_up:
                del slow[link]
        return found

    def _most_of(self, kind: DialKind) -> int:
        return max(int(self._most * kind.value), 1)
