"""Where our time goes: own time by room of the house, for each operation, under cProfile.

What C functions and the standard library take counts for the room that called them; only the disk's
own calls stand apart, and what the library calls by itself is in the rest. The profiler makes every
small function look dearer than it is, so read the shares of Python's rooms beside each other, and
take the time of a message from the last line, which was measured without it.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from collections import Counter
from pathlib import Path
from typing import Any, TypeAlias

from bench.embedded.contender import OPERATIONS, tasks, warm
from bench.embedded.ours import merq_embedded

Function: TypeAlias = tuple[str, int, str]

SYNC = "disk sync"
FILES = "disk read and write"
ELSEWHERE = "the rest"
ROOMS = (SYNC, FILES, "store", "engine", "wire", "model", "host", "client", ELSEWHERE)
SYNC_CALLS = ("fdatasync", "fsync")
FILE_CALLS = ("pwrite", "pread", "posix_fallocate", "ftruncate", "posix.open")
DEAREST = 12
"""How many functions are listed."""


def room_of(function: Function) -> str | None:
    """The room that a function is in; None if that is not ours."""
    path = Path(function[0]).parts
    if "merq" not in path:
        return None
    within = path[len(path) - path[::-1].index("merq") :]
    return within[0] if len(within) > 1 and within[0] in ROOMS else ELSEWHERE


def disk_call(function: Function) -> str | None:
    """Which of the disk's own calls it is."""
    if function[0] != "~":
        return None
    if any(call in function[2] for call in SYNC_CALLS):
        return SYNC
    return FILES if any(call in function[2] for call in FILE_CALLS) else None


def shares(stats: dict[Function, Any]) -> Counter[str]:
    """Own time in seconds by room."""
    found: Counter[str] = Counter()
    for function, (_, _, own, _, callers) in stats.items():
        room = disk_call(function) or room_of(function)
        if room is not None:
            found[room] += own
            continue
        attributed = 0.0
        for caller, (_, _, part, _) in callers.items():
            found[room_of(caller) or ELSEWHERE] += part
            attributed += part
        found[ELSEWHERE] += max(0.0, own - attributed)
    return found


def profile(folder: Path) -> dict[str, Any]:
    """Every operation once without and once with the profiler."""
    contender = merq_embedded(folder)
    warm(contender)
    unprofiled: dict[str, float] = {}
    for task in tasks(contender):
        start = time.perf_counter()
        task.run()
        unprofiled[task.name] = (time.perf_counter() - start) / task.count
    rooms: dict[str, dict[str, float]] = {}
    functions: Counter[str] = Counter()
    for task in tasks(contender):
        profiler = cProfile.Profile()
        profiler.runcall(task.run)
        stats: dict[Function, Any] = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
        rooms[task.name] = dict(shares(stats))
        for function, (_, _, own, _, _) in stats.items():
            if room_of(function) is not None:
                functions[_named(function)] += own / task.count
    contender.close()
    return {"seconds": unprofiled, "rooms": rooms, "functions": functions.most_common(DEAREST)}


def print_profile(found: dict[str, Any]) -> None:
    """Shares of each operation's time in a column each, and the dearest functions."""
    names = [name for name in OPERATIONS if name in found["rooms"]]
    print("\nWhere our time goes (plain build, own time under the profiler)")
    for number, name in enumerate(names, 1):
        print(f"  ({number}) {name}")
    print(f"{'':24}" + "".join(f"{f'({number})':>8}" for number in range(1, len(names) + 1)))
    for room in ROOMS:
        cells = ""
        for name in names:
            whole = sum(found["rooms"][name].values())
            cells += f"{100 * found['rooms'][name].get(room, 0.0) / whole:>7.1f}%"
        print(f"{room:24}{cells}")
    cells = "".join(f"{1e6 * found['seconds'][name]:>8.1f}" for name in names)
    print(f"{'µs a message, as it is':24}{cells}")
    whole = sum(own for _, own in found["functions"])
    print("\nThe dearest functions, own time of all operations together (100 % is the list)")
    for name, own in found["functions"]:
        print(f"{100 * own / whole:>7.1f}%  {name}")


def _named(function: Function) -> str:
    path = Path(function[0])
    return f"{path.parent.name}/{path.name}:{function[2]}"
