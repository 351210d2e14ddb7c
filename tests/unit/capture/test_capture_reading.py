"""Whole capture files: what comes out, what is skipped, and what a broken file still gives."""

import pytest

from merq.capture import Capture, Chunk, Datagram, Gap, SkipReason, read_capture
from unit.capture.building_captures import (
    ETHERNET,
    SYN,
    UDP,
    as_file,
    ethernet,
    ipv4,
    pcap,
    pcap_header,
    pcap_record,
    pcapng,
    tcp,
    to_server,
    udp,
    until_error,
)

PING_REQUEST = bytes.fromhex("017D485504000000D1587355509195954997B6E611EA26C6")
"""The bytes of [MS-MQQB] 4.1.1."""


@pytest.mark.spec("MS-MQQB 2.1.2")
def test_a_ping_request_is_a_datagram_to_the_port() -> None:
    packet = ipv4(udp(PING_REQUEST, ports=(4057, 3527)), protocol=UDP)
    (ping,) = read_capture(as_file(pcap([packet])))
    assert isinstance(ping, Datagram)
    assert (ping.data, ping.missing_bytes, ping.to_ping_port) == (PING_REQUEST, 0, True)
    assert (ping.time_ns, str(ping)) == (
        1_000_000_000,
        "127.0.0.2:4057 → 127.0.0.3:3527, frame 1",
    )


@pytest.mark.spec("MS-MQQB 2.1.2")
def test_a_ping_response_is_a_datagram_from_the_port() -> None:
    packet = ipv4(udp(PING_REQUEST, ports=(3527, 4057)), protocol=UDP)
    (ping,) = read_capture(as_file(pcap([packet])))
    assert isinstance(ping, Datagram)
    assert not ping.to_ping_port


def test_a_datagram_captured_too_short_says_how_much_is_missing() -> None:
    packet = ipv4(udp(PING_REQUEST), protocol=UDP)
    data = pcap_header() + pcap_record(packet[:-10], original=len(packet))
    (ping,) = read_capture(as_file(data))
    assert isinstance(ping, Datagram)
    assert (ping.data, ping.missing_bytes) == (PING_REQUEST[:-10], 10)


@pytest.mark.parametrize("order", ["<", ">"])
def test_both_formats_tell_the_same(order: str) -> None:
    packets = [
        ethernet(to_server(seq=9, flags=SYN)),
        ethernet(to_server(b"data", seq=10)),
        ethernet(ipv4(udp(b"ping"), protocol=UDP)),
    ]
    classic = list(read_capture(as_file(pcap(packets, order=order, link_type=ETHERNET))))
    newer = list(read_capture(as_file(pcapng(packets, order=order, link_type=ETHERNET))))
    assert classic == newer
    assert len(classic) == 2


def test_other_ports_may_be_asked_for() -> None:
    packets = [ipv4(tcp(b"xx", ports=(5, 8801))), ipv4(udp(b"y", ports=(6, 8527)), protocol=UDP)]
    capture = Capture(as_file(pcap(packets)), tcp_port=8801, udp_port=8527)
    _gap, chunk, datagram = capture.events()
    assert isinstance(chunk, Chunk)
    assert isinstance(datagram, Datagram)
    assert (chunk.data, datagram.data) == (b"xx", b"y")
    assert not capture.skipped


def test_what_is_skipped_is_counted_by_reason() -> None:
    packets = [
        ethernet(b"who has", ethertype=0x0806),
        ethernet(b"who has", ethertype=0x0806),
        ethernet(ipv4(tcp(b"web", ports=(50000, 80)))),
        ethernet(ipv4(udp(b"name", ports=(50000, 53)), protocol=UDP)),
        ethernet(to_server(b"data"), tags=[0x8100]),
        b"short",
    ]
    capture = Capture(as_file(pcap(packets, link_type=ETHERNET)))
    assert len(list(capture.events())) == 2
    assert capture.frame_count == 6
    assert capture.skipped == {
        SkipReason.NOT_IP: 2,
        SkipReason.OTHER_PORT: 2,
        SkipReason.CUT_OFF: 1,
    }


def test_a_cut_file_gives_everything_before_its_error() -> None:
    packets = [to_server(seq=9, flags=SYN), to_server(b"behind a gap", seq=14)]
    last = pcap_record(to_server(b"cut off here", seq=26))
    whole = pcap(packets)
    events, error = until_error(read_capture(as_file(whole + last[:-5])))
    assert error is not None
    assert error.offset == len(whole)
    assert [
        event.data if isinstance(event, Chunk) else event.missing_bytes
        for event in events
        if isinstance(event, Chunk | Gap)
    ] == [4, b"behind a gap", b"cut off", 5]
