"""The tables, and the page of the guide that has them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

from bench.brokers.tables import table
from bench.builds import ROOT
from bench.flows import fleet
from bench.flows.filling import BODY_BYTES
from bench.flows.measuring import Figures
from bench.flows.watching import JAVA, KINDS, PROGRAM, SERVICE, STAGES, WORKERS

PAGE = ROOT / "docs" / "guide" / "pipelines-figures.md"
TEMPLATE = Path(__file__).with_name("page.md")
MEBIBYTE = 1 << 20
MICROSECOND = 1e-6
TITLES = {
    PROGRAM: "the flow's program",
    JAVA: "Spark (Java)",
    WORKERS: "Spark's Python workers",
    SERVICE: "queue managers",
}

Found = dict[str, list[Figures]]
"""By flow, the figures of each size, the smallest first."""


def printed(found: Mapping[str, Sequence[Figures]]) -> str:
    """All tables, for a terminal."""
    lines = []
    for flow, sizes in found.items():
        lines += [f"## {flow}", "", *_parts(sizes)["speed"], ""]
        lines += [*_parts(sizes)["memory"], "", *_parts(sizes)["while"], ""]
    return "\n".join(lines)


def write_page(found: Mapping[str, Sequence[Figures]]) -> None:
    """The page of the guide."""
    values = {"body": str(BODY_BYTES), "machine": _machine(found), "kinds": _kinds()}
    for flow in ("archive", "reconcile"):
        for name, lines in _parts(found.get(flow, [])).items():
            values[f"{flow}_{name}"] = "\n".join(lines)
    text = Template(TEMPLATE.read_text(encoding="utf-8")).substitute(values)
    PAGE.write_text(text, encoding="utf-8")


def _machine(found: Mapping[str, Sequence[Figures]]) -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    loads = [each.load for sizes in found.values() for each in sizes]
    return (
        f"Each size was run once, on {os.cpu_count()} processors with {memory:.0f} GiB of memory. "
        f"Others worked there too: the load was {min(loads):.1f} to {max(loads):.1f} before a flow "
        "began, so that seconds say less than processor time does."
    )


def _parts(sizes: Sequence[Figures]) -> dict[str, list[str]]:
    if not sizes:
        nothing = ["Not measured."]
        return {"speed": nothing, "memory": nothing, "while": nothing}
    return {"speed": _speed(sizes), "memory": _memory(sizes), "while": _while(sizes)}


def _speed(sizes: Sequence[Figures]) -> list[str]:
    rows = [
        [
            f"{each.messages:,}",
            f"{each.wall_s:,.0f} s",
            f"{each.rate:,.0f}",
            f"{sum(each.cpu_s.values()):,.0f} s",
            f"{_more_cpu(sizes, number)}",
            f"{each.load:.1f}",
            f"{each.read_bytes / MEBIBYTE:,.0f} MiB",
            f"{each.written_bytes / MEBIBYTE:,.1f} MiB in {each.files:,} files",
        ]
        for number, each in enumerate(sizes)
    ]
    heads = ["messages", "took", "messages/s", "processor time", "for one more", "load before"]
    return table([*heads, "in the queues", "written"], rows)


def _more_cpu(sizes: Sequence[Figures], number: int) -> str:
    """What a message more costs, beyond the start: the difference to the size before."""
    if not number:
        return "-"
    here, before = sizes[number], sizes[number - 1]
    more = sum(here.cpu_s.values()) - sum(before.cpu_s.values())
    return f"{more / (here.messages - before.messages) / MICROSECOND:,.0f} µs"


def _memory(sizes: Sequence[Figures]) -> list[str]:
    heads = ["messages", *(TITLES[kind] for kind in KINDS)]
    return table(
        heads,
        [
            [f"{each.messages:,}", *(_mebibytes(each.peak[kind]) for kind in KINDS)]
            for each in sizes
        ],
    )


def _while(sizes: Sequence[Figures]) -> list[str]:
    largest = sizes[-1]
    heads = [
        f"{largest.messages:,} messages",
        *(f"quarter {number + 1}" for number in range(STAGES)),
    ]
    return table(
        heads,
        [[TITLES[kind], *(_mebibytes(each) for each in largest.over_time[kind])] for kind in KINDS],
    )


def _mebibytes(size: int) -> str:
    return f"{size / MEBIBYTE:,.0f} MiB"


def _kinds() -> str:
    heads = ["of a thousand", "what happens", "verdict"]
    rows = [[str(kind.share), kind.words, kind.verdict] for kind in fleet.KINDS]
    return "\n".join(table(heads, rows))
