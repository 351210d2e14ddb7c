"""[MS-MQQB] 3.1.5.8.6: why transactional messages were dropped without a word to their sender.

Only people can decide then, so what was found, what was expected and what to do is told to them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum
from typing import NamedTuple
from uuid import UUID

from merq.engine.incoming import FUTURE_S, Incoming
from merq.engine.sequence_keys import SequenceKey


class DropReason(Enum):
    """Why a message is of no sequence that can be the next."""

    OLDER = "its peer has sent messages of a later sequence before"
    BELOW_OTHERS = "its address is new for this sender, and another has sent of a later sequence"
    AHEAD = "its address is new for this sender, and the time in its identifier is still to come"
    BEGINS_LATE = "messages of it that were sent before this one are not known here"


class Dropped(NamedTuple):
    """A transactional message that was dropped, and that its sender is told nothing of.

    Attributes:
        key: Who sent it, and to which name.
        address: Where it came from.
        sequence_id: Its sequence.
        known: The sequence by which it was judged, 0 if none is known.
        known_address: Where that came from.
        reason: Why it was dropped.
    """

    key: SequenceKey
    address: str
    sequence_id: int
    known: int
    known_address: str
    reason: DropReason

    @property
    def expected(self) -> str:
        """What would have been taken."""
        match self.reason:
            case DropReason.OLDER:
                return f"{self.known:016x} or later"
            case DropReason.BELOW_OTHERS:
                return f"later than {self.known:016x}, which came from {self.known_address}"
            case DropReason.AHEAD:
                hours = FUTURE_S // 3600
                return f"a time no more than {hours} hours ahead of the clock of this computer"
            case DropReason.BEGINS_LATE:
                return "its first message"

    @property
    def advice(self) -> str:
        """Why it was dropped, and what somebody can do who knows the sender."""
        sender = UUID(bytes_le=self.key.source)
        reset = f"`merq queue forget-senders` with --sender {sender}"
        match self.reason:
            case DropReason.OLDER | DropReason.BELOW_OTHERS:
                return (
                    f"{self.reason.value}: if the sender is who it says, and was restored or had "
                    f"a wrong clock, {reset} lets it begin anew"
                )
            case DropReason.AHEAD:
                return (
                    f"{self.reason.value}, {_time_of(self.sequence_id)}: if the sender is who it "
                    f"says, and has moved, put its clock right; {reset} lets it begin anew"
                )
            case DropReason.BEGINS_LATE:
                return (
                    f"{self.reason.value}: if this side was restored or reset, they are lost to "
                    "it; remove the messages of that sequence from the outgoing queue of the "
                    "sender, and send them anew"
                )


def reason_of(incoming: Incoming, sequence_id: int) -> DropReason:
    """Why a message of a sequence is not taken after those by which it was judged."""
    if incoming.is_refused:
        return DropReason.AHEAD
    if sequence_id >= incoming.sequence_id:
        return DropReason.BEGINS_LATE
    is_its_own = incoming.is_kept or incoming.is_rejected
    return DropReason.OLDER if is_its_own else DropReason.BELOW_OTHERS


def _time_of(sequence_id: int) -> str:
    return datetime.fromtimestamp(sequence_id >> 32, UTC).isoformat(" ", "seconds")
