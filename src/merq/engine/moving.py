"""[MS-MQDMPR] 3.1.7.1.16: messages move between a queue and its subqueues.

A message keeps its lookup identifier, and with it its place among the others.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from merq.engine import records
from merq.engine.changes import Answer, Change, MoveStep
from merq.engine.holdings import MEMORY
from merq.engine.positions import AVAILABLE, LOCKED, Place
from merq.engine.queue import Queue
from merq.engine.state import State
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.queue import UNLIMITED, QueueKind, QueueProperties

FIRST_SUBQUEUE_NUMBER: Final = 0x40000000
SUBQUEUES_MAX: Final = 0x00FFFFFF
"""Subqueues of all queues together."""


def subqueue(state: State, change: Change, owner: Queue, name: str) -> Queue:
    """The subqueue of this name; it is made with this change if it is not there."""
    found = owner.subqueues.get(name.lower())
    if found is not None and not found.closing:
        return found
    path = f"{owner.properties.path_name};{name}"
    coming = state.coming(path)
    if coming is not None:
        return state.plan_queue(change, coming.properties)
    number = state.next_queue_number(
        QueueKind.SUBQUEUE, FIRST_SUBQUEUE_NUMBER, FIRST_SUBQUEUE_NUMBER + SUBQUEUES_MAX
    )
    if number is None:
        raise MessageQueueError(
            HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, f"there are {SUBQUEUES_MAX} subqueues already"
        )
    properties = QueueProperties(
        number=number,
        path_name=path,
        kind=QueueKind.SUBQUEUE,
        identifier=UUID(int=owner.properties.identifier.int ^ number),
        created=state.now,
        modified=state.now,
        owner=owner.number,
        transactional=owner.properties.transactional,
        quota=UNLIMITED,
    )
    return state.plan_queue(change, properties)


def check_related(source: Queue, target: Queue) -> None:
    """[MS-MQRR] 3.1.4.10: messages move between a queue and its subqueues, nowhere else.

    Raises:
        MessageQueueError: The queues have nothing to do with each other.
    """
    kinds = {source.properties.kind, target.properties.kind}
    if (
        source is target
        or kinds - {QueueKind.PRIVATE, QueueKind.SUBQUEUE}
        or _root(source) != _root(target)
    ):
        raise MessageQueueError(
            HResult.MQ_ERROR_INVALID_PARAMETER,
            f"messages move between a queue and its subqueues, not from "
            f"{source.properties.path_name} to {target.properties.path_name}",
        )


def move(state: State, request: int, source: Queue, lookup_id: int, target: Queue) -> None:
    """A message moves at once, and durably if it is recoverable."""
    check_related(source, target)
    place = movable(source, lookup_id)
    change = Change()
    source.positions.set_state(lookup_id, LOCKED)
    if not place.location & MEMORY:
        change.entries.append(records.move(source.number, target.number, lookup_id))
    change.steps.append(MoveStep(source, lookup_id, target))
    change.answers.append(Answer(request, None))
    state.submit(change)


def movable(source: Queue, lookup_id: int) -> Place:
    """The message with this lookup identifier, if nobody has it.

    Raises:
        MessageQueueError: It is not there, or somebody has it.
    """
    place = source.positions.get(lookup_id)
    if place is None:
        raise MessageQueueError(
            HResult.MQ_ERROR_MESSAGE_NOT_FOUND,
            f"no message has the lookup identifier {lookup_id:#x} in {source.properties.path_name}",
        )
    if place.state != AVAILABLE:
        raise MessageQueueError(
            HResult.MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION,
            "the message is being received or moved by somebody else",
        )
    return place


def _root(queue: Queue) -> int:
    return queue.properties.owner or queue.number
