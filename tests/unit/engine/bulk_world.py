"""The world without a disk, with what whoever reads and writes in batches asks for."""

from __future__ import annotations

from dataclasses import dataclass

from merq.engine.queue import Queue
from merq.engine.runs import SEQUENCE_MASK
from merq.engine.staging import StageLabel
from merq.errors import MessageQueueError
from merq.model.reservations import RangeReport
from merq.wire.view import MessageView
from unit.engine.engine_world import World

ALL = SEQUENCE_MASK
GROUP = "readers"
OWNER = "one"
WRITER = "query"


@dataclass
class BulkWorld(World):
    """An engine, its log, and who reads and writes in batches."""

    # Reading. What begins with `ask` gives the number of the request, and performs nothing.

    def queue(self, number: int) -> Queue:
        return self.engine.state.queues[number]

    def ask_reserve(
        self,
        number: int,
        after: int = 0,
        *,
        group: str = GROUP,
        owner: str = OWNER,
        most: int = 8192,
        most_bytes: int = 64 << 20,
        upto: int = ALL,
        floor: int = 0,
    ) -> int:
        request = self.next_request()
        self.engine.reservations.reserve(
            request,
            self.engine.queue(number),
            group,
            owner,
            after,
            most=most,
            most_bytes=most_bytes,
            upto=upto,
            floor=floor,
        )
        return request

    def reserve(self, number: int, after: int = 0, **options: object) -> RangeReport:
        request = self.ask_reserve(number, after, **options)  # type: ignore[arg-type]
        self.perform()
        return self.range(request)

    def range(self, request: int) -> RangeReport:
        """The range that a request was answered with."""
        found = self.answers[request]
        assert isinstance(found, RangeReport), found
        return found

    def ask_acknowledge(
        self,
        number: int,
        upto: int,
        *,
        group: str = GROUP,
        owner: str = OWNER,
        leave: bool = False,
    ) -> int:
        request = self.next_request()
        queue = self.engine.queue(number)
        self.engine.reservations.acknowledge(request, queue, group, owner, upto, leave=leave)
        return request

    def acknowledge(self, number: int, upto: int, **options: object) -> int:
        request = self.ask_acknowledge(number, upto, **options)  # type: ignore[arg-type]
        self.perform()
        return request

    def ask_release(self, number: int, *, group: str = GROUP, forget: bool = False) -> int:
        request = self.next_request()
        queue = self.engine.queue(number)
        self.engine.reservations.release(request, queue, group, forget=forget)
        return request

    def release(self, number: int, **options: object) -> int:
        request = self.ask_release(number, **options)  # type: ignore[arg-type]
        self.perform()
        return request

    def rows(self, number: int, start: int, group: str = GROUP) -> list[bytes]:
        """The bodies of the messages of a range."""
        queue = self.queue(number)
        found = self.engine.reservations.rows(queue, group, start, 0, 1 << 20)
        ids = list(found.ids)
        places = [queue.positions.get(each) for each in ids]
        return [
            MessageView(self.engine.state.stored(place)[1]).body
            for place in places
            if place is not None
        ]

    def ranges(self, number: int, group: str = GROUP) -> list[RangeReport]:
        return self.engine.reservations.ranges(self.queue(number), group)

    def available(self, number: int) -> int:
        return self.queue(number).positions.available

    def sequences(self, number: int) -> list[int]:
        """The numbers of all messages of a queue in the order of arrival."""
        return sorted(each & SEQUENCE_MASK for each in self.lookup_ids(number))

    # Writing.

    def ask_stage(
        self, number: int, part: str = "0", *, batch: int = 0, writer: str = WRITER
    ) -> int:
        request = self.next_request()
        label = StageLabel(writer, batch, part)
        self.engine.stages.create(request, self.engine.queue(number), label)
        return request

    def stage(self, number: int, part: str = "0", *, batch: int = 0, writer: str = WRITER) -> int:
        request = self.ask_stage(number, part, batch=batch, writer=writer)
        self.perform()
        return self.number(request)

    def number(self, request: int) -> int:
        found = self.answers[request]
        assert isinstance(found, int), found
        return found

    def ask_write(self, stage: int, *bodies: bytes, **fields: object) -> int:
        request = self.next_request()
        target = self.queue(stage).properties.owner
        packets = [self.packet(target, body=body, **fields) for body in bodies]
        self.engine.send(request, stage, packets)
        return request

    def write(self, stage: int, *bodies: bytes, **fields: object) -> int:
        request = self.ask_write(stage, *bodies, **fields)
        self.perform()
        return request

    def ask_publish(self, *stages: int, batch: int = 0, writer: str = WRITER) -> int:
        request = self.next_request()
        self.engine.stages.publish(request, writer, batch, stages)
        return request

    def publish(self, *stages: int, batch: int = 0, writer: str = WRITER) -> int:
        request = self.ask_publish(*stages, batch=batch, writer=writer)
        self.perform()
        return request

    def drop(self, *, writer: str = "", batch: int = 0, stage: int = 0) -> int:
        request = self.next_request()
        self.engine.stages.drop(request, writer=writer, batch=batch, stage=stage)
        self.perform()
        return self.number(request)

    def come_back(self, *, checkpoint: bool) -> None:
        """A restart, after a checkpoint or without one."""
        if checkpoint:
            self.checkpoint()
        self.restart()

    def picture(self) -> object:
        """Everything that is to be the same after a restart."""
        state = self.engine.state
        claims = {
            (number, group): (
                claim.acknowledged,
                claim.floor,
                [(each.start, each.end, list(each.ids)) for each in claim.ranges],
            )
            for number, queue in state.queues.items()
            for group, claim in queue.claims.items()
        }
        # A transaction that is open ends with who has begun it.
        queues, _, *counted = self.digest()
        return queues, counted, claims, dict(state.published)

    def failure(self, request: int) -> MessageQueueError:
        found = self.answers[request]
        assert isinstance(found, MessageQueueError), found
        return found


BODIES = (b"a", b"b", b"c", b"d")


def filled(world: BulkWorld, *bodies: bytes, **settings: object) -> int:
    """A queue with messages."""
    number = world.create("q", **settings)
    world.fill(number, *(bodies or BODIES))
    return number


def written(world: BulkWorld, *, transactional: bool = False) -> tuple[int, int, int]:
    """A queue, and two stages of a batch with two messages each."""
    number = world.create("q", transactional=transactional)
    one, two = world.stage(number, "0"), world.stage(number, "1")
    world.write(one, b"a", b"b")
    world.write(two, b"c", b"d")
    return number, one, two
