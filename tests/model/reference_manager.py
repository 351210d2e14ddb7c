"""The queue manager as one would explain it: lists of messages, sorted when looked at.

What happens to messages happens when the frame it was written in is durable, and so are all before
it. Notices are not here, but for the target journal. Transactions are in `reference_transactions`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from model.reference_queue import (
    CANCELLED,
    DELETED,
    FULL,
    IN_QUEUE,
    OK,
    TAKING_ROOM,
    Msg,
    Op,
    Opening,
    Queue,
    Read,
    Told,
    Tx,
    Work,
)


@dataclass(eq=False)
class Manager:
    """Queues, messages, readers, and a disk that may be slow or full."""

    now: int
    frames: int
    durable: int
    machine_quota_bytes: int
    memory_bytes: int
    queues: dict[str, Queue] = field(default_factory=dict)
    coming: dict[str, Queue] = field(default_factory=dict)
    answers: dict[int, Told] = field(default_factory=dict)
    planned: list[Op] = field(default_factory=list)
    pending: list[Op] = field(default_factory=list)
    awake: list[Queue] = field(default_factory=list)
    txs: list[Tx] = field(default_factory=list)
    held: list[tuple[Queue, Msg]] = field(default_factory=list)
    openings: dict[int, Opening] = field(default_factory=dict)
    arrivals: int = 0
    full: int = 0
    low_on_disk: bool = False
    low_on_memory: bool = False

    # Operations, and when they happen.

    def plan(self, op: Op) -> None:
        self.planned.append(op)
        self.pending.append(op)
        self.settle()

    def settle(self) -> None:
        while self.pending and (not self.pending[0].disk or self.pending[0].frame > 0):
            if self.pending[0].frame > self.durable:
                return
            op = self.pending.pop(0)
            for each in op.done:
                each()
            self.answers.update(op.answers)

    def perform(self) -> None:
        while True:
            self.serve_awake()
            planned, self.planned = self.planned, []
            if not planned:
                return
            for op in planned:
                self.write(op)

    def write(self, op: Op) -> None:
        if not op.disk:
            return
        if not self.full:
            self.frames += 1
            op.frame = self.frames
            return
        self.full -= 1
        if op.certain:
            op.disk = False
        else:
            self.pending.remove(op)
            for each in op.undone:
                each()
            self.answers.update((request, ("code", FULL)) for request, _ in op.answers)
        self.settle()

    def become_durable(self, frame: int) -> None:
        self.durable = frame
        self.settle()
        self.perform()

    # Room.

    def taken(self, *states: str) -> int:
        """What messages take, also those that a transaction keeps for a queue that is deleted."""
        there = {*self.queues.values(), *self.coming.values()}
        there |= {queue for tx in self.txs for queue in tx.queues}
        return sum(queue.bytes_in(*states) for queue in there)

    def has_room(self, sizes: list[tuple[Queue | None, int]]) -> bool:
        """Whether messages can be sent, one into each of these queues; None is a new one."""
        if self.express_bytes() > self.memory_bytes:
            self.low_on_memory = True
        if self.low_on_disk or self.low_on_memory:
            return False
        total = sum(size for _, size in sizes)
        if self.taken(*TAKING_ROOM) + total > self.machine_quota_bytes:
            return False
        for queue, _ in sizes:
            if queue is not None:
                into_it = sum(size for other, size in sizes if other is queue)
                if not queue.has_room(into_it):
                    return False
        return True

    def express_bytes(self) -> int:
        there = [m for queue in self.queues.values() for m in queue.sorted(*IN_QUEUE)]
        return sum(m.size for m in there if not m.recoverable)

    def watch(self, free: int, reserve: int) -> None:
        """Sends are refused when room runs low, until there is clearly more."""
        self.low_on_disk = free < (2 * reserve if self.low_on_disk else reserve)
        most = self.memory_bytes * 4 // 5 if self.low_on_memory else self.memory_bytes
        self.low_on_memory = self.express_bytes() > most

    # Messages come and go.

    def put(self, op: Op, queue: Queue, message: Msg) -> None:
        self.arrivals += 1
        message.arrival, message.state = self.arrivals, "coming"
        if message not in queue.messages:
            queue.messages.append(message)
        op.disk |= message.recoverable
        op.done.append(lambda: self.be_here(queue, message))
        op.undone.append(lambda: set_state(message, "gone"))

    def be_here(self, queue: Queue, message: Msg) -> None:
        message.state = "here"
        self.awake.append(queue)

    def take(self, op: Op, queue: Queue, message: Msg, *, how: str) -> None:
        was_returning = message.state == "returning"
        message.state = how
        op.disk |= message.recoverable
        op.done.append(lambda: set_state(message, "gone"))
        if was_returning:
            op.undone.append(lambda: set_state(message, "returning"))
        else:
            op.undone.append(lambda: self.stay(queue, message))

    def stay(self, queue: Queue, message: Msg) -> None:
        """A message does not leave; what was purged goes at the next start, and to nobody."""
        if message.purged:
            message.state = "doomed"
        else:
            self.be_here(queue, message)

    def received(self, op: Op, queue: Queue, message: Msg) -> None:
        self.take(op, queue, message, how="leaving")
        if queue.kind == "journal":
            return
        owner = queue.owner or queue
        journal = owner.journal
        if journal is not None and owner.journaling and journal.has_room(message.size):
            copy = Msg(message.number, message.size, message.recoverable, lane=message.lane)
            self.put(op, journal, copy)

    def move(self, op: Op, queue: Queue, message: Msg, target: Queue) -> None:
        def happen() -> None:
            queue.messages.remove(message)
            target.messages.append(message)
            message.purged = False
            message.moves += 1
            self.be_here(target, message)

        message.state = "leaving"
        op.disk |= message.recoverable
        op.done.append(happen)
        op.undone.append(lambda: self.stay(queue, message))

    def purge(self, request: int, queue: Queue) -> None:
        there = queue.sorted(*IN_QUEUE)
        op = Op(answers=[(request, ("number", len(there)))])
        for message in there:
            if message.state in {"here", "returning"}:
                self.take(op, queue, message, how="going")
            elif message.state in {"held", "leaving"} and not message.purged:
                self.mark(op, message)
        self.plan(op)

    def mark(self, op: Op, message: Msg) -> None:
        def keep() -> None:
            message.kept_aborts = message.aborts

        message.purged = True
        op.disk |= message.recoverable
        op.done.append(keep)
        op.undone.append(lambda: set_purged(message, purged=False))

    def expire(self) -> None:
        op = Op()
        for queue in self.queues.values():
            for message in queue.sorted("here"):
                if message.expires < self.now and not queue.closing:
                    self.take(op, queue, message, how="going")
        if op.done:
            self.plan(op)

    # Readers.

    def serve_awake(self) -> None:
        while self.awake:
            queue = self.awake.pop(0)
            for read in list(queue.waiting):
                if self.try_read(queue, read):
                    queue.waiting.remove(read)

    def try_read(self, queue: Queue, read: Read) -> bool:
        found = [m for m in queue.sorted("here") if read.wants(m)][: read.most or 1]
        if found:
            self.give(queue, read, found)
        return bool(found)

    def give(self, queue: Queue, read: Read, messages: list[Msg]) -> None:
        bodies = tuple((m.number, m.aborts, m.moves) for m in messages)
        told: Told = ("many", bodies) if read.most else ("one", bodies[0])
        op = Op(answers=[(read.request, told)])
        for message in messages:
            if read.peek:
                continue
            if read.tx is not None:
                message.state = "held"
                read.tx.work.append(Work("receive", queue, message))
            elif read.held:
                message.state = "held"
                self.held.append((queue, message))
            else:
                self.received(op, queue, message)
        if op.done:
            self.plan(op)
        else:
            self.answers.update(op.answers)

    def end_receive(self, request: int, queue: Queue, message: Msg, *, delete: bool) -> None:
        """What a reader held goes, or is there again; or stays held, if it cannot be written."""

        def hold_again() -> None:
            if not message.purged:
                message.state = "held"
                self.held.append((queue, message))

        self.held.remove((queue, message))
        op = Op(answers=[(request, OK)])
        if message.purged:
            self.take(op, queue, message, how="going")
        elif delete:
            self.received(op, queue, message)
        else:
            self.be_here(queue, message)
        if op.undone:
            op.undone.append(hold_again)
        self.plan(op)

    # Queues.

    def create(self, request: int, queue: Queue) -> None:
        op = Op(answers=[(request, OK)])
        queue.journal = Queue(
            queue.name + ";J", "journal", queue.transactional, queue.limited, owner=queue
        )
        self.define(op, queue)
        self.define(op, queue.journal)
        self.plan(op)

    def define(self, op: Op, queue: Queue) -> None:
        def leave() -> None:
            queue.makers -= 1
            if not queue.makers:
                del self.coming[queue.name]

        def come() -> None:
            leave()
            self.queues[queue.name] = queue

        self.coming[queue.name] = queue
        queue.makers += 1
        op.disk = True
        op.done.append(come)
        op.undone.append(leave)

    def need(self, op: Op, name: str) -> Queue:
        """A queue that comes by use: whoever needs it before it is there writes it."""
        if name in self.queues:
            return self.queues[name]
        queue = self.coming.get(name)
        if queue is None and name.startswith("out"):
            queue = Queue(name, "outgoing")
        elif queue is None:
            owner = self.queues[name.split(";", maxsplit=1)[0]]
            queue = Queue(name, "subqueue", owner.transactional, owner=owner)
        self.define(op, queue)
        return queue

    def parts(self, name: str) -> list[Queue]:
        """A queue with its journal and subqueues, also those that are being made."""
        known = {**self.coming, **self.queues}
        return [each for key, each in known.items() if key.split(";")[0] == name]

    def delete(self, request: int, name: str) -> None:
        op = Op(disk=True, answers=[(request, OK)])
        parts = self.parts(name)
        for queue in parts:
            op.answers += [(read.request, ("code", DELETED)) for read in queue.waiting]
            queue.waiting.clear()
            queue.closing = True
        op.done.append(lambda: self.forget(parts))
        op.undone.append(lambda: reopen(parts))
        self.plan(op)

    def forget(self, parts: list[Queue]) -> None:
        self.held = [(queue, m) for queue, m in self.held if queue not in parts]
        for queue in parts:
            del self.queues[queue.name]
            for message in queue.messages:
                if message.state != "staged":
                    message.state = "gone"

    def close(self, handle: int) -> None:
        opening = self.openings.pop(handle)
        del opening.queue.openings[handle]
        for read in [each for each in opening.queue.waiting if each.handle == handle]:
            opening.queue.waiting.remove(read)
            self.answers[read.request] = ("code", CANCELLED)


def set_state(message: Msg, state: str) -> None:
    message.state = state


def set_purged(message: Msg, *, purged: bool) -> None:
    message.purged = purged


def reopen(parts: list[Queue]) -> None:
    for queue in parts:
        queue.closing = False
