"""The clients that `test_service_torture` kills: each does one thing to the service, for ever.

Before it asks for anything it notes what that would change, and then what it was told. One note is
one line of its file, on the disk before it goes on:

    try s.4.17 s.4.18      these are being sent, or moved, all or none
    ask 4                  up to so many messages are being asked for
    done s.4.17 s.4.18     it has happened, or these were received
    none                   it did not happen
    doubt s.4.17           it is not known whether it happened

Run it with the service's URL, what to do, the number of its life, and the file.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Final

import merq
from acceptance.torture_program import body_of
from merq.errors import InDoubt
from merq.hresult import HResult
from merq.model.delivered import Delivered
from merq.wire.view import MessageView

PLAIN: Final = r".\private$\plain"
SOURCE: Final = r".\private$\source"
MOVED: Final = r".\private$\moved"
RECONNECT_S: Final = 60.0
WAIT_S: Final = 0.2
PAUSE_S: Final = 0.002
"""Between two things that it does: others want the processor too."""
BATCH: Final = 5
ABORTED: Final = 0.2
"""The part of the transactions that are aborted for no reason."""

GONE: Final = frozenset(
    {HResult.MQ_ERROR_TRANSACTION_SEQUENCE, HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE}
)
"""What a transaction is told that its connection did not survive."""


class Client:
    """One client, and its notes."""

    def __init__(self, manager: merq.Manager, who: str, life: int, file: int) -> None:
        self._manager = manager
        self._who = who
        self._life = life
        self._file = file
        self._chance = Random(f"{who} {life}")  # noqa: S311 - repeatable on purpose

    def note(self, *words: str) -> None:
        line = (" ".join(words) + "\n").encode()
        assert os.write(self._file, line) == len(line)
        os.fsync(self._file)

    def _labels(self, most: int) -> Iterator[list[str]]:
        numbers = count()
        while True:
            chosen = range(self._chance.randrange(1, most + 1))
            yield [f"{self._who}.{self._life}.{next(numbers)}" for _ in chosen]
            time.sleep(PAUSE_S)

    def send(self) -> None:
        queue = self._manager.queue(PLAIN)
        for (label,) in self._labels(1):
            message = merq.Message(body=body_of(label), label=label, recoverable=True)
            self._attempt([label], partial(queue.send, message))

    def send_many(self) -> None:
        queue = self._manager.queue(PLAIN)
        for labels in self._labels(BATCH):
            messages = [
                merq.Message(body=body_of(label), label=label, recoverable=True) for label in labels
            ]
            self._attempt(labels, partial(queue.send_many, messages))

    def feed(self) -> None:
        """Several messages in a transaction: all of them come, or none."""
        queue = self._manager.queue(SOURCE)
        for labels in self._labels(BATCH):
            self.note("try", *labels)
            try:
                with self._manager.transaction() as tx:
                    for label in labels:
                        queue.send(body_of(label), label=label, tx=tx)
                    if self._chance.random() < ABORTED:
                        tx.abort()
                        self.note("none")
                        continue
                self.note("done", *labels)
            except merq.MessageQueueError as wrong:
                self._note_end(wrong, labels)

    def move(self) -> None:
        """Out of one queue and into the other, in a transaction."""
        source, moved = self._manager.queue(SOURCE), self._manager.queue(MOVED)
        while True:
            label = ""
            try:
                with self._manager.transaction() as tx:
                    message = source.receive(timeout=WAIT_S, tx=tx)
                    label = message.label
                    assert message.body == body_of(label), f"{label} has another body"
                    moved.send(message.body, label=label, tx=tx)
                    if self._chance.random() < ABORTED:
                        tx.abort()
                        continue
                    self.note("try", label)
                self.note("done", label)
            except merq.ReceiveTimeout:
                continue
            except merq.MessageQueueError as wrong:
                self._note_end(wrong, [label])
            time.sleep(PAUSE_S)

    def receive(self) -> None:
        queue = self._manager.queue(PLAIN)
        self._receive(1, lambda: [queue.receive(timeout=WAIT_S)])

    def receive_many(self) -> None:
        queue = self._manager.queue(PLAIN)
        self._receive(BATCH, lambda: queue.receive_many(BATCH, timeout=WAIT_S))

    def _receive(self, most: int, act: Callable[[], list[merq.ReceivedMessage]]) -> None:
        while True:
            self.note("ask", str(most))
            try:
                messages = act()
            except merq.ReceiveTimeout:
                self.note("none")
            except InDoubt as doubt:
                self.note("doubt", *labels_of(doubt.received))
            except merq.MessageQueueError as wrong:
                self._note_end(wrong, [])  # its time was over before the service was back
            else:
                for message in messages:
                    assert message.body == body_of(message.label), f"{message.label}: other body"
                self.note("done", *(message.label for message in messages))
            time.sleep(PAUSE_S)

    def _attempt(self, labels: list[str], act: Callable[[], object]) -> None:
        self.note("try", *labels)
        try:
            act()
        except InDoubt:
            self.note("doubt", *labels)
        else:
            self.note("done", *labels)

    def _note_end(self, wrong: merq.MessageQueueError, labels: list[str]) -> None:
        if isinstance(wrong, InDoubt):
            self.note("doubt", *labels)
        elif wrong.code in GONE:
            self.note("none")
        else:
            raise wrong


def labels_of(received: object) -> list[str]:
    """The labels of messages that were on their way."""
    found = received if isinstance(received, list) else [received]
    return [MessageView(each.packet).label for each in found if isinstance(each, Delivered)]


def connected(url: str, deadline: float) -> merq.Manager:
    """The service may just have been killed when a client starts."""
    while True:
        try:
            return merq.connect(url, reconnect_s=RECONNECT_S)
        except merq.MessageQueueError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def main(url: str, what: str, life: str, path: str) -> None:
    file = os.open(Path(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    manager = connected(url, time.monotonic() + RECONNECT_S)
    client = Client(manager, what.replace("_", "-"), int(life), file)
    work: Callable[[], None] = getattr(client, what)
    work()


if __name__ == "__main__":
    main(*sys.argv[1:])
