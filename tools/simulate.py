"""Runs worlds from many seeds, and says which failed and how to see it again.

    python tools/simulate.py --seeds 0..5000
    python tools/simulate.py --seeds 4711..4711 --world store
    python tools/simulate.py --world manager --seeds 0..5000
    python tools/simulate.py --world manager-full --seeds 0..30
    python tools/simulate.py --world application --seeds 0..5000
    python tools/simulate.py --world exchange --seeds 0..5000
    python tools/simulate.py --world exchange-strict --seeds 0..5000
    python tools/simulate.py --world bulk --seeds 0..5000

The worlds are those of tests/simulation, which runs some of the same seeds.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from simulation import (
    application_world,
    bulk_world,
    exchange_world,
    manager_world,
    store_world,
    strict_peer_world,
)

WORLDS: dict[str, tuple[Callable[[int], None], ...]] = {
    "store": (store_world.run_seed, store_world.run_damage),
    "store-everywhere": (store_world.run_everywhere,),
    "application": (application_world.run_seed,),
    "application-everywhere": (application_world.run_everywhere,),
    "exchange": (exchange_world.run_seed, strict_peer_world.run_every_third),
    "exchange-strict": (strict_peer_world.run_seed,),
    "exchange-everywhere": (exchange_world.run_everywhere,),
    "bulk": (bulk_world.run_seed,),
    "bulk-everywhere": (bulk_world.run_everywhere,),
    "manager": (manager_world.run_seed,),
    "manager-everywhere": (manager_world.run_everywhere,),
    "manager-full": (manager_world.run_full_everywhere,),
}
FAILURES_MAX = 10
PROGRESS_SECONDS = 2.0


def main() -> int:
    """Runs the seeds asked for; 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="0..200", type=_seeds, help="from..to, both included")
    parser.add_argument("--world", default="store", choices=sorted(WORLDS))
    asked = parser.parse_args()
    failed: list[int] = []
    started = said = time.monotonic()
    count = 0
    for seed in asked.seeds:
        if not _passes(seed, asked.world):
            failed.append(seed)
            if len(failed) >= FAILURES_MAX:
                print(f"stopped after {FAILURES_MAX} failures")
                break
        count += 1
        if time.monotonic() - said > PROGRESS_SECONDS:
            said = time.monotonic()
            print(f"seed {seed}: {count / (said - started):.0f} a second, {len(failed)} failed")
    print(f"{count} seeds in {time.monotonic() - started:.1f} s, failed: {failed or 'none'}")
    return 1 if failed else 0


def _seeds(text: str) -> range:
    first, _, last = text.partition("..")
    try:
        seeds = range(int(first), int(last or first) + 1)
    except ValueError:
        seeds = range(0)
    if not seeds:
        raise argparse.ArgumentTypeError(f"{text!r}, expected a form like 0..5000")
    return seeds


def _passes(seed: int, world: str) -> bool:
    for run in WORLDS[world]:
        try:
            run(seed)
        except Exception:  # noqa: BLE001 - whatever a world raises is a finding
            traceback.print_exc()
            print(
                f"FAILED: {run.__name__}({seed}); again with: "
                f"python tools/simulate.py --world {world} --seeds {seed}..{seed}"
            )
            return False
    return True


if __name__ == "__main__":
    sys.exit(main())
