"""[MS-MQDMPR] 3.1.7.1.9, 3.1.7.1.27: messages into queues, one or many at a time.

An application's packet is a request. What the queue manager itself has to say, it says: source,
ordinal and time; that makes it a message.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from merq.engine import notices, outgoing, queue_changes, records, spelling
from merq.engine.changes import NO_ENTRY, Answer, Change, PutManyStep, StageStep
from merq.engine.numbers import lookup_id_of
from merq.engine.queue import Note, Queue
from merq.engine.state import State
from merq.engine.transactions import Transactions
from merq.engine.work import Sending, Transaction
from merq.errors import MessageQueueError, NameSyntaxError, WireError
from merq.hresult import HResult
from merq.model.names import FormatName, PublicName, parse_path_name
from merq.model.queue import PrivacyLevel, QueueKind
from merq.wire.build import TRANSACTION_HEADER_SIZE, stamp
from merq.wire.headers import PACKET_SIZE_MAX
from merq.wire.refusing import refusal
from merq.wire.view import MessageView

_U32: Final = struct.Struct("<I")
_DELIVERY: Final = 3 << 5
"""[MS-MQMQ] 2.2.19.2: the delivery mode."""

MESSAGES_AT_ONCE_MAX: Final = 100_000
"""Messages in one request."""


class Senders:
    """Who sends."""

    def __init__(self, state: State, transactions: Transactions) -> None:
        self._state = state
        self._transactions = transactions

    def send(
        self,
        request: int,
        queue: Queue,
        packets: Sequence[bytes],
        transaction: int = 0,
        dead_letter: str = "",
    ) -> None:
        """Messages into one queue, all or none; answers their message ids, 20 bytes each.

        The answer comes when the messages are as safe as they were to be.
        """
        check_use(queue, transaction=transaction)
        added = TRANSACTION_HEADER_SIZE if transaction else 0
        views = self.checked(queue, packets, is_transactional=transaction != 0)
        note = self._note(dead_letter)
        total = sum(map(len, packets)) + added * len(packets)
        within = self._within(transaction, len(packets))
        self._put_all(request, Change(), queue, views, total, within, note)

    def send_many_to(
        self,
        request: int,
        name: FormatName,
        packets: Sequence[bytes],
        transaction: int = 0,
        dead_letter: str = "",
    ) -> None:
        """[MS-MQDMPR] 3.1.7.1.27: messages to where a name leads, all or none; answers as `send`.

        Each has an id of its own.
        """
        self._refuse_unreachable([name], transaction)
        queue, ours = outgoing.local_queue(self._state, name)
        if ours:
            assert queue is not None, "it was looked at before"
            self.send(request, queue, packets, transaction, dead_letter)
            return
        added = TRANSACTION_HEADER_SIZE if transaction else 0
        views = [_checked(packet, added) for packet in packets]
        for view in views:
            spelling.check_room(view)
        note = self._note(dead_letter)
        total = sum(len(view.packet) for view in views) + added * len(packets)
        self._check_room(None, total, len(packets))
        within = self._within(transaction, len(packets))
        change = Change()
        target = outgoing.reach(self._state, change, name)
        assert target is not None, "it is not one of ours"
        self._put_all(request, change, target, views, total, within, note)

    def checked(
        self, queue: Queue, packets: Sequence[bytes], *, is_transactional: bool
    ) -> list[MessageView]:
        """Packets that a queue would take, and has room for.

        Raises:
            MessageQueueError: It does not.
        """
        added = TRANSACTION_HEADER_SIZE if is_transactional else 0
        views = [_checked(packet, added) for packet in packets]
        total = sum(map(len, packets)) + added * len(packets)
        self.check_all(queue, views, total, len(packets))
        return views

    def check_all(self, queue: Queue, views: list[MessageView], total: int, count: int) -> None:
        """Refuses messages that a queue does not take, or has no room for.

        Args:
            queue: Where they go.
            views: Packets of all the kinds that there are.
            total: What they take together.
            count: How many they are.

        Raises:
            MessageQueueError: The text says why.
        """
        if _is_choosy(queue):
            for view in views:
                check_secured(queue, view)
        self._check_room(queue, total, count)

    def _put_all(
        self,
        request: int,
        change: Change,
        queue: Queue,
        views: list[MessageView],
        total: int,
        within: Transaction | None,
        note: Note | None,
    ) -> None:
        """Messages into one queue, when everything was looked at."""
        ids = b""
        if within is not None:
            ids = self._stage_all(change, queue, views, total, within, note)
        elif note is None and _is_plain(queue, views):
            ids = self._send_plain(change, queue, views, total)
        if not ids:
            numbers = self._state.numbers
            ids = b"".join(
                [
                    self._send_one(change, queue, view, within, note, numbers.ordinal(change))
                    for view in views
                ]
            )
        change.answers.append(Answer(request, ids))
        self._state.submit(change)

    def _stage_all(
        self,
        change: Change,
        queue: Queue,
        views: list[MessageView],
        total: int,
        within: Transaction,
        note: Note | None,
    ) -> bytes:
        """Messages that are sent when a transaction commits; gives nothing if their ordinals are
        not in a row.
        """
        state = self._state
        first = state.numbers.ordinals(len(views), change)
        if first is None:
            return b""
        now, source = state.now, state.source
        operations = [
            Sending(queue, view, now, ordinal, note) for ordinal, view in enumerate(views, first)
        ]
        state.stage(queue, total)
        within.operations += operations
        change.steps.append(StageStep(within, operations))
        return b"".join([source + _U32.pack(first + row) for row in range(len(views))])

    def _send_plain(
        self, change: Change, queue: Queue, views: list[MessageView], total: int
    ) -> bytes:
        """Messages that only have to be put into their queue; gives nothing if they cannot be."""
        state = self._state
        count = len(views)
        first = state.numbers.many(count, change)
        if first is None:
            return b""
        sequential_id, first_ordinal = first
        source, now, number = state.source, state.now, queue.properties.number
        entries = change.entries
        recoverable = views[0].user_flags & _DELIVERY != 0
        entry = len(entries) if recoverable else NO_ENTRY
        packets: list[bytes] = []
        lookup_ids: list[int] = []
        ids: list[bytes] = []
        ordinal = first_ordinal
        for view in views:
            packet = stamp(view.packet, source, now, ordinal)
            lookup_id = lookup_id_of(view.priority, sequential_id)
            if recoverable:
                entries.append(records.put(number, now, lookup_id, packet))
            packets.append(packet)
            lookup_ids.append(lookup_id)
            ids.append(source + ordinal.to_bytes(4, "little"))
            sequential_id += 1
            ordinal += 1
        state.stage(queue, total)
        change.steps.append(
            PutManyStep(queue, now, lookup_ids, packets, first_ordinal, entry, total)
        )
        return b"".join(ids)

    def send_to(
        self,
        request: int,
        destinations: Sequence[tuple[FormatName, bytes]],
        transaction: int = 0,
        dead_letter: str = "",
    ) -> None:
        """[MS-MQDMPR] 3.1.7.1.27: copies of one message, each to its own destination, all or none.

        Each copy has an id of its own ([MS-MQMQ] 2.2.18.1.3): a receiver that gets two copies would
        take the second for a duplicate. The answer is the id of the first.
        """
        added = TRANSACTION_HEADER_SIZE if transaction else 0
        views = [_checked(packet, added) for _, packet in destinations]
        for (name, _), view in zip(destinations, views, strict=True):
            if not outgoing.local_queue(self._state, name)[1]:
                spelling.check_room(view)
        note = self._note(dead_letter)
        self._refuse_unreachable([name for name, _ in destinations], transaction)
        # Several names may lead to one queue: its copies count together.
        sizes: dict[Queue | None, int] = {None: 0}
        for (name, _), view in zip(destinations, views, strict=True):
            queue, _ = outgoing.local_queue(self._state, name)
            size = len(view.packet) + added
            sizes[None] += size
            if queue is not None:
                check_secured(queue, view)
                sizes[queue] = sizes.get(queue, 0) + size
        for queue, size in sizes.items():
            self._check_room(queue, size, len(destinations))
        within = self._within(transaction, len(destinations))
        change = Change()
        message_ids = []
        for (name, _), view in zip(destinations, views, strict=True):
            target = outgoing.reach(self._state, change, name)
            assert target is not None, "it was looked at before"
            ordinal = self._state.numbers.ordinal(change)
            message_ids.append(self._send_one(change, target, view, within, note, ordinal))
        change.answers.append(Answer(request, message_ids[0]))
        self._state.submit(change)

    def _send_one(
        self,
        change: Change,
        queue: Queue,
        view: MessageView,
        within: Transaction | None,
        note: Note | None,
        ordinal: int,
    ) -> bytes:
        state = self._state
        source = state.source
        if within is not None:
            operation = Sending(queue, view, state.now, ordinal, note)
            state.stage(queue, operation.size)
            within.operations.append(operation)
            change.steps.append(StageStep(within, [operation]))
        else:
            packet = stamp(view.packet, source, state.now, ordinal)
            flags = view.user_flags
            queue_changes.put_packet(
                state,
                change,
                queue,
                packet,
                view.priority,
                recoverable=flags & _DELIVERY != 0,
                note=note,
            )
            if flags & notices.TELLING and queue.properties.kind is not QueueKind.OUTGOING:
                notices.arrived(state, change, MessageView(packet))
        return source + ordinal.to_bytes(4, "little")

    def _within(self, transaction: int, count: int) -> Transaction | None:
        if not transaction:
            return None
        return self._transactions.get_for_more(transaction, count)

    def _note(self, dead_letter: str) -> Note | None:
        """[MS-MQDMPR] 3.1.1.12: the application's own dead-letter queue, on this computer."""
        if not dead_letter:
            return None
        try:
            path = parse_path_name(dead_letter)
        except NameSyntaxError as wrong:
            raise MessageQueueError(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, str(wrong)) from wrong
        queue = self._state.find(path)
        if queue is None or queue.properties.kind is not QueueKind.PRIVATE:
            raise MessageQueueError(
                HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME,
                f"{dead_letter} is no queue of this computer: a dead-letter queue must be",
            )
        return Note(dead_letter=str(path))

    def _refuse_unreachable(self, names: Sequence[FormatName], transaction: int) -> None:
        for name in names:
            queue, ours = outgoing.local_queue(self._state, name)
            if queue is not None:
                check_use(queue, transaction=transaction)
            if ours and (queue is None or queue.closing):
                raise MessageQueueError(
                    HResult.MQ_ERROR_QUEUE_NOT_FOUND, f"there is no queue {name}"
                )
            if (
                not ours
                and isinstance(name, PublicName)
                and name.queue not in self._state.known_places
            ):
                raise MessageQueueError(
                    HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION,
                    f"{name} needs a directory to be found: use a DIRECT= name, or list the queue "
                    "in the file of peers",
                )

    def _check_room(self, queue: Queue | None, size: int, count: int) -> None:
        state = self._state
        if not 1 <= count <= MESSAGES_AT_ONCE_MAX:
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_PARAMETER,
                f"{count} messages at once: from 1 to {MESSAGES_AT_ONCE_MAX} can be sent",
            )
        if state.memory_bytes > state.limits.memory_bytes:
            state.low_on_memory = True
        if state.low_on_memory or state.low_on_disk:
            what = "disk" if state.low_on_disk else "memory"
            raise MessageQueueError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                f"the queue manager is short of {what} and takes no messages until there is more",
            )
        messages = "a message" if count == 1 else f"{count} messages"
        if not state.has_room(size):
            raise MessageQueueError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                f"{messages} of {size} bytes would exceed the computer's quota of "
                f"{state.limits.machine_quota} KB",
            )
        if queue is not None and not queue.has_room(size):
            raise MessageQueueError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                f"{messages} of {size} bytes would exceed the quota of {queue.properties.quota} KB "
                f"of {queue.properties.path_name}",
            )


def check_use(queue: Queue, *, transaction: int) -> None:
    """Transactional queues and others refuse each other's messages; some take none at all."""
    properties = queue.properties
    if properties.transactional is (transaction != 0) and properties.kind is QueueKind.PRIVATE:
        return
    path = properties.path_name
    if properties.kind is QueueKind.OUTGOING:
        return
    if properties.kind is QueueKind.SUBQUEUE:
        raise MessageQueueError(
            HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION,
            f"{path} is a subqueue: messages come into it by being moved",
        )
    if properties.kind is not QueueKind.PRIVATE:
        raise MessageQueueError(
            HResult.MQ_ERROR_ACCESS_DENIED, f"{path} is written by the queue manager alone"
        )
    where = "within a transaction" if properties.transactional else "outside of transactions"
    what = "transactional" if properties.transactional else "not transactional"
    raise MessageQueueError(
        HResult.MQ_ERROR_TRANSACTION_USAGE, f"{path} is {what}: send to it {where}"
    )


def _is_plain(queue: Queue, views: list[MessageView]) -> bool:
    """Whether nobody wants to know of these messages but who receives them, and all are alike.

    Of messages to other queue managers nobody wants to know before they are there.
    """
    kind = queue.properties.kind
    if kind is not QueueKind.PRIVATE and kind is not QueueKind.OUTGOING:
        return False
    delivery = views[0].user_flags & _DELIVERY
    telling = notices.TELLING if kind is QueueKind.PRIVATE else 0
    for view in views:
        flags = view.user_flags
        if flags & telling or flags & _DELIVERY != delivery:
            return False
    return True


def _is_choosy(queue: Queue) -> bool:
    properties = queue.properties
    return properties.authenticate or properties.privacy_level is not PrivacyLevel.OPTIONAL


def check_secured(queue: Queue, view: MessageView) -> None:
    """[MS-MQDMPR] 3.1.1.2: some queues take only messages that are signed, or encrypted, or not.

    Raises:
        MessageQueueError: The text says what the queue wants.
    """
    properties = queue.properties
    if properties.authenticate and not view.is_signed:
        wanted = "takes only messages that are signed"
    elif properties.privacy_level is PrivacyLevel.BODY and not view.is_encrypted:
        wanted = "takes only messages whose bodies are encrypted"
    elif properties.privacy_level is PrivacyLevel.NONE and view.is_encrypted:
        wanted = "takes no messages whose bodies are encrypted"
    else:
        return
    raise MessageQueueError(HResult.MQ_ERROR_ACCESS_DENIED, f"{properties.path_name} {wanted}")


def _checked(packet: bytes, added: int) -> MessageView:
    """An application's packet, if it can become a message that is larger by so many bytes."""
    try:
        view = MessageView(packet)
    except WireError as wrong:
        raise refusal(wrong) from wrong
    if view.transactional or len(packet) != view.packet_size:
        raise MessageQueueError(
            HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
            "transaction and session are for the queue manager to say, not for the packet",
        )
    size = len(packet) + added
    if size > PACKET_SIZE_MAX:
        raise MessageQueueError(
            HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
            f"the packet would have {size} bytes, at most {PACKET_SIZE_MAX} may travel",
        )
    return view
