"""What ends a transaction may be asked for before it is known that a send in it found no room."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from merq.engine.changes import Change
from merq.engine.state import State
from merq.engine.work import Phase
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.destinations import parse_destination
from unit.engine.engine_world import World

FULL = HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
FAR = r"DIRECT=OS:far\private$\q"
NAME = UUID(int=0xABCD)

Send = Callable[[World, int], int]


def send_here(world: World, transaction: int) -> int:
    """Asks for a send whose numbers have to be reserved; nothing is written yet."""
    number = world.find(r".\private$\orders")
    request = world.next_request()
    world.engine.send(request, number, [world.packet(number, body=b"a")], transaction)
    return request


def send_far(world: World, transaction: int) -> int:
    """The same to another computer: an outgoing queue has to be made."""
    number = world.find(r".\private$\orders")
    request = world.next_request()
    (name,) = parse_destination(FAR)
    world.engine.send_to(request, [(name, world.packet(number, body=b"a"))], transaction)
    return request


def end(world: World, how: str, transaction: int) -> int:
    """Asks for the end, behind what was asked before."""
    request, transactions = world.next_request(), world.engine.transactions
    if how == "prepare":
        transactions.prepare(request, transaction, NAME)
    elif how == "commit":
        transactions.commit(request, transaction)
    else:
        transactions.abort(request, transaction)
    return request


def check_counts(world: World) -> None:
    """What is counted for the quotas is what is there or promised."""
    state: State = world.engine.state
    promised = sum(
        getattr(operation, "size", 0)
        for each in state.transactions.values()
        for operation in each.operations
    )
    assert sum(queue.staged_bytes for queue in state.queues.values()) == promised
    stored = sum(queue.positions.total_bytes for queue in state.queues.values())
    assert state.taken_bytes == stored + promised


@pytest.fixture
def orders(world: World) -> int:
    return world.create("orders", transactional=True)


@pytest.mark.parametrize("send", [send_here, send_far])
@pytest.mark.parametrize("how", ["commit", "prepare"])
@pytest.mark.spec("MS-MQDMPR 3.1.4.3", "MS-MQDMPR 3.1.4.4")
def test_what_ends_a_transaction_fails_with_the_send_before_it(
    world: World, orders: int, send: Send, how: str
) -> None:
    transaction = world.begin()
    sending, ending = send(world, transaction), end(world, how, transaction)
    world.full = 1
    world.perform()
    assert (world.code(sending), world.code(ending)) == (FULL, FULL)
    check_counts(world)
    if how == "prepare":
        found = world.engine.state.transactions[transaction]
        assert (found.phase, found.operations) == (Phase.OPEN, [])
    before = world.digest()
    world.checkpoint()
    world.restart()
    check_counts(world)
    if how == "commit":
        assert world.digest() == before
    assert (world.bodies(orders), world.engine.transactions.prepared()) == ([], {})
    world.fill(orders, b"b")
    assert world.bodies(orders) == [b"b"]


@pytest.mark.parametrize("send", [send_here, send_far])
@pytest.mark.spec("MS-MQDMPR 3.1.4.5")
def test_an_abort_behind_a_send_that_fails_aborts(world: World, orders: int, send: Send) -> None:
    transaction = world.begin()
    sending, ending = send(world, transaction), end(world, "abort", transaction)
    world.full = 1
    world.perform()
    assert world.code(sending) == FULL
    assert world.answers[ending] is None
    check_counts(world)
    assert world.bodies(orders) == []


def test_what_was_received_in_it_goes_back_and_what_else_was_sent_does_not_go(
    world: World, orders: int
) -> None:
    world.fill(orders, b"old")
    transaction = world.begin()
    world.receive(orders, transaction=transaction)
    far, here = send_far(world, transaction), send_here(world, transaction)
    ending = end(world, "commit", transaction)
    world.full = 1
    world.perform()
    assert (world.code(far), world.code(ending)) == (FULL, FULL)
    assert len(world.message_id(here)) == 20
    check_counts(world)
    assert world.bodies(orders) == [b"old"]
    assert world.body(world.receive(orders)) == b"old"


def test_a_prepare_that_failed_with_a_send_can_be_asked_for_again(
    world: World, orders: int
) -> None:
    transaction = world.begin()
    send_far(world, transaction)
    end(world, "prepare", transaction)
    world.full = 1
    world.perform()
    again = send_far(world, transaction), end(world, "prepare", transaction)
    world.perform()
    assert world.answers[again[1]] is None
    check_counts(world)
    world.restart()
    check_counts(world)
    (number,) = world.engine.transactions.prepared().values()
    world.commit(number)
    check_counts(world)
    outgoing = world.engine.state.find_outgoing(FAR)
    assert outgoing is not None
    assert world.bodies(outgoing.number) == [b"a"]
    assert world.bodies(orders) == []


def test_the_next_transaction_is_not_hit(world: World, orders: int) -> None:
    first, second = world.begin(), world.begin()
    send_here(world, first)
    committed = end(world, "commit", first)
    sending, ending = send_here(world, second), end(world, "commit", second)
    world.full = 1
    world.perform()
    assert world.code(committed) == FULL
    assert len(world.message_id(sending)) == 20
    assert world.answers[ending] is None
    check_counts(world)
    assert world.bodies(orders) == [b"a"]
    world.restart()
    check_counts(world)
    assert world.bodies(orders) == [b"a"]


def test_a_commit_that_was_written_before_its_send_takes_that_along(
    world: World, orders: int
) -> None:
    first, second = world.begin(), world.begin()
    send_here(world, first)
    sending, ending = send_here(world, second), end(world, "commit", second)
    reserving, committing = world.engine.take_effects()
    assert isinstance(reserving, Change)
    assert isinstance(committing, Change)
    full = MessageQueueError(FULL, "full")
    world.engine.failed(reserving, full)
    world.durable_at_once = False
    world._write(committing)
    # What the first was to reserve is written by the others now; there is no room for that again.
    world.full = 1
    world.perform()
    world.sync()
    assert len(world.message_id(sending)) == 20
    assert world.answers[ending] is None
    check_counts(world)
    world.restart()
    check_counts(world)
    assert world.bodies(orders) == [b"a"]
