"""A real service in the test's event loop, and a proxy that can be cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from merq.aio.driving import AsyncDriver
from merq.aio.manager import Manager
from merq.errors import MessageQueueError
from merq.protocol.application.codec import decode_request
from merq.protocol.application.frames import FRAME_BYTES_MAX, FrameReader, Kind
from merq.protocol.application.requests import Request
from merq.service.daemon import Service
from merq.service.settings import ExchangeSection, ServiceSettings

PATIENCE_S = 30
ORDERS = r".\private$\orders"

_T = TypeVar("_T")


def run(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Runs a test's coroutine; nothing of it is left in the loop when it ends."""

    async def watched() -> _T:
        async with asyncio.timeout(PATIENCE_S):
            result = await coroutine
        for _ in range(3):
            await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks were left: {left}"
        return result

    return asyncio.run(watched())


@asynccontextmanager
async def serving(folder: Path, **settings: Any) -> AsyncIterator[str]:
    """A service with its data there; gives the URL of its socket."""
    chosen = ServiceSettings(data=folder, **settings)
    async with served(chosen):
        yield f"unix:{chosen.socket_path}"


@asynccontextmanager
async def served(settings: ServiceSettings) -> AsyncIterator[Service]:
    # Not all of them can have the one port that queue managers have.
    service = Service(replace(settings, exchange=ExchangeSection(listen=False, offline=True)))
    running = asyncio.create_task(service.run())
    ready = asyncio.create_task(service.wait_until_running())
    await asyncio.wait((running, ready), return_when=asyncio.FIRST_COMPLETED)
    ready.cancel()
    if running.done():
        running.result()
    try:
        yield service
    finally:
        service.stop()
        await running


def driver_of(manager: Manager) -> AsyncDriver:
    return manager._driver


async def until(is_so: Callable[[], bool]) -> None:
    """Returns when something is so."""
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():  # noqa: ASYNC110 - what is looked at knows no events
            await asyncio.sleep(0.002)


async def refused(code: int, asked: Coroutine[Any, Any, object]) -> MessageQueueError:
    with pytest.raises(MessageQueueError) as caught:
        await asked
    assert caught.value.code == code, caught.value
    return caught.value


class Proxy:
    """Stands between clients and a service's socket, and sees what is asked.

    Attributes:
        requests: Everything that clients asked, over all connections.
        is_mute: What the service says does not reach clients.
        is_shut: Nobody is connected any more.
    """

    def __init__(self, path: Path, target: str) -> None:
        self.path = path
        self.target = target.removeprefix("unix:")
        self.requests: list[Request] = []
        self.is_mute = False
        self.is_shut = False
        self.accepted = 0
        self.sides: set[asyncio.Transport] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"unix:{self.path}"

    def asked(self, kind: type[_T]) -> list[_T]:
        return [each for each in self.requests if isinstance(each, kind)]

    def cut(self) -> None:
        for each in list(self.sides):
            each.abort()

    def join(self, side: _Side) -> None:
        if self.is_shut:
            assert side.transport is not None
            side.transport.abort()
            return
        task = asyncio.get_running_loop().create_task(self._join(side))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _join(self, side: _Side) -> None:
        loop = asyncio.get_running_loop()
        try:
            _, other = await loop.create_unix_connection(
                lambda: _Side(self, is_client=False), self.target
            )
        except OSError:
            assert side.transport is not None
            side.transport.abort()
            return
        self.accepted += 1
        side.meet(other)
        other.meet(side)


class _Side(asyncio.Protocol):
    def __init__(self, proxy: Proxy, *, is_client: bool) -> None:
        self._proxy = proxy
        self._is_client = is_client
        self._reader = FrameReader(FRAME_BYTES_MAX)
        self._other: _Side | None = None
        self._early: list[bytes] = []
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._proxy.sides.add(self.transport)
        if self._is_client:
            self._proxy.join(self)

    def meet(self, other: _Side) -> None:
        self._other = other
        for data in self._early:
            self.data_received(data)

    def data_received(self, data: bytes) -> None:
        if self._other is None or self._other.transport is None:
            self._early.append(data)
            return
        if self._is_client:
            self._reader.feed(data)
            while (found := self._reader.next()) is not None:
                if found.kind != Kind.HELLO:
                    self._proxy.requests.append(decode_request(found))
        elif self._proxy.is_mute:
            return
        self._other.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        assert self.transport is not None
        self._proxy.sides.discard(self.transport)
        if self._other is not None and self._other.transport is not None:
            self._other.transport.abort()


@asynccontextmanager
async def proxied(folder: Path, target: str) -> AsyncIterator[Proxy]:
    """A proxy in front of a service."""
    proxy = Proxy(folder / "p.sock", target)
    loop = asyncio.get_running_loop()
    server = await loop.create_unix_server(lambda: _Side(proxy, is_client=True), proxy.path)
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut()
        await until(lambda: not proxy.sides)
        await server.wait_closed()
