"""Sessions inside of TLS: two queue managers never talk in clear, and strangers learn nothing."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from acceptance.service_process import environment, wait_until
from kit.certificates import Authority
from kit.raw_peers import establish
from kit.relaying import PORT
from kit.stations import Station, end_cleanly, new_address, outgoing_to, received, wait_until_sent
from merq.model.queue import OutgoingState

TLS_PORT: Final = 1802
BOOKINGS: Final = r".\private$\bookings"
COUNT: Final = 50


@pytest.fixture
def own(tmp_path: Path) -> Authority:
    return Authority.made(tmp_path / "own")


@pytest.fixture
def other(tmp_path: Path) -> Authority:
    return Authority.made(tmp_path / "other")


def secured(data: Path, authority: Authority, trusted: Authority | None = None) -> Station:
    """A queue manager that talks inside of TLS only."""
    address = new_address()
    cert, key = authority.issue(address)
    settings = {
        "exchange.tls_port": TLS_PORT,
        "exchange.tls_cert": cert,
        "exchange.tls_key": key,
        "exchange.tls_ca": (trusted or authority).ca_file,
        "exchange.tls": "always",
    }
    return Station(data, settings, address)


def send_some(laptop: Station, office: Station) -> None:
    with laptop.connect() as here, here.transaction() as tx:
        for number in range(COUNT):
            here.send(office.direct("bookings"), number, tx=tx)


def test_messages_flow_inside_of_tls_and_nothing_is_said_in_clear(
    tmp_path: Path, own: Authority
) -> None:
    with (
        secured(tmp_path / "laptop", own) as laptop,
        secured(tmp_path / "office", own) as office,
    ):
        with office.connect() as there:
            there.create_queue(BOOKINGS, transactional=True)
            send_some(laptop, office)
            assert received(there, "bookings", COUNT) == list(range(COUNT))
        with laptop.connect() as here:
            wait_until_sent(here)
        assert set(laptop.tcp_ports) == set(office.tcp_ports) == {TLS_PORT}
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((office.address, PORT), 5).close()
        # What comes to the secured port in clear is refused with a reason, and not understood.
        with socket.create_connection((office.address, TLS_PORT), 5) as plain:
            plain.settimeout(10)
            plain.sendall(establish(uuid4()))
            assert not plain.recv(1 << 16).startswith(b"\x10\x5a")
        wait_until(lambda: bool(office.events("TLS session refused")), "a reason is told")
        # After a restart the same goes on.
        office.kill()
        office.start()
        send_some(laptop, office)
        with office.connect() as there:
            assert received(there, "bookings", COUNT) == list(range(COUNT))
        end_cleanly((laptop, office))


def wait_for_reason(laptop: Station, office: Station, *words: str) -> None:
    """Returns when the laptop's log says why there is no session."""

    def is_told() -> bool:
        found = laptop.told("no connection") + laptop.told("no session")
        reasons = [str(each["reason"]) for each in found if each["peer"] == office.address]
        return any(word in reason for word in words for reason in reasons)

    wait_until(is_told, f"the log says one of {words}")


def history(laptop: Station, office: Station) -> list[str]:
    """What the laptop remembers of its attempts to reach the office."""
    done = subprocess.run(
        [sys.executable, "-m", "merq", "outgoing", "show", office.address, "--json"],
        env=environment(MERQ_DATA=str(laptop.data)),
        capture_output=True,
        text=True,
        check=True,
    )
    return [str(each["status"]) for each in json.loads(done.stdout)["transfer"]["history"]]


def test_who_is_of_another_authority_is_not_connected_to(
    tmp_path: Path, own: Authority, other: Authority
) -> None:
    with (
        secured(tmp_path / "laptop", own) as laptop,
        secured(tmp_path / "office", other, trusted=own) as office,
        laptop.connect() as here,
    ):
        send_some(laptop, office)
        wait_for_reason(laptop, office, "CERTIFICATE_VERIFY_FAILED")
        way = outgoing_to(here, office.address)
        assert way.report.messages == COUNT
        assert way.state in {OutgoingState.DISCONNECTED, OutgoingState.WAITING}
        assert "CertificateValidationFailure" in history(laptop, office)
        assert not office.events("session open")
        end_cleanly((laptop, office))


def test_a_manager_of_another_authority_is_not_let_in_and_told_why(
    tmp_path: Path, own: Authority, other: Authority
) -> None:
    with (
        secured(tmp_path / "laptop", other, trusted=own) as laptop,
        secured(tmp_path / "office", own) as office,
        laptop.connect() as here,
    ):
        send_some(laptop, office)
        wait_until(lambda: bool(office.events("TLS session refused")), "the office tells it")
        reason = str(office.events("TLS session refused")[0]["reason"])
        assert "CERTIFICATE_VERIFY_FAILED" in reason, reason
        wait_for_reason(laptop, office, "unknown ca", "UNKNOWN_CA")
        assert outgoing_to(here, office.address).report.messages == COUNT
        assert not office.events("session open")
        end_cleanly((laptop, office))


def greet(office: Station, context: ssl.SSLContext) -> bytes:
    """What is answered to a greeting; with TLS 1.3 a refusal comes behind our handshake."""
    with (
        socket.create_connection((office.address, TLS_PORT), 5) as plain,
        context.wrap_socket(plain, server_hostname=office.address) as sealed,
    ):
        sealed.sendall(establish(uuid4()))
        return sealed.recv(1 << 16)


@pytest.mark.parametrize("who", ["nobody", "a stranger"])
def test_who_shows_no_certificate_or_a_strange_one_is_not_let_in(
    tmp_path: Path, own: Authority, other: Authority, who: str
) -> None:
    with secured(tmp_path / "office", own) as office:
        known = ssl.create_default_context(cafile=str(own.ca_file))
        known.load_cert_chain(*own.issue("known.example"))
        assert greet(office, known).startswith(b"\x10\x5a")
        office.wait_until_alone()
        context = ssl.create_default_context(cafile=str(own.ca_file))
        if who == "a stranger":
            context.load_cert_chain(*other.issue("stranger.example"))
        with pytest.raises((ssl.SSLError, ConnectionError)):
            greet(office, context)
        wait_until(lambda: bool(office.events("TLS session refused")), "a reason is told")
        assert not office.events("session open")
        office.wait_until_alone()
        end_cleanly([office])
