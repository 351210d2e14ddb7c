"""What the engine needs of the world, defined by who needs it."""

from __future__ import annotations

from array import array
from typing import Final, Protocol

HEAD_SIZE: Final = 64
"""BaseHeader and the fixed part of UserHeader, [MS-MQMQ] 2.2.19.1 and 2.2.19.2."""


class PacketSource(Protocol):
    """Where packets lie that the engine remembers only by the position of their record."""

    def read(self, position: int, size: int) -> tuple[int, bytes]:
        """When the message arrived, and its packet of `size` bytes, in the record at a position."""

    def heads(self, positions: array[int], sizes: array[int]) -> list[bytes]:
        """The first bytes of packets, `HEAD_SIZE` or more; they are not checked."""

    def records(self, positions: array[int], sizes: array[int]) -> list[bytes | None]:
        """The data of records that have packets; None for one that is not as it was written."""

    def keep(self, position: int, size: int) -> None:
        """The packet there is needed from now on."""

    def keep_all(self, positions: array[int], sizes: array[int]) -> None:
        """All these packets are needed from now on."""

    def release(self, position: int, size: int) -> None:
        """The packet there is needed no more."""

    def release_all(self, positions: array[int], sizes: array[int], size: int) -> None:
        """These packets, which lie in one segment, are needed no more; `size` is of all of them."""
