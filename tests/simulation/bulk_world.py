"""The world of one manager, with consumers in groups and writers of batches.

Everything that happens in `manager_world` happens here too: messages are received, moved and purged
and expire between reservations, queues are deleted under stages, the disk fills up, the power goes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kit.row_batches import batch_of
from merq.engine.holdings import MEMORY
from merq.engine.queue import Queue
from merq.engine.staging import StageLabel
from merq.host import Host
from merq.model.queue import QueueKind
from simulation import manager_world
from simulation.bulk_ledger import BulkLedger
from simulation.manager_history import SEQUENTIAL
from simulation.manager_ledger import Doing, Sent, Unit
from simulation.manager_running import NAME
from simulation.manager_world import EMPHASES, ManagerWorld

GROUPS = ("red", "blue")
OWNERS = ("one", "two")
WRITERS = ("etl", "replay")
LEASE_S = 10
KEEP_S = 150
STEPS = 150


@dataclass(slots=True)
class Writer:
    """Who writes batches: the batch that it is at, and the stages that are done."""

    name: str
    batch: int = 0
    done: list[int] = field(default_factory=list)


class BulkWorld(ManagerWorld):
    """A queue manager, and who reads and writes in batches beside all others."""

    def __init__(self, seed: int, *, disk_seed: int | None = None) -> None:
        super().__init__(seed, disk_seed=disk_seed)
        self.limits = replace(self.limits, lease_s=LEASE_S, stage_keep_s=KEEP_S)
        now = self.ledger.now
        self.bulk = BulkLedger()
        self.ledger = self.bulk
        self.ledger.now = now
        self.writers = [Writer(name) for name in WRITERS]
        more: list[tuple[Callable[[], None], int]] = [
            (self.reserve, 80), (self.acknowledge, 60), (self.release, 4), (self.forget, 4),
            (self.read_again, 20), (self.stage, 20), (self.write, 60), (self.publish, 30),
            (self.publish_again, 6), (self.drop, 5), (self.fill_up, 6), (self.make_room, 6),
            (self.send, 40), (self.settle, 20),
        ]  # fmt: skip
        self.work += more
        self.weights += [weight * self.chance.choice(EMPHASES) for _, weight in more]

    def check_settled(self) -> None:
        """What groups have reserved is held too, and is what they were told."""
        held = set(self.ledger.held)
        for number, queue in self.running.engine.state.queues.items():
            self.ledger.held |= {(number, lookup_id) for lookup_id in queue.reserved()}
        super().check_settled()
        self.ledger.held = held
        self.bulk.forget_what_is_over()
        for (number, group, start), (_, ids) in self.bulk.told.items():
            found = self.rows(self.running.engine.state.queues[number], group, start)
            assert found == ids, f"{group} was told of {ids} at {start} of {number}, now {found}"

    # Reading.

    def rows(self, queue: Queue, group: str, start: int) -> tuple[int, ...]:
        """Those messages of a range that survive."""
        found = self.running.engine.reservations.rows(queue, group, start, 0, 1 << 20)
        pairs = zip(found.ids, found.locations, strict=True)
        return tuple(lookup_id for lookup_id, location in pairs if not location & MEMORY)

    def some_source(self) -> Queue | None:
        kinds = [QueueKind.PRIVATE, QueueKind.SUBQUEUE, QueueKind.JOURNAL, QueueKind.SYSTEM]
        return self.some_full_queue(*kinds)

    def reserve(self) -> None:
        """The next range, or the one before it again, as after a crash."""
        queue, chance = self.some_source(), self.chance
        if queue is None:
            return
        group, owner = chance.choice(GROUPS), chance.choice(OWNERS)
        claim = queue.claims.get(group)
        after = 0
        if claim is not None:
            after = claim.end
            if claim.owner and chance.random() < 0.9:
                owner = claim.owner
            if claim.ranges and chance.random() < 0.3:
                after = chance.choice(claim.ranges).start
            elif chance.random() < 0.1:
                after += chance.choice((-1, 1, 1 << 40))
        number, most = queue.number, chance.choice((1, 2, 5, 100))
        most_bytes = chance.choice((1, 500, 1 << 20))
        floor = chance.choice((0, 0, max(0, self.ledger.fold.last - 3)))
        self.ask(
            Doing("reserve", number),
            lambda request: self.running.engine.reservations.reserve(
                request,
                self.running.engine.queue(number),
                group,
                owner,
                max(after, 0),
                most=most,
                most_bytes=most_bytes,
                upto=SEQUENTIAL,
                floor=floor,
            ),
        )

    def tell_of_ranges(self) -> None:
        """Whoever was told of a range reads it."""
        for number, queue in self.running.engine.state.queues.items():
            for group, claim in queue.claims.items():
                for each in claim.durable:
                    ids = self.rows(queue, group, each.start)
                    self.bulk.reserved((number, group, each.start), each.end, ids)

    def read_again(self) -> None:
        self.bulk.forget_what_is_over()
        if self.running.engine.state.is_settled:
            self.tell_of_ranges()

    def some_claim(self) -> tuple[Queue, str] | None:
        found = [
            (queue, group)
            for queue in self.running.engine.state.queues.values()
            if not queue.closing
            for group in queue.claims
        ]
        busy = [(queue, group) for queue, group in found if queue.claims[group].ranges]
        chosen = busy if busy and self.chance.random() < 0.8 else found
        return self.chance.choice(chosen) if chosen else None

    def acknowledge(self) -> None:
        found = self.some_claim()
        if found is None:
            return
        queue, group = found
        claim = queue.claims[group]
        upto = claim.end if self.chance.random() < 0.8 else claim.acknowledged
        if claim.ranges and self.chance.random() < 0.3:
            upto = claim.ranges[0].end
        number, owner = queue.number, claim.owner or OWNERS[0]
        if self.chance.random() < 0.1:
            owner = self.chance.choice(OWNERS)
        leave = self.chance.random() < 0.2
        self.ask(
            Doing("acknowledge", number),
            lambda request: self.running.engine.reservations.acknowledge(
                request, self.running.engine.queue(number), group, owner, upto, leave=leave
            ),
        )

    def release(self) -> None:
        self.end_claim(forget=False)

    def forget(self) -> None:
        self.end_claim(forget=True)

    def end_claim(self, *, forget: bool) -> None:
        found = self.some_claim()
        if found is not None:
            queue, group = found
            number = queue.number
            self.ask(
                Doing("forget" if forget else "release", number),
                lambda request: self.running.engine.reservations.release(
                    request, self.running.engine.queue(number), group, forget=forget
                ),
            )

    # Writing.

    def stages_of(self, writer: Writer) -> list[Queue]:
        return [
            queue
            for queue in self.running.engine.state.queues.values()
            if queue.properties.kind is QueueKind.STAGE
            and not queue.closing
            and StageLabel.of(queue).writer == writer.name
            and StageLabel.of(queue).batch == writer.batch
        ]

    def stage(self) -> None:
        transactional = self.chance.random() < 0.5
        target, writer = self.some_target(transactional=transactional), self.some_writer()
        if target is not None:
            number = target.number
            label = StageLabel(writer.name, writer.batch, str(self.requests))
            self.ask(
                Doing("stage", number, mark=None),
                lambda request: self.running.engine.stages.create(
                    request, self.running.engine.queue(number), label
                ),
            )

    def some_writer(self) -> Writer:
        return self.chance.choice(self.writers)

    def write(self) -> None:
        stages = self.stages_of(self.some_writer())
        if not stages:
            self.stage()
            return
        stage = self.chance.choice(stages).number
        unit, packets = Unit(asked="send"), []
        for _ in range(self.chance.choice((1, 2, 4, 9))):
            recoverable = self.chance.random() < 0.7
            tag, packet = self.packet(f"OS:{NAME}\\private$\\q", recoverable=recoverable)
            self.ledger.sent[tag] = Sent(unit, stage)
            unit.tags.append(tag)
            packets.append(packet)
        engine = self.running.engine
        by_rows = self.chance.random() < 0.5
        self.ask(
            Doing("write", stage, unit),
            lambda request: (
                engine.stages.send_rows(request, engine.stage(stage), batch_of(packets))
                if by_rows
                else engine.send(request, stage, packets)
            ),
        )

    def publish(self) -> None:
        writer = self.some_writer()
        stages = self.stages_of(writer)
        if self.chance.random() < 0.3:
            stages = stages[: self.chance.randint(0, len(stages))]  # others were lost attempts
        numbers = [each.number for each in stages]
        self.chance.shuffle(numbers)
        expected = sum(each.positions.count for each in stages)
        doing = self.ask_to_publish(writer.name, writer.batch, numbers, expected)
        if doing:
            writer.batch += 1

    def ask_to_publish(self, writer: str, batch: int, numbers: list[int], expected: int) -> bool:
        """Asks, and waits for the answer: a writer goes on when its batch is published."""
        before = self.ledger.fold.published.get(writer, -1)
        doing = Doing("publish")
        accepted = self.ask(
            doing,
            lambda request: self.running.engine.stages.publish(request, writer, batch, numbers),
        )
        if not accepted:
            return False
        self.end_sync()
        self.tell(self.running.settle())
        if doing in self.ledger.asked.values():
            raise AssertionError("nobody answers who publishes")
        now = self.ledger.fold.published.get(writer, -1)
        assert now in (before, batch) or now > batch
        if doing.frame and expected and now == batch:
            assert before < batch, "it was published before"
        return now >= batch

    def publish_again(self) -> None:
        """A batch comes again, as after a crash of who wrote it."""
        writer = self.some_writer()
        if writer.batch:
            self.ask_to_publish(writer.name, writer.batch - 1, [], 0)

    def drop(self) -> None:
        writer = self.some_writer()
        self.ask(
            Doing("drop stages"),
            lambda request: self.running.engine.stages.drop(
                request, writer=writer.name, batch=writer.batch, stage=0
            ),
        )

    # Lives.

    def came_back(self, host: Host) -> None:
        super().came_back(host)
        for writer in self.writers:
            published = self.ledger.fold.published.get(writer.name, -1)
            assert published >= writer.batch - 1, "a batch that was published is forgotten"
            writer.batch = max(writer.batch, published + 1)

    def check_nothing_expired(self) -> None:
        """Everything comes to rest: what is reserved is given back, and nothing is left behind."""
        self.read_again()
        for queue in list(self.running.engine.state.queues.values()):
            for group in list(queue.claims):
                self.ask(
                    Doing("forget", queue.number),
                    lambda request, queue=queue, group=group: (  # type: ignore[misc]
                        self.running.engine.reservations.release(request, queue, group, forget=True)
                    ),
                )
        self.settle()
        self.ledger.now += KEEP_S + 100
        for _ in range(3):
            self.pass_time()
            self.settle()
        assert self.running.engine.stages.all() == [], "stages are left behind"
        assert self.running.engine.reservations.all() == []
        super().check_nothing_expired()


def run_seed(seed: int) -> None:
    """Several lives with crashes at any time, opening included."""
    manager_world.run_seed(seed, BulkWorld, STEPS, latest=500)


def run_everywhere(seed: int, steps: int = 25) -> None:
    """One short life, interrupted at every operation of the disk."""
    manager_world.run_everywhere(seed, steps, BulkWorld)
