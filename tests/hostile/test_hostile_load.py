"""A short form of `make hostile`: honest messages arrive once while strangers attack.

Some seconds each, for real services and a process for each attack. How fast local sends are is
judged by `make hostile` alone: here other tests run beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hostile.attacks import ATTACKS
from hostile.hostile_load import HostileLoad, Plan

SECONDS: Final = 5.0
SETTLE_S: Final = 10.0
ANY_RATIO: Final = 1e6

# Whoever says that it is somebody else, or asks for acknowledgments to others.
CLAIMING: Final = ("invented-senders", "poisoned-sequences", "own-name", "reflection", "impostors")
CROWDING: Final = tuple(name for name in ATTACKS if name not in CLAIMING)


def outcome_of(folder: Path, attacks: tuple[str, ...], kills: int) -> list[str]:
    plan = Plan(seconds=SECONDS, kills=kills, attacks=attacks, settle_s=SETTLE_S, ratio=ANY_RATIO)
    found = HostileLoad(folder, plan).run()
    print(found)
    return found.reasons


def test_a_crowd_of_strangers_neither_loses_nor_doubles_an_honest_message(tmp_path: Path) -> None:
    assert outcome_of(tmp_path, CROWDING, kills=2) == []


def test_strangers_who_claim_to_be_others_neither_lose_nor_keep_anything(tmp_path: Path) -> None:
    assert outcome_of(tmp_path, CLAIMING, kills=0) == []
