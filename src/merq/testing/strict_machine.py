r"""A strict peer as a computer in the simulated network.

world = SimulatedManagers(seed=7)
here = world.add("here")
there = SimulatedStrictPeer(world, "there", ("10.0.0.9",))
there.do(lambda peer: peer.create_queue(r"private$\\orders", 20, transactional=True))
world.run(60.0)
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, TypeVar

from merq.testing.strict_peer import Event, Readings, Session, StableStorage, StrictPeer
from merq.testing.strict_peer.stable_storage import Key
from merq.testing.wires import End
from merq.testing.world import START

if TYPE_CHECKING:
    from merq.testing.managers import SimulatedManagers

_Result = TypeVar("_Result")


class SimulatedStrictPeer:
    """A computer whose queue manager is a `StrictPeer`.

    What it would keep is durable when its event loop has turned, and nothing goes out before; so a
    crash loses what came since, or comes right after it.

    Attributes:
        guid: Its queue manager's identifier.
        offset_s: How far its wall clock is from the world's; may be altered at any time.
        listener: Is told what became of messages, once it is durable.
        on_crash: Called when it goes down, before anything is lost.
        complaints: What others did to it in all its lives that they must not.
        closures: Why it has closed sessions, in all its lives.
        miscounts: How often it has miscounted on purpose, in all its lives.
    """

    def __init__(
        self,
        world: SimulatedManagers,
        name: str,
        addresses: tuple[str, ...],
        readings: Readings | None = None,
    ) -> None:
        self.world = world
        self.name = name
        self.addresses = addresses
        self.readings = readings or Readings()
        self.guid = world.new_guid()
        self.offset_s = 0.0
        self.lives = 0
        self.is_due = False
        self.syncing = None
        self.ends: dict[Session, End] = {}
        self.listener: Callable[[Event], None] = lambda _: None
        self.on_crash: Callable[[], None] = lambda: None
        self.complaints: list[str] = []
        self.closures: list[str] = []
        self.miscounts = 0
        self._durable: dict[Key, bytes] = {}
        self._peer: StrictPeer | None = None
        world.add_stranger(self)
        self.start()

    @property
    def is_up(self) -> bool:
        """Whether the queue manager runs."""
        return self._peer is not None

    @property
    def peer(self) -> StrictPeer:
        """The queue manager."""
        assert self._peer is not None, f"{self.name} is up"
        return self._peer

    @property
    def wall(self) -> int:
        """What its clock shows, in seconds since 1970."""
        return int(START + self.world.now + self.offset_s)

    # Life and death.

    def start(self) -> None:
        """It starts on what was durable."""
        assert not self.is_up, f"{self.name} is down"
        self._peer = StrictPeer(
            self.guid.bytes_le,
            addresses=self.addresses,
            chance=Random(self.world.chance.getrandbits(32)),  # noqa: S311 - repeatable by intent
            wall=self.wall,
            readings=self.readings,
            stable=StableStorage(self._durable),
        )
        self.lives += 1
        self.is_due = True
        self.guarded(self.peer.tick, self.world.now)

    def crash(self) -> None:
        """It stops without warning; what its event loop has not got to is lost."""
        if not self.is_up:
            return
        self.on_crash()
        self._take_told()
        self._peer = None
        self.is_due = False
        for end in self.ends.values():
            end.leave(self.world.chance, 0.0)
        self.ends.clear()
        self.world.tidy()

    def guarded(self, doing: Callable[..., object], *arguments: object) -> None:
        """Does something on it."""
        if self.is_up:
            self.is_due = True
            self.peer.wall = self.wall
            doing(*arguments)

    def do(self, doing: Callable[[StrictPeer], _Result]) -> _Result:
        """An application uses the queue manager; what it does is durable afterwards."""
        self.peer.wall = self.wall
        result = doing(self.peer)
        self.turn()
        return result

    # As an event loop.

    def tick(self) -> None:
        """The time was put on: what is due happens."""
        self.peer.tick(self.world.now)

    def turn(self) -> None:
        """Makes durable what is to be kept, then writes, closes and dials."""
        self.is_due = False
        peer, world = self.peer, self.world
        for key, value in peer.stable.take_changes().items():
            if value is None:
                self._durable.pop(key, None)
            else:
                self._durable[key] = value
        for event in peer.take_events():
            self.listener(event)
        for session in peer.connections.take_dials():
            world.dialing.append((self, self.lives, session))
        for session, end in list(self.ends.items()):
            for packet in session.take_output():
                if world.chance.random() < world.storm.late:
                    end.outflow.hold(world.now + world.chance.random() * world.storm.late_s)
                end.outflow.write(packet)
            if session.closing:
                del self.ends[session]
                end.hang_up()
                world.tidy()
        self._take_told()

    def _take_told(self) -> None:
        peer = self.peer
        self.complaints += peer.complaints
        self.closures += peer.connections.closures
        self.miscounts += peer.miscounts
        peer.complaints.clear()
        peer.connections.closures.clear()
        peer.miscounts = 0

    def end_sync(self) -> None:
        """Syncs take no time here."""

    # As the network sees it.

    def hear(self, end: End) -> None:
        """Something comes out of a wire, or its end does."""
        session = end.link
        data = end.inflow.take(self.world.chance, self.world.storm.torn)
        if data:
            self.peer.received(session, data, self.world.now)
        elif end.inflow.has_ended:
            del self.ends[session]
            end.leave(self.world.chance, 0.0)
            self.world.tidy()
            self.peer.lost(session, self.world.now)

    def was_read(self, end: End) -> None:
        """The other end of a wire has got something."""

    def is_reading(self, end: End) -> bool:
        """It takes everything at once."""
        return not end.is_left

    def accept(self, address: str) -> Session:
        """Somebody connects."""
        return self.peer.accepted(address, self.world.now)

    def is_dialing(self, session: Session) -> bool:
        """Whether it still wants a connection."""
        return not session.closing

    def dialled(self, session: Session) -> None:
        """A connection that it wanted stands."""
        session.connected(self.world.now)

    def dial_failed(self, session: Session, reason: str) -> None:
        """A connection that it wanted cannot be made."""
        del reason
        self.peer.lost(session, self.world.now)

    def next_moments(self) -> list[float]:
        """When something happens on it by itself."""
        found = []
        due = self.peer.next_deadline()
        if due is not None:
            found.append(due)
        expiry = self.peer.incoming.next_expiry()
        if expiry is not None:
            found.append(expiry - START - self.offset_s)
        return found
