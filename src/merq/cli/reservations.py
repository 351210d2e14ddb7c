"""`merq reservations`: what groups of consumers have reserved of queues."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import click
from rich.table import Table

from merq.cli.completing import complete_queue
from merq.cli.confirming import YES, confirm
from merq.cli.connecting import Connection, connected, connection_options
from merq.cli.failing import json_option
from merq.cli.queue_names import find_queue, short_name
from merq.cli.rendering import count, printable, table_of
from merq.cli.terminal import terminal
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.reservations import ClaimReport

if TYPE_CHECKING:
    from merq.client.bulk import Bulk
    from merq.client.queues import Queue

ATTEMPTS: Final = 20
PAUSE_S: Final = 0.1
"""A group whose reader is at work is busy for moments: how often it is tried, and in what time."""

_NUMBERS: Final = frozenset({"acknowledged", "reserved", "ranges"})


@click.group(short_help="What data pipelines have reserved of queues.")
def reservations() -> None:
    """Reservations: what groups of consumers, such as queries of Spark, have reserved of queues.

    A group reads a queue in ranges. The messages of a range are nobody else's until the group
    acknowledges them; then they are gone, as if they were received. A range survives crashes of
    its reader and of the queue manager: whoever reads for the group next gets the same messages.

    So what a group has reserved waits for it, even if nobody will ever read for it again. Then
    release it.

    \b
    merq reservations list
    merq reservations release orders nightly-archive
    merq reservations release orders nightly-archive --forget --yes
    """


def object_of(report: ClaimReport) -> dict[str, object]:
    """A group for programs."""
    return asdict(report) | {"name": short_name(report.queue)}


def table_of_groups(reports: list[ClaimReport], *, with_queue: bool = True) -> Table:
    """One line a group of a queue."""
    columns = ["queue"] if with_queue else []
    columns += ["group", "acknowledged", "reserved", "ranges", "reader"]
    table = table_of(*columns, numbers=_NUMBERS, name="group")
    for each in reports:
        cells = [printable(short_name(each.queue), lines=False)] if with_queue else []
        table.add_row(
            *cells,
            printable(each.group, lines=False),
            str(each.acknowledged),
            f"{each.messages:,}",
            f"{each.ranges:,}",
            reader_of(each),
        )
    return table


def reader_of(report: ClaimReport) -> str:
    """Who reads for a group, as far as that is known."""
    if not report.owner:
        return "none since the start"
    return "at work" if report.lease_s else "silent"


@reservations.command(name="list")
@json_option("One JSON object a group, one a line.")
@connection_options
def list_reservations(connection: Connection, *, as_json: bool) -> None:
    """Lists groups: how far each is, how many messages it has reserved, and who reads.

    Numbers are those of messages in the order of arrival: everything up to `acknowledged` is done.
    A reader is at work, or silent: then another one may take over.

    \b
    merq reservations list
    merq reservations list --json | jq -r 'select(.owner == "") | .group'
    """
    with connected(connection) as manager:
        reports = manager.bulk.claims()
    reports.sort(key=lambda each: (each.queue.lower(), each.group))
    if as_json:
        for each in reports:
            click.echo(json.dumps(object_of(each)))
    elif reports:
        terminal().print(table_of_groups(reports))
    else:
        click.echo("no group of consumers reads here", err=True)


@reservations.command()
@click.argument("name", metavar="QUEUE", shell_complete=complete_queue)
@click.argument("group")
@click.option("--forget", is_flag=True, help="Forget also how far the group is.")
@YES
@json_option("One JSON object.")
@connection_options
def release(
    name: str, group: str, connection: Connection, *, forget: bool, yes: bool, as_json: bool
) -> None:
    """Gives back what GROUP has reserved of QUEUE: anybody may receive it again.

    The group itself goes on behind it. A query that was about to read that range, or is reading
    it, may have written some of its messages already: they may come a second time to whoever
    receives them next. So end the query first. With --forget nothing is left of the group: it
    begins like a new one.

    On a terminal it asks first. In a script it refuses if messages are reserved, unless --yes is
    given.

    \b
    merq reservations release orders nightly-archive
    merq reservations release orders nightly-archive --forget --yes
    """
    with connected(connection) as manager:
        queue, bulk = find_queue(manager, name), manager.bulk
        path = queue.report.properties.path_name
        known = [each for each in bulk.claims() if each.queue == path]
        found = next((each for each in known if each.group == group), None)
        if found is None:
            raise _unknown(path, group, known)
        question = f"Give back {count(found.messages, 'message')} of {path} that {group} reserved"
        question += ", though a reader is at work?" if found.lease_s else "?"
        confirm(question, found.messages, yes=yes, otherwise="nothing was released")
        given_back = _released(bulk, queue, group, forget=forget)
    if as_json:
        told = {"queue": path, "group": group, "messages": given_back, "forgotten": forget}
        click.echo(json.dumps(told))
    else:
        words = f"released {count(given_back, 'message')} of {path}"
        click.echo(words + (f" and forgot {group}" if forget else ""))


def _released(bulk: Bulk, queue: Queue, group: str, *, forget: bool) -> int:
    for _ in range(ATTEMPTS - 1):
        try:
            return bulk.release(queue, group, forget=forget)
        except MessageQueueError as wrong:
            if wrong.code != HResult.MQ_ERROR_SHARING_VIOLATION:
                raise
        time.sleep(PAUSE_S)
    return bulk.release(queue, group, forget=forget)


def _unknown(path: str, group: str, known: list[ClaimReport]) -> MessageQueueError:
    names = ", ".join(sorted(each.group for each in known))
    hint = f"these do: {names}" if names else "no group does"
    return MessageQueueError(
        HResult.MQ_ERROR_INVALID_PARAMETER, f"no group {group} reads {path}; {hint}"
    )
