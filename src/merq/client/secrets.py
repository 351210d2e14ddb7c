"""A client's token: where it comes from, and where it must not go."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from merq.client.addresses import Address
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.protocol.application.greeting import TOKEN_CHARACTERS_MAX

CLEAR_TOKEN_VARIABLE: Final = "MERQ_ALLOW_CLEAR_TOKEN"  # noqa: S105 - a name
"""If it is 1, a token may travel in clear to another computer."""

TYPED_ONE: Final = (
    "--token shows the token to everybody on this computer: give it by the variable MERQ_TOKEN or "
    "in a file, by MERQ_TOKEN_FILE; and replace this one (`merq token revoke`, `merq token new`)"
)
"""Why a token that is typed is refused: it is in the list of processes, and in a history."""

OPEN_BITS: Final = 0o037
"""Permissions that a file with a token must not give: its group may read it, nobody else."""


def find_token(
    token: str | None, token_file: str | Path | None, environment: Mapping[str, str]
) -> str:
    """The token that is meant: what was given, or what the environment says; empty if none is.

    Raises:
        MessageQueueError: The file with it cannot be used.
    """
    if token is not None and token_file is not None:
        raise _refused("token and token_file are both given: give one of them")
    if token is not None:
        return token
    if token_file is not None:
        return read_token_file(Path(token_file))
    if "MERQ_TOKEN" in environment:
        return environment["MERQ_TOKEN"]
    named = environment.get("MERQ_TOKEN_FILE")
    return read_token_file(Path(named)) if named else ""


def read_token_file(path: Path) -> str:
    """The token in a file that nobody else can read or change.

    Raises:
        MessageQueueError: It cannot be read, is somebody else's, or is open to others.
    """
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            data = file.read(TOKEN_CHARACTERS_MAX + 2)
    except OSError as wrong:
        raise _refused(f"the token file {path} cannot be read: {wrong.strerror}") from wrong
    if os.name == "posix" and not stat.S_ISREG(found.st_mode):
        raise _refused(f"{path} is no file: a token is in a file of its own")
    if os.name == "posix" and found.st_uid not in {os.geteuid(), 0}:
        raise _refused(
            f"the token file {path} belongs to user {found.st_uid}, who could change it; it has to "
            f"be yours or root's"
        )
    if os.name == "posix" and found.st_mode & OPEN_BITS:
        raise _refused(
            f"the token file {path} has the mode {stat.S_IMODE(found.st_mode):04o}: others can "
            f"read or change it; `chmod 600 {path}`, and have the token replaced if they may have"
        )
    text = data.decode("utf-8", "replace").strip()
    if not text or len(text) > TOKEN_CHARACTERS_MAX:
        raise _refused(
            f"the token file {path} has {'more' if text else 'less'} in it than a token, which has "
            f"from 1 to {TOKEN_CHARACTERS_MAX} characters"
        )
    return text


def check_clear(
    address: Address, token: str, environment: Mapping[str, str], *, is_allowed: bool
) -> None:
    """Refuses to send a token in clear to another computer.

    Raises:
        MessageQueueError: The text says how it can be sent.
    """
    if not token or address.path or address.tls or _is_here(address.host):
        return
    if is_allowed or environment.get(CLEAR_TOKEN_VARIABLE) == "1":
        return
    raise MessageQueueError(
        HResult.MQ_ERROR_ACCESS_DENIED,
        f"the token would travel in clear to {address}, and whoever is on the way could use it: "
        f"connect with tls://. Where the network itself is safe, allow_clear_token=True, "
        f"--allow-clear-token or {CLEAR_TOKEN_VARIABLE}=1 sends it all the same",
    )


def _is_here(host: str) -> bool:
    """Whether a host is this computer by its very name: what a resolver says proves nothing."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _refused(text: str) -> MessageQueueError:
    return MessageQueueError(HResult.MQ_ERROR_INVALID_PARAMETER, text)
