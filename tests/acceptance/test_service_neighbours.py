"""Clients that read nothing, say half of it, stop, or shout: none of them harms another.

What another client's requests take meanwhile is compared with a generous limit, for other work
shares the machine. `MERQ_NEIGHBOUR_S` watches for longer.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

import pytest

import merq
from acceptance.service_process import (
    PATIENCE_S,
    RawClient,
    ServiceProcess,
    environment,
    serving,
    wait_until,
)
from merq.model.delivered import Delivered
from merq.model.selecting import First
from merq.protocol.application.codec import encode_request
from merq.protocol.application.frames import HEADER, HEADER_SIZE, Kind
from merq.protocol.application.requests import AskStatus, Read, Request, Send

WATCHED_S: Final = float(os.environ.get("MERQ_NEIGHBOUR_S", "1.0"))
LATENCY_MAX_S: Final = 0.5
"""No neighbour lets another wait longer: 99 of 100 requests are answered in this time."""
ROUNDS_MIN: Final = 20
"""So many requests a neighbour gets answered while he is watched, at the least."""
BIG_BYTES: Final = 2 << 20
MEMORY_MAX: Final = 160 << 20
"""What one client's bad manners may cost in memory, its 64 MiB of answers and copies included."""
SHORT_S: Final = 0.5
"""A time-out of the settings that a test can wait for."""


class Watch(threading.Thread):
    """A client that works, and notes how long each of its requests takes."""

    def __init__(self, service: ServiceProcess, name: str = "watch") -> None:
        super().__init__()
        self._manager = service.connect()
        self._queue = self._manager.create_queue(rf".\private$\{name}")
        self._over = threading.Event()
        self.times: list[float] = []

    def run(self) -> None:
        while not self._over.is_set():
            for recoverable in (False, True):
                began = time.monotonic()
                sent = self._queue.send("hello", recoverable=recoverable)
                assert self._queue.receive(timeout=0).id == sent
                self.times.append(time.monotonic() - began)
            time.sleep(0.002)

    def leave(self) -> float:
        """Ends; gives how long 99 of 100 requests took at the most."""
        self._over.set()
        self.join()
        self._manager.close()
        assert len(self.times) > ROUNDS_MIN, f"only {len(self.times)} requests were answered"
        return sorted(self.times)[int(len(self.times) * 0.99) - 1]


@contextmanager
def watched(service: ServiceProcess, for_s: float = WATCHED_S) -> Iterator[None]:
    """A neighbour is served well while this happens, and for a while after it has begun."""
    watch = Watch(service)
    watch.start()
    try:
        yield
        time.sleep(for_s)
    finally:
        slowest = watch.leave()
        print(f"p99 of {len(watch.times)} requests: {slowest * 1000:.1f} ms")
    assert slowest < LATENCY_MAX_S


def big_queue(service: ServiceProcess) -> int:
    """A queue with a large message."""
    with service.connect() as manager:
        queue = manager.create_queue(r".\private$\big")
        queue.send(bytes(BIG_BYTES))
        return queue.number


def test_a_client_that_reads_nothing_is_not_listened_to_and_costs_little_memory(
    tmp_path: Path,
) -> None:
    """It asks for gigabytes, one after the other, and then all at once."""
    with serving(tmp_path / "data") as service:
        number = big_queue(service)
        before = service.rss_bytes
        with watched(service), RawClient(service.socket_path).greet() as deaf:
            deaf.socket.settimeout(WATCHED_S / 4)
            with suppress(TimeoutError, ConnectionError):
                for _ in range(1000):
                    deaf.post(Read(number, First(), peek=True, wait=False))
                    time.sleep(0.0005)
            assert service.rss_bytes - before < MEMORY_MAX
            with RawClient(service.socket_path).greet() as hasty:
                for _ in range(1000):
                    hasty.session.ask(Read(number, First(), peek=True, wait=False))
                hasty.write()
                time.sleep(WATCHED_S)
                print(f"{(service.rss_bytes - before) >> 20} MiB more")
                assert service.rss_bytes - before < MEMORY_MAX


def test_a_client_that_reads_slowly_gets_all_of_its_answers(tmp_path: Path) -> None:
    with serving(tmp_path / "data", limits__answer_bytes_max="64KiB") as service:
        number = big_queue(service)
        with RawClient(service.socket_path).greet() as slow:
            asked = {slow.post(Read(number, First(), peek=True, wait=False)) for _ in range(6)}
            answered: set[int] = set()
            deadline = time.monotonic() + PATIENCE_S
            while answered != asked:
                assert time.monotonic() < deadline
                time.sleep(0.001)
                answered |= {each.number for each in slow.read()}


@pytest.mark.limit("limits.handshake_s")
def test_who_does_not_say_hello_in_time_is_cut_off(tmp_path: Path) -> None:
    with (
        serving(
            tmp_path / "data",
            "--tcp-port",
            "0",
            "--insecure-tcp",
            limits__handshake_s=f"{SHORT_S}s",
        ) as service,
        watched(service),
    ):
        silent = RawClient(service.socket_path)
        stranger = RawClient(("127.0.0.1", service.tcp_port))
        halting = RawClient(service.socket_path)
        halting.session.connected()
        halting.socket.sendall(halting.session.data_to_send()[:-5])
        for client in (silent, stranger, halting):
            with client:
                assert client.is_cut_off()
        assert service.reasons().count("it did not say who it is in time") == 3


@pytest.mark.limit("limits.memory_bytes")
def test_half_a_frame_harms_nobody_however_large_it_is(tmp_path: Path) -> None:
    """What is only half said counts as memory, and who holds most of it goes."""
    size = 12 << 20
    half = HEADER.pack(size, Kind.ASK, 0, 0, 1, 0) + bytes(size - HEADER_SIZE - 1)
    with serving(tmp_path / "data", limits__memory_bytes="64MiB") as service:
        before = service.rss_bytes
        hoarders = [RawClient(service.socket_path).greet() for _ in range(20)]
        with watched(service):
            for hoarder in hoarders:
                with suppress(ConnectionError):
                    hoarder.socket.sendall(half)
            wait_until(lambda: any("memory" in each for each in service.reasons()), "some go")
            print(f"{(service.rss_bytes - before) >> 20} MiB more")
            assert service.rss_bytes - before < MEMORY_MAX
        for hoarder in hoarders:
            hoarder.close()


def test_a_large_frame_in_tiny_pieces_harms_nobody(tmp_path: Path) -> None:
    size = 15 << 20
    with serving(tmp_path / "data") as service:
        droppers = [RawClient(service.socket_path).greet() for _ in range(8)]
        for dropper in droppers:
            dropper.socket.sendall(HEADER.pack(size, Kind.ASK, 0, 0, 1, 0) + bytes(size - 100_000))
        over = threading.Event()

        def drop(client: RawClient) -> None:
            for _ in range(90_000):
                if over.is_set():
                    return
                client.socket.sendall(b"x")
                time.sleep(0.0002)

        threads = [threading.Thread(target=drop, args=(each,)) for each in droppers]
        with watched(service):
            for thread in threads:
                thread.start()
        over.set()
        for thread in threads:
            thread.join()
        for dropper in droppers:
            dropper.close()


FLOOD: Final = """
import sys
from pathlib import Path
from acceptance.test_service_neighbours import flood
flood(Path(sys.argv[1]), int(sys.argv[2]))
"""


def flood(socket_path: Path, number: int) -> None:
    """Three connections that ask and send as fast as they can, until somebody kills them."""
    with RawClient(socket_path).greet() as client:
        message = client.ask(Read(number, First(), peek=True))
    assert isinstance(message, Delivered)
    requests: tuple[Request, ...] = (
        AskStatus(),
        Send(number, [message.packet]),
        Read(number, First(), peek=True),
    )
    clients = [RawClient(socket_path).greet() for _ in requests]
    for turn in count():
        for client, request in zip(clients, requests, strict=True):
            while client.session.unanswered < 1000:
                client.session.ask(request)
            client.write()
        for client in clients:
            client.read()
        if turn % 10 == 0:
            print(turn, flush=True)


def test_a_flood_harms_nobody(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as service:
        with service.connect() as manager:
            queue = manager.create_queue(r".\private$\flood", quota_kb=8 << 10)
            queue.send(bytes(1000))
            number = queue.number
        before = service.rss_bytes
        with subprocess.Popen(
            [sys.executable, "-c", FLOOD, str(service.socket_path), str(number)],
            stdout=subprocess.PIPE,
            env=environment(),
            start_new_session=True,
        ) as flooding:
            try:
                assert flooding.stdout is not None
                assert flooding.stdout.readline()
                with watched(service, 2 * WATCHED_S):
                    pass
                assert flooding.stdout.readline(), "there was no flood"
            finally:
                flooding.kill()
        assert service.rss_bytes - before < MEMORY_MAX


def test_who_asks_for_much_at_once_gets_all_of_it(tmp_path: Path) -> None:
    """Nothing is forgotten that came while its answers were too many to be written."""
    with (
        serving(tmp_path / "data", limits__answer_bytes_max="64KiB") as service,
        RawClient(service.socket_path).greet() as hasty,
    ):
        asked = {hasty.session.ask(AskStatus()) for _ in range(2000)}
        hasty.write()
        answered: set[int] = set()
        while answered != asked:
            answered |= {each.number for each in hasty.read()}


def test_who_asks_for_more_than_is_allowed_at_a_time_is_cut_off(tmp_path: Path) -> None:
    with serving(tmp_path / "data", limits__requests_max=100) as service:
        with service.connect() as manager:
            number = manager.create_queue(r".\private$\empty").number
        with RawClient(service.socket_path).greet() as greedy:
            request = Read(number, First(), wait=True)
            greedy.socket.sendall(b"".join(encode_request(each, request) for each in range(1, 102)))
            assert greedy.is_cut_off()
        assert any("more than 100 requests" in each for each in service.reasons())
        with service.connect() as manager:
            assert manager.queue(r".\private$\empty").report.readers == 0


STOPPED: Final = r"""
import sys, time, merq
manager = merq.connect(sys.argv[1])
queue = manager.queue(r".\private$\work")
tx = manager.transaction()
print(queue.receive(tx=tx).body, flush=True)
time.sleep(600)
"""


def test_a_client_that_is_stopped_keeps_only_what_it_has_until_it_dies(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as service, service.connect() as manager:
        work = manager.create_queue(r".\private$\work", transactional=True)
        with manager.transaction() as tx:
            for body in ("first", "second"):
                work.send(body, tx=tx)
        with subprocess.Popen(
            [sys.executable, "-c", STOPPED, service.url],
            stdout=subprocess.PIPE,
            env=environment(),
            start_new_session=True,
        ) as stopped:
            try:
                assert stopped.stdout is not None
                assert stopped.stdout.readline() == b"first\n"
                stopped.send_signal(signal.SIGSTOP)
                with watched(service):
                    with manager.transaction() as tx:
                        assert work.receive(timeout=0, tx=tx).body == "second"
                    assert work.report.locked == 1
            finally:
                stopped.kill()
        wait_until(lambda: work.report.locked == 0, "what the dead had is back")
        with manager.transaction() as tx:
            message = work.receive(timeout=0, tx=tx)
        assert message.body == "first"
        assert manager.status().transactions == 0


def test_a_client_that_stops_reading_loses_its_connection_if_it_also_talks_nonsense(
    tmp_path: Path,
) -> None:
    """Nobody waits for ever until it has read what it was told."""
    with serving(tmp_path / "data") as service, service.connect() as manager:
        number = big_queue(service)
        held = manager.queue(r".\private$\big")
        with RawClient(service.socket_path).greet() as deaf:
            deaf.post(Read(number, First(), wait=False, held=True))
            wait_until(lambda: held.report.locked == 1, "it has the message")
            deaf.socket.sendall(bytes(64))
            wait_until(lambda: held.report.locked == 0, "the message is back")
            assert manager.status().connections == 1
        assert isinstance(held.receive(timeout=0), merq.ReceivedMessage)
