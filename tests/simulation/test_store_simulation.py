"""The store in a world that tears, forgets, fills up and fails.

Thousands of seeds: `python tools/simulate.py --seeds 0..5000`; the other script, interrupted at
every operation: `python tools/simulate.py --world store-everywhere --seeds 0..100`.
"""

from __future__ import annotations

import pytest

from kit.shares import share_of
from simulation.store_world import run_damage, run_everywhere, run_seed

SEEDS = share_of(200)
STRIPE = 20
# Each fails again if what it found is undone.
REGRESSIONS = [
    0,  # a stillborn segment came back after its removal, and a torn log passed for corrupt
    6,  # of two dropped segments the older came back alone: a hole; a full disk failed the log
    20,  # a reservation or creation that failed was forgotten, and the log went on
    22,  # files stayed open when opening failed
    35,  # what a killed process had not synced was called durable
    37,  # a segment for which there was no room came back after its removal
    90,  # a message that claims to be a frame made a torn log look corrupt: store known, no secret
    147,  # the name of a killed process's identity was not durable: a log without identity
    158,  # what a failed sync had forgotten was taken for durable
    180,  # a message that claims to be a frame made a torn log look corrupt: plain checksums
    755,  # a frame refused for want of room came back after power loss
]
DAMAGE_REGRESSIONS = [
    1,  # a bit that rotted before the checkpoint's place was handed out as a message
    9,  # the header of a segment that the checkpoint contains was not looked at
    12,  # the kind of a checkpoint's section was in no checksum
    86,  # a message that claims to be a frame, again
]


@pytest.mark.parametrize("first", range(0, SEEDS, STRIPE))
def test_nothing_durable_is_lost_and_nothing_else_appears(first: int) -> None:
    for seed in range(first, first + STRIPE):
        run_seed(seed)


@pytest.mark.parametrize("first", range(0, SEEDS, STRIPE))
def test_a_flipped_bit_is_noticed_or_harmless(first: int) -> None:
    for seed in range(first, first + STRIPE):
        run_damage(seed)


@pytest.mark.parametrize("seed", range(8))
def test_an_interruption_at_any_operation_loses_nothing(seed: int) -> None:
    run_everywhere(seed)


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_what_once_failed_holds(seed: int) -> None:
    run_seed(seed)


@pytest.mark.parametrize("seed", DAMAGE_REGRESSIONS)
def test_damage_that_once_passed_is_noticed(seed: int) -> None:
    run_damage(seed)
