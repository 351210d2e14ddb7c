"""A world for the engine on a disk: random work, crashes everywhere, and what must hold.

A `Host` lives several lives on one simulated disk. What it was asked for, what it wrote and what it
answered go into a `Ledger`, which compares them at every step. After each crash the state must be
what the frames that came back add up to, and every frame that somebody was told of must be there.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Literal

from merq.engine import records
from merq.engine.administration import FIRST_PRIVATE_NUMBER
from merq.engine.positions import AVAILABLE, Place
from merq.engine.queue import Queue
from merq.engine.reading import Selector
from merq.engine.work import Phase
from merq.errors import MessageQueueError, StoreFailed
from merq.model.names import FormatName, parse_direct_name
from merq.model.queue import UNLIMITED, QueueKind, QueueSettings
from merq.model.selecting import ByLookup, ByMessageId, First
from merq.testing.disk import PowerCut
from merq.wire.build import Outline, build_packet
from merq.wire.view import MessageView
from simulation.manager_ledger import Doing, Sent, Unit
from simulation.manager_running import NAME, WatchedManager

LIVES_MAX = 3
STEPS_MAX = 90
ADMIN = r".\private$\admin"
DEAD_LETTERS = {False: r".\private$\dead", True: r".\private$\deadt"}
BASE = (
    (ADMIN, False),
    (DEAD_LETTERS[False], False),
    (DEAD_LETTERS[True], True),
    (r".\private$\plain", False),
    (r".\private$\work", True),
    (r".\private$\more", True),
)
PASSING = (r".\private$\x", r".\private$\y", r".\private$\xt", r".\private$\yt")
REMOTE = ("OS:there\\private$\\q", "OS:elsewhere\\private$\\q")
EMPHASES = (0.0, 0.3, 1.0, 1.0, 2.0, 4.0)
LASTING = frozenset({ADMIN, *DEAD_LETTERS.values()})
"""Queues that are never deleted, so that what must be in them is known."""

CRASHES: tuple[Literal["power", "kill"], ...] = ("power", "kill")


class ManagerWorld(WatchedManager):
    """A queue manager, and what it is asked for."""

    def __init__(self, seed: int, *, disk_seed: int | None = None) -> None:
        super().__init__(seed, disk_seed=disk_seed)
        self.tags = 0
        self.work: list[tuple[Callable[[], None], int]] = [
            (self.send, 10), (self.send_in_transaction, 14), (self.receive, 10),
            (self.receive_in_transaction, 14), (self.commit, 9), (self.abort, 7),
            (self.prepare, 5), (self.move, 6), (self.move_in_transaction, 5), (self.wait, 3),
            (self.cancel, 1), (self.peek, 1), (self.hold, 3), (self.end_hold, 4), (self.purge, 2),
            (self.create, 2), (self.delete, 3), (self.subqueue, 1), (self.alter, 1),
            (self.send_to, 5), (self.pass_time, 3), (self.begin_sync, 5), (self.run_sync, 4),
            (self.end_sync, 9), (self.settle, 9), (self.begin_checkpoint, 3),
            (self.run_checkpoint, 2), (self.end_checkpoint, 3), (self.relocate, 7),
            (self.fill_up, 2), (self.make_room, 3), (self.break_disk, 1), (self.look_ahead, 2),
        ]  # fmt: skip
        # Each world does much of some things and little or nothing of others.
        self.weights = [weight * self.chance.choice(EMPHASES) for _, weight in self.work]

    def start(self) -> None:
        super().start()
        for path, transactional in BASE:
            if self.find(path) is None:
                self.make_queue(path, transactional=transactional)

    def find(self, path: str) -> Queue | None:
        try:
            return self.running.engine.find_queue(path)
        except MessageQueueError:
            return None

    def some_queue(
        self, *kinds: QueueKind, transactional: bool | None = None, filled: bool = False
    ) -> Queue | None:
        found = [
            queue
            for queue in self.running.engine.state.queues.values()
            if queue.properties.kind in kinds
            and transactional in (None, queue.properties.transactional)
            and queue.number >= FIRST_PRIVATE_NUMBER
            and (queue.positions.available or not filled)
        ]
        return self.chance.choice(found) if found else None

    def some_target(self, *, transactional: bool) -> Queue | None:
        """A queue that applications send to."""
        found = self.some_queue(QueueKind.PRIVATE, transactional=transactional)
        return None if found is None or found.properties.path_name in LASTING else found

    def some_full_queue(self, *kinds: QueueKind, transactional: bool | None = None) -> Queue | None:
        """A queue that has messages, most of the time."""
        return self.some_queue(
            *kinds, transactional=transactional, filled=self.chance.random() < 0.95
        )

    def some_place(self, queue: Queue) -> Place | None:
        places = [place for place in queue.positions if place.state == AVAILABLE]
        return self.chance.choice(places) if places else None

    # Queues.

    def make_queue(self, path: str, *, transactional: bool) -> None:
        chance = self.chance
        lasting = path in LASTING
        settings = QueueSettings(
            transactional=transactional,
            journaling=self.has_notices and not lasting and chance.random() < 0.4,
            quota=UNLIMITED if lasting else chance.choice((UNLIMITED, UNLIMITED, 2)),
            poison_after=chance.choice((0, 1, 2)) if transactional else 0,
        )
        identifier = self.guid()
        engine = self.running.engine
        self.ask(
            Doing("create", mark=(records.QUEUE, 0)),
            lambda request: engine.create_queue(request, path, settings, identifier),
        )

    def create(self) -> None:
        path = self.chance.choice(PASSING)
        self.make_queue(path, transactional=path.endswith("t"))

    def delete(self) -> None:
        queue = self.some_queue(QueueKind.PRIVATE)
        if queue is not None and queue.properties.path_name not in LASTING:
            number = queue.number
            self.ask(
                Doing("delete", number, mark=(records.DROP, number)),
                lambda request: self.running.engine.delete_queue(request, number),
            )

    def alter(self) -> None:
        queue = self.some_queue(QueueKind.PRIVATE)
        if queue is not None:
            number, label = queue.number, str(self.requests)
            self.ask(
                Doing("alter", number, mark=(records.QUEUE, 0)),
                lambda request: self.running.engine.change_queue(request, number, {"label": label}),
            )

    def subqueue(self) -> None:
        queue = self.some_queue(QueueKind.PRIVATE)
        if queue is not None:
            number = queue.number
            self.ask(
                Doing("subqueue", number, mark=(records.QUEUE, 0)),
                lambda request: self.running.engine.create_subqueue(request, number, "side"),
            )

    def purge(self) -> None:
        queue = self.some_queue(QueueKind.PRIVATE, QueueKind.SUBQUEUE, QueueKind.OUTGOING)
        if queue is not None:
            number = queue.number
            self.ask(
                Doing("purge", number),
                lambda request: self.running.engine.purge(request, number),
            )

    # Sending.

    def packet(self, destination: str, *, recoverable: bool) -> tuple[int, bytes]:
        """A message with a tag of its own, and what of notices chance wants."""
        chance = self.chance
        self.tags += 1
        wants = self.has_notices and chance.random() < 0.4
        outline = Outline(
            destination=destination,
            body=bytes(chance.choice((0, 10, 200, 900))),
            priority=chance.choice((3, 3, 0, 7)),
            recoverable=recoverable,
            application_tag=self.tags,
            admin_queue=f"OS:{ADMIN}" if wants else "",
            acknowledgments=chance.choice((0, 1, 2, 3, 12, 15)) if wants else 0,
            positive_journaling=wants and chance.random() < 0.4,
            negative_journaling=wants and chance.random() < 0.5,
            time_to_be_received=chance.choice((0xFFFFFFFF,) * 4 + (5, 60)),
            time_to_reach_queue=chance.choice((0xFFFFFFFF, 0xFFFFFFFF, 20)),
        )
        return self.tags, build_packet(outline)

    def batch(
        self, queue: int, unit: Unit, *, transactional: bool
    ) -> tuple[list[int], list[bytes]]:
        tags, packets = [], []
        for _ in range(self.chance.choice((1, 1, 2, 4))):
            recoverable = transactional or self.chance.random() < 0.7
            tag, packet = self.packet(f"OS:{NAME}\\private$\\q", recoverable=recoverable)
            self.ledger.sent[tag] = Sent(unit, queue)
            packets.append(packet)
            if recoverable:
                tags.append(tag)
        unit.tags += tags
        return tags, packets

    def dead_letter(self, *, transactional: bool) -> str:
        own = self.has_notices and self.chance.random() < 0.2
        return DEAD_LETTERS[transactional] if own else ""

    def send(self) -> None:
        queue = self.some_target(transactional=False)
        if queue is None:
            return
        number, unit = queue.number, Unit(asked="send")
        _, packets = self.batch(number, unit, transactional=False)
        own = self.dead_letter(transactional=False)
        self.ask(
            Doing("send", number, unit),
            lambda request: self.running.engine.send(request, number, packets, dead_letter=own),
        )

    def send_in_transaction(self) -> None:
        queue = self.some_target(transactional=True)
        if queue is None:
            return
        transaction, unit = self.open_transaction()
        number = queue.number
        tags, packets = self.batch(number, unit, transactional=True)
        own = self.dead_letter(transactional=True)
        self.ask(
            Doing("send in transaction", number, unit, tags=tuple(tags)),
            lambda request: self.running.engine.send(
                request, number, packets, transaction, dead_letter=own
            ),
        )

    def send_to(self) -> None:
        """To other computers, and to queues here by several of their names."""
        chance = self.chance
        transaction, unit = 0, Unit(asked="send")
        if chance.random() < 0.5:
            transaction, unit = self.open_transaction()
        texts = chance.sample(REMOTE, chance.choice((1, 1, 2)))
        local = self.some_target(transactional=bool(transaction))
        if local is not None:
            path = local.properties.path_name[1:]
            for computer in chance.sample((NAME, "localhost"), chance.choice((0, 1, 2))):
                texts.append(f"OS:{computer}{path}")
        recoverable = bool(transaction) or chance.random() < 0.7
        destinations: list[tuple[FormatName, bytes]] = []
        tags = []
        for text in texts:
            tag, packet = self.packet(text, recoverable=recoverable)
            number = local.number if local is not None and text not in REMOTE else 0
            self.ledger.sent[tag] = Sent(unit, number)
            destinations.append((parse_direct_name(text), packet))
            tags.append(tag)
        if recoverable:
            unit.tags += tags
        what = "send in transaction" if transaction else "send"
        self.ask(
            Doing(what, unit=unit, tags=tuple(tags)),
            lambda request: self.running.engine.send_to(request, destinations, transaction),
        )

    # Reading and moving.

    def read(self, queue: Queue, unit: Unit | None, transaction: int = 0, *, held: bool) -> None:
        chance, number = self.chance, queue.number
        selector: Selector = First()
        first = None
        place = self.some_place(queue)
        luck = chance.random()
        if place is not None and luck < 0.15:
            selector, first = ByLookup(place.lookup_id), place.lookup_id
        elif place is not None and luck < 0.3:
            view = MessageView(self.running.engine.state.stored(place)[1])
            selector = ByMessageId(view.message_id)
        elif not queue.waiting and place is not None:
            first = min(p.lookup_id for p in queue.positions if p.state == AVAILABLE)
        most = 0 if held else chance.choice((0, 0, 3))
        if most:
            first = None
        doing = Doing("receive", number, unit, first=first, lookup_id=-1 if held else 0)
        self.ask(
            doing,
            lambda request: self.running.engine.receive(
                request, number, selector, wait=False, transaction=transaction, most=most, held=held
            ),
        )

    def readable(self, *, transactional: bool | None = None) -> Queue | None:
        kinds = [QueueKind.PRIVATE, QueueKind.SUBQUEUE]
        if transactional is None:
            kinds += [QueueKind.JOURNAL, QueueKind.SYSTEM, QueueKind.OUTGOING]
        return self.some_full_queue(*kinds, transactional=transactional)

    def receive(self) -> None:
        queue = self.readable()
        if queue is not None:
            self.read(queue, None, held=False)

    def hold(self) -> None:
        """As one who sends it on to another computer does."""
        queue = self.some_full_queue(QueueKind.OUTGOING, QueueKind.PRIVATE)
        if queue is not None:
            self.read(queue, None, held=True)

    def end_hold(self) -> None:
        if self.ledger.held:
            number, lookup_id = self.chance.choice(sorted(self.ledger.held))
            delete = self.chance.random() < 0.6
            self.ledger.held.discard((number, lookup_id))
            self.ask(
                Doing("end_receive", number, mark=(records.REMOVE, lookup_id), lookup_id=lookup_id),
                lambda request: self.running.engine.end_receive(
                    request, number, [lookup_id], delete=delete
                ),
            )

    def receive_in_transaction(self) -> None:
        queue = self.readable(transactional=True)
        if queue is not None:
            transaction, unit = self.open_transaction()
            self.read(queue, unit, transaction, held=False)

    def wait(self) -> None:
        queue = self.some_queue(QueueKind.PRIVATE, QueueKind.SUBQUEUE, QueueKind.OUTGOING)
        if queue is None:
            return
        number = queue.number
        transaction, unit = 0, None
        if queue.properties.transactional and self.chance.random() < 0.5:
            transaction, unit = self.open_transaction()
        self.ask(
            Doing("receive", number, unit, is_waiting=True),
            lambda request: self.running.engine.receive(
                request, number, First(), wait=True, transaction=transaction
            ),
        )

    def cancel(self) -> None:
        waiting = [(each, doing) for each, doing in self.ledger.asked.items() if doing.is_waiting]
        if waiting:
            request, doing = self.chance.choice(waiting)
            queue = self.running.engine.state.queues.get(doing.queue)
            if queue is not None and not queue.closing:
                self.running.engine.cancel(request, doing.queue)
                self.tell(self.running.perform())

    def peek(self) -> None:
        queue = self.readable()
        if queue is not None:
            number = queue.number
            self.ask(
                Doing("peek", number),
                lambda request: self.running.engine.peek(request, number, First(), wait=False),
            )

    def family(self) -> tuple[Queue, Queue] | None:
        """A queue and one of its subqueues, either way round; none with a quota is a target."""
        source = self.some_full_queue(QueueKind.PRIVATE, QueueKind.SUBQUEUE)
        if source is None:
            return None
        if source.properties.kind is QueueKind.SUBQUEUE:
            owner = self.running.engine.state.queues[source.properties.owner]
            return (source, owner) if owner.properties.quota == UNLIMITED else None
        subqueues = list(source.subqueues.values())
        if not subqueues:
            number = source.number
            self.ask(
                Doing("subqueue", number, mark=(records.QUEUE, 0)),
                lambda request: self.running.engine.create_subqueue(request, number, "side"),
            )
            return None
        return source, self.chance.choice(subqueues)

    def move(self) -> None:
        pair = self.family()
        place = self.some_place(pair[0]) if pair is not None else None
        if pair is not None and place is not None:
            source, target = pair[0].number, pair[1].number
            lookup_id = place.lookup_id
            self.ask(
                Doing("move", source, mark=(records.MOVE, lookup_id)),
                lambda request: self.running.engine.move(request, source, lookup_id, target),
            )

    def move_in_transaction(self) -> None:
        pair = self.family()
        place = self.some_place(pair[0]) if pair is not None else None
        if pair is None or place is None:
            return
        transaction, unit = self.open_transaction()
        source, target = pair[0].number, pair[1].number
        lookup_id = place.lookup_id
        if self.ask(
            Doing("move in transaction", source),
            lambda request: self.running.engine.move(
                request, source, lookup_id, target, transaction
            ),
        ):
            unit.moves.append((source, lookup_id, target))
            self.ledger.holding[lookup_id] = unit

    # Transactions.

    def some_transaction(self, *phases: Phase) -> tuple[int, Unit] | None:
        known = self.running.engine.state.transactions
        found = [
            (number, unit)
            for number, unit in self.open_units.items()
            if number in known and known[number].phase in phases
        ]
        return self.chance.choice(found) if found else None

    def open_transaction(self) -> tuple[int, Unit]:
        """A transaction in which more can be done; a new one if there is none, and sometimes."""
        found = self.some_transaction(Phase.OPEN)
        if found is not None and self.chance.random() < 0.8:
            return found
        number = self.running.engine.transactions.begin()
        unit = self.open_units[number] = Unit()
        self.ledger.units.append(unit)
        return number, unit

    def prepare(self) -> None:
        chosen = self.some_transaction(Phase.OPEN)
        if chosen is not None:
            number, unit = chosen
            guid = self.guid()
            before, unit.guid = unit.guid, guid.bytes
            doing = Doing("prepare", unit=unit, mark=(records.PREPARE, guid.bytes))
            engine = self.running.engine
            self.ask(doing, lambda request: engine.transactions.prepare(request, number, guid))
            transaction = engine.state.transactions.get(number)
            if transaction is None or transaction.phase is Phase.OPEN:
                unit.guid = before

    def commit(self) -> None:
        self.end_transaction("commit")

    def abort(self) -> None:
        self.end_transaction("abort")

    def end_transaction(self, how: str) -> None:
        chosen = self.some_transaction(Phase.OPEN, Phase.PREPARING, Phase.PREPARED)
        if chosen is None:
            return
        number, unit = chosen
        unit.asked = how
        mark = (records.RESOLVE, unit.guid) if unit.guid else None
        transactions = self.running.engine.transactions
        end = transactions.commit if how == "commit" else transactions.abort
        accepted = self.ask(Doing(how, unit=unit, mark=mark), lambda request: end(request, number))
        if accepted and how == "abort" and not unit.guid:
            self.ledger.end(unit)  # what it held is free at once, whatever the disk says
        if accepted and number not in self.running.engine.state.transactions:
            del self.open_units[number]

    # Lives.

    def live(self, steps: int) -> None:
        """One life: until it ends, fails or is interrupted."""
        try:
            self.open()
            for _ in range(steps):
                (do,) = self.chance.choices(self.work, self.weights)[0][:1]
                do()
            if self.chance.random() < 0.5:
                self.settle()
        except (PowerCut, StoreFailed):
            pass

    def finish(self) -> None:
        """The last life: everything comes to rest, and the store is whole."""
        self.open()
        for number, unit in sorted(self.open_units.items()):
            how = self.chance.choice(("commit", "abort"))
            unit.asked = how
            transactions = self.running.engine.transactions
            end = transactions.commit if how == "commit" else transactions.abort
            doing = Doing(how, unit=unit, mark=(records.RESOLVE, unit.guid))
            self.ask(doing, lambda request, end=end, number=number: end(request, number))  # type: ignore[misc]
        for _ in range(3):  # a copy in an application's own dead-letter queue may expire, too
            self.ledger.now += 100
            self.pass_time()
            self.settle()
        self.check_nothing_expired()
        self.check_copy(self.disk.snapshot())
        self.end_checkpoint()
        self.check_copy(self.disk.snapshot())
        self.running.close()
        assert self.disk.open_files == 0
        self.inspect()


def run_seed(
    seed: int, kind: type[ManagerWorld] = ManagerWorld, steps: int = STEPS_MAX, latest: int = 300
) -> None:
    """Several lives with crashes at any time, opening included.

    Args:
        seed: What happens.
        kind: The world in which it does.
        steps: How long a life is at most.
        latest: The last operation of the disk at which the power is cut.
    """
    world = kind(seed)
    chance = Random(seed + 1)  # noqa: S311
    for _ in range(chance.randint(1, LIVES_MAX)):
        if chance.random() < 0.7:
            world.disk.cut_power_in(chance.randint(0, chance.choice((40, 150, latest))))
        world.live(chance.randint(10, steps))
        world.crash(chance.choice(CRASHES))
    world.finish()


def run_full_everywhere(seed: int, steps: int = 25) -> None:
    """One short life, during which others fill the disk: from every operation of it on."""
    first = ManagerWorld(seed)
    first.live(steps)
    for at in range(first.disk.operations):
        world = ManagerWorld(seed, disk_seed=seed * 1000 + at)
        world.disk.fill_up_in(at)
        world.was_full = True
        world.live(steps)
        world.crash(CRASHES[at % 2])
        world.finish()


def run_everywhere(seed: int, steps: int = 25, kind: type[ManagerWorld] = ManagerWorld) -> None:
    """One short life, interrupted at every operation of the disk."""
    first = kind(seed)
    first.live(steps)
    for at in range(first.disk.operations):
        world = kind(seed, disk_seed=seed * 1000 + at)
        world.disk.cut_power_in(at)
        world.live(steps)
        world.crash(CRASHES[at % 2])
        world.finish()
