"""Arrays as bytes, little-endian on every machine."""

from __future__ import annotations

from array import array
from typing import Final

_SWAPPED: Final = array("H", [1]).tobytes() != b"\1\0"
"""Whether this machine has the other byte order."""


def to_little(column: array[int]) -> bytes:
    """An array as bytes."""
    if _SWAPPED:
        column = array(column.typecode, column)
        column.byteswap()
    return column.tobytes()


def from_little(code: str, data: bytes) -> array[int]:
    """The array that `to_little` wrote."""
    column: array[int] = array(code)
    column.frombytes(data)
    if _SWAPPED:
        column.byteswap()
    return column
