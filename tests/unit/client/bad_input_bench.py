"""A queue manager with one of everything, to which bad things are done, and how that is checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import merq
from merq.client.manager import Manager
from merq.client.queues import Cursor, OutgoingQueue
from merq.client.transactions import Transaction
from merq.errors import MessageQueueError
from unit.client.using_managers import driver_of

PLAIN, SAFE = r".\private$\plain", r".\private$\safe"
REMOTE = r"DIRECT=OS:far\private$\orders"
GUID = "11111111-2222-3333-4444-555555555555"


@dataclass
class Bench:
    """A queue manager with one of everything, and another one beside it."""

    mq: Manager
    other: Manager
    plain: merq.Queue
    safe: merq.Queue
    sub: merq.Queue
    gone: merq.Queue
    foreign: merq.Queue
    outgoing: OutgoingQueue
    cursor: Cursor
    tx: Transaction
    ended: Transaction
    prepared: Transaction
    foreign_tx: Transaction
    lookup_id: int
    # What callers without annotations may give.
    any: Any = None


@contextmanager
def opened_bench(folder: Path) -> Iterator[Bench]:
    """One of everything, in a folder."""
    with (
        merq.open(folder / "here", name="here") as mq,
        merq.open(folder / "there", name="there") as other,
    ):
        plain = mq.create_queue(PLAIN, label="plain")
        safe = mq.create_queue(SAFE, transactional=True)
        plain.send("one", recoverable=True, label="first")
        with mq.transaction() as tx:
            safe.send("two", tx=tx)
        mq.send(REMOTE, "far", recoverable=True)
        gone = mq.create_queue(r".\private$\gone")
        gone.delete()
        ended, prepared = mq.transaction(), mq.transaction()
        ended.abort()
        prepared.prepare()
        yield Bench(
            mq=mq,
            other=other,
            plain=plain,
            safe=safe,
            sub=plain.subqueue("sub"),
            gone=gone,
            foreign=other.create_queue(PLAIN),
            outgoing=mq.outgoing_queues()[0],
            cursor=plain.cursor(),
            tx=mq.transaction(),
            ended=ended,
            prepared=prepared,
            foreign_tx=other.transaction(),
            lookup_id=plain.peek(timeout=0).lookup_id,
        )


def digest(manager: Manager) -> object:
    """Everything in all queues, and what is planned."""

    def everything(engine: Any) -> object:
        state = engine.state
        return (
            {
                number: (
                    queue.properties,
                    [(place, state.stored(place)[1]) for place in queue.positions],
                    dict(queue.notes),
                    queue.staged_bytes,
                    len(queue.waiting),
                    len(queue.descriptors),
                    queue.state,
                )
                for number, queue in state.queues.items()
            },
            {number: list(each.operations) for number, each in state.transactions.items()},
            (state.taken_bytes, state.memory_bytes),
        )

    driver = driver_of(manager)
    with driver._turn:
        return everything(driver.engine)


def check(bench: Bench, code: int, ask: Callable[[], object], said: str) -> None:
    before = digest(bench.mq), digest(bench.other)
    with pytest.raises(MessageQueueError) as caught:
        ask()
    assert caught.value.code == code, caught.value
    assert said in str(caught.value)
    assert (digest(bench.mq), digest(bench.other)) == before
