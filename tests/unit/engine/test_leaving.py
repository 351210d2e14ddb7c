"""What leaves for other queue managers, when sessions break, disks fill up and clocks go on."""

from __future__ import annotations

from uuid import UUID

import pytest

from merq.engine.changes import Change
from merq.engine.departing import Departures
from merq.engine.limits import Limits
from merq.engine.notices import DEAD_XACT_NUMBER
from merq.engine.queue import Queue
from merq.engine.transfer import Departure
from merq.host import Host, HostSettings
from merq.model.message_class import MessageClass
from merq.model.names import parse_direct_name
from merq.model.selecting import First
from merq.store.log import LogSettings
from merq.store.recovery import Identity
from merq.testing import SimulatedDisk
from merq.wire.build import Outline, build_packet
from merq.wire.view import MessageView

START = 1_700_000_000
THERE = r"TCP:10.0.0.2\private$\q"
RECEIVER = UUID(int=9).bytes_le
SMALL = HostSettings(
    log=LogSettings(segment_size=8192, reserve_step=1024), ballast_bytes=0, checkpoint_bytes=1 << 20
)
RECEIVED = MessageClass.MQMSG_CLASS_ACK_RECEIVE


class Sender:
    """A queue manager that sends to one destination."""

    def __init__(self, disk: SimulatedDisk | None = None, now: int = START) -> None:
        self.disk = disk or SimulatedDisk()
        identity = Identity(store_id=UUID(int=1), created=START)
        self.host = Host(self.disk, identity, "here", Limits(disk_reserve_bytes=0), SMALL)
        self.host.start(now, UUID(int=2))
        self.engine = self.host.engine
        self.requests = 0

    @property
    def departures(self) -> Departures:
        return self.engine.departures

    @property
    def queue(self) -> Queue:
        return self.engine.outgoing_queues()[0]

    def send(self, transaction: int = 0, **outline: object) -> None:
        packet = build_packet(Outline(destination=THERE, recoverable=True, **outline))  # type: ignore[arg-type]
        self.requests += 1
        self.engine.send_to(self.requests, [(parse_direct_name(THERE), packet)], transaction)

    def send_transactional(self, **outline: object) -> None:
        transaction = self.engine.transactions.begin()
        self.send(transaction, **outline)
        self.engine.transactions.commit(self.requests + 1000, transaction)
        self.host.settle()

    def next(self) -> list[Departure]:
        found = self.departures.next(self.queue, 100, 1 << 20, RECEIVER)
        self.host.settle()
        return found + self.departures.next(self.queue, 100, 1 << 20, RECEIVER)

    def labels(self) -> list[str]:
        return [MessageView(each.packet).label for each in self.next()]

    def acknowledge_order(self, departure: Departure) -> None:
        change = Change()
        view = MessageView(departure.packet)
        self.departures.ordered(change, view.tx_sequence_id, view.tx_sequence_number, RECEIVER)
        self.engine.state.submit(change)
        self.host.settle()

    def finish(self, departure: Departure, reason: int = RECEIVED) -> None:
        change = Change()
        view = MessageView(departure.packet)
        self.departures.finished(change, view.tx_sequence_id, view.message_id, reason, RECEIVER)
        self.engine.state.submit(change)
        self.host.settle()

    def tick(self, seconds: int) -> None:
        self.engine.tick(START + seconds)
        self.host.settle()

    @property
    def dead(self) -> int:
        return self.engine.state.queues[DEAD_XACT_NUMBER].positions.count


@pytest.mark.spec("MS-MQQB 3.1.5.9")
def test_what_is_of_no_sequence_goes_again_though_later_messages_were_acknowledged_in_order() -> (
    None
):
    sender = Sender()
    sender.send(label="plain", priority=0)
    sender.send_transactional(label="strict")
    plain, strict = sender.next()
    sender.acknowledge_order(strict)
    sender.departures.rewind(sender.queue)
    assert sender.labels() == ["plain"]
    assert not plain.is_ordered


@pytest.mark.spec("MS-MQQB 3.1.5.6")
def test_what_could_not_leave_for_want_of_room_is_sent_and_acknowledged_again() -> None:
    sender = Sender(SimulatedDisk(reserves=False))
    sender.send_transactional(label="strict")
    (going,) = sender.next()
    sender.disk.capacity = sender.disk.used
    sender.acknowledge_order(going)
    assert sender.queue.positions.get(going.lookup_id) is not None
    sender.disk.capacity = None
    sender.departures.rewind(sender.queue)
    again = next(each for each in sender.next() if each.is_ordered)
    sender.acknowledge_order(again)
    sender.departures.rewind(sender.queue)
    assert "strict" not in sender.labels()


@pytest.mark.spec("MS-MQQB 3.1.5.7")
def test_a_new_sequence_does_not_wait_for_an_order_ack_of_what_is_finished() -> None:
    sender = Sender()
    sender.send_transactional(label="first", positive_journaling=True)
    (first,) = sender.next()
    sender.finish(first)
    sender.send_transactional(label="second")
    assert sender.labels() == ["second"]


@pytest.mark.spec("MS-MQQB 3.1.7.1.2")
def test_what_has_expired_before_it_was_sent_leaves_with_the_next_tick() -> None:
    sender = Sender()
    transaction = sender.engine.transactions.begin()
    sender.send(transaction, label="late", time_to_reach_queue=3, negative_journaling=True)
    sender.tick(10)
    sender.engine.transactions.commit(1000, transaction)
    sender.host.settle()
    assert sender.labels() == []
    sender.tick(11)
    assert sender.queue.positions.count == 0
    assert sender.dead == 1


@pytest.mark.spec("MS-MQQB 3.1.7.1.2")
def test_nothing_overtakes_what_has_expired_or_is_held() -> None:
    sender = Sender()
    sender.send_transactional(label="first")
    sender.send_transactional(label="second")
    sender.engine.receive(500, sender.queue.number, First(), wait=False, held=True)
    sender.host.settle()
    assert sender.labels() == []
    held = next(iter(sender.queue.held))
    sender.engine.end_receive(501, sender.queue.number, [held], delete=False)
    sender.host.settle()
    sender.tick(1)
    assert sender.queue in sender.engine.state.outbound
    assert sender.labels() == ["first", "second"]


@pytest.mark.spec("MS-MQQB 3.1.5.9")
def test_what_was_in_doubt_through_several_sessions_is_given_up_once() -> None:
    sender = Sender()
    sender.departures.in_doubt_s = 60
    sender.send_transactional(label="doubt", time_to_reach_queue=3, negative_journaling=True)
    for seconds in (5, 6, 7):
        assert sender.labels() == ["doubt"]
        sender.tick(seconds)
        sender.departures.rewind(sender.queue)
    sender.tick(100)
    assert sender.queue.positions.count == 0
    assert sender.dead == 1


@pytest.mark.spec("MS-MQQB 3.1.1.3")
def test_identifiers_are_remembered_through_a_long_time_off() -> None:
    first = Sender()
    first.engine.state.recent.add(bytes(16), 7, START)
    writing, _ = first.host.begin_checkpoint()
    assert writing is not None
    writing.run()
    first.host.close()
    again = Sender(first.disk, START + 100_000)
    again.engine.state.recent.forget(START + 100_000)
    assert again.engine.state.recent.seen(bytes(16), 7, START + 100_000)


@pytest.mark.spec("MS-MQQB 3.1.5.7")
def test_after_a_restart_a_final_ack_ends_the_copy_that_it_speaks_of() -> None:
    first = Sender()
    elsewhere = r"TCP:10.0.0.3\private$\q"
    transaction = first.engine.transactions.begin()
    copies = [
        (parse_direct_name(name), build_packet(Outline(destination=name, positive_journaling=True)))
        for name in (elsewhere, THERE)
    ]
    first.engine.send_to(1, copies, transaction)
    first.engine.transactions.commit(2, transaction)
    first.host.settle()
    queues = first.engine.outgoing_queues()
    for each in queues:
        assert first.departures.next(each, 1, 1, RECEIVER) == [], "the disk does not know it yet"
    first.host.settle()
    going = {each.number: first.departures.next(each, 1, 1, RECEIVER)[0] for each in queues}
    for number, departure in going.items():
        again = Sender(first.disk.snapshot())
        again.finish(departure)
        left = [each.number for each in again.engine.outgoing_queues() if each.positions.count]
        assert left == [each for each in going if each != number]
