"""Messages move between a queue and its subqueues, at once or in transactions."""

from __future__ import annotations

from functools import partial
from uuid import UUID

import pytest

from merq.engine.notices import NEGATIVE_RECEIVE
from merq.hresult import HResult
from merq.model.message_class import MessageClass
from merq.model.selecting import ByLookup
from unit.engine.engine_world import World, refused

NAME = UUID(int=0xABCD)


def moved(world: World, *, transactional: bool = False) -> tuple[int, int, int]:
    """A queue of three, its subqueue, and the second message's lookup identifier."""
    number = world.create("orders", transactional=transactional)
    _, second, _ = world.fill(number, b"a", b"b", b"c")
    return number, world.subqueue(number, "later"), second


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.16")
def test_a_message_moves_with_its_lookup_identifier(world: World) -> None:
    number, later, second = moved(world)
    assert world.answers[world.move(number, second, later)] is None
    assert (world.bodies(number), world.bodies(later)) == ([b"a", b"c"], [b"b"])
    assert world.lookup_ids(later) == [second]
    assert world.body(world.receive(later, ByLookup(second))) == b"b"


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.16")
def test_a_message_that_comes_back_stands_where_it_stood(world: World) -> None:
    number, later, second = moved(world)
    world.move(number, second, later)
    world.move(later, second, number)
    assert (world.bodies(number), world.bodies(later)) == ([b"a", b"b", b"c"], [])
    other = world.subqueue(number, "other")
    world.move(number, second, later)
    world.move(later, second, other)
    assert (world.bodies(later), world.bodies(other)) == ([], [b"b"])


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.16", "MS-MQDMPR 3.1.7.2.2")
def test_whoever_waits_at_the_target_gets_what_moves_there(world: World) -> None:
    number, later, second = moved(world)
    waiting = world.receive(later, wait=True)
    world.move(number, second, later)
    assert world.body(waiting) == b"b"


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.16")
def test_a_move_is_answered_when_it_is_durable(world: World) -> None:
    number, later, second = moved(world)
    world.durable_at_once = False
    request = world.move(number, second, later)
    assert not world.answered(request)
    assert (world.bodies(number), world.bodies(later)) == ([b"a", b"b", b"c"], [])
    assert world.code(world.receive(number, ByLookup(second))) == HResult.MQ_ERROR_MESSAGE_NOT_FOUND
    world.sync()
    assert world.answered(request)
    assert (world.bodies(number), world.bodies(later)) == ([b"a", b"c"], [b"b"])


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("durable", [False, True])
def test_a_move_is_there_after_a_restart_if_it_was_durable(
    world: World, durable: bool, checkpoint: bool
) -> None:
    number, later, second = moved(world)
    world.durable_at_once = durable
    world.move(number, second, later)
    if checkpoint and durable:
        world.checkpoint()
    world.restart()
    if durable:
        assert (world.bodies(number), world.bodies(later)) == ([b"a", b"c"], [b"b"])
        assert world.lookup_ids(later) == [second]
    else:
        assert world.bodies(number) == [b"a", b"b", b"c"]


def test_a_move_that_finds_no_room_changes_nothing(world: World) -> None:
    number, later, second = moved(world)
    before = world.digest()
    world.full = 1
    request = world.move(number, second, later)
    assert world.code(request) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert world.digest() == before
    assert world.body(world.receive(number, ByLookup(second))) == b"b"


@pytest.mark.parametrize("checkpoint", [False, True])
def test_an_express_message_moves_without_the_disk_and_is_gone_after_a_restart(
    world: World, checkpoint: bool
) -> None:
    number = world.create("orders")
    later = world.subqueue(number, "later")
    world.fill(number, b"kept")
    world.send(number, body=b"express")
    frames = len(world.log)
    world.move(number, world.lookup_ids(number)[1], later)
    assert (world.bodies(later), len(world.log)) == ([b"express"], frames)
    if checkpoint:
        world.checkpoint()
    world.restart()
    assert world.bodies(number) == [b"kept"]
    assert later not in world.engine.state.queues


@pytest.mark.spec("MS-MQDMPR 3.1.4.4", "MS-MQDMPR 3.1.7.1.16")
def test_a_move_in_a_transaction_happens_with_its_commit(world: World) -> None:
    number, later, second = moved(world, transactional=True)
    transaction = world.begin()
    world.move(number, second, later, transaction)
    assert (world.bodies(number), world.bodies(later)) == ([b"a", b"b", b"c"], [])
    assert world.code(world.peek(number, ByLookup(second))) == HResult.MQ_ERROR_TRANSACTION_USAGE
    world.commit(transaction)
    assert (world.bodies(number), world.bodies(later)) == ([b"a", b"c"], [b"b"])
    world.restart()
    assert (world.bodies(number), world.bodies(later)) == ([b"a", b"c"], [b"b"])
    assert world.lookup_ids(later) == [second]


@pytest.mark.spec("MS-MQDMPR 3.1.4.5", "MS-MQDMPR 3.1.1.13")
def test_an_abort_leaves_a_message_where_it_was(world: World) -> None:
    number, later, second = moved(world, transactional=True)
    transaction = world.begin()
    world.move(number, second, later, transaction)
    world.abort(transaction)
    assert (world.bodies(number), world.bodies(later)) == ([b"a", b"b", b"c"], [])
    assert world.body(world.receive(number, ByLookup(second))) == b"b"


def test_a_commit_of_moves_that_finds_no_room_gives_everything_back(world: World) -> None:
    number, later, second = moved(world, transactional=True)
    before = world.digest()
    transaction = world.begin()
    world.move(number, second, later, transaction)
    world.full = 1
    assert world.code(world.commit(transaction)) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert world.digest() == before


@pytest.mark.spec("MS-MQDMPR 3.1.4.3", "MS-MQDMPR 3.1.7.1.16")
@pytest.mark.parametrize("end", ["commit", "abort"])
@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_prepared_move_ends_as_it_is_told_after_a_restart(
    world: World, end: str, checkpoint: bool
) -> None:
    number, later, second = moved(world, transactional=True)
    transaction = world.begin()
    world.move(number, second, later, transaction)
    world.prepare(transaction, NAME)
    if checkpoint:
        world.checkpoint()
    world.restart()
    assert later in world.engine.state.queues, "an empty subqueue that is needed stays"
    assert world.code(world.peek(number, ByLookup(second))) == HResult.MQ_ERROR_TRANSACTION_USAGE
    getattr(world, end)(world.engine.transactions.prepared()[NAME])
    world.restart()
    if end == "commit":
        assert (world.bodies(number), world.bodies(later)) == ([b"a", b"c"], [b"b"])
    else:
        assert world.bodies(number) == [b"a", b"b", b"c"]


def test_what_cannot_move_is_refused_and_nothing_changes(world: World) -> None:
    number, later, second = moved(world)
    stranger = world.create("stranger")
    journal = world.find(r".\private$\orders;JOURNAL")
    dead_letter = world.find(r".\system$;DEADLETTER")
    foreign = world.subqueue(stranger, "later")
    for target in (number, stranger, journal, dead_letter, foreign):
        before = world.digest()
        text = refused(
            HResult.MQ_ERROR_INVALID_PARAMETER, partial(world.move, number, second, target)
        )
        assert world.engine.queue(target).properties.path_name in text
        assert world.digest() == before
    text = refused(HResult.MQ_ERROR_MESSAGE_NOT_FOUND, lambda: world.move(number, 12345, later))
    assert "0x3039" in text
    refused(HResult.MQ_ERROR_QUEUE_DELETED, lambda: world.move(number, second, 999))
    refused(HResult.MQ_ERROR_QUEUE_DELETED, lambda: world.move(999, second, number))
    refused(
        HResult.MQ_ERROR_TRANSACTION_USAGE,
        lambda: world.move(number, second, later, world.begin()),
    )
    refused(HResult.MQ_ERROR_TRANSACTION_SEQUENCE, lambda: moved_in(world, 777))
    assert world.bodies(number) == [b"a", b"b", b"c"]


def moved_in(world: World, transaction: int) -> int:
    number = world.create("safe", transactional=True)
    (only,) = world.fill(number, b"x")
    return world.move(number, only, world.subqueue(number, "later"), transaction)


def test_a_message_that_somebody_has_cannot_be_moved(world: World) -> None:
    number, later, second = moved(world, transactional=True)
    transaction = world.begin()
    world.receive(number, ByLookup(second), transaction=transaction)
    code = HResult.MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION
    refused(code, lambda: world.move(number, second, later))
    refused(code, lambda: world.move(number, second, later, transaction))
    refused(code, lambda: world.move(number, second, later, world.begin()))
    world.abort(transaction)
    world.move(number, second, later)
    assert world.bodies(later) == [b"b"]


def test_a_message_can_be_moved_once_only(world: World) -> None:
    number, later, second = moved(world)
    world.durable_at_once = False
    world.move(number, second, later)
    code = HResult.MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION
    refused(code, lambda: world.move(number, second, later))
    world.sync()
    assert world.bodies(later) == [b"b"]


@pytest.mark.spec("MS-MQDMPR 3.1.7.2.7")
def test_a_message_expires_in_the_subqueue_as_it_would_have_in_the_queue(world: World) -> None:
    number = world.create("orders")
    later = world.subqueue(number, "later")
    (only,) = world.fill(number, b"a", time_to_be_received=10, negative_journaling=True)
    world.move(number, only, later)
    world.tick(10)
    assert world.bodies(later) == [b"a"]
    world.tick(1)
    assert world.bodies(later) == []
    assert world.bodies(world.find(r".\system$;DEADLETTER")) == [b"a"]


def test_what_expired_while_it_moved_leaves_the_target(world: World) -> None:
    number = world.create("orders")
    later = world.subqueue(number, "later")
    (only,) = world.fill(number, b"a", time_to_be_received=10, negative_journaling=True)
    world.durable_at_once = False
    world.move(number, only, later)
    world.tick(11)
    world.sync()
    world.tick(1)
    world.sync()
    assert (world.bodies(number), world.bodies(later)) == ([], [])
    assert world.bodies(world.find(r".\system$;DEADLETTER")) == [b"a"]


def test_what_is_received_from_a_subqueue_is_journaled_as_the_queue_wants(world: World) -> None:
    number = world.create("orders", journaling=True)
    later = world.subqueue(number, "later")
    (only,) = world.fill(number, b"a")
    world.move(number, only, later)
    world.receive(later)
    assert world.bodies(world.find(r".\private$\orders;JOURNAL")) == [b"a"]


@pytest.mark.parametrize("durable", [False, True])
def test_a_deleted_queue_tells_of_messages_in_subqueues_and_on_their_way_there(
    world: World, durable: bool
) -> None:
    admin, number = world.create("admin"), world.create("orders")
    later = world.subqueue(number, "later")
    (only,) = world.fill(
        number,
        b"a",
        admin_queue=r"OS:.\private$\admin",
        acknowledgments=NEGATIVE_RECEIVE,
        negative_journaling=True,
    )
    world.durable_at_once = durable
    world.move(number, only, later)
    world.delete(number)
    world.sync()
    (told,) = world.messages(admin)
    assert told.message_class == MessageClass.MQMSG_CLASS_NACK_Q_DELETED
    assert world.bodies(world.find(r".\system$;DEADLETTER")) == [b"a"]
    world.restart()
    assert later not in world.engine.state.queues
    assert len(world.bodies(admin)) == 1


def test_a_subqueue_is_made_once_whatever_the_case_of_its_name(world: World) -> None:
    number = world.create("orders")
    later = world.subqueue(number, "later")
    assert world.subqueue(number, "LATER") == later
    world.durable_at_once = False
    first, second = world.subqueue(number, "new"), world.subqueue(number, "New")
    world.sync()
    assert world.answers[-first] == world.answers[-second]
    assert set(world.engine.queue(number).subqueues) == {"later", "new"}


def test_the_maker_of_a_subqueue_may_find_the_disk_full_and_another_succeeds(
    world: World,
) -> None:
    number = world.create("orders")
    world.full = 1
    request = -world.subqueue(number, "later")
    assert world.code(request) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert world.engine.queue(number).subqueues == {}
    assert world.subqueue(number, "later") in world.engine.state.queues


@pytest.mark.parametrize(
    "name", ["", "a;b", "a\\b", "JOURNAL", "journal", "DEADLETTER", "DEADXACT", "x" * 500]
)
def test_a_name_that_no_subqueue_can_have_is_refused(world: World, name: str) -> None:
    number = world.create("orders", journaling=True)
    world.fill(number, b"a")
    before = world.digest()
    refused(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, lambda: world.subqueue(number, name))
    assert world.digest() == before
    world.receive(number)
    assert world.bodies(world.find(r".\private$\orders;JOURNAL")) == [b"a"]


def test_only_private_queues_have_subqueues(world: World) -> None:
    number = world.create("orders")
    later = world.subqueue(number, "later")
    journal, system = world.find(r".\private$\orders;JOURNAL"), world.find(r".\system$;DEADLETTER")
    for each in (later, journal, system):
        refused(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, partial(world.subqueue, each, "x"))


def test_nothing_can_be_sent_to_a_subqueue(world: World) -> None:
    number = world.create("orders")
    later = world.subqueue(number, "later")
    text = refused(
        HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION, lambda: world.send(later, body=b"x")
    )
    assert "orders;later" in text
    assert world.bodies(later) == []


def test_an_empty_subqueue_goes_at_the_next_start(world: World) -> None:
    number = world.create("orders")
    empty, used = world.subqueue(number, "empty"), world.subqueue(number, "used")
    (only,) = world.fill(number, b"a")
    world.move(number, only, used)
    world.restart()
    assert empty not in world.engine.state.queues
    assert set(world.engine.queue(number).subqueues) == {"used"}
    assert world.bodies(used) == [b"a"]
    world.restart()
    assert world.bodies(used) == [b"a"]


def test_the_note_of_a_message_moves_with_it(world: World) -> None:
    number, later, second = moved(world, transactional=True)
    transaction = world.begin()
    world.receive(number, ByLookup(second), transaction=transaction)
    world.abort(transaction)
    world.move(number, second, later)
    assert world.engine.queue(later).notes[second].aborts == 1
    assert second not in world.engine.queue(number).notes
    for _ in range(2):
        world.restart()
        assert world.engine.queue(later).notes[second].aborts == 1
        world.checkpoint()


def test_a_purge_of_the_queue_leaves_what_was_moved(world: World) -> None:
    number, later, second = moved(world)
    world.move(number, second, later)
    world.purge(number)
    assert (world.bodies(number), world.bodies(later)) == ([], [b"b"])
    world.purge(later)
    assert world.bodies(later) == []


def test_what_is_purged_in_a_transaction_that_moves_it_goes_when_that_aborts(
    world: World,
) -> None:
    number, later, second = moved(world, transactional=True)
    transaction = world.begin()
    world.move(number, second, later, transaction)
    world.purge(number)
    assert world.bodies(number) == [b"b"]
    world.abort(transaction)
    assert (world.bodies(number), world.bodies(later)) == ([], [])
