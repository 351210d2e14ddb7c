"""A stranger's share of the queue manager is bounded: others have their turn, whatever it sends."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from struct import pack
from uuid import UUID

import pytest

from hostile import stranger_packets as packets
from hostile.strangers import Stranger
from kit.exchange import Manager
from kit.raw_sessions import RawSession
from kit.stations import Station, end_cleanly
from merq.errors import WireError
from merq.exchange.inbound import (
    ARRIVALS_MAX,
    ARRIVALS_MIN_S,
    TELLING_S,
    TOLD_AT_ONCE,
)
from merq.model.queue import OutgoingState
from merq.wire.message import UserMessage
from merq.wire.multiqueue import MQF_ELEMENTS_MAX
from merq.wire.view import MessageView

QUEUE = r"TCP:10.0.0.1\private$\orders"
GUID = UUID(int=7).bytes_le
GUID_77 = UUID(int=77).bytes_le
MIB = 1 << 20
SLOWEST = 40.0
"""So much longer than the checking of as many bytes in small messages may a packet take."""


def office() -> tuple[Manager, int]:
    manager = Manager("office", "10.0.0.1", UUID(int=1))
    return manager, manager.create("orders")


def messages(session: RawSession, numbers: Iterator[int], size: int) -> bytes:
    guid = session.guid.bytes_le
    made = (packets.message(guid, next(numbers), QUEUE, body=b"flood") for _ in range(size))
    return b"".join(made)


# What a packet costs.


def view_s(packet: bytes) -> float:
    """How long it takes to see that a packet is in order, or is not."""
    took = []
    for _ in range(3):
        began = time.perf_counter()
        with suppress(WireError):
            MessageView(packet)
        took.append(time.perf_counter() - began)
    return min(took)


def dear_packets() -> Iterator[bytes]:
    """Packets that once took a hundred times what their size says."""
    for element in (
        packets.direct_element("OS:a\\b"),
        packets.direct_element(""),
        packets.private_element(GUID, 7),
    ):
        yield packets.message(GUID, 1, QUEUE, copies_to=[element] * MQF_ELEMENTS_MAX)
    yield packets.message(
        GUID, 1, QUEUE, copies_to=[packets.direct_element("\x01\u0100" * 500_000)]
    )
    yield packets.message(GUID, 1, QUEUE, copies_to=[packets.direct_element("\ud800" * 1_000_000)])
    straddling = packets.direct_element("\x01\u0100" * 500)
    yield packets.message(GUID, 1, QUEUE, copies_to=[straddling] * MQF_ELEMENTS_MAX)


def test_no_packet_takes_much_longer_than_small_ones_of_the_same_size() -> None:
    small = packets.message(GUID, 1, QUEUE, body=b"x")
    for packet in dear_packets():
        assert view_s(packet) < SLOWEST * view_s(small) * len(packet) / len(small)


def test_more_names_than_fit_into_a_turn_are_refused_before_they_are_read() -> None:
    element = packets.direct_element("OS:a\\b")
    UserMessage.parse(packets.message(GUID, 1, QUEUE, copies_to=[element] * MQF_ELEMENTS_MAX))
    packet = packets.message(GUID, 1, QUEUE, copies_to=[element] * (MQF_ELEMENTS_MAX + 1))
    for read in (UserMessage.parse, MessageView):
        with pytest.raises(WireError, match="element_count"):
            read(packet)


def test_a_wrong_name_behind_many_is_named_by_view_and_value_alike() -> None:
    elements = [packets.direct_element("OS:a\\b")] * 500
    for wrong in (pack("<H", 9), pack("<H", 3) + b"no end"):
        packet = packets.message(GUID, 1, QUEUE, copies_to=[*elements, wrong])
        said = []
        for read in (UserMessage.parse, MessageView):
            with pytest.raises(WireError, match=r"format_name_list\[500\]") as refused:
                read(packet)
            said.append(str(refused.value))
        assert said[0] == said[1]


# Whose turn it is.


def test_a_message_does_not_wait_for_all_that_a_stranger_sent_before() -> None:
    manager, orders = office()
    ticks = count()
    manager.exchange.inbound.clock = lambda: (
        next(ticks) * ARRIVALS_MIN_S
    )  # each packet takes so long
    stranger = RawSession.connect(manager, "10.6.6.6", UUID(int=66)).establish()
    honest = RawSession.connect(manager, "10.7.7.7", UUID(int=77)).establish()
    numbers = count(1)
    for _ in range(500):
        manager.exchange.received(stranger.link, messages(stranger, numbers, 20), 0.0)
    wanted = packets.message(honest.guid.bytes_le, 1, QUEUE, body=b"wanted")
    manager.exchange.received(honest.link, wanted, 0.0)
    manager.exchange.go_on(0.0)
    for answer in manager.host.settle():
        manager.exchange.take(answer, 0.0)
    assert b"wanted" in manager.bodies(orders)
    assert len(manager.bodies(orders)) <= ARRIVALS_MAX + 20
    assert manager.exchange.inbound.has_more


def test_no_more_messages_are_taken_at_once_than_fit_into_their_time() -> None:
    manager, orders = office()
    seconds = iter(range(100_000))
    manager.exchange.inbound.clock = lambda: float(next(seconds))  # a second for each packet
    stranger = RawSession.connect(manager, "10.6.6.6", UUID(int=66)).establish()
    numbers = count(1)
    for _ in range(300):
        manager.exchange.received(stranger.link, messages(stranger, numbers, 1), 0.0)
    taken = []
    for _ in range(4):
        before = len(manager.bodies(orders))
        manager.exchange.go_on(0.0)
        for answer in manager.host.settle():
            manager.exchange.take(answer, 0.0)
        taken.append(len(manager.bodies(orders)) - before)
        for _ in range(300):
            manager.exchange.received(stranger.link, messages(stranger, numbers, 1), 0.0)
    assert taken == [1, 1, 1, 1], "each took longer than all have together"


def test_many_senders_are_told_how_far_they_are_in_several_turns() -> None:
    manager = Manager("office", "10.0.0.1", UUID(int=1))
    sender = RawSession.connect(manager, "10.7.7.7", UUID(int=77)).establish()
    place = packets.Transaction(packets.MADE_AT << 32, 1, 0)
    sequences = 2 * TOLD_AT_ONCE + 1
    for number in range(sequences):
        manager.create(f"orders{number}", transactional=True)
        name = QUEUE + str(number)
        sender.say(packets.message(GUID_77, number + 1, name, transaction=place), 0.0)
    ticks = count()
    inbound = manager.exchange.inbound
    inbound.clock = lambda: next(ticks) * 2 * TELLING_S  # to tell some takes long
    now, turns = 60.0, 0
    manager.exchange.tick(now)
    while inbound.has_more:
        turns += 1
        manager.exchange.go_on(now)
    assert turns == 2, "so many at once, so many in the next turn, one in the last"
    inbound.clock = lambda: 0.0
    sender.settle(now)
    assert len(sender.messages()) == sequences


# The assembled service.


def pour(address: str, source: str, is_over: threading.Event) -> None:
    """Packets with as many names as may be, and small messages, until it is over."""
    with suppress(OSError, AssertionError), Stranger(address, source) as stranger:
        stranger.open()
        element = packets.direct_element("OS:a\\b")
        while not is_over.is_set():
            stranger.say(stranger.message(QUEUE, copies_to=[element] * MQF_ELEMENTS_MAX))
            stranger.say(*(stranger.message(QUEUE, body=b"x") for _ in range(200)))


def test_a_local_client_is_served_while_eight_strangers_flood(tmp_path: Path) -> None:
    with Station(tmp_path / "office", address="127.34.4.1") as station:
        is_over = threading.Event()
        with station.connect() as manager:
            queue = manager.create_queue(r".\private$\own")
            queue.send("warm")
            strangers = [
                threading.Thread(target=pour, args=(station.address, f"127.34.5.{n}", is_over))
                for n in range(1, 9)
            ]
            for each in strangers:
                each.start()
            time.sleep(0.3)
            took = []
            try:
                for number in range(20):
                    began = time.perf_counter()
                    queue.send(number, recoverable=True)
                    took.append(time.perf_counter() - began)
            finally:
                is_over.set()
                for each in strangers:
                    each.join()
            assert max(took) < 1.5, took
        end_cleanly([station])


# What is looked through.


def test_a_turn_with_thousands_of_links_and_lines_looks_at_none_of_them() -> None:
    manager, _ = office()
    for number in range(1000):
        address = f"10.9.{number >> 8}.{number & 255}"
        manager.send(rf"DIRECT=TCP:{address}\private$\q", b"x")
        RawSession.connect(manager, f"10.8.{number >> 8}.{number & 255}", UUID(int=1000 + number))
    exchange = manager.exchange
    manager.turn(0.0)
    while dialled := exchange.take_dialing():
        for link in dialled:
            exchange.dial_failed(link, "nobody answers", 0.0)
        manager.turn(0.0)
    assert manager.outgoing(r"DIRECT=TCP:10.9.3.1\private$\q").state is OutgoingState.DISCONNECTED
    took = []
    for _ in range(5):
        began = time.perf_counter()
        exchange.go_on(0.1)
        exchange.tick(0.1)
        exchange.next_deadline()
        took.append(time.perf_counter() - began)
    assert min(took) < 0.001
