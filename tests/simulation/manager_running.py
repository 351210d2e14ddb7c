"""A host on a simulated disk under watch: what it writes and answers goes into a ledger.

This is how it is opened, asked, synced, crashed and checked; what it is asked for is in
`manager_world`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Literal
from uuid import UUID

from merq.engine.changes import Answer
from merq.engine.limits import Limits
from merq.engine.positions import AVAILABLE
from merq.engine.work import Sending
from merq.errors import MessageQueueError, StoreFailed, StoreFull
from merq.host import Checkpointing, Host, HostSettings
from merq.model.queue import KILOBYTE, UNLIMITED, QueueKind
from merq.store.inspection import inspect
from merq.store.log import LogSettings, Syncing
from merq.store.recovery import Identity
from merq.testing.disk import Operation, SimulatedDisk
from simulation.manager_history import check_sums, expiry_in, next_frame, picture
from simulation.manager_ledger import Doing, Ledger, Unit

START = 1_700_000_000
OPENINGS_MAX = 12
NAME = "here"
LOOK_AHEAD = 0.08
FAILING = (Operation.WRITE, Operation.SYNC, Operation.RESERVE, Operation.CREATE,
           Operation.SYNC_FOLDER, Operation.REMOVE, Operation.RENAME)  # fmt: skip
SETTINGS = HostSettings(
    log=LogSettings(segment_size=4096, reserve_step=1024),
    checkpoint_bytes=8192,
    cache_bytes=4096,
    ballast_bytes=1024,
)
IDLE = Doing("nothing")


class WatchedManager:
    """A queue manager's lives on one disk."""

    def __init__(self, seed: int, *, disk_seed: int | None = None) -> None:
        self.chance = Random(seed)  # noqa: S311
        chance = self.chance
        self.disk = SimulatedDisk(
            seed if disk_seed is None else disk_seed, reserves=chance.random() < 0.7
        )
        self.identity = Identity(store_id=self.guid(), created=START)
        quota = chance.choice((UNLIMITED, UNLIMITED, 12))
        self.limits = Limits(machine_quota=quota, disk_reserve_bytes=0)
        # Where the computer's quota is used up, copies and acknowledgments may be dropped.
        self.has_notices = quota == UNLIMITED
        self.ledger = Ledger()
        self.ledger.now = START
        self.host: Host | None = None
        self.doing = IDLE
        self.requests = 0
        self.open_units: dict[int, Unit] = {}
        self.syncing: Syncing | None = None
        self.checkpointing: Checkpointing | None = None
        self.was_full = False

    def guid(self) -> UUID:
        return UUID(int=self.chance.getrandbits(128))

    @property
    def running(self) -> Host:
        assert self.host is not None, "the queue manager runs"
        return self.host

    # Opening, and what must hold then.

    def open(self) -> None:
        """Opens the queue manager, gives the disk room if it has none, and checks what came."""
        for _ in range(OPENINGS_MAX):
            self.disk.lock()
            try:
                self.host = self.opened(self.disk)
                self.came_back(self.host)
                self.start()
            except StoreFull:
                assert self.disk.is_limited, "a disk without limit is not full"
                self.make_room()
            except StoreFailed:
                pass
            else:
                return
            if self.host is not None:
                self.host.close()
                self.host = None
            assert self.disk.open_files == 0, "what was opened is closed after a failure"
            self.disk.unlock()
        raise AssertionError("the queue manager does not open")

    def opened(self, disk: SimulatedDisk) -> Host:
        return Host(disk, self.identity, NAME, self.limits, SETTINGS)

    def came_back(self, host: Host) -> None:
        """The state is what the frames that came back add up to."""
        ledger = self.ledger
        count = host.log.next_sequence - 1
        while len(ledger.history) < count:
            self.read_frame()
        ledger.restarted(count)
        self.open_units.clear()
        self.syncing = self.checkpointing = None
        self.check_state(host)
        numbers = host.engine.transactions.prepared()
        for unit in ledger.units:
            self.open_units[numbers[UUID(bytes=unit.guid)]] = unit
        assert len(numbers) == len(ledger.units), "a prepared transaction came from nowhere"

    def read_frame(self) -> None:
        history = self.ledger.history
        self.ledger.observe(next_frame(self.disk, history[-1] if history else None), self.doing)

    def start(self) -> None:
        self.doing = Doing("start")
        self.running.start(self.ledger.now, self.guid())
        self.scan()
        self.check_settled()

    def check_state(self, host: Host) -> None:
        """What the engine has is what the records add up to."""
        found = picture(host.engine.state)
        # A count of aborts that had no room on the disk is known to the engine alone.
        wrong = found.differences(self.ledger.fold.picture(), counts=not self.was_full)
        assert not wrong, f"the state is not what was written: {wrong}"
        living = {segment.number: segment.living for segment in host.log.segments()}
        check_sums(host.engine.state, living)

    def check_settled(self) -> None:
        """Nothing is under way: everything is counted, held by somebody, and as it was written."""
        host, ledger = self.running, self.ledger
        state = host.engine.state
        assert state.is_settled
        unanswered = [each for each in ledger.asked.values() if not each.is_waiting]
        assert not unanswered, f"nobody answers {unanswered}"
        self.check_state(host)
        held = ledger.held | {
            (operation.queue.number, operation.lookup_id)
            for each in state.transactions.values()
            for operation in each.operations
            if not isinstance(operation, Sending) and not operation.queue.closing
        }
        for number, queue in state.queues.items():
            taken = {(number, p.lookup_id) for p in queue.positions if p.state != AVAILABLE}
            wanted = {key for key in held if key[0] == number}
            purged = {(number, each) for each, note in queue.notes.items() if note.purged}
            assert purged <= taken, "purged, and available"
            # What is purged and could not be written stays out of sight.
            assert taken - purged <= wanted <= taken, f"{taken} are taken, {wanted} should be"

    # One operation.

    def scan(self) -> None:
        """Reads what was written since."""
        while len(self.ledger.history) < self.running.log.next_sequence - 1:
            self.read_frame()
        self.doing = IDLE

    def tell(self, answers: list[Answer]) -> None:
        self.scan()
        for answer in answers:
            result = answer.result
            if isinstance(result, MessageQueueError) and "disk is full" in str(result):
                self.was_full = True
            self.ledger.answered(answer)
        if answers and self.chance.random() < LOOK_AHEAD:
            self.look_ahead()

    def ask(self, doing: Doing, ask: Callable[[int], object]) -> bool:
        """Asks for something as a driver does; False if it was refused."""
        self.requests += 1
        request = self.requests
        ledger = self.ledger
        ledger.asked[request] = self.doing = doing
        accepted = True
        try:
            ask(request)
        except MessageQueueError:
            ledger.refused(ledger.asked.pop(request))
            accepted = False
        self.tell(self.running.perform())
        self.check_quotas()
        return accepted

    def check_quotas(self) -> None:
        state = self.running.engine.state
        for queue in state.queues.values():
            quota = queue.properties.quota
            if quota != UNLIMITED and queue.properties.kind is QueueKind.PRIVATE:
                taken = queue.positions.total_bytes + queue.staged_bytes
                assert taken <= quota * KILOBYTE, f"{queue.properties.path_name} has {taken} bytes"
        assert state.taken_bytes <= state.limits.quota_bytes

    # Time and disk.

    def pass_time(self) -> None:
        self.ledger.now += self.chance.choice((1, 3, 30, 100))
        queues = self.running.engine.state.queues
        self.ledger.time_went_on(
            lambda queue, lookup_id: (
                queue in queues and queues[queue].positions.get(lookup_id) is not None
            )
        )
        self.doing = Doing("tick")
        self.running.engine.tick(self.ledger.now)
        self.tell(self.running.perform())

    def begin_sync(self) -> None:
        if self.syncing is None:
            self.syncing = self.running.begin_sync()

    def run_sync(self) -> None:
        if self.syncing is not None:
            self.syncing.run()

    def end_sync(self) -> None:
        if self.syncing is not None:
            syncing, self.syncing = self.syncing, None
            syncing.run()
            self.tell(self.running.end_sync(syncing))

    def settle(self) -> None:
        self.end_sync()
        self.tell(self.running.settle())
        self.check_settled()

    def begin_checkpoint(self) -> None:
        self.end_sync()
        if self.checkpointing is None:
            self.checkpointing, answers = self.running.begin_checkpoint()
            self.tell(answers)

    def run_checkpoint(self) -> None:
        if self.checkpointing is not None and not self.write_checkpoint(self.checkpointing):
            self.checkpointing = None

    def write_checkpoint(self, writing: Checkpointing) -> bool:
        try:
            writing.run()
        except StoreFull:
            return False
        return True

    def end_checkpoint(self) -> None:
        self.begin_checkpoint()
        done, self.checkpointing = self.checkpointing, None
        if done is not None and self.write_checkpoint(done):
            self.running.end_checkpoint(done)

    def relocate(self) -> None:
        more = True
        while more and len(self.running.log.segments()) > 1:
            more, answers = self.running.relocate_some()
            self.tell(answers)
            if self.chance.random() < 0.3:
                return

    def fill_up(self) -> None:
        self.disk.capacity = self.disk.used + self.chance.randint(0, 3000)
        self.was_full = True

    def make_room(self) -> None:
        self.disk.capacity = None
        self.disk.make_room()

    def break_disk(self) -> None:
        if self.chance.random() < 0.3:
            self.disk.fail_next(self.chance.choice(FAILING), self.chance.randint(0, 3))

    def look_ahead(self) -> None:
        """What a crash in this moment would leave has everything that anybody was told of."""
        copy = self.disk.snapshot()
        copy.capacity = None
        self.check_copy(copy.crash("power" if self.chance.random() < 0.8 else "kill"))

    def check_copy(self, disk: SimulatedDisk) -> None:
        disk.lock()
        host = self.opened(disk)
        count = host.log.next_sequence - 1
        assert count >= self.ledger.certain, "somebody was told of what a crash would undo"
        assert count <= len(self.ledger.history)
        fold = type(self.ledger.fold)()
        for frame in self.ledger.history[:count]:
            fold.apply(frame)
        found = picture(host.engine.state)
        wrong = found.differences(fold.picture(), counts=not self.was_full)
        assert not wrong, f"what a crash would leave is not what was written: {wrong}"
        living = {segment.number: segment.living for segment in host.log.segments()}
        check_sums(host.engine.state, living)
        host.close()

    def crash(self, kind: Literal["power", "kill"]) -> None:
        self.disk = self.disk.crash(kind)
        self.disk.capacity = None
        self.host = None

    def check_nothing_expired(self) -> None:
        for queue in self.running.engine.state.queues.values():
            kind = queue.properties.kind.value
            for lookup_id, packet in self.ledger.fold.messages.get(queue.number, {}).items():
                if not self.ledger.fold.is_kept(queue.number, lookup_id):
                    assert expiry_in(packet, kind) >= self.ledger.now, "its time is over"

    def inspect(self) -> None:
        """`merq store check`, which shares no code with what wrote the store."""
        with TemporaryDirectory() as name:
            folder = Path(name)
            for file in self.disk.files():
                (folder / file).parent.mkdir(exist_ok=True)
                (folder / file).write_bytes(self.disk.content(file))
            report = inspect(folder, settle_s=0)
        assert not report.corruptions, report.corruptions
