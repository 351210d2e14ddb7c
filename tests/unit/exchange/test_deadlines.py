"""When things are due, against a list that is looked through."""

from __future__ import annotations

from random import Random
from weakref import ref

from merq.exchange.deadlines import STALE_MIN, Deadlines


def test_what_is_due_comes_in_order_and_once() -> None:
    deadlines: Deadlines[str] = Deadlines()
    for item, due in (("b", 2.0), ("a", 1.0), ("c", 3.0), ("d", 2.0)):
        deadlines.set(item, due)
    assert deadlines.next() == 1.0
    assert deadlines.take(2.5) == ["a", "b", "d"]
    assert deadlines.take(2.5) == []
    assert deadlines.next() == 3.0
    assert deadlines


def test_what_is_too_much_at_once_stays_due() -> None:
    deadlines: Deadlines[str] = Deadlines()
    for item in "abc":
        deadlines.set(item, 1.0)
    assert deadlines.take(2.0, 2) == ["a", "b"]
    assert deadlines.take(2.0, 2) == ["c"]
    assert deadlines.take(2.0, 2) == []


def test_a_time_that_is_put_off_again_and_again_takes_no_more_room() -> None:
    deadlines: Deadlines[str] = Deadlines()
    for second in range(1000):
        deadlines.set("a", second + 30.0)
    assert len(deadlines) == 1
    assert deadlines.next() == 1029.0


def test_a_time_that_is_taken_back_is_not_due() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("a", 1.0)
    deadlines.set("a", None)
    assert deadlines.next() is None
    assert not deadlines
    assert deadlines.take(9.0) == []


def test_what_is_due_no_more_is_let_go_at_once() -> None:
    class Thing:
        """Something that takes memory."""

    deadlines: Deadlines[Thing] = Deadlines()
    things = [Thing() for _ in range(1000)]
    for thing in things:
        deadlines.set(thing, 60.0)
    known = [ref(thing) for thing in things]
    for thing in things:
        deadlines.set(thing, None)
    del thing, things
    assert not any(each() for each in known), "their time has not come"
    assert len(deadlines) <= 2 * STALE_MIN


def test_it_says_what_a_list_would_say() -> None:
    chance = Random(7)  # noqa: S311
    deadlines: Deadlines[int] = Deadlines()
    plain: dict[int, float] = {}
    now = 0.0
    for _ in range(20_000):
        item = chance.randrange(50)
        match chance.randrange(4):
            case 0:
                deadlines.set(item, None)
                plain.pop(item, None)
            case 1:
                now += chance.random()
                due = sorted(each for each, at in plain.items() if at <= now)
                assert sorted(deadlines.take(now)) == due
                for each in due:
                    del plain[each]
            case _:
                plain[item] = now + chance.randrange(10)
                deadlines.set(item, plain[item])
        assert deadlines.next() == min(plain.values(), default=None)
        assert len(deadlines) <= 500
