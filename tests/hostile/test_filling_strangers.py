"""A stranger sends as much as it can: applications and other peers go on, and people are told."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from acceptance.service_process import wait_until
from hostile.strangers import Stranger
from kit.stations import Station, end_cleanly

ADDRESS: Final = "127.35.1.1"
FILLER: Final = "127.35.2.1"
OTHER: Final = "127.35.2.2"
QUOTA_KB: Final = 4096
BODY: Final = bytes(60_000)
MESSAGES_MAX: Final = 200
"""So many would be three times the quota."""


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Station]:
    settings = {"engine.machine_quota_kb": QUOTA_KB}
    with Station(tmp_path / "office", settings, ADDRESS) as station:
        with station.connect() as manager:
            manager.create_queue(r".\private$\q")
        yield station
        end_cleanly([station])


def fill(source: str) -> int:
    """Sends until the session is closed; gives how many messages were said."""
    name = rf"TCP:{ADDRESS}\private$\q"
    with Stranger(ADDRESS, source) as stranger:
        stranger.open()
        for said in range(MESSAGES_MAX):
            try:
                stranger.say(stranger.message(name, body=BODY, recoverable=True))
            except ConnectionError:
                return said
    return MESSAGES_MAX


@pytest.mark.spec("MS-MQQB 3.1.5.8.8")
def test_a_stranger_that_fills_does_not_keep_applications_from_sending(office: Station) -> None:
    fill(FILLER)
    wait_until(lambda: bool(office.told("a peer is throttled", peer=FILLER)), "it is throttled")
    with office.connect() as manager:
        queue = manager.queue(r".\private$\q")
        for _ in range(10):
            queue.send(BODY, recoverable=True)
        status = manager.status()
        assert status.throttled_peers == (FILLER,)
        assert status.quota_bytes == QUOTA_KB * 1024
        assert 0 < status.network_bytes <= status.network_quota_bytes == QUOTA_KB * 512
        with Stranger(ADDRESS, OTHER) as other:
            other.open()
            other.say(other.message(rf"TCP:{ADDRESS}\private$\q", body=b"honest", recoverable=True))
            other.hear_acknowledged(1)
        queue.purge()
        wait_until(lambda: not manager.status().throttled_peers, "there is room again")
    assert office.told("a peer is throttled no longer", peer=FILLER)


def test_a_throttled_stranger_that_comes_again_only_fills_its_own_session(office: Station) -> None:
    fill(FILLER)
    wait_until(lambda: bool(office.told("a peer is throttled", peer=FILLER)), "it is throttled")
    with office.connect() as manager, Stranger(ADDRESS, FILLER, patience_s=0.5) as again:
        before = manager.status().messages
        again.open()  # it may have acknowledgments to bring
        for _ in range(20):
            again.say(again.message(rf"TCP:{ADDRESS}\private$\q", recoverable=True, body=BODY))
        used = office.cpu_s
        time.sleep(0.5)
        assert office.cpu_s - used < 0.25, "what it sent waits"
        assert manager.status().messages <= before
