"""The program: starts the brokers, measures every contender in rounds, prints and writes tables."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
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
from bench.brokers.results import Found
from bench.brokers.rounds import (
    end_servers_when_terminated,
    leave_out,
    measured_in_child,
    measured_in_rounds,
    started,
)
from bench.builds import PEERS as LIBRARIES
from bench.builds import working_folder

ROUNDS = 5
SETTLING_S = 0.2
"""Between two contenders: what one leaves to do afterwards is not paid by the next."""

MEASURING_S_MAX = 120
"""A contender that takes longer for one round has failed."""


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
        end_servers_when_terminated()
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
    servers = {each.name: each.serving for each in (*our_servers(), *SERVERS)}
    with started(servers, folder, missing) as addresses:
        chosen = [
            each
            for each in (*our_contenders(), *PEERS)
            if each.server in addresses and _is_there(each, missing)
        ]
        rounds = measured_in_rounds(
            count,
            chosen,
            lambda each: _in_child(each, addresses[each.server]),
            folder,
            missing,
            settling_s=SETTLING_S,
        )
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


def _is_there(chosen: Measured, missing: list[str]) -> bool:
    """Whether its packages are; they are looked for where `make bench` installs them."""
    if str(LIBRARIES) not in sys.path:
        sys.path.append(str(LIBRARIES))
    if not chosen.module or find_spec(chosen.module) is not None:
        return True
    leave_out(chosen.name, f"make bench installs {chosen.module}", missing)
    return False


def _in_child(chosen: Measured, address: Any) -> dict[str, float]:
    flags = ("--measure", chosen.name, "--address", json.dumps(address))
    return measured_in_child("bench.brokers", *flags, build=chosen.build, within_s=MEASURING_S_MAX)
