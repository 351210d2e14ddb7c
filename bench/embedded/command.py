"""The program: runs every contender in rounds, in processes of their own, and prints the table."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.builds import PEERS, ROOT, environment, found_builds, print_load, working_folder
from bench.embedded import contender, peers, yardsticks
from bench.embedded.table import Named, print_table

ROUNDS = 5
OURS = "merq"
PROFILE = "profile"

UNSYNCED = "(does not sync)"


@dataclass(frozen=True, slots=True)
class Peer:
    """How to open one, what it is called, and the module that it needs."""

    opened: Callable[[Path], contender.Contender]
    named: Named
    module: str = "sqlite3"


OTHERS = {
    "raw": Peer(
        yardsticks.raw_appends, Named("raw appends, fdatasync each", "raw appends, no sync")
    ),
    "SQLite": Peer(yardsticks.sqlite, Named("SQLite, WAL, FULL", "SQLite, :memory:")),
    "LMDB": Peer(yardsticks.lmdb, Named("LMDB", "LMDB, sync=False"), "lmdb"),
    "persist-queue": Peer(
        peers.persist_queue_sqlite,
        Named("persist-queue, SQLiteQueue", "persist-queue, :memory:"),
        "persistqueue",
    ),
    "litequeue FULL": Peer(
        peers.litequeue_full,
        Named("litequeue, set to FULL", "litequeue, memory=True"),
        "litequeue",
    ),
    "persist-queue files": Peer(
        peers.persist_queue_files,
        Named(f"persist-queue, Queue {UNSYNCED}", "persist-queue, Queue, on disk"),
        "persistqueue",
    ),
    "litequeue": Peer(
        peers.litequeue_normal,
        Named(f"litequeue as it comes {UNSYNCED}", "litequeue as it comes, on disk"),
        "litequeue",
    ),
}


def main() -> int:
    """Measures all, or one if it was started for that."""
    parser = argparse.ArgumentParser(description="Measures merq.open beside other stores.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each is measured")
    parser.add_argument("--folder", type=Path, help="where to work; .build/bench by default")
    parser.add_argument("--profile", action="store_true", help="show where our time goes as well")
    parser.add_argument("--json", action="store_true", help="print every round as JSON instead")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.folder)))
        return 0
    if not options.json:
        print_load()
    runs = rounds(options.rounds, options.folder)
    profiled = None
    if options.profile:
        print("profiling", file=sys.stderr)
        profiled = in_child(PROFILE, ROOT / "src", options.folder)
    if options.json:
        print(json.dumps({"rounds": runs, "profile": profiled}))
        return 0
    ours = [name for name in runs if name.startswith(OURS)]
    print_table(runs, ours, {name: peer.named for name, peer in OTHERS.items()})
    if profiled is not None:
        from bench.embedded.profiling import print_profile  # noqa: PLC0415 - imports merq

        print_profile(profiled)
    return 0


def measure(name: str, folder: Path) -> dict[str, Any]:
    """One contender once, in this process."""
    if name == PROFILE:
        from bench.embedded.profiling import profile  # noqa: PLC0415 - imports the measured build

        return profile(folder)
    if name == OURS:
        from bench.embedded.ours import merq_embedded  # noqa: PLC0415 - imports the measured build

        found = merq_embedded(folder)
    else:
        found = OTHERS[name].opened(folder)
    try:
        return dict(contender.rates(found))
    finally:
        found.close()


def rounds(count: int, folder: Path | None) -> dict[str, list[dict[str, float]]]:
    """Every contender once a round; each round begins with another."""
    work: dict[str, tuple[str, Path]] = {
        f"{OURS}, {build}": (OURS, path) for build, path in found_builds().items()
    }
    work |= {name: (name, ROOT / "src") for name, peer in OTHERS.items() if _is_there(peer)}
    names = list(work)
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for number in range(count):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            print(f"round {number + 1} of {count}, {name}", file=sys.stderr)
            runs[name].append(in_child(*work[name], folder))
    return runs


def in_child(name: str, build: Path, folder: Path | None) -> dict[str, Any]:
    """What a process of its own measured, in an empty folder."""
    with working_folder(folder) as place:
        command = [sys.executable, str(Path(__file__).parent), "--measure", name]
        done = subprocess.run(
            [*command, "--folder", str(place)],
            check=True,
            env=environment(build),
            stdout=subprocess.PIPE,
            text=True,
        )
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def _is_there(peer: Peer) -> bool:
    if str(PEERS) not in sys.path:
        sys.path.append(str(PEERS))
    if find_spec(peer.module) is not None:
        return True
    print(f"{peer.named.durable} is left out: make bench installs it", file=sys.stderr)
    return False
