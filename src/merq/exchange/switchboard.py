"""All connections with other queue managers: who has one, and who may have another."""

from __future__ import annotations

from collections import Counter
from typing import Final, TypeAlias
from uuid import UUID

from merq.engine.queue import Queue
from merq.exchange.deadlines import Deadlines
from merq.exchange.held_bytes import HeldBytes
from merq.exchange.links import Link
from merq.exchange.routes import NULL_GUID, Peers
from merq.exchange.settings import ExchangeSettings
from merq.host import Host
from merq.model.peer_networks import peer_network
from merq.model.queue import OutgoingState

REFUSED_MAX: Final = 64
"""Connections beyond the limits that are told so at the same time; others are cut off."""

Fact: TypeAlias = str | int | bool | UUID
"""What something told is about."""


class Switchboard:
    """What the parts of the exchange share.

    Attributes:
        dirty: Connections that have something to be written, or are to be closed.
        dialing: Connections that are to be made.
        told: What people may want to know: a text, and what it is about.
        held: What all connections have under way.
        ready: Connections that may have something to send.
        deadlines: When the timers of their sessions run out.
    """

    def __init__(self, host: Host, settings: ExchangeSettings, peers: Peers) -> None:
        self.host = host
        self.settings = settings
        self.peers = peers
        host.engine.state.base_priorities.update(peers.base_priorities)
        self._links: dict[int, Link] = {}
        self._by_address: dict[str, dict[Link, None]] = {}
        self._incoming: Counter[str] = Counter()
        self._count = 0
        self._refused = 0
        self.dirty: dict[Link, None] = {}
        self.dialing: list[Link] = []
        self.told: list[tuple[str, dict[str, Fact]]] = []
        self.held = HeldBytes(settings.held_bytes_max)
        self.ready: dict[Link, None] = {}
        self.deadlines: Deadlines[Link] = Deadlines()

    def __len__(self) -> int:
        """How many connections there are, without those that are being refused."""
        return len(self._links) - self._refused

    def links(self) -> list[Link]:
        """All connections."""
        return list(self._links.values())

    def find(self, address: str, guid: UUID, *, is_secure: bool) -> Link | None:
        """A connection to an address, and to a certain queue manager if that matters.

        If several queue managers have connected from that address, and it does not say which is
        meant, only one that we have connected to ourselves can be.
        """
        best = None
        links = [
            link
            for link in self._by_address.get(address, ())
            if not link.closing and (link.is_open or link.is_outgoing)
        ]
        callers = {link.remote_guid for link in links if not link.is_outgoing}
        for link in links:
            if is_secure and not link.is_secure:
                continue
            if guid == NULL_GUID and len(callers) > 1 and not link.is_outgoing:
                continue
            if guid != NULL_GUID and guid not in (link.remote_guid, link.expected):
                continue
            if link.is_open:
                return link
            best = link
        return best

    def dial(self, address: str, guid: UUID, *, is_secure: bool, host: str) -> Link | None:
        """A connection that is to be made, or None if there are too many."""
        if len(self) >= self.settings.links_max:
            return None
        link = self._add(address, is_outgoing=True, guid=guid, is_secure=is_secure, host=host)
        self.dialing.append(link)
        return link

    def accept(self, address: str, *, is_secure: bool) -> tuple[Link | None, str]:
        """A connection that somebody made, and why it is to be refused; empty if it is not.

        None: so many are being refused already that this one is cut off.
        """
        refusal = self._refusal(address)
        if refusal and self._refused >= REFUSED_MAX:
            return None, refusal
        link = self._add(address, is_outgoing=False, guid=NULL_GUID, is_secure=is_secure)
        if refusal:
            link.is_refused = True
            self._refused += 1
        else:
            self._incoming[link.network] += 1
        return link, refusal

    def _refusal(self, address: str) -> str:
        if len(self) >= self.settings.links_max:
            return f"{self.settings.links_max} connections are open"
        network = peer_network(address)
        others = self._incoming[network]
        if others >= self.settings.links_per_peer_max:
            return f"{others} connections from {network} are open"
        return ""

    def _add(
        self, address: str, *, is_outgoing: bool, guid: UUID, is_secure: bool, host: str = ""
    ) -> Link:
        self._count += 1
        link = Link(
            self._count,
            address,
            is_outgoing=is_outgoing,
            expected=guid,
            is_secure=is_secure,
            host=host,
        )
        self._links[link.number] = link
        self._by_address.setdefault(address, {})[link] = None
        return link

    def remove(self, link: Link) -> None:
        """A connection is gone."""
        link.is_lost = True
        self.held.count(link)
        self.ready.pop(link, None)
        self.deadlines.set(link, None)
        if self._links.pop(link.number, None) is not None:
            if link.is_refused:
                self._refused -= 1
            elif not link.is_outgoing:
                self._incoming[link.network] -= 1
                if not self._incoming[link.network]:
                    del self._incoming[link.network]
        self.dirty.pop(link, None)
        others = self._by_address.get(link.address)
        if others is not None:
            others.pop(link, None)
            if not others:
                del self._by_address[link.address]

    def close(self, link: Link, reason: str) -> None:
        """[MS-MQQB] 3.1.5.9: a connection is to be closed, when what is to be written is."""
        if not link.closing:
            link.closing = reason
            self.dirty[link] = None
            for queue in link.queues:
                if queue.state is not OutgoingState.ON_HOLD:
                    queue.state = OutgoingState.DISCONNECTING

    def count_held(self, link: Link, now: float) -> None:
        """A connection has more under way; if all of them have too much, somebody gives way."""
        self.held.count(link)
        while (worst := self.held.worst(now)) is not None:
            self._give_way(worst)

    def _give_way(self, link: Link) -> None:
        held = link.held_bytes
        self.close(link, f"memory runs out, and it holds {held} bytes of it")
        link.drops_arrivals = True
        link.is_cut = True
        link.take_outbox()
        if link.session is not None:
            link.session.close(link.closing)
            link.session.forget_input()
        link.unread_bytes = link.unwritten_bytes = 0
        self.held.count(link)

    @property
    def outbox_high_bytes(self) -> int:
        """With so much unwritten nothing more is sent on a connection."""
        return 0 if self.held.is_tight else self.settings.outbox_high_bytes

    def make_ready(self, link: Link, queue: Queue) -> None:
        """A queue may have something to send through a connection."""
        link.ready.add(queue)
        self.ready[link] = None

    def await_deadline(self, link: Link) -> None:
        """Something happened in a session: its timers may run out at another time."""
        if link.session is not None and not link.is_lost:
            self.deadlines.set(link, link.session.next_deadline())

    def tell(self, text: str, **fields: Fact) -> None:
        """Something happened that people may want to know."""
        self.told.append((text, fields))
