"""Opening: what was written is read again, record by record, and the state is as it was.

Each record stands for what the change that wrote it did; [MS-MQDMPR] 3.1.3 calls it initialisation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import UUID

from merq.engine import records
from merq.engine.claims import unpack_point
from merq.engine.positions import AVAILABLE
from merq.engine.sequence_records import unpack_sequence
from merq.engine.state import State
from merq.engine.transfer import unpack_transfer
from merq.engine.work import Sending, Transaction, unpack_transaction
from merq.errors import StoreError
from merq.model.queue import QueueProperties


def replay(state: State, kind: int, data: memoryview, position: int) -> None:
    """Takes one record of the log, as it was written by a change that happened.

    Raises:
        StoreError: The record is of no kind that this release knows.
    """
    rule = _RULES.get(kind)
    if rule is None:
        raise StoreError(
            f"the log has a record of kind {kind}, this release knows 1 to {max(_RULES)}: open the "
            "store with the release that wrote it"
        )
    rule(state, data, position)


def restore_transaction(state: State, data: bytes) -> None:
    """A transaction is prepared, and holds what it is about."""
    state.transaction_count += 1
    transaction = unpack_transaction(data, state.transaction_count, state.queues)
    state.transactions[transaction.number] = transaction
    state.hold(transaction)


def prepared(state: State, identifier: UUID) -> Transaction | None:
    """The prepared transaction of this name."""
    for transaction in state.transactions.values():
        if transaction.identifier == identifier:
            return transaction
    return None


def _put(state: State, data: memoryview, position: int, *, kept: bool = False) -> None:
    header = records.read_put(data)
    packet = data[records.PUT_HEADER_SIZE :]
    state.keep(position, len(packet))
    state.taken_bytes += len(packet)
    queue = state.queues[header.queue]
    state.insert(queue, header.lookup_id, position, packet, kept=kept)
    state.learn(queue, packet, header.arrival)


def _keep(state: State, data: memoryview, position: int) -> None:
    _put(state, data, position, kept=True)


def _remove(state: State, data: memoryview, _: int) -> None:
    number, lookup_id = records.read_remove(data)
    state.remove(state.queues[number], lookup_id)


def _remove_many(state: State, data: memoryview, _: int) -> None:
    number, lookup_ids = records.read_remove_many(data)
    state.remove_many(state.queues[number], lookup_ids)


def _queue(state: State, data: memoryview, _: int) -> None:
    state.define(QueueProperties.from_bytes(bytes(data)))


def _drop(state: State, data: memoryview, _: int) -> None:
    state.drop(state.queues[records.read_drop(data)])


def _reserve(state: State, data: memoryview, _: int) -> None:
    state.numbers.go_on_from(*records.read_reserve(data))


def _relocate(state: State, data: memoryview, position: int) -> None:
    header = records.read_put(data)
    state.relocate(state.queues[header.queue], header.lookup_id, position)


def _move(state: State, data: memoryview, _: int) -> None:
    number, target, lookup_id = records.read_move(data)
    state.move(state.queues[number], lookup_id, state.queues[target])


def _note(state: State, data: memoryview, _: int) -> None:
    state.restore_note(data)


def _prepare(state: State, data: memoryview, _: int) -> None:
    restore_transaction(state, bytes(data))


def _sequence(state: State, data: memoryview, _: int) -> None:
    unpack_sequence(bytes(data), state.sequences)


def _sequence_1(state: State, data: memoryview, _: int) -> None:
    unpack_sequence(bytes(data), state.sequences, counts_rejects=False)


def restore_transfer(state: State, data: bytes) -> None:
    """What is known of an outgoing queue; `Departures.start` makes the table of it."""
    number, ordered_up_to, strays, remote = unpack_transfer(data)
    queue = state.queues.get(number)
    if queue is None:
        return  # it was deleted while this was under way
    transfer = queue.transfer
    assert transfer is not None, "it is an outgoing queue"
    transfer.ordered_up_to, transfer.strays, transfer.remote = ordered_up_to, set(strays), remote


def _transfer(state: State, data: memoryview, _: int) -> None:
    restore_transfer(state, bytes(data))


def _range(state: State, data: memoryview, _: int) -> None:
    state.restore_range(bytes(data))


def _point(state: State, data: memoryview, _: int) -> None:
    state.restore_point(bytes(data))


def _release(state: State, data: memoryview, _: int) -> None:
    claim = state.restore_point(bytes(data), is_released=True)
    assert not claim.ranges, "all of them were released"


def _forget(state: State, data: memoryview, _: int) -> None:
    number, group, _, _ = unpack_point(bytes(data))
    queue = state.queues[number]
    state.release_ranges(queue, queue.claims[group], 0, forgotten=True)


def _publish(state: State, data: memoryview, _: int) -> None:
    writer, batch, time, moves = records.read_publish(data)
    for stage, target, first in moves:
        state.move_all(state.queues[stage], state.queues[target], first)
    state.remember_published(writer, batch, time)


def _resolve(state: State, data: memoryview, _: int) -> None:
    transaction = prepared(state, UUID(bytes=bytes(data)))
    assert transaction is not None, "what ends was prepared"
    del state.transactions[transaction.number]
    for operation in transaction.operations:
        if isinstance(operation, Sending):
            state.unstage(operation.queue, operation.size)
        else:
            operation.queue.positions.set_state(operation.lookup_id, AVAILABLE)


_RULES: Final[dict[int, Callable[[State, memoryview, int], None]]] = {
    records.PUT: _put,
    records.REMOVE: _remove,
    records.QUEUE: _queue,
    records.DROP: _drop,
    records.RESERVE: _reserve,
    records.RELOCATE: _relocate,
    records.MOVE: _move,
    records.NOTE: _note,
    records.PREPARE: _prepare,
    records.RESOLVE: _resolve,
    records.KEEP: _keep,
    records.SEQUENCE_1: _sequence_1,
    records.SEQUENCE: _sequence,
    records.TRANSFER: _transfer,
    records.REMOVE_MANY: _remove_many,
    records.RANGE: _range,
    records.POINT: _point,
    records.RELEASE: _release,
    records.FORGET: _forget,
    records.PUBLISH: _publish,
}

RECORD_KINDS: Final = frozenset(_RULES)
"""The kinds of records that this release knows."""
