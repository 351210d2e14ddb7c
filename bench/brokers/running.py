"""Starts brokers on spare loopback ports and ends them, whatever happens in between."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

READY_S_MAX = 60.0
"""RabbitMQ takes about ten seconds."""

ENDING_S_MAX = 10.0
"""After that a broker that was asked to end is killed."""

LOOKING_S = 0.05
LOG_BYTES_SHOWN = 2_000


class NotReady(Exception):
    """A broker did not start; what it wrote last has been printed."""


def spare_port() -> int:
    """A loopback port that nobody has. Somebody could take it before the broker does; rarely."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port


@contextmanager
def running(
    command: Sequence[str],
    folder: Path,
    ready: Callable[[], bool],
    environment: Mapping[str, str] | None = None,
) -> Iterator[int]:
    """The command as a process of its own, ready at the beginning and ended at the end.

    Gives the number of the process.

    It has a session of its own, so that Ctrl-C reaches this program alone, which then ends it.
    """
    log = folder / "output"
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait(process, ready, log)
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(ENDING_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def listening(port: int) -> Callable[[], bool]:
    """Whether somebody accepts connections there."""

    def look() -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", port)) == 0

    return look


def _wait(process: subprocess.Popen[bytes], ready: Callable[[], bool], log: Path) -> None:
    end = time.monotonic() + READY_S_MAX
    while not ready():
        ended = process.poll()
        if ended is not None or time.monotonic() > end:
            said = log.read_bytes()[-LOG_BYTES_SHOWN:].decode("utf-8", "replace")
            print(said, file=sys.stderr)
            if ended is None:
                raise NotReady(f"it was not ready after {READY_S_MAX:.0f} s")
            raise NotReady(f"it ended with {ended} instead of starting")
        time.sleep(LOOKING_S)
