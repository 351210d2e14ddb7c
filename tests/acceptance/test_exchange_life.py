"""The life of a queue manager that others are connected to: stopped, frozen, hardened, offline."""

from __future__ import annotations

import signal
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from uuid import uuid4

import pytest

import merq
from acceptance.service_process import wait_until
from kit.raw_peers import RawPeer, establish, parameters
from kit.relaying import PATIENCE_S, PORT
from kit.stations import (
    Station,
    new_address,
    outgoing_to,
    received,
    stations,
    wait_until_sent,
    wire_between,
)
from merq.model.queue import OutgoingState
from merq.wire.connection import ConnectionParameters, EstablishConnection
from merq.wire.packet import parse_packet

ORDERS: Final = r".\private$\orders"
BOOKINGS: Final = r".\private$\bookings"
STOP_S: Final = 5.0
COUNT: Final = 8001
BATCH: Final = 1000
BODY: Final = b"x" * 1000


def book(manager: merq.Manager, name: str, first: int, count: int) -> None:
    """Numbered messages, in one transaction."""
    known = [each for each in manager.outgoing_queues() if each.destination.lower() == name.lower()]
    numbers = range(first, first + count)
    with manager.transaction() as tx:
        if known:
            known[0].send_many(numbers, tx=tx, extension=BODY)
            return
        for number in numbers:
            manager.send(name, number, tx=tx, extension=BODY)


@pytest.mark.parametrize("stopped", ["laptop", "office"])
@pytest.mark.spec("MS-MQQB 3.1.4.2", "MS-MQQB 3.1.4.1")
def test_a_stop_in_the_middle_is_clean_and_quick_and_a_start_goes_on(
    tmp_path: Path, stopped: str
) -> None:
    # A small window, or everything has arrived before the stop.
    slow = {"exchange.window": 16}
    with stations(tmp_path, "laptop", "office", settings=slow) as (laptop, office):
        with office.connect() as there:
            there.create_queue(BOOKINGS, transactional=True)
        who = laptop if stopped == "laptop" else office
        with laptop.connect() as here:
            book(here, office.direct("bookings"), 0, 1)
            way = outgoing_to(here, office.address)
            way.pause()
            for first in range(1, COUNT, BATCH):
                book(here, office.direct("bookings"), first, BATCH)
            way.resume()
        with office.connect() as there:
            queue = there.queue(BOOKINGS)
            wait_until(lambda: len(queue) > 100, "some have come")
        began = time.monotonic()
        assert who.stop() == 0
        assert time.monotonic() - began < STOP_S
        if who is laptop:
            with office.connect() as there:
                assert len(there.queue(BOOKINGS)) < COUNT, "it was not in the middle"
        who.start()
        # What was not acknowledged in order stays with its sender, be it all.
        most = COUNT if who is laptop else COUNT - 1
        assert 0 < int(who.events("running")[-1]["messages"]) <= most, "it was not in the middle"
        with office.connect() as there:
            queue = there.queue(BOOKINGS)
            wait_until(lambda: len(queue) == COUNT, "all have come")
            assert [each.body for each in queue.peek_all()] == list(range(COUNT))
        with laptop.connect() as here:
            wait_until_sent(here)


def test_a_manager_that_is_frozen_for_a_while_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with stations(tmp_path, "laptop", "office") as (laptop, office):
        with office.connect() as there:
            there.create_queue(BOOKINGS, transactional=True)
        with laptop.connect() as here:
            for first in range(0, 600, 100):
                frozen = laptop if first % 200 else office
                book(here, office.direct("bookings"), first, 100)
                frozen.signal(signal.SIGSTOP)
                time.sleep(0.3)
                frozen.signal(signal.SIGCONT)
            with office.connect() as there:
                assert received(there, "bookings", 600) == list(range(600))
            wait_until_sent(here)


@pytest.mark.spec("MS-MQDMPR 3.1.1.1")
def test_a_hardened_manager_closes_this_door_both_ways(tmp_path: Path) -> None:
    hardened = {"exchange.hardened": "true"}
    with stations(tmp_path, "vault", settings=hardened) as (vault,), vault.connect() as here:
        assert vault.tcp_ports == []
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((vault.address, PORT), 5).close()
        nobody = new_address()
        here.send(rf"DIRECT=TCP:{nobody}\private$\orders", "kept", recoverable=True)
        way = outgoing_to(here, nobody)
        wait_until(lambda: way.state is OutgoingState.LOCKED, "the way is locked")
        assert way.report.messages == 1
        assert not vault.events("no connection")
        # What waited goes when the door is open again.
        with Station(tmp_path / "office", address=nobody) as office:
            with office.connect() as there:
                there.create_queue(ORDERS)
            time.sleep(0.5)
            assert not office.events("session open")
            vault.restart({"exchange.hardened": "false"})
            with office.connect() as there:
                assert received(there, "orders", 1) == ["kept"]
            assert office.stop() == 0
            office.check_log()


class Deaf:
    """A queue manager that opens a session, and then never reads again."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._server = socket.create_server((address, PORT))
        self._server.settimeout(PATIENCE_S)
        self._guid = uuid4()
        self._taken: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        if self._taken is not None:
            self._taken.close()

    def open(self) -> None:
        """[MS-MQQB] 3.1.5.3.1, 3.1.5.4.1: takes a session."""
        self._taken, _ = self._server.accept()
        self._taken.settimeout(PATIENCE_S)
        asked = parse_packet(self._read(len(establish(self._guid))))
        assert isinstance(asked, EstablishConnection)
        self._taken.sendall(establish(asked.header.client_guid, self._guid))
        assert isinstance(parse_packet(self._read(len(parameters()))), ConnectionParameters)
        self._taken.sendall(parameters(window=4096))

    def _read(self, size: int) -> bytes:
        assert self._taken is not None
        return self._taken.recv(size, socket.MSG_WAITALL)


def test_who_reads_nothing_does_not_stop_others(tmp_path: Path) -> None:
    """What waits for it stays in its queue, and not all of it in the memory."""
    many = {"exchange.window": 4096}
    with (
        stations(tmp_path, "laptop", "office", settings=many) as (laptop, office),
        laptop.connect() as here,
        office.connect() as there,
        Deaf(new_address()) as deaf,
    ):
        there.create_queue(BOOKINGS, transactional=True)
        name = rf"DIRECT=TCP:{deaf.address}\private$\orders"
        for _ in range(100):
            here.send(name, b"y" * 500_000, recoverable=True)
        before = laptop.rss_bytes  # the store keeps what it wrote last at hand
        deaf.open()
        wait_until(lambda: bool(laptop.told("session open", peer=deaf.address)), "it is open")
        book(here, office.direct("bookings"), 0, 100)
        assert received(there, "bookings", 100) == list(range(100))
        assert laptop.rss_bytes - before < 32 << 20
        assert outgoing_to(here, deaf.address).report.messages == 100


def test_a_full_disk_or_quota_at_the_other_side_holds_messages_back(tmp_path: Path) -> None:
    """[MS-MQQB] 3.1.5.8.8: what finds no room stays with its sender until there is room."""
    with (
        stations(tmp_path, "laptop") as (laptop,),
        Station(tmp_path / "office", {"engine.machine_quota_kb": 100}) as office,
        laptop.connect() as here,
        office.connect() as there,
    ):
        there.create_queue(BOOKINGS, transactional=True)
        for first in range(0, 200, 50):
            book(here, office.direct("bookings"), first, 50)
        wait_until(lambda: any("cannot be taken" in each for each in office.reasons()), "full")
        assert received(there, "bookings", 200) == list(range(200))
        wait_until_sent(here)
        assert office.stop() == 0
        office.check_log()


def test_after_many_cuts_no_connection_and_no_file_is_left(tmp_path: Path) -> None:
    with stations(tmp_path, "laptop", "office") as (laptop, office):
        with office.connect() as there:
            there.create_queue(BOOKINGS, transactional=True)
        with wire_between(laptop, office) as (wire, seen, _), laptop.connect() as here:
            name = office.direct("bookings", seen)
            book(here, name, 0, 10)
            with office.connect() as there:
                assert received(there, "bookings", 10) == list(range(10))
            files = laptop.descriptors, office.descriptors
            for number in range(10, 60):
                book(here, name, number, 1)
                wire.cut()
            with office.connect() as there:
                assert received(there, "bookings", 50) == list(range(10, 60))
            wait_until_sent(here)
            wire.sever()
        laptop.wait_until_alone()
        office.wait_until_alone()
        assert laptop.descriptors <= files[0]
        assert office.descriptors <= files[1]
        with RawPeer(office.address) as peer:
            peer.open()
