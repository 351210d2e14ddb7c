"""The program: a service, a local client that sends, and strangers that flood beside it.

Only ratios to the quiet before in the same run mean anything. The strangers are one process, the
local client another: on a machine with two processors the three share them, so part of what is
measured is that there is less of a processor for everybody.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

from bench.builds import ROOT, environment

from merq import Manager, MessageQueueError, connect

ADDRESS: Final = "127.34.0.1"
SOURCE: Final = "127.34.9"
STRANGERS: Final = 8
SECONDS: Final = 5.0
SESSIONS: Final = 4096
PATIENCE_S: Final = 60.0
PAUSE_S: Final = 0.002
"""Between two messages of the local client: it is somebody who asks now and then."""
FLOODS: Final = ("names", "small", "connects")
GOAL: Final = 5.0


@contextmanager
def serving(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Manager]]:
    """A service, and a connection to it."""
    command = [sys.executable, "-m", "merq", "serve", "--data", str(folder), "--name", "bench"]
    log = folder.with_name("log.txt").open("wb")
    process = subprocess.Popen(
        [*command, "--address", ADDRESS], env=environment(ROOT / "src"), stderr=log
    )
    try:
        yield process, _connected(folder / "merq.sock")
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        log.close()


def _connected(path: Path) -> Manager:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return connect(f"unix:{path}")
        except MessageQueueError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@contextmanager
def flooding(flood: str, count: int) -> Iterator[subprocess.Popen[str]]:
    """Strangers, from when they have begun."""
    paths = {"PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT / "tests", ROOT)))}
    words = [sys.executable, "-m", "bench.hostile.flooding", flood, ADDRESS, SOURCE, str(count)]
    process = subprocess.Popen(
        words,
        env={**os.environ, **paths},
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()


def latencies_ms(manager: Manager, seconds: float, **properties: Any) -> dict[str, float]:
    """How long a send takes, by its median and its 99th percentile."""
    queue = manager.queue(r".\private$\own")
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        queue.send(b"x", **properties)
        times.append(time.perf_counter() - begin)
        time.sleep(PAUSE_S)
    queue.purge()
    if len(times) < 2:
        times *= 2
    return {
        "count": len(times),
        "p50": median(times) * 1e3,
        "p99": quantiles(times, n=100, method="inclusive")[98] * 1e3,
        "max": max(times) * 1e3,
    }


def resident_mib(process: int) -> float:
    """The memory that a process has."""
    text = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    (line,) = (each for each in text.splitlines() if each.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def measure(seconds: float, sessions: int) -> dict[str, Any]:
    """Everything, in one run."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "data") as (own, manager):
        manager.create_queue(r".\private$\own")
        latencies_ms(manager, 1.0)
        kinds = {"express": {}, "recoverable": {"recoverable": True}}
        for kind, properties in kinds.items():
            found[f"quiet {kind}"] = latencies_ms(manager, seconds, **properties)
        for flood in FLOODS:
            with flooding(flood, STRANGERS):
                for kind, properties in kinds.items():
                    found[f"{flood} {kind}"] = latencies_ms(manager, seconds, **properties)
            time.sleep(1.0)
        before = resident_mib(own.pid)
        with flooding("half", sessions):
            during = resident_mib(own.pid)
            half = latencies_ms(manager, seconds)
        time.sleep(4.0)
        found["half express"] = half
        found["memory"] = {"before": before, "during": during, "after": resident_mib(own.pid)}
    return found


def print_table(found: dict[str, Any]) -> None:
    """For people."""
    print(
        f"{'a local send, ms':<24}{'p50':>9}{'p99':>9}{'max':>9}{'p50/quiet':>11}{'p99/quiet':>11}"
    )
    for name, row in found.items():
        if name == "memory":
            continue
        quiet = found[f"quiet {name.split()[1]}"]
        ratios = row["p50"] / quiet["p50"], row["p99"] / quiet["p99"]
        print(
            f"{name:<24}{row['p50']:9.2f}{row['p99']:9.2f}{row['max']:9.2f}"
            f"{ratios[0]:11.1f}{ratios[1]:11.1f}"
        )
    memory = found["memory"]
    print(
        f"memory, MiB: {memory['before']:.0f} before, {memory['during']:.0f} with half packets in "
        f"all sessions, {memory['after']:.0f} after"
    )


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each figure")
    parser.add_argument("--sessions", type=int, default=SESSIONS, help="with half packets")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.seconds, options.sessions)
    if options.json:
        print(json.dumps(found))
    else:
        print_table(found)
        print(f"goal: the 99th percentile within {GOAL:g} times of quiet")
    return 0
