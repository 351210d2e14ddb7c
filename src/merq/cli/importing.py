"""`merq import`: sends what `merq export` wrote, or what somebody else wrote in that form.

The form is described in `merq.cli.message_lines`.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

import click

from merq.cli.completing import complete_queue
from merq.cli.connecting import Connection, connected, connection_options
from merq.cli.failing import json_option
from merq.cli.message_lines import LINE_BYTES_MAX, message_of
from merq.cli.progressing import Stopping, progress
from merq.cli.queue_names import destination_of
from merq.cli.rendering import count
from merq.cli.sending import Way
from merq.client.messages import Message
from merq.errors import MerqError

AT_ONCE: Final = 100
"""Messages that are sent together, all or none of them."""

AT_ONCE_BYTES_MAX: Final = 4 << 20
"""A batch has no more lines once they take so much."""


@click.command(name="import", short_help="Sends the messages in a file.")
@click.argument("source", metavar="FILE", type=click.Path(path_type=Path, allow_dash=True))
@click.argument("name", metavar="QUEUE", shell_complete=complete_queue)
@click.option(
    "--skip",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Leave out the first N messages, which were sent before.",
)
@click.option("--transactional", is_flag=True, help="For a transactional queue elsewhere.")
@click.option("--dry-run", is_flag=True, help="Only check the file.")
@json_option("What was done as a JSON object.")
@connection_options
def import_messages(
    source: Path,
    name: str,
    connection: Connection,
    skip: int,
    *,
    transactional: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Sends the messages in FILE to QUEUE; - is standard input.

    The whole file is checked before the first message is sent. They are sent in batches, all or
    none of each; if it stops, it says how to go on with --skip. They are new messages: with new ids
    and times, and of the normal class.

    \b
    merq import orders.jsonl orders
    merq import orders.jsonl orders --skip 300
    zcat orders.jsonl.gz | merq import - orders
    echo '{"text": "hello", "label": "by hand"}' | merq import - orders
    """
    with _opened(source) as file:
        total = _check(file)
        if skip > total:
            raise click.UsageError(f"--skip {skip}: the file has {count(total, 'message')}")
        if not dry_run:
            with connected(connection) as manager:
                target = destination_of(manager, name)
                way = Way(manager, target, transactional=transactional)
                _send(file, way, skip, total)
    sent = 0 if dry_run else total - skip
    told = {"checked": total, "skipped": skip, "sent": sent}
    words = f"{count(total, 'message')} checked, {sent:,} sent"
    click.echo(json.dumps(told) if as_json else words)


@contextmanager
def _opened(source: Path) -> Iterator[BinaryIO]:
    """The file; standard input is put aside, for it is read twice."""
    if str(source) != "-":
        with source.open("rb") as file:
            yield file
        return
    with tempfile.TemporaryFile() as aside:
        shutil.copyfileobj(sys.stdin.buffer, aside)
        yield aside


def messages_in(file: BinaryIO) -> Iterator[tuple[int, int, Message]]:
    """Line number, size and message of each line that is not empty.

    Raises:
        click.ClickException: A line cannot become a message; the text says which and why.
    """
    file.seek(0)
    number = 0
    while line := file.readline(LINE_BYTES_MAX + 2):
        number += 1
        if not line.strip():
            continue
        try:
            yield number, len(line), message_of(line)
        except ValueError as wrong:
            name = getattr(file, "name", "")
            place = f"{name}, line {number}" if isinstance(name, str) and name else f"line {number}"
            raise click.ClickException(f"{place}: {wrong}") from wrong


def _check(file: BinaryIO) -> int:
    with progress("checking", None) as show:
        total = 0
        try:
            for _ in messages_in(file):
                total += 1
                show(total)
        except click.ClickException as wrong:
            wrong.add_note("nothing was sent")
            raise
    return total


def batches_of(file: BinaryIO, skip: int) -> Iterator[list[Message]]:
    """Messages that are sent together; their own dead-letter queue is the same."""
    batch: list[Message] = []
    batch_bytes = 0
    for count_before, (_, size, message) in enumerate(messages_in(file)):
        if count_before < skip:
            continue
        is_full = len(batch) >= AT_ONCE or batch_bytes >= AT_ONCE_BYTES_MAX
        if batch and (is_full or batch[0].dead_letter_queue != message.dead_letter_queue):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(message)
        batch_bytes += size
    if batch:
        yield batch


def _send(file: BinaryIO, way: Way, skip: int, total: int) -> None:
    done = skip
    try:
        with progress("importing", total) as show, Stopping.between_steps() as stopping:
            for batch in batches_of(file, skip):
                for at in range(0, len(batch), way.at_once):
                    run = batch[at : at + way.at_once]
                    with stopping.step():
                        way.send(run)
                        done += len(run)
                        show(done)
    except (MerqError, OSError, click.ClickException, KeyboardInterrupt) as wrong:
        words = f"{count(done - skip, 'message')} sent; go on with --skip {done}"
        if isinstance(wrong, KeyboardInterrupt):
            click.echo(f"stopped: {words}", err=True)
        else:
            wrong.add_note(words)
        raise
