"""`merq top`: the queues as a table that renews itself."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import click
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from merq.cli.connecting import Connection, connected, connection_options
from merq.cli.durations import duration, size
from merq.cli.failing import json_option
from merq.cli.keys import listening
from merq.cli.queue_names import display_name
from merq.cli.queue_tables import marks, oldest
from merq.cli.rendering import printable, table_of
from merq.cli.terminal import terminal
from merq.client.manager import Manager
from merq.protocol.application.reports import QueueReport, Status
from merq.protocol.application.requests import Family

INTERVAL_S_MIN: Final = 0.1
"""The service has other things to do than to answer this."""

HEADER_LINES: Final = 4
"""Lines of the screen that no queue has."""

_NUMBERS: Final = frozenset({"messages", "size", "in/s", "out/s", "oldest", "readers"})


@dataclass(frozen=True, slots=True)
class Line:
    """A queue, and how many messages a second came and went since the look before, if any."""

    report: QueueReport
    came: float | None = None
    went: float | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """The queues at one moment.

    Attributes:
        moment: In seconds, of a clock that only goes forward.
    """

    moment: float
    status: Status
    lines: tuple[Line, ...]


def look_at(manager: Manager, family: Family, before: Look | None, moment: float) -> Look:
    """The queues as they are, with rates since the look before."""
    earlier = {} if before is None else {_number(each): each.report for each in before.lines}
    passed_s = 0.0 if before is None else moment - before.moment
    lines = tuple(
        line_of(report, earlier.get(report.properties.number), passed_s)
        for report in manager.reports(family)
    )
    return Look(moment, manager.status(), lines)


def line_of(report: QueueReport, earlier: QueueReport | None, passed_s: float) -> Line:
    """Rates by what came and went; a service that was started anew counts from 0 again."""
    if earlier is None or passed_s <= 0 or report.arrived < earlier.arrived:
        return Line(report)
    came, went = report.arrived - earlier.arrived, report.left - earlier.left
    return Line(report, came / passed_s, went / passed_s)


def _number(line: Line) -> int:
    return line.report.properties.number


def ordered(lines: tuple[Line, ...], by: str) -> list[Line]:
    """By name, or the largest first."""
    named = sorted(lines, key=lambda each: each.report.properties.path_name.lower())
    match by:
        case "messages":
            return sorted(named, key=lambda each: -each.report.messages)
        case "size":
            return sorted(named, key=lambda each: -each.report.size)
        case "in":
            return sorted(named, key=lambda each: -(each.came or 0))
        case "out":
            return sorted(named, key=lambda each: -(each.went or 0))
        case _:
            return named


def table_of_lines(lines: list[Line], now: int) -> Table:
    """One line a queue."""
    columns = ("name", "", "messages", "size", "in/s", "out/s", "oldest", "readers")
    table = table_of(*columns, numbers=_NUMBERS)
    for each in lines:
        report = each.report
        table.add_row(
            printable(display_name(report), lines=False),
            marks(report),
            f"{report.messages:,}",
            size(report.size),
            _rate(each.came),
            _rate(each.went),
            oldest(report, now),
            str(report.readers or ""),
        )
    return table


def _rate(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.1f}"


@click.command(short_help="Shows what goes on, live.")
@click.option("--interval", "interval_s", type=duration, default=1.0, help="Looks this often.")
@click.option(
    "--sort",
    "by",
    default="messages",
    show_default=True,
    type=click.Choice(["name", "messages", "size", "in", "out"]),
)
@click.option(
    "--family",
    type=click.Choice(["private", "system", "outgoing", "all"]),
    default="private",
    show_default=True,
    help="Which queues.",
)
@click.option("--once", is_flag=True, help="One table, without rates.")
@click.option("--count", "looks", type=click.IntRange(1), metavar="N", help="Ends after N tables.")
@json_option("One JSON object a look, one a line.")
@connection_options
def top(
    connection: Connection,
    interval_s: float,
    by: str,
    family: str,
    looks: int | None,
    *,
    once: bool,
    as_json: bool,
) -> None:
    """Shows what goes on: messages, rates, readers. q or Ctrl-C ends it.

    Where there is no terminal it prints one table; with --count N, N of them.

    \b
    merq top
    merq top --sort in --interval 5s
    merq top --count 2 --json | jq '.queues[] | {name, in_per_s}'
    """
    is_live = sys.stdout.isatty() and not as_json
    most = 1 if once else looks if looks is not None or is_live else 1
    interval_s = min(max(interval_s, INTERVAL_S_MIN), 3600.0)
    with connected(connection) as manager:
        found = _looks(manager, Family(family), most, interval_s)
        if as_json:
            for each in found:
                click.echo(json.dumps(object_of(each, by)))
        elif is_live and not once:
            _show_live(found, by)
        else:
            console = terminal()
            for each in found:
                console.print(shown(each, by, None))


def _looks(manager: Manager, family: Family, most: int | None, interval_s: float) -> Iterator[Look]:
    """Look after look, until there were enough or q is pressed."""
    before: Look | None = None
    count = 0
    with listening() as pressed:
        while True:
            before = look_at(manager, family, before, time.monotonic())
            yield before
            count += 1
            if most is not None and count >= most:
                return
            if pressed(interval_s).lower() == "q":
                return


def _show_live(found: Iterator[Look], by: str) -> None:
    console = terminal()
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            for each in found:
                live.update(shown(each, by, console.height - HEADER_LINES), refresh=True)
    except KeyboardInterrupt:
        return  # that is how it ends


def shown(look: Look, by: str, lines_max: int | None) -> Group:
    """A headline and the table; what does not fit on the screen is counted."""
    status = look.status
    lines = ordered(look.lines, by)
    head = Text.assemble(
        (status.name, "bold cyan"),
        f"  {status.messages:,} messages, {size(status.message_bytes)}",
        f"  {status.connections:,} connections, {status.readers:,} readers",
        ("  THROTTLED" if status.throttled else "", "bold red"),
    )
    kept = lines if lines_max is None else lines[: max(1, lines_max)]
    rest = len(lines) - len(kept)
    more = Text(f"and {rest:,} more" if rest else "", "dim")
    return (
        Group(head, table_of_lines(kept, status.now), more)
        if rest
        else Group(head, table_of_lines(kept, status.now))
    )


def object_of(look: Look, by: str) -> dict[str, object]:
    """A look for programs; rates of the first one are null."""
    return {
        "now": look.status.now,
        "messages": look.status.messages,
        "queues": [
            {
                "name": display_name(each.report),
                "path_name": each.report.properties.path_name,
                "messages": each.report.messages,
                "size_bytes": each.report.size,
                "in_per_s": each.came,
                "out_per_s": each.went,
                "readers": each.report.readers,
                "oldest": each.report.oldest or None,
            }
            for each in ordered(look.lines, by)
        ],
    }
