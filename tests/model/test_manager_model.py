"""The engine against a model that anyone can believe: lists of messages, sorted when looked at.

The model says what each request is to be answered and when, what is in each queue, and what is left
after a crash. Frames become durable late, one by one, and some find the disk full. Notices are not
modelled but for the target journal; `unit/engine/test_notices.py` has them.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from kit.shares import share_of
from merq.model.access import Access, Share
from model.core_machine import Core
from model.engine_machine import names, picks
from model.reading_rules import ReadingRules
from model.reference_queue import DENIED, OK, Op, Opening

RESERVE_BYTES = 64 << 20


class Engine(Core, ReadingRules):
    """Every rule."""

    @rule(
        name=names,
        transactional=st.booleans(),
        journaling=st.booleans(),
        limited=st.booleans(),
        poison_after=st.integers(0, 2),
    )
    def create_queue(
        self, name: str, transactional: bool, journaling: bool, limited: bool, poison_after: int
    ) -> None:
        self.create(name, transactional, journaling, limited, poison_after)

    @rule(name=names, journaling=st.none() | st.booleans(), poison_after=st.integers(0, 2))
    def change(self, name: str, journaling: bool | None, poison_after: int) -> None:
        queue = self.usable(name)
        if queue is None:
            return
        changed: dict[str, object] = {"poison_after": poison_after}
        if journaling is not None:
            changed = {"journaling": journaling}
        request = self.call(
            None,
            lambda request: self.world.engine.change_queue(request, self.number(name), changed),
        )
        assert request is not None

        def happen() -> None:
            for key, value in changed.items():
                setattr(queue, key, value)

        op = Op(disk=True, done=[happen], answers=[(request, OK)])
        self.model.plan(op)
        self.model.perform()

    # Openings.

    @rule(
        where=picks,
        access=st.sampled_from([Access.RECEIVE, Access.PEEK]),
        share=st.sampled_from(Share),
    )
    def open(self, where: int, access: Access, share: Share) -> None:
        name = self.somewhere(where)
        queue = self.usable(name)
        if queue is None or queue.kind == "outgoing":
            return
        clashes = any(each.clashes(access, share) for each in queue.openings.values())
        handles: list[int] = []

        def ask(_: int) -> None:
            opened = self.world.engine.open_queue(self.number(name), access, share)
            handles.append(opened.handle)

        self.call(DENIED if clashes else None, ask)
        for handle in handles:
            self.model.openings[handle] = queue.openings[handle] = Opening(queue, access, share)

    @precondition(lambda self: self.model.openings)
    @rule(pick=picks)
    def close(self, pick: int) -> None:
        handle = list(self.model.openings)[pick % len(self.model.openings)]
        self.world.engine.close_queue(handle)
        self.world.perform()
        self.model.close(handle)
        self.model.perform()

    # The world.

    @rule(free=st.sampled_from([0, RESERVE_BYTES, 2 * RESERVE_BYTES, 2 * RESERVE_BYTES]))
    def watch_resources(self, free: int) -> None:
        self.world.engine.watch_resources(free)
        self.model.watch(free, RESERVE_BYTES)

    @rule(seconds=st.integers(0, 4))
    def pass_time(self, seconds: int) -> None:
        self.model.now += seconds
        self.world.tick(seconds)
        self.model.expire()
        self.model.perform()


TestCore = Core.TestCase
TestCore.settings = settings(max_examples=share_of(200), stateful_step_count=30, deadline=None)
TestEngine = Engine.TestCase
TestEngine.settings = settings(max_examples=share_of(150), stateful_step_count=40, deadline=None)
