"""The newer capture format: blocks in sections, every section with its own byte order.

Read are section headers, interface descriptions with the resolution and offset of their time
stamps, and the three kinds of packet blocks. Every other block is passed over unread.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from merq.capture.source import (
    NANOSECONDS_PER_SECOND,
    TIME_NS_MAX,
    CapturedFrame,
    Source,
    check_captured_length,
    cut_off,
)
from merq.errors import CaptureError

BLOCK_SIZE_MAX = 16 * 1024 * 1024
"""Bytes of one block, read or passed over; other readers refuse larger ones too."""

INTERFACE_COUNT_MAX = 4096
"""Interfaces that one section may describe."""

SECTION_HEADER_TYPE = b"\x0a\x0d\x0d\x0a"
"""The first four bytes of the file, the same in both byte orders."""

BYTE_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
"""By the four bytes that follow the section header's length."""

_INTERFACE_BLOCK, _OBSOLETE_BLOCK, _SIMPLE_BLOCK, _ENHANCED_BLOCK = 1, 2, 3, 6
_END_OPTION, _RESOLUTION_OPTION, _OFFSET_OPTION = 0, 9, 14
_FRAMING_SIZE = 12  # Type and length before the body, the length again after it.
_SECTION_SIZE_MIN = 28


@dataclass(frozen=True, slots=True, kw_only=True)
class _Interface:
    link_type: int
    snap_length: int
    resolution: int = 6
    offset_s: int = 0

    def time_ns(self, units: int) -> int | None:
        """A time stamp in the interface's units; None where it is outside the calendar."""
        exponent = self.resolution & 0x7F
        # The high bit says that the unit is a power of two of a second, not of ten.
        if self.resolution & 0x80:
            time_ns = units * NANOSECONDS_PER_SECOND >> exponent
        else:
            time_ns = units * NANOSECONDS_PER_SECOND // 10**exponent
        time_ns += self.offset_s * NANOSECONDS_PER_SECOND
        return time_ns if 0 <= time_ns <= TIME_NS_MAX else None


@dataclass(slots=True, kw_only=True)
class _Section:
    byte_order: str
    interfaces: list[_Interface] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _Block:
    """A block being read: where it began, and how much of its body is left."""

    source: Source
    byte_order: str
    start: int
    kind: int
    size: int
    left: int

    def fields(self, layout: str) -> tuple[int, ...]:
        """The next fields of the body, in the section's byte order."""
        form = struct.Struct(self.byte_order + layout)
        self._claim(form.size)
        data = self.source.exactly(form.size, "a block", start=self.start)
        return tuple(form.unpack(data))

    def data(self, size: int) -> bytes:
        """The next bytes of the body: fewer than `size` where the file ends, not the block."""
        self._claim(size)
        return self.source.read(size)

    def skip(self, size: int) -> None:
        """Pass over bytes of the body."""
        self._claim(size)
        found = self.source.skip(size)
        if found < size:
            raise cut_off("a block", found=found, expected=size, start=self.start)

    def end(self) -> None:
        """Pass over the rest, and check the length that closes the block."""
        self.skip(self.left)
        data = self.source.exactly(4, "a block's closing length", start=self.start)
        (closing,) = struct.unpack(self.byte_order + "I", data)
        if closing != self.size:
            raise CaptureError(
                f"a block of {self.size} bytes closes with the length {closing}", offset=self.start
            )

    def _claim(self, size: int) -> None:
        if size > self.left:
            raise CaptureError(
                f"a block of type {self.kind:#x} has {self.left} bytes left where {size} belong",
                offset=self.start,
            )
        self.left -= size


def read_pcapng(source: Source) -> Iterator[CapturedFrame]:
    """The frames of a file whose first four bytes, `SECTION_HEADER_TYPE`, have been read."""
    section = _begin_section(source, start=0)
    number = 0
    while True:
        start = source.offset
        kind_bytes = source.read(4)
        if not kind_bytes:
            return
        if len(kind_bytes) < 4:
            raise cut_off("a block type", found=len(kind_bytes), expected=4, start=start)
        if kind_bytes == SECTION_HEADER_TYPE:
            section = _begin_section(source, start=start)
            continue
        block = _begin_block(source, section.byte_order, kind_bytes, start=start)
        if block.kind == _INTERFACE_BLOCK:
            _add_interface(section, block)
        elif block.kind in _PACKET_READERS:
            number += 1
            packet = _PACKET_READERS[block.kind](section, block)
            data = block.data(packet.captured)
            if data or not packet.captured:
                yield CapturedFrame(
                    number=number,
                    time_ns=packet.time_ns,
                    link_type=packet.link_type,
                    original_length=max(packet.original, packet.captured),
                    data=data,
                )
            if len(data) < packet.captured:
                raise cut_off("a frame", found=len(data), expected=packet.captured, start=start)
        # The frame is out before its block's end is looked at: a torn end takes nothing back.
        block.end()


def _begin_section(source: Source, *, start: int) -> _Section:
    head = source.exactly(8, "a section header", start=start)
    byte_order = BYTE_ORDERS.get(head[4:])
    if byte_order is None:
        raise CaptureError(f"byte-order magic {head[4:].hex()} is not known", offset=start)
    (size,) = struct.unpack(byte_order + "I", head[:4])
    _check_size(size, _SECTION_SIZE_MIN, start=start)
    kind = int.from_bytes(SECTION_HEADER_TYPE, "big")
    block = _Block(
        source=source,
        byte_order=byte_order,
        start=start,
        kind=kind,
        size=size,
        left=size - _FRAMING_SIZE - 4,  # The magic is read already.
    )
    major, minor = block.fields("HH")
    if major != 1:
        raise CaptureError(f"pcapng version {major}.{minor}; only 1 is known", offset=start)
    block.end()
    return _Section(byte_order=byte_order)


def _begin_block(source: Source, byte_order: str, kind_bytes: bytes, *, start: int) -> _Block:
    (kind,) = struct.unpack(byte_order + "I", kind_bytes)
    size_bytes = source.exactly(4, "a block length", start=start)
    (size,) = struct.unpack(byte_order + "I", size_bytes)
    _check_size(size, _FRAMING_SIZE, start=start)
    return _Block(
        source=source,
        byte_order=byte_order,
        start=start,
        kind=kind,
        size=size,
        left=size - _FRAMING_SIZE,
    )


def _check_size(size: int, size_min: int, *, start: int) -> None:
    if size < size_min or size % 4:
        raise CaptureError(
            f"a block of {size} bytes; expected a multiple of 4, at least {size_min}", offset=start
        )
    if size > BLOCK_SIZE_MAX:
        raise CaptureError(
            f"a block claims {size} bytes; at most {BLOCK_SIZE_MAX} are read", offset=start
        )


def _add_interface(section: _Section, block: _Block) -> None:
    if len(section.interfaces) == INTERFACE_COUNT_MAX:
        raise CaptureError(
            f"a section describes more than {INTERFACE_COUNT_MAX} interfaces", offset=block.start
        )
    link_type, _reserved, snap_length = block.fields("HHI")
    resolution, offset_s = 6, 0
    while block.left:
        code, size = block.fields("HH")
        if code == _END_OPTION:
            break
        if code == _RESOLUTION_OPTION and size == 1:
            (resolution,) = block.fields("B3x")
        elif code == _OFFSET_OPTION and size == 8:
            (offset_s,) = block.fields("q")
        else:
            block.skip(size + -size % 4)
    section.interfaces.append(
        _Interface(
            link_type=link_type,
            snap_length=snap_length,
            resolution=resolution,
            offset_s=offset_s,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _PacketHead:
    time_ns: int | None
    link_type: int
    captured: int
    original: int


def _enhanced(section: _Section, block: _Block) -> _PacketHead:
    interface_id, high, low, captured, original = block.fields("IIIII")
    return _timed(section, block, interface_id, high << 32 | low, captured, original)


def _obsolete(section: _Section, block: _Block) -> _PacketHead:
    interface_id, _drops, high, low, captured, original = block.fields("HHIIII")
    return _timed(section, block, interface_id, high << 32 | low, captured, original)


def _simple(section: _Section, block: _Block) -> _PacketHead:
    (original,) = block.fields("I")
    interface = _interface(section, block, 0)
    captured = min(original, block.left, interface.snap_length or original)
    check_captured_length(captured, start=block.start)
    return _PacketHead(
        time_ns=None, link_type=interface.link_type, captured=captured, original=original
    )


_PACKET_READERS = {
    _ENHANCED_BLOCK: _enhanced,
    _OBSOLETE_BLOCK: _obsolete,
    _SIMPLE_BLOCK: _simple,
}


def _timed(
    section: _Section, block: _Block, interface_id: int, units: int, captured: int, original: int
) -> _PacketHead:
    check_captured_length(captured, start=block.start)
    interface = _interface(section, block, interface_id)
    return _PacketHead(
        time_ns=interface.time_ns(units),
        link_type=interface.link_type,
        captured=captured,
        original=original,
    )


def _interface(section: _Section, block: _Block, interface_id: int) -> _Interface:
    if interface_id >= len(section.interfaces):
        raise CaptureError(
            f"a packet names interface {interface_id} of {len(section.interfaces)} described",
            offset=block.start,
        )
    return section.interfaces[interface_id]
