"""Sends messages in transactions between two queue managers, through cuts and kills.

    python tools/soak.py --count 1000000 --seconds 3600
    python tools/soak.py --count 50000 --kills 3 --seed 7
    python tools/soak.py --count 50000 --kills 3 --receiver strict

Two real services on loopback addresses, a program that sends and one that receives. Connections are
cut at random and each service is killed; every message must be received once, in order. It ends
with the count, or with the time: then what was sent until then must arrive. Ctrl-C ends all of it.

The receiving side may be a strict peer, which does what the documents say and nothing else.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from acceptance.exchange_soak import Plan, Soak


def main() -> int:
    """Runs a soak; 1 if something was lost, doubled or overtaken, 130 if it was interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1_000_000, help="messages")
    parser.add_argument("--batch", type=int, default=500, help="messages of a transaction")
    parser.add_argument("--seconds", type=float, default=3600.0, help="sends no longer than this")
    parser.add_argument("--kills", type=int, default=10, help="kills of each service")
    parser.add_argument("--cut-s", type=float, default=2.0, help="the longest between two cuts")
    parser.add_argument("--copies", action="store_true", help="each waits for its FinalAck")
    parser.add_argument("--seed", type=int, default=5, help="when what happens")
    parser.add_argument(
        "--receiver", choices=("merq", "strict"), default="merq", help="who gets it"
    )
    asked = parser.parse_args()
    if asked.count < 1:
        parser.error(f"--count is {asked.count}, at least one message is to be sent")
    plan = Plan(
        count=asked.count,
        batch=asked.batch,
        kills=asked.kills,
        cut_s=asked.cut_s,
        copies=asked.copies,
        seconds=asked.seconds,
        seed=asked.seed,
        strict=asked.receiver == "strict",
    )
    folder = Path(tempfile.mkdtemp(prefix="merq-soak-"))
    try:
        outcome = Soak(folder, plan, lambda text: print(text, flush=True)).run()
    except AssertionError as wrong:
        print(f"FAILED: {wrong}\nlogs and data are left in {folder}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"interrupted; logs and data are left in {folder}", file=sys.stderr)
        return 130
    print(outcome)
    if outcome.sent < plan.count:
        print(f"the time was over before {plan.count:,} messages and all kills")
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
