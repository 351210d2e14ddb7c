"""Attacks two real services while honest applications go on, and says what held.

    python tools/hostile_load.py --seconds 600 --kills 100
    python tools/hostile_load.py --seconds 30 --attacks flood,garbage --seed 7

Everything is on loopback addresses and bounded in time. At the end every honest message must have
been received once, a local send must not have become much slower, and memory, tables and
descriptors must be back where they were; otherwise the exit status is 1, with reasons. Ctrl-C ends
all of it.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from hostile.attacks import ATTACKS
from hostile.hostile_load import HostileLoad, Plan


def main() -> int:
    """Runs it; 1 if something did not hold, 130 if it was interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="until the strangers go")
    parser.add_argument("--kills", type=int, default=0, help="kills of the services")
    parser.add_argument("--attacks", default="", help=f"some of {', '.join(ATTACKS)}")
    parser.add_argument("--without", default="", help="all attacks but these")
    parser.add_argument("--ratio", type=float, default=5.0, help="p99 of a local send, to quiet")
    parser.add_argument("--pause-s", type=float, default=0.05, help="between rounds of an attack")
    parser.add_argument("--settle-s", type=float, default=120.0, help="for the rest to arrive")
    parser.add_argument("--seed", type=int, default=5, help="what is attacked how")
    asked = parser.parse_args()
    without = set(filter(None, asked.without.split(",")))
    names = tuple(filter(None, asked.attacks.split(","))) or tuple(ATTACKS)
    if unknown := sorted((set(names) | without) - ATTACKS.keys()):
        parser.error(f"there is no attack {', '.join(unknown)}; there are {', '.join(ATTACKS)}")
    plan = Plan(
        seconds=asked.seconds,
        kills=asked.kills,
        attacks=tuple(name for name in names if name not in without),
        pause_s=asked.pause_s,
        settle_s=asked.settle_s,
        ratio=asked.ratio,
        seed=asked.seed,
    )
    folder = Path(tempfile.mkdtemp(prefix="merq-hostile-"))
    try:
        outcome = HostileLoad(folder, plan, lambda text: print(text, flush=True)).run()
    except KeyboardInterrupt:
        print(f"interrupted; logs and data are left in {folder}", file=sys.stderr)
        return 130
    print(outcome)
    if outcome.reasons:
        print(f"logs and data are left in {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
