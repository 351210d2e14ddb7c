"""Once and in order, through cuts and kills: a small one of what `make soak` does for long.

`MERQ_SEED` lets other things happen at other times.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from random import Random
from typing import Final

import pytest

from acceptance.exchange_soak import Plan, Soak
from kit.stations import Station, outgoing_to, stations, wait_until_sent, wire_between

BATCHES: Final = 100
BATCH: Final = 50
PAUSE_S: Final = 0.02
SEED: Final = int(os.environ.get("MERQ_SEED", "20265"))


@pytest.mark.spec("MS-MQQB 3.1.1.5", "MS-MQQB 3.1.5.6", "MS-MQQB 3.1.5.8.6")
def test_transactional_messages_arrive_once_in_order_through_cuts_and_kills(
    tmp_path: Path,
) -> None:
    plan = Plan(count=6000, batch=100, kills=3, cut_s=1.0, seconds=60, seed=SEED)
    outcome = Soak(tmp_path, plan).run()
    print(outcome)
    assert outcome.received == plan.count
    assert (outcome.sender_kills, outcome.receiver_kills) == (plan.kills, plan.kills)
    assert outcome.cuts >= 3


@pytest.mark.spec("MS-MQQB 3.1.1.5", "MS-MQQB 3.1.5.6", "MS-MQQB 3.1.5.7", "MS-MQMQ 2.2.20.4")
@pytest.mark.parametrize("copies", [False, True])
def test_so_they_do_at_a_peer_that_does_what_the_documents_say_and_nothing_else(
    tmp_path: Path, copies: bool
) -> None:
    plan = Plan(
        count=2000, batch=100, kills=2, cut_s=1.0, seconds=60, seed=SEED, strict=True, copies=copies
    )
    outcome = Soak(tmp_path, plan).run()
    print(outcome)
    assert outcome.received == plan.count
    assert (outcome.sender_kills, outcome.receiver_kills) == (plan.kills, plan.kills)


def send_steadily(laptop: Station, name: str) -> None:
    """Recoverable messages with numbers, for a while."""
    with laptop.connect() as manager:
        manager.send(name, 0, recoverable=True)
        way = outgoing_to(manager, "orders")
        for number in range(BATCHES):
            first = 1 + number * BATCH
            way.send_many(range(first, first + BATCH), recoverable=True)
            time.sleep(PAUSE_S)


@pytest.mark.spec("MS-MQQB 3.1.5.8.1", "MS-MQQB 3.1.5.5")
def test_recoverable_messages_arrive_once_through_cuts_and_kills_of_the_receiver(
    tmp_path: Path,
) -> None:
    """[MS-MQQB] 3.1.1.3: duplicates are known by their identifiers, also after a restart."""
    chance = Random(SEED)  # noqa: S311 - repeatable on purpose
    with stations(tmp_path, "laptop", "office") as (laptop, office):
        with office.connect() as manager:
            manager.create_queue(r".\private$\orders")
        with wire_between(laptop, office) as (wire, seen, _):
            sending = threading.Thread(
                target=send_steadily, args=(laptop, office.direct("orders", seen))
            )
            sending.start()
            try:
                for kills in range(3):
                    time.sleep(chance.uniform(0.1, 0.5))
                    wire.cut()
                    time.sleep(chance.uniform(0.1, 0.5))
                    assert kills == len(office.events("running")) - 1
                    office.kill()
                    office.start()
            finally:
                sending.join()
            with laptop.connect() as manager:
                wait_until_sent(manager)
        with office.connect() as manager:
            found = [each.body for each in manager.queue(r".\private$\orders").peek_all()]
        assert found == list(range(1 + BATCHES * BATCH))
