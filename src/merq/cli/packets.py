"""From raw bytes or hex text to packets.

The input is read as it comes, so that a pipe shows its packets while it is still being written.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedReader

from merq.capture.packets import Finding, PacketStream, PingRoles, Undecoded, undecoded
from merq.cli.hex_text import HexText
from merq.errors import WireError

CHUNK_SIZE = 1 << 18
PROBE_SIZE = 24
"""How much of the input decides what it is: the least that can be a packet."""

HEX_LINE_MAX = 1 << 25
"""The largest packet on one line, six characters a byte; a longer line is read in pieces."""


def from_raw(file: BufferedReader) -> Iterator[Finding]:
    """Everything in raw bytes, as they come."""
    packets = PacketStream(PingRoles())
    while chunk := file.read1(CHUNK_SIZE):
        yield from packets.feed(chunk)
    yield from packets.finish()


def looks_like_text(probe: bytes) -> bool:
    """Whether these bytes are characters: packets begin with control characters, text does not."""
    return all(32 <= byte < 127 or byte in b"\t\r\n\f\xef\xbb\xbf" for byte in probe)


def from_hex(file: BufferedReader) -> Iterator[Finding]:
    """Everything in hex text, line by line."""
    packets = PacketStream(PingRoles())
    text = HexText()
    try:
        while line := file.readline(HEX_LINE_MAX):
            yield from packets.feed(text.feed(line.decode("utf-8-sig", "replace")))
        text.finish()
    except WireError as wrong:
        yield undecoded(wrong, 0, None)
        return
    if not text.byte_count:
        yield Undecoded(offset=0, reason="the text holds no bytes")
    yield from packets.finish()
