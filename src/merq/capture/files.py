"""Capture files to frames: which of the two formats a file has, and the reader for it."""

from collections.abc import Iterator
from typing import BinaryIO

from merq.capture.pcap import PCAP_VARIANTS, read_pcap
from merq.capture.pcapng import BYTE_ORDERS, SECTION_HEADER_TYPE, read_pcapng
from merq.capture.source import CapturedFrame, Source
from merq.errors import CaptureError

MAGIC_SIZE = 4
"""Bytes that tell the format."""

_SECTION_HEAD_SIZE = 12  # Type, length and byte-order magic: enough to be sure of pcapng.


def is_capture(first_bytes: bytes) -> bool:
    """Whether a file that begins so is a capture; twelve bytes are enough to tell."""
    magic = first_bytes[:MAGIC_SIZE]
    if magic in PCAP_VARIANTS:
        return True
    if magic != SECTION_HEADER_TYPE:
        return False
    return (
        len(first_bytes) < _SECTION_HEAD_SIZE
        or first_bytes[_SECTION_HEAD_SIZE - 4 : _SECTION_HEAD_SIZE] in BYTE_ORDERS
    )


def read_frames(file: BinaryIO) -> Iterator[CapturedFrame]:
    """Every frame of a pcap or pcapng file, one at a time; the file is read forwards only.

    Raises:
        CaptureError: The file is no capture, is cut off or contradicts itself. Whatever came
            before that is delivered first, a frame that is only begun with the bytes it has.
    """
    source = Source(file)
    magic = source.read(MAGIC_SIZE)
    if magic in PCAP_VARIANTS:
        yield from read_pcap(source, magic)
    elif magic == SECTION_HEADER_TYPE:
        yield from read_pcapng(source)
    else:
        found = f"begins with {magic.hex()}" if magic else "is empty"
        raise CaptureError(f"the file {found}; expected a pcap or pcapng file", offset=0)
