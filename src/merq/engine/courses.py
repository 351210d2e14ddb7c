"""Messages of a sequence that come one behind the other, alike but for their place and content.

Whoever sends many to one queue sends them like this. What was looked at for the first of them holds
for the others, which then cost little and come into the queue as one step.
"""

from __future__ import annotations

from typing import Final

from merq.engine import notices
from merq.engine.changes import Change
from merq.engine.filling import put_run
from merq.engine.incoming import Incoming
from merq.engine.network_share import Coming
from merq.engine.queue import Queue
from merq.engine.state import State
from merq.wire.view import MessageView

_DELIVERY: Final = 3 << 5
_RECOVERABLE: Final = 1 << 5
"""[MS-MQMQ] 2.2.19.2: the delivery mode."""


class Course:
    """What follows one message.

    Attributes:
        queue: Where they go.
        incoming: Whose place is moved on by each.

    It ends when its sender has no more than `room` bytes left.
    """

    __slots__ = (
        "_address",
        "_base_flags",
        "_head",
        "_key",
        "_keys",
        "_packets",
        "_room",
        "_sent",
        "_size",
        "_state",
        "_tail",
        "_tail_end",
        "incoming",
        "queue",
    )

    def __init__(
        self,
        state: State,
        queue: Queue,
        incoming: Incoming,
        view: MessageView,
        address: str,
        room: int,
    ) -> None:
        packet = view.packet
        self._room = room
        self._address = address
        self._state = state
        self.queue = queue
        self.incoming = incoming
        self._base_flags = view.base_flags
        self._head = packet[12:48]
        self._sent = packet[52:56]
        self._tail_end = view.user_header_end
        self._tail = packet[60 : self._tail_end]
        self._key = state.source_key(packet[16:32])
        self._packets: list[bytes] = []
        self._keys: list[int] = []
        self._size = 0

    def takes(self, view: MessageView, address: str) -> bool:
        """Takes a message that is like the first, and the next; whatever else is not for here."""
        packet = view.packet
        if (
            packet[12:48] != self._head
            or packet[52:56] != self._sent
            or packet[60 : self._tail_end] != self._tail
            or view.base_flags != self._base_flags
            or view.message_class
            or view.is_encrypted
            or address != self._address
        ):
            return False
        size = self._size + len(packet)
        if size > self._room or not self._state.has_room(size) or not self.queue.has_room(size):
            return False
        sequence_id, number, previous = view.tx_place
        incoming = self.incoming
        if sequence_id != incoming.sequence_id or not incoming.accepts(
            sequence_id, number, previous
        ):
            return False
        incoming.number = number
        incoming.rejects = 0
        self._packets.append(packet)
        self._keys.append(self._key | view.message_ordinal)
        self._size = size
        return True

    def end(self, change: Change, coming: Coming) -> None:
        """What was taken comes into the queue."""
        if self._packets:
            coming.add(self._address, self._key >> 32, self._size)
            put_run(self._state, change, self.queue, self._packets, self._keys)


def is_plain(view: MessageView) -> bool:
    """Whether nobody wants to know of messages like this one: they only come into their queue."""
    flags = view.user_flags
    return (
        flags & (notices.TELLING | _DELIVERY) == _RECOVERABLE
        and not view.priority
        and not view.traced
    )
