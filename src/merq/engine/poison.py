"""Help against poison messages: those that make every receiver fail are set aside.

MSMQ leaves this to applications; subqueues were made for it. A queue may have it done: a message
whose receive was aborted so many times moves to the subqueue `poison`.
"""

from __future__ import annotations

from typing import Final

from merq.engine import moving, queue_changes, records
from merq.engine.changes import Change, MoveStep, PurgeStep
from merq.engine.positions import Place
from merq.engine.queue import Note, Queue
from merq.engine.state import State
from merq.model.queue import QueueKind

POISON: Final = "poison"
"""The subqueue."""


def is_due(queue: Queue, note: Note) -> bool:
    """Whether a message has failed often enough."""
    properties = queue.properties
    return (
        properties.kind is QueueKind.PRIVATE
        and properties.poison_after > 0
        and note.aborts >= properties.poison_after
    )


def set_aside(state: State, change: Change, queue: Queue, place: Place, note: Note) -> None:
    """Plans that a message moves to the subqueue."""
    target = moving.subqueue(state, change, queue, POISON)
    lookup_id = place.lookup_id
    queue_changes.write_note(change, queue, place, note)
    change.steps.append(PurgeStep(queue, lookup_id, note))
    change.entries.append(records.move(queue.number, target.number, lookup_id))
    change.steps.append(MoveStep(queue, lookup_id, target))
