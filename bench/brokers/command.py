"""The program: starts the brokers, measures every contender in rounds, prints and writes tables."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

from bench.brokers import packages
from bench.brokers.catalogue import (
    PEERS,
    SERVERS,
    Measured,
    before,
    our_contenders,
    our_servers,
)
from bench.brokers.contender import figures
from bench.brokers.page import printed, write_page
from bench.brokers.results import MACHINE, Found
from bench.brokers.running import NotReady
from bench.brokers.yardsticks import yardsticks
from bench.builds import PEERS as LIBRARIES
from bench.builds import ROOT, environment, working_folder

ROUNDS = 5
SETTLING_S = 0.2
"""Between two contenders: what one leaves to do afterwards is not paid by the next."""

MEASURING_S_MAX = 120
"""A contender that takes longer for one round has failed."""


class Failed(Exception):
    """A contender could not be measured; what it said has been printed."""


def main() -> int:
    """Measures all, or one if it was started for that."""
    parser = argparse.ArgumentParser(description="Measures merq serve beside other brokers.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each is measured")
    parser.add_argument("--folder", type=Path, help="where to work; .build/bench by default")
    parser.add_argument("--json", action="store_true", help="print every round as JSON instead")
    parser.add_argument("--read", type=Path, help="take what --json printed; measure nothing")
    parser.add_argument("--write", action="store_true", help="write docs/guide/brokers.* as well")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, json.loads(options.address))))
        return 0
    if options.read:
        found = Found(**json.loads(options.read.read_text(encoding="utf-8")))
    else:
        # Ended like this, brokers are ended as well; otherwise they would stay.
        signal.signal(signal.SIGTERM, _leave)
        with working_folder(options.folder) as folder:
            found = run(options.rounds, folder)
    print(json.dumps(asdict(found)) if options.json else printed(found))
    if options.write:
        write_page(found)
    return 0


def measure(name: str, address: Any) -> dict[str, float]:
    """One contender once, in this process."""
    (chosen,) = (each for each in (*our_contenders(), *PEERS) if each.name == name)
    contender = chosen.opened(address)
    try:
        return figures(contender)
    finally:
        contender.close()


def run(count: int, folder: Path) -> Found:
    """Starts every broker, then measures every contender once a round, each round another first."""
    load = os.getloadavg()[0]
    missing: list[str] = []
    with serving(folder, missing) as addresses:
        chosen = [
            each
            for each in (*our_contenders(), *PEERS)
            if each.server in addresses and _is_there(each, missing)
        ]
        rounds = _rounds(count, chosen, addresses, folder, missing)
    measured = [each for each in chosen if each.name in rounds]
    versions = packages.versions()
    return Found(
        rounds=rounds,
        ours=[each.name for each in measured if each.ours],
        before={each.name: before(each, versions) for each in measured},
        libraries=[each.name for each in measured if each.by_library],
        versions=versions,
        missing=missing,
        load=load,
    )


@contextmanager
def serving(folder: Path, missing: list[str]) -> Iterator[dict[str, Any]]:
    """Every server that can be had, by name with its address; the others are said to be missing."""
    addresses: dict[str, Any] = {}
    with ExitStack() as stack:
        for number, server in enumerate((*our_servers(), *SERVERS)):
            _say(f"starting {server.name}")
            try:
                # Short names, because the path of a socket may have about a hundred characters.
                place = folder / str(number)
                addresses[server.name] = stack.enter_context(server.serving(place))
            except (packages.Unavailable, NotReady) as error:
                missing.append(f"{server.name}: {error}")
                _say(f"left out: {missing[-1]}")
        yield addresses


def _is_there(chosen: Measured, missing: list[str]) -> bool:
    """Whether its packages are; they are looked for where `make bench` installs them."""
    if str(LIBRARIES) not in sys.path:
        sys.path.append(str(LIBRARIES))
    if not chosen.module or find_spec(chosen.module) is not None:
        return True
    missing.append(f"{chosen.name}: make bench installs {chosen.module}")
    _say(f"left out: {missing[-1]}")
    return False


def _rounds(
    count: int,
    chosen: Sequence[Measured],
    addresses: dict[str, Any],
    folder: Path,
    missing: list[str],
) -> dict[str, list[dict[str, float]]]:
    rounds: dict[str, list[dict[str, float]]] = {each.name: [] for each in chosen}
    rounds[MACHINE] = []
    for number in range(count):
        rounds[MACHINE].append(yardsticks(folder))
        first = number % len(chosen) if chosen else 0
        for each in (*chosen[first:], *chosen[:first]):
            if each.name not in rounds:
                continue
            _say(f"round {number + 1} of {count}, {each.name}")
            try:
                rounds[each.name].append(_in_child(each, addresses[each.server]))
            except Failed as error:
                del rounds[each.name]
                missing.append(f"{each.name}: {error}")
                _say(f"left out: {missing[-1]}")
            time.sleep(SETTLING_S)
    return rounds


def _in_child(chosen: Measured, address: Any) -> dict[str, float]:
    """What a client in a process of its own measured.

    Raises:
        Failed: It measured nothing.
    """
    command = [sys.executable, "-m", "bench.brokers", "--measure", chosen.name]
    try:
        done = subprocess.run(
            [*command, "--address", json.dumps(address)],
            check=True,
            cwd=ROOT,
            env=environment(chosen.build),
            stdout=subprocess.PIPE,
            text=True,
            timeout=MEASURING_S_MAX,
        )
    except subprocess.TimeoutExpired as error:
        raise Failed(f"a round took longer than {error.timeout:.0f} s") from error
    except subprocess.CalledProcessError as error:
        raise Failed(f"its client ended with {error.returncode}") from error
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def _leave(number: int, frame: FrameType | None) -> None:
    del frame
    sys.exit(128 + number)
