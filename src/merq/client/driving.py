"""What queues and transactions need of who drives the engine: threads, or a simulated world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar
from uuid import UUID

from merq.engine.changes import Result
from merq.engine.manager import QueueManager

_T = TypeVar("_T")


class Driving(Protocol):
    """Asks the engine, and waits for what comes of it."""

    engine: QueueManager

    @property
    def guid(self) -> UUID:
        """The queue manager's identifier."""

    def run(
        self, ask: Callable[[int], object], number: int = 0, timeout: float | None = 0
    ) -> Result:
        """Asks for something and waits for the answer; at this queue, up to so many seconds."""

    def look(self, ask: Callable[[QueueManager], _T]) -> _T:
        """Asks for something that the engine answers at once."""

    def close(self) -> None:
        """Makes everything durable and gives the folder back."""
