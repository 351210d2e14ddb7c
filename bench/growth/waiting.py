"""A queue manager with many messages waiting, and a clock that can be moved on."""

from __future__ import annotations

import gc
import os
import random
import time
from collections import deque
from collections.abc import Callable
from ctypes import CDLL, c_size_t
from pathlib import Path
from typing import Any

from merq import Manager, Queue
from merq.client.embedded import Driver
from merq.engine.limits import Limits
from merq.store.disk import FileDisk

NAME = "bench"
QUEUE = r".\private$\waiting"
FILL = 1_000
"""Messages a batch while filling."""
BATCH = 100
SAMPLE = 1_000
"""Messages a measurement, and at most as many identifiers are kept to peek at."""
LONG_S = 100_000_000
BRIEF_S = 10

STATM = Path("/proc/self/statm")


class Waiting:
    """A store with one queue. Messages go through it in the order in which they came."""

    def __init__(self, folder: Path, body: bytes, *, lifetime: bool) -> None:
        self._ahead_s = 0.0
        self.driver = Driver(
            FileDisk(folder), NAME, Limits(), clock=lambda: time.time() + self._ahead_s
        )
        self.manager = Manager(self.driver)
        known = [queue for queue in self.manager.queues() if queue.path_name.lower() == QUEUE]
        self.queue: Queue = known[0] if known else self.manager.create_queue(QUEUE)
        self._body = body
        self._fields: dict[str, int] = {"time_to_be_received": LONG_S} if lifetime else {}
        self._sent = self._received = 0
        self._known: deque[tuple[int, str]] = deque()

    def send(self, count: int, **fields: Any) -> list[str]:
        """One batch, durable."""
        return self.queue.send_many([self._body] * count, recoverable=True, **fields)

    def receive(self, count: int) -> None:
        """One batch, durable."""
        found = len(self.queue.receive_many(count, timeout=0))
        assert found == count, f"{found} of {count} messages came"

    def fill(self, target: int) -> None:
        """Sends until so many wait; remembers the identifiers of some."""
        stride = max(1, target // SAMPLE)
        while (missing := target - len(self.queue)) > 0:
            self._note(self.send(min(FILL, missing), **self._fields), stride)

    def measure(self) -> dict[str, float]:
        """Seconds a message; afterwards as many wait as before."""
        before = len(self.queue)
        identifiers: list[str] = []

        def send() -> None:
            for _ in range(SAMPLE // BATCH):
                identifiers.extend(self.send(BATCH, **self._fields))

        found = _timed("send by 100", send)
        self._note(identifiers, max(1, before // SAMPLE))
        found |= _timed("peek by id", self._peek)
        found |= _timed("receive by 100", self._receive)
        for _ in range(SAMPLE // BATCH):
            self.send(BATCH, time_to_be_received=BRIEF_S)
        found |= _timed("expiry", self._expire)
        assert len(self.queue) == before + 1, f"{len(self.queue)} wait, not {before} and one"
        self.receive(1)
        self._forget(1)
        return found

    def _note(self, identifiers: list[str], stride: int) -> None:
        for identifier in identifiers:
            if self._sent % stride == 0:
                self._known.append((self._sent, identifier))
            self._sent += 1

    def _forget(self, count: int) -> None:
        self._received += count
        while self._known and self._known[0][0] < self._received:
            self._known.popleft()

    def _peek(self) -> None:
        known = [identifier for _, identifier in self._known]
        for identifier in random.Random(1).choices(known, k=SAMPLE):  # noqa: S311 - the same order
            self.queue.peek_by_id(identifier)

    def _receive(self) -> None:
        for _ in range(SAMPLE // BATCH):
            self.receive(BATCH)
        self._forget(SAMPLE)

    def _expire(self) -> None:
        """What follows in the log is durable only when the removals are, so it waits for them."""
        self._ahead_s += 2 * BRIEF_S
        self._note(self.send(1, **self._fields), 1)

    def close(self) -> None:
        """Closes the store."""
        self.manager.close()


def _timed(name: str, step: Callable[[], None]) -> dict[str, float]:
    """Seconds a message by the clock, and of the processor, which a busy machine changes less."""
    start, used = time.perf_counter(), time.process_time()
    step()
    return {
        name: (time.perf_counter() - start) / SAMPLE,
        f"{name} (processor)": (time.process_time() - used) / SAMPLE,
    }


def resident_bytes() -> int | None:
    """The memory that this process has, without what is free in it; None if nobody can say."""
    if not STATM.exists():
        return None
    gc.collect()
    trim = getattr(CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(c_size_t(0))
    return int(STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
