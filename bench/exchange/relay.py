"""A relay that counts: the sender connects to it, it connects to the receiver, bytes pass."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from merq.protocol.binary.settings import STANDARD_PORT

READ_BYTES = 1 << 18


class Relay:
    """Passes on what comes, both ways, as long as its `async with` block lasts.

    Args:
        host: Where it listens.
        target: Where it connects to for each that comes.
        source: The address that it connects from: what the target takes for the sender's.
        port: The port, here and there.

    Attributes:
        there: Bytes that went from who connected to the target.
        back: Bytes that went the other way.
    """

    def __init__(self, host: str, target: str, source: str, port: int = STANDARD_PORT) -> None:
        self.there = self.back = 0
        self._source = source
        self._host = host
        self._target = target
        self._port = port
        self._server: asyncio.Server | None = None
        self._passing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, self._host, self._port)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None, "entered before it is left"
        self._server.close()
        for each in self._passing:
            each.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        passing = asyncio.get_running_loop().create_task(self._pass(reader, writer))
        self._passing.add(passing)
        passing.add_done_callback(self._passing.discard)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, target = await asyncio.open_connection(
            self._target, self._port, local_addr=(self._source, 0)
        )
        try:
            async with asyncio.TaskGroup() as ways:
                ways.create_task(self._there(reader, target))
                ways.create_task(self._back(answers, writer))
        finally:
            target.close()
            writer.close()

    async def _there(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(READ_BYTES):
            self.there += len(data)
            writer.write(data)
            await writer.drain()
        writer.close()

    async def _back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(READ_BYTES):
            self.back += len(data)
            writer.write(data)
            await writer.drain()
        writer.close()
