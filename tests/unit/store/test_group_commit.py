from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event, Lock, Thread
from time import sleep
from uuid import UUID

import pytest

from merq.errors import StoreFailed
from merq.store.commit import GroupCommit
from merq.store.disk import Disk, FileDisk
from merq.store.log import Log, LogSettings
from merq.store.records import Record
from merq.store.recovery import Frame, Identity, open_store
from merq.testing.disk import Operation, SimulatedDisk

WHO = Identity(store_id=UUID(int=7), created=1)
SETTINGS = LogSettings(segment_size=4096, reserve_step=1024)
PATIENCE = 10.0


def reopened(disk: Disk, settings: LogSettings = SETTINGS) -> tuple[Log, list[bytes]]:
    found: list[bytes] = []

    def replay(frame: Frame) -> None:
        found.extend(bytes(record.data) for record in frame.records())

    return open_store(disk, WHO, lambda _: None, replay, settings).log, found


def in_threads(count: int, work: Callable[[int], None]) -> None:
    threads = [Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_many_threads_share_few_syncs_and_nobody_returns_before_its_frame_is_durable() -> None:
    disk = SimulatedDisk()
    commit = GroupCommit(reopened(disk)[0])
    snapshots: list[tuple[bytes, SimulatedDisk]] = []
    turn = Lock()

    def slow_sync(operation: Operation, name: str) -> None:
        if operation is Operation.SYNC:
            sleep(0.002)

    def work(number: int) -> None:
        for each in range(20):
            data = b"%d:%d" % (number, each)
            commit.wait(commit.append([Record(1, data)]).end)
            if each % 5 == 0:
                with turn:
                    snapshots.append((data, disk.snapshot()))

    disk.before = slow_sync
    in_threads(8, work)
    assert commit.syncs < 8 * 20 / 2
    for data, moment in snapshots:
        assert data in reopened(moment.crash())[1]
    found = reopened(disk.crash())[1]
    assert sorted(found) == sorted(b"%d:%d" % (n, e) for n in range(8) for e in range(20))
    for number in range(8):
        mine = [data for data in found if data.startswith(b"%d:" % number)]
        assert mine == [b"%d:%d" % (number, each) for each in range(20)]


def test_appending_goes_on_while_a_sync_is_under_way() -> None:
    disk = SimulatedDisk()
    commit = GroupCommit(reopened(disk)[0])
    syncing, go = Event(), Event()

    def hold(operation: Operation, name: str) -> None:
        if operation is Operation.SYNC:
            syncing.set()
            assert go.wait(PATIENCE)

    disk.before = hold
    first = commit.append([Record(1, b"first")])
    waiting = Thread(target=commit.wait, args=(first.end,))
    waiting.start()
    assert syncing.wait(PATIENCE)
    second = commit.append([Record(1, b"second")])
    go.set()
    waiting.join(PATIENCE)
    assert commit.syncs == 1
    commit.wait(second.end)
    assert commit.syncs == 2
    commit.wait(first.end)
    assert commit.syncs == 2


def test_a_failed_sync_fails_for_all_who_wait() -> None:
    disk = SimulatedDisk()
    commit = GroupCommit(reopened(disk)[0])
    disk.fail_next(Operation.SYNC)
    failed: list[int] = []

    def work(number: int) -> None:
        try:
            commit.wait(commit.append([Record(1, b"x")]).end)
        except StoreFailed:
            failed.append(number)

    in_threads(6, work)
    assert sorted(failed) == list(range(6))


def test_a_sync_that_failed_beside_is_not_covered_up_by_the_next_segments() -> None:
    """The system tells of lost writes once, to the sync under way; the next one would succeed."""
    disk = SimulatedDisk()
    log = reopened(disk)[0]
    log.append([Record(1, b"lost")])
    syncing = log.begin_sync()
    assert syncing is not None
    disk.fail_next(Operation.SYNC)
    syncing.run()
    with pytest.raises(StoreFailed):
        log.append([Record(1, bytes(4090))])  # would begin a segment, and sync before
    assert log.durable >> 32 == 1
    with pytest.raises(StoreFailed):
        log.end_sync(syncing)


def test_a_sync_whose_segment_is_finished_meanwhile_asks_nothing_of_its_file() -> None:
    disk = SimulatedDisk()
    log = reopened(disk)[0]
    end = log.append([Record(1, b"first")]).end
    syncing = log.begin_sync()
    assert syncing is not None
    log.append([Record(1, bytes(4090))])
    log.drop(1)
    syncing.run()
    log.end_sync(syncing)
    assert log.durable >= end


def test_it_works_the_same_on_a_real_disk(tmp_path: Path) -> None:
    disk = FileDisk(tmp_path / "store")
    disk.lock()
    settings = LogSettings(segment_size=16 << 10, reserve_step=8 << 10)
    log = reopened(disk, settings)[0]
    commit = GroupCommit(log)

    def work(number: int) -> None:
        for each in range(40):
            commit.wait(commit.append([Record(1, b"%d:%d" % (number, each) + bytes(50))]).end)

    in_threads(6, work)
    assert log.durable == log.end
    assert len(log.segments()) > 1
    log.close()
    log, found = reopened(disk, settings)
    log.close()
    disk.unlock()
    assert len(found) == len(set(found)) == 240
