"""Names of this computer's own queues in messages that leave it."""

from __future__ import annotations

import pytest

from merq.engine.spelling import for_others, reachable_host
from merq.wire.queues import DIRECT, PRIVATE_ON_SOURCE
from merq.wire.view import MessageView
from unit.engine.engine_world import World

REMOTE = r"DIRECT=OS:there\PRIVATE$\orders"


def waiting(world: World, *, transaction: int = 0, **fields: object) -> MessageView:
    """The one message that waits for others."""
    world.send_to(REMOTE, transaction, body=b"a", **fields)
    if transaction:
        world.commit(transaction)
    (queue,) = world.engine.outgoing_queues()
    (view,) = world.messages(queue.number)
    return view


def sent(world: World, host: str, **fields: object) -> MessageView:
    """The same as it is transmitted."""
    view = waiting(world, **fields)  # type: ignore[arg-type]
    return MessageView(for_others(world.engine.state, view.packet, host))


@pytest.mark.spec("MS-MQQB 3.1.7.15")
@pytest.mark.parametrize("in_transaction", [False, True])
def test_without_a_host_an_administration_queue_is_named_by_its_number_on_the_sender(
    world: World, *, in_transaction: bool
) -> None:
    told = world.create("told")
    transaction = world.begin() if in_transaction else 0
    view = sent(world, "", transaction=transaction, admin_queue=r"OS:.\private$\told")
    assert view.admin_queue_type == PRIVATE_ON_SOURCE
    assert view.admin_queue == told.to_bytes(4, "little")
    assert view.body == b"a"


@pytest.mark.spec("MS-MQQB 3.1.7.15")
@pytest.mark.parametrize("field", ["response_queue", "admin_queue"])
@pytest.mark.parametrize(
    ("host", "place"),
    [("", "OS:{name}"), ("192.0.2.1", "TCP:192.0.2.1"), ("fe80::1", "TCP:fe80::1"), ("a", "OS:a")],
)
def test_a_queue_is_named_by_the_host_or_by_this_computers_name(
    world: World, field: str, host: str, place: str
) -> None:
    view = sent(world, host, **{field: r"os:.\private$\told"})
    assert getattr(view, f"{field}_type") == DIRECT
    name = getattr(view, field).decode("utf-16-le")
    assert name == place.format(name=world.engine.state.name) + r"\private$\told"


@pytest.mark.spec("MS-MQQB 3.1.7.15")
def test_both_queues_are_spelled_and_everything_else_stays(world: World) -> None:
    view = sent(
        world,
        "192.0.2.1",
        admin_queue=r"OS:.\private$\a",
        response_queue=r"OS:.\private$\rather-longer",
        label="label",
        extension=b"extra",
    )
    names = [each.decode("utf-16-le") for each in (view.admin_queue, view.response_queue)]
    assert names == [r"TCP:192.0.2.1\private$\a", r"TCP:192.0.2.1\private$\rather-longer"]
    assert (view.body, view.label, view.extension) == (b"a", "label", b"extra")
    assert view.packet == view.decode().pack()


@pytest.mark.spec("MS-MQQB 3.1.7.15")
@pytest.mark.parametrize("name", [r"OS:there\private$\told", r"OS:.x\private$\told"])
def test_other_names_stay_as_they_are(world: World, name: str) -> None:
    view = sent(world, "192.0.2.1", admin_queue=name)
    assert view.admin_queue.decode("utf-16-le") == name


def test_until_a_message_leaves_nothing_is_changed(world: World) -> None:
    world.create("told")
    view = waiting(world, admin_queue=r"OS:.\private$\told")
    assert view.admin_queue.decode("utf-16-le") == r"OS:.\private$\told"


def test_what_is_advertised_goes_before_the_address_of_a_connection() -> None:
    assert reachable_host("mail.example", "192.0.2.1") == "mail.example"
    assert reachable_host("", "192.0.2.1") == "192.0.2.1"
    assert reachable_host("", "127.0.0.1") == reachable_host("", "::1") == ""
