"""What is measured, by which names, and how much of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

BODY = b"x" * 1024
BATCH = 100
WINDOW = 2_000
"""Messages in one call, and in calls that are not answered yet."""

LOOKING_S = 0.005
"""Between two looks whether all messages are there; the receiver pays for each."""

SILENCE_S_MAX = 60.0
"""A measurement that takes longer has failed."""

WINDOWS_WINDOW = 64
"""[MS-MQQB] 3.1.3.2, note 50: what Windows leaves open in a session."""


class Kind(StrEnum):
    """How messages are sent."""

    EXPRESS = "express"
    RECOVERABLE = "recoverable"
    TRANSACTIONAL = "transactional"


class Measure(StrEnum):
    """What is found out for a kind of messages."""

    LOCAL = "to a local queue"
    RATE = "end to end"
    NARROW = f"end to end, window {WINDOWS_WINDOW}"
    TRANSFER = "transfer alone"
    SENDER_CPU = "CPU of the sender"
    RECEIVER_CPU = "CPU of the receiver"
    THERE = "bytes there"
    BACK = "bytes back"
    LOCAL_P50 = "local, p50"
    LOCAL_P99 = "local, p99"
    HOP_P50 = "one hop, p50"
    HOP_P99 = "one hop, p99"
    CHAIN_P50 = "two hops, p50"
    CHAIN_P99 = "two hops, p99"


@dataclass(frozen=True, slots=True)
class Amount:
    """How much is sent: messages for a rate, for the bytes of one, and one at a time."""

    messages: int
    relayed: int
    singles: int


AMOUNT = Amount(messages=10_000, relayed=3_000, singles=200)
QUICK = Amount(messages=2_000, relayed=1_000, singles=50)


class Figures(dict[str, float]):
    """The figures of one round, by kind and measure."""

    def put(self, kind: Kind, measure: Measure, figure: float) -> None:
        """Keeps a figure."""
        self[named(kind, measure)] = figure

    def put_latency(self, kind: Kind, p50: Measure, p99: Measure, took_s: Sequence[float]) -> None:
        """Keeps two percentiles, in microseconds."""
        self.put(kind, p50, 1e6 * percentile(took_s, 50))
        self.put(kind, p99, 1e6 * percentile(took_s, 99))


def named(kind: Kind, measure: Measure) -> str:
    """By what name a figure is kept."""
    return f"{kind}, {measure}"


def percentile(series: Sequence[float], percent: int) -> float:
    """The least value that so many in a hundred do not exceed."""
    ordered = sorted(series)
    return ordered[max(0, -(-percent * len(ordered) // 100) - 1)]


class Missing(Exception):
    """Messages did not arrive in time; says how many."""
