"""Messages come into queues: those in a row are one step, which is cheaper than a step for each."""

from __future__ import annotations

from merq.engine import records
from merq.engine.changes import NO_ENTRY, Change, PutManyStep
from merq.engine.numbers import lookup_id_of
from merq.engine.queue import Queue
from merq.engine.state import State


def put_run(
    state: State,
    change: Change,
    queue: Queue,
    packets: list[bytes],
    keys: list[int],
    priorities: list[int] | None = None,
) -> None:
    """Plans that messages, of priority 0 by default, come into a queue and are kept on disk."""
    count, now, number = len(packets), state.now, queue.properties.number
    first = state.numbers.lookup_ids(7, count, change)
    if priorities is None:
        priorities = [0] * count
    lookup_ids = [
        lookup_id_of(priority, sequence) for sequence, priority in enumerate(priorities, first)
    ]
    size = sum(map(len, packets))
    entries = change.entries
    step = PutManyStep(queue, now, lookup_ids, packets, 0, len(entries), size)
    step.keys = keys
    for lookup_id, packet in zip(lookup_ids, packets, strict=True):
        entries.append(records.put(number, now, lookup_id, packet))
    change.steps.append(step)
    state.stage(queue, size)


class Filler:
    """Plans for one change that messages come into queues."""

    __slots__ = ("_change", "_run", "_state")

    def __init__(self, state: State, change: Change) -> None:
        self._state = state
        self._change = change
        self._run: PutManyStep | None = None

    def put(
        self, queue: Queue, packet: bytes, priority: int, key: int, *, is_recoverable: bool
    ) -> None:
        """Plans that a message comes into a queue, by the key that its identifier has here."""
        state, entries = self._state, self._change.entries
        lookup_id = state.numbers.lookup_id(priority, self._change)
        run = self._run
        if (
            run is None
            or run.queue is not queue
            or (run.entry != NO_ENTRY) != is_recoverable
            # Something else was written in between: a number was reserved, say.
            or (is_recoverable and len(entries) != run.entry + len(run.packets))
        ):
            entry = len(entries) if is_recoverable else NO_ENTRY
            self._run = run = PutManyStep(queue, state.now, [], [], 0, entry, 0)
            run.keys = []
            self._change.steps.append(run)
        assert run.keys is not None, "it was just made"
        if is_recoverable:
            entries.append(records.put(queue.properties.number, state.now, lookup_id, packet))
        size = len(packet)
        run.lookup_ids.append(lookup_id)
        run.packets.append(packet)
        run.keys.append(key)
        run.size += size
        queue.staged_bytes += size
        state.taken_bytes += size
