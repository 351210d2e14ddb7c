"""`merq move`: messages to a subqueue, from there, or from one to another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase

import click

from merq.cli.completing import complete_queue
from merq.cli.connecting import Connection, connected, connection_options
from merq.cli.failing import json_option
from merq.cli.message_ids import message_id as id_type
from merq.cli.progressing import Stopping, progress
from merq.cli.queue_names import find_queue, path_name_of
from merq.cli.rendering import count
from merq.client.manager import Manager
from merq.client.queues import Queue
from merq.errors import MessageQueueError
from merq.hresult import HResult


@click.command(short_help="Moves messages to a subqueue, or back.")
@click.argument("name", metavar="QUEUE", shell_complete=complete_queue)
@click.argument("target", metavar="SUBQUEUE")
@click.option("--lookup-id", type=click.IntRange(0), metavar="N", help="The message at this place.")
@click.option("--id", "message_id", type=id_type, metavar="ID", help="The message with this id.")
@click.option("--all", "everything", is_flag=True, help="All messages.")
@click.option("--where-label", "label", metavar="PATTERN", help="Those so labelled; * is anything.")
@json_option("One JSON object.")
@connection_options
def move(
    name: str,
    target: str,
    connection: Connection,
    lookup_id: int | None,
    message_id: str | None,
    label: str | None,
    *,
    everything: bool,
    as_json: bool,
) -> None:
    """Moves messages of QUEUE to one of its subqueues, or back.

    The subqueue is made if it is not there. A message keeps its place among the others.

    \b
    merq move orders broken --lookup-id 72057594037927941
    merq move orders later --where-label 'backup*'
    merq move 'orders;poison' orders --all
    """
    ways = (lookup_id is not None, message_id is not None, label is not None, everything)
    if sum(ways) != 1:
        raise click.UsageError("say which: one of --lookup-id, --id, --where-label and --all")
    with connected(connection) as manager:
        source = find_queue(manager, name)
        if lookup_id is not None:
            # Looked for first: a subqueue is not made for a message that is not there.
            chosen = [source.peek_by_lookup_id(lookup_id).lookup_id]
        elif message_id is not None:
            chosen = [source.peek_by_id(message_id).lookup_id]
        else:
            chosen = list(_labelled(source, label or "*"))
        if chosen:
            goal = _target(manager, source, target)
            moved, path = (
                _move(source, goal, chosen, single=not (everything or label)),
                goal.path_name,
            )
        else:
            moved, path = 0, target
    if as_json:
        click.echo(json.dumps({"moved": moved, "from": name, "to": path}))
    else:
        click.echo(f"moved {count(moved, 'message')} to {path}")


def _labelled(queue: Queue, pattern: str) -> Iterator[int]:
    for message in queue.peek_all():
        if fnmatchcase(message.label, pattern):
            yield message.lookup_id


def _target(manager: Manager, source: Queue, text: str) -> Queue:
    """A subqueue of the queue that the source is, or is in; or that queue itself."""
    path = source.path_name
    owner, _, _ = path.partition(";") if source.properties.owner else (path, "", "")
    if path_name_of(text).lower() == owner.lower():
        return manager.queue(owner)
    short = text
    if ";" in text:
        named, _, short = text.partition(";")
        if path_name_of(named).lower() != owner.lower():
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_PARAMETER,
                f"{text} belongs to another queue than {path}: a message moves within its own "
                "queue; to take it elsewhere, export it and import it there",
            )
    return manager.queue(owner).subqueue(short)


def _move(source: Queue, goal: Queue, lookup_ids: list[int], *, single: bool) -> int:
    """Each for itself: what somebody took meanwhile is left out. A single one has to be there."""
    moved = 0
    try:
        with progress("moving", len(lookup_ids)) as show, Stopping.between_steps() as stopping:
            for lookup_id in lookup_ids:
                with stopping.step():
                    moved += _moved(source, goal, lookup_id, single=single)
                    show(moved)
    except KeyboardInterrupt:
        click.echo(f"stopped: {count(moved, 'message')} moved", err=True)
        raise
    return moved


def _moved(source: Queue, goal: Queue, lookup_id: int, *, single: bool) -> int:
    try:
        source.move(lookup_id, goal)
    except MessageQueueError as wrong:
        if single or wrong.code != HResult.MQ_ERROR_MESSAGE_NOT_FOUND:
            raise
        return 0
    return 1
