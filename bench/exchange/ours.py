r"""From one of our queue managers to another, measured by their own asyncio client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from typing import Any

from bench.exchange.figures import (
    BATCH,
    BODY,
    LOOKING_S,
    SILENCE_S_MAX,
    WINDOW,
    Amount,
    Figures,
    Kind,
    Measure,
    Missing,
)
from bench.exchange.processes import cpu_s, stopped
from bench.exchange.relay import Relay
from bench.exchange.sites import (
    BEHIND,
    LOCAL,
    NARROW,
    ORDERED,
    PLAIN,
    RECEIVER,
    RELAY,
    SENDER,
    Site,
)

from merq import aio

WARMING = 500
"""Messages that go first, so that sessions are open and code is warm."""

WAITING_S = 0.002
"""So long before a message is sent, somebody begins to wait for it."""

FIRST_SINGLES = 10
"""The first ones open sessions, and do not count."""

SETTLING_S = 0.02
"""Between two looks whether the sender has forgotten what has arrived."""


def measured(sites: Mapping[str, Mapping[str, Any]], amount: Amount) -> Figures:
    """All figures of one build, once."""
    factory = import_module("uvloop").new_event_loop if find_spec("uvloop") else None
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(_measured({name: Site(**site) for name, site in sites.items()}, amount))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """How messages of a kind get from the sender into a queue.

    Attributes:
        manager: The queue manager that the application sends to.
        name: The queue's format name.
        queue: The queue, at its own queue manager.
        processes: Of the sender and of the receiver.
    """

    kind: Kind
    manager: aio.Manager
    name: str
    queue: aio.Queue
    processes: tuple[int, int]

    async def send(self, bodies: list[bytes]) -> None:
        """Sends some messages, in one transaction if they are transactional."""
        if self.kind is Kind.TRANSACTIONAL:
            async with self.manager.transaction() as tx:
                await send_many(self.manager, self.name, bodies, tx=tx)
        else:
            recoverable = self.kind is Kind.RECOVERABLE
            await send_many(self.manager, self.name, bodies, recoverable=recoverable)


async def send_many(
    manager: aio.Manager, format_name: str, bodies: list[bytes], **how: Any
) -> None:
    """Many messages by one call, if the client has one for it."""
    if hasattr(manager, "send_many"):
        await manager.send_many(format_name, bodies, **how)
    else:
        await asyncio.gather(*(manager.send(format_name, body, **how) for body in bodies))


async def _measured(sites: Mapping[str, Site], amount: Amount) -> Figures:
    found = Figures()
    sender = sites[SENDER]
    async with AsyncExitStack() as stack:
        managers = {
            name: await stack.enter_async_context(await aio.connect(site.url))
            for name, site in sites.items()
            if site.url
        }
        local = await managers[SENDER].queue(LOCAL)
        local_rates = []
        for kind in Kind:
            # Beside each kind once: what others do on the machine changes within a round.
            local_rates.append(await _local_rate(local, amount.messages))

            async def way(name: str, host: str = "", kind: Kind = kind) -> _Way:
                path = ORDERED if kind is Kind.TRANSACTIONAL else PLAIN
                return _Way(
                    kind=kind,
                    manager=managers[SENDER],
                    name=f"DIRECT=TCP:{host or sites[name].host}{path.removeprefix('.')}",
                    queue=await managers[name].queue(path),
                    processes=(sender.process, sites[name].process),
                )

            wide = await way(RECEIVER)
            await _rates(found, wide, amount.messages)
            rate, _ = await _end_to_end(await way(NARROW), amount.messages)
            found.put(kind, Measure.NARROW, rate)
            found.put(kind, Measure.TRANSFER, await _transfer(wide, amount.messages))
            relayed = await way(RECEIVER, sites[RELAY].host)
            near, far, behind = (sites[name].host for name in (RELAY, RECEIVER, BEHIND))
            async with Relay(near, far, behind) as relay:
                await _bytes(found, relayed, relay, amount.relayed)
        found.put(Kind.RECOVERABLE, Measure.LOCAL, median(local_rates))
        for kind in (Kind.EXPRESS, Kind.RECOVERABLE):
            await _latencies(found, kind, sites, managers, amount.singles)
    return found


async def _local_rate(queue: aio.Queue, count: int) -> float:
    """Recoverable messages a second to a local queue, each on disk."""

    async def send(bodies: list[bytes]) -> None:
        await queue.send_many(bodies, recoverable=True)

    await _send_all(send, WARMING)
    start = time.perf_counter()
    await _send_all(send, count)
    rate = count / (time.perf_counter() - start)
    await queue.purge()
    return rate


async def _rates(found: Figures, way: _Way, count: int) -> None:
    """The rate, and the CPU time of both sides until the sender has forgotten the messages."""
    rate, cpu = await _end_to_end(way, count)
    found.put(way.kind, Measure.RATE, rate)
    for measure, seconds in zip((Measure.SENDER_CPU, Measure.RECEIVER_CPU), cpu, strict=True):
        found.put(way.kind, measure, 1e6 * seconds / count)


async def _end_to_end(way: _Way, count: int) -> tuple[float, list[float]]:
    """Messages a second from the application into the other's queue, and the CPU time of both."""
    await _arrive(way, WARMING)
    before = [cpu_s(process) for process in way.processes]
    start = time.perf_counter()
    await _arrive(way, count)
    rate = count / (time.perf_counter() - start)
    await _settle(way)
    cpu = [cpu_s(process) - was for process, was in zip(way.processes, before, strict=True)]
    await way.queue.purge()
    return rate, cpu


async def _transfer(way: _Way, count: int) -> float:
    """Messages a second that waited at the sender while the receiver stood still."""
    arrived = (await way.queue.report()).arrived
    with stopped(way.processes[1]):
        await _send_all(way.send, count)
    start = time.perf_counter()
    await _wait(way.queue, arrived + count)
    rate = count / (time.perf_counter() - start)
    await _settle(way)
    await way.queue.purge()
    return rate


async def _bytes(found: Figures, way: _Way, relay: Relay, count: int) -> None:
    """Bytes of a message and of what is said about it, in a session that is open."""
    await _arrive(way, WARMING)
    await _settle(way)
    there, back = relay.there, relay.back
    await _arrive(way, count)
    await _settle(way)
    found.put(way.kind, Measure.THERE, (relay.there - there) / count)
    found.put(way.kind, Measure.BACK, (relay.back - back) / count)
    await way.queue.purge()


async def _latencies(
    found: Figures,
    kind: Kind,
    sites: Mapping[str, Site],
    managers: Mapping[str, aio.Manager],
    count: int,
) -> None:
    """From the call of one application until another, which waits, has the message."""
    recoverable = kind is Kind.RECOVERABLE
    manager, host = managers[SENDER], sites[RECEIVER].host
    there = await managers[RECEIVER].queue(PLAIN)
    # Another application waits, on a connection of its own.
    async with await aio.connect(sites[SENDER].url) as other:
        here = await other.queue(LOCAL)
        ways = {
            (Measure.LOCAL_P50, Measure.LOCAL_P99): (f"DIRECT=OS:.{LOCAL.removeprefix('.')}", here),
            (Measure.HOP_P50, Measure.HOP_P99): (
                f"DIRECT=TCP:{host}{PLAIN.removeprefix('.')}",
                there,
            ),
            (Measure.CHAIN_P50, Measure.CHAIN_P99): (
                f"PRIVATE={sites[RECEIVER].guid}\\{there.number:08x}",
                there,
            ),
        }
        took: dict[tuple[Measure, Measure], list[float]] = {pair: [] for pair in ways}
        # One by each way in turn: what others do on the machine comes and goes.
        for _ in range(count + FIRST_SINGLES):
            for pair, (name, queue) in ways.items():
                send = partial(manager.send, name, BODY, recoverable=recoverable)
                took[pair].append(await _single(send, queue))
    for (p50, p99), series in took.items():
        found.put_latency(kind, p50, p99, series[FIRST_SINGLES:])


async def _single(send: Callable[[], Awaitable[str]], queue: aio.Queue) -> float:
    """How long one message took."""
    waiting = asyncio.ensure_future(queue.receive(timeout=SILENCE_S_MAX))
    await asyncio.sleep(WAITING_S)
    start = time.perf_counter()
    sending = asyncio.ensure_future(send())
    await waiting
    took = time.perf_counter() - start
    await sending
    return took


async def _arrive(way: _Way, count: int) -> None:
    """Sends messages, and waits until they are in the queue."""
    arrived = (await way.queue.report()).arrived
    await _send_all(way.send, count)
    await _wait(way.queue, arrived + count)


async def _send_all(send: Callable[[list[bytes]], Awaitable[None]], count: int) -> None:
    """As many senders as may have something under way, until all is sent."""
    left = count // BATCH

    async def sender() -> None:
        nonlocal left
        while left:
            left -= 1
            await send([BODY] * BATCH)

    await asyncio.gather(*(sender() for _ in range(WINDOW // BATCH)))


async def _wait(queue: aio.Queue, count: int) -> None:
    end = time.perf_counter() + SILENCE_S_MAX
    while (found := (await queue.report()).arrived) < count:
        if time.perf_counter() > end:
            raise Missing(f"{count - found} messages are not there after {SILENCE_S_MAX:.0f} s")
        await asyncio.sleep(LOOKING_S)


async def _settle(way: _Way) -> None:
    """Waits until the sender keeps nothing for that destination any more.

    Not for express messages: as long as the window is wide open, they are acknowledged after ten
    seconds, and cost nothing until then.
    """
    if way.kind is Kind.EXPRESS:
        return
    end = time.perf_counter() + SILENCE_S_MAX
    wanted = way.name.casefold()
    for queue in await way.manager.outgoing_queues():
        if (await queue.destination()).casefold() != wanted:
            continue
        while (kept := await queue.count()) > 0:
            if time.perf_counter() > end:
                raise Missing(f"{kept} messages are not acknowledged: {way.name}")
            await asyncio.sleep(SETTLING_S)
