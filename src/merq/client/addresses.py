"""Where a queue manager is found: `unix:PATH`, `tcp://HOST:PORT`, `tls://HOST:PORT`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from merq.errors import MessageQueueError
from merq.hresult import HResult

SOCKET: Final = "merq.sock"
"""The socket's file in the folder of a queue manager."""

FOLDERS: Final = ("data", "/var/lib/merq")
"""Where a local queue manager's folder is looked for, after what MERQ_DATA says."""

DEFAULT_PORT: Final = 1888
"""The TCP port for applications, where none is given."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a queue manager is: a socket's file, or a host and port, with TLS or without."""

    path: str = ""
    host: str = ""
    port: int = 0
    tls: bool = False

    def __str__(self) -> str:
        if self.path:
            return f"unix:{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'tls' if self.tls else 'tcp'}://{host}:{self.port}"


def find_address(url: str | None, environment: Mapping[str, str] | None = None) -> Address:
    """The address that is meant: what was given, what MERQ_URL says, or the local socket.

    Raises:
        MessageQueueError: It is none; the text says what one looks like.
    """
    environment = os.environ if environment is None else environment
    given = url if url is not None else environment.get("MERQ_URL")
    if given:
        return parse_address(given)
    folders = [environment["MERQ_DATA"]] if environment.get("MERQ_DATA") else list(FOLDERS)
    for folder in folders:
        if (Path(folder) / SOCKET).exists():
            return Address(path=str(Path(folder) / SOCKET))
    looked = ", ".join(str(Path(folder) / SOCKET) for folder in folders)
    raise MessageQueueError(
        HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE,
        f"no queue manager was found at {looked}: start one with `merq serve --data ./data`, or "
        "say where it is with a URL or MERQ_URL",
    )


def parse_address(url: str) -> Address:
    """An address out of text.

    Raises:
        MessageQueueError: It is none.
    """
    scheme, _, rest = url.partition(":")
    if scheme == "unix" and rest:
        return Address(path=rest.removeprefix("//"))
    if scheme not in {"tcp", "tls"}:
        raise _wrong(url, "it begins with none of unix:, tcp:// and tls://")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        # What it says may be what was mistaken for a port.
        raise _wrong(url, "its host cannot be read, or its port is none from 0 to 65535") from None
    more = parts.path.strip("/") or parts.query or parts.fragment
    if not host or not rest.startswith("//") or more:
        raise _wrong(url, "a host and a port belong there, and nothing else")
    if parts.username is not None or parts.password is not None:
        raise _wrong(url, "a token is given apart, by `token` or MERQ_TOKEN, not in the URL")
    return Address(host=host, port=port or DEFAULT_PORT, tls=scheme == "tls")


def redacted(url: str) -> str:
    """A URL without what may be secret in it: who connects, a password, a query."""
    shown = re.sub(r"merq_[\w-]*", "***", url)  # as every token begins
    shown = re.sub(r"^((?:\w+:)?/*)[^/]*@", r"\1***@", shown)
    return re.sub(r"[?#].*", "?***", shown, flags=re.DOTALL)


def _wrong(url: str, reason: str) -> MessageQueueError:
    return MessageQueueError(
        HResult.MQ_ERROR_INVALID_PARAMETER,
        f"{redacted(url)!r} is no address: {reason}. Give unix:PATH, tcp://HOST:PORT or tls://HOST:PORT",
    )
