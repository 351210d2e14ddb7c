"""[MS-MQQB] 3.1.2, 3.1.3, appendix A: how long to wait and how much to leave open, by default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

STANDARD_PORT: Final = 1801
"""[MS-MQQB] 1.9: the TCP port."""

WINDOW: Final = 64
"""How many messages may be without a session acknowledgment ([MS-MQQB] 3.1.3.2, note 50). Windows
may wait for half of the window that we announce, so no more is announced than is used."""

MERQ_WINDOW: Final = 1024
"""The same between two Merqs: with 64 a distant link would stand idle."""

ACK_TIMEOUT_MIN_MS: Final = 20_000
ACK_TIMEOUT_MAX_MS: Final = 120_000
"""[MS-MQQB] 2.2.2.1: the range of AckTimeout."""

RECOVERABLE_ACK_MIN_MS: Final = 500
RECOVERABLE_ACK_MAX_MS: Final = 120_000
"""[MS-MQQB] 3.1.5.3.2: the range of RecoverableAckTimeout."""

OPENING_PACKET_BYTES_MAX: Final = 1024
"""The largest packet that is taken before a session is open: EstablishConnection has 572 bytes
([MS-MQQB] 2.2.3), ConnectionParameters 32 (2.2.2)."""

PACKET_RATE_MIN: Final = 1024
"""Bytes a second that a packet must come with on the average, once its time of grace is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """What one session keeps to; times in seconds.

    Attributes:
        window: Messages that may be without an acknowledgment, ours and the other side's.
        merq_window: The same with another Merq.
        initialization_s: [MS-MQQB] 3.1.2.1, note 43: until a session must be open.
        cleanup_s: [MS-MQQB] 3.1.2.2, note 44: after which an idle session is closed.
        ack_wait_s: [MS-MQQB] 3.1.3.2, note 51: how long an acknowledgment is waited for.
        direct_factor: [MS-MQQB] 3.1.2.4, note 46: so many times that for direct format names.
        unhandled_bytes_max: What may have come and not be taken care of before nothing more is
            read.
        stall_s: After which a packet that is not whole ends the session, and a second later for
            each `PACKET_RATE_MIN` bytes that came of it.
    """

    window: int = WINDOW
    merq_window: int = MERQ_WINDOW
    initialization_s: float = 60.0
    cleanup_s: float = 300.0
    ack_wait_s: float = 20.0
    direct_factor: float = 2.0
    unhandled_bytes_max: int = 16 << 20
    stall_s: float = 30.0
