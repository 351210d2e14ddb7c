"""Where the bodies of `merq send` come from: an option, a file, or standard input."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import click

from merq.model.body import Value

BODY_BYTES_MAX: Final = 4 << 20
"""What is read of a body; a message, headers included, has 4 MB at most, and is refused then."""

CHUNK_BYTES: Final = 1 << 16
"""Standard input is read in such pieces; the lines of a piece are sent together."""

NUMBER_MARK: Final = "{n}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a body comes from, and what it is to be: `text`, `bytes` or `json`."""

    body: str | None
    file: Path | None
    form: str

    def read(self) -> Value:
        """The one body.

        Raises:
            click.ClickException: It is not what it is said to be.
        """
        if self.body is not None:
            return self.body.encode() if self.form == "bytes" else shaped(self.body, self.form)
        if self.file is not None:
            with self.file.open("rb") as file:
                return shaped(_bounded(file.read(BODY_BYTES_MAX + 1)), self.form)
        return shaped(_bounded(_standard_input().read(BODY_BYTES_MAX + 1)), self.form)


def shaped(data: str | bytes, form: str) -> Value:
    """A body of the form asked for.

    Raises:
        click.ClickException: It is not what it is said to be.
    """
    if form == "bytes":
        return data if isinstance(data, bytes) else data.encode()
    if isinstance(data, bytes):
        try:
            data = data.decode("utf-8")
        except UnicodeDecodeError as wrong:
            raise click.ClickException(
                f"the body is not UTF-8 text ({wrong.reason} at byte {wrong.start}); "
                "say --as bytes to send it as it is"
            ) from wrong
    if form == "json":
        try:
            json.loads(data)
        except ValueError as wrong:
            raise click.ClickException(f"the body is not JSON: {wrong}") from wrong
    return data


def lines(form: str) -> Iterator[list[Value]]:
    """The lines of standard input, those together that came together."""
    source = _standard_input()
    rest = b""
    while chunk := os.read(source.fileno(), CHUNK_BYTES):
        whole, end, rest = (rest + chunk).rpartition(b"\n")
        _bounded(rest)
        if end:
            yield [shaped(each.removesuffix(b"\r"), form) for each in whole.split(b"\n")]
    if rest:
        yield [shaped(rest.removesuffix(b"\r"), form)]


def numbered(body: Value, number: int) -> Value:
    """A body with `{n}` replaced by the message's number, from 1 on."""
    if isinstance(body, str):
        return body.replace(NUMBER_MARK, str(number))
    if isinstance(body, bytes):
        return body.replace(NUMBER_MARK.encode(), str(number).encode())
    return body


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise click.UsageError("there is no standard input: give --body or --file")
    if sys.stdin.isatty():
        click.echo("reading the body from the terminal, end it with Ctrl-D", err=True)
    return sys.stdin.buffer


def _bounded(data: bytes) -> bytes:
    if len(data) > BODY_BYTES_MAX:
        raise click.ClickException(f"the body is larger than {BODY_BYTES_MAX} bytes")
    return data
