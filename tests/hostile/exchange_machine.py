"""A queue manager in memory to which strangers say whatever bytes choose, packet by packet.

Several of them, under each other's identifiers and the queue manager's own, open sessions, send
messages and acknowledgments of any kind, go, and come again; the clock jumps, the power fails, and
an application sends, receives and purges in between. After every step:

* nothing was raised;
* no table is larger than its limit, all of which are low here;
* what was acknowledged as recoverable, or told to be sent, is on the disk after the power failed;
* an application can still send to itself and receive.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import unpack_from
from typing import Any, Final
from uuid import UUID

from hostile import stranger_packets as packets
from hostile.choosing import Broken, Choices
from hostile.lowering import lowered
from kit.exchange import START, Manager
from merq.engine.limits import Limits
from merq.errors import MessageQueueError
from merq.exchange import Exchange, ExchangeSettings, Link, Peer, Peers
from merq.host import Host
from merq.model.selecting import First
from merq.protocol.binary.settings import SessionSettings
from merq.store.recovery import Identity
from merq.testing.world import SMALL

OURS: Final = UUID(int=1)
FRIEND: Final = UUID(int=2)
GUIDS: Final = (FRIEND, OURS, UUID(int=3), UUID(int=4), UUID(int=0))
HERE, THERE = "10.0.0.1", "10.0.0.2"
ADDRESSES: Final = (THERE, "10.0.0.3", "10.0.0.4", HERE)
CLOCK_MAX: Final = 0xFFFFFFFF - 90_000
"""The last second of 2106 but a day: no message can tell a later time."""

PLAIN, STRICT, FULL = "plain", "strict", "full"
LINKS_MAX: Final = 6
LINKS_PER_PEER_MAX: Final = 3
HISTORY_SIZE: Final = 100

LOWERED: Final[Mapping[tuple[str, str], int]] = {
    ("merq.engine.incoming", "SEQUENCES_MAX"): 6,
    ("merq.engine.arriving", "NAMES_MAX"): 4,
    ("merq.engine.history", "HISTORY_SOURCES_MAX"): 3,
    ("merq.engine.incoming", "ENDED_MAX"): 4,
    ("merq.engine.incoming", "_KEYS_MAX"): 4,
    ("merq.engine.departing", "SEQUENCES_MAX"): 4,
    ("merq.engine.outgoing", "OUTGOING_MAX"): 10,
    ("merq.engine.incoming", "PEERS_PER_SENDER_MAX"): 2,
    ("merq.engine.order_queues", "SENDERS_PER_NETWORK_MAX"): 2,
    ("merq.engine.order_queues", "ORDER_QUEUES_MAX"): 3,
    ("merq.exchange.routes", "LEARNED_MAX"): 2,
    ("merq.engine.tracing", "PLACES_MAX"): 2,
}
"""Limits that are low enough to be reached within an input, where they are looked at."""

SIZES: Final = (0, 10, 1000, 70_000)
SPARE_BYTES: Final = (0, 4, 40, 100, 400)
"""What the largest messages leave of the size that a packet may have."""

TIMES_S: Final = (0.1, 1.0, 11.0, 25.0, 65.0, 400.0, 4000.0, 100_000.0, 40_000_000.0)
SEQUENCES: Final = (1 << 32, START << 32, (START << 32) + 7, (1 << 63) + 5, (1 << 64) - 1, 0)
LIFETIMES: Final = (packets.FOREVER, 0, 1, 30, packets.FOREVER - 1)
CLASSES: Final = (0, 1, 2, 0x4000, 0x8000, 0xC001, 0xC000, 0x8004, 0x00FF, 0xE1FF, 0x7FFF)


class SmallManager(Manager):
    """A queue manager with a small log, that starts quickly."""

    def start(self, now: float) -> None:
        """Opens the store, and begins."""
        identity = Identity(store_id=self.guid, created=1)
        self.host = Host(self.disk, identity, self.name, self.limits, SMALL)
        self.host.start(START + int(now), self.guid)
        self.host.engine.state.answer_to([self.address])
        self.exchange = Exchange(self.host, self.settings, Peers(self.peers))


class StrangeSession:
    """A connection of somebody, and what of it the queue manager said that is on its disk."""

    def __init__(self, link: Link, guid: UUID) -> None:
        self.link = link
        self.guid = guid
        self.sent = 0
        self.recoverable: list[tuple[bytes, int]] = []
        self.stored: set[tuple[bytes, int]] = set()
        self._unread = b""

    def hear(self) -> None:
        """Reads what was said; acknowledgments tell what is on the disk."""
        self.link.collect()
        self._unread += b"".join(self.link.take_outbox())
        while len(self._unread) >= 16:
            size: int = unpack_from("<I", self._unread, 8)[0]
            is_internal, has_header = self._unread[2] & 8, self._unread[2] & 0x10
            at = size if has_header and not is_internal else 0
            if is_internal and size == packets.SESSION_ACK_BYTES:
                at = 20
            size += 16 if has_header and not is_internal else 0
            if len(self._unread) < size:
                return
            if (at and self._unread[18] & 0x0F == 1) or at == size - 16:
                self._acknowledged(at)
            self._unread = self._unread[size:]

    def _acknowledged(self, at: int) -> None:
        _, first, flags = unpack_from("<HHI", self._unread, at)
        if first or flags:
            stored = {first + bit for bit in range(32) if (flags | 1) >> bit & 1}
            self.stored |= {
                each for number, each in enumerate(self.recoverable, 1) if number in stored
            }


class ExchangeMachine:
    """One queue manager, its strangers and an application.

    Args:
        choices: What happens.
    """

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self._now = 0.0
        self._clock = START
        self._sessions: list[StrangeSession] = []
        self._ordinal = 0
        self._bodies = 0
        self.kept: set[tuple[bytes, int]] = set()
        self.told: set[bytes] = set()
        settings = ExchangeSettings(
            session=SessionSettings(window=8, merq_window=8, unhandled_bytes_max=1 << 20),
            links_max=LINKS_MAX,
            links_per_peer_max=LINKS_PER_PEER_MAX,
            history_size=HISTORY_SIZE,
            insecure_nacks=choices.flag(),
            forwards=choices.flag(),
        )
        self._manager = SmallManager(
            "m1",
            HERE,
            OURS,
            settings,
            peers=(Peer(name="m2", guid=FRIEND, host=THERE),),
            limits=Limits(disk_reserve_bytes=0, machine_quota=20_000),
        )
        self._numbers = {
            PLAIN: self._manager.create(PLAIN),
            STRICT: self._manager.create(STRICT, transactional=True),
            FULL: self._manager.create(FULL, quota=1, journaling=True),
        }

    def run(self) -> None:
        """Does what the bytes say.

        Raises:
            Broken: Something that must hold does not.
        """
        steps = (
            self._connect,
            self._open,
            self._message,
            self._message,
            self._message,
            self._acknowledge,
            self._answer,
            self._damage,
            self._leave,
            self._wait,
            self._restart,
            self._send_away,
            self._send_here,
            self._receive,
            self._purge,
            self._dial,
        )
        self._choices.play(steps, self._check)
        self._check_application()
        self._restart(is_power=True)
        self._check_application()

    def _check(self) -> None:
        self._settle()
        self._check_tables()

    # What strangers do.

    def _session(self) -> StrangeSession | None:
        return self._choices.one(self._sessions) if self._sessions else None

    def _connect(self) -> None:
        link = self._manager.exchange.accepted(self._choices.one(ADDRESSES), self._now)
        if link is not None:
            self._sessions.append(StrangeSession(link, self._choices.one(GUIDS)))

    def _open(self) -> None:
        if not self._sessions or self._choices.flag():
            self._connect()
        session = self._session()
        if session is None:
            return
        server = OURS if self._choices.flag(rarely=True) else UUID(int=0)
        self._say(session, packets.establish(session.guid.bytes_le, server.bytes_le))
        window = self._choices.one((64, 1, 0xFFFF, 0))
        self._say(session, packets.parameters(window, ack_ms=self._choices.one((20_000, 0, 1))))

    def _say(self, session: StrangeSession, data: bytes) -> None:
        self._manager.exchange.received(session.link, data, self._now)
        self._settle()

    def _message(self) -> None:
        session = self._session()
        if session is None:
            self._open()
            return
        choices = self._choices
        source = session.guid if not choices.flag(rarely=True) else choices.one(GUIDS)
        self._ordinal += not choices.flag(rarely=True)
        place = self._place() if choices.flag() else None
        recoverable = choices.flag()
        what: dict[str, Any] = {
            "label": "x" * choices.below(255) if choices.flag(rarely=True) else "",
            "admin": self._name() if choices.flag() else "",
            "response": self._name() if choices.flag(rarely=True) else "",
            "asked": choices.below(16),
            "recoverable": recoverable,
            "journal": choices.flag(rarely=True),
            "dead_letter": choices.flag(),
            "transaction": place,
            "priority": choices.below(8),
            "message_class": choices.one(CLASSES) if choices.flag(rarely=True) else 0,
            "time_to_reach": choices.one(LIFETIMES) if choices.flag() else packets.FOREVER,
            "time_to_receive": choices.one(LIFETIMES) if choices.flag() else packets.FOREVER,
            "sent_time": choices.one((START, 0, packets.FOREVER, 1_000)),
            "copies_to": self._copies(),
        }
        name = self._destination()
        packet = packets.message(source.bytes_le, self._ordinal, name, body=self._body(), **what)
        if choices.flag(rarely=True):
            room = packets.PACKET_BYTES_MAX - len(packet) - choices.one(SPARE_BYTES)
            packet = packets.message(source.bytes_le, self._ordinal, name, body=bytes(room), **what)
        if recoverable or place is not None:
            session.recoverable.append((source.bytes_le, self._ordinal))
        self._say(session, packet)

    def _body(self) -> bytes:
        return bytes(self._choices.one(SIZES) if self._choices.flag(rarely=True) else 10)

    def _place(self) -> packets.Transaction:
        choices = self._choices
        number = choices.one((1, 2, 3, 0xFFFFFFFF, 0))
        previous = number - 1 if number and not choices.flag(rarely=True) else 0
        return packets.Transaction(self._sequence(), number, previous)

    def _sequence(self) -> int:
        """One that somebody invented, or one of the queue manager's own."""
        if self._choices.flag():
            state = self._manager.host.engine.state
            own = [each.transfer.sequence_id for each in state.queues.values() if each.transfer]
            if own:
                return self._choices.one(own)
        return self._choices.one(SEQUENCES)

    def _destination(self) -> str | int | bytes:
        choices = self._choices
        queue = choices.one((PLAIN, STRICT, FULL, "nothing", "order_queue$", "plain;sub"))
        found: tuple[str | int | bytes, ...] = (
            rf"TCP:{HERE}\private$\{queue}",
            rf"OS:m1\private$\{queue}",
            self._numbers.get(queue, 4),
            rf"TCP:{THERE}\private$\{queue}",
            rf"OS:m1\{queue}",
            FRIEND.bytes_le,
            r"OS:m1\system$;DEADXACT",
        )
        return choices.one(found)

    def _name(self) -> str:
        choices = self._choices
        host = choices.one((f"TCP:{HERE}", f"TCP:{THERE}", "OS:m1", "OS:nobody"))
        if choices.flag():
            host = f"TCP:10.1.{choices.below(4)}.{choices.below(250)}"
        return rf"{host}\private$\{choices.one((PLAIN, STRICT, 'told', 'order_queue$'))}"

    def _copies(self) -> list[bytes]:
        if not self._choices.flag(rarely=True):
            return []
        names = [packets.direct_element(self._name()) for _ in range(self._choices.below(4))]
        return names or [packets.private_element(FRIEND.bytes_le, 5)] * self._choices.below(50)

    def _acknowledge(self) -> None:
        """Order and final acknowledgments, of sequences that are there or not."""
        session = self._session()
        if session is None:
            return
        choices = self._choices
        self._ordinal += 1
        source = choices.one(GUIDS).bytes_le
        number = choices.one((1, 2, 1000, 0xFFFFFFFF, 0))
        host = choices.one((f"TCP:{HERE}", "OS:m1", f"TCP:{THERE}"))
        number = max(number, 1)
        if choices.flag():
            packet = packets.order_ack(source, self._ordinal, self._sequence(), number, host)
        else:
            packet = packets.final_ack(
                source,
                self._ordinal,
                self._sequence(),
                number,
                host,
                of=choices.one(GUIDS).bytes_le,
                of_ordinal=choices.below(20),
                message_class=choices.one(CLASSES),
            )
        self._say(session, packet)

    def _answer(self) -> None:
        """A SessionAck, honest or not."""
        session = self._session()
        if session is not None:
            came, recoverable = self._choices.below(5), self._choices.below(5)
            packet = packets.session_ack(came, session.sent, recoverable=recoverable)
            self._say(session, packet)

    def _damage(self) -> None:
        """A packet with some other bytes in it, or only bytes."""
        session = self._session()
        if session is None:
            return
        packet = bytearray(
            packets.message(session.guid.bytes_le, 1, self._destination(), admin=self._name())
        )
        for _ in range(self._choices.below(4)):
            packet[self._choices.below(len(packet))] = self._choices.byte()
        packet += self._choices.some_bytes(60)
        self._say(session, bytes(packet[: self._choices.below(len(packet)) or len(packet)]))

    def _leave(self) -> None:
        session = self._session()
        if session is not None:
            self._manager.exchange.lost(session.link, "cut", self._now)

    def _dial(self) -> None:
        """What the queue manager wants to call answers, or not; names are found, or not."""
        exchange = self._manager.exchange
        for host in exchange.take_lookups():
            found = [self._choices.one(ADDRESSES)] if self._choices.flag() else []
            exchange.looked_up(host, found, self._now, "" if found else "nobody knows it")
        for link in exchange.take_dialing():
            if self._choices.flag():
                exchange.dial_failed(link, "nobody answers", self._now)
                continue
            exchange.connected(link, self._now)
            session = StrangeSession(link, self._choices.one(GUIDS))
            self._sessions.append(session)
            answer = packets.establish(OURS.bytes_le, session.guid.bytes_le)
            self._say(session, answer)
            self._say(session, packets.parameters())

    # What time and power do.

    def _wait(self) -> None:
        step = self._choices.one(TIMES_S)
        self._now += step
        self._clock = min(self._clock + int(step), CLOCK_MAX)
        if self._choices.flag(rarely=True):
            self._clock = self._choices.one((START - 400_000_000, 0, START, CLOCK_MAX))
        self._manager.host.engine.tick(self._clock)
        self._manager.exchange.tick(self._now)

    def _restart(self, *, is_power: bool | None = None) -> None:
        """The process is killed, or the power fails: what was promised is there afterwards."""
        self._settle()
        promised = self._present() & self.kept
        told = {body for body in self.told if body in self._manager.bodies(self._numbers[PLAIN])}
        manager = self._manager
        kind = "power" if (self._choices.flag() if is_power is None else is_power) else "kill"
        manager.host.close()
        manager.disk = manager.disk.crash(kind=kind)  # type: ignore[arg-type]
        manager.start(self._clock - START)
        self._sessions.clear()
        self._settle()
        lost = promised - self._present()
        if lost:
            raise Broken(f"{sorted(lost)} were acknowledged, and are gone after a {kind} failure")
        gone = told - set(manager.bodies(self._numbers[PLAIN]))
        if gone:
            raise Broken(f"{sorted(gone)} were sent, and are gone after a {kind} failure")
        self.told = told

    def _present(self) -> set[tuple[bytes, int]]:
        """Recoverable messages in the queues here, by sender and number."""
        found: set[tuple[bytes, int]] = set()
        for number in self._numbers.values():
            for view in self._manager.messages(number):
                if view.delivery_mode:
                    found.add((view.packet[16:32], view.message_ordinal))
        return found

    # What an application does.

    def _send_away(self) -> None:
        name = f"DIRECT={self._name()}"
        send = self._manager.commit if self._choices.flag() else self._manager.send
        try:
            send(
                name,
                b"away",
                recoverable=self._choices.flag(),
                negative_journaling=self._choices.flag(),
                time_to_reach_queue=self._choices.one((packets.FOREVER, 1, 0)),
            )
        except MessageQueueError:
            return

    def _send_here(self) -> None:
        self._bodies += 1
        body = b"here %d" % self._bodies
        manager = self._manager
        try:
            manager.send(rf"DIRECT=OS:m1\private$\{PLAIN}", body, recoverable=True)
        except MessageQueueError:
            return
        request = manager._requests
        self._settle()
        if isinstance(manager.answers.get(request), bytes | list | tuple):
            self.told.add(body)

    def _receive(self) -> None:
        manager = self._manager
        number = self._choices.one(list(self._numbers.values()))
        request = manager.request()
        try:
            manager.host.engine.receive(request, number, First(), wait=False)
        except MessageQueueError:
            return

    def _purge(self) -> None:
        state, manager = self._manager.host.engine.state, self._manager
        queues = [each for each in state.queues.values() if not each.closing]
        queue = self._choices.one(queues)
        try:
            manager.host.engine.purge(manager.request(), queue.properties.number)
        except MessageQueueError:
            return

    # What must hold.

    def _settle(self) -> None:
        """Everything that can be done is, and what is said to strangers is heard by most."""
        manager = self._manager
        manager.turn(self._now)
        for session in list(self._sessions):
            link = session.link
            manager.exchange.dirty.pop(link, None)
            session.hear()
            self.kept |= session.stored
            if link.closing and not link.is_lost:
                manager.exchange.lost(link, link.closing, self._now)
            elif not link.is_lost:
                manager.exchange.written(link, self._now)
            if link.is_lost:
                self._sessions.remove(session)
        manager.turn(self._now)
        manager.exchange.take_told()

    def _check_tables(self) -> None:
        state, exchange = self._manager.host.engine.state, self._manager.exchange
        queues = self._manager.host.engine.outgoing_queues()
        order_queues_max = LOWERED["merq.engine.order_queues", "ORDER_QUEUES_MAX"]
        for what, size, most in (
            ("sequences", len(state.sequences), LOWERED["merq.engine.incoming", "SEQUENCES_MAX"]),
            ("queues of OrderAcks", len(state.order_queues), order_queues_max),
            ("queues of acknowledgments", len(state.admin_queues), order_queues_max),
            ("outgoing queues", len(list(queues)), _outgoing_max()),
            ("links", len(exchange), LINKS_MAX + len(self._sessions)),
        ):
            if size > most:
                raise Broken(f"{size} {what}; {most} are the most")

    def _check_application(self) -> None:
        """An application can send to itself and receive, unless strangers used up the quota."""
        self._settle()
        manager, number = self._manager, self._numbers[PLAIN]
        if manager.host.engine.state.has_room(1000):
            before = len(manager.bodies(number))
            manager.send(rf"DIRECT=OS:m1\private$\{PLAIN}", b"still", recoverable=True)
            self._settle()
            if len(manager.bodies(number)) != before + 1:
                raise Broken("an application can no longer send to itself")
        if manager.bodies(number):
            manager.receive(number)


def _outgoing_max() -> int:
    # The first number is taken too.
    return LOWERED["merq.engine.outgoing", "OUTGOING_MAX"] + 1


def one_input(data: bytes) -> None:
    """Everything that must hold for these bytes."""
    with lowered(LOWERED):
        ExchangeMachine(Choices(data)).run()
