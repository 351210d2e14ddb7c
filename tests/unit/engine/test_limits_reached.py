"""What happens at limits of the engine that no other test comes near."""

from __future__ import annotations

import pytest

from merq.engine import outgoing
from merq.engine.claims import FENCED_MAX
from merq.engine.history import Recent
from merq.engine.incoming import Incoming, Sequences
from merq.engine.outgoing import PATHS_MAX
from merq.engine.packet_names import read_direct_name
from merq.engine.sequence_keys import Origin, SequenceKey
from merq.hresult import HResult
from merq.model.names import DirectName, parse_format_name
from unit.engine.bulk_world import BulkWorld, filled
from unit.engine.conftest import Lower
from unit.engine.engine_world import World, refused
from unit.engine.foreign_world import arrive, foreign

FULL = HResult.MQ_ERROR_INSUFFICIENT_RESOURCES


@pytest.mark.limit("merq.engine.administration.QUEUES_MAX")
def test_there_are_only_so_many_queues(world: World, lower: Lower) -> None:
    lower("merq.engine.administration", "QUEUES_MAX", 18)
    names = ("a", "b")
    numbers = [world.create(name) for name in names]
    assert "18 queues already" in refused(FULL, lambda: world.create("c"))
    world.fill(numbers[0], b"still")
    assert world.bodies(numbers[0]) == [b"still"]
    world.delete(numbers[1])
    world.create("c")


@pytest.mark.limit("merq.engine.moving.SUBQUEUES_MAX")
def test_there_are_only_so_many_subqueues(world: World, lower: Lower) -> None:
    lower("merq.engine.moving", "SUBQUEUES_MAX", 2)
    number = world.create("orders")
    below = world.subqueue(number, "a")
    world.subqueue(number, "b")
    assert "subqueues already" in refused(FULL, lambda: world.subqueue(number, "c"))
    world.fill(number, b"x")
    world.move(number, world.lookup_ids(number)[0], below)
    assert world.bodies(below) == [b"x"]


@pytest.mark.limit("merq.engine.transactions.TRANSACTIONS_MAX")
def test_only_so_many_transactions_are_under_way(world: World, lower: Lower) -> None:
    lower("merq.engine.transactions", "TRANSACTIONS_MAX", 2)
    first, _ = world.begin(), world.begin()
    assert "end some" in refused(FULL, world.begin)
    world.abort(first)
    number = world.create("orders", transactional=True)
    again = world.begin()
    world.send(number, again, body=b"x")
    world.commit(again)
    assert world.bodies(number) == [b"x"]


@pytest.mark.limit("merq.engine.arriving.NAMES_MAX")
def test_names_of_queues_here_are_found_again_after_they_were_forgotten(
    world: World, lower: Lower
) -> None:
    lower("merq.engine.arriving", "NAMES_MAX", 2)
    names = ["a", "b", "c", "d"]
    numbers = [world.create(name) for name in names]
    for ordinal in range(3):
        for at, name in enumerate(names):
            arrive(world, foreign(name, 10 * ordinal + at))
    assert [len(world.bodies(number)) for number in numbers] == [3, 3, 3, 3]
    assert len(world.engine.arrivals._found) <= 2


@pytest.mark.limit("merq.engine.incoming.ENDED_MAX")
def test_only_so_many_earlier_sequences_are_remembered(lower: Lower) -> None:
    lower("merq.engine.incoming", "ENDED_MAX", 3)
    sequences = Sequences()
    incoming = Incoming(sequences.key_of(bytes(16), 3, b"\x10\0\0\0"))
    for sequence in range(1, 7):
        incoming.sequence_id, incoming.number = sequence, 5
        sequences.ended(incoming)
    assert [sequences.arrived(incoming, sequence) for sequence in range(1, 7)] == [0, 0, 0, 5, 5, 5]


@pytest.mark.limit("merq.engine.claims.FENCED_MAX")
def test_of_many_former_readers_the_first_is_forgotten() -> None:
    world = BulkWorld()
    number = filled(world)
    for reader in range(FENCED_MAX + 3):
        world.reserve(number, owner=f"reader {reader}")
        world.tick(100)
    (claim,) = world.queue(number).claims.values()
    assert len(claim.fenced) == FENCED_MAX
    refused(HResult.MQ_ERROR_STALE_HANDLE, lambda: world.reserve(number, owner="reader 9"))
    assert world.reserve(number, owner="reader 0").messages, "it is forgotten that it was one"


@pytest.mark.limit("merq.engine.outgoing.PATHS_MAX")
def test_paths_of_many_names_are_not_all_remembered(world: World) -> None:
    number = world.create("q1")
    world.send_to(r"DIRECT=OS:.\private$\q1", body=b"x")
    for each in range(PATHS_MAX + 20):
        name = parse_format_name(rf"DIRECT=OS:here\private$\q{each}")
        assert isinstance(name, DirectName)
        outgoing._path_of(name)
    assert outgoing._path_of.cache_info().currsize == PATHS_MAX
    world.send_to(r"DIRECT=OS:.\private$\q1", body=b"y")
    assert world.bodies(number) == [b"x", b"y"]


@pytest.mark.limit("merq.engine.departing.SEQUENCES_MAX")
def test_a_sequence_that_was_forgotten_is_known_again_when_it_is_sent_again(
    world: World, lower: Lower
) -> None:
    lower("merq.engine.departing", "SEQUENCES_MAX", 2)
    departures = world.engine.departures
    queue = world.create("here")
    for sequence in range(1, 6):
        departures._know(sequence, world.engine.queue(queue))
    assert list(departures._sequences) == [4, 5]
    departures._know(1, world.engine.queue(queue))
    assert list(departures._sequences) == [5, 1]


@pytest.mark.limit("merq.engine.history.HISTORY_MAX")
def test_beyond_all_identifiers_the_network_with_the_most_forgets_its_oldest(lower: Lower) -> None:
    lower("merq.engine.history", "HISTORY_MAX", 10)
    lower("merq.engine.history", "HISTORY_RELIEF", 2)
    recent, much, little = Recent(), bytes(16), bytes(range(16))
    for identity in range(8):
        recent.add(much, identity, 1, "10.0.0.1")
    for identity in range(3):
        recent.add(little, identity, 1, "10.0.0.2")
    assert len(recent) == 9
    known = [recent.seen(much, each, 1, "10.0.0.1") for each in range(4)]
    assert known == [False, False, True, True]
    assert all(recent.seen(little, each, 1, "10.0.0.2") for each in range(3))


@pytest.mark.limit("merq.engine.history.REJECTIONS_MAX")
def test_of_rejected_messages_only_the_last_are_known(lower: Lower) -> None:
    lower("merq.engine.history", "REJECTIONS_MAX", 2)
    recent = Recent()
    for identity in range(3):
        recent.reject(bytes(16), identity)
    assert [recent.seen(bytes(16), each, 1) for each in range(3)] == [False, True, True]
    assert len(recent) == 0


@pytest.mark.limit("merq.engine.incoming.IDLE_LOOKS_MAX")
def test_only_so_many_idle_sequences_are_looked_at_for_one_without_messages(lower: Lower) -> None:
    """The first that is forgotten is the idlest then, though a message of it is in a queue."""
    lower("merq.engine.incoming", "SEQUENCES_PER_NETWORK_MAX", 3)
    for looks, forgotten in ((3, 2), (2, 0)):
        lower("merq.engine.incoming", "IDLE_LOOKS_MAX", looks)
        sequences = Sequences()
        kept = [
            sequences.match(
                SequenceKey(bytes([at + 1]) * 16, "7:os:here"),
                1 << 32 | 1,
                Origin("10.0.0.1", bytes([at + 1]) * 16),
                100,
            )
            for at in range(4)
        ]
        for each in kept[:3]:
            assert sequences.keep(each, lambda _: True) == []
        gone = sequences.keep(kept[3], lambda each, kept=kept: each in kept[:2])  # type: ignore[misc]
        assert gone == [kept[forgotten]]


@pytest.mark.limit("merq.engine.packet_names.NAME_BYTES_MAX")
def test_a_name_that_is_too_long_is_not_read(lower: Lower) -> None:
    name = r"TCP:10.0.0.1\private$\q".encode("utf-16-le")
    lower("merq.engine.packet_names", "NAME_BYTES_MAX", len(name))
    assert read_direct_name(name) is not None
    assert read_direct_name(name + "q".encode("utf-16-le")) is None
