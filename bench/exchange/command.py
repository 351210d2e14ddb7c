"""The program: starts the contenders, measures each in rounds, prints and writes tables."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from bench.brokers import packages
from bench.brokers.rabbitmq import CLASSIC, QUORUM
from bench.brokers.running import NotReady
from bench.brokers.yardsticks import yardsticks
from bench.builds import ROOT, environment, found_builds, working_folder
from bench.exchange import ours, shovel, sites
from bench.exchange.figures import AMOUNT, QUICK, Amount, Figures
from bench.exchange.page import printed, write_page
from bench.exchange.results import MACHINE, Found

ROUNDS = 5
QUICK_ROUNDS = 1
SETTLING_S = 0.5
"""Between two contenders: what one leaves to do afterwards is not paid by the next."""

MEASURING_S_MAX = 300
"""A contender that takes longer for one round has failed."""

RABBITMQ = "RabbitMQ"
RABBITMQ_PACKAGE = "rabbitmq-server"


class Failed(Exception):
    """A contender could not be measured; what it said has been printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One of those that are measured.

    Attributes:
        name: What it is called in tables.
        server: What has to run; several may share it.
        measured: Gives the figures of one round, from the server's address.
        build: Which of our builds it belongs to.
        ours: Whether it is ours.
    """

    name: str
    server: str
    measured: Callable[[Any, Amount], Figures]
    build: Path = ROOT / "src"
    ours: bool = False


def contenders() -> list[Contender]:
    """All of them."""
    own = [
        Contender(
            name=f"merq, {name}",
            server=f"merq, {name}",
            measured=ours.measured,
            build=build,
            ours=True,
        )
        for name, build in found_builds().items()
    ]
    return own + [
        Contender(
            name=f"RabbitMQ shovel, {kind} queues",
            server=RABBITMQ,
            measured=partial(shovel.measured, kind=kind),
        )
        for kind in (CLASSIC, QUORUM)
    ]


def main() -> int:
    """Measures all, or one if it was started for that."""
    parser = argparse.ArgumentParser(description="Measures messages between queue managers.")
    parser.add_argument("--rounds", type=int, help="how often each is measured")
    parser.add_argument("--quick", action="store_true", help="one round with fewer messages")
    parser.add_argument("--folder", type=Path, help="where to work; .build/bench by default")
    parser.add_argument("--json", action="store_true", help="print every round as JSON instead")
    parser.add_argument("--read", type=Path, help="take what --json printed; measure nothing")
    parser.add_argument("--write", action="store_true", help="write the page of the guide as well")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    options = parser.parse_args()
    amount = QUICK if options.quick else AMOUNT
    if options.measure:
        (chosen,) = (each for each in contenders() if each.name == options.measure)
        print(json.dumps(chosen.measured(json.loads(options.address), amount)))
        return 0
    if options.read:
        found = Found(**json.loads(options.read.read_text(encoding="utf-8")))
    else:
        # Ended like this, services are ended as well; otherwise they would stay.
        signal.signal(signal.SIGTERM, _leave)
        rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
        with working_folder(options.folder) as folder:
            found = run(rounds, amount, folder)
    print(json.dumps(asdict(found)) if options.json else printed(found))
    if options.write:
        write_page(found)
    return 0


def run(count: int, amount: Amount, folder: Path) -> Found:
    """Starts everything, then measures every contender once a round, each round another first."""
    load = os.getloadavg()[0]
    missing: list[str] = []
    with serving(folder, missing) as addresses:
        chosen = [each for each in contenders() if each.server in addresses]
        rounds = _rounds(count, amount, chosen, addresses, folder, missing)
    version = packages.versions().get(RABBITMQ_PACKAGE)
    return Found(
        rounds=rounds,
        ours=[each.name for each in chosen if each.ours and each.name in rounds],
        versions={RABBITMQ_PACKAGE: version} if RABBITMQ in addresses and version else {},
        missing=missing,
        load=load,
        messages=amount.messages,
    )


@contextmanager
def serving(folder: Path, missing: list[str]) -> Iterator[dict[str, Any]]:
    """Everything that can be had, by name with its address; the rest is said to be missing."""
    servers: dict[str, Callable[[Path], AbstractContextManager[Any]]] = {
        f"merq, {name}": partial(sites.serving, build=build)
        for name, build in found_builds().items()
    }
    servers[RABBITMQ] = shovel.serving
    addresses: dict[str, Any] = {}
    with ExitStack() as stack:
        for number, (name, start) in enumerate(servers.items()):
            _say(f"starting {name}")
            try:
                # Short names, because the path of a socket may have about a hundred characters.
                addresses[name] = stack.enter_context(start(folder / str(number)))
            except (packages.Unavailable, NotReady) as error:
                missing.append(f"{name}: {error}")
                _say(f"left out: {missing[-1]}")
        yield addresses


def _rounds(
    count: int,
    amount: Amount,
    chosen: Sequence[Contender],
    addresses: Mapping[str, Any],
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
                rounds[each.name].append(_in_child(each, addresses[each.server], amount))
            except Failed as error:
                del rounds[each.name]
                missing.append(f"{each.name}: {error}")
                _say(f"left out: {missing[-1]}")
            time.sleep(SETTLING_S)
    return rounds


def _in_child(chosen: Contender, address: object, amount: Amount) -> dict[str, float]:
    """What a process of its own measured.

    Raises:
        Failed: It measured nothing.
    """
    command = [sys.executable, "-m", "bench.exchange", "--measure", chosen.name]
    command += ["--quick"] if amount is QUICK else []
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
