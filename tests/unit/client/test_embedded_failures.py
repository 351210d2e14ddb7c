"""The queue manager in-process in bad weather: disks that fail and fill up, closing under load."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import merq
from merq.client.embedded import Driver
from merq.client.manager import Manager
from merq.engine.limits import Limits
from merq.errors import MessageQueueError, StoreFailed, StoreFull
from merq.hresult import HResult
from merq.model.selecting import Seek
from merq.testing.disk import Operation, SimulatedDisk
from unit.client.using_managers import (
    ORDERS,
    SMALL,
    SMALL_CHECKPOINTS,
    driver_of,
    refused,
    waiting_at,
)


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    with merq.open(tmp_path / "data", name="here") as opened:
        yield opened


def on(disk: SimulatedDisk) -> Manager:
    return Manager(Driver(disk, "here", Limits(), SMALL))


def test_a_sync_that_fails_fails_everybody_and_opening_again_mends_it() -> None:
    disk = SimulatedDisk()
    manager = on(disk)
    queue = manager.create_queue(ORDERS)
    queue.send("safe", recoverable=True)
    with ThreadPoolExecutor() as pool:
        other = manager.create_queue(r".\private$\empty")
        waiting = pool.submit(other.receive)
        waiting_at(manager, other, 1)
        disk.fail_next(Operation.SYNC)
        with pytest.raises(StoreFailed):
            queue.send("lost", recoverable=True)
        with pytest.raises(StoreFailed):
            waiting.result(10)
    for ask in (lambda: queue.send("x"), lambda: queue.receive(timeout=0), manager.queues):
        with pytest.raises(StoreFailed, match="opened anew"):
            ask()
    manager.close()
    with on(disk) as manager:
        found = [message.body for message in manager.queue(ORDERS).peek_all()]
        assert found[:1] == ["safe"]


def test_a_write_that_fails_wakes_those_who_wait() -> None:
    disk = SimulatedDisk()
    manager = on(disk)
    queue, empty = manager.create_queue(ORDERS), manager.create_queue(r".\private$\empty")
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(empty.receive)
        waiting_at(manager, empty, 1)
        disk.fail_next(Operation.WRITE)
        with pytest.raises(StoreFailed):
            queue.send("lost", recoverable=True)
        with pytest.raises(StoreFailed):
            waiting.result(10)
    manager.close()


def test_a_failure_that_only_the_timekeeper_meets_is_told_to_the_next_who_asks() -> None:
    now = [1_000_000_000.0]
    disk = SimulatedDisk()
    manager = Manager(Driver(disk, "here", Limits(), SMALL, clock=lambda: now[0]))
    queue = manager.create_queue(ORDERS)
    queue.send("x", recoverable=True, time_to_be_received=5)
    disk.fail_next(Operation.SYNC)
    now[0] += 6
    deadline = time.monotonic() + 10
    while driver_of(manager)._failure is None and time.monotonic() < deadline:
        time.sleep(0.02)
    with pytest.raises(StoreFailed):
        len(queue)
    manager.close()


@pytest.mark.parametrize("reserves", [False, True])
def test_a_full_disk_refuses_one_operation_and_everything_goes_on(reserves: bool) -> None:
    disk = SimulatedDisk(reserves=reserves)
    with on(disk) as manager:
        queue = manager.create_queue(ORDERS, transactional=True)
        with manager.transaction() as tx:
            queue.send("kept", tx=tx)
        disk.capacity = disk.used

        def fill() -> None:
            for _ in range(200):
                with manager.transaction() as tx:
                    queue.send("x" * 200, tx=tx)

        refused(HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED, fill)
        count = len(queue)
        disk.capacity = None
        with manager.transaction() as tx:
            queue.send("more", tx=tx)
        assert len(queue) == count + 1
        assert queue.receive(timeout=5).body == "kept"
    with on(disk.snapshot()) as manager:
        assert len(manager.queue(ORDERS)) == count


def test_those_who_wait_for_the_disk_are_answered_when_it_becomes_full() -> None:
    disk = SimulatedDisk(reserves=False)
    with on(disk) as manager:
        queue = manager.create_queue(ORDERS)
        held = threading.Event()
        released = threading.Event()

        def before(operation: Operation, name: str) -> None:
            if operation is Operation.SYNC and threading.current_thread().name.startswith("slow"):
                held.set()
                released.wait(10)

        disk.before = before
        with ThreadPoolExecutor(thread_name_prefix="slow") as pool:
            first = pool.submit(queue.send, "1", recoverable=True)
            assert held.wait(10)
            with ThreadPoolExecutor(thread_name_prefix="other") as others:
                end = driver_of(manager)._host.log.end
                second = others.submit(queue.send, "2", recoverable=True)
                while driver_of(manager)._host.log.end == end:
                    time.sleep(0.001)
                disk.capacity = disk.used
                third = others.submit(queue.send, "3" * 5000, recoverable=True)
                released.set()
                with pytest.raises(MessageQueueError):
                    third.result(10)
                second.result(10)
                first.result(10)
        disk.before = None
        disk.capacity = None
        assert len(queue) == 2


def test_a_disk_without_room_for_a_new_store_is_told_and_leaves_no_file_open() -> None:
    disk = SimulatedDisk(capacity=300)
    with pytest.raises(StoreFull):
        on(disk)
    assert disk.open_files == 0


def test_closing_answers_those_whose_messages_are_on_their_way_to_the_disk(
    manager: Manager, tmp_path: Path
) -> None:
    queue = manager.create_queue(ORDERS)
    sent: list[int] = []

    def send() -> None:
        for number in range(10_000):
            queue.send(number, recoverable=True)
            sent.append(number)

    with ThreadPoolExecutor() as pool:
        sending = pool.submit(send)
        while len(sent) < 20:
            time.sleep(0.001)
        manager.close()
        refused(HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE, lambda: sending.result(10))
    with merq.open(tmp_path / "data") as again:
        found = [message.body for message in again.queue(ORDERS).peek_all()]
    assert found == sent


def test_a_wasteful_log_on_a_full_disk_does_not_stop_the_queue_manager() -> None:
    disk = SimulatedDisk(reserves=False)
    manager = Manager(Driver(disk, "here", Limits(), SMALL_CHECKPOINTS))
    with manager:
        queue = manager.create_queue(ORDERS)
        queue.send("x" * 20_000, recoverable=True)
        for number in range(12):
            queue.send(str(number) * 10_000, recoverable=True)
        for _ in range(10):
            queue.receive_by_lookup_id(0, Seek.LAST)
        disk.capacity = disk.used + 3000
        done = threading.Event()

        def maintain() -> None:
            try:
                driver_of(manager).maintain()
            except StoreFull:
                pass
            finally:
                done.set()

        threading.Thread(target=maintain, daemon=True).start()
        assert done.wait(10), "it gives up until there is room"
        disk.capacity = None
        driver_of(manager).maintain()
        assert len(queue) == 3
    with on(disk) as manager:
        assert len(manager.queue(ORDERS)) == 3
