"""A few queue managers in memory, joined by their exchanges: no sockets, and a clock that jumps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from merq.engine.changes import Result
from merq.engine.limits import Limits
from merq.engine.queue import Queue
from merq.engine.transfer import Transfer
from merq.exchange import Exchange, ExchangeSettings, Link, Peer, Peers
from merq.host import Host
from merq.model.delivered import Delivered
from merq.model.names import DirectName, parse_format_name
from merq.model.queue import QueueSettings
from merq.model.selecting import First
from merq.store.recovery import Identity
from merq.testing import SimulatedDisk
from merq.wire.build import Outline, build_packet
from merq.wire.view import MessageView

START = 1_000_000_000
TURNS_MAX = 2_000
"""So many turns without a rest are a circle."""


@dataclass
class Manager:
    """A queue manager with everything around it.

    Attributes:
        answers: What its engine answered, by request.
        told: What people would read.
        told_facts: The same with what each is about.
    """

    name: str
    address: str
    guid: UUID
    settings: ExchangeSettings = field(default_factory=ExchangeSettings)
    peers: tuple[Peer, ...] = ()
    limits: Limits = field(default_factory=lambda: Limits(disk_reserve_bytes=0))
    disk: SimulatedDisk = field(default_factory=lambda: SimulatedDisk(1))

    def __post_init__(self) -> None:
        self.answers: dict[int, Result] = {}
        self.told: list[str] = []
        self.told_facts: list[tuple[str, Mapping[str, object]]] = []
        self._requests = 0
        self.start(0.0)

    def start(self, now: float) -> None:
        """Opens the store, and begins."""
        identity = Identity(store_id=self.guid, created=1)
        self.host = Host(self.disk, identity, self.name, self.limits)
        self.host.start(START + int(now), self.guid)
        self.host.engine.state.answer_to([self.address])
        self.exchange = Exchange(self.host, self.settings, Peers(self.peers))

    def turn(self, now: float) -> None:
        """Everything that can be done without the others."""
        for _ in range(TURNS_MAX):
            self.exchange.go_on(now)
            answers = self.host.settle()
            for answer in answers:
                if Exchange.is_ours(answer):
                    self.exchange.take(answer, now)
                else:
                    self.answers[answer.request] = answer.result
            if not answers and not self.host.engine.state.outbound:
                return
        raise AssertionError("it never comes to rest")

    def request(self) -> int:
        self._requests += 1
        return self._requests

    # An application.

    def create(self, name: str, **settings: object) -> int:
        request = self.request()
        self.host.engine.create_queue(
            request,
            rf".\private$\{name}",
            QueueSettings(**settings),  # type: ignore[arg-type]
            UUID(int=request),
        )
        self.turn(0.0)
        number = self.answers[request]
        assert isinstance(number, int)
        return number

    def send(self, name: str, *bodies: bytes, transaction: int = 0, **fields: object) -> None:
        """Messages to a format name."""
        found = parse_format_name(name)
        place = found.without_prefix() if isinstance(found, DirectName) else found
        for body in bodies:
            packet = build_packet(
                Outline(destination=place, body=body, **fields)  # type: ignore[arg-type]
            )
            copies = [(found, packet)]
            self.host.engine.send_to(self.request(), copies, transaction)  # type: ignore[arg-type]

    def commit(self, name: str, *bodies: bytes, **fields: object) -> None:
        """The same in a transaction."""
        transaction = self.host.engine.transactions.begin()
        self.send(name, *bodies, transaction=transaction, **fields)
        self.host.engine.transactions.commit(self.request(), transaction)

    def receive(self, number: int) -> bytes:
        """The body of the first message."""
        request = self.request()
        self.host.engine.receive(request, number, First(), wait=False)
        self.host.engine.tick(self.host.engine.state.now)
        for answer in self.host.settle():
            assert not Exchange.is_ours(answer)
            self.answers[answer.request] = answer.result
        found = self.answers[request]
        assert isinstance(found, Delivered), found
        return MessageView(found.packet).body

    # Looking.

    def messages(self, number: int) -> list[MessageView]:
        state = self.host.engine.state
        return [MessageView(state.stored(row)[1]) for row in state.queues[number].positions]

    def bodies(self, number: int) -> list[bytes]:
        return [view.body for view in self.messages(number)]

    def outgoing(self, name: str) -> Queue:
        """The outgoing queue to a format name."""
        found = self.host.engine.state.find_outgoing(name)
        assert found is not None, [
            each.properties.path_name for each in self.host.engine.outgoing_queues()
        ]
        return found

    def transfer(self, name: str) -> Transfer:
        found = self.outgoing(name).transfer
        assert found is not None
        return found

    def waiting(self, name: str) -> list[bytes]:
        return self.bodies(self.outgoing(name).number)

    def history(self, name: str) -> list[str]:
        """The statuses of the connection history."""
        return [each.status for each in self.transfer(name).history]


class Town:
    """Queue managers, the wires between them, and the time.

    Attributes:
        now: Seconds since the beginning.
        names: Addresses by host name.
        down: Addresses where nobody answers.
        deaf: Addresses that get nothing that is sent to them, though connections are made.
        dialled: Addresses, in the order of dialling.
        said_addresses: What the sockets of a queue manager say that its address is, if not that.
    """

    def __init__(self, *managers: Manager) -> None:
        self.managers = {each.address: each for each in managers}
        self.now = 0.0
        self.names: dict[str, list[str]] = {}
        self.down: set[str] = set()
        self.deaf: set[str] = set()
        self.dialled: list[str] = []
        self.said_addresses: dict[str, str] = {}
        self._ends: dict[Link, tuple[Manager, Link]] = {}

    def run(self) -> None:
        """Until nobody has anything to do before time goes on."""
        for _ in range(TURNS_MAX):
            if not any(self._step(each) for each in list(self.managers.values())):
                return
        raise AssertionError("the town never comes to rest")

    def _step(self, manager: Manager) -> bool:
        manager.turn(self.now)
        exchange = manager.exchange
        busy = False
        for host in exchange.take_lookups():
            found = self.names.get(host, [])
            exchange.looked_up(host, found, self.now, "" if found else "nobody knows it")
            busy = True
        for link in exchange.take_dialing():
            self._dial(manager, link)
            busy = True
        for link in list(exchange.dirty):
            exchange.dirty.pop(link, None)
            busy |= self._write(manager, link)
        told = exchange.take_told()
        manager.told += [text for text, _ in told]
        manager.told_facts += told
        return busy

    def _dial(self, manager: Manager, link: Link) -> None:
        self.dialled.append(link.address)
        other = self.managers.get(link.address)
        end = None
        if other is not None and link.address not in self.down:
            end = other.exchange.accepted(manager.address, self.now)
        if other is None or end is None:
            manager.exchange.dial_failed(link, "nobody answers", self.now)
            return
        self._ends[link] = (other, end)
        self._ends[end] = (manager, link)
        for each, side in ((link, manager), (end, other)):
            each.local_address = self.said_addresses.get(side.address, side.address)
        manager.exchange.connected(link, self.now)

    def _write(self, manager: Manager, link: Link) -> bool:
        if link not in self._ends:
            if link.closing and not link.is_lost:
                manager.exchange.lost(link, link.closing, self.now)
            return True
        other, end = self._ends[link]
        link.collect()
        chunks = link.take_outbox()
        if other.address not in self.deaf:
            for chunk in chunks:
                other.exchange.received(end, chunk, self.now)
        manager.exchange.written(link, self.now)
        if link.closing:
            self._hang_up(link, link.closing)
        return bool(chunks) or bool(link.closing)

    def _hang_up(self, link: Link, reason: str) -> None:
        other, end = self._ends.pop(link)
        manager, _ = self._ends.pop(end)
        manager.exchange.lost(link, reason, self.now)
        other.exchange.lost(end, "the other side has closed the connection", self.now)

    def links(self) -> int:
        """How many connections there are."""
        return len(self._ends) // 2

    def cut(self) -> None:
        """All connections are gone."""
        for link in list(self._ends):
            if link in self._ends:
                self._hang_up(link, "the wire was cut")

    def wait(self, seconds: float, step: float = 0.1) -> None:
        """Time goes on, in steps, and everything that is due happens."""
        end = self.now + seconds
        while self.now < end - 1e-9:
            self.now = round(min(self.now + step, end), 6)
            for manager in self.managers.values():
                manager.host.engine.tick(START + int(self.now))
                manager.exchange.tick(self.now)
            self.run()

    def restart(self, manager: Manager) -> None:
        """A process is killed and starts again."""
        for link, (_, end) in list(self._ends.items()):
            if link in self._ends and self._ends[end][0] is manager:
                self._hang_up(link, "killed")
        manager.host.close()
        manager.disk = manager.disk.crash(kind="kill")
        manager.start(self.now)
