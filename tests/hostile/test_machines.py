"""Whatever strangers and applications say, by chance: the same machines that `make fuzz` drives."""

from __future__ import annotations

from random import Random
from typing import Final

import pytest

from hostile import application_machine, exchange_machine
from hostile import stranger_packets as packets
from hostile.choosing import Choices
from kit.exchange import START, Manager
from kit.raw_sessions import RawSession

SEEDS: Final = 40
INPUT_BYTES: Final = 400


def chance(seed: int) -> bytes:
    return Random(seed).randbytes(INPUT_BYTES)  # noqa: S311 - repeatable on purpose


@pytest.mark.parametrize("first", range(0, SEEDS, 10))
def test_nothing_that_strangers_say_breaks_a_queue_manager(first: int) -> None:
    for seed in range(first, first + 10):
        exchange_machine.one_input(chance(seed))


@pytest.mark.parametrize("first", range(0, SEEDS, 10))
def test_nothing_that_applications_ask_breaks_a_service(first: int) -> None:
    for seed in range(first, first + 10):
        application_machine.one_input(chance(seed))


def test_the_machines_do_something() -> None:
    """Sessions open and messages are acknowledged; else nothing would be tried."""
    kept = told = 0
    for seed in range(10):
        machine = exchange_machine.ExchangeMachine(Choices(chance(seed)))
        machine.run()
        kept += len(machine.kept)
        application = application_machine.ApplicationMachine(Choices(chance(seed)))
        application.run()
        told += len(application.told)
    assert kept > 3
    assert told > 3


def test_a_clock_beyond_2106_stops_nothing() -> None:
    manager = Manager("m1", "10.0.0.1", exchange_machine.OURS)
    manager.create("plain")
    manager.host.engine.tick(START)
    manager.host.engine.tick(0xFFFFFFFF + 10)
    stranger = RawSession.connect(manager, "10.0.0.2", exchange_machine.FRIEND).establish()
    name = r"TCP:10.0.0.1\private$\plain"
    told = r"TCP:10.0.0.2\private$\told"
    stranger.say(
        packets.message(
            exchange_machine.FRIEND.bytes_le, 1, name, admin=told, asked=packets.PA | packets.NA
        )
    )
    assert len(manager.host.engine.outgoing_queues()) == 1
