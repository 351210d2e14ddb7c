"""Applications that go on while strangers attack: each keeps a diary that says what it has done.

    python -m hostile.honest_program ROLE URL FOLDER [NAME]

`send` sends recoverable messages with numbers to NAME, a queue of another queue manager; `receive`
takes them out of `inbox`; `orders` receives the transactional numbers that
`acceptance.exchange_soak_program` sends; `local` sends to and receives from a queue of its own and
writes down how long each send took. What strangers put into the queues is thrown away. Those who
send end when the file `stop` is in the folder, those who receive when they have all.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final

import merq
from acceptance import exchange_soak_program as soak
from acceptance.exchange_soak_program import STOP, OutOfOrder, connected

INBOX: Final = r".\private$\inbox"
LOCAL: Final = r".\private$\local"
SENT, AGAIN = "inbox-sent", "inbox-again"
RECEIVED, MAYBE = "inbox-received", "inbox-maybe"
TIMES: Final = "local-times"
TOTAL: Final = "inbox-total"
LABEL: Final = "an honest number"
SEND_EVERY_S: Final = 0.01
LOCAL_EVERY_S: Final = 0.005
FAILURE_PAUSE_S: Final = 0.05
PATIENCE_S: Final = 60.0


def send(manager: merq.Manager, folder: Path, name: str) -> None:
    """Sends numbers; one of which it is not known whether it went is sent again, and noted."""
    number, is_last = 0, False
    with (folder / SENT).open("a") as sent, (folder / AGAIN).open("a") as again:
        while not is_last:
            is_last = (folder / STOP).exists()
            while not _is_sent(manager, name, number):
                print(number, file=again, flush=True)
            print(number, file=sent, flush=True)
            number += 1
            time.sleep(SEND_EVERY_S)
    (folder / TOTAL).write_text(str(number))


def _is_sent(manager: merq.Manager, name: str, number: int) -> bool:
    try:
        manager.send(name, str(number), recoverable=True, label=LABEL)
    except merq.MessageQueueError as wrong:
        print(wrong, flush=True)
        time.sleep(FAILURE_PAUSE_S)
        return False
    return True


def receive(manager: merq.Manager, folder: Path) -> None:
    """Receives numbers until all have come; those of a receive that failed may come again."""
    total = folder / TOTAL
    seen: set[int] = set()
    with (folder / RECEIVED).open("a") as received, (folder / MAYBE).open("a") as maybe:
        while not (total.exists() and len(seen) >= int(total.read_text() or "0") > 0):
            numbers: list[int] = []
            diary = received
            try:
                with manager.queue(INBOX).hold(200, timeout=0.5) as messages:
                    numbers = [int(str(each.body)) for each in messages if each.label == LABEL]
            except merq.ReceiveTimeout:
                continue
            except merq.MessageQueueError as wrong:
                print(wrong, flush=True)
                time.sleep(FAILURE_PAUSE_S)
                diary = maybe
            seen.update(numbers)
            for number in numbers:
                print(number, file=diary, flush=True)


def orders(manager: merq.Manager, folder: Path) -> None:
    """Receives the transactional numbers, each in its turn, until all have come."""
    number = soak.next_number(manager)
    total = folder / soak.TOTAL
    while not (total.exists() and number >= int(total.read_text() or "0") > 0):
        try:
            _receive_orders(manager, number)
        except merq.ReceiveTimeout:
            continue
        except merq.MessageQueueError as wrong:
            print(f"{number}: {wrong}", flush=True)
            time.sleep(FAILURE_PAUSE_S)
        number = soak.next_number(manager)
        soak.tell(folder, "received", number)


def _receive_orders(manager: merq.Manager, first: int) -> None:
    queue, following = manager.queue(soak.ORDERS), manager.queue(soak.NEXT)
    with manager.transaction() as tx:
        found = queue.receive_many(soak.RECEIVED_MAX, timeout=soak.WAIT_S, tx=tx)
        bodies = [bytes(each.body) for each in found if isinstance(each.body, bytes)]
        ours = [body for body in bodies if len(body) == len(soak.BODY % 0)]
        for number, body in enumerate(ours, first):
            if body != soak.BODY % number:
                raise OutOfOrder(f"{body[:20]!r} came where {number} belongs")
        following.receive(timeout=soak.RECONNECT_S, tx=tx)
        following.send(str(first + len(ours)), tx=tx)


def local(manager: merq.Manager, folder: Path) -> None:
    """Sends and receives, and notes when each send began, how long it and the receive took."""
    queue = manager.queue(LOCAL)
    number = 0
    with (folder / TIMES).open("a") as times:
        while not (folder / STOP).exists():
            began = time.monotonic()
            try:
                queue.send(str(number), recoverable=True)
                sent = time.monotonic()
                body = queue.receive(timeout=PATIENCE_S).body
            except merq.MessageQueueError as wrong:
                print(f"{number}: {wrong}", flush=True)
                time.sleep(FAILURE_PAUSE_S)
                continue
            assert int(str(body)) <= number, body
            print(f"{began:.6f} {sent - began:.6f} {time.monotonic() - sent:.6f}", file=times)
            times.flush()
            number += 1
            time.sleep(LOCAL_EVERY_S)


def main() -> None:
    """Does what it was told."""
    role, url, folder, *rest = sys.argv[1:]
    with connected(url) as manager:
        match role:
            case "send":
                send(manager, Path(folder), rest[0])
            case "receive":
                receive(manager, Path(folder))
            case "orders":
                orders(manager, Path(folder))
            case _:
                local(manager, Path(folder))


if __name__ == "__main__":
    main()
