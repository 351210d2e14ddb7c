"""From captures, and from bytes one after the other, to packets."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kit.vectors import frame, session
from merq.capture.captured import CapturedPackets
from merq.capture.packets import Decoded, Finding, Origin, PacketStream, PingRoles, Undecoded
from unit.capture.building_captures import (
    ACK,
    CLIENT,
    CLIENT_PORT,
    FIN,
    SERVER,
    SYN,
    UDP,
    as_file,
    ipv4,
    pcap,
    pcap_header,
    pcap_record,
    pcapng,
    to_client,
    to_server,
    udp,
)

ESTABLISH, PARAMETERS, MESSAGE, SESSION_ACK = frame(3), frame(5), frame(7), frame(8)
ASKED = ESTABLISH + PARAMETERS + MESSAGE
ASKED_KINDS = ["EstablishConnection", "ConnectionParameters", "UserMessage"]


def found_in(file: bytes) -> list[Finding]:
    capture = CapturedPackets(as_file(file), tcp_port=1801, udp_port=3527)
    return list(capture.findings())


def kinds(findings: Sequence[Finding]) -> list[str]:
    """What each packet is, or why there is none."""
    return [each.kind if isinstance(each, Decoded) else each.reason for each in findings]


def pieces(data: bytes, size: int) -> list[bytes]:
    """IPv4 packets that carry this stream to the server, so many bytes in each, after a SYN."""
    return [
        to_server(flags=SYN, seq=0),
        *(to_server(data[at : at + size], seq=1 + at) for at in range(0, len(data), size)),
    ]


def stream_of(*chunks: bytes) -> list[Finding]:
    stream = PacketStream()
    findings = [finding for chunk in chunks for finding in stream.feed(chunk)]
    return [*findings, *stream.finish()]


@pytest.mark.spec("MS-MQQB 2.1.1")
@pytest.mark.parametrize("size", [1, 7, 16, 113, 1460, 65000])
def test_packets_are_found_however_tcp_cuts_them(size: int) -> None:
    findings = found_in(pcap(pieces(ASKED, size)))
    assert kinds(findings) == ASKED_KINDS
    assert [each.offset for each in findings] == [0, 572, 604]


def test_segments_out_of_order_and_repeated_are_put_in_order() -> None:
    syn, *rest = pieces(ASKED, 97)
    assert kinds(found_in(pcapng([syn, *rest[::-1], *rest]))) == ASKED_KINDS


def test_a_packet_tells_the_frame_that_completed_it_and_who_sent_it() -> None:
    findings = found_in(
        pcap([*pieces(PARAMETERS, 20), to_client(PARAMETERS, seq=1), to_client(b"", flags=FIN)])
    )
    assert [each.origin for each in findings] == [
        Origin(
            frame=3,
            time_ns=3_000_000_000,
            source=f"{CLIENT}:{CLIENT_PORT}",
            destination=f"{SERVER}:1801",
        ),
        Origin(
            frame=4,
            time_ns=4_000_000_000,
            source=f"{SERVER}:1801",
            destination=f"{CLIENT}:{CLIENT_PORT}",
        ),
    ]
    assert findings[0].origin is not None
    assert findings[0].origin.time == "1970-01-01T00:00:03.000000Z"


def test_bytes_that_the_capture_lacks_are_told_and_the_next_packet_is_found() -> None:
    segments = pieces(ASKED, 572)
    del segments[1]
    findings = found_in(pcap(segments))
    assert kinds(findings) == ["the capture lacks 572 bytes here", *ASKED_KINDS[1:]]
    assert [each.offset for each in findings] == [0, 572, 604]


def test_a_gap_inside_a_packet_costs_only_that_packet() -> None:
    segments = pieces(ASKED + SESSION_ACK, 100)
    lacking = 8
    del segments[lacking]
    findings = found_in(pcap(segments))
    assert kinds(findings) == [
        *ASKED_KINDS[:2],
        "the bytes end inside a packet: 96 of 2224",
        "the capture lacks 100 bytes here",
        "SessionAck",
    ]
    assert [each.offset for each in findings] == [0, 572, 604, 700, 2828]


def test_a_frame_captured_too_short_is_a_gap() -> None:
    packet = to_server(PARAMETERS, seq=1)
    cut = pcap_record(packet[:-10], original=len(packet))
    after = pcap_record(to_server(SESSION_ACK, seq=1 + len(PARAMETERS)))
    findings = found_in(pcap_header() + cut + after)
    assert kinds(findings) == [
        "the bytes end inside a packet: 22 of 32",
        "the capture lacks 10 bytes here",
        "SessionAck",
    ]
    assert findings[2].offset == 32


def test_a_capture_that_begins_inside_a_packet_is_taken_up_at_the_next_one() -> None:
    findings = found_in(pcap([to_server(MESSAGE[1000:] + SESSION_ACK, seq=77)]))
    assert kinds(findings) == ["SessionAck"]
    assert findings[0].offset == 1224


def test_bytes_between_packets_are_told_once_and_passed_over() -> None:
    rubbish = bytes(range(100, 200))
    for size in (1, 5, 13, 64, 1000):
        findings = found_in(pcap(pieces(PARAMETERS + rubbish + SESSION_ACK, size)))
        assert [type(each) for each in findings] == [Decoded, Undecoded, Decoded]
        assert [each.offset for each in findings] == [0, 32, 132]


@pytest.mark.parametrize("size", [1, 2, 10, 15, 16, 17, 100])
def test_a_packet_that_begins_right_after_a_wrong_byte_is_not_lost(size: int) -> None:
    findings = found_in(pcap(pieces(PARAMETERS + b"XX" + SESSION_ACK, size)))
    assert [type(each) for each in findings] == [Decoded, Undecoded, Decoded]
    assert findings[2].offset == 34


def test_the_two_sides_are_cut_each_on_its_own() -> None:
    half = len(ESTABLISH) // 2
    frames = [
        to_server(flags=SYN, seq=0),
        to_client(flags=SYN | ACK, seq=0, ack=1),
        to_server(ESTABLISH[:half], seq=1),
        to_client(frame(4)[:100], seq=1),
        to_server(ESTABLISH[half:], seq=1 + half),
        to_client(frame(4)[100:], seq=101),
    ]
    findings = found_in(pcap(frames))
    assert kinds(findings) == ["EstablishConnection"] * 2
    assert [each.origin.frame for each in findings if each.origin] == [5, 6]


def test_a_packet_cut_off_by_the_end_of_its_connection_tells_whose_it_was() -> None:
    frames = [
        to_server(flags=SYN, seq=0),
        to_client(flags=SYN | ACK, seq=0, ack=1),
        to_server(PARAMETERS[:20], seq=1),
        to_server(flags=FIN | ACK, seq=21),
        to_client(flags=FIN | ACK, seq=1),
    ]
    for shown in (frames, frames[:3]):
        (finding,) = found_in(pcap(shown))
        assert isinstance(finding, Undecoded)
        assert finding.reason == "the bytes end inside a packet: 20 of 32"
        assert finding.origin is not None
        assert finding.origin.source == f"{CLIENT}:{CLIENT_PORT}"


def test_a_capture_file_that_is_cut_off_gives_what_it_has_and_says_where() -> None:
    whole = pcap([to_server(PARAMETERS, seq=1), to_server(SESSION_ACK, seq=33)])
    findings = found_in(whole[:-4])
    assert kinds(findings)[0] == "ConnectionParameters"
    assert any("the file ends after" in reason for reason in kinds(findings)[1:])


@pytest.mark.spec("MS-MQQB 2.1.2", "MS-MQQB 2.2.7")
@pytest.mark.spec("E20")
def test_the_port_tells_a_ping_request_from_its_response() -> None:
    ask = ipv4(udp(frame(1), ports=(4057, 3527)), protocol=UDP)
    answer = ipv4(udp(frame(2), ports=(3527, 4057)), protocol=UDP)
    assert kinds(found_in(pcap([answer, ask]))) == ["PingResponse", "PingRequest"]


@pytest.mark.spec("MS-MQQB 2.1.2")
@pytest.mark.spec("E20")
def test_pings_between_two_ping_ports_are_told_apart_by_cookie() -> None:
    ask = ipv4(udp(frame(1), ports=(3527, 3527)), protocol=UDP)
    answer = ipv4(udp(frame(2), ports=(3527, 3527)), protocol=UDP)
    assert kinds(found_in(pcap([ask, answer]))) == ["PingRequest", "PingResponse"]


@pytest.mark.parametrize("data", [b"", frame(1)[:23], frame(1) + b"\0", bytes(24)])
def test_a_datagram_that_is_no_ping_is_told(data: bytes) -> None:
    (finding,) = found_in(pcap([ipv4(udp(data), protocol=UDP)]))
    assert isinstance(finding, Undecoded)


def test_nothing_of_a_session_is_taken_for_a_ping() -> None:
    (finding,) = found_in(pcap(pieces(frame(1), 24)))
    assert isinstance(finding, Undecoded)


def test_a_summary_says_why_frames_led_to_nothing() -> None:
    capture = CapturedPackets(
        as_file(pcap([ipv4(udp(b"x", ports=(53, 53)), protocol=UDP)])), tcp_port=1801, udp_port=3527
    )
    assert list(capture.findings()) == []
    assert capture.summary() == "1 frames, of these 1 not to or from the ports looked at"


# Bytes one after the other, without a capture.


@pytest.mark.parametrize("size", [1, 3, 16, 1000])
def test_a_stream_gives_each_packet_with_its_offset_however_it_is_cut(size: int) -> None:
    data = session()
    findings = stream_of(*(data[at : at + size] for at in range(0, len(data), size)))
    assert [each.offset for each in findings] == [0, 572, 1144, 1176, 1208, 3432]
    assert all(isinstance(each, Decoded) for each in findings)


def test_a_packet_that_is_cut_right_but_says_nonsense_is_told_in_its_place() -> None:
    broken = bytearray(PARAMETERS)
    broken[18] = 7
    findings = stream_of(PARAMETERS + broken + SESSION_ACK)
    assert [type(each) for each in findings] == [Decoded, Undecoded, Decoded]
    assert 32 <= findings[1].offset < 64


@pytest.mark.parametrize(("at", "value"), [(0, 0x11), (4, 0x4D), (8, 0x01), (11, 0x01)])
def test_a_packet_with_a_broken_header_does_not_hide_the_next(at: int, value: int) -> None:
    broken = bytearray(PARAMETERS)
    broken[at] = value
    findings = stream_of(PARAMETERS + broken + SESSION_ACK)
    assert [type(each) for each in findings] == [Decoded, Undecoded, Decoded]
    assert findings[2].offset == 64


def test_a_packet_that_claims_more_than_there_is_does_not_hide_the_next() -> None:
    broken = bytearray(PARAMETERS)
    broken[8:12] = (4000).to_bytes(4, "little")
    findings = stream_of(bytes(broken), SESSION_ACK, PARAMETERS)
    assert kinds(findings) == [
        "the bytes end inside a packet: 100 of 4000",
        "SessionAck",
        "ConnectionParameters",
    ]
    assert [each.offset for each in findings] == [0, 32, 68]


def test_a_size_beyond_the_limit_is_refused_at_once() -> None:
    broken = bytearray(PARAMETERS)
    broken[8:12] = b"\xff\xff\xff\xff"
    stream = PacketStream()
    (finding,) = stream.feed(bytes(broken))
    assert isinstance(finding, Undecoded)
    assert "packet_size" in finding.reason
    assert finding.offset == 8


def test_skipped_bytes_count_in_the_offsets_after_them() -> None:
    stream = PacketStream()
    (whole,) = stream.feed(PARAMETERS + SESSION_ACK[:10])
    assert whole.offset == 0
    assert len(list(stream.finish())) == 1
    assert stream.offset == 42
    stream.skip(100)
    (finding,) = stream.feed(SESSION_ACK[10:] + PARAMETERS)
    assert finding.offset == 42 + 100 + 26


@pytest.mark.spec("MS-MQQB 2.2.7")
def test_without_ports_the_cookie_tells_who_answers() -> None:
    stream = PacketStream(PingRoles())
    data = frame(1) + frame(2) + frame(1) + frame(1)
    assert kinds(list(stream.feed(data))) == [
        "PingRequest",
        "PingResponse",
        "PingRequest",
        "PingRequest",
    ]


@pytest.mark.spec("MS-MQQB 2.2.7")
def test_a_ping_that_refuses_is_a_response() -> None:
    refusing = bytearray(frame(2))
    refusing[0] |= 2
    assert kinds(list(PacketStream(PingRoles()).feed(bytes(refusing)))) == ["PingResponse"]
