"""Messages of a queue manager that is no Merq, for tests with a `RawSession`."""

from __future__ import annotations

from struct import pack
from uuid import UUID

from kit.exchange import START
from merq.wire.build import Outline, TransactionPlace, build_packet
from unit.exchange.exchange_world import TWO

OTHER = UUID(int=0xBBBB)
"""Who sends them, unless another is named."""


def incoming(
    name: str, body: bytes, *, source: UUID = OTHER, number: int = 0, ordinal: int = 1
) -> bytes:
    """A message to a queue of the second computer; in a sequence if it has a number."""
    place = TransactionPlace(
        sequence_id=7 << 32 | 1, sequence_number=number, previous_sequence_number=number - 1
    )
    return build_packet(
        Outline(
            source_queue_manager=source.bytes_le,
            destination=rf"TCP:{TWO}\private$\{name}",
            sent_time=START,
            message_ordinal=ordinal,
            body=body,
            recoverable=number > 0,
            transaction=place if number else None,
        )
    )


def session_ack(received: int, *, first: int = 0, flags: int = 0) -> bytes:
    """[MS-MQQB] 2.2.6: by who has sent nothing itself."""
    head = b"\x10\x00\x18\x00LIOR\x24\x00\x00\x00\xff\xff\xff\xff\x00\x00\x01\x00"
    return head + pack("<HHIHHHH", received, first, flags, 0, 0, 64, 0)
