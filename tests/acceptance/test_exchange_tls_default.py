"""Queue managers with certificates speak TLS to each other, without being told whom to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acceptance.service_process import wait_until
from kit.certificates import Authority
from kit.relaying import PORT
from kit.stations import Station, end_cleanly, outgoing_to, received, wait_until_sent
from kit.tls_stations import (
    BOOKINGS,
    TLS_PORT,
    black_hole,
    silent_listener,
    tls_address,
    with_tls,
    without_tls,
)


@pytest.fixture
def own(tmp_path: Path) -> Authority:
    return Authority.made(tmp_path / "own")


@contextmanager
def running(*found: Station) -> Iterator[None]:
    """They run together, and nothing goes wrong inside of any."""
    with ExitStack() as stack:
        for each in found:
            stack.callback(each.end)
            each.start(is_awaited=False)
        for each in found:
            each.wait_until_running()
        yield
        end_cleanly(found)


def send_and_receive(laptop: Station, office: Station, *bodies: str) -> None:
    """Messages go from one to the other."""
    with laptop.connect() as here, office.connect() as there:
        if not any(each.path_name.lower().endswith("bookings") for each in there.queues()):
            there.create_queue(BOOKINGS)
        for body in bodies:
            here.send(office.direct("bookings"), body, recoverable=True)
        assert received(there, "bookings", len(bodies)) == list(bodies)


def is_secure(laptop: Station, office: Station) -> bool:
    """Whether the laptop's connection to the office is inside of TLS."""
    with laptop.connect() as here:
        (found,) = [each for each in here.links() if each.ours and each.address == office.address]
        return found.secure


def test_two_that_have_certificates_speak_tls_and_remember_it(
    tmp_path: Path, own: Authority
) -> None:
    laptop, office = with_tls(tmp_path / "laptop", own), with_tls(tmp_path / "office", own)
    with running(laptop, office):
        assert set(office.tcp_ports) == {PORT, TLS_PORT}
        send_and_receive(laptop, office, "tea")
        assert is_secure(laptop, office)
        kept = laptop.data / "tls-hosts"
        wait_until(kept.exists, "it is kept on disk")
        assert office.address in kept.read_text().splitlines()
        assert kept.stat().st_mode & 0o777 == 0o600
        with laptop.connect() as here:
            assert here.status().tls_failures == ()
            wait_until_sent(here, office.address)


@pytest.mark.parametrize("who", ["the sender", "the receiver", "nobody"])
def test_if_only_one_has_a_certificate_messages_go_in_clear(
    tmp_path: Path, own: Authority, who: str
) -> None:
    laptop, office = (
        with_tls(tmp_path / name, own) if who == party else without_tls(tmp_path / name)
        for name, party in (("laptop", "the sender"), ("office", "the receiver"))
    )
    with running(laptop, office):
        began = time.monotonic()
        send_and_receive(laptop, office, "tea")
        assert time.monotonic() - began < 1.0, "nobody waits for a port that is closed"
        assert not is_secure(laptop, office)
        probes = len(laptop.events("no TLS there, it goes on in clear"))
        assert probes == (1 if who == "the sender" else 0)
        assert not (laptop.data / "tls-hosts").exists()
        office.kill()
        office.start()
        send_and_receive(laptop, office, "coffee")


def test_a_tls_port_whose_packets_are_dropped_delays_little_and_once(
    tmp_path: Path, own: Authority
) -> None:
    office = without_tls(tmp_path / "office")
    laptop = with_tls(tmp_path / "laptop", own, settings={"exchange.tls_connect_s": 0.5})
    with black_hole(office.address), running(laptop, office):
        began = time.monotonic()
        send_and_receive(laptop, office, "tea")
        assert 0.5 <= time.monotonic() - began < 3.0
        (told,) = laptop.events("no TLS there, it goes on in clear")
        assert "no answer in time, 0.5 s" in str(told["reason"]), told
        office.kill()
        wait_until(lambda: bool(laptop.events("session closed")), "the laptop notices")
        office.start()
        send_and_receive(laptop, office, "coffee")


def wait_for_failure(laptop: Station, office: Station, *words: str) -> None:
    """Messages wait, and everything that an operator looks at says why."""

    def is_told() -> bool:
        found = laptop.told("no session inside of TLS", peer=office.address, level="warning")
        return any(all(word in str(each["reason"]) for word in words) for each in found)

    wait_until(is_told, f"the log says {words}")
    with laptop.connect() as here:
        (failure,) = here.status().tls_failures
        assert failure.startswith(f"{office.address}: ")
        way = outgoing_to(here, office.address)
        assert way.report.messages == 1
        last = [each for each in way.transfer().history if each.error][-1]
        for text in (failure, last.text):
            assert all(word in text for word in words), text
            assert "Have a right one issued there" in text or "Look into its log" in text
            assert "never" not in text, "whoever cuts connections is not to have TLS turned off"
    assert not laptop.events("no TLS there, it goes on in clear")
    assert not office.events("session open")


def send_one(laptop: Station, office: Station) -> None:
    with laptop.connect() as here:
        here.send(office.direct("bookings"), "tea", recoverable=True)


@pytest.mark.parametrize("wrong", ["authority", "expired", "name"])
def test_a_wrong_certificate_is_told_and_nothing_goes_in_clear(
    tmp_path: Path, own: Authority, wrong: str
) -> None:
    address, now = tls_address(), datetime.now(UTC)
    if wrong == "authority":
        pair = Authority.made(tmp_path / "other").issue(address)
        words = ("CERTIFICATE_VERIFY_FAILED", "unable to get local issuer")
    elif wrong == "expired":
        past, over = now - timedelta(days=30), now - timedelta(days=1)
        pair = own.issue(address, begins=past, ends=over)
        words = ("CERTIFICATE_VERIFY_FAILED", "certificate has expired")
    else:
        pair = own.issue("office.example")
        words = ("CERTIFICATE_VERIFY_FAILED", "IP address mismatch")
    laptop = with_tls(tmp_path / "laptop", own)
    office = with_tls(tmp_path / "office", own, address=address, pair=pair)
    with running(laptop, office):
        send_one(laptop, office)
        wait_for_failure(laptop, office, *words, f"for {address}, of an authority in")
        if wrong == "expired":
            (told,) = office.events("other queue managers refuse the certificate")
            assert "has expired" in str(told["error"])


def test_a_certificate_of_ours_that_is_refused_is_told_and_nothing_goes_in_clear(
    tmp_path: Path, own: Authority
) -> None:
    other = Authority.made(tmp_path / "other")
    laptop = with_tls(tmp_path / "laptop", own)
    trusting = {"exchange.tls_ca": other.ca_file}
    office = with_tls(tmp_path / "office", own, settings=trusting)
    with running(laptop, office):
        send_one(laptop, office)
        wait_for_failure(laptop, office, "UNKNOWN_CA", "takes the certificate in")


def test_somebody_at_the_tls_port_who_never_answers_is_told_and_nothing_goes_in_clear(
    tmp_path: Path, own: Authority
) -> None:
    office = without_tls(tmp_path / "office")
    laptop = with_tls(tmp_path / "laptop", own, settings={"exchange.connect_s": 0.5})
    with silent_listener(office.address), running(laptop, office):
        send_one(laptop, office)
        wait_for_failure(laptop, office, "no answer in time", "a Merq that speaks TLS")


def test_the_file_of_peers_lets_one_be_spoken_to_in_clear(tmp_path: Path, own: Authority) -> None:
    office = without_tls(tmp_path / "office")
    peers = tmp_path / "peers.toml"
    peers.write_text(f'[[peer]]\nname = "office"\nhost = "{office.address}"\ntls = "never"\n')
    laptop = with_tls(tmp_path / "laptop", own, settings={"exchange.peers": peers})
    with silent_listener(office.address), running(laptop, office):
        send_and_receive(laptop, office, "tea")
        assert not is_secure(laptop, office)
