"""What was decided where the documents contradict themselves, as the queue manager does it."""

from __future__ import annotations

import pytest

from merq.engine.limits import Limits
from merq.engine.tracing import report_body
from merq.hresult import HResult
from merq.model.message_class import MessageClass
from merq.model.names import PrivateName
from merq.model.selecting import ByLookup, Seek
from merq.wire.view import MessageView
from unit.engine.engine_world import World, refused
from unit.engine.foreign_world import (
    ELSEWHERE,
    arrive,
    commit,
    depart,
    final_ack,
    foreign,
    leaving,
    outgoing,
)
from unit.engine.test_tracing import reports, traced

ADMIN = r"OS:here\private$\admin"


@pytest.mark.spec("E40")
def test_a_message_that_was_purged_while_a_transaction_held_it_is_told_as_purged(
    world: World,
) -> None:
    admin, number = world.create("admin"), world.create("orders", transactional=True)
    sending = world.begin()
    world.send(number, sending, body=b"a", admin_queue=ADMIN, acknowledgments=8)
    world.commit(sending)
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    world.purge(number)
    assert world.messages(admin) == []
    world.abort(transaction)
    (told,) = world.messages(admin)
    assert told.message_class == MessageClass.MQMSG_CLASS_NACK_Q_PURGED


@pytest.mark.spec("E43")
def test_the_first_and_the_last_message_that_are_sent_are_marked(world: World) -> None:
    source = world.create("source", transactional=True)
    target = world.create("target", transactional=True)
    filling = world.begin()
    for body in (b"x", b"y"):
        world.send(source, filling, body=body)
    world.commit(filling)
    before = [view.packet for view in world.messages(source)]
    transaction = world.begin()
    world.receive(source, transaction=transaction)
    for body in (b"a", b"b", b"c"):
        world.send(target, transaction, body=body)
    world.receive(source, transaction=transaction)
    assert [view.packet for view in world.messages(source)] == before, "what is read stays as it is"
    world.commit(transaction)
    headers = [view.decode().transaction_header for view in world.messages(target)]
    flags = [each.fields.flags for each in headers if each is not None]
    assert [each.first_message for each in flags] == [True, False, False]
    assert [each.last_message for each in flags] == [False, False, True]


@pytest.mark.spec("E44")
def test_quotas_are_in_kilobytes_and_that_of_the_computer_has_no_limit_unless_one_is_set() -> None:
    world = World()
    number = world.create("q")
    world.send(number, body=bytes(3_000_000))
    assert len(world.bodies(number)) == 1
    small = World(Limits(machine_quota=2))
    number = small.create("q")
    small.send(number, body=bytes(1500))
    refused(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, lambda: small.send(number, body=bytes(1500)))


@pytest.mark.spec("E39")
def test_the_first_the_last_and_neighbours_are_found_from_any_place(world: World) -> None:
    number = world.create("orders")
    for body in (b"a", b"b", b"c"):
        world.send(number, body=body)
    middle = [place.lookup_id for place in world.engine.queue(number).positions][1]
    world.receive(number, ByLookup(middle))
    for seek, body in (
        (Seek.FIRST, b"a"),
        (Seek.LAST, b"c"),
        (Seek.PREVIOUS, b"a"),
        (Seek.NEXT, b"c"),
    ):
        assert world.body(world.peek(number, ByLookup(middle, seek))) == body
    gone = world.peek(number, ByLookup(middle))
    assert world.code(gone) == HResult.MQ_ERROR_MESSAGE_NOT_FOUND


@pytest.mark.spec("E71")
def test_a_report_lives_for_an_hour_and_tells_sending_by_its_next_hop(world: World) -> None:
    world.engine.arrivals.forwards = True
    packet = traced(foreign(PrivateName(computer=ELSEWHERE, number=0x10), 0x12))
    arrive(world, packet)
    (report,) = reports(world)
    assert " received by " in report.label
    assert report.time_to_reach_queue == 3600
    assert "NEXT HOP" not in report.body.decode("utf-16-le")
    assert "NEXT HOP" in report_body(MessageView(packet), "10.0.0.7")
    world.tick(3601)
    assert not any("public" in name for name in leaving(world))


@pytest.mark.spec("E45")
def test_reading_from_a_queue_that_was_deleted_says_so(world: World) -> None:
    number = world.create("orders")
    world.delete(number)
    refused(HResult.MQ_ERROR_QUEUE_DELETED, lambda: world.receive(number))
    refused(HResult.MQ_ERROR_QUEUE_DELETED, lambda: world.peek(number))


@pytest.mark.parametrize(
    ("base", "user"), [(0, 1 << 8), (0, 1 << 9), (3, 0)], ids=["JN", "JP", "priority"]
)
@pytest.mark.spec("MS-MQQB 3.1.5.1.1#FinalAck", "E35")
def test_a_final_ack_with_flags_that_it_must_not_have_is_none(
    world: World, base: int, user: int
) -> None:
    commit(world, b"a", positive_journaling=True)
    view = MessageView(depart(world)[0].packet)
    packet = bytearray(final_ack(view))
    packet[2] |= base
    packet[60:64] = (int.from_bytes(packet[60:64], "little") | user).to_bytes(4, "little")
    arrive(world, bytes(packet))
    assert world.bodies(outgoing(world).number) == [b"a"]
    arrive(world, final_ack(view, ordinal=951))
    assert world.bodies(outgoing(world).number) == [], "without them it is one"
