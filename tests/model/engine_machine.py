"""The engine and its model side by side: what every rule needs, and what always holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import UUID

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from merq.engine.changes import Result
from merq.engine.cursor import Cursor
from merq.engine.holdings import MEMORY
from merq.engine.limits import Limits
from merq.engine.queue import Queue as RealQueue
from merq.engine.state import State
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.delivered import Delivered
from merq.model.names import DirectName, parse_direct_name
from merq.model.queue import QueueSettings
from merq.wire.view import MessageView
from model.checkpointed_world import CheckpointedWorld
from model.reference_queue import IN_QUEUE, NEVER, OK, QUOTA_KB, TAKING_ROOM, Msg, Queue, Told, Tx
from model.reference_transactions import Model
from unit.engine.engine_world import FRAME_SPACE

NAMES: Final = ("qa", "qb", "qc")
OUTGOING: Final = ("out1", "out2")
PARTS: Final = ("", ";J", ";s", ";poison")
MACHINE_QUOTA_KB: Final = 6
MEMORY_BYTES: Final = 2000

names = st.sampled_from(("qb", *NAMES))
picks = st.integers(0, 1 << 16)


class Both(RuleBasedStateMachine):
    """Every operation on both, and the same answers from both."""

    cursor: tuple[str, Queue, Cursor] | None = None

    def begin_both(self, *, small: bool, journaling: bool, poison_after: int) -> None:
        """A new world and a new model, with a queue of either kind."""
        quota = MACHINE_QUOTA_KB if small else NEVER
        self.world = CheckpointedWorld(
            limits=Limits(machine_quota=quota, memory_bytes=MEMORY_BYTES)
        )
        self.warm = self.world.create("qz")
        self.unmodelled = {self.world.requests}
        self.warm_up()
        self.world.durable_at_once = False
        self.model = Model(
            now=self.world.now,
            frames=len(self.world.log),
            durable=self.world.durable_frames,
            machine_quota_bytes=quota * 1024,
            memory_bytes=MEMORY_BYTES,
        )
        self.count = 0
        self.checked_frames = 0
        for name, transactional in (("qa", False), ("qb", True)):
            self.create(name, transactional, journaling, False, poison_after)
            self.sync()

    def warm_up(self) -> None:
        """Numbers are reserved by the first who needs one; that is not what is modelled."""
        sent = self.world.send(self.warm)
        self.world.sync()
        received = self.world.receive(self.warm)
        self.world.sync()
        self.unmodelled |= {sent, received}

    # What both need.

    def usable(self, name: str) -> Queue | None:
        queue = self.model.queues.get(name)
        return None if queue is None or queue.closing else queue

    def somewhere(self, pick: int) -> str:
        """The name of a queue that is there; the transactional one's is the likeliest."""
        there = [name for name in self.model.queues if self.usable(name)]
        if pick % 3 == 0 and "qb" in there:
            return "qb"
        return there[pick % len(there)] if there else "qa"

    def real(self, name: str) -> RealQueue | None:
        """The engine's queue of this name."""
        state = self.world.engine.state
        if name in OUTGOING:
            return state.find_outgoing(str(destination(name)))
        path = self.world.engine._own_path(path_of(name))
        return state.find(path)

    def number(self, name: str) -> int:
        real = self.real(name)
        assert real is not None, f"{name} is there"
        return real.number

    def call(self, code: int | None, ask: Callable[[int], object]) -> int | None:
        """Asks the engine, which is to refuse with a code or not at all; gives the request."""
        request = self.world.next_request()
        if code is None:
            ask(request)
            self.world.perform()
            return request
        with pytest.raises(MessageQueueError) as refused:
            ask(request)
        assert refused.value.code == code, refused.value
        return None

    def message_of(self, queue: Queue, pick: int, *states: str) -> Msg | None:
        found = queue.sorted(*states)
        return found[pick % len(found)] if found else None

    def lookup_of(self, name: str, message: Msg) -> int:
        state = self.world.engine.state
        for place in self.world.engine.queue(self.number(name)).positions:
            if number_in(state.stored(place)[1]) == message.number:
                return place.lookup_id
        raise AssertionError(f"{message} is not in {name}")

    def some_tx(self, pick: int, *phases: str) -> Tx:
        """A transaction in one of these phases, or a new one."""
        found = [tx for tx in self.model.txs if tx.phase in (phases or ("open",))]
        if not found:
            self.begin()
            found = self.model.txs[-1:]
        return found[pick % len(found)]

    @rule()
    def begin(self) -> None:
        self.model.txs.append(Tx(self.world.begin()))

    def create(
        self, name: str, transactional: bool, journaling: bool, limited: bool, poison_after: int
    ) -> None:
        exists = name in self.model.queues or name in self.model.coming
        quota = QUOTA_KB if limited else NEVER
        settings = QueueSettings(
            transactional=transactional,
            journaling=journaling,
            quota=quota,
            journal_quota=quota,
            poison_after=poison_after,
        )
        identifier = UUID(int=self.world.requests + 1 << 32)
        request = self.call(
            int(HResult.MQ_ERROR_QUEUE_EXISTS) if exists else None,
            lambda request: self.world.engine.create_queue(
                request, path_of(name), settings, identifier
            ),
        )
        if request is not None:
            queue = Queue(name, "private", transactional, limited, journaling, poison_after)
            self.model.create(request, queue)
            self.model.perform()

    @rule()
    def sync(self) -> None:
        self.world.sync()
        while self.model.durable < self.model.frames:
            self.model.become_durable(self.model.frames)

    # What always holds.

    @invariant()
    def every_answer_is_the_models_and_none_is_early(self) -> None:
        answers = self.world.answers
        for request, expected in self.model.answers.items():
            assert request in answers, (request, expected)
            assert told(answers[request], expected) == expected
        assert answers.keys() - self.unmodelled == self.model.answers.keys()
        assert len(self.world.log) == self.model.frames

    @invariant()
    def every_queue_holds_what_the_model_says(self) -> None:
        state = self.world.engine.state
        for name, queue in self.model.queues.items():
            real = self.real(name)
            assert real is not None, name
            there = queue.sorted(*IN_QUEUE)
            packets = [state.stored(place)[1] for place in real.positions]
            assert [number_in(packet) for packet in packets] == [m.number for m in there]
            assert real.positions.available == len(queue.sorted("here"))
            assert real.positions.total_bytes == sum(m.size for m in there)
            assert real.staged_bytes == queue.bytes_in("staged", "coming")
            assert real.closing == queue.closing
            if queue.kind == "private":
                assert real.properties.journaling == queue.journaling
                assert real.properties.poison_after == queue.poison_after
            assert len(real.waiting) == len(queue.waiting)
        numbers = (number & 0x7FFFFFFF for number in state.queues)
        modelled = [number for number in numbers if 16 < number < 0x7FFF0000]
        assert len(modelled) == len(self.model.queues)

    @invariant()
    def no_quota_is_exceeded(self) -> None:
        for queue in self.model.queues.values():
            sent = sum(m.size for m in queue.sorted(*TAKING_ROOM) if not m.moves)
            assert not queue.limited or sent <= QUOTA_KB * 1024
        taken = self.model.taken(*TAKING_ROOM)
        assert self.world.engine.state.taken_bytes == taken
        # A copy for the journal takes room while the message is still on its way out.
        leaving = self.model.taken("leaving", "going")
        assert taken - leaving <= self.model.machine_quota_bytes

    @invariant()
    def packets_are_kept_exactly_while_they_are_needed(self) -> None:
        living = sum(
            m.recoverable for queue in self.model.queues.values() for m in queue.sorted(*IN_QUEUE)
        )
        places = [
            place
            for queue in self.world.engine.state.queues.values()
            for place in queue.positions
            if not place.location & MEMORY
        ]
        assert len(places) == living
        needed: dict[int, int] = {}
        for place in places:
            frame = place.location // FRAME_SPACE
            needed[frame] = needed.get(frame, 0) + place.size
        assert self.world.packets.kept == needed

    @invariant()
    def prepared_transactions_are_the_models(self) -> None:
        prepared = {tx.name: tx.number for tx in self.model.txs if tx.phase == "prepared"}
        found = self.world.engine.transactions.prepared()
        assert {name.int: number for name, number in found.items()} == prepared

    @invariant()
    def what_is_written_is_what_is_known(self) -> None:
        """The log read again, from a checkpoint or without it, has all that is recoverable."""
        if self.model.pending or self.checked_frames == len(self.world.log):
            return
        self.checked_frames = len(self.world.log)
        assert self.world.engine.state.is_settled
        live = recoverable(self.world.engine.state)
        for from_checkpoint in (False, True):
            copy, packets = self.world.open_copy(from_checkpoint=from_checkpoint)
            assert recoverable(copy.state) == live
            assert packets.kept == self.world.packets.kept


def recoverable(state: State) -> dict[str, object]:
    """What a restart must not change: queues, messages with their marks, what is prepared."""
    known: dict[str, object] = {}
    for number, queue in state.queues.items():
        places = [each for each in queue.positions if not each.location & MEMORY]
        known[f"{number:x}"] = (
            queue.properties,
            [(each.lookup_id, each.location, each.size, each.expires) for each in places],
            [
                e.lookup_id
                for e in places
                if e.lookup_id in queue.notes and queue.notes[e.lookup_id].purged
            ],
        )
    for transaction in state.transactions.values():
        if transaction.phase.value == "prepared":
            known[str(transaction.identifier)] = [
                (type(each), each.queue.number) for each in transaction.operations
            ]
    return known


def path_of(name: str) -> str:
    return rf".\private$\{name}".replace(";J", ";JOURNAL")


def destination(name: str) -> DirectName:
    return parse_direct_name(rf"OS:far\private$\{name}")


def number_in(packet: bytes) -> int:
    return int.from_bytes(MessageView(packet).body[:4], "little")


def told(result: Result, expected: Told) -> Told:
    """What somebody was told, as the model says it."""
    if isinstance(result, Delivered):
        return "one", (number_in(result.packet), result.aborts, result.moves)
    if isinstance(result, list):
        return "many", tuple((number_in(each.packet), each.aborts, each.moves) for each in result)
    if isinstance(result, MessageQueueError):
        return "code", result.code
    if isinstance(result, int) and expected != OK:
        return "number", result
    return OK
