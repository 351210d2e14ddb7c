"""A bit of one message rots on the disk: it is refused loudly, and everything else goes on."""

from __future__ import annotations

from typing import Any

import pytest

from merq.client.embedded import Driver
from merq.client.manager import Manager
from merq.client.queues import Queue
from merq.engine.limits import Limits
from merq.errors import StoreCorrupt
from merq.host import HostSettings
from merq.store.log import LogSettings
from merq.testing.disk import SimulatedDisk

MARK = b"this one rots"
SETTINGS = HostSettings(log=LogSettings(segment_size=1 << 16, reserve_step=1 << 12), cache_bytes=0)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000_000.0

    def __call__(self) -> float:
        return self.now


class Rotting:
    """A queue manager with a queue of five messages, the third of which rots."""

    def __init__(self, *, transactional: bool = False, **properties: Any) -> None:
        self.disk = SimulatedDisk()
        self.clock = Clock()
        driver = Driver(self.disk, "here", Limits(disk_reserve_bytes=0), SETTINGS, clock=self.clock)
        self.manager = Manager(driver)
        self.driver = driver
        self.queue: Queue = self.manager.create_queue(
            r".\private$\q", transactional=transactional, journal=True
        )
        bodies = [b"a", b"b", MARK, b"d", b"e"]
        if transactional:
            with self.manager.transaction() as tx:
                self.queue.send_many(bodies, tx=tx, **properties)
        else:
            self.queue.send_many(bodies, recoverable=True, **properties)
        for name in self.disk.files():
            at = self.disk.content(name).find(MARK)
            if at >= 0:
                self.disk.damage(name, at)

    def bodies(self) -> list[object]:
        return [message.body for message in self.manager.queue(r".\private$\q").peek_all()]


def test_the_message_is_refused_with_file_and_offset_and_others_are_received() -> None:
    rotting = Rotting()
    queue = rotting.queue
    assert [queue.receive(timeout=0).body for _ in range(2)] == [b"a", b"b"]
    with pytest.raises(StoreCorrupt, match="segment") as caught:
        queue.receive(timeout=0)
    assert caught.value.offset > 0
    assert len(queue) == 3
    aside = queue.subqueue("rotten")
    (place, *_) = rotting.driver.engine.state.queues[queue._number].positions
    queue.move(place.lookup_id, aside)
    assert [queue.receive(timeout=0).body for _ in range(2)] == [b"d", b"e"]
    assert len(aside) == 1
    rotting.manager.close()


def test_several_at_once_end_before_it() -> None:
    rotting = Rotting()
    assert [each.body for each in rotting.queue.receive_many(5, timeout=0)] == [b"a", b"b"]
    with pytest.raises(StoreCorrupt):
        rotting.queue.receive_many(5, timeout=0)
    assert len(rotting.queue) == 3
    rotting.manager.close()


def test_a_search_goes_past_it() -> None:
    rotting = Rotting()
    wanted = bytes(19) + b"x"
    rotting.queue.send("found", recoverable=True, correlation_id=wanted)
    assert rotting.queue.receive_by_correlation_id(wanted).body == "found"
    rotting.manager.close()


def test_purging_and_deleting_take_it_along() -> None:
    rotting = Rotting(dead_letter=True)
    assert rotting.queue.purge() == 5
    dead = rotting.manager.queue(r".\system$;DEADLETTER")
    assert [message.body for message in dead.peek_all()] == [b"a", b"b", b"d", b"e"]
    rotting.queue.delete()
    rotting.manager.close()


def test_the_others_expire_and_it_stays() -> None:
    rotting = Rotting(time_to_be_received=10)
    rotting.clock.now += 12
    rotting.queue.send("later", recoverable=True)  # durable when what expired is gone
    assert len(rotting.queue) == 2
    with pytest.raises(StoreCorrupt):
        rotting.queue.peek(timeout=0)
    rotting.manager.close()


def test_a_transaction_that_received_it_before_it_rotted_can_commit() -> None:
    rotting = Rotting(transactional=True)
    for name in rotting.disk.files():
        at = rotting.disk.content(name).find(MARK[1:])
        if at >= 0:
            rotting.disk.damage(name, at - 1)  # as it was
    with rotting.manager.transaction() as tx:
        assert len(rotting.queue.receive_many(5, timeout=0, tx=tx)) == 5
        for name in rotting.disk.files():
            at = rotting.disk.content(name).find(MARK)
            if at >= 0:
                rotting.disk.damage(name, at)
    assert len(rotting.queue) == 0
    journal = rotting.manager.queue(r".\private$\q;JOURNAL")
    assert [message.body for message in journal.peek_all()] == [b"a", b"b", b"d", b"e"]
    rotting.manager.close()


def test_its_segment_stays_when_the_log_is_tidied_up() -> None:
    rotting = Rotting()
    other = rotting.manager.create_queue(r".\private$\other")
    for _ in range(40):
        other.send_many([bytes(4000)] * 10, recoverable=True)
        other.receive_many(10, timeout=0)
        rotting.driver.maintain()
    assert len(rotting.queue.receive_many(5, timeout=0)) == 2
    with pytest.raises(StoreCorrupt):
        rotting.queue.receive_many(5, timeout=0)
    assert len(rotting.queue) == 3
    other.send("goes on", recoverable=True)
    rotting.manager.close()
