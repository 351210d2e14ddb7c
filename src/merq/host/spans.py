"""Records that lie near each other in the log, read in one piece."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from operator import le
from typing import Final, NamedTuple

from merq.store.records import RECORD_HEADER_SIZE

SPAN_BYTES_MAX: Final = 4 << 20
"""The most that is read in one piece, unless a single record has more."""

GAP_BYTES_MAX: Final = 4096
"""What lies between two records and is read without being wanted."""


class Span(NamedTuple):
    """Records from `first` up to `end` lie in this piece of the log."""

    first: int
    end: int
    position: int
    size: int


def spans(positions: array[int], sizes: array[int], header: int) -> Iterator[Span]:
    """The pieces of the log in which records lie, with their headers, in this order.

    Args:
        positions: Of the records' data.
        sizes: Of their data behind its first `header` bytes.
        header: What the data of each has before that.
    """
    count = len(positions)
    if not count:
        return
    start, last = positions[0] - RECORD_HEADER_SIZE, positions[-1]
    size = last + header + sizes[-1] - start
    wanted = sum(sizes) + count * (header + RECORD_HEADER_SIZE + GAP_BYTES_MAX // 16)
    if (
        start >> 32 == last >> 32
        and size <= min(wanted, SPAN_BYTES_MAX)
        and all(map(le, positions, positions[1:]))
    ):
        yield Span(0, count, start, size)
        return
    first = 0
    end = positions[0]
    for row in range(count):
        at = positions[row]
        after = at + header + sizes[row]
        near = at >= end and at - end <= GAP_BYTES_MAX + RECORD_HEADER_SIZE
        if row > first and not (
            near and at >> 32 == start >> 32 and after - start <= SPAN_BYTES_MAX
        ):
            yield Span(first, row, start, end - start)
            first, start = row, at - RECORD_HEADER_SIZE
        end = after
    yield Span(first, count, start, end - start)
