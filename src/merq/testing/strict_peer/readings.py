"""What the documents leave to an implementation, and where they can be read in more than one way.

The defaults are those of Windows by the product notes of [MS-MQQB] and [MS-MQMQ]. A simulation
chooses others, so that Merq is tried against each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

RESEND_S: Final = (30.0,) * 3 + (300.0,) * 3 + (1800.0,) * 3 + (21600.0,)
"""ResendTimerTable, [MS-MQQB] 3.1.3.1 and note 24."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """How a strict peer behaves where it may choose.

    Attributes:
        window: WindowSize; note 50: 64.
        ack_timeout_ms: AckWaitTimeout; 20,000 by note 51, 120,000 in frame 5 of the example.
        initialization_s: Note 43.
        cleanup_s: Note 44.
        retry_s: Note 45.
        resend_s: Note 24.
        order_ack_s: OrderAckTimeout, [MS-MQQB] 3.1.3.2.
        order_ack_max_s: MaximumOrderAckDelay, note 52.
        history_s: Note 47.
        history_max: Note 25.
        shares_sessions: Messages for one address go through one session, also one that the other
            side has made. Otherwise each outgoing queue makes its own, as OutgoingQueueReference of
            [MS-MQQB] 3.1.1.3.1 has it.
        orders_rejected: A transactional message that is rejected for its queue is acknowledged by
            an OrderAck too, as [MS-MQQB] 2.2.4 says. Otherwise 3.1.5.8.2 holds: nothing more is
            done with it, and a negative FinalAck is all that its sender gets.
        expires_first: A transactional message that comes late is ignored before its place in the
            sequence is looked at, as the order of the steps in [MS-MQQB] 3.1.5.8 has it, and no
            OrderAck follows. Otherwise it takes its place, and a negative FinalAck says why it is
            not in its queue.
        insecure_nacks: SendInsecureNacks, note 28.
        miscounts: How often UserMsgSequenceNumber is wrong; [MS-MQMQ] note 14.
        short_of_memory: How often a SessionHeader says a window of 1; [MS-MQMQ] note 15.
    """

    window: int = 64
    ack_timeout_ms: int = 20_000
    initialization_s: float = 60.0
    cleanup_s: float = 300.0
    retry_s: float = 5.0
    resend_s: tuple[float, ...] = RESEND_S
    order_ack_s: float = 0.5
    order_ack_max_s: float = 10.0
    history_s: float = 1800.0
    history_max: int = 10_000
    shares_sessions: bool = True
    orders_rejected: bool = False
    expires_first: bool = True
    insecure_nacks: bool = False
    miscounts: float = 0.0
    short_of_memory: float = 0.0
