"""`merq receive` and `merq peek`: messages out of a queue, and messages that stay.

A message leaves its queue only after it was written: it is held meanwhile, so that nobody else
gets it, and goes back if writing fails. What a pipe has taken counts as written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from merq.cli.completing import complete_queue
from merq.cli.connecting import Connection, connected, connection_options
from merq.cli.durations import duration
from merq.cli.failing import json_option
from merq.cli.message_ids import message_id
from merq.cli.message_lines import correlation_id_of
from merq.cli.outputs import Output, output_to
from merq.cli.queue_names import find_queue
from merq.client.asking import id_bytes, id_text
from merq.client.manager import Manager
from merq.client.messages import ReceivedMessage
from merq.client.queues import Queue
from merq.client.transactions import Transaction
from merq.errors import ReceiveTimeout
from merq.model.selecting import ByCorrelationId, ByLookup, ByMessageId, First, Selection

AT_ONCE: Final = 50
"""Messages that are held and written together."""

AT_ONCE_BYTES_MAX: Final = 4 << 20
"""No more are held together once they take so much."""

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Which messages, how many, and how long to wait for each.

    Attributes:
        most: How many; None for all that are there, or for ever while following.
        timeout: Seconds, None is for ever.
        follow: Goes on when there are no more, until somebody stops it.
    """

    selection: Selection
    most: int | None
    timeout: float | None
    follow: bool


def reading_options(function: _F) -> _F:
    """What receive and peek have in common."""
    options = (
        click.option(
            "--timeout",
            type=duration,
            help="How long to wait for a message: 5s, forever.  [default: 0, and forever "
            "with --follow]",
        ),
        click.option(
            "--count",
            "most",
            type=click.IntRange(1),
            metavar="N",
            help="So many messages.  [default: 1]",
        ),
        click.option("--all", "everything", is_flag=True, help="All that are there."),
        click.option("--follow", is_flag=True, help="Go on with what comes, until Ctrl-C."),
        click.option("--by-id", type=message_id, metavar="ID", help="The message with this id."),
        click.option(
            "--by-lookup-id",
            type=click.IntRange(0, (1 << 64) - 1),
            metavar="N",
            help="The message at this place.",
        ),
        click.option("--by-correlation-id", metavar="ID", help="40 hex digits, or a message id."),
        click.option("--raw", is_flag=True, help="Bodies alone, as they are."),
        click.option(
            "--output",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="Bodies as they are, or with --json lines, into FILE.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def wish_of(options: dict[str, Any]) -> Wish:
    """What the options ask for.

    Raises:
        click.UsageError: They contradict each other.
    """
    selections = [
        name for name in ("by_id", "by_lookup_id", "by_correlation_id") if options[name] is not None
    ]
    amounts = [name for name in ("most", "everything", "follow") if options[name]]
    if len(selections) > 1 or (selections and amounts):
        raise click.UsageError("one message is selected by one of the --by options, and alone")
    if len(amounts) > 1:
        raise click.UsageError("--count, --all and --follow: give one of them")
    timeout = options["timeout"]
    if timeout is None:
        timeout = math.inf if options["follow"] else 0.0
    if timeout and {"by_id", "by_lookup_id"} & set(selections):
        raise click.UsageError("a message that is selected by its id is there or not: no --timeout")
    most = options["most"] or (None if options["everything"] or options["follow"] else 1)
    return Wish(
        selection=_selection(options),
        most=most,
        timeout=None if math.isinf(timeout) else timeout,
        follow=options["follow"],
    )


def _selection(options: dict[str, Any]) -> Selection:
    if options["by_id"] is not None:
        return ByMessageId(id_bytes(options["by_id"]))
    if options["by_lookup_id"] is not None:
        return ByLookup(options["by_lookup_id"])
    if options["by_correlation_id"] is None:
        return First()
    try:
        return ByCorrelationId(correlation_id_of(options["by_correlation_id"]))
    except ValueError as wrong:
        raise click.BadParameter(str(wrong), param_hint="--by-correlation-id") from wrong


@click.command()
@click.argument("name", metavar="QUEUE", shell_complete=complete_queue)
@reading_options
@click.option(
    "--transaction",
    "in_transaction",
    is_flag=True,
    help="All in one transaction: all are written and leave, or none.",
)
@json_option("One JSON object a message, one a line.")
@connection_options
def receive(
    name: str,
    connection: Connection,
    *,
    in_transaction: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Takes messages out of QUEUE and shows them.

    A message leaves the queue after it was written: if writing fails, because the disk is full or
    nobody reads the pipe any more, it goes back. The exit status is 3 if fewer messages than asked
    for came in time.

    \b
    merq receive orders
    merq receive orders --timeout 30s --raw > body.bin
    merq receive orders --all --json | jq -r .label
    merq receive orders --follow
    merq receive deadletter --by-lookup-id 72057594037927941
    """
    wish, form = wish_of(options), form_of(options, as_json=as_json)
    if in_transaction and wish.follow:
        raise click.UsageError("--follow has no end, and a transaction needs one")
    with connected(connection) as manager:
        queue = find_queue(manager, name)
        with output_to(form, options["output"]) as output:
            if in_transaction:
                _receive_together(manager, queue, wish, output)
            else:
                _receive(queue, wish, output)
    _judge(wish, output, name)


def form_of(options: dict[str, Any], *, as_json: bool) -> str:
    """The form of the output.

    Raises:
        click.UsageError: Two forms are asked for.
    """
    if as_json and options["raw"]:
        raise click.UsageError("--raw and --json: give one of them")
    if as_json:
        return "json"
    return "raw" if options["raw"] or options["output"] is not None else "people"


def _receive(queue: Queue, wish: Wish, output: Output) -> None:
    while wish.most is None or output.count < wish.most:
        most = AT_ONCE if wish.most is None else min(AT_ONCE, wish.most - output.count)
        holding = queue.hold(
            most,
            timeout=wish.timeout,
            selection=wish.selection,
            most_bytes=AT_ONCE_BYTES_MAX,
        )
        try:
            with holding as messages:
                _write(messages, output)
        except ReceiveTimeout:
            return


def _receive_together(manager: Manager, queue: Queue, wish: Wish, output: Output) -> None:
    with manager.transaction() as tx:
        while wish.most is None or output.count < wish.most:
            most = AT_ONCE if wish.most is None else min(AT_ONCE, wish.most - output.count)
            try:
                found = _taken(queue, wish, most, tx)
            except ReceiveTimeout:
                break
            for message in found:
                output.write(message)
        output.settle()


def _taken(queue: Queue, wish: Wish, most: int, tx: Transaction) -> list[ReceivedMessage]:
    match wish.selection:
        case ByMessageId(message_id):
            return [queue.receive_by_id(id_text(message_id), tx=tx)]
        case ByLookup(lookup_id):
            return [queue.receive_by_lookup_id(lookup_id, tx=tx)]
        case ByCorrelationId(value):
            return [queue.receive_by_correlation_id(value, timeout=wish.timeout, tx=tx)]
        case _:
            return queue.receive_many(most, timeout=wish.timeout, tx=tx)


def _write(messages: list[ReceivedMessage], output: Output) -> None:
    for message in messages:
        output.write(message)
    output.settle()


@click.command()
@click.argument("name", metavar="QUEUE", shell_complete=complete_queue)
@reading_options
@json_option("One JSON object a message, one a line.")
@connection_options
def peek(name: str, connection: Connection, *, as_json: bool, **options: Any) -> None:
    """Shows messages of QUEUE, which stay in it.

    The exit status is 3 if fewer messages than asked for came in time.

    \b
    merq peek orders
    merq peek orders --all --json | jq -r .label
    merq peek deadletter --count 10
    merq peek orders --follow
    """
    wish, form = wish_of(options), form_of(options, as_json=as_json)
    with connected(connection) as manager:
        queue = find_queue(manager, name)
        with output_to(form, options["output"]) as output:
            for message in _peeked(queue, wish):
                output.write(message)
                if wish.follow:
                    output.settle()
            output.settle()
    _judge(wish, output, name)


def _peeked(queue: Queue, wish: Wish) -> Iterator[ReceivedMessage]:
    match wish.selection:
        case ByMessageId(message_id):
            yield from _at_most_one(lambda: queue.peek_by_id(id_text(message_id)))
        case ByLookup(lookup_id):
            yield from _at_most_one(lambda: queue.peek_by_lookup_id(lookup_id))
        case ByCorrelationId(correlation_id):
            yield from _at_most_one(
                lambda: queue.peek_by_correlation_id(correlation_id, timeout=wish.timeout)
            )
        case _ if wish.timeout == 0:
            yield from islice(queue.peek_all(), wish.most)
        case _:
            yield from islice(_peeked_as_they_come(queue, wish.timeout), wish.most)


def _at_most_one(peek_one: Callable[[], ReceivedMessage]) -> Iterator[ReceivedMessage]:
    try:
        yield peek_one()
    except ReceiveTimeout:
        return


def _peeked_as_they_come(queue: Queue, timeout: float | None) -> Iterator[ReceivedMessage]:
    """From the first on, waiting for each; one that comes before where we are is passed over."""
    cursor = queue.cursor()
    try:
        message = cursor.peek(timeout=timeout)
        while True:
            yield message
            message = cursor.peek_next(timeout=timeout)
    except ReceiveTimeout:
        return
    finally:
        cursor.close()


def _judge(wish: Wish, output: Output, name: str) -> None:
    """Scripts learn from the exit status whether what they asked for came."""
    wanted = wish.most or (0 if wish.follow else 1)
    if output.count >= wanted:
        return
    text = f"no message in {name}" if not output.count else f"{output.count} of {wanted} messages"
    waited = "" if not wish.timeout else f" within {wish.timeout:g} s"
    raise ReceiveTimeout(f"{text}{waited}")
