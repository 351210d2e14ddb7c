"""`merq.connect`: the queue manager that a service runs, as applications use it."""

from __future__ import annotations

from pathlib import Path

from merq.client.dialing import RECONNECT_S, dialing
from merq.client.manager import Manager
from merq.client.remote import RemoteDriver


def connect(
    url: str | None = None,
    *,
    token: str | None = None,
    token_file: str | Path | None = None,
    allow_clear_token: bool = False,
    ca: str | Path | None = None,
    cert: str | Path | None = None,
    key: str | Path | None = None,
    reconnect_s: float = RECONNECT_S,
) -> Manager:
    """Connects to a queue manager that `merq serve` runs; its methods are those of `merq.open`.

    A connection that is lost is made again, and what was asked meanwhile is neither lost nor done
    twice. Transactions, cursors and openings end with their connection.

    Args:
        url: `unix:PATH`, `tcp://HOST:PORT` or `tls://HOST:PORT`; what MERQ_URL says by default, and
            then the socket of a local queue manager.
        token: Who the client is, for TCP; what MERQ_TOKEN says by default.
        token_file: The file that it is in, which only you and its group can read; MERQ_TOKEN_FILE.
        allow_clear_token: The token may travel in clear, by `tcp://`, to another computer: whoever
            is on the way can read and use it.
        ca: The certificate of the authority to trust, for TLS; MERQ_CA, or the system's.
        cert: The client's certificate, where the queue manager wants one; MERQ_CLIENT_CERT.
        key: Its key; MERQ_CLIENT_KEY.
        reconnect_s: For how long a lost connection is tried to be made again.

    Raises:
        MessageQueueError: Nobody answers there, or does not let this client in.
    """
    how = dialing(
        url,
        token=token,
        token_file=token_file,
        allow_clear_token=allow_clear_token,
        ca=ca,
        cert=cert,
        key=key,
        reconnect_s=reconnect_s,
    )
    return Manager(RemoteDriver(how))
