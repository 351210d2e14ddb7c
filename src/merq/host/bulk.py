"""Many messages at once, as they lie in the log: what `ReadRows` and `DescribeSpan` answer."""

from __future__ import annotations

from array import array
from typing import Final

from merq.engine.byte_order import to_little
from merq.engine.holdings import MEMORY
from merq.engine.manager import QueueManager
from merq.engine.positions import Place
from merq.engine.queue import Queue
from merq.engine.records import PUT_HEADER_SIZE
from merq.engine.rows import Rows
from merq.engine.runs import SEQUENCE_MASK
from merq.host.packets import LogPackets
from merq.host.spans import spans
from merq.model.reservations import QueueSpan
from merq.protocol.application.requests import DescribeSpan, ReadRows
from merq.protocol.application.rows import (
    PREFIX_SIZE,
    ROWS_BYTES_MAX,
    ROWS_MAX,
    RowsReport,
    prefixed,
)

SPAN_MESSAGES_MAX: Final = 1_000_000
"""Messages that are counted to find out where a batch ends."""

_NOTHING: Final = RowsReport(0, b"", b"", b"", b"", ())


def read_rows(engine: QueueManager, packets: LogPackets, request: ReadRows) -> RowsReport:
    """Messages of a queue by the order in which they came."""
    queue = engine.queue(request.queue)
    most = max(1, min(request.most, ROWS_MAX))
    if request.group:
        rows = engine.reservations.rows(queue, request.group, request.start, request.skip, most)
    else:
        end = min(request.end, SEQUENCE_MASK)
        rows = queue.positions.arrivals(request.start, end, most, locked=True)
    rows = _cut(rows, max(1, min(request.most_bytes, ROWS_BYTES_MAX)))
    if not rows.ids:
        return _NOTHING
    return _report(engine, packets, queue, rows)


def _cut(rows: Rows, most_bytes: int) -> Rows:
    """As many as keep within so many bytes; one in any case."""
    if sum(rows.sizes) <= most_bytes:
        return rows
    total = count = 0
    for size in rows.sizes:
        total += size
        if total > most_bytes and count:
            break
        count += 1
    return Rows(rows.ids[:count], rows.locations[:count], rows.sizes[:count])


def _report(engine: QueueManager, packets: LogPackets, queue: Queue, rows: Rows) -> RowsReport:
    offsets = array("I")
    data: list[bytes | memoryview] = []
    size = 0
    if max(rows.locations) & MEMORY:
        for lookup_id, location, length in zip(*rows, strict=True):
            # The rest of a place does not matter for where its packet is.
            arrival, packet = engine.state.stored(Place(lookup_id, location, length, 0, 0, 0))
            data.append(prefixed(queue.number, arrival, lookup_id, packet))
            offsets.append(size + PREFIX_SIZE)
            size += len(data[-1])
    else:
        for span in spans(rows.locations, rows.sizes, PUT_HEADER_SIZE):
            data.append(packets.read_raw(span.position, span.size))
            skipped = span.position - size - PUT_HEADER_SIZE
            offsets.extend([each - skipped for each in rows.locations[span.first : span.end]])
            size += span.size
    notes = array("I")
    if queue.notes:
        for row, lookup_id in enumerate(rows.ids):
            note = queue.notes.get(lookup_id)
            if note is not None:
                notes.extend((row, note.aborts, note.moves))
    columns = [to_little(each) for each in (rows.ids, offsets, rows.sizes, notes)]
    return RowsReport(len(rows.ids), columns[0], columns[1], columns[2], columns[3], tuple(data))


def describe_span(engine: QueueManager, request: DescribeSpan) -> QueueSpan:
    """Which messages a queue has."""
    queue = engine.queue(request.queue)
    positions = queue.positions
    first = positions.arrivals(0, SEQUENCE_MASK, 1, locked=True).ids
    start = first[0] & SEQUENCE_MASK if first else 0
    if request.since and first:
        start = _since(engine, queue, start, request.since)
    last = positions.last_arrival()
    return QueueSpan(
        first=start,
        last=last,
        given=engine.state.numbers.last,
        end=_end(queue, request, last),
        messages=positions.count,
        size=positions.total_bytes,
    )


def _end(queue: Queue, request: DescribeSpan, last: int) -> int:
    """The number up to which no more messages came than were asked for; at least one did."""
    if not request.most and not request.most_bytes:
        return last
    most = min(request.most or SPAN_MESSAGES_MAX, SPAN_MESSAGES_MAX)
    rows = queue.positions.arrivals(request.after, SEQUENCE_MASK, most + 1, locked=True)
    count = min(most, len(rows.ids))
    if request.most_bytes:
        count = len(_cut(Rows(*(each[:count] for each in rows)), request.most_bytes).ids)
    if count == len(rows.ids):
        return max(last, request.after)
    return rows.ids[count - 1] & SEQUENCE_MASK


def _since(engine: QueueManager, queue: Queue, first: int, time: int) -> int:
    """The number of the first message that arrived then or later; 0 if there is none."""
    low, high = first, queue.positions.last_arrival() + 1
    found = 0
    while low < high:
        middle = (low + high) // 2
        rows = queue.positions.arrivals(middle - 1, SEQUENCE_MASK, 1, locked=True)
        if not rows.ids:
            high = middle
            continue
        place = Place(rows.ids[0], rows.locations[0], rows.sizes[0], 0, 0, 0)
        if engine.state.stored(place)[0] >= time:
            found = rows.ids[0] & SEQUENCE_MASK
            high = middle
        else:
            low = (rows.ids[0] & SEQUENCE_MASK) + 1
    return found
