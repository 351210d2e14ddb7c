"""Queues for embedded use from the package registry, each with its durable settings and as it is.

Read in their sources (persist-queue 1.1.0, litequeue 0.9), not only in their documentation:

* persist-queue's `SQLiteQueue` uses WAL and leaves `synchronous` at SQLite's own default, FULL: it
  syncs before it confirms. `put` commits by itself whatever `auto_commit` says, so sends have no
  batch way. Gets with `auto_commit=False` are removed together by `task_done`.
* persist-queue's file `Queue` flushes to the system and syncs only when a file of 100 messages is
  full; where its messages begin and end is never synced. It confirms before it syncs.
* litequeue sets `synchronous=NORMAL`: it confirms before it syncs. Its connection is public, so it
  is measured with FULL as well. `pop` has a transaction of its own, so receives have no batch way;
  `pop` alone is measured, although `done` is a second write that its documentation asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.embedded.contender import BODY, Contender

SYNCHRONOUS_FULL = 2
TEXT = BODY.decode("ascii")
"""litequeue keeps text."""


def persist_queue_sqlite(folder: Path) -> Contender:
    """persist-queue's SQLiteQueue; express is its `:memory:`."""
    make: Any = import_module("persistqueue").SQLiteQueue
    singles = make(str(folder / "singles"), auto_commit=True)
    batches = make(str(folder / "batches"), auto_commit=False)
    express = make(":memory:")
    for queue in (singles, batches):
        (level,) = queue._conn.execute("PRAGMA synchronous").fetchone()  # noqa: SLF001 - has no other
        assert level >= SYNCHRONOUS_FULL, f"this SQLite was built with synchronous={level}"

    def peek(identifier: int) -> object:
        # It has no peek by id; this is the query that its get by id begins with.
        return singles._select(rowid=identifier)  # noqa: SLF001

    def close() -> None:
        for queue in (singles, batches, express):
            queue.close()

    return Contender(
        send=lambda: singles.put(BODY),
        receive=lambda: singles.get(block=False),
        batches=(lambda count: _each(lambda: batches.put(BODY), count), _taken(batches)),
        peek=peek,
        express_send=lambda: express.put(BODY),
        express_receive=lambda: express.get(block=False),
        close=close,
    )


def persist_queue_files(folder: Path) -> Contender:
    """persist-queue's file Queue: confirms before it syncs."""
    make: Any = import_module("persistqueue").Queue
    work = folder / "temporary"
    work.mkdir()

    def queue(name: str, *, autosave: bool) -> Any:
        return make(str(folder / name), autosave=autosave, tempdir=str(work))

    singles, batches = queue("singles", autosave=True), queue("batches", autosave=False)
    express = queue("express", autosave=False)

    def put(queue: Any) -> bool:
        queue.put(BODY)
        return True

    return Contender(
        send=lambda: put(singles),
        receive=lambda: singles.get(block=False),
        batches=(lambda count: _each(lambda: put(batches), count), _taken(batches)),
        express_send=lambda: put(express),
        express_receive=lambda: express.get(block=False),
        close=lambda: None,
    )


def litequeue_full(folder: Path) -> Contender:
    """The package litequeue with `synchronous=FULL` set on its connection.

    Express is its `memory=True`.
    """
    return _litequeue(folder, synchronous="FULL")


def litequeue_normal(folder: Path) -> Contender:
    """The package litequeue as it comes, `synchronous=NORMAL`: confirms before it syncs."""
    return _litequeue(folder, synchronous="NORMAL")


def _litequeue(folder: Path, synchronous: str) -> Contender:
    make: Any = import_module("litequeue").LiteQueue
    singles, batches = (make(str(folder / name)) for name in ("singles.db", "batches.db"))
    express = make(memory=True) if synchronous == "FULL" else make(str(folder / "express.db"))
    for queue in (singles, batches):
        queue.conn.execute(f"PRAGMA synchronous = {synchronous}")

    def send_batch(count: int) -> None:
        with batches.transaction():
            for _ in range(count):
                batches.put(TEXT)

    def close() -> None:
        for queue in (singles, batches, express):
            queue.close()

    return Contender(
        send=lambda: singles.put(TEXT).message_id,
        receive=lambda: singles.pop().data,
        batches=(send_batch, lambda count: _each(lambda: batches.pop().data, count)),
        peek=lambda identifier: singles.get(identifier).data,
        express_send=lambda: express.put(TEXT),
        express_receive=lambda: express.pop().data,
        close=close,
    )


def _each(step: Callable[[], object], count: int) -> list[object]:
    """One at a time, where there is no batch way."""
    return [step() for _ in range(count)]


def _taken(queue: Any) -> Callable[[int], list[object]]:
    """Gets that are removed together by one `task_done`."""

    def receive(count: int) -> list[object]:
        found = [queue.get(block=False) for _ in range(count)]
        queue.task_done()
        return found

    return receive
