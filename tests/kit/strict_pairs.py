"""Strict peers that talk to each other in memory, without any chance but their own."""

from __future__ import annotations

from random import Random
from typing import Final

from merq.testing.strict_peer import Readings, Session, StableStorage, StrictPeer
from merq.testing.strict_peer.packets import UserMessage
from merq.testing.strict_peer.session import State
from merq.testing.strict_peer.stable_storage import Key

START: Final = 1_700_000_000
HERE, THERE = "10.0.0.1", "10.0.0.2"
PLAIN, SAFE = r"private$\p", r"private$\t"
TURNS_MAX: Final = 10_000


class StrictPair:
    """Two strict peers and the connections between them.

    Attributes:
        now: Seconds since the beginning.
        peers: Both of them, by address.
        sent: Packets in the order in which they were written, with the address of who wrote.
    """

    def __init__(self, **readings: Readings) -> None:
        self.now = 0.0
        self.sent: list[tuple[str, bytes]] = []
        self.peers: dict[str, StrictPeer] = {}
        self.cut = False
        self._kept: dict[str, dict[Key, bytes]] = {HERE: {}, THERE: {}}
        self._wires: list[tuple[tuple[str, Session], tuple[str, Session]]] = []
        self._readings = {HERE: readings.get("here"), THERE: readings.get("there")}
        for address in (HERE, THERE):
            self.start(address)
            self.peers[address].create_queue(PLAIN, 20)
            self.peers[address].create_queue(SAFE, 21, transactional=True)

    @property
    def here(self) -> StrictPeer:
        return self.peers[HERE]

    @property
    def there(self) -> StrictPeer:
        return self.peers[THERE]

    def start(self, address: str) -> None:
        """A peer starts on what was kept."""
        self.peers[address] = StrictPeer(
            Random(address).randbytes(16),  # noqa: S311 - repeatable by intent
            addresses=(address,),
            chance=Random(7),  # noqa: S311 - repeatable by intent
            wall=START + int(self.now),
            readings=self._readings[address],
            stable=StableStorage(self._kept[address]),
        )

    def restart(self, address: str) -> None:
        """A peer loses everything that it does not keep."""
        self.break_wires()
        self.start(address)

    def break_wires(self) -> None:
        """All connections are gone."""
        for ends in self._wires:
            for address, session in ends:
                self.peers[address].lost(session, self.now)
        self._wires.clear()

    def keep(self) -> None:
        """What is to survive is durable."""
        for address, peer in self.peers.items():
            for key, value in peer.stable.take_changes().items():
                if value is None:
                    self._kept[address].pop(key, None)
                else:
                    self._kept[address][key] = value

    def flow(self) -> None:
        """Packets travel until nobody has one."""
        for _ in range(TURNS_MAX):
            self.keep()
            if not self._dial() and not self._carry():
                return
        raise AssertionError("they talk for ever")

    def _dial(self) -> bool:
        found = False
        for address, peer in self.peers.items():
            for session in peer.connections.take_dials():
                found = True
                if self.cut:
                    peer.lost(session, self.now)
                    continue
                other = self.peers[session.address].accepted(address, self.now)
                self._wires.append(((address, session), (session.address, other)))
                session.connected(self.now)
        return found

    def _carry(self) -> bool:
        found = False
        for wire in list(self._wires):
            for (near, session), (far, other) in (wire, wire[::-1]):
                for packet in session.take_output():
                    found = True
                    self.sent.append((near, packet))
                    if other.state is not State.CLOSED:
                        self.peers[far].received(other, packet, self.now)
                if session.closing and wire in self._wires:
                    self._wires.remove(wire)
                    self.peers[far].lost(other, self.now)
        return found

    def run(self, seconds: float) -> None:
        """Time passes, and what is due happens."""
        end = self.now + seconds
        while True:
            self.flow()
            due = [peer.next_deadline() for peer in self.peers.values()]
            moment = min((each for each in due if each is not None), default=end)
            self.now = min(max(moment, self.now), end)
            for peer in self.peers.values():
                peer.wall = START + int(self.now)
                peer.tick(self.now)
            if moment >= end:
                self.flow()
                return

    def bodies(self, address: str, path: str) -> list[bytes]:
        """What an application receives from a queue."""
        found = []
        while (message := self.peers[address].receive(path, self.now)) is not None:
            found.append(message.body)
        return found

    def events(self, address: str, kind: str) -> list[UserMessage]:
        """Messages of which a peer has noted something."""
        return [each.message for each in self.peers[address].take_events() if each.kind == kind]
