"""[MS-MQQB] 3.1.5.2, 3.1.5.9, 3.1.6.1, 3.1.6.5: an outgoing queue looks for its way out."""

from __future__ import annotations

from uuid import UUID

from merq.engine.queue import Queue
from merq.engine.transfer import Attempt, Transfer
from merq.exchange.deadlines import Deadlines
from merq.exchange.dials import DialKind
from merq.exchange.links import Link
from merq.exchange.routes import NULL_GUID, is_order_queue
from merq.model.names import (
    DirectName,
    FormatName,
    PrivateName,
    PublicName,
    parse_format_name,
)
from merq.model.properties import ConnectionStatus
from merq.model.queue import OutgoingState


class LineIndex:
    """Lines by what is looked for among thousands of them.

    Attributes:
        deadlines: When they have something to do.
        by_hop: Which are to go by an address.
        by_guid: Which a session with a queue manager may show a way to, whatever its address.
        by_place: Those to public queues: where these are may be learnt later.
    """

    __slots__ = ("by_guid", "by_hop", "by_place", "deadlines")

    def __init__(self) -> None:
        self.deadlines: Deadlines[Line] = Deadlines()
        self.by_hop: dict[str, dict[Line, None]] = {}
        self.by_guid: dict[UUID, dict[Line, None]] = {}
        self.by_place: dict[Line, None] = {}

    def await_session(self, line: Line, guid: UUID) -> None:
        """A session with a queue manager may show a way to a line."""
        if guid != NULL_GUID:
            line.awaited.add(guid)
            self.by_guid.setdefault(guid, {})[line] = None

    def shown_by(self, address: str, guid: UUID) -> list[Line]:
        """The lines to which a session with a queue manager at an address may show a way."""
        near, known = self.by_hop.get(address, {}), self.by_guid.get(guid, {})
        return list({**near, **known, **self.by_place})

    def moved(self, line: Line, before: list[str], hops: list[str]) -> None:
        """A line is to go by other addresses now."""
        for address in before:
            lines = self.by_hop.get(address, {})
            lines.pop(line, None)
            if not lines:
                self.by_hop.pop(address, None)
        for address in hops:
            self.by_hop.setdefault(address, {})[line] = None

    def forget(self, line: Line) -> None:
        """A line's queue is gone."""
        self.moved(line, line.hops, [])
        for guid in line.awaited:
            lines = self.by_guid.get(guid, {})
            lines.pop(line, None)
            if not lines:
                self.by_guid.pop(guid, None)
        line.awaited.clear()
        self.by_place.pop(line, None)
        self.deadlines.set(line, None)


class Line:
    """[MS-MQQB] 3.1.1.3.1.3: the way out of one outgoing queue, by the next hop.

    Attributes:
        link: The connection that it uses, open or not.
        guid: Who must be there.
        destination: The queue manager that its messages are for; null if their name says.
        host: What the other side is called.
        is_order_queue: It leads to an order queue: what it carries are acknowledgments end to end.
        order_queue_of: Who must be at the address of an order queue; null if nobody in particular.
        asking: The host whose addresses are being looked up.
        kind: What a connection for it is made for.
        failures: How many attempts in a row have failed.
        tried_at: When the last attempt failed; None if none has yet.
        asker: Its connection was made by somebody of whom nobody knows who it is: acknowledgments
            of this queue manager's messages alone go through it. None if everything may.
        needs_dial: Something else is in the queue: this side has to connect.
        awaits_asker: Its host is unknown: it waits for a session of who wants to be told.
        tls_failure: Why its host could not be reached inside of TLS; empty if that is not so.
        awaited: Queue managers a session with which may show its way.
        was_held: The queue was on hold when it was looked at last.
    """

    __slots__ = (
        "_hops",
        "_index",
        "_resend_at",
        "_retry_at",
        "asker",
        "asking",
        "awaited",
        "awaits_asker",
        "destination",
        "failures",
        "guid",
        "host",
        "is_order_queue",
        "kind",
        "link",
        "name",
        "needs_dial",
        "order_queue_of",
        "queue",
        "tls_failure",
        "transfer",
        "tried_at",
        "was_held",
    )

    def __init__(self, queue: Queue, index: LineIndex) -> None:
        self._index = index
        self._hops: list[str] = []
        self._retry_at: float | None = None
        self._resend_at: float | None = None
        assert queue.transfer is not None, "only outgoing queues have a way out"
        self.queue = queue
        self.transfer: Transfer = queue.transfer
        name = parse_format_name(queue.properties.path_name)
        self.name: FormatName = name  # type: ignore[assignment] # each destination has its own
        self.is_order_queue = is_order_queue(self.name)
        self.order_queue_of = NULL_GUID
        if self.is_order_queue and isinstance(name, DirectName) and name.subqueue:
            self.order_queue_of = UUID(hex=name.subqueue)
        self.link: Link | None = None
        self.awaited: set[UUID] = set()
        index.await_session(self, self.order_queue_of)
        if isinstance(name, PrivateName):
            index.await_session(self, name.computer)
        elif isinstance(name, PublicName):
            index.by_place[self] = None
        self.guid: UUID = NULL_GUID
        self.destination: UUID = NULL_GUID
        self.host = ""
        self.asking = ""
        self.asker: UUID | None = None
        self.needs_dial = False
        self.awaits_asker = False
        self.kind = DialKind.FRESH
        self.failures = 0
        self.tried_at: float | None = None
        self.tls_failure = ""
        self.was_held = False

    @property
    def hops(self) -> list[str]:
        """Addresses to try, the current one first."""
        return self._hops

    @hops.setter
    def hops(self, hops: list[str]) -> None:
        self._index.moved(self, self._hops, hops)
        self._hops = hops

    @property
    def retry_at(self) -> float | None:
        """When to try again to connect."""
        return self._retry_at

    @retry_at.setter
    def retry_at(self, at: float | None) -> None:
        self._retry_at = at
        self.await_deadline()

    @property
    def resend_at(self) -> float | None:
        """When transactional messages are to be sent again."""
        return self._resend_at

    @resend_at.setter
    def resend_at(self, at: float | None) -> None:
        self._resend_at = at
        self.await_deadline()

    def await_deadline(self) -> None:
        """It is due at the earlier of its times."""
        retry, resend = self._retry_at, self._resend_at
        if retry is None or resend is None:
            self._index.deadlines.set(self, resend if retry is None else retry)
        else:
            self._index.deadlines.set(self, min(retry, resend))

    @property
    def has_waiting(self) -> bool:
        """Whether there is anything to send: what waits for its FinalAck was sent."""
        return self.queue.positions.count > len(self.transfer.awaiting_final)

    def enter(self, state: OutgoingState) -> None:
        """[MS-MQDMPR] 3.1.1.3: the queue's state, unless somebody put it on hold."""
        if self.queue.state is not OutgoingState.ON_HOLD:
            self.queue.state = state

    def note(self, status: ConnectionStatus, now: int, *, error: int = 0, text: str = "") -> None:
        """[MS-MQDMPR] 3.1.1.3: an entry for the connection history."""
        link = self.link
        addresses = tuple(self.hops) if link is None else (link.address,)
        self.transfer.history.append(Attempt(status.document_name, now, error, addresses, text))
