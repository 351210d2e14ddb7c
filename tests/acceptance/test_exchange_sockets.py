"""[MS-MQQB] on real sockets: what others say to a queue manager, as it should be and not."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Final
from uuid import UUID, uuid4

import pytest

from acceptance.service_process import wait_until
from kit.raw_peers import NULL_GUID, RawPeer, documented, establish, parameters
from kit.stations import Station, end_cleanly, new_address
from kit.vectors import frame
from merq.wire.connection import (
    RESPONSE_FILL,
    ConnectionParameters,
    EstablishConnection,
    SessionAck,
)
from merq.wire.headers import SessionHeader
from merq.wire.packet import parse_packet

OVERSIZED: Final = struct.pack("<BBHIII", 0x10, 0, 3, 0x524F494C, 0x00400001, 0)
"""The beginning of a packet that says that it is longer than a packet may be."""

PER_PEER: Final = 4
IN_ALL: Final = 10
INITIALIZATION_S: Final = 1.0
CLEANUP_S: Final = 2.0
BIT_S: Final = 0.2


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    """A queue manager with a queue."""
    with Station(tmp_path_factory.mktemp("sockets") / "office") as station:
        with station.connect() as manager:
            manager.create_queue(r".\private$\orders")
        yield station
        end_cleanly([station])


def serves(station: Station) -> bool:
    """Whether a session can be opened and a message delivered."""
    with RawPeer(station.address) as peer, station.connect() as manager:
        body = uuid4().bytes
        peer.open().say(peer.message(station.direct("orders"), body))
        found = manager.queue(r".\private$\orders").receive(timeout=20)
        return found.body_bytes == body


@pytest.mark.spec("MS-MQQB 4.1", "MS-MQQB 3.1.5.3.1", "MS-MQQB 3.1.5.4.1", "MS-MQQB 3.1.6.4")
@pytest.mark.spec("MS-MQQB 2.1", "MS-MQQB 2.1.1")
@pytest.mark.spec("MS-MQQB note 5", "MS-MQQB note 6")
def test_the_documented_exchange_goes_through_on_a_real_socket(office: Station) -> None:
    server = UUID(office.guid)
    with RawPeer(office.address) as peer:
        peer.say(documented(3, client=peer.guid, server=server))
        answer = peer.hear()
        # Public scanners know MSMQ by these: the header's first bytes and the fill.
        assert answer[:16] == bytes.fromhex("105a0b004c494f523c020000ffffffff")
        assert answer[60:] == bytes([RESPONSE_FILL]) * 512
        established = parse_packet(answer)
        assert isinstance(established, EstablishConnection)
        assert not established.internal_header.flags.refused
        assert (established.header.client_guid, established.header.server_guid) == (
            peer.guid,
            server,
        )
        assert established.header.time_stamp == 501140046
        peer.say(frame(5))
        agreed = parse_packet(peer.hear())
        assert isinstance(agreed, ConnectionParameters)
        assert (agreed.header.recoverable_ack_timeout, agreed.header.ack_timeout) == (1496, 120_000)
        peer.say(frame(7), frame(7)[:200])
        peer.say(frame(7)[200:])
        # Its AckTimeout is two minutes, so nobody would say anything of two express messages for
        # a minute; one to be kept is acknowledged soon, and those before it with it.
        peer.say(peer.message(office.direct("orders"), b"kept", recoverable=True))
        ack = peer.hear_ack()
        assert (ack.header.ack_sequence_number, ack.header.user_msg_sequence_number) == (3, 0)
        assert ack.header.recoverable_msg_ack_seq_number == 1
        assert ack.header.recoverable_msg_ack_flags == 1
    with office.connect() as manager:
        assert manager.queue(r".\private$\orders").receive(timeout=5).body_bytes == b"kept"


@pytest.mark.spec("MS-MQQB 3.1.5.3.1")
@pytest.mark.spec("MS-MQQB 3.1.5.3.1#CS")
def test_who_wants_another_queue_manager_is_refused_and_told(office: Station) -> None:
    with RawPeer(office.address) as peer:
        peer.say(frame(3))
        answer = parse_packet(peer.hear())
        assert isinstance(answer, EstablishConnection)
        assert answer.internal_header.flags.refused
        assert peer.is_cut_off()
    wait_until(lambda: any("which is not here" in each for each in office.reasons()), "a reason")


def session_ack(received: int = 0, sent: int = 0) -> bytes:
    header = SessionHeader(
        ack_sequence_number=received,
        recoverable_msg_ack_seq_number=0,
        recoverable_msg_ack_flags=0,
        user_msg_sequence_number=sent,
        recoverable_msg_seq_number=0,
        window_size=64,
    )
    return SessionAck.of(header).pack()


GREETING: Final = establish(uuid4())
WRONG_SIGNATURE: Final = GREETING[:4] + b"ROIL" + GREETING[8:]
UNKNOWN_KIND: Final = GREETING[:18] + b"\x0f\x00" + GREETING[20:]
CUT_SHORT: Final = frame(7)[:8] + struct.pack("<I", 60) + frame(7)[12:60]

WRONG: Final = {
    "no packet at all": ((b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",), "no packet starts here"),
    "another signature": ((WRONG_SIGNATURE,), "no packet starts here"),
    "a packet too long": ((OVERSIZED,), "packet_size"),
    "an unknown packet": ((UNKNOWN_KIND,), "a packet cannot be read"),
    "a message before a session": ((frame(7),), "bytes came while the session was waiting"),
    "parameters before a session": ((parameters(),), "ConnectionParameters came while"),
    "an acknowledgment before a session": ((session_ack(),), "a SessionAck came while"),
    "a message before parameters": (
        (GREETING, frame(7)),
        "bytes came while the session was waiting",
    ),
    "a second greeting": ((GREETING, GREETING), "an EstablishConnection came while"),
    "a greeting in a session": (
        (GREETING, parameters(), GREETING),
        "an EstablishConnection came while the session was open",
    ),
    "parameters twice": (
        (GREETING, parameters(), parameters()),
        "ConnectionParameters came while the session was open",
    ),
    "a message that ends in its header": (
        (GREETING, parameters(), CUT_SHORT),
        "a packet cannot be read",
    ),
    "an acknowledgment of what was not sent": (
        (GREETING, parameters(), session_ack(received=9)),
        "acknowledges 9 messages that were not sent",
    ),
    "a count of what did not come": (
        (GREETING, parameters(), session_ack(sent=5)),
        "the other side has sent 5 messages, 0 came",
    ),
}


@pytest.mark.spec("MS-MQQB 3.1.5.1", "MS-MQQB 3.1.5.9")
@pytest.mark.parametrize("name", WRONG)
def test_what_has_no_place_closes_the_session_with_a_reason(office: Station, name: str) -> None:
    packets, reason = WRONG[name]
    source = new_address()
    with RawPeer(office.address, source) as peer:
        peer.say(*packets)
        assert peer.is_cut_off()

    def is_told() -> bool:
        found = office.told("no session", peer=source) + office.told("session closed", peer=source)
        return any(reason in str(each["reason"]) for each in found)

    wait_until(is_told, f"the log says {reason!r} of {source}")
    assert serves(office)


@pytest.mark.spec("MS-MQQB 3.1.5.8.1")
@pytest.mark.spec("MS-MQQB 3.1.5.8.1#discard")
def test_a_message_that_comes_twice_is_delivered_once(office: Station) -> None:
    with RawPeer(office.address) as peer, office.connect() as manager:
        once = peer.message(office.direct("orders"), b"once", recoverable=True)
        peer.open().say(once, once)
        assert peer.hear_ack().header.recoverable_msg_ack_flags in {1, 3}
        queue = manager.queue(r".\private$\orders")
        assert queue.receive(timeout=5).body_bytes == b"once"
        assert not len(queue)


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    """A queue manager that takes few connections, and has little patience."""
    few = {
        "exchange.links_per_peer_max": PER_PEER,
        "exchange.links_max": IN_ALL,
        "exchange.initialization_s": INITIALIZATION_S,
        "exchange.cleanup_s": CLEANUP_S,
    }
    with Station(tmp_path_factory.mktemp("gate") / "gate", few) as station:
        with station.connect() as manager:
            manager.create_queue(r".\private$\orders")
        yield station
        end_cleanly([station])


@pytest.mark.limit("exchange.links_max", "exchange.links_per_peer_max")
def test_one_address_gets_so_many_connections_and_all_together_so_many(gate: Station) -> None:
    gate.wait_until_alone()
    with ExitStack() as stack:

        def connect(source: str) -> RawPeer:
            return stack.enter_context(RawPeer(gate.address, source))

        crowd = new_address()
        held = [connect(crowd).open() for _ in range(PER_PEER)]
        assert connect(crowd).is_cut_off()
        wait_until(lambda: bool(gate.told("a connection was refused", peer=crowd)), "it is told")
        held += [connect(new_address()).open() for _ in range(IN_ALL - PER_PEER)]
        assert connect(new_address()).is_cut_off()
        assert any(
            "10 connections that others have made are open" in each for each in gate.reasons()
        )
        held[0].close()
        wait_until(lambda: bool(gate.told("session closed", peer=crowd)), "one has left")
        connect(crowd).open()
    gate.wait_until_alone()


@pytest.mark.spec("MS-MQQB 3.1.6.2")
def test_who_says_nothing_or_only_half_of_it_is_cut_off_in_time(gate: Station) -> None:
    """[MS-MQQB] 3.1.2.1: a session must be open by then."""
    gate.wait_until_alone()
    began = time.monotonic()
    with (
        RawPeer(gate.address) as silent,
        RawPeer(gate.address) as halfway,
        RawPeer(gate.address) as slow,
    ):
        halfway.say(establish(halfway.guid))
        greeting = establish(slow.guid)
        with suppress(ConnectionError):
            for at in range(0, 100, 2):
                slow.say(greeting[at : at + 2])
                time.sleep(BIT_S / 4)
        assert silent.is_cut_off()
        assert halfway.is_cut_off()
        assert slow.is_cut_off()
        assert INITIALIZATION_S <= time.monotonic() - began < INITIALIZATION_S + 10
    gate.wait_until_alone()
    assert any("for too long" in each for each in gate.reasons())
    assert serves(gate)


@pytest.mark.spec("MS-MQQB 3.1.6.8")
def test_a_session_over_which_nothing_goes_is_closed(gate: Station) -> None:
    """[MS-MQQB] 3.1.2.2: the session cleanup timer."""
    source = new_address()
    with RawPeer(gate.address, source) as peer:
        peer.open()
        assert peer.is_cut_off()
    wait_until(lambda: bool(gate.told("session closed", peer=source)), "it is told")
    assert "nothing was sent for a while" in str(gate.told("session closed", peer=source)[0])


def test_a_session_is_open_to_whoever_knows_its_queue_manager(office: Station) -> None:
    with RawPeer(office.address) as peer:
        peer.say(establish(peer.guid, UUID(office.guid)), parameters())
        assert isinstance(parse_packet(peer.hear()), EstablishConnection)
        assert isinstance(parse_packet(peer.hear()), ConnectionParameters)
        assert UUID(office.guid) != NULL_GUID
