"""Puts a run into words: for the terminal, and as docs/guide/exchange-figures.md."""

from __future__ import annotations

from pathlib import Path
from string import Template

from bench.brokers.yardsticks import ECHO_P50, FDATASYNC_P50
from bench.builds import ROOT
from bench.exchange import tables
from bench.exchange.results import Found

GUIDE = ROOT / "docs" / "guide"
NAME = "exchange-figures.md"
TEMPLATE = Path(__file__).with_name("page.md")
"""The page with gaps for what was measured."""


def printed(found: Found) -> str:
    """For a terminal."""
    return "\n" + "\n\n".join(_parts(found).values())


def write_page(found: Found, folder: Path = GUIDE) -> None:
    """The page."""
    text = Template(TEMPLATE.read_text(encoding="utf-8")).substitute(_parts(found))
    (folder / NAME).write_text(text, encoding="utf-8")


def _parts(found: Found) -> dict[str, str]:
    """What was measured, by the names of the gaps."""
    parts = {
        "facts": _facts(found),
        "goals": tables.goals(found),
        "rates": tables.rates(found),
        "compared": tables.compared(found),
        "windows": tables.windows(found),
        "latencies": tables.latencies(found),
        "wire": tables.wire(found),
    }
    return {name: "\n".join(lines) for name, lines in parts.items()}


def _facts(found: Found) -> list[str]:
    """Versions, machine, load, and who is missing."""
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    sync, echo = found.yardstick(FDATASYNC_P50), found.yardstick(ECHO_P50)
    rounds = f"Medians of {found.count} rounds" if found.count > 1 else "One round"
    facts = [
        f"{rounds} with {found.messages:,} messages for each rate; behind a ratio the least and",
        "the greatest in brackets.",
        f"Load before: {found.load:.1f}. {versions or 'No broker'}.",
        f"An append of 1 KiB with its `fdatasync` took {sync:.0f} µs, 1 KiB there and back on",
        f"loopback {echo:.0f} µs (p50, medians of the rounds).",
    ]
    for each in found.missing:
        facts += ["", f"Left out: {each}"]
    return facts
