"""More rules about messages: to other computers, and reading them in every other way."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from merq.engine.reading import ByCursor
from merq.hresult import HResult
from merq.model.names import FormatName, parse_direct_name
from merq.model.selecting import ByCorrelationId, ByLookup, ByMessageId, Seek
from model.engine_machine import OUTGOING, destination, names, path_of, picks
from model.message_rules import MessageRules, lifetimes
from model.reference_queue import (
    IN_QUEUE,
    NO_ROOM,
    NOT_FOUND,
    OK,
    TIMEOUT,
    Msg,
    Op,
    Queue,
    Read,
)


class ReadingRules(MessageRules):
    """Every other way to send and read."""

    cursor_at: tuple[int, int] = (-1, -1)
    cursor_read = False

    @rule(
        to=st.lists(st.sampled_from(OUTGOING), min_size=1, max_size=2, unique=True),
        also=st.none() | names,
        lifetime=lifetimes,
        how=st.integers(0, 15),
        in_tx=st.booleans(),
        pick=picks,
    )
    def send_to(
        self, to: list[str], also: str | None, lifetime: int, how: int, in_tx: bool, pick: int
    ) -> None:
        tx = self.some_tx(pick) if in_tx else None
        local = self.usable(also) if also else None
        if also and local is not None and local.transactional == in_tx:
            to = [*to, also]
        made = [self.make(name, tx, 3, lifetime, how) for name in to]
        room = self.model.has_room(
            [(self.model.queues.get(name), m.size) for name, (_, m) in zip(to, made, strict=True)]
        )
        targets = [(self.name_of(name), packet) for name, (packet, _) in zip(to, made, strict=True)]
        request = self.call(
            None if room else NO_ROOM,
            lambda request: self.world.engine.send_to(request, targets, tx.number if tx else 0),
        )
        if request is None:
            return
        op = Op(answers=[(request, OK)])
        for name, (_, message) in zip(to, made, strict=True):
            message.request = request
            self.put(op, self.model.need(op, name), message, tx)
        self.model.plan(op)
        self.model.perform()

    def name_of(self, name: str) -> FormatName:
        return destination(name) if name in OUTGOING else parse_direct_name(f"OS:{path_of(name)}")

    @precondition(lambda self: self.model.held)
    @rule(delete=st.booleans(), pick=picks)
    def end_receive(self, delete: bool, pick: int) -> None:
        queue, message = self.model.held[pick % len(self.model.held)]
        if queue.closing:
            return
        lookup_id = self.lookup_of(queue.name, message)
        request = self.call(
            None,
            lambda request: self.world.engine.end_receive(
                request, self.number(queue.name), [lookup_id], delete=delete
            ),
        )
        assert request is not None
        self.model.end_receive(request, queue, message, delete=delete)
        self.model.perform()

    @rule(where=picks, peek=st.booleans(), pick=picks)
    def read_by_id(self, where: int, peek: bool, pick: int) -> None:
        name = self.somewhere(where)
        queue = self.usable(name)
        found = queue and self.message_of(queue, pick, *IN_QUEUE)
        if found and found.request:
            ids = self.world.message_id(found.request)
            selector = ByMessageId(ids[20 * found.place : 20 * found.place + 20])
            self.read(name, selector, Read(0, peek, number=found.number), wait=False)

    @rule(where=picks, peek=st.booleans(), wait=st.booleans())
    def read_by_correlation(self, where: int, peek: bool, wait: bool) -> None:
        name = self.somewhere(where)
        queue = self.usable(name)
        if queue is not None and queue.kind != "journal":
            self.read(name, ByCorrelationId(b"\1" * 20), Read(0, peek, correlation=1), wait=wait)

    @rule(where=picks, peek=st.booleans(), seek=st.sampled_from(Seek), pick=picks)
    def read_by_lookup(self, where: int, peek: bool, seek: Seek, pick: int) -> None:
        name = self.somewhere(where)
        queue = self.usable(name)
        anchor = queue and self.message_of(queue, pick, *IN_QUEUE)
        if queue is None or not anchor or queue.denied:
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
            self.model.give(queue, Read(request, peek), found)
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
        if queue.denied:
            return
        selector = ByCursor(cursor, next_one=how == "next")
        ask = self.world.receive if how == "receive" else self.world.peek
        request = ask(self.number(name), selector)
        read = Read(request, how != "receive")
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
            self.model.give(queue, read, found[:1])
        else:
            self.model.answers[read.request] = ("code", code)

    @rule(where=picks, pick=picks)
    def cancel(self, where: int, pick: int) -> None:
        name = self.somewhere(where)
        queue = self.usable(name)
        if queue is None or not queue.waiting:
            return
        read = queue.waiting.pop(pick % len(queue.waiting))
        assert self.world.cancel(read.request, self.number(name))
        self.model.answers[read.request] = ("code", TIMEOUT)
        self.model.perform()
