"""Runs an application in many worlds, and cuts the power everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from merq.engine.limits import Limits
from merq.host import HostSettings
from merq.testing.disk import PowerCut
from merq.testing.world import Crash, SimulatedManager, SimulatedWorld

Told: TypeAlias = list[Any]
"""What the outside has been told. It survives crashes, for the outside does not forget."""

Part: TypeAlias = Callable[[SimulatedManager, Told], object]
"""An application, or a check: it gets the queue manager and what the outside has been told."""

CRASHES: Final[tuple[Crash, ...]] = ("power", "kill")


class Broken(AssertionError):
    """A check does not hold; the text says in which world, and how to see it again.

    Attributes:
        seed: Of the world.
        point: The disk operation in which the power went; None if it did not.
        crash: What kind of crash it was.
    """

    def __init__(self, seed: int, point: int | None, crash: Crash, why: BaseException) -> None:
        again = f"explore(…, seeds=[{seed}], points=[{point}], crashes=[{crash!r}])"
        when = "without a crash" if point is None else f"{crash} crash in disk operation {point}"
        super().__init__(f"seed {seed}, {when}: {type(why).__name__}: {why}; again with {again}")
        self.seed = seed
        self.point = point
        self.crash = crash


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """What was looked at: so many worlds, of which so many had a crash."""

    worlds: int
    crashes: int


def explore(  # noqa: PLR0913 - what there is to choose
    application: Part,
    *,
    check: Part,
    resume: Part | None = None,
    seeds: Iterable[int] = range(3),
    every: int = 1,
    points: Sequence[int | None] | None = None,
    crashes: Sequence[Crash] = CRASHES,
    limits: Limits | None = None,
    settings: HostSettings | None = None,
) -> Exploration:
    """Runs an application with a crash in every disk operation, and checks what came back.

    For each seed it runs once without a crash, which tells how many disk operations there are; then
    anew for each of them, with a crash there. After the crash the queue manager is started again,
    `resume` runs if there is one, and then `check`.

    Args:
        application: What is tested; it starts with nothing but an empty queue manager.
        check: Raises what is wrong, an AssertionError for example.
        resume: What the application does when it is started again.
        seeds: The worlds.
        every: Crashes in every so many-th operation only.
        points: Crashes in these operations only; None is a run without a crash.
        crashes: The kinds of crash.
        limits: As for `merq.open`.
        settings: How the store is kept; by default in small pieces.

    Raises:
        Broken: The check failed, or the application did; the first time that it happened.
    """
    worlds = crashed = 0

    def run(seed: int, point: int | None, crash: Crash) -> int:
        nonlocal worlds, crashed
        worlds += 1
        world = SimulatedWorld(seed, limits=limits, settings=settings)
        try:
            operations, has_crashed = _run(world, application, resume, check, point, crash)
        except Exception as wrong:
            raise Broken(seed, point, crash, wrong) from wrong
        crashed += has_crashed
        return operations

    for seed in seeds:
        chosen: Sequence[int | None]
        chosen = range(0, run(seed, None, "power"), every) if points is None else points
        for point in chosen:
            for crash in crashes if point is not None else crashes[:1]:
                run(seed, point, crash)
    return Exploration(worlds=worlds, crashes=crashed)


def _run(
    world: SimulatedWorld,
    application: Part,
    resume: Part | None,
    check: Part,
    point: int | None,
    crash: Crash,
) -> tuple[int, bool]:
    """One run; how many disk operations the application took, and whether there was a crash."""
    told: Told = []
    if point is not None:
        world.crash_in(point)
    has_crashed = False
    try:
        application(world.open(), told)
    except PowerCut:
        has_crashed = True
    operations = world.operations
    manager = world.restart(crash)
    if has_crashed and resume is not None:
        resume(manager, told)
    check(manager, told)
    return operations, has_crashed
