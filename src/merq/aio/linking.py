"""One connection to a queue manager: bytes, and whether the socket takes more."""

from __future__ import annotations

import asyncio
import socket
from typing import Final, Protocol, cast

from merq.client.dialing import CONNECT_S, Dialing, check_path, keep_alive

UNWRITTEN_BYTES_HIGH: Final = 1 << 20
"""When so much waits for the socket, nothing more is written until half of it is gone."""

TLS_CLOSING_S: Final = 1.0
"""How long the other side has to say goodbye in TLS."""


class Linked(Protocol):
    """Who uses a connection."""

    def received(self, link: Link, data: bytes) -> None:
        """Bytes came."""

    def writable(self) -> None:
        """The socket takes more."""

    def lost(self, link: Link) -> None:
        """The connection is gone."""


class Link(asyncio.Protocol):
    """A connection.

    Attributes:
        greeted: Done when the server has said welcome, or will not.
        is_paused: The socket takes no more for now.
    """

    def __init__(self, user: Linked) -> None:
        self._user = user
        self._transport: asyncio.Transport | None = None
        loop = asyncio.get_running_loop()
        self.greeted: asyncio.Future[None] = loop.create_future()
        self._gone: asyncio.Future[None] = loop.create_future()
        self.is_paused = False

    def greet(self) -> None:
        """It is known whether the server lets us in."""
        if not self.greeted.done():
            self.greeted.set_result(None)

    def write(self, data: bytes) -> None:
        """Writes, or begins to."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def abort(self) -> None:
        """Ends the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    async def close(self, patience_s: float) -> None:
        """Ends the connection once everything is written, or when patience is."""
        if self._transport is None:
            return
        self._transport.close()
        await asyncio.wait((self._gone,), timeout=patience_s)
        if not self._gone.done():
            self._transport.abort()
            await asyncio.wait((self._gone,), timeout=patience_s)

    # What the loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is there."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(
            high=UNWRITTEN_BYTES_HIGH, low=UNWRITTEN_BYTES_HIGH // 2
        )

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        self._user.received(self, data)

    def pause_writing(self) -> None:
        """Too much waits for the socket."""
        self.is_paused = True

    def resume_writing(self) -> None:
        """The socket takes more."""
        self.is_paused = False
        self._user.writable()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        del exc
        self.is_paused = False
        if not self._gone.done():
            self._gone.set_result(None)
        self._user.lost(self)


async def dial(how: Dialing, link: Link) -> None:
    """One attempt to connect.

    Raises:
        OSError: Nobody is there.
        ssl.SSLError: Whoever is there is not to be trusted.
        MessageQueueError: The address cannot be used.
    """
    loop, address = asyncio.get_running_loop(), how.address
    if address.path:
        check_path(address.path)
        await loop.create_unix_connection(lambda: link, address.path)
        return
    tls = how.context
    transport, _ = await loop.create_connection(
        lambda: link,
        address.host,
        address.port,
        ssl=tls,
        server_hostname=None if tls is None else address.host,
        ssl_handshake_timeout=None if tls is None else CONNECT_S,
        ssl_shutdown_timeout=None if tls is None else TLS_CLOSING_S,
    )
    keep_alive(cast("socket.socket", transport.get_extra_info("socket")))
