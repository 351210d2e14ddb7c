"""[MS-MQQB] 2.1.2, 3.1.7.6 to 3.1.7.9: pings over UDP, asked and answered."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4

import pytest

from acceptance.service_process import wait_until
from kit.raw_peers import RawPeer
from kit.relaying import PORT
from kit.stations import Station, end_cleanly, new_address, outgoing_to, received, stations
from kit.vectors import frame
from merq.errors import WireError
from merq.model.queue import OutgoingState
from merq.wire.ping import PING_SIZE, Ping, PingFlags
from merq.wire.reader import Reader

PING_PORT: Final = 3527
ORDERS: Final = r".\private$\orders"
SILENCE_S: Final = 1.0
ESTABLISH_SIZE: Final = 572
SE: Final = 0x100


def ask(address: str, data: bytes, within_s: float = 10.0) -> bytes:
    """What is answered to a datagram; nothing if nobody does in time."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(within_s)
        asking.connect((address, PING_PORT))
        asking.send(data)
        try:
            return asking.recv(1 << 16)
        except (TimeoutError, ConnectionRefusedError):
            return b""


@pytest.mark.spec("MS-MQQB 3.1.7.7", "MS-MQQB 2.2.7")
@pytest.mark.spec("MS-MQQB note 70")
@pytest.mark.spec("MS-MQQB 3.1.7.7#signature", "MS-MQQB 3.1.7.7#RF", "MS-MQQB 3.1.7.7#echo")
def test_a_ping_is_answered_and_refused_when_there_is_no_room(tmp_path: Path) -> None:
    few = {"exchange.links_max": 1}
    with stations(tmp_path, "office", settings=few) as (office,):
        request = Ping(flags=PingFlags(), cookie=77, qm_guid=uuid4()).pack()
        answer = Ping.unpack(Reader(ask(office.address, request)))
        assert (answer.cookie, answer.qm_guid) == (77, UUID(office.guid))
        assert not answer.flags.refused
        documented = Ping.unpack(Reader(ask(office.address, frame(1))))
        assert (documented.cookie, documented.flags.not_server_class) == (4, True)
        # Anything else is nothing, and nobody is served worse for it.
        for wrong in (b"", b"x", request[:-1], request + b"x", b"\0" * PING_SIZE, b"x" * 60_000):
            assert ask(office.address, wrong, SILENCE_S / 5) == b""
        with RawPeer(office.address) as peer:
            peer.open()
            assert Ping.unpack(Reader(ask(office.address, request))).flags.refused
        office.wait_until_alone()
        wait_until(lambda: not refuses(office, request), "there is room again")


def refuses(office: Station, request: bytes) -> bool:
    try:
        return Ping.unpack(Reader(ask(office.address, request))).flags.refused
    except WireError:
        return True


@pytest.mark.spec("MS-MQQB note 10", "MS-MQQB note 42")
def test_no_ping_is_answered_when_that_is_switched_off(tmp_path: Path) -> None:
    with stations(tmp_path, "office", settings={"exchange.ping_answer": "false"}) as (office,):
        request = Ping(flags=PingFlags(), cookie=1, qm_guid=uuid4()).pack()
        assert ask(office.address, request, SILENCE_S) == b""
        with RawPeer(office.address) as peer:
            peer.open()


@pytest.mark.spec("MS-MQQB 3.1.5.2.2", "MS-MQQB 3.1.7.6", "MS-MQQB 3.1.7.8")
@pytest.mark.spec("MS-MQQB 3.1.7.9", "MS-MQQB 3.1.6.8", "MS-MQDMPR 3.1.1.3")
@pytest.mark.spec("MS-MQQB note 7", "MS-MQQB note 41", "MS-MQQB note 56")
@pytest.mark.spec("MS-MQQB 3.1.5.2.2#granted", "MS-MQQB 3.1.5.2.2#PingFailure")
def test_who_asks_first_connects_only_to_whom_answers(tmp_path: Path) -> None:
    with stations(tmp_path, "laptop", settings={"exchange.ping": "true"}) as (laptop,):
        silent = {"exchange.ping_answer": "false"}
        with Station(tmp_path / "office", silent) as office, laptop.connect() as here:
            with office.connect() as there:
                there.create_queue(ORDERS)
            here.send(office.direct("orders"), "hello", recoverable=True)
            way = outgoing_to(here, office.address)
            wait_until(lambda: bool(laptop.events("no connection")), "it has asked")
            assert "ping" in str(laptop.events("no connection")[0]["reason"])
            assert way.state in {OutgoingState.DISCONNECTED, OutgoingState.WAITING}
            assert not office.events("session open")
            statuses = {each.status for each in way.transfer().history}
            assert statuses == {"InProcess", "PingFailure"}
            office.restart({"exchange.ping_answer": "true"})
            with office.connect() as there:
                assert received(there, "orders", 1) == ["hello"]
            end_cleanly([office])
        here.close()


@pytest.mark.parametrize("pings", [True, False])
@pytest.mark.spec("MS-MQQB 2.2.3.1", "MS-MQQB 3.1.5.2.3", "MS-MQQB 3.1.5.2.2")
@pytest.mark.spec("MS-MQQB 3.1.5.2.3#SE")
def test_a_request_says_whether_a_ping_was_sent_before_it(tmp_path: Path, *, pings: bool) -> None:
    address = new_address()
    settings = {"exchange.ping": "true" if pings else "false"}
    with (
        stations(tmp_path, "laptop", settings=settings) as (laptop,),
        laptop.connect() as here,
        socket.create_server((address, PORT)) as listening,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as answering,
    ):
        listening.settimeout(10.0)
        answering.settimeout(10.0)
        answering.bind((address, PING_PORT))
        here.send(rf"DIRECT=TCP:{address}\private$\orders", "hello", recoverable=True)
        if pings:
            data, asking = answering.recvfrom(1 << 16)
            answering.sendto(data, asking)
        connection, _ = listening.accept()
        with connection:
            connection.settimeout(10.0)
            request = b""
            while len(request) < ESTABLISH_SIZE:
                request += connection.recv(ESTABLISH_SIZE)
        operating_system = int.from_bytes(request[56:58], "little")
        assert operating_system & SE == (0 if pings else SE)


def test_a_ping_to_nobody_does_not_keep_others_waiting(tmp_path: Path) -> None:
    with stations(tmp_path, "laptop", "office", settings={"exchange.ping": "true"}) as found:
        laptop, office = found
        with laptop.connect() as here, office.connect() as there:
            there.create_queue(ORDERS)
            for _ in range(20):
                here.send(rf"DIRECT=TCP:{new_address()}\private$\orders", 0)
            here.send(office.direct("orders"), "hello", recoverable=True)
            assert received(there, "orders", 1, 5.0) == ["hello"]
