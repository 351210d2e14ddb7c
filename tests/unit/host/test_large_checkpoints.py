"""Checkpoints of very many small things, and those that earlier releases wrote."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from uuid import UUID

import pytest

from merq.engine.arriving import Arrival
from merq.engine.limits import Limits
from merq.engine.manager import QueueManager
from merq.engine.snapshot import (
    MESSAGES,
    NOTE,
    PACKED,
    PACKED_DATA_MAX,
    SEQUENCE,
    restore_snapshot,
    take_snapshot,
)
from merq.errors import StoreError
from merq.host.host import Host
from merq.model.queue import QueueKind, QueueProperties, QueueSettings
from merq.store.disk import FileDisk
from merq.store.inspection import inspect
from merq.store.recovery import Identity
from merq.testing import SimulatedDisk
from merq.wire.build import Outline, TransactionPlace, build_packet
from merq.wire.view import MessageView
from unit.engine.engine_world import GUID, START, World

OLD_STORE = Path(__file__).parents[1] / "store" / "old_checkpoint"
SECTIONS_FORMERLY_MAX = 65_536
THERE = UUID(int=9).bytes_le


class Asked:
    """A host, and the answers to what it is asked."""

    def __init__(self, disk: SimulatedDisk | FileDisk) -> None:
        identity = Identity(store_id=GUID, created=START)
        self.host = Host(disk, identity, "here", Limits(disk_reserve_bytes=0))
        self.engine = self.host.engine
        self.host.start(START, UUID(int=77 << 64))
        self._count = 0

    def create(self, name: str, **settings: object) -> int:
        """Makes a queue; what follows must settle it."""
        self._count += 1
        path = rf".\private$\{name}"
        values = QueueSettings(**settings)  # type: ignore[arg-type]
        self.engine.create_queue(self._count, path, values, UUID(int=self._count))
        answers = {each.request: each.result for each in self.host.settle()}
        number = answers[self._count]
        assert isinstance(number, int)
        return number

    def checkpoint(self) -> Counter[int]:
        """Writes a checkpoint; gives how many sections of which kinds it has."""
        writing, _ = self.host.begin_checkpoint()
        assert writing is not None
        writing.run()
        self.host.end_checkpoint(writing)
        return Counter(section.kind for section in writing.checkpoint.sections)


def test_more_notes_than_a_checkpoint_once_had_sections() -> None:
    disk = SimulatedDisk()
    asked = Asked(disk)
    orders = asked.create("orders")
    dead = r".\private$\dead"
    asked.create("dead")
    packet = build_packet(
        Outline(destination=r"OS:.\private$\orders", recoverable=True, negative_journaling=True)
    )
    count = SECTIONS_FORMERLY_MAX + 1_000
    asked.engine.send(0, orders, [packet] * count, dead_letter=dead)
    asked.host.settle()
    kinds = asked.checkpoint()
    assert kinds[NOTE] == 0
    assert sum(kinds.values()) < 100
    again = Asked(disk.crash("power"))
    notes = again.engine.queue(orders).notes
    assert len(notes) == count
    assert {note.dead_letter for note in notes.values()} == {dead}


def test_sections_do_not_grow_in_number_with_the_queues() -> None:
    world = World()
    state = world.engine.state
    count = 2_000
    for number in range(16, 16 + count):
        state.define(
            QueueProperties(
                number=number,
                path_name=rf".\private$\q{number}",
                kind=QueueKind.PRIVATE,
                identifier=UUID(int=number),
                created=START,
                modified=START,
            )
        )
    packet = build_packet(Outline(destination=r"OS:.\private$\q16", recoverable=True))
    for number in range(16, 16 + count):
        world.engine.send(number, number, [packet])
    world.perform()
    kinds = Counter(kind for kind, _ in take_snapshot(state))
    assert kinds[MESSAGES] == 0
    assert sum(kinds.values()) < 12
    world.checkpoint()
    world.restart()
    assert world.engine.find_queue(r".\private$\q16").positions.count == 1
    found = world.engine.state.queues
    assert sum(found[number].positions.count for number in range(16, 16 + count)) == count


def test_sections_do_not_grow_in_number_with_the_sequences() -> None:
    world = World()
    ledger = world.create("ledger", transactional=True)
    count = 5_000
    base = build_packet(
        Outline(
            destination=r"TCP:10.0.0.1\private$\ledger",
            message_ordinal=1,
            sent_time=START,
            recoverable=True,
            transaction=TransactionPlace(5 << 32, 1, 0),
        )
    )
    arrivals = []
    for number in range(1, count + 1):
        source = UUID(int=number).bytes_le
        packet = base[:16] + source + base[32:]
        arrivals.append(Arrival(MessageView(packet), "10.0.0.9", source))
    world.engine.arrivals.arrive(world.next_request(), arrivals)
    world.perform()
    kinds = Counter(kind for kind, _ in take_snapshot(world.engine.state))
    assert kinds[SEQUENCE] == 0
    assert sum(kinds.values()) < 12
    world.checkpoint()
    world.restart()
    assert len(world.engine.state.sequences) == count
    assert world.engine.queue(ledger).positions.count == count


@pytest.mark.limit("merq.engine.snapshot.PACKED_DATA_MAX")
def test_what_is_large_is_a_section_of_its_own() -> None:
    world = World()
    few, many = world.create("few"), world.create("many")
    world.send(few, recoverable=True)
    packet = world.packet(many, recoverable=True)
    world.engine.send(0, many, [packet] * (PACKED_DATA_MAX // 32))
    world.perform()
    kinds = Counter(kind for kind, _ in take_snapshot(world.engine.state))
    assert (kinds[MESSAGES], kinds[PACKED]) == (1, 1)
    world.checkpoint()
    world.restart()
    assert world.engine.queue(few).positions.count == 1
    assert world.engine.queue(many).positions.count == PACKED_DATA_MAX // 32


def test_a_checkpoint_with_a_section_for_each_thing_opens(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    shutil.copytree(OLD_STORE, folder)
    assert {kind for kind, _ in inspect(folder).checkpoints[-1].sections} >= {4, 5, 11, 13}
    disk = FileDisk(folder)
    asked = Asked(disk)
    engine = asked.engine
    orders = engine.find_queue(r".\private$\orders")
    assert orders.positions.count == 6
    assert {note.dead_letter for note in orders.notes.values()} == {r".\private$\dead"}
    assert len(engine.state.sequences) == 2
    ledger = engine.find_queue(r".\private$\ledger")
    assert list(ledger.claims) == ["readers"]
    kinds = asked.checkpoint()
    assert PACKED in kinds
    assert NOTE not in kinds
    asked.host.close()
    again = Asked(FileDisk(folder))
    assert len(again.engine.find_queue(r".\private$\orders").notes) == 5
    assert list(again.engine.find_queue(r".\private$\ledger").claims) == ["readers"]
    again.host.close()


def test_a_section_that_only_a_later_release_knows_is_refused_by_name() -> None:
    world = World()
    engine = QueueManager(GUID, "here", world.packets)
    with pytest.raises(StoreError, match=r"kind 99.*release that wrote it"):
        restore_snapshot(engine.state, [(99, b"")])
