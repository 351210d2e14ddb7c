"""[MS-MQDMPR] 3.1.1.2, 3.1.1.3: a queue: its properties, its messages, and who waits for one."""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from merq.engine.identifiers import MessageIds
from merq.engine.positions import NEVER
from merq.engine.runs import Positions
from merq.engine.transfer import Transfer
from merq.model.names import PathName, parse_path_name
from merq.model.queue import KILOBYTE, UNLIMITED, OutgoingState, QueueKind, QueueProperties

if TYPE_CHECKING:
    from merq.engine.claims import Claim
    from merq.engine.opening import Descriptor
    from merq.engine.reading import WaitingRead

_TIMES: Final = struct.Struct("<II")
_U32: Final = struct.Struct("<I")


class Note(NamedTuple):
    """What is known of a message beside its packet; most messages have none.

    Attributes:
        aborts: How often a receive of it was aborted.
        purged: The queue was purged while somebody held it: it goes when it is given back.
        dead_letter: [MS-MQDMPR] 3.1.1.12: the path name of the dead-letter queue that the
            application chose, empty if none.
        kept: It is a copy of a message that is dead: its fate was told.
        moves: [MS-MQRR] 2.2.5.3, MoveCounter: how often it was moved, to a subqueue or back.
    """

    aborts: int = 0
    purged: bool = False
    dead_letter: str = ""
    kept: bool = False
    moves: int = 0


NO_NOTE: Final = Note()


HELD: Final = 0
HELD_QUIETLY: Final = 1
ENDING: Final = 2
"""How a message is held that was handed out: somebody may want to know that it was received, nobody
but the queue's journal does, or its end is under way."""

KEEPING: Final = frozenset({QueueKind.SYSTEM, QueueKind.JOURNAL})
"""Queues in which messages do not expire."""


class Queue:
    """[MS-MQDMPR] 3.1.1.2, 3.1.1.3: a queue at work.

    Attributes:
        positions: The messages in their order.
        by_message_id: Lookup identifiers by the key that a message id has here.
        staged_bytes: What messages on their way into the queue will take.
        notes: What is known of messages beside their packets, for those of which something is.
        expired: Messages whose time ran out and which are still here: somebody holds them, or they
            are on their way out.
        claims: What groups of consumers have reserved, by their names.
        held: Messages that were handed out to be ended later: HELD, HELD_QUIETLY or ENDING.
        descriptors: Who has it open.
        closing: Its deletion is under way; nothing more can be asked of it.
        state: How far an outgoing queue is; it has no meaning for others.
        arrived: How many messages came since the queue manager was started.
        left: How many left since then.
        transfer: How far an outgoing queue is with sending; others have none.
    """

    __slots__ = (
        "arrived",
        "by_message_id",
        "claims",
        "closing",
        "descriptors",
        "expired",
        "held",
        "journal",
        "left",
        "notes",
        "path",
        "positions",
        "properties",
        "staged_bytes",
        "state",
        "subqueues",
        "transfer",
        "waiting",
    )

    def __init__(self, properties: QueueProperties) -> None:
        self.properties = properties
        self.path: PathName | None = None
        if properties.kind not in {QueueKind.OUTGOING, QueueKind.STAGE}:
            self.path = parse_path_name(properties.path_name)
        self.positions = Positions()
        self.by_message_id = MessageIds()
        self.waiting: deque[WaitingRead] = deque()
        self.journal: Queue | None = None
        self.subqueues: dict[str, Queue] = {}
        self.staged_bytes = 0
        self.notes: dict[int, Note] = {}
        self.expired: set[int] = set()
        self.held: dict[int, int] = {}
        self.claims: dict[str, Claim] = {}
        self.descriptors: dict[int, Descriptor] = {}
        self.closing = False
        self.state = OutgoingState.INACTIVE
        self.arrived = 0
        self.left = 0
        self.transfer = Transfer() if properties.kind is QueueKind.OUTGOING else None

    @property
    def number(self) -> int:
        """Identifies the queue on this queue manager."""
        return self.properties.number

    @property
    def is_outgoing(self) -> bool:
        """[MS-MQDMPR] 3.1.1.3: whether its messages wait to be sent to another queue manager."""
        return self.properties.kind is QueueKind.OUTGOING

    @property
    def is_active(self) -> bool:
        """[MS-MQDMPR] 3.1.1.2: somebody has it open, or it has something to send."""
        return bool(self.descriptors) or (self.is_outgoing and self.positions.count > 0)

    def reserved(self) -> set[int]:
        """Messages that groups of consumers have reserved."""
        return {
            lookup_id
            for claim in self.claims.values()
            for each in (*claim.ranges, *claim.ending)
            for lookup_id in each.ids
        }

    def ending(self) -> set[int]:
        """Messages that are reserved, and whose removal is under way."""
        return {
            lookup_id
            for claim in self.claims.values()
            for each in claim.ending
            for lookup_id in each.ids
        }

    def expiry_of(self, packet: bytes | memoryview) -> int:
        """When a message leaves unreceived, in seconds since 1970; NEVER if it stays.

        [MS-MQDMPR] 3.1.2.4: a TimeToBeReceived of 0 runs out at once, which is 0 here, whatever the
        sender's clock said.
        """
        times: tuple[int, int] = _TIMES.unpack_from(packet, 48)
        lifetime, sent = times
        kind = self.properties.kind
        if lifetime == 0 and kind not in KEEPING:
            return 0
        if kind is QueueKind.OUTGOING:
            lifetime = min(lifetime, *_U32.unpack_from(packet, 12))
        if lifetime == NEVER or kind in KEEPING:
            # A copy in a journal or dead-letter queue stays: its time was the message's.
            return NEVER
        return min(sent + lifetime, NEVER - 1)

    def has_room(self, size: int) -> bool:
        """[MS-MQDMPR] 3.1.7.1.9: whether a packet of this size keeps within the quota."""
        quota = self.properties.quota
        if quota == UNLIMITED:
            return True
        return self.positions.total_bytes + self.staged_bytes + size <= quota * KILOBYTE
