"""How often a message was moved is counted with it, and survives what it survives itself."""

from __future__ import annotations

from uuid import UUID

import pytest

from merq.engine import records
from merq.engine.poison import POISON
from merq.engine.queue import Note
from merq.engine.replay import replay
from merq.model.delivered import Delivered
from merq.model.selecting import ByLookup
from unit.engine.engine_world import World

NAME = UUID(int=0xABCD)


def orders(world: World, *, transactional: bool = True) -> tuple[int, int, int]:
    """A queue with a message, its subqueue, and the message's lookup identifier."""
    number = world.create("orders", transactional=transactional)
    (only,) = world.fill(number, b"a")
    return number, world.subqueue(number, "later"), only


def moves(world: World, number: int) -> int:
    """How often the first message was moved, as a reader is told."""
    seen = world.answers[world.peek(number)]
    assert isinstance(seen, Delivered), seen
    return seen.moves


@pytest.mark.spec("MS-MQRR 2.2.5.3", "MS-MQDMPR 3.1.7.1.16")
@pytest.mark.spec("E79")
def test_every_move_is_counted_there_and_back(world: World) -> None:
    number, later, only = orders(world)
    assert moves(world, number) == 0
    world.move(number, only, later)
    assert moves(world, later) == 1
    world.move(later, only, number)
    assert moves(world, number) == 2


@pytest.mark.parametrize("checkpoint", [False, True])
def test_the_count_survives_restarts(world: World, checkpoint: bool) -> None:
    source, target, only = orders(world)
    for times in range(1, 4):
        world.move(source, only, target)
        source, target = target, source
        if checkpoint:
            world.checkpoint()
        world.restart()
        assert moves(world, source) == times
        target = world.subqueue(source, "later") if times % 2 == 0 else target


def test_a_move_that_was_not_durable_is_not_counted(world: World) -> None:
    number, later, only = orders(world)
    world.durable_at_once = False
    world.move(number, only, later)
    world.restart()
    assert moves(world, number) == 0


def test_a_move_that_finds_no_room_is_not_counted(world: World) -> None:
    number, later, only = orders(world)
    world.full = 1
    world.move(number, only, later)
    assert moves(world, number) == 0
    world.move(number, only, later)
    assert moves(world, later) == 1


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.spec("MS-MQDMPR 3.1.4.4", "MS-MQDMPR 3.1.4.5")
def test_a_move_in_a_transaction_counts_when_that_commits(world: World, prepared: bool) -> None:
    number, later, only = orders(world)
    for end in (world.abort, world.commit):
        transaction = world.begin()
        world.move(number, only, later, transaction)
        if prepared:
            world.prepare(transaction, NAME)
        end(transaction)
        world.restart()
        if end == world.abort:
            later = world.subqueue(number, "later")
            assert moves(world, number) == 0
            assert world.engine.queue(number).notes[only] == Note(aborts=1)
    assert moves(world, later) == 1
    assert world.engine.queue(later).notes[only] == Note(aborts=1, moves=1)


def test_the_count_stays_when_more_becomes_known_of_the_message(world: World) -> None:
    number, later, only = orders(world)
    world.move(number, only, later)
    for checkpoint in (False, True):
        transaction = world.begin()
        world.receive(later, ByLookup(only), transaction=transaction)
        world.abort(transaction)
        if checkpoint:
            world.checkpoint()
        world.restart()
        assert world.engine.queue(later).notes[only] == Note(aborts=1 + checkpoint, moves=1)


@pytest.mark.spec("E79")
def test_being_set_aside_as_poison_is_a_move(world: World) -> None:
    number = world.create("orders", transactional=True, poison_after=1)
    (only,) = world.fill(number, b"a")
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    world.abort(transaction)
    aside = world.engine.queue(number).subqueues[POISON].number
    for _ in range(2):
        assert world.engine.queue(aside).notes[only] == Note(aborts=1, moves=1)
        world.restart()


def test_an_express_message_is_counted_as_long_as_it_lives(world: World) -> None:
    number = world.create("orders")
    world.send(number, body=b"a")
    (only,) = world.lookup_ids(number)
    later = world.subqueue(number, "later")
    world.move(number, only, later)
    assert moves(world, later) == 1
    world.receive(later)
    assert world.engine.queue(later).notes == {}


def test_what_older_stores_wrote_is_read_and_their_moves_are_counted(world: World) -> None:
    number, later, only = orders(world)
    world.move(number, only, later)
    # As it was written before moves were counted: an abort behind the move, without a word of it.
    old = records.note(records.NoteData(later, 3, only, purged=False, dead_letter="", kept=False))
    replay(world.engine.state, old.kind, memoryview(old.whole), 0)
    assert len(old.whole) == 17
    assert world.engine.queue(later).notes[only] == Note(aborts=3, moves=1)


@pytest.mark.parametrize("moved", [0, 1, 0xFFFFFFFF])
@pytest.mark.parametrize("dead_letter", ["", r".\private$\häuser"])
def test_a_note_is_read_as_it_was_written(moved: int, dead_letter: str) -> None:
    data = records.NoteData(7, 2, 1 << 60, purged=True, dead_letter=dead_letter, kept=False)
    data = data._replace(moves=moved)
    assert records.read_note(records.note(data).whole) == data
