"""Queue managers under watch: how they are made, asked, started again, and chosen from.

What applications do is in `exchange_applications`, what else happens in `exchange_world`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from uuid import UUID

from merq.engine.changes import Answer
from merq.engine.limits import Limits
from merq.engine.queue import Queue
from merq.errors import MessageQueueError
from merq.exchange import ExchangeSettings
from merq.exchange.routes import Peer
from merq.host import HostSettings
from merq.model.delivered import Delivered
from merq.model.names import DirectName, FormatName, PrivateName, parse_format_name
from merq.model.queue import QueueSettings
from merq.protocol.binary.settings import WINDOW, SessionSettings
from merq.store.log import LogSettings
from merq.testing.managers import SimulatedMachine, SimulatedManagers
from merq.testing.wires import STILL, Storm
from merq.wire.view import MessageView
from simulation.exchange_ledger import (
    ADMIN,
    DEAD,
    PASSING,
    Fate,
    Kind,
    Ledger,
    Letter,
    Unit,
    Watcher,
)

FAVOURITES = 3
NOWHERE = "10.9.9.9"
UNREAD = (ADMIN, *DEAD.values(), r".\private$\reports")
"""Queues that nobody receives from: what is in them is looked at."""

PLAIN, STRICT = r".\private$\p", r".\private$\t"
REPORTS = r".\private$\reports"
SMALL_QUEUES = {False: r".\private$\ps", True: r".\private$\ts"}
STEADY = {False: PLAIN, True: STRICT}
FOREVER = 0xFFFFFFFF
SMALL = HostSettings(
    log=LogSettings(segment_size=16384, reserve_step=4096),
    checkpoint_bytes=16384,
    cache_bytes=4096,
    ballast_bytes=1024,
)


@dataclass(slots=True)
class Doing:
    """A request whose answer is waited for."""

    what: str
    unit: Unit | None = None
    letters: tuple[Letter, ...] = ()
    queue: int = 0


class WatchedManagers:
    """Machines, and what is known of what they were asked for."""

    HAS_CHAINS = True

    def __init__(self, seed: int, *, machine_count: int = 0, quiet: bool = False) -> None:
        self.chance = chance = Random(seed + 1)  # noqa: S311
        self.is_quiet_world = quiet
        self.storm = STILL if quiet else some_storm(chance)
        self.net = SimulatedManagers(seed, storm=STILL, host_settings=SMALL)
        self.is_short = quiet or chance.random() < 0.8
        self.is_chain = not quiet and chance.random() < 0.3 and self.HAS_CHAINS
        self.settings = self.some_settings()
        self.ledger = self.new_ledger()
        self.watchers: dict[str, Watcher] = {}
        self.asked: dict[tuple[str, int], Doing] = {}
        self.units: list[Unit] = []
        self.favourites: dict[tuple[str, bool], list[tuple[FormatName, str, str, bool]]] = {}
        self.held: list[tuple[SimulatedMachine, int, int, Delivered]] = []
        self.report_queues: dict[str, UUID] = {}
        self.tags = self.orders = 0
        count = machine_count or chance.choice((2, 2, 2, 2, 2, 3, 3, 4, 5))
        if self.is_chain:
            count = max(count, 3)
        self.ledger.answers_wait_s = self.settings.acknowledgment_lifetime_s
        for number in range(count):
            self.add(number)
        self.introduce()
        for machine in self.net.machines.values():
            self.start(machine)
            self.furnish(machine)
        self.is_strict = chance.random() < 0.4
        self.net.storm = self.storm

    # Making.

    def new_ledger(self) -> Ledger:
        return Ledger(self.net.machines)

    def some_settings(self) -> ExchangeSettings:
        chance = self.chance
        window = chance.choice((1, 2, 4, 64, 1024))
        session = SessionSettings(window=min(window, WINDOW), merq_window=window)
        if not self.is_short:
            return ExchangeSettings(session=session, forwards=self.is_chain)
        return ExchangeSettings(
            session=SessionSettings(
                window=session.window,
                merq_window=session.merq_window,
                initialization_s=10,
                cleanup_s=chance.choice((5, 60, 300)),
            ),
            retry_s=1.0,
            order_ack_s=chance.choice((0.05, 0.2)),
            order_ack_max_s=chance.choice((0.5, 2.0)),
            order_ack_every=chance.choice((1, 3, 1000)),
            resend_s=(2, 2, 4, 8),
            in_doubt_s=chance.choice((21_600, 21_600, 30)),
            insecure_nacks=chance.random() < 0.5,
            forwards=self.is_chain,
            links_per_peer_max=chance.choice((2, 64)),
            outbox_high_bytes=chance.choice((500, 4 << 20)),
        )

    def add(self, number: int) -> None:
        addresses: tuple[str, ...] = (f"10.0.0.{number + 1}",)
        if self.chance.random() < 0.3:
            addresses += (f"10.0.1.{number + 1}",)
        limits = Limits(disk_reserve_bytes=self.chance.choice((0, 0, 2000)))
        name = f"m{number}"
        machine = self.net.add(name, addresses, settings=self.settings, limits=limits, start=False)
        machine.listener = lambda answer: self.answered(machine, answer)
        machine.on_crash = lambda: self.crashing(machine)
        watcher = Watcher(self.ledger, machine)
        self.watchers[name] = self.ledger.watchers[name] = watcher
        machine.on_step = watcher.look
        self.ledger.gives_up = self.settings.in_doubt_s < 1000

    def introduce(self) -> None:
        """The settings of each know the others; in a chain, the ends go by the middle."""
        machines = list(self.net.machines.values())
        for machine in machines:
            peers = []
            for other in machines:
                ends = {machine.name, other.name} == {"m0", "m2"}
                via = "m1" if self.is_chain and ends else ""
                host = "" if via else self.chance.choice((other.name, *other.addresses))
                peers.append(Peer(name=other.name, guid=other.guid, host=host, via=via))
            machine.peers = tuple(peers)

    def admin_queue(self, sender: str, target: str, admin: str) -> str:
        """How an application names an administration queue: so that who has to tell it may.

        By default that is only who sent the message, and computers in the file of peers, by the
        name or the address that they have there (`exchange.allowed_admin_queues`).
        """
        computer = self.ledger.machines[admin]
        address = computer.addresses[0]
        known = [
            {peer.host for peer in machine.peers if peer.name == admin}
            for machine in self.net.machines.values()
            if machine.name != admin
        ]
        is_sender = sender == admin and not self.is_chain
        if is_sender or all(address in hosts for hosts in known) or self.tells_anybody(target):
            return f"TCP:{address}{ADMIN[1:]}"
        return f"OS:{admin}{ADMIN[1:]}"

    def tells_anybody(self, target: str) -> bool:
        """Whether a computer acknowledges to wherever a message wants it."""
        del target
        return False

    def furnish(self, machine: SimulatedMachine) -> None:
        for path in (ADMIN, DEAD[False], PLAIN, SMALL_QUEUES[False], PASSING[False]):
            self.make_queue(machine, path, transactional=False)
        for path in (DEAD[True], STRICT, SMALL_QUEUES[True], PASSING[True]):
            self.make_queue(machine, path, transactional=True)
        self.make_queue(machine, REPORTS, transactional=False)
        self.net.rest()

    def make_queue(self, machine: SimulatedMachine, path: str, *, transactional: bool) -> None:
        quota = 1 if path in SMALL_QUEUES.values() else FOREVER
        journaling = path in (PLAIN, STRICT) and self.chance.random() < 0.3
        settings = QueueSettings(transactional=transactional, quota=quota, journaling=journaling)
        identifier = self.net.new_guid()
        if path == REPORTS:
            self.report_queues[machine.name] = identifier
        self.ask(
            machine,
            Doing("create"),
            lambda request: machine.engine.create_queue(request, path, settings, identifier),
        )

    # Asking and being answered.

    def ask(self, machine: SimulatedMachine, doing: Doing, asking: Callable[[int], object]) -> bool:
        """Asks for something; False if it was refused."""

        def noted(request: int) -> None:
            self.asked[machine.name, request] = doing
            try:
                asking(request)
            except MessageQueueError:
                del self.asked[machine.name, request]
                raise

        try:
            machine.ask(noted)
        except MessageQueueError:
            self.refused(doing)
            return False
        return True

    def refused(self, doing: Doing) -> None:
        for letter in doing.letters:
            letter.is_refused = True
        if doing.unit is not None and doing.what == "send":
            doing.unit.fate = Fate.UNDONE

    def answered(self, machine: SimulatedMachine, answer: Answer) -> None:
        doing = self.asked.pop((machine.name, answer.request))
        result, unit = answer.result, doing.unit
        if doing.what in ("stage", "lock") and unit is not None:
            unit.pending -= 1
        if isinstance(result, MessageQueueError):
            self.refused(doing)
            if doing.what == "commit" and unit is not None:
                unit.fate = Fate.UNDONE
            return
        if doing.what in ("send", "commit") and unit is not None:
            unit.fate = Fate.DONE
            for _, _, letter in unit.received:
                self.got(letter)
        elif doing.what == "abort" and unit is not None:
            unit.fate = Fate.UNDONE
        elif doing.what == "receive":
            assert isinstance(result, list)
            for each in result:
                self.got(self.letter_in(each))
        elif doing.what == "hold":
            assert isinstance(result, Delivered)
            self.held.append((machine, machine.lives, doing.queue, result))
        elif doing.what == "lock" and unit is not None:
            assert isinstance(result, Delivered)
            unit.received.append((doing.queue, result.lookup_id, self.letter_in(result)))

    def letter_in(self, delivered: Delivered) -> Letter:
        return self.ledger.letters[int(MessageView(delivered.packet).label)]

    def got(self, letter: Letter) -> None:
        letter.received += 1
        letter.is_gone = False
        assert letter.received == 1 or self.ledger.may_repeat(letter), f"received twice: {letter}"

    # Lives.

    def start(self, machine: SimulatedMachine) -> None:
        machine.start()
        if not machine.is_up:
            return
        self.watchers[machine.name].started()
        outgoing = self.tags_in_outgoing(machine)
        there = {
            (number, lookup_id)
            for number, seen in self.watchers[machine.name].seen.items()
            for lookup_id in seen
        }
        for unit in self.units:
            if unit.machine == machine.name and unit.fate is Fate.DOUBT:
                self.resolve(unit, outgoing, there)

    def tags_in_outgoing(self, machine: SimulatedMachine) -> set[int]:
        state = machine.engine.state
        return {
            int(view.label)
            for queue in machine.engine.outgoing_queues()
            for place in queue.positions
            if (view := MessageView(state.stored(place)[1])).packet[16:32] == state.source
            and not view.message_class
        }

    def resolve(self, unit: Unit, outgoing: set[int], there: set[tuple[int, int]]) -> None:
        """What became of a transaction or a send that was under way when its machine went down."""
        letters = [
            letter
            for letter in unit.letters
            if not letter.is_refused and not letter.expires and letter.kind is not Kind.EXPRESS
        ]
        signs = [letter.tag in outgoing for letter in letters]
        signs += [
            (number, lookup_id) not in there
            for number, lookup_id, letter in unit.received
            if not letter.expires
        ]
        if not signs:
            return
        assert all(signs) or not any(signs), f"half of a unit happened: {signs} {letters}"
        unit.fate = Fate.DONE if signs[0] else Fate.UNDONE
        if signs[0]:
            for _, _, letter in unit.received:
                letter.is_unclear = False
                self.got(letter)

    def crashing(self, machine: SimulatedMachine) -> None:
        self.watchers[machine.name].crashing()
        for key in [each for each in self.asked if each[0] == machine.name]:
            doing = self.asked.pop(key)
            if doing.unit is not None and doing.what in ("send", "commit"):
                doing.unit.fate = Fate.DOUBT
            if doing.what in ("receive", "commit"):
                self.blur(machine)
        for unit in self.units:
            if unit.machine == machine.name and unit.fate is Fate.OPEN:
                unit.fate = Fate.UNDONE
        # A send or commit that the power cut interrupted has not been noted as asked.
        for unit in self.units:
            if unit.machine == machine.name and unit.fate is Fate.ASKED:
                unit.fate = Fate.DOUBT

    def blur(self, machine: SimulatedMachine) -> None:
        """What left a queue may have been received by one who was not told any more."""
        for letter in self.ledger.letters.values():
            if letter.target == machine.name and letter.is_gone and not letter.received:
                letter.is_unclear = True

    # Choosing.

    def some_machine(self) -> SimulatedMachine | None:
        up = [each for each in self.net.machines.values() if each.is_up]
        return self.chance.choice(up) if up else None

    def some_queue(self, machine: SimulatedMachine, *paths: str) -> Queue | None:
        try:
            return machine.engine.find_queue(self.chance.choice(paths))
        except MessageQueueError:
            return None

    def some_outgoing(self, machine: SimulatedMachine) -> Queue | None:
        queues = machine.engine.outgoing_queues()
        return self.chance.choice(queues) if queues else None

    def some_name(
        self, sender: SimulatedMachine, *, transactional: bool
    ) -> tuple[FormatName, str, str, bool]:
        """A name to send to, most often one of a few, so that sequences grow long."""
        names = self.favourites.setdefault((sender.name, transactional), [])
        if self.is_strict and transactional:
            while not names or not names[0][3]:
                names[:] = [self.any_name(sender, transactional=True)]
            return names[0]
        if len(names) < FAVOURITES or self.chance.random() < 0.15:
            names.append(self.any_name(sender, transactional=transactional))
            return names[-1]
        return self.chance.choice(names[:FAVOURITES])

    def any_name(
        self, sender: SimulatedMachine, *, transactional: bool
    ) -> tuple[FormatName, str, str, bool]:
        """A name to send to; the machine and the path that it means, and whether it is certain."""
        chance = self.chance
        others = [each for each in self.ledger.machines.values() if each is not sender]
        target = chance.choice(others)
        luck = chance.random()
        path = STEADY[transactional]
        if luck < 0.06:
            path = SMALL_QUEUES[transactional]
        elif luck < 0.12:
            path = PASSING[transactional]
        elif luck < 0.15:
            path = r".\private$\none"
        elif luck < 0.19:
            path = STEADY[not transactional]
        is_steady = path == STEADY[transactional]
        luck = chance.random()
        if luck < 0.01:
            name: object = parse_format_name(f"DIRECT=TCP:{NOWHERE}{path[1:]}")
            return name, "", path, False  # type: ignore[return-value] # a direct name
        if luck < 0.5:
            host = f"TCP:{chance.choice(target.addresses)}"
        elif luck < 0.75:
            host = f"OS:{chance.choice((target.name, target.name.upper()))}"
        else:
            # Numbers are the same on all machines: their queues are made in the same order.
            number = self.number_of(path)
            return PrivateName(computer=target.guid, number=number), target.name, path, is_steady
        name = parse_format_name(f"DIRECT={host}{path[1:]}")
        assert isinstance(name, DirectName)
        return name, target.name, path, is_steady

    @staticmethod
    def number_of(path: str) -> int:
        order = (ADMIN, DEAD[False], PLAIN, SMALL_QUEUES[False], PASSING[False], DEAD[True], STRICT,
                 SMALL_QUEUES[True], PASSING[True])  # fmt: skip
        return 16 + order.index(path) if path in order else 999


def some_storm(chance: Random) -> Storm:
    return Storm(
        cut=chance.choice((0.0, 0.003, 0.01, 0.03)),
        refused=chance.choice((0.0, 0.0, 0.3)),
        torn=chance.choice((0.0, 0.3, 0.9)),
        late=chance.choice((0.0, 0.0, 0.1)),
        late_s=chance.choice((0.5, 5.0, 30.0)),
        half_open=chance.choice((0.0, 0.5)),
        half_open_s=chance.choice((2.0, 40.0, 150.0)),
        lost_name=chance.choice((0.0, 0.3)),
        damaged=chance.choice((0.0, 0.0, 0.0, 0.02)),
    )
