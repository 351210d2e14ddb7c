"""[MS-MQDMPR] 3.1.4.3 to 3.1.4.5, 3.1.7.1.8: transactions over any queues, all or nothing.

What is sent in a transaction is kept until it commits and gets its place in the queue then; what is
received or moved is locked until then. All of it happens in one change. A transaction may be
prepared first: it then survives a restart, and ends as it is told.
"""

from __future__ import annotations

from itertools import islice
from typing import Final, NamedTuple, assert_never
from uuid import UUID

from merq.engine import notices, outgoing, poison, queue_changes, records
from merq.engine.changes import (
    Answer,
    Change,
    GiveBackStep,
    MoveStep,
    PrepareStep,
    ResolveStep,
)
from merq.engine.filling import put_run
from merq.engine.positions import LOCKED, PURGE_PENDING
from merq.engine.queue import NO_NOTE
from merq.engine.reading import ByCursor
from merq.engine.state import State
from merq.engine.work import (
    Moving,
    Operation,
    Phase,
    Receiving,
    Sending,
    Transaction,
    pack_transaction,
)
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.message_class import MessageClass
from merq.wire.build import TransactionPlace, in_transaction, transaction_headers
from merq.wire.view import MessageView

IDENTIFIER_MASK: Final = (1 << 20) - 1
_JOURNALING: Final = 3 << 8
"""[MS-MQMQ] 2.2.19.2: negative and positive journaling, in UserHeader.Flags."""


OPERATIONS_MAX: Final = 1_000_000
"""Sends, receives and moves in one transaction."""

TRANSACTIONS_MAX: Final = 100_000
"""Transactions under way at the same time."""


class Transactions:
    """The transactions under way."""

    def __init__(self, state: State) -> None:
        self._state = state

    def begin(self) -> int:
        """[MS-MQDMPR] 3.1.7.1.8: a new transaction."""
        state = self._state
        if len(state.transactions) >= TRANSACTIONS_MAX:
            raise MessageQueueError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                f"{TRANSACTIONS_MAX} transactions are under way: end some",
            )
        state.transaction_count += 1
        state.transactions[state.transaction_count] = Transaction(state.transaction_count)
        return state.transaction_count

    def get(self, number: int) -> Transaction:
        """A transaction that has not ended.

        Raises:
            MessageQueueError: It has.
        """
        found = self._state.transactions.get(number)
        if found is None or found.phase is Phase.ENDING:
            raise MessageQueueError(
                HResult.MQ_ERROR_TRANSACTION_SEQUENCE,
                "the transaction has ended: nothing more can be done in it",
            )
        return found

    def _get_to_end(self, number: int) -> Transaction:
        """A transaction that can be ended; one that is being prepared may fail to be, and waits."""
        found = self.get(number)
        if found.phase is Phase.PREPARING:
            raise MessageQueueError(
                HResult.MQ_ERROR_TRANSACTION_SEQUENCE,
                "the transaction is being prepared: wait until that is answered",
            )
        return found

    def get_for_more(self, number: int, count: int = 1) -> Transaction:
        """A transaction that is open and in which more can be done.

        Raises:
            MessageQueueError: It has ended or is prepared, or would have too many operations.
        """
        found = self.get(number)
        if found.phase is not Phase.OPEN:
            raise MessageQueueError(
                HResult.MQ_ERROR_TRANSACTION_SEQUENCE,
                "the transaction is prepared: it can only be committed or aborted",
            )
        if len(found.operations) + count > OPERATIONS_MAX:
            raise MessageQueueError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                f"a transaction has at most {OPERATIONS_MAX} sends, receives and moves",
            )
        return found

    def is_open(self, number: int) -> bool:
        """Whether a transaction is under way and was not prepared."""
        found = self._state.transactions.get(number)
        return found is not None and found.phase is Phase.OPEN

    def is_prepared(self, number: int) -> bool:
        """Whether a transaction is prepared and has not been told how it ends."""
        found = self._state.transactions.get(number)
        return found is not None and found.phase is Phase.PREPARED

    def prepared(self) -> dict[UUID, int]:
        """The transactions that are prepared, by the names under which they were."""
        return {
            each.identifier: each.number
            for each in self._state.transactions.values()
            if each.phase is Phase.PREPARED and each.identifier is not None
        }

    def _is_taken(self, identifier: UUID) -> bool:
        """Whether another transaction has this name, be it on its way in or out."""
        return any(
            each.identifier == identifier and each.phase is not Phase.OPEN
            for each in self._state.transactions.values()
        )

    def lock(self, transaction: Transaction, operation: Receiving | Moving) -> None:
        """A message belongs to the transaction until it ends."""
        operation.queue.positions.set_state(operation.lookup_id, LOCKED)
        transaction.operations.append(operation)

    def prepare(self, request: int, number: int, identifier: UUID) -> None:
        """[MS-MQDMPR] 3.1.4.3: from now on it ends as it is told, whatever happens meanwhile."""
        transaction = self.get_for_more(number, 0)
        if self._is_taken(identifier):
            raise MessageQueueError(
                HResult.MQ_ERROR_TRANSACTION_SEQUENCE,
                f"another transaction was prepared as {identifier}",
            )
        self._refuse_deleted(transaction)
        self._dismiss_waiting(transaction)
        transaction.phase = Phase.PREPARING
        transaction.identifier = identifier
        change = transaction.ending = Change()
        change.entries.append(records.prepare(pack_transaction(transaction, self._state.source)))
        change.steps.append(PrepareStep(transaction))
        change.answers.append(Answer(request, None))
        self._state.submit(change)

    def commit(self, request: int, number: int) -> None:
        """[MS-MQDMPR] 3.1.4.4: everything happens, in the order in which it was asked for."""
        transaction = self._get_to_end(number)
        if transaction.phase is Phase.OPEN:
            self._refuse_deleted(transaction)
        change = transaction.ending = self._ending(transaction)
        operations = transaction.operations
        sends = [each for each in operations if isinstance(each, Sending)]
        lifetime = sends[0].view.time_to_be_received if sends else 0
        count = at = 0
        while at < len(operations):
            operation = operations[at]
            match operation:
                case Sending():
                    run = _run(operations, at)
                    is_end = count + len(run) == len(sends)
                    where = _Where(transaction.number, sends[0].ordinal, count, is_end)
                    self._send(change, run, where, lifetime)
                    count += len(run)
                    at += len(run) - 1
                case Receiving():
                    self._receive(change, operation)
                case Moving():
                    self._move(change, operation)
                case _:
                    assert_never(operation)
            at += 1
        change.answers.append(Answer(request, None))
        self._state.submit(change)

    def abort(self, request: int, number: int) -> None:
        """[MS-MQDMPR] 3.1.4.5: nothing happens: what was received goes back to its place."""
        transaction = self._get_to_end(number)
        was_open = transaction.phase is Phase.OPEN
        change = self._ending(transaction)
        change.is_certain = was_open
        # What is prepared ends whole; otherwise what goes away may fail, what goes back may not.
        further = Change() if was_open else change
        for operation in transaction.operations:
            if isinstance(operation, Sending):
                self._state.unstage(operation.queue, operation.size)
            else:
                self._give_back(change, further, operation)
        if not was_open:
            change.answers.append(Answer(request, None))
            self._state.submit(change)
            return
        self._state.submit(change)
        if further.steps:
            self._state.submit(further)
        # Told when all of it is over, be it that what had to go away found no room for that.
        told = Change()
        told.answers.append(Answer(request, None))
        self._state.submit(told)

    def _ending(self, transaction: Transaction) -> Change:
        """Nothing more happens in it; the change says so where that has to be remembered."""
        self._dismiss_waiting(transaction)
        change = Change()
        if transaction.phase is Phase.OPEN:
            del self._state.transactions[transaction.number]
        else:
            assert transaction.identifier is not None, "it was prepared under one"
            change.entries.append(records.resolve(transaction.identifier))
            change.steps.append(ResolveStep(transaction))
        transaction.phase = Phase.ENDING
        return change

    def _dismiss_waiting(self, transaction: Transaction) -> None:
        """Whoever waits for a message in it is told that there will be none."""
        for queue in transaction.waiting_at.values():
            for reader in list(queue.waiting):
                if reader.transaction != transaction.number:
                    continue
                queue.waiting.remove(reader)
                if isinstance(reader.selector, ByCursor):
                    reader.selector.cursor.wait_expired()
                error = MessageQueueError(
                    HResult.MQ_ERROR_TRANSACTION_SEQUENCE,
                    "the transaction has ended while this waited for a message in it",
                )
                self._state.answer(reader.request, error)
        transaction.waiting_at.clear()

    def _refuse_deleted(self, transaction: Transaction) -> None:
        for operation in transaction.operations:
            if operation.queue.closing:
                path = operation.queue.properties.path_name
                raise MessageQueueError(
                    HResult.MQ_ERROR_QUEUE_DELETED,
                    f"{path} was deleted; the transaction cannot commit, abort it",
                )

    def _send(self, change: Change, run: list[Sending], where: _Where, lifetime: int) -> None:
        """Messages that go to one queue, one behind the other.

        All messages of a transaction live as long as the first of them, as MSMQ has it.
        """
        state, queue = self._state, run[0].queue
        size = sum([each.size for each in run])
        headers = self._headers(run, size, where)
        state.unstage(queue, size)
        if queue.is_outgoing and queue.number not in state.queues:
            state.plan_queue(change, queue.properties, queue)
        source = state.source
        packets = [
            in_transaction(each.view, header, lifetime, source, each.sent_time, each.ordinal)
            for each, header in zip(run, headers, strict=True)
        ]
        if any(each.note is not None for each in run):
            for operation, packet in zip(run, packets, strict=True):
                queue_changes.put_packet(
                    state, change, queue, packet, 0, recoverable=True, note=operation.note
                )
        else:
            key = state.source_key(source)
            put_run(state, change, queue, packets, [key | each.ordinal for each in run])
        if queue.is_outgoing:
            return
        for operation, packet in zip(run, packets, strict=True):
            if operation.view.user_flags & notices.TELLING:
                notices.arrived(state, change, MessageView(packet))

    def _headers(self, run: list[Sending], size: int, where: _Where) -> list[bytes]:
        """[MS-MQQB] 3.1.1.5: the places of messages in their transaction.

        Those to another queue manager get their places in the sequence too, for good.
        """
        sequence_id, number = where.transaction, where.before + 1
        queue = run[0].queue
        if queue.transfer is not None:
            sequence_id, number = outgoing.next_places(self._state, queue, size, len(run))
            finals = [each.view.user_flags & _JOURNALING != 0 for each in run]
        else:
            finals = [False] * len(run)
        first = TransactionPlace(
            sequence_id=sequence_id,
            sequence_number=number,
            previous_sequence_number=number - 1,
            identifier=where.first_ordinal & IDENTIFIER_MASK,
            is_first=not where.before,
        )
        return transaction_headers(first, finals, is_last=where.is_end)

    def _receive(self, change: Change, operation: Receiving) -> None:
        queue = operation.queue
        place = queue.positions.get(operation.lookup_id)
        assert place is not None, "a locked message stays"
        queue_changes.take(change, queue, place)
        if operation.is_quiet and not queue.properties.journaling:
            return
        # Asked again: journaling may be new, and what was prepared does not say.
        notices.received_at(self._state, change, queue, place)

    def _move(self, change: Change, operation: Moving) -> None:
        queue, target = operation.queue, operation.target
        change.entries.append(records.move(queue.number, target.number, operation.lookup_id))
        change.steps.append(MoveStep(queue, operation.lookup_id, target))

    def _give_back(self, change: Change, further: Change, operation: Operation) -> None:
        """A message goes back to its place; or away, if it was purged or is poison."""
        assert not isinstance(operation, Sending)
        queue, lookup_id = operation.queue, operation.lookup_id
        place = queue.positions.get(lookup_id)
        if place is None:
            return  # the queue was deleted, and the message with it
        note = queue.notes.get(lookup_id, NO_NOTE)
        if queue.closing:
            change.steps.append(GiveBackStep(queue, lookup_id, None))
            return
        if place.state == PURGE_PENDING or note.purged:
            queue_changes.take(further, queue, place)
            reason = MessageClass.MQMSG_CLASS_NACK_Q_PURGED
            notices.lost_at(self._state, further, queue, place, reason)
            return
        counted = note._replace(aborts=note.aborts + 1)
        if poison.is_due(queue, counted):
            poison.set_aside(self._state, further, queue, place, counted)
            return
        queue_changes.write_note(change, queue, place, counted)
        change.steps.append(GiveBackStep(queue, lookup_id, counted))


class _Where(NamedTuple):
    """The place of messages in their transaction.

    Attributes:
        transaction: Its number.
        first_ordinal: [MS-MQMQ] 2.2.20.5: of the first message that it sends, by which others know
            the transaction. Ordinals are not given again, not after a restart either.
        before: How many messages are sent before them.
        is_end: None is sent after them.
    """

    transaction: int
    first_ordinal: int
    before: int
    is_end: bool


def _run(operations: list[Operation], at: int) -> list[Sending]:
    """The messages that are sent from this operation on, one behind the other to one queue."""
    run: list[Sending] = []
    for operation in islice(operations, at, None):
        if not isinstance(operation, Sending) or (run and operation.queue is not run[0].queue):
            break
        run.append(operation)
    return run
