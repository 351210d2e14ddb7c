"""Messages that could not be handled or read, until a driver keeps them for a person."""

from __future__ import annotations

from typing import Final, NamedTuple

ASIDE_WAITING_MAX: Final = 64
"""Messages set aside that wait for the driver to keep them; those beyond are counted alone."""


DAMAGED_WAITING_MAX: Final = 64
"""Damaged messages that wait for the driver to keep what is left of them; who meets one more is
told what is wrong, and asks again."""


class Damaged(NamedTuple):
    """A message whose record in the log is not what was written.

    Attributes:
        queue: The number of the queue that it is in, out of everybody's way.
        location: Where its record is.
        size: Of its packet, when it was written.
        problem: What was found.
    """

    queue: int
    lookup_id: int
    location: int
    size: int
    problem: str


class Aside(NamedTuple):
    """A message that could not be handled.

    Attributes:
        packet: Empty if what failed was about no message.
        doing: What was being done.
        problem: What came of it.
    """

    packet: bytes
    doing: str
    problem: str


class AsideTaken(NamedTuple):
    """Messages that were set aside, and how many more for which there was no room."""

    messages: list[Aside]
    unkept: int


class AsideMessages:
    """What was set aside and not taken yet.

    Attributes:
        count: How many messages were set aside since the start.
        waiting: Those that wait to be kept.
        damaged: Those of which the log has a part only, or none; they are not counted here.
    """

    __slots__ = ("_taken", "count", "damaged", "waiting")

    def __init__(self) -> None:
        self.waiting: list[Aside] = []
        self.damaged: list[Damaged] = []
        self.count = 0
        self._taken = 0

    def add(self, packet: bytes, doing: str, problem: str) -> None:
        """A message could not be handled: a person may look at it."""
        self.count += 1
        if len(self.waiting) < ASIDE_WAITING_MAX:
            self.waiting.append(Aside(packet, doing, problem))

    def take(self) -> AsideTaken:
        """What was set aside since the last time, for the driver to keep."""
        found, self.waiting = self.waiting, []
        unkept = self.count - self._taken - len(found)
        self._taken = self.count
        return AsideTaken(found, unkept)

    def take_damaged(self) -> list[Damaged]:
        """The damaged messages that were met since the last time."""
        found, self.damaged = self.damaged, []
        return found
