"""All connections with other queue managers: who has one, and who may have another."""

from __future__ import annotations

from collections import Counter
from typing import Final, TypeAlias, TypeVar
from uuid import UUID

from merq.engine.queue import Queue
from merq.exchange.confirmations import Confirmations
from merq.exchange.deadlines import Deadlines
from merq.exchange.dials import DialKind, Dials
from merq.exchange.events import CLAIMED_TWICE
from merq.exchange.held_bytes import HeldBytes
from merq.exchange.links import Link
from merq.exchange.routes import NULL_GUID, Peers
from merq.exchange.settings import ExchangeSettings
from merq.exchange.tls_policy import TlsPolicy, TlsUse
from merq.host import Host
from merq.model.peer_networks import peer_network
from merq.model.queue import OutgoingState

REFUSED_MAX: Final = 64
"""Connections beyond the limits that are told so at the same time; others are cut off."""

_Key = TypeVar("_Key")

Fact: TypeAlias = str | int | bool | UUID
"""What something told is about."""


class Switchboard:
    """What the parts of the exchange share.

    Attributes:
        dirty: Connections that have something to be written, or are to be closed.
        dials: Connections that are to be made, or are being made.
        tls: Who is spoken to inside of TLS.
        confirmations: Who answered where when this side connected.
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
        # Of one address there may be hundreds of connections, and as many queues that look for one.
        self._by_guid: dict[tuple[str, UUID], dict[Link, None]] = {}
        self._dialled_to: dict[str, dict[Link, None]] = {}
        self._known: dict[UUID, dict[Link, None]] = {}
        self._incoming: Counter[str] = Counter()
        self._count = 0
        self._refused = 0
        self._dialled = 0
        self._answering: set[Link] = set()
        self._claims: dict[UUID, Link] = {}
        self.dirty: dict[Link, None] = {}
        self.dials = Dials(settings.dials_max)
        self.confirmations = Confirmations(settings.trust_inbound_s)
        self.tls = TlsPolicy(peers, settings, self._tell_forgotten)
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

    @property
    def accepted(self) -> int:
        """How many connections others have made, without those that are being refused."""
        return len(self) - self._dialled

    def is_at(self, address: str) -> bool:
        """Whether a session with somebody at an address is open."""
        return any(link.is_open for link in self._by_address.get(address, ()))

    def carries(self, link: Link, now: float) -> bool:
        """Whether any of our messages may go through a connection.

        Whoever connects here may say that it is anybody, from behind any address. It is who it says
        if this side has connected to it there not long ago, if it has a certificate, or if the
        settings say so.
        """
        if link.is_outgoing or link.is_secure:
            return True
        guid, address = link.remote_guid, link.address
        if self.peers.trusts_inbound(guid, address):
            return True
        return self.confirmations.holds(address, guid, now)

    def find(self, address: str, guid: UUID, now: float, tls: TlsUse) -> Link | None:
        """A connection to an address, and to a certain queue manager if that matters.

        If several queue managers have connected from that address, and it does not say which is
        meant, only one that we have connected to ourselves can be.
        """
        if guid != NULL_GUID:
            links = self._by_guid.get((address, guid), {})
        elif self._is_shared(address, now):
            links = self._dialled_to.get(address, {})
        else:
            links = self._by_address.get(address, {})
        best = None
        for link in links:
            if link.closing or (tls is TlsUse.REQUIRED and not link.is_secure):
                continue
            if tls is TlsUse.CLEAR and link.is_secure and not link.is_open:
                continue  # what keeps TLS from being there does not concern it
            if not link.is_outgoing and not (link.is_open and self.carries(link, now)):
                continue
            if link.is_open and link.is_outgoing:
                return link
            if best is None or link.is_open:
                best = link
        return best

    def _is_shared(self, address: str, now: float) -> bool:
        """Whether several queue managers have connected from an address."""
        callers: set[UUID] = set()
        for link in self._by_address.get(address, ()):
            if link.is_open and not link.is_outgoing and self.carries(link, now):
                callers.add(link.remote_guid)
                if len(callers) > 1:
                    return True
        return False

    def identified(self, link: Link) -> None:
        """It is known who is at the other end of a connection, or who has to be."""
        for guid in (link.expected, link.remote_guid):
            if guid != NULL_GUID:
                self._by_guid.setdefault((link.address, guid), {})[link] = None

    def find_asker(self, address: str, guid: UUID, *, is_secure: bool) -> Link | None:
        """An open connection that a queue manager has made from an address, confirmed or not."""
        for link in self._by_guid.get((address, guid), ()):
            if link.is_open and link.remote_guid == guid and (link.is_secure or not is_secure):
                return link
        return None

    def find_known(self, guid: UUID, host: str) -> Link | None:
        """An open connection with a queue manager, wherever it is, if settings or TLS know it.

        Whoever only says that it is that one is not found here, though it be the only one.
        """
        for link in self._known.get(guid, ()):
            is_safe = link.is_secure or not self.tls.is_demanded(host, link.address)
            if link.is_open and is_safe:
                return link
        return None

    def _is_known(self, link: Link) -> bool:
        guid = link.remote_guid
        if link.is_secure or self.peers.trusts_inbound(guid, link.address):
            return True
        return link.is_outgoing and self.peers.is_at(guid, link.host or link.address)

    def met(self, link: Link, now: float) -> None:
        """A session is open: who is where is learnt, as far as it can be believed."""
        guid, address = link.remote_guid, link.address
        if link.is_outgoing:
            self.confirmations.add(address, guid, now)
        if self._is_known(link):
            self._known.setdefault(guid, {})[link] = None
        known = self.peers.learned(guid)
        if (
            known is not None
            and known != address
            and not link.is_secure
            and self._is_there(known, guid, now)
        ):
            self._claims[guid] = link
            self.tell(
                CLAIMED_TWICE,
                peer=address,
                queue_manager=guid,
                reason=f"{known} has it, and is in use: messages for it still go there",
            )
            return
        is_dialled = link.is_outgoing and link not in self._answering
        self.peers.learn(guid, address, is_dialled=is_dialled)

    def _is_there(self, address: str, guid: UUID, now: float) -> bool:
        """Whether a queue manager has a session from an address, or was reached there lately."""
        if self.confirmations.holds(address, guid, now):
            return True
        links = self._by_guid.get((address, guid), ())
        return any(link.is_open and link.remote_guid == guid for link in links)

    def unreachable(self, link: Link, now: float) -> None:
        """This side could not connect: who was there may be elsewhere."""
        self.confirmations.forget(link.address)
        self._reconsider(link.expected, now)

    def _reconsider(self, guid: UUID, now: float) -> None:
        """Whether a queue manager is now where it said that it is, from a second address."""
        claim = self._claims.get(guid)
        known = self.peers.learned(guid)
        if claim is None or (known is not None and self._is_there(known, guid, now)):
            return
        del self._claims[guid]
        self.peers.learn(guid, claim.address)

    def dial(self, address: str, guid: UUID, kind: DialKind, tls: TlsUse, host: str) -> Link | None:
        """A connection that is to be made, or None if there are too many.

        What only acknowledgments wait for has a share of the room here, too.
        """
        most = self.settings.dialled_links_max
        is_answer = kind is DialKind.ANSWER
        if self._dialled >= most or (
            is_answer and len(self._answering) >= max(int(most * kind.value), 1)
        ):
            return None
        is_secure = tls is not TlsUse.CLEAR
        link = self._add(address, is_outgoing=True, guid=guid, is_secure=is_secure, host=host)
        link.may_be_clear = tls is TlsUse.TRIED
        self._dialled += 1
        if is_answer:
            self._answering.add(link)
        self.dials.add(link, kind)
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
        if self.accepted >= self.settings.links_max:
            return f"{self.settings.links_max} connections that others have made are open"
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
        if is_outgoing:
            self._dialled_to.setdefault(address, {})[link] = None
        self.identified(link)
        return link

    def remove(self, link: Link, now: float) -> None:
        """A connection is gone."""
        link.is_lost = True
        self.held.count(link)
        self.ready.pop(link, None)
        self.deadlines.set(link, None)
        if self._links.pop(link.number, None) is not None:
            self._refused -= link.is_refused
            self._dialled -= link.is_outgoing
            if not link.is_refused and not link.is_outgoing:
                self._incoming[link.network] -= 1
                if not self._incoming[link.network]:
                    del self._incoming[link.network]
        self._answering.discard(link)
        self.dials.ended(link)
        self.dirty.pop(link, None)
        _take_out(self._by_address, link.address, link)
        _take_out(self._dialled_to, link.address, link)
        for guid in {link.expected, link.remote_guid}:
            _take_out(self._by_guid, (link.address, guid), link)
        guid = link.remote_guid
        _take_out(self._known, guid, link)
        if self._claims.get(guid) is link:
            del self._claims[guid]
        self._reconsider(guid, now)

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

    def _tell_forgotten(self, host: str, reason: str) -> None:
        self.tell("it is forgotten that a host has TLS", host=host, reason=reason)

    def tell(self, text: str, **fields: Fact) -> None:
        """Something happened that people may want to know."""
        self.told.append((text, fields))


def _take_out(table: dict[_Key, dict[Link, None]], key: _Key, link: Link) -> None:
    """A connection is in a table no more, nor is what it was there under if it was the last."""
    others = table.get(key)
    if others is not None:
        others.pop(link, None)
        if not others:
            del table[key]
