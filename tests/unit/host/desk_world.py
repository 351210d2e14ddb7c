"""Desks of several clients on one queue manager, on a simulated disk."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from merq.engine.limits import Limits
from merq.errors import MessageQueueError
from merq.host import Desk, Hall, Host, HostSettings, Pending
from merq.model.queue import QueueSettings
from merq.model.selecting import First
from merq.protocol.application.reports import Result
from merq.protocol.application.requests import Begin, CreateQueue, Read, Request, Send
from merq.store.recovery import Identity
from merq.testing.disk import SimulatedDisk
from merq.testing.world import SMALL
from merq.wire.build import Outline, build_packet

START = 1_700_000_000
GUID = UUID("11111111-2222-3333-4444-555555555555")


def packet(body: bytes = b"hello", **outline: Any) -> bytes:
    chosen = {"destination": r"OS:here\private$\q", "recoverable": True, **outline}
    return build_packet(Outline(body=body, **chosen))


class Bureau:
    """A queue manager, and desks at it.

    Attributes:
        answers: What was answered and nobody has taken, by request.
    """

    def __init__(self, settings: HostSettings = SMALL) -> None:
        self.disk = SimulatedDisk(1)
        self.disk.lock()
        fresh = Identity(store_id=GUID, created=START)
        self.host = Host(self.disk, fresh, "here", Limits(disk_reserve_bytes=0), settings)
        self.host.start(START, UUID(int=5))
        self.hall = Hall("test 1", START - 5, connections=2)
        self.state = self.host.engine.state
        self.count = 0
        self.owners: dict[int, Desk] = {}
        self.answers: dict[int, Result] = {}

    def desk(self) -> Desk:
        return Desk(self.host, self.hall)

    def begin(self, desk: Desk, request: Request) -> int:
        """Asks, and does not wait for what the disk does."""
        self.count += 1
        number = self.count
        self.owners[number] = desk
        try:
            reply = desk.perform(number, request)
        except MessageQueueError as refused:
            self.answers[number] = refused
            return number
        if not isinstance(reply, Pending):
            self.answers[number] = reply
        return number

    def settle(self) -> None:
        for answer in self.host.settle():
            if answer.request:
                self.owners[answer.request].settled(answer.request, answer.result)
                self.answers[answer.request] = answer.result

    def ask(self, desk: Desk, request: Request) -> Result:
        number = self.begin(desk, request)
        self.settle()
        return self.answers.pop(number)

    def number(self, desk: Desk, request: Request) -> int:
        """The number that something is answered with."""
        found = self.ask(desk, request)
        assert isinstance(found, int), found
        return found

    def queue(self, name: str, *, transactional: bool = False) -> int:
        settings = QueueSettings(transactional=transactional)
        self.count += 1
        return self.number(
            self.desk(), CreateQueue(rf".\private$\{name}", settings, UUID(int=self.count))
        )

    def send(self, queue: int, body: bytes = b"hello") -> bytes:
        """A message; gives its id."""
        found = self.ask(self.desk(), Send(queue, [packet(body)]))
        assert isinstance(found, bytes), found
        return found

    def send_within(self, desk: Desk, transaction: int, queue: int) -> bytes:
        """A message in a new transaction, which stays open; gives its id."""
        assert self.ask(desk, Begin(transaction)) is None
        found = self.ask(desk, Send(queue, [packet()], transaction))
        assert isinstance(found, bytes), found
        return found

    def hold(self, desk: Desk, queue: int) -> int:
        """A message that a client holds; gives its lookup identifier."""
        found = self.ask(desk, Read(queue, First(), held=True))
        lookup_id: int = found.lookup_id  # type: ignore[union-attr]
        return lookup_id
