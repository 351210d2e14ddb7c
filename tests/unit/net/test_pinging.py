"""Pings on a real socket: their numbers, their port, and what of them is ignored."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from merq.net.pinging import Pinger
from merq.wire.ping import Ping, PingFlags
from merq.wire.reader import Reader
from unit.exchange.exchange_world import GUIDS, ONE, TWO, manager

HERE = "127.0.0.1"


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.bind((HERE, 0))
        return int(found.getsockname()[1])


class Listening(asyncio.DatagramProtocol):
    """Another queue manager: answers every ping, with rubbish in the unused bits."""

    def __init__(self) -> None:
        self.asked: list[Ping] = []
        self.transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[Any, ...]) -> None:
        found = Ping.unpack(Reader(data))
        self.asked.append(found)
        assert self.transport is not None
        flags = PingFlags(reserved=0xBEEC)
        self.transport.sendto(
            Ping(flags=flags, cookie=found.cookie, qm_guid=GUIDS[TWO]).pack(), addr
        )


@pytest.mark.spec("MS-MQQB note 27", "MS-MQQB note 54", "MS-MQQB note 9", "MS-MQQB note 19")
def test_pings_are_numbered_from_one_and_go_to_the_port_that_was_set() -> None:
    async def ask() -> list[Ping]:
        port = free_port()
        loop = asyncio.get_running_loop()
        transport, other = await loop.create_datagram_endpoint(Listening, local_addr=(HERE, port))
        pinger = Pinger(manager(ONE).exchange)
        assert [await pinger.ask(HERE, port) for _ in range(3)] == [True] * 3
        transport.close()
        return other.asked

    asked = asyncio.run(ask())
    assert [each.cookie for each in asked] == [1, 2, 3]
    assert {each.qm_guid for each in asked} == {GUIDS[ONE]}
    assert {each.flags.reserved for each in asked} == {0}


@pytest.mark.spec("MS-MQQB note 11", "MS-MQQB note 19")
def test_pings_are_answered_on_the_port_that_was_set_whatever_their_unused_bits_are() -> None:
    async def be_asked() -> bytes:
        port = free_port()
        pinger = Pinger(manager(ONE).exchange)
        await pinger.listen(HERE, port)
        request = Ping(flags=PingFlags(reserved=0xFFFC), cookie=7, qm_guid=GUIDS[TWO]).pack()
        answer = await asyncio.to_thread(exchanged, request, port)
        pinger.close()
        return answer

    answer = Ping.unpack(Reader(asyncio.run(be_asked())))
    assert (answer.cookie, answer.qm_guid) == (7, GUIDS[ONE])
    assert answer.flags == PingFlags()


def exchanged(request: bytes, port: int) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(10.0)
        asking.connect((HERE, port))
        asking.send(request)
        return asking.recv(1 << 16)
