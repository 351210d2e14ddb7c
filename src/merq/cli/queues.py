"""`merq queue`: making, listing, changing, emptying and removing queues."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, TypeVar
from uuid import UUID

import click

from merq.cli.completing import complete_queue
from merq.cli.confirming import YES, confirm
from merq.cli.connecting import Connection, connected, connection_options
from merq.cli.durations import kilobytes
from merq.cli.failing import json_option
from merq.cli.queue_names import find_queue, path_name_of, short_name
from merq.cli.queue_properties import (
    object_of_properties,
    properties_of,
    table_of_properties,
)
from merq.cli.queue_tables import facts_of, object_of, table_of_queues
from merq.cli.rendering import count, table_of_facts
from merq.cli.reservations import object_of as object_of_group
from merq.cli.reservations import table_of_groups
from merq.cli.terminal import terminal
from merq.cli.transfers import object_of_sequence, table_of_sequences
from merq.client.queues import Queue
from merq.model.properties import Property
from merq.model.queue import NULL_GUID, PrivacyLevel
from merq.protocol.application.property_values import PropertyValue
from merq.protocol.application.reports import QueueReport
from merq.protocol.application.requests import Family

_F = TypeVar("_F", bound=Callable[..., Any])
_QUEUE: Final = click.argument("name", metavar="QUEUE", shell_complete=complete_queue)


@click.group()
def queue() -> None:
    """Queues: make, list, show, change, empty and remove them.

    A queue is named orders, short for .\\private$\\orders; where a name has backslashes, quote it,
    or write slashes: ./private$/orders. Others are deadletter, deadxact and journal, which every
    queue manager has, orders;journal and subqueues such as orders;poison.

    \b
    merq queue new orders --transactional --label "Orders of the shop"
    merq queue list
    merq queue show orders
    """


def _setting_options(function: _F) -> _F:
    """The properties of a queue that can be chosen at any time."""
    options = (
        click.option("--label", help="A description for people."),
        click.option("--journal/--no-journal", default=None, help="Keep what is received."),
        click.option("--quota", "quota_kb", type=kilobytes, help="The most its messages may take."),
        click.option(
            "--journal-quota", "journal_quota_kb", type=kilobytes, help="The same of its journal."
        ),
        click.option(
            "--base-priority",
            type=click.IntRange(-32768, 32767),
            help="Of public queues only; a private queue ignores it.",
        ),
        click.option(
            "--poison-after",
            type=click.IntRange(0),
            metavar="N",
            help="Move a message to the subqueue poison after N aborted receives; 0 is never.",
        ),
        click.option(
            "--authenticate/--no-authenticate", default=None, help="Take signed messages only."
        ),
        click.option(
            "--privacy",
            type=click.Choice(["none", "optional", "body"]),
            help="Bodies: none encrypted, either, encrypted only.",
        ),
        click.option(
            "--multicast",
            "multicast_address",
            metavar="ADDRESS:PORT",
            help="Take messages sent to this multicast address.",
        ),
        click.option("--type-id", type=click.UUID, help="A mark of the application's own."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def _chosen(settings: dict[str, Any]) -> dict[str, Any]:
    """What was given, spelled as the client has it."""
    chosen = {name: value for name, value in settings.items() if value is not None}
    privacy = chosen.pop("privacy", None)
    if privacy is not None:
        chosen["privacy_level"] = PrivacyLevel[privacy.upper()]
    return chosen


@queue.command()
@click.argument("name", metavar="QUEUE")
@click.option("--transactional", is_flag=True, help="Take messages in transactions only.")
@_setting_options
@json_option("The queue as a JSON object.")
@connection_options
def new(
    name: str, connection: Connection, *, transactional: bool, as_json: bool, **settings: Any
) -> None:
    """Makes a queue. Whether it is transactional cannot be changed later.

    \b
    merq queue new orders
    merq queue new payments --transactional --journal --poison-after 3
    merq queue new logs --label "Log lines" --quota 64MB
    """
    with connected(connection) as manager:
        made = manager.create_queue(
            path_name_of(name), transactional=transactional, **_chosen(settings)
        )
        _tell(made.report, f"made {made.path_name}", as_json=as_json)
        _tell_ignored(settings)


@queue.command(name="list")
@click.option("--system", "family", flag_value="system", help="Those that are always there.")
@click.option("--outgoing", "family", flag_value="outgoing", help="Those to other computers.")
@click.option("--all", "family", flag_value="all", help="All, journals and subqueues too.")
@json_option("One JSON object a queue, one a line.")
@connection_options
def list_queues(family: str | None, connection: Connection, *, as_json: bool) -> None:
    """Lists queues: T is transactional, J keeps a journal, A takes signed messages only.

    \b
    merq queue list
    merq queue list --all
    merq queue list --json | jq -r 'select(.messages > 0) | .name'
    """
    with connected(connection) as manager:
        reports = manager.reports(Family(family or "private"))
        now = manager.status().now
    reports.sort(key=lambda each: each.properties.path_name.lower())
    if as_json:
        for each in reports:
            click.echo(json.dumps(object_of(each)))
    elif reports:
        terminal().print(table_of_queues(reports, now))
    else:
        click.echo("no queues; `merq queue new NAME` makes one", err=True)


@queue.command()
@_QUEUE
@click.option(
    "--properties",
    "by_identifier",
    is_flag=True,
    help="Its properties by MSMQ's identifiers, such as PROPID_Q_LABEL.",
)
@json_option("One JSON object.")
@connection_options
def show(name: str, connection: Connection, *, by_identifier: bool, as_json: bool) -> None:
    """Shows everything that is known of a queue.

    Of a transactional queue also who sends to it from other computers, and how far each is; and
    the groups of consumers that have reserved messages.

    \b
    merq queue show orders
    merq queue show deadletter
    merq queue show orders --json | jq .messages
    merq queue show orders --properties
    """
    with connected(connection) as manager:
        found = find_queue(manager, name)
        report = found.report
        subqueues = [each.report for each in _subqueues(found, report)]
        sequences = found.sequences()
        if by_identifier:
            _show_properties(properties_of(manager, found, subqueues, sequences), as_json=as_json)
            return
        groups = [
            each for each in manager.bulk.claims() if each.queue == report.properties.path_name
        ]
        now = manager.status().now
    if as_json:
        shown = object_of(report) | {
            "subqueues": [object_of(each) for each in subqueues],
            "sequences": [object_of_sequence(each) for each in sequences],
            "groups": [object_of_group(each) for each in groups],
        }
        click.echo(json.dumps(shown))
        return
    console = terminal()
    console.print(short_name(report.properties.path_name), style="bold cyan", markup=False)
    console.print(table_of_facts(facts_of(report, subqueues, now)))
    if sequences:
        console.print(table_of_sequences(sequences, now))
    if groups:
        console.print(table_of_groups(groups, with_queue=False))


def _show_properties(properties: dict[Property, PropertyValue], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(object_of_properties(properties)))
    else:
        terminal().print(table_of_properties(properties))


def _subqueues(found: Queue, report: QueueReport) -> list[Queue]:
    return found.subqueues() if report.properties.owner == 0 else []


@queue.command(name="set")
@_QUEUE
@_setting_options
@json_option("The queue as a JSON object.")
@connection_options
def change(name: str, connection: Connection, *, as_json: bool, **settings: Any) -> None:
    """Changes properties of a queue; what is not named stays.

    \b
    merq queue set orders --label "Orders of the new shop"
    merq queue set orders --journal --journal-quota 1GB
    merq queue set orders --poison-after 5
    """
    chosen = _chosen(settings)
    if not chosen:
        raise click.UsageError("nothing to change: name a property, such as --label TEXT")
    with connected(connection) as manager:
        found = find_queue(manager, name)
        found.change(**chosen)
        _tell(found.report, f"changed {found.path_name}", as_json=as_json)
        _tell_ignored(settings)


@queue.command()
@_QUEUE
@YES
@json_option("One JSON object.")
@connection_options
def remove(name: str, connection: Connection, *, yes: bool, as_json: bool) -> None:
    """Removes a queue, its journal, its subqueues and all messages in them.

    On a terminal it asks first. In a script it refuses to remove a queue that has messages, unless
    --yes is given.

    \b
    merq queue remove orders
    merq queue remove orders --yes
    """
    with connected(connection) as manager:
        found = find_queue(manager, name)
        report = found.report
        lost = report.messages + report.journal_messages
        lost += sum(each.report.messages for each in _subqueues(found, report))
        path = report.properties.path_name
        confirm(f"Remove {path} and {count(lost, 'message')} in it?", lost, yes=yes)
        found.delete()
    if as_json:
        click.echo(json.dumps({"removed": path, "messages": lost}))
    else:
        click.echo(f"removed {path} and {count(lost, 'message')}")


@queue.command()
@_QUEUE
@YES
@json_option("One JSON object.")
@connection_options
def purge(name: str, connection: Connection, *, yes: bool, as_json: bool) -> None:
    """Removes all messages of a queue; the queue stays.

    On a terminal it asks first. In a script it refuses if there are messages, unless --yes is
    given. Messages whose senders asked for it leave a dead letter.

    \b
    merq queue purge orders
    merq queue purge "orders;journal" --yes
    merq queue purge deadletter --yes --json
    """
    with connected(connection) as manager:
        found = find_queue(manager, name)
        report = found.report
        path = report.properties.path_name
        question = f"Remove {count(report.messages, 'message')} from {path}?"
        confirm(question, report.messages, yes=yes)
        gone = found.purge()
    if as_json:
        click.echo(json.dumps({"purged": path, "messages": gone}))
    else:
        click.echo(f"removed {count(gone, 'message')} from {path}")


@queue.command(name="forget-senders")
@_QUEUE
@click.option("--sender", type=click.UUID, help="This queue manager alone, by its GUID.")
@YES
@json_option("One JSON object.")
@connection_options
def forget_senders(
    name: str, sender: UUID | None, connection: Connection, *, yes: bool, as_json: bool
) -> None:
    """Forgets which transactional messages of other computers have come; removes no message.

    For a sender whose messages are dropped, as `merq queue show` and the log say: it was restored
    with an older clock, or somebody else has sent in its name. What it sends next is taken then,
    whichever sequence it is of. What has arrived and was not acknowledged may be taken twice.

    \b
    merq queue forget-senders orders --sender 5c9f1a2b-0000-4000-8000-000000000007
    merq queue forget-senders orders --yes
    """
    with connected(connection) as manager:
        found = find_queue(manager, name)
        path = found.path_name
        known = [each for each in found.sequences() if sender in (None, each.sender)]
        what = count(len(known), "sequence")
        question = f"Forget {what} to {path}?"
        confirm(question, len(known), yes=yes, otherwise="nothing was forgotten")
        gone = found.forget_senders(sender or NULL_GUID)
    if as_json:
        click.echo(json.dumps({"forgotten": path, "sequences": gone}))
    else:
        click.echo(f"forgot {count(gone, 'sequence')} to {path}")


def _tell_ignored(settings: dict[str, Any]) -> None:
    """[MS-MQMQ] 2.3.1.6: of a private queue a base priority changes nothing, so that is said."""
    if settings["base_priority"] is not None:
        click.echo(
            "merq: the base priority was ignored: public queues alone have one; see "
            "base_priorities in the file of peers",
            err=True,
        )


def _tell(report: QueueReport, words: str, *, as_json: bool) -> None:
    click.echo(json.dumps(object_of(report)) if as_json else words)
