"""[MS-MQQB] 3.1.5.6 to 3.1.5.8, 3.1.5.11, 3.1.7.10: messages come from other queue managers.

All that came together is one change: what is to be kept is durable, or nothing of it happened and
it comes again. One is under way at a time: no sequence goes on from what may still fail.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Final, NamedTuple
from uuid import UUID

from merq.engine import (
    aside,
    notices,
    order_acks,
    order_queues,
    outgoing,
    packet_names,
    queue_changes,
    records,
    tracing,
)
from merq.engine.arrival_outcomes import Arrived, Rejected
from merq.engine.arrival_room import NO_SHORTAGE, ArrivalRoom, Shortage
from merq.engine.changes import Answer, ArriveStep, Change
from merq.engine.courses import Course, is_plain
from merq.engine.departing import Departures
from merq.engine.dropped import Dropped, reason_of
from merq.engine.filling import Filler
from merq.engine.history import identity_of
from merq.engine.incoming import (
    REJECTS_MAX,
    SEQUENCE_IDLE_S,
    Incoming,
)
from merq.engine.queue import NO_NOTE, Queue
from merq.engine.sending import check_secured
from merq.engine.sequence_keys import Origin, SequenceKey
from merq.engine.sequence_records import pack_sequence
from merq.engine.state import State
from merq.errors import MessageQueueError, StoreFailed
from merq.model.message_class import MessageClass
from merq.model.names import LOCAL_COMPUTER, DirectName, PathName
from merq.model.peer_networks import peer_network
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

RESETS_TOLD_MAX: Final = 16
"""Resets of sequences that wait to be told to people."""

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


class _Verdict(NamedTuple):
    """What becomes of a message.

    Attributes:
        refusal: Why its session is to be closed instead of taking it; empty if it is not.
        queue: Where it goes; None if nowhere.
        incoming: The sequence that it is the next of.
    """

    refusal: str
    queue: Queue | None
    incoming: Incoming | None


_DECIDED: Final = _Verdict("", None, None)
"""Nothing is left to be done about a message."""


class Arrivals:
    """What comes.

    Attributes:
        forwards: Messages for other queue managers are passed on.
        impostors: How many messages came that say they were sent by this queue manager.
        resets: Queues whose sequences somebody has reset, and how many they were.
        room: What others may still bring.
    """

    def __init__(self, state: State, departures: Departures) -> None:
        self._state = state
        self._departures = departures
        self._found: dict[bytes, Queue] = {}
        self._filler = Filler(state, Change())
        self._course: Course | None = None
        self._dropped: list[Dropped] = []
        self._rejected: list[Rejected] = []
        self._up_since = 0
        self.resets: deque[tuple[str, int]] = deque(maxlen=RESETS_TOLD_MAX)
        self.forwards = False
        self.impostors = 0
        self.room = ArrivalRoom(state)

    def arrive(self, request: int, arrivals: Iterable[Arrival]) -> Arrived:
        """[MS-MQQB] 3.1.5.8: takes messages; answers when what is to be kept of them is durable."""
        change = Change()
        self._filler = Filler(self._state, change)
        step = ArriveStep()
        touched: dict[Incoming, None] = {}
        ordered: list[Queue] = []
        count = 0
        shortage = NO_SHORTAGE
        self._course = None
        self._dropped, self._rejected = [], []
        self._state.sequences.ended_before = step.ended
        for arrival in arrivals:
            course = self._course_under_way()
            if course is not None and course.takes(arrival.view, arrival.address):
                count += 1
                continue
            self._end_course(change, step)
            is_ack = self.is_ack(arrival.view)
            shortage = self._shortage(step, arrival, is_ack=is_ack)
            if shortage.refusal:
                break
            if is_ack:
                verdict = self._try(change, arrival, partial(self._take_ack, change, ordered))
            else:
                verdict = self._try(change, arrival, partial(self._judge, change, step, touched))
            if verdict.refusal:
                shortage = Shortage(verdict.refusal)
                break
            count += 1
            if verdict.queue is not None:
                self._put(change, step, verdict.queue, verdict.incoming, arrival)
        self._end_course(change, step)
        self._state.sequences.ended_before = None
        self._finish(change, step)
        change.answers.append(Answer(request, count))
        self._state.submit(change)
        return Arrived(count, list(touched), ordered, shortage, self._dropped, self._rejected)

    def _try(
        self, change: Change, arrival: Arrival, decide: Callable[[Arrival], _Verdict]
    ) -> _Verdict:
        """Decides on one message; if that cannot be done it is set aside, and all others go on."""
        if arrival.view.packet[16:32] == self._state.source:
            # What is sent here never leaves, and what leaves does not come back, unless routes
            # lead in a circle. It is neither journaled nor told of as one of ours.
            self.impostors += 1
            return _DECIDED
        begun = aside.mark(change)
        try:
            return decide(arrival)
        except StoreFailed:
            raise
        except Exception as wrong:  # noqa: BLE001 - no packet stops those behind it
            packet = arrival.view.packet
            aside.set_aside(self._state, change, begun, packet, "taking a message", wrong)
            return _DECIDED

    def _finish(self, change: Change, step: ArriveStep) -> None:
        """Sequences that went on are written with what came."""
        for incoming in {**step.sequences, **step.rejected}:
            if self._state.sequences.remembers(incoming):
                data = pack_sequence(incoming, incoming.sequence_id, incoming.number)
                change.entries.append(records.sequence(data))
        if step.sequences or step.messages or step.coming.total_bytes:
            change.steps.append(step)

    def _shortage(self, step: ArriveStep, arrival: Arrival, *, is_ack: bool) -> Shortage:
        """[MS-MQQB] 3.1.5.8.8: why a message cannot be taken; an acknowledgment takes no room."""
        view = arrival.view
        size = 0 if is_ack else len(view.packet)
        is_express = not view.user_flags & _DELIVERY
        return self.room.shortage(step, arrival.address, size, is_express=is_express)

    def _course_under_way(self) -> Course | None:
        return self._course  # a call, so that the compiler does not think that it is still None

    def _end_course(self, change: Change, step: ArriveStep) -> None:
        if self._course is not None:
            self._course.end(change, step.coming)
            self._course = None

    # Acknowledgments end to end.

    def is_ack(self, view: MessageView) -> bool:
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

    def _take_ack(self, change: Change, ordered: list[Queue], arrival: Arrival) -> _Verdict:
        view, remote = arrival.view, arrival.remote
        if view.message_class == MessageClass.MQMSG_CLASS_ORDER_ACK:
            sequence_id, number = _ORDER_ACK.unpack_from(view.body)
            queue = self._departures.ordered(change, sequence_id, number, remote)
            if queue is not None:
                ordered.append(queue)
            return _DECIDED
        sequence_id, _, _, source, ordinal = _FINAL_ACK.unpack(view.body)
        if source == self._state.source:
            message_id = source + ordinal.to_bytes(4, "little")
            self._departures.finished(change, sequence_id, message_id, view.message_class, remote)
        return _DECIDED

    # Messages.

    def _is_for_us(self, view: MessageView) -> bool:
        address = view.packet[32:48]
        return address in (self._state.source, _NULL)

    def _judge(
        self, change: Change, step: ArriveStep, touched: dict[Incoming, None], arrival: Arrival
    ) -> _Verdict:
        """Decides what becomes of a message.

        Nothing is kept of a message before its queue is found and has room: whoever reaches us may
        send anything to anywhere, in anybody's name.
        """
        view = arrival.view
        if not self._is_for_us(view):
            if view.transactional:
                if not self._can_be_told(view, arrival, is_rejected=True):
                    return _untold()
            elif not self._is_new(step, arrival, is_kept=self.forwards):
                return _DECIDED
            self._forward(change, step, arrival)
            return _DECIDED
        incoming: Incoming | None = None
        if view.transactional:
            incoming = self._sequence(view, arrival)
            if not incoming.accepts(*view.tx_place):
                touched[incoming] = None
                self._is_not_next(step, incoming, arrival)
                return _DECIDED
        queue = self._find(view)
        reason = self._reason(queue, view)
        if incoming is not None:
            if not self._can_be_told(view, arrival, is_rejected=bool(reason)):
                return _untold()
            touched[incoming] = None
            self._go_on(step, incoming, arrival)
            if not incoming.is_kept:
                self._open(change, step, incoming, reason)
        elif not self._is_new(step, arrival, is_kept=not reason):
            return _DECIDED
        if reason:
            self._reject(change, view, reason, _origin(arrival))
            return _DECIDED
        assert queue is not None, "there is a reason otherwise"
        return _Verdict("", queue, incoming)

    def _put(
        self,
        change: Change,
        step: ArriveStep,
        queue: Queue,
        incoming: Incoming | None,
        arrival: Arrival,
    ) -> None:
        """[MS-MQQB] 3.1.5.8.8: a message comes into its queue."""
        state, view = self._state, arrival.view
        key = state.source_key(view.packet[16:32])
        is_kept = view.user_flags & _DELIVERY != 0
        self._filler.put(
            queue, view.packet, view.priority, key | view.message_ordinal, is_recoverable=is_kept
        )
        self._charge(step, arrival, key >> 32)
        if view.user_flags & notices.TELLING:
            notices.arrived(state, change, view, arrival.address)
        if view.traced:
            tracing.report(state, change, view)
        if incoming is not None:
            incoming.queue = queue.number
            if is_plain(view):
                room = self.room.left(step, arrival.address, is_express=False)
                self._course = Course(state, queue, incoming, view, arrival.address, room)

    def _charge(self, step: ArriveStep, arrival: Arrival, number: int) -> None:
        """A message is kept: its address is charged with it when it is here."""
        size = len(arrival.view.packet)
        step.coming.add(arrival.address, number, size)
        if not arrival.view.user_flags & _DELIVERY:
            step.coming_in_memory.add(arrival.address, number, size)

    def _is_new(self, step: ArriveStep, arrival: Arrival, *, is_kept: bool) -> bool:
        """[MS-MQQB] 3.1.5.8.1: whether a message was not here before; it is known from now on."""
        recent, now = self._state.recent, self._state.now
        packet = arrival.view.packet
        network = peer_network(arrival.address)
        source, identity = packet[16:32], identity_of(packet, network)
        if recent.seen(source, identity, now, network):
            return False
        # Of what came before the start it is not known from which network.
        if recent.is_from_before(source) and recent.seen(source, identity_of(packet), now):
            return False
        if is_kept:
            recent.add(source, identity, now, network)
        else:
            recent.reject(source, identity)
        step.messages.append((source, identity, network))
        return True

    def _sequence(self, view: MessageView, arrival: Arrival) -> Incoming:
        """The sequence by which a message is judged."""
        sequences = self._state.sequences
        key = self._key_of(view)
        return sequences.match(key, view.tx_sequence_id, _origin(arrival), self._state.now)

    def _key_of(self, view: MessageView) -> SequenceKey:
        sequences = self._state.sequences
        return sequences.key_of(view.packet[16:32], view.destination_type, view.destination)

    def _can_be_told(self, view: MessageView, arrival: Arrival, *, is_rejected: bool) -> bool:
        """Whether there is room for what the sender of a transactional message has to be told."""
        if not is_rejected and not order_acks.wants_final_ack(view):
            return True
        origin = _origin(arrival)
        return order_acks.can_be_told(
            self._state, self._key_of(view), origin, is_rejected=is_rejected
        )

    def _is_not_next(self, step: ArriveStep, incoming: Incoming, arrival: Arrival) -> None:
        """[MS-MQQB] 3.1.5.8.6: a message is not the next of its sequence; it is dropped."""
        sequences, now = self._state.sequences, self._state.now
        sequence_id, number, _ = arrival.view.tx_place
        origin = _origin(arrival)
        incoming.rejects = min(incoming.rejects + 1, REJECTS_MAX)
        step.rejected[incoming] = None
        is_known = incoming.is_kept or incoming in step.sequences or incoming.settled[0]
        if sequence_id == incoming.sequence_id and is_known:
            sequences.came(incoming, origin, now)
            return
        if incoming.is_kept:
            sequences.came(incoming, incoming.origin, now)
        if arrived := sequences.arrived(incoming, sequence_id):
            incoming.stale = max(incoming.stale, (sequence_id, min(number, arrived)))
            incoming.stale_origin = origin
            return
        known = incoming if incoming.is_kept else sequences.find(incoming.key)
        if known is not None:
            known.dropped += 1
        key, last = incoming.key, incoming.sequence_id
        where = sequences.origin_of(key, last).address
        reason = reason_of(incoming, sequence_id)
        self._dropped.append(Dropped(key, arrival.address, sequence_id, last, where, reason))

    def _go_on(self, step: ArriveStep, incoming: Incoming, arrival: Arrival) -> None:
        """[MS-MQQB] 3.1.5.8.6: a message is the next of its sequence."""
        sequences = self._state.sequences
        sequence_id, number, _ = arrival.view.tx_place
        incoming.rejects = 0
        if sequence_id != incoming.sequence_id and incoming.is_kept:
            sequences.ended(incoming)
        sequences.came(incoming, _origin(arrival), self._state.now)
        if incoming.is_kept and not incoming.is_proven:
            sequences.proven(incoming)
        if incoming not in step.sequences:
            step.sequences[incoming] = incoming.sequence_id, incoming.number
        incoming.sequence_id, incoming.number = sequence_id, number

    def _open(self, change: Change, step: ArriveStep, incoming: Incoming, reason: int) -> None:
        """A sequence is new: it is kept with its first message that is taken."""
        sequences = self._state.sequences
        if reason:
            self._forget(change, step, sequences.reject(incoming))
            return
        forgotten = sequences.keep(incoming, self._state.has_messages_of)
        step.opened[incoming] = None
        self._forget(change, step, forgotten)

    def _forget(self, change: Change, step: ArriveStep, forgotten: list[Incoming]) -> None:
        """Sequences are kept no more, and the log is told."""
        for each in forgotten:
            change.entries.append(records.sequence(pack_sequence(each, 0, 0)))
            if each in step.opened:
                del step.opened[each]
            else:
                step.forgotten.append(each)

    def skipped(self, seconds: int) -> None:
        """The computer slept, or its clock was put forward: nothing could come meanwhile."""
        self._up_since += seconds

    def forget_idle(self) -> None:
        """Sequences of which nothing came for very long are forgotten, and what their senders were
        to be told.

        The documents know no end of a sequence: "this value MUST survive". But nobody sends again
        what is older, unless its computer was off all the time.
        """
        state = self._state
        self._up_since = self._up_since or state.now
        oldest = state.now - SEQUENCE_IDLE_S
        if self._up_since > oldest:
            return
        idle = state.sequences.idle_since(oldest)
        if idle:
            self.reset(0, idle)
        order_queues.forget_waiting(state, oldest)

    def reset(self, request: int, sequences: Sequence[Incoming], queue: str = "") -> None:
        """Sequences are forgotten; answers how many when that is durable, if anybody asked.

        Messages of the same sequences still go on where they were until the next start.
        """
        change, step = Change(), ArriveStep()
        for each in sequences:
            self._state.sequences.forget(each)
        self._forget(change, step, list(sequences))
        change.steps.append(step)
        if request:
            self.resets.append((queue, len(sequences)))
            change.answers.append(Answer(request, len(sequences)))
        self._state.submit(change)

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
        is_short = len(data) <= packet_names.NAME_KEPT_MAX
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
        if queue.number == order_acks.ORDER_QUEUE_NUMBER:
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

    def _reject(self, change: Change, view: MessageView, reason: int, origin: Origin) -> None:
        """A message is not taken; its sender is told as far as it wanted."""
        state = self._state
        self._rejected.append(Rejected(view, origin.address, reason))
        if view.acknowledgments & notices.NEGATIVE_ARRIVAL:
            notices.acknowledge(state, change, view, reason, origin.address)
        order_acks.finally_told(state, change, view, reason, is_rejected=True, origin=origin)
        kept = (
            MessageClass.MQMSG_CLASS_NACK_Q_EXCEED_QUOTA,
            MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT,
        )
        if reason in kept and not view.transactional:
            notices.bury(state, change, view, reason, NO_NOTE)

    def _forward(self, change: Change, step: ArriveStep, arrival: Arrival) -> None:
        """[MS-MQQB] 3.1.5.8.2, 3.1.5.8.5: a message for another queue manager goes on its way."""
        state, view, origin = self._state, arrival.view, _origin(arrival)
        name = packet_names.name_of_destination(view)
        is_elsewhere = isinstance(name, DirectName) and not state.may_call(name)
        if view.hop_count >= HOPS_MAX:
            self._reject(change, view, MessageClass.MQMSG_CLASS_NACK_HOP_COUNT_EXCEEDED, origin)
            return
        if not self.forwards or name is None or is_elsewhere:
            self._reject(change, view, MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q, origin)
            return
        if self._is_late(view) and not view.transactional:
            # Of others the destination decides: a copy that came before may be there.
            self._reject(change, view, MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT, origin)
            return
        target = outgoing.reach_if_possible(state, change, name)
        if target is None or target.transfer is None:
            # Its name is one of ours, though it says that it is for somebody else; or there are too
            # many destinations already.
            self._reject(change, view, MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q, origin)
            return
        moved = MessageView(one_hop_further(view))
        queue_changes.put(state, change, target, moved)
        self._charge(step, arrival, state.source_key(view.packet[16:32]) >> 32)
        if view.traced:
            tracing.report(state, change, moved)


def _untold() -> _Verdict:
    """The sender of a message would have to be told of it, and does not take what it is told."""
    refusal = f"{order_acks.ACKS_WAITING_MAX} acknowledgments wait for its sender already"
    return _Verdict(refusal, None, None)


def _origin(arrival: Arrival) -> Origin:
    """Whom a message came from, whoever sent it."""
    return Origin(arrival.address, arrival.remote)


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
    name = packet_names.read_direct_name(data)
    return None if name is None else name.path_name_on(LOCAL_COMPUTER)


def _to_order_queue(name: bytes) -> bool:
    # No more of it is read than matters: strangers write long ones that take long.
    end = name[-2 * len(_ORDER_QUEUE_END) :]
    return end.decode("utf-16-le", "surrogatepass").lower() == _ORDER_QUEUE_END
