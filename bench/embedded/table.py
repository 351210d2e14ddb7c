"""Prints what was measured: ratios first, the peer's own rate beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.embedded.contender import (
    EXPRESS_RECEIVE,
    EXPRESS_SEND,
    OPERATIONS,
    SAME_FOR_OTHERS,
)

Rounds = Mapping[str, Sequence[Mapping[str, float]]]
"""By contender, the rates of each round by operation."""

EXPRESS_OPERATIONS = {EXPRESS_SEND, EXPRESS_RECEIVE}
TITLE = 46
CELL = 16


@dataclass(frozen=True, slots=True)
class Named:
    """A peer with the settings by which it is measured, and those for express."""

    durable: str
    express: str


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """How many times theirs ours is, round by round, the least first."""
    return sorted(mine / other for mine, other in zip(ours, theirs, strict=True))


def series(rounds: Sequence[Mapping[str, float]], operation: str) -> list[float] | None:
    """An operation's rates, round by round; None if the contender has no such operation."""
    name = operation if operation in rounds[0] else SAME_FOR_OTHERS.get(operation, operation)
    return [each[name] for each in rounds] if name in rounds[0] else None


def print_table(rounds: Rounds, ours: Sequence[str], named: Mapping[str, Named]) -> None:
    """One block an operation: our rates, then each peer with our ratio to it.

    Args:
        rounds: What was measured.
        ours: Our builds among them.
        named: What each peer is called in the table.
    """
    count = len(next(iter(rounds.values())))
    print(f"\n1 KiB messages, medians of {count} rounds (least and greatest in brackets).")
    print("2.00 x: ours does twice as many a second as the peer.")
    for operation in OPERATIONS:
        if operation not in rounds[ours[0]][0]:
            print(f"\n{operation}: not in this version of ours")
            continue
        print(f"\n{operation:{TITLE}}" + "".join(f"{name:>24}" for name in ours))
        for peer in (each for each in rounds if each not in ours):
            theirs = series(rounds[peer], operation)
            if theirs is None:
                continue
            cells = ""
            for name in ours:
                mine = series(rounds[name], operation)
                assert mine is not None, f"{name} has no {operation}"
                cells += f"{_ratio(ratios(mine, theirs)):>24}"
            title = named[peer].express if operation in EXPRESS_OPERATIONS else named[peer].durable
            print(f"{'  to ' + title:{TITLE}}{cells}{median(theirs):>{CELL},.0f}/s")
        own = "".join(f"{_rate(series(rounds[name], operation)):>24}" for name in ours)
        print(f"{'  ours':{TITLE}}{own}")


def _ratio(found: Sequence[float]) -> str:
    return f"{median(found):.2f} x ({found[0]:.2f}-{found[-1]:.2f})"


def _rate(found: Sequence[float] | None) -> str:
    return f"{median(found):,.0f}/s" if found else "none"
