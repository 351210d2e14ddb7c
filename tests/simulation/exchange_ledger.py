"""What is known of messages between queue managers, from outside: who sent, what was seen where.

A `Watcher` looks into the queues of every machine after whatever happens there, so that each
arrival is seen once and in order; the `Ledger` has a `Letter` for each message and knows what may
become of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol
from uuid import UUID

from merq.engine.notices import DEAD_LETTER_NUMBER, DEAD_XACT_NUMBER, JOURNAL_NUMBER
from merq.engine.positions import AVAILABLE
from merq.engine.queue import Queue
from merq.engine.sequence_keys import SequenceKey
from merq.model.message_class import MessageClass
from merq.model.queue import QueueKind
from merq.testing.disk import SimulatedDisk
from merq.testing.managers import SimulatedMachine
from merq.wire.view import MessageView

FIRST_OWN = 16
ADMIN = r".\private$\admin"
DEAD = {False: r".\private$\dead", True: r".\private$\deadt"}
PASSING = {False: r".\private$\x", True: r".\private$\xt"}
REACHED = MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE
RECEIVED = MessageClass.MQMSG_CLASS_ACK_RECEIVE


class Kind(Enum):
    EXPRESS = "express"
    RECOVERABLE = "recoverable"
    TRANSACTIONAL = "transactional"


class Fate(Enum):
    """What became of a request or a transaction."""

    OPEN = "open"
    ASKED = "asked"
    DONE = "done"
    UNDONE = "undone"
    DOUBT = "in doubt"


@dataclass(slots=True, eq=False)
class Unit:
    """What happens together: a send, or a transaction with what it received.

    Attributes:
        lifetime: All messages of a transaction live as long as its first, so this is one for all.
    """

    machine: str
    fate: Fate = Fate.OPEN
    number: int = 0
    lifetime: int = 0xFFFFFFFF
    letters: list[Letter] = field(default_factory=list)
    received: list[tuple[int, int, Letter]] = field(default_factory=list)
    pending: int = 0


@dataclass(slots=True, eq=False)
class Letter:
    """A message, and what was seen of it.

    Attributes:
        place: Machine and path of the queue that it is for, if that is certain to be there and to
            take it.
        lives: How often each machine had been started when it was sent.
        walls: What each machine's clock showed then.
        to_be_received_s: TimeToBeReceived.
        order: Its place among all that was committed.
    """

    tag: int
    sender: str
    target: str
    path: str
    name: str
    kind: Kind
    unit: Unit
    is_steady: bool
    expires: bool
    to_be_received_s: int
    positive: bool
    negative: bool
    own_dead: bool
    asked: int
    lives: dict[str, int]
    walls: dict[str, int]
    is_refused: bool = False
    order: int = 0
    was_purged: bool = False
    is_purged_target: bool = False
    arrivals: int = 0
    received: int = 0
    is_gone: bool = False
    is_unclear: bool = False
    dead: list[int] = field(default_factory=list)
    journaled: int = 0
    acks: list[int] = field(default_factory=list)

    @property
    def fate(self) -> Fate:
        return Fate.UNDONE if self.is_refused else self.unit.fate

    def is_over_at(self, wall: int) -> bool:
        """Whether its time to be received has run out by a clock; its sender's gave it the time."""
        return self.walls[self.sender] + self.to_be_received_s < wall

    def __str__(self) -> str:
        seen = f"arrived {self.arrivals}, received {self.received}, gone {self.is_gone}"
        unclear = ", unclear" if self.is_unclear else ""
        wants = f"jp {self.positive}, jn {self.negative}, asked {self.asked:#x}"
        return (
            f"letter {self.tag} ({self.kind.value}, {self.fate.value}, {wants}, "
            f"expires {self.expires}, purged {self.was_purged}) from {self.sender} to {self.name} "
            f"at {self.target}: {seen}{unclear}, dead {[hex(each) for each in self.dead]}, "
            f"journaled {self.journaled}, acks {[hex(each) for each in self.acks]}"
        )


@dataclass(slots=True)
class Seen:
    """A message in a queue, as it was looked at last."""

    letter: Letter
    is_original: bool
    is_express: bool


class Computer(Protocol):
    """What the ledger asks of a machine."""

    name: str
    addresses: tuple[str, ...]
    guid: UUID
    lives: int

    @property
    def wall(self) -> int: ...


class Watching(Protocol):
    """What the ledger asks of a watcher."""

    up_since: int


@contextmanager
def readable(disk: SimulatedDisk) -> Iterator[None]:
    """Lets whoever checks read a disk whose power was cut; the machine itself cannot."""
    machine = disk._machine
    was_off, machine.off = machine.off, False
    try:
        yield
    finally:
        machine.off = was_off


class Watcher:
    """Looks into the queues of one machine."""

    def __init__(self, ledger: Ledger, machine: SimulatedMachine) -> None:
        self.ledger = ledger
        self.machine = machine
        self.sign: object = None
        self.up_since = 0
        self.counts: dict[int, tuple[int, int]] = {}
        self.seen: dict[int, dict[int, Seen]] = {}
        self.paths: dict[int, str] = {}
        self.locked: dict[int, set[int]] = {}
        self.settled: list[tuple[SequenceKey, tuple[int, int]]] = []
        self.highest: dict[tuple[int, str, str], int] = {}

    def look(self) -> None:
        if not self.machine.is_up:
            return
        host = self.machine.host
        state = host.engine.state
        # Whatever comes or goes alters one of these.
        count = state.numbers._sequential_id
        sign = (state.taken_bytes, host.log.durable, count, len(state.queues))
        if sign == self.sign:
            return
        self.sign = sign
        queues = state.queues
        for number in [number for number in self.seen if number not in queues]:
            for each in self.seen.pop(number).values():
                self.left(each)
            self.counts.pop(number, None)
        changed = []
        for number, queue in queues.items():
            if not queue.is_outgoing:
                counts = (queue.arrived, queue.left)
                if self.counts.get(number) != counts:
                    self.counts[number] = counts
                    changed.append(queue)
        # What is told of messages is looked at after the messages.
        changed.sort(key=lambda queue: queue.properties.path_name == ADMIN)
        for queue in changed:
            self.look_into(queue)

    def look_into(self, queue: Queue) -> None:
        if queue.number < FIRST_OWN:
            assert not queue.positions.count, "an acknowledgment between managers was delivered"
            return
        before = self.seen.setdefault(queue.number, {})
        self.paths[queue.number] = queue.properties.path_name
        there = {place.lookup_id: place for place in queue.positions}
        for lookup_id in [each for each in before if each not in there]:
            self.left(before.pop(lookup_id))
        for lookup_id, place in there.items():
            if lookup_id not in before:
                view = MessageView(self.machine.engine.state.stored(place)[1])
                found = self.came(queue, view)
                if found is not None:
                    before[lookup_id] = found

    def came(self, queue: Queue, view: MessageView) -> Seen | None:
        kind, path = queue.properties.kind, queue.properties.path_name
        if view.message_class == MessageClass.MQMSG_CLASS_REPORT:
            return None
        letter = self.ledger.letter_in(view)
        assert letter.fate is not Fate.UNDONE, f"never sent, but in {path}: {letter}"
        where = f"{self.machine.name} {path}"
        is_original = False
        if queue.number == JOURNAL_NUMBER:
            letter.journaled += 1
            assert letter.positive, f"nobody wanted it in {where}: {letter}"
            assert letter.sender == self.machine.name, f"in another's {where}: {letter}"
        elif queue.number in (DEAD_LETTER_NUMBER, DEAD_XACT_NUMBER) or path in DEAD.values():
            letter.dead.append(view.message_class)
            assert letter.negative, f"nobody wanted it in {where}: {letter}"
        elif kind is QueueKind.JOURNAL:
            assert letter.received or letter.unit is not None, f"in {where}: {letter}"
        elif view.message_class:
            assert path == ADMIN, f"an acknowledgment in {where}: {letter}"
            self.acknowledged(letter, view.message_class)
        else:
            is_original = True
            self.arrived(queue, letter, view)
        return Seen(letter, is_original, view.delivery_mode == 0)

    def arrived(self, queue: Queue, letter: Letter, view: MessageView) -> None:
        where = f"{self.machine.name} {queue.properties.path_name}"
        letter.arrivals += 1
        assert letter.target == self.machine.name, f"in {where}: {letter}"
        assert letter.path == queue.properties.path_name, f"in {where}: {letter}"
        allowed = letter.arrivals == 1 or self.ledger.may_repeat(letter)
        assert allowed, f"arrived again in {where}: {letter}"
        assert view.transactional == (letter.kind is Kind.TRANSACTIONAL)
        if letter.kind is Kind.TRANSACTIONAL:
            key = (queue.number, letter.sender, letter.name)
            last = self.highest.get(key, -1)
            assert letter.order > last, f"{letter.order} came after {last} in {where}: {letter}"
            self.highest[key] = letter.order

    def acknowledged(self, letter: Letter, reason: int) -> None:
        assert letter.asked, f"nobody asked for {reason:#x}: {letter}"
        again = reason in letter.acks and not self.ledger.may_tell_twice(letter)
        letter.acks.append(reason)
        assert not again, f"told again: {letter}"
        if reason == REACHED and not letter.arrivals:
            # It was there before a crash, and expired before anybody could look; or its time was
            # over when it came.
            target = self.ledger.machines[letter.target]
            is_short = letter.expires and (
                target.lives != letter.lives[letter.target] or letter.is_over_at(target.wall)
            )
            assert is_short, f"it never was there: {letter}"
            letter.is_unclear = True
        if reason == RECEIVED:
            assert letter.received or letter.is_gone, f"nobody received it: {letter}"

    def left(self, seen: Seen) -> None:
        if seen.is_original and not seen.letter.received:
            seen.letter.is_gone = True

    # Crashes.

    def crashing(self) -> None:
        """Before the machine goes down: what must be there afterwards."""
        with readable(self.machine.disk):
            self.look()
        state = self.machine.engine.state
        self.locked = {
            number: {each.lookup_id for each in queue.positions if each.state != AVAILABLE}
            for number, queue in state.queues.items()
        }
        self.settled = [(each.key, each.settled) for each in state.sequences.all()]

    def started(self) -> None:
        """After it came back: nothing is lost that was safe."""
        self.counts.clear()
        self.sign = None
        self.up_since = self.machine.wall
        state = self.machine.engine.state
        self.check_sequences([(each.key, each.settled) for each in state.sequences.all()])
        for number, before in self.seen.items():
            queue = state.queues.get(number)
            there = set() if queue is None else {each.lookup_id for each in queue.positions}
            for lookup_id in [each for each in before if each not in there]:
                seen = before.pop(lookup_id)
                is_free = lookup_id not in self.locked.get(number, ())
                letter, path = seen.letter, self.paths[number]
                may_go = not is_free or seen.is_express or letter.expires or self.is_passing(path)
                assert may_go, f"lost from {path} in a crash: {letter}"
                if seen.is_original and not letter.received:
                    letter.is_gone = letter.is_unclear = True
        self.look()

    def check_sequences(self, there: list[tuple[SequenceKey, tuple[int, int]]]) -> None:
        """No sequence went back, neither by its identifier nor by its number.

        A sender that moves may have two to one queue: one from each of its addresses.
        """
        highest: dict[SequenceKey, tuple[int, int]] = {}
        for key, settled in there:
            highest[key] = max(settled, highest.get(key, (0, 0)))
        numbers = {(key, sequence_id): number for key, (sequence_id, number) in there}
        for key, (sequence_id, number) in self.settled:
            is_back = numbers.get((key, sequence_id), number) < number
            is_back |= highest.get(key, (sequence_id, number)) < (sequence_id, number)
            assert not is_back, f"the sequence {key} went back"

    def is_passing(self, path: str) -> bool:
        return path in PASSING.values()


class Ledger:
    """All letters."""

    def __init__(self, machines: Mapping[str, Computer]) -> None:
        self.machines = machines
        self.letters: dict[int, Letter] = {}
        self.watchers: dict[str, Watching] = {}
        self.history_s = 1800
        self.gives_up = False
        self.answers_wait_s = 0

    def letter_in(self, view: MessageView) -> Letter:
        """The letter that a message is, or speaks of."""
        return self.letters[int(view.label)]

    def keeps_dead_letters(self, letter: Letter) -> bool:
        """Whether who has a message that is not transactional keeps a copy if it is lost there."""
        return bool(letter.target)

    def may_repeat(self, letter: Letter) -> bool:
        """Whether nobody can know that a message was here before.

        Express ones are not remembered beyond a restart, and identifiers of recoverable ones for
        half an hour; what came from another address is no reason to drop a message (E151).
        """
        if letter.kind is Kind.TRANSACTIONAL:
            return False
        if letter.kind is Kind.EXPRESS and self.has_restarted(letter):
            return True
        return self.is_forgotten(letter) or self.has_two_addresses(letter.sender)

    def is_forgotten(self, letter: Letter) -> bool:
        """Whether half an hour of somebody's being up has passed by his clock."""
        return any(
            machine.wall - max(letter.walls[name], self.watchers[name].up_since) > self.history_s
            for name, machine in self.machines.items()
        )

    def has_two_addresses(self, name: str) -> bool:
        """Whether a computer may be called at one address and connect from another."""
        return len(self.machines[name].addresses) > 1

    def has_restarted(self, letter: Letter) -> bool:
        return any(machine.lives != letter.lives[name] for name, machine in self.machines.items())

    def may_lose_answers(self, letter: Letter) -> bool:
        """Whether by somebody's clock acknowledgments have waited for as long as they may."""
        return any(
            machine.wall - letter.walls[name] >= self.answers_wait_s
            for name, machine in self.machines.items()
        )

    def may_tell_twice(self, letter: Letter) -> bool:
        """Whether a reason may be told by both sides, or again.

        What was refused is forgotten with a restart, and refused again if it comes again. And
        acknowledgments are messages themselves, that may repeat.
        """
        if any(self.has_two_addresses(name) for name in (letter.sender, letter.target) if name):
            return True
        if self.is_forgotten(letter) or self.may_be_both(letter):
            return True
        return letter.kind is not Kind.TRANSACTIONAL and self.has_restarted(letter)

    def may_be_both(self, letter: Letter) -> bool:
        """Whether a message may have been given up by its sender and be received nevertheless.

        A sender that was started again does not know what it had transmitted, so a message whose
        time is over is given up. One that purges an outgoing queue gives up what was transmitted
        through a session that is gone.
        """
        restarted = self.machines[letter.sender].lives != letter.lives[letter.sender]
        return letter.was_purged or (letter.expires and (restarted or self.gives_up))
