"""A bit of one message rots on the disk: it is set aside, and everything else goes on."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from merq.client.embedded import Driver
from merq.client.manager import Manager
from merq.client.queues import Queue
from merq.engine.limits import Limits
from merq.errors import MessageQueueError, ReceiveTimeout, StoreCorrupt, StoreFailed
from merq.host import HostSettings, aside
from merq.store.backup import back_up
from merq.store.findings import Verdict
from merq.store.inspection import inspect
from merq.store.log import LogSettings
from merq.testing.disk import Operation, SimulatedDisk

MARK = b"this one rots"
LABEL = b"all of these rot"
SETTINGS = HostSettings(log=LogSettings(segment_size=1 << 16, reserve_step=1 << 12), cache_bytes=0)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000_000.0

    def __call__(self) -> float:
        return self.now


class Rotting:
    """A queue manager with a queue of five messages, the third of which rots."""

    def __init__(
        self,
        *,
        transactional: bool = False,
        count: int = 0,
        is_covered: bool = True,
        **properties: Any,
    ) -> None:
        self.disk = SimulatedDisk()
        self.clock = Clock()
        self.open()
        self.queue: Queue = self.manager.create_queue(
            r".\private$\q", transactional=transactional, journal=True
        )
        bodies = [LABEL] * count or [b"a", b"b", MARK, b"d", b"e"]
        if transactional:
            with self.manager.transaction() as tx:
                self.queue.send_many(bodies, tx=tx, **properties)
        else:
            self.queue.send_many(bodies, recoverable=True, **properties)
        if is_covered:
            self.checkpoint()  # what is behind it opening reads, and refuses if it is damaged
        self.rot()

    def rot(self) -> None:
        for name in self.disk.files():
            at = self.disk.content(name).find(MARK)
            if at >= 0:
                self.disk.damage(name, at)

    def checkpoint(self) -> None:
        host = self.driver._host
        writing, _ = host.begin_checkpoint()
        assert writing is not None
        writing.run()
        host.end_checkpoint(writing)

    def open(self) -> None:
        limits = Limits(disk_reserve_bytes=0)
        self.driver = Driver(self.disk, "here", limits, SETTINGS, clock=self.clock)
        self.manager = Manager(self.driver)

    def opened(self) -> Queue:
        self.open()
        return self.manager.queue(r".\private$\q")

    def again(self) -> Queue:
        """The queue after the process was killed and started again."""
        left = self.disk.snapshot()
        with suppress(StoreFailed):
            self.manager.close()
        self.disk = left
        return self.opened()

    def bodies(self) -> list[object]:
        return [message.body for message in self.manager.queue(r".\private$\q").peek_all()]


def kept(rotting: Rotting) -> list[str]:
    """What was set aside."""
    return [name for name in rotting.disk.files() if name.startswith("aside/damaged-")]


def test_it_is_set_aside_and_the_next_is_received() -> None:
    rotting = Rotting()
    found = [rotting.queue.receive(timeout=0).body for _ in range(4)]
    assert found == [b"a", b"b", b"d", b"e"]
    assert len(rotting.queue) == 0
    packet, text = kept(rotting)
    assert MARK[1:] in rotting.disk.content(packet)
    said = rotting.disk.content(text).decode()
    assert r"private$\q" in said
    assert "segment is corrupt at offset" in said
    (news,) = rotting.driver._host.news.take()
    assert news.is_trouble
    assert news.facts["kept_as"] == packet
    assert rotting.driver._host.set_aside_count == 1
    rotting.manager.close()


def test_several_at_once_end_before_it_and_go_on_behind_it() -> None:
    rotting = Rotting()
    assert [each.body for each in rotting.queue.receive_many(5, timeout=0)] == [b"a", b"b"]
    assert [each.body for each in rotting.queue.receive_many(5, timeout=0)] == [b"d", b"e"]
    assert len(rotting.queue) == 0
    rotting.manager.close()


def test_whoever_peeks_sees_the_next() -> None:
    rotting = Rotting()
    rotting.queue.receive_many(2, timeout=0)
    assert rotting.queue.peek(timeout=0).body == b"d"
    assert rotting.bodies() == [b"d", b"e"]
    assert len(kept(rotting)) == 2
    rotting.manager.close()


def test_whoever_looks_through_the_queue_goes_past_it() -> None:
    rotting = Rotting()
    assert rotting.bodies() == [b"a", b"b", b"d", b"e"]
    assert len(kept(rotting)) == 2
    rotting.manager.close()


def test_who_asks_for_it_alone_is_told_and_it_is_set_aside() -> None:
    rotting = Rotting()
    positions = rotting.driver.engine.state.queues[rotting.queue._number].positions
    place = list(positions)[2]
    with pytest.raises(StoreCorrupt, match="segment") as caught:
        rotting.queue.receive_by_lookup_id(place.lookup_id)
    assert caught.value.offset > 0
    assert len(kept(rotting)) == 2
    assert rotting.queue.receive(timeout=0).body == b"a"
    assert len(rotting.queue) == 3
    rotting.manager.close()


def test_in_a_transaction_too_the_next_is_received() -> None:
    rotting = Rotting(transactional=True)
    with rotting.manager.transaction() as tx:
        found = [rotting.queue.receive(timeout=0, tx=tx).body for _ in range(4)]
    assert found == [b"a", b"b", b"d", b"e"]
    assert len(kept(rotting)) == 2
    rotting.manager.close()


def test_a_read_that_fails_is_no_damage() -> None:
    """The disk gave an error: it may pass, and the message stays where it is."""
    rotting = Rotting()
    rotting.disk.fail_next(Operation.READ)
    with pytest.raises(StoreFailed):
        rotting.queue.receive(timeout=0)
    again = rotting.again()
    assert [again.receive(timeout=0).body for _ in range(2)] == [b"a", b"b"]
    assert kept(rotting) == []
    rotting.manager.close()


@pytest.mark.limit("merq.engine.aside_messages.DAMAGED_WAITING_MAX")
def test_a_queue_of_nothing_but_damage_is_empty_afterwards() -> None:
    rotting = Rotting(count=150)
    for name in rotting.disk.files():
        at = rotting.disk.content(name).find(LABEL)
        while at >= 0:
            rotting.disk.damage(name, at)
            at = rotting.disk.content(name).find(LABEL, at)
    refusals = 0
    for _ in range(10):
        try:
            rotting.queue.receive(timeout=0)
        except ReceiveTimeout:
            break
        except (MessageQueueError, StoreCorrupt):
            refusals += 1
    assert 0 < refusals < 5
    rotting.queue.send("durable when what was set aside is gone", recoverable=True)
    assert len(rotting.queue) == 1
    assert len(kept(rotting)) == 2 * 150
    rotting.manager.close()


@pytest.mark.parametrize("limit", ["ASIDE_FILES_MAX", "ASIDE_BYTES_MAX"])
def test_without_room_to_set_it_aside_it_stays_and_is_passed_over(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aside, limit, 0)
    rotting = Rotting()
    found = [rotting.queue.receive(timeout=0).body for _ in range(4)]
    assert found == [b"a", b"b", b"d", b"e"]
    assert len(rotting.queue) == 1
    assert kept(rotting) == []
    (news,) = rotting.driver._host.news.take()
    assert "passed over until the next start" in news.text
    monkeypatch.undo()
    again = rotting.again()
    with pytest.raises(ReceiveTimeout):
        again.receive(timeout=0)
    assert len(kept(rotting)) == 2
    again.send("durable when it is gone", recoverable=True)
    assert len(again) == 1
    rotting.manager.close()


def test_what_a_crash_left_in_the_queue_is_not_set_aside_twice() -> None:
    rotting = Rotting()
    before = rotting.disk.snapshot()
    rotting.queue.receive_many(5, timeout=0)
    rotting.queue.receive(timeout=0)
    (packet, text) = kept(rotting)
    rotting.manager.close()
    # As if the power had gone before the removal was durable.
    for name in (packet, text):
        file = before.create(name)
        file.write(0, rotting.disk.content(name))
        file.sync()
        file.close()
    rotting.disk = before
    queue = rotting.opened()
    assert len(queue) == 5
    queue.receive_many(5, timeout=0)
    assert queue.receive(timeout=0).body == b"d"
    assert kept(rotting) == [packet, text]
    rotting.manager.close()


def test_a_full_disk_on_which_it_cannot_go_does_not_keep_others_from_being_received() -> None:
    rotting = Rotting()
    rotting.queue.receive_many(2, timeout=0)
    rotting.disk.capacity = rotting.disk.used
    assert rotting.queue.peek(timeout=0).body == b"d"
    assert len(rotting.queue) == 3
    rotting.disk.capacity = None
    assert [rotting.queue.receive(timeout=0).body for _ in range(2)] == [b"d", b"e"]
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


def test_when_it_expires_it_is_set_aside() -> None:
    rotting = Rotting(time_to_be_received=10)
    rotting.clock.now += 12
    rotting.queue.send("later", recoverable=True)  # durable when what expired is gone
    assert len(rotting.queue) == 1
    assert rotting.queue.receive(timeout=0).body == "later"
    assert len(kept(rotting)) == 2
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


@pytest.mark.parametrize("is_covered", [False, True])
def test_what_lives_beside_it_is_copied_so_that_the_store_is_sound_again(
    tmp_path: Path, *, is_covered: bool
) -> None:
    rotting = Rotting(is_covered=is_covered)
    for _ in range(20):
        rotting.queue.send(bytes(4000), recoverable=True)
    before = dumped(rotting.disk, tmp_path / "before")
    assert inspect(before, settle_s=0).verdict is Verdict.CORRUPT
    with pytest.raises(StoreCorrupt):
        back_up(before, tmp_path / "refused")
    assert [rotting.queue.receive(timeout=0).body for _ in range(3)] == [b"a", b"b", b"d"]
    for _ in range(2):  # once to put it behind a checkpoint, once to leave it
        rotting.driver.maintain()
    after = dumped(rotting.disk, tmp_path / "after")
    found = inspect(after, settle_s=0)
    assert found.verdict is Verdict.SOUND
    assert any("damaged-" in each.file for each in found.aside)
    assert back_up(after, tmp_path / "copy").aside == 2
    assert len(rotting.queue) == 21
    rotting.manager.close()


def dumped(disk: SimulatedDisk, folder: Path) -> Path:
    """The files of a simulated disk as files of the system."""
    for name in disk.files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(disk.content(name))
    return folder


def test_it_does_not_keep_segments_of_the_log_for_ever() -> None:
    rotting = Rotting()
    other = rotting.manager.create_queue(r".\private$\other")
    host = rotting.driver._host
    for _ in range(8):
        other.send_many([bytes(4000)] * 10, recoverable=True)
        other.receive_many(10, timeout=0)
    while host.is_wasteful():
        while host.relocate_some()[0]:
            pass
        rotting.checkpoint()
    assert len(kept(rotting)) == 2
    assert rotting.driver._host.log.segments()[0].number > 1
    assert [each.body for each in rotting.queue.receive_many(5, timeout=0)] == [
        b"a",
        b"b",
        b"d",
        b"e",
    ]
    rotting.manager.close()


def test_a_store_can_be_stopped_and_opened_after_damage_behind_its_last_checkpoint() -> None:
    rotting = Rotting(is_covered=False)
    assert [each.body for each in rotting.queue.peek_all()] == [b"a", b"b", b"d", b"e"]
    rotting.manager.close()
    queue = rotting.opened()
    assert [each.body for each in queue.peek_all()] == [b"a", b"b", b"d", b"e"]
    rotting.manager.close()


def test_what_rots_while_the_store_is_closed_is_set_aside_when_it_is_open() -> None:
    rotting = Rotting(is_covered=False, count=1)
    rotting.queue.send_many([b"f", MARK, b"g"], recoverable=True)
    rotting.manager.close()
    rotting.rot()
    queue = rotting.opened()
    assert [each.body for each in queue.peek_all()] == [LABEL, b"f", b"g"]
    rotting.manager.close()
