"""The rules that matter most to what is left after crashes: few, so that they meet often."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from merq.hresult import HResult
from model.engine_machine import PARTS, names, picks
from model.message_rules import MessageRules
from model.reference_queue import DENIED, NEVER, OK, Op
from model.transaction_rules import TransactionRules


class Core(MessageRules, TransactionRules):
    """Transactions, moves, purges and deletions, on a disk that is slow, full or lost."""

    @initialize(small=st.booleans(), journaling=st.booleans(), poison_after=st.integers(0, 2))
    def start(self, small: bool, journaling: bool, poison_after: int) -> None:
        """Something is there already: a subqueue, and messages that were sent in a transaction."""
        self.begin_both(small=small, journaling=journaling, poison_after=poison_after)
        self.create_subqueue("qb", ";s")
        self.send("qb", 0, NEVER, [1, 3], 0)
        self.commit(0)
        self.sync()

    @rule(name=names)
    def delete(self, name: str) -> None:
        if self.usable(name) is None:
            return
        parts = self.model.parts(name)
        held = [queue for tx in self.model.txs if tx.phase != "open" for queue in tx.queues]
        needed = any(queue in parts for queue in held)
        request = self.call(
            int(HResult.MQ_ERROR_TRANSACTION_USAGE) if needed else None,
            lambda request: self.world.engine.delete_queue(request, self.number(name)),
        )
        if request is not None:
            self.model.delete(request, name)
            self.model.perform()

    @rule(where=picks)
    def purge(self, where: int) -> None:
        name = self.somewhere(where)
        queue = self.usable(name)
        if queue is not None:
            request = self.call(
                DENIED if queue.denied else None,
                lambda request: self.world.engine.purge(request, self.number(name)),
            )
            if request is not None:
                self.model.purge(request, queue)
                self.model.perform()

    @rule(name=names, part=st.sampled_from(PARTS[2:]))
    def create_subqueue(self, name: str, part: str) -> None:
        if self.usable(name) is None:
            return
        request = self.call(
            None,
            lambda request: self.world.engine.create_subqueue(request, self.number(name), part[1:]),
        )
        assert request is not None
        op = Op(answers=[(request, OK)])
        self.model.need(op, name + part)
        self.model.plan(op)
        self.model.perform()

    # The world.

    @rule()
    def sync_one(self) -> None:
        self.world.sync_one()
        if self.model.durable < self.model.frames:
            self.model.become_durable(self.model.durable + 1)

    @rule()
    def fill_the_disk(self) -> None:
        self.world.full = self.model.full = 1

    @precondition(lambda self: not self.model.pending)
    @rule()
    def take_checkpoint(self) -> None:
        self.world.take_checkpoint()
        self.model.take_checkpoint()

    @rule()
    def crash(self) -> None:
        self.world.full = self.model.full = 0
        self.cursor = None
        self.world.restart()
        self.model.crash()
        prepared = self.world.engine.transactions.prepared()
        names = {name.int: number for name, number in prepared.items()}
        for tx in self.model.txs:
            tx.number = names[tx.name]
        self.model.expire()
        self.model.start()
        self.model.perform()
        self.sync()
        self.warm_up()
        self.model.frames = self.model.durable = self.world.durable_frames
