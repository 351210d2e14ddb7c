"""`Manager.bulk`, of a queue manager in-process and of one over a socket."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from acceptance.service_process import ServiceProcess
from kit.row_batches import batch_of
from merq import Manager, Queue
from merq import open as open_manager
from merq.client.bulk import SEQUENCE_MAX, Stage
from merq.hresult import HResult
from merq.protocol.application.batches import MESSAGES_MAX
from merq.protocol.application.rows import RowsReport
from merq.wire.build import Outline, build_packet
from merq.wire.view import MessageView
from unit.client.using_managers import refused

GROUP, OWNER, WRITER = "group", "owner", "writer"
_numbers = count()


@pytest.fixture(scope="module", params=["embedded", "service"])
def manager(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Manager]:
    folder = tmp_path_factory.mktemp("bulk") / "data"
    if request.param == "embedded":
        with open_manager(folder) as opened:
            yield opened
    else:
        with ServiceProcess(folder) as service, service.connect() as connected:
            yield connected


@pytest.fixture
def queue(manager: Manager) -> Iterator[Queue]:
    made = manager.create_queue(rf".\private$\q{next(_numbers)}")
    yield made
    made.delete()


def packets(*bodies: bytes) -> list[bytes]:
    return [build_packet(Outline(destination=r"OS:.\private$\q", body=each)) for each in bodies]


def bodies(found: Iterator[RowsReport]) -> list[bytes]:
    cut = []
    for each in found:
        data = b"".join(each.data)
        for row in range(0, 4 * each.count, 4):
            at = int.from_bytes(each.offsets[row : row + 4], "little")
            size = int.from_bytes(each.sizes[row : row + 4], "little")
            cut.append(MessageView(data[at : at + size]).body)
    return cut


def filled(queue: Queue, number: int = 5) -> list[bytes]:
    """Sends so many messages; gives their bodies."""
    expected = [str(each).encode() for each in range(number)]
    queue.send_many(expected, recoverable=True)
    return expected


def test_a_queue_is_read_in_pieces_and_stays(manager: Manager, queue: Queue) -> None:
    expected = filled(queue)
    span = manager.bulk.span(queue)
    assert (span.messages, span.end) == (5, span.last)
    pieces = list(manager.bulk.rows(queue, 0, span.last, most=2))
    assert [each.count for each in pieces] == [2, 2, 1]
    assert bodies(iter(pieces)) == expected
    assert bodies(manager.bulk.rows(queue, span.first, span.last, most_bytes=1)) == expected[1:]
    assert bodies(manager.bulk.rows(queue, span.last, SEQUENCE_MAX)) == []
    assert len(queue) == 5


def test_a_batch_is_cut_by_messages_and_bytes(manager: Manager, queue: Queue) -> None:
    filled(queue)
    whole = manager.bulk.span(queue)
    two = manager.bulk.span(queue, most=2)
    assert len(bodies(manager.bulk.rows(queue, 0, two.end))) == 2
    three = manager.bulk.span(queue, after=two.end, most_bytes=whole.size * 3 // 5)
    assert len(bodies(manager.bulk.rows(queue, two.end, three.end))) == 3
    assert manager.bulk.span(queue, since=1).first == whole.first
    assert manager.bulk.span(queue, since=(1 << 32) - 1).first == 0


def test_a_range_is_the_same_until_it_is_acknowledged(manager: Manager, queue: Queue) -> None:
    expected = filled(queue)
    bulk = manager.bulk
    first = bulk.reserve(queue, GROUP, OWNER, 0, most=2)
    second = bulk.reserve(queue, GROUP, OWNER, first.end, most=2)
    assert bulk.reserve(queue, GROUP, OWNER, 0) == first
    for _ in range(2):
        assert bodies(bulk.reserved(queue, GROUP, first, most=1)) == expected[:2]
    assert bodies(bulk.reserved(queue, GROUP, second)) == expected[2:4]
    assert bulk.ranges(queue, GROUP) == [first, second]
    assert queue.receive(timeout=0).body == expected[4]
    bulk.acknowledge(queue, GROUP, OWNER, second.end)
    bulk.acknowledge(queue, GROUP, OWNER, second.end)
    assert len(queue) == 0
    assert bulk.ranges(queue, GROUP) == []
    refused(HResult.MQ_ERROR_MESSAGE_NOT_FOUND, lambda: list(bulk.reserved(queue, GROUP, first)))


def test_nothing_to_reserve_is_a_range_without_messages(manager: Manager, queue: Queue) -> None:
    found = manager.bulk.reserve(queue, GROUP, OWNER, 0)
    assert (found.start, found.end, found.messages) == (0, 0, 0)
    assert list(manager.bulk.reserved(queue, GROUP, found)) == []


def test_who_leaves_lets_another_in(manager: Manager, queue: Queue) -> None:
    filled(queue)
    bulk = manager.bulk
    found = bulk.reserve(queue, GROUP, OWNER, 0)
    refused(HResult.MQ_ERROR_SHARING_VIOLATION, lambda: bulk.reserve(queue, GROUP, "another", 0))
    bulk.leave(queue, GROUP, OWNER)
    assert bulk.reserve(queue, GROUP, "another", 0) == found
    refused(
        HResult.MQ_ERROR_STALE_HANDLE,
        lambda: bulk.acknowledge(queue, GROUP, OWNER, found.end),
    )


def test_what_is_released_is_anybodys(manager: Manager, queue: Queue) -> None:
    expected = filled(queue)
    bulk = manager.bulk
    bulk.reserve(queue, GROUP, OWNER, 0)
    (claim,) = [each for each in bulk.claims() if queue.path_name.endswith(each.queue[1:])]
    assert (claim.group, claim.messages, claim.owner) == (GROUP, 5, OWNER)
    assert bulk.release(queue, GROUP) == 5
    assert queue.receive(timeout=0).body == expected[0]
    assert bulk.release(queue, GROUP, forget=True) == 0
    refused(HResult.MQ_ERROR_INVALID_PARAMETER, lambda: bulk.release(queue, GROUP))


def test_a_batch_of_several_stages_is_published_once(manager: Manager, queue: Queue) -> None:
    bulk, writer = manager.bulk, f"{WRITER} {queue.path_name}"
    one = bulk.stage(queue, writer, 7, "0")
    two = bulk.stage(queue, writer, 7, "1")
    lost = bulk.stage(queue, writer, 7, "1 again")
    assert one.send(packets(b"a", b"b")) == 2
    assert two.send(packets(b"c")) == 1
    assert lost.send(packets(b"c")) == 1
    assert len(queue) == 0
    assert sorted(each.messages for each in bulk.stages()) == [1, 1, 2]
    assert bulk.publish(writer, 7, [one.number, two.number]) == 3
    assert bulk.publish(writer, 7, [one.number, two.number]) == 0
    assert bulk.stages() == []
    assert [each.body for each in queue.peek_all()] == [b"a", b"b", b"c"]


def test_what_is_dropped_is_never_sent(manager: Manager, queue: Queue) -> None:
    bulk, writer = manager.bulk, f"{WRITER} {queue.path_name}"
    stages = [bulk.stage(queue, writer, batch, "0") for batch in (0, 1, 2)]
    for each in stages:
        each.send(packets(b"a"))
    assert bulk.drop_stage(stages[2].number) == 1
    assert bulk.drop(writer, 1) == 2
    assert bulk.stages() == []
    refused(HResult.MQ_ERROR_QUEUE_DELETED, lambda: stages[0].send(packets(b"a")))
    refused(HResult.MQ_ERROR_QUEUE_NOT_FOUND, lambda: bulk.publish(writer, 0, [stages[0].number]))


@pytest.mark.limit("merq.protocol.application.batches.MESSAGES_MAX")
def test_nothing_is_written_without_asking_and_too_much_is_refused(
    manager: Manager, queue: Queue
) -> None:
    """The service ends a conversation in which there is such a frame."""
    stage = manager.bulk.stage(queue, f"{WRITER} {queue.path_name}", 0, "0")
    assert stage.send([]) == 0
    one = packets(b"")[0]
    refused(HResult.MQ_ERROR_INVALID_PARAMETER, lambda: stage.send([one] * (MESSAGES_MAX + 1)))
    assert stage.send([one]) == 1
    assert manager.bulk.drop_stage(stage.number) == 1


def test_numbers_that_cannot_be_are_refused(manager: Manager, queue: Queue) -> None:
    bulk = manager.bulk
    for wrong in (-1, SEQUENCE_MAX + 1, 1 << 70):
        for ask in (
            lambda wrong=wrong: bulk.reserve(queue, GROUP, OWNER, wrong),
            lambda wrong=wrong: bulk.acknowledge(queue, GROUP, OWNER, wrong),
            lambda wrong=wrong: bulk.span(queue, wrong),
            lambda wrong=wrong: list(bulk.rows(queue, -1, wrong + 2)),
            lambda wrong=wrong: bulk.stage(queue, WRITER, wrong, "0"),
            lambda wrong=wrong: bulk.publish(WRITER, wrong, []),
        ):
            refused(HResult.MQ_ERROR_INVALID_PARAMETER, ask)


def test_a_crash_of_the_service_changes_nothing_of_it(tmp_path: Path) -> None:
    with ServiceProcess(tmp_path / "data") as service, service.connect() as manager:
        bulk = manager.bulk
        queue = manager.create_queue(r".\private$\q")
        expected = filled(queue)
        found = bulk.reserve(queue, GROUP, OWNER, 0, most=3)
        stage = bulk.stage(queue, WRITER, 0, "0")
        stage.send(packets(b"a"))
        service.kill()
        service.start()
        assert bulk.reserve(queue, GROUP, "another", 0) == found
        assert bodies(bulk.reserved(queue, GROUP, found)) == expected[:3]
        other = bulk.stage(queue, WRITER, 0, "1")
        assert other.number != stage.number
        assert bulk.publish(WRITER, 0, [stage.number]) == 1
        bulk.acknowledge(queue, GROUP, "another", found.end)
        service.kill()
        service.start()
        assert bulk.publish(WRITER, 0, [stage.number]) == 0
        assert [each.body for each in queue.peek_all()] == [*expected[3:], b"a"]
        assert bulk.ranges(queue, GROUP) == []
        assert isinstance(stage, Stage)


def test_rows_that_have_most_in_common_are_written_and_published(
    manager: Manager, queue: Queue
) -> None:
    stage = manager.bulk.stage(queue, "rows", 0, "0")
    expected = [b"a", b"bb", b"ccc"]
    assert stage.send_rows(batch_of(packets(*expected))) == 3
    assert manager.bulk.publish("rows", 0, [stage.number]) == 3
    assert [each.body for each in queue.peek_all()] == expected
    assert bodies(manager.bulk.rows(queue, 0, SEQUENCE_MAX)) == expected


def test_rows_that_do_not_fit_are_refused_and_the_connection_goes_on(
    manager: Manager, queue: Queue
) -> None:
    stage = manager.bulk.stage(queue, "rows", 1, "0")
    batch = batch_of(packets(b"a"))
    wrong = replace(batch, bodies=b"more")
    error = refused(HResult.MQ_ERROR_INVALID_PARAMETER, lambda: stage.send_rows(wrong))
    assert "bodies of 1 bytes, but 4 are there" in error.text
    assert stage.send_rows(batch) == 1
    manager.bulk.drop_stage(stage.number)
    refused(HResult.MQ_ERROR_QUEUE_DELETED, lambda: stage.send_rows(batch))
