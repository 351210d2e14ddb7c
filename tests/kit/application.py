"""Strategies for everything that the application protocol says, and a way to compare it.

Requests and messages on the hot path are plain classes without equality; `picture` gives values
that have it.
"""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from hypothesis import strategies as st

from merq.errors import MessageQueueError
from merq.model.delivered import Delivered
from merq.model.reservations import ClaimReport, QueueSpan, RangeReport, StageReport
from merq.model.row_batch import RowBatch
from merq.model.selecting import (
    AtCursor,
    ByCorrelationId,
    ByLookup,
    ByMessageId,
    First,
    Seek,
    Selection,
)
from merq.protocol.application import requests as asked
from merq.protocol.application.reports import (
    LinkReport,
    QueueReport,
    Result,
    SequenceReport,
    Sighting,
    Status,
    TransferReport,
)
from merq.protocol.application.requests import Request
from merq.protocol.application.rows import RowsReport
from merq.protocol.application.sequence_requests import ForgetSenders

U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)
TEXT = st.text(st.characters(exclude_categories=()), max_size=12)
PACKETS = st.binary(max_size=40)


_PLAIN_VALUES: dict[type, st.SearchStrategy[Any]] = {
    type(None): st.none(),
    bool: st.booleans(),
    int: st.integers(-(2**70), 2**70),
    str: TEXT,
    UUID: st.uuids(),
}


def _filled(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that goes as JSON."""
    origin = get_origin(kind)
    if origin in {Union, types.UnionType}:
        return st.one_of(*(_filled(each) for each in get_args(kind)))
    if origin is tuple:
        return st.lists(_filled(get_args(kind)[0]), max_size=3).map(tuple)
    if kind in _PLAIN_VALUES:
        return _PLAIN_VALUES[kind]
    if is_dataclass(kind):
        assert isinstance(kind, type)
        return dataclasses_of(kind)
    assert issubclass(kind, Enum), kind
    return st.sampled_from(list(kind))


def dataclasses_of(kind: type) -> st.SearchStrategy[Any]:
    """Any value of a dataclass."""
    hints = get_type_hints(kind)
    assert is_dataclass(kind)
    return st.builds(kind, **{each.name: _filled(hints[each.name]) for each in fields(kind)})


def selections() -> st.SearchStrategy[Selection]:
    return st.one_of(
        st.just(First()),
        st.builds(ByLookup, U64, st.sampled_from(list(Seek))),
        st.builds(ByMessageId, st.binary(min_size=20, max_size=20)),
        st.builds(ByCorrelationId, st.binary(min_size=20, max_size=20)),
        st.builds(AtCursor, U64, st.booleans()),
    )


ASKED_AS_JSON = (
    asked.AskStatus,
    asked.BringOnline,
    asked.ChangeQueue,
    asked.CloseCursor,
    asked.CloseQueue,
    asked.CreateQueue,
    asked.CreateSubqueue,
    asked.DeleteQueue,
    asked.DescribeQueue,
    asked.DescribeTransfer,
    asked.EndPrepared,
    asked.FindQueue,
    asked.ListLinks,
    asked.ListPrepared,
    asked.ListQueues,
    asked.ListSequences,
    asked.Move,
    asked.OpenCursor,
    asked.OpenQueue,
    asked.PauseQueue,
    asked.Prepare,
    asked.Purge,
    ForgetSenders,
    asked.ResumeQueue,
    asked.TakeOffline,
    asked.Acknowledge,
    asked.CreateStage,
    asked.DescribeSpan,
    asked.DropStages,
    asked.ListClaims,
    asked.ListRanges,
    asked.ListStages,
    asked.Publish,
    asked.ReadRows,
    asked.ReleaseClaim,
    asked.Reserve,
)


def requests() -> st.SearchStrategy[Request]:
    """Every kind of request."""
    return st.one_of(
        st.builds(asked.Send, U32, st.lists(PACKETS, min_size=1, max_size=4), U64, TEXT, U64),
        st.builds(
            asked.Read,
            U32,
            selections(),
            peek=st.booleans(),
            wait=st.booleans(),
            transaction=U64,
            most=U32,
            most_bytes=U32,
            handle=U64,
            held=st.booleans(),
        ),
        st.builds(
            asked.EndReceive, U32, st.lists(U64, min_size=1, max_size=4), delete=st.booleans()
        ),
        st.builds(asked.Cancel, U32),
        st.builds(
            asked.SendTo,
            st.lists(st.tuples(TEXT, PACKETS), min_size=1, max_size=3).map(tuple),
            U64,
            TEXT,
        ),
        st.builds(asked.SendManyTo, TEXT, st.lists(PACKETS, min_size=1, max_size=4), U64, TEXT),
        st.builds(asked.SendRows, U32, row_batches()),
        st.builds(asked.Begin, U64),
        st.builds(asked.End, U64, st.sampled_from(list(asked.Ending))),
        st.builds(asked.AskWhy, st.binary(min_size=20, max_size=20)),
        *(dataclasses_of(each) for each in ASKED_AS_JSON),
    )


@st.composite
def rows(draw: st.DrawFn) -> RowsReport:
    """Messages by the hundred thousand, or fewer."""
    count = draw(st.integers(0, 4))
    sizes = 8 * count, 4 * count, 4 * count, 12 * draw(st.integers(0, count))
    ids, offsets, lengths, notes = (draw(st.binary(min_size=size, max_size=size)) for size in sizes)
    return RowsReport(count, ids, offsets, lengths, notes, (draw(PACKETS), draw(PACKETS)))


@st.composite
def row_batches(draw: st.DrawFn) -> RowBatch:
    """Rows and their templates, whether they fit each other or not."""
    count = draw(st.integers(1, 4))

    def column(size: int) -> bytes:
        return draw(st.binary(min_size=size * count, max_size=size * count))

    has_kinds, has_tags, has_labels = (draw(st.booleans()) for _ in range(3))
    return RowBatch(
        count=count,
        templates=tuple(draw(st.lists(PACKETS, min_size=1, max_size=3))),
        kinds=column(1) if has_kinds else b"",
        tags=column(28) if has_tags else b"",
        label_sizes=column(1) if has_labels else b"",
        labels=draw(PACKETS),
        body_sizes=column(4),
        bodies=draw(PACKETS),
    )


def results() -> st.SearchStrategy[Result]:
    """Every kind of answer."""
    messages = st.builds(Delivered, PACKETS, U64, U32, U32, U32)
    reports, sightings = dataclasses_of(QueueReport), dataclasses_of(Sighting)
    return st.one_of(
        messages,
        st.lists(messages, max_size=3),
        U64,
        st.binary(min_size=20, max_size=20),
        st.binary(min_size=60, max_size=60),
        reports,
        st.lists(reports, max_size=2),
        dataclasses_of(Status),
        dataclasses_of(TransferReport),
        st.lists(dataclasses_of(SequenceReport), max_size=2),
        st.lists(dataclasses_of(LinkReport), max_size=2),
        st.lists(sightings, max_size=2),
        st.lists(st.uuids(), max_size=2),
        dataclasses_of(RangeReport),
        st.lists(dataclasses_of(RangeReport), max_size=2),
        st.lists(dataclasses_of(ClaimReport), max_size=2),
        st.lists(dataclasses_of(StageReport), max_size=2),
        dataclasses_of(QueueSpan),
        rows(),
        st.builds(MessageQueueError, U32, TEXT),
        st.none(),
    )


_PLAIN = (asked.Send, asked.SendManyTo, asked.Read, asked.EndReceive, Delivered)
_DELIVERED = ("packet", "lookup_id", "arrival", "aborts", "moves")


def _columns(value: RowsReport) -> tuple[bytes | memoryview, ...]:
    return value.ids, value.offsets, value.sizes, value.notes, b"".join(value.data)


def picture(value: Any) -> Any:
    """The same for values that say the same."""
    if isinstance(value, MessageQueueError):
        return "error", value.code, value.text
    if isinstance(value, RowsReport):
        return "rows", value.count, *(bytes(each) for each in _columns(value))
    if isinstance(value, list | tuple):
        return [picture(each) for each in value]
    if not isinstance(value, _PLAIN):
        return value
    # A compiled class has no __slots__ to look at.
    names = _DELIVERED if isinstance(value, Delivered) else type(value).__slots__
    return type(value).__name__, {name: picture(getattr(value, name)) for name in names}
