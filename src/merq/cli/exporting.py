"""`merq export`: the messages of a queue into a file, one JSON object a line.

The form is described in `merq.cli.message_lines`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

import click

from merq.cli.completing import complete_queue
from merq.cli.connecting import Connection, connected, connection_options
from merq.cli.failing import json_option
from merq.cli.message_lines import line_of
from merq.cli.outputs import settle
from merq.cli.progressing import Stopping, Told, progress
from merq.cli.queue_names import find_queue
from merq.cli.rendering import count
from merq.client.messages import ReceivedMessage
from merq.client.queues import Queue
from merq.errors import ReceiveTimeout

AT_ONCE: Final = 100
"""Messages that are written together, before they are removed."""

AT_ONCE_BYTES_MAX: Final = 8 << 20
"""No more are written together once they take so much."""


@click.command(short_help="Writes messages to a file; they stay, or not.")
@click.argument("name", metavar="QUEUE", shell_complete=complete_queue)
@click.argument("target", metavar="FILE", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--remove", is_flag=True, help="Take the messages out, once they are on the disk.")
@click.option("--append", is_flag=True, help="Write behind what is in FILE.")
@json_option("What was done as a JSON object, on standard error if FILE is -.")
@connection_options
def export(
    name: str, target: Path, connection: Connection, *, remove: bool, append: bool, as_json: bool
) -> None:
    """Writes the messages of QUEUE to FILE, one JSON object a line; - is standard output.

    They stay in the queue, unless --remove is given: then each leaves after it is safely in FILE. A
    file that exists is not overwritten. `merq import` sends what is in such a file.

    \b
    merq export orders orders.jsonl
    merq export deadletter dead.jsonl --remove
    merq export orders - | gzip > orders.jsonl.gz
    """
    to_stdout = str(target) == "-"
    with connected(connection) as manager:
        queue = find_queue(manager, name)
        total = queue.report.messages
        with (
            _opened(target, append=append) as file,
            progress("exporting", total) as show,
            Stopping.between_steps() as stopping,
        ):
            run = Export(queue, file, show, stopping, own=not to_stdout)
            try:
                run.take() if remove else run.copy()
            except KeyboardInterrupt:
                click.echo(f"stopped: {count(run.done, 'message')} in {target}", err=True)
                raise
    done = run.done
    told = {"exported": done, "removed": done if remove else 0, "file": str(target)}
    gone = ", removed from the queue" if remove else ""
    words = f"{count(done, 'message')} in {target}{gone}"
    click.echo(json.dumps(told) if as_json else words, err=to_stdout)


@contextmanager
def _opened(target: Path, *, append: bool) -> Iterator[BinaryIO]:
    if str(target) == "-":
        if sys.stdout.isatty():
            click.echo("writing to the terminal; name a FILE to keep it", err=True)
        yield sys.stdout.buffer
        return
    try:
        file = target.open("ab" if append else "xb")
    except FileExistsError as wrong:
        raise click.ClickException(f"{target} is there already; --append adds to it") from wrong
    with file:
        yield file


class Export:
    """Messages into a file, a run at a time.

    Attributes:
        done: How many are in the file.
    """

    def __init__(
        self, queue: Queue, file: BinaryIO, show: Told, stopping: Stopping, *, own: bool
    ) -> None:
        self._queue = queue
        self._file = file
        self._own = own
        self._show = show
        self._stopping = stopping
        self.done = 0

    def copy(self) -> None:
        """All messages, which stay."""
        messages = self._queue.peek_all()
        while run := list(islice(messages, AT_ONCE)):
            with self._stopping.step():
                self._write(run)

    def take(self) -> None:
        """All messages, each removed after it was written."""
        try:
            while True:
                with (
                    self._stopping.step(),
                    self._queue.hold(AT_ONCE, timeout=0, most_bytes=AT_ONCE_BYTES_MAX) as run,
                ):
                    self._write(run)
        except ReceiveTimeout:
            return  # there are no more

    def _write(self, run: list[ReceivedMessage]) -> None:
        # Only of a file that was opened here is it known where it ends.
        place = self._file.tell() if self._own else None
        try:
            self._file.write(b"".join(line_of(each).encode() + b"\n" for each in run))
            settle(self._file)
        except OSError as wrong:
            wrong.add_note(f"{count(self.done, 'message')} were written before that")
            if place is not None:
                # Half a line would keep the others from being imported.
                os.truncate(self._file.fileno(), place)
            raise
        self.done += len(run)
        self._show(self.done)
