"""Many things are asked for before any of them is written, and then the disk may be full.

What one of them plans must not be built upon another that then fails: what is in memory is always
what the log adds up to.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from merq.engine.positions import AVAILABLE
from merq.engine.queue import Queue
from merq.engine.staging import SWEEP_S
from merq.errors import MessageQueueError
from merq.model.queue import QueueKind
from merq.model.selecting import First
from unit.engine.bulk_world import BulkWorld

SEEDS = 120
ROUNDS = 25
GROUPS = ("red", "blue")
WRITERS = ("etl", "replay")


class Bursts:
    """A world in which somebody asks for this and that."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)  # noqa: S311
        self.world = BulkWorld(durable_at_once=False)
        self.names = 0
        self.accepted: set[int] = set()
        self.ways: list[Callable[[], object]] = [
            self.make, self.send, self.send, self.send, self.receive, self.reserve, self.reserve,
            self.reserve, self.acknowledge, self.acknowledge, self.release, self.stage, self.stage,
            self.write, self.write, self.write, self.publish, self.publish, self.drop, self.purge,
            self.delete,
        ]  # fmt: skip

    def queues(self, kind: QueueKind = QueueKind.PRIVATE) -> list[Queue]:
        found = self.world.engine.state.queues.values()
        return [each for each in found if each.properties.kind is kind and each.number > 15]

    def some(self, kind: QueueKind = QueueKind.PRIVATE) -> Queue:
        return self.chance.choice(self.queues(kind))

    def make(self) -> None:
        self.names += 1
        if len(self.queues()) < 3:
            transactional = self.chance.random() < 0.4
            self.world.create(f"q{self.names}", transactional=transactional, quota=8)

    def packet(self, number: int) -> bytes:
        body = bytes(self.chance.choice((1, 300)))
        priority = self.chance.choice((3, 3, 7))
        return self.world.packet(number, body=body, recoverable=True, priority=priority)

    def send(self) -> None:
        queue = self.some()
        transaction = self.world.begin() if queue.properties.transactional else 0
        packets = [self.packet(queue.number) for _ in range(self.chance.randint(1, 3))]
        engine = self.world.engine
        engine.send(self.world.next_request(), queue.number, packets, transaction)
        if transaction:
            self.world.perform()
            engine.transactions.commit(self.world.next_request(), transaction)

    def receive(self) -> None:
        number = self.some().number
        self.world.engine.receive(self.world.next_request(), number, First(), wait=False)

    def reserve(self) -> None:
        queue, group = self.some(), self.chance.choice(GROUPS)
        claim = queue.claims.get(group)
        after = 0 if claim is None else claim.end
        if claim is not None and claim.ranges and self.chance.random() < 0.3:
            after = self.chance.choice(claim.ranges).start
        most = self.chance.choice((1, 2, 50))
        self.world.ask_reserve(queue.number, after, group=group, most=most)

    def acknowledge(self) -> None:
        queue, group = self.some(), self.chance.choice(GROUPS)
        claim = queue.claims.get(group)
        upto = 0 if claim is None else claim.end
        self.world.ask_acknowledge(queue.number, upto, group=group)

    def release(self) -> None:
        forget = self.chance.random() < 0.5
        self.world.ask_release(self.some().number, group=self.chance.choice(GROUPS), forget=forget)

    def batch(self, writer: str) -> int:
        return self.world.engine.state.published.get(writer, (-1, 0))[0] + 1

    def stage(self) -> None:
        writer = self.chance.choice(WRITERS)
        self.world.ask_stage(self.some().number, batch=self.batch(writer), writer=writer)

    def write(self) -> None:
        stage = self.some(QueueKind.STAGE)
        number = self.some().number
        packets = [self.packet(number) for _ in range(self.chance.randint(1, 3))]
        self.world.engine.send(self.world.next_request(), stage.number, packets)

    def publish(self) -> None:
        writer = self.chance.choice(WRITERS)
        told = [each for each in self.world.engine.stages.all() if each.writer == writer]
        stages = [each.stage for each in told if self.chance.random() < 0.8]
        self.world.ask_publish(*stages, batch=self.batch(writer), writer=writer)

    def drop(self) -> None:
        writer = self.chance.choice(WRITERS)
        request = self.world.next_request()
        self.world.engine.stages.drop(request, writer=writer, batch=self.batch(writer), stage=0)

    def purge(self) -> None:
        # What is purged on its way out, and then stays, goes at the next start: not seen here.
        if self.world.engine.state.is_settled:
            self.world.engine.purge(self.world.next_request(), self.some().number)

    def delete(self) -> None:
        if self.chance.random() < 0.3:
            self.world.engine.delete_queue(self.world.next_request(), self.some().number)

    def burst(self) -> None:
        """Several requests, then the disk, which may be full for some of them."""
        for _ in range(self.chance.randint(1, 7)):
            asked = self.world.requests
            try:
                self.chance.choice(self.ways)()
            except (MessageQueueError, IndexError):
                continue  # it was refused, or there is nothing to ask for
            self.accepted |= set(range(asked + 1, self.world.requests + 1))
        self.world.full = self.chance.choice((0, 0, 0, 1, 1, 2, 4))
        self.world.perform()
        self.world.full = 0
        for _ in range(self.chance.randint(0, 3)):
            self.world.sync_one()

    def settle(self) -> None:
        """Everything happens, and what is left of queues that are gone is swept up."""
        self.world.perform()
        self.world.sync()
        self.world.tick(SWEEP_S)
        self.world.sync()

    def check(self) -> None:
        """Nothing is under way: what is reserved is taken, nothing else is, and all is counted."""
        state = self.world.engine.state
        assert state.is_settled
        taken = 0
        for queue in state.queues.values():
            away = {each.lookup_id for each in queue.positions if each.state != AVAILABLE}
            assert away == queue.reserved(), f"in {queue.properties.path_name}"
            assert queue.staged_bytes == 0
            taken += queue.positions.total_bytes
            for claim in queue.claims.values():
                assert (claim.reserving, claim.acknowledging) == (None, None)
                assert not claim.releasing
                assert not claim.ending
                starts = [claim.acknowledged, *(each.end for each in claim.ranges)]
                assert starts == sorted(set(starts))
        assert state.taken_bytes == taken
        unanswered = self.accepted - set(self.world.answers)
        assert not unanswered, "somebody waits for ever"


@pytest.mark.parametrize("first", range(0, SEEDS, 20))
def test_what_is_in_memory_is_what_the_log_adds_up_to(first: int) -> None:
    for seed in range(first, first + 20):
        bursts = Bursts(seed)
        bursts.make()
        bursts.settle()
        for _ in range(ROUNDS):
            bursts.burst()
            if bursts.chance.random() < 0.3:
                bursts.settle()
                bursts.check()
                before = bursts.world.picture()
                bursts.accepted.clear()
                bursts.world.come_back(checkpoint=bursts.chance.random() < 0.3)
                assert bursts.world.picture() == before, f"seed {seed}"
