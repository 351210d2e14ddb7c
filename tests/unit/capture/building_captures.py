"""Plain functions that build capture files, frames and segments, byte by byte, for tests."""

import struct
from collections.abc import Iterator, Sequence
from io import BytesIO
from ipaddress import ip_address
from typing import BinaryIO, TypeVar

from merq.errors import CaptureError

T = TypeVar("T")

CLIENT = "127.0.0.2"
SERVER = "127.0.0.3"
CLIENT_PORT = 49759
SERVER_PORT = 1801

FIN, SYN, RST, PSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10
TCP, UDP = 6, 17
ETHERNET, RAW = 1, 101


# Transports and networks.


def tcp(
    payload: bytes = b"",
    *,
    seq: int = 0,
    ack: int = 0,
    flags: int = ACK,
    ports: tuple[int, int] = (CLIENT_PORT, SERVER_PORT),
    options: bytes = b"",
) -> bytes:
    words = 5 + len(options) // 4
    return (
        struct.pack(">HHIIBBHHH", *ports, seq % 2**32, ack % 2**32, words << 4, flags, 0xFFFF, 0, 0)
        + options
        + payload
    )


def udp(payload: bytes, *, ports: tuple[int, int] = (4057, 3527), length: int = -1) -> bytes:
    size = length if length >= 0 else 8 + len(payload)
    return struct.pack(">HHHH", *ports, size, 0) + payload


def ipv4(
    payload: bytes,
    *,
    protocol: int = TCP,
    source: str = CLIENT,
    destination: str = SERVER,
    options: bytes = b"",
    fragment: int = 0,
    total: int = -1,
) -> bytes:
    words = 5 + len(options) // 4
    length = total if total >= 0 else words * 4 + len(payload)
    return (
        struct.pack(">BBHHHBBH", 0x40 | words, 0, length, 1, fragment, 64, protocol, 0)
        + ip_address(source).packed
        + ip_address(destination).packed
        + options
        + payload
    )


def ipv6(
    payload: bytes,
    *,
    protocol: int = TCP,
    source: str = "fe80::2",
    destination: str = "fe80::3",
    length: int = -1,
) -> bytes:
    size = length if length >= 0 else len(payload)
    return (
        struct.pack(">IHBB", 0x60000000, size, protocol, 64)
        + ip_address(source).packed
        + ip_address(destination).packed
        + payload
    )


def to_server(payload: bytes = b"", *, seq: int = 0, ack: int = 0, flags: int = ACK) -> bytes:
    """An IPv4 packet from the client to the server's port."""
    return ipv4(tcp(payload, seq=seq, ack=ack, flags=flags))


def to_client(payload: bytes = b"", *, seq: int = 0, ack: int = 0, flags: int = ACK) -> bytes:
    """An IPv4 packet from the server's port to the client."""
    segment = tcp(payload, seq=seq, ack=ack, flags=flags, ports=(SERVER_PORT, CLIENT_PORT))
    return ipv4(segment, source=SERVER, destination=CLIENT)


# Link layers.


def ethernet(packet: bytes, *, ethertype: int = 0x0800, tags: Sequence[int] = ()) -> bytes:
    tagged = b"".join(struct.pack(">HH", tag, 7) for tag in tags)
    return bytes(12) + tagged + struct.pack(">H", ethertype) + packet


def cooked(packet: bytes, *, ethertype: int = 0x0800) -> bytes:
    return struct.pack(">HHH8sH", 0, 772, 6, bytes(8), ethertype) + packet


def cooked_2(packet: bytes, *, ethertype: int = 0x0800) -> bytes:
    return struct.pack(">HHIHBB8s", ethertype, 0, 1, 772, 0, 6, bytes(8)) + packet


# Files.


def pcap_header(
    *,
    order: str = "<",
    nanoseconds: bool = False,
    link_type: int = RAW,
    version: tuple[int, int] = (2, 4),
) -> bytes:
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    return struct.pack(order + "IHHiIII", magic, *version, 0, 0, 262144, link_type)


def pcap_record(
    frame: bytes, *, order: str = "<", time: tuple[int, int] = (0, 0), original: int = -1
) -> bytes:
    length = original if original >= 0 else len(frame)
    return struct.pack(order + "IIII", *time, len(frame), length) + frame


def pcap(frames: Sequence[bytes], *, order: str = "<", link_type: int = RAW) -> bytes:
    """A microsecond file whose frame n was captured at n seconds, counted from 1."""
    return pcap_header(order=order, link_type=link_type) + b"".join(
        pcap_record(frame, order=order, time=(number, 0)) for number, frame in enumerate(frames, 1)
    )


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def block(kind: int, body: bytes, *, order: str = "<") -> bytes:
    size = struct.pack(order + "I", 12 + len(padded(body)))
    return struct.pack(order + "I", kind) + size + padded(body) + size


def option(code: int, value: bytes, *, order: str = "<") -> bytes:
    return struct.pack(order + "HH", code, len(value)) + padded(value)


def section(*, order: str = "<", version: tuple[int, int] = (1, 0)) -> bytes:
    body = struct.pack(order + "IHHq", 0x1A2B3C4D, *version, -1)
    return block(0x0A0D0D0A, body, order=order)


def interface(
    *, order: str = "<", link_type: int = RAW, snap_length: int = 0, options: bytes = b""
) -> bytes:
    body = struct.pack(order + "HHI", link_type, 0, snap_length) + options
    return block(1, body, order=order)


def enhanced(
    frame: bytes,
    *,
    order: str = "<",
    interface_id: int = 0,
    units: int = 0,
    original: int = -1,
    options: bytes = b"",
) -> bytes:
    length = original if original >= 0 else len(frame)
    head = struct.pack(
        order + "IIIII", interface_id, units >> 32, units & 0xFFFFFFFF, len(frame), length
    )
    return block(6, head + padded(frame) + options, order=order)


def obsolete(frame: bytes, *, order: str = "<", interface_id: int = 0, units: int = 0) -> bytes:
    head = struct.pack(
        order + "HHIIII",
        interface_id,
        0,
        units >> 32,
        units & 0xFFFFFFFF,
        len(frame),
        len(frame),
    )
    return block(2, head + frame, order=order)


def simple(frame: bytes, *, order: str = "<", original: int = -1) -> bytes:
    length = original if original >= 0 else len(frame)
    return block(3, struct.pack(order + "I", length) + frame, order=order)


def pcapng(frames: Sequence[bytes], *, order: str = "<", link_type: int = RAW) -> bytes:
    """One section, one interface; frame n was captured at n seconds, counted from 1."""
    return (
        section(order=order)
        + interface(order=order, link_type=link_type)
        + b"".join(
            enhanced(frame, order=order, units=number * 1_000_000)
            for number, frame in enumerate(frames, 1)
        )
    )


# Reading.


def as_file(data: bytes) -> BinaryIO:
    return BytesIO(data)


class DrippingFile(BytesIO):
    """A file that gives three bytes at a time, as a slow pipe may."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(3 if size is None or size < 0 else min(size, 3))


def until_error(items: Iterator[T]) -> tuple[list[T], CaptureError | None]:
    """Everything that comes, and the error that ends it, if one does."""
    found: list[T] = []
    while True:
        try:
            found.append(next(items))
        except StopIteration:
            return found, None
        except CaptureError as error:
            return found, error
