"""The same against a service: whom it connects to, and who still gets in."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from hostile import stranger_packets as packets
from hostile.strangers import PORT, Stranger
from kit.stations import Station, end_cleanly

STRANGER, VICTIM = "127.33.9.9", "127.33.7.7"


@contextmanager
def victim() -> Iterator[socket.socket]:
    """Somebody at the port of queue managers who has nothing to do with all this."""
    with socket.create_server((VICTIM, PORT)) as listening:
        listening.settimeout(0.5)
        yield listening


def connections(listening: socket.socket, seconds: float) -> int:
    found = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            listening.accept()[0].close()
        except TimeoutError:
            continue
        found += 1
    return found


def flood(station: Station, count: int) -> None:
    """Messages that want to be told at the victim, and at many places where nobody is."""
    with Stranger(station.address, STRANGER) as stranger:
        stranger.open()
        for number in range(count):
            where = VICTIM if number % 10 == 0 else f"127.33.20.{number}"
            what = stranger.message(
                rf"TCP:{station.address}\private$\orders",
                admin=rf"TCP:{where}\private$\told",
                asked=packets.PA,
                recoverable=True,
            )
            stranger.say(what)
        stranger.hear_acknowledged(count)


def test_a_service_calls_nobody_whom_a_stranger_names_and_lets_others_in(tmp_path: Path) -> None:
    """Takes longer than others: it is waited whether connections come."""
    with ExitStack() as stack:
        listening = stack.enter_context(victim())
        office = stack.enter_context(
            Station(tmp_path / "office", {"exchange.links_max": 8}, address="127.33.1.1")
        )
        branch = stack.enter_context(Station(tmp_path / "branch", address="127.33.1.2"))
        with office.connect() as manager:
            manager.create_queue(r".\private$\orders")
        flood(office, 60)
        assert connections(listening, 1.0) == 0
        refused = office.events("acknowledgments are not sent")
        assert sum(each["count"] for each in refused) == 60
        with branch.connect() as manager:
            manager.send(rf"DIRECT=TCP:{office.address}\private$\orders", b"honest")
        with office.connect() as manager:
            queue = manager.queue(r".\private$\orders")
            bodies = [queue.receive(timeout=10.0).body_bytes for _ in range(61)]
        assert b"honest" in bodies
        end_cleanly([office, branch])


def test_a_service_hands_nothing_to_who_sits_at_its_peers_address(tmp_path: Path) -> None:
    """Takes longer than others: it is waited whether anything comes."""
    with ExitStack() as stack:
        office = stack.enter_context(Station(tmp_path / "office", address="127.33.2.1"))
        branch = stack.enter_context(Station(tmp_path / "branch", address="127.33.2.2"))
        with branch.connect() as manager:
            manager.create_queue(r".\private$\orders")
        branch.stop()
        with Stranger(office.address, branch.address, patience_s=1.0) as thief:
            thief.open()
            with office.connect() as manager:
                manager.send(
                    rf"DIRECT=TCP:{branch.address}\private$\orders", b"secret", recoverable=True
                )
            with pytest.raises(TimeoutError):
                next(thief.hear_messages())
        branch.start()
        with branch.connect() as manager:
            message = manager.queue(r".\private$\orders").receive(timeout=10.0)
        assert message.body_bytes == b"secret"
        end_cleanly([office, branch])
