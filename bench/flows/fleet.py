r"""Three queue managers with known messages: what was sent, and what became of it.

Each has applications that send to its own queues and to those of the next one. Everything happens
as it would: journals, acknowledgments and dead letters are what the queue managers themselves have
made of the messages. Only that a message was received a second time cannot be brought about, so a
folder of Parquet says so, as an archive of a queue manager that is gone would.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from bench.flows.filling import bodies, fill, take_all
from bench.flows.services import Service

import merq
from merq.client.messages import ACKNOWLEDGE_ARRIVAL, ACKNOWLEDGE_RECEIVE

NAMES = ("north", "south", "west")
ACKNOWLEDGE = ACKNOWLEDGE_ARRIVAL | ACKNOWLEDGE_RECEIVE
NOBODY = "127.77.77.77"
"""An address of this machine that nothing listens on."""

PURGED = "MQMSG_CLASS_NACK_Q_PURGED"
NOT_TRANSACTIONAL = "MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_MSG"
SETTLED_S_MAX = 900.0
LOOKING_S = 0.1
THOUSAND = 1_000


@dataclass(frozen=True, slots=True)
class Kind:
    """Messages that the same happens to.

    Attributes:
        name: What it is called here; the queue has the name too.
        share: How many there are among a thousand.
        verdict: What the flow is to say of them.
        words: What happens to them.
        reason: The class that says why they died.
    """

    name: str
    share: int
    verdict: str
    words: str
    reason: str = ""


RECEIVED = Kind(
    "received", 899, "delivered", "sent to an own queue and received; both sides keep journals"
)
DOUBLED = Kind("doubled", 1, "twice", "the same, and an archive has another receipt of them")
TOLD = Kind("told", 30, "delivered", "received; only two acknowledgments tell of it")
WAITING = Kind("waiting", 20, "delivered", "in a queue, and not received")
SENT = Kind("sent", 20, "delivered", "sent to the next queue manager and received there; journals")
COPIED = Kind("copied", 10, "unknown", "the same, and only the sender kept a copy")
DEAD = Kind("purged", 10, "died", "sent to the next queue manager; their queue was purged", PURGED)
REFUSED = Kind(
    "refused",
    5,
    "died",
    "sent to a transactional queue of the next one, which acknowledged that it takes none",
    NOT_TRANSACTIONAL,
)
UNDER_WAY = Kind("away", 5, "under way", "sent to an address where nobody answers")

KINDS = (RECEIVED, DOUBLED, TOLD, WAITING, SENT, COPIED, DEAD, REFUSED, UNDER_WAY)


def counts_of(size: int) -> dict[Kind, int]:
    """How many messages of each kind a queue manager's applications send."""
    return {kind: size * kind.share // THOUSAND for kind in KINDS}


def expected(size: int) -> dict[str, int]:
    """Messages of the whole fleet by what the flow is to say of them."""
    found: dict[str, int] = {}
    for kind, count in counts_of(size).items():
        found[kind.verdict] = found.get(kind.verdict, 0) + count * len(NAMES)
    return found


def prepare(services: Sequence[Service], size: int, archive: Path) -> None:
    """Makes the queues, sends everything, and waits until all of it has happened."""
    with ExitStack() as stack:
        managers = [stack.enter_context(merq.connect(each.url)) for each in services]
        for each in managers:
            _create_queues(each)
        ring = [
            _Sender(services[number], managers[number], services[after], managers[after], size)
            for number in range(len(services))
            for after in [(number + 1) % len(services)]
        ]
        # A queue manager has one processor at most: several fill the machine.
        with ThreadPoolExecutor(len(ring)) as threads:
            for step in (_Sender.fill_own, _Sender.send, _Sender.take):
                list(threads.map(step, ring))
        archive.mkdir(parents=True)
        for number, sender in enumerate(ring):
            pq.write_table(sender.doubled(), archive / f"{number}.parquet")


def _create_queues(manager: merq.Manager) -> None:
    for name in ("admin", TOLD.name, WAITING.name, COPIED.name, DEAD.name):
        manager.create_queue(rf".\private$\{name}")
    for name in (RECEIVED.name, DOUBLED.name, SENT.name):
        manager.create_queue(rf".\private$\{name}", journal=True)
    manager.create_queue(rf".\private$\{REFUSED.name}", transactional=True)


class _Sender:
    """The applications at one queue manager, and the receivers at the next."""

    def __init__(
        self, here: Service, manager: merq.Manager, there: Service, other: merq.Manager, size: int
    ) -> None:
        self._here = here
        self._manager = manager
        self._there = there
        self._other = other
        self._counts = counts_of(size)

    def _own(self, kind: Kind) -> merq.Queue:
        return self._manager.queue(rf".\private$\{kind.name}")

    def _far(self, kind: Kind) -> merq.Queue:
        return self._other.queue(rf".\private$\{kind.name}")

    def fill_own(self) -> None:
        """What is sent to own queues."""
        for kind in (RECEIVED, DOUBLED):
            fill(self._manager, self._own(kind), self._counts[kind], journal=True)
        fill(self._manager, self._own(WAITING), self._counts[WAITING])
        admin = self._here.direct("admin")
        told = self._own(TOLD)
        fill(self._manager, told, self._counts[TOLD], admin_queue=admin, acknowledge=ACKNOWLEDGE)
        for kind in (RECEIVED, DOUBLED, TOLD):
            take_all(self._manager, self._own(kind))

    def send(self) -> None:
        """What is sent to others; it has arrived when this returns."""
        for kind in (SENT, COPIED):
            self._send(self._there.direct(kind.name), kind, journal=True)
        self._send(self._there.direct(DEAD.name), DEAD, dead_letter=True)
        admin = self._here.direct("admin")
        refused = {"admin_queue": admin, "acknowledge": ACKNOWLEDGE_ARRIVAL}
        self._send(self._there.direct(REFUSED.name), REFUSED, **refused)
        self._send(rf"DIRECT=TCP:{NOBODY}\private$\{UNDER_WAY.name}", UNDER_WAY)
        for kind in (SENT, COPIED, DEAD):
            wanted, queue = self._counts[kind], self._far(kind)
            _wait(lambda wanted=wanted, queue=queue: len(queue) == wanted, kind.words)  # type: ignore[misc]

    def _send(self, name: str, kind: Kind, **properties: Any) -> None:
        for some in bodies(0, self._counts[kind]):
            self._manager.send_many(name, some, recoverable=True, **properties)

    def take(self) -> None:
        """What is received or dies at the next queue manager."""
        for kind in (SENT, COPIED):
            take_all(self._other, self._far(kind))
        self._far(DEAD).purge()
        counts = self._counts
        copies = sum(counts[each] for each in (RECEIVED, DOUBLED, SENT, COPIED))
        own = self._manager
        _wait(lambda: len(own.queue(r".\system$;JOURNAL")) == copies, "senders' journals")
        told = 2 * counts[TOLD] + counts[REFUSED]
        _wait(lambda: len(own.queue(r".\private$\admin")) == told, "acknowledgments")
        dead = self._other.queue(r".\system$;DEADLETTER")
        _wait(lambda: len(dead) == counts[DEAD], "dead letters")

    def doubled(self) -> pa.Table:
        """Another receipt of some messages, as an archive has it."""
        journal = self._manager.queue(rf".\private$\{DOUBLED.name};JOURNAL")
        rows = [
            {
                "queue": rf"old\private$\{DOUBLED.name};JOURNAL",
                "message_id": each.id,
                "lookup_id": number,
                "class": "MQMSG_CLASS_NORMAL",
                "destination": each.destination_queue,
            }
            for number, each in enumerate(journal.peek_all())
        ]
        return pa.Table.from_pylist(rows)


def _wait(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + SETTLED_S_MAX
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError(f"not so after {SETTLED_S_MAX:.0f} s: {what}")
        time.sleep(LOOKING_S)
