"""What applications do with queue managers that are under watch: they send, receive and commit."""

from __future__ import annotations

from uuid import UUID

from merq.engine.queue import Queue
from merq.model.names import FormatName, PrivateName
from merq.model.selecting import First
from merq.testing.managers import SimulatedMachine
from merq.wire.build import Outline, build_packet
from merq.wire.headers import DEBUG_QUEUE_PUBLIC, DebugFields, DebugFlags, DebugHeader
from merq.wire.view import MessageView
from simulation.exchange_ledger import (
    DEAD,
    PASSING,
    Fate,
    Kind,
    Letter,
    Unit,
)
from simulation.exchange_running import (
    FOREVER,
    PLAIN,
    SMALL_QUEUES,
    STRICT,
    Doing,
    WatchedManagers,
)

UNITS_MAX = 3
BURST = 12


class Applications(WatchedManagers):
    """Programs on all machines."""

    # Sending.

    def letter(
        self, machine: SimulatedMachine, unit: Unit, kind: Kind
    ) -> tuple[Letter, FormatName, bytes]:
        chance = self.chance
        transactional = kind is Kind.TRANSACTIONAL
        name, target, path, is_steady = self.some_name(machine, transactional=transactional)
        self.tags += 1
        wants = chance.random() < 0.5
        reach = chance.choice((FOREVER,) * 8 + (3, 30))
        receive = unit.lifetime
        letter = Letter(
            tag=self.tags,
            sender=machine.name,
            target=target,
            path=path,
            name=str(name).lower(),
            kind=kind,
            unit=unit,
            is_steady=is_steady,
            expires=reach != FOREVER or receive != FOREVER,
            to_be_received_s=receive,
            positive=wants and chance.random() < 0.4,
            negative=wants and chance.random() < 0.6,
            own_dead=False,
            asked=chance.choice((0, 1, 2, 3, 4, 8, 12, 15)) if wants else 0,
            lives={each.name: each.lives for each in self.ledger.machines.values()},
            walls={each.name: each.wall for each in self.ledger.machines.values()},
        )
        self.ledger.letters[self.tags] = letter
        unit.letters.append(letter)
        admin = chance.choice(list(self.ledger.machines))
        outline = Outline(
            destination=name if isinstance(name, PrivateName) else str(name)[len("DIRECT=") :],
            body=bytes(chance.choice((0, 10, 200, 700))),
            label=str(self.tags),
            priority=chance.choice((3, 3, 0, 7)),
            recoverable=kind is not Kind.EXPRESS,
            admin_queue=self.admin_queue(machine.name, target, admin) if letter.asked else "",
            acknowledgments=letter.asked,
            positive_journaling=letter.positive,
            negative_journaling=letter.negative,
            time_to_reach_queue=reach,
            time_to_be_received=receive,
        )
        packet = build_packet(outline)
        if chance.random() < 0.05:
            packet = traced(packet, self.report_queues[machine.name])
        return letter, name, packet

    def some_lifetime(self) -> int:
        return self.chance.choice((FOREVER,) * 8 + (4, 60))

    def send(self) -> None:
        self.send_some(1)

    def send_to_many(self) -> None:
        self.send_some(self.chance.choice((2, 3)))

    def send_some(self, count: int) -> None:
        machine = self.some_machine()
        if machine is None:
            return
        kind = self.chance.choice((Kind.EXPRESS, Kind.RECOVERABLE))
        unit = Unit(machine.name, Fate.ASKED, lifetime=self.some_lifetime())
        self.units.append(unit)
        made = [self.letter(machine, unit, kind) for _ in range(count)]
        if len({letter.name for letter, _, _ in made}) < count:
            unit.fate = Fate.UNDONE  # each copy has a name of its own
            return
        self.ask(
            machine,
            Doing("send", unit, tuple(letter for letter, _, _ in made)),
            lambda request: machine.engine.send_to(
                request, [(name, packet) for _, name, packet in made], dead_letter=""
            ),
        )

    def open_unit(self, machine: SimulatedMachine) -> Unit:
        mine = [
            each for each in self.units if each.machine == machine.name and each.fate is Fate.OPEN
        ]
        if mine and (len(mine) >= UNITS_MAX or self.chance.random() < 0.7):
            return self.chance.choice(mine)
        number = machine.engine.transactions.begin()
        unit = Unit(machine.name, number=number, lifetime=self.some_lifetime())
        self.units.append(unit)
        return unit

    def transact(self) -> None:
        machine = self.some_machine()
        if machine is None:
            return
        unit = self.open_unit(machine)
        made = [
            self.letter(machine, unit, Kind.TRANSACTIONAL)
            for _ in range(self.chance.choice((1, 1, 1, 2, 2, 3, BURST)))
        ]
        dead = DEAD[True] if self.chance.random() < 0.2 else ""
        names = {letter.name for letter, _, _ in made}
        if len(names) == len(made) and self.chance.random() < 0.5:
            self.stage(machine, unit, made, dead)  # copies of one message
            return
        for each in made:
            if machine.is_up:
                self.stage(machine, unit, [each], dead)
            else:
                each[0].is_refused = True

    def stage(
        self,
        machine: SimulatedMachine,
        unit: Unit,
        made: list[tuple[Letter, FormatName, bytes]],
        dead: str,
    ) -> None:
        unit.pending += 1
        destinations = [(name, packet) for _, name, packet in made]
        if not self.ask(
            machine,
            Doing("stage", unit, tuple(letter for letter, _, _ in made)),
            lambda request: machine.engine.send_to(
                request, destinations, unit.number, dead_letter=dead
            ),
        ):
            unit.pending -= 1

    def commit(self) -> None:
        self.end(is_commit=True)

    def abort(self) -> None:
        self.end(is_commit=False)

    def end(self, *, is_commit: bool) -> None:
        units = [
            each
            for each in self.units
            if each.fate is Fate.OPEN and not each.pending and self.net.machines[each.machine].is_up
        ]
        if units and is_commit:
            self.commit_unit(self.chance.choice(units))
        elif units:
            self.abort_unit(self.chance.choice(units))

    def commit_unit(self, unit: Unit) -> None:
        machine = self.net.machines[unit.machine]
        transactions = machine.engine.transactions
        unit.fate = Fate.ASKED
        for letter in unit.letters:
            self.orders += 1
            letter.order = self.orders
        if not self.ask(
            machine,
            Doing("commit", unit),
            lambda request: transactions.commit(request, unit.number),
        ):
            self.abort_unit(unit)

    def abort_unit(self, unit: Unit) -> None:
        machine = self.net.machines[unit.machine]
        transactions = machine.engine.transactions
        self.ask(
            machine, Doing("abort", unit), lambda request: transactions.abort(request, unit.number)
        )
        unit.fate = Fate.UNDONE

    # Receiving.

    def receive(self) -> None:
        machine = self.some_machine()
        if machine is not None:
            queue = self.some_queue(
                machine, PLAIN, PLAIN, STRICT, *SMALL_QUEUES.values(), *PASSING.values()
            )
            if queue is not None and queue.positions.available:
                self.receive_from(machine, queue, self.chance.choice((1, 1, 3, 100)))

    def receive_from(self, machine: SimulatedMachine, queue: Queue, most: int) -> None:
        self.ask(
            machine,
            Doing("receive", queue=queue.number),
            lambda request: machine.engine.receive(
                request, queue.number, First(), wait=False, most=most
            ),
        )

    def receive_in_transaction(self) -> None:
        machine = self.some_machine()
        if machine is None:
            return
        queue = self.some_queue(machine, STRICT, STRICT, SMALL_QUEUES[True])
        if queue is None or not queue.positions.available:
            return
        unit = self.open_unit(machine)
        unit.pending += 1
        if not self.ask(
            machine,
            Doing("lock", unit, queue=queue.number),
            lambda request: machine.engine.receive(
                request, queue.number, First(), wait=False, transaction=unit.number
            ),
        ):
            unit.pending -= 1

    def hold(self) -> None:
        """As one who takes a message out of an outgoing queue, and may put it back."""
        machine = self.some_machine()
        queue = None if machine is None else self.some_outgoing(machine)
        if machine is None or queue is None or queue.closing or not queue.positions.available:
            return
        number = queue.number
        self.ask(
            machine,
            Doing("hold", queue=number),
            lambda request: machine.engine.receive(request, number, First(), wait=False, held=True),
        )

    def end_hold(self) -> None:
        if not self.held:
            return
        machine, life, number, delivered = self.held.pop()
        if not machine.is_up or machine.lives != life:
            return
        view = MessageView(delivered.packet)
        is_own = view.packet[16:32] == machine.guid.bytes_le and not view.message_class
        delete = is_own and self.chance.random() < 0.5
        if delete:
            self.ledger.letters[int(view.label)].was_purged = True
        self.ask(
            machine,
            Doing("end hold"),
            lambda request: machine.engine.end_receive(
                request, number, [delivered.lookup_id], delete=delete
            ),
        )


def traced(packet: bytes, queue: UUID) -> bytes:
    """The same packet, with reports of its way for a queue."""
    fields = DebugFields(flags=DebugFlags(queue_type=DEBUG_QUEUE_PUBLIC))
    header = DebugHeader(fields=fields, queue_identifier=queue).pack()
    flags = int.from_bytes(packet[2:4], "little") | 0x120
    size = (len(packet) + len(header)).to_bytes(4, "little")
    return packet[:2] + flags.to_bytes(2, "little") + packet[4:8] + size + packet[12:] + header
