"""Messages as applications see them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Final
from uuid import UUID

from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.body import Value, decode_body
from merq.model.delivered import Delivered
from merq.model.message_class import MessageClass
from merq.model.property_types import check_types
from merq.model.queue import NULL_GUID
from merq.wire.headers import INFINITE
from merq.wire.message import UserMessage
from merq.wire.queue_names import (
    admin_queue_name,
    destination_name,
    destination_names,
    response_queue_name,
)
from merq.wire.view import MessageView

TIME_TO_REACH_QUEUE_S: Final = 345_600
"""[MS-MQDMPR] 3.1.1.12: a message has four days to reach its queue unless the sender says else."""

ACKNOWLEDGE_ARRIVAL: Final = 0x05
"""Tell the administration queue whether the message reached its queue."""
ACKNOWLEDGE_RECEIVE: Final = 0x0E
"""Tell the administration queue whether the message was received, or why it never came that far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message to be sent. Times are seconds; queues are path names or format names.

    Attributes:
        body: str, bytes, bool, int, float, UUID, datetime or None.
        priority: 0 to 7, 7 goes first; transactional messages have 0.
        recoverable: Survives a restart; express messages do not.
        journal: Keep a copy in the sender's journal when it is delivered.
        dead_letter: Keep a copy in the dead-letter queue when it could not be.
        dead_letter_queue: A queue of this computer for that copy, instead of the system's.
        acknowledge: ACKNOWLEDGE_ARRIVAL, ACKNOWLEDGE_RECEIVE or both, joined by `|`. It goes with
            `admin_queue`: without the other, either of them is left out of the message.
        report_queue: [MS-MQQB] 3.1.5.8.9: the identifier of a queue that is told of each queue
            manager on the message's way; all 0 is none.
    """

    body: Value = None
    label: str = ""
    priority: int = 3
    recoverable: bool = False
    time_to_reach_queue: int = TIME_TO_REACH_QUEUE_S
    time_to_be_received: int = INFINITE
    journal: bool = False
    dead_letter: bool = False
    acknowledge: int = 0
    admin_queue: str = ""
    response_queue: str = ""
    correlation_id: bytes = bytes(20)
    app_specific: int = 0
    extension: bytes = b""
    dead_letter_queue: str = ""
    report_queue: UUID = NULL_GUID

    def check(self) -> None:
        """Refuses values of other types than these; their ranges are checked when it is sent.

        Raises:
            MessageQueueError: The text says which, and what belongs there.
        """
        check_types(self, _TYPES)
        if self.dead_letter_queue and not self.dead_letter:
            raise MessageQueueError(
                HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
                f"dead_letter_queue is {self.dead_letter_queue!r} without dead_letter=True: no "
                "copy would be kept there",
            )


_TYPES: Final[dict[str, type]] = {
    "label": str,
    "priority": int,
    "recoverable": bool,
    "time_to_reach_queue": int,
    "time_to_be_received": int,
    "journal": bool,
    "dead_letter": bool,
    "acknowledge": int,
    "admin_queue": str,
    "response_queue": str,
    "correlation_id": bytes,
    "app_specific": int,
    "extension": bytes,
    "dead_letter_queue": str,
    "report_queue": UUID,
}

PROPERTIES: Final = tuple(_TYPES)
"""Everything about a message but its body."""


class ReceivedMessage:
    """A message that was received or peeked; its fields are read when they are asked for."""

    def __init__(self, delivered: Delivered) -> None:
        self._view = MessageView(delivered.packet)
        self.lookup_id = delivered.lookup_id
        """Its place in its queue, as a number."""
        self.abort_count = delivered.aborts
        """How often it was received in a transaction that was aborted."""
        self.move_count = delivered.moves
        """How often it was moved to a subqueue, or back."""
        self._arrival = delivered.arrival

    def __reduce__(self) -> tuple[type[ReceivedMessage], tuple[Delivered]]:
        delivered = Delivered(
            self._view.packet, self.lookup_id, self._arrival, self.abort_count, self.move_count
        )
        return type(self), (delivered,)

    def __repr__(self) -> str:
        return f"<message {self.id} {self.label!r}, {self._view.body_size} bytes>"

    @property
    def id(self) -> str:
        r"""The message identifier, `{guid}\n`."""
        return f"{{{self._view.source_queue_manager}}}\\{self._view.message_ordinal}"

    @property
    def id_bytes(self) -> bytes:
        """The message identifier's 20 bytes, as a correlation id wants them."""
        return self._view.message_id

    @cached_property
    def body(self) -> Value:
        """The body as a Python value."""
        return decode_body(self._view.body_type, self._view.body)

    @property
    def body_bytes(self) -> bytes:
        """The body's bytes."""
        return self._view.body

    @property
    def body_type(self) -> int:
        """The body's type, a PROPVARIANT type."""
        return self._view.body_type

    @property
    def label(self) -> str:
        """The label."""
        return self._view.label

    @property
    def priority(self) -> int:
        """0 to 7."""
        return self._view.priority

    @property
    def recoverable(self) -> bool:
        """Whether it survives a restart."""
        return self._view.delivery_mode == 1

    @property
    def transactional(self) -> bool:
        """Whether it was sent in a transaction."""
        return self._view.transactional

    @property
    def message_class(self) -> int:
        """Normal, or which acknowledgment: a MessageClass, or an application's own number."""
        return MessageClass.of(self._view.message_class) or self._view.message_class

    @property
    def correlation_id(self) -> bytes:
        """20 bytes; in an acknowledgment, the identifier of the message that it is about."""
        return self._view.correlation_id

    @property
    def app_specific(self) -> int:
        """A number of the application's own."""
        return self._view.application_tag

    @property
    def extension(self) -> bytes:
        """Bytes of the application's own."""
        return self._view.extension

    @property
    def sent_at(self) -> datetime:
        """When it was sent."""
        return datetime.fromtimestamp(self._view.sent_time, tz=UTC)

    @property
    def arrived_at(self) -> datetime:
        """When it came into its queue."""
        return datetime.fromtimestamp(self._arrival, tz=UTC)

    @property
    def source_machine(self) -> UUID:
        """The queue manager that took it from its sender."""
        return self._view.source_queue_manager

    @property
    def time_to_reach_queue(self) -> int:
        """Seconds that it had to reach its queue, from when it was sent."""
        return self._view.time_to_reach_queue

    @property
    def time_to_be_received(self) -> int:
        """Seconds that it has to be received, from when it was sent."""
        return self._view.time_to_be_received

    @property
    def acknowledge(self) -> int:
        """The administration acknowledgments that the sender asked for."""
        return self._view.acknowledgments

    @property
    def journal(self) -> bool:
        """Whether the sender keeps a copy when it is delivered."""
        return self._view.positive_journaling

    @property
    def dead_letter(self) -> bool:
        """Whether the sender keeps a copy when it cannot be delivered."""
        return self._view.negative_journaling

    @property
    def destination_queue(self) -> str:
        """Where it was sent, as a format name."""
        return destination_name(self._view)

    @property
    def admin_queue(self) -> str:
        """Where acknowledgments go, as a format name; empty if nowhere."""
        return admin_queue_name(self._view)

    @property
    def sender_id(self) -> bytes:
        """Who sent it, as it says itself: the bytes of a SID or of a queue manager's GUID.

        Empty if it does not say; nothing has proved it.
        """
        header = self._view.security_header
        return b"" if header is None else header.security_id

    @property
    def sender(self) -> str:
        """The same as people write it: `S-1-5-21-…`, a GUID, or hexadecimal digits."""
        header = self._view.security_header
        return "" if header is None else header.sender_text

    @property
    def report_queue(self) -> UUID | None:
        """The identifier of the queue that is told of its way; None if it is not traced."""
        header = self._view.decode().debug_header if self._view.traced else None
        return None if header is None else header.queue_identifier

    @property
    def details(self) -> UserMessage:
        """Every field of the packet, as the documents name them."""
        return self._view.decode()

    @property
    def response_queue(self) -> str:
        """Where the sender waits for a reply, as a format name; empty if nowhere."""
        return response_queue_name(self._view)

    @property
    def destination_queues(self) -> tuple[str, ...]:
        """All queues that got a copy, as format names; empty if it was sent to one alone."""
        return destination_names(self._view)

    @property
    def packet(self) -> bytes:
        """The whole message as it travels."""
        return self._view.packet


def received_of(result: object) -> ReceivedMessage | list[ReceivedMessage]:
    """What an answer hands out, as applications see it: one message, or several."""
    if isinstance(result, Delivered):
        return ReceivedMessage(result)
    assert isinstance(result, list), "messages were asked for"
    return [ReceivedMessage(each) for each in result if isinstance(each, Delivered)]
