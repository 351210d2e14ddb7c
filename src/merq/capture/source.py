"""What the file readers share: bounded reading that knows its offset, and the frame they deliver.

Nothing here knows a file format; pcap.py and pcapng.py do.
"""

from dataclasses import dataclass
from typing import BinaryIO

from merq.errors import CaptureError

READ_SIZE_MAX = 65_536
"""Bytes asked of the file at once: a buffered file allocates what it is asked for, held or not."""

CAPTURED_LENGTH_MAX = 262_144
"""Bytes of one frame in the file; what tcpdump and Wireshark capture at most."""

NANOSECONDS_PER_SECOND = 1_000_000_000

TIME_NS_MAX = 253_402_300_800 * NANOSECONDS_PER_SECOND - 1
"""The end of the year 9999, beyond which a time stamp is no time and no calendar can show it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedFrame:
    """One frame as the file has it.

    Attributes:
        number: Counted from 1 over the whole file, as other programs show it.
        time_ns: Nanoseconds since 1970, or None where the file does not say.
        link_type: The number that tells how `data` begins, of the registry of link types.
        original_length: Bytes the frame had on the network; never less than `data` has.
        data: What was captured of it.
    """

    number: int
    time_ns: int | None
    link_type: int
    original_length: int
    data: bytes


class Source:
    """A binary file read forwards only, never more at once than `READ_SIZE_MAX`.

    Attributes:
        offset: Bytes read so far, which is where the next ones are in the file.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.offset = 0

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; fewer only where the file ends."""
        parts = []
        left = size
        while left and (part := self._file.read(min(left, READ_SIZE_MAX))):
            parts.append(part)
            left -= len(part)
        self.offset += size - left
        return b"".join(parts)

    def skip(self, size: int) -> int:
        """Pass over up to `size` bytes; says how many there were."""
        left = size
        while left and (part := self._file.read(min(left, READ_SIZE_MAX))):
            left -= len(part)
        self.offset += size - left
        return size - left

    def exactly(self, size: int, what: str, *, start: int) -> bytes:
        """Just `size` bytes.

        Raises:
            CaptureError: The file ends before; the error names `start` as its offset.
        """
        data = self.read(size)
        if len(data) < size:
            raise cut_off(what, found=len(data), expected=size, start=start)
        return data


def cut_off(what: str, *, found: int, expected: int, start: int) -> CaptureError:
    """The error for a file that ends inside `what`, which began at `start`."""
    return CaptureError(f"the file ends after {found} of {expected} bytes of {what}", offset=start)


def check_captured_length(length: int, *, start: int) -> None:
    """Refuse a frame that no capturing program writes, before anything is read for it."""
    if length > CAPTURED_LENGTH_MAX:
        raise CaptureError(
            f"a frame claims {length} captured bytes; at most {CAPTURED_LENGTH_MAX} are read",
            offset=start,
        )
