"""What a client that reads and writes in batches is answered, on a disk."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar
from zlib import crc32

import pytest

from merq.errors import MessageQueueError
from merq.host.batching import NUMBER_MAX
from merq.host.bulk import describe_span
from merq.hresult import HResult
from merq.model.reservations import ClaimReport, QueueSpan, RangeReport, StageReport
from merq.model.selecting import First
from merq.protocol.application.reports import QueueReport, Sighting, Status, Whereabouts
from merq.protocol.application.requests import (
    Acknowledge,
    AskStatus,
    AskWhy,
    CreateStage,
    DescribeSpan,
    DropStages,
    Family,
    ListClaims,
    ListQueues,
    ListRanges,
    ListStages,
    Publish,
    ReadRows,
    ReleaseClaim,
    Request,
    Reserve,
    Send,
)
from merq.protocol.application.rows import PREFIX_SIZE, RowsReport
from merq.wire.view import MessageView
from unit.engine.engine_world import World
from unit.host.desk_world import START, Bureau, packet

MASK = NUMBER_MAX
_T = TypeVar("_T")


@pytest.fixture
def bureau() -> Bureau:
    return Bureau()


def ask(bureau: Bureau, request: Request) -> object:
    return bureau.ask(bureau.desk(), request)


def only(bureau: Bureau, request: Request, kind: type[_T]) -> _T:
    """The one thing that is told in a list."""
    found = ask(bureau, request)
    assert isinstance(found, list)
    (each,) = found
    assert isinstance(each, kind)
    return each


def rows(bureau: Bureau, request: ReadRows) -> RowsReport:
    found = ask(bureau, request)
    assert isinstance(found, RowsReport), found
    return found


def numbers(column: bytes | memoryview, size: int) -> list[int]:
    code = {4: "I", 8: "Q"}[size]
    return list(struct.unpack(f"<{len(column) // size}{code}", column))


def packets(found: RowsReport) -> list[bytes]:
    """The packets that an answer tells of, and what lies before each is as it should be."""
    data = b"".join(found.data)
    cut = []
    for at, size in zip(numbers(found.offsets, 4), numbers(found.sizes, 4), strict=True):
        length, checksum = struct.unpack_from("<II", data, at - PREFIX_SIZE)
        assert length == 16 + size
        assert crc32(data[at - 16 : at + size]) == checksum
        cut.append(data[at : at + size])
    return cut


def bodies(found: RowsReport) -> list[bytes]:
    return [MessageView(each).body for each in packets(found)]


def filled(bureau: Bureau, *bodies: bytes, **outline: object) -> int:
    queue = bureau.queue("q")
    for body in bodies or (b"a", b"b", b"c"):
        ask(bureau, Send(queue, [packet(body, **outline)]))
    return queue


def span(bureau: Bureau, request: DescribeSpan) -> QueueSpan:
    found = ask(bureau, request)
    assert isinstance(found, QueueSpan), found
    return found


def sequences(bureau: Bureau, queue: int) -> list[int]:
    return sorted(p.lookup_id & MASK for p in bureau.state.queues[queue].positions)


# Reading.


def test_messages_are_read_as_they_lie_in_the_log(bureau: Bureau) -> None:
    queue = filled(bureau)
    found = rows(bureau, ReadRows(queue, "", 0, MASK))
    assert bodies(found) == [b"a", b"b", b"c"]
    assert [each & MASK for each in numbers(found.ids, 8)] == sequences(bureau, queue)
    assert found.notes == b""


def test_what_is_locked_is_read_too_for_it_stays(bureau: Bureau) -> None:
    queue = filled(bureau)
    bureau.hold(bureau.desk(), queue)
    assert bodies(rows(bureau, ReadRows(queue, "", 0, MASK))) == [b"a", b"b", b"c"]


def test_a_part_is_read_between_two_numbers(bureau: Bureau) -> None:
    queue = filled(bureau)
    first, second, _ = sequences(bureau, queue)
    assert bodies(rows(bureau, ReadRows(queue, "", first, second))) == [b"b"]
    assert rows(bureau, ReadRows(queue, "", second, first)).count == 0
    assert rows(bureau, ReadRows(queue, "", MASK, MASK)).count == 0
    assert bodies(rows(bureau, ReadRows(queue, "", 0, MASK, most=2))) == [b"a", b"b"]


def test_so_many_bytes_are_read_but_one_message_in_any_case(bureau: Bureau) -> None:
    queue = filled(bureau)
    size = len(packet(b"a"))
    assert rows(bureau, ReadRows(queue, "", 0, MASK, most_bytes=1)).count == 1
    assert rows(bureau, ReadRows(queue, "", 0, MASK, most_bytes=2 * size)).count == 2
    assert rows(bureau, ReadRows(queue, "", 0, MASK, most=-5, most_bytes=-5)).count == 1


def test_express_messages_are_read_among_others(bureau: Bureau) -> None:
    queue = filled(bureau)
    ask(bureau, Send(queue, [packet(b"express", recoverable=False)]))
    found = rows(bureau, ReadRows(queue, "", 0, MASK))
    assert bodies(found) == [b"a", b"b", b"c", b"express"]


def test_what_was_copied_to_elsewhere_in_the_log_is_read_from_there(bureau: Bureau) -> None:
    queue = filled(bureau, *[bytes([65 + each]) * 700 for each in range(12)])
    more = True
    while more:
        more, _ = bureau.host.relocate_some()
    bureau.settle()
    assert [each[:1] for each in bodies(rows(bureau, ReadRows(queue, "", 0, MASK)))] == [
        bytes([65 + each]) for each in range(12)
    ]


def test_how_often_it_was_aborted_and_moved_is_told(bureau: Bureau) -> None:
    queue = bureau.queue("t", transactional=True)
    engine = bureau.host.engine
    within = engine.transactions.begin()
    engine.send(9001, queue, [packet(b"a"), packet(b"b")], within)
    engine.transactions.commit(9002, within)
    bureau.host.settle()
    for _ in range(2):
        within = engine.transactions.begin()
        engine.receive(9003, queue, First(), wait=False, transaction=within)
        engine.transactions.abort(9004, within)
        bureau.host.settle()
    found = rows(bureau, ReadRows(queue, "", 0, MASK))
    assert numbers(found.notes, 4) == [0, 2, 0]
    first, second = numbers(found.ids, 8)
    engine.create_subqueue(9005, queue, "later")
    bureau.host.settle()
    later = engine.queue(queue).subqueues["later"].number
    engine.move(9006, queue, second, later, 0)
    engine.move(9007, queue, first, later, 0)
    bureau.host.settle()
    found = rows(bureau, ReadRows(later, "", 0, MASK))
    assert numbers(found.notes, 4) == [0, 2, 1, 1, 0, 1]


def test_a_range_is_read_in_pieces(bureau: Bureau) -> None:
    queue = filled(bureau)
    ask(bureau, Reserve(queue, "g", "me", 0))
    assert bodies(rows(bureau, ReadRows(queue, "g", 0, skip=0, most=2))) == [b"a", b"b"]
    assert bodies(rows(bureau, ReadRows(queue, "g", 0, skip=2, most=2))) == [b"c"]
    assert rows(bureau, ReadRows(queue, "g", 0, skip=3)).count == 0
    assert rows(bureau, ReadRows(queue, "g", 0, skip=MASK)).count == 0


# Spans.


def test_a_span_says_which_messages_there_are(bureau: Bureau) -> None:
    queue = filled(bureau)
    first, second, third = sequences(bureau, queue)
    size = 3 * len(packet(b"a"))
    whole = QueueSpan(first=first, last=third, given=third, end=third, messages=3, size=size)
    assert span(bureau, DescribeSpan(queue)) == whole
    assert span(bureau, DescribeSpan(queue, after=first, most=1)) == replace(whole, end=second)
    assert span(bureau, DescribeSpan(queue, after=first, most=2)).end == third
    assert span(bureau, DescribeSpan(queue, most_bytes=2 * size // 3)).end == second
    assert span(bureau, DescribeSpan(queue, most_bytes=1)).end == first
    assert span(bureau, DescribeSpan(queue, after=MASK, most=1)).end == MASK


def test_an_empty_queue_has_a_span_too(bureau: Bureau) -> None:
    queue = bureau.queue("q")
    assert span(bureau, DescribeSpan(queue, since=START, most=7)) == QueueSpan(
        first=0, last=0, given=0, end=0, messages=0, size=0
    )


def test_what_was_given_stays_given_when_the_last_message_is_gone() -> None:
    world = World()
    queue = world.create("q")
    world.fill(queue, b"usual", priority=3)
    world.fill(queue, b"urgent", priority=7)
    before = describe_span(world.engine, DescribeSpan(queue))
    assert world.body(world.receive(queue)) == b"urgent"
    world.checkpoint()
    world.restart()
    after = describe_span(world.engine, DescribeSpan(queue))
    assert after.last < before.last == before.given <= after.given


def test_a_span_begins_at_a_time(bureau: Bureau) -> None:
    queue = bureau.queue("q")
    for at in range(10):
        bureau.host.engine.tick(START + 10 * at)
        ask(bureau, Send(queue, [packet(priority=at % 8)]))
    numbered = sequences(bureau, queue)
    for since, expected in ((1, 0), (START + 10, 1), (START + 41, 5), (START + 90, 9)):
        assert span(bureau, DescribeSpan(queue, since=since)).first == numbered[expected]
    assert span(bureau, DescribeSpan(queue, since=START + 91)).first == 0


# Numbers and names that nobody should send.


@pytest.mark.parametrize("wrong", [-1, NUMBER_MAX + 1, 1 << 64, 1 << 200])
def test_numbers_that_cannot_be_are_refused(bureau: Bureau, wrong: int) -> None:
    queue = filled(bureau)
    requests: Sequence[Request] = (
        DescribeSpan(queue, since=wrong),
        DescribeSpan(queue, after=wrong),
        DescribeSpan(queue, most=wrong),
        DescribeSpan(queue, most_bytes=wrong),
        ReadRows(queue, "", wrong),
        ReadRows(queue, "", 0, wrong),
        ReadRows(queue, "g", 0, skip=wrong),
        Reserve(queue, "g", "me", wrong),
        Reserve(queue, "g", "me", 0, most=wrong),
        Reserve(queue, "g", "me", 0, most_bytes=wrong),
        Reserve(queue, "g", "me", 0, upto=wrong),
        Reserve(queue, "g", "me", 0, floor=wrong),
        Acknowledge(queue, "g", "me", wrong),
        CreateStage(queue, "w", wrong, "0"),
        Publish("w", wrong, ()),
    )
    for request in requests:
        refused = ask(bureau, request)
        assert isinstance(refused, MessageQueueError), request
        assert refused.code == HResult.MQ_ERROR_INVALID_PARAMETER
        assert str(NUMBER_MAX) in str(refused)
    for request in (DropStages("w", wrong), DropStages(stage=wrong)):
        assert ask(bureau, request) == 0
    assert isinstance(ask(bureau, Publish("w", 0, (wrong, wrong))), MessageQueueError)
    for request in (ReadRows(wrong, "", 0), Reserve(wrong, "g", "me", 0), ListRanges(wrong, "g")):
        assert isinstance(ask(bureau, request), MessageQueueError)
    assert rows(bureau, ReadRows(queue, "", 0, MASK, most=wrong, most_bytes=wrong)).count >= 1


@pytest.mark.parametrize("name", ["", "x" * 256])
def test_names_that_cannot_be_are_refused(bureau: Bureau, name: str) -> None:
    queue = filled(bureau)
    for request in (
        Reserve(queue, name, "me", 0),
        CreateStage(queue, name, 0, "0"),
        CreateStage(queue, "w", 0, name),
        ReleaseClaim(queue, name),
    ):
        refused = ask(bureau, request)
        assert isinstance(refused, MessageQueueError), request
        assert refused.code == HResult.MQ_ERROR_INVALID_PARAMETER


# All of it.


def test_a_batch_is_reserved_and_acknowledged(bureau: Bureau) -> None:
    queue = filled(bureau)
    found = ask(bureau, Reserve(queue, "g", "me", 0))
    assert isinstance(found, RangeReport)
    assert ask(bureau, ListRanges(queue, "g")) == [found]
    claim = only(bureau, ListClaims(), ClaimReport)
    assert (claim.group, claim.messages) == ("g", 3)
    assert ask(bureau, Acknowledge(queue, "g", "me", found.end)) == 0
    assert ask(bureau, ListRanges(queue, "g")) == []
    assert ask(bureau, ReleaseClaim(queue, "g", forget=True)) == 0
    assert ask(bureau, ListClaims()) == []


def test_a_batch_is_written_and_published(bureau: Bureau) -> None:
    queue = bureau.queue("q")
    stage = bureau.number(bureau.desk(), CreateStage(queue, "w", 0, "0"))
    assert ask(bureau, Send(stage, [packet(b"a"), packet(b"b")])) == 2
    told = only(bureau, ListStages(), StageReport)
    assert (told.stage, told.messages) == (stage, 2)
    assert ask(bureau, Publish("w", 0, (stage,))) == 2
    assert ask(bureau, ListStages()) == []
    assert bodies(rows(bureau, ReadRows(queue, "", 0, MASK))) == [b"a", b"b"]


# Stages are not counted as queues, and what is in them is told of.


def test_a_stage_is_not_told_of_as_a_queue(bureau: Bureau) -> None:
    queue = bureau.queue("q")
    before = ask(bureau, AskStatus())
    stage = bureau.number(bureau.desk(), CreateStage(queue, "w", 0, "0"))
    ask(bureau, Send(stage, [packet(b"a")]))
    after = ask(bureau, AskStatus())
    assert isinstance(before, Status)
    assert isinstance(after, Status)
    assert (after.messages, after.message_bytes) == (before.messages, before.message_bytes)
    assert after.queues == before.queues
    for family in Family:
        told = ask(bureau, ListQueues(family, queue))
        assert isinstance(told, list)
        numbers = [each.properties.number for each in told if isinstance(each, QueueReport)]
        assert stage not in numbers


def test_where_a_message_is_that_is_not_published(bureau: Bureau) -> None:
    queue = bureau.queue("q")
    stage = bureau.number(bureau.desk(), CreateStage(queue, "w", 7, "0"))
    ask(bureau, Send(stage, [packet(b"a")]))
    (place,) = bureau.state.queues[stage].positions
    message_id = MessageView(bureau.state.stored(place)[1]).message_id
    seen = only(bureau, AskWhy(message_id), Sighting)
    assert seen.whereabouts is Whereabouts.STAGED
    assert seen.queue == r".\private$\q"
    ask(bureau, Publish("w", 7, (stage,)))
    assert only(bureau, AskWhy(message_id), Sighting).whereabouts is Whereabouts.WAITING


def test_where_a_message_is_that_a_group_has_reserved(bureau: Bureau) -> None:
    queue = bureau.queue("q")
    message_id = bureau.send(queue)
    ask(bureau, Reserve(queue, "g", "me", 0))
    seen = only(bureau, AskWhy(message_id), Sighting)
    assert seen.whereabouts is Whereabouts.RESERVED
