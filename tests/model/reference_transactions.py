"""The reference model's transactions, also prepared ones, and what is left of all after a crash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from model.reference_manager import Manager
from model.reference_queue import IN_QUEUE, NEVER, OK, OUT_OF_SEQUENCE, Msg, Op, Queue, Tx, Work


@dataclass(eq=False)
class Model(Manager):
    """The queue manager as one would explain it."""

    def stage(self, op: Op, tx: Tx, queue: Queue, message: Msg) -> None:
        def undo() -> None:
            message.state = "gone"
            tx.work.remove(work)

        work = Work("send", queue, message)
        message.state = "staged"
        queue.messages.append(message)
        tx.work.append(work)
        op.undone.append(undo)

    def lock_to_move(self, tx: Tx, queue: Queue, message: Msg, target: Queue) -> None:
        message.state = "held"
        tx.work.append(Work("move", queue, message, target))

    def prepare(self, request: int, tx: Tx, name: int) -> None:
        def happen() -> None:
            if tx.phase == "preparing":
                tx.phase = "prepared"

        def undo() -> None:
            tx.phase = "open"

        self.dismiss(tx)
        tx.phase, tx.name = "preparing", name
        self.plan(Op(disk=True, done=[happen], undone=[undo], answers=[(request, OK)]))

    def commit(self, request: int, tx: Tx) -> None:
        op = Op(answers=[(request, OK)])
        undo = self.end(op, tx)
        sent = [each.message for each in tx.work if each.what == "send"]
        lifetime = sent[0].lifetime if sent else NEVER
        for each in tx.work:
            if each.what == "send":
                # All messages of a transaction live as long as the first of them.
                each.message.live(lifetime, each.queue)
                if each.queue.implied and each.queue.name not in self.queues:
                    self.define(op, each.queue)
                self.put(op, each.queue, each.message)
            elif each.target is not None:
                self.move(op, each.queue, each.message, each.target)
            else:
                self.received(op, each.queue, each.message)
        op.undone += undo
        self.plan(op)

    def abort(self, request: int, tx: Tx) -> None:
        was_open = tx.phase == "open"
        told = Op(answers=[(request, OK)])
        back = Op(certain=True) if was_open else told
        undo = self.end(back, tx)
        away = Op() if was_open else back
        for each in tx.work:
            if each.message.state == "staged":
                each.message.state = "gone"
            elif each.message.state == "held":
                self.give_back(back, away, each.queue, each.message)
        back.undone += undo
        self.plan(back)
        if was_open and away.done:
            self.plan(away)
        if was_open:
            self.plan(told)

    def give_back(self, back: Op, away: Op, queue: Queue, message: Msg) -> None:
        """A message goes back to its place; or away, if it was purged or is poison."""

        def count() -> None:
            message.aborts += 1

        def count_when_written() -> None:
            count()
            if back.disk:
                message.kept_aborts = message.aborts

        def keep() -> None:
            message.kept_aborts = message.aborts

        def happen() -> None:
            if message.state == "returning":
                self.be_here(queue, message)

        if message.purged and not queue.closing:
            self.take(away, queue, message, how="going")
            return
        if queue.is_poison(message) and not queue.closing:
            away.done.append(count)
            target = self.need(away, queue.name + ";poison")
            self.move(away, queue, message, target)
            away.done.append(keep)
            return
        message.state = "returning"
        if not queue.closing:
            back.disk = True
            back.done.append(count_when_written)
        back.done.append(happen)
        back.undone.append(lambda: self.be_here(queue, message))

    def end(self, op: Op, tx: Tx) -> list[Callable[[], None]]:
        """Nothing more happens in it. Gives what is to be undone last if it does not end."""

        def be_over() -> None:
            tx.phase = "over"
            self.txs.remove(tx)

        def hold_again() -> None:
            tx.phase = "prepared"
            for each in tx.work:
                each.message.state = "staged" if each.what == "send" else "held"

        self.dismiss(tx)
        was_open = tx.phase == "open"
        tx.phase = "ending"
        if was_open:
            be_over()
            return []
        op.disk = True
        op.done.append(be_over)
        return [hold_again]

    def dismiss(self, tx: Tx) -> None:
        for queue in self.queues.values():
            for read in [each for each in queue.waiting if each.tx is tx]:
                queue.waiting.remove(read)
                self.answers[read.request] = ("code", OUT_OF_SEQUENCE)

    # The end of the process, and the next one.

    def take_checkpoint(self) -> None:
        for queue in self.queues.values():
            for message in queue.messages:
                message.kept_aborts = message.aborts

    def crash(self) -> None:
        """What did not happen never will; what was held is given back; express is gone.

        But not what belongs to prepared transactions.
        """
        for op in reversed(self.pending):
            for each in op.undone:
                each()
        self.pending.clear()
        self.planned.clear()
        self.awake.clear()
        self.openings.clear()
        self.low_on_disk = self.low_on_memory = False
        self.txs = [tx for tx in self.txs if tx.phase == "prepared"]
        self.held.clear()
        kept = [each.message for tx in self.txs for each in tx.work]
        for queue in self.queues.values():
            queue.waiting.clear()
            queue.openings.clear()
            for message in queue.messages:
                message.aborts = message.kept_aborts
                if message not in kept:
                    there = message.state in {"here", "held", "doomed"} and message.recoverable
                    message.state = "here" if there else "gone"
        self.frames = self.durable

    def start(self) -> None:
        """Queues that came by use go if they are empty; so does what was purged while held."""
        needed = [queue for tx in self.txs for queue in tx.queues]
        for queue in list(self.queues.values()):
            if queue.implied and not queue.sorted(*IN_QUEUE) and queue not in needed:
                del self.queues[queue.name]
        op = Op()
        for queue in self.queues.values():
            for message in queue.sorted("here"):
                if message.purged:
                    self.take(op, queue, message, how="going")
        if op.done:
            self.plan(op)
