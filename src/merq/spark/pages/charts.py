"""Charts as SVG that stands in a page: no scripts, colours of the page, readable on a phone.

Everything is drawn 360 units wide, which is the width of a phone, so that letters keep their size
there. Whatever comes from messages is escaped here.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final, NamedTuple

WIDTH: Final = 360
"""Units that a chart is wide."""

BARS_MAX: Final = 20
"""Bars of a chart; what else there is becomes one more."""

COLUMNS_MAX: Final = 168
"""Columns of a chart: the hours of a week."""

LABEL_CHARACTERS: Final = 52
"""Characters of a label that fit above its bar; a pointer shows all of it."""

_ROW: Final = 34
_BAR: Final = 12
_FIGURE: Final = 64
_COLUMNS_HEIGHT: Final = 120


class Spread(NamedTuple):
    """A label and how its values are spread."""

    label: str
    low: float
    middle: float
    high: float


def bars(title: str, rows: Sequence[tuple[str, float]], unit: str = "") -> str:
    """A bar for each, from zero, all of one scale."""
    shown = list(rows[:BARS_MAX])
    if len(rows) > BARS_MAX:
        rest = rows[BARS_MAX:]
        shown.append((f"{len(rest):,} others", sum(value for _, value in rest)))
    most = max((value for _, value in shown), default=0) or 1
    parts = []
    for number, (label, value) in enumerate(shown):
        top = number * _ROW
        length = max(1.0, (WIDTH - _FIGURE) * value / most)
        parts += [
            _label(top + 12, label),
            f'<rect class="bar" x="0" y="{top + 17}" width="{length:.1f}" height="{_BAR}"/>',
            _value(length + 5, top + 27, value, unit),
        ]
    return _chart(title, len(shown) * _ROW, parts)


def columns(title: str, rows: Sequence[tuple[str, float]]) -> str:
    """A column for each, side by side, as for hours; the first and the last are labelled."""
    shown = rows[-COLUMNS_MAX:]
    most = max((value for _, value in shown), default=0) or 1
    step = WIDTH / max(len(shown), 1)
    parts = [f'<text class="figure" x="0" y="10">{_figure(most)}</text>']
    for number, (label, value) in enumerate(shown):
        height = _COLUMNS_HEIGHT * value / most
        parts.append(
            f'<rect class="bar" x="{number * step:.1f}" y="{14 + _COLUMNS_HEIGHT - height:.1f}" '
            f'width="{max(step - 1, 0.5):.1f}" height="{height:.1f}">'
            f"<title>{escape(label)}: {_figure(value)}</title></rect>"
        )
    bottom = 14 + _COLUMNS_HEIGHT
    parts.append(f'<line class="axis" x1="0" y1="{bottom}" x2="{WIDTH}" y2="{bottom}"/>')
    if shown:
        parts.append(f'<text class="label" x="0" y="{bottom + 14}">{escape(shown[0][0])}</text>')
    if len(shown) > 1:
        parts.append(
            f'<text class="label" x="{WIDTH}" y="{bottom + 14}" text-anchor="end">'
            f"{escape(shown[-1][0])}</text>"
        )
    return _chart(title, bottom + 18, parts)


def spreads(title: str, rows: Sequence[Spread], unit: str = "") -> str:
    """For each a line from its low to its high value, with a mark at its middle one."""
    shown = rows[:BARS_MAX]
    least = min((min(each.low, 0) for each in shown), default=0)
    most = max((each.high for each in shown), default=0)
    scale = (WIDTH - _FIGURE) / ((most - least) or 1)
    parts = []
    for number, each in enumerate(shown):
        top = number * _ROW
        low, middle, high = ((value - least) * scale for value in each[1:])
        parts += [
            _label(top + 12, each.label),
            (
                f'<rect class="range" x="{low:.1f}" y="{top + 19}" height="{_BAR - 4}" '
                f'width="{max(high - low, 1):.1f}">'
                f"<title>{_figure(each.low)} to {_figure(each.high)}{escape(unit)}</title></rect>"
            ),
            (
                f'<rect class="bar" x="{max(middle - 2, 0):.1f}" y="{top + 17}" width="4" '
                f'height="{_BAR}"/>'
            ),
            _value(high + 7, top + 27, each.middle, unit),
        ]
    return _chart(title, len(shown) * _ROW, parts)


def _chart(title: str, height: int, parts: Sequence[str]) -> str:
    inside = "".join(parts) if parts else '<text class="label" x="0" y="14">nothing</text>'
    size = max(height, 20)
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {size}" role="img" '
        f'aria-label="{escape(title)}">{inside}</svg></figure>'
    )


def _label(y: int, label: str) -> str:
    shown = label if len(label) <= LABEL_CHARACTERS else f"{label[: LABEL_CHARACTERS - 1]}…"
    return f'<text class="label" x="0" y="{y}">{escape(shown)}<title>{escape(label)}</title></text>'


def _value(x: float, y: int, value: float, unit: str) -> str:
    return f'<text class="figure" x="{x:.1f}" y="{y}">{_figure(value)}{escape(unit)}</text>'


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
