"""Measuring in rounds: servers are started once, and each client has a process of its own.

The programs that measure us beside others share it; what they measure is theirs.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Protocol, TypeVar

from bench.brokers.packages import Unavailable
from bench.brokers.running import NotReady
from bench.brokers.yardsticks import MACHINE, yardsticks
from bench.builds import ROOT, environment


class Failed(Exception):
    """A contender could not be measured; what it said has been printed."""


class Named(Protocol):
    """A contender, as far as rounds go."""

    @property
    def name(self) -> str:
        """What it is called in tables."""


_T = TypeVar("_T", bound=Named)


def end_servers_when_terminated() -> None:
    """Ended by SIGTERM, a program leaves its `with` blocks, lest what it started stays."""
    signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    del frame
    sys.exit(128 + number)


def say(words: str) -> None:
    """How far it is, for whoever watches."""
    print(words, file=sys.stderr, flush=True)


def leave_out(name: str, why: object, missing: list[str]) -> None:
    """Something is not measured: that is told now, and stands on the page."""
    missing.append(f"{name}: {why}")
    say(f"left out: {missing[-1]}")


@contextmanager
def started(
    servers: Mapping[str, Callable[[Path], AbstractContextManager[Any]]],
    folder: Path,
    missing: list[str],
) -> Iterator[dict[str, Any]]:
    """Every server that can be had, by name with its address; the others are said to be missing."""
    addresses: dict[str, Any] = {}
    with ExitStack() as stack:
        for number, (name, serving) in enumerate(servers.items()):
            say(f"starting {name}")
            try:
                # Short names, because the path of a socket may have about a hundred characters.
                addresses[name] = stack.enter_context(serving(folder / str(number)))
            except (Unavailable, NotReady) as error:
                leave_out(name, error, missing)
        yield addresses


def measured_in_rounds(
    count: int,
    chosen: Sequence[_T],
    measured: Callable[[_T], dict[str, float]],
    folder: Path,
    missing: list[str],
    *,
    settling_s: float,
) -> dict[str, list[dict[str, float]]]:
    """By contender, the figures of each round; each round another is the first.

    Whoever fails once is left out. Between two there is a pause: what one leaves to do afterwards
    is not paid by the next.
    """
    rounds: dict[str, list[dict[str, float]]] = {each.name: [] for each in chosen}
    rounds[MACHINE] = []
    for number in range(count):
        rounds[MACHINE].append(yardsticks(folder))
        first = number % len(chosen) if chosen else 0
        for each in (*chosen[first:], *chosen[:first]):
            if each.name not in rounds:
                continue
            say(f"round {number + 1} of {count}, {each.name}")
            try:
                rounds[each.name].append(measured(each))
            except Failed as error:
                del rounds[each.name]
                leave_out(each.name, error, missing)
            time.sleep(settling_s)
    return rounds


def measured_in_child(module: str, *flags: str, build: Path, within_s: float) -> dict[str, float]:
    """What a process of its own measured and printed as JSON, with one of our builds.

    Raises:
        Failed: It measured nothing.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-m", module, *flags],
            check=True,
            cwd=ROOT,
            env=environment(build),
            stdout=subprocess.PIPE,
            text=True,
            timeout=within_s,
        )
    except subprocess.TimeoutExpired as error:
        raise Failed(f"a round took longer than {error.timeout:.0f} s") from error
    except subprocess.CalledProcessError as error:
        raise Failed(f"its client ended with {error.returncode}") from error
    found: dict[str, float] = json.loads(done.stdout)
    return found
