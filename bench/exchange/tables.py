"""The tables of a run, in Markdown, which a terminal shows well enough too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from bench.brokers.tables import table
from bench.exchange.figures import BODY, WINDOWS_WINDOW, Kind, Measure
from bench.exchange.results import GOAL, LOCAL_KIND, Found, added, to_local, to_narrow, to_peer

ABSENT = "-"


def goals(found: Found) -> list[str]:
    """The one goal there is."""
    goal = f"≥ {GOAL:g} x"
    cells = ["transactional, end to end", "recoverable, to a local queue", goal]
    for name in found.ours:
        series = to_local(found, name, Kind.TRANSACTIONAL)
        said = _ratio(series)
        is_missed = series is not None and median(series) < GOAL
        cells.append(f"**{said}, missed**" if is_missed else said)
    return table(["", "to", "goal", *found.ours], [cells])


def rates(found: Found) -> list[str]:
    """Messages a second, and what they cost."""
    heads = ["", "messages", "end to end, /s", "to the local rate", "transfer alone, /s"]
    heads += ["CPU of the sender, µs", "CPU of the receiver, µs"]
    rows = []
    for name in (*found.ours, *found.peers):
        local = found.usual(name, LOCAL_KIND, Measure.LOCAL)
        rows.append([name, "to a local queue", _whole(local), "1", *[ABSENT] * 3])
        for kind in _kinds(found, name):
            cells = [name, _called(found, name, kind)]
            cells.append(_whole(found.usual(name, kind, Measure.RATE)))
            cells.append(_ratio(to_local(found, name, kind)))
            cells += [
                _whole(found.usual(name, kind, measure))
                for measure in (Measure.TRANSFER, Measure.SENDER_CPU, Measure.RECEIVER_CPU)
            ]
            rows.append(cells)
    return table(heads, rows)


def windows(found: Found) -> list[str]:
    """Our window to that of Windows."""
    heads = ["", *(f"{kind}, to window {WINDOWS_WINDOW}" for kind in Kind)]
    rows = [[name, *(_ratio(to_narrow(found, name, kind)) for kind in Kind)] for name in found.ours]
    return table(heads, rows)


def compared(found: Found) -> list[str]:
    """Ours to each peer."""
    measures = (Measure.RATE, Measure.TRANSFER)
    kinds = (Kind.RECOVERABLE, Kind.TRANSACTIONAL)
    heads = ["", "to", *(f"{kind}, {measure}" for kind in kinds for measure in measures)]
    rows = [
        [
            name,
            peer,
            *(
                _ratio(to_peer(found, name, kind, measure, peer))
                for kind in kinds
                for measure in measures
            ),
        ]
        for name in found.ours
        for peer in found.peers
    ]
    return table(heads, rows) if rows else ["There is nobody to compare with in this run."]


def wire(found: Found) -> list[str]:
    """Bytes between two queue managers; both builds send the same."""
    heads = ["messages", "bytes there", "of them not body", "bytes back"]
    rows = []
    for name in found.ours[:1]:
        for kind in Kind:
            there = found.usual(name, kind, Measure.THERE)
            back = found.usual(name, kind, Measure.BACK)
            if there is not None and back is not None:
                cells = [str(kind), f"{there:,.1f}", f"{there - len(BODY):,.1f}", f"{back:,.1f}"]
                rows.append(cells)
    return table(heads, rows)


def latencies(found: Found) -> list[str]:
    """How long one message takes, and what each hop adds."""
    heads = ["", "messages", "local p50 / p99, µs"]
    heads += ["one hop adds p50 / p99, µs", "two hops add p50 / p99, µs"]
    pairs = ((Measure.HOP_P50, Measure.HOP_P99), (Measure.CHAIN_P50, Measure.CHAIN_P99))
    rows = []
    for name in (*found.ours, *found.peers):
        for kind in _kinds(found, name):
            near = [
                found.usual(name, kind, each) for each in (Measure.LOCAL_P50, Measure.LOCAL_P99)
            ]
            if near[0] is None:
                continue
            cells = [name, _called(found, name, kind), _pair(near)]
            for p50, p99 in pairs:
                far = [
                    added(found, name, kind, p50, Measure.LOCAL_P50),
                    added(found, name, kind, p99, Measure.LOCAL_P99),
                ]
                cells.append(_pair(far))
            rows.append(cells)
    return table(heads, rows)


def _kinds(found: Found, name: str) -> Iterator[Kind]:
    """Those that a contender has."""
    yield from (kind for kind in Kind if found.series(name, kind, Measure.RATE) is not None)


def _called(found: Found, name: str, kind: Kind) -> str:
    return str(kind) if name in found.ours else "durable"


def _ratio(series: Sequence[float] | None) -> str:
    if not series:
        return ABSENT
    return f"{median(series):.2f} x ({series[0]:.2f}-{series[-1]:.2f})"


def _whole(figure: float | None) -> str:
    return f"{figure:,.0f}" if figure is not None else ABSENT


def _pair(figures: Sequence[float | None]) -> str:
    return ABSENT if None in figures else " / ".join(_whole(each) for each in figures)
