"""Redis Streams, over the socket with frames made beforehand; replies are read by hiredis.

A receive reads by group, then acknowledges and deletes: that is what makes a stream a queue. With
`appendfsync always` Redis writes and syncs its log once a pass of its loop, before it answers what
came in that pass; with `everysec` it answers first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
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
from bench.brokers.packages import REDIS, unpacked
from bench.brokers.running import listening, running, spare_port

ALWAYS = "always"
EVERYSEC = "everysec"
READ_COUNT = 500
"""Messages a read; one read is answered while another is under way."""

READS_UNDER_WAY = 2
GROUP, CONSUMER = b"bench", b"one"


@contextmanager
def serving(folder: Path, appendfsync: str) -> Iterator[int]:
    """A server with an append-only file; gives its port. It never writes snapshots meanwhile."""
    place = unpacked(REDIS)
    folder.mkdir()
    port = spare_port()
    libraries = ":".join(str(each) for each in sorted(place.glob("usr/lib/*-linux-gnu")))
    settings = {
        "bind": "127.0.0.1",
        "port": str(port),
        "dir": str(folder),
        "appendonly": "yes",
        "appendfsync": appendfsync,
        "save": "",
    }
    command = [str(place / "usr/bin/redis-server")]
    for name, value in settings.items():
        command += [f"--{name}", value]
    with running(command, folder, listening(port), {"LD_LIBRARY_PATH": libraries}):
        yield port


def packed(*words: bytes) -> bytes:
    """A command as Redis reads it."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


class _Stream:
    """One connection."""

    def __init__(self, port: int) -> None:
        self._socket = connected(port)
        self._reader: Any = import_module("hiredis").Reader()
        self._single = packed(b"XADD", b"small", b"*", b"body", BODY)

    def ask(self, *words: bytes) -> Any:
        """Sends a command and gives its answer."""
        self._socket.sendall(packed(*words))
        return self._answer()

    def send(self) -> None:
        self._socket.sendall(self._single)
        answer = self._socket.recv(READ_BYTES)
        assert answer.startswith(b"$"), answer

    def pipelined(self, load: Load) -> int:
        stream = b"small" if load.body is BODY else b"large"
        frames = packed(b"XADD", stream, b"*", b"body", load.body) * load.batch
        lines, last = 0, b"\n"

        def confirmed(data: bytes) -> int:
            # An identifier is a line with its length and a line with itself; an error is a line
            # that begins with a minus.
            nonlocal lines, last
            assert b"\n-" not in last + data, data
            last = data[-1:]
            before = lines // 2
            lines += data.count(b"\n")
            return lines // 2 - before

        return keep_under_way(self._socket, self._socket, load, frames, confirmed)

    def receive(self, count: int) -> None:
        read = packed(
            *(b"XREADGROUP", b"GROUP", GROUP, CONSUMER, b"COUNT", b"%d" % READ_COUNT),
            *(b"STREAMS", b"small", b">"),
        )
        asked = min(count, READS_UNDER_WAY * READ_COUNT)
        reads = -(-asked // READ_COUNT)
        self._socket.sendall(read * reads)
        asked = reads * READ_COUNT
        expected = deque([True] * reads)
        took = 0
        while expected:
            answer = self._answer()
            if not expected.popleft():
                assert answer > 0, f"{answer} messages were removed"
                continue
            ((_, entries),) = answer
            names = [name for name, _ in entries]
            took += len(names)
            more = asked < count
            asked += READ_COUNT * more
            expected.extend([False, False, True] if more else [False, False])
            self._socket.sendall(
                packed(b"XACK", b"small", GROUP, *names)
                + packed(b"XDEL", b"small", *names)
                + read * more
            )
        assert took == count, f"{took} of {count} messages came"

    def _answer(self) -> Any:
        while (answer := self._reader.gets()) is False:
            self._reader.feed(self._socket.recv(READ_BYTES))
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.ask(b"FLUSHALL")
        self._socket.close()


def contender(port: int) -> Contender:
    """Streams `small` and `large`; the group that receives begins with the first message."""
    stream = _Stream(port)
    stream.ask(b"FLUSHALL")
    stream.ask(b"XGROUP", b"CREATE", b"small", GROUP, b"0", b"MKSTREAM")
    return Contender(
        send=stream.send,
        pipelined=stream.pipelined,
        receive=stream.receive,
        large=stream.pipelined,
        close=stream.close,
    )


def unsynced_contender(port: int) -> Contender:
    """The same; what it does not sync counts as memory only too."""
    return replace(contender(port), memory=_Stream(port).pipelined)
