"""The queue manager: every operation that a client or a protocol can ask for.

It is fed: operations and times go in, effects come out of `take_effects`, in order. Requests are
numbers of the caller's choice; each gets one answer, at once or when what it waits for has come. A
request that cannot be is refused by an exception before anything has changed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heappop
from typing import Final
from uuid import UUID

from merq.engine import notices, records
from merq.engine.changes import Answer, Change, DefineStep, DropStep, Effect, PurgeStep
from merq.engine.cursor import Cursor
from merq.engine.ports import PacketSource
from merq.engine.positions import AVAILABLE, LOCKED, PURGE_PENDING
from merq.engine.queue import NULL_GUID, UNLIMITED, Queue, QueueKind, QueueProperties
from merq.engine.readers import Readers
from merq.engine.reading import Selector
from merq.engine.state import Limits, State
from merq.engine.transactions import Transactions
from merq.errors import MessageQueueError, NameSyntaxError, WireError
from merq.hresult import HResult
from merq.model.message_class import MessageClass
from merq.model.names import PathName, QueueScope, parse_path_name
from merq.wire.build import TRANSACTION_HEADER_SIZE, Outline, build_packet, stamp
from merq.wire.headers import PACKET_SIZE_MAX
from merq.wire.view import MessageView

QUEUES_MAX: Final = 0x00FFFFFF
"""Private queues on one queue manager."""

FIRST_PRIVATE_NUMBER: Final = 16
"""[MS-MQQB] 2.2.4: small numbers are for the queues that every queue manager has."""

QUEUE_LABEL_MAX: Final = 124

SYSTEM_QUEUES: Final = (
    (notices.JOURNAL_NUMBER, r".\system$;JOURNAL", QueueKind.SYSTEM, False),
    (notices.DEAD_LETTER_NUMBER, r".\system$;DEADLETTER", QueueKind.SYSTEM, False),
    (notices.DEAD_XACT_NUMBER, r".\system$;DEADXACT", QueueKind.SYSTEM, True),
    (2, r".\private$\admin_queue$", QueueKind.PRIVATE, False),
    (3, r".\private$\notify_queue$", QueueKind.PRIVATE, False),
    (4, r".\private$\order_queue$", QueueKind.PRIVATE, False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """What a queue's maker chooses; [MS-MQDMPR] 3.1.7.1.33 has the defaults."""

    label: str = ""
    transactional: bool = False
    journaling: bool = False
    quota: int = UNLIMITED
    journal_quota: int = UNLIMITED
    base_priority: int = 0
    type_id: UUID = NULL_GUID


class QueueManager:
    """[MS-MQDMPR] 3.1: queues and messages."""

    def __init__(
        self, guid: UUID, name: str, packets: PacketSource, limits: Limits | None = None
    ) -> None:
        self.state = State(guid, name, packets, limits or Limits())
        self.transactions = Transactions(self.state)
        self.readers = Readers(self.state, self.transactions)

    # Being driven.

    def take_effects(self) -> list[Effect]:
        """What is to be done and told now, in order."""
        self._serve()
        effects, self.state.effects = self.state.effects, []
        return effects

    def failed(self, change: Change, error: MessageQueueError) -> None:
        """The store could not take a change's entries."""
        self.state.failed(change, error)

    def written(self, change: Change, positions: tuple[int, ...], end: int) -> None:
        """The store has taken a change's entries."""
        self.state.written(change, positions, end)

    def durable(self, end: int) -> None:
        """The log is durable up to this position."""
        self.state.durable(end)

    def _serve(self) -> None:
        state = self.state
        while state.awake:
            awake, state.awake = state.awake, []
            for queue in awake:
                if queue.waiting:
                    self.readers.serve(queue)

    def replay(self, kind: int, data: memoryview, position: int) -> None:
        """Takes one record of the log when the store is opened."""
        self.state.replay(kind, data, position)

    def provision(self, new_guid: UUID) -> None:
        """Makes the queues that every queue manager has, those that are missing."""
        change = Change()
        for number, path, kind, transactional in SYSTEM_QUEUES:
            if number in self.state.queues:
                continue
            properties = QueueProperties(
                number=number,
                path_name=path,
                kind=kind,
                identifier=UUID(int=new_guid.int ^ number),
                created=self.state.now,
                modified=self.state.now,
                transactional=transactional,
            )
            _define(change, properties)
        if change.steps:
            self.state.submit(change)

    # Queues.

    def create_queue(
        self, request: int, path_name: str, settings: QueueSettings, identifier: UUID
    ) -> None:
        r"""[MS-MQDMPR] 3.1.7.1.3: makes a private queue and its journal; answers its number."""
        path = self._own_path(path_name)
        if path.scope is not QueueScope.PRIVATE or path.subqueue or path.is_read_only:
            raise MessageQueueError(
                HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME,
                rf"{path_name} is not the name of a private queue, such as .\private$\orders; "
                "public queues need a directory",
            )
        if self.state.find(path) is not None or self.state.is_coming(path):
            raise MessageQueueError(
                HResult.MQ_ERROR_QUEUE_EXISTS, f"a queue named {path_name} exists already"
            )
        _check_settings(settings)
        number = self._free_number()
        properties = QueueProperties(
            number=number,
            path_name=str(path),
            kind=QueueKind.PRIVATE,
            identifier=identifier,
            created=self.state.now,
            modified=self.state.now,
            label=settings.label,
            transactional=settings.transactional,
            journaling=settings.journaling,
            quota=settings.quota,
            journal_quota=settings.journal_quota,
            base_priority=settings.base_priority,
            type_id=settings.type_id,
        )
        change = Change(answers=[Answer(request, number)])
        _define(change, properties)
        journal = replace(
            properties,
            number=number | 0x80000000,
            path_name=f"{path};JOURNAL",
            kind=QueueKind.JOURNAL,
            owner=number,
            label="",
            journaling=False,
            quota=settings.journal_quota,
            identifier=UUID(int=identifier.int ^ 1),
        )
        _define(change, journal)
        self.state.submit(change)

    def _free_number(self) -> int:
        number = self.state.next_queue_number(FIRST_PRIVATE_NUMBER, QUEUES_MAX)
        if number is None:
            raise MessageQueueError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, f"there are {QUEUES_MAX} queues already"
            )
        return number

    def delete_queue(self, request: int, number: int) -> None:
        """[MS-MQDMPR] 3.1.7.1.4: the queue, its journal and subqueues go, with their messages."""
        queue = self.queue(number)
        if queue.properties.kind is not QueueKind.PRIVATE or number < FIRST_PRIVATE_NUMBER:
            raise MessageQueueError(
                HResult.MQ_ERROR_ACCESS_DENIED,
                f"{queue.properties.path_name} belongs to the system and stays",
            )
        change = Change(answers=[Answer(request, None)])
        reason = MessageClass.MQMSG_CLASS_NACK_Q_DELETED
        parts = [*queue.subqueues.values(), *([queue.journal] if queue.journal else []), queue]
        for part in parts:
            part.closing = True  # no acknowledgment comes into it any more
        for part in parts:
            self._lose_all(change, part, reason)
            self.readers.cancel_all(part, change)
            change.entries.append(records.drop_queue(part.number))
            change.steps.append(DropStep(part))
        self.state.submit(change)

    def _lose_all(self, change: Change, queue: Queue, reason: int) -> None:
        leaving = self.state.leaving(queue)
        packets = [
            self.state.packet_of(place)
            for place in queue.positions
            if place.lookup_id not in leaving
        ]
        for packet in packets + self.state.arriving(queue):
            notices.lost(self.state, change, queue, MessageView(packet), reason)

    def purge(self, request: int, number: int) -> None:
        """[MS-MQDMPR] 3.1.7.1.7: all messages go; locked ones when they are given back."""
        queue = self.queue(number)
        change = Change(answers=[Answer(request, queue.positions.count)])
        reason = MessageClass.MQMSG_CLASS_NACK_Q_PURGED
        for place in list(queue.positions):
            queue.positions.set_state(place.lookup_id, PURGE_PENDING)
            if place.state == LOCKED:
                change.steps.append(PurgeStep(queue, place.lookup_id))
            elif place.state == AVAILABLE:
                view = MessageView(self.state.packet_of(place))
                notices.take(change, queue, place, view)
                notices.lost(self.state, change, queue, view, reason)
        self.state.submit(change)

    def queue(self, number: int) -> Queue:
        """A queue by its number."""
        found = self.state.queues.get(number)
        if found is None or found.closing:
            raise MessageQueueError(
                HResult.MQ_ERROR_QUEUE_DELETED, "the queue was deleted; nothing can be done with it"
            )
        return found

    def find_queue(self, path_name: str) -> Queue:
        """A queue by its path name."""
        found = self.state.find(self._own_path(path_name))
        if found is None or found.closing:
            raise MessageQueueError(
                HResult.MQ_ERROR_QUEUE_NOT_FOUND, f"there is no queue named {path_name}"
            )
        return found

    def _own_path(self, path_name: str) -> PathName:
        try:
            path = parse_path_name(path_name)
        except NameSyntaxError as wrong:
            raise MessageQueueError(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, str(wrong)) from wrong
        if not path.is_local and path.computer.lower() != self.state.name.lower():
            raise MessageQueueError(
                HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME,
                f"{path_name} is on {path.computer}; this queue manager is {self.state.name}",
            )
        return path.on(".")

    # Messages.

    def send(self, request: int, number: int, outline: Outline, transaction: int = 0) -> bytes:
        """[MS-MQDMPR] 3.1.7.1.9: a message to a queue; gives its message id.

        What the queue manager itself has to say, it says: source, ordinal and time. The answer
        comes when the message is as safe as it was to be.
        """
        queue = self.queue(number)
        _check_use(queue, transaction)
        request_packet = _built(outline)
        size = len(request_packet) + (TRANSACTION_HEADER_SIZE if transaction else 0)
        _check_size(size)
        self._check_room(queue, size)
        within = self.transactions.get_for_more(transaction) if transaction else None
        change = Change()
        source = self.state.guid.bytes_le
        ordinal = self.state.next_ordinal(change)
        packet = stamp(request_packet, source, self.state.now, ordinal)
        message_id = source + ordinal.to_bytes(4, "little")
        change.answers.append(Answer(request, message_id))
        if within is not None:
            self.transactions.stage(within, queue, packet, size)
        else:
            view = MessageView(packet)
            notices.put(self.state, change, queue, view)
            notices.arrived(self.state, change, view)
        self.state.submit(change)
        return message_id

    def _check_room(self, queue: Queue, size: int) -> None:
        if self.state.throttled:
            raise MessageQueueError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                "the queue manager is short of disk or memory and takes no messages",
            )
        if not self.state.has_room(size):
            raise MessageQueueError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                f"a message of {size} bytes exceeds the computer's quota of "
                f"{self.state.limits.machine_quota} KB",
            )
        if not queue.has_room(size):
            raise MessageQueueError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                f"a message of {size} bytes exceeds the quota of {queue.properties.quota} KB of "
                f"{queue.properties.path_name}",
            )

    def receive(
        self,
        request: int,
        number: int,
        selector: Selector,
        *,
        wait: bool,
        transaction: int = 0,
    ) -> None:
        """[MS-MQDMPR] 3.1.7.1.10, 3.1.7.1.13: a message out of a queue."""
        self.readers.receive(
            request, self.queue(number), selector, wait=wait, transaction=transaction
        )

    def peek(self, request: int, number: int, selector: Selector, *, wait: bool) -> None:
        """[MS-MQDMPR] 3.1.7.1.14, 3.1.7.1.15: a message that stays in its queue."""
        self.readers.peek(request, self.queue(number), selector, wait=wait)

    def cancel(self, request: int, number: int) -> bool:
        """[MS-MQDMPR] 3.1.7.1.17: a reader waits no longer; False if it was served already."""
        return self.readers.cancel(request, self.queue(number))

    def open_cursor(self, handle: int, number: int) -> Cursor:
        """[MS-MQDMPR] 3.1.7.1.1: a cursor before the first message."""
        return Cursor(handle, self.queue(number).positions)

    # Time.

    def next_deadline(self) -> int | None:
        """When `tick` has something to do next, in seconds since 1970."""
        return self.state.expiries[0][0] if self.state.expiries else None

    def tick(self, now: int) -> None:
        """[MS-MQDMPR] 3.1.7.2.7: messages that were not received in time leave their queues.

        Time goes by tick alone: whatever is asked for next happens at this time.
        """
        state = self.state
        state.now = now
        change = Change()
        while state.expiries and state.expiries[0][0] < now:
            _, number, lookup_id = heappop(state.expiries)
            queue = state.queues.get(number)
            place = queue.positions.get(lookup_id) if queue is not None else None
            if queue is None or place is None:
                continue
            queue.expired.add(lookup_id)
            if place.state != AVAILABLE or queue.closing:
                continue  # somebody has it; if it is given back, it is looked at again
            queue.positions.set_state(lookup_id, PURGE_PENDING)
            view = MessageView(state.packet_of(place))
            notices.take(change, queue, place, view)
            reason = MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT
            notices.lost(state, change, queue, view, reason)
        if change.steps:
            state.submit(change)


def _built(outline: Outline) -> bytes:
    assert outline.transaction is None, "the queue manager gives a message its transaction"
    try:
        return build_packet(outline)
    except WireError as wrong:
        code = HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE
        if wrong.field == "packet_size":
            code = HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
        elif wrong.field == "label":
            code = HResult.MQ_ERROR_LABEL_TOO_LONG
        raise MessageQueueError(code, f"{wrong.field}: {wrong.reason}") from wrong


def _check_size(size: int) -> None:
    if size > PACKET_SIZE_MAX:
        raise MessageQueueError(
            HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
            f"the packet would have {size} bytes, at most {PACKET_SIZE_MAX} may travel",
        )


def _define(change: Change, properties: QueueProperties) -> None:
    change.entries.append(records.define_queue(properties.to_bytes()))
    change.steps.append(DefineStep(properties))


_SETTING_TYPES: Final[dict[str, type]] = {
    "label": str,
    "transactional": bool,
    "journaling": bool,
    "quota": int,
    "journal_quota": int,
    "base_priority": int,
    "type_id": UUID,
}


def _check_settings(settings: QueueSettings) -> None:
    for name, kind in _SETTING_TYPES.items():
        value = getattr(settings, name)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise MessageQueueError(
                HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT,
                f"{name} is {value!r}, a {type(value).__name__}; {kind.__name__} belongs there",
            )
    if len(settings.label) > QUEUE_LABEL_MAX:
        raise MessageQueueError(
            HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
            f"a label of {len(settings.label)} characters; {QUEUE_LABEL_MAX} are the most",
        )
    for name in ("quota", "journal_quota"):
        value = getattr(settings, name)
        if not 0 <= value <= UNLIMITED:
            raise MessageQueueError(
                HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
                f"{name} is {value}; it is kilobytes from 0 to {UNLIMITED:#x}, which is no limit",
            )
    if not -32768 <= settings.base_priority <= 32767:
        raise MessageQueueError(
            HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
            f"base_priority is {settings.base_priority}, outside -32768..32767",
        )


def _check_use(queue: Queue, transaction: int) -> None:
    """Transactional queues and others refuse each other's messages."""
    path = queue.properties.path_name
    if queue.properties.kind in {QueueKind.SYSTEM, QueueKind.JOURNAL}:
        raise MessageQueueError(
            HResult.MQ_ERROR_ACCESS_DENIED, f"{path} is written by the queue manager alone"
        )
    if queue.properties.transactional and not transaction:
        raise MessageQueueError(
            HResult.MQ_ERROR_TRANSACTION_USAGE,
            f"{path} is transactional: send to it within a transaction",
        )
    if transaction and not queue.properties.transactional:
        raise MessageQueueError(
            HResult.MQ_ERROR_TRANSACTION_USAGE,
            f"{path} is not transactional: send to it outside of transactions",
        )
