"""What the machine allows: one append made durable, and one message there and back on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from bench.brokers.contender import BODY
from bench.brokers.running import ENDING_S_MAX
from bench.builds import ROOT

MACHINE = "machine"
"""The yardsticks stand among the contenders by this name."""

FDATASYNC_P50 = "fdatasync of an append, p50"
ECHO_P50 = "loopback echo, p50"
REPEATS = 500
RESERVED_BYTES = 4 << 20


def yardsticks(folder: Path) -> dict[str, float]:
    """Microseconds of each."""
    return {FDATASYNC_P50: _fdatasync_us(folder / "yardstick"), ECHO_P50: _echo_us()}


def _fdatasync_us(path: Path) -> float:
    """An append of one body to a file with room reserved ahead, made durable."""
    took = []
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, RESERVED_BYTES)
        for number in range(REPEATS):
            start = time.perf_counter()
            os.pwrite(descriptor, BODY, number * len(BODY))
            os.fdatasync(descriptor)
            took.append(time.perf_counter() - start)
    finally:
        os.close(descriptor)
        path.unlink()
    return 1e6 * median(took)


def _echo_us() -> float:
    """One body there and back over TCP, to a process that blocks as this one does."""
    took = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = [sys.executable, "-m", "bench.brokers.yardsticks", str(server.fileno())]
        process = subprocess.Popen(command, cwd=ROOT, pass_fds=[server.fileno()])
        try:
            with socket.create_connection(server.getsockname()) as one:
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for _ in range(REPEATS):
                    start = time.perf_counter()
                    one.sendall(BODY)
                    _read(one)
                    took.append(time.perf_counter() - start)
            process.wait(ENDING_S_MAX)
        finally:
            process.kill()
            process.wait()
    return 1e6 * median(took)


def _answer(server: socket.socket) -> None:
    one, _ = server.accept()
    with one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while _read(one):
            one.sendall(BODY)


def _read(one: socket.socket) -> bool:
    """Reads one body; False if the other side has left."""
    missing = len(BODY)
    while missing:
        data = one.recv(missing)
        if not data:
            return False
        missing -= len(data)
    return True


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as inherited:
        _answer(inherited)
