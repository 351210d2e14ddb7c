"""A disk that is short of room or full: what can go on does, and it is said once."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from merq.engine.limits import Limits
from merq.errors import MessageQueueError
from merq.host.host import RELIEF, Host, HostSettings
from merq.model.queue import QueueSettings
from merq.model.selecting import First
from merq.store.disk import FileDisk
from merq.store.log import LogSettings, segment_name
from merq.store.recovery import Identity
from merq.testing import SimulatedDisk
from merq.wire.build import Outline, build_packet
from unit.engine.engine_world import GUID, START

PACKET = build_packet(
    Outline(destination=r"OS:.\private$\orders", recoverable=True, body=bytes(1_000))
)
RESERVE_BYTES = 100_000
SMALL = HostSettings(log=LogSettings(segment_size=64 << 10, reserve_step=16 << 10))


class Station:
    """A host that is asked one thing after the other."""

    def __init__(self, disk: SimulatedDisk | FileDisk, *, reserve: int = RESERVE_BYTES) -> None:
        self.host = Host(
            disk,
            Identity(store_id=GUID, created=START),
            "here",
            Limits(disk_reserve_bytes=reserve),
            SMALL,
        )
        self.host.start(START, UUID(int=1))
        self._requests = 0
        self.ask(self.host.engine.create_queue, r".\private$\orders", QueueSettings(), UUID(int=2))
        self.orders = self.host.engine.find_queue(r".\private$\orders")

    def ask(self, doing: object, *arguments: object, **options: object) -> object:
        self._requests += 1
        doing(self._requests, *arguments, **options)  # type: ignore[operator]
        (result,) = [each.result for each in self.host.settle() if each.request == self._requests]
        if isinstance(result, MessageQueueError):
            raise result
        return result

    def send(self) -> None:
        self.ask(self.host.engine.send, self.orders.number, [PACKET])

    def receive(self) -> None:
        self.ask(self.host.engine.receive, self.orders.number, First(), wait=False)

    def upkeep(self) -> None:
        """What whoever drives it does once in a while."""
        self.host.watch_resources()
        if self.host.needs_upkeep:
            writing, _ = self.host.begin_checkpoint()
            if writing is not None:
                writing.run()
                self.host.end_checkpoint(writing)


def test_receives_go_on_while_sends_are_refused_and_it_is_said_once() -> None:
    disk = SimulatedDisk()
    station = Station(disk)
    for _ in range(200):
        station.send()
    disk.capacity = disk.used + RESERVE_BYTES // 2
    station.upkeep()
    for _ in range(20):
        with pytest.raises(MessageQueueError):
            station.send()
        station.upkeep()
    for _ in range(150):
        station.receive()
        station.upkeep()
    (said,) = station.host.news.take()
    assert "short of room" in said.text
    assert said.facts["disk_reserve_bytes"] == RESERVE_BYTES
    disk.capacity = None
    station.upkeep()
    station.send()
    (said,) = station.host.news.take()
    assert not said.is_trouble
    assert station.orders.positions.count == 51


def test_a_disk_that_others_fill_to_the_last_byte_lets_messages_be_received() -> None:
    disk = SimulatedDisk()
    station = Station(disk)
    for _ in range(300):
        station.send()
    disk.capacity = disk.used
    station.upkeep()
    with pytest.raises(MessageQueueError):
        station.send()
    for _ in range(300):
        station.receive()
        station.upkeep()
    assert station.orders.positions.count == 0
    disk.capacity = None
    station.upkeep()
    assert disk.exists(RELIEF), "it is there for the next time"
    texts = [each.text for each in station.host.news.take() if each.is_trouble]
    assert len(texts) == len(set(texts))


def test_segments_that_are_full_give_back_the_room_that_they_did_not_need(tmp_path: Path) -> None:
    station = Station(FileDisk(tmp_path), reserve=0)
    for _ in range(200):
        station.send()
    segments = station.host.log.segments()
    assert len(segments) > 2
    for segment in segments[:-1]:
        assert (tmp_path / segment_name(segment.number)).stat().st_size == segment.used
    station.host.close()
    again = Station.__new__(Station)
    again.host = Host(
        FileDisk(tmp_path), Identity(store_id=GUID, created=START), "here", Limits(), SMALL
    )
    assert again.host.engine.find_queue(r".\private$\orders").positions.count == 200
    again.host.close()
