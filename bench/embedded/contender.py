"""What every contender can do, and how it is measured."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

BODY = b"x" * 1024
BATCH = 100
SINGLES = 1_000
BATCHES = 20
EXPRESS = 2_000
PEEKS = 2_000
WARMING = 50

SEND = "send, one at a time"
SEND_BATCH = "send by 100"
SEND_TRANSACTION = "send by 100, one transaction"
RECEIVE = "receive, one at a time"
RECEIVE_BATCH = "receive by 100"
RECEIVE_TRANSACTION = "receive by 100, one transaction"
PEEK = "peek by id"
EXPRESS_SEND = "express, send"
EXPRESS_RECEIVE = "express, receive"
"""One at a time, not durable, and not meant to be."""

OPERATIONS = (
    SEND,
    SEND_BATCH,
    SEND_TRANSACTION,
    RECEIVE,
    RECEIVE_BATCH,
    RECEIVE_TRANSACTION,
    PEEK,
    EXPRESS_SEND,
    EXPRESS_RECEIVE,
)

SAME_FOR_OTHERS = {SEND_TRANSACTION: SEND_BATCH, RECEIVE_TRANSACTION: RECEIVE_BATCH}
"""Their best batch way is a transaction, so it stands beside both of ours."""

Batches = tuple[Callable[[int], object], Callable[[int], Sequence[object]]]
"""Sends so many messages together; receives so many together and gives their bodies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A store as a queue. What returns has happened, durably unless the contender says otherwise.

    Attributes:
        send: Sends a message; gives what `peek` finds it by.
        receive: Takes the oldest message; gives its body.
        batches: Both ways by the hundred.
        transactions: The same in an explicit transaction, where that is another way.
        peek: The body of a message that stays.
        express_send: A message that need not survive.
        express_receive: Takes it.
    """

    send: Callable[[], object]
    receive: Callable[[], object]
    batches: Batches | None
    transactions: Batches | None = None
    peek: Callable[[Any], object] | None = None
    express_send: Callable[[], object]
    express_receive: Callable[[], object]
    close: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Task:
    """One operation, ready to be run: `count` messages."""

    name: str
    count: int
    run: Callable[[], None]


def tasks(contender: Contender) -> list[Task]:
    """Everything that is measured, in an order in which each finds the messages that it needs."""
    identifiers: list[object] = []
    found = [
        Task(SEND, SINGLES, lambda: _collect(contender.send, identifiers)),
        Task(RECEIVE, SINGLES, lambda: _repeat(contender.receive, SINGLES)),
    ]
    if contender.peek is not None:
        peek = contender.peek
        found.insert(1, Task(PEEK, PEEKS, lambda: _peek(peek, identifiers)))
    for names, batches in (
        ((SEND_BATCH, RECEIVE_BATCH), contender.batches),
        ((SEND_TRANSACTION, RECEIVE_TRANSACTION), contender.transactions),
    ):
        if batches is not None:
            found += _batch_tasks(names, batches)
    found += [
        Task(EXPRESS_SEND, EXPRESS, lambda: _repeat(contender.express_send, EXPRESS)),
        Task(EXPRESS_RECEIVE, EXPRESS, lambda: _repeat(contender.express_receive, EXPRESS)),
    ]
    return found


def warm(contender: Contender) -> None:
    """Everything once or more, so that no first time is measured."""
    _repeat(contender.send, WARMING)
    _repeat(contender.receive, WARMING)
    _repeat(contender.express_send, WARMING)
    _repeat(contender.express_receive, WARMING)
    for batches in (contender.batches, contender.transactions):
        if batches is not None:
            send, receive = batches
            send(BATCH)
            receive(BATCH)


def rates(contender: Contender) -> dict[str, float]:
    """Messages a second, by operation."""
    warm(contender)
    found = {}
    for task in tasks(contender):
        start = time.perf_counter()
        task.run()
        found[task.name] = task.count / (time.perf_counter() - start)
    return found


def _batch_tasks(names: tuple[str, str], batches: Batches) -> list[Task]:
    send, receive = batches

    def send_all() -> None:
        for _ in range(BATCHES):
            send(BATCH)

    def receive_all() -> None:
        for _ in range(BATCHES):
            found = receive(BATCH)
            assert len(found) == BATCH, f"{len(found)} of {BATCH} messages came"

    runs = (send_all, receive_all)
    return [Task(name, BATCH * BATCHES, run) for name, run in zip(names, runs, strict=True)]


def _repeat(step: Callable[[], object], count: int) -> None:
    for _ in range(count):
        assert step() is not None, "no message came"


def _collect(send: Callable[[], object], identifiers: list[object]) -> None:
    for _ in range(SINGLES):
        identifiers.append(send())  # noqa: PERF401 - the same loop for all


def _peek(peek: Callable[[Any], object], identifiers: Sequence[object]) -> None:
    for identifier in random.Random(1).choices(identifiers, k=PEEKS):  # noqa: S311 - the same order
        assert peek(identifier) is not None, "no message there"
