"""What a queue manager has written, read from the disk's bytes, and what it adds up to.

`Fold` follows the table of records in `merq.engine.records` and shares no code with the engine: it
is how the state is explained to people. `picture` is the same of a running engine.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from zlib import crc32

from merq.engine import records
from merq.engine.holdings import MEMORY
from merq.engine.positions import AVAILABLE
from merq.engine.state import State
from merq.engine.work import Phase, pack_transaction
from merq.model.queue import QueueProperties
from merq.store.log import SEGMENT_HEADER_SIZE, position_of, segment_name
from merq.testing.disk import SimulatedDisk
from merq.wire.view import MessageView

SEQUENTIAL = (1 << 56) - 1
NEVER = 0xFFFFFFFF

_FRAME = struct.Struct("<4sIQQI")
_FRAME_SIZE = 40
_RECORD = struct.Struct("<IIB3x")
_PUT = struct.Struct("<IIQ")
_NOTE = struct.Struct("<IIQB")
_PAIR = struct.Struct("<QQ")
_OPERATION = struct.Struct("<B3xIQII")
_RANGE = struct.Struct("<IIQQH2xI")
_POINT = struct.Struct("<IIQQH2x")
_PUBLISH = struct.Struct("<QIHH")
_PART = struct.Struct("<IIQ")

Key = tuple[int, int]
"""A queue's number and a lookup identifier."""

NoteText = tuple[int, int, int, str]
"""Aborts, moves, flags and the dead-letter queue."""

NOTHING: NoteText = (0, 0, 0, "")

Reserved = tuple[int, int, tuple[int, ...]]
"""A range: its start, its end, and the lookup identifiers of those messages that survive."""


@dataclass(slots=True)
class Group:
    """What a group of consumers has reserved of a queue, and how far it is."""

    acknowledged: int = 0
    floor: int = 0
    ranges: list[Reserved] = field(default_factory=list)

    @property
    def end(self) -> int:
        return self.ranges[-1][1] if self.ranges else self.acknowledged


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of the log: where it lies and what it says."""

    sequence: int
    start: int
    end: int
    records: tuple[tuple[int, bytes], ...]


def next_frame(disk: SimulatedDisk, after: Frame | None) -> Frame:
    """The frame that follows another, from the bytes that the disk shows."""
    position = after.end if after else position_of(1, SEGMENT_HEADER_SIZE)
    sequence = after.sequence + 1 if after else 1
    for place in (position, position_of((position >> 32) + 1, SEGMENT_HEADER_SIZE)):
        name = segment_name(place >> 32)
        if name not in disk.files():
            continue
        data = disk.content(name)[place & 0xFFFFFFFF :]
        magic, size, found, _, count = _FRAME.unpack_from(data.ljust(_FRAME_SIZE, b"\0"))
        if magic == b"FRAM" and found == sequence:
            end = place + _FRAME_SIZE + size + -size % 8
            return Frame(sequence, place, end, tuple(_records(data, count)))
    raise AssertionError(f"frame {sequence} is not on the disk")


def _records(data: bytes, count: int) -> Iterator[tuple[int, bytes]]:
    at = _FRAME_SIZE
    for _ in range(count):
        size, checksum, kind = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        record = data[at : at + size]
        assert crc32(record) == checksum, "a record is not what was written"
        yield kind, record
        at += size


@dataclass(slots=True)
class Fold:
    """Queues, messages, notes and prepared transactions, as the records add up to them."""

    queues: dict[int, dict[str, Any]] = field(default_factory=dict)
    messages: dict[int, dict[int, bytes]] = field(default_factory=dict)
    notes: dict[Key, NoteText] = field(default_factory=dict)
    prepared: dict[bytes, bytes] = field(default_factory=dict)
    reserved: tuple[int, int] = (0, 0)
    last: int = 0
    groups: dict[tuple[int, str], Group] = field(default_factory=dict)
    published: dict[str, int] = field(default_factory=dict)
    fresh: set[Key] = field(default_factory=set)

    def apply(self, frame: Frame) -> None:
        if frame.sequence:
            self.fresh.clear()
        for kind, data in frame.records:
            _RULES[kind](self, data)

    def put(self, data: bytes) -> None:
        queue, _, lookup_id = _PUT.unpack_from(data)
        number = lookup_id & SEQUENTIAL
        assert number <= self.reserved[0], "a lookup identifier was given before it was reserved"
        assert number > self.last, "lookup identifiers grow with every message"
        self.last = number
        assert int.from_bytes(data[16 + 56 : 16 + 60], "little") <= self.reserved[1]
        self.messages[queue][lookup_id] = data[16:]

    def remove(self, data: bytes) -> None:
        queue, _, lookup_id = _PUT.unpack(data)
        assert not self.is_reserved(queue, lookup_id), "a message went that is reserved"
        del self.messages[queue][lookup_id]
        self.notes.pop((queue, lookup_id), None)

    def remove_many(self, data: bytes) -> None:
        queue, lookup_ids = records.read_remove_many(data)
        for lookup_id in lookup_ids:
            assert not self.is_reserved(queue, lookup_id), "a message went that is reserved"
            del self.messages[queue][lookup_id]
            self.notes.pop((queue, lookup_id), None)

    def define(self, data: bytes) -> None:
        properties = json.loads(data)
        number = properties["number"]
        owner = properties["owner"]
        assert not owner or owner in self.queues, f"{properties['path_name']} has no owner"
        self.queues[number] = properties
        self.messages.setdefault(number, {})

    def drop(self, data: bytes) -> None:
        (queue,) = struct.unpack("<I", data)
        for lookup_id in self.messages.pop(queue):
            self.notes.pop((queue, lookup_id), None)
        del self.queues[queue]
        for key in [each for each in self.groups if each[0] == queue]:
            del self.groups[key]

    def reserve(self, data: bytes) -> None:
        reserved = _PAIR.unpack(data)
        assert reserved >= self.reserved, "reservations only grow"
        self.reserved = reserved

    def relocate(self, data: bytes) -> None:
        queue, _, lookup_id = _PUT.unpack_from(data)
        packet = self.messages[queue].get(lookup_id)
        if packet is not None and (queue, lookup_id) in self.fresh:
            # It is the first or the last of a batch, and says so from now on.
            self.fresh.remove((queue, lookup_id))
            changed = [at for at, byte in enumerate(packet) if byte != data[16 + at]]
            assert len(data) == 16 + len(packet), "a copy is not what it was copied from"
            assert changed == [MessageView(packet).user_header_end], changed
            self.messages[queue][lookup_id] = data[16:]
            return
        assert packet is None or packet == data[16:], "a copy is not what it was copied from"

    def move(self, data: bytes) -> None:
        queue, target, lookup_id = _PUT.unpack(data)
        assert not self.is_reserved(queue, lookup_id), "a message moved that is reserved"
        self.messages[target][lookup_id] = self.messages[queue].pop(lookup_id)
        aborts, moves, flags, dead_letter = self.notes.pop((queue, lookup_id), NOTHING)
        # The queue that it left was purged, if any was.
        self.notes[target, lookup_id] = aborts, moves + 1, flags & ~1, dead_letter

    def note(self, data: bytes) -> None:
        queue, aborts, lookup_id, flags = _NOTE.unpack_from(data)
        rest, moves = data[_NOTE.size :], 0
        if flags & 4:
            moves, rest = int.from_bytes(rest[:4], "little"), rest[4:]
        if lookup_id in self.messages[queue]:
            self.notes[queue, lookup_id] = aborts, moves, flags & 3, rest.decode()

    def is_kept(self, queue: int, lookup_id: int) -> bool:
        """Whether it is a copy of a dead message, whose fate was told."""
        return bool(self.notes.get((queue, lookup_id), NOTHING)[2] & 2)

    def prepare(self, data: bytes) -> None:
        assert data[:16] not in self.prepared
        self.prepared[data[:16]] = data
        for what, queue, lookup_id, _, _ in operations_in(data):
            assert queue in self.queues
            assert what == 1 or lookup_id in self.messages[queue]

    def resolve(self, data: bytes) -> None:
        del self.prepared[data]

    # Groups of consumers, and what is published.

    def is_reserved(self, queue: int, lookup_id: int) -> bool:
        """Whether a group of consumers has reserved a message."""
        return any(
            number == queue and lookup_id in ids
            for (number, _), group in self.groups.items()
            for _, _, ids in group.ranges
        )

    def range(self, data: bytes) -> None:
        queue, _, start, end, size, count = _RANGE.unpack_from(data)
        ids = struct.unpack_from(f"<{count}Q", data, _RANGE.size)
        name = data[_RANGE.size + 8 * count :][:size].decode("utf-8", "surrogatepass")
        group = self.groups[queue, name]
        assert start == group.end < end <= self.reserved[0], "a range begins where one ends"
        for lookup_id in ids:
            assert lookup_id in self.messages[queue], "a message is reserved that is not there"
            assert not self.is_reserved(queue, lookup_id), "a message is reserved twice"
        group.ranges.append((start, end, ids))

    def point(self, data: bytes) -> None:
        queue, _, acknowledged, floor, size = _POINT.unpack_from(data)
        name = data[_POINT.size :][:size].decode("utf-8", "surrogatepass")
        group = self.groups.setdefault((queue, name), Group())
        assert acknowledged >= group.acknowledged, "a group does not go back"
        group.acknowledged, group.floor = acknowledged, floor
        group.ranges = [each for each in group.ranges if each[1] > acknowledged]

    def forget(self, data: bytes) -> None:
        queue, _, _, _, size = _POINT.unpack_from(data)
        del self.groups[queue, data[_POINT.size :][:size].decode("utf-8", "surrogatepass")]

    def publish(self, data: bytes) -> None:
        batch, _, size, count = _PUBLISH.unpack_from(data)
        at = _PUBLISH.size + _PART.size * count
        writer = data[at:][:size].decode("utf-8", "surrogatepass")
        assert batch > self.published.get(writer, -1), "a batch is published once"
        self.published[writer] = batch
        self.fresh.clear()
        for stage, target, first in _PART.iter_unpack(data[_PUBLISH.size : at]):
            assert self.queues[stage]["owner"] == target, "it was written for another queue"
            assert first > self.last, "lookup identifiers grow with every message"
            moved = sorted(self.messages[stage].items(), key=lambda each: each[0] & SEQUENTIAL)
            assert moved, "nothing is published of a stage that has nothing"
            self.last = first + len(moved) - 1
            assert self.last <= self.reserved[0]
            for number, (lookup_id, packet) in enumerate(moved, first):
                placed = lookup_id & ~SEQUENTIAL | number
                self.messages[target][placed] = packet
                self.fresh.add((target, placed))
            self.messages[stage].clear()

    def picture(self) -> Picture:
        return Picture(
            queues=self.queues,
            messages={number: each for number, each in self.messages.items() if each},
            notes=self.notes,
            prepared=set(self.prepared.values()),
            groups=self.groups,
            published=self.published,
        )


_RULES = {
    records.PUT: Fold.put,
    records.REMOVE: Fold.remove,
    records.REMOVE_MANY: Fold.remove_many,
    records.QUEUE: Fold.define,
    records.DROP: Fold.drop,
    records.RESERVE: Fold.reserve,
    records.RELOCATE: Fold.relocate,
    records.MOVE: Fold.move,
    records.NOTE: Fold.note,
    records.PREPARE: Fold.prepare,
    records.RESOLVE: Fold.resolve,
    records.KEEP: Fold.put,
    records.RANGE: Fold.range,
    records.POINT: Fold.point,
    records.RELEASE: Fold.point,
    records.FORGET: Fold.forget,
    records.PUBLISH: Fold.publish,
}


def operations_in(data: bytes) -> list[tuple[int, int, int, int, int]]:
    """The operations of a PREPARE record."""
    found, at = [], 16
    while at < len(data):
        operation = _OPERATION.unpack_from(data, at)
        found.append(operation)
        at += _OPERATION.size
        if operation[0] == 1:
            at += operation[3] + operation[4]
    return found


@dataclass(slots=True)
class Picture:
    """Everything that survives."""

    queues: dict[int, dict[str, Any]]
    messages: dict[int, dict[int, bytes]]
    notes: dict[Key, NoteText]
    prepared: set[bytes]
    groups: dict[tuple[int, str], Group]
    published: dict[str, int]

    def differences(self, other: Picture, *, counts: bool) -> list[str]:
        """Where two pictures differ, in words; counts of aborts included or not."""
        found = []
        if self.queues != other.queues:
            found.append(f"queues: {self.queues} | {other.queues}")
        if self.messages != other.messages:
            own, others = _outline(self.messages), _outline(other.messages)
            found.append(f"messages: {own - others} | {others - own}")
        mine, theirs = self.noted(counts=counts), other.noted(counts=counts)
        if mine != theirs:
            found.append(f"notes: {mine} | {theirs}")
        if self.prepared != other.prepared:
            found.append(f"prepared: {len(self.prepared)} | {len(other.prepared)}")
        if self.groups != other.groups:
            found.append(f"groups: {self.groups} | {other.groups}")
        if self.published != other.published:
            found.append(f"published: {self.published} | {other.published}")
        return found

    def noted(self, *, counts: bool) -> dict[Key, NoteText]:
        """The notes that say something."""
        known = {
            key: (aborts if counts else 0, moves, flags, dead_letter)
            for key, (aborts, moves, flags, dead_letter) in self.notes.items()
        }
        return {key: note for key, note in known.items() if note != NOTHING}


def _outline(messages: dict[int, dict[int, bytes]]) -> set[tuple[int, int, int, int]]:
    return {
        (number, lookup_id, MessageView(packet).application_tag, len(packet))
        for number, each in messages.items()
        for lookup_id, packet in each.items()
    }


def picture(state: State) -> Picture:
    """What of an engine's state survives; express messages do not."""
    messages: dict[int, dict[int, bytes]] = {}
    notes: dict[Key, NoteText] = {}
    for number, queue in state.queues.items():
        kept = {
            place.lookup_id: state.stored(place)[1]
            for place in queue.positions
            if not place.location & MEMORY
        }
        if kept:
            messages[number] = kept
        for lookup_id, note in queue.notes.items():
            if lookup_id in kept:
                flags = note.purged | note.kept << 1
                notes[number, lookup_id] = note.aborts, note.moves, flags, note.dead_letter
    return Picture(
        queues={number: _described(q.properties) for number, q in state.queues.items()},
        messages=messages,
        notes=notes,
        prepared={
            pack_transaction(each, state.source)
            for each in state.transactions.values()
            if each.phase is Phase.PREPARED
        },
        groups={
            (number, name): Group(
                claim.acknowledged,
                claim.floor,
                [
                    (each.start, each.end, tuple(i for i in each.ids if i in messages[number]))
                    if number in messages
                    else (each.start, each.end, ())
                    for each in claim.ranges
                ],
            )
            for number, queue in state.queues.items()
            for name, claim in queue.claims.items()
        },
        published={writer: batch for writer, (batch, _) in state.published.items()},
    )


@lru_cache(maxsize=1024)
def _described(properties: QueueProperties) -> dict[str, Any]:
    described: dict[str, Any] = json.loads(properties.to_bytes())
    return described


def check_sums(state: State, living: dict[int, int]) -> None:
    """What is counted is what is there; the state is settled.

    Args:
        state: The engine's.
        living: What the log holds as needed, by segment.
    """
    needed: dict[int, int] = {}
    express = total = staged = 0
    for queue in state.queues.values():
        owner = queue.properties.owner
        assert not owner or owner in state.queues, f"{queue.properties.path_name} is an orphan"
        assert queue.positions.available == sum(
            place.state == AVAILABLE for place in queue.positions
        )
        size = sum(place.size for place in queue.positions)
        assert size == queue.positions.total_bytes
        total += size
        staged += queue.staged_bytes
        for place in queue.positions:
            if place.location & MEMORY:
                express += place.size
            else:
                segment = place.location >> 32
                needed[segment] = needed.get(segment, 0) + place.size
    assert {n: size for n, size in living.items() if size} == needed, "what lives is counted wrong"
    assert state.memory_bytes == express
    open_ones = any(each.phase is Phase.OPEN for each in state.transactions.values())
    if not open_ones:  # one that is open may stage for a queue that was deleted
        assert state.taken_bytes == total + staged
        promised = sum(
            getattr(operation, "size", 0)
            for each in state.transactions.values()
            for operation in each.operations
        )
        assert staged == promised, f"{staged} bytes are staged, {promised} are promised"


def expiry_in(packet: bytes, kind: str) -> int:
    """When a message expires in a queue of this kind."""
    lifetime, sent = struct.unpack_from("<II", packet, 48)
    if lifetime == 0 and kind not in ("system", "journal"):
        return 0
    if kind == "outgoing":
        lifetime = min(lifetime, *struct.unpack_from("<I", packet, 12))
    if lifetime == NEVER or kind in ("system", "journal"):
        return NEVER
    return int(sent + lifetime)
