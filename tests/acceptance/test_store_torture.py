"""Real processes on a real disk: killed at any moment, and out of room."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from merq.errors import StoreFull
from merq.store.disk import FileDisk
from merq.store.log import Log, LogSettings
from merq.store.records import Record
from merq.store.recovery import Frame, Identity, open_store

KILLS = 25
BEGUN_S = 30
LOOKING_S = 0.01
THREADS = 4
WHO = Identity(store_id=UUID(int=7), created=1)
SETTINGS = LogSettings(segment_size=64 << 10, reserve_step=16 << 10)
SMALL = LogSettings(segment_size=1 << 20, reserve_step=256 << 10)

# Says a number only when its frame is durable; goes on after the last number that it finds.
APPENDER = """
import os, sys
from pathlib import Path
from random import Random
from threading import Lock, Thread
from acceptance.test_store_torture import THREADS, numbers_in, opened
from merq.store.records import Record

log, found = opened(Path(sys.argv[1]))
turn = Lock()
filling = Random(int(sys.argv[2])).randbytes(3000)

def work(thread):
    number = len(numbers_in(found, thread))
    while True:
        data = b"%d %d " % (thread, number) + filling[: number * 37 % 3000]
        with turn:
            end = log.append([Record(1, data)]).end
        with turn:
            if log.durable < end:
                log.sync()
        os.write(1, b"%d %d\\n" % (thread, number))
        number += 1

for thread in range(THREADS):
    Thread(target=work, args=(thread,)).start()
"""


def opened(folder: Path, settings: LogSettings = SETTINGS) -> tuple[Log, list[bytes]]:
    found: list[bytes] = []

    def replay(frame: Frame) -> None:
        found.extend(bytes(record.data) for record in frame.records())

    disk = FileDisk(folder)
    disk.lock()
    try:
        log = open_store(disk, WHO, lambda _: None, replay, settings).log
    except BaseException:
        disk.unlock()
        raise
    LOCKS[id(log)] = disk
    return log, found


LOCKS: dict[int, FileDisk] = {}


def close(log: Log) -> None:
    log.close()
    LOCKS.pop(id(log)).unlock()


def numbers_in(found: list[bytes], thread: int) -> list[int]:
    pairs = [data.split(b" ", 2)[:2] for data in found]
    return [int(number) for whose, number in pairs if int(whose) == thread]


def killed_after(seconds: float, folder: Path, said: Path, seed: int) -> list[tuple[int, int]]:
    """What a process said to be durable before it was killed."""
    paths = [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    with (
        said.open("wb") as output,
        subprocess.Popen(
            [sys.executable, "-c", APPENDER, str(folder), str(seed)],
            stdout=output,
            env=environment,
        ) as process,
    ):
        if seed % 2:  # at any moment of its work, however slowly this machine starts programs
            until = time.monotonic() + BEGUN_S
            while not said.stat().st_size:
                assert time.monotonic() < until, "the process does not begin"
                time.sleep(LOOKING_S)
        time.sleep(seconds)
        assert process.poll() is None, "the process ended by itself"
        process.kill()
    lines = said.read_text(encoding="ascii").splitlines()
    return [(int(thread), int(number)) for thread, number in (line.split() for line in lines)]


def test_whatever_a_killed_process_called_durable_is_there_once_and_in_order(
    tmp_path: Path,
) -> None:
    chance = Random(20)  # noqa: S311
    promised: set[tuple[int, int]] = set()
    fruitful = 0
    for kill in range(KILLS):
        seconds = chance.uniform(0.05, 0.75)
        said = killed_after(seconds, tmp_path / "store", tmp_path / f"said-{kill}", kill)
        fruitful += bool(said)
        promised |= set(said)
        log, found = opened(tmp_path / "store")
        close(log)
        for thread in range(THREADS):
            numbers = numbers_in(found, thread)
            assert numbers == list(range(len(numbers))), "once, in order, without holes"
            assert {n for t, n in promised if t == thread} <= set(numbers)
    assert fruitful >= KILLS // 3, "most kills must come while something is written"
    assert len(promised) > 500


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 8 MiB, where the system lets us have one."""
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)  # noqa: S607


def test_a_full_disk_refuses_goes_on_when_there_is_room_and_forgets_nothing(
    small_disk: Path,
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(3 << 20))
    folder = small_disk / "store"
    log, _ = opened(folder, SMALL)
    accepted: list[bytes] = []

    def fill() -> None:
        for number in range(10_000):
            data = b"%d " % number + bytes([number % 251]) * (number * 7919 % 60_000)
            log.append([Record(1, data)])
            accepted.append(data)

    with pytest.raises(StoreFull):
        fill()
    before = len(accepted)
    assert before > 50
    log.sync()
    ballast.unlink()
    with pytest.raises(StoreFull):
        fill()
    assert len(accepted) > before + 50
    log.sync()
    (small_disk / "rest").write_bytes(bytes(FileDisk(small_disk).free_bytes()))
    close(log)

    log, found = opened(folder, SMALL)  # there is no room at all, and it opens
    assert found == accepted
    (small_disk / "rest").unlink()
    log.append([Record(1, b"goes on")])
    log.sync()
    close(log)
    log, found = opened(folder, SMALL)
    close(log)
    assert found == [*accepted, b"goes on"]
