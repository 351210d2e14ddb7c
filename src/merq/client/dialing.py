"""How a client reaches a queue manager: addresses, secrets, and patience."""

from __future__ import annotations

import os
import socket
import ssl
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from merq.client.addresses import Address, find_address
from merq.client.arguments import of_kind
from merq.client.channels import Channel, TlsChannel
from merq.client.secrets import check_clear, find_token
from merq.client.security import client_context
from merq.errors import MessageQueueError
from merq.hresult import HResult

CONNECT_S: Final = 10.0
"""How long one attempt to connect may take, the greeting included."""

RECONNECT_S: Final = 30.0
"""For how long a lost connection is tried to be made again before those who wait are told."""

FIRST_PAUSE_S: Final = 0.02
LAST_PAUSE_S: Final = 1.0
"""Pauses between attempts: each twice the one before, from the first to the last of these."""

PAUSE_DOUBLINGS_MAX: Final = 10
"""After so many pauses the last one is reached."""

KEEPALIVE_S: Final = 30
"""A TCP connection over which nothing goes is looked at after so many seconds."""

PATH_BYTES_MAX: Final = 107
"""The longest path that the file of a socket can have."""


_UNKNOWN_AUTHORITY: Final = (
    "name the file with the certificate of its authority: MERQ_CA, --ca or ca="
)
_CERTIFICATE_ADVICE: Final = {
    10: "it needs a new certificate, or the clock here is wrong",
    18: _UNKNOWN_AUTHORITY,
    19: _UNKNOWN_AUTHORITY,
    20: _UNKNOWN_AUTHORITY,
    21: _UNKNOWN_AUTHORITY,
    62: "connect by a name that its certificate has (subjectAltName)",
    64: "connect by an address that its certificate has (subjectAltName)",
}
"""What to do about a certificate, by OpenSSL's X509_V_ERR_* codes."""

_NO_TLS: Final = "if no TLS is spoken there, is it the right port, or should it be tcp://?"
_TLS_ADVICE: Final = {"WRONG_VERSION_NUMBER": _NO_TLS, "RECORD_LAYER_FAILURE": _NO_TLS}
"""What to do about a handshake, by OpenSSL's reasons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialing:
    """Where to connect to, as whom, and how long to try.

    Attributes:
        token: Who the client is, for a queue manager that asks; never shown.
        reconnect_s: For how long a lost connection is tried to be made again.
    """

    address: Address
    token: str = field(default="", repr=False)
    context: ssl.SSLContext | None = None
    reconnect_s: float = RECONNECT_S


def dialing(
    url: str | None = None,
    *,
    token: str | None = None,
    token_file: str | Path | None = None,
    allow_clear_token: bool = False,
    ca: str | Path | None = None,
    cert: str | Path | None = None,
    key: str | Path | None = None,
    reconnect_s: float = RECONNECT_S,
) -> Dialing:
    """What was given, and what the environment says where nothing was.

    Raises:
        MessageQueueError: The address is none, or the token must not go there.
        CertificateError: A file cannot be used.
    """
    address = find_address(None if url is None else of_kind("url", url, str))
    files = [
        None if path is None else Path(path)
        for path in (
            ca or os.environ.get("MERQ_CA") or None,
            cert or os.environ.get("MERQ_CLIENT_CERT") or None,
            key or os.environ.get("MERQ_CLIENT_KEY") or None,
        )
    ]
    if token is not None:
        of_kind("token", token, str)
    secret = find_token(token, token_file, os.environ)
    check_clear(address, secret, os.environ, is_allowed=allow_clear_token)
    return Dialing(
        address=address,
        token=secret,
        context=client_context(*files) if address.tls else None,
        reconnect_s=reconnect_s,
    )


def dial(how: Dialing) -> Channel:
    """One attempt to connect.

    Raises:
        OSError: Nobody is there.
        MessageQueueError: Whoever is there is not to be trusted, or the address cannot be used.
    """
    address = how.address
    if address.path:
        return Channel(_dial_local(address.path))
    plain = socket.create_connection((address.host, address.port), timeout=CONNECT_S)
    try:
        keep_alive(plain)
        if how.context is None:
            return Channel(plain)
        return TlsChannel(plain, how.context, address.host)
    except ssl.SSLError as wrong:
        plain.close()
        raise not_trusted(address, wrong) from wrong
    except BaseException:
        plain.close()
        raise


def pause_after(breaks: int) -> float:
    """How long to wait before the next connection, after so many that broke, in seconds."""
    if not breaks:
        return 0.0
    return min(FIRST_PAUSE_S * 2.0 ** min(breaks, PAUSE_DOUBLINGS_MAX), LAST_PAUSE_S)


def not_trusted(address: Address, wrong: ssl.SSLError) -> MessageQueueError:
    """What a failed TLS handshake means to a client."""
    advice = _TLS_ADVICE.get(wrong.reason or "", "")
    if isinstance(wrong, ssl.SSLCertVerificationError):
        advice = _CERTIFICATE_ADVICE.get(wrong.verify_code, "")
    return MessageQueueError(
        HResult.MQ_ERROR_ACCESS_DENIED,
        f"no trusted connection to {address}: {wrong}" + (f"; {advice}" if advice else ""),
    )


def not_let_in(how: Dialing, wrong: OSError) -> MessageQueueError:
    """What it means that the connection ends before the welcome.

    In TLS 1.3 a server looks at the client's certificate after the client is done with its part.
    """
    if how.address.path:
        return not_available(how, wrong)
    if how.context is None:
        return MessageQueueError(
            HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE,
            f"{how.address} ended the connection before it said who it is ({wrong}): if TLS is "
            f"served there, connect with tls://; if not, is it the port for applications "
            "(tcp.port) of `merq serve`?",
        )
    return MessageQueueError(
        HResult.MQ_ERROR_ACCESS_DENIED,
        f"{how.address} ended the TLS connection before it said who it is ({wrong}): it may want "
        "a client certificate, or another one; its log says why",
    )


def denied(how: Dialing, wrong: MessageQueueError) -> MessageQueueError:
    """What it means that the queue manager refuses this client, which it does not explain."""
    if how.address.path:
        return wrong
    return MessageQueueError(
        wrong.code,
        f"{wrong.text}. Over TCP it takes tokens that it knows (`merq token list` there), neither "
        "revoked nor expired: name the file with one by MERQ_TOKEN_FILE, --token-file or "
        "token_file=",
    )


def not_available(how: Dialing, wrong: BaseException) -> MessageQueueError:
    """What it means that nobody answers."""
    if how.address.path and isinstance(wrong, PermissionError):
        return MessageQueueError(
            HResult.MQ_ERROR_ACCESS_DENIED,
            f"{how.address} is closed to user {os.geteuid()} ({wrong.strerror}"
            f"{_owner_of(how.address.path)}): run this as the user who runs `merq serve`, or let "
            'a group in there: socket.mode = "0660", and a socket.path in a folder of that group',
        )
    is_cut_off = isinstance(wrong, ConnectionError) and not isinstance(
        wrong, ConnectionRefusedError
    )
    advice = "is `merq serve` running?"
    if how.context is not None and is_cut_off:
        advice = _NO_TLS
    return MessageQueueError(
        HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE,
        f"no queue manager answers at {how.address} ({wrong}): {advice}",
    )


def _owner_of(path: str) -> str:
    """Whose a socket is and who may use it, as far as that can be seen."""
    try:
        found = Path(path).stat()
    except OSError:
        return ""
    mode = stat.S_IMODE(found.st_mode)
    return f"; it is user {found.st_uid}'s, of group {found.st_gid}, with the mode {mode:04o}"


def _dial_local(path: str) -> socket.socket:
    check_path(path)
    local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        local.settimeout(CONNECT_S)
        local.connect(path)
    except BaseException:
        local.close()
        raise
    return local


def check_path(path: str) -> None:
    """Refuses a path that no socket's file can have.

    Raises:
        MessageQueueError: It is too long.
    """
    if len(os.fsencode(path)) > PATH_BYTES_MAX:
        raise MessageQueueError(
            HResult.MQ_ERROR_INVALID_PARAMETER,
            f"{path} is longer than the {PATH_BYTES_MAX} bytes that the path of a socket may have",
        )


def keep_alive(plain: socket.socket) -> None:
    """A peer that is gone without a word is noticed, and small frames go out at once."""
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", KEEPALIVE_S), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        option = getattr(socket, name, None)  # not every system has them
        if option is not None:
            plain.setsockopt(socket.IPPROTO_TCP, option, value)
