"""What groups of consumers have reserved of a queue, and how far each is.

A group reads a queue in ranges. A range has a start and an end, numbers that only grow, and the
messages that are reserved with it. The next range begins where the one before it ends; what was
acknowledged is gone. So a range is the same, however often it is read, until it is acknowledged.
Messages of a range are nobody else's meanwhile.
"""

from __future__ import annotations

import struct
from array import array
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from merq.engine.byte_order import from_little, to_little

if TYPE_CHECKING:
    from merq.engine.changes import Change

FENCED_MAX: Final = 64
"""Former speakers of a group that are remembered."""

_RANGE: Final = struct.Struct("<IIQQH2xI")  # queue, 0, start, end, size of the group's name, count
_POINT: Final = struct.Struct("<IIQQH2x")  # queue, 0, acknowledged, floor, size of the group's name


class Range:
    """Messages that are reserved together, in the order in which they came."""

    __slots__ = ("end", "ids", "start")

    def __init__(self, start: int, end: int, ids: array[int]) -> None:
        self.start = start
        self.end = end
        self.ids = ids


class Claim:
    """What one group has to do with a queue.

    Attributes:
        group: Its name.
        floor: Messages that came up to this number are none of its business.
        acknowledged: Up to this number everything is done.
        ranges: What is reserved, in order.
        owner: Who speaks for the group now; empty if nobody has since the start.
        leased_until: So long nobody else may, in seconds since 1970.
        fenced: Who spoke for it before, and may not any more.
        ending: Ranges whose removal is under way.
        reserving: The change under way with which the last range is reserved.
        acknowledging: The change under way with which a range is removed.
        releasing: A change is under way with which what is reserved is anybody's again.
    """

    __slots__ = (
        "acknowledged",
        "acknowledging",
        "ending",
        "fenced",
        "floor",
        "group",
        "leased_until",
        "owner",
        "ranges",
        "releasing",
        "reserving",
    )

    def __init__(self, group: str, floor: int = 0) -> None:
        self.group = group
        self.floor = floor
        self.acknowledged = floor
        self.ranges: list[Range] = []
        self.owner = ""
        self.leased_until = 0
        self.fenced: deque[str] = deque(maxlen=FENCED_MAX)
        self.ending: list[Range] = []
        self.reserving: Change | None = None
        self.acknowledging: Change | None = None
        self.releasing = False

    @property
    def end(self) -> int:
        """Where the next range begins."""
        known = self.ranges or self.ending
        return known[-1].end if known else self.acknowledged

    @property
    def durable(self) -> list[Range]:
        """The ranges that would survive power loss: only these are handed out, and ended."""
        return self.ranges[:-1] if self.reserving is not None else self.ranges

    def take_back(self, found: Range) -> None:
        """A range that was to go stays, at its place among the others."""
        self.ending.remove(found)
        self.ranges.append(found)
        self.ranges.sort(key=lambda each: each.start)

    def begins(self, start: int) -> Range | None:
        """The range that begins here."""
        for each in self.ranges:
            if each.start == start:
                return each
        return None


def pack_range(queue: int, group: str, found: Range, ids: Sequence[int]) -> bytes:
    """A range as the log keeps it, with those of its messages that the log has."""
    name = group.encode("utf-8", "surrogatepass")
    head = _RANGE.pack(queue, 0, found.start, found.end, len(name), len(ids))
    return head + to_little(array("Q", ids)) + name


def unpack_range(data: bytes) -> tuple[int, str, Range]:
    """What `pack_range` wrote: the queue, the group, and the range."""
    queue, _, start, end, size, count = _RANGE.unpack_from(data)
    at = _RANGE.size + 8 * count
    ids = from_little("Q", data[_RANGE.size : at])
    return queue, data[at : at + size].decode("utf-8", "surrogatepass"), Range(start, end, ids)


def pack_point(queue: int, group: str, acknowledged: int, floor: int) -> bytes:
    """How far a group is, as the log keeps it."""
    name = group.encode("utf-8", "surrogatepass")
    return _POINT.pack(queue, 0, acknowledged, floor, len(name)) + name


def unpack_point(data: bytes) -> tuple[int, str, int, int]:
    """What `pack_point` wrote: the queue, the group, and how far it is."""
    queue, _, acknowledged, floor, size = _POINT.unpack_from(data)
    name = data[_POINT.size : _POINT.size + size].decode("utf-8", "surrogatepass")
    return queue, name, acknowledged, floor
