"""What lives in old segments is copied in runs: the same records as singly, and none is lost."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from merq.engine import records
from merq.engine.limits import Limits
from merq.engine.ports import HEAD_SIZE
from merq.engine.relocating import RELOCATED_BYTES, RELOCATED_MESSAGES
from merq.errors import StoreFailed
from merq.host import Host, HostSettings
from merq.host.packets import APART_BYTES
from merq.model.queue import QueueSettings
from merq.model.selecting import ByLookup, First
from merq.store.disk import Buffer, LogFile
from merq.store.log import LogSettings
from merq.store.recovery import Frame, Identity, open_store
from merq.testing.disk import SimulatedDisk
from merq.wire.build import Outline, build_packet
from merq.wire.view import MessageView

GUID = UUID(int=7 << 64)
SETTINGS = HostSettings(
    log=LogSettings(segment_size=1 << 16, reserve_step=1 << 12), cache_bytes=0, ballast_bytes=0
)
HEADER_SIZE = 12
"""Of a record."""


class Driven:
    """A host on a disk that can be damaged; what is asked for happens at once."""

    def __init__(
        self, disk: SimulatedDisk | None = None, settings: HostSettings = SETTINGS
    ) -> None:
        self.disk = disk or SimulatedDisk()
        self.disk.lock()
        limits = Limits(disk_reserve_bytes=0)
        self.host = Host(self.disk, Identity(store_id=GUID, created=1), "here", limits, settings)
        self.host.start(1000, UUID(int=9 << 64))
        self.engine = self.host.engine
        self.requests = 0

    def ask(self, work: Callable[[int], object]) -> object:
        self.requests += 1
        request = self.requests
        work(request)
        (found,) = [each.result for each in self.host.settle() if each.request == request]
        return found

    def create(self, name: str, **settings: bool) -> int:
        path = rf".\private$\{name}"
        guid = UUID(int=len(name) << 64)
        chosen = QueueSettings(**settings)  # type: ignore[arg-type]
        number = self.ask(lambda it: self.engine.create_queue(it, path, chosen, guid))
        assert isinstance(number, int)
        return number

    def send(self, number: int, *bodies: bytes, **fields: Any) -> None:
        chosen = {"destination": r"OS:here\private$\q", "recoverable": True, **fields}
        packets = [build_packet(Outline(body=body, **chosen)) for body in bodies]
        self.ask(lambda it: self.engine.send(it, number, packets))

    def receive(self, number: int, lookup_id: int = 0) -> None:
        chosen = ByLookup(lookup_id) if lookup_id else First()
        self.ask(lambda it: self.engine.receive(it, number, chosen, wait=False))

    def move(self, number: int, lookup_id: int, target: int) -> None:
        self.ask(lambda it: self.engine.move(it, number, lookup_id, target))

    def close_segment(self) -> int:
        """Gives the number of the segment that everything so far is in; the next has begun."""
        segment = self.host.log.segments()[-1].number
        self.host.log.roll()
        return segment

    def ids(self, number: int) -> list[int]:
        return [place.lookup_id for place in self.engine.state.queues[number].positions]

    def bodies(self, number: int) -> list[bytes]:
        state = self.engine.state
        return [
            MessageView(packet).body
            for place in state.queues[number].positions
            if (packet := state.readable(place)) is not None
        ]

    def segments_of(self, number: int) -> set[int]:
        """Where the packets of a queue lie."""
        return {each.location >> 32 for each in self.engine.state.queues[number].positions}

    def relocate(self) -> int:
        """Copies all of the oldest segment; gives in how many pieces."""
        pieces = 1
        while self.host.relocate_some()[0]:
            pieces += 1
        self.host.settle()
        return pieces

    def checkpoint(self) -> None:
        writing, _ = self.host.begin_checkpoint()
        assert writing is not None
        writing.run()
        self.host.end_checkpoint(writing)

    def living(self) -> dict[int, int]:
        """What is needed of each segment as the log counts it."""
        return {each.number: each.living for each in self.host.log.segments() if each.living}

    def counted(self) -> dict[int, int]:
        """The same as the queues have it."""
        found: dict[int, int] = {}
        for queue in self.engine.state.queues.values():
            for place in queue.positions:
                segment = place.location >> 32
                found[segment] = found.get(segment, 0) + place.size
        return found

    def reopened(self) -> Driven:
        self.host.close()
        self.disk.unlock()
        return Driven(self.disk, self.host._settings)

    def frames(self) -> list[list[tuple[int, bytes]]]:
        """Kind and data of the log's records, frame by frame."""
        found: list[list[tuple[int, bytes]]] = []

        def take(frame: Frame) -> None:
            found.append([(kind, bytes(data)) for kind, _, data in frame.records()])

        copy = self.disk.snapshot()
        fresh = Identity(store_id=GUID, created=1)
        opened = open_store(copy, fresh, lambda _: None, take, SETTINGS.log)
        opened.log.close()
        return found


def test_the_records_are_those_that_single_copies_are() -> None:
    """Also of messages that were moved, and of copies of copies."""
    driven = Driven()
    number = driven.create("q", transactional=False)
    driven.send(number, *[bytes([row]) * row for row in range(1, 20)])
    driven.ask(lambda it: driven.engine.create_subqueue(it, number, "later"))
    (later,) = driven.engine.queue(number).subqueues.values()
    for lookup_id in driven.ids(number)[::4]:
        driven.move(number, lookup_id, later.number)
    for lookup_id in driven.ids(number)[1::3]:
        driven.receive(number, lookup_id)
    state = driven.engine.state
    for _ in range(2):
        segment = driven.close_segment()
        expected = [
            (entry.kind, entry.whole)
            for queue in sorted((number, later.number))
            for place in state.queues[queue].positions
            for arrival, packet in [state.stored(place)]
            for entry in [records.relocate(queue, arrival, place.lookup_id, packet)]
        ]
        driven.relocate()
        assert driven.frames()[-1] == expected
        assert segment not in driven.segments_of(number) | driven.segments_of(later.number)
        driven.checkpoint()
    before = driven.bodies(number), driven.bodies(later.number)
    again = driven.reopened()
    assert (again.bodies(number), again.bodies(later.number)) == before
    assert again.living() == again.counted()


def test_blocks_queues_and_priorities_are_gone_through_in_pieces() -> None:
    driven = Driven(settings=HostSettings(cache_bytes=0, ballast_bytes=0))
    numbers = [driven.create("q"), driven.create("other")]
    for priority in (3, 5):
        for number in numbers:
            driven.send(number, *[bytes([row & 255]) * 30 for row in range(800)], priority=priority)
    for lookup_id in driven.ids(numbers[0])[100:900:2]:
        driven.receive(numbers[0], lookup_id)
    segment = driven.close_segment()
    before = [driven.bodies(number) for number in numbers]
    assert driven.relocate() > 2800 // RELOCATED_MESSAGES
    assert [driven.bodies(number) for number in numbers] == before
    assert segment not in driven.living()
    assert driven.living() == driven.counted()
    again = driven.reopened()
    assert [again.bodies(number) for number in numbers] == before
    assert again.living() == again.counted()


@pytest.mark.parametrize("is_purged", [False, True])
def test_messages_that_come_and_go_between_the_pieces_and_before_they_are_durable(
    is_purged: bool,
) -> None:
    driven = Driven(settings=HostSettings(cache_bytes=0, ballast_bytes=0))
    number = driven.create("q")
    driven.send(number, *[bytes([row & 255]) * 30 for row in range(1400)])
    segment = driven.close_segment()
    ids, bodies = driven.ids(number), driven.bodies(number)
    host, engine = driven.host, driven.engine
    assert host.relocate_some()[0], "the first piece is written and not durable"
    edge = RELOCATED_MESSAGES
    gone = [*range(10, 20), 30, *range(edge - 3, edge + 9)]
    for row in gone:
        engine.receive(10_000 + row, number, ByLookup(ids[row]), wait=False)
        host.perform()
    assert host.relocate_some()[0], "the second is planned before the first has happened"
    if is_purged:
        engine.purge(20_000, number)
        host.perform()
    driven.send(number, b"later")
    driven.relocate()
    left = [body for row, body in enumerate(bodies) if row not in gone and not is_purged]
    assert driven.bodies(number) == [*left, b"later"]
    assert segment not in driven.living()
    assert driven.living() == driven.counted()
    again = driven.reopened()
    assert again.bodies(number) == [*left, b"later"]
    assert again.living() == again.counted()


@pytest.mark.parametrize("where", ["body", "header", "size"])
def test_a_damaged_record_is_set_aside_and_the_others_are_copied(where: str) -> None:
    driven = Driven()
    number = driven.create("q")
    driven.send(number, *[bytes([65 + row]) * 40 for row in range(6)])
    segment = driven.close_segment()
    places = list(driven.engine.state.queues[number].positions)
    rotten = places[2]
    name = next(each for each in driven.disk.files() if each.endswith(f"{segment:x}.segment"))
    offset = rotten.location & 0xFFFFFFFF
    at = {"body": offset + 200, "header": offset + 5, "size": offset - HEADER_SIZE}[where]
    driven.disk.damage(name, at)
    driven.relocate()
    after = list(driven.engine.state.queues[number].positions)
    assert len(after) == 5
    assert driven.bodies(number) == [bytes([65 + row]) * 40 for row in (0, 1, 3, 4, 5)]
    assert segment not in driven.living(), "what is left of the record is elsewhere"
    assert f"aside/damaged-{segment:016x}-{offset:08x}.packet" in driven.disk.files()
    assert driven.living() == driven.counted()


def test_a_damaged_record_whose_packet_is_in_memory_is_copied_from_there() -> None:
    driven = Driven(settings=HostSettings(log=SETTINGS.log, ballast_bytes=0))
    number = driven.create("q")
    driven.send(number, b"a" * 40, b"b" * 40)
    segment = driven.close_segment()
    name = next(each for each in driven.disk.files() if each.endswith(f"{segment:x}.segment"))
    driven.disk.damage(name, driven.disk.content(name).find(b"b" * 40))
    driven.relocate()
    assert driven.segments_of(number) == {segment + 1}
    assert driven.bodies(number) == [b"a" * 40, b"b" * 40]


class BadSector:
    """A file of which a piece cannot be read any more; for the rest it is what it was."""

    def __init__(self, file: LogFile, start: int, end: int) -> None:
        self._file = file
        self._start = start
        self._end = end

    def read(self, offset: int, size: int) -> bytes:
        if offset < self._end and self._start < offset + size:
            raise StoreFailed(f"reading at {offset}: Input/output error")
        return self._file.read(offset, size)

    def write(self, offset: int, data: Buffer) -> None:
        self._file.write(offset, data)

    def reserve(self, size: int) -> None:
        self._file.reserve(size)

    def sync(self) -> None:
        self._file.sync()

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def size(self) -> int:
        return self._file.size()

    def close(self) -> None:
        self._file.close()


def with_bad_sector(row: int) -> tuple[Driven, int, int]:
    """A queue with five messages, one of which lies where the disk cannot read."""
    driven = Driven()
    number = driven.create("q")
    driven.send(number, *[bytes([65 + each]) * 40 for each in range(5)], negative_journaling=True)
    segment = driven.close_segment()
    start = list(driven.engine.state.queues[number].positions)[row].location & 0xFFFFFFFF
    (found,) = [each for each in driven.host.log.segments() if each.number == segment]
    found.file = BadSector(found.file, start + 20, start + 30)
    return driven, number, segment


def test_what_the_disk_cannot_read_stays_and_what_lies_beside_it_is_copied() -> None:
    driven, number, segment = with_bad_sector(3)
    driven.relocate()
    after = list(driven.engine.state.queues[number].positions)
    assert [each.location >> 32 == segment for each in after] == [row == 3 for row in range(5)]
    assert driven.living() == driven.counted()


@pytest.mark.parametrize("fate", ["purge", "delete_queue"])
def test_a_queue_is_emptied_though_the_disk_cannot_read_all_of_it(fate: str) -> None:
    """Those who asked are told of the messages that can be read."""
    driven, number, _ = with_bad_sector(1)
    driven.ask(lambda it: getattr(driven.engine, fate)(it, number))
    assert number not in driven.engine.state.queues or driven.bodies(number) == []
    dead = driven.engine.find_queue(r".\system$;DEADLETTER").number
    assert driven.bodies(dead) == [bytes([65 + each]) * 40 for each in (0, 2, 3, 4)]


@pytest.mark.parametrize("size", [100, APART_BYTES + 1])
def test_the_first_bytes_of_packets_are_read_without_the_rest_of_large_ones(size: int) -> None:
    driven = Driven()
    number = driven.create("q")
    driven.send(number, *[bytes([65 + each]) * size for each in range(3)])
    state = driven.engine.state
    places = list(state.queues[number].positions)
    locations = array("Q", [each.location for each in places])
    heads = driven.host.packets.heads(locations, array("I", [each.size for each in places]))
    assert heads == [state.stored(each)[1][:HEAD_SIZE] for each in places]


def test_large_messages_go_a_few_at_a_time() -> None:
    driven = Driven(settings=HostSettings(cache_bytes=0, ballast_bytes=0))
    number = driven.create("q")
    size = RELOCATED_BYTES // 3
    for row in range(8):
        driven.send(number, bytes([row]) * size)
    driven.close_segment()
    before = driven.bodies(number)
    ends = [driven.host.log.end]
    more = True
    while more:
        more, _ = driven.host.relocate_some()
        ends.append(driven.host.log.end)
    copied = [end - start for start, end in pairwise(ends) if end > start]
    assert len(copied) == 3
    assert max(copied) < RELOCATED_BYTES + size
    driven.host.settle()
    assert driven.bodies(number) == before
