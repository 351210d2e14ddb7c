"""Queue managers that talk to each other, all in one thread.

`SimulatedManagers` is a network of computers, each a `SimulatedMachine`: a queue manager on a disk
that tears, and an exchange that is driven as the service's event loop drives it. One step is one
thing that happens somewhere, chosen by the seed; time goes on when it is told to, or by `run`.

    world = SimulatedManagers(seed=7, storm=Storm(cut=0.01))
    here, there = world.add("here"), world.add("there")
    here.ask(lambda request: here.engine.send_to(request, [(name, packet)]))
    world.run(60.0)                          # whatever happens in a minute
    there.crash("power")                     # it stays down until it is started
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from random import Random
from typing import Any, Final, TypeAlias
from uuid import UUID

from merq.engine.changes import Answer
from merq.engine.limits import Limits
from merq.engine.manager import QueueManager
from merq.errors import StoreFailed, StoreFull
from merq.exchange import Exchange, ExchangeSettings
from merq.exchange.links import Link
from merq.exchange.routes import Peer, Peers
from merq.host import Host, HostSettings
from merq.store.log import Syncing
from merq.store.recovery import Identity
from merq.testing.disk import PowerCut, SimulatedDisk
from merq.testing.driver import WaitsForEver
from merq.testing.wires import STILL, Computer, End, Storm, Wire
from merq.testing.world import SMALL, START, Crash

STEPS_MAX: Final = 100_000
"""So many steps in a row in which no time passes are a fault of their own."""

ROUNDS_MAX: Final = 100_000
"""So often the clock is put on in one `run`."""

Step: TypeAlias = tuple[Callable[..., None], object]


class SimulatedMachine:
    """A computer with a queue manager.

    Attributes:
        name: Its host name.
        addresses: Its addresses, the first of which others see.
        guid: Its queue manager's identifier.
        settings: How messages travel.
        peers: The queue managers that its settings know; read when it starts.
        offset_s: How far its wall clock is from the world's; may be altered at any time.
        lives: How often it was started.
        listener: Is given every answer that is not the exchange's.
        on_crash: Called when it goes down, before anything is lost.
        on_step: Called when anything has happened on it.
        told: What its exchange wanted people to know, since the world began.
    """

    def __init__(
        self,
        world: SimulatedManagers,
        name: str,
        addresses: tuple[str, ...],
        settings: ExchangeSettings,
        limits: Limits,
    ) -> None:
        self.world = world
        self.name = name
        self.addresses = addresses
        self.settings = settings
        self.guid = world.new_guid()
        self.peers: tuple[Peer, ...] = ()
        self.offset_s = 0.0
        self.lives = 0
        self.is_due = False
        self.listener: Callable[[Answer], None] = lambda _: None
        self.on_crash: Callable[[], None] = lambda: None
        self.on_step: Callable[[], None] = lambda: None
        self.told: list[tuple[str, Mapping[str, object]]] = []
        self.ends: dict[Link, End] = {}
        self.disk = SimulatedDisk(world.chance.getrandbits(32))
        self._limits = limits
        self._host: Host | None = None
        self._exchange: Exchange | None = None
        self._syncing: Syncing | None = None
        self._requests = 0

    # What there is.

    @property
    def is_up(self) -> bool:
        """Whether the queue manager runs."""
        return self._exchange is not None

    @property
    def host(self) -> Host:
        """The queue manager on its disk."""
        assert self._host is not None, f"{self.name} is up"
        return self._host

    @property
    def exchange(self) -> Exchange:
        """Its connections."""
        assert self._exchange is not None, f"{self.name} is up"
        return self._exchange

    @property
    def engine(self) -> QueueManager:
        """The queue manager."""
        return self.host.engine

    @property
    def syncing(self) -> Syncing | None:
        """The sync that is under way."""
        return self._syncing

    @property
    def wall(self) -> int:
        """What its clock shows, in seconds since 1970."""
        return int(START + self.world.now + self.offset_s)

    # Life and death.

    def start(self) -> None:
        """It starts on what the disk has; a crash may interrupt even that."""
        assert not self.is_up, f"{self.name} is down"
        self.disk.lock()
        try:
            identity = Identity(store_id=self.guid, created=self.wall)
            host = Host(self.disk, identity, self.name, self._limits, self.world.host_settings)
            host.engine.state.answer_to(self.addresses)
            host.start(self.wall, self.world.new_guid())
        except PowerCut:
            self.disk = self.disk.crash("power")
            return
        except (StoreFull, StoreFailed):
            self.disk = self.disk.crash("kill")
            self.disk.capacity = None  # somebody has made room
            return
        self._host = host
        self._exchange = Exchange(host, self.settings, Peers(self.peers))
        self.lives += 1
        self.is_due = True

    def crash(self, kind: Crash) -> None:
        """It stops without warning.

        Args:
            kind: "power": what was not synced is lost, kept or torn. "kill": the process was killed
                and the computer went on; all that was written is there.
        """
        if not self.is_up:
            return
        self.on_crash()
        self._take_told()
        assert not self.host.set_aside_count, f"{self.name} could not handle something"
        self.disk = self.disk.crash(kind)
        self._host = self._exchange = self._syncing = None
        self.is_due = False
        world = self.world
        for end in self.ends.values():
            # Whose power is gone says no goodbye.
            late = world.chance.random() < world.storm.half_open and kind == "power"
            until = world.now + world.chance.random() * world.storm.half_open_s if late else 0.0
            end.leave(world.chance, until)
        self.ends.clear()
        world.tidy()

    def guarded(self, doing: Callable[..., object], *arguments: object) -> None:
        """Does something that may be interrupted by a crash of this machine."""
        self.is_due = True
        try:
            doing(*arguments)
        except PowerCut:
            self.crash("power")
        except StoreFailed:
            self.crash("kill")  # who cannot trust its disk stops
        else:
            self.on_step()

    # What applications do.

    def ask(self, asking: Callable[[int], object]) -> int:
        """Asks the queue manager for something; the answer goes to the listener.

        Gives the request's number, by which the answer is known.

        Raises:
            MessageQueueError: It is refused.
        """
        self._requests += 1
        request = self._requests
        self.guarded(asking, request)
        return request

    # As an event loop.

    def tick(self) -> None:
        """The time was put on: what is due happens."""
        host, now = self.host, self.world.now
        if self.wall != host.engine.state.now:
            host.engine.tick(self.wall)
        host.watch_resources()
        due = self.exchange.next_deadline()
        if due is not None and now >= due:
            self.exchange.tick(now)

    def turn(self) -> None:
        """One turn of its event loop."""
        self.is_due = False
        host = self.host
        self.exchange.go_on(self.world.now)
        again = self._take(host.perform())
        if self._syncing is None:
            self._syncing = host.begin_sync()
        if host.needs_upkeep and self._syncing is None:
            self._keep_up()
        self._flush()
        self.is_due = self.is_due or again

    def end_sync(self) -> None:
        """A sync that is under way ends."""
        syncing, self._syncing = self._syncing, None
        if syncing is not None:
            syncing.run()
            self._take(self.host.end_sync(syncing))

    def checkpoint(self) -> None:
        """Writes a checkpoint, unless a sync is under way; otherwise they come as the log grows."""
        if self._syncing is None:
            self._keep_up()

    def _keep_up(self) -> None:
        with suppress(StoreFull):  # another time
            writing, answers = self.host.begin_checkpoint()
            self._take(answers)
            if writing is not None:
                writing.run()
                self.host.end_checkpoint(writing)

    def _take(self, answers: list[Answer]) -> bool:
        is_ours = False
        for answer in answers:
            if Exchange.is_ours(answer):
                is_ours = True
                self.exchange.take(answer, self.world.now)
            else:
                self.listener(answer)
        return is_ours

    def _flush(self) -> None:
        """Writes, closes, dials and asks for names, as the exchange wants it."""
        exchange, world = self.exchange, self.world
        for link in exchange.take_dialing():
            world.dialing.append((self, self.lives, link))
        for name in exchange.take_lookups():
            world.asking.append((self, self.lives, name))
        while exchange.dirty:
            link, _ = exchange.dirty.popitem()
            self._write(link)
        self._take_told()

    def _write(self, link: Link) -> None:
        end = self.ends.get(link)
        if end is not None:
            link.collect()
            world = self.world
            for packet in _packets(link.take_outbox()):
                if world.chance.random() < world.storm.late:
                    end.outflow.hold(world.now + world.chance.random() * world.storm.late_s)
                end.outflow.write(packet)
            link.unwritten_bytes = end.outflow.size
        if link.closing:
            if end is not None:
                del self.ends[link]
                end.hang_up()
                self.world.tidy()
            self.exchange.lost(link, "", self.world.now)
            self.is_due = True

    def _take_told(self) -> None:
        self.told += self.exchange.take_told()

    def hear(self, end: End) -> None:
        """Something comes out of a wire, or its end does."""
        now, link = self.world.now, end.link
        data = end.inflow.take(self.world.chance, self.world.storm.torn)
        if data:
            self.exchange.received(link, data, now)
        elif end.inflow.has_ended:
            del self.ends[link]
            end.leave(self.world.chance, 0.0)
            self.world.tidy()
            self.exchange.lost(link, "the connection was cut", now)

    def was_read(self, end: End) -> None:
        """The other end of a wire has got something: more may be written."""
        end.link.unwritten_bytes = end.outflow.size
        if not end.outflow.size:
            self.exchange.written(end.link, self.world.now)

    # As the network sees it.

    def accept(self, address: str) -> Link | None:
        """Somebody connects; None if it is refused."""
        return self.exchange.accepted(address, self.world.now)

    def is_reading(self, end: End) -> bool:
        """Whether it takes what comes out of a wire."""
        return not self.exchange.is_paused(end.link)

    def is_dialing(self, link: Link) -> bool:
        """Whether it still wants a connection."""
        if link.closing and not link.is_lost:
            self.exchange.lost(link, "", self.world.now)
            self.is_due = True
        return not link.is_lost

    def dialled(self, link: Link) -> None:
        """A connection that it wanted stands."""
        self.exchange.connected(link, self.world.now)

    def dial_failed(self, link: Link, reason: str) -> None:
        """A connection that it wanted cannot be made."""
        self.exchange.dial_failed(link, reason, self.world.now)

    def next_moments(self) -> list[float]:
        """When something happens on it by itself."""
        found = []
        due = self.exchange.next_deadline()
        if due is not None:
            found.append(due)
        expiry = self.engine.next_deadline()
        if expiry is not None:
            found.append(expiry + 1 - START - self.offset_s)
        return found


def _packets(pieces: Iterable[bytes]) -> list[bytes]:
    """What is written, a packet at a time, so that one can be left out whole."""
    found: list[bytes] = []
    data = b""
    for piece in pieces:
        data += piece
        if int.from_bytes(data[8:12], "little") == len(data):
            found.append(data)
            data = b""
    if data:
        found.append(data)
    return found


class SimulatedManagers:
    """Computers with queue managers, and the network between them.

    Args:
        seed: Decides everything that is left to chance.
        storm: How bad the network is.
        host_settings: How the stores are kept; by default in small pieces.

    Attributes:
        storm: How bad the network is now; may be altered at any time.
        now: Seconds since the world began.
        machines: All computers with a queue manager of ours, by name.
        strangers: Computers with another queue manager, by name.
        wires: Connections that at least one end looks at.
        walls: Pairs of names between which nothing passes.
        dialing: Connections that somebody wants: who, in which life, and the link.
        asking: Host names that somebody wants to know: who, in which life, and the name.
        cuts: How many wires were cut so far.
        damages: How many packets were damaged or left out so far.
    """

    def __init__(
        self, seed: int = 0, *, storm: Storm = STILL, host_settings: HostSettings | None = None
    ) -> None:
        self.chance = Random(seed)  # noqa: S311 - repeatable by intent
        self.storm = storm
        self.host_settings = host_settings or SMALL
        self.now = 0.0
        self.machines: dict[str, SimulatedMachine] = {}
        self.strangers: dict[str, Computer] = {}
        self.wires: list[Wire] = []
        self.walls: set[frozenset[str]] = set()
        self.dialing: list[tuple[Computer, int, Any]] = []
        self.asking: list[tuple[SimulatedMachine, int, str]] = []
        self.cuts = 0
        self.damages = 0
        self._by_address: dict[str, Computer] = {}

    def new_guid(self) -> UUID:
        """An identifier that nobody has."""
        return UUID(int=self.chance.getrandbits(128), version=4)

    def add(
        self,
        name: str,
        addresses: tuple[str, ...] = (),
        *,
        settings: ExchangeSettings | None = None,
        limits: Limits | None = None,
        start: bool = True,
    ) -> SimulatedMachine:
        """A new computer; without addresses it gets one."""
        addresses = addresses or (f"10.0.0.{len(self.machines) + 1}",)
        machine = SimulatedMachine(
            self, name, addresses, settings or ExchangeSettings(), limits or Limits()
        )
        self.machines[name] = machine
        for address in addresses:
            self._by_address[address] = machine
        if start:
            machine.start()
        return machine

    def add_stranger(self, computer: Computer) -> None:
        """A computer with another queue manager comes into the network."""
        self.strangers[computer.name] = computer
        for address in computer.addresses:
            self._by_address[address] = computer

    def computers(self) -> Iterator[Computer]:
        """All computers."""
        yield from self.machines.values()
        yield from self.strangers.values()

    # Steps.

    def step(self) -> bool:
        """One thing happens, somewhere; False if there is nothing to happen now."""
        self._rage()
        possible = self._possible()
        if not possible:
            return False
        doing, argument = self.chance.choice(possible)
        doing(argument)
        return True

    def _possible(self) -> list[Step]:
        found: list[Step] = []
        for machine in self.computers():
            if machine.is_due:
                found += ((self._turn, machine), (self._turn, machine))
            if machine.syncing is not None:
                found.append((self._end_sync, machine))
        for wire in self.wires:
            for end in wire.ends:
                if not end.is_left and end.inflow.has_news and self._is_open(end):
                    found.append((self._hear, end))
        if self.dialing:
            found.append((self._dial, None))
        if self.asking:
            found.append((self._look_up, None))
        return found

    def _is_open(self, end: End) -> bool:
        """Whether something can come out here now."""
        if self.now < end.inflow.held_until:
            return False
        if self.walls and end.other is not None:
            names = frozenset((end.machine.name, end.other.machine.name))
            if names in self.walls:
                return False
        return end.inflow.has_ended or end.machine.is_reading(end)

    def _turn(self, machine: Computer) -> None:
        machine.guarded(machine.turn)

    def _end_sync(self, machine: Computer) -> None:
        machine.guarded(machine.end_sync)

    def _hear(self, end: End) -> None:
        machine, other = end.machine, end.other
        machine.guarded(machine.hear, end)
        if other is not None and not other.is_left:
            other.machine.guarded(other.machine.was_read, other)

    def _dial(self, _: object) -> None:
        at = self.chance.randrange(len(self.dialing))
        machine, life, link = self.dialing.pop(at)
        if not machine.is_up or machine.lives != life:
            return
        far = self._by_address.get(link.address)
        if not machine.is_dialing(link):
            return
        if far is None or not self._passes(machine, far):
            machine.dial_failed(link, "nobody answers")
        else:
            far_link = far.accept(machine.addresses[0])
            if far_link is None:
                machine.dial_failed(link, "the connection was refused")
            else:
                link.local_address = machine.addresses[0]
                far_link.local_address = link.address
                wire = Wire(machine, link, far, far_link)
                self.wires.append(wire)
                machine.ends[link], far.ends[far_link] = wire.ends
                machine.dialled(link)
                far.is_due = True
        machine.is_due = True

    def _passes(self, near: Computer, far: Computer) -> bool:
        if not far.is_up or frozenset((near.name, far.name)) in self.walls:
            return False
        return self.chance.random() >= self.storm.refused

    def _look_up(self, _: object) -> None:
        machine, life, name = self.asking.pop(self.chance.randrange(len(self.asking)))
        if not machine.is_up or machine.lives != life:
            return
        found = self.machines.get(name.lower()) or self.strangers.get(name.lower())
        addresses = [] if found is None else list(found.addresses)
        if self.chance.random() < self.storm.lost_name:
            addresses = []
        machine.exchange.looked_up(name, addresses, self.now, "" if addresses else "no such host")
        machine.is_due = True

    def _rage(self) -> None:
        if not self.wires:
            return
        storm, chance = self.storm, self.chance
        if storm.cut and chance.random() < storm.cut:
            self.cut_one()
        if storm.damaged and chance.random() < storm.damaged:
            end = chance.choice(chance.choice(self.wires).ends)
            self.damages += end.inflow.damage(chance)

    def cut_one(self) -> None:
        """Cuts any of the wires."""
        if self.wires:
            self.cuts += 1
            self.chance.choice(self.wires).cut(self.chance, self.now, self.storm)

    def tidy(self) -> None:
        """A wire that nobody looks at any more is no wire."""
        self.wires = [wire for wire in self.wires if not wire.is_over]

    # Time.

    def advance(self, seconds: float) -> None:
        """Puts the clock on; what is due happens."""
        self.now += seconds
        for machine in self.computers():
            if machine.is_up:
                machine.guarded(machine.tick)

    def next_moment(self) -> float | None:
        """When something happens by itself; None if nothing does."""
        found: list[float] = []
        for machine in self.computers():
            if machine.is_up:
                found += machine.next_moments()
        found += [
            end.inflow.held_until
            for wire in self.wires
            for end in wire.ends
            if not end.is_left and end.inflow.has_news and end.inflow.held_until > self.now
        ]
        return min(found, default=None)

    def rest(self, steps_max: int = STEPS_MAX) -> None:
        """Lets things happen until nothing does before time goes on.

        Raises:
            WaitsForEver: They go on and on.
        """
        for _ in range(steps_max):
            if not self.step():
                return
        raise WaitsForEver(f"after {steps_max} steps things still go on")

    def run(self, seconds: float, until: Callable[[], bool] | None = None) -> bool:
        """Lets things happen for this long, or until something holds; whether it does.

        Raises:
            WaitsForEver: Things go on and on without time.
        """
        end = self.now + seconds
        for _ in range(ROUNDS_MAX):
            self.rest()
            if until is not None and until():
                return True
            moment = self.next_moment()
            if moment is None or moment >= end:
                self.advance(max(end - self.now, 0.0))
                self.rest()
                return until is not None and until()
            self.advance(max(moment - self.now, 0.001))
        raise WaitsForEver(f"the clock was put on {ROUNDS_MAX} times, and things still go on")
