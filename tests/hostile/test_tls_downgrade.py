"""Whoever can cut, refuse or swallow connections does not get messages sent in clear."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest

from acceptance.service_process import wait_until
from kit.certificates import Authority
from kit.stations import Station, end_cleanly, outgoing_to, received, wait_until_sent
from kit.tls_stations import (
    BOOKINGS,
    TLS_PORT,
    black_hole,
    silent_listener,
    with_tls,
    without_tls,
)


@contextmanager
def resetting(address: str) -> Iterator[None]:
    """Somebody who resets each connection to the TLS port as soon as it is there."""
    with socket.create_server((address, TLS_PORT)) as listener:

        def reset() -> None:
            while True:
                try:
                    taken, _ = listener.accept()
                except OSError:
                    return
                taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                taken.close()

        thread = threading.Thread(target=reset)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)


def attack(name: str, address: str) -> AbstractContextManager[object]:
    """What an attacker does to the TLS port of an address."""
    attacks = {"resets": resetting, "is silent": silent_listener, "drops packets": black_hole}
    return attacks[name](address) if name in attacks else nullcontext()


@pytest.fixture
def own(tmp_path: Path) -> Authority:
    return Authority.made(tmp_path / "own")


def meet(laptop: Station, office: Station) -> None:
    """A message goes inside of TLS, and that is kept."""
    with laptop.connect() as here, office.connect() as there:
        there.create_queue(BOOKINGS)
        here.send(office.direct("bookings"), "first", recoverable=True)
        assert received(there, "bookings", 1) == ["first"]
        wait_until_sent(here, office.address)
    kept = laptop.data / "tls-hosts"
    wait_until(
        lambda: kept.exists() and office.address in kept.read_text().splitlines(), "it is kept"
    )


def wait_for_attempts(laptop: Station, office: Station) -> None:
    """The laptop tries again and again, its message waits, and it says why."""
    before = len(laptop.told("no session inside of TLS"))
    wait_until(lambda: len(laptop.told("no session inside of TLS")) > before + 2, "it tries again")
    with laptop.connect() as here:
        assert outgoing_to(here, office.address).report.messages == 1
        (failure,) = here.status().tls_failures
        assert f"Expected at port {TLS_PORT}" in failure


@pytest.mark.parametrize("how", ["refuses", "resets", "is silent", "drops packets"])
def test_who_was_reached_inside_of_tls_is_never_spoken_to_in_clear(
    tmp_path: Path, own: Authority, how: str
) -> None:
    """Not after a restart either, with a damaged file. Five starts take some seconds."""
    quick: dict[str, object] = {"exchange.connect_s": 0.3, "exchange.tls_connect_s": 0.1}
    with (
        with_tls(tmp_path / "laptop", own, settings=quick) as laptop,
        with_tls(tmp_path / "office", own) as office,
    ):
        meet(laptop, office)
        assert office.stop() == 0
        with attack(how, office.address), Station(tmp_path / "thief", {}, office.address) as thief:
            with laptop.connect() as here:
                here.send(office.direct("bookings"), "secret", recoverable=True)
            wait_for_attempts(laptop, office)
            laptop.kill()
            with (laptop.data / "tls-hosts").open("ab") as kept:
                kept.write(b"\x00 damaged, too")
            laptop.start()
            assert len(laptop.events("the file of hosts that have TLS is damaged")) == 1
            wait_for_attempts(laptop, office)
            assert not thief.events("session open")
            end_cleanly([thief])
        office.start()
        with office.connect() as there:
            assert received(there, "bookings", 1) == ["secret"]
        end_cleanly((laptop, office))


def test_an_operator_can_allow_it(tmp_path: Path, own: Authority) -> None:
    peers = tmp_path / "peers.toml"
    with (
        with_tls(tmp_path / "laptop", own) as laptop,
        with_tls(tmp_path / "office", own) as office,
    ):
        meet(laptop, office)
        assert office.stop() == 0
        peers.write_text(f'[[peer]]\nname = "office"\nhost = "{office.address}"\ntls = "never"\n')
        laptop.restart({"exchange.peers": peers})
        with Station(tmp_path / "windows", {}, office.address) as windows:
            with laptop.connect() as here, windows.connect() as there:
                there.create_queue(BOOKINGS)
                here.send(office.direct("bookings"), "tea", recoverable=True)
                assert received(there, "bookings", 1) == ["tea"]
            end_cleanly([windows, laptop])


def test_who_is_demanded_to_have_tls_is_not_spoken_to_in_clear_even_the_first_time(
    tmp_path: Path, own: Authority
) -> None:
    peers = tmp_path / "peers.toml"
    with without_tls(tmp_path / "thief") as thief:
        peers.write_text(f'[[peer]]\nname = "office"\nhost = "{thief.address}"\ntls = "always"\n')
        with with_tls(tmp_path / "laptop", own, settings={"exchange.peers": peers}) as laptop:
            with laptop.connect() as here:
                here.send(thief.direct("bookings"), "secret", recoverable=True)
                wait_until(lambda: bool(laptop.told("no session inside of TLS")), "it is told")
                assert outgoing_to(here, thief.address).report.messages == 1
            assert not thief.events("session open")
            end_cleanly((laptop, thief))
