"""Reading queues as streams.

Offsets are numbers in the order of arrival, one for each queue. In the mode `peek` messages stay,
and a batch is what came between two numbers. In the mode `receive` a batch is reserved for the
group before Spark hears of it, so that it is the same however often it is read; it is removed when
Spark asks for what comes after it, because then Spark has it in its commit log.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from merq.client.bulk import SEQUENCE_MAX
from merq.errors import MerqError, MessageQueueError
from merq.hresult import HResult
from merq.model.reservations import RangeReport
from merq.spark.filtering import Filters
from merq.spark.managers import Place, places
from merq.spark.options import EARLIEST, RECEIVE, Offsets, Options, read_options
from merq.spark.reading import Part, bound, columns_of, named, read_part, split

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

RANGE_MESSAGES: Final = 8192
RANGE_BYTES: Final = 64 << 20
"""What is reserved at once; the queue manager serves others in between."""

BATCH_MESSAGES_MAX: Final = 4_000_000
"""The most that one micro-batch takes of a queue."""

TAKING_OVER_S: Final = 15.0
"""How long a query waits for the one before it to be thought dead."""

PAUSE_FIRST_S: Final = 0.005
PAUSE_LAST_S: Final = 0.1
"""How often it is looked whether messages have come."""


class DataLoss(MerqError):
    """Messages that a stream was to read are gone."""


def check_given(title: str, after: int, given: int) -> None:
    """Looks whether a queue is the one that was read before.

    Args:
        title: The queue.
        after: How far it was read.
        given: The last number that its queue manager has given to a message; not the last that the
            queue has, which may be gone while older ones stay.

    Raises:
        DataLoss: Its queue manager has not come so far yet.
    """
    if given < after:
        raise DataLoss(
            f"{title} is to be read behind {after}, and the queue manager is at {given}: the queue "
            "manager was set back. Begin with a new checkpoint, or set failOnDataLoss to false"
        )


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what is in queues, and what comes."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options: Options = read_options(options)
        self._names = columns_of(schema)
        self._shown = schema.names
        self._owner = str(uuid4())
        self._upto: Offsets | None = None
        self._places: list[Place] = []

    def _all(self) -> list[Place]:
        if not self._places:
            self._places = places(self._options)
        return self._places

    # Offsets.

    def initialOffset(self) -> Offsets:
        """Where a query begins that never ran."""
        found = {}
        for place in self._all():
            bulk, queue = place.access.manager().bulk, place.queue()
            span = bulk.span(queue, self._options.since)
            start = bound(self._options.starting, place.title, span.first, span.last)
            if self._options.since:
                start = max(start, span.first - 1) if span.first else span.last
            if self._options.read_mode == RECEIVE:
                known = [
                    each
                    for each in bulk.claims()
                    if each.group == self._options.group
                    and place.title.lower().endswith(each.queue[1:].lower())
                ]
                # Spark asks again if its first batch is to be run again, and must hear the same:
                # where a group has begun counts more than what would be the beginning now.
                start = known[0].acknowledged if known else start
            found[place.title] = start
        return found

    def getDefaultReadLimit(self) -> ReadLimit:
        """How much one micro-batch takes."""
        if self._options.most:
            return ReadMaxRows(self._options.most)
        if self._options.most_bytes:
            return ReadMaxBytes(self._options.most_bytes)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """The query ends with what is there now."""
        self._upto = {
            place.title: place.access.manager().bulk.span(place.queue()).last
            for place in self._all()
        }

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """How far the next micro-batch goes; waits a while if there is nothing.

        Spark has committed everything up to `start`, so that is removed.
        """
        if self._options.read_mode == RECEIVE:
            self._take_over(start)
        until = time.monotonic() + (0.0 if self._upto is not None else self._options.poll_s)
        pause = PAUSE_FIRST_S
        while True:
            found = {place.title: self._end(place, start, limit) for place in self._all()}
            if found != {title: start.get(title) for title in found}:
                return found
            left = until - time.monotonic()
            if left <= 0:
                return start
            time.sleep(min(pause, left))
            pause = min(2 * pause, PAUSE_LAST_S)

    def _most(self, limit: ReadLimit) -> tuple[int, int]:
        """Messages and bytes that a micro-batch may have; what the options say holds as well."""
        most, most_bytes = self._options.most, self._options.most_bytes
        if isinstance(limit, ReadMaxRows):
            most = min(most, limit.max_rows) if most else limit.max_rows
        elif isinstance(limit, ReadAllAvailable):
            most = most_bytes = 0
        return most or BATCH_MESSAGES_MAX, most_bytes

    def _end(self, place: Place, start: Offsets, limit: ReadLimit) -> int:
        title = place.title
        after = start.get(title, 0)
        upto = SEQUENCE_MAX if self._upto is None else self._upto.get(title, 0)
        most, most_bytes = self._most(limit)
        if self._options.read_mode == RECEIVE:
            return self._reserve(place, after, upto, most, most_bytes)
        span = place.access.manager().bulk.span(
            place.queue(), after=after, most=min(most, 1_000_000), most_bytes=most_bytes
        )
        if self._options.fail_on_loss:
            check_given(title, after, span.given)
        return max(after, min(span.end, upto))

    def _reserve(self, place: Place, after: int, upto: int, most: int, most_bytes: int) -> int:
        bulk, queue = place.access.manager().bulk, place.queue()
        size = 0
        # A new group leaves alone what came before, unless it is to begin with the first there is:
        # then it also reads what comes back from somebody's aborted transaction.
        is_earliest = self._options.starting == EARLIEST and not self._options.since
        floor = 0 if is_earliest else after
        while most > 0 and (not most_bytes or size < most_bytes):
            wanted = min(most, RANGE_MESSAGES)
            wanted_bytes = min(most_bytes - size, RANGE_BYTES) if most_bytes else RANGE_BYTES
            found = bulk.reserve(
                queue,
                self._options.group,
                self._owner,
                after,
                most=wanted,
                most_bytes=wanted_bytes,
                upto=upto,
                floor=floor,
            )
            if not found.messages and found.end == after:
                break
            after = found.end
            most -= found.messages
            size += found.size
            # The next message did not fit; a range has one in any case, so none is begun for it.
            if most_bytes and wanted_bytes < RANGE_BYTES and found.messages < wanted:
                break
        return after

    def _take_over(self, start: Offsets) -> None:
        """Acknowledges; whoever read for the group before may have to be thought dead first."""
        until = time.monotonic() + TAKING_OVER_S
        while True:
            try:
                self._acknowledge(start)
            except MessageQueueError as wrong:
                if wrong.code != HResult.MQ_ERROR_SHARING_VIOLATION or time.monotonic() > until:
                    raise
            else:
                return
            time.sleep(PAUSE_LAST_S)

    def _acknowledge(self, upto: Offsets) -> None:
        for place in self._all():
            if place.title in upto:
                place.access.manager().bulk.acknowledge(
                    place.queue(), self._options.group, self._owner, upto[place.title]
                )

    # Parts.

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        """The parts of a micro-batch."""
        parts: list[InputPartition] = []
        for place in self._all():
            if place.title not in end:
                continue
            after, upto = start.get(place.title, 0), end[place.title]
            if upto < after and self._options.fail_on_loss:
                raise DataLoss(
                    f"a batch of {place.title} that ends at {upto} is to be read again, and would "
                    f"begin at {after} now: what it had is gone, or the query began with the "
                    "latest. Begin with a new checkpoint, or set failOnDataLoss to false"
                )
            if upto <= after:
                continue
            if self._options.read_mode == RECEIVE:
                parts += self._reserved(place, after, upto)
            else:
                messages = place.access.manager().bulk.span(place.queue()).messages
                parts += split(place, after, upto, messages, self._options.partitions)
        return parts

    def _reserved(self, place: Place, after: int, upto: int) -> list[Part]:
        """The ranges of a batch, shared out; they are as they were when it was planned first."""
        group = self._options.group
        ranges = place.access.manager().bulk.ranges(place.queue(), group)
        ranges = [each for each in ranges if after <= each.start and each.end <= upto]
        if not ranges or ranges[0].start != after or ranges[-1].end != upto:
            if self._options.fail_on_loss:
                raise DataLoss(
                    f"{place.title} from {after} to {upto} is not reserved for the group "
                    f"{group!r} any more: somebody released it, or the queue manager was set back. "
                    "Set failOnDataLoss to false to go on without those messages"
                )
            return []
        return [
            Part(place, group=group, ranges=tuple(some))
            for some in _shared_out(ranges, self._options.partitions)
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a part."""
        assert isinstance(partition, Part)
        found = read_part(partition, self._names, self._options.mode, Filters(()))
        return named(found, self._shown)

    def stop(self) -> None:
        """The query has ended: another may read for the group at once."""
        if self._options.read_mode == RECEIVE:
            for place in self._places:
                with suppress(MerqError):  # the queue or its manager may be gone as well
                    bulk = place.access.manager().bulk
                    bulk.leave(place.queue(), self._options.group, self._owner)

    def commit(self, end: Offsets) -> None:
        """Spark is done with everything up to here."""
        if self._options.read_mode == RECEIVE:
            self._acknowledge(end)


def _shared_out(ranges: list[RangeReport], parts: int) -> list[list[RangeReport]]:
    """Ranges in as many parts, of about as many messages each, in order."""
    total = sum(each.messages for each in ranges)
    found: list[list[RangeReport]] = [[]]
    before = 0
    for each in ranges:
        if found[-1] and before >= total * len(found) / parts:
            found.append([])
        found[-1].append(each)
        before += each.messages
    return found
