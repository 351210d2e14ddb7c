"""Messages of a sequence that come together: as if each had come alone."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merq.engine.arrival_outcomes import Arrived
from merq.engine.arriving import Arrival
from merq.engine.changes import Change, PutManyStep
from merq.engine.limits import Limits
from merq.model.names import PrivateName
from merq.model.queue import UNLIMITED
from merq.wire.view import MessageView
from unit.engine.engine_world import GUID, START, World
from unit.engine.foreign_world import (
    ADDRESS,
    ADMIN,
    ELSEWHERE,
    SEQUENCE,
    THERE,
    arrive,
    foreign,
    leaving,
    order_ack,
    place,
)

pytestmark = pytest.mark.spec("MS-MQQB 3.1.5.8", "MS-MQQB 3.1.5.8.6")

REPORT = UUID(int=5)
OTHER_ADDRESS = "10.0.0.77"
LATE_S = 60
"""How long messages are on their way."""


@dataclass(frozen=True)
class Coming:
    """A message on its way here.

    Attributes:
        step: How far its number is from the last of its sequence: 1 is the next.
        back: The same for the number that it names as the one before it.
        sequence: How far its sequence is from the usual one.
        fields: What else an outline says of it.
        priority: What its base header says, whatever transactional messages should have.
    """

    name: object = "tx"
    step: int = 1
    back: int = 1
    sequence: int = 0
    source: UUID = THERE
    address: str = ADDRESS
    body_bytes: int = 3
    priority: int = 0
    is_encrypted: bool = False
    is_transactional: bool = True
    is_for_others: bool = False
    fields: dict[str, object] = field(default_factory=dict)


PLAIN = Coming()
TOLD: dict[str, object] = {"admin_queue": ADMIN, "acknowledgments": 0xF}

ODD: dict[str, Coming] = {
    "another sender": Coming(source=ELSEWHERE),
    "another destination": Coming(name="other"),
    "another spelling": Coming(name="TX"),
    "a destination by its number": Coming(name=PrivateName(computer=GUID, number=0x10)),
    "no such destination": Coming(name="none"),
    "a queue that is not transactional": Coming(name="plain"),
    "another sent time": Coming(fields={"sent_time": START - 100}),
    "in time": Coming(fields={"time_to_reach_queue": LATE_S - 10, "sent_time": START + 20}),
    "late": Coming(fields={"time_to_reach_queue": LATE_S - 10}),
    "late and told": Coming(fields={"time_to_reach_queue": LATE_S - 10, **TOLD}),
    "a time to be received": Coming(fields={"time_to_be_received": LATE_S + 50}),
    "another priority": Coming(priority=5),
    "traced": Coming(fields={"report_queue": REPORT}),
    "acknowledgments wanted": Coming(fields=TOLD),
    "acknowledgments without anybody to tell": Coming(fields={"acknowledgments": 0xF}),
    "journaling wanted": Coming(fields={"positive_journaling": True}),
    "negative journaling wanted": Coming(fields={"negative_journaling": True}),
    "a response queue": Coming(fields={"response_queue": ADMIN}),
    "a class": Coming(fields={"message_class": 0x4000}),
    "encrypted": Coming(is_encrypted=True),
    "encrypted and told": Coming(is_encrypted=True, fields=TOLD),
    "a duplicate": Coming(step=0),
    "an old one": Coming(step=-1, back=1),
    "after a gap": Coming(step=3, back=1),
    "after a gap that is allowed": Coming(step=3, back=3),
    "a later sequence": Coming(sequence=1, back=0xFFFFFFFF),
    "the middle of a later sequence": Coming(sequence=1),
    "an earlier sequence": Coming(sequence=-1),
    "another address": Coming(address=OTHER_ADDRESS),
    "large": Coming(body_bytes=900),
    "not transactional": Coming(is_transactional=False),
    "not transactional, to a queue for that": Coming(is_transactional=False, name="plain"),
    "for another queue manager": Coming(is_for_others=True),
}


class Sender:
    """Gives messages their numbers, sequence by sequence."""

    def __init__(self) -> None:
        self._last: dict[object, int] = {}
        self._ordinal = 0

    def packet(self, coming: Coming) -> bytes:
        self._ordinal += 1
        fields = dict(coming.fields)
        if coming.is_transactional:
            key = coming.source, str(coming.name).lower(), coming.sequence
            number = max(self._last.get(key, 0) + coming.step, 1)
            self._last[key] = max(self._last.get(key, 0), number)
            before = max(number - coming.back, 0)
            fields["transaction"] = place(number, before, SEQUENCE + coming.sequence)
        packet = bytearray(
            foreign(
                coming.name,
                self._ordinal,
                source_queue_manager=coming.source.bytes_le,
                body=bytes([self._ordinal & 0xFF]) * coming.body_bytes,
                **fields,
            )
        )
        if coming.is_transactional:
            packet[2] |= coming.priority
        if coming.is_encrypted:
            struct.pack_into("<I", packet, MessageView(bytes(packet)).properties_at + 40, 1)
        if coming.is_for_others:
            packet[32:48] = ELSEWHERE.bytes_le
        return bytes(packet)


def fresh(queue_quota: int, computer_quota: int, *, forwards: bool = False) -> World:
    """Queues to send to."""
    world = World(limits=Limits(machine_quota=computer_quota))
    for name in ("tx", "other"):
        world.create(name, transactional=True, quota=queue_quota)
    world.create("plain", quota=queue_quota)
    world.tick(LATE_S)
    world.engine.arrivals.forwards = forwards
    world.engine.state.sends_insecure_nacks = True
    return world


def seen(world: World) -> object:
    """Everything that the world has after messages came."""
    state = world.engine.state
    sequences = {
        each.key: (
            (each.sequence_id, each.number),
            each.settled,
            each.stale,
            each.origin.address,
            each.rejects,
            each.last_access,
        )
        for each in state.sequences.all()
    }
    # Which number a sender has here depends on who was heard first, and nobody sees it.
    sources = state.sources.listed()
    queues = {
        queue.number: (
            queue.properties,
            [
                (
                    row._replace(location=0, key=row.key & 0xFFFFFFFF),
                    sources[(row.key >> 32) - 1],
                    state.stored(row),
                    queue.by_message_id.get(row.key),
                )
                for row in queue.positions
            ],
            dict(queue.notes),
            (queue.arrived, queue.left, queue.staged_bytes),
        )
        for queue in state.queues.values()
    }
    room = state.taken_bytes, state.memory_bytes, sum(world.packets.kept.values())
    times = len(state.expiries), state.expiries.next()
    return queues, sequences, state.recent.pack(), times, room


def arrive_from_many(world: World, packets: list[tuple[bytes, str]]) -> Arrived:
    """Messages come together, though from several addresses."""
    request = world.next_request()
    arrivals = [
        Arrival(MessageView(packet), address, THERE.bytes_le) for packet, address in packets
    ]
    arrived = world.engine.arrivals.arrive(request, arrivals)
    world.perform()
    assert world.answers[request] == arrived.taken
    return arrived


def compare(comings: list[Coming], together: World, singly: World) -> None:
    """The same messages come into both worlds, and the worlds are the same after that."""
    sender = Sender()
    packets = [(sender.packet(each), each.address) for each in comings]
    all_of_them = arrive_from_many(together, packets)
    taken, refusal = 0, ""
    touched, ordered = set(), 0
    for packet, address in packets:
        one = arrive(singly, packet, address=address)
        taken += one.taken
        touched |= {each.key for each in one.sequences}
        ordered += len(one.ordered)
        if one.refusal:
            refusal = one.refusal
            break
    assert (all_of_them.taken, all_of_them.refusal) == (taken, refusal)
    assert {each.key for each in all_of_them.sequences} == touched
    assert len(all_of_them.ordered) == ordered
    assert seen(together) == seen(singly)
    together.restart()
    singly.restart()
    assert seen(together) == seen(singly)


mixtures = st.lists(
    st.sampled_from([PLAIN] * len(ODD) + list(ODD.values())), min_size=1, max_size=16
)


@settings(max_examples=200)
@given(
    comings=mixtures,
    queue_quota=st.sampled_from([UNLIMITED, UNLIMITED, 1, 2]),
    computer_quota=st.sampled_from([UNLIMITED, UNLIMITED, 2, 3]),
    forwards=st.booleans(),
)
def test_any_messages_that_come_together_leave_what_they_would_one_by_one(
    comings: list[Coming], queue_quota: int, computer_quota: int, forwards: bool
) -> None:
    worlds = (fresh(queue_quota, computer_quota, forwards=forwards) for _ in range(2))
    compare(comings, *worlds)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("quota", [UNLIMITED, 1])
def test_one_that_differs_in_the_middle_of_many_is_treated_as_ever(odd: str, quota: int) -> None:
    for comings in (
        [PLAIN, PLAIN, ODD[odd], PLAIN, PLAIN],
        [ODD[odd], PLAIN, PLAIN],
        [ODD[odd], ODD[odd], PLAIN, ODD[odd]],
        [PLAIN, replace(ODD[odd], fields=ODD[odd].fields | TOLD), PLAIN],
        [ODD["in time"], ODD["in time"], ODD[odd], ODD["in time"]],
    ):
        compare(comings, fresh(quota, UNLIMITED), fresh(quota, UNLIMITED))


@pytest.mark.parametrize("odd", ["traced", "acknowledgments wanted", "encrypted and told"])
def test_whoever_wants_to_know_of_one_in_the_middle_is_told(odd: str) -> None:
    world = fresh(UNLIMITED, UNLIMITED)
    sender = Sender()
    comings = [PLAIN, PLAIN, ODD[odd], PLAIN]
    arrive_from_many(world, [(sender.packet(each), each.address) for each in comings])
    assert sum(len(views) for views in leaving(world).values()) >= 1


def test_an_acknowledgment_in_between_is_taken_as_ever() -> None:
    worlds = fresh(UNLIMITED, UNLIMITED), fresh(UNLIMITED, UNLIMITED)
    sender = Sender()
    first, second, third, fourth = (sender.packet(PLAIN) for _ in range(4))
    packets = [first, second, order_ack(SEQUENCE, 1), third, fourth]
    together, singly = worlds
    arrive(together, *packets)
    for packet in packets:
        arrive(singly, packet)
    assert seen(together) == seen(singly)


@pytest.mark.parametrize("most_bytes", [400, 600, 900, 1020, 1024, 1025])
@pytest.mark.parametrize("is_of_queue", [True, False])
def test_the_quota_ends_where_it_would_end_one_by_one(most_bytes: int, is_of_queue: bool) -> None:
    quotas = (1, UNLIMITED) if is_of_queue else (UNLIMITED, 1)
    worlds = fresh(*quotas), fresh(*quotas)
    size = len(Sender().packet(replace(PLAIN, body_bytes=0)))
    filling = replace(PLAIN, body_bytes=most_bytes - 3 * size)
    small = replace(PLAIN, body_bytes=0)
    compare([small, small, filling, small, small, PLAIN], *worlds)


def test_messages_that_are_alike_come_as_one_step() -> None:
    """Otherwise all that is compared here would be two ways of the same slow path."""
    world = fresh(UNLIMITED, UNLIMITED)
    sender = Sender()
    lifetimes: tuple[dict[str, object], ...] = ({}, {"time_to_be_received": 9})
    comings = [replace(PLAIN, fields=lifetimes[row % 2]) for row in range(50)]
    arrivals = [
        Arrival(MessageView(sender.packet(each)), ADDRESS, THERE.bytes_le) for each in comings
    ]
    world.engine.arrivals.arrive(world.next_request(), arrivals)
    (change,) = world.engine.take_effects()
    assert isinstance(change, Change)
    puts = [len(step.packets) for step in change.steps if isinstance(step, PutManyStep)]
    assert puts == [1, 49]


def test_a_course_whose_log_was_full_has_not_happened_and_comes_again() -> None:
    world, other = fresh(UNLIMITED, UNLIMITED), fresh(UNLIMITED, UNLIMITED)
    sender = Sender()
    before = [sender.packet(PLAIN) for _ in range(2)]
    packets = [sender.packet(PLAIN) for _ in range(6)]
    for each in (world, other):
        arrive(each, *before)
    world.full = 1
    arrive(world, *packets)
    tx = world.find(r".\private$\tx")
    assert len(world.bodies(tx)) == 2
    (sequence,) = world.engine.state.sequences.all()
    assert (sequence.number, sequence.settled) == (2, (SEQUENCE, 2))
    arrive(world, *packets)
    arrive(other, *packets)
    assert world.bodies(tx) == other.bodies(tx)
    assert (sequence.number, sequence.rejects) == (8, 0)
    assert world.engine.state.taken_bytes == other.engine.state.taken_bytes
    world.restart()
    assert world.bodies(tx) == other.bodies(tx)
