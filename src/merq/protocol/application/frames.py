"""Frames of the application protocol: a header of 16 bytes, and a body of its kind.

| offset | size | |
|---|---|---|
| 0 | 4 | the size of the frame, header included |
| 4 | 1 | the kind |
| 5 | 1 | flags of the kind |
| 6 | 2 | 0 |
| 8 | 4 | the request that the frame makes or answers |
| 12 | 4 | from a client, how many answers it has got on this connection; from a server, 0 |

Numbers are little-endian, as everywhere in MSMQ.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from merq.errors import WireError

HEADER: Final = Struct("<IBBHII")
HEADER_SIZE: Final = HEADER.size

FRAME_BYTES_MAX: Final = 16 << 20
"""The largest frame that either side takes, unless it says otherwise."""

GREETING_BYTES_MAX: Final = 4096
"""The largest frame from somebody who has not been welcomed."""


class Kind(IntEnum):
    """What a frame is."""

    HELLO = 1
    ASK = 2
    SEND = 3
    SEND_TO = 4
    READ = 5
    END_RECEIVE = 6
    TRANSACT = 7
    CANCEL = 8
    SEND_MANY_TO = 9
    SEND_ROWS = 10
    PONG = 11
    WELCOME = 65
    DONE = 66
    NUMBER = 67
    IDS = 68
    MESSAGES = 69
    TOLD = 70
    FAILED = 71
    ROWS = 72
    PING = 73


class Frame(NamedTuple):
    """A frame as it came, in a buffer that may have others too; `size` is all of it."""

    kind: int
    flags: int
    number: int
    received: int
    buffer: bytes
    start: int
    size: int

    @property
    def end(self) -> int:
        """Where it ends in the buffer."""
        return self.start + self.size

    @property
    def body(self) -> bytes:
        """What follows the header; this is a copy."""
        return self.buffer[self.start + HEADER_SIZE : self.start + self.size]


class FrameReader:
    """Cuts a stream of bytes into frames, however it comes."""

    # The parts of a large frame are put together once, when the last of them is there.
    __slots__ = ("_at", "_buffer", "_coming", "_coming_bytes", "_needed", "frame_bytes_max")

    def __init__(self, frame_bytes_max: int) -> None:
        self.frame_bytes_max = frame_bytes_max
        self._buffer = b""
        self._at = 0
        self._coming: list[bytes] = []
        self._coming_bytes = 0
        self._needed = 0

    def feed(self, data: bytes) -> None:
        """More bytes of the stream."""
        self._coming.append(data)
        self._coming_bytes += len(data)
        if self.waiting_bytes < self._needed:
            return
        rest = self._buffer[self._at :]
        self._buffer = b"".join((rest, *self._coming)) if rest or len(self._coming) > 1 else data
        self._at = 0
        self._coming.clear()
        self._coming_bytes = 0

    @property
    def waiting_bytes(self) -> int:
        """How many bytes wait to be cut, or for the rest of their frame."""
        return len(self._buffer) - self._at + self._coming_bytes

    def next(self) -> Frame | None:
        """The next frame that is whole, or None.

        Raises:
            WireError: There can be no further frame: this one says it has a size that none has.
        """
        buffer, at = self._buffer, self._at
        if len(buffer) - at < HEADER_SIZE:
            return None
        size, kind, flags, reserved, number, received = HEADER.unpack_from(buffer, at)
        if not HEADER_SIZE <= size <= self.frame_bytes_max:
            raise WireError(
                f"a frame of {size} bytes; it has from {HEADER_SIZE} to {self.frame_bytes_max}",
                field="size",
            )
        if reserved:
            raise WireError(f"{reserved:#x} where 0 belongs", offset=6, field="reserved")
        if len(buffer) - at < size:
            self._needed = size
            return None
        self._needed = 0
        self._at = at + size
        return Frame(kind, flags, number, received, buffer, at, size)


def frame(kind: int, number: int, *parts: bytes, flags: int = 0, received: int = 0) -> bytes:
    """A frame with this body."""
    size = HEADER_SIZE + sum(map(len, parts))
    return b"".join((HEADER.pack(size, kind, flags, 0, number, received), *parts))
