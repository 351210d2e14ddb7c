"""Message ids and expiries against models that anyone can believe: dictionaries."""

from __future__ import annotations

from array import array

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kit.shares import share_of
from merq.engine.expiry import DUE_MAX, Expiries
from merq.engine.identifiers import MessageIds

NEVER = 0xFFFFFFFF
FIRST_SECOND = 1_700_000_000

# Few keys, so that they meet, of senders whose keys lie far apart.
keys = st.builds(
    lambda source, ordinal: source << 32 | ordinal, st.integers(1, 4), st.integers(0, 40)
)
lookup_ids = st.builds(
    lambda lane, number: lane << 56 | number, st.integers(0, 7), st.integers(0, 40)
)
seconds = st.integers(FIRST_SECOND, FIRST_SECOND + 30)
queues = st.sampled_from([1, 2, 0xFFFFFFFF])


class Identifiers(RuleBasedStateMachine):
    """Every operation on both, and the same answers from both."""

    run_rows = 4

    def __init__(self) -> None:
        super().__init__()
        self.real = MessageIds(run_rows=self.run_rows)
        self.model: dict[int, int] = {}
        self.ordinal = 100

    @rule(key=keys, value=lookup_ids)
    def add(self, key: int, value: int) -> None:
        assert self.real.add(key, value) == self.model.get(key)
        self.model[key] = value

    @rule(source=st.integers(1, 4), count=st.integers(1, 30))
    def send(self, source: int, count: int) -> None:
        """The keys of one sender grow."""
        for _ in range(count):
            self.ordinal += 1
            self.real.add(source << 32 | self.ordinal, self.ordinal)
            self.model[source << 32 | self.ordinal] = self.ordinal

    def add_many_to_both(self, some: list[tuple[int, int]]) -> None:
        """The model takes one after the other."""
        replaced = []
        for key, value in some:
            if key in self.model:
                replaced.append((key, self.model[key]))
            self.model[key] = value
        assert self.real.add_many([key for key, _ in some], [one for _, one in some]) == replaced

    @rule(some=st.lists(st.tuples(keys, lookup_ids), min_size=1, max_size=40))
    def add_many(self, some: list[tuple[int, int]]) -> None:
        self.add_many_to_both(some)

    @rule(source=st.integers(1, 5), steps=st.lists(st.integers(1, 3), min_size=1, max_size=40))
    def send_many(self, source: int, steps: list[int]) -> None:
        """The keys of one sender grow, together."""
        some = []
        for step in steps:
            self.ordinal += step
            some.append(source << 32 | self.ordinal)
        self.add_many_to_both(list(zip(some, steps, strict=True)))

    @rule(some=st.lists(st.tuples(keys, lookup_ids), max_size=40))
    def load(self, some: list[tuple[int, int]]) -> None:
        self.real.load(array("Q", [key for key, _ in some]), array("Q", [one for _, one in some]))
        self.model.update(some)

    @rule(count=st.integers(1, 40))
    def load_behind(self, count: int) -> None:
        """What a checkpoint of one sender's messages gives."""
        start = max(self.model, default=0) + 1
        some = range(start, start + count)
        self.real.load(array("Q", some), array("Q", some))
        self.model.update(zip(some, some, strict=True))

    @rule(key=keys, value=lookup_ids)
    def remove_perhaps(self, key: int, value: int) -> None:
        here = self.model.get(key) == value
        assert self.real.remove(key, value) == here
        if here:
            del self.model[key]

    @precondition(lambda self: self.model)
    @rule(step=st.integers(2, 9), offset=st.integers(0, 8))
    def remove_all_but_each(self, step: int, offset: int) -> None:
        for number, key in enumerate(sorted(self.model)):
            if (number + offset) % step:
                assert self.real.remove(key, self.model.pop(key))

    @precondition(lambda self: self.model)
    @rule(count=st.integers(1, 40), backwards=st.booleans())
    def remove_in_order(self, count: int, backwards: bool) -> None:
        for key in sorted(self.model, reverse=backwards)[:count]:
            assert self.real.remove(key, self.model.pop(key))

    @rule(data=st.data(), count=st.integers(0, 60), odd=st.lists(st.tuples(keys, lookup_ids)))
    def remove_many(self, data: st.DataObject, count: int, odd: list[tuple[int, int]]) -> None:
        """Some in a row, mostly the first, and some that may not be there or have other values."""
        start = data.draw(st.integers(0, max(len(self.model) - 1, 0)) | st.just(0))
        some = sorted(self.model.items())[start : start + count]
        for each in odd[:3]:
            some.insert(data.draw(st.integers(0, len(some))), each)
        for key, value in some:
            if self.model.get(key) == value:
                del self.model[key]
        self.real.remove_many(
            array("Q", [key for key, _ in some]), array("Q", [one for _, one in some])
        )

    @precondition(lambda self: self.model)
    @rule(data=st.data(), most=st.integers(1, 50))
    def take_below(self, data: st.DataObject, most: int) -> None:
        limit = data.draw(st.sampled_from(sorted(self.model)))
        taken = sorted(one for one in self.model.items() if one[0] < limit)[:most]
        assert self.real.take_below(limit, most) == taken
        for key, _ in taken:
            del self.model[key]

    @rule(key=keys)
    def look_for_another(self, key: int) -> None:
        assert self.real.get(key) == self.model.get(key)

    @invariant()
    def both_hold_the_same(self) -> None:
        assert len(self.real) == len(self.model)
        assert self.real.first_key() == min(self.model, default=None)
        for key, value in self.model.items():
            assert self.real.get(key) == value


class LongerRuns(Identifiers):
    """The same with runs that are kept when they have few entries or none."""

    run_rows = 24


class Expiring(RuleBasedStateMachine):
    """Every operation on both, and the same answers from both."""

    def __init__(self) -> None:
        super().__init__()
        self.real = Expiries()
        self.model: dict[tuple[int, int], int] = {}

    @rule(expires=seconds, queue=queues, lookup_id=lookup_ids)
    def add(self, expires: int, queue: int, lookup_id: int) -> None:
        if (queue, lookup_id) not in self.model:
            self.real.add(expires, queue, lookup_id)
            self.model[queue, lookup_id] = expires

    @rule(
        some=st.dictionaries(lookup_ids, seconds | st.just(NEVER), min_size=1, max_size=40),
        is_sorted=st.booleans(),
        together=st.none() | seconds,
        queue=queues,
    )
    def add_many(
        self, some: dict[int, int], is_sorted: bool, together: int | None, queue: int
    ) -> None:
        """They come in any order, each with a time of its own or all with one."""
        fresh = {
            one: together or expires
            for one, expires in (sorted(some.items()) if is_sorted else some.items())
            if (queue, one) not in self.model
        }
        if not fresh:
            return
        self.real.add_many(list(fresh.values()), queue, list(fresh), NEVER)
        for lookup_id, expires in fresh.items():
            if expires != NEVER:
                self.model[queue, lookup_id] = expires

    @rule(second=seconds, number=st.integers(0, 40), queue=queues)
    def add_alike(self, second: int, number: int, queue: int) -> None:
        """They differ in their high bits alone."""
        alike = [lane << 56 | number for lane in range(8)]
        fresh = [one for one in alike if (queue, one) not in self.model]
        if fresh:
            self.real.add_many([second] * len(fresh), queue, fresh, NEVER)
            self.model.update({(queue, one): second for one in fresh})

    @rule(
        queue=queues,
        first=lookup_ids,
        count=st.integers(1, 40),
        gone=st.dictionaries(lookup_ids, seconds | st.just(NEVER), max_size=3),
    )
    def remove_many(self, queue: int, first: int, count: int, gone: dict[int, int]) -> None:
        """Those of a queue from some place on, and a few that are not to expire or were due."""
        here = sorted(one for number, one in self.model if number == queue and one >= first)
        some = {one: self.model[queue, one] for one in here[:count]}
        some = gone | some
        for lookup_id, expires in some.items():
            if self.model.get((queue, lookup_id)) == expires:
                del self.model[queue, lookup_id]
        self.real.remove_many(array("I", some.values()), queue, array("Q", some), NEVER)

    @rule(some=st.dictionaries(lookup_ids, seconds | st.just(NEVER), max_size=40), queue=queues)
    def load(self, some: dict[int, int], queue: int) -> None:
        fresh = {one: at for one, at in sorted(some.items()) if (queue, one) not in self.model}
        self.real.load(queue, array("I", fresh.values()), array("Q", fresh), NEVER)
        for lookup_id, expires in fresh.items():
            if expires != NEVER:
                self.model[queue, lookup_id] = expires

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        queue, lookup_id = data.draw(st.sampled_from(sorted(self.model)))
        assert self.real.remove(self.model.pop((queue, lookup_id)), queue, lookup_id)

    @rule(expires=seconds, queue=queues, lookup_id=lookup_ids)
    def remove_perhaps(self, expires: int, queue: int, lookup_id: int) -> None:
        here = self.model.get((queue, lookup_id)) == expires
        assert self.real.remove(expires, queue, lookup_id) == here
        if here:
            del self.model[queue, lookup_id]

    @rule(now=seconds)
    def time_passes(self, now: int) -> None:
        expected = sorted(one for one, expires in self.model.items() if expires < now)
        found: list[tuple[int, int]] = []
        while some := self.real.due(now):
            assert len(some) <= DUE_MAX
            found += some
            when = [self.model.pop(one) for one in some]
            assert when == sorted(when), "the earliest come first"
        assert sorted(found) == expected

    @invariant()
    def both_hold_the_same(self) -> None:
        assert len(self.real) == len(self.model)
        assert self.real.next() == min(self.model.values(), default=None)


TestIdentifiers = Identifiers.TestCase
TestIdentifiers.settings = settings(
    max_examples=share_of(100), stateful_step_count=40, deadline=None
)
TestLongerRuns = LongerRuns.TestCase
TestLongerRuns.settings = settings(max_examples=share_of(80), stateful_step_count=40, deadline=None)
TestExpiring = Expiring.TestCase
TestExpiring.settings = settings(max_examples=share_of(100), stateful_step_count=40, deadline=None)
