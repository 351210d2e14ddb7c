"""[MS-MQQB] 3.1.5.2, 3.1.7.1, 3.1.7.12 to 3.1.7.14: messages out, each queue by its line.

Queues whose messages go to the same address share a connection. One that the other side made is
used if it is known to be who it says; otherwise it carries what is said about its own messages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final
from uuid import UUID

from merq.engine import notices, spelling
from merq.engine.queue import Queue
from merq.exchange.acquaintances import Acquaintances
from merq.exchange.askers import Askers
from merq.exchange.dials import DialKind
from merq.exchange.dispatch import Turn
from merq.exchange.lines import Line, LineIndex
from merq.exchange.links import BATCH, BATCH_BYTES, Link, Token
from merq.exchange.lookups import Lookups
from merq.exchange.retry_schedule import RetrySchedule
from merq.exchange.routes import NULL_GUID, Route, is_address, is_ours, route
from merq.exchange.switchboard import Switchboard
from merq.hresult import HResult
from merq.model.names import DirectName, PublicName
from merq.model.properties import ConnectionStatus
from merq.model.queue import OutgoingState
from merq.wire.queues import PUBLIC

_UNREACHABLE: Final = int(HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE)


SWEEP_S: Final = 10.0
"""How often it is looked which queues are gone."""


class Outbound:
    """What leaves.

    Attributes:
        lookups: Host names whose addresses are to be looked up.
    """

    def __init__(
        self, board: Switchboard, acquaintances: Acquaintances, chance: Callable[[], float]
    ) -> None:
        self._board = board
        self._acquaintances = acquaintances
        self._askers = Askers(board, acquaintances)
        self._schedule = RetrySchedule(board.settings, board.host.engine.state, chance)
        self._engine = board.host.engine
        self._state = board.host.engine.state
        self._lines: dict[Queue, Line] = {}
        self._index = LineIndex()
        self._sweep_at = 0.0
        self._asked: dict[str, dict[Line, None]] = {}
        self._was_active = True
        lifetime_s = board.settings.acknowledgment_lifetime_s
        self._lifetimes = notices.lifetimes_in_packets(lifetime_s)
        self.lookups = Lookups()

    # Turns.

    def go_on(self, now: float) -> None:
        """[MS-MQQB] 3.1.7.12: queues that have something to send look for their way."""
        if self._state.connection_active != self._was_active:
            self._was_active = self._state.connection_active
            self._switched(now)
        self._serve_all(now)
        for link in list(self._board.ready):
            if link.ready and link.is_open:
                self.pump(link, now)
            if not link.ready:
                self._board.ready.pop(link, None)

    def _serve_all(self, now: float) -> None:
        while self._state.outbound:
            queues = list(self._state.outbound)
            self._state.outbound.clear()
            for queue in queues:
                if queue.number in self._state.queues:
                    self._serve(self.line(queue), now)

    def line(self, queue: Queue) -> Line:
        """The way out of a queue."""
        found = self._lines.get(queue)
        if found is None:
            found = self._lines[queue] = Line(queue, self._index)
        return found

    def _switched(self, now: float) -> None:
        """[MS-MQDMPR] 3.1.4.12, 3.1.4.13: the queue manager went offline, or came back."""
        if not self._was_active:
            for link in self._board.links():
                link.drops_arrivals = True
                self._board.close(link, "the queue manager was taken offline")
            return
        for line in self._lines.values():
            line.retry_at = now if line.retry_at is not None else None
            self._state.outbound[line.queue] = None

    def _serve(self, line: Line, now: float) -> None:
        queue = line.queue
        if not is_ours(line.name):
            return
        if self._board.settings.hardened:
            line.enter(OutgoingState.LOCKED)
            return
        is_held = queue.state is OutgoingState.ON_HOLD
        if is_held and not line.was_held and line.link is not None and line.link.session:
            line.link.session.pause(now)  # [MS-MQQB] 3.1.7.13
            self._board.await_deadline(line.link)
            self._board.dirty[line.link] = None
        line.was_held = is_held
        if is_held or not self._was_active or not line.has_waiting:
            return
        link = line.link
        if link is not None:
            if link.is_open:
                line.enter(OutgoingState.CONNECTED)
                self._board.make_ready(link, queue)
            return
        schedule = self._schedule
        if not line.is_answer and schedule.is_hurried(line):
            schedule.hasten(line, now)
        if not line.asking and schedule.is_time(line, now):
            self._find_way(line, now)

    # The way.

    def _find_way(self, line: Line, now: float) -> None:
        """[MS-MQQB] 3.1.5.2.1: where the destination is, and how it is reached."""
        line.awaits_asker = False
        line.kind = self._askers.kind_of(line)
        if line.kind is not DialKind.ANSWER and isinstance(line.name, DirectName):
            self._acquaintances.meet(line.name.host)
        found = self._route(line)
        if found is None:
            line.enter(OutgoingState.NEED_VALIDATION)
            line.hops = []
            error = int(HResult.MQ_ERROR_MACHINE_NOT_FOUND)
            text = "no settings and no session say where this queue manager is"
            line.note(
                ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE, self._state.now, error=error, text=text
            )
            self._schedule.failed(line, now)
            line.tried_at = None  # nobody was called
            return
        self._index.await_session(line, found.guid)
        line.guid, line.destination = found.guid, found.destination
        line.host = found.host
        if is_address(found.host):
            self._reach(line, [found.host], now)
        else:
            self._ask(line, found)

    def _route(self, line: Line) -> Route | None:
        """[MS-MQQB] 3.1.7.4: where to connect; None if that is not known."""
        places = self._places() if isinstance(line.name, PublicName) else {}
        found = route(line.name, self._board.peers, places)
        if found is not None and line.order_queue_of != NULL_GUID:
            # Only who sent the messages from that address gets their acknowledgments.
            found = replace(found, guid=line.order_queue_of)
        return found

    def _places(self) -> dict[UUID, UUID]:
        """Which queue manager has which public queue; the settings know better."""
        return {**self._state.known_places, **self._board.peers.places}

    def _ask(self, line: Line, found: Route) -> None:
        line.asking = found.host
        line.enter(OutgoingState.WAITING)
        waiting = self._asked.setdefault(found.host, {})
        waiting[line] = None
        self.lookups.add(found.host, is_for_others=line.kind is DialKind.ANSWER)

    def looked_up(self, host: str, addresses: list[str], text: str, now: float) -> None:
        """A host's addresses, or why there are none."""
        self.lookups.ended(host)
        if self._acquaintances.knows_host(host):
            for address in addresses:
                self._acquaintances.meet(address)
        for line in self._asked.pop(host, {}):
            line.asking = ""
            if line.link is not None:
                continue
            hops = [each for each in addresses if self._askers.may_call(line, each)]
            if not addresses:
                hops = self._askers.hops_to(line)
            if hops:
                self._reach(line, hops, now)
                continue
            if addresses:
                text = "acknowledgments are not sent there, by exchange.allowed_admin_queues"
                self._acquaintances.refused += 1
            line.awaits_asker = True
            self._index.await_session(line, line.asker or NULL_GUID)
            line.hops = []
            error = int(HResult.MQ_ERROR_MACHINE_NOT_FOUND)
            line.note(ConnectionStatus.DNS_FAILURE, self._state.now, error=error, text=text)
            self._retry(line, now)

    def _reach(self, line: Line, addresses: list[str], now: float) -> None:
        """[MS-MQQB] 3.1.5.2: through a session that there is, or a new one."""
        line.hops = list(addresses)
        line.transfer.next_hops = tuple(addresses)
        if not self._state.connection_active:
            self._retry(line, now)  # it was taken offline meanwhile
            return
        link = self._existing(line, addresses, now)
        if link is None:
            tls = self._board.tls.use(line.host, addresses[0], now)
            link = self._board.dial(addresses[0], line.guid, line.kind, tls, line.host)
        if link is None:
            most = self._board.settings.dialled_links_max
            text = f"{most} connections that this side made are open: no more are made"
            line.note(
                ConnectionStatus.CONNECTION_LIMIT_REACHED,
                self._state.now,
                error=_UNREACHABLE,
                text=text,
            )
            self._retry(line, now)
            return
        self._join(line, link, now)

    def _existing(self, line: Line, addresses: list[str], now: float) -> Link | None:
        """A connection that a queue's messages may go through, or some of them."""
        known = line.transfer.remote
        guid = line.guid
        if guid == NULL_GUID and known is not None:
            guid = UUID(bytes_le=known)  # others may have connected from the same address
        best = None
        for address in addresses:
            tls = self._board.tls.use(line.host, address, now)
            link = self._board.find(address, guid, now, tls)
            if link is not None and link.is_open:
                return link
            best = best or link
        asker = self._askers.asker_of(line)
        for address in addresses if asker is not None else ():
            assert asker is not None, "otherwise there is no address"
            is_secure = self._board.tls.is_demanded(line.host, address)
            link = self._board.find_asker(address, asker, is_secure=is_secure)
            if link is not None:
                return link
        if line.order_queue_of != NULL_GUID:
            # A sender that has moved; what it only claims would not do.
            known_link = self._board.find_known(line.order_queue_of, line.host)
            return known_link or best
        return best

    def _join(self, line: Line, link: Link, now: float) -> None:
        line.link = link
        line.retry_at = None
        line.transfer.retry_time = 0
        link.queues[line.queue] = None
        self._board.dials.hasten(link, line.kind)
        if link.is_open:
            self._opened(line, link, now)
        else:
            line.enter(OutgoingState.WAITING)
            line.note(ConnectionStatus.IN_PROCESS, self._state.now)

    def _opened(self, line: Line, link: Link, now: float) -> None:
        """[MS-MQQB] 3.1.5.4.2: the session is open."""
        line.enter(OutgoingState.CONNECTED)
        line.failures = 0
        line.tls_failure = ""
        line.transfer.next_hops = (link.address,)
        if link.is_secure and link.is_outgoing:
            self._board.tls.reached(line.host)
        line.note(ConnectionStatus.ESTABLISHED, self._state.now)
        if line.transfer.unordered and line.resend_at is None:
            self._start_resend(line, now)
        self._board.make_ready(link, line.queue)

    def opened(self, link: Link, now: float) -> None:
        """A connection's session is open: its queues may send."""
        for queue in link.queues:
            self._opened(self.line(queue), link, now)
        # Others may wait for who is at the other end.
        for line in self._index.shown_by(link.address, link.remote_guid):
            if line.link is None and self._leads_to(line, link):
                self._schedule.wake(line, now)
                self._state.outbound[line.queue] = None

    def _leads_to(self, line: Line, link: Link) -> bool:
        """[MS-MQQB] 3.1.7.5: whether a line's way goes by who is at the other end of a link.

        The session itself may be what makes the way known, so it is looked for anew.
        """
        if link.address in line.hops and line.guid in (NULL_GUID, link.remote_guid):
            return True
        if line.awaits_asker and line.asker == link.remote_guid:
            return True
        if isinstance(line.name, DirectName):
            return line.order_queue_of == link.remote_guid != NULL_GUID
        found = self._route(line)
        return found is not None and found.guid == link.remote_guid != NULL_GUID

    def established(self, link: Link) -> None:
        """[MS-MQQB] 3.1.5.3.2: the other side has answered."""
        for queue in link.queues:
            self.line(queue).note(ConnectionStatus.ESTABLISH_PACKET_RECEIVED, self._state.now)

    def failed(self, link: Link, status: ConnectionStatus, text: str, now: float) -> None:
        """No connection could be made; the next address may do better."""
        if self._board.is_at(link.address):
            text += (
                ". Somebody has connected from there, and nobody knows whether it is the one that "
                "is meant: trust_inbound in the file of peers lets messages go to it"
            )
        for queue in list(link.queues):
            line = self.line(queue)
            line.note(status, self._state.now, error=_UNREACHABLE, text=text)
            line.tls_failure = text if link.is_secure else ""
            line.link = None
            hops = line.hops
            rest = hops[hops.index(link.address) + 1 :] if link.address in hops else []
            if rest:
                self._reach(line, rest, now)
            else:
                self._retry(line, now)
        link.queues.clear()

    def go_clear(self, link: Link, text: str, now: float) -> None:
        """Nobody is at the TLS port of an address: it is connected to in clear."""
        for queue in list(link.queues):
            line = self.line(queue)
            line.note(ConnectionStatus.IN_PROCESS, self._state.now, text=text)
            line.link = None
            self._reach(line, line.hops[line.hops.index(link.address) :], now)
        link.queues.clear()

    def _retry(self, line: Line, now: float) -> None:
        """[MS-MQQB] 3.1.2.3: the session retry connect timer."""
        line.enter(OutgoingState.DISCONNECTED)
        self._schedule.failed(line, now)

    def lost(self, link: Link, reason: str, now: float) -> None:
        """[MS-MQQB] 3.1.5.9: a session is closed: what is under way through it goes again."""
        link.ready.clear()
        for queue in list(link.queues):
            line = self.line(queue)
            if queue.number in self._state.queues:
                self._engine.departures.rewind(queue)
            line.note(ConnectionStatus.CONNECTION_NOT_READY, self._state.now, text=reason)
            line.link = None
            line.resend_at = None
            if line.has_waiting:
                self._retry(line, now)
            else:
                line.enter(OutgoingState.INACTIVE)
        link.queues.clear()

    @property
    def tls_failures(self) -> tuple[str, ...]:
        """Hosts that messages wait for because TLS with them fails, and why: a sentence each."""
        found = {
            line.host: line.tls_failure
            for line in self._lines.values()
            if line.tls_failure and line.has_waiting
        }
        return tuple(f"{host}: {text}" for host, text in found.items())

    # Sending.

    def pump(self, link: Link, now: float) -> None:
        """[MS-MQQB] 3.1.7.1: sends as much as the window and the other side's reading allow."""
        session = link.session
        assert session is not None, "an open link has one"
        high = self._board.outbox_high_bytes
        while link.is_open:
            room = session.room
            if room <= 0 or link.outbox_bytes + link.unwritten_bytes > high:
                break
            turn = link.ready.next()
            if turn is None:
                break
            queue = turn.queue
            if queue.state is OutgoingState.ON_HOLD or queue.number not in self._state.queues:
                link.ready.remove(queue)
                continue
            link.ready.sent(queue, self._send(link, turn, min(room, BATCH), now))
            link.collect()
        self._board.await_deadline(link)
        if link.collect():
            self._board.dirty[link] = None

    def _send(self, link: Link, turn: Turn, most: int, now: float) -> int:
        queue = turn.queue
        line = self.line(queue)
        session = link.session
        assert session is not None, "an open link has one"
        remote = link.remote_guid.bytes_le
        going = self._engine.departures.next(queue, most, BATCH_BYTES, remote, turn.last_lane)
        traced = []
        # Of messages in order nothing is to be known when the session acknowledges them.
        ordered = Token(queue, 0, is_ordered=True, is_journaled=False)
        is_routed = line.destination != NULL_GUID
        lifetimes = notices.ORDER_LIFETIMES if line.is_order_queue else self._lifetimes
        advertised = self._board.settings.advertised_host
        host = spelling.reachable_host(advertised, link.local_address)
        for lookup_id, waiting, is_recoverable, is_ordered, is_traced in going:
            packet = waiting
            if packet[12:16] in lifetimes:
                packet = notices.for_asker(packet, self._state.source, lifetimes)
            if is_routed and packet[61] >> 2 & 7 == PUBLIC:
                packet = packet[:32] + line.destination.bytes_le + packet[48:]
            if packet[61] & 0xE0 or packet[62] & 0x87:  # AQ, RQ or MQ
                packet = spelling.for_others(self._state, packet, host)
            if is_ordered:
                token = ordered
            else:
                token = Token(queue, lookup_id, is_ordered=False, is_journaled=packet[61] & 2 != 0)
            session.send(
                packet,
                token,
                now,
                is_recoverable=is_recoverable,
                carries_ack=not line.is_order_queue,
            )
            if is_traced:
                traced.append(packet)
        if traced:
            self._engine.departures.trace(traced, link.address)
        if line.resend_at is None and line.transfer.unordered:
            self._start_resend(line, now)
        return len(going)

    def acknowledged(self, tokens: list[Token]) -> None:
        """[MS-MQQB] 3.1.5.5: the other side has these."""
        done: dict[Queue, list[tuple[int, bool]]] = {}
        for queue, lookup_id, is_ordered, is_journaled in tokens:
            if not is_ordered:
                done.setdefault(queue, []).append((lookup_id, is_journaled))
        for queue, messages in done.items():
            self._engine.departures.acknowledged(queue, messages)

    # Time.

    def ordered(self, queue: Queue, now: float) -> None:
        """[MS-MQQB] 3.1.5.6: an OrderAck came: what is left is waited for anew."""
        line = self.line(queue)
        line.transfer.resends = 0
        line.resend_at = None
        if line.transfer.unordered and line.link is not None:
            self._start_resend(line, now)

    def _start_resend(self, line: Line, now: float) -> None:
        """[MS-MQQB] 3.1.2.6: the transactional ack wait timer."""
        table = self._board.settings.resend_s
        transfer = line.transfer
        transfer.resend_interval = int(table[min(transfer.resends, len(table) - 1)])
        transfer.resend_time = self._state.now + transfer.resend_interval
        line.resend_at = now + table[min(transfer.resends, len(table) - 1)]

    @property
    def is_waiting(self) -> bool:
        """Whether anything waits for its time."""
        return bool(self._index.deadlines)

    def next_deadline(self) -> float | None:
        """When `tick` has something to do next."""
        return self._index.deadlines.next()

    def tick(self, now: float) -> None:
        """[MS-MQQB] 3.1.6.1, 3.1.6.5: connects again, and sends again."""
        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP_S
            self._sweep()
        for line in self._index.deadlines.take(now):
            if line.queue.number in self._state.queues:
                self._tick(line, now)

    def _tick(self, line: Line, now: float) -> None:
        if line.retry_at is not None and now >= line.retry_at:
            line.retry_at = None
            self._state.outbound[line.queue] = None
        if line.resend_at is not None and now >= line.resend_at:
            line.transfer.resends += 1
            self._start_resend(line, now)
            if line.transfer.unordered:
                self._engine.departures.resend(line.queue)
            else:
                line.resend_at = None
        line.await_deadline()

    def _sweep(self) -> None:
        """Queues that are gone need no line."""
        gone = [queue for queue in self._lines if queue.number not in self._state.queues]
        for queue in gone:
            self._index.forget(self._lines.pop(queue))
