"""What a run found, and the ratios that follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.brokers.yardsticks import MACHINE
from bench.exchange.figures import Kind, Measure, named

LOCAL_KIND = Kind.RECOVERABLE
"""All rates are compared with that of recoverable messages to a local queue."""

GOAL = 0.5
"""Transactional messages from one to the other: at least so many times the local rate."""


@dataclass(frozen=True, slots=True)
class Found:
    """A run.

    Attributes:
        rounds: By contender, the figures of each round by their names.
        ours: The names among them that are ours.
        versions: The version of each broker's package.
        missing: What was left out, with the reason.
        load: How busy the machine was beforehand.
        messages: How many were sent for a rate.
    """

    rounds: Mapping[str, Sequence[Mapping[str, float]]]
    ours: Sequence[str]
    versions: Mapping[str, str]
    missing: Sequence[str]
    load: float
    messages: int

    @property
    def peers(self) -> list[str]:
        """The others."""
        return [name for name in self.rounds if name not in {MACHINE, *self.ours}]

    @property
    def count(self) -> int:
        """How many rounds there were."""
        return len(next(iter(self.rounds.values())))

    def series(self, name: str, kind: Kind, measure: Measure) -> list[float] | None:
        """Round by round; None if it was not measured."""
        rounds = self.rounds.get(name)
        figure = named(kind, measure)
        if not rounds or figure not in rounds[0]:
            return None
        return [each[figure] for each in rounds]

    def usual(self, name: str, kind: Kind, measure: Measure) -> float | None:
        """The median of the rounds."""
        series = self.series(name, kind, measure)
        return median(series) if series else None

    def yardstick(self, name: str) -> float:
        """The median of a yardstick."""
        return median(each[name] for each in self.rounds[MACHINE])


def ratios(one: Sequence[float] | None, other: Sequence[float] | None) -> list[float] | None:
    """How many times the other each round's figure is, the least first."""
    if one is None or other is None:
        return None
    return sorted(first / second for first, second in zip(one, other, strict=True))


def to_local(found: Found, name: str, kind: Kind) -> list[float] | None:
    """The rate from one to the other as a part of the rate to a local queue."""
    local = found.series(name, LOCAL_KIND, Measure.LOCAL)
    return ratios(found.series(name, kind, Measure.RATE), local)


def to_narrow(found: Found, name: str, kind: Kind) -> list[float] | None:
    """How many times faster it is than with the window that Windows has."""
    narrow = found.series(name, kind, Measure.NARROW)
    return ratios(found.series(name, kind, Measure.RATE), narrow)


def to_peer(found: Found, name: str, kind: Kind, measure: Measure, peer: str) -> list[float] | None:
    """Our rate to that of a peer, which has one kind of messages only."""
    theirs = found.series(peer, LOCAL_KIND, measure)
    return ratios(found.series(name, kind, measure), theirs)


def added(found: Found, name: str, kind: Kind, far: Measure, near: Measure) -> float | None:
    """The usual difference of two times in the same round."""
    long, short = found.series(name, kind, far), found.series(name, kind, near)
    if long is None or short is None:
        return None
    return median(one - two for one, two in zip(long, short, strict=True))
