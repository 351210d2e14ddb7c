"""Puts a run into words: for the terminal, and as docs/guide/brokers.md with its chart."""

from __future__ import annotations

from pathlib import Path
from string import Template

from bench.brokers import tables
from bench.brokers.chart import drawn
from bench.brokers.results import Found
from bench.builds import ROOT

GUIDE = ROOT / "docs" / "guide"
TEMPLATE = Path(__file__).with_name("page.md")
"""The page with gaps for what was measured."""


def printed(found: Found) -> str:
    """For a terminal."""
    parts = _parts(found)
    order = ("facts", "rates", "libraries", "goals", "compared")
    return "\n" + "\n\n".join(parts[name] for name in order)


def write_page(found: Found, folder: Path = GUIDE) -> None:
    """The page and its chart."""
    template = Template(TEMPLATE.read_text(encoding="utf-8"))
    text = template.substitute(_parts(found))
    (folder / "brokers.md").write_text(text, encoding="utf-8")
    (folder / "brokers.svg").write_text(drawn(found), encoding="utf-8")


def _parts(found: Found) -> dict[str, str]:
    """What was measured, by the names of the gaps."""
    parts = {
        "facts": _facts(found),
        "goals": tables.goals(found),
        "rates": tables.rates(found, [*found.ours, *found.peers]),
        "libraries": tables.rates(found, found.libraries),
        "compared": tables.compared(found),
    }
    return {name: "\n".join(lines) for name, lines in parts.items()}


def _facts(found: Found) -> list[str]:
    """Versions, machine, load, and who is missing."""
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    facts = [
        f"Medians of {found.count} rounds; behind a ratio the least and the greatest in brackets.",
        f"Load before: {found.load:.1f}. {versions}.",
        tables.machine(found),
    ]
    for each in found.missing:
        facts += ["", f"Left out: {each}"]
    return facts
