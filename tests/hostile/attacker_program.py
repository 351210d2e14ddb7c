"""One attack as a process: round after round, with a pause in between, until it is killed.

    python -m hostile.attacker_program NAME SEED SECONDS PAUSE < targets.json

It ends by itself after SECONDS, whatever happens.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from random import Random
from typing import Final
from uuid import UUID

from hostile.attacks import ATTACKS, EXPECTED, Target

NICENESS: Final = 15
"""What strangers compute, they compute on machines of their own."""


def targets() -> list[Target]:
    """Whom to attack, as somebody has written down."""
    return [
        Target(
            address=each["address"],
            guid=UUID(each["guid"]),
            friend=each["friend"],
            friend_guid=UUID(each["friend_guid"]),
            socket=Path(each["socket"]),
            started=each["started"],
        )
        for each in json.load(sys.stdin)
    ]


def main() -> None:
    """Attacks all targets in turn."""
    name, seed, seconds, pause = sys.argv[1:]
    os.nice(NICENESS)
    chance = Random(f"{seed} {name}")  # noqa: S311 - repeatable on purpose
    attack, everybody = ATTACKS[name], targets()
    end = time.monotonic() + float(seconds)
    rounds = cut_off = 0
    reason = "nothing"
    while time.monotonic() < end:
        try:
            attack(everybody[rounds % len(everybody)], chance)
        except EXPECTED as wrong:
            cut_off += 1
            reason = f"{type(wrong).__name__}: {wrong}".splitlines()[0]
        rounds += 1
        print(f"{rounds} rounds, {cut_off} of them cut short, last by {reason}", flush=True)
        time.sleep(float(pause))


if __name__ == "__main__":
    main()
