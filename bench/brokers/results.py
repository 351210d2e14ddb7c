"""What a run found, and what it says about the goals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.brokers import catalogue
from bench.brokers.contender import LARGE, MEMORY, PIPELINED, RECEIVE, SEND, SEND_P50
from bench.brokers.yardsticks import ECHO_P50, FDATASYNC_P50, MACHINE

Rounds = Mapping[str, Sequence[Mapping[str, float]]]
"""By contender, the figures of each round by operation."""

P50_GOAL = 1.3
"""A durable send alone may take so many times one fdatasync and one loopback echo."""


@dataclass(frozen=True, slots=True)
class Goal:
    """We want to do at least so many times what a peer does."""

    operation: str
    peer: str
    least: float


GOALS = (
    Goal(PIPELINED, catalogue.REDIS_ALWAYS, 3),
    Goal(PIPELINED, catalogue.QUORUM, 8),
    Goal(PIPELINED, catalogue.NATS_ALWAYS, 20),
    Goal(PIPELINED, catalogue.NATS, 2),
    Goal(SEND, catalogue.REDIS_ALWAYS, 1.2),
    Goal(SEND, catalogue.QUORUM, 3),
    Goal(RECEIVE, catalogue.QUORUM, 5),
    Goal(MEMORY, catalogue.CLASSIC, 8),
    Goal(MEMORY, catalogue.CORE, 1),
    Goal(LARGE, catalogue.QUORUM, 1),
)


@dataclass(frozen=True, slots=True)
class Found:
    """A run.

    Attributes:
        rounds: Every figure.
        ours: The names among them that are ours.
        before: What each contender's broker does before it confirms.
        libraries: The contenders that are measured through a Python client.
        versions: The version of each broker's package.
        missing: What was left out, with the reason.
        load: How busy the machine was beforehand.
    """

    rounds: Rounds
    ours: Sequence[str]
    before: Mapping[str, str]
    libraries: Sequence[str]
    versions: Mapping[str, str]
    missing: Sequence[str]
    load: float

    @property
    def peers(self) -> list[str]:
        """The others by the bare socket."""
        out = {MACHINE, *self.ours, *self.libraries}
        return [name for name in self.rounds if name not in out]

    @property
    def count(self) -> int:
        """How many rounds there were."""
        return len(next(iter(self.rounds.values())))

    def series(self, name: str, operation: str) -> list[float] | None:
        """Round by round; None if the contender was not measured or has no such operation."""
        rounds = self.rounds.get(name)
        if not rounds or operation not in rounds[0]:
            return None
        return [each[operation] for each in rounds]

    def usual(self, name: str, operation: str) -> float | None:
        """The median of the rounds."""
        series = self.series(name, operation)
        return median(series) if series else None


def ratios(found: Found, mine: str, other: str, operation: str) -> list[float] | None:
    """How many times the other's rate ours is, round by round, the least first."""
    our, their = found.series(mine, operation), found.series(other, operation)
    if our is None or their is None:
        return None
    return sorted(one / two for one, two in zip(our, their, strict=True))


def p50_ratios(found: Found, name: str) -> list[float] | None:
    """How many times one fdatasync and one echo a durable send alone takes, the least first."""
    took = found.series(name, SEND_P50)
    sync, echo = found.series(MACHINE, FDATASYNC_P50), found.series(MACHINE, ECHO_P50)
    if took is None or sync is None or echo is None:
        return None
    return sorted(one / (two + three) for one, two, three in zip(took, sync, echo, strict=True))
