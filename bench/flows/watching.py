"""What processes take while a flow runs: memory over time, and processor time.

A flow is a program of Python, Java that it starts, and workers of Python that Java starts. Workers
are forked from one another: what they share is counted once for all of them (PSS, not RSS).
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.exchange.processes import cpu_s

SAMPLE_S = 1.0
"""How often it is looked."""

PROGRAM, JAVA, WORKERS, SERVICE = "program", "java", "workers", "service"
"""The flow's own process, Spark, the processes that read and write rows, and queue managers."""

KINDS = (PROGRAM, JAVA, WORKERS, SERVICE)
KIBIBYTE = 1024
STAGES = 4
"""Into so many parts a run is cut, to see whether memory grows while it lasts."""

Memory = dict[str, int]
"""Bytes, by the kind of process."""


@dataclass(slots=True)
class Watched:
    """What was seen.

    Attributes:
        samples: Seconds since the beginning, and the memory then.
        cpu_s: Processor time, by the kind of process.
        wall_s: How long the flow took, with the start of Spark.
    """

    samples: list[tuple[float, Memory]] = field(default_factory=list)
    cpu_s: dict[str, float] = field(default_factory=dict)
    wall_s: float = 0.0

    def peak(self, kind: str) -> int:
        """The most memory that processes of a kind had at once."""
        return max((memory.get(kind, 0) for _, memory in self.samples), default=0)

    def over_time(self, kind: str) -> list[int]:
        """The median of the memory in each part of the run."""
        found = []
        for number in range(STAGES):
            first, last = self.wall_s * number / STAGES, self.wall_s * (number + 1) / STAGES
            part = [memory.get(kind, 0) for at, memory in self.samples if first <= at < last]
            found.append(int(median(part)) if part else 0)
        return found


class FlowStopped(Exception):
    """A flow ended with another status than 0; what it wrote last is in the text."""


def watched(
    command: Sequence[str], services: Sequence[int], log: Path, environment: Mapping[str, str]
) -> tuple[Watched, str]:
    """Runs a flow and looks at it meanwhile; gives what it printed too.

    Args:
        command: The flow.
        services: Processes of the queue managers that it reads.
        log: Where its standard error goes.
        environment: Its variables.

    Raises:
        FlowStopped: It failed.
    """
    found = Watched()
    before = {each: cpu_s(each) for each in services}
    begin = time.perf_counter()
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=dict(environment),
            text=True,
        )
    printed: list[str] = []
    assert process.stdout is not None
    # A pipe that nobody reads stops who writes.
    reading = threading.Thread(target=lambda: printed.append(process.stdout.read()))  # type: ignore[union-attr]
    reading.start()
    times: dict[int, tuple[str, float]] = {}
    try:
        while process.poll() is None:
            memory = _sample(process.pid, services, times)
            found.samples.append((time.perf_counter() - begin, memory))
            with suppress(subprocess.TimeoutExpired):
                process.wait(SAMPLE_S)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
        reading.join()
        process.stdout.close()
    found.wall_s = time.perf_counter() - begin
    for kind, seconds in times.values():
        found.cpu_s[kind] = found.cpu_s.get(kind, 0.0) + seconds
    found.cpu_s[SERVICE] = sum(cpu_s(each) - before[each] for each in services)
    if process.returncode:
        said = log.read_text(encoding="utf-8", errors="replace")[-2_000:]
        raise FlowStopped(f"{' '.join(command)} ended with {process.returncode}: {said}")
    return found, "".join(printed)


def _sample(program: int, services: Sequence[int], times: dict[int, tuple[str, float]]) -> Memory:
    found: Memory = {}
    for process, kind in _tree(program):
        with suppress(OSError, ValueError, IndexError):  # it has ended since
            found[kind] = found.get(kind, 0) + memory_bytes(process)
            times[process] = (kind, cpu_s(process))
    found[SERVICE] = sum(memory_bytes(each) for each in services)
    return found


def _tree(program: int) -> list[tuple[int, str]]:
    """A flow's processes, and of which kind each is."""
    children: dict[int, list[int]] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            with suppress(OSError, IndexError):
                children.setdefault(_parent(int(each.name)), []).append(int(each.name))
    found = [(program, PROGRAM)]
    for process, kind in found:
        for child in children.get(process, ()):
            is_java = kind == PROGRAM and _name(child) == "java"
            found.append((child, JAVA if is_java else PROGRAM if kind == PROGRAM else WORKERS))
    return found


def _parent(process: int) -> int:
    text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    # The second field is the program's name in brackets, and may have spaces.
    return int(text.rpartition(")")[2].split()[1])


def _name(process: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process}/comm").read_text(encoding="utf-8").strip()
    return ""


def memory_bytes(process: int) -> int:
    """What a process has in memory; what it shares with others is shared out."""
    text = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * KIBIBYTE
    return 0
