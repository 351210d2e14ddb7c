"""Random and mutated frames on the service's own sockets, while others go on with their work.

Whatever comes, the service lives, closes with a reason what makes no sense, and gives back what the
connection took. `MERQ_FRAMES` sends more, `MERQ_SEED` others.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

import pytest

import merq
from acceptance.service_process import RawClient, ServiceProcess, serving, wait_until
from merq.model.access import Access, Share
from merq.model.queue import Alteration, QueueSettings
from merq.model.selecting import (
    AtCursor,
    ByCorrelationId,
    ByLookup,
    ByMessageId,
    First,
    Seek,
)
from merq.protocol.application.codec import encode_request
from merq.protocol.application.frames import HEADER, HEADER_SIZE, FrameReader, Kind
from merq.protocol.application.greeting import Hello, encode_hello
from merq.protocol.application.requests import (
    AskStatus,
    AskWhy,
    Begin,
    Cancel,
    ChangeQueue,
    CloseCursor,
    CloseQueue,
    CreateQueue,
    CreateSubqueue,
    DescribeQueue,
    End,
    Ending,
    EndPrepared,
    EndReceive,
    Family,
    FindQueue,
    ListPrepared,
    ListQueues,
    Move,
    OpenCursor,
    OpenQueue,
    PauseQueue,
    Prepare,
    Purge,
    Read,
    Request,
    ResumeQueue,
    Send,
    SendTo,
)

FRAMES: Final = int(os.environ.get("MERQ_FRAMES", "10000"))
SEED: Final = int(os.environ.get("MERQ_SEED", "20264"))
TOGETHER: Final = 5
"""So many frames go over one connection, if it lasts."""
KEPT_BYTES_MAX: Final = 48 << 20
"""What the service may keep after thousands of connections: conversations that may be resumed."""
ANSWERS_BYTES_MAX: Final = 64 << 20
HELLO: Final = encode_hello(Hello(protocol="merq", oldest=1, newest=1, client="garbage"))
GUID: Final = UUID("5c9f1a2b-0000-4000-8000-000000000007")
ODD: Final[tuple[Any, ...]] = (
    None, True, -1, 0, 1 << 31, 1 << 32, 1 << 64, 10**30, 0.5, "", "\ud800", "\x00", "x" * 5000,
    r".\private$\b;sub", [], [[]], {}, {"a": 1}, "AAAA", "{}", [None], "é" * 300,
)  # fmt: skip
"""Values that do not belong where they come to stand."""


def packets_of(manager: merq.Manager) -> list[bytes]:
    """Packets as applications send them."""
    queue = manager.create_queue(r".\private$\packets")
    queue.send(b"body" * 40, label="label", recoverable=True)
    queue.send("text", priority=7, correlation_id=bytes(range(20)), extension=b"ext")
    return [message.packet for message in queue.peek_all()]


def requests_to(queue: int, packets: list[bytes]) -> list[Request]:
    """One of every kind, as a client would make it."""
    path = r".\private$\made"
    return [
        Send(queue, packets),
        Send(queue, packets[:1], 1, ".\\private$\\dead"),
        SendTo((("DIRECT=OS:other\\private$\\q", packets[0]),), 0, ""),
        *(Read(queue, each, wait=False) for each in selections()),
        Read(queue, First(), wait=True, held=True, most=10),
        Read(queue, First(), peek=True, wait=True),
        EndReceive(queue, [1, 2], delete=True),
        Begin(1),
        End(1, Ending.COMMIT),
        End(1, Ending.ABORT),
        Prepare(1, GUID),
        EndPrepared(GUID, Ending.ABORT),
        ListPrepared(),
        Cancel(3),
        Move(queue, 1, queue, 0),
        CreateQueue(path, QueueSettings(label="l"), GUID),
        ChangeQueue(queue, Alteration(label="other", quota=10)),
        CreateSubqueue(queue, "part"),
        DescribeQueue(queue),
        *(ListQueues(each) for each in Family),
        FindQueue(path),
        Purge(queue),
        PauseQueue(queue),
        ResumeQueue(queue),
        OpenQueue(queue, Access.RECEIVE, Share.DENY_NONE),
        CloseQueue(1),
        OpenCursor(queue),
        CloseCursor(1),
        AskStatus(),
        AskWhy(bytes(20)),
    ]


def selections() -> list[First | ByLookup | ByMessageId | ByCorrelationId | AtCursor]:
    return [
        First(),
        *(ByLookup(1, each) for each in Seek),
        ByMessageId(bytes(20)),
        ByCorrelationId(bytes(20)),
        AtCursor(1, next_one=True),
    ]


class Mutations:
    """Frames that are wrong in one way or another, always the same ones for a seed."""

    def __init__(self, chance: Random, frames: list[bytes]) -> None:
        self._chance = chance
        self._frames = frames
        self._number = 0

    def __iter__(self) -> Iterator[bytes]:
        while True:
            yield self.next()

    def next(self) -> bytes:
        chance = self._chance
        ways = (self._random, self._flipped, self._cut, self._resized, self._other_json)
        return chance.choice((*ways, self._flipped, self._other_json))(chance.choice(self._frames))

    def _random(self, _frame: bytes) -> bytes:
        return self._chance.randbytes(self._chance.randrange(1, 200))

    def _renumbered(self, frame: bytes) -> bytearray:
        self._number += 1
        changed = bytearray(frame)
        changed[8:12] = self._number.to_bytes(4, "little")
        return changed

    def _flipped(self, frame: bytes) -> bytes:
        changed = self._renumbered(frame)
        for _ in range(self._chance.choice((1, 1, 2, 8))):
            changed[self._chance.randrange(4, len(changed))] = self._chance.randrange(256)
        return bytes(changed)

    def _cut(self, frame: bytes) -> bytes:
        """Something is missing, or too much; the frame's size says so."""
        changed = self._renumbered(frame)
        place = self._chance.randrange(HEADER_SIZE, len(changed) + 1)
        if self._chance.random() < 0.5:
            del changed[place : place + self._chance.randrange(1, 40)]
        else:
            changed[place:place] = self._chance.randbytes(self._chance.randrange(1, 40))
        changed[:4] = len(changed).to_bytes(4, "little")
        return bytes(changed)

    def _resized(self, frame: bytes) -> bytes:
        changed = self._renumbered(frame)
        sizes = (0, 15, len(frame) - 1, len(frame) + 1, 17 << 20, (1 << 32) - 1)
        changed[:4] = self._chance.choice(sizes).to_bytes(4, "little")
        return bytes(changed)

    def _other_json(self, frame: bytes) -> bytes:
        """A value in what is asked as JSON is another, or missing, or there is one too many."""
        changed = self._renumbered(frame)
        if changed[4] != Kind.ASK:
            return self._flipped(frame)
        asked = json.loads(bytes(changed[HEADER_SIZE:]))
        (name, fields), *_ = asked.items()
        while isinstance(fields, dict) and fields:
            key = self._chance.choice(sorted(fields))
            if isinstance(fields[key], dict) and self._chance.random() < 0.8:
                fields = fields[key]
                continue
            fields[key] = self._chance.choice(ODD)
            break
        else:
            asked[name] = self._chance.choice(ODD)
        body = json.dumps(asked).encode()
        size, *rest = HEADER.unpack_from(changed)
        del size
        return HEADER.pack(HEADER_SIZE + len(body), *rest) + body


class Neighbour(threading.Thread):
    """A client that goes on with its work, and notices when it cannot."""

    def __init__(self, service: ServiceProcess) -> None:
        super().__init__()
        self._manager = service.connect()
        self._queue = self._manager.create_queue(r".\private$\neighbour")
        self._over = threading.Event()
        self.turns = 0
        self.wrong: list[BaseException] = []

    def run(self) -> None:
        try:
            while not self._over.wait(0.002):
                sent = self._queue.send(f"turn {self.turns}", recoverable=self.turns % 2 == 0)
                assert self._queue.receive_by_id(sent).body == f"turn {self.turns}"
                self.turns += 1
        except BaseException as wrong:
            self.wrong.append(wrong)
            raise

    def leave(self) -> None:
        self._over.set()
        self.join()
        self._manager.close()
        assert not self.wrong


def is_told_goodbye(place: Path | tuple[str, int], data: bytes) -> bool:
    """Whether the service says, at the end, that something made no sense."""
    reader = FrameReader(ANSWERS_BYTES_MAX)
    with RawClient(place) as client:
        with suppress(ConnectionError):  # it may be closed before all of it is written
            client.socket.sendall(data)
            client.socket.shutdown(socket.SHUT_WR)
        with suppress(ConnectionError):
            while more := client.socket.recv(1 << 16):
                reader.feed(more)
    last = None
    while (found := reader.next()) is not None:
        last = found
    return last is not None and last.kind == Kind.FAILED and not last.number


def told(service: ServiceProcess, event: str) -> int:
    """How often something is in the log, those included that were only counted."""
    return sum(int(each.get("repeated", 1)) for each in service.events(event))


def bombarded(service: ServiceProcess, place: Path | tuple[str, int], hello: bytes) -> int:
    """Sends all that garbage; gives how often the service said goodbye."""
    count = FRAMES if isinstance(place, Path) else FRAMES // 10
    chance = Random(SEED)  # noqa: S311 - repeatable on purpose
    with service.connect() as manager:
        packets = packets_of(manager)
        queue = manager.create_queue(r".\private$\garbage")
        requests = requests_to(queue.number, packets)
    mutations = Mutations(chance, [encode_request(1, each) for each in requests])
    goodbyes = 0
    for _ in range(count // TOGETHER):
        data = b"".join(mutations.next() for _ in range(TOGETHER))
        # Some do not even say hello, and some say it wrongly.
        turn = chance.random()
        if turn < 0.8:
            data = hello + data
        elif turn < 0.9:
            wrong = bytearray(hello)
            wrong[chance.randrange(4, len(wrong))] = chance.randrange(256)
            data = bytes(wrong) + data
        goodbyes += is_told_goodbye(place, data)
    return goodbyes


def files_with_one_client(service: ServiceProcess) -> int:
    """How many files the service has open while one client is connected, and none is just going."""
    with service.connect() as manager:
        wait_until(lambda: manager.status().connections == 1, "only we are connected")
        return service.descriptors


def check_unharmed(service: ServiceProcess, files: int, threads: int, bytes_before: int) -> None:
    with service.connect() as manager:
        wait_until(lambda: manager.status().connections == 1, "only we are connected")
        assert manager.status().readers == 0
        assert manager.status().transactions == 0
        queue = manager.create_queue(r".\private$\after")
        queue.send("still here")
        assert queue.receive(timeout=0).body == "still here"
        wait_until(lambda: service.descriptors == files, "all files are given back")
    assert service.threads <= threads
    kept = service.rss_bytes - bytes_before
    print(f"{kept >> 10} KiB more than before")
    assert kept < KEPT_BYTES_MAX


def test_ten_thousand_random_and_mutated_frames_harm_nobody(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as service:
        with service.connect() as manager:
            manager.create_queue(r".\private$\warm").send("up", recoverable=True)
        files, threads, before = (
            files_with_one_client(service),
            service.threads + 3,
            service.rss_bytes,
        )
        neighbour = Neighbour(service)
        neighbour.start()
        try:
            goodbyes = bombarded(service, service.socket_path, HELLO)
        finally:
            neighbour.leave()
        assert neighbour.turns > 50
        check_unharmed(service, files, threads, before)
        assert service.stop() == 0
        ended = told(service, "connection ended")
        print(f"{goodbyes} goodbyes, {ended} reasons in the log, {neighbour.turns} turns beside it")
        assert goodbyes > FRAMES // TOGETHER // 4
        assert ended >= goodbyes


def test_garbage_over_tcp_is_refused_like_that_of_local_clients(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--tcp-port", "0", "--insecure-tcp") as service:
        token = service.new_token("garbage")
        hello = encode_hello(
            Hello(protocol="merq", oldest=1, newest=1, client="garbage", token=token)
        )
        files, threads, before = (
            files_with_one_client(service),
            service.threads + 3,
            service.rss_bytes,
        )
        goodbyes = bombarded(service, ("127.0.0.1", service.tcp_port), hello)
        assert goodbyes
        check_unharmed(service, files, threads, before)
        assert service.stop() == 0
        assert told(service, "connection ended") >= goodbyes
        assert token not in service.output


@pytest.mark.parametrize("size_kb", [1, 15 << 10])
def test_what_a_client_left_half_said_is_not_kept_after_it_has_gone(
    tmp_path: Path, size_kb: int
) -> None:
    """A frame that never became whole is nobody's any more, even if its client may resume."""
    size = size_kb << 10
    with serving(tmp_path / "data") as service:
        before = service.rss_bytes
        half = HEADER.pack(size + HEADER_SIZE, Kind.ASK, 0, 0, 1, 0) + bytes(size - 1)
        for _ in range(20):
            with RawClient(service.socket_path) as client:
                client.greet()
                client.socket.sendall(half)
        with service.connect() as manager:
            wait_until(lambda: manager.status().connections == 1, "they are gone")
        assert service.rss_bytes - before < KEPT_BYTES_MAX + 2 * size
