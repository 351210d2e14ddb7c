"""What every contender can do, how it is measured, and the loop that keeps many sends under way."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

BODY = b"x" * 1024
LARGE_BODY = b"x" * (64 * 1024)

SEND = "durable, one at a time"
SEND_P50 = "durable, one at a time, p50"
PIPELINED = "durable, pipelined"
RECEIVE = "receive and acknowledge"
MEMORY = "memory only, pipelined"
LARGE = "64 KiB durable, pipelined"
RATES = (SEND, PIPELINED, RECEIVE, MEMORY, LARGE)

SINGLES_S = 0.4
PIPELINED_S = 0.5
WARMING_S = 0.1
"""How long each operation is repeated; what is under way then is waited for, and counted."""

SINGLES_MAX = 20_000
MESSAGES_MAX = 300_000
"""No run sends more, however fast it is: the messages wait on disk and in memory."""

WINDOW = 2_000
LARGE_WINDOW = 64
BATCH = 100
LARGE_BATCH = 8
"""Messages under way without a confirmation, and how many are written to the socket together."""

SILENCE_S_MAX = 30.0
"""A broker that says nothing for so long has failed."""

READ_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Load:
    """What to send, for how long, and how much of it may be under way."""

    body: bytes
    seconds: float
    window: int
    batch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A broker with a client. What it has no way for is None.

    Attributes:
        send: Sends a durable message and waits until it is confirmed.
        pipelined: Sends durable messages without waiting for each; gives how many were confirmed.
        receive: Takes so many messages, acknowledges them and waits until that is done.
        memory: As `pipelined`, for messages that need not survive.
        large: As `pipelined`, for large bodies, to a queue of their own.
        close: Removes the queues and leaves.
    """

    send: Callable[[], object] | None = None
    pipelined: Callable[[Load], int] | None = None
    receive: Callable[[int], object] | None = None
    memory: Callable[[Load], int] | None = None
    large: Callable[[Load], int] | None = None
    close: Callable[[], object]


def figures(contender: Contender) -> dict[str, float]:
    """Messages a second by operation, and the usual microseconds of a single send."""
    found: dict[str, float] = {}
    waiting = 0
    if contender.send is not None:
        waiting += len(_singles(contender.send, WARMING_S))
        took = _singles(contender.send, SINGLES_S)
        waiting += len(took)
        found[SEND] = len(took) / sum(took)
        found[SEND_P50] = 1e6 * median(took)
    if contender.pipelined is not None:
        small = Load(BODY, WARMING_S, WINDOW, BATCH)
        waiting += contender.pipelined(small)
        count, found[PIPELINED] = _rate(contender.pipelined, BODY)
        waiting += count
    if contender.receive is not None:
        start = time.perf_counter()
        contender.receive(waiting)
        found[RECEIVE] = waiting / (time.perf_counter() - start)
    if contender.memory is not None:
        contender.memory(Load(BODY, WARMING_S, WINDOW, BATCH))
        _, found[MEMORY] = _rate(contender.memory, BODY)
    if contender.large is not None:
        _, found[LARGE] = _rate(contender.large, LARGE_BODY)
    return found


def _singles(send: Callable[[], object], seconds: float) -> list[float]:
    """How long each send took."""
    took: list[float] = []
    start = time.perf_counter()
    end = start + seconds
    while start < end and len(took) < SINGLES_MAX:
        send()
        now = time.perf_counter()
        took.append(now - start)
        start = now
    return took


def _rate(send: Callable[[Load], int], body: bytes) -> tuple[int, float]:
    load = Load(body, PIPELINED_S, WINDOW, BATCH)
    if body is LARGE_BODY:
        load = Load(body, PIPELINED_S, LARGE_WINDOW, LARGE_BATCH)
    start = time.perf_counter()
    count = send(load)
    return count, count / (time.perf_counter() - start)


def keep_under_way(
    write: socket.socket,
    read: socket.socket,
    load: Load,
    frames: bytes,
    confirmed: Callable[[bytes], int],
) -> int:
    """Writes frames made beforehand and counts confirmations; the least a client can do.

    Args:
        write: Where the frames go.
        read: Where the confirmations come from; often the same.
        load: How long, and how many may be under way.
        frames: The bytes of `load.batch` messages.
        confirmed: How many more messages are confirmed by these bytes.

    Returns:
        How many messages were sent; all of them are confirmed.
    """
    sent = done = 0
    end = time.perf_counter() + load.seconds
    writing = True
    while writing or done < sent:
        while writing and sent - done + load.batch <= load.window:
            write.sendall(frames)
            sent += load.batch
            writing = sent < MESSAGES_MAX and time.perf_counter() < end
        data = read.recv(READ_BYTES)
        if not data:
            raise ConnectionError(f"the broker hung up with {sent - done} sends under way")
        done += confirmed(data)
    assert done == sent, f"{done} confirmations came for {sent} sends"
    return sent


def connected(port: int) -> socket.socket:
    """A loopback connection without delays; silence ends it."""
    made = socket.create_connection(("127.0.0.1", port), timeout=SILENCE_S_MAX)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made
