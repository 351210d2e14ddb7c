"""The splitter: packets out of a stream, however it is cut, and its failures."""

import tracemalloc

import pytest

from kit.vectors import frame, session
from merq.wire.packet import parse_packet
from merq.wire.stream import PacketSplitter, packet_length

MIB = 1024 * 1024
PARAMETERS = bytes.fromhex(
    "10 00 0b00 4c494f52 20000000 ffffffff 0000 0300 f4010000 204e0000 0000 4000"
)
ACK = bytes.fromhex(
    "10 00 1b00 4c494f52 24000000 ffffffff 0000 0100 0100 0000 00000000 0000 0000 4000 0000"
)
MESSAGE = bytes.fromhex(
    "10 00 0300 4c494f52 78000000 ffffffff"
    + "00" * 32
    + "ffffffff 77665544 ee080000 00002000"
    + "00" * 44
    + "0e800000 10660000 00000000"
)
# The same with a SessionHeader, which PacketSize leaves out.
MESSAGE_WITH_SESSION = (
    MESSAGE[:2] + b"\x13" + MESSAGE[3:] + bytes.fromhex("0100 0000 00000000 0100 0000 4000 0000")
)


def head(size: int, *, flags: int = 3) -> bytes:
    return (
        bytes.fromhex("1000") + flags.to_bytes(2, "little") + b"LIOR" + size.to_bytes(4, "little")
    )


@pytest.mark.spec("MS-MQMQ 2.2.19.1")
def test_all_packets_of_a_call_come_out_together() -> None:
    splitter = PacketSplitter()
    found = splitter.feed(session())
    assert found == [frame(number) for number in range(3, 9)]
    assert splitter.buffered == 0
    assert splitter.finish() is None


@pytest.mark.spec("MS-MQMQ 2.2.19.1", "MS-MQQB 2.2.6")
@pytest.mark.spec("E05")
def test_packet_size_counts_a_session_header_only_in_a_session_ack() -> None:
    stream = MESSAGE_WITH_SESSION + ACK + MESSAGE + MESSAGE_WITH_SESSION
    splitter = PacketSplitter()
    found = splitter.feed(stream)
    assert found == [MESSAGE_WITH_SESSION, ACK, MESSAGE, MESSAGE_WITH_SESSION]
    assert [len(packet) for packet in found] == [136, 36, 120, 136]
    assert [parse_packet(packet).pack() for packet in found] == found
    assert packet_length(stream, 0) == 136
    assert packet_length(stream, 136) == 36


def test_a_packet_comes_out_with_its_last_byte() -> None:
    splitter = PacketSplitter()
    stream = MESSAGE_WITH_SESSION + PARAMETERS
    for at, byte in enumerate(stream):
        found = splitter.feed(bytes([byte]))
        if at == 135:
            assert found == [MESSAGE_WITH_SESSION]
        elif at == len(stream) - 1:
            assert found == [PARAMETERS]
        else:
            assert found == []
    assert splitter.finish() is None


def test_what_waits_is_counted() -> None:
    splitter = PacketSplitter()
    assert splitter.buffered == 0
    splitter.feed(PARAMETERS[:5])
    assert splitter.buffered == 5
    splitter.feed(PARAMETERS[5:20])
    assert splitter.buffered == 20
    assert splitter.feed(PARAMETERS[20:] + ACK + MESSAGE[:7]) == [PARAMETERS, ACK]
    assert splitter.buffered == 7
    assert splitter.feed(b"") == []
    assert splitter.buffered == 7


def test_nothing_fed_gives_nothing() -> None:
    splitter = PacketSplitter()
    assert splitter.feed(b"") == []
    assert splitter.finish() is None
    assert splitter.failure is None


@pytest.mark.spec("MS-MQQB 3.1.5.1.2", "MS-MQMQ 2.2.19.1")
@pytest.mark.parametrize(
    ("start", "offset", "field"),
    [
        pytest.param(b"\x11" + PARAMETERS[1:], 0, "base_header", id="another version"),
        pytest.param(
            PARAMETERS[:4] + b"ROIL" + PARAMETERS[8:], 4, "base_header", id="another signature"
        ),
        pytest.param(b"GET / HTTP/1.1\r\n", 0, "base_header", id="HTTP"),
        pytest.param(bytes(16), 0, "base_header", id="zeros"),
        pytest.param(head(0) + bytes(4), 8, "base_header.packet_size", id="PacketSize 0"),
        pytest.param(head(16) + bytes(4), 8, "base_header.packet_size", id="PacketSize 16"),
        pytest.param(head(19) + bytes(4), 8, "base_header.packet_size", id="PacketSize 19"),
        pytest.param(
            head(0x00400001) + bytes(4), 8, "base_header.packet_size", id="a byte over 4 MiB"
        ),
        pytest.param(
            head(0xFFFFFFFF) + bytes(4), 8, "base_header.packet_size", id="PacketSize 4 GiB"
        ),
    ],
)
@pytest.mark.parametrize("before", [b"", PARAMETERS, PARAMETERS + MESSAGE_WITH_SESSION])
@pytest.mark.parametrize("step", [1, 7, 16, 1000])
def test_what_cannot_be_a_packet_ends_the_stream_where_it_is(
    start: bytes, offset: int, field: str, before: bytes, step: int
) -> None:
    splitter = PacketSplitter()
    stream = before + start + PARAMETERS
    found = [
        packet
        for at in range(0, len(stream), step)
        for packet in splitter.feed(stream[at : at + step])
    ]
    assert b"".join(found) == before
    failure = splitter.failure
    assert failure is not None
    assert (failure.offset, failure.field) == (len(before) + offset, field)
    assert splitter.buffered == 0
    assert splitter.feed(PARAMETERS) == []
    assert splitter.failure is failure
    assert splitter.finish() is failure


@pytest.mark.spec("MS-MQMQ 2.2.19.1")
def test_the_smallest_and_the_largest_packet_are_cut_out() -> None:
    smallest = head(20) + bytes(8)
    largest = head(4 * MIB) + bytes(4 * MIB - 12)
    splitter = PacketSplitter()
    assert splitter.feed(smallest + largest + smallest) == [smallest, largest, smallest]
    with_session = head(4 * MIB, flags=0x13) + bytes(4 * MIB - 12 + 16)
    assert splitter.feed(with_session) == [with_session]


@pytest.mark.parametrize(
    ("data", "offset", "reason"),
    [
        (PARAMETERS[:1], 0, "ends after 1 of at least 16 bytes"),
        (PARAMETERS[:15], 0, "ends after 15 of at least 16 bytes"),
        (PARAMETERS[:31], 0, "ends after 31 of at least 32 bytes"),
        (PARAMETERS + ACK[:20], 32, "ends after 20 of at least 36 bytes"),
        (PARAMETERS + MESSAGE_WITH_SESSION[:120], 32, "ends after 120 of at least 136 bytes"),
    ],
)
def test_a_stream_that_ends_inside_a_packet_says_so(data: bytes, offset: int, reason: str) -> None:
    for pieces in ([data], [data[:9], data[9:]]):
        splitter = PacketSplitter()
        for piece in pieces:
            splitter.feed(piece)
        assert splitter.failure is None
        failure = splitter.finish()
        assert failure is not None
        assert reason in failure.reason
        assert (failure.offset, failure.field) == (offset, "stream")
        assert splitter.finish() is failure
        assert splitter.feed(PARAMETERS) == []


def test_memory_follows_what_arrived_not_what_is_claimed() -> None:
    splitter = PacketSplitter()
    stream = head(4 * MIB) + bytes(4 * MIB - 12)
    tracemalloc.start()
    try:
        splitter.feed(stream[:16])
        assert tracemalloc.get_traced_memory()[1] < 20_000
        for at in range(16, 65_536):
            splitter.feed(stream[at : at + 1])
        assert splitter.buffered == 65_536
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()


def test_memory_stays_within_one_packet_while_the_largest_arrives() -> None:
    packet = head(4 * MIB) + bytes(4 * MIB - 12)
    stream = packet + packet
    splitter = PacketSplitter()
    received = 0
    tracemalloc.start()
    try:
        for at in range(0, len(stream), 65_536):
            received += sum(map(len, splitter.feed(stream[at : at + 65_536])))
            assert splitter.buffered < 4 * MIB
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert received == len(stream)
    assert splitter.buffered == 0
    # The packet that waits, the copy that is handed out, and a bytearray's spare room.
    assert peak < 10 * MIB


def test_the_largest_packet_may_arrive_byte_by_byte() -> None:
    packet = head(4 * MIB) + bytes(4 * MIB - 12)
    splitter = PacketSplitter()
    splitter.feed(packet[:-65_536])
    tracemalloc.start()
    try:
        for at in range(len(packet) - 65_536, len(packet) - 1):
            assert splitter.feed(packet[at : at + 1]) == []
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A bytearray that has to move is counted anew, but never twice.
    assert peak < 5 * MIB
    assert splitter.feed(packet[-1:]) == [packet]
    assert splitter.buffered == 0
