"""What the queue manager knows, and how changes come to pass.

Operations live in the modules beside this one; they read the state, plan changes and submit them.
Only here is the state altered.
"""

from __future__ import annotations

import struct
from array import array
from collections import deque
from itertools import chain
from typing import Final, assert_never
from uuid import UUID

from merq.engine import records
from merq.engine.changes import (
    NO_ENTRY,
    Answer,
    Change,
    DefineStep,
    DropStep,
    Effect,
    GiveBackStep,
    MoveStep,
    PrepareStep,
    PurgeStep,
    PutManyStep,
    PutStep,
    RelocateStep,
    RemoveManyStep,
    RemoveStep,
    ResolveStep,
    Result,
    StageStep,
    Step,
)
from merq.engine.expiry import Expiries
from merq.engine.limits import Limits
from merq.engine.numbers import Numbers
from merq.engine.ports import PacketSource
from merq.engine.positions import AVAILABLE, LOCKED, NEVER, PURGE_PENDING, Place
from merq.engine.queue import HELD, KILOBYTE, NO_NOTE, Note, Queue
from merq.engine.work import Phase, Sending, Transaction
from merq.errors import MessageQueueError, StoreError
from merq.model.delivered import Delivered
from merq.model.names import LOCAL_COMPUTER, PathName
from merq.model.queue import UNLIMITED, QueueKind, QueueProperties

MEMORY: Final = 1 << 63
"""Set in the location of a packet that is not in the store: express messages."""

NUMBERED: Final = (QueueKind.PRIVATE, QueueKind.SUBQUEUE, QueueKind.OUTGOING)
"""Queues that get the next number of their kind."""

_U32: Final = struct.Struct("<I")


class _Coming:
    """A queue that changes under way make, or give other properties; and how many of them do."""

    __slots__ = ("changes", "queue")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.changes = 0


class State:
    """The queue manager's memory."""

    def __init__(self, guid: UUID, name: str, packets: PacketSource, limits: Limits) -> None:
        self.guid = guid
        self.source = guid.bytes_le
        self.name = name
        self.aliases = frozenset({LOCAL_COMPUTER, "localhost", "127.0.0.1", "::1", name.lower()})
        self.limits = limits
        self.now = 0
        self.low_on_disk = False
        self.low_on_memory = False
        self.connection_active = True
        self.queues: dict[int, Queue] = {}
        self.transactions: dict[int, Transaction] = {}
        self.transaction_count = 0
        self.numbers = Numbers()
        self.effects: list[Effect] = []
        self.expiries = Expiries()
        self.awake: list[Queue] = []
        self.taken_bytes = 0
        self.memory_bytes = 0
        self._paths: dict[PathName, Queue] = {}
        self._destinations: dict[str, Queue] = {}
        self._packets = packets
        self._memory: dict[int, tuple[int, bytes]] = {}
        self._memory_count = 0
        self._pending: deque[Change] = deque()
        self._coming: dict[int, _Coming] = {}
        self.last_numbers: dict[QueueKind, int] = {}
        self._durable = 0
        self._sources: dict[bytes, int] = {}

    def be(self, guid: UUID) -> None:
        """Takes the identifier that the store has."""
        self.guid = guid
        self.source = guid.bytes_le

    @property
    def throttled(self) -> bool:
        """[MS-MQDMPR] 3.1.1.1: whether disk or memory runs low and no message is taken."""
        return self.low_on_disk or self.low_on_memory

    # Numbers.

    def next_queue_number(self, kind: QueueKind, first: int, most: int) -> int | None:
        """A number from `first` up to `most` for a new queue, or None if all are taken.

        It goes on from the last one given, so that whoever knows a deleted queue by its number does
        not meet another under it, not after a restart either.
        """
        start = max(first, self.last_numbers.get(kind, 0) + 1)
        for candidate in chain(range(start, most), range(first, min(start, most))):
            if candidate not in self.queues and candidate not in self._coming:
                self.last_numbers[kind] = candidate
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
            self.effects.append(change)
        self._pending.append(change)
        self._settle()

    def plan_queue(self, change: Change, properties: QueueProperties) -> Queue:
        """Plans that a queue is there, or has other properties.

        Every change that needs a queue which is not there yet writes it: whichever of them comes to
        the disk, the queue is there before what is put into it.
        """
        coming = self._coming.get(properties.number)
        if coming is None:
            queue = self.queues.get(properties.number) or Queue(properties)
            coming = self._coming[properties.number] = _Coming(queue)
        coming.changes += 1
        change.entries.append(records.define_queue(properties.to_bytes()))
        change.steps.append(DefineStep(coming.queue, properties))
        return coming.queue

    def planned(self, queue: Queue) -> QueueProperties:
        """The properties that a queue has when everything under way has happened."""
        for change in reversed(self._pending):
            for step in change.steps:
                if isinstance(step, DefineStep) and step.properties.number == queue.number:
                    return step.properties
        return queue.properties

    def coming(self, name: str) -> Queue | None:
        """The queue of this path name or destination that is being made."""
        for each in self._coming.values():
            if each.queue.properties.path_name.lower() == name.lower():
                return each.queue
        return None

    def coming_parts(self, owner: Queue) -> list[Queue]:
        """The subqueues of a queue that are being made."""
        return [
            each.queue
            for number, each in self._coming.items()
            if each.queue.properties.owner == owner.number and number not in self.queues
        ]

    def _came(self, number: int) -> None:
        coming = self._coming[number]
        coming.changes -= 1
        if not coming.changes:
            del self._coming[number]

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
        if change.is_certain:
            change.entries.clear()
            self._settle()
            return
        self._pending.remove(change)
        for step in reversed(change.steps):
            self._take_back(step)
        reserved = [entry for entry in change.entries if entry.kind == records.RESERVE]
        if reserved:
            self._reserve_again(reserved)
        for answer in change.answers:
            self.answer(answer.request, error)
        self._settle()

    def _take_back(self, step: Step) -> None:  # noqa: C901, PLR0912 - one case a kind of step
        match step:
            case PutStep():
                self.unstage(step.queue, len(step.packet))
            case PutManyStep():
                self.unstage(step.queue, step.size)
            case RemoveStep() | MoveStep():
                self._stay(step.queue, step.lookup_id)
            case RemoveManyStep():
                for lookup_id in step.lookup_ids:
                    self._stay(step.queue, lookup_id)
            case GiveBackStep():
                pass  # the prepared transaction keeps it, and no abort is counted
            case PurgeStep():
                place = step.queue.positions.get(step.lookup_id)
                if place is not None and place.state == PURGE_PENDING:
                    step.queue.positions.set_state(step.lookup_id, LOCKED)
            case RelocateStep():
                pass
            case DefineStep():
                self._came(step.properties.number)
            case DropStep():
                step.queue.closing = False
                for lookup_id in list(step.queue.expired):
                    place = step.queue.positions.get(lookup_id)
                    if place is not None and place.state == AVAILABLE:
                        self._watch_again(step.queue, place)
            case StageStep():
                step.transaction.operations.remove(step.operation)
                self.unstage(step.operation.queue, step.operation.size)
            case PrepareStep():
                step.transaction.phase = Phase.OPEN
            case ResolveStep():
                step.transaction.phase = Phase.PREPARED
                self.hold(step.transaction)
            case _:
                assert_never(step)

    def _stay(self, queue: Queue, lookup_id: int) -> None:
        """A message does not leave; what was purged goes at the next start, and to nobody."""
        if self._is_marked(queue, lookup_id):
            queue.positions.set_state(lookup_id, PURGE_PENDING)
        elif lookup_id in queue.held:
            queue.held[lookup_id] = HELD
            queue.positions.set_state(lookup_id, LOCKED)
        elif lookup_id in self.returning(queue):
            queue.positions.set_state(lookup_id, LOCKED)  # who gives it back makes it available
        else:
            self.give_back(queue, lookup_id)

    def _is_marked(self, queue: Queue, lookup_id: int) -> bool:
        """Whether a message goes when it is given back, or will when what is under way happens."""
        return queue.notes.get(lookup_id, NO_NOTE).purged or any(
            isinstance(step, PurgeStep) and step.lookup_id == lookup_id and step.queue is queue
            for change in self._pending
            for step in change.steps
        )

    def _reserve_again(self, reserved: list[records.Entry]) -> None:
        """What was not written does not count, and changes that are planned may depend on it.

        The first of them has to write it, and the first of those that write anything, lest that one
        be in the log before it.
        """
        # One that is certain needs no numbers, and would lose them again if it is not written.
        unwritten = [each for each in self._pending if not each.end and not each.is_certain]
        if not unwritten:
            self.numbers.forget_reservation()
            return
        writing = next((each for each in unwritten if each.entries), None)
        if writing is not unwritten[0]:
            unwritten[0].entries += reserved
            self.effects.append(unwritten[0])
        if writing is not None:
            writing.entries += reserved

    def hold(self, transaction: Transaction) -> None:
        """What a prepared transaction is about belongs to it until it ends."""
        for operation in transaction.operations:
            if isinstance(operation, Sending):
                self.stage(operation.queue, operation.size)
            else:
                queue, lookup_id = operation.queue, operation.lookup_id
                purged = queue.notes.get(lookup_id, NO_NOTE).purged
                queue.positions.set_state(lookup_id, PURGE_PENDING if purged else LOCKED)

    def stage(self, queue: Queue, size: int) -> None:
        """Room in a queue is taken for a message on its way into it."""
        queue.staged_bytes += size
        self.taken_bytes += size

    def unstage(self, queue: Queue, size: int) -> None:
        """Room that was taken is free again."""
        queue.staged_bytes -= size
        self.taken_bytes -= size

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
        self.expiries.add(place.expires, queue.number, place.lookup_id)

    def leaving(self, queue: Queue) -> set[int]:
        """Messages whose removal is under way; what moves stays with the queue's own kin."""
        found: set[int] = set()
        for change in self._pending:
            for step in change.steps:
                if isinstance(step, RemoveStep) and step.queue is queue:
                    found.add(step.lookup_id)
                elif isinstance(step, RemoveManyStep) and step.queue is queue:
                    found.update(step.lookup_ids)
        return found

    def returning(self, queue: Queue) -> set[int]:
        """Messages that are being given back."""
        return {
            step.lookup_id
            for change in self._pending
            for step in change.steps
            if isinstance(step, GiveBackStep) and step.queue is queue
        }

    def arriving(self, queue: Queue) -> list[bytes]:
        """Packets that are on their way into a queue."""
        found: list[bytes] = []
        for change in self._pending:
            for step in change.steps:
                if isinstance(step, PutStep) and step.queue is queue:
                    found.append(step.packet)
                elif isinstance(step, PutManyStep) and step.queue is queue:
                    found += step.packets
        return found

    def answer(self, request: int, result: Result) -> None:
        """Tells somebody what came of a request."""
        self.effects.append(Answer(request, result))

    def _settle(self) -> None:
        pending = self._pending
        while pending and pending[0].is_ready(self._durable):
            change = pending.popleft()
            for step in change.steps:
                self._carry_out(step, change)
            self.effects += change.answers

    def _carry_out(self, step: Step, change: Change) -> None:  # noqa: C901, PLR0912 - as above
        match step:
            case PutStep():
                self._put(step, change)
            case PutManyStep():
                self._put_many(step, change)
            case RemoveStep():
                self.remove(step.queue, step.lookup_id)
            case RemoveManyStep():
                for lookup_id in step.lookup_ids:
                    self.remove(step.queue, lookup_id)
            case MoveStep():
                self.move(step.queue, step.lookup_id, step.target)
            case GiveBackStep():
                self._return(step)
            case PurgeStep():
                self.note(step.queue, step.lookup_id, step.note)
            case RelocateStep():
                self.relocate(step.queue, step.lookup_id, change.positions[step.entry])
            case DefineStep():
                self._came(step.properties.number)
                self.define(step.properties, step.queue)
            case DropStep():
                self.drop(step.queue)
            case StageStep():
                pass  # it was staged when it was planned
            case PrepareStep():
                step.transaction.phase = Phase.PREPARED
            case ResolveStep():
                self.transactions.pop(step.transaction.number, None)
            case _:
                assert_never(step)

    def _return(self, step: GiveBackStep) -> None:
        place = step.queue.positions.get(step.lookup_id)
        if place is None:
            return  # the queue was deleted meanwhile
        if step.note is not None:
            step.queue.notes[step.lookup_id] = step.note
        if place.state == PURGE_PENDING:
            return  # the queue was purged meanwhile
        self.give_back(step.queue, step.lookup_id)

    def _put(self, step: PutStep, change: Change) -> None:
        packet, queue = step.packet, step.queue
        size = len(packet)
        queue.staged_bytes -= size
        if step.entry == NO_ENTRY:
            self._memory_count += 1
            location = MEMORY | self._memory_count
            self._memory[location] = (step.arrival, packet)
            self.memory_bytes += size
        else:
            location = change.positions[step.entry]
            self._packets.keep(location, size)
        note = step.note
        if note is not None:
            queue.notes[step.lookup_id] = note
        kept = note is not None and note.kept
        queue.arrived += 1
        self.insert(queue, step.lookup_id, location, packet, kept=kept)

    def _put_many(self, step: PutManyStep, change: Change) -> None:
        """What `_put` does, for many at once: none has a note, and all are from here."""
        queue, arrival, packets = step.queue, step.arrival, step.packets
        positions, by_message_id = queue.positions, queue.by_message_id
        queue.staged_bytes -= step.size
        queue.arrived += len(packets)
        source = self._sources.get(self.source)
        if source is None:
            source = self._sources[self.source] = len(self._sources) + 1
        key = source << 32 | step.first_ordinal
        row = 0
        for packet in packets:
            size, lookup_id = len(packet), step.lookup_ids[row]
            if step.entry == NO_ENTRY:
                self._memory_count += 1
                location = MEMORY | self._memory_count
                self._memory[location] = (arrival, packet)
                self.memory_bytes += size
            else:
                location = change.positions[step.entry + row]
            expires = queue.expiry_of(packet)
            positions.append(lookup_id, location, size, expires, key)
            by_message_id.add(key, lookup_id)
            if expires != NEVER:
                self.expiries.add(expires, queue.number, lookup_id)
            key += 1
            row += 1  # noqa: SIM113 - counting is cheaper than enumerate, compiled
        if step.entry != NO_ENTRY:
            # A frame lies in one segment.
            self._packets.keep(change.positions[step.entry], step.size)
        if queue.waiting:
            self.awake.append(queue)

    def insert(
        self,
        queue: Queue,
        lookup_id: int,
        location: int,
        packet: bytes | memoryview,
        *,
        kept: bool = False,
    ) -> None:
        """Gives a message its place, by which it can be found; a copy that is kept stays."""
        source = bytes(packet[16:32])
        number = self._sources.get(source)
        if number is None:
            number = self._sources[source] = len(self._sources) + 1
        key = number << 32 | _U32.unpack_from(packet, 56)[0]
        expires = NEVER if kept else queue.expiry_of(packet)
        queue.positions.append(lookup_id, location, len(packet), expires, key)
        queue.by_message_id.add(key, lookup_id)
        if expires != NEVER:
            self.expiries.add(expires, queue.number, lookup_id)
        if queue.waiting:
            self.awake.append(queue)

    def remove(self, queue: Queue, lookup_id: int) -> None:
        """A message is gone."""
        place = self._take_out(queue, lookup_id)
        queue.notes.pop(lookup_id, None)
        self.taken_bytes -= place.size
        if place.location & MEMORY:
            del self._memory[place.location]
            self.memory_bytes -= place.size
        else:
            self._packets.release(place.location, place.size)

    def _take_out(self, queue: Queue, lookup_id: int) -> Place:
        place = queue.positions.remove(lookup_id)
        queue.left += 1
        queue.by_message_id.remove(place.key, lookup_id)
        if queue.held:
            queue.held.pop(lookup_id, None)
        if place.expires != NEVER:
            if lookup_id in queue.expired:
                queue.expired.remove(lookup_id)
            else:
                self.expiries.remove(place.expires, queue.number, lookup_id)
        return place

    def move(self, queue: Queue, lookup_id: int, target: Queue) -> None:
        """A message takes its place in another queue."""
        place = self._take_out(queue, lookup_id)
        # The other queue was purged, if any was.
        note = queue.notes.pop(lookup_id, NO_NOTE)._replace(purged=False)
        if note != NO_NOTE:
            target.notes[lookup_id] = note
        target.positions.add(place._replace(state=AVAILABLE))
        target.by_message_id.add(place.key, lookup_id)
        target.arrived += 1
        if place.expires != NEVER:
            self.expiries.add(place.expires, target.number, lookup_id)
        self.awake.append(target)

    def note(self, queue: Queue, lookup_id: int, note: Note) -> None:
        """Something is known of a message, if the message is still there."""
        if queue.positions.get(lookup_id) is not None:
            queue.notes[lookup_id] = note

    def relocate(self, queue: Queue, lookup_id: int, location: int) -> None:
        """A message's packet lies elsewhere now, if the message is still there."""
        place = queue.positions.get(lookup_id)
        if place is not None:
            queue.positions.relocate(lookup_id, location)
            self._packets.keep(location, place.size)
            self._packets.release(place.location, place.size)

    def drop(self, queue: Queue) -> None:
        """A queue is gone, with everything in it."""
        for place in list(queue.positions):
            self.remove(queue, place.lookup_id)
        del self.queues[queue.number]
        if queue.path is not None:
            self._paths.pop(queue.path, None)
        else:
            self._destinations.pop(queue.properties.path_name.lower(), None)
        owner = self.queues.get(queue.properties.owner)
        if owner is not None and queue.properties.kind is QueueKind.SUBQUEUE:
            owner.subqueues = {
                name: each for name, each in owner.subqueues.items() if each is not queue
            }

    def define(self, properties: QueueProperties, queue: Queue | None = None) -> None:
        """Makes a queue, or gives one other properties."""
        known = self.queues.get(properties.number)
        if known is not None:
            known.properties = properties
            return
        queue = queue or Queue(properties)
        self.queues[properties.number] = queue
        kind = properties.kind
        if kind in NUMBERED:
            self.last_numbers[kind] = max(self.last_numbers.get(kind, 0), properties.number)
        if queue.path is not None:
            self._paths[queue.path] = queue
        else:
            self._destinations[properties.path_name.lower()] = queue
        owner = self.queues.get(properties.owner)
        if owner is not None and properties.kind is QueueKind.JOURNAL:
            owner.journal = queue
        elif owner is not None and properties.kind is QueueKind.SUBQUEUE and queue.path is not None:
            owner.subqueues[(queue.path.subqueue or "").lower()] = queue

    # Opening and checkpoints.

    @property
    def is_settled(self) -> bool:
        """Whether every change that was submitted has happened."""
        return not self._pending

    @property
    def pending_changes(self) -> int:
        """How many changes are under way."""
        return len(self._pending)

    def keep(self, location: int, size: int) -> None:
        """A packet in the store is needed."""
        self._packets.keep(location, size)

    def keep_all(self, locations: array[int], sizes: array[int]) -> None:
        """Packets in the store are needed."""
        self._packets.keep_all(locations, sizes)

    def sources(self) -> list[bytes]:
        """The queue managers whose messages are here, in the order of their keys."""
        return list(self._sources)

    def restore_sources(self, guids: list[bytes]) -> None:
        """Takes the queue managers in the order of their keys."""
        assert not self._sources
        self._sources = {guid: number for number, guid in enumerate(guids, start=1)}

    # Looking.

    def find(self, path: PathName) -> Queue | None:
        """The queue with this path name on this queue manager, or None."""
        if path.computer.lower() not in self.aliases:
            return None
        return self._paths.get(path.on(LOCAL_COMPUTER))

    def find_outgoing(self, destination: str) -> Queue | None:
        """The outgoing queue to a destination, by its format name."""
        return self._destinations.get(destination.lower())

    def stored(self, place: Place) -> tuple[int, bytes]:
        """When a message arrived, and its packet."""
        if place.location & MEMORY:
            return self._memory[place.location]
        return self._packets.read(place.location, place.size)

    def readable(self, place: Place) -> bytes | None:
        """The packet of a message, or None if the disk does not have it as it was written."""
        try:
            return self.stored(place)[1]
        except StoreError:
            return None

    def delivered(self, queue: Queue, place: Place) -> Delivered:
        """A message as a reader gets it."""
        aborts = queue.notes.get(place.lookup_id, NO_NOTE).aborts if queue.notes else 0
        arrival, packet = self.stored(place)
        return Delivered(packet, place.lookup_id, arrival, aborts)

    def has_room(self, size: int) -> bool:
        """[MS-MQDMPR] 3.1.7.1.9: whether the machine's quota allows a packet of this size."""
        quota = self.limits.machine_quota
        return quota == UNLIMITED or self.taken_bytes + size <= quota * KILOBYTE
