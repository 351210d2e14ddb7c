"""Programs that use one queue manager over a network that cuts, while the service dies at times.

What they do is left to chance, and everything that they are told goes into a ledger. In the end the
network is calm, and everybody gets his answer; each message is where it must be, and nothing of
those who are gone is left.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from random import Random
from uuid import UUID

from merq.engine.limits import Limits
from merq.errors import InDoubt, MessageQueueError
from merq.hresult import HResult
from merq.model.access import Access
from merq.model.delivered import Delivered
from merq.model.queue import QueueSettings
from merq.model.selecting import AtCursor, First
from merq.protocol.application.reports import Result
from merq.protocol.application.requests import (
    AskStatus,
    AskWhy,
    CloseCursor,
    CloseQueue,
    CreateQueue,
    DescribeQueue,
    End,
    Ending,
    EndPrepared,
    EndReceive,
    ListQueues,
    OpenCursor,
    OpenQueue,
    Prepare,
    Read,
    Request,
    Send,
)
from merq.protocol.application.server import ServerLimits
from merq.service.reception import ReceptionLimits
from merq.testing.clients import Errand, SimulatedClient, asking
from merq.testing.network import CALM, Weather
from merq.testing.service import SimulatedService
from merq.wire.build import Outline, build_packet
from simulation.application_ledger import Fate, Ledger, Letter, Unit, tags_in

CLIENTS_MAX = 4
ERRANDS_MAX = 6
STEPS_MAX = 500
REST_STEPS_MAX = 20_000
PATIENCE_ROUNDS = 20
TIGHT = ReceptionLimits(
    client=ServerLimits(
        frame_bytes_max=4096, window_bytes=1500, requests_max=3, answer_bytes_max=400
    ),
    connections_max=6,
    outbox_high_bytes=300,
    outbox_bytes_max=50_000,
    conversations_max=5,
)
SHORT = replace(TIGHT, outbox_bytes_max=2500, conversations_max=2, resume_s=20.0)
PLAIN, STRICT, ONWARD = 0, 1, 2
# The disk is full, or the client has given up before it asked.
ALWAYS = (HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED, HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE)


def packet_of(letter: Letter, extension: bytes = b"") -> bytes:
    return build_packet(
        Outline(
            destination=r"OS:simulated\private$\any",
            body=letter.tag,
            extension=extension,
            recoverable=letter.recoverable,
        )
    )


@dataclass(slots=True)
class Stage:
    """How far somebody is with receiving: what he asked last, and what he was handed."""

    request: Request | None = None
    got: Result = None


def watched(
    steps: Generator[Request, Result, Result], stage: Stage
) -> Generator[Request, Result, Result]:
    """The same steps, in sight."""
    try:
        request = next(steps)
        while True:
            stage.request = request
            try:
                answer = yield request
            except MessageQueueError as wrong:
                request = steps.throw(wrong)
                continue
            if isinstance(request, Read):
                stage.got = answer
            request = steps.send(answer)
    except StopIteration as done:
        received: Result = done.value
        return received


class ApplicationWorld:
    """A service, its clients, and what they know."""

    def __init__(self, seed: int, *, weather: Weather | None = None) -> None:
        self.chance = chance = Random(seed + 1)  # noqa: S311
        limits = chance.choice((ReceptionLimits(), ReceptionLimits(), TIGHT, SHORT))
        self.service = SimulatedService(
            seed, limits=Limits(disk_reserve_bytes=0), reception_limits=limits
        )
        self.ledger = Ledger()
        self.scratch_count = 0
        self.client_count = 0
        manager = self.service.connect("maker")
        self.queues = [
            manager.create_queue(rf".\private$\{name}", transactional=name != "plain")
            for name in ("plain", "strict", "onward")
        ]
        self.numbers = [each.number for each in self.queues]
        manager.close()
        self.clients: list[SimulatedClient] = []
        self.names: dict[SimulatedClient, str] = {}
        self.weather = weather or Weather(
            cut=chance.choice((0.0, 0.005, 0.02, 0.06)),
            refused=chance.choice((0.0, 0.3)),
            torn=chance.choice((0.0, 0.3, 0.9)),
        )
        self.service.network.weather = self.weather
        self.actions: list[tuple[Callable[[], None], float]] = [
            (self.send, 6),
            (self.receive, 6),
            (self.transact, 5),
            (self.look, 2),
            (self.make_queue, 0.5),
            (self.cancel, 2),
            (self.abandon, 0.7),
            (self.pass_time, 0.7),
            (self.kill_client, 0.6),
            (self.give_up, 0.3),
            (self.fill_disk, 0.3),
            (self.make_room, 0.6),
            (self.crash, 0.3),
            (self.crash_soon, 0.4),
        ]

    # Programs.

    def client(self) -> SimulatedClient:
        """One that is there, or a new one."""
        if (len(self.clients) < CLIENTS_MAX and self.chance.random() < 0.3) or not self.clients:
            self.client_count += 1
            made = self.service.client(f"client {self.client_count}")
            self.clients.append(made)
            self.names[made] = f"client {self.client_count}"
        return self.chance.choice(self.clients)

    def start(self, make: Callable[[SimulatedClient], Errand]) -> None:
        client = self.client()
        if len(client.doing) < ERRANDS_MAX:
            client.do(make(client))

    def letter(self, sender: str, queue: int, *, recoverable: bool = True) -> Letter:
        return self.ledger.letter(sender, queue, self.service.lives, recoverable=recoverable)

    # Sending.

    def send(self) -> None:
        self.start(self.sending)

    def sending(self, client: SimulatedClient) -> Errand:
        chance, queue = self.chance, self.numbers[PLAIN]
        recoverable = chance.random() < 0.7
        letters = [
            self.letter(self.names[client], queue, recoverable=recoverable)
            for _ in range(chance.choice((1, 1, 1, 3)))
        ]
        extension = bytes(chance.choice((0, 0, 0, 0, 0, 1000, 5000)))
        try:
            ids = yield Send(queue, [packet_of(each, extension) for each in letters])
        except InDoubt:
            self.ledger.settle(letters, Fate.IN_DOUBT)
        except MessageQueueError as wrong:
            self.ledger.settle(letters, Fate.NOT_DONE)
            self.must_be(wrong, HResult.MQ_ERROR_INSUFFICIENT_RESOURCES)  # too large
        except GeneratorExit:
            self.ledger.settle(letters, Fate.IN_DOUBT)
            raise
        else:
            assert isinstance(ids, bytes)
            assert len(ids) == 20 * len(letters)
            self.ledger.settle(letters, Fate.DONE)

    def must_be(self, wrong: MessageQueueError, *codes: HResult) -> None:
        assert wrong.code in {*codes, *ALWAYS}, f"{wrong.code:#x}: {wrong}"

    # Receiving.

    def receive(self) -> None:
        self.start(self.receiving)

    def receiving(self, client: SimulatedClient) -> Errand:
        most = self.chance.choice((0, 0, 3))
        queue = self.chance.choice(self.numbers)
        wait = self.chance.random() < 0.8
        stage = Stage()
        try:
            received = yield from watched(asking(Read(queue, First(), wait=wait, most=most)), stage)
        except InDoubt as doubt:
            for letter in self.letters_in(doubt.received):
                letter.doubts += 1
        except MessageQueueError as wrong:
            self.must_be(wrong, HResult.MQ_ERROR_IO_TIMEOUT)
        except GeneratorExit:
            # A program that ends between the two steps does not know what it has received.
            if isinstance(stage.request, EndReceive):
                for letter in self.letters_in(stage.got):
                    letter.doubts += 1
            raise
        else:
            for letter in self.letters_in(received):
                letter.readers.append(self.names[client])

    def letters_in(self, received: object) -> list[Letter]:
        found = received if isinstance(received, list) else [received]
        return [self.ledger.of(each) for each in found if isinstance(each, Delivered)]

    # Transactions.

    def transact(self) -> None:
        self.start(self.transacting)

    def transacting(self, client: SimulatedClient) -> Errand:
        unit = self.ledger.unit(self.names[client])
        number = client.begin()
        commits = self.chance.random() < 0.85
        is_ending = False
        try:
            yield from self.working(number, unit)
            if self.chance.random() < 0.25:
                yield from self.preparing(number, unit, commits=commits)
                return
            is_ending = commits
            yield End(number, Ending.COMMIT if commits else Ending.ABORT)
        except InDoubt:
            self.ledger.end(unit, Fate.IN_DOUBT if is_ending else Fate.NOT_DONE)
        except MessageQueueError as wrong:
            self.ledger.end(unit, Fate.NOT_DONE)
            self.must_be(wrong, HResult.MQ_ERROR_TRANSACTION_SEQUENCE)
        except GeneratorExit:
            if not unit.may_be_prepared:
                self.ledger.end(unit, Fate.IN_DOUBT if is_ending else Fate.NOT_DONE)
            raise
        else:
            self.ledger.end(unit, Fate.DONE if commits else Fate.NOT_DONE)

    def working(self, number: int, unit: Unit) -> Generator[Request, Result, None]:
        """What is done in a transaction."""
        for _ in range(self.chance.randint(1, 3)):
            if self.chance.random() < 0.6:
                queue = self.numbers[self.chance.choice((STRICT, ONWARD))]
                letter = self.letter(unit.owner, queue)
                letter.unit = unit
                unit.sends.append(letter)
                yield Send(queue, [packet_of(letter)], number)
                continue
            wait = self.chance.random() < 0.3
            try:
                found = yield Read(self.numbers[STRICT], First(), transaction=number, wait=wait)
            except MessageQueueError as wrong:
                if wrong.code != HResult.MQ_ERROR_IO_TIMEOUT:
                    raise
            else:
                unit.reads += self.letters_in(found)

    def preparing(
        self, number: int, unit: Unit, *, commits: bool
    ) -> Generator[Request, Result, None]:
        """From the moment it may be prepared, the end of the world decides what became of it."""
        unit.may_be_prepared = True
        try:
            yield Prepare(number, unit.guid)
        except InDoubt:
            return
        except MessageQueueError:
            self.ledger.end(unit, Fate.NOT_DONE)
            return
        unit.ending = Fate.DONE if commits else Fate.NOT_DONE
        if self.chance.random() < 0.3:
            return  # somebody else is to end it
        try:
            yield EndPrepared(unit.guid, Ending.COMMIT if commits else Ending.ABORT)
        except MessageQueueError as wrong:
            self.must_be(wrong)
            return
        self.ledger.end(unit, unit.ending)

    # Other things.

    def look(self) -> None:
        self.start(self.looking)

    def looking(self, _client: SimulatedClient) -> Errand:
        chance, queue = self.chance, self.chance.choice(self.numbers)
        try:
            match chance.randrange(6):
                case 0:
                    yield AskStatus()
                case 1:
                    yield DescribeQueue(queue)
                case 2:
                    yield ListQueues()
                case 3:
                    yield AskWhy()
                case 4:
                    handle = yield OpenQueue(queue, Access.PEEK)
                    assert isinstance(handle, int)
                    yield Read(queue, First(), peek=True, handle=handle, wait=chance.random() < 0.5)
                    yield CloseQueue(handle)
                case _:
                    cursor = yield OpenCursor(queue)
                    assert isinstance(cursor, int)
                    yield Read(queue, AtCursor(cursor), peek=True)
                    yield Read(queue, AtCursor(cursor, next_one=True), peek=True, wait=True)
                    yield CloseCursor(cursor)
        except MessageQueueError as wrong:
            self.must_be(
                wrong,
                HResult.MQ_ERROR_IO_TIMEOUT,
                HResult.MQ_ERROR_INVALID_HANDLE,  # of a connection that was lost
                HResult.MQ_ERROR_MESSAGE_ALREADY_RECEIVED,
                HResult.MQ_ERROR_ILLEGAL_CURSOR_ACTION,
            )

    def make_queue(self) -> None:
        self.start(self.making_queue)

    def making_queue(self, _client: SimulatedClient) -> Errand:
        """Made twice, the second would say that it is there already."""
        self.scratch_count += 1
        path = rf".\private$\scratch{self.scratch_count}"
        identifier = UUID(int=self.scratch_count)
        try:
            yield CreateQueue(path, QueueSettings(), identifier)
        except MessageQueueError as wrong:
            self.must_be(wrong)

    def cancel(self) -> None:
        client = self.client()
        for doing in list(client.doing.values())[:1]:
            client.cancel(doing)

    def abandon(self) -> None:
        client = self.client()
        for doing in list(client.doing.values()):
            request = doing.request
            if isinstance(request, Read) and not request.transaction:
                client.abandon(doing)
                return

    def pass_time(self) -> None:
        self.service.advance(self.chance.choice((0.5, 3, 30, 200)))

    def kill_client(self) -> None:
        if self.clients:
            client = self.clients.pop(self.chance.randrange(len(self.clients)))
            client.close()
            self.service.clients.remove(client)

    def give_up(self) -> None:
        self.client().give_up()

    def fill_disk(self) -> None:
        disk, room = self.service.disk, self.chance.randint(0, 3000)
        if self.service.is_up:
            disk.capacity = disk.used + room

    def make_room(self) -> None:
        self.service.disk.capacity = None

    def crash(self) -> None:
        self.service.crash(self.chance.choice(("power", "kill")))

    def crash_soon(self) -> None:
        self.service.crash_in(self.chance.randint(0, 30))

    # The whole of it.

    def live(self, steps: int) -> None:
        works = [each for each, _ in self.actions]
        weights = [weight for _, weight in self.actions]
        for _ in range(steps):
            if self.chance.random() < 0.3:
                self.chance.choices(works, weights)[0]()
            else:
                self.service.step()

    def finish(self) -> None:
        """The network is calm: everybody gets his answer, and everything is where it must be."""
        service = self.service
        service.network.weather = CALM
        service.disk.keep_power()
        service.disk.capacity = None
        self.let_all_end()
        self.end_prepared()
        for client in self.clients:
            client.close()
        service.clients.clear()
        service.rest(REST_STEPS_MAX)
        self.check_nothing_is_left()
        self.ledger.check(service.host.engine, service.lives)
        self.check_a_crash_changes_nothing()

    def let_all_end(self) -> None:
        for _ in range(PATIENCE_ROUNDS):
            self.service.rest(REST_STEPS_MAX)
            waiting = [(c, doing) for c in self.clients for doing in c.doing.values()]
            if not waiting:
                return
            assert any(isinstance(each.request, Read) for _, each in waiting), "nobody answers"
            for client, doing in waiting:
                client.cancel(doing)
        raise AssertionError("somebody waits for ever")

    def end_prepared(self) -> None:
        """Who comes last ends what is prepared; what is not any more has ended as it was told."""
        judge = self.service.connect("judge")
        prepared = {each.name for each in judge.prepared_transactions()}
        for unit in self.ledger.units:
            if unit.guid in prepared:
                assert unit.fate in {Fate.ASKED, Fate.IN_DOUBT}, f"{unit} has ended"
                commits = self.chance.random() < 0.5
                unit.ending = Fate.DONE if commits else Fate.NOT_DONE
                ask = Ending.COMMIT if commits else Ending.ABORT
                judge._driver.ask(EndPrepared(unit.guid, ask))
            if unit.fate is Fate.ASKED:
                self.ledger.end(unit, unit.ending)
        judge.close()

    def check_nothing_is_left(self) -> None:
        service = self.service
        service.advance(1000.0)
        service.rest(REST_STEPS_MAX)
        reception, state = service.reception, service.host.engine.state
        assert not len(reception)
        assert not service.network.lines
        assert not reception._departed
        assert not reception._conversations
        assert not reception._lost
        assert not reception.dirty
        assert state.is_settled
        assert not state.transactions
        assert not service.host.engine.opened._descriptors
        for queue in state.queues.values():
            assert not queue.waiting, f"{queue.waiting} wait for nobody"
            assert not queue.held, f"nobody holds {queue.held}"
            assert queue.positions.available == queue.positions.count

    def check_a_crash_changes_nothing(self) -> None:
        service = self.service
        before = {
            tag for *_, tag in tags_in(service.host.engine) if self.ledger.letters[tag].recoverable
        }
        service.crash("power")
        service.start()
        after = {tag for *_, tag in tags_in(service.host.engine)}
        assert before == after


def run_seed(seed: int) -> None:
    """A world with everything that can go wrong."""
    world = ApplicationWorld(seed)
    world.live(Random(seed + 2).randint(40, STEPS_MAX))  # noqa: S311
    world.finish()


def run_everywhere(seed: int, steps: int = 120) -> None:
    """One short life in a calm network, whose service is interrupted at every disk operation."""
    first = ApplicationWorld(seed, weather=CALM)
    made = first.service.disk.operations
    first.actions = [each for each in first.actions if each[1] >= 0.5]
    first.live(steps)
    for at in range(first.service.disk.operations - made):
        world = ApplicationWorld(seed, weather=CALM)
        world.actions = [each for each in world.actions if each[1] >= 0.5]
        world.service.crash_in(at)
        world.live(steps)
        world.finish()
