"""[MS-MQDMPR] 3.1.1.13, 3.1.1.14: transactions over any number of queues, all or nothing.

What is sent in a transaction is kept until it commits and gets its place in the queue then; what is
received is locked until then. Both happen in one change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from merq.engine import notices
from merq.engine.changes import Answer, Change
from merq.engine.positions import LOCKED, PURGE_PENDING
from merq.engine.queue import Queue
from merq.engine.reading import ByCursor
from merq.engine.state import State
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.message_class import MessageClass
from merq.wire.build import TransactionPlace, in_transaction
from merq.wire.view import MessageView

IDENTIFIER_MASK: Final = (1 << 20) - 1
OPERATIONS_MAX: Final = 1_000_000
"""Sends and receives in one transaction."""


@dataclass(frozen=True, slots=True)
class Sending:
    """A message that is sent when the transaction commits."""

    queue: Queue
    packet: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Receiving:
    """A message that was handed out and is locked."""

    queue: Queue
    lookup_id: int


@dataclass(slots=True, eq=False)
class Transaction:
    """[MS-MQDMPR] 3.1.1.14: a unit of work."""

    identifier: int
    operations: list[Sending | Receiving] = field(default_factory=list)
    waiting_at: dict[int, Queue] = field(default_factory=dict)


class Transactions:
    """The transactions under way."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._open: dict[int, Transaction] = {}
        self._count = 0

    def begin(self) -> int:
        """[MS-MQDMPR] 3.1.7.1.8: a new transaction."""
        self._count += 1
        self._open[self._count] = Transaction(self._count)
        return self._count

    def get(self, identifier: int) -> Transaction:
        """A transaction that is open.

        Raises:
            MessageQueueError: It has ended.
        """
        found = self._open.get(identifier)
        if found is None:
            raise MessageQueueError(
                HResult.MQ_ERROR_TRANSACTION_SEQUENCE,
                "the transaction has ended: nothing more can be done in it",
            )
        return found

    def get_for_more(self, identifier: int) -> Transaction:
        """A transaction that is open and in which more can be done.

        Raises:
            MessageQueueError: It has ended, or has as many operations as it may.
        """
        found = self.get(identifier)
        if len(found.operations) >= OPERATIONS_MAX:
            raise MessageQueueError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                f"a transaction has at most {OPERATIONS_MAX} sends and receives",
            )
        return found

    def stage(self, transaction: Transaction, queue: Queue, packet: bytes, size: int) -> None:
        """A message is to be sent when the transaction commits; it has room for certain."""
        queue.staged_bytes += size
        transaction.operations.append(Sending(queue, packet, size))

    def lock(self, transaction: Transaction, queue: Queue, lookup_id: int) -> None:
        """A message was handed out in the transaction."""
        queue.positions.set_state(lookup_id, LOCKED)
        transaction.operations.append(Receiving(queue, lookup_id))

    def commit(self, request: int, identifier: int) -> None:
        """Everything happens, in the order in which it was asked for."""
        transaction = self.get(identifier)
        self._refuse_deleted(transaction)
        self._end(transaction)
        change = Change()
        sends = [each for each in transaction.operations if isinstance(each, Sending)]
        number = 0
        for operation in transaction.operations:
            if isinstance(operation, Sending):
                number += 1
                self._send(change, transaction, operation, number, len(sends))
            else:
                self._receive(change, operation)
        change.answers.append(Answer(request, None))
        self._state.submit(change)

    def _end(self, transaction: Transaction) -> None:
        """Nothing more happens in it: whoever waits for a message in it is told."""
        del self._open[transaction.identifier]
        for queue in transaction.waiting_at.values():
            for reader in list(queue.waiting):
                if reader.transaction != transaction.identifier:
                    continue
                queue.waiting.remove(reader)
                if isinstance(reader.selector, ByCursor):
                    reader.selector.cursor.wait_expired()
                error = MessageQueueError(
                    HResult.MQ_ERROR_TRANSACTION_SEQUENCE,
                    "the transaction has ended while this waited for a message in it",
                )
                self._state.answer(reader.request, error)

    def _refuse_deleted(self, transaction: Transaction) -> None:
        for operation in transaction.operations:
            if operation.queue.closing:
                path = operation.queue.properties.path_name
                raise MessageQueueError(
                    HResult.MQ_ERROR_QUEUE_DELETED,
                    f"{path} was deleted; the transaction cannot commit, abort it",
                )

    def _send(
        self,
        change: Change,
        transaction: Transaction,
        operation: Sending,
        number: int,
        count: int,
    ) -> None:
        place = TransactionPlace(
            sequence_id=transaction.identifier,
            sequence_number=number,
            previous_sequence_number=number - 1,
            identifier=transaction.identifier & IDENTIFIER_MASK,
            is_first=number == 1,
            is_last=number == count,
        )
        view = MessageView(in_transaction(MessageView(operation.packet), place))
        operation.queue.staged_bytes -= operation.size
        notices.put(self._state, change, operation.queue, view)
        notices.arrived(self._state, change, view)

    def _receive(self, change: Change, operation: Receiving) -> None:
        place = operation.queue.positions.get(operation.lookup_id)
        assert place is not None, "a locked message stays"
        view = MessageView(self._state.packet_of(place))
        notices.take(change, operation.queue, place, view)
        notices.received(self._state, change, operation.queue, view)

    def abort(self, request: int, identifier: int) -> None:
        """Nothing happens: what was received goes back to its place."""
        transaction = self.get(identifier)
        self._end(transaction)
        change = Change(answers=[Answer(request, None)])
        for operation in transaction.operations:
            if isinstance(operation, Sending):
                operation.queue.staged_bytes -= operation.size
            else:
                self._give_back(change, operation)
        self._state.submit(change)

    def _give_back(self, change: Change, operation: Receiving) -> None:
        queue, lookup_id = operation.queue, operation.lookup_id
        place = queue.positions.get(lookup_id)
        if place is None:
            return  # the queue was deleted, and the message with it
        if place.state == PURGE_PENDING and not queue.closing:
            view = MessageView(self._state.packet_of(place))
            notices.take(change, queue, place, view)
            reason = MessageClass.MQMSG_CLASS_NACK_Q_PURGED
            notices.lost(self._state, change, queue, view, reason)
            return
        queue.aborts[lookup_id] = queue.aborts.get(lookup_id, 0) + 1
        self._state.give_back(queue, lookup_id)
