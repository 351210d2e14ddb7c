"""Messages whose record on the disk is no longer what was written: they get out of others' way.

Whoever comes upon one locks it, so that the next message is received, transmitted or copied. The
driver keeps what is left of it for a person; after that it leaves its queue. If it cannot be kept,
it stays in its queue, locked until the next start: nothing leaves before it is kept.

A record that cannot be read, because the disk gave an error, is not damaged: that may pass.
"""

from __future__ import annotations

from merq.engine import queue_changes
from merq.engine.aside_messages import DAMAGED_WAITING_MAX, Damaged
from merq.engine.changes import Change
from merq.engine.positions import AVAILABLE, LOCKED, Place
from merq.engine.queue import ENDING, Queue
from merq.engine.state import State
from merq.errors import StoreCorrupt, StoreError


def pass_over(state: State, queue: Queue, place: Place) -> bool:
    """A message could not be read: if its record is damaged, nobody meets it any more.

    It is read once more: what a second look gives as it was written is not damaged. False if the
    message is where it was and still cannot be read.
    """
    try:
        state.stored(place)
    except StoreCorrupt as wrong:
        waiting, lookup_id = state.aside.damaged, place.lookup_id
        now = queue.positions.get(lookup_id)
        if now is None or now.state != AVAILABLE or len(waiting) >= DAMAGED_WAITING_MAX:
            return False
        queue.positions.set_state(lookup_id, LOCKED)
        queue.held[lookup_id] = ENDING  # it is nobody's to give back
        waiting.append(Damaged(queue.number, lookup_id, place.location, place.size, str(wrong)))
    except StoreError:
        return False
    return True


def let_go(state: State, damaged: Damaged) -> None:
    """What is left of a message is kept: it leaves its queue."""
    queue = state.queues.get(damaged.queue)
    place = None if queue is None else queue.positions.get(damaged.lookup_id)
    if queue is None or queue.closing or place is None:
        return
    change = Change()
    queue_changes.take(change, queue, place)
    state.submit(change)


def give_back(state: State, damaged: Damaged) -> None:
    """What is left of a message cannot be read now: it is where it was."""
    queue = state.queues.get(damaged.queue)
    if queue is None or queue.positions.get(damaged.lookup_id) is None:
        return
    queue.held.pop(damaged.lookup_id, None)
    state.give_back(queue, damaged.lookup_id)
