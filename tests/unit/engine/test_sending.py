"""Sending many at once, message numbers, and how long the messages of a transaction live."""

from __future__ import annotations

from functools import partial

import pytest

from merq.engine import sending
from merq.engine.limits import Limits
from merq.hresult import HResult
from merq.model.delivered import Delivered
from merq.model.selecting import ByLookup, ByMessageId, First, Seek
from merq.wire.build import Outline, TransactionPlace, build_packet
from merq.wire.view import MessageView
from unit.engine.conftest import Lower
from unit.engine.engine_world import GUID, World, refused

ORDINALS = 1 << 32


def send_many(
    world: World, number: int, bodies: list[bytes], transaction: int = 0, **fields: object
) -> int:
    request = world.next_request()
    packets = [world.packet(number, body=body, **fields) for body in bodies]
    world.engine.send(request, number, packets, transaction)
    world.perform()
    return request


def take_many(
    world: World, number: int, most: int, transaction: int = 0, *, wait: bool = False
) -> int:
    request = world.next_request()
    world.engine.receive(request, number, First(), wait=wait, transaction=transaction, most=most)
    world.perform()
    return request


def several(world: World, request: int) -> list[bytes]:
    answer = world.answers[request]
    assert isinstance(answer, list), answer
    return [MessageView(each.packet).body for each in answer]


# Many at once.


@pytest.mark.parametrize("recoverable", [False, True])
@pytest.mark.spec("MS-MQDMPR 3.1.7.1.9")
def test_many_messages_are_sent_at_once_in_order_each_with_its_own_id(
    world: World, recoverable: bool
) -> None:
    number = world.create("orders")
    frames = len(world.log)
    bodies = [b"%d" % n for n in range(50)]
    request = send_many(world, number, bodies, recoverable=recoverable)
    assert world.bodies(number) == bodies
    ids = world.message_id(request)
    assert [ids[at : at + 20] for at in range(0, len(ids), 20)] == [
        view.message_id for view in world.messages(number)
    ]
    assert len({ids[at : at + 20] for at in range(0, len(ids), 20)}) == 50
    assert len(world.log) <= frames + 1, "one frame, there whole or not at all"


def test_a_batch_is_there_whole_or_not_at_all_after_a_crash(world: World) -> None:
    number = world.create("orders")
    world.durable_at_once = False
    request = send_many(world, number, [b"a", b"b"], recoverable=True)
    assert not world.answered(request)
    assert world.bodies(number) == []
    world.restart()
    assert world.bodies(number) == []
    send_many(world, number, [b"c", b"d"], recoverable=True)
    world.sync()
    world.restart()
    assert world.bodies(number) == [b"c", b"d"]


def test_a_batch_that_finds_no_room_on_the_disk_changes_nothing(world: World) -> None:
    number = world.create("orders")
    before = world.digest()
    world.full = 1
    request = send_many(world, number, [b"a", b"b"], recoverable=True)
    assert world.code(request) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert world.digest() == before
    send_many(world, number, [b"c"], recoverable=True)
    world.restart()
    send_many(world, number, [b"d"], recoverable=True)
    first, second = world.messages(number)
    assert first.message_id != second.message_id, "no number is given twice"


def test_a_batch_keeps_to_the_quota_as_a_whole(world: World) -> None:
    number = world.create("small", quota=1)
    before = world.digest()
    text = refused(
        HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
        lambda: send_many(world, number, [bytes(300)] * 3),
    )
    assert "3 messages" in text
    assert "1 KB" in text
    assert world.digest() == before
    limited = World(limits=Limits(machine_quota=1))
    number = limited.create("orders")
    refused(
        HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
        lambda: send_many(limited, number, [bytes(300)] * 3),
    )
    assert limited.bodies(number) == []


def test_one_packet_that_cannot_be_refuses_them_all(world: World) -> None:
    number = world.create("orders")
    good = world.packet(number, body=b"a")
    in_transaction = build_packet(
        Outline(
            destination=r"OS:.\private$\orders",
            recoverable=True,
            transaction=TransactionPlace(
                sequence_id=1,
                sequence_number=1,
                previous_sequence_number=0,
                identifier=1,
                is_first=True,
                is_last=True,
            ),
        )
    )
    before = world.digest()
    for bad in (b"", b"nonsense", good[:-4], good + b"\0\0\0\0", in_transaction):
        refused(
            HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
            partial(world.engine.send, world.next_request(), number, [good, bad]),
        )
        assert world.digest() == before


@pytest.mark.limit("merq.engine.sending.MESSAGES_AT_ONCE_MAX")
@pytest.mark.parametrize("count", [0, 4])
def test_a_batch_has_a_size(world: World, count: int, lower: Lower) -> None:
    lower("merq.engine.sending", "MESSAGES_AT_ONCE_MAX", 3)
    number = world.create("orders")
    text = refused(
        HResult.MQ_ERROR_INVALID_PARAMETER, lambda: send_many(world, number, [b"x"] * count)
    )
    assert f"{count} messages" in text
    assert world.bodies(number) == []


def test_many_are_received_at_once_as_many_as_there_are(world: World) -> None:
    number = world.create("orders", journaling=True)
    world.fill(number, b"a", b"b", b"c")
    frames = len(world.log)
    assert several(world, take_many(world, number, 2)) == [b"a", b"b"]
    assert len(world.log) == frames + 1
    assert several(world, take_many(world, number, 100)) == [b"c"]
    assert world.code(take_many(world, number, 5)) == HResult.MQ_ERROR_IO_TIMEOUT
    assert world.bodies(world.find(r".\private$\orders;JOURNAL")) == [b"a", b"b", b"c"]


def test_a_batch_that_is_received_comes_when_its_removal_is_durable(world: World) -> None:
    number = world.create("orders")
    world.fill(number, b"a", b"b")
    world.durable_at_once = False
    request = take_many(world, number, 2)
    assert not world.answered(request)
    world.restart()
    assert world.bodies(number) == [b"a", b"b"]
    world.full = 1
    request = take_many(world, number, 2)
    assert world.code(request) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    request = take_many(world, number, 2)
    world.sync()
    assert several(world, request) == [b"a", b"b"]


def test_who_waits_for_many_gets_those_of_the_first_arrival(world: World) -> None:
    number = world.create("orders")
    request = take_many(world, number, 10, wait=True)
    send_many(world, number, [b"a", b"b", b"c"])
    assert several(world, request) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_many_are_received_in_a_transaction(world: World, end: str) -> None:
    number = world.create("orders", transactional=True)
    world.fill(number, b"a", b"b", b"c")
    transaction = world.begin()
    assert several(world, take_many(world, number, 2, transaction)) == [b"a", b"b"]
    getattr(world, end)(transaction)
    assert world.bodies(number) == ([b"c"] if end == "commit" else [b"a", b"b", b"c"])


@pytest.mark.limit("merq.engine.transactions.OPERATIONS_MAX")
def test_a_transaction_that_is_nearly_full_takes_fewer(world: World, lower: Lower) -> None:
    lower("merq.engine.readers", "OPERATIONS_MAX", 2)
    number = world.create("orders", transactional=True)
    world.fill(number, b"a", b"b", b"c")
    transaction = world.begin()
    assert several(world, take_many(world, number, 3, transaction)) == [b"a", b"b"]


def test_many_are_looked_at_without_being_taken(world: World) -> None:
    number = world.create("orders")
    first, *_ = world.fill(number, b"a", b"b", b"c")
    request = world.next_request()
    world.engine.peek(request, number, ByLookup(first, Seek.NEXT), wait=False, most=5)
    world.perform()
    assert several(world, request) == [b"b", b"c"]
    assert len(world.bodies(number)) == 3


@pytest.mark.parametrize("most", [-1, sending.MESSAGES_AT_ONCE_MAX + 1])
def test_a_batch_that_is_read_has_a_size(world: World, most: int) -> None:
    number = world.create("orders")
    world.fill(number, b"a")
    text = refused(HResult.MQ_ERROR_INVALID_PARAMETER, lambda: take_many(world, number, most))
    assert str(most) in text
    assert world.bodies(number) == [b"a"]


# Numbers.


def ordinals(world: World, number: int) -> list[int]:
    return [view.message_ordinal for view in world.messages(number)]


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.spec("MS-MQDMPR 3.1.1.12")
@pytest.mark.spec("MS-MQQB note 26")
def test_ordinals_start_anew_after_the_largest_and_leave_out_zero(
    world: World, checkpoint: bool
) -> None:
    number = world.create("orders")
    world.engine.state.numbers.go_on_from(1_000, ORDINALS - 3)
    send_many(world, number, [b"a", b"b", b"c", b"d"], recoverable=True)
    assert ordinals(world, number) == [ORDINALS - 2, ORDINALS - 1, 1, 2]
    for view in world.messages(number):
        assert view.message_id[:16] == GUID.bytes_le
        assert world.body(world.peek(number, ByMessageId(view.message_id))) == view.body
    if checkpoint:
        world.checkpoint()
    world.restart()
    send_many(world, number, [b"e"], recoverable=True)
    *before, after = ordinals(world, number)
    assert after > max(each for each in before if each < 10)
    assert len(set(before)) == 4


def test_acknowledgments_and_messages_share_the_numbers_over_the_turn(world: World) -> None:
    admin, number = world.create("admin"), world.create("orders")
    world.engine.state.numbers.go_on_from(1_000, ORDINALS - 2)
    for _ in range(2):
        world.send(number, admin_queue=r"OS:.\private$\admin", acknowledgments=1)
    assert ordinals(world, number) == [ORDINALS - 1, 2]
    assert ordinals(world, admin) == [1, 3]


# How long the messages of a transaction live.


@pytest.mark.spec("MS-MQDMPR 3.1.2.4", "MS-MQDMPR 3.1.4.4")
@pytest.mark.parametrize("first", [10, 0xFFFFFFFF])
@pytest.mark.spec("E14")
def test_all_messages_of_a_transaction_live_as_long_as_the_first(world: World, first: int) -> None:
    number = world.create("orders", transactional=True)
    other = world.create("other", transactional=True)
    transaction = world.begin()
    world.send(number, transaction, body=b"a", time_to_be_received=first)
    world.send(number, transaction, body=b"b", time_to_be_received=1_000)
    world.send(other, transaction, body=b"c", time_to_be_received=5)
    world.commit(transaction)
    views = [*world.messages(number), *world.messages(other)]
    assert [view.time_to_be_received for view in views] == [first] * 3
    world.tick(11)
    assert (len(world.bodies(number)), len(world.bodies(other))) == (
        (0, 0) if first == 10 else (2, 1)
    )


def test_a_transaction_that_only_receives_changes_nobodys_time(world: World) -> None:
    number = world.create("orders", transactional=True)
    world.fill(number, b"a", b"b", time_to_be_received=10)
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    world.commit(transaction)
    assert [view.time_to_be_received for view in world.messages(number)] == [10]


def test_the_answer_to_many_is_a_list_of_deliveries(world: World) -> None:
    number = world.create("orders")
    (lookup_id,) = world.fill(number, b"a")
    answer = world.answers[take_many(world, number, 1)]
    assert isinstance(answer, list)
    assert isinstance(answer[0], Delivered)
    assert (answer[0].lookup_id, answer[0].aborts) == (lookup_id, 0)
