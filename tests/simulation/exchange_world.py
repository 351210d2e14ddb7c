"""Queue managers that send each other messages, while everything between and under them fails.

Two to five machines, a storm, crashes, disks that fill up, clocks that jump; applications send,
receive, commit and abort. In the end the network is whole, all are up, everything is received, and
the `Ledger` says whether each message is where it must be, and whether what was told is true.
"""

from __future__ import annotations

from collections.abc import Callable

from merq.engine.positions import AVAILABLE
from merq.engine.queue import Queue
from merq.model.queue import QueueKind
from merq.testing.disk import Operation
from merq.testing.wires import STILL
from merq.wire.view import MessageView
from simulation.exchange_applications import Applications
from simulation.exchange_checks import check_letter
from simulation.exchange_ledger import (
    PASSING,
    Fate,
)
from simulation.exchange_running import (
    NOWHERE,
    PLAIN,
    STRICT,
    UNREAD,
    Doing,
)

STEPS_MAX = 800
REST_ROUNDS = 40
EMPHASES = (0.0, 0.3, 1.0, 1.0, 2.0, 4.0)
BROKEN = ("messages, ", "that were not sent", "cannot be read", "came while", "has no place",
          "was wanted")  # fmt: skip
"""What only damage on the way may bring about."""


class ExchangeWorld(Applications):
    """Machines, their applications, and everything that may happen to them."""

    def __init__(self, seed: int, *, machine_count: int = 0, quiet: bool = False) -> None:
        super().__init__(seed, machine_count=machine_count, quiet=quiet)
        chance = self.chance
        self.work: list[tuple[Callable[[], None], float]] = [
            (self.send, 10), (self.send_to_many, 2), (self.transact, 10), (self.commit, 12),
            (self.abort, 0.7), (self.receive, 10), (self.receive_in_transaction, 8),
            (self.pause, 1), (self.resume, 2), (self.go_offline, 0.5), (self.go_online, 2),
            (self.purge, 0.5), (self.purge_outgoing, 0.3), (self.delete, 0.5), (self.create, 1),
            (self.pass_time, 5), (self.jump, 4), (self.wait_long, 0.3), (self.step_clock, 0.2),
            (self.crash, 0.5), (self.crash_soon, 0.7), (self.restart, 4), (self.fill_up, 0.5),
            (self.make_room, 2), (self.break_disk, 0.2), (self.part, 0.5), (self.heal, 2),
            (self.checkpoint, 1), (self.cut, 1), (self.hold, 0.5), (self.end_hold, 1),
        ]  # fmt: skip
        # Each world does much of some things and little or nothing of others.
        self.weights = [weight * chance.choice(EMPHASES) for _, weight in self.work]
        if self.is_strict:
            # One long sequence from each to each, and much that goes wrong with it.
            rest = (self.send, self.send_to_many, self.purge, self.purge_outgoing, self.hold)
            self.weights = [0.0 if each in rest else weight for each, weight in self.work]
        if quiet:
            usual = (self.send, self.transact, self.commit, self.receive, self.pass_time, self.jump)
            self.weights = [weight * (each in usual) for each, weight in self.work]
        self.haste = chance.choice((0.75, 0.85, 0.93))

    # Administration.

    def pause(self) -> None:
        machine = self.some_machine()
        queue = None if machine is None else self.some_outgoing(machine)
        if machine is not None and queue is not None and not queue.closing:
            machine.guarded(machine.engine.pause, queue.number)

    def resume(self) -> None:
        machine = self.some_machine()
        queue = None if machine is None else self.some_outgoing(machine)
        if machine is not None and queue is not None and not queue.closing:
            machine.guarded(machine.engine.resume, queue.number)

    def go_offline(self) -> None:
        machine = self.some_machine()
        if machine is not None:
            machine.guarded(machine.engine.take_offline)

    def go_online(self) -> None:
        for machine in self.net.machines.values():
            if machine.is_up and self.chance.random() < 0.5:
                machine.guarded(machine.engine.bring_online)

    def purge(self) -> None:
        machine = self.some_machine()
        queue = None if machine is None else self.some_queue(machine, PLAIN, STRICT)
        if machine is None or queue is None:
            return
        watcher = self.watchers[machine.name]
        watcher.look()
        for seen in watcher.seen.get(queue.number, {}).values():
            seen.letter.is_purged_target = True
        number = queue.number
        self.ask(machine, Doing("purge"), lambda request: machine.engine.purge(request, number))

    def purge_outgoing(self) -> None:
        machine = self.some_machine()
        queue = None if machine is None else self.some_outgoing(machine)
        if machine is None or queue is None or queue.closing:
            return
        state, number = machine.engine.state, queue.number
        for place in queue.positions:
            view = MessageView(state.stored(place)[1])
            if view.message_class or view.packet[16:32] != state.source:
                return  # what others rely on is not purged here
            self.ledger.letters[int(view.label)].was_purged = True
        self.ask(machine, Doing("purge"), lambda request: machine.engine.purge(request, number))

    def delete(self) -> None:
        machine = self.some_machine()
        queue = None if machine is None else self.some_queue(machine, *PASSING.values())
        if machine is not None and queue is not None:
            number = queue.number
            self.ask(
                machine,
                Doing("delete"),
                lambda request: machine.engine.delete_queue(request, number),
            )

    def create(self) -> None:
        machine = self.some_machine()
        if machine is not None:
            transactional = self.chance.random() < 0.5
            self.make_queue(machine, PASSING[transactional], transactional=transactional)

    # Time, disks, and the power supply.

    def let_time_pass(self) -> None:
        if self.chance.random() < 0.5:
            self.pass_time()
        else:
            self.jump()

    def pass_time(self) -> None:
        self.net.advance(self.chance.choice((0.01, 0.1, 0.3, 1.0)))

    def jump(self) -> None:
        moment = self.net.next_moment()
        if moment is not None:
            self.net.advance(min(max(moment - self.net.now, 0.001), 60.0))

    def wait_long(self) -> None:
        self.net.advance(self.chance.choice((10.0, 45.0, 130.0)))

    def step_clock(self) -> None:
        machine = self.some_machine()
        if machine is not None:
            # Who passes acknowledgments on must have a clock that is right within half an hour.
            most = 60 if self.is_chain else 20_000_000
            step = self.chance.choice((-3600, -20, -2, 2, 20, 3600, 10_000_000))
            if abs(machine.offset_s + step) <= most:
                machine.offset_s += step

    def crash(self) -> None:
        machine = self.some_machine()
        if machine is not None:
            machine.crash(self.chance.choice(("power", "kill")))

    def crash_soon(self) -> None:
        machine = self.some_machine()
        if machine is not None:
            machine.disk.cut_power_in(self.chance.randint(0, self.chance.choice((4, 15, 40))))

    def restart(self) -> None:
        for machine in self.net.machines.values():
            if not machine.is_up and self.chance.random() < 0.7:
                self.start(machine)

    def fill_up(self) -> None:
        machine = self.some_machine()
        if machine is not None:
            machine.disk.capacity = machine.disk.used + self.chance.randint(0, 3000)

    def make_room(self) -> None:
        for machine in self.net.machines.values():
            machine.disk.capacity = None

    def break_disk(self) -> None:
        machine = self.some_machine()
        if machine is not None:
            operation = self.chance.choice((Operation.WRITE, Operation.SYNC, Operation.CREATE))
            machine.disk.fail_next(operation, self.chance.randint(0, 3))

    def checkpoint(self) -> None:
        machine = self.some_machine()
        if machine is not None:
            machine.guarded(machine.checkpoint)

    def cut(self) -> None:
        if not self.is_quiet_world:
            self.net.cut_one()

    def part(self) -> None:
        pair = self.chance.sample(sorted(self.net.machines), 2)
        self.net.walls.add(frozenset(pair))

    def heal(self) -> None:
        self.net.walls.clear()

    # Running.

    def live(self, steps: int) -> None:
        chance, net = self.chance, self.net
        work = [each for each, _ in self.work]
        for _ in range(steps):
            if chance.random() < self.haste:
                if not net.step():
                    self.let_time_pass()
            else:
                chance.choices(work, self.weights)[0]()

    def calm(self) -> None:
        """The network is whole, and all are up."""
        self.net.storm = STILL
        self.net.walls.clear()
        for machine in self.net.machines.values():
            machine.disk.capacity = None
            machine.disk.keep_power()
            for _ in range(8):
                if not machine.is_up:
                    self.start(machine)
            assert machine.is_up, f"{machine.name} does not start"
            machine.guarded(machine.engine.bring_online)
            for queue in machine.engine.outgoing_queues():
                if not queue.closing:  # an empty queue of acknowledgments is about to go
                    machine.guarded(machine.engine.resume, queue.number)
        for unit in self.units:
            if unit.fate is Fate.OPEN and not unit.pending and self.chance.random() < 0.6:
                self.commit_unit(unit)
            elif unit.fate is Fate.OPEN:
                self.abort_unit(unit)
        while self.held:
            self.end_hold()

    def drain(self) -> None:
        """Everything that is there is received."""
        for machine in self.net.machines.values():
            for queue in list(machine.engine.state.queues.values()):
                path = queue.properties.path_name
                is_ours = queue.properties.kind is QueueKind.PRIVATE and queue.number >= 16
                if is_ours and path not in UNREAD and queue.positions.available:
                    self.receive_from(machine, queue, 100)

    def is_done(self) -> bool:
        """Whether nothing is on its way, and nothing waits to be received."""
        if self.asked or any(machine.is_due for machine in self.net.machines.values()):
            return False
        for machine in self.net.machines.values():
            if not machine.is_up:
                return False
            for queue in machine.engine.state.queues.values():
                if queue.is_outgoing:
                    if NOWHERE not in queue.properties.path_name and self.is_busy(queue):
                        return False
                elif self.is_waiting(queue):
                    return False
        return True

    @staticmethod
    def is_busy(queue: Queue) -> bool:
        transfer = queue.transfer
        assert transfer is not None
        return bool(queue.positions.count or transfer.awaiting_final)

    @staticmethod
    def is_waiting(queue: Queue) -> bool:
        path = queue.properties.path_name
        if queue.properties.kind is not QueueKind.PRIVATE or path in UNREAD:
            return False
        return any(place.state == AVAILABLE for place in queue.positions)

    def rest_seconds(self) -> float:
        return 100.0 if self.is_short else 4000.0

    def finish(self) -> None:
        for _ in range(REST_ROUNDS):
            self.calm()
            self.drain()
            if self.net.run(self.rest_seconds(), until=self.is_done):
                break
        else:
            raise AssertionError(f"somebody waits for ever: {self.what_waits()}")
        for letter in self.ledger.letters.values():
            check_letter(self.ledger, letter)
        self.check_told()
        self.check_links()

    def check_links(self) -> None:
        """Connections that nobody needs are closed."""
        machines = self.net.machines.values()
        lost = any(letter.target == "" for letter in self.ledger.letters.values())
        idle_s = 4 * self.settings.session.cleanup_s + 200
        gone = self.net.run(idle_s, until=lambda: not any(len(each.exchange) for each in machines))
        left = [(each.name, link.address) for each in machines for link in each.exchange.links]
        assert gone or lost, f"connections are left: {left}"

    def what_waits(self) -> list[str]:
        found = [f"{name} {doing.what}" for (name, _), doing in self.asked.items()]
        for machine in self.net.machines.values():
            for queue in machine.engine.state.queues.values():
                transfer = queue.transfer
                if transfer is not None and self.is_busy(queue):
                    labels = [
                        MessageView(machine.engine.state.stored(place)[1]).label
                        for place in queue.positions
                    ]
                    found.append(
                        f"{machine.name} {queue.properties.path_name} {queue.state} has {labels}, "
                        f"unordered {transfer.unordered}, awaiting {transfer.awaiting_final}, "
                        f"history {list(transfer.history)[-3:]}"
                    )
                elif transfer is None and self.is_waiting(queue):
                    found.append(f"{machine.name} {queue.properties.path_name}")
        return found

    def check_told(self) -> None:
        """No session ends for what its own two sides did."""
        if self.net.damages:
            return
        for machine in self.net.machines.values():
            for text, fields in machine.told:
                reason = str(fields.get("reason", ""))
                is_bad = any(each in reason for each in BROKEN)
                assert not is_bad, f"{machine.name}: {text}: {reason}"


def run_seed(seed: int) -> None:
    """One world, from its making to its quiet end."""
    world = ExchangeWorld(seed)
    world.live(world.chance.randint(150, STEPS_MAX))
    world.finish()


def run_everywhere(seed: int, steps: int = 120, every: int = 1) -> None:
    """Two machines in calm weather, of which one loses its power in every operation of its disk."""
    for name in ("m0", "m1"):
        first = ExchangeWorld(seed, machine_count=2, quiet=True)
        before = first.net.machines[name].disk.operations
        first.live(steps)
        count = first.net.machines[name].disk.operations - before
        for at in range(0, count, every):
            world = ExchangeWorld(seed, machine_count=2, quiet=True)
            world.net.machines[name].disk.cut_power_in(at)
            world.live(steps)
            world.finish()
