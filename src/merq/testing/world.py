"""A world for applications: a queue manager on a disk that tears, and a clock that jumps.

Everything that is left to chance is decided by the seed, but for the identifiers of new queues and
prepared transactions, on which nothing depends.
"""

from __future__ import annotations

from random import Random
from typing import Final, Literal
from uuid import UUID

from merq.client.manager import Manager
from merq.engine.limits import Limits
from merq.host import HostSettings
from merq.store.log import LogSettings
from merq.testing.disk import SimulatedDisk
from merq.testing.driver import Clock, SimulatedDriver

Crash = Literal["power", "kill"]

START: Final = 1_700_000_000.0
"""When a world begins, in seconds since 1970."""

SMALL: Final = HostSettings(
    log=LogSettings(segment_size=64 << 10, reserve_step=16 << 10),
    checkpoint_bytes=64 << 10,
    ballast_bytes=64 << 10,
)
"""Segments and checkpoints that come often, so that short runs meet them."""


class SimulatedManager(Manager):
    """A `merq.Manager` in a simulated world: the same methods, the same errors."""

    def __init__(self, driver: SimulatedDriver) -> None:
        super().__init__(driver)
        self._simulated = driver

    def checkpoint(self) -> None:
        """Writes a checkpoint now; otherwise they come as the log grows."""
        self._simulated.checkpoint()


class SimulatedWorld:
    """One computer with a disk, a clock, and a power supply that can fail.

    Args:
        seed: Decides everything that is left to chance.
        capacity: How many bytes the disk holds; None for no limit. Also later: `disk.capacity`.
        limits: The queue manager's limits, as for `merq.open`.
        settings: How the store is kept; by default in small pieces.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        capacity: int | None = None,
        limits: Limits | None = None,
        settings: HostSettings | None = None,
    ) -> None:
        self._chance = Random(seed)  # noqa: S311 - repeatable by intent
        self._disk = SimulatedDisk(seed, capacity=capacity)
        self._limits = limits or Limits()
        self._settings = settings or SMALL
        self._clock = Clock(START)
        self._name = "simulated"
        self._driver: SimulatedDriver | None = None

    @property
    def disk(self) -> SimulatedDisk:
        """The disk as it is now; `restart` replaces it by what it kept."""
        return self._disk

    @property
    def now(self) -> float:
        """The time, in seconds since 1970."""
        return self._clock.now

    @property
    def operations(self) -> int:
        """How many changes the disk has seen since the computer was started."""
        return self._disk.operations

    def open(self, name: str | None = None) -> SimulatedManager:
        """Opens the queue manager, as `merq.open` does.

        Args:
            name: The computer's name; a restart keeps it.

        Raises:
            StoreInUse: It is open.
        """
        self._name = name or self._name
        self._driver = SimulatedDriver(
            self._disk, self._name, self._clock, self._new_guid, self._limits, self._settings
        )
        return SimulatedManager(self._driver)

    def advance(self, seconds: float) -> None:
        """Puts the clock on; messages whose time is over leave their queues."""
        assert seconds >= 0, "time does not go back"
        self._clock.now += seconds
        if self._driver is not None:
            self._driver.pass_time()

    def crash_in(self, operations: int) -> None:
        """Cuts the power in the disk operation that comes after so many: PowerCut is raised."""
        self._disk.cut_power_in(operations)

    def restart(self, crash: Crash = "power") -> SimulatedManager:
        """Ends whatever runs without warning, and opens the queue manager on what the disk kept.

        Args:
            crash: "power": what was not synced is lost, kept or torn. "kill": the process was
                killed and the computer went on; all that was written is there.
        """
        if self._driver is not None:
            self._driver.switch_off()
        self._disk = self._disk.crash(crash)
        return self.open()

    def _new_guid(self) -> UUID:
        return UUID(int=self._chance.getrandbits(128), version=4)
