"""`merq token`: who may connect over TCP."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

import click
from rich.table import Table
from rich.text import Text

from merq.cli.terminal import terminal
from merq.client.secrets import OPEN_BITS
from merq.errors import TokenError
from merq.service.kinds import TIME_UNITS, Seconds, WrongValue
from merq.service.tokens import Token, load_tokens, new_token, revoke_token

EXPIRY_MAX_S: Final = 3660 * TIME_UNITS["d"]
"""A token that ends does so within ten years."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _expiry(context: click.Context, option: click.Parameter, text: str | None) -> timedelta | None:
    """A time from now on, such as 90d."""
    if text is None:
        return None
    try:
        found = Seconds(1, EXPIRY_MAX_S).read(text)
    except WrongValue:
        found = None
    if not isinstance(found, float):
        raise click.BadParameter(
            f"{text!r} is no time; 1 s to 3660 d, such as 12h or 90d, belongs there",
            context,
            option,
        )
    return timedelta(seconds=found)


def _where(command: _Command) -> _Command:
    """The options that say which service's tokens, and in which form to tell."""
    options = (
        click.option(
            "--data",
            type=click.Path(path_type=Path),
            help="The service's data folder.  [default: as the settings say, else ./data]",
        ),
        click.option(
            "--config",
            type=click.Path(path_type=Path),
            help="The service's settings file, which names its data folder.",
        ),
        click.option("--json", "as_json", is_flag=True, help="JSON instead of a table."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group()
def token() -> None:
    """Tokens: who may connect to the service over TCP.

    \b
    merq token new billing --expires 90d --output billing.token
    merq token list
    merq token revoke billing               effective at once, no restart needed
    """


@token.command()
@click.argument("name")
@click.option(
    "--expires",
    "expires_in",
    metavar="TIME",
    callback=_expiry,
    help="After this time it lets nobody in: 90d, 12h.  [default: never]",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write it to FILE, which is made and which nobody else can read (mode 0600).",
)
@_where
def new(
    name: str,
    *,
    expires_in: timedelta | None,
    output: Path | None,
    data: Path | None,
    config: Path | None,
    as_json: bool,
) -> None:
    """Makes a token called NAME and tells it this once: only its SHA-256 is kept.

    A running service knows it at once. With --output the token is in a file that clients take
    (--token-file, MERQ_TOKEN_FILE); otherwise it is printed. A file that is there is not
    overwritten.

    \b
    merq token new billing --expires 90d --data ./data --output billing.token
    MERQ_TOKEN_FILE=billing.token merq status --url tls://queues.example:1888
    """
    now = datetime.now(UTC)
    expires = None if expires_in is None else now + expires_in
    folder = _folder(data, config)
    if output is None:
        text, made = new_token(folder, name, now=now, expires=expires)
    else:
        with _new_file(output) as file:
            text, made = new_token(folder, name, now=now, expires=expires)
            file.write(f"{text}\n")
    if as_json:
        where = {"token": text} if output is None else {"file": str(output)}
        click.echo(json.dumps({**_as_json(made, now), **where}))
        return
    ends = "does not expire" if made.expires is None else f"expires at {_date(made.expires)}"
    if output is not None:
        click.echo(f"wrote {output}")
        click.echo(f"Token {name} {ends}. Clients take it from MERQ_TOKEN_FILE.", err=True)
        return
    click.echo(text)
    click.echo(
        f"This is the only time that token {name} is shown. It {ends}. "
        "Clients take it from MERQ_TOKEN.",
        err=True,
    )
    if _is_readable_by_others(sys.stdout):
        click.echo(
            "The file that it went to can be read by others, and clients refuse such a file: "
            "`chmod 600` it, or use --output next time.",
            err=True,
        )


@contextmanager
def _new_file(path: Path) -> Iterator[TextIO]:
    """A file for its owner alone; it is gone again if the block fails.

    Raises:
        TokenError: There is one already, or none can be made.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError as wrong:
        raise TokenError(
            f"{path} is there already, and is not overwritten; no token was made. Remove it or "
            "name another file"
        ) from wrong
    except OSError as wrong:
        raise TokenError(f"{path} cannot be made: {wrong.strerror}; no token was made") from wrong
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _is_readable_by_others(stream: TextIO) -> bool:
    """Whether a stream goes to a file that others than its owner can read."""
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError):  # no file of the system's
        return False
    return stat.S_ISREG(found.st_mode) and bool(found.st_mode & OPEN_BITS)


@token.command("list")
@_where
def list_tokens(*, data: Path | None, config: Path | None, as_json: bool) -> None:
    """Lists the tokens there are, without what makes them work.

    \b
    merq token list
    merq token list --json | jq -r '.[] | select(.expired).name'
    """
    now = datetime.now(UTC)
    tokens = load_tokens(_folder(data, config))
    if as_json:
        click.echo(json.dumps([_as_json(each, now) for each in tokens]))
        return
    if not tokens:
        click.echo("There are no tokens; `merq token new NAME` makes one.", err=True)
        return
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for column in ("name", "created", "expires"):
        table.add_column(column)
    for each in tokens:
        expires = Text("never" if each.expires is None else _date(each.expires))
        if each.is_over(now):
            expires = Text(f"{expires} (expired)", style="red")
        table.add_row(each.name, _date(each.created), expires)
    terminal().print(table)


@token.command()
@click.argument("name")
@_where
def revoke(name: str, *, data: Path | None, config: Path | None, as_json: bool) -> None:
    """Forgets the token called NAME: from now on it lets nobody in.

    \b
    merq token revoke billing
    """
    gone = revoke_token(_folder(data, config), name)
    if as_json:
        click.echo(json.dumps({"revoked": gone.name}))
    else:
        click.echo(f"revoked {gone.name}")


def _folder(data: Path | None, config: Path | None) -> Path:
    if data is not None:
        # Other settings may be wrong; a token can be revoked nevertheless.
        return data
    # Settings stand on the whole queue manager; other commands need not load it.
    from merq.service.settings import load_settings  # noqa: PLC0415

    return load_settings(config, {}, os.environ).data


def _as_json(each: Token, now: datetime) -> dict[str, object]:
    return {
        "name": each.name,
        "created": each.created.isoformat(),
        "expires": None if each.expires is None else each.expires.isoformat(),
        "expired": each.is_over(now),
    }


def _date(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
