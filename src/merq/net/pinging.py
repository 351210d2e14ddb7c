"""[MS-MQQB] 2.1.2, 3.1.5.2.2, 3.1.7.6 to 3.1.7.9: ping messages over UDP."""

from __future__ import annotations

import asyncio
import socket
from typing import Any, Final

from merq.errors import WireError
from merq.exchange import Exchange
from merq.net.accepting import cannot_listen
from merq.wire.ping import PING_SIZE, Ping, PingFlags
from merq.wire.reader import Reader

PING_RESPONSE_S: Final = 1.0
"""[MS-MQQB] 3.1.2.9, 3.1.6.8: how long an answer is waited for, always."""


def _parse(data: bytes) -> Ping:
    """A ping; anything else is a WireError."""
    if len(data) != PING_SIZE:
        raise WireError(f"{len(data)} bytes where {PING_SIZE} belong", field="ping")
    return Ping.unpack(Reader(data))


class _Listener(asyncio.DatagramProtocol):
    """Answers who asks."""

    def __init__(self, pinger: Pinger) -> None:
        self._pinger = pinger
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        """It listens."""
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[Any, ...]) -> None:
        """[MS-MQQB] 3.1.7.7: a ping request."""
        answer = self._pinger.answer(data)
        if answer and self._transport is not None:
            self._transport.sendto(answer, addr)


class _Asking(asyncio.DatagramProtocol):
    """Waits for one answer."""

    def __init__(self, request: bytes, cookie: int, answered: asyncio.Future[bool]) -> None:
        self._request = request
        self._cookie = cookie
        self._answered = answered

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        """Asks."""
        transport.sendto(self._request)

    def datagram_received(self, data: bytes, addr: tuple[Any, ...]) -> None:
        """[MS-MQQB] 3.1.7.8: an answer, if it is one to what was asked."""
        del addr
        try:
            found = _parse(data)
        except WireError:
            return
        if found.cookie == self._cookie and not self._answered.done():
            self._answered.set_result(not found.flags.refused)

    def error_received(self, exc: Exception) -> None:
        """Nobody is there."""
        del exc
        if not self._answered.done():
            self._answered.set_result(False)


class Pinger:
    """Asks others whether they would take a session, and tells them."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._cookie = 0
        self._transport: asyncio.DatagramTransport | None = None

    async def listen(self, host: str, port: int) -> None:
        """Begins to answer.

        Raises:
            ListenError: The port cannot be listened on.
        """
        loop = asyncio.get_running_loop()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # Bound here, because not every event loop says why it cannot.
        listener = socket.socket(family, socket.SOCK_DGRAM)
        try:
            listener.setblocking(False)  # noqa: FBT003 - its name
            listener.bind((host, port))
        except OSError as wrong:
            listener.close()
            raise cannot_listen("UDP", host, port, wrong) from wrong
        self._transport, _ = await loop.create_datagram_endpoint(
            lambda: _Listener(self), sock=listener
        )

    def close(self) -> None:
        """Answers no more."""
        if self._transport is not None:
            self._transport.close()

    def answer(self, data: bytes) -> bytes:
        """[MS-MQQB] 3.1.7.7: the answer to a request; nothing if it is none."""
        try:
            asked = _parse(data)
        except WireError:
            return b""
        flags = PingFlags(
            not_server_class=asked.flags.not_server_class, refused=not self._exchange.has_room
        )
        return Ping(flags=flags, cookie=asked.cookie, qm_guid=self._exchange.guid).pack()

    async def ask(self, address: str, port: int) -> bool:
        """[MS-MQQB] 3.1.7.6: whether somebody there would take a session."""
        self._cookie = self._cookie + 1 & 0xFFFFFFFF
        cookie = self._cookie
        request = Ping(flags=PingFlags(), cookie=cookie, qm_guid=self._exchange.guid).pack()
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[bool] = loop.create_future()
        try:
            transport, _ = await loop.create_datagram_endpoint(
                lambda: _Asking(request, cookie, answered), remote_addr=(address, port)
            )
        except OSError:
            return False
        try:
            return await asyncio.wait_for(answered, PING_RESPONSE_S)
        except TimeoutError:
            return False
        finally:
            transport.close()
