"""Where messages that are read go, and when they are safe there."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import UnsupportedOperation
from pathlib import Path
from typing import BinaryIO

from merq.cli.message_lines import line_of
from merq.cli.rendering import raw_body, rendered
from merq.cli.terminal import terminal
from merq.client.messages import ReceivedMessage


class Output:
    """Takes messages in one of three forms: `people`, `json` (lines) or `raw` (bodies alone)."""

    def __init__(self, form: str, file: BinaryIO | None = None) -> None:
        self._form = form
        self._file = file
        self._console = terminal()
        self.count = 0

    def write(self, message: ReceivedMessage) -> None:
        """One message; it may wait in a buffer until `settle`."""
        self.count += 1
        if self._form == "people" and self._file is None:
            self._console.print(rendered(message))
            return
        raw = self._form == "raw"
        data = raw_body(message) if raw else line_of(message).encode() + b"\n"
        (self._file or sys.stdout.buffer).write(data)

    def settle(self) -> None:
        """Everything is written, and on the disk where there is one.

        Raises:
            OSError: It is not: the pipe is closed, the disk is full.
        """
        if self._file is not None:
            settle(self._file)
            return
        sys.stdout.flush()
        settle(sys.stdout.buffer)


def settle(file: BinaryIO) -> None:
    """Everything is written, and on the disk where there is one.

    Raises:
        OSError: It is not: the pipe is closed, the disk is full.
    """
    file.flush()
    try:
        number = file.fileno()
    except UnsupportedOperation:
        return  # no file of the system's: nothing to wait for
    if stat.S_ISREG(os.fstat(number).st_mode):
        os.fsync(number)


@contextmanager
def output_to(form: str, path: Path | None) -> Iterator[Output]:
    """Standard output, or a file that is new or written anew."""
    if path is None:
        yield Output(form)
        return
    with path.open("wb") as file:
        yield Output(form, file)
