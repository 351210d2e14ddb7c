"""What the host does beside requests: checkpoints, compaction, ballast, flow control."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from uuid import UUID

import pytest

from merq.engine.changes import Answer, Result
from merq.engine.limits import Limits
from merq.errors import MessageQueueError, StoreFull
from merq.host import Host, HostSettings
from merq.host.host import BALLAST
from merq.hresult import HResult
from merq.model.delivered import Delivered
from merq.model.queue import QueueSettings
from merq.model.selecting import First
from merq.store.log import LogSettings
from merq.store.recovery import Identity
from merq.testing.disk import SimulatedDisk
from merq.wire.build import Outline, build_packet

SEGMENT = 1 << 16
SETTINGS = HostSettings(
    log=LogSettings(segment_size=SEGMENT, reserve_step=1 << 12),
    checkpoint_bytes=1 << 16,
    ballast_bytes=1 << 15,
)
GUID = UUID(int=7 << 64)
NO_RESERVE = Limits(disk_reserve_bytes=0)


class Driven:
    """A host whose requests are answered at once."""

    def __init__(
        self,
        disk: SimulatedDisk,
        limits: Limits = NO_RESERVE,
        settings: HostSettings = SETTINGS,
    ) -> None:
        self.disk = disk
        disk.lock()
        self.host = Host(disk, Identity(store_id=GUID, created=1), "here", limits, settings)
        self.host.start(1000, UUID(int=9 << 64))
        self.engine = self.host.engine
        self._requests = 0
        found = [
            number
            for number, queue in self.engine.state.queues.items()
            if queue.properties.path_name == r".\private$\q"
        ]
        self.number = found[0] if found else 0
        if not self.number:
            request = self.request()
            self.engine.create_queue(request, r".\private$\q", QueueSettings(), UUID(int=5 << 64))
            number = self.answer(request, self.host.settle())
            assert isinstance(number, int)
            self.number = number

    def request(self) -> int:
        self._requests += 1
        return self._requests

    def answer(self, request: int, answers: list[Answer]) -> Result:
        (found,) = [each.result for each in answers if each.request == request]
        if isinstance(found, MessageQueueError):
            raise found
        return found

    def send(self, body: bytes, *, recoverable: bool = True) -> None:
        request = self.request()
        outline = Outline(destination=r"OS:here\private$\q", body=body, recoverable=recoverable)
        self.engine.send(request, self.number, [build_packet(outline)])
        self.answer(request, self.host.settle())

    def receive(self) -> bytes:
        request = self.request()
        self.engine.receive(request, self.number, First(), wait=False)
        found = self.answer(request, self.host.settle())
        assert isinstance(found, Delivered)
        return found.packet

    def upkeep(self) -> None:
        """As a driver does it, without others between."""
        if not self.host.needs_upkeep:
            return
        self.checkpoint()
        while self.host.is_wasteful():
            oldest = self.host.log.segments()[0].number
            while self.host.relocate_some()[0]:
                pass
            self.checkpoint()
            if self.host.log.segments()[0].number == oldest:
                return

    def checkpoint(self) -> None:
        writing, _ = self.host.begin_checkpoint()
        assert writing is not None
        writing.run()
        self.host.end_checkpoint(writing)

    def bodies(self) -> list[bytes]:
        state = self.engine.state
        return [state.stored(place)[1] for place in state.queues[self.number].positions]

    def reopened(self, settings: HostSettings = SETTINGS) -> Driven:
        self.host.close()
        self.disk.unlock()
        return Driven(self.disk, self.engine.state.limits, settings)

    def is_throttled(self) -> bool:
        return self.engine.state.throttled

    def used(self) -> int:
        """What the folder takes."""
        return self.disk.used


@pytest.mark.limit("store.checkpoint_bytes")
@pytest.mark.parametrize("seed", range(3))
def test_the_folder_stays_within_twice_of_what_lives_and_a_few_segments(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - the same every time
    driven = Driven(SimulatedDisk())
    waiting = 0
    for _ in range(1500):
        # A queue whose length wanders, with some messages that stay for long.
        if waiting < 50 or random.random() < 0.5:
            driven.send(random.randbytes(random.randrange(200, 3000)))
            waiting += 1
        else:
            driven.receive()
            waiting -= 1
        driven.upkeep()
        living = sum(each.living for each in driven.host.log.segments())
        assert driven.used() <= 2 * living + 4 * SEGMENT
    before = driven.bodies()
    assert driven.reopened().bodies() == before


def test_what_lives_in_old_segments_is_copied_in_pieces_and_comes_back_after_a_crash() -> None:
    driven = Driven(SimulatedDisk())
    for number in range(300):
        driven.send(number.to_bytes(2, "little") * 200)
    for _ in range(290):
        driven.receive()
    living = driven.bodies()
    first = driven.host.log.segments()[0].number
    driven.upkeep()
    assert driven.host.log.segments()[0].number > first
    assert driven.bodies() == living
    assert driven.reopened().bodies() == living


def test_a_checkpoint_holds_what_was_there_when_it_began_and_the_log_the_rest() -> None:
    driven = Driven(SimulatedDisk())
    for number in range(50):
        driven.send(bytes([number]))
    writing, _ = driven.host.begin_checkpoint()
    assert writing is not None
    for _ in range(25):
        driven.receive()
    driven.send(b"later")
    writing.run()
    driven.host.end_checkpoint(writing)
    expected = driven.bodies()
    assert driven.reopened().bodies() == expected


def test_a_segment_is_kept_while_the_checkpoint_mentions_a_message_in_it() -> None:
    driven = Driven(SimulatedDisk())
    for _ in range(100):
        driven.send(bytes(3000))
    writing, _ = driven.host.begin_checkpoint()
    assert writing is not None
    for _ in range(100):
        driven.receive()
    writing.run()
    driven.host.end_checkpoint(writing)
    assert driven.reopened().bodies() == []


@pytest.mark.limit("engine.disk_reserve_bytes")
@pytest.mark.spec("MS-MQDMPR 3.1.7.2.5", "MS-MQDMPR 3.1.7.2.6")
def test_with_little_room_on_the_disk_no_message_is_taken_until_there_is_twice_as_much() -> None:
    disk = SimulatedDisk(capacity=1 << 20)
    driven = Driven(disk, Limits(disk_reserve_bytes=1 << 18))
    sent = 0
    while not driven.is_throttled():
        driven.send(bytes(4000))
        sent += 1
    with pytest.raises(MessageQueueError, match="disk") as refused:
        driven.send(b"no")
    assert refused.value.code == HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    assert disk.free_bytes() > 1 << 16, "it did not run into the end of the disk"
    while driven.is_throttled():
        driven.receive()
        sent -= 1
        driven.upkeep()
        driven.host.watch_resources()
    assert sent > 0, "room came back before all was received"
    driven.send(bytes(4000))


@pytest.mark.spec("MS-MQDMPR 3.1.7.2.5", "MS-MQDMPR 3.1.7.2.6")
def test_express_messages_stop_at_their_memory_and_go_on_when_a_fifth_is_free() -> None:
    driven = Driven(SimulatedDisk(), Limits(disk_reserve_bytes=0, memory_bytes=100_000))
    sent = 0
    while driven.engine.state.memory_bytes <= 100_000:
        driven.send(bytes(1000), recoverable=False)
        sent += 1
    assert 80 < sent < 100
    with pytest.raises(MessageQueueError, match="memory"):
        driven.send(b"no", recoverable=False)
    driven.receive()
    driven.host.watch_resources()
    with pytest.raises(MessageQueueError, match="memory"):
        driven.send(b"too early", recoverable=False)
    while driven.is_throttled():
        driven.receive()
        sent -= 1
        driven.host.watch_resources()
    assert sent > 60
    driven.send(b"again", recoverable=False)


@pytest.mark.limit("store.ballast_bytes")
def test_a_disk_full_of_the_dead_is_tidied_up_with_the_room_of_the_ballast() -> None:
    disk = SimulatedDisk(capacity=1 << 20)
    driven = Driven(disk, settings=replace(SETTINGS, checkpoint_bytes=1 << 30))
    assert disk.exists(BALLAST)
    codes: list[int] = []
    for _ in range(2000):
        try:
            driven.send(bytes(2000))
        except MessageQueueError as full:
            codes.append(full.code)
            driven.upkeep()
        else:
            driven.receive()
    assert set(codes) == {HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED}
    assert len(codes) < 50, "there is always room after tidying up"
    assert driven.bodies() == []
    assert disk.exists(BALLAST), "and the ballast is there for the next time"


def test_a_disk_without_room_for_the_ballast_is_used_without() -> None:
    driven = Driven(SimulatedDisk(), settings=replace(SETTINGS, ballast_bytes=0))
    driven.send(b"x")
    assert not driven.disk.exists(BALLAST)
    small = SimulatedDisk(capacity=1 << 16)
    driven = Driven(small, settings=replace(SETTINGS, ballast_bytes=1 << 20))
    driven.send(b"y")
    assert not small.exists(BALLAST)


def test_a_checkpoint_that_finds_no_room_leaves_everything_as_it_was() -> None:
    disk = SimulatedDisk(capacity=1 << 20)
    driven = Driven(disk, settings=replace(SETTINGS, ballast_bytes=0))
    for number in range(100):
        driven.send(bytes([number]) * 1000)
    before = driven.bodies()
    writing, _ = driven.host.begin_checkpoint()
    assert writing is not None
    disk.capacity = disk.used
    with pytest.raises(StoreFull):
        writing.run()
    disk.capacity = 1 << 20
    assert driven.bodies() == before
    assert driven.reopened().bodies() == before
