"""Rules about messages: sending them, one or several; taking the first ones; moving them."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from merq.engine.reading import Selector
from merq.hresult import HResult
from merq.model.access import Access
from merq.model.selecting import ByCorrelationId, ByMessageId, First
from merq.wire.build import Outline, build_packet
from model.engine_machine import OUTGOING, PARTS, Both, destination, names, path_of, picks
from model.reference_queue import (
    DENIED,
    IN_QUEUE,
    NEVER,
    NO_ROOM,
    NOT_FOUND,
    OK,
    TIMEOUT,
    Msg,
    Op,
    Queue,
    Read,
    Tx,
)

lifetimes = st.sampled_from([NEVER, NEVER, 3, 8])


class MessageRules(Both):
    """Messages come, are looked at, and go."""

    # Sending.

    def make(
        self, name: str, tx: Tx | None, priority: int, lifetime: int, how: int
    ) -> tuple[bytes, Msg]:
        """A packet, and the message that the model has for it; `how` says all that is random."""
        self.count += 1
        if tx is not None:
            priority = 0
        recoverable = bool(how & 1) or tx is not None
        correlation = how >> 1 & 1
        time_to_reach = 5 if how & 4 else NEVER
        body = self.count.to_bytes(4, "little") + bytes(600 * bool(how & 8))
        to = str(destination(name)).partition("=")[2] if name in OUTGOING else f"OS:{path_of(name)}"
        packet = build_packet(
            Outline(
                destination=to,
                body=body,
                priority=priority,
                recoverable=recoverable,
                time_to_be_received=lifetime,
                time_to_reach_queue=time_to_reach,
                correlation_id=bytes([correlation]) * 20,
            )
        )
        size = len(packet) + (20 if tx is not None else 0)
        message = Msg(self.count, size, recoverable, 7 - priority, self.model.now, lifetime)
        message.time_to_reach, message.correlation = time_to_reach, correlation
        return packet, message

    def put(self, op: Op, queue: Queue, message: Msg, tx: Tx | None) -> None:
        if tx is not None:
            self.model.stage(op, tx, queue, message)
        else:
            message.live(message.lifetime, queue)
            self.model.put(op, queue, message)

    @rule(
        name=names,
        priority=st.integers(0, 7),
        lifetime=lifetimes,
        how=st.lists(st.integers(0, 15), min_size=1, max_size=3),
        pick=picks,
    )
    def send(self, name: str, priority: int, lifetime: int, how: list[int], pick: int) -> None:
        queue = self.usable(name)
        if queue is None:
            return
        tx = self.some_tx(pick) if queue.transactional else None
        made = [self.make(name, tx, priority, lifetime, each) for each in how]
        room = self.model.has_room([(queue, message.size) for _, message in made])
        request = self.call(
            None if room else NO_ROOM,
            lambda request: self.world.engine.send(
                request, self.number(name), [packet for packet, _ in made], tx.number if tx else 0
            ),
        )
        if request is None:
            return
        op = Op(answers=[(request, OK)])
        for place, (_, message) in enumerate(made):
            message.request, message.place = request, place
            self.put(op, queue, message, tx)
        self.model.plan(op)
        self.model.perform()

    # Reading.

    def read(self, name: str, selector: Selector, read: Read, *, wait: bool) -> None:
        queue = self.model.queues[name]
        number, engine = self.number(name), self.world.engine
        if read.peek:
            request = self.call(
                None,
                lambda request: engine.peek(
                    request, number, selector, wait=wait, most=read.most, handle=read.handle
                ),
            )
        else:
            request = self.call(
                self.refusal(queue, read),
                lambda request: engine.receive(
                    request,
                    number,
                    selector,
                    wait=wait,
                    transaction=read.tx.number if read.tx else 0,
                    most=read.most,
                    handle=read.handle,
                    held=read.held,
                ),
            )
        if request is None:
            return
        read.request = request
        if not self.model.try_read(queue, read):
            if wait:
                queue.waiting.append(read)
            else:
                particular = isinstance(selector, ByMessageId | ByCorrelationId)
                self.model.answers[request] = ("code", NOT_FOUND if particular else TIMEOUT)
        self.model.perform()

    def refusal(self, queue: Queue, read: Read) -> int | None:
        """Why nothing can be received, if that is so."""
        if not read.handle:
            return DENIED if queue.denied else None
        if queue.openings[read.handle].access is Access.PEEK:
            return int(HResult.MQ_ERROR_ACCESS_DENIED)
        return None

    def handle_of(self, queue: Queue, pick: int) -> int:
        """An opening of a queue, or none."""
        handles = [0, *queue.openings]
        return handles[-1 - pick % len(handles)]

    @rule(
        where=picks,
        how=st.sampled_from(["peek", "receive", "receive", "receive", "hold"]),
        wait=st.booleans(),
        most=st.sampled_from([0, 0, 1, 2, 3]),
        pick=picks,
    )
    def read_first(self, where: int, how: str, wait: bool, most: int, pick: int) -> None:
        name = self.somewhere(where)
        queue = self.usable(name)
        if queue is None:
            return
        read = Read(0, how == "peek", most=most, held=how == "hold")
        if queue.transactional and how == "receive" and pick % 4:
            read.tx = self.some_tx(pick)
        read.handle = self.handle_of(queue, pick)
        self.read(name, First(), read, wait=wait)

    # Moving.

    @rule(name=names, pick=picks, in_tx=st.booleans())
    def move(self, name: str, pick: int, in_tx: bool) -> None:
        family = [name + part for part in PARTS if part != ";J" and self.usable(name + part)]
        if len(family) < 2:
            return
        there = [each for each in family if self.model.queues[each].sorted(*IN_QUEUE)]
        if not there:
            return
        source = there[pick % len(there)]
        targets = [each for each in family if each != source]
        queue = self.model.queues[source]
        target = self.model.queues[targets[pick // 7 % len(targets)]]
        message = self.message_of(queue, pick // 3, *IN_QUEUE)
        assert message is not None
        tx = self.some_tx(pick) if in_tx and queue.transactional else None
        code = None
        if queue.denied:
            code = DENIED
        elif message.state != "here":
            code = int(HResult.MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION)
        lookup_id = self.lookup_of(source, message)
        request = self.call(
            code,
            lambda request: self.world.engine.move(
                request,
                self.number(source),
                lookup_id,
                self.number(target.name),
                tx.number if tx else 0,
            ),
        )
        if request is None:
            return
        if tx is not None:
            self.model.lock_to_move(tx, queue, message, target)
            self.model.answers[request] = OK
        else:
            op = Op(answers=[(request, OK)])
            self.model.move(op, queue, message, target)
            self.model.plan(op)
        self.model.perform()
