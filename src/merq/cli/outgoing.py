"""`merq outgoing`: where messages to other computers wait."""

from __future__ import annotations

import json
from typing import Final

import click
from rich.text import Text

from merq.cli.completing import complete_outgoing
from merq.cli.connecting import Connection, connected, connection_options
from merq.cli.durations import size
from merq.cli.failing import json_option
from merq.cli.queue_names import find_outgoing
from merq.cli.queue_tables import facts_of, object_of, oldest
from merq.cli.rendering import printable, table_of, table_of_facts
from merq.cli.terminal import terminal
from merq.cli.transfers import (
    OFFLINE,
    facts_of_transfer,
    object_of_transfer,
    table_of_history,
    trouble_of,
)
from merq.protocol.application.requests import Family

_DESTINATION: Final = click.argument("destination", shell_complete=complete_outgoing)
_NUMBERS: Final = frozenset({"messages", "size", "oldest"})
_HIDDEN: Final = frozenset(
    {
        *("path name", "label", "kind", "transactional", "quota", "journal", "readers"),
        *("privacy", "authenticate", "base priority", "identifier"),
    }
)
"""What has no meaning for an outgoing queue, or is said above."""


@click.group(short_help="Outgoing queues, to other computers.")
def outgoing() -> None:
    """Outgoing queues: each destination on another computer has its own.

    DESTINATION is the format name that the list shows, or a part of it that no other has.

    \b
    merq outgoing list
    merq outgoing show server2
    merq outgoing pause server2
    """


@outgoing.command(name="list")
@json_option("One JSON object a queue, one a line.")
@connection_options
def list_outgoing(connection: Connection, *, as_json: bool) -> None:
    """Lists destinations, what waits for each, and how far the connection is.

    \b
    merq outgoing list
    merq outgoing list --json | jq -r 'select(.state == "waiting") | .path_name'
    """
    with connected(connection) as manager:
        reports = manager.reports(Family.OUTGOING)
        now = manager.status().now
    reports.sort(key=lambda each: each.properties.path_name.lower())
    if as_json:
        for each in reports:
            click.echo(json.dumps(object_of(each)))
        return
    if not reports:
        click.echo("nothing is on its way to another computer", err=True)
        return
    columns = ("destination", "state", "messages", "size", "oldest")
    table = table_of(*columns, numbers=_NUMBERS, name="destination")
    for each in reports:
        table.add_row(
            printable(each.properties.path_name, lines=False),
            each.state.value,
            f"{each.messages:,}",
            size(each.size),
            oldest(each, now),
        )
    terminal().print(table)


@outgoing.command()
@_DESTINATION
@json_option("One JSON object.")
@connection_options
def show(destination: str, connection: Connection, *, as_json: bool) -> None:
    """Shows the way to a destination: its state, what waits, since when, and why.

    Also the addresses by which it is reached, what came of connecting, and how far it has
    acknowledged transactional messages.

    \b
    merq outgoing show 'DIRECT=OS:server2\\private$\\orders'
    merq outgoing show server2 --json | jq .transfer.history[-1]
    """
    with connected(connection) as manager:
        found = find_outgoing(manager, destination)
        report, transfer, status = found.report, found.transfer(), manager.status()
    if as_json:
        told = object_of(report) | {"transfer": object_of_transfer(transfer)}
        click.echo(json.dumps(told))
        return
    now = status.now
    console = terminal()
    console.print(report.properties.path_name, style="bold cyan", markup=False)
    facts = [each for each in facts_of(report, [], now) if each[0] not in _HIDDEN]
    console.print(table_of_facts(facts + facts_of_transfer(transfer, now)))
    if transfer.history:
        console.print(table_of_history(transfer))
    for sentence in (trouble_of(transfer), "" if status.online else OFFLINE):
        if sentence:
            console.print(Text(printable(sentence, lines=False), "yellow"))


@outgoing.command()
@_DESTINATION
@json_option("One JSON object.")
@connection_options
def pause(destination: str, connection: Connection, *, as_json: bool) -> None:
    """Holds messages to a destination back until it is resumed.

    \b
    merq outgoing pause server2
    merq outgoing pause 'DIRECT=OS:server2\\private$\\orders'
    """
    with connected(connection) as manager:
        found = find_outgoing(manager, destination)
        found.pause()
        report = found.report
    words = f"paused {report.properties.path_name}, {report.messages:,} messages wait"
    click.echo(json.dumps(object_of(report)) if as_json else words)


@outgoing.command()
@_DESTINATION
@json_option("One JSON object.")
@connection_options
def resume(destination: str, connection: Connection, *, as_json: bool) -> None:
    """Lets messages go to a destination again.

    \b
    merq outgoing resume server2
    merq outgoing resume server2 --json
    """
    with connected(connection) as manager:
        found = find_outgoing(manager, destination)
        found.resume()
        report = found.report
    words = f"resumed {report.properties.path_name}, {report.messages:,} messages wait"
    click.echo(json.dumps(object_of(report)) if as_json else words)
