"""Where a message is that goes to another computer, and why it is not there yet, in sentences."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from merq.cli.durations import age
from merq.cli.rendering import count, date_of
from merq.cli.transfers import OFFLINE, trouble_of
from merq.model.queue import OutgoingState
from merq.protocol.application.reports import Sighting, TransferReport, Whereabouts
from merq.protocol.application.requests import Family

if TYPE_CHECKING:
    from merq.client.manager import Manager

OUTSIDE: Final = frozenset(
    {
        Whereabouts.OUTGOING,
        Whereabouts.TRANSMITTED,
        Whereabouts.UNORDERED,
        Whereabouts.UNREAD,
    }
)
"""Where a message is that goes to another queue manager."""


@dataclass(frozen=True, slots=True)
class Ways:
    """The ways out of a queue manager.

    Attributes:
        transfers: How far outgoing queues are, by their destinations.
        is_online: Whether sessions with others are allowed.
    """

    transfers: Mapping[str, TransferReport] = field(default_factory=dict)
    is_online: bool = True


NO_WAYS: Final = Ways()


def ways_of(manager: Manager, sightings: list[Sighting]) -> Ways:
    """The ways out of the queues in which a message waits to be sent, or for acknowledgments."""
    wanted = {each.queue for each in sightings if each.whereabouts in OUTSIDE}
    if not wanted:
        return NO_WAYS
    names = {
        each.properties.number: each.properties.path_name
        for each in manager.reports(Family.OUTGOING)
        if each.properties.path_name in wanted
    }
    transfers = {
        names[each.number]: each.transfer()
        for each in manager.outgoing_queues()
        if each.number in names
    }
    return Ways(transfers, is_online=manager.status().online)


def told_of_way(seen: Sighting, now: int, ways: Ways) -> tuple[list[str], list[str]]:
    """What is to be said of a message in an outgoing queue, and what can be done."""
    way = ways.transfers.get(seen.queue)
    since = f"since {date_of(seen.arrived)} ({age(now - seen.arrived)})"
    quoted = shlex.quote(seen.queue)
    show = f"merq outgoing show {quoted}  shows how far the connection is"
    match seen.whereabouts:
        case Whereabouts.TRANSMITTED:
            there = "the other side has not acknowledged it yet"
            return [f"It was transmitted to {seen.queue}; it is here {since}, and {there}."], [show]
        case Whereabouts.UNORDERED:
            waits = f"It was transmitted to {seen.queue} and waits for its order acknowledgment"
            return [f"{waits}; it is here {since}.", *_resent(way)], [show]
        case Whereabouts.UNREAD:
            told = f"It has arrived at {seen.queue}; it is kept here {since}"
            return [f"{told}, until it is known whether it was received there."], [show]
        case _:
            sentences, advice = _held_up(way, ways, quoted)
            return [f"It waits to be sent to {seen.queue}, {since}.", *sentences], [*advice, show]


def _resent(way: TransferReport | None) -> list[str]:
    if way is None:
        return []
    trouble = trouble_of(way)
    if trouble:
        return [trouble]
    told = [f"It was sent again {count(way.resends, 'time')}."] if way.resends else []
    again = f"Without one it is sent again on {date_of(way.resend_at)}."
    return [*told, again] if way.resend_at else told


def _held_up(way: TransferReport | None, ways: Ways, quoted: str) -> tuple[list[str], list[str]]:
    """Why a message is not on its way."""
    if not ways.is_online:
        return [OFFLINE], ["merq online  lets it go"]
    if way is None:
        return [], []
    if way.state is OutgoingState.ON_HOLD:
        return ["Its queue is paused."], [f"merq outgoing resume {quoted}  lets it go"]
    if way.state is OutgoingState.LOCKED:
        return ["By the settings of this queue manager nothing goes there."], []
    trouble = trouble_of(way)
    if trouble:
        return [trouble], []
    if way.state is OutgoingState.CONNECTED:
        where = f" with {', '.join(way.next_hops)}" if way.next_hops else ""
        return [f"The session{where} is open: it goes when those before it have."], []
    return [], []
