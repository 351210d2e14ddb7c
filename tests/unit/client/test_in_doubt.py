"""A message whose removal is in doubt comes with the error, as a message."""

from __future__ import annotations

import asyncio
import pickle
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest

import merq
import merq.aio
from merq.client.messages import ReceivedMessage
from merq.model.delivered import Delivered
from merq.model.names import parse_format_name
from merq.protocol.application.requests import EndReceive, FindQueue, Read
from merq.protocol.application.server import Asked, ServerLimits, ServerSession
from merq.wire.build import Outline, build_packet

GUID = UUID(int=5)
ASKED_MAX = 20
"""So many requests at most; a client that asks for more goes in a circle."""


def delivered() -> Delivered:
    place = parse_format_name(r"DIRECT=OS:a\private$\q")
    packet = build_packet(Outline(destination=place.without_prefix(), body=b"in doubt"))  # type: ignore[union-attr]
    return Delivered(packet, 7, 1_000_000_000, 0, 0)


class ForgetfulServer:
    """Hands a message out, goes away when it is to be removed, and knows nothing of it after."""

    def __init__(self, path: Path) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._listener.settimeout(10)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def _serve(self) -> None:
        try:
            for _ in range(ASKED_MAX):
                client, _ = self._listener.accept()
                with client:
                    client.settimeout(10)
                    self._talk(client, ServerSession(ServerLimits()))
        except OSError:
            return  # the test is over

    def _talk(self, client: socket.socket, session: ServerSession) -> None:
        while data := client.recv(1 << 16):
            session.feed(data)
            while event := session.next():
                if not isinstance(event, Asked):
                    client.sendall(session.welcome(GUID, "a", UUID(int=id(session))))
                elif isinstance(event.request, EndReceive):
                    return
                elif isinstance(event.request, FindQueue):
                    client.sendall(session.answer(event.number, 1))
                elif isinstance(event.request, Read):
                    message = delivered()
                    found = [message] if event.request.most else message
                    client.sendall(session.answer(event.number, found))


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    server = ForgetfulServer(tmp_path / "s")
    yield f"unix:{tmp_path / 's'}"
    server.close()


@pytest.mark.parametrize(
    "receive",
    [lambda queue: queue.receive(timeout=1), lambda queue: queue.receive_many(3, timeout=1)],
    ids=["one", "several"],
)
def test_what_is_in_doubt_is_a_message(url: str, receive: Callable[[merq.Queue], object]) -> None:
    with merq.connect(url) as manager:
        queue = manager.queue(r".\private$\q")
        with pytest.raises(merq.InDoubt) as doubt:
            receive(queue)
    check(doubt.value)


def test_the_same_for_an_event_loop(url: str) -> None:
    async def receive() -> None:
        async with await merq.aio.connect(url) as manager:
            queue = await manager.queue(r".\private$\q")
            await queue.receive(timeout=1)

    with pytest.raises(merq.InDoubt) as doubt:
        asyncio.run(receive())
    check(doubt.value)


def check(doubt: merq.InDoubt) -> None:
    for each in (doubt, pickle.loads(pickle.dumps(doubt))):  # noqa: S301 - our own
        received = each.received
        if isinstance(received, list):
            (received,) = received
        assert isinstance(received, ReceivedMessage)
        assert (received.body, received.lookup_id) == (b"in doubt", 7)
