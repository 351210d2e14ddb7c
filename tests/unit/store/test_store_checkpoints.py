"""Checkpoints: what they may be made of, and what may go on while they are written."""

from __future__ import annotations

import struct
from array import array
from pathlib import Path
from threading import Event, Thread
from uuid import UUID

import pytest

from merq.store.checkpoints import Checkpoint, Section, find_checkpoint, write_checkpoint
from merq.store.disk import Disk, FileDisk
from merq.store.log import Log, LogSettings
from merq.store.records import Record
from merq.store.recovery import Identity, open_store
from merq.testing.disk import Operation, SimulatedDisk

WHO = Identity(store_id=UUID(int=7), created=1)
SETTINGS = LogSettings(segment_size=64 << 10, reserve_step=16 << 10)
APPENDS_MIN = 500


def opened(disk: Disk) -> tuple[Log, list[Checkpoint], list[int]]:
    checkpoints: list[Checkpoint] = []
    numbers: list[int] = []
    log = open_store(
        disk,
        WHO,
        checkpoints.append,
        lambda frame: numbers.extend(_number(record.data) for record in frame.records()),
        SETTINGS,
    ).log
    return log, checkpoints, numbers


def _number(data: memoryview) -> int:
    return int.from_bytes(data[:8], "little")


def record(number: int) -> Record:
    return Record(1, struct.pack("<Q", number) + bytes([number % 251]) * 300)


def checkpoint_of(log: Log, number: int, *sections: Section) -> Checkpoint:
    return Checkpoint(
        number=number, position=log.end, next_sequence=log.next_sequence, sections=sections
    )


def test_sections_are_bytes_bytearrays_or_views_and_keep_their_order() -> None:
    disk = SimulatedDisk()
    log = opened(disk)[0]
    numbers = array("I", [1, 2, 3])
    given = (
        Section(1, b"bytes"),
        Section(2, bytearray(b"array")),
        Section(2, memoryview(b"a view of more")[2:6]),
        Section(2, memoryview(numbers)),
        Section(3, bytearray()),
    )
    write_checkpoint(disk, WHO.store_id, checkpoint_of(log, 1, *given))
    found, _ = find_checkpoint(disk, WHO.store_id)
    assert found is not None
    assert found.sections == (
        (1, b"bytes"),
        (2, b"array"),
        (2, b"view"),
        (2, numbers.tobytes()),
        (3, b""),
    )
    assert all(type(section.data) is bytes for section in found.sections)


def test_a_large_section_is_written_from_where_it_is() -> None:
    disk = SimulatedDisk()
    log = opened(disk)[0]
    data = bytearray(b"x" * 100_000)
    held: list[bool] = []

    def is_held(operation: Operation, name: str) -> None:
        if (operation, name) == (Operation.WRITE, "checkpoints/draft"):
            try:
                data.append(0)
            except BufferError:
                held.append(True)
            else:
                held.append(False)
                data.pop()

    disk.before = is_held
    write_checkpoint(disk, WHO.store_id, checkpoint_of(log, 1, Section(1, data)))
    # The header of the file, the header of the section, and its data.
    assert held == [False, True, True]


@pytest.mark.parametrize("crash", ["power", "kill"])
@pytest.mark.parametrize("seed", range(10))
def test_the_log_goes_on_between_any_two_operations_of_a_checkpoint(seed: int, crash: str) -> None:
    disk = SimulatedDisk(seed)
    log = opened(disk)[0]
    appended = iter(range(1000))
    for _ in range(5):
        log.append([record(next(appended))])
    log.sync()

    def go_on(operation: Operation, name: str) -> None:
        if name.startswith("checkpoints"):
            log.append([record(next(appended))])
            log.sync()

    checkpoint = checkpoint_of(log, 1, Section(1, b"five"))
    disk.before = go_on
    write_checkpoint(disk, WHO.store_id, checkpoint)
    end = log.next_sequence - 1
    assert end > 5 + 6
    _, (found,), numbers = opened(disk.crash("power" if crash == "power" else "kill"))
    assert found == checkpoint
    assert numbers == list(range(5, end))


def test_one_thread_writes_checkpoints_while_another_appends(tmp_path: Path) -> None:
    disk = FileDisk(tmp_path)
    disk.lock()
    log, _, _ = opened(disk)
    large = Section(2, memoryview(bytes(range(256)) * 20_000))
    asked, written, stopped = Event(), Event(), Event()
    asking: list[Checkpoint] = []

    def write() -> None:
        while asked.wait() and not stopped.is_set():
            asked.clear()
            write_checkpoint(disk, WHO.store_id, asking[-1])
            written.set()

    writer = Thread(target=write)
    writer.start()
    number = 0
    while len(asking) < 5 or number < APPENDS_MIN:
        log.sync()
        asking.append(checkpoint_of(log, len(asking) + 1, Section(1, b"%d" % number), large))
        written.clear()
        asked.set()
        while not written.is_set():
            assert writer.is_alive(), "writing a checkpoint failed"
            log.append([record(number)])
            number += 1
            if number % 7 == 0:
                log.sync()
    stopped.set()
    asked.set()
    writer.join()
    log.sync()
    log.close()
    log, (found,), numbers = opened(disk)
    log.close()
    disk.unlock()
    assert found == asking[-1]
    assert numbers == list(range(int(bytes(found.sections[0].data)), number))
