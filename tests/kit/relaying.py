"""A wire between two queue managers that can be cut, in a thread of its own.

It has two addresses: one is where the first queue manager finds the second, the other is where the
second finds the first. So both may connect, and each sees the other always at the same address.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Final, Self, cast

PORT: Final = 1801
"""[MS-MQQB] 1.9: where queue managers listen."""

PATIENCE_S: Final = 20.0
"""Nothing here takes longer."""

HIGH_BYTES: Final = 1 << 20
"""What may be on the wire one way before nothing more is read."""


class _End(asyncio.Protocol):
    """One end of a connection; what comes here goes out at the other."""

    def __init__(self, wire: Wire, target: str, source: str, other: _End | None = None) -> None:
        self._wire = wire
        self._target = target
        self._source = source
        self._other = other
        self._early: list[bytes] = []
        self._dialing: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(high=HIGH_BYTES)
        self._wire.ends.add(self)
        if self._other is None:
            self._wire.connections += 1
            self._dialing = asyncio.get_running_loop().create_task(self._dial())

    async def _dial(self) -> None:
        other = _End(self._wire, self._target, self._source, self)
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(
                lambda: other, self._target, PORT, local_addr=(self._source, 0)
            )
        except OSError:
            self.hang_up()
            return
        self._other = other
        if self.transport is None:
            other.hang_up()
        for data in self._early:
            other.say(data)

    def data_received(self, data: bytes) -> None:
        self._wire.carried_bytes += len(data)
        if self._wire.is_dead:
            return
        if self._other is None:
            self._early.append(data)
        else:
            self._other.say(data)

    def say(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def pause_writing(self) -> None:
        if self._other is not None and self._other.transport is not None:
            self._other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self._other is not None and self._other.transport is not None:
            self._other.transport.resume_reading()

    def hang_up(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.transport = None
        self._wire.ends.discard(self)
        if self._other is not None and self._other.transport is not None:
            self._other.transport.close()


class Wire:
    """Carries connections between two queue managers.

    Args:
        first: The address of one queue manager.
        second: The address of the other.
        second_seen: Where the first finds the second.
        first_seen: Where the second finds the first.

    Attributes:
        connections: Those that were made so far.
        carried_bytes: What came, both ways.
        is_dead: Connections stay, and nothing arrives.
    """

    def __init__(self, first: str, second: str, *, second_seen: str, first_seen: str) -> None:
        self._ways = ((second_seen, second, first_seen), (first_seen, first, second_seen))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="wire")
        self._servers: list[asyncio.Server] = []
        self.ends: set[_End] = set()
        self.connections = 0
        self.carried_bytes = 0
        self.is_dead = False

    def __enter__(self) -> Self:
        self._thread.start()
        self.mend()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.sever()
        self._do(self._end)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    def _do(self, doing: Callable[[], Any]) -> None:
        """Lets the wire's own thread do something, and waits for it."""
        done: Future[None] = asyncio.run_coroutine_threadsafe(doing(), self._loop)
        done.result(PATIENCE_S)

    def mend(self) -> None:
        """Connections can be made, if they could not."""
        self.is_dead = False
        self._do(self._listen)

    def cut(self) -> None:
        """Ends the connections that there are; others can be made."""
        self._do(self._cut)

    def sever(self) -> None:
        """Ends the connections that there are; none can be made until it is mended."""
        self._do(self._sever)

    async def _listen(self) -> None:
        if self._servers:
            return
        for place, target, source in self._ways:

            def accepted(target: str = target, source: str = source) -> _End:
                return _End(self, target, source)

            self._servers.append(await self._loop.create_server(accepted, place, PORT))

    async def _cut(self) -> None:
        for end in list(self.ends):
            end.hang_up()

    async def _sever(self) -> None:
        servers, self._servers = self._servers, []
        for server in servers:
            server.close()
        await self._cut()
        for server in servers:
            await server.wait_closed()

    async def _end(self) -> None:
        """Nothing of it is left."""
        own = asyncio.current_task()
        others = [each for each in asyncio.all_tasks() if each is not own]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0)
        await self._cut()
        await asyncio.sleep(0)
