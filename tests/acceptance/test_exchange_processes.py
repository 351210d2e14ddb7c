"""Queue managers as processes, each with an address of its own, send each other everything."""

from __future__ import annotations

import socket
import time
from collections import Counter
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path
from typing import Any, Final

import pytest

import merq
from acceptance.service_process import wait_until
from kit.stations import (
    Station,
    end_cleanly,
    new_address,
    outgoing_to,
    received,
    stations,
    wait_until_sent,
)
from merq.client.messages import ACKNOWLEDGE_ARRIVAL, ACKNOWLEDGE_RECEIVE
from merq.model.message_class import MessageClass
from merq.model.queue import OutgoingState

ORDERS: Final = r".\private$\orders"
BOOKINGS: Final = r".\private$\bookings"
TOLD: Final = r".\private$\told"
JOURNAL: Final = r".\system$;JOURNAL"
DEAD_LETTERS: Final = r".\system$;DEADLETTER"
DEAD_TRANSACTIONS: Final = r".\system$;DEADXACT"
WAIT_S: Final = 20.0
BOOKED: Final = 20


def with_queues(station: Station) -> merq.Manager:
    """A connection to a queue manager, which has queues of all kinds."""
    manager = station.connect()
    manager.create_queue(ORDERS)
    manager.create_queue(BOOKINGS, transactional=True)
    manager.create_queue(TOLD)
    return manager


def book(manager: merq.Manager, name: str, first: int, count: int, **properties: object) -> None:
    """Several messages in one transaction."""
    with manager.transaction() as tx:
        for number in range(first, first + count):
            manager.send(name, number, tx=tx, **properties)


def classes_told(manager: merq.Manager, count: int) -> Counter[int]:
    """What the acknowledgments in a queue say, once there are so many."""
    queue = manager.queue(TOLD)
    wait_until(lambda: len(queue) >= count, f"{count} acknowledgments came")
    return Counter(queue.receive(timeout=1).message_class for _ in range(len(queue)))


@pytest.mark.spec("MS-MQQB 3.1.5.8", "MS-MQQB 3.1.7.2.1", "MS-MQQB 3.1.5.7")
def test_two_managers_send_each_other_messages_of_every_kind(tmp_path: Path) -> None:
    with (
        stations(tmp_path, "laptop", "office") as (laptop, office),
        with_queues(laptop) as here,
        with_queues(office) as there,
    ):
        orders, bookings = office.direct("orders"), office.direct("bookings")
        told: dict[str, Any] = {
            "admin_queue": laptop.direct("told"),
            "acknowledge": ACKNOWLEDGE_ARRIVAL | ACKNOWLEDGE_RECEIVE,
        }
        here.send(orders, "low", priority=1, journal=True, **told)
        here.send(orders, "high", priority=7, recoverable=True, journal=True, **told)
        book(here, bookings, 0, BOOKED, journal=True, **told)
        there.send(laptop.direct("orders"), "and back", recoverable=True)
        assert received(here, "orders", 1) == ["and back"]
        wait_until(lambda: len(there.queue(ORDERS)) == 2, "both are there")
        assert received(there, "orders", 2) == ["high", "low"]
        assert received(there, "bookings", BOOKED) == list(range(BOOKED))
        all_of_them = BOOKED + 2
        assert classes_told(here, 2 * all_of_them) == {
            MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE: all_of_them,
            MessageClass.MQMSG_CLASS_ACK_RECEIVE: all_of_them,
        }
        wait_until_sent(here, "bookings")
        # [MS-MQQB] 3.1.5.7: of transactional ones the copy comes with the final word.
        journal = here.queue(JOURNAL)
        wait_until(lambda: len(journal) == all_of_them, "the copies are in the journal")
        assert not len(here.queue(DEAD_LETTERS))
        assert not len(here.queue(DEAD_TRANSACTIONS))


@pytest.mark.spec("MS-MQQB 3.1.5.8.5", "MS-MQQB 3.1.5.8.8")
def test_what_cannot_be_taken_comes_back_with_its_reason(tmp_path: Path) -> None:
    honest = {"exchange.insecure_nacks": "true"}
    with (
        stations(tmp_path, "laptop", "office", settings=honest) as (laptop, office),
        with_queues(laptop) as here,
        with_queues(office) as there,
    ):
        there.create_queue(r".\private$\small", quota_kb=1)
        told: dict[str, Any] = {
            "admin_queue": laptop.direct("told"),
            "acknowledge": ACKNOWLEDGE_ARRIVAL,
        }
        here.send(office.direct("nowhere"), 1, recoverable=True, dead_letter=True, **told)
        here.send(office.direct("bookings"), 2, recoverable=True, **told)
        here.send(office.direct("small"), b"x" * 5000, recoverable=True, **told)
        book(here, office.direct("orders"), 3, 1, dead_letter=True, **told)
        assert classes_told(here, 4) == {
            MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q: 1,
            MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_MSG: 1,
            MessageClass.MQMSG_CLASS_NACK_Q_EXCEED_QUOTA: 1,
            MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_Q: 1,
        }
        dead = here.queue(DEAD_TRANSACTIONS)
        wait_until(lambda: len(dead) == 1, "the transactional one is a dead letter")
        assert dead.receive(timeout=1).body == 3
        wait_until_sent(here)
        assert not any(len(queue) for queue in there.queues())


def test_three_managers_reach_each_other_by_every_kind_of_name(tmp_path: Path) -> None:
    with stations(tmp_path, "north", "east", "south") as found, ExitStack() as stack:
        peers = tmp_path / "peers.toml"
        peers.write_text("\n".join(each.peer() for each in found))
        for each in found:
            each.restart({"exchange.peers": peers})
        managers = [stack.enter_context(with_queues(each)) for each in found]
        numbers = [each.queue(BOOKINGS).number for each in managers]
        for (one, here), (other, _) in permutations(enumerate(managers), 2):
            private = rf"PRIVATE={managers[other].guid}\{numbers[other]:08x}"
            by_system = rf"DIRECT=OS:{found[other].address}\private$\orders"
            here.send(found[other].direct("orders"), f"{one} by address")
            here.send(by_system, f"{one} by host", recoverable=True)
            book(here, private, 100 * one, BOOKED)
        for other, there in enumerate(managers):
            others = [one for one in range(3) if one != other]
            words = [f"{one} by {way}" for one in others for way in ("address", "host")]
            assert sorted(received(there, "orders", 4)) == sorted(words)
            bodies = received(there, "bookings", 2 * BOOKED)
            for one in others:
                own = [each for each in bodies if each // 100 == one]
                assert own == list(range(100 * one, 100 * one + BOOKED))
        for manager in managers:
            wait_until_sent(manager, "PRIVATE=")


def test_ten_managers_all_send_to_all_others(tmp_path: Path) -> None:
    names = [f"site{number}" for number in range(10)]
    with stations(tmp_path, *names) as found, ExitStack() as stack:
        managers = [stack.enter_context(with_queues(each)) for each in found]
        for one, here in enumerate(managers):
            for other, station in enumerate(found):
                if other == one:
                    continue
                here.send(station.direct("orders"), one)
                here.send(station.direct("orders"), one, recoverable=True)
                book(here, station.direct("bookings"), 100 * one, 5)
        for other, there in enumerate(managers):
            others = [one for one in range(10) if one != other]
            assert Counter(received(there, "orders", 18)) == dict.fromkeys(others, 2)
            bodies = received(there, "bookings", 45)
            for one in others:
                own = [each for each in bodies if each // 100 == one]
                assert own == list(range(100 * one, 100 * one + 5))
        for here in managers:
            wait_until_sent(here, "bookings")
        # A session serves both ways, whoever made it: two queue managers need one, or two if
        # both began at the same time.
        assert all(each.tcp_connections <= 18 for each in found)


@pytest.mark.spec("MS-MQMQ 2.2.20.1")
def test_of_several_destinations_one_that_is_down_gets_its_copy_later(tmp_path: Path) -> None:
    with ExitStack() as stack:
        laptop, office, shop = (Station(tmp_path / name) for name in ("laptop", "office", "shop"))
        here = stack.enter_context(with_queues(stack.enter_context(laptop)))
        there = stack.enter_context(with_queues(stack.enter_context(office)))
        with shop:
            with_queues(shop).close()
            assert shop.stop() == 0
            both = f"{office.direct('orders')},{shop.direct('orders')},{laptop.direct('orders')}"
            booked = f"{office.direct('bookings')},{shop.direct('bookings')}"
            here.send(both, "to all", recoverable=True, label="first")
            book(here, booked, 0, BOOKED)
            assert received(there, "orders", 1) == ["to all"]
            assert received(there, "bookings", BOOKED) == list(range(BOOKED))
            found = here.queue(ORDERS).receive(timeout=WAIT_S)
            assert len(found.destination_queues) == 3
            waiting = outgoing_to(here, shop.address + r"\private$\orders")
            assert waiting.report.messages == 1
            wait_until(lambda: waiting.state is OutgoingState.DISCONNECTED, "nobody is there")
            laptop.kill()
            laptop.start()
            shop.start()
            with shop.connect() as late:
                message = late.queue(ORDERS).receive(timeout=WAIT_S)
                assert (message.body, message.label) == ("to all", "first")
                assert len(message.destination_queues) == 3
                assert received(late, "bookings", BOOKED) == list(range(BOOKED))
                wait_until_sent(here)
                assert not any(len(each) for each in (*late.queues(), *there.queues()))
            end_cleanly((laptop, office, shop))


def free_port(host: str) -> int:
    """A port for all queue managers of a test that cannot have addresses of their own."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("host", ["::1", "localhost"])
def test_a_manager_is_reached_by_ipv6_and_by_a_name_that_is_looked_up(
    tmp_path: Path, host: str
) -> None:
    address = "::1" if host == "::1" else "127.0.0.1"
    own_port: dict[str, object] = {"exchange.port": free_port(address)}
    own_port["exchange.ping_answer"] = "false"
    with Station(tmp_path / "office", own_port, address) as office:
        there = with_queues(office)
        number = there.queue(BOOKINGS).number
        peers = tmp_path / "peers.toml"
        peers.write_text(office.peer(host=host))
        with (
            there,
            Station(tmp_path / "laptop", own_port | {"exchange.peers": peers}) as laptop,
            laptop.connect() as here,
        ):
            book(here, rf"PRIVATE={office.guid}\{number:08x}", 0, BOOKED)
            assert received(there, "bookings", BOOKED) == list(range(BOOKED))
            wait_until_sent(here)
            assert laptop.told("session open", peer=address)
            end_cleanly((laptop, office))


@pytest.mark.spec("MS-MQQB 3.1.5.8.2", "MS-MQQB 3.1.5.7")
def test_messages_travel_over_a_hub_that_passes_them_on(tmp_path: Path) -> None:
    """The hub restarts in the middle: it keeps what it has promised to pass on."""
    with stations(tmp_path, "branch", "hub", "office") as (branch, hub, office):
        with with_queues(office) as there:
            number = there.queue(BOOKINGS).number
        for each, lines in (
            (branch, hub.peer() + office.peer(via="hub")),
            (office, hub.peer() + branch.peer(via="hub")),
            (hub, branch.peer() + office.peer()),
        ):
            path = tmp_path / f"{each.name}.toml"
            path.write_text(lines)
            each.restart({"exchange.peers": path, "exchange.forwards": str(each is hub).lower()})
        assert office.stop() == 0
        with branch.connect() as here, hub.connect() as passing:
            book(here, rf"PRIVATE={office.guid}\{number:08x}", 0, BOOKED, journal=True)
            wait_until(lambda: passing.status().messages >= BOOKED, "they are at the hub")
            hub.kill()
            hub.start()
            office.start()
            with office.connect() as there:
                assert received(there, "bookings", BOOKED) == list(range(BOOKED))
            wait_until_sent(here)
            wait_until(lambda: len(here.queue(JOURNAL)) == BOOKED, "the branch knows it")
            wait_until_sent(passing)
        assert not office.told("session open", peer=branch.address)


def test_a_queue_that_is_on_hold_keeps_its_messages_until_it_is_resumed(tmp_path: Path) -> None:
    with (
        stations(tmp_path, "laptop", "office") as (laptop, office),
        with_queues(laptop) as here,
        with_queues(office) as there,
    ):
        here.send(office.direct("orders"), 0, recoverable=True)
        assert received(there, "orders", 1) == [0]
        way = outgoing_to(here, office.address)
        way.pause()
        here.send(office.direct("orders"), 1, recoverable=True)
        time.sleep(0.5)
        assert way.state is OutgoingState.ON_HOLD
        assert not len(there.queue(ORDERS))
        way.resume()
        assert received(there, "orders", 1) == [1]


def test_a_destination_that_never_was_is_tried_again_and_again(tmp_path: Path) -> None:
    with stations(tmp_path, "laptop") as (laptop,), laptop.connect() as here:
        nobody = new_address()
        here.send(rf"DIRECT=TCP:{nobody}\private$\orders", 1, recoverable=True)
        wait_until(lambda: len(laptop.told("no connection", peer=nobody)) > 3, "it tries again")
        assert outgoing_to(here, nobody).report.messages == 1
