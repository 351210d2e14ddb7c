"""Putting many messages into queues, and taking them out, by the hundred thousand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import merq
from merq.client.packets import Packer, destination_of
from merq.model.destinations import parse_destination

BODY_BYTES = 100
SENT_AT_ONCE = 2_000
PUBLISHED_AT_ONCE = 500_000
GROUP, OWNER = "bench", "bench"


def body(number: int) -> bytes:
    """A small order, always of the same size; no two are the same."""
    text = f'{{"order": {number:>9}, "customer": "c{number % 9_973:05}", "item": {number * 7 % 997}'
    return f"{text:<{BODY_BYTES - 1}}}}".encode()


def bodies(first: int, count: int) -> Iterator[list[bytes]]:
    """So many, in pieces that are sent at once."""
    for start in range(first, first + count, SENT_AT_ONCE):
        yield [body(each) for each in range(start, min(start + SENT_AT_ONCE, first + count))]


def fill(manager: merq.Manager, queue: merq.Queue, count: int, **properties: Any) -> None:
    """Puts messages into a queue of the queue manager's own, on the disk when this returns."""
    name = rf"DIRECT=OS:{manager.name}{queue.path_name.removeprefix('.')}"
    packer = Packer(destination_of(parse_destination(name)[0]))
    pack = packer.kind_with({"recoverable": True, **properties}).pack
    writer = f"fill {uuid4()}"
    for batch, first in enumerate(range(0, count, PUBLISHED_AT_ONCE)):
        stage = manager.bulk.stage(queue, writer, batch, "0")
        for some in bodies(first, min(PUBLISHED_AT_ONCE, count - first)):
            stage.send([pack(each) for each in some])
        manager.bulk.publish(writer, batch, [stage.number])


def take_all(manager: merq.Manager, queue: merq.Queue) -> int:
    """Receives all that a queue has; gives how many messages that were."""
    total = after = 0
    while True:
        found = manager.bulk.reserve(queue, GROUP, OWNER, after)
        if not found.messages and found.end == after:
            break
        total += found.messages
        after = found.end
        manager.bulk.acknowledge(queue, GROUP, OWNER, after)
    manager.bulk.leave(queue, GROUP, OWNER)
    return total
