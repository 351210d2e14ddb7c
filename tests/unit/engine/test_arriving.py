"""Messages from other queue managers: taken once, in order, on the disk, or not at all."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.messages import user_messages
from merq.engine.arriving import Arrival
from merq.engine.limits import Limits
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.message_class import MessageClass
from merq.model.names import PrivateName, PublicName
from merq.wire.view import MessageView
from unit.engine.conftest import Lower
from unit.engine.engine_world import GUID, START, World
from unit.engine.foreign_world import (
    ADDRESS,
    ELSEWHERE,
    SEQUENCE,
    THERE,
    arrive,
    foreign,
    leaving,
    place,
)

# Where messages go.


@pytest.mark.parametrize(
    "name",
    [
        r"TCP:10.0.0.1\private$\q",
        r"OS:here\PRIVATE$\Q",
        r"OS:a.name.that.only.others.know\private$\q",
        PrivateName(computer=GUID, number=0x10),
        PrivateName(computer=UUID(int=0), number=0x10),
    ],
    ids=str,
)
@pytest.mark.spec("MS-MQQB 3.1.5.8", "MS-MQQB 3.1.5.8.5", "MS-MQQB 3.1.5.8.8")
@pytest.mark.spec("MS-MQQB 3.1.5.8.8#insert", "E69")
def test_a_message_comes_into_the_queue_that_its_name_means_here(
    world: World, name: object
) -> None:
    number = world.create("q")
    world.tick(5)
    packet = foreign(name, 7, body=b"a", priority=6)
    arrived = arrive(world, packet)
    assert (arrived.taken, arrived.refusal, arrived.ordered) == (1, "", [])
    (view,) = world.messages(number)
    assert view.packet == packet, "it is kept as it came"
    (row,) = world.engine.state.queues[number].positions
    assert world.engine.state.stored(row)[0] == START + 5


@pytest.mark.spec("MS-MQQB 3.1.5.8.5")
def test_a_public_name_finds_the_queue_by_its_identifier(world: World) -> None:
    number = world.create("q")
    identifier = world.engine.queue(number).properties.identifier
    arrive(world, foreign(PublicName(queue=identifier), body=b"a"))
    arrive(world, foreign(PublicName(queue=ELSEWHERE), 2, body=b"b"))
    assert world.bodies(number) == [b"a"]


@pytest.mark.parametrize(
    "name",
    [
        r"OS:here\private$\q;journal",
        r"OS:here\system$;deadletter",
        r"OS:here\private$\q;sub",
        r"OS:here\private$\order_queue$",
        PrivateName(computer=GUID, number=0xFFFF0002),
        PrivateName(computer=GUID, number=0x20000000),
        PrivateName(computer=GUID, number=4),
        "SOME:thing",
    ],
    ids=str,
)
@pytest.mark.spec("MS-MQQB 3.1.5.8.2", "MS-MQQB 3.1.5.8.5")
def test_nobody_sends_to_a_queue_that_is_not_for_that(world: World, name: object) -> None:
    number = world.create("q", journaling=True)
    world.subqueue(number, "sub")
    world.send_to(r"DIRECT=OS:there\private$\x", body=b"out")
    before = world.digest()
    assert arrive(world, foreign(name)).taken == 1
    assert world.digest() == before


@pytest.mark.spec("MS-MQQB 3.1.5.8.7", "MS-MQQB 3.1.5.8")
@pytest.mark.spec("MS-MQQB 3.1.5.8.7#disk")
def test_recoverable_messages_are_on_the_disk_before_the_answer(world: World) -> None:
    number = world.create("q")
    world.durable_at_once = False
    request = world.next_request()
    views = [MessageView(foreign("q", 1, recoverable=True)), MessageView(foreign("q", 2))]
    world.engine.arrivals.arrive(
        request, [Arrival(view, ADDRESS, THERE.bytes_le) for view in views]
    )
    world.perform()
    assert not world.answered(request)
    assert world.bodies(number) == []
    world.sync()
    assert world.answers[request] == 2
    assert len(world.bodies(number)) == 2
    world.restart()
    assert [view.message_ordinal for view in world.messages(number)] == [1]


@pytest.mark.spec("MS-MQQB 3.1.5.8", "MS-MQQB 3.1.5.8.10")
def test_messages_that_come_together_are_each_found_by_their_own_identifier(world: World) -> None:
    number = world.create("q")
    admin = r"OS:here\private$\admin"
    world.create("admin")
    packets = [
        foreign(
            "q",
            ordinal,
            body=b"%d" % ordinal,
            recoverable=ordinal % 4 != 0,
            admin_queue=admin,
            acknowledgments=ordinal % 2,
        )
        for ordinal in range(1, 9)
    ]
    arrive(world, *packets)
    for expected in (packets, [packet for packet in packets if packet[60] & 0x20]):
        assert [view.packet for view in world.messages(number)] == expected
        state = world.engine.state
        for view in map(MessageView, expected):
            found = state.queues[number].by_message_id.get(state.key_of(view.message_id))
            assert found is not None
            row = state.queues[number].positions.get(found)
            assert row is not None
            assert state.stored(row)[1] == view.packet
        world.restart()


# Duplicates.


@pytest.mark.parametrize("recoverable", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.5.8.1")
@pytest.mark.spec("MS-MQQB 3.1.5.8.1#match", "MS-MQQB 3.1.5.8.1#discard")
def test_a_message_that_was_here_before_is_dropped(world: World, recoverable: bool) -> None:
    number = world.create("q")
    packet = foreign("q", 7, body=b"a", recoverable=recoverable)
    assert arrive(world, packet, packet).taken == 2, "a duplicate counts as well"
    assert arrive(world, packet).taken == 1
    arrive(world, foreign("q", 7, body=b"b", source_queue_manager=ELSEWHERE.bytes_le))
    assert world.bodies(number) == [b"a", b"b"]
    world.receive(number)
    arrive(world, packet)
    assert world.bodies(number) == [b"b"], "it was received meanwhile, and is known still"


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.5.8.1", "MS-MQQB 3.1.1.3")
@pytest.mark.spec("MS-MQQB 3.1.5.8.2#history")
def test_recoverable_duplicates_are_known_after_a_restart(world: World, checkpoint: bool) -> None:
    number = world.create("q")
    packet = foreign("q", 7, body=b"a", recoverable=True)
    arrive(world, packet)
    world.receive(number)
    if checkpoint:
        world.checkpoint()
    world.restart()
    arrive(world, packet)
    assert world.bodies(number) == []


@pytest.mark.spec("MS-MQQB 3.1.5.8.1")
@pytest.mark.spec("MS-MQQB 3.1.5.8.2#history")
def test_a_rejected_message_is_a_duplicate_the_next_time(world: World) -> None:
    world.create("admin")
    fields = {"admin_queue": r"OS:here\private$\admin", "acknowledgments": 4}
    world.engine.state.sends_insecure_nacks = True
    for _ in range(3):
        arrive(world, foreign("none", 7, **fields))
    assert len(world.messages(world.find(r".\private$\admin"))) == 1


# Sequences.


def sequence(world: World, *places: tuple[int, int], sequence_id: int = SEQUENCE) -> None:
    for number, previous in places:
        body = f"{number}".encode()
        packet = foreign("tx", number, body=body, transaction=place(number, previous, sequence_id))
        assert arrive(world, packet).taken == 1


@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "MS-MQQB 3.1.1.5")
@pytest.mark.spec("MS-MQQB 3.1.5.8.1#transactional", "MS-MQQB 3.1.5.8.6#new-sequence")
def test_transactional_messages_are_taken_once_and_in_order(world: World) -> None:
    number = world.create("tx", transactional=True)
    sequence(world, (1, 0), (2, 1), (2, 1), (1, 0), (4, 3), (3, 2), (7, 3), (6, 5), (8, 0))
    assert world.bodies(number) == [b"1", b"2", b"3", b"7", b"8"]
    sequence(world, (2, 1), (1, 0), (2, 1), sequence_id=SEQUENCE + 1)
    assert world.bodies(number) == [b"1", b"2", b"3", b"7", b"8", b"1", b"2"]
    sequence(world, (9, 8), (9, 0))
    assert len(world.bodies(number)) == 7, "the old sequence is over"


@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "MS-MQDMPR 3.1.1.5")
@pytest.mark.spec("MS-MQQB 3.1.5.8.6#rejects", "E57")
def test_what_is_not_accepted_is_counted_until_something_is(world: World) -> None:
    world.create("tx", transactional=True)
    sequence(world, (1, 0))
    (incoming,) = world.engine.state.sequences.all()
    world.tick(9)
    sequence(world, (1, 0), (5, 4))
    assert (incoming.rejects, incoming.last_access) == (2, START + 9)
    assert incoming.settled == (SEQUENCE, 1)
    sequence(world, (2, 1))
    assert (incoming.rejects, incoming.settled) == (0, (SEQUENCE, 2))


@pytest.mark.spec("MS-MQQB 3.1.1.5", "MS-MQDMPR 3.1.1.5")
@pytest.mark.spec("E58")
def test_each_sender_and_each_name_has_its_own_sequence(world: World) -> None:
    number = world.create("tx", transactional=True)
    other: dict[str, Any] = {"source_queue_manager": ELSEWHERE.bytes_le}
    for name, fields in (("tx", {}), ("tx", other), (r"OS:here\private$\TX", {})):
        packet = foreign(name, transaction=place(1), **fields)
        arrive(world, packet, packet)
    assert len(world.bodies(number)) == 3
    assert len(world.engine.state.sequences) == 3


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.1.3.1", "MS-MQQB 3.1.5.8.6")
@pytest.mark.spec("MS-MQQB 3.1.1.3.1#IncomingTxSequence")
def test_sequences_go_on_after_a_restart(world: World, checkpoint: bool) -> None:
    number = world.create("tx", transactional=True)
    sequence(world, (1, 0), (2, 1))
    world.receive(number)
    world.receive(number)
    if checkpoint:
        world.checkpoint()
    world.restart()
    sequence(world, (1, 0), (2, 1), (3, 2), (4, 3))
    assert world.bodies(number) == [b"3", b"4"]
    (incoming,) = world.engine.state.sequences.all()
    assert incoming.origin.address == ADDRESS
    assert incoming.key.source == THERE.bytes_le


@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "MS-MQQB 3.1.5.8.2")
@pytest.mark.spec("E57")
def test_a_rejected_transactional_message_has_its_place_in_the_sequence(world: World) -> None:
    number = world.create("tx", transactional=True, quota=1)
    sequence(world, (1, 0))
    arrive(world, foreign("tx", 2, body=bytes(2000), transaction=place(2)))
    sequence(world, (3, 2))
    assert world.bodies(number) == [b"1", b"3"]
    world.restart()
    sequence(world, (2, 1), (3, 2))
    assert world.bodies(number) == [b"1", b"3"]


@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "MS-MQQB 3.1.6.9")
def test_a_sequence_may_be_acknowledged_as_far_as_it_is_durable(world: World) -> None:
    world.create("tx", transactional=True)
    world.durable_at_once = False
    views = [MessageView(foreign("tx", n, transaction=place(n))) for n in (1, 2)]
    arrived = world.engine.arrivals.arrive(
        world.next_request(), [Arrival(view, ADDRESS, THERE.bytes_le) for view in views]
    )
    (incoming,) = arrived.sequences
    world.perform()
    assert ((incoming.sequence_id, incoming.number), incoming.settled) == ((SEQUENCE, 2), (0, 0))
    world.sync()
    assert incoming.settled == (SEQUENCE, 2)


# No room.


@pytest.mark.spec("MS-MQQB 3.1.5.8.2", "MS-MQQB 3.1.5.8.6", "MS-MQQB 3.1.5.8.8")
def test_when_the_store_is_full_nothing_has_happened_and_it_can_come_again(world: World) -> None:
    express, ordered = world.create("q"), world.create("tx", transactional=True)
    sequence(world, (1, 0))
    before = world.digest()
    packets = [
        foreign("q", 11, body=b"a", recoverable=True),
        foreign("q", 12, body=b"b"),
        foreign("tx", 13, body=b"2", transaction=place(2)),
    ]
    world.full = 1
    request = world.next_request()
    arrivals = [Arrival(MessageView(packet), ADDRESS, THERE.bytes_le) for packet in packets]
    assert world.engine.arrivals.arrive(request, arrivals).taken == 3
    world.perform()
    assert isinstance(world.answers[request], MessageQueueError)
    assert world.code(request) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert world.digest() == before
    (incoming,) = world.engine.state.sequences.all()
    assert (incoming.number, incoming.settled) == (1, (SEQUENCE, 1))
    arrive(world, *packets)
    assert world.bodies(express) == [b"a", b"b"]
    assert world.bodies(ordered) == [b"1", b"2"]


@pytest.mark.spec("MS-MQQB 3.1.5.8.8")
def test_what_the_computer_has_no_room_for_is_refused_with_all_behind_it() -> None:
    world = World(Limits(machine_quota=1, network_quota_percent=100))
    number = world.create("q")
    small, large = foreign("q", 1, body=b"a"), foreign("q", 2, body=bytes(2000))
    arrived = arrive(world, small, large, foreign("q", 3, body=b"c"))
    assert arrived.taken == 1
    assert "quota of 1 KB" in arrived.refusal
    assert world.bodies(number) == [b"a"]
    assert arrive(world, small).refusal == ""


@pytest.mark.spec("MS-MQQB 3.1.5.8.8", "MS-MQDMPR 3.1.1.1")
def test_nothing_is_taken_while_the_queue_manager_is_short_of_disk(world: World) -> None:
    number = world.create("q")
    world.engine.watch_resources(0)
    arrived = arrive(world, foreign("q"))
    assert (arrived.taken, bool(arrived.refusal)) == (0, True)
    assert "short of disk" in arrived.refusal
    world.engine.watch_resources(1 << 40)
    assert arrive(world, foreign("q")).taken == 1
    assert len(world.bodies(number)) == 1


# Anything.


def without_session(packet: object) -> bytes:
    """As the session hands it over."""
    data: bytes = packet.pack()  # type: ignore[attr-defined]
    if data[2] & 0x10:
        data = data[:2] + bytes([data[2] & ~0x10]) + data[3:-16]
    return data


@settings(max_examples=60)
@given(
    found=st.lists(user_messages().map(without_session), min_size=1, max_size=4),
    ours=st.sampled_from([b"", bytes(16), GUID.bytes_le]),
    forwards=st.booleans(),
)
@pytest.mark.spec("MS-MQQB 3.1.5.8", "MS-MQQB 3.1.5.8.2")
def test_any_message_is_taken_or_rejected_and_survives_a_restart(
    found: list[bytes], ours: bytes, forwards: bool
) -> None:
    world = World()
    world.create("q")
    world.create("tx", transactional=True)
    world.engine.arrivals.forwards = forwards
    world.engine.state.sends_insecure_nacks = True
    packets = [
        packet[:32] + ours + packet[48:] if ours else packet
        for packet in found
        if packet[16:32] != GUID.bytes_le
    ]
    arrived = arrive(world, *packets)
    assert (arrived.taken, arrived.refusal) == (len(packets), "")
    world.restart()


@pytest.mark.spec("MS-MQQB 3.1.5.8.2")
def test_a_message_for_another_queue_manager_under_our_own_name_is_rejected(world: World) -> None:
    number, ordered = world.create("q"), world.create("tx", transactional=True)
    world.engine.arrivals.forwards = True
    names = (r"private$\none", r"private$\q", r"private$\tx", "system$;deadxact")
    for ordinal, name in enumerate(names):
        packet = foreign(rf"OS:here\{name}", ordinal)
        packet = packet[:32] + ELSEWHERE.bytes_le + packet[48:]
        assert arrive(world, packet).taken == 1
    assert world.bodies(number) == world.bodies(ordered) == []
    dead = world.find(r".\system$;DEADXACT")
    assert world.bodies(dead) == []


@pytest.mark.limit("merq.engine.outgoing.OUTGOING_MAX")
@pytest.mark.spec("MS-MQQB 3.1.7.15")
def test_acknowledgments_to_more_destinations_than_there_may_be_are_dropped(
    world: World, lower: Lower
) -> None:
    lower("merq.engine.outgoing", "OUTGOING_MAX", 3)
    number = world.create("q")
    for ordinal in range(10):
        admin = rf"TCP:10.1.1.{ordinal}\private$\admin"
        arrive(world, foreign("q", ordinal, admin_queue=admin, acknowledgments=1))
    assert len(world.bodies(number)) == 10
    assert len(leaving(world)) == 3
    assert {view.message_class for views in leaving(world).values() for view in views} == {
        MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE
    }
