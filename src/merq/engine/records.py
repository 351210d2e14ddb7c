"""What the engine writes into the store's log, and reads again when it is opened.

One frame of the log holds all records of one change, so a change is there whole or not at all.

| kind | data |
|---|---|
| 1 PUT | queue u32, arrival in seconds since 1970 u32, lookup identifier u64, packet |
| 2 REMOVE | queue u32, zero u32, lookup identifier u64 |
| 3 QUEUE | a queue's properties as JSON in UTF-8, new or changed |
| 4 DROP | queue u32: the queue and everything in it is gone |
| 5 RESERVE | sequential identifier u64, message ordinal u64: none above these was given |
| 6 RELOCATE | as PUT: the message is in the queue already, and its packet lies here from now on |
| 7 MOVE | queue u32, target queue u32, lookup identifier u64: the message was moved once more |
| 8 NOTE | queue u32, aborts u32, lookup identifier u64, flags u8 (1 purged, 2 a copy that is kept, 4 moved), how often it was moved u32 if that flag is set, path name of its own dead-letter queue in UTF-8: what is known of a message beside its packet |
| 9 PREPARE | a transaction: GUID, then its operations of 24 bytes: what u8 (1 send, 2 receive, 3 move), three zeros, queue u32, lookup identifier u64 (the size it will take, for a send), target queue u32 (the packet's size), u32 (the path name's size); a send is followed by its packet and the path name of its own dead-letter queue |
| 10 RESOLVE | GUID: the prepared transaction has ended, the records beside this one say how |
| 11 KEEP | as PUT, of a copy that does not expire |
| 12 SEQUENCE_1 | as SEQUENCE, without the count of rejects; older logs have it |
| 13 REMOVE_MANY | queue u32, zero u32, lookup identifiers u64 |
| 14 RANGE | messages that a group of consumers has reserved: queue u32, zero u32, start u64, end u64, size of the group's name u16, zero u16, count u32, lookup identifiers u64, the name in UTF-8 |
| 15 POINT | how far a group is: queue u32, zero u32, acknowledged u64, floor u64, size of the group's name u16, zero u16, the name; its ranges up to there are over |
| 16 RELEASE | as POINT: its ranges up to there are over, and their messages are anybody's again |
| 17 FORGET | as RELEASE: the group is forgotten too |
| 18 PUBLISH | what was written into stages comes into queues: batch u64, time u32, size of the writer's name u16, count u16; then for each stage its number u32, its queue u32 and the number u64 of the first message; the name in UTF-8 |
| 19 SEQUENCE | how far a sequence of another queue manager is: its GUID, sequence u64, number u32, time u32, rejects u32 (bit 31: every message of it was rejected), GUID of the session's other end, size of its address u16, the address, the name that it sends to in UTF-8; sequence and number 0: it was forgotten |
| 20 TRANSFER | what is known of an outgoing queue: queue u32, zero u32, lookup identifier u64 of the last message that was acknowledged in order, GUID of the queue manager that it sends to, lookup identifiers u64 of messages before it that are sent again |
"""  # noqa: E501 - a table

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from merq.engine.byte_order import to_little
from merq.engine.claims import Range, pack_point, pack_range

PUT: Final = 1
REMOVE: Final = 2
QUEUE: Final = 3
DROP: Final = 4
RESERVE: Final = 5
RELOCATE: Final = 6
MOVE: Final = 7
NOTE: Final = 8
PREPARE: Final = 9
RESOLVE: Final = 10
KEEP: Final = 11
SEQUENCE_1: Final = 12
REMOVE_MANY: Final = 13
RANGE: Final = 14
POINT: Final = 15
RELEASE: Final = 16
FORGET: Final = 17
PUBLISH: Final = 18
SEQUENCE: Final = 19
TRANSFER: Final = 20

PUT_HEADER_SIZE: Final = 16

_PUT: Final = struct.Struct("<IIQ")
_REMOVE: Final = struct.Struct("<I4xQ")
_REMOVE_MANY: Final = struct.Struct("<I4x")
_DROP: Final = struct.Struct("<I")
_RESERVE: Final = struct.Struct("<QQ")
_NOTE: Final = struct.Struct("<IIQB")
_MOVES: Final = struct.Struct("<I")
_PUBLISH: Final = struct.Struct("<QIHH")
_MOVED: Final = struct.Struct("<IIQ")

_MOVED_FLAG: Final = 4
"""In the flags of a NOTE: how often the message was moved follows."""


class Entry(NamedTuple):
    """A kind and data, for the store to write; `more` follows the data, to save a copy."""

    kind: int
    data: bytes
    more: bytes = b""

    @property
    def whole(self) -> bytes:
        """The data as the store has it."""
        return self.data + self.more


class PutRun(NamedTuple):
    """Messages that come into a queue, or are copied, as many entries of one kind.

    Attributes:
        data: Of each what precedes its body.
        more: Of each its body, to save a copy.
        size: Of all of it.
    """

    kind: int
    data: list[bytes]
    more: list[bytes]
    size: int


class PutHeader(NamedTuple):
    """What precedes the packet in a PUT."""

    queue: int
    arrival: int
    lookup_id: int


class NoteData(NamedTuple):
    """What a NOTE says; those of older stores say nothing of moves."""

    queue: int
    aborts: int
    lookup_id: int
    purged: bool
    dead_letter: str
    kept: bool
    moves: int = 0


def put(queue: int, arrival: int, lookup_id: int, packet: bytes) -> Entry:
    """A message comes into a queue."""
    return Entry(PUT, _PUT.pack(queue, arrival, lookup_id), packet)


def singly(entries: Sequence[Entry | PutRun]) -> list[Entry]:
    """Entries one by one, in the order of the positions that the store gives them."""
    found: list[Entry] = []
    for each in entries:
        if isinstance(each, PutRun):
            found += [Entry(each.kind, *parts) for parts in zip(each.data, each.more, strict=True)]
        else:
            found.append(each)
    return found


def keep(queue: int, arrival: int, lookup_id: int, packet: bytes) -> Entry:
    """A copy of a message comes into a queue, and stays whatever the message's time was."""
    return Entry(KEEP, _PUT.pack(queue, arrival, lookup_id), packet)


def relocate(queue: int, arrival: int, lookup_id: int, packet: bytes) -> Entry:
    """A message's packet is copied, so that its old place can be given up."""
    return Entry(RELOCATE, _PUT.pack(queue, arrival, lookup_id), packet)


def relocate_as(queue: int, lookup_id: int, data: bytes) -> tuple[bytes, bytes]:
    """The same, from the data of the record that has the packet, in two parts for a `PutRun`.

    Messages that came by a move or from a stage are known there by another queue or identifier.
    """
    written, arrival, its_id = _PUT.unpack_from(data)
    if written == queue and its_id == lookup_id:
        return data, b""
    return _PUT.pack(queue, arrival, lookup_id), data[PUT_HEADER_SIZE:]


def remove(queue: int, lookup_id: int) -> Entry:
    """A message leaves a queue."""
    return Entry(REMOVE, _REMOVE.pack(queue, lookup_id))


def remove_many(queue: int, lookup_ids: Sequence[int]) -> Entry:
    """Messages leave a queue."""
    if len(lookup_ids) == 1:
        return remove(queue, lookup_ids[0])
    return Entry(REMOVE_MANY, _REMOVE_MANY.pack(queue) + to_little(array("Q", lookup_ids)))


def range_(queue: int, group: str, found: Range, stored: Sequence[int]) -> Entry:
    """A group has reserved a range, of which these messages are in the log."""
    return Entry(RANGE, pack_range(queue, group, found, stored))


def point(queue: int, group: str, acknowledged: int, floor: int) -> Entry:
    """A group is so far."""
    return Entry(POINT, pack_point(queue, group, acknowledged, floor))


def release(queue: int, group: str, end: int, floor: int) -> Entry:
    """What a group has reserved is anybody's again."""
    return Entry(RELEASE, pack_point(queue, group, end, floor))


def forget_group(queue: int, group: str) -> Entry:
    """The same, and the group is forgotten."""
    return Entry(FORGET, pack_point(queue, group, 0, 0))


def publish(writer: str, batch: int, time: int, moves: Sequence[tuple[int, int, int]]) -> Entry:
    """What was written into stages comes into queues."""
    name = writer.encode("utf-8", "surrogatepass")
    head = _PUBLISH.pack(batch, time, len(name), len(moves))
    return Entry(PUBLISH, head + b"".join([_MOVED.pack(*each) for each in moves]) + name)


def read_publish(data: bytes | memoryview) -> tuple[str, int, int, list[tuple[int, int, int]]]:
    """Writer, batch, time, and the stages of a PUBLISH."""
    batch, time, size, count = _PUBLISH.unpack_from(data)
    at = _PUBLISH.size + count * _MOVED.size
    moves = [
        (stage, target, first)
        for stage, target, first in _MOVED.iter_unpack(data[_PUBLISH.size : at])
    ]
    return bytes(data[at : at + size]).decode("utf-8", "surrogatepass"), batch, time, moves


def move(queue: int, target: int, lookup_id: int) -> Entry:
    """A message changes its queue."""
    return Entry(MOVE, _PUT.pack(queue, target, lookup_id))


def note(data: NoteData) -> Entry:
    """Something is known of a message beside its packet."""
    flags = data.purged | data.kept << 1 | (_MOVED_FLAG if data.moves else 0)
    head = _NOTE.pack(data.queue, data.aborts, data.lookup_id, flags)
    if data.moves:
        head += _MOVES.pack(data.moves)
    return Entry(NOTE, head + data.dead_letter.encode("utf-8", "surrogatepass"))


def prepare(transaction: bytes) -> Entry:
    """A transaction is prepared."""
    return Entry(PREPARE, transaction)


def resolve(identifier: UUID) -> Entry:
    """A prepared transaction has ended."""
    return Entry(RESOLVE, identifier.bytes)


def sequence(data: bytes) -> Entry:
    """A sequence of another queue manager has got so far."""
    return Entry(SEQUENCE, data)


def transfer(data: bytes) -> Entry:
    """More is known of what an outgoing queue has sent."""
    return Entry(TRANSFER, data)


def define_queue(properties: bytes) -> Entry:
    """A queue is made, or its properties change."""
    return Entry(QUEUE, properties)


def drop_queue(queue: int) -> Entry:
    """A queue is deleted."""
    return Entry(DROP, _DROP.pack(queue))


def reserve(sequential_id: int, ordinal: int) -> Entry:
    """Numbers up to these may be given out before the next reservation."""
    return Entry(RESERVE, _RESERVE.pack(sequential_id, ordinal))


def read_put(data: bytes | memoryview) -> PutHeader:
    """The header of a PUT; the packet follows it."""
    return PutHeader(*_PUT.unpack_from(data))


def read_remove(data: bytes | memoryview) -> tuple[int, int]:
    """Queue and lookup identifier of a REMOVE."""
    queue, lookup_id = _REMOVE.unpack(data)
    return queue, lookup_id


def read_move(data: bytes | memoryview) -> tuple[int, int, int]:
    """Queue, target and lookup identifier of a MOVE."""
    queue, target, lookup_id = _PUT.unpack(data)
    return queue, target, lookup_id


def read_note(data: bytes | memoryview) -> NoteData:
    """What a NOTE says."""
    queue, aborts, lookup_id, flags = _NOTE.unpack_from(data)
    at, moves = _NOTE.size, 0
    if flags & _MOVED_FLAG:
        (moves,) = _MOVES.unpack_from(data, at)
        at += _MOVES.size
    text = bytes(data[at:]).decode("utf-8", "surrogatepass")
    return NoteData(queue, aborts, lookup_id, bool(flags & 1), text, bool(flags & 2), moves)


def read_remove_many(data: bytes | memoryview) -> tuple[int, list[int]]:
    """Queue and lookup identifiers of a REMOVE_MANY."""
    queue, *lookup_ids = struct.unpack(f"<I4x{len(data) // 8 - 1}Q", data)
    return queue, lookup_ids


def read_drop(data: bytes | memoryview) -> int:
    """The queue of a DROP."""
    (queue,) = _DROP.unpack(data)
    return int(queue)


def read_reserve(data: bytes | memoryview) -> tuple[int, int]:
    """Sequential identifier and ordinal of a RESERVE."""
    sequential_id, ordinal = _RESERVE.unpack(data)
    return sequential_id, ordinal
