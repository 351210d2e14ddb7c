"""Changes: durable whole, in their order, and only then told."""

from __future__ import annotations

import pytest

from merq.engine import records
from merq.engine.changes import Answer, Change
from merq.engine.records import Entry
from unit.engine.engine_world import World


def test_a_change_without_entries_is_ready_and_one_with_entries_when_they_are_durable() -> None:
    assert Change().is_ready(0)
    change = Change()
    change.entries.append(Entry(records.REMOVE, b""))
    assert not change.is_ready(1 << 60)
    change.end = 100
    assert not change.is_ready(99)
    assert change.is_ready(100)


def test_changes_happen_in_their_order_even_if_a_later_one_needs_no_disk() -> None:
    world = World()
    number = world.create("orders")
    world.durable_at_once = False
    requests = [
        world.send(number, body=bytes([each]), recoverable=each % 2 == 0) for each in range(6)
    ]
    assert not any(map(world.answered, requests))
    world.sync()
    assert all(map(world.answered, requests))
    assert world.bodies(number) == [bytes([each]) for each in range(6)]


def test_a_change_becomes_durable_by_what_was_written_not_by_what_comes_after() -> None:
    world = World()
    number = world.create("orders")
    world.durable_at_once = False
    first = world.send(number, recoverable=True)
    second = world.send(number, recoverable=True)
    world.engine.durable(world.log[-2].end)
    world.perform()
    assert world.answered(first)
    assert not world.answered(second)


def test_a_change_that_failed_does_not_hold_up_those_behind_it() -> None:
    world = World()
    number = world.create("orders")
    world.durable_at_once = False
    world.full = 1
    failed = world.send(number, recoverable=True, body=b"1")
    good = world.send(number, recoverable=True, body=b"2")
    express = world.send(number, body=b"3")
    assert world.answered(failed)
    assert not world.answered(good)
    world.sync()
    assert world.answered(express)
    assert world.bodies(number) == [b"2", b"3"]


def test_writing_comes_before_answering_among_the_effects() -> None:
    world = World()
    number = world.create("orders")
    world.engine.send(1000, number, [world.packet(number, recoverable=True)])
    (effect,) = world.engine.take_effects()
    assert isinstance(effect, Change)
    assert effect.answers[0].request == 1000
    assert world.engine.take_effects() == []
    world.engine.send(1001, number, [world.packet(number)])
    assert world.engine.take_effects() == []
    world._write(effect)
    world._become_durable()
    told = world.engine.take_effects()
    assert [each.request for each in told if isinstance(each, Answer)] == [1000, 1001]


@pytest.mark.parametrize("recoverable", [False, True])
def test_only_what_is_recoverable_is_written(recoverable: bool) -> None:
    world = World()
    number = world.create("orders")
    world.send(number)
    frames = len(world.log)
    world.send(number, recoverable=recoverable)
    world.receive(number)
    world.receive(number)
    assert len(world.log) == frames + 2 * recoverable


def test_packets_in_the_log_are_needed_exactly_while_their_messages_live() -> None:
    world = World()
    number = world.create("orders", journaling=True)
    world.send(number, recoverable=True, body=b"a")
    world.send(number, body=b"express")
    assert len(world.packets.kept) == 1
    world.receive(number)
    assert len(world.packets.kept) == 1, "the copy in the journal"
    world.purge(number | 0x80000000)
    assert world.packets.kept == {}
    world.restart()
    assert world.packets.kept == {}
