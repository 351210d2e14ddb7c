"""Link layers, IP, TCP and UDP of single frames."""

from ipaddress import ip_address

import pytest

from merq.capture.frames import (
    EXTENSION_HEADER_COUNT_MAX,
    VLAN_TAG_COUNT_MAX,
    Endpoint,
    SkipReason,
    TcpFlag,
    TcpSegment,
    UdpDatagram,
    parse_frame,
)
from merq.capture.source import CapturedFrame
from unit.capture.building_captures import (
    ACK,
    CLIENT,
    ETHERNET,
    PSH,
    RAW,
    SERVER,
    UDP,
    cooked,
    cooked_2,
    ethernet,
    ipv4,
    ipv6,
    tcp,
    udp,
)

V4 = ipv4(tcp(b"payload"))
V6 = ipv6(tcp(b"payload"))
NULL, LOOP, SLL, SLL2 = 0, 108, 113, 276


def captured(data: bytes, *, link_type: int = RAW, original: int | None = None) -> CapturedFrame:
    return CapturedFrame(
        number=12,
        time_ns=99,
        link_type=link_type,
        original_length=len(data) if original is None else original,
        data=data,
    )


def segment(data: bytes, *, link_type: int = RAW, original: int | None = None) -> TcpSegment:
    found = parse_frame(captured(data, link_type=link_type, original=original))
    assert isinstance(found, TcpSegment)
    return found


@pytest.mark.parametrize(
    ("link_type", "data"),
    [
        (ETHERNET, ethernet(V4)),
        (ETHERNET, ethernet(V4, tags=[0x8100])),
        (ETHERNET, ethernet(V4, tags=[0x88A8, 0x8100])),
        (ETHERNET, ethernet(V4, tags=[0x9100] * VLAN_TAG_COUNT_MAX)),
        (ETHERNET, ethernet(V6, ethertype=0x86DD)),
        (RAW, V4),
        (RAW, V6),
        (12, V4),
        (14, V6),
        (228, V4),
        (229, V6),
        (NULL, b"\x02\x00\x00\x00" + V4),
        (NULL, b"\x00\x00\x00\x02" + V4),
        (NULL, b"\x17\x00\x00\x00" + V6),
        (NULL, b"\x00\x00\x00\x1e" + V6),
        (LOOP, b"\x00\x00\x00\x02" + V4),
        (LOOP, b"\x00\x00\x00\x18" + V6),
        (SLL, cooked(V4)),
        (SLL, cooked(V6, ethertype=0x86DD)),
        (SLL2, cooked_2(V4)),
        (SLL2, cooked_2(V6, ethertype=0x86DD)),
    ],
)
def test_tcp_is_found_behind_every_link_layer(link_type: int, data: bytes) -> None:
    assert segment(data, link_type=link_type).payload == b"payload"


def test_a_segment_has_all_that_its_headers_say() -> None:
    data = ipv4(tcp(b"payload", seq=0xFFFF_FFF0, ack=7, flags=PSH | ACK, ports=(49759, 1801)))
    assert segment(data) == TcpSegment(
        frame_number=12,
        time_ns=99,
        source=Endpoint(address=ip_address(CLIENT), port=49759),
        destination=Endpoint(address=ip_address(SERVER), port=1801),
        sequence_number=0xFFFF_FFF0,
        acknowledgment_number=7,
        flags=TcpFlag.PSH | TcpFlag.ACK,
        length=7,
        payload=b"payload",
    )


def test_a_datagram_has_all_that_its_headers_say() -> None:
    data = ipv6(udp(b"ping", ports=(4057, 3527)), protocol=UDP)
    assert parse_frame(captured(data)) == UdpDatagram(
        frame_number=12,
        time_ns=99,
        source=Endpoint(address=ip_address("fe80::2"), port=4057),
        destination=Endpoint(address=ip_address("fe80::3"), port=3527),
        length=4,
        payload=b"ping",
    )


def test_endpoints_are_written_as_people_write_them() -> None:
    assert str(Endpoint(address=ip_address("127.0.0.2"), port=49759)) == "127.0.0.2:49759"
    assert str(Endpoint(address=ip_address("::1"), port=1801)) == "[::1]:1801"


def test_options_of_ip_and_tcp_are_no_payload() -> None:
    data = ipv4(tcp(b"payload", options=bytes(12)), options=bytes(8))
    assert segment(data).payload == b"payload"


def test_padding_behind_the_packet_is_no_payload() -> None:
    found = segment(ethernet(ipv4(tcp())) + bytes(6), link_type=ETHERNET)
    assert (found.length, found.payload) == (0, b"")


def test_bytes_that_the_capture_cut_away_count_in_the_length() -> None:
    found = segment(V4[:-3], original=len(V4))
    assert (found.length, found.payload) == (7, b"payl")


def test_a_segment_cut_inside_its_options_has_its_length_and_no_payload() -> None:
    data = ipv4(tcp(b"payload", options=bytes(12)))
    found = segment(data[: 20 + 22], original=len(data))
    assert (found.length, found.payload) == (7, b"")


@pytest.mark.parametrize(
    "data",
    [ipv4(tcp(b"payload"), total=0), ipv6(tcp(b"payload"), length=0)],
)
def test_a_packet_not_yet_cut_by_the_network_card_has_the_length_of_its_frame(
    data: bytes,
) -> None:
    found = segment(data)
    assert (found.length, found.payload) == (7, b"payload")


@pytest.mark.parametrize("header", [0, 43, 60, 135])
def test_extension_headers_are_passed_over(header: int) -> None:
    extension = bytes([6, 1]) + bytes(14)
    assert segment(ipv6(extension + tcp(b"payload"), protocol=header)).payload == b"payload"


def test_an_authentication_header_is_counted_in_words() -> None:
    extension = bytes([6, 4]) + bytes(22)
    assert segment(ipv6(extension + tcp(b"payload"), protocol=51)).payload == b"payload"


def test_an_ipv6_fragment_that_is_the_whole_packet_is_read() -> None:
    assert segment(ipv6(bytes([6]) + bytes(7) + tcp(b"payload"), protocol=44)).payload == b"payload"


@pytest.mark.parametrize(
    "data",
    [
        ipv4(tcp(b"payload"), fragment=0x2000),
        ipv4(b"the rest", fragment=0x0010),
        ipv6(bytes([6, 0, 0, 1]) + bytes(4) + tcp(b"payload"), protocol=44),
        ipv6(bytes([6, 0, 0, 8]) + bytes(4) + b"the rest", protocol=44),
    ],
)
def test_fragments_are_noticed(data: bytes) -> None:
    assert parse_frame(captured(data)) is SkipReason.FRAGMENT


def test_a_packet_that_must_not_be_fragmented_is_none() -> None:
    assert segment(ipv4(tcp(b"payload"), fragment=0x4000)).payload == b"payload"


@pytest.mark.limit("merq.capture.frames.VLAN_TAG_COUNT_MAX")
@pytest.mark.parametrize(
    ("link_type", "data"),
    [
        (ETHERNET, ethernet(b"who has", ethertype=0x0806)),
        (ETHERNET, ethernet(V4, ethertype=0x0026)),
        (ETHERNET, ethernet(V4, tags=[0x8100] * (VLAN_TAG_COUNT_MAX + 1))),
        (NULL, b"\x07\x00\x00\x00" + V4),
        (LOOP, b"\x02\x00\x00\x00" + V4),
        (RAW, b"\x50" + V4[1:]),
    ],
)
def test_what_is_not_ip_is_skipped(link_type: int, data: bytes) -> None:
    assert parse_frame(captured(data, link_type=link_type)) is SkipReason.NOT_IP


@pytest.mark.limit("merq.capture.frames.EXTENSION_HEADER_COUNT_MAX")
@pytest.mark.parametrize(
    "data",
    [
        ipv4(b"echo", protocol=1),
        ipv6(b"hidden", protocol=50),
        ipv6((bytes(8)) * (EXTENSION_HEADER_COUNT_MAX + 1), protocol=0),
    ],
)
def test_what_is_neither_tcp_nor_udp_is_skipped(data: bytes) -> None:
    assert parse_frame(captured(data)) is SkipReason.NOT_TCP_OR_UDP


@pytest.mark.parametrize(
    ("link_type", "data"),
    [
        (ETHERNET, ethernet(V6)),
        (228, V6),
        (229, V4),
        (RAW, b"\x44" + V4[1:]),
        (RAW, ipv4(tcp(b"payload"), total=19)),
        (RAW, ipv4(tcp(b"payload"), total=39)),
        (RAW, ipv4(tcp()[:12] + b"\x40" + tcp()[13:])),
        (RAW, ipv6(bytes([6, 1]) + bytes(14) + tcp(), protocol=60, length=8)),
        (RAW, ipv4(udp(b"ping", length=7), protocol=UDP)),
        (RAW, ipv4(udp(b"ping", length=13), protocol=UDP)),
    ],
)
def test_headers_that_contradict_themselves_are_skipped(link_type: int, data: bytes) -> None:
    assert parse_frame(captured(data, link_type=link_type)) is SkipReason.MALFORMED


def test_an_unknown_link_type_is_skipped() -> None:
    assert parse_frame(captured(V4, link_type=105)) is SkipReason.UNKNOWN_LINK_TYPE


@pytest.mark.parametrize(
    ("link_type", "data"),
    [(ETHERNET, ethernet(V4, tags=[0x8100])), (SLL, cooked(V4)), (SLL2, cooked_2(V4)), (RAW, V6)],
)
def test_a_frame_cut_anywhere_in_its_headers_is_skipped_with_that_reason(
    link_type: int, data: bytes
) -> None:
    headers = len(data) - len(b"payload") - 6  # The last six of TCP's bytes are not needed.
    for length in range(headers):
        found = parse_frame(captured(data[:length], link_type=link_type, original=len(data)))
        assert found is SkipReason.CUT_OFF
