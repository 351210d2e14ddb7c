"""[MS-MQQB] 3.1.5.6 to 3.1.5.8, 3.1.6.9: messages in, all that came together as one change."""

from __future__ import annotations

from collections import deque
from typing import Final

from merq.engine.arriving import Arrival
from merq.engine.changes import Answer, Change
from merq.engine.incoming import Incoming
from merq.engine.notices import order_told
from merq.errors import MessageQueueError
from merq.exchange.acquaintances import Acquaintances
from merq.exchange.links import Link
from merq.exchange.outbound import Outbound
from merq.exchange.routes import NULL_GUID
from merq.exchange.switchboard import Switchboard
from merq.wire.view import MessageView

ADMIN_QUEUE: Final = 7 << 13
"""[MS-MQMQ] 2.2.19.2: the type of the administration queue in UserHeader.Flags, 0 if none."""

ARRIVALS_MAX: Final = 4096
"""Messages that are taken with one change."""

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

    def __init__(
        self, board: Switchboard, outbound: Outbound, acquaintances: Acquaintances
    ) -> None:
        self._board = board
        self._outbound = outbound
        self._acquaintances = acquaintances
        self._engine = board.host.engine
        self._inbox: deque[tuple[Link, list[MessageView]]] = deque()
        self._request = 0
        self._taken: list[Link] = []
        self._sequences: list[Incoming] = []
        self._told: dict[Incoming, _Told] = {}
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
            self._inbox.append((link, views))

    def go_on(self, now: float) -> None:
        """Takes what has come, unless what was taken before is still under way."""
        while self._inbox and not self._request and not self.is_full:
            self._take_some(now)

    def _take_some(self, now: float) -> None:
        arrivals: list[Arrival] = []
        sizes: list[tuple[Link, int]] = []
        while self._inbox and len(arrivals) < ARRIVALS_MAX:
            link, views = self._inbox.popleft()
            if link.drops_arrivals:
                continue  # it comes again
            self._taken.append(link)
            sizes.append((link, len(views)))
            guid = link.remote_guid.bytes_le
            if any([view.user_flags & ADMIN_QUEUE for view in views]):  # noqa: C419 - quicker
                views = self._granted(link, views)
            arrivals += [Arrival(view, link.address, guid) for view in views]
        if not arrivals:
            return
        self._request = REQUEST | 1
        ignored = self._engine.departures.ignored_acks
        impostors = self._engine.arrivals.impostors
        arrived = self._engine.arrivals.arrive(self._request, arrivals)
        self._tell_impostors(sizes, self._engine.arrivals.impostors - impostors)
        self._tell_ignored(sizes, self._engine.departures.ignored_acks - ignored)
        self._sequences = arrived.sequences
        for queue in arrived.ordered:
            self._outbound.ordered(queue, now)
        if arrived.refusal:
            self._refuse(sizes, arrived.taken, arrived.refusal)

    def _granted(self, link: Link, views: list[MessageView]) -> list[MessageView]:
        """Messages as they are taken: those whose administration queue may not be told ask for
        nothing any more.

        Whether one is received, or its time runs out, is told later, perhaps after a restart. So
        what was decided about it is in its packet. What is passed on stays as it is.
        """
        granted, refused = [], 0
        forwards = self._board.settings.forwards
        ours = (self._engine.state.guid, NULL_GUID)
        for view in views:
            if (
                view.acknowledgments
                and (not forwards or view.queue_manager_address in ours)
                and not self._acquaintances.may_be_told(view, link.address, link.remote_guid)
            ):
                refused += 1
                granted.append(MessageView(view.with_acknowledgments(0)))
            else:
                granted.append(view)
        if refused:
            self._acquaintances.refused += refused
            self._board.tell(
                "acknowledgments are not sent",
                peer=link.address,
                count=refused,
                reason="the messages want them sent to an address that is neither their sender's "
                "nor known; exchange.acknowledge_to, or an entry in the file of peers, allows it",
            )
        return granted

    @property
    def refused_askers(self) -> int:
        """How many messages wanted acknowledgments sent to where they are not."""
        return self._acquaintances.refused

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

    def _tell_impostors(self, sizes: list[tuple[Link, int]], count: int) -> None:
        """Messages that say they were sent here, and come from elsewhere, are not taken."""
        if count:
            self._board.tell(
                "messages under our own identifier were dropped",
                peer=", ".join(dict.fromkeys(link.address for link, _ in sizes)),
                count=count,
                reason="they name this queue manager as their sender: either routes lead in a "
                "circle, or a copy of its data folder runs elsewhere, or somebody lies",
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
