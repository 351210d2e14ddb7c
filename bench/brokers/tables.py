"""The tables of a run, in Markdown, which a terminal shows well enough too."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from bench.brokers.contender import LARGE, MEMORY, PIPELINED, RATES, RECEIVE, SEND, SEND_P50
from bench.brokers.results import GOALS, P50_GOAL, Found, p50_ratios, ratios
from bench.brokers.yardsticks import ECHO_P50, FDATASYNC_P50, MACHINE

ABSENT = "-"


def rates(found: Found, names: Sequence[str]) -> list[str]:
    """Messages a second of each contender."""
    heads = ["", "before it confirms", *(f"{name}, /s" for name in RATES)]
    rows = []
    for name in names:
        cells = [name, found.before[name]]
        for operation in RATES:
            cell = _rate(found.usual(name, operation))
            took = found.usual(name, SEND_P50)
            if operation == SEND and took is not None:
                cell += f" ({took:,.0f} µs)"
            cells.append(cell)
        rows.append(cells)
    return table(heads, rows)


def goals(found: Found) -> list[str]:
    """Our ratios beside the goals."""
    if not found.ours:
        return ["Ours was not measured in this run."]
    rows = []
    for goal in GOALS:
        cells = [goal.operation, goal.peer, f"≥ {goal.least:g} x"]
        for name in found.ours:
            series = ratios(found, name, goal.peer, goal.operation)
            cells.append(
                _verdict(series, reached=bool(series) and median(series or [0]) >= goal.least)
            )
        rows.append(cells)
    cells = [SEND_P50, "one fdatasync and one loopback echo", f"≤ {P50_GOAL:g} x"]
    for name in found.ours:
        series = p50_ratios(found, name)
        cells.append(_verdict(series, reached=bool(series) and median(series or [9]) <= P50_GOAL))
    rows.append(cells)
    return table(["", "to", "goal", *found.ours], rows)


def compared(found: Found) -> list[str]:
    """Our best of each operation to every contender that is not ours."""
    if not found.ours:
        return ["Ours was not measured in this run."]
    rows = []
    for name in (*found.peers, *found.libraries):
        cells = [name]
        for operation in (SEND, PIPELINED, RECEIVE, MEMORY, LARGE):
            series = [ratios(found, mine, name, operation) for mine in found.ours]
            known = [median(each) for each in series if each]
            cells.append(f"{max(known):.2f} x" if known else ABSENT)
        rows.append(cells)
    return table(["our best to", *RATES], rows)


def machine(found: Found) -> str:
    """The yardsticks in a sentence."""
    sync, echo = found.usual(MACHINE, FDATASYNC_P50), found.usual(MACHINE, ECHO_P50)
    assert sync is not None
    assert echo is not None
    return (
        f"An append of 1 KiB with its `fdatasync` took {sync:.0f} µs, 1 KiB there and back on "
        f"loopback {echo:.0f} µs (p50, medians of the rounds)."
    )


def _verdict(series: Sequence[float] | None, *, reached: bool) -> str:
    if not series:
        return ABSENT
    said = f"{median(series):.2f} x ({series[0]:.2f}-{series[-1]:.2f})"
    return said if reached else f"**{said}, missed**"


def _rate(rate: float | None) -> str:
    return f"{rate:,.0f}" if rate is not None else ABSENT


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table; columns as wide as their widest cell."""
    widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(heads))]
    lines = [_line([f"{head:<{width}}" for head, width in zip(heads, widths, strict=True)])]
    lines.append("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    lines += [
        _line([f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]) for row in rows
    ]
    return lines


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
