"""The engine against a model that anyone can believe: lists of messages, sorted when looked at.

The model says what each request is to be answered and when, what is in each queue, and what is left
after a crash. Frames become durable late, one by one, and some find the disk full. Notices are not
modelled but for the target journal; `unit/engine/test_notices.py` has them.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from merq.engine.changes import Delivered, Result
from merq.engine.cursor import Cursor
from merq.engine.reading import (
    ByCorrelationId,
    ByCursor,
    ByLookup,
    ByMessageId,
    First,
    Seek,
    Selector,
)
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.wire.view import MessageView
from model.reference_manager import (
    DELETED,
    NEVER,
    NOT_FOUND,
    OK,
    QUOTA_KB,
    TIMEOUT,
    Model,
    Msg,
    Op,
    Queue,
    Read,
    Told,
)
from unit.engine.engine_world import World

NAMES = ("qa", "qb", "qc")

names = st.sampled_from(NAMES)
picks = st.integers(0, 1 << 16)


class Engine(RuleBasedStateMachine):
    """Every operation on both, and the same answers from both."""

    @initialize()
    def start(self) -> None:
        self.world = World()
        self.warm = self.world.create("qz")
        self.world.send(self.warm)
        self.size = len(self.world.messages(self.warm)[0].packet)
        self.world.durable_at_once = False
        self.model = Model(now=self.world.now, frames=len(self.world.log))
        self.model.durable = self.world.durable_frames
        self.numbers: dict[str, int] = {}
        self.count = 0
        self.cursor: tuple[str, Queue, Cursor] | None = None
        self.cursor_at: tuple[int, int] = (-1, -1)
        self.cursor_read = False
        for name, transactional in (("qa", False), ("qb", True)):
            self.create(name, transactional, False, False)
            self.sync()

    # What both need.

    def usable(self, name: str) -> Queue | None:
        queue = self.model.queues.get(name)
        return None if queue is None or queue.closing else queue

    def number(self, name: str) -> int:
        path = rf".\private$\{name}".replace(";J", ";JOURNAL")
        return self.world.find(path)

    def ask(self, code: int | None, ask: Callable[[], object]) -> bool:
        """Asks the engine, which is to refuse with a code or not at all."""
        if code is None:
            ask()
            return True
        with pytest.raises(MessageQueueError) as refused:
            ask()
        assert refused.value.code == code
        return False

    def message_of(self, queue: Queue, pick: int, *states: str) -> Msg | None:
        found = queue.sorted(*states)
        return found[pick % len(found)] if found else None

    def lookup_of(self, name: str, message: Msg) -> int:
        state = self.world.engine.state
        for place in self.world.engine.queue(self.number(name)).positions:
            if number_in(state.packet_of(place)) == message.number:
                return place.lookup_id
        raise AssertionError(f"{message} is not in {name}")

    # Queues.

    @rule(name=names, transactional=st.booleans(), journaling=st.booleans(), limited=st.booleans())
    def create(self, name: str, transactional: bool, journaling: bool, limited: bool) -> None:
        exists = name in self.model.queues or name in self.model.making
        quota = QUOTA_KB if limited else NEVER
        code = int(HResult.MQ_ERROR_QUEUE_EXISTS) if exists else None
        if self.ask(
            code,
            lambda: self.world.create(
                name,
                transactional=transactional,
                journaling=journaling,
                quota=quota,
                journal_quota=quota,
            ),
        ):
            queue = Queue(transactional, limited, Queue() if journaling else None)
            self.model.create(self.world.requests, name, queue)
            self.model.perform()

    @rule(name=names)
    def delete(self, name: str) -> None:
        if self.usable(name) is not None:
            self.model.delete(self.world.delete(self.number(name)), name)
            self.model.perform()

    @rule(name=names, journal=st.booleans())
    def purge(self, name: str, journal: bool) -> None:
        name += ";J" * journal
        queue = self.usable(name)
        if queue is not None:
            self.model.purge(self.world.purge(self.number(name)), queue)
            self.model.perform()

    # Messages.

    @rule(
        name=names,
        priority=st.integers(0, 7),
        recoverable=st.booleans(),
        large=st.booleans(),
        lifetime=st.sampled_from([NEVER, NEVER, 3, 8]),
        correlation=st.integers(0, 2),
        pick=picks,
    )
    def send(
        self,
        name: str,
        priority: int,
        recoverable: bool,
        large: bool,
        lifetime: int,
        correlation: int,
        pick: int,
    ) -> None:
        queue = self.usable(name)
        if queue is None:
            return
        tx = 0
        if queue.transactional:
            tx = self.some_tx(pick)
            priority, recoverable = 0, True
        self.count += 1
        body = self.count.to_bytes(4, "little") + bytes(600 * large)
        size = self.size + len(body) + 20 * bool(tx)
        code = None if queue.has_room(size) else int(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES)
        if not self.ask(
            code,
            lambda: self.world.send(
                self.number(name),
                tx,
                body=body,
                priority=priority,
                recoverable=recoverable,
                time_to_be_received=lifetime,
                correlation_id=bytes([correlation]) * 20,
            ),
        ):
            return
        request = self.world.requests
        expires = NEVER if lifetime == NEVER else self.model.now + lifetime
        message = Msg(self.count, size, recoverable, expires, 7 - priority)
        message.correlation, message.request = correlation, request
        op = Op(answers=[(request, OK)])
        if tx:
            message.state = "staged"
            queue.messages.append(message)
            self.model.txs[tx].append((queue, message))
        else:
            self.model.put(op, queue, message)
        self.model.plan(op)
        self.model.perform()

    def read(self, name: str, selector: Selector, read: Read, *, wait: bool) -> None:
        queue = self.model.queues[name]
        number = self.number(name)
        if read.peek:
            read.request = self.world.peek(number, selector, wait=wait)
        else:
            read.request = self.world.receive(number, selector, wait=wait, transaction=read.tx)
        if not self.model.try_read(queue, read):
            if wait:
                queue.waiting.append(read)
            else:
                particular = isinstance(selector, ByMessageId | ByCorrelationId)
                self.model.answers[read.request] = ("code", NOT_FOUND if particular else TIMEOUT)
        self.model.perform()

    def some_tx(self, pick: int) -> int:
        if not self.model.txs:
            self.begin()
        return list(self.model.txs)[pick % len(self.model.txs)]

    @rule(name=names, journal=st.booleans(), peek=st.booleans(), wait=st.booleans(), pick=picks)
    def read_first(self, name: str, journal: bool, peek: bool, wait: bool, pick: int) -> None:
        name += ";J" * (journal and not wait)
        queue = self.usable(name)
        if queue is not None:
            tx = self.some_tx(pick) if queue.transactional and not peek and pick % 2 else 0
            self.read(name, First(), Read(0, peek, tx), wait=wait)

    @rule(name=names, peek=st.booleans(), pick=picks)
    def read_by_id(self, name: str, peek: bool, pick: int) -> None:
        queue = self.usable(name)
        found = queue and self.message_of(queue, pick, "here", "held", "leaving")
        if found:
            selector = ByMessageId(self.world.message_id(found.request))
            self.read(name, selector, Read(0, peek, 0, number=found.number), wait=False)

    @rule(name=names, peek=st.booleans(), wait=st.booleans(), correlation=st.integers(1, 2))
    def read_by_correlation(self, name: str, peek: bool, wait: bool, correlation: int) -> None:
        if self.usable(name) is not None:
            selector = ByCorrelationId(bytes([correlation]) * 20)
            self.read(name, selector, Read(0, peek, 0, correlation=correlation), wait=wait)

    @rule(name=names, peek=st.booleans(), seek=st.sampled_from(Seek), pick=picks)
    def read_by_lookup(self, name: str, peek: bool, seek: Seek, pick: int) -> None:
        queue = self.usable(name)
        anchor = queue and self.message_of(queue, pick, "here", "held", "leaving")
        if queue is None or not anchor:
            return
        here = queue.sorted("here")
        found = {
            Seek.FIRST: here[:1],
            Seek.LAST: here[-1:],
            Seek.CURRENT: [m for m in here if m is anchor],
            Seek.NEXT: [m for m in here if m.order > anchor.order][:1],
            Seek.PREVIOUS: [m for m in here if m.order < anchor.order][-1:],
        }[seek]
        selector = ByLookup(self.lookup_of(name, anchor), seek)
        ask = self.world.peek if peek else self.world.receive
        request = ask(self.number(name), selector)
        if found:
            self.model.give(queue, Read(request, peek, 0), found[0])
        else:
            locked = peek and seek is Seek.CURRENT
            code = int(HResult.MQ_ERROR_TRANSACTION_USAGE) if locked else NOT_FOUND
            self.model.answers[request] = ("code", code)
        self.model.perform()

    @rule(name=names, how=st.sampled_from(["new", "peek", "next", "receive"]))
    def use_cursor(self, name: str, how: str) -> None:
        if how == "new" and self.usable(name) is not None:
            cursor = self.world.engine.open_cursor(self.number(name))
            self.cursor = (name, self.model.queues[name], cursor)
            self.cursor_at, self.cursor_read = (-1, -1), False
        if self.cursor is None or self.usable(self.cursor[0]) is not self.cursor[1]:
            return
        name, queue, cursor = self.cursor
        selector = ByCursor(cursor, next_one=how == "next")
        ask = self.world.receive if how == "receive" else self.world.peek
        request = ask(self.number(name), selector)
        read = Read(request, how != "receive", 0)
        if how == "next" and not self.cursor_read:
            self.model.answers[request] = ("code", int(HResult.MQ_ERROR_ILLEGAL_CURSOR_ACTION))
        elif self.cursor_read and how != "next":
            found = [m for m in queue.sorted("here") if m.order == self.cursor_at]
            code = int(HResult.MQ_ERROR_MESSAGE_ALREADY_RECEIVED)
            self.answer_cursor(read, queue, found, code)
        else:
            found = [m for m in queue.sorted("here") if m.order > self.cursor_at]
            self.cursor_read = False
            self.answer_cursor(read, queue, found, TIMEOUT if read.peek else NOT_FOUND)
        self.model.perform()

    def answer_cursor(self, read: Read, queue: Queue, found: list[Msg], code: int) -> None:
        if found:
            self.cursor_at, self.cursor_read = found[0].order, read.peek
            self.model.give(queue, read, found[0])
        else:
            self.model.answers[read.request] = ("code", code)

    @rule(name=names, pick=picks)
    def cancel(self, name: str, pick: int) -> None:
        queue = self.usable(name)
        if queue is None or not queue.waiting:
            return
        read = queue.waiting.pop(pick % len(queue.waiting))
        assert self.world.cancel(read.request, self.number(name))
        self.model.answers[read.request] = ("code", TIMEOUT)
        self.model.perform()

    # Transactions.

    @rule()
    def begin(self) -> None:
        self.model.txs[self.world.begin()] = []

    @precondition(lambda self: self.model.txs)
    @rule(pick=picks)
    def commit(self, pick: int) -> None:
        tx = self.some_tx(pick)
        held = {id(queue): queue for queue, _ in self.model.txs[tx]}.values()
        gone = any(each.closing for each in held)
        if self.ask(DELETED if gone else None, lambda: self.world.commit(tx)):
            self.model.commit(self.world.requests, tx)
            self.model.perform()

    @precondition(lambda self: self.model.txs)
    @rule(pick=picks)
    def abort(self, pick: int) -> None:
        tx = self.some_tx(pick)
        self.model.abort(self.world.abort(tx), tx)
        self.model.perform()

    # The world.

    @rule()
    def sync(self) -> None:
        self.world.sync()
        while self.model.durable < self.model.frames:
            self.model.become_durable(self.model.frames)

    @rule()
    def sync_one(self) -> None:
        self.world.sync_one()
        if self.model.durable < self.model.frames:
            self.model.become_durable(self.model.durable + 1)

    @rule()
    def fill_the_disk(self) -> None:
        self.world.full = self.model.full = 1

    @rule(seconds=st.integers(0, 4))
    def pass_time(self, seconds: int) -> None:
        self.model.now += seconds
        self.world.tick(seconds)
        self.model.expire()
        self.model.perform()

    @rule()
    def crash(self) -> None:
        self.world.full = self.model.full = 0
        self.cursor = None
        self.world.restart()
        self.model.crash()
        self.model.expire()
        self.model.perform()
        self.sync()
        # Numbers are reserved anew by the first who needs one; that is not what is modelled.
        self.world.send(self.warm)
        self.world.sync()
        self.model.frames = self.model.durable = self.world.durable_frames

    # What always holds.

    @invariant()
    def every_answer_is_the_models_and_none_is_early(self) -> None:
        answers = self.world.answers
        assert {request: told(answers.get(request)) for request in self.model.answers} == (
            self.model.answers
        )
        extra = [each for each in answers if each not in self.model.answers]
        assert all(isinstance(answers[each], bytes | int) for each in extra), extra
        assert len(self.world.log) == self.model.frames

    @invariant()
    def every_queue_holds_what_the_model_says(self) -> None:
        engine = self.world.engine
        for name, queue in self.model.queues.items():
            path = rf".\private$\{name}".replace(";J", ";JOURNAL")
            real = engine.state.find(engine._own_path(path))
            assert real is not None
            there = queue.sorted("here", "held", "leaving")
            packets = [engine.state.packet_of(place) for place in real.positions]
            assert [number_in(packet) for packet in packets] == [m.number for m in there]
            assert real.positions.available == len(queue.sorted("here"))
            assert real.positions.total_bytes == sum(m.size for m in there)
            assert real.staged_bytes == queue.bytes_in("staged", "coming")
            assert not queue.limited or queue.bytes_in(
                "staged", "coming", "here", "held", "leaving"
            ) <= (QUOTA_KB * 1024)
            assert real.closing == queue.closing
            assert len(real.waiting) == len(queue.waiting)
        numbers = (number & 0x7FFFFFFF for number in engine.state.queues)
        private = [number for number in numbers if 16 < number < 1 << 24]
        assert len(private) == len(self.model.queues)

    @invariant()
    def packets_are_kept_exactly_while_they_are_needed(self) -> None:
        living = sum(
            m.recoverable
            for queue in self.model.queues.values()
            for m in queue.sorted("here", "held", "leaving")
        )
        assert len(self.world.packets.kept) == living


def number_in(packet: bytes) -> int:
    return int.from_bytes(MessageView(packet).body[:4], "little")


def told(result: Result) -> Told:
    if isinstance(result, Delivered):
        return "body", number_in(result.packet)
    if isinstance(result, MessageQueueError):
        return "code", result.code
    if isinstance(result, int) and result < 16:
        return "number", result
    return OK


TestEngine = Engine.TestCase
TestEngine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
