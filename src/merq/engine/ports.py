"""What the engine needs of the world, defined by who needs it."""

from __future__ import annotations

from array import array
from typing import Protocol


class PacketSource(Protocol):
    """Where packets lie that the engine remembers only by the position of their record."""

    def read(self, position: int, size: int) -> tuple[int, bytes]:
        """When the message arrived, and its packet of `size` bytes, in the record at a position."""

    def heads(self, positions: array[int], sizes: array[int]) -> list[bytes]:
        """The first bytes of packets, at least as far as the UserHeader's fixed part goes."""

    def keep(self, position: int, size: int) -> None:
        """The packet there is needed from now on."""

    def keep_all(self, positions: array[int], sizes: array[int]) -> None:
        """All these packets are needed from now on."""

    def release(self, position: int, size: int) -> None:
        """The packet there is needed no more."""

    def release_all(self, positions: array[int], sizes: array[int], size: int) -> None:
        """These packets, which lie in one segment, are needed no more; `size` is of all of them."""
