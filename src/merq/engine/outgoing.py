"""[MS-MQDMPR] 3.1.1.3, 3.1.4.14, 3.1.4.15, 3.1.7.1.5, 3.1.7.3.8: where a format name leads.

A name of this queue manager leads to one of its queues, any other to an outgoing queue, in which
messages wait to be sent. How they are sent is not here.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import Final
from uuid import UUID

from merq.engine.changes import Change
from merq.engine.queue import Queue
from merq.engine.state import State
from merq.engine.transfer import SEQUENCE_NUMBER_MAX
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.names import (
    DirectName,
    FormatName,
    PathName,
    PrivateName,
    PublicName,
)
from merq.model.outgoing_names import OutgoingName
from merq.model.queue import NULL_GUID, OutgoingState, QueueKind, QueueProperties

FIRST_OUTGOING_NUMBER: Final = 0x20000000
OUTGOING_MAX: Final = 100_000
"""Destinations that messages wait for at the same time."""

SEQUENCE_STEP_MAX: Final = 0xFFFFF
"""How far two sequence identifiers of one second are apart at most: so many are given in a second
that their high half stays a time."""

PATHS_MAX: Final = 1_024
"""Names whose paths are remembered."""


@lru_cache(maxsize=PATHS_MAX)
def _path_of(name: DirectName) -> PathName:
    """The path of a name, in any spelling: names come again and again, and take long to read."""
    return name.path_name()


def local_queue(state: State, name: FormatName) -> tuple[Queue | None, bool]:
    """The queue that a name means here, and whether the name is one of this queue manager."""
    match name:
        case DirectName():
            path = _path_of(name)
            return state.find(path), path.computer.lower() in state.aliases
        case PrivateName():
            # A packet with a direct name has no identifier for its destination's computer.
            ours = name.computer in (state.guid, NULL_GUID)
            found = state.queues.get(name.number) if ours else None
            if found is not None and found.properties.kind is not QueueKind.PRIVATE:
                found = None
            return found, ours
        case PublicName():
            for queue in state.queues.values():
                if queue.properties.identifier == name.queue:
                    return queue, True
            return None, False
        case _:
            return None, False


def reach(
    state: State, change: Change, name: FormatName, asker: UUID | None = None
) -> Queue | None:
    """The queue that messages to a name go into; an outgoing one is made with this change.

    None: the name is one of this queue manager, and there is no such queue.

    Args:
        state: The queue manager.
        change: What is being planned.
        name: The destination.
        asker: Whose messages they are about, if they are acknowledgments or reports to another.
    """
    queue, ours = local_queue(state, name)
    if ours:
        return queue
    if isinstance(name, DirectName) and name.subqueue is not None:
        raise MessageQueueError(
            HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION,
            f"{name} is a subqueue: nothing is sent to those",
        )
    destination = str(OutgoingName(name, asker))
    found = state.find_outgoing(destination)
    if found is not None and not found.closing:
        return found
    coming = state.coming(destination)
    if coming is not None:
        return state.plan_queue(change, coming.properties)
    number = state.next_queue_number(
        QueueKind.OUTGOING, FIRST_OUTGOING_NUMBER, FIRST_OUTGOING_NUMBER + OUTGOING_MAX
    )
    if number is None:
        raise MessageQueueError(
            HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
            f"messages wait for {OUTGOING_MAX} destinations already",
        )
    properties = QueueProperties(
        number=number,
        path_name=destination,
        kind=QueueKind.OUTGOING,
        identifier=UUID(int=state.guid.int ^ number),
        created=state.now,
        modified=state.now,
        label=destination,
        base_priority=_base_priority(state, name),
    )
    return state.plan_queue(change, properties)


def _base_priority(state: State, name: FormatName) -> int:
    """[MS-MQMQ] 2.3.1.6: public queues alone have one, and only where their public name is used."""
    return state.base_priorities.get(name.queue, 0) if isinstance(name, PublicName) else 0


def reach_if_possible(
    state: State, change: Change, name: FormatName, asker: UUID | None = None
) -> Queue | None:
    """The same for what is discarded where it cannot go, as [MS-MQQB] 3.1.7.15, 3.1.7.17 have it.

    None also if messages wait for too many destinations: whoever sends here may name as many queues
    as it likes.
    """
    try:
        return reach(state, change, name, asker)
    except MessageQueueError:
        return None


def next_places(state: State, queue: Queue, staged: int, count: int) -> tuple[int, int]:
    """[MS-MQQB] 3.1.1.5: sequence of so many transactional messages to a destination, and the
    number of the first.

    A queue in which there is nothing but their `staged` bytes begins a new sequence, and so does
    every start: a folder that was restored does not know which numbers were given since, and what
    has one of those again would be taken for a duplicate.
    """
    transfer = queue.transfer
    assert transfer is not None, "only messages to others are in a sequence"
    is_idle = not queue.positions.count and queue.staged_bytes <= staged
    if is_idle or not transfer.is_own or transfer.next_number > SEQUENCE_NUMBER_MAX - count:
        transfer.sequence_id = state.last_sequence_id = _new_sequence_id(state)
        transfer.next_number = 1
        transfer.is_own = True
    number = transfer.next_number
    transfer.next_number += count
    return transfer.sequence_id, number


def _new_sequence_id(state: State) -> int:
    """[MS-MQQB] 3.1.1.5: an identifier above all that were given before.

    The time is in the high half, so it is above those of a folder too that was restored since. The
    low half cannot be foretold: who was not sent a message cannot acknowledge it.
    """
    last, chance = state.last_sequence_id, 1
    if state.secret:
        data = last.to_bytes(8, "little")
        chance = int.from_bytes(blake2b(data, digest_size=4, key=state.secret).digest(), "little")
    return max(state.now << 32 | chance, last + 1 + (chance & SEQUENCE_STEP_MAX))


def pause(queue: Queue) -> None:
    """[MS-MQDMPR] 3.1.4.14, 3.1.7.2.3: nothing leaves an outgoing queue until it is resumed."""
    _refuse_local(queue)
    queue.state = OutgoingState.ON_HOLD


def resume(queue: Queue) -> None:
    """[MS-MQDMPR] 3.1.4.15, 3.1.7.2.4: messages may leave an outgoing queue again."""
    _refuse_local(queue)
    if queue.state is OutgoingState.ON_HOLD:
        queue.state = OutgoingState.INACTIVE


def refuse_under_way(queue: Queue) -> None:
    """What the other side may have already is not for anybody else to take."""
    if queue.transfer is not None and queue.transfer.is_under_way:
        raise MessageQueueError(
            HResult.MQ_ERROR_OPERATION_CANCELLED,
            f"messages to {queue.properties.path_name} are on their way: pause the queue, and "
            "receive when nothing is under way",
        )


def _refuse_local(queue: Queue) -> None:
    if not queue.is_outgoing:
        raise MessageQueueError(
            HResult.MQ_ERROR_INVALID_PARAMETER,
            f"{queue.properties.path_name} is not an outgoing queue: only those are paused",
        )
