"""How messages travel between queue managers, told to people who ask."""

from __future__ import annotations

from heapq import nlargest
from typing import Final
from uuid import UUID

from merq.engine.incoming import Incoming
from merq.engine.manager import QueueManager
from merq.engine.queue import Queue
from merq.engine.state import State
from merq.engine.transfer import Transfer
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.names import LOCAL_COMPUTER, PrivateName, PublicName
from merq.model.queue import OutgoingState
from merq.protocol.application.reports import (
    ConnectionAttempt,
    SequencePlace,
    SequenceReport,
    TransferReport,
)
from merq.wire.queues import DIRECT, PRIVATE_ON_DESTINATION, PUBLIC

SEQUENCES_TOLD_MAX: Final = 1_000
"""Sequences that are told of a queue: those of which something came last."""


def transfer(engine: QueueManager, queue: Queue) -> TransferReport:
    """[MS-MQDMPR] 3.1.1.4: how far an outgoing queue is with sending.

    Raises:
        MessageQueueError: It is none.
    """
    found = queue.transfer
    if found is None:
        raise MessageQueueError(
            HResult.MQ_ERROR_INVALID_PARAMETER,
            f"{queue.properties.path_name} is not an outgoing queue: only from those is sent",
        )
    under_way, unread = engine.departures.count_under_way(queue), len(found.awaiting_final)
    is_waited_for = bool(found.unordered) and queue.state is OutgoingState.CONNECTED
    first, last = _unordered(found)
    return TransferReport(
        state=queue.state,
        next_hops=found.next_hops,
        history=tuple(
            ConnectionAttempt(
                status=each.status,
                time=each.time,
                error=each.error,
                addresses=each.addresses,
                text=each.text,
            )
            for each in found.history
        ),
        waiting=max(0, queue.positions.count - under_way - unread),
        under_way=under_way,
        first_unacknowledged=first,
        last_unacknowledged=last,
        unacknowledged=len(found.unordered),
        unread=unread,
        last_acknowledged=SequencePlace(sequence_id=found.last_ack[0], number=found.last_ack[1]),
        acknowledgments=found.last_ack_count,
        acknowledged_at=found.last_ack_time,
        next_place=_place(found.sequence_id, found.next_number, found.next_number - 1),
        resends=found.resends,
        resend_interval_s=found.resend_interval,
        resend_at=found.resend_time if is_waited_for else 0,
        retry_at=found.retry_time if queue.positions.count else 0,
    )


def _unordered(found: Transfer) -> tuple[SequencePlace, SequencePlace]:
    """The first and the last transactional message without an order acknowledgment."""
    waiting = found.unordered
    if not waiting:
        return SequencePlace(), SequencePlace()
    first, last = waiting[0], waiting[-1]
    before = waiting[-2].number if len(waiting) > 1 else 0
    # What was before the first has arrived, so nothing is said of it when it is sent.
    return (
        _place(first.sequence_id, first.number, 0),
        _place(last.sequence_id, last.number, before),
    )


def _place(sequence_id: int, number: int, previous: int) -> SequencePlace:
    if not sequence_id:
        return SequencePlace()
    return SequencePlace(sequence_id=sequence_id, number=number, previous=previous)


def sequences(state: State, queue: Queue) -> list[SequenceReport]:
    """[MS-MQDMPR] 3.1.1.5: sequences that come to a queue, the latest first."""
    found = sequences_to(state, queue)
    latest = nlargest(SEQUENCES_TOLD_MAX, found, key=lambda each: each.last_access)
    return [_sequence(state, each) for each in latest]


def sequences_to(state: State, queue: Queue) -> list[Incoming]:
    """The sequences whose name leads to a queue."""
    if queue.path is None:
        return []
    names = {
        f"{PUBLIC}:{queue.properties.identifier.bytes_le.hex()}",
        f"{PRIVATE_ON_DESTINATION}:{queue.number.to_bytes(4, 'little').hex()}",
    }
    # A direct name led here, whatever this computer is called in it.
    end = str(queue.path).lower().removeprefix(LOCAL_COMPUTER)
    direct = f"{DIRECT}:"
    return [
        each
        for each in state.sequences.all()
        if each.key.name in names
        or (each.key.name.startswith(direct) and each.key.name.endswith(end))
    ]


def _sequence(state: State, incoming: Incoming) -> SequenceReport:
    sequence_id, number = incoming.settled
    return SequenceReport(
        sender=UUID(bytes_le=incoming.key.source),
        format_name=_format_name(state, incoming.key.name),
        sequence_id=sequence_id,
        number=number,
        last_access=incoming.last_access,
        rejects=incoming.rejects,
        address=incoming.origin.address,
        dropped=incoming.dropped,
    )


def _format_name(state: State, folded: str) -> str:
    """The name by which somebody sends, in the one spelling that is kept of it."""
    kind, _, name = folded.partition(":")
    if int(kind) == DIRECT:
        return f"DIRECT={name}"
    data = bytes.fromhex(name)
    if int(kind) == PUBLIC:
        return str(PublicName(queue=UUID(bytes_le=data)))
    return str(PrivateName(computer=state.guid, number=int.from_bytes(data, "little")))
