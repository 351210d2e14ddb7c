"""Messages that are written first and published later, all at once.

A writer of many parts, such as the tasks of a job, writes each part into a stage of its own. Nobody
sees what is there. When all parts are done they are published in one change, and it is remembered
which batch of which writer that was, so that a batch that comes again is not published twice. What
is never published goes after a while.
"""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID
from zlib import crc32

from merq.engine import notices, records
from merq.engine.changes import Answer, Change, DropStep, PublishStep, PutRowsStep, RelocateStep
from merq.engine.filling import put_run
from merq.engine.holdings import STAGE_NUMBER_END, STAGE_NUMBER_FIRST
from merq.engine.numbers import lookup_id_of
from merq.engine.queue import Queue
from merq.engine.sending import Senders
from merq.engine.state import State
from merq.engine.templates import Rows, Stamp, checked_rows, made_packets
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.length_limits import STAGES_AT_ONCE_MAX, WRITER_NAME_MAX
from merq.model.queue import QueueKind, QueueProperties
from merq.model.reservations import StageReport
from merq.model.row_batch import RowBatch
from merq.wire.build import (
    TransactionPlace,
    ending_transaction,
    in_transaction,
    stamp,
    transaction_headers,
)
from merq.wire.view import MessageView

STAGES_MAX: Final = STAGES_AT_ONCE_MAX
"""Stages at the same time."""

SWEEP_S: Final = 60
"""How often it is looked whether something has waited for too long."""

_U32: Final = struct.Struct("<I")
_IDENTIFIER_MASK: Final = (1 << 20) - 1


@dataclass(frozen=True, slots=True)
class StageLabel:
    """What a stage is for."""

    writer: str
    batch: int
    part: str

    @classmethod
    def of(cls, queue: Queue) -> StageLabel:
        """What the label of a stage says."""
        return cls(**json.loads(queue.properties.label))

    @property
    def transaction(self) -> int:
        """The identifier of the transaction that a batch is, the same for all of its parts."""
        name = f"{self.batch} {self.writer}".encode("utf-8", "surrogatepass")
        return crc32(name) & _IDENTIFIER_MASK


class Stages:
    """What is written and not published."""

    def __init__(self, state: State, senders: Senders) -> None:
        self._state = state
        self._senders = senders
        self._swept_at = 0
        # Stages of which it is known that nobody wants to hear of their messages.
        self._quiet: set[int] = set()
        self._written: dict[int, int] = {}
        self.keep_s = state.limits.stage_keep_s

    def create(self, request: int, target: Queue, label: StageLabel) -> None:
        """A place to write to; answers its number."""
        state = self._state
        if target.properties.kind is not QueueKind.PRIVATE:
            raise MessageQueueError(
                HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION,
                f"{target.properties.path_name} is not a queue of this computer to which "
                "applications send",
            )
        if not all(1 <= len(each) <= WRITER_NAME_MAX for each in (label.writer, label.part)):
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_PARAMETER,
                f"the names of a writer and of a part have from 1 to {WRITER_NAME_MAX} characters",
            )
        number = state.next_queue_number(QueueKind.STAGE, STAGE_NUMBER_FIRST, STAGE_NUMBER_END)
        if number is None or len(self._all()) >= STAGES_MAX:
            raise MessageQueueError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                f"{STAGES_MAX} stages wait to be published: drop some",
            )
        change = Change()
        text = {"writer": label.writer, "batch": label.batch, "part": label.part}
        properties = QueueProperties(
            number=number,
            path_name=f"STAGE={number}",
            kind=QueueKind.STAGE,
            identifier=UUID(int=state.guid.int ^ number),
            created=state.now,
            modified=state.now,
            owner=target.number,
            label=json.dumps(text, separators=(",", ":")),
        )
        state.plan_queue(change, properties)
        self._quiet.add(number)
        change.answers.append(Answer(request, number))
        state.submit(change)

    def _target(self, stage: Queue) -> Queue:
        found = self._state.queues.get(stage.properties.owner)
        if found is None or found.closing:
            raise MessageQueueError(
                HResult.MQ_ERROR_QUEUE_DELETED, "the queue that this was written for was deleted"
            )
        return found

    def send(self, request: int, stage: Queue, packets: Sequence[bytes]) -> None:
        """Messages for when the stage is published, all or none; answers how many.

        They are on the disk when that is answered, whatever their delivery mode.
        """
        state, target = self._state, self._target(stage)
        is_transactional = target.properties.transactional
        views = self._senders.checked(target, packets, is_transactional=is_transactional)
        change = Change()
        ordinals = self._ordinals(len(views), change)
        now, source = state.now, state.source
        before = self._count_written(stage, len(views))
        if is_transactional:
            place = self._place(stage, before)
            headers = transaction_headers(place, [False] * len(views), is_last=False)
            done = [
                in_transaction(view, header, view.time_to_be_received, source, now, ordinal)
                for view, header, ordinal in zip(views, headers, ordinals, strict=True)
            ]
            priorities = None
        else:
            done = [
                stamp(view.packet, source, now, ordinal)
                for view, ordinal in zip(views, ordinals, strict=True)
            ]
            priorities = [view.priority for view in views]
        if any([view.user_flags & notices.TELLING for view in views]):  # noqa: C419 - quicker
            self._quiet.discard(stage.number)
        key = state.source_key(source)
        put_run(state, change, stage, done, [key | each for each in ordinals], priorities)
        change.answers.append(Answer(request, len(views)))
        state.submit(change)

    def send_rows(self, request: int, stage: Queue, batch: RowBatch) -> None:
        """The same for rows that have most in common."""
        state, target = self._state, self._target(stage)
        is_transactional = target.properties.transactional
        rows = checked_rows(batch, is_transactional=is_transactional)
        self._senders.check_all(target, rows.views, rows.total, batch.count)
        change = Change()
        ordinals = self._ordinals(batch.count, change)
        before = self._count_written(stage, batch.count)
        place = self._place(stage, before) if is_transactional else None
        first = state.numbers.lookup_ids(7, batch.count, change)
        numbers = range(first, first + batch.count)
        priorities = [0 if is_transactional else view.priority for view in rows.views]
        if len(set(priorities)) == 1:
            start = lookup_id_of(priorities[0], first)
            ids = array("Q", range(start, start + batch.count))
        else:
            pairs = zip(rows.kinds, numbers, strict=True)
            ids = array("Q", [lookup_id_of(priorities[kind], each) for kind, each in pairs])
        stamp = Stamp(stage.number, state.source, state.now, place)
        heads, bodies = made_packets(rows, stamp, ids, ordinals)
        key = state.source_key(state.source)
        step = PutRowsStep(
            stage,
            len(change.entries),
            ids,
            array("I", rows.sizes),
            _expiries(stage, rows, heads),
            array("Q", map(key.__or__, ordinals)),
            rows.total,
        )
        size = rows.total + records.PUT_HEADER_SIZE * batch.count
        change.entries.append(records.PutRun(records.PUT, heads, bodies, size))
        change.steps.append(step)
        state.stage(stage, rows.total)
        if any(view.user_flags & notices.TELLING for view in rows.views):
            self._quiet.discard(stage.number)
        change.answers.append(Answer(request, batch.count))
        state.submit(change)

    def _ordinals(self, count: int, change: Change) -> Sequence[int]:
        numbers = self._state.numbers
        first = numbers.ordinals(count, change)
        if first is None:
            return [numbers.ordinal(change) for _ in range(count)]
        return range(first, first + count)

    def _count_written(self, stage: Queue, count: int) -> int:
        """How many messages were written into a stage before these."""
        before = stage.positions.count
        if stage.staged_bytes:  # what is on its way was counted here
            before = self._written.get(stage.number, before)
        self._written[stage.number] = before + count
        return before

    def _place(self, stage: Queue, before: int) -> TransactionPlace:
        """Where the next message stands in the transaction that its batch is."""
        return TransactionPlace(
            sequence_id=self._state.now << 32 | stage.number & 0xFFFF,
            sequence_number=before + 1,
            previous_sequence_number=before,
            identifier=StageLabel.of(stage).transaction,
            is_first=False,  # which one is, and which is the last, is known when all are published
            is_last=False,
        )

    # Publishing.

    def publish(self, request: int, writer: str, batch: int, numbers: Sequence[int]) -> None:
        """All of it happens, unless it has before; answers how many messages there are."""
        state = self._state
        change = Change()
        if batch <= state.published.get(writer, (-1, 0))[0]:
            for stage in self._of(writer, batch):
                self._drop(change, stage)
            change.answers.append(Answer(request, 0))
            state.submit(change)
            return
        if self._is_under_way(request, writer, batch):
            return
        stages = [self._stage(number, writer, batch) for number in numbers]
        if len(set(numbers)) < len(numbers):
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_PARAMETER, "a stage is named twice: name each once"
            )
        self._check_room(stages)
        step = PublishStep(writer, batch, state.now)
        for stage in stages:
            count = stage.positions.count
            if count:
                first = state.numbers.lookup_ids(7, count, change)
                target = self._target(stage)
                step.moves.append((stage, target, first))
                target.staged_bytes += stage.positions.total_bytes
        moves = [(stage.number, target.number, first) for stage, target, first in step.moves]
        change.entries.append(records.publish(writer, batch, state.now, moves))
        change.steps.append(step)
        self._finish(change, step)
        for stage in self._of(writer, batch):
            self._drop(change, stage)
        total = sum(stage.positions.count for stage in stages)
        change.answers.append(Answer(request, total))
        state.submit(change)

    def _is_under_way(self, request: int, writer: str, batch: int) -> bool:
        """Whether this is being published: then who asks again is told what comes of it.

        Raises:
            MessageQueueError: Another batch of that writer is. If that failed and this did not, it
                could never be published any more.
        """
        found = self._state.publishing(writer)
        if found is None:
            return False
        change, other = found
        if other != batch:
            raise MessageQueueError(
                HResult.MQ_ERROR_SHARING_VIOLATION,
                f"batch {other} of {writer!r} is being published: try again when it is",
            )
        change.answers.append(Answer(request, 0))
        return True

    def _stage(self, number: int, writer: str, batch: int) -> Queue:
        found = self._state.queues.get(number)
        if found is None or found.properties.kind is not QueueKind.STAGE or found.closing:
            raise MessageQueueError(
                HResult.MQ_ERROR_QUEUE_NOT_FOUND,
                f"there is no stage {number}: it was published, dropped, or waited for too long",
            )
        label = StageLabel.of(found)
        if (label.writer, label.batch) != (writer, batch):
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_PARAMETER,
                f"stage {number} is of batch {label.batch} of {label.writer!r}, not of batch "
                f"{batch} of {writer!r}",
            )
        if found.staged_bytes:
            raise MessageQueueError(
                HResult.MQ_ERROR_SHARING_VIOLATION,
                f"messages are being written into stage {number}: publish it when they are there",
            )
        return found

    def _check_room(self, stages: list[Queue]) -> None:
        sizes: dict[Queue, int] = {}
        for stage in stages:
            target = self._target(stage)
            sizes[target] = sizes.get(target, 0) + stage.positions.total_bytes
        for target, size in sizes.items():
            if not target.has_room(size):
                raise MessageQueueError(
                    HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                    f"what was written has {size} bytes and would exceed the quota of "
                    f"{target.properties.quota} KB of {target.properties.path_name}",
                )

    def _finish(self, change: Change, step: PublishStep) -> None:
        """The first and the last message say so, and senders hear of what has arrived."""
        state = self._state
        parts = [each for each in step.moves if each[1].properties.transactional]
        for number, (stage, target, first) in enumerate(parts):
            is_first, is_last = number == 0, number == len(parts) - 1
            ends = {}
            if is_first:
                ends[first] = stage.positions.first()
            if is_last:
                ends[first + stage.positions.count - 1] = stage.positions.last()
            for sequence, place in ends.items():
                assert place is not None, "a stage that is moved has messages"
                arrival, packet = state.stored(place)
                packet = ending_transaction(
                    packet,
                    is_first=is_first and sequence == first,
                    is_last=is_last and sequence == first + stage.positions.count - 1,
                )
                lookup_id = lookup_id_of(0, sequence)
                change.steps.append(RelocateStep(target, [lookup_id], len(change.entries)))
                change.entries.append(records.relocate(target.number, arrival, lookup_id, packet))
        for stage, _, _ in step.moves:
            if stage.number not in self._quiet:
                for place in stage.positions:
                    packet = state.stored(place)[1]
                    if _U32.unpack_from(packet, 60)[0] & notices.TELLING:
                        notices.arrived(state, change, MessageView(packet))

    # Dropping.

    def drop(self, request: int, *, writer: str, batch: int, stage: int) -> None:
        """What was written goes; answers how many messages."""
        found = [] if stage else self._of(writer, batch)
        if stage:
            queue = self._state.queues.get(stage)
            if queue is not None and queue.properties.kind is QueueKind.STAGE and not queue.closing:
                found = [queue]
        change = Change()
        change.answers.append(Answer(request, sum(each.positions.count for each in found)))
        for each in found:
            self._drop(change, each)
        self._state.submit(change)

    def sweep(self) -> None:
        """What has waited for too long goes."""
        state = self._state
        if state.now < self._swept_at + SWEEP_S:
            return
        self._swept_at = state.now
        change = Change()
        for queue in self._all():
            # Its queue was deleted while it was being published, and that failed.
            is_orphan = queue.properties.owner not in state.queues
            if is_orphan or queue.properties.created + self.keep_s < state.now:
                self._drop(change, queue)
        if change.steps:
            state.submit(change)

    def _drop(self, change: Change, stage: Queue) -> None:
        stage.closing = True
        self._quiet.discard(stage.number)
        self._written.pop(stage.number, None)
        change.entries.append(records.drop_queue(stage.number))
        change.steps.append(DropStep(stage))

    def _all(self) -> list[Queue]:
        return [
            queue
            for queue in self._state.queues.values()
            if queue.properties.kind is QueueKind.STAGE and not queue.closing
        ]

    def _of(self, writer: str, batch: int) -> list[Queue]:
        """The stages of a batch, and of those before it."""
        return [
            queue
            for queue in self._all()
            if (label := StageLabel.of(queue)).writer == writer and label.batch <= batch
        ]

    def all(self) -> list[StageReport]:
        """What is written and not published."""
        found = []
        for queue in self._all():
            label, target = StageLabel.of(queue), self._state.queues.get(queue.properties.owner)
            found.append(
                StageReport(
                    stage=queue.number,
                    queue="" if target is None else target.properties.path_name,
                    writer=label.writer,
                    batch=label.batch,
                    part=label.part,
                    messages=queue.positions.count,
                    size=queue.positions.total_bytes,
                    created=queue.properties.created,
                )
            )
        return found


def _expiries(stage: Queue, rows: Rows, heads: list[bytes]) -> array[int]:
    """When each row's message leaves unreceived: all of one template live as long as each other."""
    if not rows.kinds:
        expires = stage.expiry_of(memoryview(heads[0])[records.PUT_HEADER_SIZE :])
        return array("I", [expires]) * len(heads)
    known = {
        kind: stage.expiry_of(memoryview(heads[rows.kinds.index(kind)])[records.PUT_HEADER_SIZE :])
        for kind in set(rows.kinds)
    }
    return array("I", [known[kind] for kind in rows.kinds])
