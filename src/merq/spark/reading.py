"""Reading what is in queues: partitions, rows, and filters that the queue manager need not send."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition

from merq.allocating import keep_freed_memory
from merq.client.bulk import SEQUENCE_MAX
from merq.model.reservations import RangeReport
from merq.protocol.application.rows import RowsReport
from merq.spark.columns import BY_NAME
from merq.spark.decoding import Frame
from merq.spark.filtering import Filter, Filters
from merq.spark.managers import Place, places
from merq.spark.options import EARLIEST, LATEST, BadOption, Offsets, Options, read_options
from merq.spark.overlapping import ahead

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FRAME_ROWS: Final = 2048
"""Messages that are asked for at once; measured: more or fewer are slower."""

PARTITION_MESSAGES_MIN: Final = 2048
"""A queue is not split into parts of fewer messages than this."""


def columns_of(schema: StructType) -> tuple[str, ...]:
    """The columns that a schema wants.

    Raises:
        BadOption: One is not known, or is of another type than it has.
    """
    names = []
    for each in schema.fields:
        known = BY_NAME.get(each.name.lower())
        if known is None:
            raise BadOption(f"the schema has a column {each.name}; there are {', '.join(BY_NAME)}")
        if each.dataType.simpleString() != known.kind:
            raise BadOption(
                f"the schema has {each.name} as {each.dataType.simpleString()}; it is {known.kind}"
            )
        names.append(known.name)
    return tuple(names)


@dataclass
class Part(InputPartition):
    """Messages of a queue that one task reads.

    Attributes:
        place: The queue.
        after: What came behind this number,
        upto: and up to this one; unless they are reserved:
        group: for this group,
        ranges: in these ranges.
    """

    place: Place
    after: int = 0
    upto: int = 0
    group: str = ""
    ranges: tuple[RangeReport, ...] = field(default=())


def read_part(part: Part, names: Sequence[str], mode: str, filters: Filters) -> Iterator[Any]:
    """The messages of a part, as Arrow."""
    keep_freed_memory()
    bulk, queue = part.place.access.manager().bulk, part.place.queue()
    reports: Iterator[RowsReport]
    if part.group:
        reports = (
            each
            for found in part.ranges
            for each in bulk.reserved(queue, part.group, found, most=FRAME_ROWS)
        )
    else:
        reports = bulk.rows(queue, part.after, part.upto, most=FRAME_ROWS)
    for report in ahead(reports):
        frame = Frame(report, part.place.title)
        frame.verify()
        batch = frame.batch(
            (*names, *(each for each in filters.columns if each not in names)), mode
        )
        batch = filters.apply(batch)
        if batch.num_rows:
            yield batch.select(list(names))


def named(batches: Iterator[Any], names: Sequence[str]) -> Iterator[Any]:
    """Batches whose columns are called what the user calls them: he may write `Label`."""
    return (batch.rename_columns(names) for batch in batches)


def split(place: Place, after: int, upto: int, messages: int, partitions: int) -> list[Part]:
    """Numbers as parts of about the same size."""
    count = max(1, min(partitions, messages // PARTITION_MESSAGES_MIN, upto - after))
    ends = [after + (upto - after) * number // count for number in range(count + 1)]
    return [Part(place, start, end) for start, end in pairwise(ends) if end > start]


def bound(wanted: str | Offsets, title: str, first: int, last: int) -> int:
    """The number that an offset means for a queue: what came behind it is read, or before."""
    if wanted == EARLIEST:
        return max(first - 1, 0)
    if wanted == LATEST:
        return last
    assert isinstance(wanted, dict)
    if title.lower() not in wanted:
        raise BadOption(
            f"an offset is not said for {title}; it is for {', '.join(wanted) or 'none'}"
        )
    found = wanted[title.lower()]
    if found == -1:
        return last
    return max(first - 1, 0) if found == -2 else min(found, SEQUENCE_MAX)


class _Pushing:
    """`pushFilters` of a reader, whether Spark is set up for it or not.

    Spark refuses readers that have the method unless `spark.sql.python.filterPushdown.enabled` is
    set, which it is not by default. It knows them by the function behind the method, so this shows
    the one that all readers have; it is called only where filters are to be pushed.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: BatchReader) -> None:
        self._reader = reader

    def __call__(self, filters: list[Any]) -> Iterator[Any]:
        return self._reader.take_filters(filters)


class BatchReader(DataSourceReader):
    """Reads what is in queues now."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options: Options = read_options(options)
        self._names = columns_of(schema)
        self._shown = schema.names
        self._filters = Filters(())
        setattr(self, "pushFilters", _Pushing(self))  # noqa: B010 - it is no method, see there

    def take_filters(self, filters: list[Any]) -> Iterator[Any]:
        """Takes over those that it can carry out; the others are left to Spark."""
        taken = []
        for each in filters:
            found = Filter.of(each)
            if found is None:
                yield each
            else:
                taken.append(found)
        self._filters = Filters(tuple(taken))

    def partitions(self) -> Sequence[InputPartition]:
        """Parts of all queues, as they are at this moment."""
        options = self._options
        parts: list[InputPartition] = []
        for place in places(options):
            if not self._filters.may_have_queue(place.title):
                continue
            span = place.access.manager().bulk.span(place.queue(), options.since)
            if options.since and not span.first:
                continue
            after = bound(options.starting, place.title, span.first, span.last)
            if options.since:
                after = max(after, span.first - 1)
            upto = bound(options.ending, place.title, span.first, span.last)
            after, upto = self._filters.narrowed(after, min(upto, span.last))
            if upto > after and span.messages:
                parts += split(place, after, upto, span.messages, options.partitions)
        return parts

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a part; of none if Spark, told that there are no parts, makes up one."""
        if not isinstance(partition, Part):
            return iter(())
        found = read_part(partition, self._names, self._options.mode, self._filters)
        return named(found, self._shown)
