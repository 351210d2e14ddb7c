"""What became of messages that came together, for whoever tells people."""

from __future__ import annotations

from typing import NamedTuple

from merq.engine.arrival_room import Shortage
from merq.engine.dropped import Dropped
from merq.engine.incoming import Incoming
from merq.engine.packet_names import name_of_destination
from merq.engine.queue import Queue
from merq.wire.view import MessageView


class Rejected(NamedTuple):
    """A message that was not taken, whatever its sender is told of it.

    Attributes:
        view: The packet.
        address: Where it came from.
        reason: The class that a negative acknowledgment has.
    """

    view: MessageView
    address: str
    reason: int

    @property
    def destination(self) -> str:
        """The queue that it was for, as far as its name can be read."""
        return str(name_of_destination(self.view) or "")


class Arrived(NamedTuple):
    """What became of messages that came together.

    Attributes:
        taken: How many were looked at; those behind were not, because there is no room.
        sequences: Whose senders are to be told how far they are.
        ordered: Queues for which an OrderAck came.
        shortage: Why not all were looked at.
        dropped: Messages of which their senders are told nothing, because they are of no sequence
            that can be the next: who, where from, and the identifier of their sequence.
        rejected: Messages that were not taken; their senders know of it only if they asked.
    """

    taken: int
    sequences: list[Incoming]
    ordered: list[Queue]
    shortage: Shortage
    dropped: list[Dropped]
    rejected: list[Rejected]

    @property
    def refusal(self) -> str:
        """Why the session of the first that was not looked at is to be closed; empty if none is."""
        return self.shortage.refusal
