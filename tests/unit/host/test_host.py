"""The engine on a disk that loses power, fills up and fails: every operation, at every moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias
from uuid import UUID

import pytest

from merq.engine.changes import Answer, Result
from merq.engine.limits import Limits
from merq.engine.manager import QueueManager
from merq.errors import MessageQueueError, StoreFailed, StoreFull
from merq.host import Host, HostSettings
from merq.hresult import HResult
from merq.model.delivered import Delivered
from merq.model.destinations import parse_destination
from merq.model.names import DirectName
from merq.model.queue import QueueSettings
from merq.model.selecting import First
from merq.store.log import LogSettings
from merq.store.recovery import Identity
from merq.testing.disk import Operation, PowerCut, SimulatedDisk
from merq.wire.build import Outline, build_packet
from merq.wire.view import MessageView

START: Final = 1_000_000_000
STORE: Final = UUID("11111111-2222-3333-4444-555555555555")
NAME: Final = UUID(int=0xAA)
SETTINGS: Final = HostSettings(
    log=LogSettings(segment_size=1 << 14, reserve_step=1 << 12), checkpoint_bytes=1 << 16
)
LIMITS: Final = Limits(disk_reserve_bytes=0)
REMOTE: Final = r"DIRECT=OS:far\PRIVATE$\orders"
ORDERS, PLAIN = r".\private$\orders", r".\private$\plain"
FILLERS_MAX: Final = 500
PARTS: Final = 4
SEEDS: Final = 3
"""Each moment at which the power may go is tried with so many disks."""


class Driven:
    """A host, asked for one thing at a time; what it answers is durable."""

    def __init__(self, disk: SimulatedDisk, limits: Limits = LIMITS) -> None:
        self.disk = disk
        fresh = Identity(store_id=STORE, created=START)
        self.host = Host(disk, fresh, "here", limits, SETTINGS)
        self.host.start(START, UUID(int=77 << 64))
        self.requests = 0

    @property
    def engine(self) -> QueueManager:
        return self.host.engine

    def ask(self, what: Callable[[int], object]) -> Result:
        """The answer, which may be an error."""
        self.requests += 1
        request = self.requests
        what(request)
        return self.answer_to(request, self.host.settle())

    def answer_to(self, request: int, answers: list[Answer]) -> Result:
        found = [answer.result for answer in answers if answer.request == request]
        assert len(found) == 1, "each request has one answer"
        return found[0]

    def done(self, what: Callable[[int], object]) -> Result:
        """The answer, which must be none of an error."""
        result = self.ask(what)
        if isinstance(result, MessageQueueError):
            raise result
        return result

    def number(self, path: str) -> int:
        return self.engine.find_queue(path).number

    def create(self, path: str, **settings: object) -> None:
        made = QueueSettings(**settings)  # type: ignore[arg-type]
        identifier = UUID(bytes=path.encode().ljust(16)[-16:])
        self.done(lambda request: self.engine.create_queue(request, path, made, identifier))

    def send(self, path: str, *bodies: bytes, transaction: int = 0, size: int = 0) -> None:
        packets = [
            build_packet(
                Outline(destination=f"OS:{path}", body=body + bytes(size), recoverable=True)
            )
            for body in bodies
        ]
        number = self.number(path)
        self.done(lambda request: self.engine.send(request, number, packets, transaction))

    def send_to(self, name: str, body: bytes, transaction: int = 0) -> None:
        copies = []
        for each in parse_destination(name):
            assert isinstance(each, DirectName)
            outline = Outline(destination=each.without_prefix(), body=body, recoverable=True)
            copies.append((each, build_packet(outline)))
        self.done(lambda request: self.engine.send_to(request, copies, transaction))

    def receive(self, path: str, transaction: int = 0) -> bytes:
        number = self.number(path)
        result = self.done(
            lambda request: self.engine.receive(
                request, number, First(), wait=False, transaction=transaction
            )
        )
        assert isinstance(result, Delivered)
        return MessageView(result.packet).body

    def begin(self) -> int:
        return self.engine.transactions.begin()

    def commit(self, transaction: int) -> None:
        self.done(lambda request: self.engine.transactions.commit(request, transaction))

    def abort(self, transaction: int) -> None:
        self.done(lambda request: self.engine.transactions.abort(request, transaction))

    def checkpoint(self) -> None:
        writing, answers = self.host.begin_checkpoint()
        assert writing is not None
        assert answers == []
        writing.run()
        self.host.end_checkpoint(writing)

    def digest(self) -> object:
        """What survives: messages, notes, properties, and what is prepared."""
        state = self.engine.state
        queues = {}
        for queue in state.queues.values():
            messages = [
                (place.lookup_id, bytes(state.stored(place)[1])) for place in queue.positions
            ]
            if messages or queue.properties.kind.value == "private":
                # When a number is taken may depend on the attempts before, the rest does not.
                notes = sorted(queue.notes.items())
                queues[queue.properties.path_name] = (messages, notes, queue.properties.label)
        return queues, set(self.engine.transactions.prepared())


Work: TypeAlias = Callable[[Driven], object]


def within(work: Callable[[Driven, int], object], end: str) -> Work:
    """Work in a transaction, and its end."""

    def step(driven: Driven) -> None:
        transaction = driven.begin()
        work(driven, transaction)
        if end == "prepare":
            driven.done(
                lambda request: driven.engine.transactions.prepare(request, transaction, NAME)
            )
        else:
            getattr(driven, end)(transaction)

    return step


def end_prepared(driven: Driven) -> None:
    driven.commit(driven.engine.transactions.prepared()[NAME])


def move_first(driven: Driven) -> None:
    number = driven.number(PLAIN)
    (target, *_) = driven.engine.queue(number).subqueues.values()
    first = driven.engine.queue(number).positions.first()
    assert first is not None
    lookup_id = first.lookup_id
    driven.done(lambda request: driven.engine.move(request, number, lookup_id, target.number))


def make_subqueue_and_move(driven: Driven) -> None:
    number = driven.number(PLAIN)
    driven.done(lambda request: driven.engine.create_subqueue(request, number, "later"))
    move_first(driven)


def change_label(driven: Driven) -> None:
    number = driven.number(PLAIN)
    driven.done(lambda request: driven.engine.change_queue(request, number, {"label": "new"}))


def purge(driven: Driven) -> None:
    number = driven.number(PLAIN)
    driven.done(lambda request: driven.engine.purge(request, number))


def delete(driven: Driven) -> None:
    number = driven.number(PLAIN)
    driven.done(lambda request: driven.engine.delete_queue(request, number))


def relocate(driven: Driven) -> None:
    more = True
    while more:
        more, _ = driven.host.relocate_some()
        driven.host.settle()


def staged(driven: Driven, transaction: int) -> None:
    driven.receive(ORDERS, transaction)
    driven.send(ORDERS, b"new", transaction=transaction)
    driven.send_to(REMOTE, b"far", transaction)


STEPS: Final[list[tuple[str, Work]]] = [
    ("create", lambda driven: driven.create(ORDERS, transactional=True, poison_after=2)),
    ("create another", lambda driven: driven.create(PLAIN, journaling=True)),
    ("send many", lambda driven: driven.send(PLAIN, b"1", b"2", b"3", b"4", size=2000)),
    (
        "commit",
        within(lambda driven, tx: driven.send(ORDERS, b"a", b"b", transaction=tx), "commit"),
    ),
    ("receive", lambda driven: driven.receive(PLAIN)),
    ("send away", lambda driven: driven.send_to(REMOTE, b"far")),
    ("move", make_subqueue_and_move),
    ("abort", within(lambda driven, tx: driven.receive(ORDERS, tx), "abort")),
    ("checkpoint", Driven.checkpoint),
    ("poison", within(lambda driven, tx: driven.receive(ORDERS, tx), "abort")),
    ("change", change_label),
    ("prepare", within(staged, "prepare")),
    ("checkpoint of what is prepared", Driven.checkpoint),
    ("send more", lambda driven: driven.send(PLAIN, b"5", b"6", size=6000)),
    ("send yet more", lambda driven: driven.send(PLAIN, b"7", b"8", size=6000)),
    ("relocate", relocate),
    ("checkpoint that lets a segment go", Driven.checkpoint),
    ("commit what is prepared", end_prepared),
    ("purge", purge),
    ("last checkpoint", Driven.checkpoint),
    ("delete", delete),
]


@pytest.fixture(scope="module")
def course() -> tuple[list[object], int]:
    """What there is after each step when nothing goes wrong, and how much the disk had to do."""
    disk = SimulatedDisk(seed=0)
    driven = Driven(disk)
    digests = [driven.digest()]
    for _, step in STEPS:
        step(driven)
        digests.append(driven.digest())
    return digests, disk.operations


def test_every_step_changes_what_it_should(course: tuple[list[object], int]) -> None:
    digests, _ = course
    for (name, _), before, after in zip(STEPS, digests, digests[1:], strict=False):
        same = "checkpoint" in name or name == "relocate"
        assert (before == after) is same, name


@pytest.mark.parametrize("kind", ["power", "kill"])
@pytest.mark.parametrize("part", range(PARTS))
def test_whenever_the_power_goes_each_step_has_happened_or_not(
    course: tuple[list[object], int], part: int, kind: str
) -> None:
    digests, operations = course
    for seed in range(part, operations * SEEDS, PARTS):
        moment = seed // SEEDS
        disk = SimulatedDisk(seed=seed)
        disk.cut_power_in(moment)
        completed = -1
        try:
            driven = Driven(disk)
            for completed, (_, step) in enumerate(STEPS):  # noqa: B007 - how far it came
                step(driven)
            continue
        except PowerCut:
            disk = disk.crash("power" if kind == "power" else "kill")
        completed = max(completed, 0)
        driven = Driven(disk)
        found = driven.digest()
        assert found in (digests[completed], digests[completed + 1]), (moment, STEPS[completed][0])
        driven.host.close()
        again = Driven(disk.crash())
        assert again.digest() == found, "opening changes nothing"
        if completed > 4:
            again.send(ORDERS, b"later", transaction=(tx := again.begin()))
            again.commit(tx)


@pytest.mark.parametrize("at", range(len(STEPS)), ids=[name for name, _ in STEPS])
def test_without_room_each_step_is_refused_or_done_and_succeeds_with_room(
    course: tuple[list[object], int], at: int
) -> None:
    digests, _ = course
    disk = SimulatedDisk(seed=at)
    driven = Driven(disk)
    for _, step in STEPS[:at]:
        step(driven)
    before = driven.digest()
    # Room that the log has reserved may be enough: it is used up first.
    disk.capacity = disk.used
    with pytest.raises(MessageQueueError) as full:
        fill_up(driven)
    assert full.value.code == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    name, step = STEPS[at]
    said = outcome(step, driven)
    assert said in {0, HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED}, name
    disk.capacity = None
    found = Driven(disk.crash("kill")).digest()
    assert without_fillers(found) in (before, digests[at + 1]), name


def fill_up(driven: Driven) -> None:
    """Makes queues until there is no room for one more."""
    for count in range(FILLERS_MAX):
        driven.create(rf".\private$\filler{count}")


def outcome(step: Work, driven: Driven) -> int:
    """0, or the code of the refusal; a checkpoint that finds no room is none."""
    try:
        step(driven)
    except MessageQueueError as wrong:
        return wrong.code
    except StoreFull:
        return 0
    return 0


def without_fillers(found: object) -> object:
    assert isinstance(found, tuple)
    queues, prepared = found
    return {path: each for path, each in queues.items() if "filler" not in path}, prepared


def test_a_sync_that_fails_is_told_and_nothing_more_is_taken() -> None:
    disk = SimulatedDisk(seed=1)
    driven = Driven(disk)
    driven.create(PLAIN)
    disk.fail_next(Operation.SYNC)
    with pytest.raises(StoreFailed):
        driven.send(PLAIN, b"x")
    with pytest.raises(StoreFailed):
        driven.send(PLAIN, b"y")
    again = Driven(disk.crash())
    assert again.number(PLAIN) == driven.number(PLAIN)


def test_answers_wait_for_the_sync_that_may_run_elsewhere() -> None:
    driven = Driven(SimulatedDisk(seed=2))
    driven.create(PLAIN)
    host, number = driven.host, driven.number(PLAIN)
    packet = build_packet(Outline(destination=f"OS:{PLAIN}", body=b"x", recoverable=True))
    driven.engine.send(1001, number, [packet])
    assert host.perform() == []
    assert host.has_unsynced
    syncing = host.begin_sync()
    assert syncing is not None
    driven.engine.send(1002, number, [packet])
    assert host.perform() == []
    syncing.run()
    assert [answer.request for answer in host.end_sync(syncing)] == [1001]
    assert host.has_unsynced, "what came while it ran needs the next"
    assert [answer.request for answer in host.settle()] == [1002]
    assert host.begin_sync() is None


def test_express_messages_need_no_sync_and_are_gone_after_a_restart() -> None:
    driven = Driven(SimulatedDisk(seed=3))
    driven.create(PLAIN)
    number = driven.number(PLAIN)
    packet = build_packet(Outline(destination=f"OS:{PLAIN}", body=b"x"))
    driven.send(PLAIN, b"first reserves the numbers")
    operations = driven.disk.operations
    driven.engine.send(1001, number, [packet])
    assert [answer.request for answer in driven.host.perform()] == [1001]
    assert driven.disk.operations == operations
    driven.checkpoint()
    again = Driven(driven.disk.crash())
    assert len(again.engine.queue(number).positions) == 1


def test_segments_go_when_nothing_in_them_lives() -> None:
    driven = Driven(SimulatedDisk(seed=4))
    driven.create(PLAIN)
    driven.create(ORDERS, transactional=True)
    transaction = driven.begin()
    driven.send(ORDERS, b"stays", transaction=transaction)
    driven.commit(transaction)
    for _ in range(20):
        driven.send(PLAIN, b"x", size=4000)
        driven.receive(PLAIN)
    first = driven.host.log.segments()[0].number
    driven.checkpoint()
    assert driven.host.log.segments()[0].number == first, "something lives there"
    assert driven.host.is_wasteful()
    relocate(driven)
    driven.checkpoint()
    assert driven.host.log.segments()[0].number > first
    again = Driven(driven.disk.crash())
    assert again.receive(ORDERS) == b"stays"


def test_what_is_prepared_lives_on_when_its_segment_goes() -> None:
    driven = Driven(SimulatedDisk(seed=5))
    driven.create(ORDERS, transactional=True)
    driven.create(PLAIN)
    within(lambda each, tx: each.send(ORDERS, b"promised", transaction=tx), "prepare")(driven)
    first = driven.host.log.segments()[0].number
    for _ in range(20):
        driven.send(PLAIN, b"x", size=4000)
        driven.receive(PLAIN)
    driven.checkpoint()
    relocate(driven)
    driven.checkpoint()
    assert driven.host.log.segments()[0].number > first
    again = Driven(driven.disk.crash())
    end_prepared(again)
    assert again.receive(ORDERS) == b"promised"


@pytest.mark.spec("MS-MQDMPR 3.1.7.2.5", "MS-MQDMPR 3.1.7.2.6")
def test_the_host_looks_at_the_disk_and_throttles() -> None:
    disk = SimulatedDisk(seed=6)
    driven = Driven(disk, Limits(disk_reserve_bytes=100_000))
    driven.create(PLAIN)
    disk.capacity = disk.used + 50_000
    driven.host.watch_resources()
    with pytest.raises(MessageQueueError) as caught:
        driven.send(PLAIN, b"x")
    assert caught.value.code == HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    disk.capacity = disk.used + 150_000
    driven.host.watch_resources()
    assert driven.engine.state.throttled, "not before there is twice as much"
    disk.capacity = disk.used + 250_000
    driven.host.watch_resources()
    driven.send(PLAIN, b"x")


def test_a_new_store_without_any_room_is_refused() -> None:
    disk = SimulatedDisk(seed=7)
    disk.capacity = 100
    with pytest.raises(StoreFull):
        Driven(disk)


def test_the_queue_managers_identifier_is_the_stores() -> None:
    disk = SimulatedDisk(seed=8)
    first = Driven(disk)
    other = Identity(store_id=UUID(int=5), created=START + 5)
    again = Host(disk.crash(), other, "here", LIMITS, SETTINGS)
    assert again.engine.state.guid == first.engine.state.guid == STORE
