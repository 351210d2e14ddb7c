"""A world without a disk for the engine: a log that is a list, and becomes durable on demand.

Not a double of anything: it performs the engine's effects as a driver must, and a restart replays
what was durable into a new engine.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from merq.engine.changes import Answer, Change, Result
from merq.engine.limits import Limits
from merq.engine.manager import QueueManager
from merq.engine.reading import Selector
from merq.engine.records import PUT_HEADER_SIZE, Entry, read_put, singly
from merq.engine.snapshot import restore_snapshot, take_snapshot
from merq.errors import MessageQueueError, WireError
from merq.hresult import HResult
from merq.model.delivered import Delivered
from merq.model.destinations import parse_destination
from merq.model.names import DirectName
from merq.model.queue import QueueSettings
from merq.model.selecting import First
from merq.wire.build import Outline, build_packet
from merq.wire.refusing import refusal
from merq.wire.view import MessageView

GUID = UUID("11111111-2222-3333-4444-555555555555")
NAME = "here"
START = 1_000_000_000
FRAME_SPACE = 1 << 24


def refused(code: int, ask: Callable[[], object]) -> str:
    """What is said when something is refused with this code."""
    with pytest.raises(MessageQueueError) as caught:
        ask()
    assert caught.value.code == code
    return str(caught.value)


class MemoryPackets:
    """Packets of an in-memory log, by position, with a count of what is needed of each frame.

    Those of one frame may be kept together and released one by one, as with a segment.
    """

    def __init__(self) -> None:
        self.bytes_at: dict[int, bytes] = {}
        self.kept: dict[int, int] = {}

    def read(self, position: int, size: int) -> tuple[int, bytes]:
        base = position // FRAME_SPACE * FRAME_SPACE
        start = position - base + PUT_HEADER_SIZE
        data = self.bytes_at[base][start : start + size]
        assert len(data) == size
        arrival = read_put(self.bytes_at[base][position - base :]).arrival
        return arrival, data

    def heads(self, positions: array[int], sizes: array[int]) -> list[bytes]:
        return [self.read(*each)[1][:64] for each in zip(positions, sizes, strict=True)]

    def records(self, positions: array[int], sizes: array[int]) -> list[bytes | None]:
        found: list[bytes | None] = []
        for position, size in zip(positions, sizes, strict=True):
            base = position // FRAME_SPACE * FRAME_SPACE
            start = position - base
            found.append(self.bytes_at[base][start : start + PUT_HEADER_SIZE + size])
        return found

    def keep(self, position: int, size: int) -> None:
        frame = position // FRAME_SPACE
        self.kept[frame] = self.kept.get(frame, 0) + size

    def keep_all(self, positions: array[int], sizes: array[int]) -> None:
        for position, size in zip(positions, sizes, strict=True):
            self.keep(position, size)

    def release(self, position: int, size: int) -> None:
        frame = position // FRAME_SPACE
        self.kept[frame] -= size
        assert self.kept[frame] >= 0, "what is released was kept"
        if not self.kept[frame]:
            del self.kept[frame]

    def release_all(self, positions: array[int], sizes: array[int], size: int) -> None:
        assert sum(sizes) == size
        for position, each in zip(positions, sizes, strict=True):
            self.release(position, each)


@dataclass(frozen=True)
class Written:
    """One frame of the log."""

    entries: list[Entry]
    positions: tuple[int, ...]
    end: int


@dataclass
class World:
    """An engine, its log, and what was answered.

    Attributes:
        durable_at_once: Whether what is written is durable before anything else happens.
        full: How many of the next writes find the disk full.
    """

    limits: Limits = field(default_factory=Limits)
    durable_at_once: bool = True
    now: int = START

    def __post_init__(self) -> None:
        self.log: list[Written] = []
        self.durable_frames = 0
        self.full = 0
        self.requests = 0
        self.answers: dict[int, Result] = {}
        self._snapshot: list[tuple[int, bytes]] = []
        self._contained = 0
        self._start()

    def _start(self) -> None:
        self.packets = MemoryPackets()
        self.engine = QueueManager(GUID, NAME, self.packets, self.limits)
        for frame in self.log:
            self._lay_out(frame)
        restore_snapshot(self.engine.state, self._snapshot)
        for frame in self.log[self._contained :]:
            for entry, position in zip(frame.entries, frame.positions, strict=True):
                self.engine.replay(entry.kind, memoryview(entry.whole), position)
        self.engine.tick(self.now)
        self.engine.start(UUID(int=77 << 64))
        self.perform()
        self.sync()

    def _lay_out(self, frame: Written) -> None:
        base = frame.positions[0] // FRAME_SPACE * FRAME_SPACE
        self.packets.bytes_at[base] = b"".join(entry.whole for entry in frame.entries)

    # Driving.

    def perform(self) -> None:
        while effects := self.engine.take_effects():
            for effect in effects:
                if isinstance(effect, Answer):
                    assert effect.request not in self.answers, "a request has one answer"
                    self.answers[effect.request] = effect.result
                elif not effect.entries:
                    pass  # it came to nothing meanwhile
                elif self.full:
                    self.full -= 1
                    error = MessageQueueError(HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED, "full")
                    self.engine.failed(effect, error)
                else:
                    self._write(effect)
            if self.durable_at_once:
                self._become_durable()

    def _write(self, change: Change) -> None:
        entries = singly(change.entries)
        base = (len(self.log) + 1) * FRAME_SPACE
        positions, at = [], base
        for entry in entries:
            positions.append(at)
            at += len(entry.whole)
        frame = Written(entries, tuple(positions), at)
        self.log.append(frame)
        self._lay_out(frame)
        self.engine.written(change, frame.positions, frame.end)

    def _become_durable(self) -> None:
        if self.durable_frames < len(self.log):
            self.durable_frames = len(self.log)
            self.engine.durable(self.log[-1].end)

    def sync(self) -> None:
        """Everything that was written is durable, and what follows from it happens."""
        while self.durable_frames < len(self.log):
            self._become_durable()
            self.perform()

    def sync_one(self) -> None:
        """One more frame is durable, if there is one."""
        if self.durable_frames < len(self.log):
            self.durable_frames += 1
            self.engine.durable(self.log[self.durable_frames - 1].end)
            self.perform()

    def restart(self) -> None:
        """The process dies: what was not durable is gone, and who waited too."""
        del self.log[self.durable_frames :]
        self._start()

    def checkpoint(self) -> None:
        """What has happened so far is read from a snapshot at the next start, not from the log."""
        self.sync()
        self._snapshot = [(kind, bytes(data)) for kind, data in take_snapshot(self.engine.state)]
        self._contained = len(self.log)

    def tick(self, seconds: int) -> None:
        self.now += seconds
        self.engine.tick(self.now)
        self.perform()

    # Asking. Each gives the number of the request.

    def next_request(self) -> int:
        self.requests += 1
        return self.requests

    def create(self, name: str, **settings: object) -> int:
        """Makes a private queue of this name and gives its number."""
        request = self.next_request()
        path = rf".\private$\{name}"
        identifier = UUID(int=request << 32)
        self.engine.create_queue(
            request,
            path,
            QueueSettings(**settings),  # type: ignore[arg-type]
            identifier,
        )
        self.perform()
        number = self.answers.get(request)
        return number if isinstance(number, int) else -request

    def outline(self, number: int, **fields: object) -> Outline:
        path = self.engine.queue(number).properties.path_name
        return Outline(
            destination=f"OS:{path}",
            **fields,  # type: ignore[arg-type]
        )

    def packet(self, number: int, **fields: object) -> bytes:
        """A packet as an application makes it; what cannot be is refused as it would be there."""
        try:
            return build_packet(self.outline(number, **fields))
        except WireError as wrong:
            raise refusal(wrong) from wrong

    def send(self, number: int, transaction: int = 0, **fields: object) -> int:
        request = self.next_request()
        self.engine.send(request, number, [self.packet(number, **fields)], transaction)
        self.perform()
        return request

    def receive(
        self,
        number: int,
        selector: Selector | None = None,
        *,
        wait: bool = False,
        transaction: int = 0,
    ) -> int:
        request = self.next_request()
        self.engine.receive(
            request, number, selector or First(), wait=wait, transaction=transaction
        )
        self.perform()
        return request

    def peek(self, number: int, selector: Selector | None = None, *, wait: bool = False) -> int:
        request = self.next_request()
        self.engine.peek(request, number, selector or First(), wait=wait)
        self.perform()
        return request

    def hold(self, number: int, selector: Selector | None = None, *, wait: bool = False) -> int:
        """The first half of a read in two phases."""
        request = self.next_request()
        self.engine.receive(request, number, selector or First(), wait=wait, held=True)
        self.perform()
        return request

    def end_hold(self, number: int, lookup_id: int, *, delete: bool) -> int:
        """The second half."""
        request = self.next_request()
        self.engine.end_receive(request, number, [lookup_id], delete=delete)
        self.perform()
        return request

    def send_to(self, format_name: str, transaction: int = 0, **fields: object) -> int:
        """Sends to where a format name leads, which may be several queues."""
        request = self.next_request()
        names = parse_destination(format_name)
        places = tuple(
            each.without_prefix() if isinstance(each, DirectName) else each for each in names
        )
        dead_letter = str(fields.pop("dead_letter", ""))
        packets = [
            build_packet(
                Outline(
                    destination=place,  # type: ignore[arg-type]
                    destinations=places if len(places) > 1 else (),  # type: ignore[arg-type]
                    **fields,  # type: ignore[arg-type]
                )
            )
            for place in places
        ]
        copies = list(zip(names, packets, strict=True))
        self.engine.send_to(request, copies, transaction, dead_letter=dead_letter)
        self.perform()
        return request

    def subqueue(self, number: int, name: str) -> int:
        """Makes a subqueue, unless it is there, and gives its number."""
        request = self.next_request()
        self.engine.create_subqueue(request, number, name)
        self.perform()
        made = self.answers.get(request)
        return made if isinstance(made, int) else -request

    def move(self, number: int, lookup_id: int, target: int, transaction: int = 0) -> int:
        request = self.next_request()
        self.engine.move(request, number, lookup_id, target, transaction)
        self.perform()
        return request

    def prepare(self, transaction: int, identifier: UUID) -> int:
        request = self.next_request()
        self.engine.transactions.prepare(request, transaction, identifier)
        self.perform()
        return request

    def cancel(self, request: int, number: int) -> bool:
        found = self.engine.cancel(request, number)
        self.perform()
        return found

    def begin(self) -> int:
        return self.engine.transactions.begin()

    def commit(self, transaction: int) -> int:
        request = self.next_request()
        self.engine.transactions.commit(request, transaction)
        self.perform()
        return request

    def abort(self, transaction: int) -> int:
        request = self.next_request()
        self.engine.transactions.abort(request, transaction)
        self.perform()
        return request

    def purge(self, number: int) -> int:
        request = self.next_request()
        self.engine.purge(request, number)
        self.perform()
        return request

    def delete(self, number: int) -> int:
        request = self.next_request()
        self.engine.delete_queue(request, number)
        self.perform()
        return request

    # Looking.

    def answered(self, request: int) -> bool:
        return request in self.answers

    def delivered(self, request: int) -> MessageView:
        """The message that a request was answered with."""
        answer = self.answers[request]
        assert isinstance(answer, Delivered), answer
        return MessageView(answer.packet)

    def body(self, request: int) -> bytes:
        return self.delivered(request).body

    def code(self, request: int) -> int:
        """The code of the error that a request was answered with."""
        answer = self.answers[request]
        assert isinstance(answer, MessageQueueError), answer
        return answer.code

    def message_id(self, request: int) -> bytes:
        answer = self.answers[request]
        assert isinstance(answer, bytes), answer
        return answer

    def messages(self, number: int) -> list[MessageView]:
        """All messages of a queue in their order, those included that somebody holds."""
        state = self.engine.state
        queue = state.queues[number]
        return [MessageView(state.stored(place)[1]) for place in queue.positions]

    def bodies(self, number: int) -> list[bytes]:
        return [view.body for view in self.messages(number)]

    def lookup_ids(self, number: int) -> list[int]:
        """The lookup identifiers of all messages of a queue, in their order."""
        return [place.lookup_id for place in self.engine.state.queues[number].positions]

    def fill(self, number: int, *bodies: bytes, **fields: object) -> list[int]:
        """Sends recoverable messages, in a transaction if the queue wants one; gives their ids."""
        transactional = self.engine.queue(number).properties.transactional
        transaction = self.begin() if transactional else 0
        for body in bodies:
            self.send(number, transaction, body=body, recoverable=True, **fields)
        if transaction:
            self.commit(transaction)
        self.sync()
        return self.lookup_ids(number)[-len(bodies) :]

    def digest(self) -> tuple[object, ...]:
        """Everything that can be seen of the state, to compare it with another moment."""
        state = self.engine.state
        queues = {
            number: (
                queue.properties,
                [(place._replace(location=0), state.stored(place)[1]) for place in queue.positions],
                dict(queue.notes),
                queue.staged_bytes,
                queue.closing,
            )
            for number, queue in state.queues.items()
        }
        transactions = {
            number: (each.identifier, each.phase, list(each.operations))
            for number, each in state.transactions.items()
        }
        return queues, transactions, state.taken_bytes, state.memory_bytes

    def find(self, path_name: str) -> int:
        return self.engine.find_queue(path_name).number
