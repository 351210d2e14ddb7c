"""What a stopped client holds goes back; a client that is only busy is left alone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import merq
import merq.aio
from acceptance.service_process import RawClient, ServiceProcess, environment, serving
from merq.model.selecting import First
from merq.protocol.application.frames import Frame, FrameReader, Kind
from merq.protocol.application.greeting import Hello, encode_hello
from merq.protocol.application.requests import AskStatus, Read

QUEUE: Final = r".\private$\q"
ORDERED: Final = r".\private$\ordered"
PING_S: Final = 0.3
SILENCE_S: Final = 1.0
BUSY_S: Final = 1.5
"""Longer than anybody may be silent."""

HOLDER: Final = """
import sys, time, merq
with merq.connect(sys.argv[1]) as manager:
    if sys.argv[2] == "hold":
        with manager.queue(r".\\private$\\q").hold(timeout=5):
            print("held", flush=True)
            time.sleep(30)
    else:
        with manager.transaction() as tx:
            manager.queue(r".\\private$\\ordered").receive(timeout=5, tx=tx)
            print("held", flush=True)
            time.sleep(30)
"""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceProcess]:
    settings = {"limits__keepalive_s": PING_S, "limits__idle_s": SILENCE_S}
    with serving(tmp_path / "data", **settings) as running:
        with running.connect() as manager:
            manager.create_queue(QUEUE).send(b"one", recoverable=True)
            queue = manager.create_queue(ORDERED, transactional=True)
            with manager.transaction() as tx:
                queue.send(b"one", tx=tx)
        yield running


@pytest.mark.limit("limits.idle_s", "limits.keepalive_s")
@pytest.mark.parametrize(("how", "name"), [("hold", QUEUE), ("transaction", ORDERED)])
def test_what_a_stopped_client_holds_goes_back(
    service: ServiceProcess, how: str, name: str
) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, service.url, how],
        stdout=subprocess.PIPE,
        env=environment(),
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        os.kill(holder.pid, signal.SIGSTOP)
        with service.connect() as manager:
            queue = manager.queue(name)
            message = queue.receive(timeout=5, tx=None) if how == "hold" else queue.peek(timeout=5)
            assert message.body == b"one"
            assert message.abort_count == (0 if how == "hold" else 1)
    finally:
        holder.kill()
        holder.wait()
        assert holder.stdout is not None
        holder.stdout.close()
    assert any("did not answer for 1 s" in reason for reason in service.reasons())


def work() -> int:
    """Keeps the processor busy, and asks the service for nothing."""
    until, count = time.monotonic() + BUSY_S, 0
    while time.monotonic() < until:
        count += 1
    return count


def test_a_client_that_is_busy_keeps_what_it_holds(service: ServiceProcess) -> None:
    with service.connect() as manager:
        with manager.queue(QUEUE).hold(timeout=5) as found:
            assert found[0].body == b"one"
            work()
        with pytest.raises(merq.ReceiveTimeout):
            manager.queue(QUEUE).receive(timeout=0)
        with manager.transaction() as tx:
            assert manager.queue(ORDERED).receive(timeout=5, tx=tx).body == b"one"
            work()
        assert len(manager.queue(ORDERED)) == 0
    assert not service.reasons()


def test_a_client_of_an_event_loop_keeps_what_it_holds_while_the_loop_turns(
    service: ServiceProcess,
) -> None:
    async def hold() -> None:
        async with merq.aio.connect(service.url) as manager, manager.transaction() as tx:
            queue = await manager.queue(ORDERED)
            assert (await queue.receive(timeout=5, tx=tx)).body == b"one"
            await asyncio.sleep(BUSY_S)

    asyncio.run(hold())
    assert not service.reasons()


def frames(client: RawClient, reader: FrameReader, count: int) -> list[Frame]:
    found: list[Frame] = []
    while len(found) < count:
        each = reader.next()
        if each is not None:
            found.append(each)
        else:
            data = client.socket.recv(1 << 16)
            assert data, "the service has closed the connection"
            reader.feed(data)
    return found


@pytest.mark.parametrize(("newest", "is_asked"), [(1, False), (2, True), (7, True)])
def test_who_speaks_the_first_version_is_not_asked_and_not_cut_off(
    service: ServiceProcess, newest: int, *, is_asked: bool
) -> None:
    with service.connect() as manager:
        number = manager.queue(QUEUE).number
    with RawClient(service.socket_path) as client:
        hello = Hello(protocol="merq", oldest=1, newest=newest, client="by hand")
        client.socket.sendall(encode_hello(hello))
        reader = FrameReader(1 << 20)
        (welcome,) = frames(client, reader, 1)
        assert (b"pong_ms" in welcome.body) is is_asked
        client.session.connected()
        client.session.data_to_send()
        client.session.receive_data(welcome.buffer[: welcome.size])
        client.post(Read(number, First(), held=True))
        (answer,) = frames(client, reader, 1)
        assert answer.kind == Kind.MESSAGES
        client.socket.settimeout(BUSY_S)
        if is_asked:
            (ping,) = frames(client, reader, 1)
            assert (ping.kind, ping.number, ping.body) == (Kind.PING, 0, b"")
            assert client.is_cut_off()
        else:
            with pytest.raises(TimeoutError):
                client.socket.recv(1)
            client.session.receive_data(answer.buffer[answer.start : answer.end])
            client.post(AskStatus())
            (told,) = frames(client, reader, 1)
            assert told.kind == Kind.TOLD
            assert b"sessions" in told.body
            assert b"quota_bytes" not in told.body, "it would refuse what it does not know"


def test_who_holds_nothing_is_not_asked(service: ServiceProcess) -> None:
    with RawClient(service.socket_path).greet() as client:
        client.socket.settimeout(BUSY_S)
        with pytest.raises(TimeoutError):
            client.socket.recv(1)
        client.socket.settimeout(5)
        client.ask(AskStatus())
