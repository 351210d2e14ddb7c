"""The program: measures each flow at each size, prints tables and writes the page."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from bench.builds import print_load, working_folder
from bench.flows.measuring import Figures, archived, reconciled
from bench.flows.page import Found, printed, write_page

ARCHIVE, RECONCILE = "archive", "reconcile"
FLOWS: dict[str, Callable[[Path, int, Sequence[str]], Figures]] = {
    ARCHIVE: archived,
    RECONCILE: reconciled,
}
SIZES = {
    ARCHIVE: (100_000, 1_000_000, 3_000_000, 10_000_000),
    RECONCILE: (10_000, 100_000, 300_000, 1_000_000),
}
"""Messages; for `reconcile`, of each of the three queue managers."""

QUICK_SIZES = {ARCHIVE: (20_000,), RECONCILE: (5_000,)}


def main() -> int:
    """Measures, prints, and writes the page if it is to be written."""
    parser = argparse.ArgumentParser(description="Measures flows with many messages.")
    parser.add_argument("--quick", action="store_true", help="one small size of each flow")
    parser.add_argument("--flow", choices=list(FLOWS), help="only this flow")
    parser.add_argument("--sizes", help="messages, separated by commas; needs --flow")
    parser.add_argument("--folder", type=Path, help="where to work; .build/bench by default")
    parser.add_argument("--keep", type=Path, help="a file that figures are kept in between runs")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON instead")
    parser.add_argument("--write", action="store_true", help="write the page of the guide as well")
    options = parser.parse_args()
    if options.sizes and not options.flow:
        parser.error("--sizes is for one flow: name it by --flow")
    # Queue managers are ended by what ends this program, if it ends as by Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    found = _kept(options.keep)
    print_load()
    for flow in [options.flow] if options.flow else list(FLOWS):
        for size in _sizes(flow, options):
            more = ["--quick"] if options.quick else []
            _measure(flow, size, more, options.folder, found)
            if options.keep:
                _keep(found, options.keep)
    if options.json:
        print(json.dumps({name: [asdict(each) for each in some] for name, some in found.items()}))
    else:
        print(printed(found))
    if options.write:
        write_page(found)
    return 0


def _sizes(flow: str, options: argparse.Namespace) -> tuple[int, ...]:
    if options.sizes:
        return tuple(int(each) for each in options.sizes.split(","))
    return (QUICK_SIZES if options.quick else SIZES)[flow]


def _measure(flow: str, size: int, more: Sequence[str], chosen: Path | None, found: Found) -> None:
    with working_folder(chosen) as folder:
        figures = FLOWS[flow](folder / "run", size, more)
    print(
        f"{flow} of {figures.messages:,}: {figures.wall_s:.0f} s, {figures.rate:,.0f}/s "
        f"(load {figures.load:.1f} before, {os.getloadavg()[0]:.1f} after; "
        f"prepared in {figures.prepared_s:.0f} s)",
        file=sys.stderr,
        flush=True,
    )
    others = [each for each in found.get(flow, []) if each.messages != figures.messages]
    found[flow] = sorted([*others, figures], key=lambda each: each.messages)


def _kept(path: Path | None) -> Found:
    if path is None or not path.exists():
        return {}
    read = json.loads(path.read_text(encoding="utf-8"))
    return {name: [Figures(**each) for each in some] for name, some in read.items()}


def _keep(found: Found, path: Path) -> None:
    text = json.dumps({name: [asdict(each) for each in some] for name, some in found.items()})
    path.write_text(text, encoding="utf-8")
