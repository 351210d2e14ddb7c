"""[MS-MQSO] 6.1.1: disconnected data entry, with the wire cut and both sides killed in the middle.

A salesperson's laptop enters orders, whether or not it is connected; the central office processes
them. The first order arrives, once; the second finds no way in its time and is a dead letter.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import pytest

import merq
from acceptance.service_process import wait_until
from kit.stations import (
    Station,
    end_cleanly,
    outgoing_to,
    stations,
    wait_until_sent,
    wire_between,
)
from merq.model.message_class import MessageClass
from merq.model.queue import OutgoingState

ORDERS: Final = r".\private$\orders"
DEAD_LETTERS: Final = r".\system$;DEADXACT"
LIFETIME_S: Final = 3
"""The time that the second order has."""
WAIT_S: Final = 20.0


def enter(laptop: Station, name: str, order: str, *, lifetime_s: int = 600) -> str:
    """The order entry application: one order, in a transaction; gives its id."""
    with laptop.connect() as manager, manager.transaction() as tx:
        return manager.send(
            name,
            order,
            label=order,
            tx=tx,
            dead_letter=True,
            time_to_reach_queue=lifetime_s,
        )


def process(office: Station) -> merq.ReceivedMessage:
    """The order processing application: one order, in a transaction."""
    with office.connect() as manager, manager.transaction() as tx:
        return manager.queue(ORDERS).receive(timeout=WAIT_S, tx=tx)


def restart(station: Station) -> None:
    station.kill()
    station.start()


@pytest.mark.spec("MS-MQQB 3.1.5.6", "MS-MQQB 3.1.5.7", "MS-MQQB 3.1.6.1")
def test_an_order_arrives_once_and_the_next_expires_into_the_dead_letter_queue(
    tmp_path: Path,
) -> None:
    with stations(tmp_path, "laptop", "office") as (laptop, office):
        with office.connect() as manager:
            manager.create_queue(ORDERS, transactional=True)
        with wire_between(laptop, office) as (wire, seen, _):
            name = office.direct("orders", seen)
            # Disconnected: the order is entered all the same, and survives a power failure.
            wire.sever()
            first = enter(laptop, name, "order 1")
            restart(laptop)
            with laptop.connect() as manager:
                way = outgoing_to(manager, seen)
                wait_until(lambda: way.state is OutgoingState.DISCONNECTED, "nobody is there")
                assert way.report.messages == 1
            # Connected; the wire is cut and the office fails as soon as the order is there.
            wire.mend()
            with office.connect() as manager:
                queue = manager.queue(ORDERS)
                wait_until(lambda: len(queue) == 1, "the order is at the office")
            wire.cut()
            restart(office)
            restart(laptop)
            order = process(office)
            assert (order.body, order.id) == ("order 1", first)
            restart(office)
            # The FinalAck ends it at the laptop: it wanted a copy if it were not received.
            with laptop.connect() as manager:
                wait_until_sent(manager)
                assert not len(manager.queue(DEAD_LETTERS))
            # The second finds no way, and both sides fail meanwhile.
            wire.sever()
            second = enter(laptop, name, "order 2", lifetime_s=LIFETIME_S)
            restart(laptop)
            restart(office)
            with laptop.connect() as manager:
                dead = manager.queue(DEAD_LETTERS)
                wait_until(lambda: len(dead) == 1, "the second order is a dead letter")
                with manager.transaction() as tx:
                    letter = dead.receive(timeout=WAIT_S, tx=tx)
                assert (letter.body, letter.id) == ("order 2", second)
                assert letter.message_class == MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT
                wait_until_sent(manager)
            # The wire is there again, and nothing comes of it.
            wire.mend()
            third = enter(laptop, name, "order 3")
            assert process(office).id == third
            with office.connect() as manager:
                assert not len(manager.queue(ORDERS))
        end_cleanly((laptop, office))


@pytest.mark.spec("MS-MQQB 3.1.2.4", "MS-MQQB 3.1.6.5")
def test_an_order_that_vanished_on_the_way_is_sent_again(tmp_path: Path) -> None:
    """The connection stays and nothing arrives: nobody says so, and the time tells."""
    with stations(tmp_path, "laptop", "office") as (laptop, office):
        with office.connect() as manager:
            manager.create_queue(ORDERS, transactional=True)
        with wire_between(laptop, office) as (wire, seen, _):
            name = office.direct("orders", seen)
            first = enter(laptop, name, "order 1")
            assert process(office).id == first
            wire.is_dead = True
            second = enter(laptop, name, "order 2")
            time.sleep(0.5)
            wire.is_dead = False
            # What was said meanwhile is gone: the counts of both sides differ, the session ends,
            # and the order goes again through the next one.
            assert process(office).id == second
            with laptop.connect() as manager:
                wait_until_sent(manager)
            assert laptop.events("session closed") or office.events("session closed")
        end_cleanly((laptop, office))
