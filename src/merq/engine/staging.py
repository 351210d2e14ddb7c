"""Messages that are written first and published later, all at once.

A writer of many parts, such as the tasks of a job, writes each part into a stage of its own. Nobody
sees what is there. When all parts are done they are published in one change, and it is remembered
which batch of which writer that was, so that a batch that comes again is not published twice. What
is never published goes after a while.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from merq.engine import notices, records
from merq.engine.changes import Answer, Change, DropStep, PublishStep, RelocateStep
from merq.engine.filling import put_run
from merq.engine.holdings import STAGE_NUMBER_FIRST
from merq.engine.numbers import lookup_id_of
from merq.engine.queue import Queue
from merq.engine.sending import Senders
from merq.engine.state import State
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.queue import QueueKind, QueueProperties
from merq.model.reservations import StageReport
from merq.wire.build import (
    TransactionPlace,
    ending_transaction,
    in_transaction,
    stamp,
    transaction_headers,
)
from merq.wire.view import MessageView

STAGES_MAX: Final = 10_000
"""Stages at the same time."""

STAGE_S: Final = 6 * 3600
"""So long what was written waits to be published."""

SWEEP_S: Final = 60
"""How often it is looked whether something has waited for too long."""

WRITER_NAME_MAX: Final = 255
"""Characters of a writer's name, and of a part's."""

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


class Stages:
    """What is written and not published."""

    def __init__(self, state: State, senders: Senders) -> None:
        self._state = state
        self._senders = senders
        self._swept_at = 0
        # Stages of which it is known that nobody wants to hear of their messages.
        self._quiet: set[int] = set()
        self._written: dict[int, int] = {}
        self.keep_s = STAGE_S

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
        number = state.next_queue_number(
            QueueKind.STAGE, STAGE_NUMBER_FIRST, STAGE_NUMBER_FIRST + STAGES_MAX
        )
        if number is None:
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
        first = state.numbers.ordinals(len(views), change)
        if first is None:
            ordinals = [state.numbers.ordinal(change) for _ in views]
        else:
            ordinals = list(range(first, first + len(views)))
        now, source = state.now, state.source
        before = self._written.get(stage.number, stage.positions.count)
        self._written[stage.number] = before + len(views)
        if is_transactional:
            place = TransactionPlace(
                sequence_id=state.now << 32 | stage.number & 0xFFFF,
                sequence_number=before + 1,
                previous_sequence_number=before,
                identifier=stage.number & _IDENTIFIER_MASK,
                # Which one is the first is known when the stages are published.
                is_first=False,
            )
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
            priorities = [view.base_flags & 7 for view in views]
        if any([view.user_flags & notices.TELLING for view in views]):  # noqa: C419 - quicker
            self._quiet.discard(stage.number)
        key = state.source_key(source)
        put_run(state, change, stage, done, [key | each for each in ordinals], priorities)
        change.answers.append(Answer(request, len(views)))
        state.submit(change)

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
        stages = [self._stage(number, writer, batch) for number in numbers]
        self._check_room(stages)
        step = PublishStep(writer, batch, state.now)
        for stage in stages:
            count = stage.positions.count
            if count:
                first = state.numbers.lookup_ids(7, count, change)
                step.moves.append((stage, self._target(stage), first))
        moves = [(stage.number, target.number, first) for stage, target, first in step.moves]
        change.entries.append(records.publish(writer, batch, state.now, moves))
        change.steps.append(step)
        self._finish(change, step)
        for stage in self._of(writer, batch):
            self._drop(change, stage)
        total = sum(stage.positions.count for stage in stages)
        change.answers.append(Answer(request, total))
        state.submit(change)

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
                change.steps.append(RelocateStep(target, lookup_id, len(change.entries)))
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
            if queue.properties.created + self.keep_s < state.now:
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
