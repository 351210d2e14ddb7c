"""The program: starts the contenders, measures each in rounds, prints and writes tables."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.brokers import packages
from bench.brokers.rabbitmq import CLASSIC, QUORUM
from bench.brokers.rounds import (
    end_servers_when_terminated,
    measured_in_child,
    measured_in_rounds,
    started,
)
from bench.builds import ROOT, found_builds, working_folder
from bench.exchange import ours, shovel, sites
from bench.exchange.figures import AMOUNT, QUICK, Amount, Figures
from bench.exchange.page import printed, write_page
from bench.exchange.results import Found

ROUNDS = 5
QUICK_ROUNDS = 1
SETTLING_S = 0.5
"""Between two contenders: what one leaves to do afterwards is not paid by the next."""

MEASURING_S_MAX = 300
"""A contender that takes longer for one round has failed."""

RABBITMQ = "RabbitMQ"
RABBITMQ_PACKAGE = "rabbitmq-server"


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
        end_servers_when_terminated()
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
    with started(servers(), folder, missing) as addresses:
        chosen = [each for each in contenders() if each.server in addresses]
        rounds = measured_in_rounds(
            count,
            chosen,
            lambda each: _in_child(each, addresses[each.server], amount),
            folder,
            missing,
            settling_s=SETTLING_S,
        )
    version = packages.versions().get(RABBITMQ_PACKAGE)
    return Found(
        rounds=rounds,
        ours=[each.name for each in chosen if each.ours and each.name in rounds],
        versions={RABBITMQ_PACKAGE: version} if RABBITMQ in addresses and version else {},
        missing=missing,
        load=load,
        messages=amount.messages,
    )


def servers() -> dict[str, Callable[[Path], AbstractContextManager[Any]]]:
    """What has to run for them, by name."""
    own = {
        f"merq, {name}": partial(sites.serving, build=build)
        for name, build in found_builds().items()
    }
    return {**own, RABBITMQ: shovel.serving}


def _in_child(chosen: Contender, address: object, amount: Amount) -> dict[str, float]:
    flags = ["--measure", chosen.name, "--address", json.dumps(address)]
    flags += ["--quick"] if amount is QUICK else []
    return measured_in_child("bench.exchange", *flags, build=chosen.build, within_s=MEASURING_S_MAX)
