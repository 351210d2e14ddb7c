"""A thousand connections at one queue: who waits costs nothing, and gives everything back.

`MERQ_CROWD` makes the crowd larger.
"""

from __future__ import annotations

import os
import resource
import selectors
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from acceptance.service_process import PATIENCE_S, RawClient, serving, wait_until
from merq.model.delivered import Delivered
from merq.model.selecting import First
from merq.protocol.application.client import Settled
from merq.protocol.application.requests import EndReceive, Read
from merq.wire.view import MessageView

CROWD: Final = int(os.environ.get("MERQ_CROWD", "1000"))
DESCRIPTORS: Final = 2 * CROWD + 200
WATCHED_S: Final = 2.0
"""For so long it is looked what the service does while all wait."""
IDLE_CPU: Final = 0.15
"""The part of a processor that it may take then: generous, other work shares the machine."""
CONNECTION_BYTES_MAX: Final = 64 << 10
"""What a waiting connection may take in memory."""
KEPT_BYTES_MAX: Final = 8 << 20
"""What may stay in memory after all have gone, beside what conversations to resume take."""


@pytest.fixture
def descriptors() -> Iterator[None]:
    """Room for as many sockets as the crowd has."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < DESCRIPTORS:
        pytest.skip(f"{before[1]} files may be open; {DESCRIPTORS} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], DESCRIPTORS), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


class Crowd:
    """Many connections, held by one thread."""

    def __init__(self, socket_path: Path, count: int) -> None:
        self._closing = ExitStack()
        self._selector = self._closing.enter_context(selectors.DefaultSelector())
        self.clients: list[RawClient] = []
        for _ in range(count):
            client = self._closing.enter_context(RawClient(socket_path))
            self._selector.register(client, selectors.EVENT_READ, client)
            self.clients.append(client)

    def close(self) -> None:
        self._closing.close()

    def greet(self) -> None:
        for client in self.clients:
            client.session.connected()
            client.write()
        self.listen(
            lambda: all(client.session.welcome for client in self.clients), "all are welcome"
        )

    def listen(
        self,
        is_over: Callable[[], bool],
        what: str,
        take: Callable[[RawClient, Settled], None] | None = None,
    ) -> None:
        """Reads what comes to anybody, until it is enough."""
        deadline = time.monotonic() + PATIENCE_S
        while not is_over():
            assert time.monotonic() < deadline, f"not yet: {what}"
            for key, _ in self._selector.select(0.1):
                client: RawClient = key.data
                for settled in client.read():
                    assert take is not None
                    take(client, settled)


@pytest.mark.usefixtures("descriptors")
def test_each_of_a_thousand_who_wait_gets_one_of_a_thousand_messages_and_all_is_given_back(
    tmp_path: Path,
) -> None:
    with serving(tmp_path / "data") as service, service.connect() as manager:
        queue = manager.create_queue(r".\private$\crowd")
        before_bytes, before_files = service.rss_bytes, service.descriptors
        crowd = Crowd(service.socket_path, CROWD)
        try:
            crowd.greet()
            for client in crowd.clients:
                client.post(Read(queue.number, First(), wait=True, held=True))
            wait_until(lambda: queue.report.readers == CROWD, "all wait")
            assert manager.status().connections == CROWD + 1
            each_bytes = (service.rss_bytes - before_bytes) // CROWD
            print(f"{CROWD} waiting: {each_bytes} bytes of memory each")
            assert each_bytes < CONNECTION_BYTES_MAX

            began = service.cpu_s
            time.sleep(WATCHED_S)
            used = (service.cpu_s - began) / WATCHED_S
            print(f"{CROWD} waiting: {used:.1%} of a processor")
            assert used < IDLE_CPU, f"{used:.0%} of a processor, and nothing happens"

            queue.send_many([f"message {number}" for number in range(CROWD)], recoverable=True)
            bodies, ended = received_by(crowd, queue.number)
            assert len(bodies) == len(ended) == CROWD
            assert set(bodies.values()) == {1}, "a message came twice"
            assert sorted(map(len, ended.values())) == [1] * CROWD
            assert len(queue) == 0
        finally:
            crowd.close()
        wait_until(lambda: manager.status().connections == 1, "nobody is connected but us")
        assert manager.status().readers == 0
        assert service.descriptors == before_files
        # A second crowd finds room where the first one was: what is kept is not kept twice.
        with_first = service.rss_bytes
        for _ in range(2):
            crowd = Crowd(service.socket_path, CROWD)
            crowd.greet()
            crowd.close()
            wait_until(lambda: manager.status().connections == 1, "they are gone again")
        kept = service.rss_bytes - with_first
        print(f"after two more crowds: {kept} bytes more")
        assert kept < KEPT_BYTES_MAX + 2 * CROWD * 12_000
        assert service.descriptors == before_files


def received_by(crowd: Crowd, queue: int) -> tuple[Counter[bytes], dict[RawClient, list[bytes]]]:
    """Lets everybody take what comes; gives the bodies, and who got which."""
    bodies: Counter[bytes] = Counter()
    got: dict[RawClient, list[bytes]] = {}
    ended: set[RawClient] = set()

    def take(client: RawClient, settled: Settled) -> None:
        if isinstance(settled.result, Delivered):
            body = MessageView(settled.result.packet).body
            bodies[body] += 1
            got.setdefault(client, []).append(body)
            client.post(EndReceive(queue, [settled.result.lookup_id], delete=True))
        else:
            assert settled.result is None, settled.result
            ended.add(client)

    crowd.listen(lambda: len(ended) == len(crowd.clients), "all have got a message", take)
    return bodies, got


@pytest.mark.limit("limits.connections_max")
@pytest.mark.usefixtures("descriptors")
def test_more_connections_than_the_limit_are_refused_and_those_who_are_in_stay(
    tmp_path: Path,
) -> None:
    with serving(tmp_path / "data", limits__connections_max=20) as service:
        crowd = Crowd(service.socket_path, 20)
        try:
            crowd.greet()
            with RawClient(service.socket_path) as late:
                assert late.is_cut_off()
            assert "there are too many connections" in service.reasons()
            crowd.clients.pop().close()

            def is_let_in() -> bool:
                with RawClient(service.socket_path) as next_one:
                    try:
                        return next_one.greet().session.welcome is not None
                    except ConnectionError:
                        return False

            wait_until(is_let_in, "there is room for one again")
        finally:
            crowd.close()
