"""[MS-MQMQ] 2.2.20.4: how many messages the other side lets us leave unacknowledged."""

from __future__ import annotations

from typing import Final

GROWTH_S: Final = 30.0
"""[MS-MQMQ] 2.2.20.4, note 15: a window that shrank doubles after this time, and again after it."""


class PeerWindow:
    """The window that the other side announced.

    A queue manager that is short of memory, or whose queue is paused, announces a smaller window.
    No packet has to take that back, so the window grows by itself up to the one that was agreed on
    when the session was opened. Announcing the same window again does not stop that.

    Attributes:
        size: The window as it counts now.
        grows_at: When it doubles next; None while it is whole.
    """

    __slots__ = ("_announced", "_whole", "grows_at", "size")

    def __init__(self, size: int) -> None:
        self._announced = self._whole = self.size = max(size, 1)
        self.grows_at: float | None = None

    def announced(self, size: int, now: float) -> None:
        """[MS-MQQB] 3.1.5.5: an acknowledgment says how large the window is."""
        if size == self._announced:
            return
        self._announced = self.size = max(size, 1)
        self._whole = max(self._whole, self.size)
        self.grows_at = now + GROWTH_S if self.size < self._whole else None

    def tick(self, now: float) -> None:
        """Grows as often as it is due."""
        while self.grows_at is not None and now >= self.grows_at:
            self.size = min(self.size * 2, self._whole)
            self.grows_at = self.grows_at + GROWTH_S if self.size < self._whole else None
