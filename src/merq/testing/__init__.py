"""The public test kit: worlds in which things go wrong on purpose, repeatably.

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
