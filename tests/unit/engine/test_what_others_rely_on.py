"""Facts that senders, readers and restarts rely on: identifiers, sizes, flags, times."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from uuid import UUID

import pytest

from merq.engine.tracing import report_label
from merq.errors import StoreError
from merq.hresult import HResult
from merq.model.names import PrivateName
from merq.model.selecting import ByCorrelationId, ByMessageId
from merq.wire.build import Outline, build_packet
from merq.wire.headers import PACKET_SIZE_MAX
from merq.wire.message import UserMessage
from merq.wire.view import MessageView
from unit.engine.bulk_world import BulkWorld
from unit.engine.engine_world import GUID, World, refused
from unit.engine.foreign_world import ELSEWHERE, REMOTE, THERE, arrive, foreign

# By identifier.


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.spec("MS-MQMQ 2.2.8")
def test_messages_of_two_queue_managers_with_the_same_ordinal_are_told_apart_after_a_restart(
    world: World, checkpoint: bool
) -> None:
    number = world.create("q")
    sources = (THERE, ELSEWHERE, UUID(int=0x55))
    packets = {
        source: foreign(
            "q",
            7,
            body=source.bytes[:4],
            recoverable=True,
            source_queue_manager=source.bytes_le,
        )
        for source in sources
    }
    arrive(world, packets[THERE])
    arrive(world, packets[ELSEWHERE])
    if checkpoint:
        world.checkpoint()
    world.restart()
    arrive(world, packets[sources[2]])
    for source in sources:
        wanted = ByMessageId(source.bytes_le + (7).to_bytes(4, "little"))
        assert world.body(world.peek(number, wanted)) == source.bytes[:4]
        assert world.delivered(world.peek(number, wanted)).source_queue_manager == source
    world.receive(number, ByMessageId(ELSEWHERE.bytes_le + (7).to_bytes(4, "little")))
    assert [view.source_queue_manager for view in world.messages(number)] == [THERE, sources[2]]


@pytest.mark.spec("MS-MQQB 3.1.5.8.2", "MS-MQQB 3.1.1.3")
def test_copies_of_one_message_for_two_queues_by_number_are_no_duplicates(world: World) -> None:
    numbers = [world.create("one"), world.create("two")]
    for number in numbers * 2:
        arrive(world, foreign(PrivateName(computer=GUID, number=number), 5, body=b"a"))
    assert [world.bodies(number) for number in numbers] == [[b"a"], [b"a"]]


@pytest.mark.spec("MS-MQQB 3.1.5.8.2", "MS-MQQB 3.1.1.3")
def test_what_follows_the_name_does_not_make_a_duplicate_another_message(world: World) -> None:
    number = world.create("one")
    name = PrivateName(computer=GUID, number=number)
    first = foreign(name, 5, body=b"a", label="x")
    again = foreign(name, 5, body=b"b", label="y" * 30, correlation_id=b"z" * 20)
    arrive(world, first)
    arrive(world, again)
    assert world.bodies(number) == [b"a"]


# By size.


@pytest.mark.parametrize("target", [r"DIRECT=OS:.\private$\tx", REMOTE], ids=["here", "there"])
@pytest.mark.spec("MS-MQMQ 2.2.19.1")
def test_a_message_must_not_be_too_large_with_what_its_transaction_adds(
    world: World, target: str
) -> None:
    world.create("tx", transactional=True)
    place = target.removeprefix("DIRECT=")
    rest = len(build_packet(Outline(destination=place, recoverable=True)))
    largest = (PACKET_SIZE_MAX - rest) & ~3
    assert len(build_packet(Outline(destination=place, body=bytes(largest)))) <= PACKET_SIZE_MAX
    transaction = world.begin()
    world.send_to(target, transaction, body=bytes(largest - 64), recoverable=True)
    refused(
        HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
        partial(world.send_to, target, transaction, body=bytes(largest), recoverable=True),
    )


# By flags.


def ends(world: World, number: int) -> list[tuple[bytes, bool, bool]]:
    found = []
    for view in world.messages(number):
        header = UserMessage.parse(view.packet).transaction_header
        assert header is not None
        flags = header.fields.flags
        found.append((view.body, flags.first_message, flags.last_message))
    return found


@pytest.mark.spec("MS-MQMQ 2.2.20.5")
def test_one_stage_is_one_transaction_whose_first_and_last_message_say_so() -> None:
    world = BulkWorld()
    number = world.create("tx", transactional=True)
    stage = world.stage(number)
    world.write(stage, b"a", b"b", b"c")
    world.publish(stage)
    assert ends(world, number) == [(b"a", True, False), (b"b", False, False), (b"c", False, True)]


@pytest.mark.spec("MS-MQMQ 2.2.20.5")
def test_a_stage_with_one_message_is_a_transaction_of_its_own() -> None:
    world = BulkWorld()
    number = world.create("tx", transactional=True)
    stage = world.stage(number)
    world.write(stage, b"a")
    world.publish(stage)
    assert ends(world, number) == [(b"a", True, True)]


# By lifetime.


@pytest.mark.spec("MS-MQMQ 2.2.19.2", "MS-MQDMPR 3.1.7.2.7")
def test_messages_that_come_together_expire_each_in_its_own_time(world: World) -> None:
    number = world.create("q")
    queue = [
        {"time_to_be_received": 10},
        {"time_to_be_received": 20},
        {"time_to_reach_queue": 5, "time_to_be_received": 30},
        {"time_to_be_received": 10 + 256},
        {},
    ]
    packets = [
        world.packet(number, body=b"%d" % index, recoverable=True, **fields)
        for index, fields in enumerate(queue)
    ]
    world.engine.send(world.next_request(), number, packets, 0)
    world.perform()
    found = []
    for seconds in (10, 1, 9, 1, 9, 1, 235, 1):
        world.tick(seconds)
        found.append([int(body) for body in world.bodies(number)])
    assert found == [
        [0, 1, 2, 3, 4],
        [1, 2, 3, 4],
        [1, 2, 3, 4],
        [2, 3, 4],
        [2, 3, 4],
        [3, 4],
        [3, 4],
        [4],
    ]


# By date.


@pytest.mark.spec("MS-MQQB 3.1.5.8.9")
def test_a_report_names_each_month_and_each_day_as_the_document_does() -> None:
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    view = MessageView(foreign("q"))
    for number, month in enumerate(months, start=1):
        for day in range(1, 8):
            when = datetime(2024, number, day, 13, 5, 9, tzinfo=UTC)
            label = report_label(view, int(when.timestamp()))
            weekday = days[when.weekday()]
            assert label.endswith(f" at 01:05:09 PM {weekday},{month} {day:02} 24")


# By waiting.


def test_whoever_waits_for_a_message_that_the_disk_has_lost_is_told_and_waits_no_longer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = world.create("q")
    unlucky = world.receive(number, wait=True)
    other = world.receive(number, wait=True)

    def lost(position: int, size: int) -> tuple[int, bytes]:
        raise StoreError(f"{size} bytes at {position} are gone")

    with monkeypatch.context() as patched:
        patched.setattr(world.packets, "read", lost)
        world.send(number, body=b"gone", recoverable=True)
    assert world.code(unlucky) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert world.code(other) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    waiting = world.receive(number, ByCorrelationId(bytes(19) + b"x"), wait=True)
    world.send(number, body=b"there", recoverable=True, correlation_id=bytes(19) + b"x")
    assert world.body(waiting) == b"there"
