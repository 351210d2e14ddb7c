r"""`merq.open`: recoverable messages to a queue, by `send_many`, and in transactions."""

from __future__ import annotations

from pathlib import Path

from bench.embedded.contender import BODY, Batches, Contender

import merq


def merq_embedded(folder: Path) -> Contender:
    """A recoverable message is on disk when `send` returns, its removal when `receive` does."""
    manager = merq.open(folder / "merq")
    plain = manager.create_queue(r".\private$\plain")
    express = manager.create_queue(r".\private$\express")
    return Contender(
        send=lambda: plain.send(BODY, recoverable=True),
        receive=lambda: plain.receive(timeout=0).body,
        batches=_batches(manager.create_queue(r".\private$\batches")),
        transactions=_transactions(manager),
        peek=lambda identifier: plain.peek_by_id(identifier).body,
        express_send=lambda: express.send(BODY),
        express_receive=lambda: express.receive(timeout=0).body,
        close=manager.close,
    )


def _batches(queue: merq.Queue) -> Batches:
    """`send_many` and `receive_many`."""

    def send(count: int) -> object:
        return queue.send_many([BODY] * count, recoverable=True)

    def receive(count: int) -> list[object]:
        return [each.body for each in queue.receive_many(count, timeout=0)]

    return send, receive


def _transactions(manager: merq.Manager) -> Batches:
    queue = manager.create_queue(r".\private$\strict", transactional=True)

    def send(count: int) -> None:
        with manager.transaction() as tx:
            for _ in range(count):
                queue.send(BODY, tx=tx)

    def receive(count: int) -> list[object]:
        with manager.transaction() as tx:
            return [queue.receive(timeout=0, tx=tx).body for _ in range(count)]

    return send, receive
