"""Merq and a queue manager by the letter of the documents, while everything between them fails.

The exchange's world, in which one computer is a `SimulatedStrictPeer`: messages go both ways, and
the same ledger says in the end whether each is where it must be. Besides, the strict peer has
nothing to complain of, and no session ended for what Merq did.
"""

from __future__ import annotations

from collections.abc import Callable

from merq.engine.positions import PURGE_PENDING
from merq.exchange.routes import Peer
from merq.model.names import FormatName, PrivateName
from merq.testing.managers import SimulatedMachine
from merq.testing.strict_machine import SimulatedStrictPeer
from merq.testing.strict_peer import Event, Readings, UserMessage, direct
from merq.testing.strict_peer.packets import NO_NAME, NOBODY
from merq.wire.view import MessageView
from simulation.exchange_applications import BURST
from simulation.exchange_ledger import (
    ADMIN,
    PASSING,
    REACHED,
    RECEIVED,
    Computer,
    Fate,
    Kind,
    Ledger,
    Letter,
    Unit,
)
from simulation.exchange_running import FOREVER, PLAIN, SMALL_QUEUES, STRICT, UNREAD
from simulation.exchange_world import STEPS_MAX, ExchangeWorld

SHARE = 3
"""Of so many seeds of the exchange's world, one has a strict peer in it too."""

QUIET_ENDS = ("idle", "nothing is heard", "not established in time", "the session was refused")
"""Why a strict peer closes a session though nobody did wrong."""

REST_S = 4000.0


class StrictLedger(Ledger):
    """A ledger in which the strict peer's messages are too.

    Attributes:
        strangers: The strict peers' names.
        tags: Letters by the identifiers of their messages: acknowledgments by the letter have no
            label, and tell by their CorrelationID.
        forgotten: Letters whose identifiers were forgotten before a clock was put back.
    """

    def __init__(self, machines: dict[str, Computer]) -> None:
        super().__init__(machines)
        self.strangers: set[str] = set()
        self.tags: dict[bytes, int] = {}
        self.forgotten: set[int] = set()

    def letter_in(self, view: MessageView) -> Letter:
        if view.label:
            return super().letter_in(view)
        return self.letters[self.tags[view.correlation_id]]

    def may_be_both(self, letter: Letter) -> bool:
        """By the letter a message whose time is over is deleted, also if it was transmitted."""
        gives_up = letter.sender in self.strangers and letter.expires
        return gives_up or super().may_be_both(letter)

    def is_forgotten(self, letter: Letter) -> bool:
        return letter.tag in self.forgotten or super().is_forgotten(letter)

    def keeps_dead_letters(self, letter: Letter) -> bool:
        """By the letter only the source keeps dead letters, and it has deleted what was there."""
        return letter.target not in self.strangers

    def may_tell_twice(self, letter: Letter) -> bool:
        """By the letter a message that is rejected or late is told of whenever it comes.

        A message that is sent again when its time is over is late, though it was there before.
        """
        is_rejected = not letter.is_steady or letter.expires
        if letter.target in self.strangers and letter.kind is Kind.TRANSACTIONAL and is_rejected:
            return True
        return super().may_tell_twice(letter)


class StrictWatcher:
    """Is told by a strict peer what became of messages, and tells the ledger."""

    def __init__(self, ledger: StrictLedger, machine: SimulatedStrictPeer) -> None:
        self.ledger = ledger
        self.machine = machine
        self.up_since = 0
        self.highest: dict[tuple[str, str, str], int] = {}

    def listen(self, event: Event) -> None:
        message, path = event.message, f".\\{event.path}"
        if message.message_class:
            if event.kind == "arrived":
                assert path == ADMIN, f"{message.message_class:#x} in {path}"
                self.acknowledged(self.letter_of(message), message.message_class)
            return
        letter = self.ledger.letters[int(message.label)]
        match event.kind:
            case "came":
                self.ledger.tags[identifier_of(message)] = letter.tag
            case "arrived":
                self.arrived(letter, path, message)
            case "received":
                letter.received += 1
                letter.is_gone = False
                again = letter.received > 1 and not self.ledger.may_repeat(letter)
                assert not again, f"received twice: {letter}"
            case "lost":
                letter.is_gone = not letter.received
            case "journal":
                assert letter.positive, f"nobody wanted it in the journal: {letter}"
                assert letter.sender == self.machine.name
                letter.journaled += 1
            case "dead":
                assert letter.negative, f"nobody wanted it among the dead letters: {letter}"
                letter.dead.append(event.reason)

    def letter_of(self, message: UserMessage) -> Letter:
        if message.label:
            return self.ledger.letters[int(message.label)]
        return self.ledger.letters[self.ledger.tags[message.correlation]]

    def arrived(self, letter: Letter, path: str, message: UserMessage) -> None:
        assert letter.fate is not Fate.UNDONE, f"never sent, but in {path}: {letter}"
        assert (letter.target, letter.path) == (self.machine.name, path), f"in {path}: {letter}"
        letter.arrivals += 1
        allowed = letter.arrivals == 1 or self.ledger.may_repeat(letter)
        assert allowed, f"arrived again in {path}: {letter}"
        assert (message.transaction is not None) == (letter.kind is Kind.TRANSACTIONAL)
        if letter.kind is Kind.TRANSACTIONAL:
            key = (path, letter.sender, letter.name)
            last = self.highest.get(key, -1)
            assert letter.order > last, f"{letter.order} came after {last} in {path}: {letter}"
            self.highest[key] = letter.order

    def acknowledged(self, letter: Letter, reason: int) -> None:
        assert letter.asked, f"nobody asked for {reason:#x}: {letter}"
        again = reason in letter.acks and not self.ledger.may_tell_twice(letter)
        letter.acks.append(reason)
        assert not again, f"told again: {letter}"
        if reason == REACHED and not letter.arrivals:
            over = letter.is_over_at(self.ledger.machines[letter.target].wall)
            is_short = letter.expires and (over or self.ledger.has_restarted(letter))
            assert is_short, f"it never was there: {letter}"
            letter.is_unclear = True
        if reason == RECEIVED:
            assert letter.received or letter.is_gone, f"nobody received it: {letter}"


def identifier_of(message: UserMessage) -> bytes:
    """A MessageIdentifier, as CorrelationID has it."""
    return message.source + message.message_id.to_bytes(4, "little")


class StrictPeerWorld(ExchangeWorld):
    """The exchange's world with a strict peer in it."""

    HAS_CHAINS = False
    ledger: StrictLedger

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rounds = 0
        self.stranger: SimulatedStrictPeer
        super().__init__(seed, machine_count=1 + (seed % 5 == 4))
        chance = self.chance
        work: list[tuple[Callable[[], None], float]] = [
            (self.stranger_sends, 8), (self.stranger_commits, 12), (self.stranger_receives, 12),
            (self.stranger_purges, 0.5), (self.stranger_deletes, 0.5), (self.stranger_creates, 1),
            (self.stranger_pauses, 1), (self.stranger_resumes, 2), (self.stranger_crashes, 0.7),
            (self.stranger_starts, 4), (self.stranger_steps_clock, 0.2),
        ]  # fmt: skip
        self.work += work
        emphases = (0.3, 1.0, 1.0, 2.0, 4.0)
        self.weights += [weight * chance.choice(emphases) for _, weight in work]

    # Making.

    def new_ledger(self) -> StrictLedger:
        return StrictLedger({})

    def introduce(self) -> None:
        """Besides the others, each knows the stranger, which knows nobody."""
        super().introduce()
        chance, addresses = self.chance, ("10.0.2.1", "10.0.2.2")
        self.stranger = stranger = SimulatedStrictPeer(
            self.net, "stranger", addresses[: chance.choice((1, 1, 2))], self.some_readings()
        )
        for machine in self.net.machines.values():
            host = chance.choice((stranger.name, *stranger.addresses))
            machine.peers += (Peer(name=stranger.name, guid=stranger.guid, host=host),)
        machines: dict[str, Computer] = {**self.net.machines, stranger.name: stranger}
        self.ledger.machines = machines
        self.ledger.strangers = {stranger.name}
        watcher = StrictWatcher(self.ledger, stranger)
        self.ledger.watchers[stranger.name] = watcher
        stranger.listener = watcher.listen
        for path in (ADMIN, PLAIN, STRICT, *SMALL_QUEUES.values(), *PASSING.values()):
            self.make_strangers_queue(path)

    def tells_anybody(self, target: str) -> bool:
        """The stranger does, by the letter; it has no name service either."""
        return target in self.ledger.strangers

    def some_readings(self) -> Readings:
        chance = self.chance
        is_hasty = self.is_short and chance.random() < 0.7
        return Readings(
            ack_timeout_ms=chance.choice((20_000, 120_000)),
            # An acknowledgment takes up to half of 120 s, and an idle session is closed regardless.
            cleanup_s=chance.choice((70.0, 300.0)) if is_hasty else 300.0,
            retry_s=1.0 if is_hasty else 5.0,
            resend_s=(2.0, 2.0, 4.0, 8.0) if is_hasty else Readings().resend_s,
            order_ack_s=chance.choice((0.05, 0.2, 0.5)) if is_hasty else 0.5,
            order_ack_max_s=chance.choice((0.5, 10.0)) if is_hasty else 10.0,
            shares_sessions=chance.random() < 0.5,
            orders_rejected=chance.random() < 0.5,
            expires_first=self.seed % 2 == 0,
            insecure_nacks=chance.random() < 0.5,
            miscounts=chance.choice((0.0, 0.0, 0.01, 0.1)),
            short_of_memory=chance.choice((0.0, 0.0, 0.05)),
        )

    def make_strangers_queue(self, path: str) -> None:
        transactional = path in (STRICT, SMALL_QUEUES[True], PASSING[True])
        quota = 1 if path in SMALL_QUEUES.values() else FOREVER
        self.stranger.do(
            lambda peer: peer.create_queue(
                path[2:], self.number_of(path), transactional=transactional, quota=quota
            )
        )

    def any_name(
        self, sender: SimulatedMachine, *, transactional: bool
    ) -> tuple[FormatName, str, str, bool]:
        """A strict peer finds nobody by a GUID, so it is sent to by direct names."""
        while True:
            found = super().any_name(sender, transactional=transactional)
            if found[1] != self.stranger.name or not isinstance(found[0], PrivateName):
                return found

    # What the stranger's applications do.

    def strangers_letter(self, kind: Kind, order: int) -> UserMessage:
        chance = self.chance
        target = chance.choice(list(self.net.machines.values()))
        transactional = kind is Kind.TRANSACTIONAL
        path = {False: PLAIN, True: STRICT}[transactional]
        luck = chance.random()
        if luck < 0.06:
            path = SMALL_QUEUES[transactional]
        elif luck < 0.12:
            path = PASSING[transactional]
        elif luck < 0.15:
            path = r".\private$\none"
        elif luck < 0.18:
            path = {True: PLAIN, False: STRICT}[transactional]
        is_steady = path == {False: PLAIN, True: STRICT}[transactional]
        name = f"TCP:{chance.choice(target.addresses)}{path[1:]}"
        wants = chance.random() < 0.5
        reach = chance.choice((FOREVER,) * 8 + (3, 30))
        receive = chance.choice((FOREVER,) * 8 + (4, 60))
        self.tags += 1
        computers = self.ledger.machines.values()
        letter = Letter(
            tag=self.tags,
            sender=self.stranger.name,
            target=target.name,
            path=path,
            name=f"direct={name}".lower(),
            kind=kind,
            unit=Unit(self.stranger.name, Fate.DONE),
            is_steady=is_steady,
            expires=reach != FOREVER or receive != FOREVER,
            to_be_received_s=receive,
            positive=wants and chance.random() < 0.4,
            negative=wants and chance.random() < 0.6,
            own_dead=False,
            asked=chance.choice((0, 1, 2, 3, 4, 8, 12, 15)) if wants else 0,
            lives={each.name: each.lives for each in computers},
            walls={each.name: each.wall for each in computers},
            order=order,
        )
        self.ledger.letters[letter.tag] = letter
        # It has no name service, and may have to tell of what never left.
        queues = [self.admin_queue(letter.sender, letter.target, each.name) for each in computers]
        admin = chance.choice([each for each in queues if each.startswith("TCP:")])
        return UserMessage(
            source=NOBODY,
            destination=direct(name),
            label=str(letter.tag),
            body=bytes(chance.choice((0, 10, 200, 700))),
            recoverable=kind is not Kind.EXPRESS,
            priority=chance.choice((3, 3, 0, 7)),
            journal=letter.positive,
            dead_letter=letter.negative,
            asked=letter.asked,
            admin=direct(admin) if letter.asked else NO_NAME,
            time_to_reach=reach,
            time_to_receive=receive,
        )

    def noted(self, sent: list[UserMessage]) -> None:
        for message in sent:
            self.ledger.tags[identifier_of(message)] = int(message.label)

    def stranger_sends(self) -> None:
        if self.stranger.is_up:
            kind = self.chance.choice((Kind.EXPRESS, Kind.RECOVERABLE))
            message = self.strangers_letter(kind, 0)
            self.noted([self.stranger.do(lambda peer: peer.send(message, self.net.now))])

    def stranger_commits(self) -> None:
        if not self.stranger.is_up:
            return
        messages = []
        for _ in range(self.chance.choice((1, 1, 1, 2, 3, BURST))):
            self.orders += 1
            messages.append(self.strangers_letter(Kind.TRANSACTIONAL, self.orders))
        self.noted(self.stranger.do(lambda peer: peer.commit(messages, self.net.now)))

    def strangers_path(self, *paths: str) -> str:
        return self.chance.choice(paths)[2:]

    def stranger_receives(self) -> None:
        if self.stranger.is_up:
            path = self.strangers_path(PLAIN, STRICT, *SMALL_QUEUES.values(), *PASSING.values())
            for _ in range(self.chance.choice((1, 1, 3, 100))):
                if self.stranger.do(lambda peer: peer.receive(path, self.net.now)) is None:
                    return

    def stranger_purges(self) -> None:
        if self.stranger.is_up:
            path = self.strangers_path(PLAIN, STRICT)
            for stored in self.stranger.peer.incoming.queues[path].messages.values():
                self.ledger.letters[int(stored.message.label)].is_purged_target = True
            self.stranger.do(lambda peer: peer.purge_queue(path, self.net.now))

    def stranger_deletes(self) -> None:
        if self.stranger.is_up:
            path = self.strangers_path(*PASSING.values())
            self.stranger.do(lambda peer: peer.delete_queue(path, self.net.now))

    def stranger_creates(self) -> None:
        if self.stranger.is_up:
            self.make_strangers_queue(self.chance.choice(list(PASSING.values())))

    def stranger_pauses(self) -> None:
        if self.stranger.is_up:
            queues = list(self.stranger.peer.outgoing.queues.values())
            if queues:
                queue = self.chance.choice(queues)
                self.stranger.do(lambda peer: peer.pause(queue, self.net.now))

    def stranger_resumes(self) -> None:
        if self.stranger.is_up:
            for queue in list(self.stranger.peer.outgoing.queues.values()):
                if queue.is_on_hold:
                    self.resume_strangers(queue.name.text.lower())

    def resume_strangers(self, key: str) -> None:
        self.stranger.do(lambda peer: peer.resume(peer.outgoing.queues[key], self.net.now))

    def stranger_crashes(self) -> None:
        self.stranger.crash()

    def stranger_starts(self) -> None:
        if not self.stranger.is_up and self.chance.random() < 0.7:
            self.stranger.start()

    def stranger_steps_clock(self) -> None:
        letters = self.ledger.letters.values()
        self.ledger.forgotten |= {each.tag for each in letters if self.ledger.is_forgotten(each)}
        self.stranger.offset_s += self.chance.choice((-3600, -20, -2, 2, 20, 3600))

    def part(self) -> None:
        pair = self.chance.sample(sorted(self.ledger.machines), 2)
        self.net.walls.add(frozenset(pair))

    # The end.

    def calm(self) -> None:
        for machine in self.net.machines.values():
            # A purge that a full disk undid is done at the next start, and told of then.
            if machine.is_up and self.rounds and not self.asked and self.has_purged(machine):
                machine.crash("kill")
        self.rounds += 1
        super().calm()
        if not self.stranger.is_up:
            self.stranger.start()
        self.stranger_resumes()

    @staticmethod
    def has_purged(machine: SimulatedMachine) -> bool:
        queues = machine.engine.state.queues.values()
        return any(
            place.state == PURGE_PENDING
            for queue in queues
            if not queue.is_outgoing
            for place in queue.positions
        )

    def drain(self) -> None:
        super().drain()
        for path in list(self.stranger.peer.incoming.queues):
            if f".\\{path}" not in UNREAD:
                while self.stranger.do(lambda peer: peer.receive(path, self.net.now)):  # noqa: B023
                    pass

    def is_done(self) -> bool:
        if not self.stranger.is_up or self.stranger.is_due or not super().is_done():
            return False
        peer = self.stranger.peer
        if any(not queue.is_empty for queue in peer.outgoing.queues.values()):
            return False
        return not any(
            queue.messages
            for queue in peer.incoming.queues.values()
            if f".\\{queue.path}" not in UNREAD
        )

    def rest_seconds(self) -> float:
        return REST_S

    def what_waits(self) -> list[str]:
        found = super().what_waits()
        for queue in self.stranger.peer.outgoing.queues.values():
            if not queue.is_empty:
                table = [(each.message.label, each.number) for each in queue.table.values()]
                found.append(
                    f"stranger {queue.name.text} has {table}, "
                    f"awaiting {list(queue.awaiting_final)}, remote {queue.remote.hex()}"
                )
        return found

    def check_links(self) -> None:
        super().check_links()
        lost = any(letter.target == "" for letter in self.ledger.letters.values())
        peer = self.stranger.peer
        gone = self.net.run(2000.0, until=lambda: not peer.connections.sessions)
        assert gone or lost, "the stranger's sessions are left"

    def check_told(self) -> None:
        """No session ended for what Merq did; a miscount of the other side ends one."""
        if self.net.damages:
            return
        stranger = self.stranger
        assert not stranger.complaints, f"the stranger complains: {stranger.complaints[:5]}"
        wrong = [each for each in stranger.closures if not each.startswith(QUIET_ENDS)]
        assert not wrong, f"the stranger closed sessions: {wrong[:5]}"
        if not stranger.miscounts:
            super().check_told()


def run_seed(seed: int) -> None:
    """One world, from its making to its quiet end."""
    world = StrictPeerWorld(seed)
    world.live(world.chance.randint(150, STEPS_MAX))
    world.finish()


def run_every_third(seed: int) -> None:
    """Runs one of three seeds, so that a range of the exchange's seeds has strict peers in it."""
    if seed % SHARE == 0:
        run_seed(seed)
