"""[MS-MQDMPR] 3.1.7.1.7: a queue is emptied, or goes with what is in it, many messages at a time.

Most messages leave quietly: nobody holds them, and nobody wants to know. Those go as runs. What is
to be told of the others is in `merq.engine.notices`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import compress
from typing import Final

from merq.engine import notices, records
from merq.engine.changes import Change, PurgeStep, RemoveManyStep
from merq.engine.holdings import MEMORY
from merq.engine.positions import AVAILABLE, LOCKED, PURGE_PENDING
from merq.engine.queue import KEEPING, NO_NOTE, Queue
from merq.engine.rows import Rows
from merq.engine.state import State
from merq.errors import StoreError
from merq.model.message_class import MessageClass

LOST_AT_ONCE: Final = 2_048
"""Messages that are looked at together, and that one record says are gone.

A purge is one frame of the log, however many records it has: it happens wholly or not at all. A
frame takes 1 GiB, which is 130 million messages that leave quietly, or that much of copies in
dead-letter queues.
"""


def plan_purge(state: State, change: Change, queue: Queue) -> int:
    """Plans that all messages go; gives how many do, now or when they are given back."""
    reason = MessageClass.MQMSG_CLASS_NACK_Q_PURGED
    if queue.is_outgoing:
        reason = MessageClass.MQMSG_CLASS_NACK_DELETED
    kept = 0
    sorting = _Sorting(state, queue)
    for rows, states in _pieces(queue):
        kept += sorting.sort(rows, states)
        for lookup_id in sorting.held:
            _mark(change, queue, lookup_id)
        if sorting.going.ids:
            _take(state, change, queue, sorting.going, reason)
    return queue.positions.count - kept


def lose_all(state: State, change: Change, queue: Queue, reason: int) -> None:
    """Plans what is told of the messages of a queue that goes, but of those that leave it."""
    if queue.properties.kind in KEEPING:
        return
    leaving = state.leaving(queue)
    for rows, _ in _pieces(queue):
        for lookup_id in _telling(state, queue, rows):
            if lookup_id not in leaving:
                _tell(state, change, queue, lookup_id, reason)
    for packet in state.arriving(queue):
        notices.lost(state, change, queue, packet, reason)


def _pieces(queue: Queue) -> Iterator[tuple[Rows, bytearray]]:
    """All messages of a queue and their states, some at a time."""
    after = -1
    while (piece := queue.positions.behind(after, LOST_AT_ONCE))[0].ids:
        after = piece[0].ids[-1]
        yield piece


class _Sorting:
    """Finds out which messages of a queue can go.

    Attributes:
        going: Those that go now.
        held: Those that go when they are given back.
    """

    def __init__(self, state: State, queue: Queue) -> None:
        self._transfer = queue.transfer
        self._reserved = queue.reserved()
        self._returning = state.returning(queue)
        self.going = Rows(array("Q"), array("Q"), array("I"))
        self.held: list[int] = []

    def sort(self, rows: Rows, states: bytearray) -> int:
        """Looks at some of them; gives how many others have to stay."""
        self.going, self.held = rows, []
        is_free = self._transfer is None or not self._transfer.is_under_way
        if is_free and states.count(AVAILABLE) == len(states):
            return 0  # what is reserved is locked
        chosen = bytearray(len(states))
        kept = 0
        for row, lookup_id in enumerate(rows.ids):
            if states[row] == PURGE_PENDING:
                continue
            if lookup_id in self._reserved:
                kept += 1  # a group of consumers is about to receive it
            elif self._transfer is not None and self._transfer.holds(lookup_id):
                kept += 1  # it is on its way to where it was sent
            elif states[row] == LOCKED and lookup_id not in self._returning:
                self.held.append(lookup_id)
            else:
                chosen[row] = 1
        self.going = Rows(
            array("Q", compress(rows.ids, chosen)),
            array("Q", compress(rows.locations, chosen)),
            array("I", compress(rows.sizes, chosen)),
        )
        return kept


def _mark(change: Change, queue: Queue, lookup_id: int) -> None:
    """Plans that a message goes when it is given back."""
    place = queue.positions.get(lookup_id)
    assert place is not None, "it was just seen"
    queue.positions.set_state(lookup_id, PURGE_PENDING)
    marked = queue.notes.get(lookup_id, NO_NOTE)._replace(purged=True)
    notices.write_note(change, queue, place, marked)
    change.steps.append(PurgeStep(queue, lookup_id, marked))


def _take(state: State, change: Change, queue: Queue, rows: Rows, reason: int) -> None:
    """Plans that messages go, and what is told of them."""
    queue.positions.withdraw(rows.ids)
    stored = rows.ids
    if max(rows.locations) & MEMORY:
        stored = array("Q", compress(stored, [not at & MEMORY for at in rows.locations]))
    if stored:
        change.entries.append(records.remove_many(queue.number, stored))
    change.steps.append(RemoveManyStep(queue, rows.ids))
    for lookup_id in _telling(state, queue, rows):
        _tell(state, change, queue, lookup_id, reason)


def _telling(state: State, queue: Queue, rows: Rows) -> list[int]:
    """Messages of which somebody may want to know that they are lost."""
    if queue.properties.kind in KEEPING:
        return []
    try:
        heads = state.heads(rows)
    except StoreError:
        return list(rows.ids)  # each is looked at on its own: some may be readable
    # Most have the same flags: where each of those is quiet, so are all who have them.
    if all(map(notices.are_quiet_flags, {head[60:64] for head in heads})):
        return []
    source, quiet = state.source, notices.is_lost_quietly
    pairs = zip(rows.ids, heads, strict=True)
    return [lookup_id for lookup_id, head in pairs if not quiet(head, source)]


def _tell(state: State, change: Change, queue: Queue, lookup_id: int, reason: int) -> None:
    place = queue.positions.get(lookup_id)
    assert place is not None, "it was just seen"
    notices.lost_at(state, change, queue, place, reason)
