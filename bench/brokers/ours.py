r"""`merq serve`, by its own clients: blocking for singles, asyncio for the rest.

Pipelined sends go out in two ways: each with `send`, many of them under way, or by the hundred with
`send_many`, several of those under way.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.brokers.contender import BODY, LARGE_BODY, MESSAGES_MAX, Contender, Load
from bench.brokers.packages import Unavailable
from bench.brokers.running import running
from bench.builds import environment

SMALL, LARGE, EXPRESS = (rf".\private$\{name}" for name in ("small", "large", "express"))
PREFETCH = 1_000
"""Messages that the receiver may have at hand."""


@contextmanager
def serving(folder: Path, build: Path) -> Iterator[str]:
    """The service of one of our builds; gives its URL.

    Raises:
        Unavailable: These sources have no service.
    """
    command = [sys.executable, "-m", "merq", "serve"]
    asked = subprocess.run(
        [*command, "--help"], env=environment(build), check=False, capture_output=True
    )
    if asked.returncode:
        raise Unavailable("merq serve is not in these sources")
    folder.mkdir()
    data = folder / "data"
    listening = data / "merq.sock"
    alone = {**environment(build), "MERQ_EXCHANGE_LISTEN": "false"}
    with running([*command, "--data", str(data)], folder, listening.is_socket, alone):
        yield f"unix:{listening}"


class _Client:
    """Both clients of one service, and its queues."""

    def __init__(self, url: str, *, by_hundred: bool) -> None:
        self._blocking: Any = import_module("merq").connect(url)
        for name in (SMALL, LARGE, EXPRESS):
            self._blocking.create_queue(name)
        self._small = self._blocking.queue(SMALL)
        factory = import_module("uvloop").new_event_loop if find_spec("uvloop") else None
        self._runner = asyncio.Runner(loop_factory=factory)
        self._manager: Any = self._runner.run(_connected(url))
        self._by_hundred = by_hundred

    def send(self) -> None:
        self._small.send(BODY, recoverable=True)

    def pipelined(self, load: Load) -> int:
        name = LARGE if load.body is LARGE_BODY else SMALL
        return self._runner.run(self._send(name, load, recoverable=True))

    def memory(self, load: Load) -> int:
        return self._runner.run(self._send(EXPRESS, load, recoverable=False))

    async def _send(self, name: str, load: Load, *, recoverable: bool) -> int:
        """As many senders as may have something under way, each sending again and again."""
        queue = await self._manager.queue(name)
        end = time.perf_counter() + load.seconds
        sent = 0
        step = load.batch if self._by_hundred else 1
        bodies = [load.body] * step

        async def sender() -> None:
            nonlocal sent
            while sent < MESSAGES_MAX and time.perf_counter() < end:
                sent += step
                if self._by_hundred:
                    await queue.send_many(bodies, recoverable=recoverable)
                else:
                    await queue.send(load.body, recoverable=recoverable)

        await asyncio.gather(*(sender() for _ in range(load.window // step)))
        return sent

    def receive(self, count: int) -> None:
        async def take() -> int:
            took = 0
            queue = await self._manager.queue(SMALL)
            async with queue.receive_all(prefetch=PREFETCH) as messages:
                async for _ in messages:
                    took += 1
                    if took == count:
                        break
            return took

        assert self._runner.run(take()) == count, "messages are missing"

    def close(self) -> None:
        self._runner.run(self._manager.close())
        self._runner.close()
        for name in (SMALL, LARGE, EXPRESS):
            self._blocking.queue(name).delete()
        self._blocking.close()


async def _connected(url: str) -> Any:
    return await import_module("merq.aio").connect(url)


def ways() -> dict[str, Callable[[str], Contender]]:
    """How the clients can send, by what the way is called."""
    return {"": by_one, ", send_many": by_hundred}


def by_one(url: str) -> Contender:
    """Every message by a `send` of its own."""
    return _contender(_Client(url, by_hundred=False))


def by_hundred(url: str) -> Contender:
    """Pipelined messages by `send_many`."""
    return _contender(_Client(url, by_hundred=True))


def _contender(client: _Client) -> Contender:
    return Contender(
        send=client.send,
        pipelined=client.pipelined,
        receive=client.receive,
        memory=client.memory,
        large=client.pipelined,
        close=client.close,
    )
