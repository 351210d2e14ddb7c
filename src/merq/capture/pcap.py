"""The classic capture format: one header, then records of a time, two lengths and a frame.

Microsecond and nanosecond files in either byte order, version 2 with any minor number. Files with
the record headers that some vendors extended under magic numbers of their own are not read.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from merq.capture.source import (
    NANOSECONDS_PER_SECOND,
    CapturedFrame,
    Source,
    check_captured_length,
    cut_off,
)
from merq.errors import CaptureError


@dataclass(frozen=True, slots=True, kw_only=True)
class _Variant:
    byte_order: str
    fraction_ns: int


PCAP_VARIANTS = {
    b"\xd4\xc3\xb2\xa1": _Variant(byte_order="<", fraction_ns=1000),
    b"\xa1\xb2\xc3\xd4": _Variant(byte_order=">", fraction_ns=1000),
    b"\x4d\x3c\xb2\xa1": _Variant(byte_order="<", fraction_ns=1),
    b"\xa1\xb2\x3c\x4d": _Variant(byte_order=">", fraction_ns=1),
}
"""By the first four bytes of the file."""

_LINK_TYPE_MASK = 0xFFFF  # Above it are notes about a frame check sequence, which IP cuts off.


def read_pcap(source: Source, magic: bytes) -> Iterator[CapturedFrame]:
    """The frames of a file whose `magic`, a key of `PCAP_VARIANTS`, has been read already."""
    variant = PCAP_VARIANTS[magic]
    header = struct.Struct(variant.byte_order + "HHiIII")
    record = struct.Struct(variant.byte_order + "IIII")
    data = source.exactly(header.size, "the file header", start=0)
    major, minor, _zone, _accuracy, _snap_length, network = header.unpack(data)
    if major != 2:
        raise CaptureError(f"pcap version {major}.{minor}; only version 2 is known", offset=0)
    number = 0
    while True:
        start = source.offset
        head = source.read(record.size)
        if not head:
            return
        if len(head) < record.size:
            raise cut_off("a record header", found=len(head), expected=record.size, start=start)
        seconds, fraction, captured, original = record.unpack(head)
        if _lengths_swapped(minor, captured, original):
            captured, original = original, captured
        check_captured_length(captured, start=start)
        data = source.read(captured)
        if data or not captured:
            number += 1
            yield CapturedFrame(
                number=number,
                time_ns=seconds * NANOSECONDS_PER_SECOND + fraction * variant.fraction_ns,
                link_type=network & _LINK_TYPE_MASK,
                original_length=max(original, captured),
                data=data,
            )
        if len(data) < captured:
            raise cut_off("a frame", found=len(data), expected=captured, start=start)


def _lengths_swapped(minor: int, captured: int, original: int) -> bool:
    """Version 2.3 exchanged the two lengths, and programs disagreed whether it had."""
    return minor < 3 or (minor == 3 and captured > original)
