"""Others fill the disk at every step of everything that is written: refused, and nothing is lost.

Starting, sending, receiving, committing, arriving from the network, checkpoints, tidying up and
setting messages aside: from the k-th operation of the disk on there is no room, for every k. And
backups, which the system cuts off after every so many bytes.
"""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal
from uuid import UUID

import pytest

from merq.engine.arriving import Arrival
from merq.engine.limits import Limits
from merq.errors import MessageQueueError, StoreFull
from merq.host.host import Host, HostSettings
from merq.model.queue import QueueSettings
from merq.model.selecting import First
from merq.store.backup import back_up
from merq.store.log import LogSettings
from merq.store.recovery import Identity
from merq.testing import SimulatedDisk
from merq.testing.disk import PowerCut
from merq.wire.build import Outline, build_packet
from merq.wire.view import MessageView
from unit.engine.engine_world import GUID, START
from unit.engine.foreign_world import ADDRESS, THERE, foreign

SMALL = HostSettings(
    log=LogSettings(segment_size=4 << 10, reserve_step=1 << 10),
    cache_bytes=0,
    ballast_bytes=1 << 10,
)
ROTTING = b"this one rots"
ORDERS, WORK = r".\private$\orders", r".\private$\work"
OPERATIONS_MAX = 1_000
"""The script has fewer; without an end it would be no test."""


class Life:
    """A queue manager that is asked for everything that writes, and what it has promised."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.promised: Counter[bytes] = Counter()
        self.given: Counter[bytes] = Counter()
        self.host: Host | None = None
        self.is_rotten = False
        self.under_way: Counter[bytes] = Counter()
        self.is_receiving = False
        self._requests = 0

    @property
    def running(self) -> Host:
        assert self.host is not None, "it was opened"
        return self.host

    def open(self) -> bool:
        """Starts it; False if the disk has no room even for that."""
        assert self.host is None
        host = None
        try:
            host = Host(
                self.disk,
                Identity(store_id=GUID, created=START),
                "here",
                Limits(disk_reserve_bytes=0),
                SMALL,
            )
            host.start(START, UUID(int=1))
        except StoreFull:
            if host is not None:
                host.close()
            assert self.disk.open_files == 0
            return False
        self.host = host
        return True

    def ask(self, doing: Callable[..., object], *arguments: object, **options: object) -> object:
        """The answer, or None if there was no room for it."""
        self._requests += 1
        try:
            doing(self._requests, *arguments, **options)
        except MessageQueueError as refused:
            self.running.settle()
            return refused
        found = [e.result for e in self.running.settle() if e.request == self._requests]
        return found[0] if found else None

    def number(self, path: str) -> int:
        return self.running.engine.find_queue(path).number

    def has(self, path: str) -> bool:
        try:
            self.number(path)
        except MessageQueueError:
            return False
        return True

    def send(self, body: bytes, path: str = ORDERS) -> None:
        self.under_way = Counter([body])
        packet = build_packet(Outline(destination=f"OS:{path}", recoverable=True, body=body))
        answer = self.ask(self.running.engine.send, self.number(path), [packet])
        if not isinstance(answer, MessageQueueError):
            self.promised[body] += 1
        self.under_way.clear()

    def commit(self, *bodies: bytes) -> None:
        self.under_way = Counter(bodies)
        engine = self.running.engine
        transaction = engine.transactions.begin()
        number = self.number(WORK)
        for body in bodies:
            outline = Outline(destination=f"OS:{WORK}", recoverable=True, body=body)
            packet = build_packet(outline)
            sent = self.ask(engine.send, number, [packet], transaction=transaction)
            if isinstance(sent, MessageQueueError):
                self.ask(engine.transactions.abort, transaction)
                self.under_way.clear()
                return
        if not isinstance(self.ask(engine.transactions.commit, transaction), MessageQueueError):
            self.promised.update(bodies)
        self.under_way.clear()

    def arrive(self, ordinal: int, body: bytes) -> None:
        self._requests += 1
        self.under_way = Counter([body])
        packet = foreign("orders", ordinal, recoverable=True, body=body)
        arrival = Arrival(MessageView(packet), ADDRESS, THERE.bytes_le)
        self.running.engine.arrivals.arrive(self._requests, [arrival])
        answers = [e.result for e in self.running.settle() if e.request == self._requests]
        if answers and not isinstance(answers[0], MessageQueueError):
            self.promised[body] += 1
        self.under_way.clear()

    def receive(self, path: str = ORDERS) -> bool:
        self.is_receiving = True
        answer = self.ask(self.running.engine.receive, self.number(path), First(), wait=False)
        self.is_receiving = False
        if answer is None or isinstance(answer, MessageQueueError):
            return False
        self.given[MessageView(answer.packet).body] += 1  # type: ignore[attr-defined]
        return True

    def checkpoint(self) -> bool:
        """Writes a checkpoint; False if there is no room for it."""
        self.running.watch_resources()
        writing, _ = self.running.begin_checkpoint()
        assert writing is not None
        try:
            writing.run()
        except StoreFull:
            return False
        self.running.end_checkpoint(writing)
        return True

    def upkeep(self) -> None:
        """What whoever drives it does once in a while."""
        host = self.running
        if self.checkpoint():
            more = True
            while more and len(host.log.segments()) > 1:
                more, _ = host.relocate_some()

    def rot(self) -> None:
        """A message rots that a checkpoint contains: opening reads, and refuses, others."""
        self.is_rotten = True
        for name in self.disk.files():
            at = self.disk.content(name).find(ROTTING)
            if at >= 0 and name.startswith("log/"):
                self.disk.damage(name, at)

    def crash(self, kind: Literal["power", "kill"]) -> None:
        self.disk = self.disk.crash(kind)
        self.host = None


def script(life: Life) -> None:
    """Everything that writes; each is done whether there was room for the one before or not."""
    if not life.open():
        life.disk.make_room()
        assert life.open()
    with suppress(MessageQueueError):
        life.ask(life.running.engine.create_queue, ORDERS, QueueSettings(), UUID(int=2))
        life.ask(
            life.running.engine.create_queue, WORK, QueueSettings(transactional=True), UUID(int=3)
        )
        life.number(ORDERS)
        life.number(WORK)
    for path in (ORDERS, WORK):
        try:
            life.number(path)
        except MessageQueueError:
            life.disk.make_room()
            settings = QueueSettings(transactional=path == WORK)
            life.ask(life.running.engine.create_queue, path, settings, UUID(int=4))
    life.send(b"1" * 600)
    life.send(ROTTING)
    life.send(b"2" * 600)
    if life.checkpoint():
        life.rot()
    life.commit(b"3" * 500, b"4" * 500)
    life.arrive(1, b"5" * 900)
    life.upkeep()
    life.receive()
    life.receive()
    life.arrive(2, b"6" * 900)
    life.upkeep()
    life.receive(WORK)
    life.send(b"7" * 600)


def operations() -> int:
    life = Life(SimulatedDisk())
    script(life)
    assert life.disk.operations < OPERATIONS_MAX
    return life.disk.operations


@pytest.mark.parametrize("reserves", [True, False])
def test_at_every_operation(*, reserves: bool) -> None:
    count = operations()
    assert count > 60
    for at in range(count):
        life = Life(SimulatedDisk(at, reserves=reserves))
        life.disk.fill_up_in(at)
        script(life)
        life.disk.make_room()
        life.upkeep()
        life.send(b"there is room again")
        life.crash("power" if at % 2 else "kill")  # what had no room in aside is met again
        assert life.open()
        drained(life)


@pytest.mark.parametrize("kind", ["power", "kill"])
def test_the_process_dies_at_every_operation(kind: Literal["power", "kill"]) -> None:
    """Setting aside too is done wholly, or begun anew: what rotted is kept once."""
    for at in range(operations()):
        life = Life(SimulatedDisk(at))
        life.disk.cut_power_in(at)
        with suppress(PowerCut):
            script(life)
        life.crash(kind)
        assert life.open()
        drained(life)


def drained(life: Life) -> None:
    """What was promised is there, once, but what rotted, which is kept or was never taken.

    What was under way when the process died has happened or has not.
    """
    doing, receiving = life.under_way, life.is_receiving
    for path in (ORDERS, WORK):
        while life.has(path) and life.receive(path):
            pass
    rotten = life.promised.pop(ROTTING, 0) if life.is_rotten else 0
    assert life.given - life.promised <= doing
    missing = life.promised - life.given
    assert missing.total() <= receiving, f"{missing} were promised"
    names = life.disk.files()
    assert sum(name.startswith("aside/damaged") for name in names) == 2 * rotten
    life.running.close()
    assert life.disk.open_files == 0


@contextmanager
def file_size_limited(size: int) -> Iterator[None]:
    """The system lets no file have more bytes, and says so as it does of a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_backup_for_which_there_is_no_room_leaves_nothing(tmp_path: Path) -> None:
    life = Life(SimulatedDisk())
    assert life.open()
    life.ask(life.running.engine.create_queue, ORDERS, QueueSettings(), UUID(int=2))
    for _ in range(10):
        life.send(b"1" * 600)
    life.upkeep()
    folder = tmp_path / "store"
    for name in life.disk.files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(life.disk.content(name))
    largest = max(each.stat().st_size for each in folder.rglob("*") if each.is_file())
    for size in range(0, largest, largest // 40):
        with file_size_limited(size), suppress(StoreFull):
            back_up(folder, tmp_path / "copy")
            break
        assert [each.name for each in tmp_path.iterdir()] == ["store"]
    else:
        back_up(folder, tmp_path / "copy")
    assert (tmp_path / "copy" / "identity").exists()
