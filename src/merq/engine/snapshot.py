"""The state as sections of a checkpoint, and back. Express messages are not in it.

What [MS-MQQB] 3.1.1.3.2 wants to survive is here, in the packets and in the log.

There may be millions of the small things: notes, sequences, queues. Those of one kind share sections
of kind PACKED; what is large is a section of its own, and so is everything in older checkpoints.

| kind | data |
|---|---|
| 1 QUEUES | each queue's properties as JSON, one a line, owners before what they own |
| 2 NUMBERS | as a RESERVE record; then the last number that was given to a private queue, a subqueue, an outgoing queue and a stage, u32 each; the last may be missing |
| 3 SOURCES | GUIDs of queue managers, 16 bytes each |
| 4 MESSAGES | queue u32, count u32, then count lookup identifiers u64, locations u64, sizes u32, expiries u32 and keys u64; one for each queue |
| 5 NOTE | as a NOTE record; one for each message of which something is known |
| 6 PREPARED | as a PREPARE record; one for each transaction |
| 7 SEQUENCE_1 | as a SEQUENCE_1 record; older checkpoints have it |
| 8 RECENT | a queue manager's GUID, then ordinal u32 and time u32 of its latest messages |
| 9 OUTGOING | the last sequence that was begun u64; then queue u32, sequence u64 and next number u32 of each outgoing queue |
| 10 POINT | as a POINT record; one for each group of consumers |
| 11 RANGE | as a RANGE record; one for each range that is reserved |
| 12 PUBLISHED | as a PUBLISH record without stages; one for each writer, the latest last |
| 13 SEQUENCE | as a SEQUENCE record; one for each sequence that comes here |
| 14 TRANSFERS | TRANSFER records of outgoing queues, each behind its size u32 |
| 16 CHARGE | what an address is charged with: the sender's number u32, bytes u64, the address; one for each sender and address |
| 15 PACKED | a kind u32; then data of that kind, as if in sections of their own, each behind its size u32 |
"""  # noqa: E501 - a table

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, TypeAlias

from merq.engine import queue_changes, records
from merq.engine.byte_order import from_little
from merq.engine.claims import pack_point, pack_range
from merq.engine.holdings import MEMORY, NUMBERED
from merq.engine.network_share import Charge
from merq.engine.positions import NEVER, Columns
from merq.engine.queue import Queue
from merq.engine.replay import restore_transaction, restore_transfer
from merq.engine.sequence_records import pack_sequence, unpack_sequence
from merq.engine.state import State
from merq.engine.transfer import pack_transfer
from merq.engine.work import Phase, pack_transaction
from merq.errors import StoreError
from merq.model.queue import QueueKind, QueueProperties

QUEUES: Final = 1
NUMBERS: Final = 2
SOURCES: Final = 3
MESSAGES: Final = 4
NOTE: Final = 5
PREPARED: Final = 6
SEQUENCE_1: Final = 7
RECENT: Final = 8
POINT: Final = 10
RANGE: Final = 11
PUBLISHED: Final = 12
OUTGOING: Final = 9
SEQUENCE: Final = 13
TRANSFERS: Final = 14
PACKED: Final = 15
CHARGE: Final = 16

SECTION_KINDS: Final = frozenset(range(QUEUES, CHARGE + 1))
"""The kinds of sections that this release knows."""

PACKED_DATA_MAX: Final = 64 << 10
"""What is larger is a section of its own, written from where it is."""

PACKED_SECTION_BYTES: Final = 1 << 20
"""A section of small things that has grown to this is full, and the next begins."""

Data: TypeAlias = bytes | bytearray

_HEADER: Final = struct.Struct("<II")
_LAST: Final = struct.Struct("<I")
_RESERVE_SIZE: Final = 16
_LAST_SEQUENCE: Final = struct.Struct("<Q")
_TRANSFER: Final = struct.Struct("<IQI")
_SIZE: Final = struct.Struct("<I")
_CHARGE: Final = struct.Struct("<IQ")
_KIND: Final = struct.Struct("<I")
_CODES: Final = ("Q", "Q", "I", "I", "Q")


def take_snapshot(state: State) -> list[tuple[int, Data]]:
    """The state, which must be settled, as sections."""
    assert state.is_settled, "a snapshot is of what has happened, nothing half done"
    queues = sorted(state.queues.values(), key=lambda queue: (queue.properties.owner, queue.number))
    sections: list[tuple[int, Data]] = [
        (QUEUES, b"\n".join(queue.properties.to_bytes() for queue in queues)),
        (NUMBERS, records.reserve(*state.numbers.reserved()).data + _last_numbers(state)),
        (SOURCES, b"".join(state.sources.listed())),
    ]
    sections += _packed(MESSAGES, _messages(queues))
    sections += _packed(NOTE, chain.from_iterable(map(_notes, queues)))
    prepared = (each for each in state.transactions.values() if each.phase is Phase.PREPARED)
    sections += _packed(PREPARED, (pack_transaction(each, state.source) for each in prepared))
    sections += _packed(POINT, chain.from_iterable(map(_points, queues)))
    sections += _packed(RANGE, chain.from_iterable(map(_ranges, queues)))
    incoming = state.sequences.lasting()
    sections += _packed(SEQUENCE, (pack_sequence(each, *each.settled) for each in incoming))
    sections += _packed(RECENT, state.recent.pack())
    charges = state.network.charges(state.network_memory)
    sections += _packed(CHARGE, (_CHARGE.pack(n, size) + at.encode() for n, at, size in charges))
    sections.append((OUTGOING, _outgoing(state, queues)))
    sections.append((TRANSFERS, _transfers(queues)))
    published = state.published.items()
    sections += _packed(
        PUBLISHED, (records.publish(name, *each, ()).data for name, each in published)
    )
    return sections


def _packed(kind: int, each: Iterable[Data]) -> Iterator[tuple[int, Data]]:
    """Sections with data of one kind, in order: what is small shares them."""
    full = bytearray()
    for data in each:
        if len(data) > PACKED_DATA_MAX:
            if full:
                yield PACKED, full
                full = bytearray()
            yield kind, data
            continue
        if not full:
            full += _KIND.pack(kind)
        full += _SIZE.pack(len(data))
        full += data
        if len(full) >= PACKED_SECTION_BYTES:
            yield PACKED, full
            full = bytearray()
    if full:
        yield PACKED, full


def _unpacked(data: bytes) -> Iterator[tuple[int, bytes]]:
    """What is in such a section: kind and data of each."""
    (kind,) = _KIND.unpack_from(data)
    at = _KIND.size
    while at < len(data):
        (size,) = _SIZE.unpack_from(data, at)
        at += _SIZE.size + size
        yield kind, data[at - size : at]


def _messages(queues: list[Queue]) -> Iterator[bytearray]:
    for queue in queues:
        count, data = queue.positions.packed(MEMORY, _HEADER.size)
        if count:
            _HEADER.pack_into(data, 0, queue.number, count)
            yield data


def _outgoing(state: State, queues: list[Queue]) -> bytes:
    data = _LAST_SEQUENCE.pack(state.last_sequence_id)
    for queue in queues:
        if queue.transfer is not None:
            transfer = queue.transfer
            data += _TRANSFER.pack(queue.number, transfer.sequence_id, transfer.next_number)
    return data


def _transfers(queues: list[Queue]) -> bytes:
    found = []
    for queue in queues:
        transfer = queue.transfer
        if transfer is not None and (transfer.remote is not None or transfer.awaiting_final):
            data = pack_transfer(queue.number, transfer, transfer.remote)
            found.append(_SIZE.pack(len(data)) + data)
    return b"".join(found)


def _restore_transfers(state: State, data: bytes) -> None:
    at = 0
    while at < len(data):
        (size,) = _SIZE.unpack_from(data, at)
        at += _SIZE.size + size
        restore_transfer(state, data[at - size : at])


def _restore_outgoing(state: State, data: bytes) -> None:
    (state.last_sequence_id,) = _LAST_SEQUENCE.unpack_from(data)
    for number, sequence_id, next_number in _TRANSFER.iter_unpack(data[_LAST_SEQUENCE.size :]):
        transfer = state.queues[number].transfer
        assert transfer is not None, "it was an outgoing queue"
        transfer.restored(sequence_id, next_number)


def _last_numbers(state: State) -> bytes:
    return b"".join([_LAST.pack(state.last_numbers.get(kind, 0)) for kind in NUMBERED])


def _notes(queue: Queue) -> Iterator[bytes]:
    for lookup_id, note in queue.notes.items():
        place = queue.positions.get(lookup_id)
        if place is not None and not place.location & MEMORY:
            yield queue_changes.note_entry(queue, lookup_id, note).data


def _points(queue: Queue) -> Iterator[bytes]:
    for group, claim in queue.claims.items():
        yield pack_point(queue.number, group, claim.acknowledged, claim.floor)


def _ranges(queue: Queue) -> Iterator[bytes]:
    for group, claim in queue.claims.items():
        for each in claim.ranges:
            rows = queue.positions.locate(each.ids)
            stored = [
                lookup_id
                for lookup_id, location in zip(rows.ids, rows.locations, strict=True)
                if not location & MEMORY
            ]
            yield pack_range(queue.number, group, each, stored)


def restore_snapshot(state: State, sections: Iterable[tuple[int, bytes]]) -> None:  # noqa: C901 - one case a kind
    """Takes a snapshot into a state that is new.

    Raises:
        StoreError: A section is of no kind that this release knows.
    """
    for kind, data in sections:
        if kind == PACKED:
            restore_snapshot(state, _unpacked(data))
        elif kind == QUEUES:
            for line in data.splitlines():
                state.define(QueueProperties.from_bytes(line))
        elif kind == NUMBERS:
            state.numbers.go_on_from(*records.read_reserve(data[:_RESERVE_SIZE]))
            last = [number for (number,) in _LAST.iter_unpack(data[_RESERVE_SIZE:])]
            state.last_numbers = dict(zip(NUMBERED, last, strict=False))
        elif kind == SOURCES:
            state.sources.restore([data[at : at + 16] for at in range(0, len(data), 16)])
        elif kind == NOTE:
            state.restore_note(data)
        elif kind == PREPARED:
            restore_transaction(state, data)
        elif kind in (SEQUENCE, SEQUENCE_1):
            unpack_sequence(data, state.sequences, counts_rejects=kind == SEQUENCE)
        elif kind == RECENT:
            state.recent.unpack(data)
        elif kind == OUTGOING:
            _restore_outgoing(state, data)
        elif kind == MESSAGES:
            number, count = _HEADER.unpack_from(data)
            _restore_messages(state, state.queues[number], _columns(data, count))
        else:
            _restore_rest(state, kind, data)


def _restore_rest(state: State, kind: int, data: bytes) -> None:
    if kind == TRANSFERS:
        _restore_transfers(state, data)
    elif kind == POINT:
        state.restore_point(data)
    elif kind == PUBLISHED:
        state.remember_published(*records.read_publish(data)[:3])
    elif kind == RANGE:
        state.restore_range(data)
    elif kind == CHARGE:
        number, size = _CHARGE.unpack_from(data)
        state.network.restore(Charge(number, data[_CHARGE.size :].decode(), size))
    else:
        raise StoreError(
            f"the checkpoint has a section of kind {kind}, this release knows 1 to "
            f"{max(SECTION_KINDS)}: open the store with the release that wrote it"
        )


def _restore_messages(state: State, queue: Queue, columns: Columns) -> None:
    """Takes the messages of a queue as a checkpoint has them."""
    queue.positions.load(columns)
    queue.by_message_id.load(columns.keys, columns.ids)
    state.taken_bytes += queue.positions.total_bytes
    state.network_came(columns.keys, columns.sizes)
    state.keep_all(columns.locations, columns.sizes)
    if queue.properties.kind is not QueueKind.STAGE:
        state.expiries.load(queue.number, columns.expiries, columns.ids, NEVER)


def _columns(data: bytes, count: int) -> Columns:
    columns: list[array[int]] = []
    at = _HEADER.size
    for code in _CODES:
        end = at + count * array(code).itemsize
        columns.append(from_little(code, data[at:end]))
        at = end
    return Columns(*columns)
