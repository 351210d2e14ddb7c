"""Which sequences of other queue managers are kept, for how long, and which go first."""

from __future__ import annotations

from uuid import UUID

import pytest

from merq.engine.arriving import Arrival
from merq.engine.departing import SKIPPED_S
from merq.engine.incoming import PEER_IDLE_S, SEQUENCE_IDLE_S
from merq.errors import MessageQueueError
from merq.model.selecting import ByLookup
from merq.wire.view import MessageView
from unit.engine.conftest import Lower
from unit.engine.engine_world import START, World
from unit.engine.foreign_world import ADDRESS, SEQUENCE, THERE, arrive, foreign, leaving, place


def sequence(world: World, *places: tuple[int, int]) -> None:
    """Messages of one sequence come, each by itself."""
    for number, previous in places:
        body = f"{number}".encode()
        arrive(world, foreign("tx", number, body=body, transaction=place(number, previous)))


def stranger(number: int) -> bytes:
    """The first message of somebody who was never here."""
    source = UUID(int=0xF000 + number).bytes_le
    return foreign("tx", transaction=place(1), source_queue_manager=source)


def senders(world: World) -> set[bytes]:
    return {each.key.source for each in world.engine.state.sequences.all()}


@pytest.mark.limit("merq.engine.incoming.SEQUENCES_MAX")
def test_the_idlest_sequence_goes_when_so_many_are_kept(world: World, lower: Lower) -> None:
    lower("merq.engine.incoming", "SEQUENCES_MAX", 2)
    number = world.create("tx", transactional=True)
    sequence(world, (1, 0))
    for each in range(5):
        assert arrive(world, stranger(each), address=f"10.9.9.{each}").refusal == ""
    assert len(world.engine.state.sequences) == 2
    assert len(world.bodies(number)) == 6
    world.restart()
    assert len(world.engine.state.sequences) == 2, "the log knows which were forgotten"


@pytest.mark.limit("merq.engine.incoming.SEQUENCES_PER_NETWORK_MAX")
@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_network_that_has_so_many_loses_its_own(
    world: World, lower: Lower, *, checkpoint: bool
) -> None:
    lower("merq.engine.incoming", "SEQUENCES_PER_NETWORK_MAX", 3)
    number = world.create("tx", transactional=True)
    sequence(world, (1, 0))
    for each in range(9):
        arrive(world, stranger(each), address=f"2001:db8::{each}")
    assert len(world.engine.state.sequences) == 4
    if checkpoint:
        world.checkpoint()
    world.restart()
    assert len(world.engine.state.sequences) == 4
    assert THERE.bytes_le in senders(world)
    sequence(world, (1, 0), (2, 1))
    assert world.bodies(number).count(b"1") == 1, "who was there before goes on"
    assert b"2" in world.bodies(number)


def test_a_sequence_with_messages_in_a_queue_goes_last(world: World, lower: Lower) -> None:
    lower("merq.engine.incoming", "SEQUENCES_PER_NETWORK_MAX", 3)
    number = world.create("tx", transactional=True)
    arrive(world, *(stranger(each) for each in range(3)))
    world.receive(number)  # of the first
    world.receive(number)  # of the second
    world.tick(1)
    arrive(world, stranger(1))  # the second is not the idlest any more: it came again
    arrive(world, stranger(7))
    arrive(world, stranger(8))
    assert {UUID(bytes_le=each).int - 0xF000 for each in senders(world)} == {2, 7, 8}


def test_who_has_sent_more_than_once_goes_after_who_has_not(world: World, lower: Lower) -> None:
    lower("merq.engine.incoming", "SEQUENCES_PER_NETWORK_MAX", 3)
    number = world.create("tx", transactional=True)
    sequence(world, (1, 0), (2, 1))
    for _ in range(2):
        world.receive(number)
    for each in range(9):
        world.tick(each + 1)
        arrive(world, stranger(each))
    assert THERE.bytes_le in senders(world)


def test_what_had_to_go_is_there_again_if_what_came_could_not_be_written(
    world: World, lower: Lower
) -> None:
    lower("merq.engine.incoming", "SEQUENCES_PER_NETWORK_MAX", 2)
    number = world.create("tx", transactional=True)
    arrive(world, stranger(0), stranger(1))
    before = senders(world)
    world.full = 1
    request = world.next_request()
    packets = [stranger(each) for each in range(2, 7)]
    arrivals = [Arrival(MessageView(packet), ADDRESS, THERE.bytes_le) for packet in packets]
    world.engine.arrivals.arrive(request, arrivals)
    world.perform()
    assert isinstance(world.answers[request], MessageQueueError)
    assert senders(world) == before
    arrive(world, stranger(0), stranger(1))
    assert len(world.bodies(number)) == 2, "those are known still"
    arrive(world, *packets)
    assert len(world.bodies(number)) == 7, "and the others were never here"


def test_a_rejection_that_could_not_be_written_comes_again(world: World) -> None:
    packet = foreign("nowhere", transaction=place(1))
    world.full = 1
    request = world.next_request()
    arrival = Arrival(MessageView(packet), ADDRESS, THERE.bytes_le)
    world.engine.arrivals.arrive(request, [arrival])
    world.perform()
    assert isinstance(world.answers[request], MessageQueueError)
    assert leaving(world) == {}
    arrive(world, packet)
    assert [len(views) for views in leaving(world).values()] == [1]


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.spec("E137")
def test_what_was_rejected_is_not_delivered_after_a_restart(
    world: World, *, checkpoint: bool
) -> None:
    arrive(world, foreign("later", transaction=place(1)))
    if checkpoint:
        world.checkpoint()
    world.restart()
    number = world.create("later", transactional=True)
    arrive(world, foreign("later", transaction=place(1)))
    assert world.bodies(number) == [], "its sender is told that it was rejected"
    arrive(world, foreign("later", 2, transaction=place(2), body=b"2"))
    assert world.bodies(number) == [b"2"]
    world.restart()
    (incoming,) = world.engine.state.sequences.all()
    assert incoming.settled == (SEQUENCE, 2)


@pytest.mark.spec("E136")
def test_of_more_peers_than_there_may_be_one_that_was_silent_gives_way(
    world: World, lower: Lower
) -> None:
    lower("merq.engine.incoming", "PEERS_PER_SENDER_MAX", 3)
    world.create("tx", transactional=True)

    def come(number: int) -> set[str]:
        packet = foreign("tx", number, transaction=place(1, sequence=SEQUENCE + number))
        arrive(world, packet, address=f"10.5.5.{number}")
        return {each.origin.address for each in world.engine.state.sequences.all()}

    come(1)
    assert come(2) == {"10.5.5.1", "10.5.5.2"}
    assert come(3) == {"10.5.5.1", "10.5.5.2", "10.5.5.3"}
    assert come(4) == {"10.5.5.1", "10.5.5.2", "10.5.5.4"}, "the last one, if all were heard of"
    world.tick(PEER_IDLE_S + 1)
    assert come(5) == {"10.5.5.1", "10.5.5.4", "10.5.5.5"}, "else the idlest, but not the first"
    for is_checkpointed in (False, True):
        if is_checkpointed:
            world.checkpoint()
        world.restart()
        world.tick(PEER_IDLE_S + 1)
        found = come(6 + is_checkpointed)
        assert len(found) == 3
        assert "10.5.5.1" in found, "who was first is known after a restart, too"


def test_only_so_many_sequences_are_looked_at_for_one_without_messages(
    world: World, lower: Lower
) -> None:
    lower("merq.engine.incoming", "SEQUENCES_PER_NETWORK_MAX", 4)
    lower("merq.engine.incoming", "IDLE_LOOKS_MAX", 2)
    number = world.create("tx", transactional=True)
    arrive(world, *(stranger(each) for each in range(4)))
    last = list(world.engine.state.queues[number].positions)[-1]
    world.receive(number, ByLookup(last.lookup_id))
    arrive(world, stranger(9))
    assert {UUID(bytes_le=each).int - 0xF000 for each in senders(world)} == {1, 2, 3, 9}


@pytest.mark.parametrize("checkpoint", [False, True])
def test_senders_whose_messages_are_gone_leave_no_number(lower: Lower, *, checkpoint: bool) -> None:
    lower("merq.engine.source_numbers", "SOURCES_LOOKED_AT_MIN", 5)
    world = World()
    number = world.create("q")
    packets = [
        foreign("q", source_queue_manager=UUID(int=each + 1).bytes_le, recoverable=True)
        for each in range(40)
    ]
    for packet in packets:
        arrive(world, packet)
    for _ in range(38):
        world.receive(number)
    world.tick(1)
    state = world.engine.state
    assert len(set(state.sources.listed())) <= 3
    ids = [packet[16:32] + packet[56:60] for packet in packets]
    for _ in range(2):
        for each in (38, 39):
            key = state.known_key_of(ids[each])
            assert key is not None
            assert state.queues[number].by_message_id.get(key) is not None
        assert state.known_key_of(ids[0]) is None
        if checkpoint:
            world.checkpoint()
        world.restart()
        state = world.engine.state
    arrive(world, foreign("q", 2, source_queue_manager=UUID(int=99).bytes_le))
    assert len(state.sources.listed()) <= 40
    assert state.known_key_of(UUID(int=99).bytes_le + bytes(4)) is not None


@pytest.mark.spec("MS-MQDMPR 3.1.1.5", "E135")
def test_a_sequence_of_which_nothing_came_for_very_long_is_forgotten(world: World) -> None:
    world.create("tx", transactional=True)
    arrivals = world.engine.arrivals
    sequence(world, (1, 0))
    arrivals.forget_idle()
    step = SKIPPED_S
    now = 0
    while now <= SEQUENCE_IDLE_S + step:
        assert len(world.engine.state.sequences) == 1
        now += step
        world.engine.tick(START + now)
    arrivals.forget_idle()
    world.perform()
    assert len(world.engine.state.sequences) == 0
    world.restart()
    assert len(world.engine.state.sequences) == 0


@pytest.mark.parametrize("years", [10, -10])
@pytest.mark.spec("E135")
def test_a_clock_that_jumps_makes_nobody_forget(world: World, years: int) -> None:
    world.create("tx", transactional=True)
    arrivals = world.engine.arrivals
    sequence(world, (1, 0))
    arrivals.forget_idle()
    world.engine.tick(START + years * 366 * 24 * 3600)
    arrivals.forget_idle()
    assert len(world.engine.state.sequences) == 1
    world.restart()
    world.engine.arrivals.forget_idle()
    assert len(world.engine.state.sequences) == 1


@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "E78")
def test_a_sequence_that_began_and_ended_with_what_could_not_be_written_comes_again(
    world: World,
) -> None:
    number = world.create("tx", transactional=True)
    sequence(world, (1, 0))
    packets = [
        foreign("tx", each, transaction=place(1, sequence=SEQUENCE + each)) for each in range(2, 6)
    ]
    world.full = 1
    request = world.next_request()
    arrivals = [Arrival(MessageView(packet), ADDRESS, THERE.bytes_le) for packet in packets]
    world.engine.arrivals.arrive(request, arrivals)
    world.perform()
    assert isinstance(world.answers[request], MessageQueueError)
    for packet in packets:
        arrive(world, packet)
    assert len(world.bodies(number)) == 5
