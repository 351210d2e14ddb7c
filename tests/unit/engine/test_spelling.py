"""Names of this computer's own queues in messages that leave it."""

from __future__ import annotations

import pytest

from merq.wire.queues import DIRECT, PRIVATE_ON_SOURCE
from merq.wire.view import MessageView
from unit.engine.engine_world import World

REMOTE = r"DIRECT=OS:there\PRIVATE$\orders"


def sent(world: World, *, transaction: int = 0, **fields: object) -> MessageView:
    """The one message that waits for others."""
    world.send_to(REMOTE, transaction, body=b"a", **fields)
    if transaction:
        world.commit(transaction)
    (queue,) = world.engine.outgoing_queues()
    (view,) = world.messages(queue.number)
    return view


@pytest.mark.spec("MS-MQQB 3.1.7.15")
@pytest.mark.parametrize("in_transaction", [False, True])
def test_an_administration_queue_here_is_named_by_its_number_on_the_sender(
    world: World, *, in_transaction: bool
) -> None:
    told = world.create("told")
    transaction = world.begin() if in_transaction else 0
    view = sent(world, transaction=transaction, admin_queue=r"OS:.\private$\told")
    assert view.admin_queue_type == PRIVATE_ON_SOURCE
    assert view.admin_queue == told.to_bytes(4, "little")
    assert view.body == b"a"


@pytest.mark.spec("MS-MQQB 3.1.7.15")
def test_a_response_queue_here_is_named_by_this_computers_name(world: World) -> None:
    world.create("told")
    view = sent(world, response_queue=r"os:.\private$\told")
    assert view.response_queue_type == DIRECT
    name = view.response_queue.decode("utf-16-le")
    assert name == rf"OS:{world.engine.state.name}\private$\told"


@pytest.mark.spec("MS-MQQB 3.1.7.15")
@pytest.mark.parametrize("name", [r"OS:there\private$\told", r"OS:.\private$\nowhere"])
def test_other_names_stay_as_they_are(world: World, name: str) -> None:
    view = sent(world, admin_queue=name)
    assert view.admin_queue.decode("utf-16-le") == name


def test_in_a_message_that_stays_here_nothing_is_changed(world: World) -> None:
    orders, _ = world.create("orders"), world.create("told")
    world.send_to(r"DIRECT=OS:.\private$\orders", body=b"a", admin_queue=r"OS:.\private$\told")
    (view,) = world.messages(orders)
    assert view.admin_queue.decode("utf-16-le") == r"OS:.\private$\told"
