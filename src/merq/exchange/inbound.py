"""[MS-MQQB] 3.1.5.6 to 3.1.5.8, 3.1.6.9: messages in, all that came together as one change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from merq.engine.arriving import Arrival
from merq.engine.changes import Answer, Change
from merq.engine.incoming import Incoming
from merq.engine.notices import order_told
from merq.errors import MessageQueueError
from merq.exchange.deadlines import Deadlines
from merq.exchange.fair_ring import FairRing
from merq.exchange.links import Link
from merq.exchange.outbound import Outbound
from merq.exchange.switchboard import Switchboard
from merq.wire.view import MessageView

ARRIVALS_MAX: Final = 1024
"""Messages that are taken with one change, at most."""

ARRIVALS_MIN: Final = 8
"""Messages that are taken with one change, however long they take."""

ARRIVALS_S: Final = 0.002
"""How long it should take to decide on the messages of one change: others wait meanwhile."""

ARRIVALS_ALONE_S: Final = 0.01
"""The same while no application asks for anything: each change costs a way to the disk."""

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
    """What comes.

    Attributes:
        clock: By which it is measured how long messages take; one that stands still measures
            nothing, and as many are taken as may be.
        is_alone: No application has asked for anything lately.
    """

    def __init__(self, board: Switchboard, outbound: Outbound) -> None:
        self.is_alone = False
        self.clock: Callable[[], float] = lambda: 0.0
        self._board = board
        self._outbound = outbound
        self._engine = board.host.engine
        self._inbox: FairRing[str, tuple[Link, list[MessageView]]] = FairRing()
        self._arrivals_max = ARRIVALS_MAX
        self._request = 0
        self._taken: list[Link] = []
        self._sequences: list[Incoming] = []
        self._told: dict[Incoming, _Told] = {}
        self._due: Deadlines[Incoming] = Deadlines()
        self._forget_at = 0

    @property
    def is_full(self) -> bool:
        """Whether nothing can be taken for now, so that nothing should be read."""
        return self._engine.state.throttled

    def came(self, link: Link) -> None:
        """Messages came through a connection."""
        assert link.session is not None, "it has received something"
        views = link.session.take_arrived()
        if views:
            self._inbox.add(link.network, (link, views))

    @property
    def has_more(self) -> bool:
        """Whether messages wait that could be taken at once."""
        return bool(self._inbox) and not self._request and not self.is_full

    def go_on(self, now: float) -> None:
        """Takes some of what has come, unless what was taken before is still under way.

        Each network has its turn: who sends much makes nobody else wait for all of it.
        """
        while self.has_more:
            self._take_some(now)

    def _take_some(self, now: float) -> None:
        arrivals: list[Arrival] = []
        sizes: list[tuple[Link, int]] = []
        while self._inbox and len(arrivals) < self._arrivals_max:
            link, views = self._inbox.pop()
            if link.drops_arrivals:
                continue  # it comes again
            self._taken.append(link)
            sizes.append((link, len(views)))
            guid = link.remote_guid.bytes_le
            arrivals += [Arrival(view, link.address, guid) for view in views]
        if not arrivals:
            return
        self._request = REQUEST | 1
        ignored = self._engine.departures.ignored_acks
        began = self.clock()
        arrived = self._engine.arrivals.arrive(self._request, arrivals)
        self._pace(len(arrivals), self.clock() - began)
        self._tell_ignored(sizes, self._engine.departures.ignored_acks - ignored)
        self._sequences = arrived.sequences
        for queue in arrived.ordered:
            self._outbound.ordered(queue, now)
        if arrived.refusal:
            self._refuse(sizes, arrived.taken, arrived.refusal)

    def _pace(self, count: int, seconds: float) -> None:
        """As many messages are taken next as fit into the time, by what these took."""
        most_s = ARRIVALS_ALONE_S if self.is_alone else ARRIVALS_S
        fitting = int(count * most_s / seconds) if seconds > 0 else ARRIVALS_MAX
        # Dear ones count at once, cheap ones only when they keep coming.
        self._arrivals_max = max(min(fitting, 2 * self._arrivals_max, ARRIVALS_MAX), ARRIVALS_MIN)

    def _tell_ignored(self, sizes: list[tuple[Link, int]], count: int) -> None:
        """[MS-MQQB] 3.1.5.6, 3.1.5.7: acknowledgments of others' sessions change nothing."""
        if count:
            peers = ", ".join(dict.fromkeys(link.address for link, _ in sizes))
            self._board.tell(
                "acknowledgments were ignored",
                peer=peers,
                count=count,
                reason="the messages that they name were sent to another queue manager",
            )

    def _refuse(self, sizes: list[tuple[Link, int]], count: int, reason: str) -> None:
        """[MS-MQQB] 3.1.5.8.8: whose messages find no room has its session closed."""
        for link, size in sizes:
            if count < size:
                self._taken.remove(link)
                link.drops_arrivals = True
                self._board.close(link, f"its messages cannot be taken: {reason}")
            count = max(count - size, 0)

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
                if not link.is_cut:
                    link.session.handled(now)
                self._board.held.count(link)
                self._board.await_deadline(link)
                if link.collect() or self._board.held.is_tight:
                    self._board.dirty[link] = None  # it may be read again
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
        self._due.set(incoming, told.due)

    def next_deadline(self) -> float | None:
        """When `tick` has something to do next."""
        return self._due.next()

    def tick(self, now: float) -> None:
        """[MS-MQQB] 3.1.6.9, 3.1.6.7: senders are told how far they are; old identifiers go."""
        change = Change()
        for incoming in self._due.take(now):
            told = self._told[incoming]
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
