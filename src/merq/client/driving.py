"""What queues and transactions need of who carries their requests out.

That is a queue manager in this process, one behind a socket, or one in a simulated world.
"""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from merq.protocol.application.reports import Result
from merq.protocol.application.requests import Request


class Driving(Protocol):
    """Carries requests out, and waits for what comes of them."""

    @property
    def guid(self) -> UUID:
        """The queue manager's identifier."""

    @property
    def name(self) -> str:
        """The computer name that other names call the queue manager by."""

    def ask(self, request: Request, timeout: float | None = 0) -> Result:
        """Asks for something and waits for the answer.

        Args:
            request: What is asked for.
            timeout: How long it waits for a message, in seconds; None is for ever.

        Raises:
            MessageQueueError: What was asked for cannot be; nothing was changed.
        """

    def begin(self) -> int:
        """A new transaction; gives its number."""

    def close(self) -> None:
        """Nothing more is asked; what is open is given back."""
