"""Frames to TCP segments and UDP datagrams, for the link types that MSMQ is met on.

Checksums are not verified: where the network card computes them, captures have them wrong. IP
fragments are not put together and tunnels are not entered; both are skipped with a reason.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntFlag
from ipaddress import IPv4Address, IPv6Address

from merq.capture.source import CapturedFrame

VLAN_TAG_COUNT_MAX = 4
"""Tags before the network protocol; more than a few is noise, not a network."""

EXTENSION_HEADER_COUNT_MAX = 16
"""IPv6 headers between the first one and the transport's."""


class SkipReason(Enum):
    """Why something in a capture led to no event; the value says it to people."""

    UNKNOWN_LINK_TYPE = "link type not known"
    NOT_IP = "neither IPv4 nor IPv6"
    NOT_TCP_OR_UDP = "neither TCP nor UDP"
    FRAGMENT = "IP fragment"
    CUT_OFF = "captured too short to hold its headers"
    MALFORMED = "headers contradict themselves"
    OTHER_PORT = "not to or from the ports looked at"
    AFTER_CLOSE = "data after the end of its connection"


class TcpFlag(IntFlag):
    """The control bits of a TCP segment, RFC 9293 3.1."""

    FIN = 0x01
    SYN = 0x02
    RST = 0x04
    PSH = 0x08
    ACK = 0x10
    URG = 0x20
    ECE = 0x40
    CWR = 0x80


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An address and a port: one end of a conversation."""

    address: IPv4Address | IPv6Address
    port: int

    def __str__(self) -> str:
        if isinstance(self.address, IPv6Address):
            return f"[{self.address}]:{self.port}"
        return f"{self.address}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpSegment:
    """One TCP segment.

    Attributes:
        length: Bytes of payload on the network; more than `payload` has where the capture cut.
    """

    frame_number: int
    time_ns: int | None
    source: Endpoint
    destination: Endpoint
    sequence_number: int
    acknowledgment_number: int
    flags: TcpFlag
    length: int
    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class UdpDatagram:
    """One UDP datagram.

    Attributes:
        length: Bytes of payload on the network; more than `payload` has where the capture cut.
    """

    frame_number: int
    time_ns: int | None
    source: Endpoint
    destination: Endpoint
    length: int
    payload: bytes


def parse_frame(frame: CapturedFrame) -> TcpSegment | UdpDatagram | SkipReason:
    """What a frame carries, or why it is skipped; never raises."""
    find_network = _LINK_LAYERS.get(frame.link_type)
    if find_network is None:
        return SkipReason.UNKNOWN_LINK_TYPE
    try:
        network = find_network(frame.data)
        transport = _NETWORK_LAYERS[_version(frame.data, network)](frame, network.offset)
        return _TRANSPORTS[transport.protocol](frame, transport)
    except _SkippedError as skipped:
        return skipped.reason


class _SkippedError(Exception):
    def __init__(self, reason: SkipReason) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class _Network:
    """Where the IP header begins, and the version that the link layer named, if it did."""

    offset: int
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Transport:
    """Where the transport header begins, and how many bytes IP gives it and its payload."""

    protocol: int
    source: IPv4Address | IPv6Address
    destination: IPv4Address | IPv6Address
    offset: int
    length: int


def _number(data: bytes, offset: int, size: int) -> int:
    """A number in network byte order; the one place that meets the end of what was captured."""
    if offset + size > len(data):
        raise _SkippedError(SkipReason.CUT_OFF)
    return int.from_bytes(data[offset : offset + size], "big")


# Link layers: each says where IP begins.

_ETHERTYPES = {0x0800: 4, 0x86DD: 6}
_VLAN_ETHERTYPES = frozenset({0x8100, 0x88A8, 0x9100})
_ADDRESS_FAMILIES = {2: 4, 10: 6, 23: 6, 24: 6, 28: 6, 30: 6}  # IPv6 differs by system.


def _by_ethertype(data: bytes, ethertype: int, offset: int) -> _Network:
    for _ in range(VLAN_TAG_COUNT_MAX):
        if ethertype not in _VLAN_ETHERTYPES:
            break
        ethertype = _number(data, offset + 2, 2)
        offset += 4
    if ethertype not in _ETHERTYPES:
        raise _SkippedError(SkipReason.NOT_IP)
    return _Network(offset=offset, version=_ETHERTYPES[ethertype])


def _ethernet(data: bytes) -> _Network:
    return _by_ethertype(data, _number(data, 12, 2), 14)


def _cooked(data: bytes) -> _Network:
    return _by_ethertype(data, _number(data, 14, 2), 16)


def _cooked_2(data: bytes) -> _Network:
    return _by_ethertype(data, _number(data, 0, 2), 20)


def _loop(data: bytes) -> _Network:
    return _by_family(_number(data, 0, 4))


def _null(data: bytes) -> _Network:
    # In the byte order of the machine that captured, which the file does not tell for certain.
    family = _number(data, 0, 4)
    if family > 0xFFFF:
        family = int.from_bytes(data[:4], "little")
    return _by_family(family)


def _by_family(family: int) -> _Network:
    if family not in _ADDRESS_FAMILIES:
        raise _SkippedError(SkipReason.NOT_IP)
    return _Network(offset=4, version=_ADDRESS_FAMILIES[family])


def _raw(_data: bytes) -> _Network:
    return _Network(offset=0)


def _raw_ipv4(_data: bytes) -> _Network:
    return _Network(offset=0, version=4)


def _raw_ipv6(_data: bytes) -> _Network:
    return _Network(offset=0, version=6)


_LINK_LAYERS: dict[int, Callable[[bytes], _Network]] = {
    0: _null,
    1: _ethernet,
    12: _raw,
    14: _raw,
    101: _raw,
    108: _loop,
    113: _cooked,
    228: _raw_ipv4,
    229: _raw_ipv6,
    276: _cooked_2,
}


# Network layers: each says where TCP or UDP begins.


def _version(data: bytes, network: _Network) -> int:
    version = _number(data, network.offset, 1) >> 4
    if network.version not in {None, version}:
        raise _SkippedError(SkipReason.MALFORMED)
    if version not in _NETWORK_LAYERS:
        raise _SkippedError(SkipReason.NOT_IP)
    return version


def _ipv4(frame: CapturedFrame, offset: int) -> _Transport:
    data = frame.data
    header = (_number(data, offset, 1) & 0x0F) * 4
    # Where the network card cuts packets, the capture is before the cut and has length 0.
    total = _number(data, offset + 2, 2) or frame.original_length - offset
    protocol = _number(data, offset + 9, 1)
    source = IPv4Address(_number(data, offset + 12, 4))
    destination = IPv4Address(_number(data, offset + 16, 4))
    if header < 20 or total < header:
        raise _SkippedError(SkipReason.MALFORMED)
    if protocol not in _TRANSPORTS:
        raise _SkippedError(SkipReason.NOT_TCP_OR_UDP)
    # More fragments, or not the first one.
    if _number(data, offset + 6, 2) & 0x3FFF:
        raise _SkippedError(SkipReason.FRAGMENT)
    return _Transport(
        protocol=protocol,
        source=source,
        destination=destination,
        offset=offset + header,
        length=total - header,
    )


_IPV6_HEADER_SIZE = 40
_FRAGMENT_HEADER, _AUTHENTICATION_HEADER = 44, 51
_EXTENSION_HEADERS = frozenset({0, 43, _FRAGMENT_HEADER, _AUTHENTICATION_HEADER, 60, 135, 139, 140})


def _ipv6(frame: CapturedFrame, offset: int) -> _Transport:
    data = frame.data
    total = _number(data, offset + 4, 2) or frame.original_length - offset - _IPV6_HEADER_SIZE
    protocol = _number(data, offset + 6, 1)
    source = IPv6Address(_number(data, offset + 8, 16))
    destination = IPv6Address(_number(data, offset + 24, 16))
    start = offset + _IPV6_HEADER_SIZE
    end = start + total
    for _ in range(EXTENSION_HEADER_COUNT_MAX):
        if protocol not in _EXTENSION_HEADERS:
            break
        # An offset of 0 without more to come is a whole packet in a fragment's clothes.
        if protocol == _FRAGMENT_HEADER and _number(data, start + 2, 2) & 0xFFF9:
            raise _SkippedError(SkipReason.FRAGMENT)
        size = _extension_size(protocol, _number(data, start + 1, 1))
        protocol = _number(data, start, 1)
        start += size
    if protocol not in _TRANSPORTS:
        raise _SkippedError(SkipReason.NOT_TCP_OR_UDP)
    if start > end:
        raise _SkippedError(SkipReason.MALFORMED)
    return _Transport(
        protocol=protocol,
        source=source,
        destination=destination,
        offset=start,
        length=end - start,
    )


def _extension_size(protocol: int, length: int) -> int:
    if protocol == _FRAGMENT_HEADER:
        return 8
    if protocol == _AUTHENTICATION_HEADER:
        return (length + 2) * 4
    return (length + 1) * 8


_NETWORK_LAYERS = {4: _ipv4, 6: _ipv6}


# Transports.

_TCP_HEADER_SIZE_MIN = 20
_UDP_HEADER_SIZE = 8


def _tcp(frame: CapturedFrame, transport: _Transport) -> TcpSegment:
    data, offset = frame.data, transport.offset
    flags = _number(data, offset + 13, 1)
    header = (_number(data, offset + 12, 1) >> 4) * 4
    if header < _TCP_HEADER_SIZE_MIN or header > transport.length:
        raise _SkippedError(SkipReason.MALFORMED)
    return TcpSegment(
        frame_number=frame.number,
        time_ns=frame.time_ns,
        source=Endpoint(address=transport.source, port=_number(data, offset, 2)),
        destination=Endpoint(address=transport.destination, port=_number(data, offset + 2, 2)),
        sequence_number=_number(data, offset + 4, 4),
        acknowledgment_number=_number(data, offset + 8, 4),
        flags=TcpFlag(flags),
        length=transport.length - header,
        payload=data[offset + header : offset + transport.length],
    )


def _udp(frame: CapturedFrame, transport: _Transport) -> UdpDatagram:
    data, offset = frame.data, transport.offset
    length = _number(data, offset + 4, 2) or transport.length
    if length < _UDP_HEADER_SIZE or length > transport.length:
        raise _SkippedError(SkipReason.MALFORMED)
    return UdpDatagram(
        frame_number=frame.number,
        time_ns=frame.time_ns,
        source=Endpoint(address=transport.source, port=_number(data, offset, 2)),
        destination=Endpoint(address=transport.destination, port=_number(data, offset + 2, 2)),
        length=length - _UDP_HEADER_SIZE,
        payload=data[offset + _UDP_HEADER_SIZE : offset + length],
    )


_TRANSPORTS: dict[int, Callable[[CapturedFrame, _Transport], TcpSegment | UdpDatagram]] = {
    6: _tcp,
    17: _udp,
}
