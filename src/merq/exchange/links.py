"""A connection with another queue manager, and what waits to go through it."""

from __future__ import annotations

from itertools import islice
from typing import Final, NamedTuple
from uuid import UUID

from merq.engine.queue import Queue
from merq.exchange.dispatch import DispatchCollection
from merq.model.peer_networks import peer_network
from merq.protocol.application.reports import LinkReport
from merq.protocol.binary.session import NULL_GUID, Session

BATCH: Final = 64
"""Messages that one queue sends before it is the turn of the next of the same priority."""

BATCH_BYTES: Final = 256 << 10

QUEUES_TOLD_MAX: Final = 10
"""Outgoing queues of a connection whose names people are told."""


class Token(NamedTuple):
    """What is told when a message is acknowledged.

    Attributes:
        is_ordered: It stays until its OrderAck comes.
        is_journaled: Its sender wants a copy in the journal.
    """

    queue: Queue
    lookup_id: int
    is_ordered: bool
    is_journaled: bool


class Link:
    """A connection.

    Attributes:
        number: Tells it from others.
        address: Of the other side.
        network: By which it is counted together with others of the same peer.
        local_address: Of this side, as its socket has it; empty if that is not known.
        is_outgoing: This side has connected.
        session: What is said through it; None while it is being made.
        is_secure: It is inside of TLS.
        may_be_clear: It is inside of TLS, and another is made in clear if nobody is at the port.
        host: What the other side was called, if it was by name.
        expected: Who must be at the other end; null if anybody may.
        queues: Outgoing queues that use it.
        ready: Those of them that may have something to send, the most urgent first.
        outbox: Bytes to be written.
        unread_bytes: What came and waits for its turn, as the driver says.
        unwritten_bytes: What was given to be written and is not gone, as the driver says.
        closing: Why it is to be closed; empty while it goes on.
        drops_arrivals: What came through it and is not taken yet is dropped, because messages
            before it could not be taken; the other side sends all of it again.
        is_cut: It is closed at once, whatever is to be written.
        was_open: Its session has been open.
        is_refused: It is beyond a limit: the other side is told so, and nothing else.
        is_lost: It is gone.
    """

    __slots__ = (
        "address",
        "closing",
        "drops_arrivals",
        "expected",
        "host",
        "is_cut",
        "is_lost",
        "is_outgoing",
        "is_refused",
        "is_secure",
        "local_address",
        "may_be_clear",
        "network",
        "number",
        "outbox",
        "outbox_bytes",
        "queues",
        "ready",
        "session",
        "unread_bytes",
        "unwritten_bytes",
        "was_open",
    )

    def __init__(
        self,
        number: int,
        address: str,
        *,
        is_outgoing: bool,
        expected: UUID = NULL_GUID,
        is_secure: bool = False,
        host: str = "",
    ) -> None:
        self.number = number
        self.address = address
        self.network = peer_network(address)
        self.local_address = ""
        self.is_outgoing = is_outgoing
        self.expected = expected
        self.is_secure = is_secure
        self.may_be_clear = False
        self.host = host
        self.session: Session[Token] | None = None
        self.queues: dict[Queue, None] = {}
        self.ready = DispatchCollection()
        self.outbox: list[bytes] = []
        self.outbox_bytes = 0
        self.unread_bytes = 0
        self.unwritten_bytes = 0
        self.closing = ""
        self.drops_arrivals = False
        self.was_open = False
        self.is_refused = False
        self.is_cut = False
        self.is_lost = False

    @property
    def is_open(self) -> bool:
        """Whether messages can be sent."""
        return self.session is not None and self.session.is_open and not self.closing

    @property
    def remote_guid(self) -> UUID:
        """Who the other side is, as far as it said."""
        return NULL_GUID if self.session is None else self.session.remote_guid

    @property
    def held_bytes(self) -> int:
        """Its bytes that are under way, both ways."""
        session = self.session
        own = self.unread_bytes + self.outbox_bytes + self.unwritten_bytes
        return own if session is None else own + session.held_bytes

    def collect(self) -> bool:
        """Takes over what the session wants written; whether there is anything to write."""
        if self.session is not None:
            output = self.session.take_output()
            if output:
                self.outbox += output
                self.outbox_bytes += sum(map(len, output))
        return bool(self.outbox)

    def take_outbox(self) -> list[bytes]:
        """What is to be written."""
        outbox, self.outbox = self.outbox, []
        self.outbox_bytes = 0
        return outbox

    def report(self) -> LinkReport:
        """What it is and what it is for, for people."""
        first = islice(self.queues, QUEUES_TOLD_MAX)
        return LinkReport(
            address=self.address,
            queue_manager=self.remote_guid,
            ours=self.is_outgoing,
            secure=self.is_secure,
            open=self.is_open,
            queues=tuple(each.properties.path_name for each in first),
            queue_count=len(self.queues),
            unacknowledged=0 if self.session is None else self.session.waiting,
        )
