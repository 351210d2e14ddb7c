"""A client that sends while Spark is at work: a process of its own, as clients are.

`python -m bench.spark.sending URL QUEUE` says `ready`, sends until its input ends, and then says
how long each message took, in seconds, as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import merq

BODY: Final = b"x" * 1024
PAUSE_S: Final = 0.002
"""Between two messages."""

WARM_MESSAGES: Final = 100
"""The first messages are not counted."""

ENDING_S: Final = 30.0


@contextmanager
def sending(url: str, queue: str) -> Iterator[list[float]]:
    """Such a client, for the length of the block; afterwards the list has how long each took."""
    took: list[float] = []
    with subprocess.Popen(
        [sys.executable, "-m", __name__, url, queue],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).resolve().parents[2],
        text=True,
    ) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("the client that sends does not start")
        yield took
        told, _ = process.communicate(timeout=ENDING_S)
        took += json.loads(told)


def main() -> None:
    """Sends until the input ends."""
    over = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        over.set()

    with merq.connect(sys.argv[1]) as manager:
        queue = manager.queue(sys.argv[2])
        for _ in range(WARM_MESSAGES):
            queue.send(BODY, recoverable=True)
        threading.Thread(target=wait, daemon=True).start()
        print("ready", flush=True)
        took = []
        while not over.is_set():
            start = time.perf_counter()
            queue.send(BODY, recoverable=True)
            took.append(time.perf_counter() - start)
            time.sleep(PAUSE_S)
    print(json.dumps(took))


if __name__ == "__main__":
    main()
