"""Who goes to the disk: the event loop itself if the disk is quick, a thread if it is not."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from merq.protocol.application.requests import Send
from merq.service import keeping
from merq.service.keeping import QUICK_SYNC_S, Keeper
from merq.service.logs import Log
from merq.store.disk import FileDisk
from unit.service.serving import Service, packet

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fdatasync"), reason="this system has another way to the disk"
)

CLIENTS = 3
ROUNDS = 20
"""Enough to know how quick a disk is."""


class Watched:
    """A service whose disk is a folder, and who goes there."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.queue = service.queue("q")
        self.clients = [service.client() for _ in range(CLIENTS)]
        self.failures: list[Exception] = []
        log = Log("merq.service.tests")
        self.keeper = Keeper(
            service.host, service.reception, lambda: None, self.failures.append, log
        )

    async def send_all(self) -> None:
        """Each client sends a message, at the same time, and is answered."""
        for client in self.clients:
            client.begin(Send(self.queue, [packet()]))
        self.keeper.wake()
        waiting = list(self.clients)
        until = time.monotonic() + 10
        while waiting:
            assert time.monotonic() < until, "somebody is never answered"
            assert not self.failures
            await asyncio.sleep(0)
            waiting = [each for each in waiting if not each.heard()]


def goers(
    service: Service, monkeypatch: pytest.MonkeyPatch, delay_s: float
) -> tuple[list[bool], int]:
    """Whether each way to the disk was a thread's, and how often the loop went round meanwhile."""
    threads: list[bool] = []
    rounds = 0
    sync: Callable[[int], None] = os.fdatasync

    def slow(descriptor: int) -> None:
        threads.append(threading.current_thread() is not threading.main_thread())
        time.sleep(delay_s)
        sync(descriptor)

    async def run() -> None:
        nonlocal rounds
        watched = Watched(service)
        monkeypatch.setattr(os, "fdatasync", slow)
        for _ in range(ROUNDS):
            await watched.send_all()
        threads.clear()
        sending = asyncio.ensure_future(watched.send_all())
        while not sending.done():
            rounds += 1
            await asyncio.sleep(0)
        await sending
        await watched.keeper.close()

    asyncio.run(run())
    return threads, rounds


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    disk = FileDisk(tmp_path / "data")
    yield Service(disk=disk)
    disk.unlock()


def test_a_quick_disk_is_waited_for_in_the_event_loop(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "QUICK_SYNC_S", 10.0)  # whatever else this computer does
    threads, _ = goers(service, monkeypatch, 0.0)
    assert threads
    assert not any(threads)


def test_while_a_slow_disk_is_at_it_the_event_loop_goes_on(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, rounds = goers(service, monkeypatch, 3 * QUICK_SYNC_S)
    assert any(threads), "several who wait have a thread go for them"
    assert rounds > 10
