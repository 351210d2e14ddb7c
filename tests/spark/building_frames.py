"""Frames of messages made by hand, and what every column of them should be.

What is expected comes from `ReceivedMessage` and the full parser, which read packets one by one.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from merq.client.messages import ReceivedMessage
from merq.model.body import VT_BSTR, VT_LPSTR
from merq.model.delivered import Delivered
from merq.model.message_class import MessageClass
from merq.model.variant import VariantType
from merq.protocol.application.rows import PREFIX_SIZE, RowsReport, prefixed
from merq.spark.decoding import SEQUENCE_MASK
from merq.spark.texts import text_of

TEXTS: Final = frozenset({int(VariantType.VT_LPWSTR), VT_BSTR, VT_LPSTR})
"""Types of bodies that are text."""

QUEUE: Final = r"alpha\private$\q"


class Stored(NamedTuple):
    """A message as it lies in a queue."""

    packet: bytes
    lookup_id: int = 1
    arrival: int = 0
    aborts: int = 0
    moves: int = 0

    @property
    def message(self) -> ReceivedMessage:
        """As clients see it."""
        return ReceivedMessage(
            Delivered(self.packet, self.lookup_id, self.arrival, self.aborts, self.moves)
        )


def report_of(messages: Sequence[Stored], pieces: int = 0) -> RowsReport:
    """The frame that the queue manager would send, its last messages in pieces of their own."""
    ids, offsets, sizes, notes = array("Q"), array("I"), array("I"), array("I")
    records: list[bytes] = []
    size = 0
    for row, each in enumerate(messages):
        records.append(prefixed(5, each.arrival, each.lookup_id, each.packet))
        ids.append(each.lookup_id)
        offsets.append(size + PREFIX_SIZE)
        sizes.append(len(each.packet))
        size += len(records[-1])
        if each.aborts or each.moves:
            notes.extend((row, each.aborts, each.moves))
    data = (b"".join(records[:-pieces]), *records[-pieces:]) if pieces else (b"".join(records),)
    columns = [each.tobytes() for each in (ids, offsets, sizes, notes)]
    return RowsReport(len(messages), columns[0], columns[1], columns[2], columns[3], data)


def expected(stored: Stored) -> dict[str, Any]:
    """Every column of a message."""
    message = stored.message
    details = message.details
    security, soap = details.security_header, details.srmp_envelope_header
    transaction = details.transaction_header
    flags = None if transaction is None else transaction.fields.flags
    number = MessageClass.of(int(message.message_class))
    return {
        "queue": QUEUE,
        "message_id": message.id,
        "lookup_id": message.lookup_id,
        "sequence": message.lookup_id & SEQUENCE_MASK,
        "label": shown(message.label),
        "body": message.body_bytes,
        "body_type": _signed(message.body_type),
        "value": _value(message),
        "priority": message.priority,
        "delivery": _delivery(message),
        "class": f"{int(message.message_class):#06x}" if number is None else number.name,
        "correlation_id": message.correlation_id,
        "sent_time": message.sent_at,
        "arrived_time": message.arrived_at,
        "source_qm": str(message.source_machine),
        "response_queue": shown(message.response_queue) or None,
        "admin_queue": shown(message.admin_queue) or None,
        "app_tag": message.app_specific,
        "sender_id": None if security is None else security.security_id or None,
        "transaction_id": None
        if flags is None
        else f"{{{message.source_machine}}}\\{flags.identifier}",
        "first_in_xact": None if flags is None else flags.first_message,
        "last_in_xact": None if flags is None else flags.last_message,
        "extension": message.extension,
        "abort_count": message.abort_count,
        "move_count": message.move_count,
        "soap_envelope": None if soap is None else shown(soap.envelope.data or "") or None,
        "destination": shown(message.destination_queue) or None,
        "body_text": _value(message)
        if message.body_type in TEXTS
        else text_of(message.body_type, message.body_bytes),
    }


def shown(text: str) -> str:
    """Half a pair of surrogates is no text for Spark: it is shown as what cannot be read."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _signed(number: int) -> int:
    return number - (1 << 32) if number >= 1 << 31 else number


def _delivery(message: ReceivedMessage) -> str:
    if message.transactional:
        return "transactional"
    return "recoverable" if message.recoverable else "express"


def _value(message: ReceivedMessage) -> str | None:
    body = message.body
    if message.body_type not in TEXTS or not isinstance(body, str):
        return None
    return body if body == shown(body) else None
