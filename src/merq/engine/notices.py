"""What the queue manager writes about messages: journals, dead-letter queues, acknowledgments.

[MS-MQDMPR] 3.1.1.12 says who asked for what, [MS-MQQB] 3.1.7.2.1, 3.1.7.15 what an administration
acknowledgment says.
"""

from __future__ import annotations

from typing import Final

from merq.engine import records
from merq.engine.changes import Change, PutStep, RemoveStep
from merq.engine.positions import Place
from merq.engine.queue import Queue, QueueKind
from merq.engine.state import KEEPING, State
from merq.errors import NameSyntaxError
from merq.model.message_class import MessageClass
from merq.model.names import DirectProtocol, parse_direct_name
from merq.wire.build import Outline, build_packet
from merq.wire.queues import DIRECT
from merq.wire.view import MessageView

JOURNAL_NUMBER: Final = 0xFFFF0001
DEAD_LETTER_NUMBER: Final = 0xFFFF0002
DEAD_XACT_NUMBER: Final = 0xFFFF0003
"""The system queues' numbers, beyond those of private queues."""

POSITIVE_ARRIVAL: Final = 1
POSITIVE_RECEIVE: Final = 2
NEGATIVE_ARRIVAL: Final = 4
NEGATIVE_RECEIVE: Final = 8
"""[MS-MQMQ] 2.2.19.3: the administration acknowledgments that a sender may ask for."""


def put(state: State, change: Change, queue: Queue, view: MessageView) -> int:
    """Plans that a packet comes into a queue; gives its lookup identifier."""
    packet = view.packet
    lookup_id = state.next_lookup_id(view.priority, change)
    entry = None
    if view.delivery_mode:
        entry = len(change.entries)
        change.entries.append(records.put(queue.number, view.sent_time, lookup_id, packet))
    queue.staged_bytes += len(packet)
    change.steps.append(PutStep(queue, lookup_id, packet, entry))
    return lookup_id


def take(change: Change, queue: Queue, place: Place, view: MessageView) -> None:
    """Plans that a message leaves a queue."""
    if view.delivery_mode:
        change.entries.append(records.remove(queue.number, place.lookup_id))
    change.steps.append(RemoveStep(queue, place.lookup_id))


def arrived(state: State, change: Change, view: MessageView) -> None:
    """[MS-MQQB] 3.1.5.8.10: a message has reached its queue."""
    if view.positive_journaling and state.has_room(len(view.packet)):
        _copy(state, change, JOURNAL_NUMBER, view)
    if view.acknowledgments & POSITIVE_ARRIVAL:
        _acknowledge(state, change, view, MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE)


def received(state: State, change: Change, queue: Queue, view: MessageView) -> None:
    """A message was taken by a receiver: target journal and acknowledgment."""
    if queue.properties.kind in KEEPING:
        return  # what is kept of a message is not the message: its fate was told before
    journal = queue.journal
    if journal is not None and queue.properties.journaling and journal.has_room(len(view.packet)):
        put(state, change, journal, view)
    if view.acknowledgments & POSITIVE_RECEIVE:
        _acknowledge(state, change, view, MessageClass.MQMSG_CLASS_ACK_RECEIVE)


def lost(state: State, change: Change, queue: Queue, view: MessageView, reason: int) -> None:
    """[MS-MQDMPR] 3.1.1.12: a message left its queue unreceived, for this reason."""
    if queue.properties.kind in KEEPING:
        return
    if view.negative_journaling:
        number = DEAD_XACT_NUMBER if view.transactional else DEAD_LETTER_NUMBER
        _copy(state, change, number, view)
    if view.acknowledgments & NEGATIVE_RECEIVE:
        _acknowledge(state, change, view, reason)


def _copy(state: State, change: Change, number: int, view: MessageView) -> None:
    """Into a system queue; where its quota is used up the copy is dropped, not the message."""
    queue = state.queues[number]
    if queue.has_room(len(view.packet)):
        put(state, change, queue, view)


def _acknowledge(state: State, change: Change, view: MessageView, reason: int) -> None:
    """[MS-MQQB] 3.1.7.15: an administration acknowledgment as a message of its own."""
    target = _local_queue(state, view)
    if target is None or target.closing or target.properties.transactional:
        return
    if target.properties.kind is not QueueKind.PRIVATE:
        return  # nobody may send to the others
    negative = reason not in (
        MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE,
        MessageClass.MQMSG_CLASS_ACK_RECEIVE,
    )
    response = ""
    if view.destination_type == DIRECT:
        response = view.destination.decode("utf-16-le", "surrogatepass")
    packet = build_packet(
        Outline(
            source_queue_manager=state.guid.bytes_le,
            message_ordinal=state.next_ordinal(change),
            sent_time=state.now,
            destination=view.admin_queue.decode("utf-16-le", "surrogatepass"),
            response_queue=response,
            message_class=reason,
            correlation_id=view.message_id,
            recoverable=view.delivery_mode == 1,
            label=view.label,
            body=view.body if negative else b"",
            body_type=view.body_type if negative else 0,
        )
    )
    if target.has_room(len(packet)) and state.has_room(len(packet)):
        put(state, change, target, MessageView(packet))


def _local_queue(state: State, view: MessageView) -> Queue | None:
    """The administration queue, if it is one of ours; others need a transport."""
    if view.admin_queue_type != DIRECT:
        return None
    try:
        name = parse_direct_name(view.admin_queue.decode("utf-16-le", "surrogatepass"))
    except NameSyntaxError:
        return None
    if name.protocol is not DirectProtocol.OS:
        return None
    return state.find(name.path_name())
