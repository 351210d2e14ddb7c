"""[MS-MQDMPR] 3.1.7.1.10, 3.1.7.1.13 to 3.1.7.1.15, 3.1.7.3: finding messages and waiting for them.

A message that is received outside of a transaction is handed out when its removal is durable, so
that nobody gets it a second time after a crash. Whoever waits is served in the order of asking.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from merq.engine import damage, notices, queue_changes
from merq.engine.aside_messages import DAMAGED_WAITING_MAX
from merq.engine.changes import Answer, Change
from merq.engine.cursor import Cursor, Outcome
from merq.engine.positions import AVAILABLE, LOCKED, PURGE_PENDING, Place
from merq.engine.queue import ENDING, HELD, HELD_QUIETLY, Queue
from merq.engine.reading import ByCursor, Selector, WaitingRead
from merq.engine.sending import MESSAGES_AT_ONCE_MAX
from merq.engine.state import State
from merq.engine.transactions import OPERATIONS_MAX, Transactions
from merq.engine.work import Receiving
from merq.errors import MessageQueueError, ReceiveTimeout, StoreCorrupt, StoreError
from merq.hresult import HResult
from merq.model.delivered import Delivered
from merq.model.message_class import MessageClass
from merq.model.selecting import ByCorrelationId, ByLookup, ByMessageId, First, Seek
from merq.wire.view import MessageView


class Readers:
    """Who reads, and who waits to."""

    def __init__(self, state: State, transactions: Transactions) -> None:
        self._state = state
        self._transactions = transactions

    def read(self, queue: Queue, reader: WaitingRead, *, wait: bool) -> None:
        """A message out of a queue, or one that stays in it; now or when one comes."""
        if reader.transaction:
            self._transactions.get_for_more(reader.transaction)
            if not queue.properties.transactional:
                raise MessageQueueError(
                    HResult.MQ_ERROR_TRANSACTION_USAGE,
                    f"{queue.properties.path_name} is not transactional: receive from it outside "
                    "of transactions",
                )
        if not 0 <= reader.most <= MESSAGES_AT_ONCE_MAX:
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_PARAMETER,
                f"{reader.most} messages at once: from 1 to {MESSAGES_AT_ONCE_MAX} can be read",
            )
        if reader.most and not reader.peek and not isinstance(reader.selector, First):
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_PARAMETER,
                "several messages at once are received from the first on, not by identifier",
            )
        self._read_or_wait(queue, reader, wait=wait)

    def end_receive(
        self, request: int, queue: Queue, lookup_ids: Sequence[int], *, delete: bool
    ) -> None:
        """[MS-MQDMPR] 3.1.7.1.12: what becomes of messages that were handed out and held."""
        held = queue.held
        for lookup_id in lookup_ids:
            if held.get(lookup_id, ENDING) == ENDING:
                raise MessageQueueError(
                    HResult.MQ_ERROR_TRANSACTION_SEQUENCE,
                    "the message was not handed out, or was given back already",
                )
        change = Change()
        self._end_held(change, queue, lookup_ids, delete=delete)
        change.answers.append(Answer(request, None))
        self._state.submit(change)

    def give_back(self, queue: Queue, lookup_ids: Iterable[int]) -> None:
        """Whoever held messages is gone; what was purged meanwhile goes for good."""
        change = Change()
        there = [each for each in lookup_ids if queue.held.get(each, ENDING) != ENDING]
        self._end_held(change, queue, there, delete=False)
        if change.steps:
            self._state.submit(change)

    def _end_held(
        self, change: Change, queue: Queue, lookup_ids: Sequence[int], *, delete: bool
    ) -> None:
        """Messages that are held go, or go back."""
        held, positions = queue.held, queue.positions
        journaled = queue.properties.journaling or queue.properties.owner != 0
        gone: list[Place] = []
        for lookup_id in lookup_ids:
            if held.get(lookup_id, ENDING) == ENDING:
                continue  # it is named twice
            place = positions.get(lookup_id)
            assert place is not None, "what is held is there"
            if place.state == PURGE_PENDING:
                queue_changes.take(change, queue, place)
                reason = MessageClass.MQMSG_CLASS_NACK_Q_PURGED
                notices.lost_at(self._state, change, queue, place, reason)
            elif not delete:
                del held[lookup_id]
                self._state.give_back(queue, lookup_id)
                continue
            else:
                gone.append(place)
                if journaled or held[lookup_id] != HELD_QUIETLY:
                    notices.received_at(self._state, change, queue, place)
            held[lookup_id] = ENDING
        queue_changes.take_all(change, queue, gone)

    def _read_or_wait(self, queue: Queue, reader: WaitingRead, *, wait: bool) -> None:
        """[MS-MQDMPR] 3.1.7.3.1: whoever finds nothing waits, if he may."""
        if queue.waiting:
            self.serve(queue)  # whoever asked before comes first
        if self._serve_one(queue, reader, wait=wait):
            return
        if wait:
            queue.waiting.append(reader)
            if reader.transaction:
                self._transactions.get(reader.transaction).waiting_at[queue.number] = queue
        else:
            self._refuse(queue, reader)

    def serve(self, queue: Queue) -> None:
        """[MS-MQDMPR] 3.1.7.2.2: messages have become available; those who wait may get them."""
        for reader in list(queue.waiting):
            if not queue.positions.available:
                return
            if self._serve_waiting(queue, reader):
                queue.waiting.remove(reader)

    def _serve_waiting(self, queue: Queue, reader: WaitingRead) -> bool:
        try:
            return self._serve_one(queue, reader, wait=True)
        except StoreError as wrong:
            # It is nobody's business but this reader's that the disk does not have its message.
            code = HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
            self._state.answer(reader.request, MessageQueueError(code, str(wrong)))
            return True

    def cancel(self, request: int, queue: Queue) -> bool:
        """A reader waits no longer, and is told that its time is over."""
        for reader in queue.waiting:
            if reader.request == request:
                queue.waiting.remove(reader)
                self._expire(queue, reader)
                return True
        return False

    def cancel_handle(self, queue: Queue, handle: int) -> None:
        """[MS-MQDMPR] 3.1.7.1.6: an opening is closed: nobody waits through it any more."""
        for reader in list(queue.waiting):
            if reader.handle == handle:
                self._cancel(queue, reader, queue.properties.path_name)

    def cancel_cursor(self, queue: Queue, cursor: Cursor) -> None:
        """[MS-MQDMPR] 3.1.7.1.2: a cursor is closed: nobody waits through it any more."""
        for reader in list(queue.waiting):
            if isinstance(reader.selector, ByCursor) and reader.selector.cursor is cursor:
                self._cancel(queue, reader, "the cursor")

    def _cancel(self, queue: Queue, reader: WaitingRead, what: str) -> None:
        queue.waiting.remove(reader)
        if isinstance(reader.selector, ByCursor):
            reader.selector.cursor.wait_expired()
        text = f"{what} was closed while this waited for a message"
        error = MessageQueueError(HResult.MQ_ERROR_OPERATION_CANCELLED, text)
        self._state.answer(reader.request, error)

    def cancel_all(self, queue: Queue, change: Change) -> None:
        """The queue goes with this change: nobody waits at it any more."""
        for reader in queue.waiting:
            if isinstance(reader.selector, ByCursor):
                reader.selector.cursor.wait_expired()
            text = f"{queue.properties.path_name} was deleted"
            error = MessageQueueError(HResult.MQ_ERROR_QUEUE_DELETED, text)
            change.answers.append(Answer(reader.request, error))
        queue.waiting.clear()

    def _expire(self, queue: Queue, reader: WaitingRead) -> None:
        if isinstance(reader.selector, ByCursor):
            reader.selector.cursor.wait_expired()
        text = f"no message came to {queue.properties.path_name} in time"
        self._state.answer(reader.request, ReceiveTimeout(text))

    def _refuse(self, queue: Queue, reader: WaitingRead) -> None:
        """There is nothing for a reader that does not wait."""
        by_cursor = isinstance(reader.selector, ByCursor) and not reader.peek
        if not by_cursor and not isinstance(reader.selector, ByMessageId | ByCorrelationId):
            self._expire(queue, reader)
            return
        # [MS-MQDMPR] 3.1.7.1.10: a cursor that was asked not to wait stays as it was.
        text = f"no such message is in {queue.properties.path_name}"
        error = MessageQueueError(HResult.MQ_ERROR_MESSAGE_NOT_FOUND, text)
        self._state.answer(reader.request, error)

    def _serve_one(self, queue: Queue, reader: WaitingRead, *, wait: bool) -> bool:
        """Gives a reader its message or its refusal; False if there is nothing for it yet."""
        for _ in range(DAMAGED_WAITING_MAX):
            try:
                if reader.transaction:
                    self._transactions.get_for_more(reader.transaction)
                place = self._find(queue, reader, wait=wait)
            except MessageQueueError as refused:
                self._state.answer(reader.request, refused)
                return True
            if place is None:
                return False
            try:
                if reader.peek and not reader.most:
                    self._state.answer(reader.request, self._state.delivered(queue, place))
                else:
                    self._hand_out(queue, reader, place)
            except StoreCorrupt:
                # Who asked for this very message is told; others get the one behind it.
                if not damage.pass_over(self._state, queue, place) or _is_one(reader.selector):
                    raise
                continue
            return True
        code = HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
        text = f"{DAMAGED_WAITING_MAX} damaged messages were passed over: ask again for the next"
        self._state.answer(reader.request, MessageQueueError(code, text))
        return True

    def _hand_out(self, queue: Queue, reader: WaitingRead, place: Place) -> None:
        """A message or several, each taken, locked or only shown."""
        state = self._state
        change = Change()
        found: list[Delivered] = []
        gone: list[Place] = []
        size = 0
        going: Place | None = place
        while going is not None:
            try:
                delivered = state.delivered(queue, going)
            except StoreError:
                if not found:
                    raise
                break  # what comes before it is handed out; who asks next passes it over
            found.append(delivered)
            if not reader.peek:
                self._take_one(change, queue, reader, delivered, gone)
            size += len(delivered.packet)
            if len(found) >= reader.most or 0 < reader.most_bytes <= size:
                break
            if reader.peek:
                going = queue.positions.after(going.lookup_id)
            else:
                going = queue.positions.first() if self._may_go_on(reader) else None
        queue_changes.take_all(change, queue, gone)
        result = found if reader.most else found[0]
        if change.steps:
            change.answers.append(Answer(reader.request, result))
            state.submit(change)
        else:
            state.answer(reader.request, result)

    def _take_one(
        self,
        change: Change,
        queue: Queue,
        reader: WaitingRead,
        delivered: Delivered,
        gone: list[Place],
    ) -> None:
        """A message that is handed out belongs to the reader, or to its transaction."""
        lookup_id, packet = delivered.lookup_id, delivered.packet
        if reader.transaction:
            transaction = self._transactions.get(reader.transaction)
            quiet = notices.is_quiet(queue, lookup_id, packet, self._state.source)
            self._transactions.lock(transaction, Receiving(queue, lookup_id, is_quiet=quiet))
            return
        queue.positions.set_state(lookup_id, LOCKED)
        if reader.held:
            telling = notices.is_telling(packet, self._state.source)
            queue.held[lookup_id] = HELD if telling else HELD_QUIETLY
            return
        place = queue.positions.get(lookup_id)
        assert place is not None, "it was just found"
        gone.append(place)
        if not notices.is_quiet(queue, lookup_id, packet, self._state.source):
            notices.received(self._state, change, queue, packet)

    def _may_go_on(self, reader: WaitingRead) -> bool:
        """Whether another message may come into the reader's transaction."""
        if not reader.transaction:
            return True
        return len(self._transactions.get(reader.transaction).operations) < OPERATIONS_MAX

    def _find(self, queue: Queue, reader: WaitingRead, *, wait: bool) -> Place | None:
        selector = reader.selector
        match selector:
            case First():
                return queue.positions.first()
            case ByLookup():
                return _by_lookup(queue, selector, peek=reader.peek)
            case ByMessageId():
                return self._by_message_id(queue, selector.message_id)
            case ByCorrelationId():
                return self._by_correlation_id(queue, selector.correlation_id)
            case ByCursor():
                return _by_cursor(selector.cursor, reader, next_one=selector.next_one, wait=wait)
            case _:
                assert_never(selector)

    def _by_message_id(self, queue: Queue, message_id: bytes) -> Place | None:
        key = self._state.known_key_of(message_id)
        lookup_id = None if key is None else queue.by_message_id.get(key)
        place = None if lookup_id is None else queue.positions.get(lookup_id)
        return place if place is not None and place.state == AVAILABLE else None

    def _by_correlation_id(self, queue: Queue, correlation_id: bytes) -> Place | None:
        place = queue.positions.first()
        while place is not None:
            packet = self._state.readable(place)
            if packet is not None and MessageView(packet).correlation_id == correlation_id:
                return place
            place = queue.positions.after(place.lookup_id)
        return None


def _is_one(selector: Selector) -> bool:
    """Whether a reader wants one message and no other."""
    match selector:
        case First():
            return False
        case ByLookup():
            return selector.seek is Seek.CURRENT
        case ByCursor():
            return not selector.next_one
        case ByMessageId() | ByCorrelationId():
            return True
        case _:
            assert_never(selector)


def _by_lookup(queue: Queue, selector: ByLookup, *, peek: bool) -> Place:
    """[MS-MQDMPR] 3.1.7.3.3: the message at a lookup identifier, or next to it."""
    positions = queue.positions
    match selector.seek:
        case Seek.FIRST:
            place = positions.first()
        case Seek.LAST:
            place = positions.last()
        case Seek.NEXT:
            place = positions.after(selector.lookup_id)
        case Seek.PREVIOUS:
            place = positions.before(selector.lookup_id)
        case Seek.CURRENT:
            place = positions.get(selector.lookup_id)
            if place is not None and place.state != AVAILABLE:
                code = (
                    HResult.MQ_ERROR_TRANSACTION_USAGE
                    if peek
                    else HResult.MQ_ERROR_MESSAGE_NOT_FOUND
                )
                raise MessageQueueError(code, "the message is being received in a transaction")
        case _:
            assert_never(selector.seek)
    if place is None:
        raise MessageQueueError(
            HResult.MQ_ERROR_MESSAGE_NOT_FOUND,
            f"no message is {selector.seek.value} of lookup identifier {selector.lookup_id:#x} "
            f"in {queue.properties.path_name}",
        )
    return place


def _by_cursor(cursor: Cursor, reader: WaitingRead, *, next_one: bool, wait: bool) -> Place | None:
    """[MS-MQDMPR] 3.2.7: what a cursor says."""
    if not reader.peek:
        answer = cursor.receive(no_wait=not wait)
    else:
        answer = cursor.peek_next() if next_one else cursor.peek()
    match answer.outcome:
        case Outcome.SUCCEEDED:
            return answer.place
        case Outcome.WAITING | Outcome.NOT_FOUND:
            return None
        case Outcome.ALREADY_RECEIVED:
            raise MessageQueueError(
                HResult.MQ_ERROR_MESSAGE_ALREADY_RECEIVED,
                "the message at the cursor was received by somebody else: move the cursor on",
            )
        case Outcome.ILLEGAL_ACTION:
            raise MessageQueueError(
                HResult.MQ_ERROR_ILLEGAL_CURSOR_ACTION,
                "the cursor is new: peek its first message before the next",
            )
        case _:
            assert_never(answer.outcome)
