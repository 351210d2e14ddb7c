"""A reception on a simulated disk, and clients that speak to it frame by frame."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from uuid import UUID

from merq.engine.limits import Limits
from merq.host import Hall, Host
from merq.model.queue import QueueSettings
from merq.protocol.application.codec import decode_result, encode_request
from merq.protocol.application.frames import Frame, FrameReader
from merq.protocol.application.greeting import Hello, Welcome, decode_welcome, encode_hello
from merq.protocol.application.reports import Result
from merq.protocol.application.requests import CreateQueue, Request
from merq.service.reception import (
    Connection,
    LocalPorter,
    Porter,
    Reception,
    ReceptionLimits,
)
from merq.store.disk import Disk
from merq.store.recovery import Identity
from merq.testing.disk import SimulatedDisk
from merq.testing.world import SMALL
from merq.wire.build import Outline, build_packet

START = 1_700_000_000
GUID = UUID("11111111-2222-3333-4444-555555555555")


def packet(body: bytes = b"hello", *, recoverable: bool = True) -> bytes:
    return build_packet(
        Outline(destination=r"OS:here\private$\q", body=body, recoverable=recoverable)
    )


def guids() -> Iterator[UUID]:
    chance = Random(7)  # noqa: S311
    while True:
        yield UUID(int=chance.getrandbits(128), version=4)


class Service:
    """A reception whose disk syncs when it is told to.

    Attributes:
        now: The time, for conversations that are forgotten.
    """

    def __init__(
        self,
        limits: ReceptionLimits | None = None,
        porter: Porter | None = None,
        disk: Disk | None = None,
    ) -> None:
        self.disk = SimulatedDisk(1)
        used = disk or self.disk
        used.lock()
        self.now = 1000.0
        fresh = Identity(store_id=GUID, created=START)
        self.host = Host(used, fresh, "here", Limits(disk_reserve_bytes=0), SMALL)
        self.host.start(START, UUID(int=5))
        self.hall = Hall("test", START)
        new = guids()
        self.reception = Reception(
            self.host, self.hall, porter or LocalPorter(), lambda: next(new), limits
        )

    def settle(self) -> None:
        """Everything that is under way happens, and is told."""
        self.reception.perform()
        self.reception.take(self.host.settle())

    def queue(self, name: str, *, transactional: bool = False) -> int:
        client = Client(self)
        client.hello()
        settings = QueueSettings(transactional=transactional)
        made = client.ask(CreateQueue(rf".\private$\{name}", settings, UUID(int=hash(name) % 99)))
        client.leave()
        assert isinstance(made, int)
        return made

    def client(self) -> Client:
        """One that is welcome."""
        client = Client(self)
        client.hello()
        return client


class Client:
    """Somebody who is connected, and says frames of its own choice."""

    def __init__(self, service: Service, *, is_local: bool = True) -> None:
        self.service = service
        connection = service.reception.connected("somebody", is_local=is_local)
        assert connection is not None, "there is room"
        self.connection: Connection = connection
        self.reader = FrameReader(1 << 30)
        self.frames: list[Frame] = []
        self.answers: dict[int, Result] = {}
        self.count = 0

    def say(self, data: bytes) -> None:
        self.service.reception.received(self.connection, data, self.service.now)

    def hello(self, resume: UUID | None = None) -> Welcome:
        self.say(encode_hello(Hello(protocol="merq", oldest=1, newest=1, resume=resume)))
        return decode_welcome(self.hear()[0])

    def hear(self) -> list[Frame]:
        """What was said to it since."""
        self.reader.feed(b"".join(self.connection.outbox))
        self.connection.outbox.clear()
        self.connection.outbox_bytes = 0
        found = []
        while (each := self.reader.next()) is not None:
            found.append(each)
        return found

    def begin(self, request: Request, number: int = 0, received: int = 0) -> int:
        """Asks for something, and does not wait."""
        self.count = number or self.count + 1
        self.say(encode_request(self.count, request, received))
        return self.count

    def heard(self) -> dict[int, Result]:
        """The answers that came since."""
        return {each.number: decode_result(each) for each in self.hear()}

    def ask(self, request: Request, number: int = 0, received: int = 0) -> Result:
        """Asks for something; the answer, an error as a value."""
        asked = self.begin(request, number, received)
        self.service.settle()
        answers = self.heard()
        assert list(answers) == [asked], answers
        return answers[asked]

    def leave(self) -> None:
        self.service.reception.lost(self.connection, self.service.now)
