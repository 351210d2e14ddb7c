"""[MS-MQQB] 3.1.5.6 to 3.1.5.8, 3.1.6.9: messages in, all that came together as one change."""

from __future__ import annotations

from collections import deque
from typing import Final

from merq.engine.arriving import Arrival, Arrived
from merq.engine.changes import Answer, Change
from merq.engine.incoming import Incoming
from merq.engine.notices import order_told
from merq.errors import MessageQueueError
from merq.exchange.links import Link
from merq.exchange.outbound import Outbound
from merq.exchange.switchboard import Switchboard
from merq.wire.view import MessageView

ARRIVALS_MAX: Final = 4096
"""Messages that are taken with one change."""

THROTTLED_MAX: Final = 10_000
"""Addresses that are known to have found no room; beyond it the first of them is read again."""

REQUEST: Final = 1 << 63
"""The engine knows our requests by this bit."""


class _Told:
    """When the sender of a sequence was told last how far it is, and when it will be next."""

    __slots__ = ("due", "last", "place")

    def __init__(self, now: float) -> None:
        self.due: float | None = None
        self.last = now
        self.place = (0, 0)

    def untold(self, settled: tuple[int, int]) -> int:
        """How many messages of the current sequence it was not told of."""
        sequence_id, number = settled
        return number - (self.place[1] if self.place[0] == sequence_id else 0)


class Inbound:
    """What comes."""

    def __init__(self, board: Switchboard, outbound: Outbound) -> None:
        self._board = board
        self._outbound = outbound
        self._engine = board.host.engine
        self._inbox: deque[tuple[Link, list[MessageView]]] = deque()
        self._request = 0
        self._taken: list[Link] = []
        self._sequences: list[Incoming] = []
        self._told: dict[Incoming, _Told] = {}
        self._forget_at = 0
        self._throttled: dict[str, tuple[int, bool]] = {}

    @property
    def is_full(self) -> bool:
        """Whether nothing can be taken for now, so that nothing should be read."""
        state = self._engine.state
        return state.throttled or state.network_low_on_disk

    @property
    def throttled(self) -> tuple[str, ...]:
        """Addresses whose messages found no room: nothing is read from there until there is."""
        return tuple(self._throttled)

    def is_throttled(self, address: str) -> bool:
        """Whether nothing should be read that comes from an address."""
        return address in self._throttled

    def came(self, link: Link) -> None:
        """Messages came through a connection."""
        assert link.session is not None, "it has received something"
        views = link.session.take_arrived()
        if views:
            self._inbox.append((link, views))

    def go_on(self, now: float) -> None:
        """Takes what has come, unless what was taken before is still under way."""
        if self._throttled:
            self._relieve()
        while self._inbox and not self._request and not self.is_full:
            self._take_some(now)

    def _take_some(self, now: float) -> None:
        arrivals: list[Arrival] = []
        batches: list[tuple[Link, list[MessageView]]] = []
        while self._inbox and len(arrivals) < ARRIVALS_MAX:
            link, views = self._inbox.popleft()
            if link.drops_arrivals:
                continue  # it comes again
            self._taken.append(link)
            batches.append((link, views))
            guid = link.remote_guid.bytes_le
            arrivals += [Arrival(view, link.address, guid) for view in views]
        if not arrivals:
            return
        self._request = REQUEST | 1
        ignored = self._engine.departures.ignored_acks
        arrived = self._engine.arrivals.arrive(self._request, arrivals)
        self._tell_ignored(batches, self._engine.departures.ignored_acks - ignored)
        self._sequences = arrived.sequences
        for queue in arrived.ordered:
            self._outbound.ordered(queue, now)
        if arrived.refusal:
            self._refuse(batches, arrived)

    def _tell_ignored(self, batches: list[tuple[Link, list[MessageView]]], count: int) -> None:
        """[MS-MQQB] 3.1.5.6, 3.1.5.7: acknowledgments of others' sessions change nothing."""
        if count:
            peers = ", ".join(dict.fromkeys(link.address for link, _ in batches))
            self._board.tell(
                "acknowledgments were ignored",
                peer=peers,
                count=count,
                reason="the messages that they name were sent to another queue manager",
            )

    def _refuse(self, batches: list[tuple[Link, list[MessageView]]], arrived: Arrived) -> None:
        """[MS-MQQB] 3.1.5.8.8: whose message finds no room has its session closed.

        What others sent behind it was not looked at, and waits for its turn. The messages of the
        session are sent again: nothing of what was not taken was acknowledged.
        """
        count = arrived.taken
        untouched: list[tuple[Link, list[MessageView]]] = []
        refused: Link | None = None
        for link, views in batches:
            if refused is None and count < len(views):
                refused = link
            elif refused is None:
                count -= len(views)
                continue
            elif link is not refused:
                untouched.append((link, views))
            self._taken.remove(link)
        assert refused is not None, "something was refused"
        self._inbox.extendleft(reversed(untouched))
        refused.drops_arrivals = True
        self._board.close(refused, f"its messages cannot be taken: {arrived.refusal}")
        if arrived.needed:
            self._throttle(refused.address, arrived)

    def _throttle(self, address: str, arrived: Arrived) -> None:
        """Nothing is read from an address until there is room for what it sent."""
        if address not in self._throttled:
            self._board.tell("a peer is throttled", peer=address, reason=arrived.refusal)
        if len(self._throttled) >= THROTTLED_MAX:
            self._throttled.pop(next(iter(self._throttled)))
        self._throttled[address] = arrived.needed, arrived.is_express

    def _relieve(self) -> None:
        """Addresses for which there is room again are read."""
        arrivals = self._engine.arrivals
        for address, (needed, is_express) in list(self._throttled.items()):
            if arrivals.is_relieved(address, needed, is_express=is_express):
                del self._throttled[address]
                self._board.tell("a peer is throttled no longer", peer=address)

    def take(self, answer: Answer, now: float) -> None:
        """What was taken is durable, or could not be."""
        assert answer.request == self._request, "one change is under way at a time"
        self._request = 0
        taken, self._taken = self._taken, []
        sequences, self._sequences = self._sequences, []
        if isinstance(answer.result, MessageQueueError):
            for link in taken:
                link.drops_arrivals = True
                self._board.close(link, f"its messages cannot be kept: {answer.result}")
            return
        for link in taken:
            if not link.is_lost and link.session is not None:
                link.session.handled(now)
                if link.collect():
                    self._board.dirty[link] = None
        for incoming in sequences:
            self._schedule(incoming, now)

    # OrderAcks.

    def _schedule(self, incoming: Incoming, now: float) -> None:
        """[MS-MQQB] 3.1.2.7, 3.1.5.8.6: the order ack send timer, and when it starts again."""
        settings = self._board.settings
        told = self._told.get(incoming)
        if told is None:
            told = self._told[incoming] = _Told(now)
        if told.untold(incoming.settled) >= settings.order_ack_every:
            told.due = now
        elif told.due is None or now - told.last < settings.order_ack_max_s:
            told.due = now + settings.order_ack_s

    def next_deadline(self) -> float | None:
        """When `tick` has something to do next."""
        due = [each.due for each in self._told.values() if each.due is not None]
        return min(due, default=None)

    def tick(self, now: float) -> None:
        """[MS-MQQB] 3.1.6.9, 3.1.6.7: senders are told how far they are; old identifiers go."""
        change = Change()
        for incoming, told in self._told.items():
            if told.due is not None and now >= told.due:
                told.due = None
                told.last = now
                told.place = incoming.settled
                order_told(self._engine.state, change, incoming)
        if change.steps:
            self._engine.state.submit(change)
        state = self._engine.state
        if state.now >= self._forget_at:
            self._forget_at = state.now + state.recent.lifetime_s
            state.recent.forget(state.now)
            self._told = {each: told for each, told in self._told.items() if told.due is not None}
