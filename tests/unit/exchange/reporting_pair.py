"""Two queue managers in memory, each with a desk for applications, and a cable between them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from merq.engine.limits import Limits
from merq.exchange import Exchange, ExchangeSettings, Link
from merq.host import Desk, Hall, Host, Pending
from merq.model.queue import QueueSettings
from merq.protocol.application.reports import Result, TransferReport
from merq.protocol.application.requests import (
    Begin,
    CreateQueue,
    DescribeTransfer,
    End,
    Ending,
    Family,
    ListQueues,
    Request,
    SendTo,
)
from merq.store.recovery import Identity
from merq.testing.disk import SimulatedDisk
from merq.testing.world import SMALL
from merq.wire.build import Outline, build_packet

START = 1_700_000_000
TURNS_MAX = 1000


class Side:
    """A queue manager, its exchange, and one application."""

    def __init__(self, name: str, address: str, number: int) -> None:
        self.name = name
        self.address = address
        disk = SimulatedDisk(number)
        disk.lock()
        fresh = Identity(store_id=UUID(int=number), created=START)
        self.host = Host(disk, fresh, name, Limits(disk_reserve_bytes=0), SMALL)
        self.host.start(START, UUID(int=number << 64))
        self.engine = self.host.engine
        self.engine.state.answer_to([address])
        self.exchange = Exchange(self.host, ExchangeSettings())
        self.hall = Hall("test", START, sessions=self.exchange)
        self.desk = Desk(self.host, self.hall)
        self.guid = self.engine.state.guid
        self._count = 0
        self._answers: dict[int, Result] = {}

    def ask(self, request: Request, now: float = 0.0) -> Result:
        """Asks, and lets the disk do what it has to."""
        self._count += 1
        reply = self.desk.perform(self._count, request)
        if not isinstance(reply, Pending):
            return reply
        self.turn(now)
        return self._answers.pop(self._count)

    def turn(self, now: float) -> None:
        self.exchange.go_on(now)
        for _ in range(TURNS_MAX):
            answers = self.host.settle()
            if not answers and not self.engine.state.outbound:
                return
            for each in answers:
                if self.exchange.is_ours(each):
                    self.exchange.take(each, now)
                else:
                    self.desk.settled(each.request, each.result)
                    self._answers[each.request] = each.result
            self.exchange.go_on(now)
        raise AssertionError("it does not come to rest")

    def queue(self, name: str, *, transactional: bool = False) -> int:
        settings = QueueSettings(transactional=transactional)
        self._count += 1
        made = self.ask(CreateQueue(rf".\private$\{name}", settings, UUID(int=self._count)))
        assert isinstance(made, int)
        return made

    def send(self, name: str, *bodies: bytes, is_together: bool = False, **outline: Any) -> bytes:
        """Messages by name, in one transaction or in none; gives the first one's id."""
        transaction = 0
        if is_together:
            transaction = self._count + 1_000
            self.ask(Begin(transaction))
        place = name.removeprefix("DIRECT=")
        ids = []
        for body in bodies:
            packet = build_packet(Outline(destination=place, body=body, **outline))
            ids.append(self.ask(SendTo(((name, packet),), transaction)))
        if transaction:
            self.ask(End(transaction, Ending.COMMIT))
        assert isinstance(ids[0], bytes)
        return ids[0]

    def transfer(self) -> TransferReport:
        """How far the only outgoing queue is."""
        found = self.ask(ListQueues(Family.OUTGOING))
        assert isinstance(found, list)
        (report,) = found
        told = self.ask(DescribeTransfer(report.properties.number))  # type: ignore[union-attr]
        assert isinstance(told, TransferReport)
        return told


class Pair:
    """Two of them; `now` goes on when somebody waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self.here = Side("here", "10.0.0.1", 1)
        self.there = Side("there", "10.0.0.2", 2)
        self.sides = {each.address: each for each in (self.here, self.there)}
        self._others: dict[Link, tuple[Side, Link]] = {}
        self.is_cut = False

    def run(self) -> None:
        """Until nobody has anything more to say."""
        for _ in range(TURNS_MAX):
            busy = [self._turn(side) for side in self.sides.values()]
            if not any(busy):
                return
        raise AssertionError("they do not come to rest")

    def wait(self, seconds: float) -> None:
        self.now += seconds
        for side in self.sides.values():
            side.exchange.tick(self.now)
            side.engine.tick(START + int(self.now))
        self.run()

    def _turn(self, side: Side) -> bool:
        side.turn(self.now)
        is_busy = False
        for link in side.exchange.take_dialing():
            is_busy = True
            self._dial(side, link)
        for link in list(side.exchange.dirty):
            del side.exchange.dirty[link]
            link.collect()
            is_busy = self._carry(side, link) or is_busy
        return is_busy

    def _dial(self, side: Side, link: Link) -> None:
        other = self.sides.get(link.address)
        far = None
        if other is not None and not self.is_cut:
            far = other.exchange.accepted(side.address, self.now)
        if other is None or far is None:
            side.exchange.dial_failed(link, "nobody answers", self.now)
            return
        self._others[link], self._others[far] = (other, far), (side, link)
        side.exchange.connected(link, self.now)

    def _carry(self, side: Side, link: Link) -> bool:
        other, far = self._others[link]
        data = link.take_outbox()
        if not self.is_cut:
            for each in data:
                other.exchange.received(far, each, self.now)
        if link.closing and not link.is_lost:
            side.exchange.lost(link, "", self.now)
            other.exchange.lost(far, "closed by the other side", self.now)
        return bool(data)

    def cut(self) -> None:
        """The cable is cut; both sides notice."""
        self.is_cut = True
        for link, (other, far) in list(self._others.items()):
            side = self._others[far][0]
            side.exchange.lost(link, "cut", self.now)
            other.exchange.lost(far, "cut", self.now)
        self.run()
