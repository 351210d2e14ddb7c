"""What the queue manager knows, and how changes come to pass.

Operations live in the modules beside this one; they read the state, plan changes and submit them.
Only here is the state altered.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import assert_never
from uuid import UUID

from merq.engine import records
from merq.engine.changes import (
    NO_ENTRY,
    AcknowledgeStep,
    Answer,
    ArriveStep,
    Change,
    DefineStep,
    DropStep,
    Effect,
    GiveBackStep,
    MoveStep,
    PrepareStep,
    PublishStep,
    PurgeStep,
    PutManyStep,
    PutRowsStep,
    PutStep,
    ReleaseStep,
    RelocateStep,
    RemoveManyStep,
    RemoveStep,
    ReserveStep,
    ResolveStep,
    Result,
    StageStep,
    Step,
    TransferStep,
)
from merq.engine.holdings import MEMORY, Holdings
from merq.engine.limits import Limits
from merq.engine.ports import PacketSource
from merq.engine.positions import AVAILABLE, LOCKED, NEVER, PURGE_PENDING
from merq.engine.queue import HELD, NO_NOTE, Queue
from merq.engine.work import Phase
from merq.errors import MessageQueueError
from merq.model.queue import QueueKind, QueueProperties


@dataclass(slots=True)
class _Coming:
    """A queue that changes under way make, or give other properties; and how many of them do."""

    queue: Queue
    changes: int = 0


class State(Holdings):
    """The queue manager's memory, and the changes that are under way to it."""

    def __init__(self, guid: UUID, name: str, packets: PacketSource, limits: Limits) -> None:
        super().__init__(guid, name, packets, limits)
        self.effects: list[Effect] = []
        self._pending: deque[Change] = deque()
        self._coming: dict[int, _Coming] = {}
        self._coming_names: dict[str, _Coming] = {}
        self._durable = 0
        self.unpurged: list[tuple[Queue, int]] = []

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

    # Changes.

    def submit(self, change: Change) -> None:
        """A change is to happen, when those before it have and it is durable."""
        if change.entries:
            self.effects.append(change)
        self._pending.append(change)
        self._settle()

    def plan_queue(
        self, change: Change, properties: QueueProperties, made: Queue | None = None
    ) -> Queue:
        """Plans that a queue is there, or has other properties.

        Every change that needs a queue which is not there yet writes it: whichever of them comes to
        the disk, the queue is there before what is put into it. What was made before and came to
        nothing is `made` again.
        """
        coming = self._coming.get(properties.number)
        if coming is None:
            queue = self.queues.get(properties.number) or made or Queue(properties)
            coming = self._coming[properties.number] = _Coming(queue)
            self._coming_names[queue.properties.path_name.lower()] = coming
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
        found = self._coming_names.get(name.lower())
        return None if found is None else found.queue

    def is_destination(self, name: str) -> bool:
        """Whether there is an outgoing queue of this name, or one is being made."""
        return self.find_outgoing(name) is not None or self.coming(name) is not None

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
            name = coming.queue.properties.path_name.lower()
            if self._coming_names.get(name) is coming:
                del self._coming_names[name]

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
        endings = self._endings_behind(change)
        # What was written before it has the numbers too that this one was to reserve once more.
        if change.is_certain or any(each.end for each in endings):
            change.entries.clear()
            self._settle()
            return
        for ending in endings:
            self.failed(ending, error)
            ending.entries.clear()
        self._pending.remove(change)
        for step in reversed(change.steps):
            self._take_back(step)
        reserved = [entry for entry in change.entries if entry.kind == records.RESERVE]
        if reserved:
            self._reserve_again(reserved)
        for answer in change.answers:
            self.answer(answer.request, error)
        self._settle()

    def take_back(self, change: Change, steps: int, entries: int) -> None:
        """What was planned last for a change does not happen: of its steps these many stay."""
        while len(change.steps) > steps:
            self._take_back(change.steps.pop())
        # Numbers that were reserved may be in use by what stays, or by another change.
        reserved = [each for each in change.entries[entries:] if each.kind == records.RESERVE]
        change.entries[entries:] = reserved

    def _endings_behind(self, change: Change) -> list[Change]:
        """What is under way and prepares or commits a transaction in which this change sends.

        It was planned as if the message were sent, so it comes to nothing with that.
        """
        found = {
            step.transaction.ending: None for step in change.steps if isinstance(step, StageStep)
        }
        return [each for each in found if each is not None and each in self._pending]

    def _take_back(self, step: Step) -> None:  # noqa: C901, PLR0912 - one case a kind of step
        match step:
            case PutStep():
                self.unstage(step.queue, len(step.packet))
            case PutManyStep() | PutRowsStep():
                self.unstage(step.queue, step.size)
            case RemoveStep() | MoveStep():
                self._stay(step.queue, step.lookup_id)
            case RemoveManyStep():
                self._stay_all(step)
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
                self._unsend(step)
            case PrepareStep():
                step.transaction.phase = Phase.OPEN
            case ResolveStep():
                step.transaction.phase = Phase.PREPARED
                self.hold(step.transaction)
            case ArriveStep():
                for incoming, before in step.sequences.items():
                    incoming.sequence_id, incoming.number = before
                # What follows counts as known only as far as it was before.
                self.sequences.take_back(step.opened, step.forgotten, step.ended)
                for source, identity, network in step.messages:
                    self.recent.remove(source, identity, network)
            case TransferStep():
                self._untransfer(step)
            case ReserveStep():
                self._unreserve(step)
            case AcknowledgeStep():
                step.claim.acknowledging = None
                step.claim.take_back(step.reserved)
            case ReleaseStep():
                step.claim.releasing = False
            case PublishStep():
                for stage, target, _ in step.moves:
                    target.staged_bytes -= stage.positions.total_bytes
            case _:
                assert_never(step)

    def _unsend(self, step: StageStep) -> None:
        """A send in a transaction was not written; one that has ended has given up its room."""
        if step.transaction.phase is Phase.OPEN:
            for operation in step.operations:
                step.transaction.operations.remove(operation)
                self.unstage(operation.queue, operation.size)

    def _stay_all(self, step: RemoveManyStep) -> None:
        """Messages do not leave; those of which nothing is known are available again at once."""
        queue, ending = step.queue, step.queue.ending()
        known = {each for each, note in queue.notes.items() if note.purged}
        known.update(queue.held, queue.expired, ending, self.returning(queue), self._marked(queue))
        plain = array("Q")
        for lookup_id in step.lookup_ids:
            if lookup_id not in known:
                plain.append(lookup_id)
            elif lookup_id in ending:
                queue.positions.set_state(lookup_id, LOCKED)
            else:
                self._stay(queue, lookup_id)
        if plain:
            self.give_back_all(queue, plain)
            if queue.transfer is not None:
                queue.transfer.strays.update(plain)  # as in `_stay`

    def _stay(self, queue: Queue, lookup_id: int) -> None:
        """A message does not leave; what was purged goes to nobody, and leaves with a tick."""
        if self._is_marked(queue, lookup_id):
            queue.positions.set_state(lookup_id, PURGE_PENDING)
            self.unpurged.append((queue, lookup_id))
        elif lookup_id in queue.held:
            queue.held[lookup_id] = HELD
            queue.positions.set_state(lookup_id, LOCKED)
        elif lookup_id in self.returning(queue):
            queue.positions.set_state(lookup_id, LOCKED)  # who gives it back makes it available
        else:
            self.give_back(queue, lookup_id)
        if queue.transfer is not None:
            queue.transfer.strays.add(lookup_id)  # it is sent again, and acknowledged again

    def _is_marked(self, queue: Queue, lookup_id: int) -> bool:
        """Whether a message goes when it is given back, or will when what is under way happens."""
        return queue.notes.get(lookup_id, NO_NOTE).purged or lookup_id in self._marked(queue)

    def _marked(self, queue: Queue) -> set[int]:
        """Messages that will go when they are given back, when what is under way happens."""
        return {
            step.lookup_id
            for change in self._pending
            for step in change.steps
            if isinstance(step, PurgeStep) and step.queue is queue
        }

    def _reserve_again(self, reserved: list[records.Entry | records.PutRun]) -> None:
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
                elif isinstance(step, PublishStep):
                    found += self._published_to(step, queue)
        return found

    def _published_to(self, step: PublishStep, queue: Queue) -> list[bytes]:
        return [
            packet
            for stage, target, _ in step.moves
            if target is queue
            for place in stage.positions
            if (packet := self.readable(place)) is not None
        ]

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
            case PutRowsStep():
                self._put_rows(step, change)
            case RemoveStep():
                self.remove(step.queue, step.lookup_id)
            case RemoveManyStep():
                self.remove_many(step.queue, step.lookup_ids)
            case MoveStep():
                self.move(step.queue, step.lookup_id, step.target)
            case GiveBackStep():
                self._return(step)
            case PurgeStep():
                self.note(step.queue, step.lookup_id, step.note)
            case RelocateStep():
                end = step.entry + len(step.lookup_ids)
                self.relocate_many(step.queue, step.lookup_ids, change.positions[step.entry : end])
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
            case ArriveStep():
                self._arrived(step)
            case TransferStep():
                self._transferred(step)
            case ReserveStep():
                step.claim.reserving = None  # it was locked when it was planned
            case AcknowledgeStep():
                step.claim.acknowledging = None
                step.claim.ending.remove(step.reserved)
                step.claim.acknowledged = step.reserved.end
            case ReleaseStep():
                step.claim.releasing = False
                self.release_ranges(step.queue, step.claim, step.end, forgotten=step.is_forgotten)
            case PublishStep():
                for stage, target, first in step.moves:
                    target.staged_bytes -= stage.positions.total_bytes
                    self.move_all(stage, target, first)
                self.remember_published(step.writer, step.batch, step.time)
            case _:
                assert_never(step)

    def _arrived(self, step: ArriveStep) -> None:
        """What came is on the disk: it may be acknowledged, and its addresses are charged."""
        for incoming in step.sequences:
            incoming.settled = incoming.sequence_id, incoming.number
        self.network.settle(step.coming)
        self.network_memory.settle(step.coming_in_memory)

    def _transferred(self, step: TransferStep) -> None:
        """What was learnt of a transfer is on the disk: what waited for that may be sent."""
        transfer = step.queue.transfer
        assert transfer is not None, "only outgoing queues send"
        if step.remote is not None:
            transfer.remote, transfer.next_remote = step.remote, None
        else:
            transfer.ordering -= 1
            transfer.unsettled.difference_update(step.lookup_ids)
        self.outbound[step.queue] = None

    def _untransfer(self, step: TransferStep) -> None:
        """What was learnt of a transfer could not be written: it has to be learnt again."""
        transfer = step.queue.transfer
        assert transfer is not None, "only outgoing queues send"
        if step.remote is not None:
            transfer.next_remote = None
            return
        transfer.ordering -= 1
        transfer.unsettled.update(step.lookup_ids)
        transfer.awaiting_final.difference_update(step.lookup_ids)
        transfer.strays.update(step.lookup_ids)

    def _unreserve(self, step: ReserveStep) -> None:
        """A range was not written: nobody has reserved its messages."""
        claim = step.claim
        claim.reserving = None
        claim.ranges.remove(step.reserved)
        for lookup_id in step.reserved.ids:
            self.give_back(step.queue, lookup_id)
        if step.before is None:
            del step.queue.claims[claim.group]
        else:
            claim.acknowledged = step.before

    def publishing(self, writer: str) -> tuple[Change, int] | None:
        """The change under way that publishes something of a writer, and which batch that is."""
        for change in self._pending:
            for step in change.steps:
                if isinstance(step, PublishStep) and step.writer == writer:
                    return change, step.batch
        return None

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
        note = step.note
        if note is not None:
            step.queue.notes[step.lookup_id] = note
        kept = note is not None and note.kept
        location = NO_ENTRY if step.entry == NO_ENTRY else change.positions[step.entry]
        self._put_one(step.queue, step.lookup_id, step.packet, step.arrival, location, kept=kept)

    def _put_one(
        self,
        queue: Queue,
        lookup_id: int,
        packet: bytes,
        arrival: int,
        location: int,
        *,
        kept: bool = False,
    ) -> None:
        size = len(packet)
        queue.staged_bytes -= size
        if location == NO_ENTRY:
            self._memory_count += 1
            location = MEMORY | self._memory_count
            self._memory[location] = (arrival, packet)
            self.memory_bytes += size
        else:
            self._packets.keep(location, size)
        queue.arrived += 1
        self.insert(queue, lookup_id, location, packet, kept=kept)

    def _put_many(self, step: PutManyStep, change: Change) -> None:
        """What `_put` does, for many at once: none has a note."""
        queue, packets, lookup_ids = step.queue, step.packets, step.lookup_ids
        count = len(packets)
        if count == 1:
            # Most senders send one at a time: a list of one would take twice as long.
            location = NO_ENTRY if step.entry == NO_ENTRY else change.positions[step.entry]
            self._put_one(queue, lookup_ids[0], packets[0], step.arrival, location)
            return
        queue.staged_bytes -= step.size
        queue.arrived += count
        keys = step.keys
        if keys is None:
            first = self.source_key(self.source) | step.first_ordinal
            keys = list(range(first, first + count))
        locations: Sequence[int]
        if step.entry == NO_ENTRY:
            first = (MEMORY | self._memory_count) + 1
            self._memory_count += count
            locations = range(first, first + count)
            arrival, memory = step.arrival, self._memory
            for location, packet in zip(locations, packets, strict=True):
                memory[location] = (arrival, packet)
            self.memory_bytes += step.size
        else:
            locations = change.positions[step.entry : step.entry + count]
            # A frame lies in one segment.
            self._packets.keep(locations[0], step.size)
        # Messages that came together mostly live as long as each other.
        known: dict[bytes, int] = {}
        expiries = []
        for packet in packets:
            times = packet[12:16] + packet[48:56]
            expires = known.get(times)
            if expires is None:
                expires = known[times] = queue.expiry_of(packet)
            expiries.append(expires)
        sizes = list(map(len, packets))
        queue.positions.append_many(lookup_ids, locations, sizes, expiries, keys)
        queue.by_message_id.add_many(keys, lookup_ids)
        if step.keys is not None:
            self.network_came(keys, sizes, in_memory=step.entry == NO_ENTRY)
        if min(expiries) != NEVER and queue.properties.kind is not QueueKind.STAGE:
            self.expiries.add_many(expiries, queue.number, lookup_ids, NEVER)
            self.withhold_overdue(queue, expiries, lookup_ids)
        if queue.transfer is not None:
            self.outbound[queue] = None
        if queue.waiting:
            self.awake.append(queue)

    def _put_rows(self, step: PutRowsStep, change: Change) -> None:
        """The same for what is written into a stage, where nobody waits and nothing expires."""
        queue = step.queue
        count = len(step.ids)
        queue.staged_bytes -= step.size
        queue.arrived += count
        locations = change.positions[step.entry : step.entry + count]
        # A frame lies in one segment.
        self._packets.keep(locations[0], step.size)
        queue.positions.append_many(step.ids, locations, step.sizes, step.expiries, step.keys)
        queue.by_message_id.add_many(step.keys, step.ids)

    # Opening and checkpoints.

    @property
    def is_settled(self) -> bool:
        """Whether every change that was submitted has happened."""
        return not self._pending

    @property
    def pending_changes(self) -> int:
        """How many changes are under way."""
        return len(self._pending)
