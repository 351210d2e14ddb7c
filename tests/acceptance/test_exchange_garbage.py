"""Mutated packets on the port that queue managers have: nothing stops, and nothing is left.

`MERQ_PACKETS` sends more of them, `MERQ_SEED` others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Final
from uuid import UUID

import pytest

from acceptance.service_process import wait_until
from kit.raw_peers import RawPeer, establish, parameters
from kit.stations import Station, end_cleanly, new_address
from kit.vectors import frame
from merq.model.names import PrivateName
from merq.wire.acks import (
    AckEnvelope,
    FinalAckBody,
    OrderAckBody,
    final_ack,
    order_ack,
)
from merq.wire.build import Outline, TransactionPlace, build_packet
from merq.wire.connection import SessionAck
from merq.wire.headers import SessionHeader, TxSequenceID

PACKETS: Final = int(os.environ.get("MERQ_PACKETS", "10000"))
SEED: Final = int(os.environ.get("MERQ_SEED", "20265"))
TOGETHER: Final = 4
"""So many packets go over one connection, if it lasts."""
WARMING: Final = 1000
"""Packets before it is looked what the queue manager takes."""
KEPT_BYTES_MAX: Final = 48 << 20
"""What it may take more after all of them: identifiers and sequences that it remembers."""
LEFT: Final = "the other side closed the connection"
EDGES: Final = (0, 1, 0x7F, 0x80, 0xFF)


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    """A queue manager with queues of both kinds."""
    patient = {"exchange.initialization_s": 5}
    with Station(tmp_path_factory.mktemp("garbage") / "office", patient) as station:
        with station.connect() as manager:
            manager.create_queue(r".\private$\orders")
            manager.create_queue(r".\private$\bookings", transactional=True)
            manager.create_queue(r".\private$\told")
        yield station
        end_cleanly([station])


def samples(station: Station) -> list[bytes]:
    """Packets of every kind, each of which would be welcome."""
    own, other = UUID(station.guid), UUID("5c9f1a2b-0000-4000-8000-000000000007")
    with station.connect() as manager:
        told = PrivateName(computer=own, number=manager.queue(r".\private$\told").number)
    plain = Outline(
        destination=station.direct("orders").removeprefix("DIRECT="),
        source_queue_manager=other.bytes_le,
        body=b"body" * 20,
        label="label",
        admin_queue=told,
        acknowledgments=0x0F,
        negative_journaling=True,
    )
    place = TransactionPlace(sequence_id=1, sequence_number=1, previous_sequence_number=0)
    booking = replace(
        plain,
        destination=station.direct("bookings").removeprefix("DIRECT="),
        recoverable=True,
        transaction=place,
    )
    envelope = AckEnvelope(source_queue_manager=other, destination=own, sent_time=1, message_id=1)
    sequence = TxSequenceID(ordinal=1, time_stamp=1)
    ordered = OrderAckBody(
        tx_sequence_id=sequence, tx_sequence_number=1, tx_previous_sequence_number=0
    )
    finished = FinalAckBody(
        tx_sequence_id=sequence,
        tx_sequence_number=1,
        tx_previous_sequence_number=0,
        source_guid=own,
        message_id=1,
    )
    nothing_yet = SessionHeader(
        ack_sequence_number=0,
        recoverable_msg_ack_seq_number=0,
        recoverable_msg_ack_flags=0,
        user_msg_sequence_number=0,
        recoverable_msg_seq_number=0,
        window_size=64,
    )
    return [
        establish(other),
        parameters(),
        frame(7),
        SessionAck.of(nothing_yet).pack(),
        *(build_packet(each) for each in (plain, replace(plain, recoverable=True), booking)),
        order_ack(envelope, ordered).pack(),
        final_ack(envelope, finished, 0x4000).pack(),
    ]


def numbered(packet: bytes, chance: Random) -> bytes:
    """A message with another number, so that it is no duplicate."""
    if packet[2] & 0x08 or len(packet) < 64:
        return packet
    return packet[:56] + chance.randbytes(4) + packet[60:]


def mutated(packet: bytes, chance: Random) -> bytes:
    """A packet with something wrong, or strange, or nothing."""
    data = bytearray(numbered(packet, chance))
    kind = chance.randrange(8)
    if kind == 0:
        del data[chance.randrange(len(data)) :]
    elif kind == 1:
        data += chance.randbytes(chance.randrange(1, 100))
        data[8:12] = len(data).to_bytes(4, "little")
    elif kind == 2:
        at = chance.randrange(len(data))
        data[at : at + 4] = chance.randbytes(4)
    elif kind == 3:
        data[2:4] = chance.randbytes(2)
    elif kind == 4:
        data[8:12] = chance.randrange(1 << chance.randrange(1, 33)).to_bytes(4, "little")
    else:
        # Behind the first header, so that it is read.
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(16, len(data))
            data[at] = chance.choice((chance.randrange(256), *EDGES))
    return bytes(data)


def shower(station: Station, source: str, count: int, chance: Random) -> int:
    """Sends so many mutated packets; gives how many connections that took."""
    known = samples(station)
    connections = 0
    for _ in range(0, count, TOGETHER):
        connections += 1
        with RawPeer(station.address, source) as peer, suppress(ConnectionError, TimeoutError):
            packets = [mutated(chance.choice(known), chance) for _ in range(TOGETHER)]
            if chance.random() < 0.9:
                peer.open()
            peer.say(*packets)
            if chance.random() < 0.5:
                peer.socket.settimeout(0.02)
                peer.hear()
    return connections


def empty(station: Station) -> None:
    """What came nevertheless is thrown away."""
    with station.connect() as manager:
        for queue in manager.queues():
            queue.purge()
        for name in (r".\system$;DEADLETTER", r".\system$;DEADXACT"):
            manager.queue(name).purge()


def test_the_samples_would_be_welcome(office: Station) -> None:
    """Otherwise all mutated packets would be refused for one and the same reason."""
    source = new_address()
    with RawPeer(office.address, source) as peer:
        peer.open()
        peer.say(*(each for each in samples(office) if not each[2] & 0x08))
        assert peer.hear_ack().header.ack_sequence_number > 0
    with office.connect() as manager:
        queue = manager.queue(r".\private$\bookings")
        wait_until(lambda: len(queue) > 0, "the transactional one is there")
        queue.purge()
    assert office.told("session closed", peer=source, reason=LEFT)


def test_mutated_packets_leave_nothing_behind(office: Station) -> None:
    chance = Random(SEED)  # noqa: S311 - repeatable on purpose
    source = new_address()
    shower(office, source, WARMING, chance)
    office.wait_until_alone()
    empty(office)
    rss, threads = office.rss_bytes, office.threads
    wait_until(lambda: office.descriptors < 40, "few files are open")
    descriptors = office.descriptors
    connections = shower(office, source, PACKETS, chance)
    print(f"{PACKETS} packets over {connections} connections")
    office.wait_until_alone()
    empty(office)
    assert office.threads <= threads + 1
    wait_until(lambda: office.descriptors <= descriptors, "all files are closed")
    assert office.rss_bytes - rss < KEPT_BYTES_MAX
    with office.connect() as manager:
        status = manager.status()
        assert (status.connections, status.readers, status.transactions) == (1, 0, 0)
        assert status.outgoing_queues < 100
    reasons = " ".join(set(office.reasons()))
    for words in ("no packet starts here", "a packet cannot be read", "came while the session"):
        assert words in reasons, words
    with RawPeer(office.address) as peer, office.connect() as manager:
        peer.open().say(peer.message(office.direct("orders"), b"still there"))
        found = manager.queue(r".\private$\orders").receive(timeout=20)
        assert found.body_bytes == b"still there"
