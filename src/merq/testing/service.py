"""A queue manager behind a network, and programs that use it, all in one thread.

`SimulatedService` is what `merq serve` is: a reception on a host, here on a disk that tears and
behind a network that cuts. `SimulatedClient` is what `merq.connect` gives: its conversation goes on
over one line after another. One step is one thing that happens somewhere, chosen by the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Final, Literal
from uuid import UUID

from merq.client.manager import Manager
from merq.engine.limits import Limits
from merq.errors import MerqError, StoreFull
from merq.host import Hall, Host, HostSettings
from merq.service.reception import Connection, LocalPorter, Reception, ReceptionLimits
from merq.store.log import Syncing
from merq.store.recovery import Identity
from merq.testing.clients import SimulatedClient
from merq.testing.disk import PowerCut, SimulatedDisk
from merq.testing.driver import Clock, WaitsForEver
from merq.testing.network import CALM, Line, SimulatedNetwork, Weather
from merq.testing.world import SMALL, START

Crash = Literal["power", "kill"]

STEPS_MAX: Final = 100_000
"""So many steps in a row without an end are a fault of their own."""


class SimulatedService:
    """A computer with a queue manager that serves applications, and the network to it.

    Args:
        seed: Decides everything that is left to chance.
        weather: How bad the network is.
        limits: The queue manager's limits.
        reception_limits: What applications are allowed.
        settings: How the store is kept; by default in small pieces.

    Attributes:
        clock: Its time; it goes on when somebody waits, or by `advance`.
        network: The lines.
        clients: Programs that are connected or want to be.
        lives: How often the service was started.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        weather: Weather = CALM,
        limits: Limits | None = None,
        reception_limits: ReceptionLimits | None = None,
        settings: HostSettings | None = None,
    ) -> None:
        self._chance = Random(seed)  # noqa: S311 - repeatable by intent
        self._disk = SimulatedDisk(seed)
        self._limits = limits or Limits()
        self._reception_limits = reception_limits or ReceptionLimits()
        self._settings = settings or SMALL
        self._served: dict[Line, Connection] = {}
        self._host: Host | None = None
        self._reception: Reception | None = None
        self._syncing: Syncing | None = None
        self._is_due = False
        self.clock = Clock(START)
        self.network = SimulatedNetwork(self._chance, weather)
        self.clients: list[SimulatedClient] = []
        self.lives = 0
        self.start()

    # What there is.

    @property
    def disk(self) -> SimulatedDisk:
        """The disk as it is now; a crash replaces it by what it kept."""
        return self._disk

    @property
    def is_up(self) -> bool:
        """Whether the service runs."""
        return self._host is not None

    @property
    def host(self) -> Host:
        """The queue manager on its disk."""
        assert self._host is not None, "the service runs"
        return self._host

    @property
    def reception(self) -> Reception:
        """Everybody who is connected."""
        assert self._reception is not None, "the service runs"
        return self._reception

    def client(self, name: str = "") -> SimulatedClient:
        """A program that has not connected yet; it does when it wants something."""
        client = SimulatedClient(self, name or f"client {len(self.clients)}")
        self.clients.append(client)
        return client

    def connect(self, name: str = "") -> Manager:
        """A program's connection, as `merq.connect` gives it; its calls let the world go on."""
        client = self.client(name)
        client.be_welcome()
        return Manager(client)

    # Life and death.

    def start(self) -> None:
        """The service starts on what the disk has; a crash may interrupt even that.

        Raises:
            StoreFull: There is no room for it.
        """
        assert self._host is None, "it runs"
        self.lives += 1
        self._guarded(self._open)

    def _open(self) -> None:
        self._disk.lock()
        try:
            fresh = Identity(store_id=self._new_guid(), created=int(self.clock.now))
            host = Host(self._disk, fresh, "simulated", self._limits, self._settings)
            host.start(int(self.clock.now), self._new_guid())
        except MerqError:
            self._disk.unlock()
            raise
        hall = Hall("simulated", int(self.clock.now))
        self._host = host
        self._reception = Reception(
            host, hall, LocalPorter(), self._new_guid, self._reception_limits
        )

    def crash_in(self, operations: int) -> None:
        """Cuts the power in the disk operation that comes after so many."""
        self._disk.cut_power_in(operations)

    def crash(self, kind: Crash = "power") -> None:
        """Ends the service without warning; `step` starts it again, or `start` does."""
        self._disk = self._disk.crash(kind)
        self._disk.capacity = None  # somebody has made room
        self._host = self._reception = self._syncing = None
        self._is_due = False
        for line in self._served:
            line.leave(self._chance)
            self.network.tidy(line)
        self._served.clear()

    def _guarded(self, doing: Callable[[], None]) -> None:
        try:
            doing()
        except PowerCut:
            self.crash("power")

    # Steps.

    def step(self) -> bool:
        """One thing happens, somewhere; False if there is nothing to happen."""
        self.network.rage()
        possible = self._possible()
        if not possible:
            return False
        self._chance.choice(possible)()
        return True

    def rest(self, steps_max: int = STEPS_MAX) -> None:
        """Lets things happen until nothing does.

        Raises:
            WaitsForEver: They go on and on.
        """
        for _ in range(steps_max):
            if not self.step():
                return
        raise WaitsForEver(f"after {steps_max} steps things still go on")

    def advance(self, seconds: float) -> None:
        """Puts the clock on; what is due happens."""
        self.clock.now += seconds
        if self._host is not None:
            self._guarded(self._tick)
            self._is_due = True

    def _possible(self) -> list[Callable[[], None]]:
        found: list[Callable[[], None]] = []
        if self._host is None:
            found.append(self.start)
        else:
            if self._is_due:
                found += (self._turn_now, self._turn_now)
            if self._syncing is not None:
                found.append(self._end_sync_now)
            for line, connection in self._served.items():
                # Who is not listened to is written to, and so his end is found out too.
                if line.up.has_ended or (line.up.size and not self._is_paused(connection)):
                    found.append(lambda line=line: self._hear_now(line))  # type: ignore[misc]
        for client in self.clients:
            found += client.possible()
        return found

    def _is_paused(self, connection: Connection) -> bool:
        return not connection.closing and self.reception.is_congested(connection)

    # The server's part, as its event loop has it.

    def accept(self, line: Line) -> bool:
        """A client has made a line; False if nobody answers."""
        if self._reception is None:
            return False
        connection = self._reception.connected(f"line {self.network.cuts}", is_local=True)
        if connection is None:
            return False
        self._served[line] = connection
        return True

    def _hear_now(self, line: Line) -> None:
        self._guarded(lambda: self._hear(line))

    def _hear(self, line: Line) -> None:
        self._tick()
        connection = self._served[line]
        data = b"" if self._is_paused(connection) else self.network.arriving(line.up)
        if data:
            self.reception.received(connection, data, self.clock.now)
        elif line.up.has_ended:
            self._dismiss(line, connection)
        self._is_due = True

    def _dismiss(self, line: Line, connection: Connection) -> None:
        del self._served[line]
        line.is_left_by_server = True
        line.down.end()
        self.network.tidy(line)
        self.reception.lost(connection, self.clock.now)

    def _tick(self) -> None:
        now = int(self.clock.now)
        if now != self.host.engine.state.now:
            self.host.engine.tick(now)
        self.reception.forget(self.clock.now)

    def _turn_now(self) -> None:
        self._guarded(self._turn)

    def _turn(self) -> None:
        self._is_due = False
        unfinished = self.reception.unfinished
        if unfinished:
            connection, _ = unfinished.popitem()
            self.reception.go_on(connection)
            self._is_due = True
        self.reception.perform()
        if self._syncing is None:
            self._syncing = self.host.begin_sync()
        if self.host.needs_upkeep and self._syncing is None:
            self._keep_up()
        self._flush()

    def _end_sync_now(self) -> None:
        self._guarded(self._end_sync)

    def _end_sync(self) -> None:
        syncing, self._syncing = self._syncing, None
        if syncing is not None:
            syncing.run()
            self.reception.take(self.host.end_sync(syncing))
            self._is_due = True

    def _keep_up(self) -> None:
        with suppress(StoreFull):  # another time
            writing, answers = self.host.begin_checkpoint()
            self.reception.take(answers)
            if writing is not None:
                writing.run()
                self.host.end_checkpoint(writing)

    def _flush(self) -> None:
        lines = {connection: line for line, connection in self._served.items()}
        dirty = self.reception.dirty
        while dirty:
            connection, _ = dirty.popitem()
            line = lines.get(connection)
            if line is not None:
                self._write(line, connection)

    def _write(self, line: Line, connection: Connection) -> None:
        for data in connection.outbox:
            line.down.write(data)
        connection.outbox.clear()
        connection.outbox_bytes = 0
        connection.unread_bytes = line.down.size
        if connection.closing:
            self._dismiss(line, connection)

    def was_read(self, line: Line) -> None:
        """A client has got some of what it was told: it may be listened to again."""
        connection = self._served.get(line)
        if connection is None:
            return
        connection.unread_bytes = line.down.size
        if connection.session.waiting_bytes and not self.reception.is_congested(connection):
            self._guarded(lambda: self.reception.go_on(connection))
            self._is_due = True

    def _new_guid(self) -> UUID:
        return UUID(int=self._chance.getrandbits(128), version=4)
