"""Clocks before 1970, after 2106, and ten years off: nothing is lost or raised, and it is said."""

from __future__ import annotations

from uuid import UUID

import pytest

from merq.engine.limits import Limits
from merq.engine.manager import TIME_MAX
from merq.host.clock import BEHIND_S, JUMP_S, ClockWatch
from merq.host.host import Host
from merq.host.news import NEWS_MAX, NewsBox
from merq.store.recovery import Identity
from merq.testing import SimulatedDisk
from merq.wire.headers import INFINITE
from unit.engine.engine_world import GUID, START, World
from unit.engine.foreign_world import ADMIN, REMOTE, arrive, commit, depart, foreign, leaving, place

TEN_YEARS_S = 10 * 365 * 86_400
ALL = 15


def work(world: World) -> None:
    """Something of everything that carries a time."""
    orders = world.engine.find_queue(r".\private$\orders").number
    ledger = world.engine.find_queue(r".\private$\ledger").number
    number = world.engine.state.numbers.last
    world.send(orders, recoverable=True, label="stays")
    world.send(orders, recoverable=True, time_to_be_received=INFINITE - 1)
    commit(world, b"to another")
    assert depart(world)
    packet = foreign("orders", number + 1, admin_queue=ADMIN, acknowledgments=ALL)
    arrive(world, packet, foreign("nowhere", number + 2, admin_queue=ADMIN, acknowledgments=ALL))
    sequence = (number + 1) << 32
    arrive(world, foreign("ledger", number + 3, transaction=place(1, sequence=sequence)))
    world.receive(ledger)
    world.create(f"made at {abs(world.now)}")
    world.checkpoint()
    world.restart()
    world.tick(1)


def stays(world: World) -> int:
    orders = world.engine.find_queue(r".\private$\orders").number
    return sum(view.label == "stays" for view in world.messages(orders))


@pytest.mark.parametrize(
    "jumps",
    [
        (-TEN_YEARS_S,),
        (TEN_YEARS_S,),
        (-TEN_YEARS_S, 2 * TEN_YEARS_S, -TEN_YEARS_S),
        (-START - 1,),
        (-START - TEN_YEARS_S,),
        (TIME_MAX - START,),
        (TIME_MAX + 1 - START,),
        (0xFFFFFFFF + TEN_YEARS_S - START,),
        (0xFFFFFFFF + TEN_YEARS_S - START, -0xFFFFFFFF - TEN_YEARS_S - 10, START),
    ],
)
def test_work_goes_on_whatever_the_clock_shows(jumps: tuple[int, ...]) -> None:
    world = World()
    world.create("orders")
    world.create("ledger", transactional=True)
    work(world)
    for count, jump in enumerate(jumps, 2):
        world.tick(jump)
        work(world)
        assert stays(world) == count
        assert world.engine.state.aside.count == 0
    assert f"DIRECT={REMOTE.removeprefix('DIRECT=')}".lower() in leaving(world)


def test_what_is_sent_when_time_stands_still_does_not_expire_at_once() -> None:
    world = World()
    orders = world.create("orders")
    world.tick(0xFFFFFFFF + TEN_YEARS_S)
    world.send(orders, recoverable=True, time_to_be_received=60)
    world.tick(10)
    assert len(world.messages(orders)) == 1


def test_identifiers_of_sequences_grow_though_the_clock_goes_back() -> None:
    world = World()
    commit(world, b"before")
    before = world.engine.state.last_sequence_id
    world.tick(-TEN_YEARS_S)
    world.restart()
    commit(world, b"after")
    assert world.engine.state.last_sequence_id > before


def test_a_jump_of_the_clock_is_said_once() -> None:
    news = NewsBox()
    watch = ClockWatch(news)
    watch.saw(START, 100.0)
    watch.saw(START + 5, 105.0)
    assert news.take() == []
    watch.saw(START + 6 - TEN_YEARS_S, 106.0)
    watch.saw(START + 7 - TEN_YEARS_S, 107.0)
    (back,) = news.take()
    assert "back" in back.text
    assert back.facts["by_s"] == -TEN_YEARS_S
    watch.saw(START + 8, 108.0)
    (forward,) = news.take()
    assert "forward" in forward.text
    watch.saw(START + 9 + JUMP_S, 109.0)
    assert news.take() == []


@pytest.mark.parametrize("wall", [-1, TIME_MAX + 1])
def test_a_clock_outside_of_what_messages_can_say_is_said_once(wall: int) -> None:
    news = NewsBox()
    watch = ClockWatch(news)
    for second in range(3):
        watch.saw(wall, float(second))
    (said,) = news.take()
    assert "1970 to 2106" in said.text
    watch.saw(START, 3.0)
    assert [each.text for each in news.take()] != []
    watch.saw(wall, 4.0)
    assert "1970 to 2106" in news.take()[0].text


@pytest.mark.parametrize("created", [-5, 0xFFFFFFFF + 5])
def test_a_store_is_made_and_opened_again_whatever_the_clock_shows(created: int) -> None:
    disk = SimulatedDisk()
    for now in (created, START):
        host = Host(disk, Identity(store_id=GUID, created=created), "here", Limits())
        host.start(now, UUID(int=1))
        host.close()
        disk = disk.crash("power")


def test_a_start_with_a_clock_behind_the_store_is_said() -> None:
    disk = SimulatedDisk()
    host = Host(disk, Identity(store_id=GUID, created=START), "here", Limits())
    host.start(START, UUID(int=1))
    assert host.news.take() == []
    host.close()
    for now, is_said in ((START - BEHIND_S, False), (START - TEN_YEARS_S, True)):
        disk = disk.crash("power")
        host = Host(disk, Identity(store_id=GUID, created=START), "here", Limits())
        host.start(now, UUID(int=1))
        assert [("behind" in each.text) for each in host.news.take()] == [True] * is_said
        host.close()


def test_of_more_news_than_anybody_takes_the_latest_are_kept() -> None:
    news = NewsBox()
    for number in range(NEWS_MAX + 5):
        news.tell(str(number))
    assert [each.text for each in news.take()] == [str(each) for each in range(5, NEWS_MAX + 5)]
