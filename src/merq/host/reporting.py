"""How queues and messages stand, told to people who ask."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from merq.engine import notices
from merq.engine.administration import FIRST_PRIVATE_NUMBER
from merq.engine.limits import LIMIT_MAX, WHOLE_PERCENT
from merq.engine.manager import QueueManager
from merq.engine.positions import AVAILABLE, LOCKED, Place
from merq.engine.queue import NO_NOTE, Queue
from merq.engine.state import State
from merq.engine.work import Sending
from merq.errors import StoreError
from merq.host.host import Host
from merq.model.queue import QueueKind
from merq.protocol.application.reports import (
    LinkReport,
    QueueReport,
    Sighting,
    Status,
    Whereabouts,
)
from merq.protocol.application.requests import Family
from merq.wire.queue_names import destination_name
from merq.wire.view import MessageView

ACKNOWLEDGMENTS_SEARCHED_MAX: Final = 10_000
"""Messages of an administration queue that are looked at for acknowledgments about a message."""

THROTTLED_TOLD_MAX: Final = 100
"""Addresses that found no room and are told of."""


TLS_FAILURES_TOLD_MAX: Final = 20
"""Queue managers with which TLS fails and that are told of."""


class Sessions(Protocol):
    """Who has the sessions with other queue managers."""

    @property
    def open_count(self) -> int:
        """How many are open."""

    @property
    def throttled(self) -> tuple[str, ...]:
        """Addresses from which nothing is read, because their messages found no room."""

    @property
    def tls_failures(self) -> tuple[str, ...]:
        """Whom messages wait for because TLS fails, and why: a sentence each."""

    def reports(self) -> list[LinkReport]:
        """All connections, and what each is for."""


class NoSessions:
    """A queue manager that speaks to no other."""

    @property
    def open_count(self) -> int:
        """None is open."""
        return 0

    @property
    def throttled(self) -> tuple[str, ...]:
        """Nobody is."""
        return ()

    @property
    def tls_failures(self) -> tuple[str, ...]:
        """There are none."""
        return ()

    def reports(self) -> list[LinkReport]:
        """There are none."""
        return []


@dataclass(slots=True)
class Hall:
    """What all desks have in common.

    Attributes:
        started: When the queue manager was started, in seconds since 1970.
        connections: How many clients there are.
        sessions: Those with other queue managers.
    """

    version: str = ""
    started: int = 0
    connections: int = 0
    sessions: Sessions = field(default_factory=NoSessions)


def status(host: Host, hall: Hall) -> Status:
    """How the queue manager is."""
    engine = host.engine
    state, limits = engine.state, engine.state.limits
    counts = _Counts(state.queues.values())
    return Status(
        name=state.name,
        guid=state.guid,
        version=hall.version,
        started=hall.started,
        now=state.now,
        throttled=state.throttled,
        low_on_disk=state.low_on_disk,
        low_on_memory=state.low_on_memory,
        queues=counts.queues,
        outgoing_queues=counts.outgoing_queues,
        messages=counts.messages,
        message_bytes=counts.message_bytes,
        express_bytes=state.memory_bytes,
        free_disk_bytes=host.room,
        log_bytes=sum(each.used for each in host.log.segments()),
        transactions=len(state.transactions),
        prepared=len(engine.transactions.prepared()),
        connections=hall.connections,
        readers=counts.readers,
        online=state.connection_active,
        sessions=hall.sessions.open_count,
        quota_bytes=_limited(limits.quota_bytes),
        taken_bytes=state.taken_bytes,
        network_bytes=state.network.total_bytes,
        network_quota_bytes=_limited(limits.network_quota_bytes) if limits.is_shared else 0,
        network_express_bytes=state.network_memory.total_bytes,
        throttled_peers=hall.sessions.throttled[:THROTTLED_TOLD_MAX],
        tls_failures=hall.sessions.tls_failures[:TLS_FAILURES_TOLD_MAX],
        set_aside=host.set_aside_count,
    )


class _Counts:
    """What all queues have together, counted in one go: there may be thousands."""

    def __init__(self, queues: Iterable[Queue]) -> None:
        self.queues = self.outgoing_queues = self.messages = self.message_bytes = self.readers = 0
        for queue in queues:
            kind = queue.properties.kind
            if kind is QueueKind.STAGE:
                continue  # what is written and not published was not sent yet
            if kind is QueueKind.PRIVATE:
                self.queues += queue.number >= FIRST_PRIVATE_NUMBER
            self.outgoing_queues += queue.is_outgoing
            self.messages += queue.positions.count
            self.message_bytes += queue.positions.total_bytes
            self.readers += len(queue.waiting)


def _limited(quota_bytes: int) -> int:
    """A quota for people: 0 if it is so large that it is none."""
    return 0 if quota_bytes >= LIMIT_MAX // WHOLE_PERCENT else quota_bytes


def describe(state: State, queue: Queue) -> QueueReport:
    """A queue and how it stands."""
    first = next(iter(queue.positions), None)
    return QueueReport(
        properties=queue.properties,
        messages=queue.positions.count,
        size=queue.positions.total_bytes,
        locked=queue.positions.count - queue.positions.available,
        journal_messages=0 if queue.journal is None else queue.journal.positions.count,
        readers=len(queue.waiting),
        openings=len(queue.descriptors),
        arrived=queue.arrived,
        left=queue.left,
        oldest=0 if first is None else _arrival(state, first),
        state=queue.state,
    )


def _arrival(state: State, place: Place) -> int:
    try:
        return state.stored(place)[0]
    except StoreError:
        return 0  # who reads it is told what is wrong with the disk


def describe_all(engine: QueueManager, family: Family, owner: int) -> list[QueueReport]:
    """The queues of a family."""
    state = engine.state
    if family is Family.SUBQUEUES:
        chosen = list(engine.queue(owner).subqueues.values())
    else:
        chosen = [each for each in state.queues.values() if _is_of(each, family)]
    return [describe(state, each) for each in chosen if not each.closing]


def _is_of(queue: Queue, family: Family) -> bool:
    match family:
        case Family.PRIVATE:
            return _is_private(queue)
        case Family.OUTGOING:
            return queue.is_outgoing
        case Family.SYSTEM:
            system = queue.properties.kind is QueueKind.SYSTEM
            own = queue.properties.kind is QueueKind.PRIVATE and not _is_private(queue)
            return system or own
        case _:
            return not _is_stage(queue)


def _is_stage(queue: Queue) -> bool:
    return queue.properties.kind is QueueKind.STAGE


def _is_private(queue: Queue) -> bool:
    """Whether somebody made it, unlike those that every queue manager has."""
    return queue.properties.kind is QueueKind.PRIVATE and queue.number >= FIRST_PRIVATE_NUMBER


# Where a message is.


def sightings(state: State, message_id: bytes) -> list[Sighting]:
    """Every place where a message is, a copy of it, or an acknowledgment about it."""
    found: list[Sighting] = []
    key = state.known_key_of(message_id)
    for queue in list(state.queues.values()):
        lookup_id = None if key is None else queue.by_message_id.get(key)
        place = None if lookup_id is None else queue.positions.get(lookup_id)
        if place is not None:
            found += _seen(state, queue, place, message_id, about=False)
        found += _acknowledgments(state, queue, message_id)
    return found + _unsent(state, message_id)


def _seen(
    state: State, queue: Queue, place: Place, message_id: bytes, *, about: bool
) -> list[Sighting]:
    try:
        arrival, packet = state.stored(place)
    except StoreError:
        return []
    view = MessageView(packet)
    if (view.correlation_id if about else view.message_id) != message_id:
        return []
    note = queue.notes.get(place.lookup_id, NO_NOTE)
    named = state.queues.get(queue.properties.owner, queue) if _is_stage(queue) else queue
    return [
        Sighting(
            queue=named.properties.path_name,
            whereabouts=_whereabouts(state, queue, place, view, kept=note.kept),
            lookup_id=place.lookup_id,
            arrived=arrival,
            sent=view.sent_time,
            label=view.label,
            destination=_destination(view),
            message_class=view.message_class,
            aborts=note.aborts,
            about=about,
        )
    ]


def _whereabouts(
    state: State, queue: Queue, place: Place, view: MessageView, *, kept: bool
) -> Whereabouts:
    number = queue.number
    if number == notices.JOURNAL_NUMBER or queue.properties.kind is QueueKind.JOURNAL:
        return Whereabouts.JOURNAL
    if kept or number in {notices.DEAD_LETTER_NUMBER, notices.DEAD_XACT_NUMBER}:
        return Whereabouts.DEAD_LETTER
    if place.state == LOCKED:
        is_reserved = place.lookup_id in queue.reserved()
        return Whereabouts.RESERVED if is_reserved else Whereabouts.LOCKED
    if place.state != AVAILABLE:
        return Whereabouts.LEAVING
    if queue.transfer is None:
        return Whereabouts.STAGED if _is_stage(queue) else Whereabouts.WAITING
    if place.lookup_id in queue.transfer.awaiting_final:
        return Whereabouts.UNREAD
    if not queue.transfer.holds(place.lookup_id):
        return Whereabouts.OUTGOING
    # [MS-MQQB] 3.1.5.6: order acknowledgments are for who began the sequence.
    is_ordered = view.transactional and view.source_queue_manager == state.guid
    return Whereabouts.UNORDERED if is_ordered else Whereabouts.TRANSMITTED


def _destination(view: MessageView) -> str:
    # The report travels as text, in which there are no halves of characters.
    return (
        destination_name(view).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    )


def _acknowledgments(state: State, queue: Queue, message_id: bytes) -> list[Sighting]:
    """Acknowledgments about a message that wait in a queue of this computer."""
    if queue.properties.kind is not QueueKind.PRIVATE or not queue.positions.count:
        return []
    found: list[Sighting] = []
    for count, place in enumerate(queue.positions):
        if count >= ACKNOWLEDGMENTS_SEARCHED_MAX:
            break
        packet = state.readable(place)
        if packet is None or not MessageView(packet).message_class:
            continue
        found += _seen(state, queue, place, message_id, about=True)
    return found


def _unsent(state: State, message_id: bytes) -> list[Sighting]:
    if message_id[:16] != state.source:
        return []
    ordinal = int.from_bytes(message_id[16:], "little")
    return [
        Sighting(
            queue=operation.queue.properties.path_name,
            whereabouts=Whereabouts.UNSENT,
            lookup_id=0,
            arrived=operation.sent_time,
            sent=operation.sent_time,
            label=operation.view.label,
            destination=_destination(operation.view),
            message_class=0,
            aborts=0,
            about=False,
        )
        for transaction in state.transactions.values()
        for operation in transaction.operations
        if isinstance(operation, Sending) and operation.ordinal == ordinal
    ]
