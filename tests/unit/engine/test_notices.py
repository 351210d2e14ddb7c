"""Journals, dead-letter queues and administration acknowledgments."""

from __future__ import annotations

import pytest

from merq.engine.limits import Limits
from merq.engine.notices import NEGATIVE_RECEIVE, POSITIVE_ARRIVAL, POSITIVE_RECEIVE
from merq.model.message_class import MessageClass
from unit.engine.engine_world import World

ADMIN = r"OS:.\private$\admin"
EVERYTHING = 0x0F
DEAD_LETTER = r".\system$;DEADLETTER"
DEAD_XACT = r".\system$;DEADXACT"
SYSTEM_JOURNAL = r".\system$;JOURNAL"


def classes(world: World, number: int) -> list[int]:
    return [view.message_class for view in world.messages(number)]


@pytest.mark.parametrize("recoverable", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.7.15", "MS-MQQB 3.1.7.2.1", "MS-MQQB 3.1.5.8.10")
@pytest.mark.spec("MS-MQQB 3.1.7.2.1#wanted", "MS-MQQB 3.1.7.2.1#mode")
def test_arrival_and_receipt_are_acknowledged_to_who_asked(world: World, recoverable: bool) -> None:
    admin, number = world.create("admin"), world.create("orders")
    request = world.send(
        number,
        body=b"a",
        label="the label",
        admin_queue=ADMIN,
        acknowledgments=POSITIVE_ARRIVAL | POSITIVE_RECEIVE,
        recoverable=recoverable,
    )
    assert classes(world, admin) == [MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE]
    world.receive(number)
    assert classes(world, admin) == [
        MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE,
        MessageClass.MQMSG_CLASS_ACK_RECEIVE,
    ]
    for view in world.messages(admin):
        assert view.correlation_id == world.message_id(request)
        assert view.response_queue.decode("utf-16-le") == r"OS:.\private$\orders"
        assert view.body == b""
        assert bool(view.delivery_mode) == recoverable
        assert (view.acknowledgments, view.positive_journaling, view.negative_journaling) == (
            0,
            False,
            False,
        )
        assert (view.time_to_be_received, view.time_to_reach_queue) == (0xFFFFFFFF, 0xFFFFFFFF)


@pytest.mark.parametrize(
    ("loss", "reason"),
    [
        ("purge", MessageClass.MQMSG_CLASS_NACK_Q_PURGED),
        ("delete", MessageClass.MQMSG_CLASS_NACK_Q_DELETED),
        ("expiry", MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT),
    ],
)
@pytest.mark.spec("MS-MQQB 3.1.7.2.1", "MS-MQQB 3.1.7.15")
@pytest.mark.spec("MS-MQQB 3.1.7.2.1#wanted")
def test_a_loss_is_acknowledged_with_its_reason_and_the_body(
    world: World, loss: str, reason: MessageClass
) -> None:
    admin, number = world.create("admin"), world.create("orders")
    request = world.send(
        number,
        body=b"precious",
        body_type=8,
        admin_queue=ADMIN,
        acknowledgments=NEGATIVE_RECEIVE,
        time_to_be_received=10,
    )
    assert classes(world, admin) == []
    if loss == "expiry":
        world.tick(11)
    else:
        getattr(world, loss)(number)
    (view,) = world.messages(admin)
    assert view.message_class == reason
    assert view.correlation_id == world.message_id(request)
    assert (view.body, view.body_type) == (b"precious", 8)


def test_who_asked_for_nothing_is_told_nothing(world: World) -> None:
    admin, number = world.create("admin"), world.create("orders")
    world.send(number, admin_queue=ADMIN)
    world.receive(number)
    world.send(number, admin_queue=ADMIN)
    world.purge(number)
    assert classes(world, admin) == []


def test_a_receipt_that_is_aborted_is_not_acknowledged_and_a_commit_is(world: World) -> None:
    admin = world.create("admin")
    number = world.create("orders", transactional=True, journaling=True)
    sending = world.begin()
    world.send(number, sending, admin_queue=ADMIN, acknowledgments=EVERYTHING, body=b"a")
    assert classes(world, admin) == []
    world.commit(sending)
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    world.abort(transaction)
    assert classes(world, admin) == [MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE]
    assert world.bodies(number | 0x80000000) == []
    transaction = world.begin()
    world.receive(number, transaction=transaction)
    world.commit(transaction)
    assert classes(world, admin)[1:] == [MessageClass.MQMSG_CLASS_ACK_RECEIVE]
    assert world.bodies(number | 0x80000000) == [b"a"]


@pytest.mark.parametrize(
    "admin_queue",
    [
        "",
        r"OS:.\private$\missing",
        r"OS:.\private$\transactional",
        r"OS:.\private$\orders;JOURNAL",
        r"OS:.\system$;DEADLETTER",
        "nonsense",
    ],
)
@pytest.mark.spec("MS-MQQB 3.1.7.15")
def test_an_acknowledgment_that_cannot_be_delivered_here_is_dropped(
    world: World, admin_queue: str
) -> None:
    number = world.create("orders")
    world.create("transactional", transactional=True)
    world.send(number, body=b"a", admin_queue=admin_queue, acknowledgments=EVERYTHING)
    assert world.body(world.receive(number)) == b"a"
    world.send(number, body=b"b", admin_queue=admin_queue, acknowledgments=EVERYTHING)
    world.purge(number)
    assert all(not queue.positions.count for queue in world.engine.state.queues.values())


@pytest.mark.parametrize(
    "admin_queue", [r"OS:elsewhere\private$\admin", r"TCP:1.2.3.4\private$\admin"]
)
@pytest.mark.spec("MS-MQQB 3.1.7.15", "MS-MQDMPR 3.1.1.3")
def test_acknowledgments_for_another_computer_wait_in_an_outgoing_queue(
    world: World, admin_queue: str
) -> None:
    number = world.create("orders")
    world.send(number, body=b"a", admin_queue=admin_queue, acknowledgments=EVERYTHING)
    world.receive(number)
    (waiting,) = world.engine.outgoing_queues()
    assert waiting.properties.path_name.lower() == f"direct={admin_queue}".lower()
    assert [view.message_class for view in world.messages(waiting.number)] == [
        MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE,
        MessageClass.MQMSG_CLASS_ACK_RECEIVE,
    ]


def test_an_acknowledgment_for_a_queue_that_is_being_deleted_is_dropped() -> None:
    world = World()
    admin, number = world.create("admin"), world.create("orders")
    world.send(
        number, recoverable=True, admin_queue=ADMIN, acknowledgments=POSITIVE_RECEIVE, body=b"a"
    )
    world.durable_at_once = False
    world.delete(admin)
    received = world.receive(number)
    world.sync()
    assert world.body(received) == b"a"
    world.restart()
    assert admin not in world.engine.state.queues


def test_an_acknowledgment_beyond_the_admin_queues_quota_is_dropped(world: World) -> None:
    admin, number = world.create("admin", quota=0), world.create("orders")
    world.send(number, admin_queue=ADMIN, acknowledgments=EVERYTHING)
    assert world.bodies(admin) == []
    assert len(world.bodies(number)) == 1


def test_a_queue_may_be_its_own_admin_queue_and_can_be_deleted(world: World) -> None:
    number = world.create("admin")
    world.send(number, admin_queue=ADMIN, acknowledgments=EVERYTHING, recoverable=True)
    assert len(world.bodies(number)) == 2
    world.delete(number)
    world.restart()
    assert number not in world.engine.state.queues


@pytest.mark.parametrize("loss", ["purge", "delete", "expiry"])
@pytest.mark.spec("MS-MQDMPR 3.1.1.12")
def test_what_is_lost_goes_to_the_dead_letter_queue_of_its_kind(world: World, loss: str) -> None:
    plain, transactional = world.create("plain"), world.create("tx", transactional=True)
    world.send(plain, body=b"p", negative_journaling=True, recoverable=True, time_to_be_received=10)
    world.send(plain, body=b"unwanted", recoverable=True, time_to_be_received=10)
    sending = world.begin()
    world.send(transactional, sending, body=b"t", negative_journaling=True, time_to_be_received=10)
    world.commit(sending)
    if loss == "expiry":
        world.tick(11)
    else:
        for number in (plain, transactional):
            getattr(world, loss)(number)
    world.restart()
    assert world.bodies(world.find(DEAD_LETTER)) == [b"p"]
    assert world.bodies(world.find(DEAD_XACT)) == [b"t"]


@pytest.mark.spec("MS-MQDMPR 3.1.1.12")
def test_what_arrives_is_copied_to_the_senders_journal_if_asked(world: World) -> None:
    number = world.create("orders")
    world.send(number, body=b"a", positive_journaling=True)
    world.send(number, body=b"b")
    assert world.bodies(world.find(SYSTEM_JOURNAL)) == [b"a"]
    assert world.bodies(number) == [b"a", b"b"]


@pytest.mark.parametrize("journaling", [False, True])
def test_what_is_received_is_copied_to_the_journal_of_a_queue_that_has_journaling(
    world: World, journaling: bool
) -> None:
    number = world.create("orders", journaling=journaling)
    world.send(number, body=b"a", recoverable=True)
    world.send(number, body=b"purged", recoverable=True)
    world.receive(number)
    world.purge(number)
    world.restart()
    assert world.bodies(number | 0x80000000) == [b"a"] * journaling


@pytest.mark.spec("MS-MQDMPR 3.1.1.2")
@pytest.mark.spec("MS-MQMQ note 25")
def test_a_full_journal_takes_no_copy_and_the_message_is_received_nevertheless(
    world: World,
) -> None:
    number = world.create("orders", journaling=True, journal_quota=1)
    for body in (b"1" * 500, b"2" * 500):
        world.send(number, body=body)
    assert [world.body(world.receive(number))[:1] for _ in range(2)] == [b"1", b"2"]
    assert world.bodies(number | 0x80000000) == [b"1" * 500]


def test_copies_do_not_exceed_the_computers_quota() -> None:
    world = World(limits=Limits(machine_quota=1))
    number = world.create("orders", journaling=True)
    admin = world.create("admin")
    world.send(
        number,
        body=bytes(700),
        positive_journaling=True,
        admin_queue=ADMIN,
        acknowledgments=POSITIVE_ARRIVAL,
    )
    assert world.bodies(world.find(SYSTEM_JOURNAL)) == world.bodies(admin) == []
    world.receive(number)
    assert world.bodies(number | 0x80000000) == [bytes(700)], "it takes the place of the message"
    assert world.engine.state.taken_bytes <= 1024


@pytest.mark.parametrize("how", ["receive", "purge"])
def test_what_happens_to_a_copy_is_not_told_as_if_it_were_the_message(
    world: World, how: str
) -> None:
    admin, number = world.create("admin"), world.create("orders", journaling=True)
    for _ in range(2):
        world.send(
            number,
            body=b"a",
            admin_queue=ADMIN,
            acknowledgments=EVERYTHING,
            negative_journaling=True,
            positive_journaling=True,
        )
    world.receive(number)
    world.purge(number)
    told = classes(world, admin)
    for path in (DEAD_LETTER, SYSTEM_JOURNAL, r".\private$\orders;JOURNAL"):
        copies = world.find(path)
        assert world.bodies(copies)
        while world.bodies(copies):
            before = len(world.bodies(copies))
            getattr(world, how)(copies)
            assert len(world.bodies(copies)) < before
    assert classes(world, admin) == told
