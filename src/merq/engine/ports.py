"""What the engine needs of the world, defined by who needs it."""

from __future__ import annotations

from typing import Protocol


class PacketSource(Protocol):
    """Where packets lie that the engine remembers only by position."""

    def read(self, position: int, size: int) -> bytes:
        """The bytes there."""

    def keep(self, position: int, size: int) -> None:
        """These bytes are needed from now on."""

    def release(self, position: int, size: int) -> None:
        """These bytes are needed no more."""
