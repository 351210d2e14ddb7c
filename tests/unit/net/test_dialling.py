"""Connections inside of TLS: whom a certificate lets in, and what counts as nobody there."""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kit.certificates import Authority
from kit.tls_stations import tls_address
from merq.exchange import Link
from merq.model.properties import ConnectionStatus
from merq.net.dialling import DialFailure, LinkingSettings, dial

NAME = "office.example"


@pytest.fixture
def own(tmp_path: Path) -> Authority:
    return Authority.made(tmp_path / "own")


def link_to(address: str, host: str = "", *, may_be_clear: bool = True) -> Link:
    link = Link(1, address, is_outgoing=True, is_secure=True, host=host)
    link.may_be_clear = may_be_clear
    return link


def settings(authority: Authority, port: int = 1803) -> LinkingSettings:
    context = ssl.create_default_context(cafile=str(authority.ca_file))
    context.load_cert_chain(*authority.issue("laptop"))
    return LinkingSettings(
        host="127.0.0.1", port=1801, connect_s=2.0, tls_port=port, client_context=context
    )


def dialled(authority: Authority, identity: str, host: str) -> DialFailure | None:
    """What comes of dialling a host where somebody shows a certificate for an identity."""

    async def scene() -> DialFailure | None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*authority.issue("office", identity))
        address = tls_address()
        server = await asyncio.start_server(_hang_up, address, 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        found = await dial(link_to(address, host), settings(authority, port), asyncio.Protocol)
        server.close()
        return found

    return asyncio.run(scene())


async def _hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


def test_a_certificate_for_the_name_that_was_dialled_is_taken(own: Authority) -> None:
    assert dialled(own, NAME, NAME) is None
    assert dialled(own, NAME, NAME.upper()) is None


@pytest.mark.parametrize(("identity", "host"), [("other.example", NAME), (NAME, "")])
def test_one_for_another_name_or_for_a_name_instead_of_an_address_is_not(
    own: Authority, identity: str, host: str
) -> None:
    found = dialled(own, identity, host)
    assert found is not None
    assert found.status is ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE
    assert not found.is_tls_absent
    assert "mismatch" in found.text


def test_a_host_that_no_certificate_can_name_is_a_failure_and_nothing_worse(own: Authority) -> None:
    found = dialled(own, NAME, ".office")
    assert found is not None
    assert not found.is_tls_absent
    assert "Expected at port" in found.text


@contextmanager
def no_descriptors_left() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket() as highest:
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest.fileno(), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_what_is_short_on_this_side_does_not_say_that_nobody_is_there(own: Authority) -> None:
    """Strangers can use up descriptors: that must not have messages sent in clear."""

    async def scene() -> DialFailure | None:
        how = settings(own)
        with no_descriptors_left():
            return await dial(link_to(tls_address()), how, asyncio.Protocol)

    found = asyncio.run(scene())
    assert found is not None
    assert not found.is_tls_absent
    assert "open files" in found.text


@pytest.mark.parametrize("may_be_clear", [True, False])
def test_a_closed_port_is_nobody_but_only_who_may_be_reached_in_clear_is(
    own: Authority, *, may_be_clear: bool
) -> None:
    link = link_to(tls_address(), may_be_clear=may_be_clear)
    found = asyncio.run(dial(link, settings(own), asyncio.Protocol))
    assert found is not None
    assert found.status is ConnectionStatus.SOCKET_CONNECT_FAILURE
    assert found.is_tls_absent is may_be_clear


def test_without_a_certificate_nothing_is_dialled_inside_of_tls() -> None:
    how = LinkingSettings(host="127.0.0.1", port=1801)
    link = link_to(tls_address(), may_be_clear=False)
    found = asyncio.run(dial(link, how, asyncio.Protocol))
    assert found is not None
    assert not found.is_tls_absent
    assert "set exchange.tls_cert" in found.text
