"""A transaction over several queues: each message has its place, however they are mixed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merq.engine.notices import JOURNAL_NUMBER, POSITIVE_ARRIVAL
from merq.hresult import HResult
from merq.model.message_class import MessageClass
from merq.model.selecting import ByLookup
from merq.wire.view import MessageView
from unit.engine.engine_world import GUID, START, World
from unit.engine.foreign_world import depart, outgoing

pytestmark = pytest.mark.spec("MS-MQDMPR 3.1.4.4", "MS-MQQB 3.1.1.5")

NAME = UUID("aaaaaaaa-0000-0000-0000-000000000001")
LOCALS = {"a": r"DIRECT=OS:here\private$\a", "b": r"DIRECT=OS:here\private$\b"}
REMOTES = {
    "x": r"DIRECT=TCP:10.0.0.9\private$\x",
    "y": r"DIRECT=TCP:10.0.0.9\private$\y",
}
OWN = r".\private$\own"
ADMIN = r"OS:here\private$\admin"
WAITING = 6


@dataclass(frozen=True)
class Send:
    """A message that is sent in the transaction."""

    to: str
    journaling: str = ""
    is_noted: bool = False
    is_told: bool = False
    lifetime_s: int = 1000

    @property
    def is_remote(self) -> bool:
        return self.to in REMOTES


@dataclass(frozen=True)
class Take:
    """The next message of the source is received, or moved to its subqueue."""

    is_moved: bool


Act = Send | Take
sends = st.builds(
    Send,
    to=st.sampled_from("aabxxy"),
    journaling=st.sampled_from(["", "", "positive", "negative"]),
    is_noted=st.sampled_from([False, False, False, True]),
    is_told=st.sampled_from([False, False, True]),
    lifetime_s=st.sampled_from([1000, 2000]),
)
plain_runs = st.builds(
    lambda to, count: [Send(to)] * count, st.sampled_from("abxy"), st.integers(1, 4)
)
pieces = st.one_of(
    sends.map(lambda each: [each]),
    plain_runs,
    st.builds(Take, st.booleans()).map(lambda one: [one]),
)
acts = st.lists(pieces, min_size=1, max_size=8).map(lambda parts: list(chain(*parts)))


class Office:
    """Queues here and elsewhere, a source to take from, and what a transaction does there."""

    def __init__(self) -> None:
        self.world = World()
        self.identifiers: dict[int, int] = {}
        self.numbers = {name: self.world.create(name, transactional=True) for name in LOCALS}
        self.source = self.world.create("source", transactional=True, journaling=True)
        self.world.create("own", transactional=True)
        self.admin = self.world.create("admin")
        self.later = self.world.subqueue(self.source, "later")
        self.world.fill(self.source, *(bytes([65 + row]) for row in range(WAITING)))

    def begin(self, wanted: list[Act]) -> tuple[int, list[Act]]:
        """Does all of it in a transaction, as far as there is something to take."""
        world = self.world
        transaction, done, taken = world.begin(), list[Act](), 0
        ids = world.lookup_ids(self.source)
        for act in wanted:
            if isinstance(act, Send):
                world.send_to(
                    (LOCALS | REMOTES)[act.to],
                    transaction,
                    body=b"%d" % len(done),
                    time_to_be_received=act.lifetime_s,
                    positive_journaling=act.journaling == "positive",
                    negative_journaling=act.journaling == "negative",
                    admin_queue=ADMIN if act.is_told else "",
                    acknowledgments=POSITIVE_ARRIVAL if act.is_told else 0,
                    dead_letter=OWN if act.is_noted else "",
                )
            elif taken == len(ids):
                continue
            elif act.is_moved:
                world.move(self.source, ids[taken], self.later, transaction)
                taken += 1
            else:
                world.receive(self.source, ByLookup(ids[taken]), transaction=transaction)
                taken += 1
            done.append(act)
        return transaction, done

    def number_of(self, name: str) -> int:
        if name in LOCALS:
            return self.numbers[name]
        return outgoing(self.world, REMOTES[name]).number

    def seen(self) -> object:
        """What would be noticed of a transaction that happened by half."""
        state = self.world.engine.state
        queues = {
            queue.number: (
                [row._replace(location=0) for row in queue.positions],
                dict(queue.notes),
                queue.staged_bytes,
            )
            for queue in state.queues.values()
            if queue.positions.count or queue.staged_bytes
        }
        return queues, state.taken_bytes, dict(self.world.packets.kept)

    def first_numbers(self, done: list[Act]) -> dict[str, int]:
        """The number in its sequence that the first message to each other queue manager has."""
        return {
            name: self.world.messages(self.number_of(name))[0].tx_sequence_number
            for name in REMOTES
            if any(isinstance(act, Send) and act.to == name for act in done)
        }

    def check(
        self, done: list[Act], transaction: int, firsts: dict[str, int] | None = None
    ) -> None:
        """Everything is where the rule has it; sequences begin at 1 or with these numbers."""
        sent = [(row, act) for row, act in enumerate(done) if isinstance(act, Send)]
        for name in (*LOCALS, *REMOTES):
            mine = [(row, act) for row, act in sent if act.to == name]
            if mine:
                self._check_queue(name, mine, sent, transaction, (firsts or {}).get(name, 1))
        taken = [act for act in done if isinstance(act, Take)]
        bodies = [bytes([65 + row]) for row in range(WAITING)]
        moved = [body for body, act in zip(bodies, taken, strict=False) if act.is_moved]
        received = [body for body, act in zip(bodies, taken, strict=False) if not act.is_moved]
        assert self.world.bodies(self.source) == bodies[len(taken) :]
        # An empty subqueue is gone after a restart.
        is_there = self.later in self.world.engine.state.queues
        assert (self.world.bodies(self.later) if is_there else []) == moved
        journal = self.world.find(r".\private$\source;JOURNAL")
        assert self.world.bodies(journal) == received
        here = [(row, act) for row, act in sent if not act.is_remote]
        kept = [b"%d" % row for row, act in here if act.journaling == "positive"]
        assert self.world.bodies(JOURNAL_NUMBER) == kept
        told = self.world.messages(self.admin)
        assert {view.message_class for view in told} <= {MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE}
        ids = {row: view.message_id for _, row, view in self._sent_here(sent)}
        expected = [ids[row] for row, act in here if act.is_told]
        assert [view.correlation_id for view in told] == expected

    def _sent_here(self, sent: list[tuple[int, Send]]) -> list[tuple[str, int, MessageView]]:
        found = []
        for name in LOCALS:
            rows = [row for row, act in sent if act.to == name]
            views = self.world.messages(self.numbers[name])
            found += [(name, row, view) for row, view in zip(rows, views, strict=True)]
        return found

    def _check_queue(
        self,
        name: str,
        mine: list[tuple[int, Send]],
        sent: list[tuple[int, Send]],
        transaction: int,
        first: int,
    ) -> None:
        queue = self.world.engine.state.queues[self.number_of(name)]
        views = self.world.messages(queue.number)[-len(mine) :]
        rows = list(queue.positions)[-len(mine) :]
        assert [view.body for view in views] == [b"%d" % row for row, _ in mine]
        assert len({view.tx_sequence_id for view in views}) == 1
        order = [row for row, _ in sent]
        for at, ((row, act), view, place) in enumerate(zip(mine, views, rows, strict=True)):
            header = view.decode().transaction_header
            assert header is not None
            flags = header.fields.flags
            assert flags.first_message == (row == order[0])
            assert flags.last_message == (row == order[-1])
            identifier = self.identifiers.setdefault(transaction, flags.identifier)
            assert flags.identifier == identifier, "all messages of a transaction have it"
            assert len(set(self.identifiers.values())) == len(self.identifiers)
            assert flags.final_ack_required == (act.is_remote and act.journaling != "")
            number = first + at if act.is_remote else order.index(row) + 1
            assert view.tx_place[1:] == (number, number - 1)
            if not act.is_remote:
                assert view.tx_sequence_id == transaction
            assert view.time_to_be_received == sent[0][1].lifetime_s
            assert (view.packet[16:32], view.sent_time) == (GUID.bytes_le, START)
            assert (view.priority, view.user_flags & 0x60) == (0, 0x20)
            assert place.expires == START + sent[0][1].lifetime_s
            assert queue.by_message_id.get(place.key) == place.lookup_id
            note = queue.notes.get(place.lookup_id)
            assert (note.dead_letter if note else "") == (OWN if act.is_noted else "")


@settings(max_examples=120)
@given(wanted=acts, is_checkpointed=st.booleans())
def test_whatever_is_mixed_in_a_transaction_each_message_has_its_place(
    wanted: list[Act], is_checkpointed: bool
) -> None:
    office = Office()
    transaction, done = office.begin(wanted)
    assert office.world.answers[office.world.commit(transaction)] is None
    for _ in range(2):
        office.check(done, transaction)
        if is_checkpointed:
            office.world.checkpoint()
        office.world.restart()


@settings(max_examples=80)
@given(wanted=acts, is_checkpointed=st.booleans(), fails=st.booleans())
@pytest.mark.spec("MS-MQDMPR 3.1.4.3")
def test_it_is_the_same_if_it_was_prepared_and_commits_after_a_restart(
    wanted: list[Act], is_checkpointed: bool, fails: bool
) -> None:
    office = Office()
    transaction, done = office.begin(wanted)
    office.world.prepare(transaction, NAME)
    if is_checkpointed:
        office.world.checkpoint()
    office.world.restart()
    found = office.world.engine.transactions.prepared()[NAME]
    if fails:
        before = office.seen()
        office.world.full = 1
        request = office.world.commit(found)
        assert office.world.code(request) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
        assert office.seen() == before
        assert office.world.engine.transactions.prepared() == {NAME: found}
    assert office.world.answers[office.world.commit(found)] is None
    # A commit that failed may have used up numbers of a sequence.
    firsts = office.first_numbers(done) if fails else {}
    for _ in range(2):
        office.check(done, found, firsts)
        office.world.restart()


@settings(max_examples=80)
@given(wanted=acts)
def test_if_the_log_is_full_nothing_has_happened_and_it_works_later(wanted: list[Act]) -> None:
    office = Office()
    before = office.seen()
    transaction, _ = office.begin(wanted)
    office.world.full = 1
    request = office.world.commit(transaction)
    if office.world.full:
        return  # there was nothing to write
    assert office.world.code(request) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert office.seen() == before
    again, done = office.begin(wanted)
    office.world.commit(again)
    firsts = office.first_numbers(done)
    office.check(done, again, firsts)
    office.world.restart()
    office.check(done, again, firsts)


def test_numbers_of_a_commit_that_failed_are_missing_and_nothing_waits_for_them() -> None:
    """What leaves names the message that really left before it."""
    office = Office()
    name = REMOTES["x"]
    world = office.world
    for bodies, fails in (([b"a"], 0), ([b"b", b"c"], 1), ([b"d", b"e"], 0)):
        transaction = world.begin()
        for body in bodies:
            world.send_to(name, transaction, body=body)
        world.full = fails
        world.commit(transaction)
    leaving = depart(world, name)
    views = [MessageView(each.packet) for each in leaving]
    assert [view.body for view in views] == [b"a", b"d", b"e"]
    places = [view.tx_place for view in views]
    assert len({sequence for sequence, _, _ in places}) == 1
    previous = 0
    for _, number, before in places:
        assert before == previous
        assert number > previous
        previous = number


def test_several_messages_of_one_call_are_a_run_like_those_of_several_calls() -> None:
    together, singly = World(), World()
    found = []
    for world in (together, singly):
        number = world.create("a", transactional=True)
        transaction = world.begin()
        packets = [world.packet(number, body=bytes(row), label="m") for row in range(5)]
        for some in [packets] if world is together else [[each] for each in packets]:
            world.engine.send(world.next_request(), number, some, transaction)
            world.perform()
        world.commit(transaction)
        found.append([view.packet for view in world.messages(number)])
    assert found[0] == found[1]
    assert len(found[0]) == 5
