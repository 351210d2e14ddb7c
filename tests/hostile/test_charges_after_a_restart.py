"""A stranger that has filled its part does not get another one by a restart of the service."""

from __future__ import annotations

from uuid import UUID

from merq.engine.arriving import Arrival
from merq.engine.limits import Limits
from merq.host.host import Host, HostSettings
from merq.model.queue import QueueSettings
from merq.store.recovery import Identity
from merq.testing import SimulatedDisk
from merq.wire.view import MessageView
from unit.engine.engine_world import GUID, START
from unit.engine.foreign_world import foreign

FILLER, OTHER = "10.0.0.66", "10.0.0.9"
STRANGER = UUID(int=66)
QUOTA_KB = 400
BODY = bytes(4_000)
SETTINGS = HostSettings(ballast_bytes=1 << 10)


class Station:
    """A queue manager whose process ends now and then."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk()
        self._requests = self._ordinal = 0
        self.open()
        self.host.engine.create_queue(1, r".\private$\orders", QueueSettings(), UUID(int=2))
        self.host.settle()

    def open(self) -> None:
        limits = Limits(disk_reserve_bytes=0, machine_quota=QUOTA_KB)
        identity = Identity(store_id=GUID, created=START)
        self.host = Host(self.disk, identity, "here", limits, SETTINGS)
        self.host.start(START, UUID(int=1))
        self.network = self.host.engine.state.network
        self.most = limits.network_quota_bytes

    def checkpoint(self) -> None:
        writing, _ = self.host.begin_checkpoint()
        assert writing is not None
        writing.run()
        self.host.end_checkpoint(writing)

    def restart(self) -> None:
        """The process is killed and started again."""
        self.disk = self.disk.crash("kill")
        self.open()

    def arrive(self, address: str, *, recoverable: bool = True) -> bool:
        """Whether another message from an address is taken."""
        self._ordinal += 1
        self._requests += 1
        packet = foreign(
            "orders",
            self._ordinal,
            source_queue_manager=STRANGER.bytes_le,
            recoverable=recoverable,
            body=BODY,
        )
        before = self.network.total_bytes
        arrival = Arrival(MessageView(packet), address, STRANGER.bytes_le)
        self.host.engine.arrivals.arrive(self._requests + 100, [arrival])
        self.host.settle()
        return self.network.total_bytes > before

    def fill(self, address: str) -> int:
        """Sends until nothing more is taken; gives how many were."""
        count = 0
        while self.arrive(address):
            count += 1
            assert count < QUOTA_KB
        return count


def test_what_an_address_takes_is_known_after_a_restart() -> None:
    station = Station()
    assert station.fill(FILLER) > 10
    used = station.network.used_by(FILLER)
    station.checkpoint()
    for _ in range(5):
        station.restart()
        assert station.network.used_by(FILLER) == used
        assert station.fill(FILLER) == 0, "it has its part already"
    assert station.network.total_bytes <= station.most // 2 + len(BODY) * 2
    assert station.arrive(OTHER), "and others have theirs"


def test_messages_that_go_after_a_restart_relieve_who_sent_them() -> None:
    station = Station()
    station.fill(FILLER)
    station.checkpoint()
    number = station.host.engine.find_queue(r".\private$\orders").number
    station.host.engine.purge(3, number)
    station.host.settle()  # behind the checkpoint: the log says that they are gone
    station.arrive(OTHER)
    station.restart()
    assert station.network.used_by(FILLER) == 0
    assert station.fill(FILLER) > 10


def test_what_came_behind_the_checkpoint_is_nobodys_but_the_networks_share_holds() -> None:
    """The log has no addresses: so much is forgotten, and no more than that."""
    station = Station()
    for _ in range(6):
        station.fill(FILLER)
        total = station.network.total_bytes
        station.restart()
        assert station.network.used_by(FILLER) == 0
        assert station.network.total_bytes == total <= station.most
    quota = QUOTA_KB << 10
    assert station.host.engine.state.free_bytes >= quota - station.most, "of applications"


def test_express_messages_which_are_gone_are_not_charged() -> None:
    station = Station()
    assert station.arrive(FILLER, recoverable=False)
    assert station.arrive(FILLER)
    station.checkpoint()
    station.restart()
    assert station.network.used_by(FILLER) == station.network.total_bytes
    assert 0 < station.network.total_bytes < 2 * len(BODY)
