"""What the queue manager knows, and how changes come to pass.

Operations live in the modules beside this one; they read the state, plan changes and submit them.
Only here is the state altered.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass
from heapq import heapify, heappush
from itertools import chain
from typing import Final, assert_never
from uuid import UUID

from merq.engine import records
from merq.engine.changes import (
    Answer,
    Change,
    DefineStep,
    Delivered,
    DropStep,
    Effect,
    PurgeStep,
    PutStep,
    RelocateStep,
    RemoveStep,
    Result,
    Step,
    Write,
)
from merq.engine.ports import PacketSource
from merq.engine.positions import AVAILABLE, LOCKED, NEVER, PURGE_PENDING, Columns, Place
from merq.engine.queue import KILOBYTE, UNLIMITED, Queue, QueueKind, QueueProperties
from merq.errors import MessageQueueError
from merq.model.names import LOCAL_COMPUTER, PathName, parse_path_name

MEMORY: Final = 1 << 63
"""Set in the location of a packet that is not in the store: express messages."""

RESERVATION: Final = 100_000
"""How many identifiers are given out before the next reservation is written."""

KEEPING: Final = frozenset({QueueKind.SYSTEM, QueueKind.JOURNAL})
"""Queues in which messages do not expire."""

ORDINAL_MAX: Final = 0xFFFFFFFF
SEQUENTIAL_MAX: Final = (1 << 56) - 1

_TIMES: Final = struct.Struct("<II")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """[MS-MQDMPR] 3.1.1.1: what the queue manager as a whole keeps to.

    Attributes:
        machine_quota: The most that all messages together may take, in kilobytes.
    """

    machine_quota: int = 0xFFFFFFFF


class State:
    """The queue manager's memory."""

    def __init__(self, guid: UUID, name: str, packets: PacketSource, limits: Limits) -> None:
        self.guid = guid
        self.name = name
        self.limits = limits
        self.throttled = False
        self.now = 0
        self.queues: dict[int, Queue] = {}
        self._paths: dict[PathName, Queue] = {}
        self.effects: list[Effect] = []
        self.expiries: list[tuple[int, int, int]] = []
        self.awake: list[Queue] = []
        self._packets = packets
        self._memory: dict[int, bytes] = {}
        self._memory_count = 0
        self._pending: deque[Change] = deque()
        self._coming: dict[int, PathName] = {}
        self._last_number = 0
        self._durable = 0
        self._sources: dict[bytes, int] = {}
        self._sequential_id = 0
        self._ordinal = 0
        self._sequential_reserved = 0
        self._ordinal_reserved = 0

    # Numbers.

    def next_lookup_id(self, priority: int, change: Change) -> int:
        """[MS-MQDMPR] 3.1.7.1.9: 7 minus the priority, then a number that only grows."""
        assert self._sequential_id < SEQUENTIAL_MAX
        self._sequential_id += 1
        self._reserve(change)
        return 7 - priority << 56 | self._sequential_id

    def next_ordinal(self, change: Change) -> int:
        """The number of the next message that this queue manager sends."""
        assert self._ordinal < ORDINAL_MAX
        self._ordinal += 1
        self._reserve(change)
        return self._ordinal

    def _reserve(self, change: Change) -> None:
        """Writes ahead that numbers are in use, so that none is given out twice after a crash."""
        if (
            self._sequential_id > self._sequential_reserved
            or self._ordinal > self._ordinal_reserved
        ):
            self._sequential_reserved = self._sequential_id + RESERVATION
            self._ordinal_reserved = min(self._ordinal + RESERVATION, ORDINAL_MAX)
            entry = records.reserve(self._sequential_reserved, self._ordinal_reserved)
            change.entries.append(entry)

    def next_queue_number(self, first: int, most: int) -> int | None:
        """A number from `first` up to `most` for a new queue, or None if all are taken.

        It goes on from the last one given, so that whoever knows a deleted queue by its number does
        not meet another under it.
        """
        start = max(first, self._last_number + 1)
        for candidate in chain(range(start, most), range(first, min(start, most))):
            if candidate not in self.queues and candidate not in self._coming:
                self._last_number = candidate
                return candidate
        return None

    def key_of(self, message_id: bytes) -> int:
        """A message id as a number: the ordinal, and which queue manager it is from."""
        source = self._sources.setdefault(message_id[:16], len(self._sources) + 1)
        return source << 32 | int.from_bytes(message_id[16:], "little")

    def known_key_of(self, message_id: bytes) -> int | None:
        """The same, or None if no message of that queue manager was ever here."""
        return self.key_of(message_id) if message_id[:16] in self._sources else None

    # Changes.

    def submit(self, change: Change) -> None:
        """A change is to happen, when those before it have and it is durable."""
        if change.entries:
            self.effects.append(Write(change))
        for step in change.steps:
            if isinstance(step, DefineStep):
                self._coming[step.properties.number] = parse_path_name(step.properties.path_name)
        self._pending.append(change)
        self._settle()

    def written(self, change: Change, positions: tuple[int, ...], end: int) -> None:
        """The store has taken the change's entries; it is not durable yet."""
        change.positions = positions
        change.end = end

    def durable(self, end: int) -> None:
        """Everything that was written before this position would survive power loss."""
        self._durable = end
        self._settle()

    def failed(self, change: Change, error: MessageQueueError) -> None:
        """The store could not take a change: it never happens, and whoever asked is told."""
        self._pending.remove(change)
        for step in change.steps:
            self._take_back(step)
        reserved = [entry for entry in change.entries if entry.kind == records.RESERVE]
        if reserved:
            self._reserve_again(reserved)
        for answer in change.answers:
            self.answer(answer.request, error)
        self._settle()

    def _take_back(self, step: Step) -> None:
        match step:
            case PutStep():
                step.queue.staged_bytes -= len(step.packet)
            case RemoveStep():
                self.give_back(step.queue, step.lookup_id)
            case PurgeStep():
                place = step.queue.positions.get(step.lookup_id)
                if place is not None and place.state == PURGE_PENDING:
                    step.queue.positions.set_state(step.lookup_id, LOCKED)
            case RelocateStep():
                pass
            case DefineStep():
                self._coming.pop(step.properties.number, None)
            case DropStep():
                step.queue.closing = False
                for lookup_id in list(step.queue.expired):
                    place = step.queue.positions.get(lookup_id)
                    if place is not None and place.state == AVAILABLE:
                        self._watch_again(step.queue, place)
            case _:
                assert_never(step)

    def _reserve_again(self, reserved: list[records.Entry]) -> None:
        """What was not written does not count, and changes that are planned may depend on it.

        The first of them has to write it, and the first of those that write anything, lest that one
        be in the log before it.
        """
        unwritten = [each for each in self._pending if each.end is None]
        if not unwritten:
            self._sequential_reserved = self._ordinal_reserved = 0
            return
        writing = next((each for each in unwritten if each.entries), None)
        if writing is not unwritten[0]:
            unwritten[0].entries += reserved
            self.effects.append(Write(unwritten[0]))
        if writing is not None:
            writing.entries += reserved

    def give_back(self, queue: Queue, lookup_id: int) -> None:
        """A message that somebody held is available again, unless its time is over."""
        queue.positions.set_state(lookup_id, AVAILABLE)
        if lookup_id in queue.expired:
            place = queue.positions.get(lookup_id)
            assert place is not None
            self._watch_again(queue, place)
        self.awake.append(queue)

    def _watch_again(self, queue: Queue, place: Place) -> None:
        queue.expired.discard(place.lookup_id)
        heappush(self.expiries, (place.expires, queue.number, place.lookup_id))

    def leaving(self, queue: Queue) -> set[int]:
        """Messages whose removal is under way."""
        return {
            step.lookup_id
            for change in self._pending
            for step in change.steps
            if isinstance(step, RemoveStep) and step.queue is queue
        }

    def arriving(self, queue: Queue) -> list[bytes]:
        """Packets that are on their way into a queue."""
        return [
            step.packet
            for change in self._pending
            for step in change.steps
            if isinstance(step, PutStep) and step.queue is queue
        ]

    def answer(self, request: int, result: Result) -> None:
        """Tells somebody what came of a request."""
        self.effects.append(Answer(request, result))

    def _settle(self) -> None:
        while self._pending and self._pending[0].is_ready(self._durable):
            change = self._pending.popleft()
            for step in change.steps:
                self._carry_out(step, change)
            self.effects += change.answers

    def _carry_out(self, step: Step, change: Change) -> None:
        match step:
            case PutStep():
                self._put(step, change)
            case RemoveStep():
                self._remove(step.queue, step.lookup_id)
            case PurgeStep():
                pass  # it was marked when it was planned
            case RelocateStep():
                location = change.positions[step.entry] + records.PUT_HEADER_SIZE
                self._relocate(step.queue, step.lookup_id, location)
            case DefineStep():
                self._coming.pop(step.properties.number, None)
                self.define(step.properties)
            case DropStep():
                self._drop(step.queue)
            case _:
                assert_never(step)

    def _put(self, step: PutStep, change: Change) -> None:
        size = len(step.packet)
        step.queue.staged_bytes -= size
        if step.entry is None:
            self._memory_count += 1
            location = MEMORY | self._memory_count
            self._memory[location] = step.packet
        else:
            location = change.positions[step.entry] + records.PUT_HEADER_SIZE
            self._packets.keep(location, size)
        self.insert(step.queue, step.lookup_id, location, step.packet)

    def insert(
        self, queue: Queue, lookup_id: int, location: int, packet: bytes | memoryview
    ) -> None:
        """Gives a message its place, by which it can be found."""
        key = self.key_of(bytes(packet[16:32]) + bytes(packet[56:60]))
        lifetime, sent = _TIMES.unpack_from(packet, 48)
        expires = NEVER
        # A copy in a journal or dead-letter queue stays: its time was the message's, not its own.
        if lifetime != NEVER and queue.properties.kind not in KEEPING:
            expires = min(sent + lifetime, NEVER - 1)
        queue.positions.add(Place(lookup_id, location, len(packet), expires, AVAILABLE, key))
        queue.by_message_id[key] = lookup_id
        if expires != NEVER:
            heappush(self.expiries, (expires, queue.number, lookup_id))
        self.awake.append(queue)

    def _remove(self, queue: Queue, lookup_id: int) -> None:
        place = queue.positions.remove(lookup_id)
        if queue.by_message_id.get(place.key) == lookup_id:
            del queue.by_message_id[place.key]
        queue.aborts.pop(lookup_id, None)
        queue.expired.discard(lookup_id)
        if place.location & MEMORY:
            del self._memory[place.location]
        else:
            self._packets.release(place.location, place.size)

    def _relocate(self, queue: Queue, lookup_id: int, location: int) -> None:
        place = queue.positions.get(lookup_id)
        if place is not None:
            queue.positions.relocate(lookup_id, location)
            self._packets.keep(location, place.size)
            self._packets.release(place.location, place.size)

    def _drop(self, queue: Queue) -> None:
        for place in list(queue.positions):
            self._remove(queue, place.lookup_id)
        del self.queues[queue.number]
        if queue.path is not None:
            self._paths.pop(queue.path, None)
        owner = self.queues.get(queue.properties.owner)
        if owner is not None and queue.properties.kind is QueueKind.SUBQUEUE:
            owner.subqueues = {
                name: each for name, each in owner.subqueues.items() if each is not queue
            }

    def define(self, properties: QueueProperties) -> None:
        """Makes a queue, or gives one other properties."""
        known = self.queues.get(properties.number)
        if known is not None:
            known.properties = properties
            return
        queue = Queue(properties)
        self.queues[properties.number] = queue
        if queue.path is not None:
            self._paths[queue.path] = queue
        owner = self.queues.get(properties.owner)
        if owner is not None and properties.kind is QueueKind.JOURNAL:
            owner.journal = queue
        elif owner is not None and properties.kind is QueueKind.SUBQUEUE and queue.path is not None:
            owner.subqueues[(queue.path.subqueue or "").lower()] = queue

    def find(self, path: PathName) -> Queue | None:
        """The queue with this path name on this queue manager, or None."""
        if not path.is_local and path.computer.lower() != self.name.lower():
            return None
        return self._paths.get(path.on(LOCAL_COMPUTER))

    def is_coming(self, path: PathName) -> bool:
        """Whether a queue of this path name, on the local computer, is being made."""
        return path in self._coming.values()

    # Reading.

    def packet_of(self, place: Place) -> bytes:
        """The packet of a message."""
        if place.location & MEMORY:
            return self._memory[place.location]
        return self._packets.read(place.location, place.size)

    def delivered(self, queue: Queue, place: Place) -> Delivered:
        """A message as a reader gets it."""
        return Delivered(self.packet_of(place), place.lookup_id, queue.number)

    @property
    def total_bytes(self) -> int:
        """What all messages take, those on their way in included."""
        return sum(
            queue.positions.total_bytes + queue.staged_bytes for queue in self.queues.values()
        )

    def has_room(self, size: int) -> bool:
        """[MS-MQDMPR] 3.1.7.1.9: whether the machine's quota allows a packet of this size."""
        quota = self.limits.machine_quota
        return quota == UNLIMITED or self.total_bytes + size <= quota * KILOBYTE

    # Opening.

    def replay(self, kind: int, data: memoryview, position: int) -> None:
        """Takes one record of the log, as it was written by a change that happened."""
        if kind == records.PUT:
            header = records.read_put(data)
            packet = data[records.PUT_HEADER_SIZE :]
            location = position + records.PUT_HEADER_SIZE
            self._packets.keep(location, len(packet))
            self.insert(self.queues[header.queue], header.lookup_id, location, packet)
        elif kind == records.REMOVE:
            number, lookup_id = records.read_remove(data)
            self._remove(self.queues[number], lookup_id)
        elif kind == records.RELOCATE:
            header = records.read_put(data)
            location = position + records.PUT_HEADER_SIZE
            self._relocate(self.queues[header.queue], header.lookup_id, location)
        elif kind == records.QUEUE:
            self.define(QueueProperties.from_bytes(bytes(data)))
        elif kind == records.DROP:
            self._drop(self.queues[records.read_drop(data)])
        else:
            assert kind == records.RESERVE, f"record kind {kind} is unknown"
            self.restore_numbers(*records.read_reserve(data))

    # Checkpoints.

    @property
    def is_settled(self) -> bool:
        """Whether every change that was submitted has happened."""
        return not self._pending

    def numbers(self) -> tuple[int, int]:
        """The identifiers that are reserved."""
        sequential_id = max(self._sequential_reserved, self._sequential_id)
        return sequential_id, max(self._ordinal_reserved, self._ordinal)

    def sources(self) -> list[bytes]:
        """The queue managers whose messages are here, in the order of their keys."""
        return list(self._sources)

    def restore_numbers(self, sequential_id: int, ordinal: int) -> None:
        """Goes on behind what was reserved."""
        self._sequential_reserved, self._ordinal_reserved = sequential_id, ordinal
        self._sequential_id = max(self._sequential_id, sequential_id)
        self._ordinal = max(self._ordinal, ordinal)

    def restore_sources(self, guids: list[bytes]) -> None:
        """Takes the queue managers in the order of their keys."""
        assert not self._sources
        self._sources = {guid: number for number, guid in enumerate(guids, start=1)}

    def restore_messages(self, queue: Queue, columns: Columns) -> None:
        """Takes the messages of a queue as a checkpoint has them."""
        queue.positions.load(columns)
        queue.by_message_id = dict(zip(columns.keys, columns.ids, strict=True))
        for location, size in zip(columns.locations, columns.sizes, strict=True):
            self._packets.keep(location, size)
        timed = (
            (expires, queue.number, lookup_id)
            for expires, lookup_id in zip(columns.expiries, columns.ids, strict=True)
            if expires != NEVER
        )
        self.expiries.extend(timed)
        heapify(self.expiries)
