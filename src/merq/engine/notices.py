"""What the queue manager writes about messages: journals, dead-letter queues, acknowledgments.

[MS-MQDMPR] 3.1.1.12 says who asked for what, [MS-MQQB] 3.1.7.2.1, 3.1.7.15 what an administration
acknowledgment says.
"""

from __future__ import annotations

from typing import Final

from merq.engine import outgoing, records
from merq.engine.changes import NO_ENTRY, Change, PutStep, RemoveStep
from merq.engine.holdings import MEMORY
from merq.engine.positions import Place
from merq.engine.queue import KEEPING, NO_NOTE, Note, Queue
from merq.engine.state import State
from merq.errors import NameSyntaxError
from merq.model.message_class import MessageClass
from merq.model.names import DirectName, parse_direct_name, parse_path_name
from merq.model.queue import QueueKind
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

_ABOUT_RECEIVING: Final = 0x4000
"""[MS-MQMQ] 2.2.18.1.6: set in the classes of acknowledgments that are not about arrival."""


def put(state: State, change: Change, queue: Queue, view: MessageView) -> int:
    """Plans that a packet comes into a queue; gives its lookup identifier."""
    return put_packet(
        state, change, queue, view.packet, view.base_flags & 7, recoverable=view.delivery_mode != 0
    )


def put_packet(
    state: State,
    change: Change,
    queue: Queue,
    packet: bytes,
    priority: int,
    *,
    recoverable: bool,
    note: Note | None = None,
) -> int:
    """The same for a packet of which all that matters is known."""
    lookup_id = state.numbers.lookup_id(priority, change)
    entry = NO_ENTRY
    if recoverable:
        entry = len(change.entries)
        form = records.put if note is None or not note.kept else records.keep
        change.entries.append(form(queue.properties.number, state.now, lookup_id, packet))
        if note is not None:
            change.entries.append(note_entry(queue, lookup_id, note))
    size = len(packet)
    queue.staged_bytes += size
    state.taken_bytes += size
    change.steps.append(PutStep(queue, lookup_id, state.now, packet, entry, note))
    return lookup_id


def note_entry(queue: Queue, lookup_id: int, note: Note) -> records.Entry:
    """What is known of a message beside its packet, as the log keeps it."""
    return records.note(
        records.NoteData(
            queue.number, note.aborts, lookup_id, note.purged, note.dead_letter, note.kept
        )
    )


def write_note(change: Change, queue: Queue, place: Place, note: Note) -> None:
    """Plans that something is known of a message; only of what survives it is written."""
    if not place.location & MEMORY:
        change.entries.append(note_entry(queue, place.lookup_id, note))


def take(change: Change, queue: Queue, place: Place) -> None:
    """[MS-MQDMPR] 3.1.7.2.1: plans that a message leaves a queue."""
    if not place.location & MEMORY:
        change.entries.append(records.remove(queue.properties.number, place.lookup_id))
    change.steps.append(RemoveStep(queue, place.lookup_id))


def take_of_many(change: Change, queue: Queue, place: Place) -> None:
    """The same for one of several; whoever plans the change adds the step that has all of them."""
    if not place.location & MEMORY:
        change.entries.append(records.remove(queue.properties.number, place.lookup_id))


def arrived(state: State, change: Change, view: MessageView) -> None:
    """[MS-MQQB] 3.1.5.8.10: a message has reached its queue."""
    if view.positive_journaling and state.has_room(len(view.packet)):
        _keep(state, change, state.queues[JOURNAL_NUMBER], view)
    if view.acknowledgments & POSITIVE_ARRIVAL:
        _acknowledge(state, change, view, MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE)


def is_quiet(queue: Queue, lookup_id: int, packet: bytes) -> bool:
    """Whether nobody wants to know that a message was received: no journal, no acknowledgment."""
    if queue.notes and queue.notes.get(lookup_id, NO_NOTE).kept:
        return True
    # UserHeader.Flags, byte 1: bits 13 to 15 are the type of the administration queue.
    return not (queue.properties.journaling or queue.properties.owner or packet[61] & 0xE0)


def received(state: State, change: Change, queue: Queue, packet: bytes) -> None:
    """A message was taken by a receiver: target journal and acknowledgment."""
    if queue.properties.kind in KEEPING or queue.is_outgoing:
        return  # what is kept of a message is not the message: its fate was told before
    owner = state.queues[queue.properties.owner] if queue.properties.owner else queue
    view = MessageView(packet)
    journal = owner.journal
    if journal is not None and owner.properties.journaling and journal.has_room(len(packet)):
        put(state, change, journal, view)
    if view.acknowledgments & POSITIVE_RECEIVE:
        _acknowledge(state, change, view, MessageClass.MQMSG_CLASS_ACK_RECEIVE)


def received_at(state: State, change: Change, queue: Queue, place: Place) -> None:
    """The same for a message in its queue; of one that cannot be read nothing is told."""
    packet = state.readable(place)
    if packet is not None and not is_quiet(queue, place.lookup_id, packet):
        received(state, change, queue, packet)


def lost_at(state: State, change: Change, queue: Queue, place: Place, reason: int) -> None:
    """A message in its queue leaves it unreceived; of one that cannot be read nothing is told."""
    packet = state.readable(place)
    if packet is not None:
        note = queue.notes.get(place.lookup_id, NO_NOTE)
        lost(state, change, queue, MessageView(packet), reason, note)


def lost(
    state: State,
    change: Change,
    queue: Queue,
    view: MessageView,
    reason: int,
    note: Note = NO_NOTE,
) -> None:
    """[MS-MQDMPR] 3.1.1.12: a message left its queue unreceived, for this reason."""
    if queue.properties.kind in KEEPING or note.kept:
        return
    if view.negative_journaling:
        # The copy says why it is there: applications read the reason from its class, as with MSMQ.
        copy = MessageView(view.with_class(reason))
        _keep(state, change, _dead_letter_queue(state, view, note), copy)
    wanted = NEGATIVE_RECEIVE if reason & _ABOUT_RECEIVING else NEGATIVE_ARRIVAL
    if view.acknowledgments & wanted:
        _acknowledge(state, change, view, reason)


def _dead_letter_queue(state: State, view: MessageView, note: Note) -> Queue:
    """[MS-MQDMPR] 3.1.1.12: the application's own one if it can take the message, the system's."""
    if note.dead_letter:
        own = state.find(parse_path_name(note.dead_letter))
        if (
            own is not None
            and not own.closing
            and own.properties.transactional == view.transactional
            and own.properties.kind is QueueKind.PRIVATE
        ):
            return own
    return state.queues[DEAD_XACT_NUMBER if view.transactional else DEAD_LETTER_NUMBER]


def _keep(state: State, change: Change, queue: Queue, view: MessageView) -> None:
    """A copy; where the queue's quota is used up the copy is dropped, not the message."""
    if not queue.has_room(len(view.packet)):
        return
    # In a system queue every message is such a copy; in an application's own it has to be said.
    note = Note(kept=True) if queue.properties.kind is QueueKind.PRIVATE else None
    put_packet(
        state,
        change,
        queue,
        view.packet,
        view.base_flags & 7,
        recoverable=view.delivery_mode != 0,
        note=note,
    )


def _acknowledge(state: State, change: Change, view: MessageView, reason: int) -> None:
    """[MS-MQQB] 3.1.7.15: an administration acknowledgment as a message of its own."""
    name = _admin_queue(view)
    if name is None:
        return
    target = outgoing.reach(state, change, name)
    if target is None or target.closing or target.properties.transactional:
        return
    if target.properties.kind not in {QueueKind.PRIVATE, QueueKind.OUTGOING}:
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
            source_queue_manager=state.source,
            message_ordinal=state.numbers.ordinal(change),
            sent_time=state.now,
            destination=name.without_prefix(),
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


def _admin_queue(view: MessageView) -> DirectName | None:
    """The administration queue's name, if it is one that says where the queue is."""
    if view.admin_queue_type != DIRECT:
        return None
    try:
        return parse_direct_name(view.admin_queue.decode("utf-16-le", "surrogatepass"))
    except NameSyntaxError:
        return None
