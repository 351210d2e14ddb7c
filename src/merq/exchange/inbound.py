"""[MS-MQQB] 3.1.5.6 to 3.1.5.8, 3.1.6.9: messages in, all that came together as one change."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final, NamedTuple
from uuid import UUID

from merq.engine.arrival_outcomes import Arrived, Rejected
from merq.engine.arrival_room import Shortage
from merq.engine.arriving import Arrival
from merq.engine.changes import Answer, Change
from merq.engine.dropped import Dropped
from merq.engine.incoming import FOLLOWED, Incoming
from merq.engine.order_acks import FOLLOWED_MAX, follow, order_told
from merq.errors import MessageQueueError
from merq.exchange.acquaintances import Acquaintances
from merq.exchange.deadlines import Deadlines
from merq.exchange.events import (
    MESSAGES_DROPPED,
    MESSAGES_REJECTED,
    OWN_IDENTIFIER,
    PEER_THROTTLED,
)
from merq.exchange.fair_ring import FairRing
from merq.exchange.links import Link
from merq.exchange.outbound import Outbound
from merq.exchange.repeats import SOURCES_MAX, Repeats
from merq.exchange.routes import NULL_GUID
from merq.exchange.switchboard import Switchboard
from merq.model.message_class import MessageClass
from merq.model.peer_networks import peer_network
from merq.wire.view import MessageView

ADMIN_QUEUE: Final = 7 << 13
"""[MS-MQMQ] 2.2.19.2: the type of the administration queue in UserHeader.Flags, 0 if none."""

ARRIVALS_MAX: Final = 1024
"""Messages that are taken with one change, at most."""

ARRIVALS_S: Final = 0.002
"""For how long messages are taken for one change, what came last of it whole, if one network sends:
applications wait meanwhile. The more send, the shorter it is."""

ARRIVALS_MIN_S: Final = 0.0003
"""The same, however many networks send."""

ARRIVALS_ALONE_S: Final = 0.01
"""The same while no application asks for anything: each change is a way to the disk."""

TELLING_S: Final = 0.001
"""For how long senders are told how far they are; the rest of them in the next turn."""

TOLD_AT_ONCE: Final = 16
"""Senders that are told before the time is looked at."""

FOLLOWING_S: Final = 0.5
"""Seconds until it is looked again for acknowledgments that have to follow a sender."""

DROPPED_TOLD_S: Final = 60.0
"""Seconds between two lines about messages that were dropped."""

REJECTIONS_TOLD_MAX: Final = 8
"""Queues and reasons of one network that are told apart when messages are rejected; the others are
told together, with the last of them."""

THROTTLED_MAX: Final = 10_000
"""Addresses that are known to have found no room; beyond it the first of them is read again."""

THROTTLED_BYTES_MAX: Final = 64 << 10
"""Bytes of messages that wait in one session of such an address, and the packet that goes beyond:
then nothing more is read from it. Until then acknowledgments are found between them."""

REQUEST: Final = 1 << 63
"""The engine knows our requests by this bit."""


class _Batch(NamedTuple):
    """Messages that came together through a connection.

    Attributes:
        is_whole: Its session is told when they are taken care of. Otherwise they are
            acknowledgments that were taken from between messages that wait.
    """

    link: Link
    views: list[MessageView]
    is_whole: bool = True


class Inbound:
    """What comes.

    Attributes:
        clock: By which it is measured how long messages take; one that stands still measures
            nothing, and as many are taken as may be.
        is_alone: No application has asked for anything lately.
    """

    def __init__(
        self, board: Switchboard, outbound: Outbound, acquaintances: Acquaintances
    ) -> None:
        self.is_alone = False
        self.clock: Callable[[], float] = lambda: 0.0
        self._board = board
        self._outbound = outbound
        self._acquaintances = acquaintances
        self._engine = board.host.engine
        self._inbox: FairRing[str, _Batch] = FairRing()
        self._waiting: dict[Link, list[_Batch]] = {}
        self._request = 0
        self._taken: list[Link] = []
        self._sequences: list[Incoming] = []
        self._due: Deadlines[Incoming] = Deadlines()
        self._connected_to_tell: deque[Incoming] = deque()
        self._others_to_tell: deque[Incoming] = deque()
        self._forget_at = 0
        self._dropped = 0
        self._tell_dropped_at = 0.0
        self._throttled: dict[str, Shortage] = {}
        self._throttled_told: set[str] = set()
        self._throttles = Repeats()
        self._rejections = Repeats()
        self._rejected: dict[str, Rejected] = {}

    @property
    def is_full(self) -> bool:
        """Whether nothing can be taken for now, so that nothing should be read."""
        state = self._engine.state
        return state.throttled or state.network_low_on_disk

    @property
    def throttled(self) -> tuple[str, ...]:
        """Addresses whose messages found no room: none are taken from there until there is."""
        return tuple(self._throttled)

    def is_throttled(self, link: Link) -> bool:
        """Whether nothing should be read from a connection until there is room for its messages.

        A session is opened, and read as long as little waits in it: its acknowledgments are about
        our messages, need no room and make some.
        """
        session = link.session
        if session is None or link.address not in self._throttled:
            return False
        return session.unhandled_bytes > THROTTLED_BYTES_MAX

    def came(self, link: Link) -> None:
        """Messages came through a connection."""
        assert link.session is not None, "it has received something"
        views = link.session.take_arrived()
        if views:
            self._inbox.add(link.network, _Batch(link, views))

    def _ready(self, batch: _Batch) -> _Batch | None:
        """What of a batch can be taken now.

        Messages from where none are taken for now wait; acknowledgments between them do not. A
        session is told of everything in order, so what comes behind them is not done before them.
        """
        link, views, is_whole = batch
        is_waiting = link in self._waiting
        if not is_whole or not (is_waiting or link.address in self._throttled):
            return batch
        is_ack = self._engine.arrivals.is_ack
        messages = [view for view in views if not is_ack(view)]
        if not messages and not is_waiting:
            return batch
        self._waiting.setdefault(link, []).append(_Batch(link, messages))
        acks = [view for view in views if is_ack(view)]
        return _Batch(link, acks, is_whole=False) if acks else None

    @property
    def has_more(self) -> bool:
        """Whether messages wait that could be taken at once, or senders to be told."""
        return self._is_telling or self._has_arrivals

    @property
    def _is_telling(self) -> bool:
        return bool(self._connected_to_tell or self._others_to_tell)

    @property
    def _has_arrivals(self) -> bool:
        return bool(self._inbox) and not self._request and not self.is_full

    def go_on(self, now: float) -> None:
        """Takes some of what has come, unless what was taken before is still under way.

        Each network has its turn: who sends much makes nobody else wait for all of it.
        """
        resets = self._engine.arrivals.resets
        while resets:
            queue, count = resets.popleft()
            self._board.tell("senders were forgotten", queue=queue, count=count)
        if self._throttled or self._waiting:
            self._relieve(now)
        if self._is_telling:
            self._tell_senders(now)
        while self._has_arrivals:
            self._take_some(now)

    def _take_some(self, now: float) -> None:
        batches: list[_Batch] = []
        arrivals = self._next_arrivals(batches)
        first = next(arrivals, None)
        if not batches:
            return
        begun = () if first is None else (first,)
        self._request = REQUEST | 1
        ignored = self._engine.departures.ignored_acks
        impostors = self._engine.arrivals.impostors
        arrived = self._engine.arrivals.arrive(self._request, chain(begun, arrivals))
        self._tell_impostors(batches, self._engine.arrivals.impostors - impostors)
        self._tell_ignored(batches, self._engine.departures.ignored_acks - ignored)
        self._sequences = arrived.sequences
        if arrived.dropped:
            self._tell_dropped(arrived.dropped, now)
        if arrived.rejected:
            self._tell_rejected(arrived.rejected, now)
        for queue in arrived.ordered:
            self._outbound.ordered(queue, now)
        if arrived.refusal:
            self._refuse(batches, arrived, now)

    def _next_arrivals(self, batches: list[_Batch]) -> Iterator[Arrival]:
        """Messages for one change, until there are many or the time of a turn is over.

        What a message costs is known only when it was taken, so the time is looked at in between.

        Args:
            batches: Gets those that were begun to be taken.
        """
        until = self.clock() + self._turn_s()
        count = 0
        while self._inbox and count < ARRIVALS_MAX:
            popped = self._inbox.pop()
            if popped.link.drops_arrivals:
                continue  # it comes again
            batch = self._ready(popped)
            if batch is None:
                continue
            link, views, is_whole = batch
            if is_whole:
                self._taken.append(link)
            batches.append(batch)
            guid = link.remote_guid.bytes_le
            if any([view.user_flags & ADMIN_QUEUE for view in views]):  # noqa: C419 - quicker
                views = self._granted(link, views)
            for view in views:
                yield Arrival(view, link.address, guid)
            count += len(views)
            if self.clock() > until:
                break

    def _turn_s(self) -> float:
        if self.is_alone:
            return ARRIVALS_ALONE_S
        return max(ARRIVALS_S / max(self._inbox.group_count, 1), ARRIVALS_MIN_S)

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
                "nor known; exchange.allowed_admin_queues, or an entry in the file of peers, "
                "allows it",
            )
        return granted

    @property
    def refused_askers(self) -> int:
        """How many messages wanted acknowledgments sent to where they are not."""
        return self._acquaintances.refused

    def _tell_ignored(self, batches: list[_Batch], count: int) -> None:
        """[MS-MQQB] 3.1.5.6, 3.1.5.7: acknowledgments of others' sessions change nothing."""
        if count:
            peers = ", ".join(dict.fromkeys(each.link.address for each in batches))
            self._board.tell(
                "acknowledgments were ignored",
                peer=peers,
                count=count,
                reason="what they name was sent to another queue manager, or not at all",
            )

    def _tell_dropped(self, dropped: list[Dropped], now: float) -> None:
        """[MS-MQQB] 3.1.5.8.6: people may have to decide, but not for every single message."""
        self._dropped += len(dropped)
        if now < self._tell_dropped_at:
            return
        last = dropped[-1]
        self._board.tell(
            MESSAGES_DROPPED,
            peer=last.address,
            sender=UUID(bytes_le=last.key.source),
            name=last.key.name.partition(":")[2],
            sequence=f"{last.sequence_id:016x}",
            expected=last.expected,
            count=self._dropped,
            reason=last.advice,
        )
        self._dropped = 0
        self._tell_dropped_at = now + DROPPED_TOLD_S

    def _tell_rejected(self, rejected: list[Rejected], now: float) -> None:
        """[MS-MQQB] 3.1.5.8.2: how many there were of each network, queue and reason.

        The sender has them no more unless they are transactional, and its application knows of it
        only if it asked for acknowledgments.
        """
        counts: dict[str, list[Rejected]] = {}
        for each in rejected:
            network = f"{peer_network(each.address)} "
            source = f"{network}{each.reason} {each.destination}"
            is_known = source in counts or source in self._rejections
            if not is_known and self._rejections.known_of(network) >= REJECTIONS_TOLD_MAX:
                source = network  # it names ever new queues
            counts.setdefault(source, []).append(each)
        for source, each_of in counts.items():
            self._rejected[source] = each_of[-1]
            self._tell_rejections(source, len(each_of), now)

    def _tell_rejections(self, source: str, more: int, now: float) -> None:
        """Tells of one source, unless it was told of a moment ago: then it is later."""
        if count := self._rejections.count(source, more, now):
            last = self._rejected.pop(source)
            known = MessageClass.of(last.reason)
            self._board.tell(
                MESSAGES_REJECTED,
                peer=last.address,
                queue=last.destination,
                count=count,
                reason=f"{last.reason:#x}" if known is None else f"{known.name}: {known.meaning}",
            )
        if len(self._rejected) > SOURCES_MAX:
            self._rejected = {
                each: last for each, last in self._rejected.items() if each in self._rejections
            }

    def _tell_impostors(self, batches: list[_Batch], count: int) -> None:
        """Messages that say they were sent here, and come from elsewhere, are not taken."""
        if count:
            self._board.tell(
                OWN_IDENTIFIER,
                peer=", ".join(dict.fromkeys(each.link.address for each in batches)),
                count=count,
                reason="they name this queue manager as their sender: either routes lead in a "
                "circle, or a copy of its data folder runs elsewhere, or somebody lies",
            )

    def _refuse(self, batches: list[_Batch], arrived: Arrived, now: float) -> None:
        """[MS-MQQB] 3.1.5.8.8: whose message finds no room has its session closed.

        What others sent behind it was not looked at, and waits for its turn. The messages of the
        session are sent again: nothing of what was not taken was acknowledged.
        """
        count = arrived.taken
        untouched: list[_Batch] = []
        refused: Link | None = None
        for batch in batches:
            link = batch.link
            if refused is None and count < len(batch.views):
                refused = link
            elif refused is None:
                count -= len(batch.views)
                continue
            elif link is not refused:
                untouched.append(batch)
            if batch.is_whole:
                self._taken.remove(link)
        assert refused is not None, "something was refused"
        for batch in reversed(untouched):
            self._inbox.put_back(batch.link.network, batch)
        refused.drops_arrivals = True
        self._board.close(refused, f"its messages cannot be taken: {arrived.refusal}")
        if arrived.shortage.needed:
            self._throttle(refused.address, arrived.shortage, now)

    def _throttle(self, address: str, shortage: Shortage, now: float) -> None:
        """No messages are taken from an address until there is room for what it sent."""
        if address not in self._throttled:
            self._tell_throttled(address, 1, shortage, now)
            if len(self._throttled) >= THROTTLED_MAX:
                first = next(iter(self._throttled))
                del self._throttled[first]
                self._throttled_told.discard(first)
        self._throttled[address] = shortage

    def _tell_throttled(self, address: str, count: int, shortage: Shortage, now: float) -> None:
        """People are told that an address is throttled, unless they were a moment ago."""
        if count := self._throttles.count(address, count, now):
            self._throttled_told.add(address)
            self._board.tell(
                PEER_THROTTLED,
                peer=address,
                times=count,
                reason=f"{shortage.refusal}. Nothing is lost: what was not taken stays with it. "
                "Receive what waits here, or raise engine.machine_quota_kb, engine.memory_bytes "
                "or engine.network_quota_percent",
            )

    def _relieve(self, now: float) -> None:
        """Addresses for which there is room again are read."""
        room = self._engine.arrivals.room
        for address, shortage in list(self._throttled.items()):
            if room.is_relieved(address, shortage):
                del self._throttled[address]
                if address in self._throttled_told:
                    self._throttled_told.discard(address)
                    self._board.tell("a peer is throttled no longer", peer=address)
            elif address not in self._throttled_told:
                self._tell_throttled(address, 0, shortage, now)
        for link in list(self._waiting):
            if link.is_lost or link.drops_arrivals:
                del self._waiting[link]  # it comes again
            elif link.address not in self._throttled:
                for batch in reversed(self._waiting.pop(link)):
                    self._inbox.put_back(link.network, batch)

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
        due = self._due.get(incoming)
        if incoming.told_at is None:
            incoming.told_at = now
        if incoming.untold() >= settings.order_ack_every:
            due = now
        elif due is None or now - incoming.told_at < settings.order_ack_max_s:
            due = now + settings.order_ack_s
        self._due.set(incoming, due)

    def next_deadline(self) -> float | None:
        """When `tick` has something to do next."""
        return self._due.next()

    def tick(self, now: float) -> None:
        """[MS-MQQB] 3.1.6.9, 3.1.6.7: senders are told how far they are; what is old goes."""
        self._tell_senders(now)
        for source in self._rejections.due(now):
            self._tell_rejections(source, 0, now)
        state = self._engine.state
        if state.now >= self._forget_at:
            self._forget_at = state.now + state.recent.lifetime_s
            state.recent.forget(state.now)
            self._engine.arrivals.forget_idle()

    def _tell_senders(self, now: float) -> None:
        """Tells those who are due: there may be thousands, and others have their turn meanwhile."""
        change = Change()
        state, most = self._engine.state, FOLLOWED_MAX
        until = self.clock() + TELLING_S
        for incoming in self._due.take(now):
            is_connected = self._is_connected(incoming)
            (self._connected_to_tell if is_connected else self._others_to_tell).append(incoming)
        told = 0
        # What waits for others may have to give way to those who are connected.
        for waiting in (self._connected_to_tell, self._others_to_tell):
            while waiting and (not told or told % TOLD_AT_ONCE or self.clock() <= until):
                incoming = waiting.popleft()
                incoming.told_at = now
                incoming.told_place = incoming.settled
                is_connected = waiting is self._connected_to_tell
                order_told(state, change, incoming, is_connected=is_connected)
                if incoming.left:
                    most -= follow(state, change, incoming, most)
                    if any(place != FOLLOWED for place in incoming.left.values()):
                        self._due.set(incoming, now + FOLLOWING_S)
                told += 1
        if change.steps:
            self._engine.state.submit(change)

    def _is_connected(self, incoming: Incoming) -> bool:
        """Whether there is a session with the peer that a sequence came from."""
        address, remote = incoming.origin
        link = self._board.find_asker(address, UUID(bytes_le=remote), is_secure=False)
        return link is not None
