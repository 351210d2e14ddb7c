"""`merq send`: messages from an option, a file or standard input into a queue."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from operator import or_
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from merq.cli.bodies import NUMBER_MARK, Source, lines, numbered
from merq.cli.completing import complete_queue
from merq.cli.connecting import Connection, connected, connection_options
from merq.cli.durations import duration
from merq.cli.failing import json_option
from merq.cli.message_lines import correlation_id_of
from merq.cli.progressing import Stopping, progress
from merq.cli.queue_names import destination_of, path_name_of, reference_to
from merq.cli.rendering import count
from merq.client.manager import Manager
from merq.client.messages import ACKNOWLEDGE_ARRIVAL, ACKNOWLEDGE_RECEIVE, Message
from merq.client.queues import Queue
from merq.errors import MerqError
from merq.model.destinations import parse_destination
from merq.wire.headers import INFINITE

AT_ONCE: Final = 100
"""Messages that are sent together, all or none of them, when many are to be sent."""

REPEAT_MAX: Final = 1_000_000_000

_ACKNOWLEDGMENTS: Final = {"arrival": ACKNOWLEDGE_ARRIVAL, "receive": ACKNOWLEDGE_RECEIVE}
_F = TypeVar("_F", bound=Callable[..., Any])


def _acknowledge(_ctx: click.Context, _: click.Parameter, value: tuple[str, ...]) -> int:
    names = [name.strip() for each in value for name in each.split(",")]
    strange = [name for name in names if name not in _ACKNOWLEDGMENTS]
    if strange:
        raise click.BadParameter(f"{', '.join(strange)}: there are arrival and receive")
    return reduce(or_, (_ACKNOWLEDGMENTS[name] for name in names), 0)


def _message_options(function: _F) -> _F:
    options = (
        click.option("--label", default="", help="What it is about, in a line."),
        click.option(
            "--priority",
            type=click.IntRange(0, 7),
            default=3,
            show_default=True,
            help="7 goes first.",
        ),
        click.option("--recoverable", is_flag=True, help="It survives a restart."),
        click.option(
            "--reach-within",
            "--ttrq",
            "reach_s",
            type=duration,
            help="To be in its queue by then, as 10m.  [default: 4d]",
        ),
        click.option(
            "--receive-within",
            "--ttbr",
            "receive_s",
            type=duration,
            help="To be received by then, as 1h.  [default: forever]",
        ),
        click.option("--journal", is_flag=True, help="Keep a copy when it is delivered."),
        click.option("--dead-letter", is_flag=True, help="Keep a copy when it cannot be."),
        click.option("--dead-letter-queue", metavar="QUEUE", help="Keep that copy in QUEUE."),
        click.option(
            "--ack",
            "acknowledge",
            multiple=True,
            callback=_acknowledge,
            metavar="arrival,receive",
            help="What is told to the admin queue.",
        ),
        click.option("--admin-queue", metavar="QUEUE", help="Where acknowledgments go."),
        click.option("--response-queue", metavar="QUEUE", help="Where a reply is waited for."),
        click.option("--correlation-id", metavar="ID", help="40 hex digits, or a message id."),
        click.option(
            "--app-specific",
            type=click.IntRange(0, INFINITE),
            default=0,
            metavar="N",
            help="A number of the application's own.",
        ),
        click.option(
            "--extension-file",
            type=click.Path(path_type=Path, exists=True, dir_okay=False),
            help="Bytes of the application's own.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How many messages, how fast, and what of them is numbered.

    Attributes:
        repeat: How often a body is sent.
        rate: Messages a second; infinite is as fast as it goes.
        number: `{n}` in body and label becomes the message's number.
    """

    repeat: int
    rate: float
    number: bool


@click.command(short_help="Sends messages.")
@click.argument("name", metavar="QUEUE", shell_complete=complete_queue)
@click.option("--body", help="The body, as text.")
@click.option(
    "--file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The body is what is in FILE, as bytes.",
)
@click.option(
    "--as",
    "form",
    type=click.Choice(["text", "bytes", "json"]),
    help="json is text that is checked.  [default: bytes for --file, else text]",
)
@click.option("--lines", "by_line", is_flag=True, help="Every line of stdin is a message.")
@click.option(
    "--transactional",
    is_flag=True,
    help="In a transaction; without saying so for a queue that needs it.",
)
@_message_options
@click.option(
    "--repeat",
    type=click.IntRange(1, REPEAT_MAX),
    default=1,
    metavar="N",
    help="Send it so often.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    metavar="R",
    help="So many messages a second.",
)
@click.option("--number", is_flag=True, help="{n} in body and label becomes 1, 2, 3 ...")
@click.option("--quiet", "-q", is_flag=True, help="Do not print the ids.")
@json_option("One JSON object a message, one a line.")
@connection_options
def send(  # noqa: PLR0913 - a message has these
    name: str,
    connection: Connection,
    body: str | None,
    file: Path | None,
    form: str | None,
    repeat: int,
    rate: float | None,
    *,
    by_line: bool,
    transactional: bool,
    number: bool,
    quiet: bool,
    as_json: bool,
    **properties: Any,
) -> None:
    """Sends a message to QUEUE and prints its id when it is as safe as it was to be.

    QUEUE is a name as `merq queue --help` explains it, or a format name, of another computer too.
    The body comes from --body, --file or standard input.

    \b
    merq send orders --body hello --label first --recoverable
    merq send orders --file invoice.pdf --receive-within 1h --dead-letter
    tail -f log.txt | merq send logs --lines
    merq send orders --body 'order {n}' --number --repeat 1000 --rate 50
    merq send 'DIRECT=OS:server2\\private$\\orders' --body hello --recoverable
    """
    if sum((body is not None, file is not None, by_line)) > 1:
        raise click.UsageError("--body, --file and --lines: a body comes from one place")
    if by_line and repeat > 1:
        raise click.UsageError("--lines cannot be repeated: standard input is there once")
    form = form or ("bytes" if file is not None else "text")
    plan = Plan(repeat=repeat, rate=rate or math.inf, number=number)
    with connected(connection) as manager:
        message = message_from(manager, properties)
        batches = (
            lines(form) if by_line else _repeated(Source(body=body, file=file, form=form), plan)
        )
        way = Way(manager, destination_of(manager, name), transactional=transactional)
        sender = Sender(way, message, plan)
        tell = _teller(as_json=as_json, quiet=quiet)
        sender.run(batches, tell, None if by_line else repeat)


def message_from(manager: Manager, properties: dict[str, Any]) -> Message:
    """A message with all that was asked for but its body."""
    extension = properties["extension_file"]
    times: dict[str, Any] = {
        name: INFINITE if math.isinf(value) else math.ceil(value)
        for name, value in (
            ("time_to_reach_queue", properties["reach_s"]),
            ("time_to_be_received", properties["receive_s"]),
        )
        if value is not None
    }
    dead_letter_queue = properties["dead_letter_queue"]
    if properties["acknowledge"] and not properties["admin_queue"]:
        raise click.UsageError("--ack without --admin-queue: name the queue that is to be told")
    if properties["admin_queue"] and not properties["acknowledge"]:
        raise click.UsageError("--admin-queue without --ack: say --ack arrival, receive or both")
    try:
        correlation = properties["correlation_id"]
        correlation_id = correlation_id_of(correlation) if correlation else bytes(20)
    except ValueError as wrong:
        raise click.BadParameter(str(wrong), param_hint="--correlation-id") from wrong
    return Message(
        label=properties["label"],
        priority=properties["priority"],
        recoverable=properties["recoverable"],
        journal=properties["journal"],
        dead_letter=properties["dead_letter"] or bool(dead_letter_queue),
        dead_letter_queue=path_name_of(dead_letter_queue) if dead_letter_queue else "",
        acknowledge=properties["acknowledge"],
        admin_queue=reference_to(manager, properties["admin_queue"] or ""),
        response_queue=reference_to(manager, properties["response_queue"] or ""),
        correlation_id=correlation_id,
        app_specific=properties["app_specific"],
        extension=extension.read_bytes() if extension is not None else b"",
        **times,
    )


def _repeated(source: Source, plan: Plan) -> Iterator[list[Any]]:
    """The same body again and again, as many at a time as may be sent together."""
    body = source.read()
    for done in range(0, plan.repeat, AT_ONCE):
        yield [body] * min(AT_ONCE, plan.repeat - done)


class Way:
    """How messages get to their queue: at once or each for itself, in a transaction or not."""

    def __init__(self, manager: Manager, target: Queue | str, *, transactional: bool) -> None:
        self._manager = manager
        self._target = target
        needed = isinstance(target, Queue) and target.transactional
        self._transactional = transactional or needed
        self._is_one = isinstance(target, Queue) or len(parse_destination(target)) == 1

    def send(self, messages: list[Message]) -> list[str]:
        """All of them or none, if they go to one destination; gives their ids."""
        if not self._transactional:
            return self._send(messages, {})
        with self._manager.transaction() as tx:
            return self._send(messages, {"tx": tx})

    def _send(self, messages: list[Message], within: dict[str, Any]) -> list[str]:
        if isinstance(self._target, Queue):
            return self._target.send_many(messages, **within)
        if self._is_one:
            return self._manager.send_many(self._target, messages, **within)
        return [self._manager.send(self._target, each, **within) for each in messages]

    @property
    def at_once(self) -> int:
        """How many are sent together; outside of a transaction, only what is all or none."""
        return AT_ONCE if self._is_one or self._transactional else 1


class Sender:
    """Sends bodies at a rate and counts them."""

    def __init__(self, way: Way, message: Message, plan: Plan) -> None:
        self._way = way
        self._message = message
        self._plan = plan
        self._sent = 0

    def run(
        self, batches: Iterable[list[Any]], tell: Callable[[list[str]], None], total: int | None
    ) -> None:
        """Sends everything; if it is stopped or fails, it is said how many were sent."""
        is_long = total is None or total > 1
        try:
            with progress("sending", total) as show, Stopping.between_steps() as stopping:
                self._run(batches, tell, show, stopping)
        except KeyboardInterrupt:
            click.echo(f"stopped: {count(self._sent, 'message')} sent", err=True)
            raise
        except (MerqError, OSError, click.ClickException) as wrong:
            if is_long:
                wrong.add_note(f"{count(self._sent, 'message')} had been sent")
            raise

    def _run(
        self,
        batches: Iterable[list[Any]],
        tell: Callable[[list[str]], None],
        show: Callable[[int], None],
        stopping: Stopping,
    ) -> None:
        began = time.monotonic()
        for batch in batches:
            bodies = iter(batch)
            while run := list(islice(bodies, self._allowance(began))):
                with stopping.step():
                    ids = self._way.send([self._made(body) for body in self._counted(run)])
                    self._sent += len(run)
                    tell(ids)
                    show(self._sent)

    def _allowance(self, began: float) -> int:
        """How many may be sent now; waits until it is one at least."""
        if math.isinf(self._plan.rate):
            return self._way.at_once
        early = began + self._sent / self._plan.rate - time.monotonic()
        if early > 0:
            time.sleep(early)
        due = int((time.monotonic() - began) * self._plan.rate) + 1 - self._sent
        return max(1, min(due, self._way.at_once))

    def _counted(self, bodies: list[Any]) -> Iterator[tuple[int, Any]]:
        return enumerate(bodies, self._sent + 1)

    def _made(self, counted: tuple[int, Any]) -> Message:
        number, body = counted
        if not self._plan.number:
            return replace(self._message, body=body)
        label = self._message.label.replace(NUMBER_MARK, str(number))
        return replace(self._message, body=numbered(body, number), label=label)


def _teller(*, as_json: bool, quiet: bool) -> Callable[[list[str]], None]:
    def tell(ids: list[str]) -> None:
        if not quiet:
            shown = (json.dumps({"id": each}) if as_json else each for each in ids)
            click.echo("\n".join(shown))

    return tell
