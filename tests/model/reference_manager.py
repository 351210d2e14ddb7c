"""The queue manager as one would explain it: lists of messages, sorted when looked at.

What happens to messages happens when the frame it was written in is durable, and so are all before
it. Notices are not here, but for the target journal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from merq.hresult import HResult

NEVER = 0xFFFFFFFF
QUOTA_KB = 2
FULL = int(HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED)
TIMEOUT = int(HResult.MQ_ERROR_IO_TIMEOUT)
NOT_FOUND = int(HResult.MQ_ERROR_MESSAGE_NOT_FOUND)
DELETED = int(HResult.MQ_ERROR_QUEUE_DELETED)

Told = tuple[str, int]
OK: Told = ("ok", 0)


@dataclass(eq=False)
class Msg:
    """A message: `state` is staged, coming, here, held, leaving or gone."""

    number: int
    size: int
    recoverable: bool
    expires: int = NEVER
    lane: int = 7
    arrival: int = 0
    state: str = "coming"
    purged: bool = False
    correlation: int = 0
    request: int = 0

    @property
    def order(self) -> tuple[int, int]:
        return self.lane, self.arrival


@dataclass(eq=False)
class Read:
    """Somebody who wants a message: any, one by number, or one by correlation."""

    request: int
    peek: bool
    tx: int
    number: int = 0
    correlation: int = 0

    def wants(self, message: Msg) -> bool:
        if self.number:
            return message.number == self.number
        return not self.correlation or message.correlation == self.correlation


@dataclass(eq=False)
class Queue:
    transactional: bool = False
    limited: bool = False
    journal: Queue | None = None
    messages: list[Msg] = field(default_factory=list)
    waiting: list[Read] = field(default_factory=list)
    closing: bool = False

    def sorted(self, *states: str) -> list[Msg]:
        return sorted((m for m in self.messages if m.state in states), key=lambda m: m.order)

    def bytes_in(self, *states: str) -> int:
        return sum(m.size for m in self.messages if m.state in states)

    def has_room(self, size: int) -> bool:
        taken = self.bytes_in("staged", "coming", "here", "held", "leaving")
        return not self.limited or taken + size <= QUOTA_KB * 1024


@dataclass(eq=False)
class Op:
    """What happens when it and all before it are durable; or is undone if the disk is full."""

    disk: bool = False
    done: list[Callable[[], None]] = field(default_factory=list)
    undone: list[Callable[[], None]] = field(default_factory=list)
    answers: list[tuple[int, Told]] = field(default_factory=list)
    frame: int = 0


@dataclass(eq=False)
class Model:
    """The queue manager as one would explain it."""

    now: int
    frames: int
    queues: dict[str, Queue] = field(default_factory=dict)
    making: set[str] = field(default_factory=set)
    answers: dict[int, Told] = field(default_factory=dict)
    planned: list[Op] = field(default_factory=list)
    pending: list[Op] = field(default_factory=list)
    txs: dict[int, list[tuple[Queue, Msg]]] = field(default_factory=dict)
    arrivals: int = 0
    durable: int = 0
    full: int = 0

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
            for queue in self.queues.values():
                self.serve(queue)
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
        self.pending.remove(op)
        for each in op.undone:
            each()
        self.answers.update((request, ("code", FULL)) for request, _ in op.answers)
        self.settle()

    def become_durable(self, frame: int) -> None:
        self.durable = frame
        self.settle()
        self.perform()

    def put(self, op: Op, queue: Queue, message: Msg) -> None:
        self.arrivals += 1
        message.arrival, message.state = self.arrivals, "coming"
        if message not in queue.messages:
            queue.messages.append(message)
        op.disk |= message.recoverable
        op.done.append(lambda: set_state(message, "here"))
        op.undone.append(lambda: set_state(message, "gone"))

    def take(self, op: Op, message: Msg) -> None:
        message.state = "leaving"
        op.disk |= message.recoverable
        op.done.append(lambda: set_state(message, "gone"))
        op.undone.append(lambda: set_state(message, "here"))

    def received(self, op: Op, queue: Queue, message: Msg) -> None:
        self.take(op, message)
        journal = queue.journal
        if journal is not None and journal.has_room(message.size):
            copy = Msg(message.number, message.size, message.recoverable, lane=message.lane)
            self.put(op, journal, copy)

    def serve(self, queue: Queue) -> None:
        for read in list(queue.waiting):
            if self.try_read(queue, read):
                queue.waiting.remove(read)

    def try_read(self, queue: Queue, read: Read) -> bool:
        found = next((m for m in queue.sorted("here") if read.wants(m)), None)
        if found is not None:
            self.give(queue, read, found)
        return found is not None

    def give(self, queue: Queue, read: Read, message: Msg) -> None:
        told = ("body", message.number)
        if read.peek:
            self.answers[read.request] = told
        elif read.tx:
            message.state = "held"
            self.txs[read.tx].append((queue, message))
            self.answers[read.request] = told
        else:
            op = Op(answers=[(read.request, told)])
            self.received(op, queue, message)
            self.plan(op)

    def commit(self, request: int, tx: int) -> None:
        op = Op()
        for queue, message in self.end(tx):
            if message.state == "staged":
                self.put(op, queue, message)
            else:
                message.purged = False
                self.received(op, queue, message)
        op.answers.append((request, OK))
        self.plan(op)

    def abort(self, request: int, tx: int) -> None:
        op = Op(answers=[(request, OK)])
        for queue, message in self.end(tx):
            if message.state == "staged":
                message.state = "gone"
            elif message.state == "held" and message.purged and not queue.closing:
                self.take(op, message)
            elif message.state == "held":
                message.state = "here"
        self.plan(op)

    def end(self, tx: int) -> list[tuple[Queue, Msg]]:
        for queue in self.queues.values():
            for read in [each for each in queue.waiting if each.tx == tx]:
                queue.waiting.remove(read)
                self.answers[read.request] = (
                    "code",
                    int(HResult.MQ_ERROR_TRANSACTION_SEQUENCE),
                )
        return self.txs.pop(tx)

    def purge(self, request: int, queue: Queue) -> None:
        there = queue.sorted("here", "held", "leaving")
        op = Op(answers=[(request, ("number", len(there)))])
        for message in there:
            if message.state == "here":
                self.take(op, message)
            elif message.state == "held" and not message.purged:
                self.mark(op, message)
        self.plan(op)

    def mark(self, op: Op, message: Msg) -> None:
        message.purged = True
        op.undone.append(lambda: set_purged(message, purged=False))

    def expire(self) -> None:
        op = Op()
        for queue in self.queues.values():
            for message in queue.sorted("here"):
                if message.expires < self.now and not queue.closing:
                    self.take(op, message)
        if op.done:
            self.plan(op)

    def delete(self, request: int, name: str) -> None:
        op = Op(disk=True, answers=[(request, OK)])
        for part in (name, name + ";J"):
            queue = self.queues[part]
            op.answers += [(read.request, ("code", DELETED)) for read in queue.waiting]
            queue.waiting.clear()
            queue.closing = True
        op.done.append(lambda: self.forget(name))
        op.undone.append(lambda: self.reopen(name))
        self.plan(op)

    def forget(self, name: str) -> None:
        for part in (name, name + ";J"):
            for message in self.queues.pop(part).messages:
                if message.state != "staged":
                    message.state = "gone"

    def reopen(self, name: str) -> None:
        for part in (name, name + ";J"):
            self.queues[part].closing = False

    def create(self, request: int, name: str, queue: Queue) -> None:
        op = Op(disk=True, answers=[(request, OK)])
        self.making.add(name)

        def make() -> None:
            self.making.discard(name)
            self.queues[name] = queue
            kept = Queue(queue.transactional, queue.limited)
            self.queues[name + ";J"] = kept
            if queue.journal is not None:
                queue.journal = kept

        op.done.append(make)
        op.undone.append(lambda: self.making.discard(name))
        self.plan(op)

    def crash(self) -> None:
        """What did not happen never will; what was held is given back; express is gone."""
        for op in reversed(self.pending):
            for each in op.undone:
                each()
        self.pending.clear()
        self.txs.clear()
        for queue in self.queues.values():
            queue.waiting.clear()
            for message in queue.messages:
                message.purged = False
                there = message.state in {"here", "held"} and message.recoverable
                message.state = "here" if there else "gone"
        self.frames = self.durable


def set_state(message: Msg, state: str) -> None:
    message.state = state


def set_purged(message: Msg, *, purged: bool) -> None:
    message.purged = purged
