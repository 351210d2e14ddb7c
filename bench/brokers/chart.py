"""Draws the rates as an SVG: a block for each operation, a bar for each contender."""

from __future__ import annotations

from html import escape

from bench.brokers.catalogue import SYNCS
from bench.brokers.contender import RATES
from bench.brokers.results import Found

WIDTH = 860
NAME_WIDTH = 300
FIGURE_WIDTH = 90
BAR_WIDTH_MAX = WIDTH - NAME_WIDTH - FIGURE_WIDTH
BAR_HEIGHT = 14
STEP = 20
TITLE_HEIGHT = 34
LEGEND_HEIGHT = 40
OURS, SYNCED, UNSYNCED = "#1f6feb", "#57606a", "#c8ccd1"
LEGEND = (
    (OURS, "merq"),
    (SYNCED, "peer, syncs before it confirms"),
    (UNSYNCED, "peer, does not, or need not"),
)
MEMORY_ONLY = RATES[3]


def drawn(found: Found) -> str:
    """The picture; bars of one block have one scale, from zero."""
    parts: list[str] = []
    top = LEGEND_HEIGHT
    for operation in RATES:
        bars = _bars(found, operation)
        if not bars:
            continue
        parts.append(_text(10, top + 22, f"{operation}, messages a second", "bold"))
        top += TITLE_HEIGHT
        most = max(rate for _, rate, _ in bars)
        for name, rate, colour in bars:
            parts += _bar(top, name, rate, BAR_WIDTH_MAX * rate / most, colour)
            top += STEP
    height = top + 10
    return "\n".join(
        [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
                f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">'
            ),
            "<title>Rates of brokers, measured in one run</title>",
            f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
            *_legend(),
            *parts,
            "</svg>",
            "",
        ]
    )


def _bars(found: Found, operation: str) -> list[tuple[str, float, str]]:
    """Name, rate and colour, the fastest first."""
    bars = []
    for name in (*found.ours, *found.peers):
        rate = found.usual(name, operation)
        if rate is None:
            continue
        if name in found.ours:
            colour = OURS
        elif found.before[name] == SYNCS and operation != MEMORY_ONLY:
            colour = SYNCED
        else:
            colour = UNSYNCED
        bars.append((name, rate, colour))
    return sorted(bars, key=lambda bar: -bar[1])


def _bar(top: int, name: str, rate: float, width: float, colour: str) -> list[str]:
    middle = top + BAR_HEIGHT - 3
    return [
        _text(NAME_WIDTH - 8, middle, name, anchor="end"),
        (
            f'<rect x="{NAME_WIDTH}" y="{top}" width="{max(width, 1):.1f}" height="{BAR_HEIGHT}" '
            f'fill="{colour}"/>'
        ),
        _text(NAME_WIDTH + width + 6, middle, f"{rate:,.0f}"),
    ]


def _legend() -> list[str]:
    parts: list[str] = []
    left = 10
    for colour, meaning in LEGEND:
        parts.append(f'<rect x="{left}" y="12" width="14" height="14" fill="{colour}"/>')
        parts.append(_text(left + 20, 23, meaning))
        left += 240
    return parts


def _text(x: float, y: float, words: str, weight: str = "normal", anchor: str = "start") -> str:
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" font-weight="{weight}" text-anchor="{anchor}" '
        f'fill="#1f2328">{escape(words)}</text>'
    )
