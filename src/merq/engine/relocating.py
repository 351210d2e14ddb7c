"""What lives in an old segment of the log is copied to its end, so that the segment can go."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import accumulate
from typing import Final

from merq.engine import damage, records
from merq.engine.changes import Change, RelocateStep
from merq.engine.positions import Place
from merq.engine.queue import Queue
from merq.engine.rows import Rows
from merq.engine.state import State
from merq.errors import StoreError

RELOCATED_BYTES: Final = 1 << 19
RELOCATED_MESSAGES: Final = 512
"""About how much one change copies: others wait for that long."""

ROWS_AT_ONCE: Final = 50_000
"""Messages that are looked at in one piece of a relocation, to find those that are to be copied."""


class Relocation:
    """Copies what lives in a segment of the log to its end, a piece at a time.

    Messages may come and go between the pieces: it goes by lookup identifiers.
    """

    def __init__(self, state: State, segment: int) -> None:
        self._state = state
        self._segment = segment
        self._queues = sorted(state.queues)
        self._after = -1

    def go_on(self) -> bool:
        """Submits a change that copies the next piece; False if there is no more."""
        state = self._state
        looked_at = size = count = 0
        change = Change()
        while (
            self._queues
            and looked_at < ROWS_AT_ONCE
            and size < RELOCATED_BYTES
            and count < RELOCATED_MESSAGES
        ):
            queue = state.queues.get(self._queues[0])
            if queue is None or queue.closing:
                # Its end may be in the log already, and nothing of it comes after that.
                self._end_queue()
                continue
            left = ROWS_AT_ONCE - looked_at
            sight = queue.positions.lying_in(self._segment, self._after, left)
            looked_at += sight.looked_at
            self._after = sight.after
            if sight.rows.ids:
                rows = self._cut(sight.rows, RELOCATED_BYTES - size, RELOCATED_MESSAGES - count)
                size += sum(rows.sizes)
                count += self._copy(change, queue, rows, count)
            if self._after < 0:
                self._end_queue()
        if change.entries:
            state.submit(change)
        return bool(self._queues)

    def _end_queue(self) -> None:
        del self._queues[0]
        self._after = -1

    def _cut(self, rows: Rows, most_bytes: int, most: int) -> Rows:
        """About as many as that; it goes on behind them."""
        end = min(most, bisect_left(list(accumulate(rows.sizes)), most_bytes) + 1)
        if end >= len(rows.ids):
            return rows
        self._after = rows.ids[end - 1]
        return Rows(rows.ids[:end], rows.locations[:end], rows.sizes[:end])

    def _copy(self, change: Change, queue: Queue, rows: Rows, entry: int) -> int:
        """Plans that messages are copied; gives how many, for some may be damaged."""
        number = queue.number
        ids = array("Q")
        heads: list[bytes] = []
        bodies: list[bytes] = []
        for row, data in enumerate(self._state.records(rows)):
            lookup_id = rows.ids[row]
            if data is not None:
                head, body = records.relocate_as(number, lookup_id, data)
            else:
                place = Place(lookup_id, rows.locations[row], rows.sizes[row], 0, 0, 0)
                try:  # it may be in memory still
                    arrival, packet = self._state.stored(place)
                except StoreError:
                    # Its segment, and with it all behind, would stay for ever.
                    found = queue.positions.get(lookup_id)
                    if found is not None:
                        damage.pass_over(self._state, queue, found)
                    continue
                _, head, body = records.relocate(number, arrival, lookup_id, packet)
            ids.append(lookup_id)
            heads.append(head)
            bodies.append(body)
        if ids:
            size = sum(map(len, heads)) + sum(map(len, bodies))
            change.entries.append(records.PutRun(records.RELOCATE, heads, bodies, size))
            change.steps.append(RelocateStep(queue, ids, entry))
        return len(ids)
