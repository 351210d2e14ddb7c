"""Kills everything of two Spark streams on a real cluster, again and again.

    python tools/chaos.py --kills 20
    python tools/chaos.py --kills 40 --seed 7 --seconds 3600

A queue manager, a feeder, a standalone cluster of two workers and a driver with two streams, from a
queue into the archive and from a queue to another. Drivers, executors, workers, Python processes of
executors and the queue manager are killed at random; every message must be in the archive once, and
in the other queue once and in order. Ctrl-C ends all of it.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from cluster.chaos import Chaos, Plan
from kit.clusters import cluster


def main() -> int:
    """Runs a chaos; 1 if something was lost, doubled or left, 130 if it was interrupted."""
    usual = Plan()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=usual.kills, help="in all")
    parser.add_argument("--messages", type=int, default=usual.messages, help="sends no more")
    parser.add_argument("--rate", type=int, default=usual.rate, help="messages a second")
    parser.add_argument("--seconds", type=float, default=usual.seconds, help="kills no longer")
    parser.add_argument("--pause-s", type=float, default=usual.pause_s, help="between kills")
    parser.add_argument("--seed", type=int, default=usual.seed, help="when what happens")
    asked = parser.parse_args()
    plan = Plan(
        kills=asked.kills,
        messages=asked.messages,
        rate=asked.rate,
        seconds=asked.seconds,
        pause_s=asked.pause_s,
        seed=asked.seed,
    )
    for each in (signal.SIGINT, signal.SIGTERM):
        # Also if it runs in the background, where a shell has it ignore Ctrl-C.
        signal.signal(each, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="merq-chaos-"))
    try:
        with cluster(folder / "cluster") as found:
            outcome = Chaos(folder, plan, found, lambda text: print(text, flush=True)).run()
    except AssertionError as wrong:
        print(f"FAILED: {wrong}\nlogs and data are left in {folder}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"interrupted; logs and data are left in {folder}", file=sys.stderr)
        return 130
    print(outcome)
    if outcome.kills.total() < plan.kills:
        print(f"the time was over before {plan.kills} kills")
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
