"""Cutting a byte stream into packets, however it arrives.

A session's bytes are packets one after the other, each opened by a BaseHeader that tells its size
([MS-MQMQ] 2.2.19.1). The splitter looks at nothing else, so that what it hands out still has to be
read by `merq.wire.packet` or `merq.wire.view`. All packets of a call come out together.
"""

from __future__ import annotations

import struct
from typing import Final

from merq.errors import WireError

BASE_HEADER_SIZE: Final = 16
SESSION_HEADER_SIZE: Final = 16
PACKET_SIZE_MIN: Final = 20
"""A BaseHeader and the smallest thing that may follow it, an InternalHeader."""

# Numbers that headers.py has too stand here again as Final: the compiled build folds them in.
_PACKET_SIZE_MAX: Final = 0x00400000
_VERSION: Final = 0x10
_SIGNATURE: Final = 0x524F494C
_INTERNAL: Final = 0x0008
_SESSION_HEADER: Final = 0x0010
_HEAD: Final = struct.Struct("<BxHII")


class PacketSplitter:
    """Turns chunks into packets.

    What cannot be a packet ends the stream: the packets before it still come out, `failure` says
    what was found and where, and everything after is ignored. Memory never exceeds one packet.
    """

    __slots__ = ("_needed", "_offset", "_pending", "failure")

    def __init__(self) -> None:
        self._pending = bytearray()
        self._needed = 0
        self._offset = 0
        self.failure: WireError | None = None

    @property
    def buffered(self) -> int:
        """How many bytes wait for the rest of their packet."""
        return len(self._pending)

    @property
    def expected(self) -> int:
        """How many bytes the packet has of which some wait; 0 if that is not known yet."""
        return self._needed

    def feed(self, data: bytes) -> list[bytes]:
        """Takes the next bytes of the stream, gives every packet that they complete."""
        packets: list[bytes] = []
        if self._ended():
            return packets
        at = 0
        if self._pending:
            at = self._complete(data, packets)
            if self._ended() or self._pending:
                return packets
        size = len(data)
        while size - at >= BASE_HEADER_SIZE:
            needed = self._measure(data, at)
            if needed == 0:
                return packets
            end = at + needed
            if end > size:
                self._needed = needed
                break
            packets.append(data[at:end])
            self._offset += needed
            at = end
        if at < size:
            self._pending += memoryview(data)[at:]
        return packets

    def _ended(self) -> bool:
        return self.failure is not None

    def finish(self) -> WireError | None:
        """The stream ends here: the failure so far, or that it ends inside a packet."""
        if self.failure is None and self._pending:
            expected = self._needed or BASE_HEADER_SIZE
            self.failure = WireError(
                f"the stream ends after {len(self._pending)} of at least {expected} bytes",
                offset=self._offset,
                field="stream",
            )
        return self.failure

    def _complete(self, data: bytes, packets: list[bytes]) -> int:
        """Fills up the packet that waits; tells how much of `data` it took."""
        pending = self._pending
        taken = 0
        if self._needed == 0:
            taken = min(BASE_HEADER_SIZE - len(pending), len(data))
            pending += data[:taken]
            if len(pending) < BASE_HEADER_SIZE:
                return taken
            self._needed = self._measure(bytes(pending), 0)
            if self._needed == 0:
                return taken
        more = min(self._needed - len(pending), len(data) - taken)
        pending += memoryview(data)[taken : taken + more]
        taken += more
        if len(pending) == self._needed:
            packets.append(bytes(pending))
            pending.clear()
            self._offset += self._needed
            self._needed = 0
        return taken

    def _measure(self, data: bytes, at: int) -> int:
        """The length of the packet at `at`; 0 and a failure if there is none."""
        try:
            return packet_length(data, at)
        except WireError as wrong:
            self._pending.clear()
            self._needed = 0
            offset = None if wrong.offset is None else self._offset + wrong.offset - at
            self.failure = WireError(wrong.reason, offset=offset, field=wrong.field)
            return 0


def packet_length(data: bytes, at: int) -> int:
    """How many bytes the packet takes whose BaseHeader is at `at`, its SessionHeader included."""
    head: tuple[int, int, int, int] = _HEAD.unpack_from(data, at)
    version, flags, signature, size = head
    if version != _VERSION or signature != _SIGNATURE:
        raise WireError(
            f"no packet starts here: version {version:#x} and signature {signature:#x} where "
            f"{_VERSION:#x} and {_SIGNATURE:#x} belong",
            offset=at if version != _VERSION else at + 4,
            field="base_header",
        )
    if not PACKET_SIZE_MIN <= size <= _PACKET_SIZE_MAX:
        raise WireError(
            f"{size:#x} is outside {PACKET_SIZE_MIN:#x}..{_PACKET_SIZE_MAX:#x}",
            offset=at + 8,
            field="base_header.packet_size",
        )
    # A SessionHeader on a user message is not counted; in a SessionAck it is ([MS-MQQB] 4.1.8).
    if flags & (_INTERNAL | _SESSION_HEADER) == _SESSION_HEADER:
        return size + SESSION_HEADER_SIZE
    return size
