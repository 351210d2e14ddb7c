"""[MS-MQDMPR] 3.1.7.1.3, 3.1.7.1.4, 3.1.7.1.7, 3.1.7.1.33: making, changing, emptying queues."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Final
from uuid import UUID

from merq.engine import notices, order_queues, queue_changes, records
from merq.engine.changes import Answer, Change, DropStep
from merq.engine.positions import AVAILABLE, PURGE_PENDING
from merq.engine.purging import lose_all, plan_purge
from merq.engine.queue import NO_NOTE, Queue
from merq.engine.readers import Readers
from merq.engine.state import State
from merq.engine.work import Phase
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.message_class import MessageClass
from merq.model.names import PathName, QueueScope
from merq.model.queue import (
    QueueKind,
    QueueProperties,
    QueueSettings,
)
from merq.model.queue_settings import check_settings

QUEUES_MAX: Final = 0x00FFFFFF
"""Private queues on one queue manager."""

FIRST_PRIVATE_NUMBER: Final = 16
"""[MS-MQQB] 2.2.4: small numbers are for the queues that every queue manager has."""

SYSTEM_QUEUES: Final = (
    (notices.JOURNAL_NUMBER, r".\system$;JOURNAL", QueueKind.SYSTEM, False),
    (notices.DEAD_LETTER_NUMBER, r".\system$;DEADLETTER", QueueKind.SYSTEM, False),
    (notices.DEAD_XACT_NUMBER, r".\system$;DEADXACT", QueueKind.SYSTEM, True),
    (2, r".\private$\admin_queue$", QueueKind.PRIVATE, False),
    (3, r".\private$\notify_queue$", QueueKind.PRIVATE, False),
    (4, r".\private$\order_queue$", QueueKind.PRIVATE, False),
)


class Administration:
    """Queues come, change and go."""

    def __init__(self, state: State, readers: Readers) -> None:
        self._state = state
        self._readers = readers

    def start(self, new_guid: UUID) -> None:
        """[MS-MQDMPR] 3.1.3: makes the system's queues where they are missing, and tidies up.

        Subqueues and outgoing queues that are empty go; what was purged while somebody held it goes
        too, for nobody does any more.
        """
        self._provision(new_guid)
        for queue in list(self._state.queues.values()):
            purged = [lookup_id for lookup_id, note in queue.notes.items() if note.purged]
            if purged:
                self._purge_rest(queue, purged)
        self._drop_empty()  # what is told of it may go into one of those

    def _provision(self, new_guid: UUID) -> None:
        change = Change()
        for number, path, kind, transactional in SYSTEM_QUEUES:
            if number in self._state.queues:
                continue
            properties = QueueProperties(
                number=number,
                path_name=path,
                kind=kind,
                identifier=UUID(int=new_guid.int ^ number),
                created=self._state.now,
                modified=self._state.now,
                transactional=transactional,
            )
            self._state.plan_queue(change, properties)
        if change.steps:
            self._state.submit(change)

    def _drop_empty(self) -> None:
        change = Change()
        wanted = {
            number
            for transaction in self._state.transactions.values()
            for operation in transaction.operations
            for number in (
                operation.queue.number,
                getattr(operation, "target", operation.queue).number,
            )
        }
        for queue in self._state.queues.values():
            implied = queue.properties.kind in {QueueKind.SUBQUEUE, QueueKind.OUTGOING}
            # What expired while nobody was here is told of first, and that is on its way already.
            is_empty = not queue.positions.count and not queue.staged_bytes
            if implied and is_empty and queue.number not in wanted:
                change.entries.append(records.drop_queue(queue.number))
                change.steps.append(DropStep(queue))
        if change.steps:
            self._state.submit(change)

    def drop_idle_order_queues(self) -> None:
        """Queues of acknowledgments to who has taken them all go; they are made again if needed."""
        change = Change()
        for queue in order_queues.idle_order_queues(self._state):
            change.entries.append(records.drop_queue(queue.number))
            change.steps.append(DropStep(queue))
        if change.steps:
            self._state.submit(change)

    def purge_unpurged(self) -> None:
        """What was purged while somebody had it, and could not leave then, leaves now."""
        waiting, self._state.unpurged = self._state.unpurged, []
        for queue, lookup_id in waiting:
            place = queue.positions.get(lookup_id)
            if place is None or queue.closing or place.state != PURGE_PENDING:
                continue
            if lookup_id in queue.held or lookup_id in self._state.leaving(queue):
                continue
            if not queue.notes.get(lookup_id, NO_NOTE).purged:
                self._state.unpurged.append((queue, lookup_id))  # that it was is not durable yet
                continue
            queue.positions.set_state(lookup_id, AVAILABLE)
            self._purge_rest(queue, [lookup_id])

    def _purge_rest(self, queue: Queue, purged: list[int]) -> None:
        change = Change()
        for lookup_id in purged:
            place = queue.positions.get(lookup_id)
            if place is None or place.state != AVAILABLE:
                continue  # a prepared transaction has it
            queue.positions.set_state(lookup_id, PURGE_PENDING)
            queue_changes.take(change, queue, place)
            reason = MessageClass.MQMSG_CLASS_NACK_Q_PURGED
            notices.lost_at(self._state, change, queue, place, reason)
        if change.steps:
            self._state.submit(change)

    def create(self, request: int, path: PathName, settings: QueueSettings, guid: UUID) -> None:
        r"""[MS-MQDMPR] 3.1.7.1.3: makes a private queue and its journal; answers its number."""
        if path.scope is not QueueScope.PRIVATE or path.subqueue or path.is_read_only:
            raise MessageQueueError(
                HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME,
                rf"{path} is not the name of a private queue, such as .\private$\orders; "
                "public queues need a directory",
            )
        if self._state.find(path) is not None or self._state.coming(str(path)) is not None:
            raise MessageQueueError(
                HResult.MQ_ERROR_QUEUE_EXISTS, f"a queue named {path} exists already"
            )
        check_settings(settings)
        number = self._state.next_queue_number(QueueKind.PRIVATE, FIRST_PRIVATE_NUMBER, QUEUES_MAX)
        if number is None:
            raise MessageQueueError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, f"there are {QUEUES_MAX} queues already"
            )
        chosen = {each.name: getattr(settings, each.name) for each in fields(settings)}
        del chosen["base_priority"]  # [MS-MQMQ] 2.3.1.6: public queues alone have one
        properties = QueueProperties(
            number=number,
            path_name=str(path),
            kind=QueueKind.PRIVATE,
            identifier=guid,
            created=self._state.now,
            modified=self._state.now,
            **chosen,
        )
        change = Change()
        change.answers.append(Answer(request, number))
        self._state.plan_queue(change, properties)
        journal = replace(
            properties,
            number=number | 0x80000000,
            path_name=f"{path};JOURNAL",
            kind=QueueKind.JOURNAL,
            owner=number,
            label="",
            journaling=False,
            quota=settings.journal_quota,
            poison_after=0,
            identifier=UUID(int=guid.int ^ 1),
        )
        self._state.plan_queue(change, journal)
        self._state.submit(change)

    def change_properties(self, request: int, queue: Queue, changed: dict[str, Any]) -> None:
        """[MS-MQDMPR] 3.1.1.2: gives a queue other properties, for good."""
        known = {each.name for each in fields(QueueSettings)} - {"transactional"}
        for name in changed:
            if name not in known:
                raise MessageQueueError(
                    HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
                    f"{name} cannot be changed; these can: {', '.join(sorted(known))}",
                )
        if queue.properties.kind is not QueueKind.PRIVATE:
            raise MessageQueueError(
                HResult.MQ_ERROR_ACCESS_DENIED,
                f"{queue.properties.path_name} has no properties of its own to be changed",
            )
        before = self._state.planned(queue)
        current = {each.name: getattr(before, each.name) for each in fields(QueueSettings)}
        check_settings(QueueSettings(**(current | changed)))
        # [MS-MQMQ] 2.3.1.6: public queues alone have one; setting it here changes nothing.
        kept = {name: value for name, value in changed.items() if name != "base_priority"}
        modified = self._state.now if kept or not changed else before.modified
        properties = replace(before, modified=modified, **kept)
        change = Change()
        change.answers.append(Answer(request, None))
        self._state.plan_queue(change, properties)
        if queue.journal is not None:
            quota = properties.journal_quota
            self._state.plan_queue(change, replace(queue.journal.properties, quota=quota))
        self._state.submit(change)

    def delete(self, request: int, queue: Queue) -> None:
        """[MS-MQDMPR] 3.1.7.1.4: the queue, its journal and subqueues go, with their messages."""
        if queue.properties.kind is not QueueKind.PRIVATE or queue.number < FIRST_PRIVATE_NUMBER:
            raise MessageQueueError(
                HResult.MQ_ERROR_ACCESS_DENIED,
                f"{queue.properties.path_name} belongs to the system and stays",
            )
        change = Change()
        change.answers.append(Answer(request, None))
        reason = MessageClass.MQMSG_CLASS_NACK_Q_DELETED
        coming = self._state.coming_parts(queue)
        parts = [*queue.subqueues.values(), *coming]
        parts += [queue.journal, queue] if queue.journal else [queue]
        self._refuse_prepared(parts)
        for part in coming:
            # What makes it may come to nothing; then its end would be of something unknown.
            self._state.plan_queue(change, part.properties)
        for part in parts:
            part.closing = True  # no acknowledgment comes into it any more
        for part in parts:
            lose_all(self._state, change, part, reason)
            self._readers.cancel_all(part, change)
            change.entries.append(records.drop_queue(part.number))
            change.steps.append(DropStep(part))
        for stage in self._state.queues.values():
            if _is_stage_of(stage, queue) and not stage.closing:
                stage.closing = True
                change.entries.append(records.drop_queue(stage.number))
                change.steps.append(DropStep(stage))
        self._state.submit(change)

    def _refuse_prepared(self, queues: list[Queue]) -> None:
        for transaction in self._state.transactions.values():
            if transaction.phase is Phase.OPEN:
                continue
            for operation in transaction.operations:
                if operation.queue in queues:
                    raise MessageQueueError(
                        HResult.MQ_ERROR_TRANSACTION_USAGE,
                        f"the prepared transaction {transaction.identifier} needs "
                        f"{operation.queue.properties.path_name}: end it first",
                    )

    def purge(self, request: int, queue: Queue) -> None:
        """[MS-MQDMPR] 3.1.7.1.7: all messages go; locked ones when they are given back."""
        change = Change()
        change.answers.append(Answer(request, plan_purge(self._state, change, queue)))
        self._state.submit(change)


def _is_stage_of(stage: Queue, queue: Queue) -> bool:
    """Whether it has what was written for a queue and is not published."""
    properties = stage.properties
    return properties.kind is QueueKind.STAGE and properties.owner == queue.number
