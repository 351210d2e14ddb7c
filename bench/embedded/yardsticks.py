"""What the disk allows, and the two embedded databases that a queue is often made of."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from importlib import import_module
from itertools import count as counting
from pathlib import Path
from typing import Any

from bench.embedded.contender import BODY, Contender

REMOVAL = bytes(16)
"""What a log must write at least to say that a message is gone."""
RESERVED = 64 << 20
MAP_SIZE = 1 << 30


class _File:
    """A file with room reserved ahead, as ours has; every append is made durable, or none is."""

    def __init__(self, path: Path, sync: Callable[[int], None] | None) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self._descriptor, 0, RESERVED)
        self._sync = sync
        self._end = 0
        self._next = 0

    def append(self, data: bytes) -> int:
        at = self._end
        self._end += os.pwrite(self._descriptor, data, at)
        if self._sync is not None:
            self._sync(self._descriptor)
        return at

    def send(self) -> int:
        return self.append(BODY)

    def send_batch(self, count: int) -> int:
        return self.append(BODY * count)

    def receive(self) -> bytes:
        (body,) = self.receive_batch(1)
        return body

    def receive_batch(self, count: int) -> list[bytes]:
        size = len(BODY)
        data = os.pread(self._descriptor, size * count, self._next)
        self._next += len(data)
        self.append(REMOVAL * count)
        return [data[at : at + size] for at in range(0, len(data), size)]

    def peek(self, at: int) -> bytes:
        return os.pread(self._descriptor, len(BODY), at)

    def close(self) -> None:
        os.close(self._descriptor)


def raw_appends(folder: Path) -> Contender:
    """Bare writes to one file, fdatasync after each write: no queue, no checksum, no recovery."""
    sync = getattr(os, "fdatasync", os.fsync)
    singles, batches = (_File(folder / name, sync) for name in ("singles", "batches"))
    express = _File(folder / "express", None)

    def close() -> None:
        for file in (singles, batches, express):
            file.close()

    return Contender(
        send=singles.send,
        receive=singles.receive,
        batches=(batches.send_batch, batches.receive_batch),
        peek=singles.peek,
        express_send=express.send,
        express_receive=express.receive,
        close=close,
    )


class _Table:
    """A table as a queue."""

    def __init__(self, path: str) -> None:
        self._base = sqlite3.connect(path, isolation_level=None)
        self._base.execute("PRAGMA journal_mode=WAL")
        self._base.execute("PRAGMA synchronous=FULL")
        self._base.execute("CREATE TABLE queue (id INTEGER PRIMARY KEY, body BLOB)")
        self.close = self._base.close

    def send(self) -> int | None:
        return self._base.execute("INSERT INTO queue (body) VALUES (?)", (BODY,)).lastrowid

    def send_batch(self, count: int) -> None:
        self._base.execute("BEGIN IMMEDIATE")
        self._base.executemany("INSERT INTO queue (body) VALUES (?)", [(BODY,)] * count)
        self._base.execute("COMMIT")

    def receive(self) -> bytes:
        (body,) = self.receive_batch(1)
        return body

    def receive_batch(self, count: int) -> list[bytes]:
        self._base.execute("BEGIN IMMEDIATE")
        found = self._base.execute(
            "SELECT id, body FROM queue ORDER BY id LIMIT ?", (count,)
        ).fetchall()
        self._base.execute("DELETE FROM queue WHERE id <= ?", (found[-1][0],))
        self._base.execute("COMMIT")
        return [body for _, body in found]

    def peek(self, identifier: int) -> object:
        return self._base.execute("SELECT body FROM queue WHERE id = ?", (identifier,)).fetchone()


def sqlite(folder: Path) -> Contender:
    """A table in SQLite, `journal_mode=WAL`, `synchronous=FULL`; express is `:memory:`."""
    singles, batches = (_Table(str(folder / name)) for name in ("singles.db", "batches.db"))
    express = _Table(":memory:")

    def close() -> None:
        for table in (singles, batches, express):
            table.close()

    return Contender(
        send=singles.send,
        receive=singles.receive,
        batches=(batches.send_batch, batches.receive_batch),
        peek=singles.peek,
        express_send=express.send,
        express_receive=express.receive,
        close=close,
    )


class _Tree:
    """Numbers as keys, in order; the highest is written with LMDB's own shortcut for appending."""

    def __init__(self, path: Path, **settings: object) -> None:
        self._environment: Any = import_module("lmdb").open(
            str(path), map_size=MAP_SIZE, **settings
        )
        self._numbers = counting()
        self.close = self._environment.close

    def send(self) -> bytes:
        return self.send_batch(1)

    def send_batch(self, count: int) -> bytes:
        key = b""
        with self._environment.begin(write=True) as transaction:
            for _ in range(count):
                key = next(self._numbers).to_bytes(8, "big")
                transaction.put(key, BODY, append=True)
        return key

    def receive(self) -> bytes:
        (body,) = self.receive_batch(1)
        return body

    def receive_batch(self, count: int) -> list[bytes]:
        found: list[bytes] = []
        with self._environment.begin(write=True) as transaction:
            cursor = transaction.cursor()
            cursor.first()
            for _ in range(count):
                found.append(cursor.value())
                cursor.delete()
        return found

    def peek(self, key: bytes) -> object:
        with self._environment.begin() as transaction:
            return transaction.get(key)


def lmdb(folder: Path) -> Contender:
    """LMDB as it comes: every commit is synced, data and meta page; express is `sync=False`."""
    singles, batches = (_Tree(folder / name) for name in ("singles", "batches"))
    express = _Tree(folder / "express", sync=False)

    def close() -> None:
        for tree in (singles, batches, express):
            tree.close()

    return Contender(
        send=singles.send,
        receive=singles.receive,
        batches=(batches.send_batch, batches.receive_batch),
        peek=singles.peek,
        express_send=express.send,
        express_receive=express.receive,
        close=close,
    )
