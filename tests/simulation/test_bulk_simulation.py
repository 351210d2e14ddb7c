"""Consumers in groups and writers of batches, on a disk that tears, forgets, fills up and fails.

Thousands of seeds: `python tools/simulate.py --world bulk --seeds 0..5000`; short lives that are
interrupted at every operation: `python tools/simulate.py --world bulk-everywhere --seeds 0..50`.
"""

from __future__ import annotations

import pytest

from kit.shares import share_of
from simulation.bulk_world import run_everywhere, run_seed

SEEDS = share_of(30)
STRIPE = 10


@pytest.mark.parametrize("first", range(0, SEEDS, STRIPE))
def test_a_range_stays_as_it_was_and_a_batch_is_published_once(first: int) -> None:
    for seed in range(first, first + STRIPE):
        run_seed(seed)


def test_an_interruption_at_any_operation_doubles_and_loses_nothing() -> None:
    run_everywhere(0, steps=20)
