"""[MS-MQQB] 3.1.5.6 to 3.1.5.8, 3.1.5.11, 3.1.7.10: messages come from other queue managers.

Everything that came together is one change: what is to be kept is durable, or nothing of it
happened and it comes again. One such change is under way at a time, so a sequence never goes on
from what may still fail.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple
from uuid import UUID

from merq.engine import notices, outgoing, records, tracing
from merq.engine.changes import Answer, ArriveStep, Change
from merq.engine.courses import Course, is_plain
from merq.engine.departing import Departures
from merq.engine.filling import Filler
from merq.engine.incoming import SEQUENCES_MAX, Incoming, Origin, identity_of, pack_sequence
from merq.engine.queue import NO_NOTE, Queue
from merq.engine.sending import check_secured
from merq.engine.state import State
from merq.errors import MessageQueueError
from merq.model.message_class import MessageClass
from merq.model.names import LOCAL_COMPUTER, PathName
from merq.model.queue import QueueKind
from merq.wire.acks import (
    ACK_BODY_SIZE,
    FINAL_ACK_CLASS_MIN,
    ORDER_ACK_LABEL,
    has_ack_flags,
)
from merq.wire.build import one_hop_further
from merq.wire.headers import INFINITE
from merq.wire.queues import DIRECT, PRIVATE_ON_DESTINATION, PUBLIC
from merq.wire.view import MessageView

HOPS_MAX: Final = 0x1D
"""[MS-MQMQ] 2.2.19.2: how many queue managers may handle a message on its way."""

NAMES_MAX: Final = 4096
"""Names of which it is remembered which queue they mean."""

NAME_BYTES_REMEMBERED: Final = 512
"""Longer names are read each time: nobody fills the memory with names of no queue."""

REJECTS_MAX: Final = 0xFFFFFFFF
"""[MS-MQQB] 3.1.1.3.1: TxMessageRejectCount goes no further."""

_DELIVERY: Final = 3 << 5
"""[MS-MQMQ] 2.2.19.2: the delivery mode."""

_NULL: Final = bytes(16)
_ORDER_ACK: Final = struct.Struct("<QI")
_FINAL_ACK: Final = struct.Struct("<QII16sI")
_ORDER_QUEUE_END: Final = "\\private$\\order_queue$"


class Arrival(NamedTuple):
    """A message as it came.

    Attributes:
        view: The packet, without the session's own part.
        address: Where it came from.
        remote: [MS-MQQB] 3.1.1.3.1: RemoteQMGuid of the session as 16 bytes: the last hop, which
            need not be the sender.
    """

    view: MessageView
    address: str
    remote: bytes


class Arrived(NamedTuple):
    """What became of messages that came together.

    Attributes:
        taken: How many were looked at; those behind were not, because there is no room.
        sequences: Whose senders are to be told how far they are.
        ordered: Queues for which an OrderAck came.
        refusal: Why not all were looked at.
    """

    taken: int
    sequences: list[Incoming]
    ordered: list[Queue]
    refusal: str


class Arrivals:
    """What comes."""

    def __init__(self, state: State, departures: Departures) -> None:
        self._state = state
        self._departures = departures
        self._found: dict[bytes, Queue] = {}
        self._filler = Filler(state, Change())
        self._course: Course | None = None
        self.forwards = False

    def arrive(self, request: int, arrivals: Sequence[Arrival]) -> Arrived:
        """[MS-MQQB] 3.1.5.8: takes messages; answers when what is to be kept of them is durable."""
        change = Change()
        self._filler = Filler(self._state, change)
        step = ArriveStep()
        touched: dict[Incoming, None] = {}
        ordered: list[Queue] = []
        count = 0
        refusal = ""
        self._course = None
        for arrival in arrivals:
            course = self._course_under_way()
            if course is not None and course.takes(arrival.view, arrival.address):
                count += 1
                continue
            self._end_course(change)
            refusal = self._refusal(arrival)
            if refusal:
                break
            count += 1
            if self._is_ack(arrival.view):
                queue = self._take_ack(change, arrival)
                if queue is not None:
                    ordered.append(queue)
                continue
            self._take(change, step, touched, arrival)
        self._end_course(change)
        for incoming in {**step.sequences, **step.rejected}:
            data = pack_sequence(incoming, incoming.sequence_id, incoming.number)
            change.entries.append(records.sequence(data))
        if step.sequences or step.messages:
            change.steps.append(step)
        change.answers.append(Answer(request, count))
        self._state.submit(change)
        return Arrived(count, list(touched), ordered, refusal)

    def _course_under_way(self) -> Course | None:
        return self._course

    def _end_course(self, change: Change) -> None:
        if self._course is not None:
            self._course.end(change)
            self._course = None

    def _refusal(self, arrival: Arrival) -> str:
        """[MS-MQQB] 3.1.5.8.8: why the session is to be closed instead of taking a message."""
        state, view = self._state, arrival.view
        if state.throttled:
            return "the queue manager is short of disk or memory"
        if not state.has_room(len(view.packet)):
            return f"the computer's quota of {state.limits.machine_quota} KB is used up"
        if view.transactional and len(state.sequences) >= SEQUENCES_MAX:
            key = state.sequences.key_of(
                view.packet[16:32], view.destination_type, view.destination
            )
            if state.sequences.find(key) is None:
                return f"{SEQUENCES_MAX} sequences are kept already"
        return ""

    # Acknowledgments end to end.

    def _is_ack(self, view: MessageView) -> bool:
        """[MS-MQQB] 3.1.5.1.1: whether it is an OrderAck or a FinalAck for this queue manager."""
        kind = view.message_class
        if not kind or not self._is_for_us(view):
            return False
        if not has_ack_flags(view.base_flags, view.user_flags):
            return False
        if kind != MessageClass.MQMSG_CLASS_ORDER_ACK and kind < FINAL_ACK_CLASS_MIN:
            return False
        if view.destination_type == PRIVATE_ON_DESTINATION:
            if view.destination != b"\x04\0\0\0":
                return False
        elif view.destination_type != DIRECT or not _to_order_queue(view.destination):
            return False
        return view.label == ORDER_ACK_LABEL and view.body_size == ACK_BODY_SIZE

    def _take_ack(self, change: Change, arrival: Arrival) -> Queue | None:
        view, remote = arrival.view, arrival.remote
        if view.message_class == MessageClass.MQMSG_CLASS_ORDER_ACK:
            sequence_id, number = _ORDER_ACK.unpack_from(view.body)
            return self._departures.ordered(change, sequence_id, number, remote)
        sequence_id, _, _, source, ordinal = _FINAL_ACK.unpack(view.body)
        if source == self._state.source:
            message_id = source + ordinal.to_bytes(4, "little")
            self._departures.finished(change, sequence_id, message_id, view.message_class, remote)
        return None

    # Messages.

    def _is_for_us(self, view: MessageView) -> bool:
        address = view.packet[32:48]
        return address in (self._state.source, _NULL)

    def _take(
        self, change: Change, step: ArriveStep, touched: dict[Incoming, None], arrival: Arrival
    ) -> None:
        state, view = self._state, arrival.view
        source = view.packet[16:32]
        incoming: Incoming | None = None
        if not view.transactional:
            identity = identity_of(view.packet)
            if state.recent.seen(source, identity, state.now):
                return
            state.recent.add(source, identity, state.now)
            step.messages.append((source, identity))
        elif self._is_for_us(view):
            incoming = self._sequence(view)
            touched[incoming] = None
            if not self._is_next(step, incoming, arrival):
                return
        if not self._is_for_us(view):
            self._forward(change, view)
            return
        queue = self._find(view)
        reason = self._reason(queue, view)
        if reason:
            self._reject(change, view, reason)
            return
        assert queue is not None, "there is a reason otherwise"
        self._filler.put(
            queue,
            view.packet,
            view.priority,
            state.source_key(source) | view.message_ordinal,
            is_recoverable=view.user_flags & _DELIVERY != 0,
        )
        if view.user_flags & notices.TELLING:
            notices.arrived(state, change, view)
        if view.traced:
            tracing.report(state, change, view)
        if incoming is not None and is_plain(view):
            self._course = Course(state, queue, incoming, view, arrival.address)

    def _sequence(self, view: MessageView) -> Incoming:
        """The sequence of a message."""
        state = self._state
        key = state.sequences.key_of(view.packet[16:32], view.destination_type, view.destination)
        incoming = state.sequences.get(key)
        incoming.last_access = state.now
        return incoming

    def _is_next(self, step: ArriveStep, incoming: Incoming, arrival: Arrival) -> bool:
        """[MS-MQQB] 3.1.5.8.6: whether a message is the next of its sequence; it is taken, then."""
        view = arrival.view
        sequence_id, number, previous = view.tx_place
        is_direct = view.destination_type == DIRECT
        source = view.packet[16:32]
        origin = Origin(arrival.address, arrival.remote) if is_direct else Origin("", source)
        if not incoming.accepts(sequence_id, number, previous):
            incoming.rejects = min(incoming.rejects + 1, REJECTS_MAX)
            step.rejected[incoming] = None
            if sequence_id == incoming.sequence_id:
                incoming.origin = origin
            elif arrived := self._state.sequences.arrived(incoming, sequence_id):
                incoming.stale = max(incoming.stale, (sequence_id, min(number, arrived)))
                incoming.stale_origin = origin
            return False
        incoming.rejects = 0
        if sequence_id != incoming.sequence_id:
            self._state.sequences.ended(incoming)
        incoming.origin = origin
        if incoming not in step.sequences:
            step.sequences[incoming] = incoming.sequence_id, incoming.number
        incoming.sequence_id, incoming.number = sequence_id, number
        return True

    def _find(self, view: MessageView) -> Queue | None:
        """[MS-MQQB] 3.1.5.8.5: the queue that a message is for; a direct name led here, so its
        computer is this one, whatever it is called there.
        """
        state, kind = self._state, view.destination_type
        if kind == DIRECT:
            return self._find_direct(view)
        if kind == PUBLIC:
            return state.find_by_identifier(UUID(bytes_le=view.destination))
        if kind == PRIVATE_ON_DESTINATION:
            return state.queues.get(int.from_bytes(view.destination, "little"))
        return None

    def _find_direct(self, view: MessageView) -> Queue | None:
        """The queue of a direct name; names come again and again, and take long to read."""
        state, data = self._state, view.destination
        found = self._found.get(data)
        if found is not None and state.queues.get(found.properties.number) is found:
            return found
        is_short = len(data) <= NAME_BYTES_REMEMBERED
        path = _path_here(data) if is_short else _path_here.__wrapped__(data)
        if path is not None:
            found = state.find(path)
            if found is not None:
                if len(self._found) >= NAMES_MAX:
                    self._found.clear()
                self._found[data] = found
                return found
        return None

    def _reason(self, queue: Queue | None, view: MessageView) -> int:
        """[MS-MQQB] 3.1.5.8.2, 3.1.5.8.8, 3.1.7.1.2: why a message cannot be taken; 0 if it can."""
        if queue is None or queue.closing or queue.properties.kind is not QueueKind.PRIVATE:
            return MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q
        if queue.number == notices.ORDER_QUEUE_NUMBER:
            # Acknowledgments were taken before this; nobody ever reads anything else there.
            return MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q
        if view.transactional != queue.properties.transactional:
            if view.transactional:
                return MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_Q
            return MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_MSG
        if self._is_late(view):
            return MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT
        if not queue.has_room(len(view.packet)):
            return MessageClass.MQMSG_CLASS_NACK_Q_EXCEED_QUOTA
        return _insecurity(queue, view)

    def _is_late(self, view: MessageView) -> bool:
        """[MS-MQQB] 3.1.7.1.2: whether a message took longer than it was given."""
        lifetime = view.time_to_reach_queue
        return lifetime != INFINITE and self._state.now - view.sent_time > lifetime

    def _reject(self, change: Change, view: MessageView, reason: int) -> None:
        """A message is not taken; its sender is told as far as it wanted."""
        state = self._state
        if view.acknowledgments & notices.NEGATIVE_ARRIVAL:
            notices.acknowledge(state, change, view, reason)
        notices.finally_told(state, change, view, reason, is_rejected=True)
        kept = (
            MessageClass.MQMSG_CLASS_NACK_Q_EXCEED_QUOTA,
            MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT,
        )
        if reason in kept and not view.transactional:
            notices.bury(state, change, view, reason, NO_NOTE)

    def _forward(self, change: Change, view: MessageView) -> None:
        """[MS-MQQB] 3.1.5.8.2, 3.1.5.8.5: a message for another queue manager goes on its way."""
        state = self._state
        name = notices.name_of_destination(view)
        if not self.forwards or name is None:
            self._reject(change, view, MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q)
            return
        if view.hop_count >= HOPS_MAX:
            self._reject(change, view, MessageClass.MQMSG_CLASS_NACK_HOP_COUNT_EXCEEDED)
            return
        if self._is_late(view) and not view.transactional:
            # Of others the destination decides: a copy that came before may be there.
            self._reject(change, view, MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT)
            return
        target = outgoing.reach_if_possible(state, change, name)
        if target is None or target.transfer is None:
            # Its name is one of ours, though it says that it is for somebody else; or there are too
            # many destinations already.
            self._reject(change, view, MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q)
            return
        moved = MessageView(one_hop_further(view))
        notices.put(state, change, target, moved)
        if view.traced:
            tracing.report(state, change, moved)


def _insecurity(queue: Queue, view: MessageView) -> int:
    """[MS-MQQB] 3.1.5.8.3: what cannot be opened or proved here is not taken; 0 if all is well."""
    if view.is_encrypted:
        return MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION
    if queue.properties.authenticate:
        return MessageClass.MQMSG_CLASS_NACK_BAD_SIGNATURE
    try:
        check_secured(queue, view)
    except MessageQueueError:
        return MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED
    return 0


@lru_cache(maxsize=NAMES_MAX)
def _path_here(data: bytes) -> PathName | None:
    """The path name on this computer that a direct name in a packet means; None if it is none."""
    name = notices.read_direct_name(data)
    return None if name is None else name.path_name_on(LOCAL_COMPUTER)


def _to_order_queue(name: bytes) -> bool:
    # No more of it is read than matters: strangers write long ones that take long.
    end = name[-2 * len(_ORDER_QUEUE_END) :]
    return end.decode("utf-16-le", "surrogatepass").lower() == _ORDER_QUEUE_END
