"""The measured processes. Each prints a line of JSON for every line that it reads."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from bench.growth.waiting import QUEUE, Waiting, resident_bytes

LEVEL_BODY = bytes(100)
"""Small, so that ten million fit on a disk."""
MEMORY_BODY = bytes(2048)
CACHE_FULL = 100_000
"""Messages of 2 KiB that go three times through the cache, after which its size is steady."""
MEMORY_COUNT = 150_000
"""Messages over which memory is measured."""

TURNING_BODY = bytes(4096)
TURNING = 25_000
"""Messages that wait all the time during the long run: 100 MB."""
TURNING_BATCH = 100
TURNING_SLOW = 20
"""Of each batch, so many stay behind those that wait; the others are received at once."""
TURNING_COUNT = 100_000
DISK_SAMPLES = 200


def tell(figures: object) -> None:
    """One line for the parent."""
    print(json.dumps(figures), flush=True)


def level(folder: Path, count: int) -> None:
    """Fills a store, then measures for every line that comes, until there are no more."""
    store = Waiting(folder, LEVEL_BODY, lifetime=True)
    start = time.perf_counter()
    store.fill(count)
    tell({"filling": (time.perf_counter() - start) / count})
    for _ in sys.stdin:
        tell(store.measure())
    store.close()


def memory(folder: Path, *, lifetime: bool) -> None:
    """Bytes a message beyond a full cache."""
    store = Waiting(folder, MEMORY_BODY, lifetime=lifetime)
    store.fill(CACHE_FULL)
    before = resident_bytes()
    store.fill(CACHE_FULL + MEMORY_COUNT)
    after = resident_bytes()
    store.close()
    known = before is not None and after is not None
    tell({"bytes": (after - before) / MEMORY_COUNT if known else None})  # type: ignore[operator]


def opening(folder: Path) -> None:
    """Opens a store, looks at the first message, and waits for the parent's word to close it."""
    start = time.perf_counter()
    store = Waiting(folder, LEVEL_BODY, lifetime=True)
    store.queue.peek(timeout=0)
    seconds = time.perf_counter() - start
    tell({"seconds": seconds, "waiting": len(store.queue)})
    sys.stdin.read()
    store.close()


def turning(folder: Path) -> None:
    """A long run over a store in which a part stays for long, so that segments must be emptied."""
    slow = Waiting(folder, TURNING_BODY, lifetime=False)
    slow.fill(TURNING)
    fast = slow.manager.create_queue(
        QUEUE + "-not", transactional=slow.queue.properties.transactional
    )
    slow_queue = slow.queue
    living = TURNING * len(TURNING_BODY)
    batches = TURNING_COUNT // TURNING_BATCH
    most = 0
    times: list[float] = []
    start = time.perf_counter()
    for number in range(batches):
        for queue, count in ((slow_queue, TURNING_SLOW), (fast, TURNING_BATCH - TURNING_SLOW)):
            slow.queue = queue
            slow.send(count)
            slow.receive(count)
        times.append(time.perf_counter() - start)
        if number % (batches // DISK_SAMPLES) == 0 and number > batches // 2:
            most = max(most, disk_bytes(folder))
    slow.driver.maintain()
    tell(
        {
            "end": disk_bytes(folder) / living,
            "most": max(most, disk_bytes(folder)) / living,
            "rate": TURNING_COUNT / times[-1],
            "first": TURNING_COUNT / 10 / times[batches // 10 - 1],
        }
    )
    slow.close()


def disk_bytes(folder: Path) -> int:
    """What the folder takes on disk, reserved room included."""
    found = 0
    for path in folder.rglob("*"):
        try:
            found += path.stat().st_blocks * 512
        except FileNotFoundError:
            continue  # the log is being shortened meanwhile
    return found


def main(words: list[str]) -> int:
    """Does what the parent asked for: a kind, a folder, and perhaps a number of messages."""
    kind, folder = words[0], Path(words[1])
    if kind == "level":
        level(folder, int(words[2]))
    elif kind == "memory":
        memory(folder, lifetime=words[2] == "lifetime")
    elif kind == "opening":
        opening(folder)
    else:
        assert kind == "turning", f"no such measurement: {kind}"
        turning(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
