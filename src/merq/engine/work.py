"""[MS-MQDMPR] 3.1.1.13, 3.1.1.14: transactions and their operations, and prepared ones as bytes."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias, assert_never, final
from uuid import UUID

from merq.engine.changes import Change
from merq.engine.queue import Note, Queue
from merq.wire.build import TRANSACTION_HEADER_SIZE, stamp
from merq.wire.view import MessageView

_SEND: Final = 1
_RECEIVE: Final = 2
_MOVE: Final = 3
_OPERATION: Final = struct.Struct("<B3xIQII")
_GUID_SIZE: Final = 16


@final
class Sending:
    """A message that is sent when the transaction commits; it takes `size` bytes then.

    Attributes:
        view: The packet as the application made it.
        sent_time: When it was sent.
        ordinal: The number that its message id has.
    """

    __slots__ = ("note", "ordinal", "queue", "sent_time", "size", "view")

    def __init__(
        self, queue: Queue, view: MessageView, sent_time: int, ordinal: int, note: Note | None
    ) -> None:
        self.queue = queue
        self.view = view
        self.sent_time = sent_time
        self.ordinal = ordinal
        self.note = note
        self.size = len(view.packet) + TRANSACTION_HEADER_SIZE


@final
class Receiving:
    """A message that was handed out and is locked.

    Attributes:
        is_quiet: Nobody wants to know that it was received.
    """

    __slots__ = ("is_quiet", "lookup_id", "queue")

    def __init__(self, queue: Queue, lookup_id: int, *, is_quiet: bool = False) -> None:
        self.queue = queue
        self.lookup_id = lookup_id
        self.is_quiet = is_quiet


@dataclass(frozen=True, slots=True)
class Moving:
    """A message that is locked and moves to another queue when the transaction commits."""

    queue: Queue
    lookup_id: int
    target: Queue


Operation: TypeAlias = Sending | Receiving | Moving


class Phase(Enum):
    """How far a transaction is."""

    OPEN = "open"
    PREPARING = "preparing"
    PREPARED = "prepared"
    ENDING = "ending"


@dataclass(slots=True, eq=False)
class Transaction:
    """[MS-MQDMPR] 3.1.1.14: a unit of work.

    Attributes:
        number: Identifies it for as long as the queue manager runs.
        identifier: Identifies it for ever, once it is prepared.
        waiting_at: Queues at which somebody waits for a message in it.
        ending: The change that prepares or commits it, once that was asked for.
    """

    number: int
    identifier: UUID | None = None
    operations: list[Operation] = field(default_factory=list)
    waiting_at: dict[int, Queue] = field(default_factory=dict)
    phase: Phase = Phase.OPEN
    ending: Change | None = None


def pack_transaction(transaction: Transaction, source: bytes) -> bytes:
    """A transaction that is prepared, as the log keeps it; `source` is this queue manager."""
    assert transaction.identifier is not None, "only what has an identifier can be prepared"
    parts = [transaction.identifier.bytes]
    for operation in transaction.operations:
        match operation:
            case Sending():
                own = operation.note.dead_letter if operation.note else ""
                text = own.encode("utf-8", "surrogatepass")
                packet = stamp(
                    operation.view.packet, source, operation.sent_time, operation.ordinal
                )
                parts += (
                    _OPERATION.pack(
                        _SEND, operation.queue.number, operation.size, len(packet), len(text)
                    ),
                    packet,
                    text,
                )
            case Receiving():
                parts.append(
                    _OPERATION.pack(_RECEIVE, operation.queue.number, operation.lookup_id, 0, 0)
                )
            case Moving():
                target = operation.target.number
                parts.append(
                    _OPERATION.pack(_MOVE, operation.queue.number, operation.lookup_id, target, 0)
                )
            case _:
                assert_never(operation)
    return b"".join(parts)


def unpack_transaction(data: bytes, number: int, queues: Mapping[int, Queue]) -> Transaction:
    """The transaction that `pack_transaction` wrote."""
    transaction = Transaction(number, UUID(bytes=data[:_GUID_SIZE]), phase=Phase.PREPARED)
    at = _GUID_SIZE
    while at < len(data):
        kind, queue, value, third, length = _OPERATION.unpack_from(data, at)
        at += _OPERATION.size
        operation: Operation
        if kind == _SEND:
            view = MessageView(data[at : at + third])
            text = data[at + third : at + third + length].decode("utf-8", "surrogatepass")
            note = Note(dead_letter=text) if text else None
            operation = Sending(queues[queue], view, view.sent_time, view.message_ordinal, note)
            at += third + length
        elif kind == _RECEIVE:
            operation = Receiving(queues[queue], value)
        else:
            assert kind == _MOVE, f"operation {kind} is unknown"
            operation = Moving(queues[queue], value, queues[third])
        transaction.operations.append(operation)
    return transaction
