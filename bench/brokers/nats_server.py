"""NATS, over the socket with frames made beforehand: JetStream, and core NATS without it.

A receive pulls from a stream whose messages go away when they are acknowledged, and acknowledges
each: JetStream has no other way for such a stream. With `sync_interval: always` the server syncs
every message by itself before it confirms; as it comes, it syncs every two minutes.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.brokers.contender import (
    BODY,
    READ_BYTES,
    Contender,
    Load,
    connected,
    keep_under_way,
)
from bench.brokers.packages import NATS, NATS_NEWER, Unavailable, unpacked
from bench.brokers.running import listening, running, spare_port

PROGRAM = "usr/sbin/nats-server"
SYNC_INTERVAL = b"sync_interval"
ALWAYS = "sync_interval: always"
AS_IT_COMES = ""
PULL_COUNT = 500
CORE_WINDOW = 20_000
CORE_BATCH = 500
"""It confirms nothing, so more is under way at its best."""

INBOX = b"_INBOX.bench"
END = b"\r\n"


def program(setting: str) -> Path:
    """The server of this system's suite, or of a newer one if that cannot be told to sync.

    Both settings are measured with the same version, so that they alone make the difference.

    Raises:
        Unavailable: It cannot be had, or none that can be told to sync as is asked.
    """
    own = unpacked(NATS) / PROGRAM
    if SYNC_INTERVAL in own.read_bytes():
        return own
    try:
        return unpacked(NATS_NEWER) / PROGRAM
    except Unavailable as error:
        if setting == ALWAYS:
            raise Unavailable(f"this system's nats-server has no such setting; {error}") from error
        return own


@contextmanager
def serving(folder: Path, setting: str) -> Iterator[int]:
    """A server with JetStream; gives its port."""
    server = program(setting)
    folder.mkdir()
    port = spare_port()
    config = folder / "nats.conf"
    config.write_text(
        f'listen: 127.0.0.1:{port}\njetstream {{ store_dir: "{folder}"\n{setting}\n}}\n',
        encoding="utf-8",
    )
    with running([str(server), "--config", str(config)], folder, listening(port)):
        yield port


class Connection:
    """A client that knows only what is measured here."""

    def __init__(self, port: int) -> None:
        self._socket = connected(port)
        self._buffer = b""
        self._line()  # INFO
        options = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True}
        self.write(b"CONNECT " + json.dumps(options).encode() + END)
        self.write(b"SUB " + INBOX + b" 1" + END)
        self.flush()

    @property
    def socket(self) -> socket.socket:
        """For loops that read and write themselves."""
        return self._socket

    def write(self, data: bytes) -> None:
        """As it is."""
        self._socket.sendall(data)

    def flush(self) -> None:
        """Waits until the server has seen everything."""
        self.write(b"PING" + END)
        while self._line() != b"PONG":
            pass

    def ask(self, subject: str, **words: object) -> dict[str, Any]:
        """A request of JetStream's API and its answer."""
        body = json.dumps(words).encode() if words else b""
        self.write(published(b"$JS.API." + subject.encode(), body, INBOX))
        answer: dict[str, Any] = json.loads(self.message()[1])
        assert "error" not in answer, answer
        return answer

    def message(self) -> tuple[bytes, bytes]:
        """The next message: where it wants its answer, and its body."""
        while True:
            words = self._line().split()
            if words[0] == b"PING":
                self.write(b"PONG" + END)
                continue
            assert words[0] in {b"MSG", b"HMSG"}, words
            size = int(words[-1])
            while len(self._buffer) < size + len(END):
                self._more()
            body = self._buffer[:size]
            self._buffer = self._buffer[size + len(END) :]
            return words[3], body

    def waiting_answers(self) -> list[bytes]:
        """Where the messages that are here want their answers; waits for one at least."""
        found: list[bytes] = []
        data, at = self._buffer, 0
        while not found:
            while (end := data.find(END, at)) >= 0:
                words = data[at:end].split()
                if words == [b"PING"]:
                    self.write(b"PONG" + END)
                    at = end + len(END)
                    continue
                after = end + len(END) + int(words[-1]) + len(END)
                if after > len(data):
                    break
                assert words[0] == b"MSG", words
                found.append(words[3])
                at = after
            self._buffer = data[at:]
            if not found:
                self._more()
                data, at = self._buffer, 0
        return found

    def _line(self) -> bytes:
        while END not in self._buffer:
            self._more()
        line, _, self._buffer = self._buffer.partition(END)
        assert not line.startswith(b"-ERR"), line
        return line

    def _more(self) -> None:
        data = self._socket.recv(READ_BYTES)
        if not data:
            raise ConnectionError("the NATS server hung up")
        self._buffer += data


def published(subject: bytes, body: bytes, answer: bytes = b"") -> bytes:
    """A message as NATS reads it."""
    return b"PUB %s %s %d\r\n%s\r\n" % (subject, answer, len(body), body)


class _Stream:
    """JetStream by one connection."""

    def __init__(self, port: int) -> None:
        self._connection = Connection(port)
        for name in ("small", "large"):
            self._connection.ask(
                f"STREAM.CREATE.{name}",
                name=name,
                subjects=[name],
                retention="workqueue",
                storage="file",
            )
        self._connection.ask(
            "CONSUMER.DURABLE.CREATE.small.taker",
            stream_name="small",
            config={"durable_name": "taker", "ack_policy": "explicit", "max_ack_pending": -1},
        )
        self._single = published(b"small", BODY, INBOX)

    def send(self) -> None:
        self._connection.write(self._single)
        _, answer = self._connection.message()
        assert b'"seq"' in answer, answer

    def pipelined(self, load: Load) -> int:
        subject = b"small" if load.body is BODY else b"large"
        frames = published(subject, load.body, INBOX) * load.batch
        rest = b""

        def confirmed(data: bytes) -> int:
            nonlocal rest
            data = rest + data
            assert b'"error"' not in data, data[:500]
            # What may be the beginning of the word is looked at again with what follows.
            cut = data.rfind(b"}") + 1
            rest = data[cut:]
            return data[:cut].count(b'"seq":')

        connection = self._connection.socket
        return keep_under_way(connection, connection, load, frames, confirmed)

    def receive(self, count: int) -> None:
        connection = self._connection
        pull = b"$JS.API.CONSUMER.MSG.NEXT.small.taker"
        asked = took = 0
        while took < count:
            # The next pull goes out while half of the last is still to come.
            while asked < count and asked - took <= PULL_COUNT // 2:
                batch = min(PULL_COUNT, count - asked)
                words = b'{"batch":%d,"expires":%d}' % (batch, 30_000_000_000)
                connection.write(published(pull, words, INBOX))
                asked += batch
            answers = connection.waiting_answers()
            took += len(answers)
            last = answers.pop() if took == count else b""
            connection.write(b"".join(b"PUB %s 4\r\n+ACK\r\n" % answer for answer in answers))
            if last:
                # An acknowledgment that asks for an answer gets it when it and those before it
                # have been done.
                connection.write(published(last, b"+ACK", INBOX))
                connection.message()
        left = connection.ask("CONSUMER.INFO.small.taker")
        assert left["num_ack_pending"] == left["num_pending"] == 0, left

    def close(self) -> None:
        for name in ("small", "large"):
            self._connection.ask(f"STREAM.DELETE.{name}")
        self._connection.socket.close()


class _Subject:
    """Core NATS: published by one connection, counted by another that subscribed."""

    def __init__(self, port: int) -> None:
        self._publisher = Connection(port)
        self._subscriber = Connection(port)
        self._subscriber.write(b"SUB core 2" + END)
        self._subscriber.flush()

    def memory(self, load: Load) -> int:
        arrived = len(b"MSG core 2 %d\r\n%s\r\n" % (len(load.body), load.body))
        count = 0

        def delivered(data: bytes) -> int:
            # All have the same size, so it is enough to count bytes; a PING among them is far
            # smaller than a message and changes nothing.
            nonlocal count
            before = count // arrived
            count += len(data)
            return count // arrived - before

        frames = published(b"core", load.body) * CORE_BATCH
        return keep_under_way(
            self._publisher.socket,
            self._subscriber.socket,
            replace(load, window=CORE_WINDOW, batch=CORE_BATCH),
            frames,
            delivered,
        )

    def close(self) -> None:
        self._publisher.socket.close()
        self._subscriber.socket.close()


def contender(port: int) -> Contender:
    """JetStream with file storage."""
    stream = _Stream(port)
    return Contender(
        send=stream.send,
        pipelined=stream.pipelined,
        receive=stream.receive,
        large=stream.pipelined,
        close=stream.close,
    )


def core_contender(port: int) -> Contender:
    """Core NATS keeps nothing: what nobody is there to take is gone."""
    subject = _Subject(port)
    return Contender(memory=subject.memory, close=subject.close)
