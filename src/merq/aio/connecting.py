"""`merq.aio.connect`: the queue manager that a service runs, in an event loop."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from types import TracebackType
from typing import Any

from merq.aio.driving import AsyncDriver
from merq.aio.manager import Manager
from merq.client.dialing import RECONNECT_S, Dialing, dialing


class Connecting:
    """A connection that is about to be made: await it, or use it in an `async with` block."""

    def __init__(self, how: Dialing) -> None:
        self._how = how
        self._manager: Manager | None = None

    def __await__(self) -> Generator[Any, None, Manager]:
        return self._connect().__await__()

    async def _connect(self) -> Manager:
        driver = AsyncDriver(self._how)
        await driver.reach()
        return Manager(driver)

    async def __aenter__(self) -> Manager:
        self._manager = await self._connect()
        return self._manager

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._manager is not None, "a block that ends has begun"
        await self._manager.close()


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
) -> Connecting:
    """Connects to a queue manager that `merq serve` runs, from an event loop.

    `async with merq.aio.connect() as mq` and `mq = await merq.aio.connect()` both do. What is given
    means what it means to `merq.connect`; so do lost connections, which are made again.

    Raises:
        MessageQueueError: Nobody answers there, or does not let this client in.
    """
    return Connecting(
        dialing(
            url,
            token=token,
            token_file=token_file,
            allow_clear_token=allow_clear_token,
            ca=ca,
            cert=cert,
            key=key,
            reconnect_s=reconnect_s,
        )
    )
