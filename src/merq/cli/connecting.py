"""Where the queue manager is, by options and environment, and a connection to it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

import merq
from merq.client.addresses import SOCKET
from merq.client.secrets import TYPED_ONE
from merq.errors import MessageQueueError
from merq.hresult import HResult

if TYPE_CHECKING:
    from merq.client.manager import Manager

RECONNECT_S: Final = 5.0
"""For how long a connection that is lost is made again; somebody waits for the command."""

_R = TypeVar("_R")
_FILE: Final = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Where the queue manager is, and how to be let in.

    Attributes:
        url: `unix:PATH`, `tcp://HOST:PORT` or `tls://HOST:PORT`; None is the local service.
        token: What the service asks of remote clients.
        token_file: The file that it is in.
        allow_clear_token: It may travel in clear to another computer.
        ca: The certificates that the service's must be signed by.
        client_cert: The client's own certificate.
        client_key: The key of that.
    """

    url: str | None = None
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    allow_clear_token: bool = False
    ca: Path | None = None
    client_cert: Path | None = None
    client_key: Path | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Connection:
        """From the options that `connection_options` adds."""
        url, data = options.get("url"), options.get("data")
        return cls(
            url=url or (f"unix:{Path(data) / SOCKET}" if data else None),
            token=None if options.get("token_file") else options.get("token"),
            token_file=options.get("token_file"),
            allow_clear_token=bool(options.get("allow_clear_token")),
            ca=options.get("ca"),
            client_cert=options.get("client_cert"),
            client_key=options.get("client_key"),
        )


def connection_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """Adds the options that say where the service is; the command gets them as `connection`."""

    @click.option(
        "--data",
        type=click.Path(path_type=Path),
        envvar="MERQ_DATA",
        metavar="DIR",
        help="The service whose data is in DIR.  [MERQ_DATA]",
    )
    @click.option(
        "--url",
        envvar="MERQ_URL",
        help="unix:PATH, tcp://HOST:PORT or tls://HOST:PORT.  [MERQ_URL]",
    )
    @click.option(
        "--token",
        envvar="MERQ_TOKEN",
        help="Not here, where others see it: MERQ_TOKEN or --token-file.  [MERQ_TOKEN]",
    )
    @click.option(
        "--token-file",
        type=_FILE,
        envvar="MERQ_TOKEN_FILE",
        help="A token, for a service that asks for one, in a file.  [MERQ_TOKEN_FILE]",
    )
    @click.option(
        "--allow-clear-token",
        is_flag=True,
        help="The token may travel in clear to another computer.",
    )
    @click.option("--ca", type=_FILE, help="Certificates to trust, for tls.")
    @click.option("--client-cert", type=_FILE, help="The client's own certificate, for tls.")
    @click.option("--client-key", type=_FILE, help="The key of the client's certificate.")
    @functools.wraps(function)
    def command(*args: Any, **kwargs: Any) -> _R:
        options = {name: kwargs.pop(name) for name in _OPTIONS}
        _settle(click.get_current_context(), options)
        return function(*args, connection=Connection.of(options), **kwargs)

    return command


_OPTIONS: Final = (
    "data",
    "url",
    "token",
    "token_file",
    "allow_clear_token",
    "ca",
    "client_cert",
    "client_key",
)


def _settle(ctx: click.Context, options: dict[str, Any]) -> None:
    """What is typed is meant before what the environment says."""
    typed = {
        name
        for name in ("data", "url")
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    }
    _refuse_typed_token(ctx)
    if typed == {"data", "url"}:
        raise click.UsageError("--data and --url both say where the service is: give one of them")
    if typed == {"data"}:
        options["url"] = None


def _refuse_typed_token(ctx: click.Context) -> None:
    """A token that is typed is in the list of processes and in the shell's history."""
    if ctx.get_parameter_source("token") is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError(TYPED_ONE)


@contextmanager
def connected(connection: Connection) -> Iterator[Manager]:
    """A queue manager, until the block ends.

    Raises:
        MessageQueueError: MQ_ERROR_SERVICE_NOT_AVAILABLE, nobody answers; the text says where.
    """
    with _connect(connection) as manager:
        yield manager


def _connect(connection: Connection) -> Manager:
    try:
        return merq.connect(
            connection.url,
            token=connection.token,
            token_file=connection.token_file,
            allow_clear_token=connection.allow_clear_token,
            ca=connection.ca,
            cert=connection.client_cert,
            key=connection.client_key,
            reconnect_s=RECONNECT_S,
        )
    except MessageQueueError as wrong:
        if wrong.code == HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE and connection.url is not None:
            wrong.add_note(_how_to_start(connection.url))
        raise


def _how_to_start(url: str) -> str:
    if not url.startswith("unix:"):
        return "say where it is with --url or --data DIR"
    folder = Path(url.removeprefix("unix:")).parent
    return f"start it with `merq serve --data {folder}`, or say where it is with --data or --url"
