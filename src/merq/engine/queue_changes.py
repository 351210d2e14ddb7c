"""Plans that packets come into queues and leave them, as entries of the log and steps in memory."""

from __future__ import annotations

from merq.engine import records
from merq.engine.changes import NO_ENTRY, Change, PutStep, RemoveManyStep, RemoveStep
from merq.engine.holdings import MEMORY
from merq.engine.positions import Place
from merq.engine.queue import Note, Queue
from merq.engine.state import State
from merq.wire.view import MessageView


def put(state: State, change: Change, queue: Queue, view: MessageView) -> int:
    """Plans that a packet comes into a queue; gives its lookup identifier."""
    return put_packet(
        state, change, queue, view.packet, view.priority, recoverable=view.delivery_mode != 0
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
            queue.number,
            note.aborts,
            lookup_id,
            note.purged,
            note.dead_letter,
            note.kept,
            note.moves,
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


def take_all(change: Change, queue: Queue, places: list[Place]) -> None:
    """The same for several."""
    if not places:
        return
    stored = [place.lookup_id for place in places if not place.location & MEMORY]
    if stored:
        change.entries.append(records.remove_many(queue.properties.number, stored))
    change.steps.append(RemoveManyStep(queue, [place.lookup_id for place in places]))
