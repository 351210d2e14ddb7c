"""Whoever knocks without end, or leaves the door half open, keeps nobody else out."""

from __future__ import annotations

import asyncio
import resource
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from ssl import PROTOCOL_TLS_CLIENT, PROTOCOL_TLS_SERVER, SSLContext
from typing import Any

import pytest

from kit.certificates import Authority
from merq.net.accepting import ACCEPTS_A_TURN, REST_S, Acceptor
from merq.net.securing import (
    HANDSHAKE_BYTES_MAX,
    HANDSHAKES_MAX,
    HANDSHAKES_PER_PEER_MAX,
    Handshakes,
    Securing,
)

HOST = "127.34.1.1"


class Told:
    """What is logged."""

    def __init__(self) -> None:
        self.warnings: list[dict[str, Any]] = []

    def warning(self, event: str, **fields: str | int) -> None:
        self.warnings.append({"event": event, **fields})


class Greeter(asyncio.Protocol):
    """Says one word to everybody."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"welcome")


def caller(source: str = HOST, *, port: int) -> socket.socket:
    calling = socket.create_connection((HOST, port), timeout=10, source_address=(source, 0))
    calling.setblocking(False)
    return calling


async def heard(calling: socket.socket, within_s: float = 5.0) -> bytes:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(within_s):
        return await loop.sock_recv(calling, 100)


@contextmanager
def no_descriptors_left() -> Iterator[None]:
    """This process can open nothing more meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket() as highest:
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest.fileno(), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_without_descriptors_it_rests_says_so_once_and_goes_on_later() -> None:
    async def scene() -> None:
        told = Told()
        acceptor = Acceptor.on(HOST, 0, Greeter, told)
        with caller(port=acceptor.address[1]) as calling:
            with no_descriptors_left():
                began = time.process_time()
                await asyncio.sleep(2.5 * REST_S)
                assert time.process_time() - began < REST_S, "it does not turn in circles"
            assert [each["event"] for each in told.warnings] == ["nobody can connect for now"]
            assert "open files" in str(told.warnings[0]["reason"])
            assert await heard(calling) == b"welcome"
        acceptor.close()
        await acceptor.wait_closed()

    asyncio.run(scene())


def test_only_some_connections_are_accepted_in_one_turn() -> None:
    async def scene() -> None:
        acceptor = Acceptor.on(HOST, 0, Greeter, Told())
        callers = [caller(port=acceptor.address[1]) for _ in range(3 * ACCEPTS_A_TURN)]
        acceptor._accept()
        assert len(acceptor._tasks) == ACCEPTS_A_TURN
        for calling in callers:
            assert await heard(calling) == b"welcome"
            calling.close()
        acceptor.close()
        await acceptor.wait_closed()

    asyncio.run(scene())


# TLS.


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.made(tmp_path / "authority")


@asynccontextmanager
async def secured(
    authority: Authority, refused: list[str], handshake_s: float = 20.0
) -> AsyncIterator[int]:
    """A port behind TLS."""
    context = SSLContext(PROTOCOL_TLS_SERVER)
    cert, key = authority.issue(HOST)
    context.load_cert_chain(cert, key)
    handshakes = Handshakes()
    acceptor = Acceptor.on(
        HOST,
        0,
        lambda: Securing(
            Greeter(), context, handshake_s, lambda _, reason: refused.append(reason), handshakes
        ),
        Told(),
    )
    yield acceptor.address[1]
    acceptor.close()
    await acceptor.wait_closed()


async def greeted(authority: Authority, port: int, source: str) -> bytes:
    """What an honest client hears inside of TLS."""
    context = SSLContext(PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority.ca_file)
    reader, writer = await asyncio.open_connection(
        HOST, port, ssl=context, local_addr=(source, 0), server_hostname=HOST
    )
    word = await reader.read(7)
    writer.close()
    return word


@pytest.mark.limit("merq.net.securing.HANDSHAKES_PER_PEER_MAX")
def test_handshakes_that_one_address_leaves_open_give_way_to_its_new_ones(
    authority: Authority,
) -> None:
    async def scene() -> None:
        refused: list[str] = []
        async with secured(authority, refused) as port:
            silent = [caller("127.34.2.1", port=port) for _ in range(HANDSHAKES_PER_PEER_MAX + 5)]
            await asyncio.sleep(0.2)
            assert len(refused) == 5
            assert f"{HANDSHAKES_PER_PEER_MAX} others from 127.34.2.1" in refused[0]
            assert await heard(silent[0]) == b"", "the oldest is closed"
            assert await greeted(authority, port, "127.34.2.1") == b"welcome"
            assert await greeted(authority, port, "127.34.2.2") == b"welcome"
            for each in silent:
                each.close()
            await asyncio.sleep(0.1)

    asyncio.run(scene())


@pytest.mark.limit("merq.net.securing.HANDSHAKES_MAX")
def test_handshakes_that_many_addresses_leave_open_give_way_to_new_ones(
    authority: Authority,
) -> None:
    async def scene() -> None:
        refused: list[str] = []
        async with secured(authority, refused) as port:
            silent = [
                caller(f"127.34.3.{number % 16 + 1}", port=port) for number in range(HANDSHAKES_MAX)
            ]
            await asyncio.sleep(0.3)
            assert not refused
            assert await greeted(authority, port, "127.34.2.2") == b"welcome"
            assert refused == [
                f"the TLS handshake took too long while {HANDSHAKES_MAX} others are under way"
            ]
            for each in silent:
                each.close()
            await asyncio.sleep(0.1)

    asyncio.run(scene())


@pytest.mark.limit("merq.net.securing.HANDSHAKE_BYTES_MAX")
def test_a_handshake_that_takes_too_long_or_says_too_much_is_ended(authority: Authority) -> None:
    async def scene() -> None:
        refused: list[str] = []
        async with secured(authority, refused, handshake_s=0.2) as port:
            with caller(port=port) as silent:
                assert await heard(silent) == b""
            assert refused.pop() == "the TLS handshake was not done in time"
        async with secured(authority, refused) as port:
            with caller(port=port) as verbose:
                loop = asyncio.get_running_loop()
                record = b"\x16\x03\x01\x40\x00"
                hello = b"\x01\x01\xff\xff\x03\x03"  # a ClientHello of 128 KiB, in records
                await loop.sock_sendall(verbose, record + hello + bytes((16 << 10) - len(hello)))
                with suppress(OSError):
                    for _ in range(HANDSHAKE_BYTES_MAX >> 14):
                        await loop.sock_sendall(verbose, record + bytes(16 << 10))
                        await asyncio.sleep(0.02)
                with suppress(ConnectionError):
                    assert await heard(verbose) == b""
        (reason,) = refused
        assert "bytes came, and the handshake is not done" in reason

    asyncio.run(scene())
