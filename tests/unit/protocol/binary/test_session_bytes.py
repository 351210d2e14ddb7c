"""Bytes as they come: cut anyhow, wrong anyhow. No packet raises, and what is wrong closes."""

from __future__ import annotations

import itertools
import random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.messages import packets
from kit.sessions import (
    acceptor,
    acknowledgment,
    establish,
    handle,
    initiator,
    message,
    opened,
    output,
    parameters,
    session_header,
    with_header,
)
from kit.vectors import frame
from merq.protocol.binary.session import Session, SessionState
from merq.protocol.binary.settings import SessionSettings
from merq.wire.build import TransactionPlace

MUTATIONS = 10_000
PLACE = TransactionPlace(sequence_id=5, sequence_number=2, previous_sequence_number=1)


def conversation() -> bytes:
    """Everything that an initiator may say, in order."""
    return b"".join(
        [
            establish(),
            parameters(),
            message(b"one"),
            message(b"two" * 30, recoverable=True),
            acknowledgment(0, sent=2, recoverable_sent=1),
            with_header(message(b"three"), session_header(sent=3, recoverable_sent=1)),
            message(b"four", transaction=PLACE),
            acknowledgment(0, sent=4, recoverable_sent=2, window=3),
        ]
    )


def effects(session: Session[int]) -> object:
    """All that can be seen of a session."""
    return (
        session.state,
        session.closing,
        session.remote_guid,
        [view.packet for view in session.take_arrived()],
        session.acknowledged,
        session.room,
        session.is_congested,
        session.next_deadline(),
        output(session),
    )


def after(chunks: list[bytes]) -> object:
    session = acceptor()
    for chunk in chunks:
        session.receive_data(chunk, 1.0)
    return effects(session)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


# Cuts.


@given(st.lists(st.integers(0, 1 << 16), max_size=30))
@pytest.mark.spec("MS-MQQB 3.1.5.1")
def test_however_the_bytes_are_cut_the_effects_are_the_same(places: list[int]) -> None:
    data = conversation()
    assert after(cut(data, places)) == after([data])


@pytest.mark.spec("MS-MQQB 3.1.5.1")
def test_bytes_that_come_one_by_one_have_the_same_effects() -> None:
    data = conversation()
    assert after([data[at : at + 1] for at in range(len(data))]) == after([data])


@given(
    places=st.lists(st.integers(0, 1 << 16), max_size=8),
    at=st.integers(0, 1 << 16),
    wrong=st.binary(min_size=1, max_size=24),
)
@pytest.mark.spec("MS-MQQB 3.1.5.1", "MS-MQQB 3.1.5.1.3")
def test_that_holds_where_the_bytes_are_wrong_too(places: list[int], at: int, wrong: bytes) -> None:
    data = bytearray(conversation())
    at %= len(data)
    data[at : at + len(wrong)] = wrong
    assert after(cut(bytes(data), places)) == after([bytes(data)])


# Wrong packets.


def broken(packet: bytes, at: int, value: bytes) -> bytes:
    return packet[:at] + value + packet[at + len(value) :]


@pytest.mark.parametrize(
    "packet",
    [
        broken(message(), 0, b"\x11"),
        broken(message(), 4, b"ROIL"),
        broken(acknowledgment(), 7, b"\0"),
        b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
        bytes(64),
    ],
)
@pytest.mark.spec("MS-MQQB 3.1.5.1.2", "MS-MQQB 3.1.5.9")
def test_a_packet_with_another_version_or_signature_ends_the_session(packet: bytes) -> None:
    session = opened()
    output(session)
    session.receive_data(packet, 0.0)
    assert session.state is SessionState.CLOSED
    assert "no packet starts here" in session.closing
    assert session.take_arrived() == []
    assert output(session) == b""


@pytest.mark.parametrize(
    "packet",
    [
        pytest.param(broken(message(), 8, b"\x13\0\0\0"), id="too small"),
        pytest.param(broken(message(), 8, b"\x01\0\x40\0"), id="too large"),
        pytest.param(broken(message(), 8, b"\xff\xff\xff\xff"), id="enormous"),
        pytest.param(broken(message(), 62, b"\0"), id="without properties"),
        pytest.param(broken(establish(), 18, b"\x04"), id="internal of no known type"),
        pytest.param(broken(establish(), 18, b"\x00"), id="internal of type zero"),
        pytest.param(broken(establish(), 8, b"\x3b\x02\0\0")[:571], id="a byte missing"),
        pytest.param(broken(parameters(), 8, b"\x21\0\0\0") + b"\0", id="a byte too much"),
        pytest.param(broken(acknowledgment(), 2, b"\x0b"), id="an ack without its header"),
        pytest.param(broken(message(), 61, b"\x00"), id="a name of another type"),
    ],
)
@pytest.mark.spec("MS-MQQB 3.1.5.1.3", "MS-MQQB 3.1.5.1.1", "MS-MQQB 3.1.5.9")
def test_a_packet_that_is_not_as_the_document_has_it_ends_the_session(packet: bytes) -> None:
    session = opened()
    output(session)
    session.receive_data(packet, 0.0)
    assert session.state is SessionState.CLOSED
    assert "cannot be read" in session.closing
    assert session.take_arrived() == []
    assert output(session) == b""


@pytest.mark.spec("MS-MQQB 3.1.5.1.3")
def test_what_came_before_a_wrong_packet_was_heard() -> None:
    session = opened()
    session.receive_data(message(b"good") + bytes(16) + message(b"never"), 0.0)
    assert [view.body for view in session.take_arrived()] == [b"good"]
    assert session.closing


@pytest.mark.spec("MS-MQQB 3.1.5.1.3")
def test_a_claimed_length_takes_no_memory_until_the_bytes_are_there() -> None:
    session = opened(SessionSettings(unhandled_bytes_max=1000))
    session.receive_data(broken(message(), 8, b"\0\0\x40\0")[:16], 0.0)
    assert not session.closing
    assert not session.is_congested


@given(st.lists(packets(), max_size=5), st.booleans())
@pytest.mark.spec("MS-MQQB 3.1.5.1", "MS-MQQB 3.1.5.1.1")
def test_any_packets_are_heard_or_end_the_session(found: list[object], is_open: bool) -> None:
    session = opened() if is_open else acceptor()
    for packet in found:
        session.receive_data(packet.pack(), 0.0)  # type: ignore[attr-defined]
        handle(session)
    assert (session.state is SessionState.CLOSED) == bool(session.closing)


@given(st.binary(max_size=200))
@pytest.mark.spec("MS-MQQB 3.1.5.1.3")
def test_any_bytes_are_heard_or_end_the_session(data: bytes) -> None:
    for session in (acceptor(), initiator(), opened()):
        session.receive_data(data, 0.0)
        handle(session)


def mutated(chance: random.Random, packet: bytes) -> bytes:
    """The packet with a few bytes changed, doubled, or left out."""
    data = bytearray(packet)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data))
        what = chance.randrange(5)
        if what == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif what == 1:
            data[at] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
        elif what == 2:
            data[at:at] = data[at : at + chance.randint(1, 20)]
        elif what == 3 and len(data) > 40:
            del data[at : at + chance.randint(1, 20)]
        else:
            size = chance.choice([0, 16, 19, 20, 36, len(data), len(data) + 1, 0x400000, 1 << 31])
            data[8:12] = size.to_bytes(4, "little")
    return bytes(data)


@pytest.mark.spec("MS-MQQB 3.1.5.1", "MS-MQQB 3.1.5.1.3")
def test_ten_thousand_mutated_packets_raise_nothing() -> None:
    chance = random.Random(20260101)  # noqa: S311 - the same ones every time
    seeds = [
        *map(frame, range(3, 9)),
        establish(),
        parameters(),
        acknowledgment(1, recoverable=1, flags=1, sent=1),
        message(b"x" * 40),
        message(transaction=PLACE),
        with_header(message(recoverable=True), session_header(1, sent=1, recoverable_sent=1)),
    ]
    ended = survived = 0
    session = opened()
    for _ in range(MUTATIONS):
        if session.closing or chance.random() < 0.05:
            ended += bool(session.closing)
            session = chance.choice([opened, acceptor, initiator])(
                SessionSettings(window=8, merq_window=8)
            )
            if session.is_open and session.room:
                session.send(message(), 1, 0.0, is_recoverable=False)
        session.receive_data(mutated(chance, chance.choice(seeds)), 0.0)
        handle(session)
        assert (session.state is SessionState.CLOSED) == bool(session.closing)
        survived += not session.closing
        session.take_output()
    assert ended > MUTATIONS // 10
    assert survived > MUTATIONS // 10, "most would say nothing about what is heard"


@pytest.mark.spec("MS-MQQB 3.1.5.3.1")
def test_a_null_identifier_is_nobody_in_particular() -> None:
    session = acceptor()
    session.receive_data(establish(client=UUID(int=0)), 0.0)
    assert not session.closing
