r"""The applications of a soak: one sends numbers to another queue manager, one receives them there.

Each keeps the next number in a queue of its own queue manager, and changes it in the transaction
that sends or receives: so it knows after any failure how far it is, and a number that came twice,
never or too early cannot go unnoticed. Run it with what to do, the URL, the folder in which they
tell how far they are, and for the sender the name of the other's queue, the count, the size of a
transaction, and whether it wants copies.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final

import merq

ORDERS: Final = r".\private$\orders"
NEXT: Final = r".\private$\next"
TOTAL: Final = "total"
"""The file that says how many there are, once that is known."""
STOP: Final = "stop"
"""The file that says that enough was sent."""
COPIES: Final = "copies"
"""Says that a dead letter is wanted of what is not received: so messages wait for a FinalAck."""
LIMIT: Final = "limit"
"""The file that says up to where may be sent, so that whoever is to be killed is at work then."""
RECONNECT_S: Final = 120.0
WAIT_S: Final = 0.5
BODY: Final = b"%012d" + b"." * 88
RECEIVED_MAX: Final = 500
"""Messages of one receiving transaction."""


class OutOfOrder(Exception):
    """A message is not the one that had to come."""


def next_number(manager: merq.Manager) -> int:
    """Where to go on: nothing before it is to be done again."""
    return int(str(manager.queue(NEXT).peek(timeout=RECONNECT_S).body))


def tell(folder: Path, who: str, number: int) -> None:
    """Says how far somebody is."""
    (folder / who).write_text(str(number))


def send_some(
    manager: merq.Manager, name: str, first: int, count: int, *, dead_letter: bool
) -> None:
    """One transaction of the sender."""
    following = manager.queue(NEXT)
    outgoing = next(
        (each for each in manager.outgoing_queues() if each.destination.lower() == name.lower()),
        None,
    )
    numbers = range(first, first + count)
    with manager.transaction() as tx:
        following.receive(timeout=RECONNECT_S, tx=tx)
        if outgoing is not None:
            bodies = (BODY % number for number in numbers)
            outgoing.send_many(bodies, tx=tx, dead_letter=dead_letter)
        else:
            for number in numbers:
                manager.send(name, BODY % number, tx=tx, dead_letter=dead_letter)
        following.send(str(first + count), tx=tx)


def send(manager: merq.Manager, folder: Path, rest: list[str]) -> None:
    """Sends all numbers, in order."""
    name, count, batch, copies = rest[0], int(rest[1]), int(rest[2]), rest[3] == COPIES
    number = next_number(manager)
    while number < count and not (folder / STOP).exists():
        some = min(batch, int((folder / LIMIT).read_text() or "0") - number)
        if some <= 0:
            time.sleep(0.01)
            continue
        try:
            send_some(manager, name, number, some, dead_letter=copies)
        except merq.MessageQueueError as wrong:
            print(f"{number}: {wrong}", flush=True)
            time.sleep(0.05)
        number = next_number(manager)
        tell(folder, "sent", number)
    tell(folder, TOTAL, number)


def receive_some(manager: merq.Manager, first: int) -> None:
    """One transaction of the receiver."""
    orders, following = manager.queue(ORDERS), manager.queue(NEXT)
    with manager.transaction() as tx:
        found = orders.receive_many(RECEIVED_MAX, timeout=WAIT_S, tx=tx)
        for number, message in enumerate(found, first):
            if message.body != BODY % number:
                came = str(message.body)[:20]
                raise OutOfOrder(f"{came} came where {number} belongs; lookup {message.lookup_id}")
        following.receive(timeout=RECONNECT_S, tx=tx)
        following.send(str(first + len(found)), tx=tx)


def receive(manager: merq.Manager, folder: Path) -> None:
    """Receives numbers until all have come."""
    number = next_number(manager)
    total = folder / TOTAL
    while not (total.exists() and number >= int(total.read_text() or "0") > 0):
        try:
            receive_some(manager, number)
        except merq.ReceiveTimeout:
            continue
        except merq.MessageQueueError as wrong:
            print(f"{number}: {wrong}", flush=True)
            time.sleep(0.05)
        number = next_number(manager)
        tell(folder, "received", number)


def connected(url: str) -> merq.Manager:
    """A connection, also if the queue manager is just being killed."""
    deadline = time.monotonic() + RECONNECT_S
    while True:
        try:
            return merq.connect(url, reconnect_s=RECONNECT_S)
        except merq.MessageQueueError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def main() -> None:
    """Does what it was told."""
    what, url, folder, *rest = sys.argv[1:]
    with connected(url) as manager:
        if what == "send":
            send(manager, Path(folder), rest)
        else:
            receive(manager, Path(folder))


if __name__ == "__main__":
    main()
