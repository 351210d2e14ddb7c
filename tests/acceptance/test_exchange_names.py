"""Queues that messages from real sockets name, and who sent them, everywhere people look."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import merq.aio
from acceptance.service_process import environment
from kit.naming_queues import SHOWN, SID, SID_TEXT, SOURCE, from_sender, naming
from kit.raw_peers import NULL_GUID, RawPeer
from kit.stations import Station, end_cleanly
from kit.vectors import frame

MERQ = Path(sys.executable).parent / "merq"
ORDERS = r".\private$\orders"


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    """A queue manager with a queue."""
    with Station(tmp_path_factory.mktemp("names") / "office") as station:
        with station.connect() as manager:
            manager.create_queue(ORDERS)
        yield station
        end_cleanly([station])


def run_merq(station: Station, *arguments: str, given: bytes = b"") -> str:
    done = subprocess.run(
        [str(MERQ), *arguments],
        input=given,
        capture_output=True,
        check=True,
        timeout=30,
        env=environment(MERQ_URL=station.url, COLUMNS="200"),
    )
    return done.stdout.decode()


def deliver(station: Station, *, admin: int, response: int) -> str:
    """A message of somebody else comes over a socket; gives its identifier."""
    with RawPeer(station.address) as peer, station.connect() as manager:
        peer.open()
        packet = naming(
            peer.message(station.direct("orders"), b"order", recoverable=True),
            admin=admin,
            response=response,
            source=peer.guid,
            target=NULL_GUID,
        )
        peer.say(from_sender(packet))
        return manager.queue(ORDERS).peek(timeout=20).id


@pytest.mark.parametrize(("admin", "response"), [(5, 6), (6, 1), (2, 5), (6, 4), (7, 2)])
@pytest.mark.spec("MS-MQMQ 2.2.19.2", "MS-MQMQ 2.2.20.6", "MS-MQDMPR 3.1.7.1.31")
def test_every_way_to_look_at_a_message_shows_the_queues_that_it_names(
    office: Station, admin: int, response: int
) -> None:
    message_id = deliver(office, admin=admin, response=response)
    source = message_id.partition("}")[0].removeprefix("{")
    said = SHOWN | {1: SHOWN[admin], 4: SHOWN[6].replace("2b", "2a")}
    names = {
        name: said[kind].replace(str(SOURCE), source)
        for name, kind in (("admin_queue", admin), ("response_queue", response))
    }
    destination = office.direct("orders")

    for verb in ("peek", "receive"):
        (line,) = run_merq(office, verb, "orders", "--json").splitlines()[:1]
        found = json.loads(line)
        assert {name: found[name] for name in names} == names
        assert (found["destination"], found["sender_id"]) == (destination, SID_TEXT)
        if verb == "peek":
            text = run_merq(office, "peek", "orders")
            assert all(name in text for name in (*names.values(), SID_TEXT, destination))
            assert destination in run_merq(office, "why", message_id)
            with office.connect() as manager:
                message = manager.queue(ORDERS).peek()
            assert (message.admin_queue, message.response_queue) == tuple(names.values())
            assert (message.sender_id, message.sender) == (SID, SID_TEXT)
            waiting = asyncio.run(peeked(office))
            assert (waiting.admin_queue, waiting.response_queue) == tuple(names.values())


async def peeked(station: Station) -> merq.ReceivedMessage:
    async with await merq.aio.connect(station.url) as manager:
        return await (await manager.queue(ORDERS)).peek()


@pytest.mark.spec("MS-MQMQ 2.2.19.2")
def test_a_message_by_identifiers_shows_where_it_was_sent(office: Station) -> None:
    with office.connect() as manager:
        queue = manager.queue(ORDERS)
        name = rf"PRIVATE={office.guid}\{queue.properties.number:08x}"
        message_id = manager.send(name, "by number")
    (found,) = map(json.loads, run_merq(office, "peek", "orders", "--json").splitlines())
    assert found["destination"] == name
    assert name in run_merq(office, "why", message_id)
    run_merq(office, "receive", "orders")


@pytest.mark.parametrize(("admin", "response"), [(5, 6), (6, 1), (2, 5), (6, 4)])
@pytest.mark.spec("MS-MQMQ 2.2.19.2")
def test_a_decoded_packet_has_the_names_of_its_queues(
    office: Station, admin: int, response: int
) -> None:
    packet = naming(documented_message(), admin=admin, response=response)
    line = run_merq(office, "decode", "--json", given=packet)
    names = json.loads(line)["format_names"]
    said = SHOWN | {1: SHOWN[admin], 4: SHOWN[6].replace("2b", "2a")}
    assert (names["admin_queue"], names["response_queue"]) == (said[admin], said[response])
    assert said[admin] in run_merq(office, "decode", given=packet)


def documented_message() -> bytes:
    """[MS-MQQB] 4.1.7."""
    return frame(7)
