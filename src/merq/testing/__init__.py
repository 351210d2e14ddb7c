"""The public test kit: worlds in which things go wrong on purpose, repeatably.

`SimulatedWorld` is a computer with a queue manager, whose methods are those of `merq.Manager`; a
clock that jumps; and a power supply that fails when it is told to. `explore` runs an application in
many of them and cuts the power everywhere. The guide, docs/guide/testing.md, shows how.

    from merq.testing import PowerCut, SimulatedWorld

    world = SimulatedWorld(seed=7)
    mq = world.open()                        # use it as you use merq.open(...)
    world.crash_in(40)                       # in the middle of the 41st disk operation from now
    try:
        my_application(mq)
    except PowerCut:
        mq = world.restart()                 # what the disk kept
    check_what_came_back(mq)

`SimulatedService` is the same behind a network that cuts lines, delivers in pieces and late, with
as many programs as you like; each uses a `merq.Manager`, as `merq.connect` gives it.

    from merq.testing import SimulatedService, Weather

    service = SimulatedService(seed=7, weather=Weather(cut=0.02))
    shop, stock = service.connect("shop"), service.connect("stock")
    service.crash_in(40)                     # it starts again by itself

`SimulatedManagers` is any number of queue managers that send each other messages, through a network
that cuts, delays and damages; `merq.testing.managers` shows how.

`merq.testing.disk` has a disk in memory that behaves as POSIX allows and no better. What was
written but not synced may be lost, kept or torn when the power goes; names that were created,
renamed or removed may or may not be so; the disk fills up, or fails, when it is told to. The same
seed and the same calls give the same disk, so a failure is replayed from its seed.

    from merq.testing.disk import Operation, PowerCut, SimulatedDisk

    disk = SimulatedDisk(seed=7)
    disk.cut_power_in(40)                    # in the middle of the 41st change from now
    try:
        run_what_is_tested(disk)
    except PowerCut:
        disk = disk.crash()                  # what survives; crash(kind="kill") for kill -9
    check_what_came_back(disk)

    disk.capacity = disk.used + 1000         # StoreFull beyond that
    disk.fail_next(Operation.SYNC, after=2)  # StoreFailed, once, from the third sync
    disk.before = lambda operation, name: …  # called before every change, for waiting or counting

The kit needs no test framework. What it holds is for tests only; the service never imports it.
"""

from merq.testing.disk import Operation, PowerCut, SimulatedDisk
from merq.testing.driver import WaitsForEver
from merq.testing.exploring import Broken, Exploration, explore
from merq.testing.managers import SimulatedMachine, SimulatedManagers
from merq.testing.network import SimulatedNetwork, Weather
from merq.testing.service import SimulatedService
from merq.testing.wires import Storm
from merq.testing.world import SimulatedManager, SimulatedWorld

__all__ = [
    "Broken",
    "Exploration",
    "Operation",
    "PowerCut",
    "SimulatedDisk",
    "SimulatedMachine",
    "SimulatedManager",
    "SimulatedManagers",
    "SimulatedNetwork",
    "SimulatedService",
    "SimulatedWorld",
    "Storm",
    "WaitsForEver",
    "Weather",
    "explore",
]
