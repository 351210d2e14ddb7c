"""`Desk`: where one client's requests are carried out, and what belongs to that client is kept.

In-process everybody shares one desk; behind a socket each connection has its own, and what it left
open is put away when it goes: transactions are aborted, messages that it held go back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from typing import Any, Final

from merq.engine.cursor import Cursor
from merq.engine.manager import QueueManager
from merq.engine.reading import ByCursor, Selector
from merq.errors import MessageQueueError
from merq.host import reporting, transfers
from merq.host.batching import PENDING, Reply, bulk_rules
from merq.host.host import Host
from merq.host.reporting import Hall
from merq.hresult import HResult
from merq.model.delivered import Delivered
from merq.model.destinations import parse_destination
from merq.model.length_limits import check_lengths
from merq.model.names import FormatName
from merq.model.queue import NULL_GUID
from merq.model.selecting import AtCursor
from merq.protocol.application.requests import (
    AskStatus,
    AskWhy,
    Begin,
    BringOnline,
    Cancel,
    ChangeQueue,
    CloseCursor,
    CloseQueue,
    CreateQueue,
    CreateSubqueue,
    DeleteQueue,
    DescribeQueue,
    DescribeTransfer,
    End,
    Ending,
    EndPrepared,
    EndReceive,
    FindQueue,
    ListLinks,
    ListPrepared,
    ListQueues,
    ListSequences,
    Move,
    OpenCursor,
    OpenQueue,
    PauseQueue,
    Prepare,
    Purge,
    Read,
    Request,
    ResumeQueue,
    Send,
    SendManyTo,
    SendTo,
    TakeOffline,
)
from merq.protocol.application.sequence_requests import ForgetSenders

KNOWN_NAMES_MAX: Final = 1_024
KNOWN_NAME_MAX: Final = 300
"""Destinations that are remembered as they were read, and the characters that each may have."""

CURSORS_MAX: Final = 10_000
"""Cursors that one client has open."""


class Desk:
    """Carries out what one client asks for.

    Attributes:
        pending: Requests that wait for a message, or whose messages are held, by their numbers.
        holds: Messages that the client was handed and has not ended, by queue.
        ending: Requests that end such messages and are under way, by their numbers.
    """

    def __init__(self, host: Host, hall: Hall) -> None:
        self._host = host
        self._hall = hall
        self._engine: QueueManager = host.engine
        self.pending: dict[int, Read] = {}
        self.holds: dict[int, set[int]] = {}
        self.ending: dict[int, EndReceive] = {}
        self._transactions: dict[int, int] = {}
        self._handles: dict[int, None] = {}
        self._cursors: dict[int, tuple[int, int, Cursor]] = {}
        self._rules: dict[type, Callable[[int, Any], Reply]] = {
            Send: self._send,
            Read: self._read,
            EndReceive: self._end_receive,
            Cancel: self._cancel,
            SendTo: self._send_to,
            SendManyTo: self._send_many_to,
            Move: self._move,
            Begin: self._begin,
            End: self._end,
            Prepare: self._prepare,
            ListPrepared: self._list_prepared,
            EndPrepared: self._end_prepared,
            CreateQueue: self._create_queue,
            ChangeQueue: self._change_queue,
            DeleteQueue: self._delete_queue,
            Purge: self._purge,
            FindQueue: self._find_queue,
            CreateSubqueue: self._create_subqueue,
            DescribeQueue: self._describe_queue,
            ListQueues: self._list_queues,
            PauseQueue: self._pause_queue,
            ResumeQueue: self._resume_queue,
            DescribeTransfer: self._describe_transfer,
            ListSequences: self._list_sequences,
            ForgetSenders: self._forget_senders,
            ListLinks: self._list_links,
            TakeOffline: self._take_offline,
            BringOnline: self._bring_online,
            OpenQueue: self._open_queue,
            CloseQueue: self._close_queue,
            OpenCursor: self._open_cursor,
            CloseCursor: self._close_cursor,
            AskStatus: self._ask_status,
            AskWhy: self._ask_why,
            **bulk_rules(host),
        }

    @property
    def is_holding(self) -> bool:
        """Whether the client has something that others have to wait for."""
        return bool(self.holds or self._transactions or self._handles)

    def perform(self, number: int, request: Request) -> Reply:
        """Carries out a request, or begins to: then the engine answers it under its number.

        Raises:
            MessageQueueError: What was asked for cannot be; nothing was changed.
        """
        check_lengths(request)
        return self._rules[type(request)](number, request)

    def settled(self, number: int, result: object) -> None:
        """The engine has answered a request of this client's, which may be gone meanwhile."""
        if self.ending:
            ended = self.ending.pop(number, None)
            if ended is not None and isinstance(result, MessageQueueError):
                # The disk did not take it: the messages are there, and nobody has them.
                self._engine.give_back(ended.queue, ended.lookup_ids)
        read = self.pending.pop(number, None)
        if read is None or not read.held:
            return
        if isinstance(result, Delivered):
            self.holds.setdefault(read.queue, set()).add(result.lookup_id)
        elif isinstance(result, list):
            self.holds.setdefault(read.queue, set()).update(each.lookup_id for each in result)

    def cancel(self, number: int) -> bool:
        """A request waits no longer for a message; False if it was answered already."""
        read = self.pending.get(number)
        if read is None:
            return False
        queue = self._engine.state.queues.get(read.queue)
        return queue is not None and self._engine.readers.cancel(number, queue)

    def close(self) -> None:
        """The client is gone: what it had under way ends as if it had never begun.

        What is prepared stays. The engine's answers to what this does go to nobody.
        """
        for number in list(self.pending):
            self.cancel(number)
        self.pending.clear()
        for handle in list(self._handles):
            self._engine.close_queue(handle)
        self._handles.clear()
        for queue_number, handle, cursor in self._cursors.values():
            if not handle:
                self._engine.close_cursor(queue_number, cursor)
        self._cursors.clear()
        for transaction in self._transactions.values():
            if self._engine.transactions.is_open(transaction):
                self._engine.transactions.abort(0, transaction)
        self._transactions.clear()
        for queue_number, lookup_ids in self.holds.items():
            self._engine.give_back(queue_number, lookup_ids)
        self.holds.clear()

    # Messages.

    def _send(self, number: int, request: Send) -> Reply:
        self._engine.send(
            number,
            request.queue,
            request.packets,
            self._within(request.transaction),
            dead_letter=request.dead_letter,
            handle=self._own(request.handle),
        )
        return PENDING

    def _send_to(self, number: int, request: SendTo) -> Reply:
        destinations = [
            (_only_destination(text, "each copy has one"), packet)
            for text, packet in request.destinations
        ]
        transaction = self._within(request.transaction)
        self._engine.send_to(number, destinations, transaction, dead_letter=request.dead_letter)
        return PENDING

    def _send_many_to(self, number: int, request: SendManyTo) -> Reply:
        self._engine.send_many_to(
            number,
            _only_destination(request.name, "messages that are sent at once have one"),
            request.packets,
            self._within(request.transaction),
            dead_letter=request.dead_letter,
        )
        return PENDING

    def _read(self, number: int, request: Read) -> Reply:
        if request.held and (request.peek or request.transaction):
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_PARAMETER,
                "only messages that are received outside of transactions can be held",
            )
        selector = self._selector(request)
        handle = self._own(request.handle)
        if request.wait or request.held:
            self.pending[number] = request
        try:
            if request.peek:
                self._engine.peek(
                    number,
                    request.queue,
                    selector,
                    wait=request.wait,
                    most=request.most,
                    most_bytes=request.most_bytes,
                    handle=handle,
                )
            else:
                self._engine.receive(
                    number,
                    request.queue,
                    selector,
                    wait=request.wait,
                    transaction=self._within(request.transaction),
                    most=request.most,
                    most_bytes=request.most_bytes,
                    handle=handle,
                    held=request.held,
                )
        except BaseException:
            self.pending.pop(number, None)
            raise
        return PENDING

    def _end_receive(self, number: int, request: EndReceive) -> Reply:
        own = self.holds.get(request.queue, set())
        ended = set(request.lookup_ids)
        if not ended <= own or len(ended) != len(request.lookup_ids):
            raise MessageQueueError(
                HResult.MQ_ERROR_TRANSACTION_SEQUENCE,
                "a message was not handed out on this connection, or was ended already",
            )
        self._engine.end_receive(number, request.queue, request.lookup_ids, delete=request.delete)
        own -= ended
        if not own:
            self.holds.pop(request.queue, None)
        self.ending[number] = request
        return PENDING

    def _cancel(self, _number: int, request: Cancel) -> Reply:
        return int(self.cancel(request.request))

    def _move(self, number: int, request: Move) -> Reply:
        self._engine.move(
            number,
            request.queue,
            request.lookup_id,
            request.target,
            self._within(request.transaction),
            handle=self._own(request.handle),
        )
        return PENDING

    # Transactions.

    def _within(self, transaction: int) -> int:
        """The engine's number of a transaction of this client's, 0 for none."""
        if not transaction:
            return 0
        found = self._transactions.get(transaction)
        if found is None:
            raise MessageQueueError(
                HResult.MQ_ERROR_TRANSACTION_SEQUENCE,
                "the transaction has ended, or was aborted when its connection was lost",
            )
        return found

    def _begin(self, _number: int, request: Begin) -> Reply:
        if not request.transaction or request.transaction in self._transactions:
            raise MessageQueueError(
                HResult.MQ_ERROR_TRANSACTION_SEQUENCE,
                f"a transaction cannot begin as number {request.transaction}: take one from 1 on "
                "that is not in use",
            )
        self._transactions[request.transaction] = self._engine.transactions.begin()
        return None

    def _end(self, number: int, request: End) -> Reply:
        transactions = self._engine.transactions
        end = transactions.commit if request.ending is Ending.COMMIT else transactions.abort
        own = self._within(request.transaction)
        was_prepared = transactions.is_prepared(own)
        end(number, own)
        if not was_prepared:  # a prepared one stays so if the disk does not take its end
            del self._transactions[request.transaction]
        return PENDING

    def _prepare(self, number: int, request: Prepare) -> Reply:
        own = self._within(request.transaction)
        self._engine.transactions.prepare(number, own, request.identifier)
        return PENDING

    def _list_prepared(self, _number: int, _request: ListPrepared) -> Reply:
        return list(self._engine.transactions.prepared())

    def _end_prepared(self, number: int, request: EndPrepared) -> Reply:
        found = self._engine.transactions.prepared().get(request.identifier)
        if found is None:
            raise MessageQueueError(
                HResult.MQ_ERROR_TRANSACTION_SEQUENCE,
                f"no transaction is prepared as {request.identifier}: it may have ended",
            )
        if request.ending is Ending.COMMIT:
            self._engine.transactions.commit(number, found)
        else:
            self._engine.transactions.abort(number, found)
        return PENDING

    # Queues.

    def _create_queue(self, number: int, request: CreateQueue) -> Reply:
        self._engine.create_queue(number, request.path_name, request.settings, request.identifier)
        return PENDING

    def _change_queue(self, number: int, request: ChangeQueue) -> Reply:
        changed = {
            each.name: value
            for each in fields(request.alteration)
            if (value := getattr(request.alteration, each.name)) is not None
        }
        self._engine.change_queue(number, request.queue, changed)
        return PENDING

    def _delete_queue(self, number: int, request: DeleteQueue) -> Reply:
        self._engine.delete_queue(number, request.queue)
        return PENDING

    def _purge(self, number: int, request: Purge) -> Reply:
        self._engine.purge(number, request.queue, self._own(request.handle))
        return PENDING

    def _find_queue(self, _number: int, request: FindQueue) -> Reply:
        return self._engine.find_queue(request.path_name).number

    def _create_subqueue(self, number: int, request: CreateSubqueue) -> Reply:
        self._engine.create_subqueue(number, request.queue, request.name)
        return PENDING

    def _describe_queue(self, _number: int, request: DescribeQueue) -> Reply:
        return reporting.describe(self._engine.state, self._engine.queue(request.queue))

    def _list_queues(self, _number: int, request: ListQueues) -> Reply:
        return reporting.describe_all(self._engine, request.family, request.owner)

    def _pause_queue(self, _number: int, request: PauseQueue) -> Reply:
        self._engine.pause(request.queue)
        return None

    def _resume_queue(self, _number: int, request: ResumeQueue) -> Reply:
        self._engine.resume(request.queue)
        return None

    # The way to other queue managers.

    def _describe_transfer(self, _number: int, request: DescribeTransfer) -> Reply:
        return transfers.transfer(self._engine, self._engine.queue(request.queue))

    def _list_sequences(self, _number: int, request: ListSequences) -> Reply:
        return transfers.sequences(self._engine.state, self._engine.queue(request.queue))

    def _forget_senders(self, number: int, request: ForgetSenders) -> Reply:
        queue = self._engine.queue(request.queue)
        sender = request.sender.bytes_le
        found = [
            each
            for each in transfers.sequences_to(self._engine.state, queue)
            if each.key.source == sender or request.sender == NULL_GUID
        ]
        self._engine.arrivals.reset(number, found, queue.properties.path_name)
        return PENDING

    def _list_links(self, _number: int, _request: ListLinks) -> Reply:
        return self._hall.sessions.reports()

    def _take_offline(self, _number: int, _request: TakeOffline) -> Reply:
        self._engine.take_offline()
        return None

    def _bring_online(self, _number: int, _request: BringOnline) -> Reply:
        self._engine.bring_online()
        return None

    # Opening.

    def _own(self, handle: int) -> int:
        """A handle, if it is this client's."""
        if handle and handle not in self._handles:
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_HANDLE,
                "the queue was closed, or its connection was lost: open it anew",
            )
        return handle

    def _open_queue(self, _number: int, request: OpenQueue) -> Reply:
        handle = self._engine.open_queue(request.queue, request.access, request.share).handle
        self._handles[handle] = None
        return handle

    def _close_queue(self, _number: int, request: CloseQueue) -> Reply:
        self._engine.close_queue(self._own(request.handle))
        del self._handles[request.handle]
        closed = [each for each, (_, via, _) in self._cursors.items() if via == request.handle]
        for each in closed:
            del self._cursors[each]
        return None

    def _selector(self, request: Read) -> Selector:
        selection = request.selection
        if not isinstance(selection, AtCursor):
            return selection
        queue, _, cursor = self._cursor(selection.cursor)
        if queue != request.queue:
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_HANDLE, "the cursor is of another queue: open one here"
            )
        return ByCursor(cursor, selection.next_one)

    def _cursor(self, number: int) -> tuple[int, int, Cursor]:
        found = self._cursors.get(number)
        if found is None:
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_HANDLE, "the cursor was closed: open another"
            )
        return found

    def _open_cursor(self, _number: int, request: OpenCursor) -> Reply:
        if len(self._cursors) >= CURSORS_MAX:
            raise MessageQueueError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                f"{CURSORS_MAX} cursors are open: close some",
            )
        cursor = self._engine.open_cursor(request.queue, self._own(request.handle))
        self._cursors[cursor.handle] = (request.queue, request.handle, cursor)
        return cursor.handle

    def _close_cursor(self, _number: int, request: CloseCursor) -> Reply:
        queue, handle, cursor = self._cursor(request.cursor)
        self._engine.close_cursor(queue, cursor, self._own(handle))
        del self._cursors[request.cursor]
        return None

    # How things are.

    def _ask_status(self, _number: int, _request: AskStatus) -> Reply:
        return reporting.status(self._host, self._hall)

    def _ask_why(self, _number: int, request: AskWhy) -> Reply:
        return reporting.sightings(self._engine.state, request.message_id)


@lru_cache(maxsize=KNOWN_NAMES_MAX)
def _known_destination(text: str) -> tuple[FormatName, ...]:
    """Names come again and again, and take long to read."""
    return parse_destination(text)


def _only_destination(text: str, wanted: str) -> FormatName:
    """The one name that a text is."""
    names = (_known_destination if len(text) <= KNOWN_NAME_MAX else parse_destination)(text)
    if len(names) != 1:
        raise MessageQueueError(
            HResult.MQ_ERROR_ILLEGAL_FORMATNAME, f"{text} is {len(names)} destinations; {wanted}"
        )
    return names[0]
