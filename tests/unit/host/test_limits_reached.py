"""What happens at limits of desks and batches that no other test comes near."""

from __future__ import annotations

from types import ModuleType

import pytest

from merq.errors import MessageQueueError
from merq.host import bulk, desk, host, reporting
from merq.host.news import NEWS_MAX, NewsBox
from merq.hresult import HResult
from merq.model.reservations import QueueSpan
from merq.protocol.application import rows
from merq.protocol.application.requests import (
    AskWhy,
    CloseCursor,
    DescribeSpan,
    OpenCursor,
    ReadRows,
    SendManyTo,
)
from merq.protocol.application.rows import RowsReport
from merq.wire.view import MessageView
from unit.host.desk_world import Bureau, packet


@pytest.fixture
def bureau() -> Bureau:
    return Bureau()


def lowered(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, value: int) -> None:
    """Makes a limit low enough to be reached."""
    if str(module.__file__).endswith((".so", ".pyd")):
        pytest.skip(f"{name} is built into the compiled module; plain Python tests it")
    monkeypatch.setattr(module, name, value)


@pytest.mark.limit("merq.host.desk.CURSORS_MAX")
def test_a_client_has_only_so_many_cursors(bureau: Bureau, monkeypatch: pytest.MonkeyPatch) -> None:
    lowered(monkeypatch, desk, "CURSORS_MAX", 2)
    client, other = bureau.desk(), bureau.desk()
    queue = bureau.queue("q")
    first = bureau.number(client, OpenCursor(queue))
    bureau.number(client, OpenCursor(queue))
    refused = bureau.ask(client, OpenCursor(queue))
    assert isinstance(refused, MessageQueueError)
    assert refused.code == HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    bureau.number(other, OpenCursor(queue))
    assert bureau.ask(client, CloseCursor(first)) is None
    bureau.number(client, OpenCursor(queue))


@pytest.mark.limit("merq.host.desk.KNOWN_NAMES_MAX", "merq.host.desk.KNOWN_NAME_MAX")
def test_names_that_are_not_remembered_lead_to_the_same_queue(bureau: Bureau) -> None:
    client, number = bureau.desk(), bureau.queue("q")
    for each in range(desk.KNOWN_NAMES_MAX + 10):
        name = rf"DIRECT=OS:.\private$\none{each}"
        assert isinstance(bureau.ask(client, SendManyTo(name, [packet()])), MessageQueueError)
    assert desk._known_destination.cache_info().currsize == desk.KNOWN_NAMES_MAX
    before = desk._known_destination.cache_info()
    long = rf"DIRECT=OS:{'h' * 255}\private$\{'q' * 100}"
    assert len(long) > desk.KNOWN_NAME_MAX
    bureau.ask(client, SendManyTo(long, [packet()]))
    assert desk._known_destination.cache_info() == before
    assert isinstance(bureau.ask(client, SendManyTo(r"DIRECT=OS:.\private$\q", [packet()])), bytes)
    assert bureau.state.queues[number].positions.count == 1


@pytest.mark.limit("merq.host.bulk.SPAN_MESSAGES_MAX")
def test_a_batch_ends_where_so_many_messages_were_counted(
    bureau: Bureau, monkeypatch: pytest.MonkeyPatch
) -> None:
    lowered(monkeypatch, bulk, "SPAN_MESSAGES_MAX", 3)
    queue = bureau.queue("q")
    for _ in range(5):
        bureau.send(queue)
    found = bureau.ask(bureau.desk(), DescribeSpan(queue, most=100))
    assert isinstance(found, QueueSpan)
    assert found.end == found.last - 2
    rest = bureau.ask(bureau.desk(), DescribeSpan(queue, after=found.end, most=100))
    assert isinstance(rest, QueueSpan)
    assert rest.end == rest.last


@pytest.mark.limit("merq.protocol.application.rows.ROWS_BYTES_MAX")
def test_an_answer_with_rows_ends_at_so_many_bytes_and_the_rest_is_asked_for(
    bureau: Bureau, monkeypatch: pytest.MonkeyPatch
) -> None:
    lowered(monkeypatch, bulk, "ROWS_BYTES_MAX", 2500)
    assert rows.ROWS_BYTES_MAX > 2500
    queue = bureau.queue("q")
    for _ in range(5):
        bureau.send(queue, bytes(1000))
    counts, start = [], 0
    for _ in range(3):
        found = bureau.ask(
            bureau.desk(), ReadRows(queue, "", start, end=(1 << 56) - 1, most_bytes=1 << 30)
        )
        assert isinstance(found, RowsReport)
        counts.append(found.count)
        start = int.from_bytes(found.ids[-8:], "little") & ((1 << 56) - 1)
    assert counts == [2, 2, 1]


@pytest.mark.limit("merq.host.reporting.ACKNOWLEDGMENTS_SEARCHED_MAX")
def test_of_a_long_administration_queue_only_the_beginning_is_searched(
    bureau: Bureau, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin, queue = bureau.queue("told"), bureau.queue("q")
    for _ in range(3):
        bureau.send(admin)
    wanting = packet(admin_queue=r"OS:here\private$\told", acknowledgments=1)
    sent = bureau.ask(bureau.desk(), SendManyTo(r"DIRECT=OS:.\private$\q", [wanting]))
    assert isinstance(sent, bytes)
    assert bureau.state.queues[admin].positions.count == 4
    found = bureau.ask(bureau.desk(), AskWhy(sent[:20]))
    lowered(monkeypatch, reporting, "ACKNOWLEDGMENTS_SEARCHED_MAX", 3)
    fewer = bureau.ask(bureau.desk(), AskWhy(sent[:20]))
    assert isinstance(found, list | tuple)
    assert isinstance(fewer, list | tuple)
    assert len(found) == len(fewer) + 1
    assert bureau.state.queues[queue].positions.count == 1


@pytest.mark.limit("store.cache_bytes")
def test_what_the_cache_has_no_room_for_is_read_from_the_disk(bureau: Bureau) -> None:
    packets = bureau.host.packets
    packets._most = 2500
    queue = bureau.queue("q")
    sent = [bytes([number]) * 1000 for number in range(5)]
    for body in sent:
        bureau.send(queue, body)
    assert packets._cached <= 2500
    rows = bureau.state.queues[queue].positions
    assert [MessageView(bureau.state.stored(row)[1]).body for row in rows] == sent


@pytest.mark.limit("merq.host.news.NEWS_MAX")
def test_of_news_that_nobody_takes_the_oldest_are_dropped() -> None:
    box = NewsBox()
    for number in range(NEWS_MAX + 1):
        box.tell("something", number=number)
    taken = box.take()
    assert [each.facts["number"] for each in taken] == list(range(1, NEWS_MAX + 1))
    assert box.take() == []


@pytest.mark.limit("merq.host.host.SETTLING_ROUNDS_MAX")
def test_a_checkpoint_for_which_nothing_settles_is_written_another_time(
    bureau: Bureau, monkeypatch: pytest.MonkeyPatch
) -> None:
    bureau.queue("q")
    with monkeypatch.context() as low:
        lowered(low, host, "SETTLING_ROUNDS_MAX", 0)
        assert bureau.host.begin_checkpoint() == (None, [])
    writing, _ = bureau.host.begin_checkpoint()
    assert writing is not None
