"""[MS-MQDMPR] 3.1.1.18, 3.1.7.3.9: which message goes next through a connection.

The document keeps an entry for each message that waits, and takes the one with the highest
priority: the outgoing queue's BasePriority and the message's priority, added. An outgoing queue
hands out its own messages by their priority, so here each queue has one entry, ranked by the first
message that it would send; that gives the same order. Each connection has a collection of its own,
for a peer that is slow must not keep others waiting.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

from merq.engine.queue import Queue
from merq.engine.transfer import LANES

LAST_LANE: Final = LANES - 1
"""Lanes are numbered 7 minus the priority of their messages."""


class Turn(NamedTuple):
    """A queue that may send now.

    Attributes:
        last_lane: It sends messages of this lane and those before it; below that, another queue's
            messages go first.
    """

    queue: Queue
    last_lane: int


def first_lane(queue: Queue) -> int | None:
    """The lane of the message that a queue sends next; None if all are under way."""
    transfer = queue.transfer
    assert transfer is not None, "only outgoing queues send"
    for lane, sent in enumerate(transfer.sent_up_to):
        if queue.positions.lane_behind(sent, 1):
            return lane
    return None


def rank_of(queue: Queue) -> int | None:
    """[MS-MQDMPR] 3.1.7.1.28: the priority of the message that a queue sends next."""
    lane = first_lane(queue)
    return None if lane is None else queue.properties.base_priority + LAST_LANE - lane


class DispatchCollection:
    """[MS-MQDMPR] 3.1.1.1: outgoing queues that have something to send, the most urgent first.

    Queues of one rank take turns. A queue alone is not ranked, which is most of the time; ranks of
    others are looked at when messages came and when it is their turn.
    """

    __slots__ = ("_by_rank", "_ranks", "_unranked")

    def __init__(self) -> None:
        self._unranked: OrderedDict[Queue, None] = OrderedDict()
        self._ranks: dict[Queue, int] = {}
        self._by_rank: dict[int, OrderedDict[Queue, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._unranked or self._ranks)

    def add(self, queue: Queue) -> None:
        """[MS-MQDMPR] 3.1.7.1.28: messages of a queue are to be sent."""
        self._unranked[queue] = None

    def remove(self, queue: Queue) -> None:
        """[MS-MQDMPR] 3.1.7.1.34: nothing of a queue is to be sent."""
        self._unranked.pop(queue, None)
        self._place(queue, None)

    def clear(self) -> None:
        """Nothing is to be sent."""
        self._unranked.clear()
        self._ranks.clear()
        self._by_rank.clear()

    def next(self) -> Turn | None:
        """[MS-MQDMPR] 3.1.7.3.9: the queue whose first message has the highest priority."""
        alone = self._alone()
        if alone is not None:
            return Turn(alone, LAST_LANE)
        for queue in self._unranked:
            self._place(queue, rank_of(queue))
        self._unranked.clear()
        while self._by_rank:
            highest = max(self._by_rank)
            queue = next(iter(self._by_rank[highest]))
            rank = rank_of(queue)  # what it was ranked by may have been sent, or removed
            if rank == highest:
                return Turn(queue, self._last_lane(queue, highest))
            self._place(queue, rank)
        return None

    def sent(self, queue: Queue, count: int) -> None:
        """[MS-MQDMPR] 3.1.7.1.29: so many messages of a queue are under way.

        Those of its rank come next. If none could be sent, either there is none left of its lanes,
        or one has to wait and nothing of the queue may overtake it.
        """
        if queue in self._unranked:
            if count:
                self._unranked.move_to_end(queue)
            else:
                self.remove(queue)
            return
        rank = self._ranks.get(queue)
        if rank is None:
            return  # it has left the connection
        if count:
            self._by_rank[rank].move_to_end(queue)
            return
        now = rank_of(queue)
        self._place(queue, None if now == rank else now)

    def _alone(self) -> Queue | None:
        """The only queue that has something to send."""
        if len(self._unranked) > 1 or len(self._ranks) > 1:
            return None
        added, ranked = next(iter(self._unranked), None), next(iter(self._ranks), None)
        return added or ranked if added is None or ranked in (None, added) else None

    def _last_lane(self, queue: Queue, highest: int) -> int:
        """The last lane from which a queue may send before another is to be looked at."""
        if len(self._by_rank[highest]) > 1:
            following = highest
        else:
            others = [rank for rank in self._by_rank if rank != highest]
            if not others:
                return LAST_LANE
            following = max(others)
        return min(queue.properties.base_priority + LAST_LANE - following, LAST_LANE)

    def _place(self, queue: Queue, rank: int | None) -> None:
        """Puts a queue behind those of its rank, unless it is there; None takes it out."""
        before = self._ranks.get(queue)
        if before == rank:
            return
        if before is not None:
            equals = self._by_rank[before]
            del equals[queue], self._ranks[queue]
            if not equals:
                del self._by_rank[before]
        if rank is not None:
            self._ranks[queue] = rank
            self._by_rank.setdefault(rank, OrderedDict())[queue] = None
