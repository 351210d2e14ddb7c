"""The exchange: everything between this queue manager and others, without I/O.

Bytes, connections and the time go in. What is to be done comes out as plain attributes: links to be
written to or closed (`dirty`), to be dialled (`dialing`), host names to be looked up (`lookups`).
An event loop drives it, and so does the simulator.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from merq.engine.changes import Answer
from merq.exchange.acquaintances import Acquaintances
from merq.exchange.inbound import REQUEST, Inbound
from merq.exchange.links import Link
from merq.exchange.outbound import Outbound
from merq.exchange.routes import NULL_GUID, Peers
from merq.exchange.settings import ExchangeSettings
from merq.exchange.switchboard import Fact, Switchboard
from merq.exchange.tls_policy import TlsPolicy
from merq.host import Host
from merq.model.properties import ConnectionStatus
from merq.protocol.application.reports import LinkReport
from merq.protocol.binary.session import ITSELF, Session, SessionState


class Exchange:
    """[MS-MQQB] 3.1: sessions with other queue managers, and the messages that go through them."""

    def __init__(
        self,
        host: Host,
        settings: ExchangeSettings | None = None,
        peers: Peers | None = None,
        chance: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Begins.

        Args:
            host: The queue manager on its disk.
            settings: What it keeps to.
            peers: Queue managers that the settings know.
            chance: A number from 0 up to 1, another one each time.
        """
        self.settings = settings or ExchangeSettings()
        self._host = host
        self._board = Switchboard(host, self.settings, peers or Peers())
        self._acquaintances = Acquaintances(self._board)
        self.outbound = Outbound(self._board, self._acquaintances, chance)
        self.inbound = Inbound(self._board, self.outbound, self._acquaintances)
        engine = host.engine
        engine.arrivals.forwards = self.settings.forwards
        engine.departures.in_doubt_s = self.settings.in_doubt_s
        engine.state.sends_insecure_nacks = self.settings.insecure_nacks
        engine.state.sends_reports = self.settings.trace_reports
        engine.state.known_places.update(self._board.peers.places)
        engine.state.known_managers = self._board.peers.known
        engine.state.acknowledgment_lifetime_s = self.settings.acknowledgment_lifetime_s
        engine.state.may_call = self._acquaintances.knows
        engine.state.address_of = lambda guid: self._board.peers.learned(guid) or ""
        engine.state.recent.size = self.settings.history_size
        engine.state.recent.lifetime_s = self.settings.history_s
        # [MS-MQQB] 3.1.4.1: what waits from before is sent.
        for queue in engine.outgoing_queues():
            engine.state.outbound[queue] = None

    def __len__(self) -> int:
        return len(self._board)

    @property
    def guid(self) -> UUID:
        """The queue manager's identifier."""
        return self._host.engine.state.guid

    @property
    def has_room(self) -> bool:
        """Whether another session would be taken."""
        if self.settings.hardened or not self._host.engine.state.connection_active:
            return False
        return self._board.accepted < self.settings.links_max

    @property
    def tls(self) -> TlsPolicy:
        """Who is spoken to inside of TLS, and what is remembered of that."""
        return self._board.tls

    @property
    def tls_failures(self) -> tuple[str, ...]:
        """Who cannot be reached inside of TLS, and why: a sentence each."""
        return self.outbound.tls_failures

    @property
    def throttled(self) -> tuple[str, ...]:
        """Addresses from which no messages are taken because there is no room for them."""
        return self.inbound.throttled

    @property
    def is_waiting(self) -> bool:
        """Whether anything waits for its time, sessions aside."""
        return self.outbound.is_waiting or self.inbound.next_deadline() is not None

    @property
    def dirty(self) -> dict[Link, None]:
        """Links that have something to be written, or are to be closed."""
        return self._board.dirty

    @property
    def links(self) -> list[Link]:
        """All links."""
        return self._board.links()

    @property
    def held_bytes(self) -> int:
        """What all links have under way: came and not taken care of, or not written yet."""
        return self._board.held.total

    @property
    def open_count(self) -> int:
        """How many sessions are open."""
        return sum(link.is_open for link in self._board.links())

    def reports(self) -> list[LinkReport]:
        """All connections, and what each is for."""
        return [link.report() for link in self._board.links()]

    def take_dialing(self) -> list[Link]:
        """Links that are to be connected now; others wait until there is room."""
        return self._board.dials.take()

    def take_lookups(self) -> list[str]:
        """Host names whose addresses are to be looked up now; others wait until there is room."""
        return self.outbound.lookups.take()

    def take_told(self) -> list[tuple[str, dict[str, Fact]]]:
        """What happened that people may want to know."""
        told, self._board.told = self._board.told, []
        return told

    @staticmethod
    def is_ours(answer: Answer) -> bool:
        """Whether an answer of the engine is for `take`."""
        return answer.request & REQUEST != 0

    # Connections.

    def accepted(self, address: str, now: float, *, is_secure: bool = False) -> Link | None:
        """[MS-MQQB] 3.1.5.10: somebody has connected; None if the connection is to be cut off.

        If there are too many, the session's answer refuses it ([MS-MQQB] 3.1.5.3.1).
        """
        if self.settings.hardened or not self._host.engine.state.connection_active:
            why = "hardened security" if self.settings.hardened else "the queue manager is offline"
            self._board.tell("a connection was refused", peer=address, reason=why)
            return None
        link, refusal = self._board.accept(address, is_secure=is_secure)
        if refusal:
            self._board.tell("a connection was refused", peer=address, reason=refusal)
        if link is not None:
            link.session = Session(
                self.guid, self.settings.session, now, is_initiator=False, refusal=refusal
            )
            self._board.await_deadline(link)
        return link

    def connected(self, link: Link, now: float, *, pinged: bool = False) -> None:
        """A link that was dialled is connected."""
        self._board.dials.ended(link)
        if link.is_secure:
            self._board.tls.reached(link.host or link.address)
        link.session = Session(
            self.guid,
            self.settings.session,
            now,
            is_initiator=True,
            remote_guid=link.expected,
            is_direct=link.expected == NULL_GUID,
            pinged=pinged,
        )
        self._board.await_deadline(link)
        if link.collect():
            self._board.dirty[link] = None

    def dial_failed(
        self,
        link: Link,
        text: str,
        now: float,
        status: ConnectionStatus = ConnectionStatus.SOCKET_CONNECT_FAILURE,
    ) -> None:
        """A link that was dialled could not be connected."""
        self._board.remove(link, now)
        self._board.unreachable(link, now)
        if not link.is_secure:
            self._board.tls.unreachable(link.address)
        self._board.tell("no connection", peer=link.address, reason=text)
        self.outbound.failed(link, status, text, now)

    def tls_absent(self, link: Link, text: str, now: float, *, is_certain: bool = True) -> None:
        """Nobody is at the TLS port of where a link was dialled, and it may go on in clear.

        If it only took too long, somebody may be there who is busy, or this side is: it is tried
        again, and goes on in clear when that has happened some times in a row.
        """
        assert link.may_be_clear, "who has to be reached inside of TLS is not reached in clear"
        if not is_certain and not self._board.tls.was_silent(link.address):
            self.dial_failed(link, text, now)
            return
        self._board.remove(link, now)
        self._board.tls.absent(link.address, now)
        self._board.tell("no TLS there, it goes on in clear", peer=link.address, reason=text)
        self.outbound.go_clear(link, text, now)

    def looked_up(self, host: str, addresses: list[str], now: float, text: str = "") -> None:
        """The addresses of a host, or why there are none."""
        self.outbound.looked_up(host, addresses, text, now)

    def received(self, link: Link, data: bytes, now: float) -> None:
        """Bytes came."""
        session = link.session
        if session is None or link.closing:
            return
        before = session.state
        session.receive_data(data, now)
        if session.state is not before:
            self._advanced(link, session.state, now)
        self.inbound.came(link)
        if session.acknowledged:
            tokens, session.acknowledged = session.acknowledged, []
            self.outbound.acknowledged(tokens)
        self._settle(link)
        self._board.count_held(link, now)

    def _advanced(self, link: Link, state: SessionState, now: float) -> None:
        guid = link.remote_guid
        self._board.identified(link)
        if guid == self.guid:
            assert link.session is not None, "it has advanced"
            self._board.close(link, link.session.closing or ITSELF)
        elif state is SessionState.WAITING_CPR_MSG:
            self.outbound.established(link)
        elif state is SessionState.OPEN:
            self._board.met(link, now)
            self._acquaintances.session_opened(link.address)
            if link.is_secure:
                self._board.tls.met(link.address)
            self._board.tell(
                "session open", peer=link.address, queue_manager=guid, ours=link.is_outgoing
            )
            link.was_open = True
            self.outbound.opened(link, now)

    def _settle(self, link: Link) -> None:
        session = link.session
        assert session is not None, "it was asked before"
        if session.closing:
            self._board.close(link, session.closing)
        self._board.await_deadline(link)
        if link.collect():
            self._board.dirty[link] = None

    def is_paused(self, link: Link) -> bool:
        """Whether nothing should be read from a link for now."""
        session = link.session
        if self.inbound.is_full:
            return True
        if session is not None:
            if session.is_congested:
                return True
            # While memory is tight, everybody has one packet at a time under way.
            if self._board.held.is_tight and session.has_unhandled:
                return True
        return self.inbound.is_throttled(link)

    def counted(self, link: Link, now: float) -> None:
        """The driver has read or written: a link has more under way, or less."""
        self._board.count_held(link, now)

    def written(self, link: Link, now: float) -> None:
        """What was to be written to a link is gone: more may be sent."""
        if link.ready and link.is_open:
            self.outbound.pump(link, now)

    def lost(self, link: Link, reason: str, now: float) -> None:
        """[MS-MQQB] 3.1.7.3: a connection is gone."""
        if link.is_lost:
            return
        self._board.remove(link, now)
        reason = link.closing or reason
        if link.session is not None:
            link.session.close(reason)
            link.session.forget_input()
        what = "session closed" if link.was_open else "no session"
        self._board.tell(what, peer=link.address, reason=reason)
        if link.is_outgoing and not link.was_open:
            if link.session is not None:  # somebody answered, who is not the one that is meant
                self._board.unreachable(link, now)
            self.outbound.failed(link, ConnectionStatus.CONNECTION_REFUSED, reason, now)
        else:
            self.outbound.lost(link, reason, now)

    # Turns.

    def go_on(self, now: float) -> None:
        """Takes what has come and sends what waits; the host is to be performed after it."""
        self.inbound.go_on(now)
        self.outbound.go_on(now)

    def take(self, answer: Answer, now: float) -> None:
        """An answer of the engine."""
        self.inbound.take(answer, now)

    def next_deadline(self) -> float | None:
        """When `tick` has something to do next."""
        times = (
            self.outbound.next_deadline(),
            self.inbound.next_deadline(),
            self._board.dials.next_deadline(),
            self._board.deadlines.next(),
        )
        return min((each for each in times if each is not None), default=None)

    def tick(self, now: float) -> None:
        """[MS-MQQB] 3.1.6: what is due happens."""
        for link in self._board.deadlines.take(now):
            if link.session is not None and not link.closing:
                if self.is_paused(link):
                    link.session.excuse(now)
                link.session.tick(now)
                self._settle(link)
        for link in self._board.dials.overdue(now):
            self._board.close(link, "no answer yet, and other connections wait to be made")
        self.inbound.tick(now)
        self.outbound.tick(now)
