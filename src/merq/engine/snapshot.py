"""The state as sections of a checkpoint, and back. Express messages are not in it.

| kind | data |
|---|---|
| 1 QUEUES | each queue's properties as JSON, one a line, owners before what they own |
| 2 NUMBERS | as a RESERVE record |
| 3 SOURCES | GUIDs of queue managers, 16 bytes each |
| 4 MESSAGES | queue u32, count u32, then count lookup identifiers u64, locations u64, sizes u32, expiries u32 and keys u64; one section a queue |
"""  # noqa: E501 - a table

from __future__ import annotations

import struct
from array import array
from typing import Final

from merq.engine import records
from merq.engine.changes import Change, RelocateStep
from merq.engine.positions import Columns
from merq.engine.queue import QueueProperties
from merq.engine.state import MEMORY, State

QUEUES: Final = 1
NUMBERS: Final = 2
SOURCES: Final = 3
MESSAGES: Final = 4

RELOCATED_BYTES: Final = 1 << 20
"""About how much one change copies."""

_HEADER: Final = struct.Struct("<II")
_CODES: Final = ("Q", "Q", "I", "I", "Q")
_SWAPPED: Final = array("H", [1]).tobytes() != b"\1\0"
"""Whether this machine has the other byte order."""


def take_snapshot(state: State) -> list[tuple[int, bytes]]:
    """The state, which must be settled, as sections."""
    assert state.is_settled, "a snapshot is of what has happened, nothing half done"
    queues = sorted(state.queues.values(), key=lambda queue: (queue.properties.owner, queue.number))
    sections = [
        (QUEUES, b"\n".join(queue.properties.to_bytes() for queue in queues)),
        (NUMBERS, records.reserve(*state.numbers()).data),
        (SOURCES, b"".join(state.sources())),
    ]
    for queue in queues:
        columns = queue.positions.columns(without=MEMORY)
        if columns.ids:
            head = _HEADER.pack(queue.number, len(columns.ids))
            sections.append((MESSAGES, head + b"".join(map(_to_bytes, columns))))
    return sections


def restore_snapshot(state: State, sections: list[tuple[int, bytes]]) -> None:
    """Takes a snapshot into a state that is new."""
    for kind, data in sections:
        if kind == QUEUES:
            for line in data.splitlines():
                state.define(QueueProperties.from_bytes(line))
        elif kind == NUMBERS:
            state.restore_numbers(*records.read_reserve(data))
        elif kind == SOURCES:
            state.restore_sources([data[at : at + 16] for at in range(0, len(data), 16)])
        else:
            assert kind == MESSAGES, f"section kind {kind} is unknown"
            number, count = _HEADER.unpack_from(data)
            state.restore_messages(state.queues[number], _columns(data, count))


def plan_relocation(state: State, segment: int) -> bool:
    """Submits changes that copy what lives in a segment of the log; False if nothing does."""
    change = Change()
    size = 0
    found = False
    for queue in state.queues.values():
        for place in queue.positions:
            if place.location & MEMORY or place.location >> 32 != segment:
                continue
            found = True
            step = RelocateStep(queue, place.lookup_id, len(change.entries))
            change.steps.append(step)
            packet = state.packet_of(place)
            change.entries.append(records.relocate(queue.number, place.lookup_id, packet))
            size += len(packet)
            if size >= RELOCATED_BYTES:
                state.submit(change)
                change, size = Change(), 0
    if change.entries:
        state.submit(change)
    return found


def _columns(data: bytes, count: int) -> Columns:
    columns: list[array[int]] = []
    at = _HEADER.size
    for code in _CODES:
        column = array(code)
        end = at + count * column.itemsize
        column.frombytes(data[at:end])
        if _SWAPPED:
            column.byteswap()
        columns.append(column)
        at = end
    return Columns(*columns)


def _to_bytes(column: array[int]) -> bytes:
    if _SWAPPED:
        column = array(column.typecode, column)
        column.byteswap()
    return column.tobytes()
