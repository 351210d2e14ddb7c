"""The way of a traced message, put together from what queue managers report about it.

[MS-MQQB] 3.1.5.8.9, 3.1.7.1.7: every queue manager on the way sends reports to the queue that the
message names: when it has got it, and when it sends it on. A report's source is the queue manager
that tells; label and body say the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from merq.client.messages import ReceivedMessage
from merq.model.message_class import MessageClass

_HOPS: Final = re.compile(r"^[0-9A-F]{4}:[0-9A-F]{8}:([0-9A-F]{2}) ", re.IGNORECASE)
_NEXT_HOP: Final = re.compile(r"<NEXT HOP>(.*?)</NEXT HOP>", re.DOTALL)
_UNKNOWN_HOPS: Final = 0xFF


@dataclass(frozen=True, slots=True)
class Told:
    """One report.

    Attributes:
        queue_manager: Who tells.
        time: When it did, by its own clock, in seconds since 1970.
        hops: How many had passed the message on.
        next_hop: Where it sends the message; empty if it has just got it.
    """

    queue_manager: UUID
    time: int
    hops: int
    next_hop: str = ""

    @classmethod
    def of(cls, report: ReceivedMessage) -> Told:
        """What a report says."""
        body = report.body if isinstance(report.body, str) else ""
        hops, next_hop = _HOPS.match(report.label), _NEXT_HOP.search(body)
        return cls(
            queue_manager=report.source_machine,
            time=int(report.sent_at.timestamp()),
            hops=_UNKNOWN_HOPS if hops is None else int(hops[1], 16),
            next_hop="" if next_hop is None else next_hop[1].strip(),
        )


@dataclass(frozen=True, slots=True)
class Hop:
    """A queue manager on the way.

    Attributes:
        address: Where it is, as the one before it said; empty for the first.
        arrived: When it got the message, in seconds since 1970; 0 if it did not say.
        left: When it sent it on; 0 if it did not.
        next_hop: To which address.
    """

    queue_manager: UUID
    address: str
    arrived: int
    left: int
    next_hop: str


def is_report(message: ReceivedMessage) -> bool:
    """Whether it is a report, not an acknowledgment."""
    return message.message_class == MessageClass.MQMSG_CLASS_REPORT


def hops_of(reports: Iterable[Told], start: UUID, sent: int) -> list[Hop]:
    """The queue managers on the way, in order; the first has taken the message from its sender."""
    by_manager: dict[UUID, list[Told]] = {start: []}
    for each in reports:
        by_manager.setdefault(each.queue_manager, []).append(each)
    others = [guid for guid in by_manager if guid != start]
    # Who passes a message on and who gets it say the same count: the first is before the second.
    others.sort(key=lambda guid: _rank(by_manager[guid]))
    hops: list[Hop] = []
    address = ""
    for guid in (start, *others):
        told = by_manager[guid]
        leaving = [each for each in told if each.next_hop]
        coming = [each.time for each in told if not each.next_hop]
        last = max(leaving, key=lambda each: each.time, default=None)
        hop = Hop(
            queue_manager=guid,
            address=address,
            arrived=sent if guid == start else min(coming, default=0),
            left=0 if last is None else last.time,
            next_hop="" if last is None else last.next_hop,
        )
        hops.append(hop)
        address = hop.next_hop
    return hops


def _rank(told: list[Told]) -> tuple[int, bool, int]:
    is_last = not any(each.next_hop for each in told)
    return min(each.hops for each in told), is_last, min(each.time for each in told)
