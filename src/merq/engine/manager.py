"""The queue manager: every operation that a client or a protocol can ask for.

It is fed: operations and times go in, effects come out of `take_effects`, in order. Requests are
numbers of the caller's choice; each gets one answer, at once or when what it waits for has come. A
request that cannot be is refused by an exception before anything has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final
from uuid import UUID

from merq.engine import damage, moving, notices, order_queues, outgoing, queue_changes
from merq.engine.administration import Administration
from merq.engine.arriving import Arrivals
from merq.engine.aside import attempt
from merq.engine.changes import Answer, Change, Effect
from merq.engine.cursor import Cursor
from merq.engine.departing import SKIPPED_S, Departures
from merq.engine.holdings import STAGE_NUMBER_END, STAGE_NUMBER_FIRST
from merq.engine.limits import Limits
from merq.engine.opening import CURSORS_MAX, Descriptor, Opened, check_use
from merq.engine.ports import PacketSource
from merq.engine.positions import AVAILABLE, NEVER, PURGE_PENDING, Place
from merq.engine.queue import NO_NOTE, Queue
from merq.engine.readers import Readers
from merq.engine.reading import Selector, WaitingRead
from merq.engine.replay import replay
from merq.engine.reserving import Reservations
from merq.engine.sending import Senders
from merq.engine.staging import Stages
from merq.engine.state import State
from merq.engine.transactions import Transactions
from merq.engine.work import Moving
from merq.errors import MessageQueueError, NameSyntaxError
from merq.hresult import HResult
from merq.model.access import Access, Share
from merq.model.message_class import MessageClass
from merq.model.names import FormatName, PathName, parse_path_name
from merq.model.queue import OutgoingState, QueueKind, QueueSettings

SWEEP_S: Final = 60
"""Seconds between two looks for queues of acknowledgments that are not needed any more."""

TIME_MAX: Final = NEVER - 1
"""[MS-MQMQ] 2.2.19.2: SentTime ends in 2106, in seconds since 1970, and the last one means never.
A clock outside of that stands still at the end that it has passed."""


class QueueManager:
    """[MS-MQDMPR] 3.1: queues and messages."""

    def __init__(
        self, guid: UUID, name: str, packets: PacketSource, limits: Limits | None = None
    ) -> None:
        self.state = State(guid, name, packets, limits or Limits())
        self._sweep_at = 0
        self.transactions = Transactions(self.state)
        self.senders = Senders(self.state, self.transactions)
        self.reservations = Reservations(self.state)
        self.stages = Stages(self.state, self.senders)
        self.readers = Readers(self.state, self.transactions)
        self.administration = Administration(self.state, self.readers)
        self.departures = Departures(self.state)
        self.arrivals = Arrivals(self.state, self.departures)
        self.opened = Opened()
        self._cursor_count = 0

    # Being driven.

    def take_effects(self) -> list[Effect]:
        """What is to be done and told now, in order."""
        if self.state.overdue:
            self._expire_overdue()
        if self.state.awake:
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
        replay(self.state, kind, data, position)

    def start(self, new_guid: UUID, secret: bytes = b"") -> None:
        """[MS-MQDMPR] 3.1.4.1: what was written has been read; work begins.

        With a `secret` of up to 64 random bytes nobody can foretell the identifiers of sequences;
        without one they are the same every time, as tests want them.
        """
        self.state.secret = secret
        self.state.recent.renew(self.state.now)
        self.state.sequences.sort()
        self.departures.start()
        self.state.forget_sources()
        self.administration.start(new_guid)
        order_queues.find_order_queues(self.state)

    # Queues.

    def create_queue(
        self, request: int, path_name: str, settings: QueueSettings, identifier: UUID
    ) -> None:
        r"""[MS-MQDMPR] 3.1.7.1.3: makes a private queue and its journal; answers its number."""
        self.administration.create(request, self._own_path(path_name), settings, identifier)

    def change_queue(self, request: int, number: int, changed: dict[str, Any]) -> None:
        """Gives a queue other properties, for good."""
        self.administration.change_properties(request, self.queue(number), changed)

    def delete_queue(self, request: int, number: int) -> None:
        """[MS-MQDMPR] 3.1.7.1.4: the queue, its journal and subqueues go, with their messages."""
        self.administration.delete(request, self.queue(number))

    def purge(self, request: int, number: int, handle: int = 0) -> None:
        """[MS-MQDMPR] 3.1.7.1.7: all messages go; locked ones when they are given back."""
        queue = self.queue(number)
        check_use(queue, Access.RECEIVE, self._descriptor(handle, number))
        self.administration.purge(request, queue)

    def queue(self, number: int) -> Queue:
        """A queue by its number."""
        found = self.state.queues.get(number)
        if found is None or found.closing or found.properties.kind is QueueKind.STAGE:
            raise MessageQueueError(
                HResult.MQ_ERROR_QUEUE_DELETED, "the queue was deleted; nothing can be done with it"
            )
        return found

    def stage(self, number: int) -> Queue:
        """A place for messages that are published later, by its number."""
        found = self.state.queues.get(number)
        if found is None or found.closing or found.properties.kind is not QueueKind.STAGE:
            raise MessageQueueError(
                HResult.MQ_ERROR_QUEUE_DELETED,
                f"there is no stage {number}: it was published, dropped, or waited for too long",
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

    def create_subqueue(self, request: int, number: int, name: str) -> None:
        """Makes a subqueue, unless it is there; answers its number."""
        owner = self.queue(number)
        path = self._own_path(f"{owner.properties.path_name};{name}")
        if path.subqueue is None:
            raise MessageQueueError(
                HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME,
                f"{path} is not the name of a subqueue: {name!r} means something else",
            )
        if owner.properties.kind is not QueueKind.PRIVATE:
            raise MessageQueueError(
                HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME,
                f"{owner.properties.path_name} cannot have subqueues",
            )
        change = Change()
        found = moving.subqueue(self.state, change, owner, name)
        change.answers.append(Answer(request, found.number))
        self.state.submit(change)

    def _own_path(self, path_name: str) -> PathName:
        try:
            path = parse_path_name(path_name)
        except NameSyntaxError as wrong:
            raise MessageQueueError(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, str(wrong)) from wrong
        if path.computer.lower() not in self.state.aliases:
            raise MessageQueueError(
                HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME,
                f"{path_name} is on {path.computer}; this queue manager is {self.state.name}",
            )
        return path.on(".")

    # Opening and closing.

    def open_queue(self, number: int, access: Access, share: Share = Share.DENY_NONE) -> Descriptor:
        """[MS-MQDMPR] 3.1.7.1.5: opens a queue for some use, alone or with others."""
        return self.opened.open(self.queue(number), access, share)

    def close_queue(self, handle: int) -> None:
        """[MS-MQDMPR] 3.1.7.1.6: who waits through this opening waits no longer."""
        opened = self.opened.get(handle)
        self.readers.cancel_handle(opened.queue, handle)
        self.opened.remove(opened)

    def open_cursor(self, number: int, handle: int = 0) -> Cursor:
        """[MS-MQDMPR] 3.1.7.1.1: a cursor before the first message."""
        opened = self._descriptor(handle, number)
        self._cursor_count += 1
        cursor = Cursor(self._cursor_count, self.queue(number).positions)
        if opened is not None:
            if len(opened.cursors) >= CURSORS_MAX:
                raise MessageQueueError(
                    HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                    f"{CURSORS_MAX} cursors are open on this queue: close some",
                )
            opened.cursors[cursor.handle] = cursor
        return cursor

    def close_cursor(self, number: int, cursor: Cursor, handle: int = 0) -> None:
        """[MS-MQDMPR] 3.1.7.1.2: who waits through this cursor waits no longer."""
        opened = self._descriptor(handle, number)
        if opened is not None:
            opened.cursors.pop(cursor.handle, None)
        queue = self.state.queues.get(number)
        if queue is not None:
            self.readers.cancel_cursor(queue, cursor)

    def _descriptor(self, handle: int, number: int) -> Descriptor | None:
        if not handle:
            return None
        opened = self.opened.get(handle)
        if opened.queue.number != number:
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_HANDLE,
                f"the handle is of {opened.queue.properties.path_name}, not of this queue",
            )
        return opened

    # Messages.

    def send(
        self,
        request: int,
        number: int,
        packets: Sequence[bytes],
        transaction: int = 0,
        *,
        dead_letter: str = "",
        handle: int = 0,
    ) -> None:
        """[MS-MQDMPR] 3.1.7.1.9: messages into a queue; answers their ids, 20 bytes each."""
        if STAGE_NUMBER_FIRST <= number < STAGE_NUMBER_END:
            self.stages.send(request, self.stage(number), packets)
            return
        queue = self.queue(number)
        if handle:
            check_use(queue, Access.SEND, self._descriptor(handle, number))
        self.senders.send(request, queue, packets, transaction, dead_letter)

    def send_to(
        self,
        request: int,
        destinations: Sequence[tuple[FormatName, bytes]],
        transaction: int = 0,
        *,
        dead_letter: str = "",
    ) -> None:
        """[MS-MQDMPR] 3.1.7.1.27: a message to where names lead; answers its id."""
        self.senders.send_to(request, destinations, transaction, dead_letter)

    def send_many_to(
        self,
        request: int,
        name: FormatName,
        packets: Sequence[bytes],
        transaction: int = 0,
        *,
        dead_letter: str = "",
    ) -> None:
        """[MS-MQDMPR] 3.1.7.1.27: messages to where a name leads; answers as `send` does."""
        self.senders.send_many_to(request, name, packets, transaction, dead_letter)

    def receive(  # noqa: PLR0913 - a receive has these
        self,
        request: int,
        number: int,
        selector: Selector,
        *,
        wait: bool,
        transaction: int = 0,
        most: int = 0,
        most_bytes: int = 0,
        handle: int = 0,
        held: bool = False,
    ) -> None:
        """[MS-MQDMPR] 3.1.7.1.10, 3.1.7.1.13: a message out of a queue."""
        queue = self.queue(number)
        check_use(queue, Access.RECEIVE, self._descriptor(handle, number))
        if queue.transfer is not None:
            outgoing.refuse_under_way(queue)
        reader = WaitingRead(
            request=request,
            selector=selector,
            transaction=transaction,
            most=most,
            most_bytes=most_bytes,
            handle=handle,
            held=held,
        )
        self.readers.read(queue, reader, wait=wait)

    def peek(
        self,
        request: int,
        number: int,
        selector: Selector,
        *,
        wait: bool,
        most: int = 0,
        most_bytes: int = 0,
        handle: int = 0,
    ) -> None:
        """[MS-MQDMPR] 3.1.7.1.14, 3.1.7.1.15: a message that stays in its queue."""
        queue = self.queue(number)
        check_use(queue, Access.PEEK, self._descriptor(handle, number))
        reader = WaitingRead(
            request=request,
            selector=selector,
            peek=True,
            most=most,
            most_bytes=most_bytes,
            handle=handle,
        )
        self.readers.read(queue, reader, wait=wait)

    def end_receive(
        self, request: int, number: int, lookup_ids: Sequence[int], *, delete: bool
    ) -> None:
        """[MS-MQDMPR] 3.1.7.1.12: messages that were handed out and held go, or go back."""
        self.readers.end_receive(request, self.queue(number), lookup_ids, delete=delete)

    def give_back(self, number: int, lookup_ids: Iterable[int]) -> None:
        """Whoever held these messages is gone: those that are still there go back."""
        queue = self.state.queues.get(number)
        if queue is not None:
            self.readers.give_back(queue, lookup_ids)

    def move(
        self,
        request: int,
        number: int,
        lookup_id: int,
        target: int,
        transaction: int = 0,
        *,
        handle: int = 0,
    ) -> None:
        """[MS-MQDMPR] 3.1.7.1.16: a message to a subqueue, or from there."""
        source, destination = self.queue(number), self.queue(target)
        check_use(source, Access.RECEIVE, self._descriptor(handle, number))
        if not transaction:
            moving.move(self.state, request, source, lookup_id, destination)
            return
        moving.check_related(source, destination)
        if not destination.properties.transactional:
            raise MessageQueueError(
                HResult.MQ_ERROR_TRANSACTION_USAGE,
                f"{destination.properties.path_name} is not transactional: move outside of "
                "transactions",
            )
        within = self.transactions.get_for_more(transaction)
        moving.movable(source, lookup_id)
        self.transactions.lock(within, Moving(source, lookup_id, destination))
        self.state.answer(request, None)

    def cancel(self, request: int, number: int) -> bool:
        """[MS-MQDMPR] 3.1.7.1.17: a reader waits no longer; False if it was served already."""
        return self.readers.cancel(request, self.queue(number))

    # Outgoing queues, and the world outside.

    def outgoing_queues(self) -> list[Queue]:
        """[MS-MQDMPR] 3.1.1.3: where messages wait to be sent to other queue managers."""
        return [queue for queue in self.state.queues.values() if queue.is_outgoing]

    def pause(self, number: int) -> OutgoingState:
        """[MS-MQDMPR] 3.1.4.14: nothing leaves an outgoing queue until it is resumed."""
        queue = self.queue(number)
        outgoing.pause(queue)
        self.state.outbound[queue] = None
        return queue.state

    def resume(self, number: int) -> OutgoingState:
        """[MS-MQDMPR] 3.1.4.15: messages may leave an outgoing queue again."""
        queue = self.queue(number)
        outgoing.resume(queue)
        self.state.outbound[queue] = None
        return queue.state

    def take_offline(self) -> None:
        """[MS-MQDMPR] 3.1.4.12: no connections with other queue managers."""
        self.state.connection_active = False

    def bring_online(self) -> None:
        """[MS-MQDMPR] 3.1.4.13: connections are allowed again."""
        self.state.connection_active = True

    def watch_resources(self, free_disk_bytes: int | None) -> None:
        """[MS-MQDMPR] 3.1.7.2.5, 3.1.7.2.6: begins flow control when room runs low, and ends it."""
        state, limits = self.state, self.state.limits
        if free_disk_bytes is not None:
            reserve = limits.disk_reserve_bytes * (2 if state.low_on_disk else 1)
            state.low_on_disk = free_disk_bytes < reserve
            reserve = limits.network_reserve_bytes * (2 if state.network_low_on_disk else 1)
            state.network_low_on_disk = free_disk_bytes < reserve
        most = limits.memory_bytes * 4 // 5 if state.low_on_memory else limits.memory_bytes
        state.low_on_memory = state.memory_bytes > most

    # Time.

    def next_deadline(self) -> int | None:
        """When `tick` has something to do next, in seconds since 1970."""
        found = [self.state.expiries.next(), self.departures.next_deadline()]
        return min((each for each in found if each is not None), default=None)

    def tick(self, now: int) -> None:
        """[MS-MQDMPR] 3.1.7.2.7: messages that were not received in time leave their queues.

        Time goes by tick alone: whatever is asked for next happens at this time.
        """
        state = self.state
        # What packets and the log say of time are seconds since 1970 in 32 bits.
        now = min(max(now, 0), TIME_MAX)
        if now - state.now > SKIPPED_S:
            # The computer slept, or its clock was put forward: nothing could come meanwhile.
            state.recent.renew(now)
            self.arrivals.skipped(now - state.now)
        state.now = now
        due = state.expiries.next()
        while due is not None and due < now:
            change = Change()
            for number, lookup_id in state.expiries.due(now):
                expire = partial(self._expire, change, number, lookup_id)
                attempt(state, change, b"", "ending a message whose time is over", expire)
            if change.steps:
                state.submit(change)
            due = state.expiries.next()
        self.stages.sweep()
        if state.sources.are_many and state.is_settled:
            state.forget_sources()
        if state.is_settled and now >= self._sweep_at:
            self._sweep_at = now + SWEEP_S
            self.administration.drop_idle_order_queues()
        if state.unpurged:
            self.administration.purge_unpurged()
        self.departures.unblock()
        given_up = self.departures.given_up(now)
        if given_up:
            change = Change()
            for queue, place in given_up:
                self._give_up(change, queue, place)
            state.submit(change)

    def _expire(self, change: Change, number: int, lookup_id: int) -> None:
        queue = self.state.queues[number]
        place = queue.positions.get(lookup_id)
        assert place is not None, "what has gone is not waited for"
        queue.expired.add(lookup_id)
        if place.state != AVAILABLE or queue.closing:
            return  # somebody has it; if it is given back, it is looked at again
        if not self.departures.keeps(queue, lookup_id):
            self._give_up(change, queue, place)

    def _expire_overdue(self) -> None:
        """[MS-MQDMPR] 3.1.2.4: messages whose time was over when they came leave at once."""
        overdue, self.state.overdue = self.state.overdue, []
        change = Change()
        for queue, lookup_id in overdue:
            place = queue.positions.get(lookup_id)
            if place is None or queue.closing:
                continue
            if not queue.is_outgoing:
                queue.positions.set_state(lookup_id, AVAILABLE)
                self._give_up(change, queue, place)
            elif place.state == AVAILABLE and not self.departures.keeps(queue, lookup_id):
                self._give_up(change, queue, place)
        if change.steps:
            self.state.submit(change)

    def _give_up(self, change: Change, queue: Queue, place: Place) -> None:
        packet = self.state.readable(place)
        if packet is None:
            damage.pass_over(self.state, queue, place)
            return
        queue.positions.set_state(place.lookup_id, PURGE_PENDING)
        queue_changes.take(change, queue, place)
        # [MS-MQMQ] 2.2.18.1.6: on its way either time ends it as one that did not reach its queue.
        reason = (
            MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT
            if queue.is_outgoing
            else MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT
        )
        note = queue.notes.get(place.lookup_id, NO_NOTE)
        notices.lost(self.state, change, queue, packet, reason, note)
