"""The program: starts the measured processes, asks them in turn, and prints what they found."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench.builds import ROOT, environment, print_load, working_folder

ROUNDS = 7
OPENINGS = 3
LEVELS = (1_000, 10_000, 100_000, 1_000_000)
LAST = 10_000_000
DISK_PER_MESSAGE = 1_000
"""Bytes that must be free for each message of the largest store."""

PROCESSOR = "(processor)"
GROWTH_GOAL = 1.3
MEMORY_GOAL = 200
OPENING_GOAL_S = 2.0


class Child:
    """A process that measures; it answers every line with a line of JSON."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.growth.worker", *words],
            env=environment(ROOT / "src"),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self) -> dict[str, Any]:
        """One more measurement."""
        assert self.process.stdin is not None
        self.process.stdin.write("again\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """What it says next."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process ended with {self.process.wait()} and said nothing")
        found: dict[str, Any] = json.loads(line)
        return found

    def end(self) -> None:
        """Lets it close its store."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait() == 0, "closing failed"

    def kill(self) -> None:
        """Ends it as a crash would."""
        self.process.kill()
        self.process.wait()


@contextmanager
def levels(counts: list[int], folder: Path) -> Iterator[dict[int, Child]]:
    """A process for each number of waiting messages, filled one after the other."""
    children: dict[int, Child] = {}
    try:
        for count in counts:
            child = children[count] = Child("level", str(folder / str(count)), str(count))
            seconds = child.answer()["filling"]
            print(f"{count:,} wait, {1e6 * seconds:.1f} µs each to fill", file=sys.stderr)
        yield children
    finally:
        for child in children.values():
            child.kill()


def growth(counts: list[int], rounds: int, folder: Path) -> dict[int, list[dict[str, float]]]:
    """Seconds a message by number of waiting messages, of each round."""
    found: dict[int, list[dict[str, float]]] = {count: [] for count in counts}
    with levels(counts, folder) as children:
        for child in children.values():
            child.ask()  # the first time is not measured
        for number in range(rounds):
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
            for count, child in children.items():
                found[count].append(child.ask())
    return found


def openings(folder: Path, waiting: int) -> dict[str, list[float]]:
    """Seconds until a store is ready whose process was killed, and again after a clean close."""
    found: dict[str, list[float]] = {"after SIGKILL": [], "after a clean close": []}
    for number in range(OPENINGS):
        print(f"opening {number + 1} of {OPENINGS}", file=sys.stderr)
        for name, seconds in found.items():
            child = Child("opening", str(folder))
            answer = child.answer()
            assert answer["waiting"] >= waiting, f"{answer['waiting']} of {waiting} came back"
            seconds.append(answer["seconds"])
            if name == "after SIGKILL":
                child.end()
            else:
                child.kill()
    return found


def once(kind: str, folder: Path, *words: str) -> dict[str, Any]:
    """One measurement by a process of its own, in a folder that goes away."""
    print(f"{kind} {' '.join(words)}", file=sys.stderr)
    child = Child(kind, str(folder / kind), *words)
    try:
        answer = child.answer()
        child.end()
    finally:
        child.kill()
        shutil.rmtree(folder / kind, ignore_errors=True)
    return answer


def chosen_levels(folder: Path, most: int) -> list[int]:
    """The numbers of waiting messages up to the most, for which the disk has room."""
    counts = [count for count in (*LEVELS, LAST) if count <= max(most, LEVELS[0])]
    free = shutil.disk_usage(folder).free
    while sum(counts) * DISK_PER_MESSAGE > free and len(counts) > 1:
        print(f"{counts.pop():,} waiting messages are left out: {free >> 20:,} MiB are free")
    return counts


def main() -> int:
    """Measures everything and prints it."""
    parser = argparse.ArgumentParser(description="Measures what waiting messages cost.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each is measured")
    parser.add_argument("--folder", type=Path, help="where to work; .build/bench by default")
    parser.add_argument("--most", type=int, default=LEVELS[-1], help="the most waiting messages")
    parser.add_argument("--full", action="store_true", help="ten million waiting messages as well")
    parser.add_argument("--json", action="store_true", help="print every round as JSON instead")
    options = parser.parse_args()
    if not options.json:
        print_load()
    with working_folder(options.folder) as folder:
        counts = chosen_levels(folder, LAST if options.full else options.most)
        found: dict[str, Any] = {"growth": growth(counts, options.rounds, folder)}
        opened = min(counts[-1], LEVELS[-1])
        found["opening"] = {"waiting": opened, **openings(folder / str(opened), opened)}
        for count in counts:
            shutil.rmtree(folder / str(count))
        found["memory"] = {
            kind: once("memory", folder, kind)["bytes"] for kind in ("endless", "lifetime")
        }
        found["disk"] = once("turning", folder)
    if options.json:
        print(json.dumps(found))
    else:
        report(found)
    return 0


def report(found: dict[str, Any]) -> None:
    """Tables for people."""
    rounds: dict[int, list[dict[str, float]]] = found["growth"]
    first = min(rounds)
    print(f"\nCost of a message with so many waiting (1.00 x is the cost with {first:,})")
    print(f"{'':26}" + "".join(f"{count:>14,}" for count in rounds) + f"{'1.00 x is':>16}")
    worst = 0.0
    for name in rounds[first][0]:
        cells = ""
        for measured in rounds.values():
            ratio = median(
                each[name] / base[name] for each, base in zip(measured, rounds[first], strict=True)
            )
            if not name.endswith(PROCESSOR):
                worst = max(worst, ratio)
            cells += f"{ratio:>12.2f} x"
        usual = median(each[name] for each in rounds[first])
        print(f"{name:26}{cells}{1e6 * usual:>13.1f} µs")
    _verdict(f"flat within {GROWTH_GOAL} x", f"{worst:.2f} x", reached=worst <= GROWTH_GOAL)
    _report_memory(found["memory"])
    opening = found["opening"]
    print(f"\nFrom opening until ready, {opening.pop('waiting'):,} waiting, files in the cache")
    for name, seconds in opening.items():
        print(f"{name:24}{median(seconds):>8.2f} s")
    slowest = max(median(seconds) for seconds in opening.values())
    _verdict(f"ready in {OPENING_GOAL_S} s", f"{slowest:.2f} s", reached=slowest <= OPENING_GOAL_S)
    disk = found["disk"]
    print("\nA long run of sends and receives, with checkpoints and compaction")
    print(f"disk to living bodies   {disk['end']:>8.2f} x at the end, {disk['most']:.2f} x at most")
    print(
        f"speed to its first tenth{disk['rate'] / disk['first']:>8.2f} x"
        f"   ({disk['rate']:,.0f} messages a second sent and received)"
    )


def _report_memory(memory: dict[str, float | None]) -> None:
    print("\nMemory of a waiting message beyond the cache")
    known = [each for each in memory.values() if each is not None]
    if not known:
        print("left out: this system does not say how much memory a process has")
        return
    names = {"endless": "without a lifetime", "lifetime": "with a lifetime"}
    for name, size in memory.items():
        print(f"{names[name]:24}{size:>8.0f} bytes")
    most = max(known)
    _verdict(f"at most {MEMORY_GOAL} bytes", f"{most:.0f} bytes", reached=most <= MEMORY_GOAL)


def _verdict(goal: str, found: str, *, reached: bool) -> None:
    print(f"goal, {goal}: {'reached' if reached else 'MISSED'} ({found})")
