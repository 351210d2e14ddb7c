"""[MS-MQDMPR] 3.1.1.3, 3.1.1.4: how far an outgoing queue is with sending what is in it.

What is in doubt after a restart is sent again, and the other side knows what it has. A
transactional message gets its place in the sequence when it is committed and keeps it
([MS-MQQB] 3.1.1.5), so no number has to be remembered that was not written with a message. The
AwaitingFinalACKTable ([MS-MQQB] 3.1.1.3.1) survives as the last message that was acknowledged in
order: what is still there up to it waits for its FinalAck. Everything else is memory.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

LANES: Final = 8
LANE_SHIFT: Final = 56

SEQUENCE_NUMBER_MAX: Final = 0xFFFFFFFF

HISTORY_MAX: Final = 32
"""Entries of the connection history that are kept; [MS-MQDMPR] 3.1.1.3 sets no limit."""

MISSING_ROUNDS: Final = 2
"""A message that was sent so often, and each time the receiver stood before it, is not there."""


_TRANSFER: Final = struct.Struct("<I4xQ16s")
_STRAY: Final = struct.Struct("<Q")
_NOBODY: Final = bytes(16)


class Departure(NamedTuple):
    """A message on its way out.

    Attributes:
        packet: As it travels.
        is_recoverable: The other side acknowledges it when it has it on its disk.
        is_ordered: It is one of our own sequence: it stays until its OrderAck comes.
    """

    lookup_id: int
    packet: bytes
    is_recoverable: bool
    is_ordered: bool
    is_traced: bool


class Unordered(NamedTuple):
    """[MS-MQQB] 3.1.1.3.1.2: a transactional message that was transmitted and has no OrderAck."""

    sequence_id: int
    number: int
    lookup_id: int
    wants_final: bool


class Attempt(NamedTuple):
    """[MS-MQDMPR] 3.1.1.3: an entry of the connection history.

    Attributes:
        status: One of the names that the document has for it.
        time: Seconds since 1970.
        error: An HRESULT, or 0.
        addresses: Where to.
        text: What was found, for people.
    """

    status: str
    time: int
    error: int
    addresses: tuple[str, ...]
    text: str = ""


class Transfer:
    """What an outgoing queue knows about its messages.

    Attributes:
        sent_up_to: By lane (7 minus priority), the lookup identifier of the last message that is
            under way; what is behind it waits.
        ever_sent: The same, since the start; messages up to there may have arrived.
        sequence_id: The current sequence, 0 before the first.
        next_number: The number of the next message in it.
        is_own: The sequence was begun since the start, so that all its numbers are known.
        unordered: Transmitted, and waiting for an OrderAck, in order.
        awaiting_final: Lookup identifiers of messages that wait for their FinalAck.
        ordered_up_to: The last message that was acknowledged in order.
        ordering: How many OrderAcks came whose effect is not on the disk yet.
        unsettled: Messages that an OrderAck named, and that could not be written to the disk.
        remote: [MS-MQQB] 3.1.1.3.1: RemoteQMGuid, 16 bytes, of the queue manager that transactional
            messages are transmitted to, as the disk has it; None before the first. Acknowledgments
            end to end count only if they come through a session with it.
        next_remote: Whom `remote` will be when that is on the disk; None if nothing is under way.
        strays: Messages that are to be sent again although later ones were acknowledged in order:
            they are not part of our sequence, or their leaving could not be written.
        previous: The place of the message that was sent before, for what is sent next.
        last_ack: Sequence and number of the last OrderAck.
        last_ack_time: When it came, in seconds since 1970.
        last_ack_count: How many came.
        is_behind: Since all was sent again last, an OrderAck came that stands before the first
            message that waits for one.
        missing: That message, and how many times in a row this was so when all was sent again.
        history: The connection history, the newest last.
        next_hops: Addresses by which the destination may be reached.
        resends: How often transactional messages were sent again since the last OrderAck.
        resend_interval: How long an OrderAck is waited for, in seconds.
        resend_time: When they are sent again, in seconds since 1970; 0 if nothing waits.
        retry_time: When it is tried again to connect, in seconds since 1970; 0 if nothing waits.
    """

    __slots__ = (
        "awaiting_final",
        "ever_sent",
        "history",
        "is_behind",
        "is_own",
        "last_ack",
        "last_ack_count",
        "last_ack_time",
        "missing",
        "next_hops",
        "next_number",
        "next_remote",
        "ordered_up_to",
        "ordering",
        "previous",
        "remote",
        "resend_interval",
        "resend_time",
        "resends",
        "retry_time",
        "sent_up_to",
        "sequence_id",
        "strays",
        "unordered",
        "unsettled",
    )

    def __init__(self) -> None:
        self.sent_up_to = [(lane << LANE_SHIFT) - 1 for lane in range(LANES)]
        self.ever_sent = list(self.sent_up_to)
        self.sequence_id = 0
        self.next_number = 1
        self.is_own = False
        self.unordered: deque[Unordered] = deque()
        self.awaiting_final: set[int] = set()
        self.ordered_up_to = self.sent_up_to[-1]
        self.ordering = 0
        self.unsettled: set[int] = set()
        self.remote: bytes | None = None
        self.next_remote: bytes | None = None
        self.strays: set[int] = set()
        self.previous = (0, 0)
        self.last_ack = (0, 0)
        self.last_ack_time = 0
        self.last_ack_count = 0
        self.is_behind = False
        self.missing = (0, 0)
        self.history: deque[Attempt] = deque(maxlen=HISTORY_MAX)
        self.next_hops: tuple[str, ...] = ()
        self.resends = 0
        self.resend_interval = 0
        self.resend_time = 0
        self.retry_time = 0

    def holds(self, lookup_id: int) -> bool:
        """Whether a message is under way, so that only the other side knows what becomes of it."""
        return lookup_id <= self.sent_up_to[lookup_id >> LANE_SHIFT]

    def was_sent(self, lookup_id: int) -> bool:
        """Whether a message was transmitted since the start."""
        return lookup_id <= self.ever_sent[lookup_id >> LANE_SHIFT]

    def may_have_arrived(self, lookup_id: int) -> bool:
        """Whether a message was transmitted since the start, be it long ago.

        Not if the receiver has said so often that it stands before it.
        """
        if self.missing == (lookup_id, MISSING_ROUNDS):
            return False
        return self.was_sent(lookup_id)

    def count_round(self) -> int | None:
        """[MS-MQQB] 3.1.6.5: all is sent again; gives the first message if it has not arrived.

        [MS-MQQB] 3.1.5.8.6: every transactional message brings an OrderAck, and that says where the
        receiver stands. If it stands before the first message each time, though that was sent, then
        the message has not been accepted and will not be.
        """
        head = self.unordered[0].lookup_id if self.unordered else 0
        missing, rounds = self.missing
        rounds = rounds + 1 if missing == head else 1
        self.missing = (head, min(rounds, MISSING_ROUNDS)) if self.is_behind else (0, 0)
        self.is_behind = False
        return head if self.missing[1] == MISSING_ROUNDS else None

    @property
    def is_under_way(self) -> bool:
        """Whether anything was sent since the last rewind."""
        return any(sent != (lane << LANE_SHIFT) - 1 for lane, sent in enumerate(self.sent_up_to))

    def rewind(self) -> None:
        """[MS-MQQB] 3.1.3.2, 3.1.6.5: what was not acknowledged is to be sent again, in order."""
        for lane in range(LANES):
            self.sent_up_to[lane] = (lane << LANE_SHIFT) - 1
        done = min(self.ordered_up_to, min(self.strays, default=self.ordered_up_to + 1) - 1)
        self.sent_up_to[-1] = max(self.sent_up_to[-1], done)
        self.previous = (0, 0)
        self.is_behind = False

    def passed(self, lookup_id: int) -> None:
        """A message is on its way."""
        lane = lookup_id >> LANE_SHIFT
        self.sent_up_to[lane] = lookup_id
        self.ever_sent[lane] = max(self.ever_sent[lane], lookup_id)
        if self.missing == (lookup_id, MISSING_ROUNDS):
            self.missing = (lookup_id, MISSING_ROUNDS - 1)  # it may arrive now

    def awaits_again(self, lookup_ids: Iterable[int]) -> None:
        """[MS-MQQB] 3.1.1.3.1: the AwaitingFinalACKTable after a restart.

        These are all messages of the queue up to the last one that was acknowledged in order.
        """
        self.awaiting_final = set(lookup_ids) - self.strays
        self.ever_sent[-1] = max(self.ever_sent[-1], self.ordered_up_to)

    def restored(self, sequence_id: int, next_number: int) -> None:
        """The sequence goes on from here, if it is not behind already."""
        self.sequence_id, self.next_number = max(
            (self.sequence_id, self.next_number), (sequence_id, next_number)
        )


def pack_transfer(queue: int, transfer: Transfer, remote: bytes | None) -> bytes:
    """What the log keeps of an outgoing queue: whom it sends to, and how far that one has got.

    Strays are in it as far as they lie before that place: they wait for no FinalAck.
    """
    strays = [each for each in transfer.strays if each <= transfer.ordered_up_to]
    head = _TRANSFER.pack(queue, transfer.ordered_up_to, remote or _NOBODY)
    return head + b"".join(map(_STRAY.pack, strays))


def unpack_transfer(data: bytes) -> tuple[int, int, list[int], bytes | None]:
    """Queue, last message acknowledged in order, strays and remote of `pack_transfer`."""
    queue, ordered_up_to, remote = _TRANSFER.unpack_from(data)
    strays = [each for (each,) in _STRAY.iter_unpack(data[_TRANSFER.size :])]
    return queue, ordered_up_to, strays, None if remote == _NOBODY else remote
