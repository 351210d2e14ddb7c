"""Where format names lead: queues of this computer, and outgoing queues to others."""

from __future__ import annotations

import pytest

from merq.engine.limits import Limits
from merq.engine.notices import (
    NEGATIVE_ARRIVAL,
    NEGATIVE_RECEIVE,
    POSITIVE_ARRIVAL,
    POSITIVE_RECEIVE,
)
from merq.hresult import HResult
from merq.model.destinations import parse_destination
from merq.model.message_class import MessageClass
from merq.model.queue import OutgoingState, QueueKind
from unit.engine.conftest import Lower
from unit.engine.engine_world import GUID, World, refused

REMOTE = r"DIRECT=OS:there\PRIVATE$\orders"
OTHER = r"DIRECT=TCP:10.0.0.7\PRIVATE$\orders"
ADMIN = r"OS:.\private$\admin"
DEAD_LETTER = r".\system$;DEADLETTER"
DEAD_XACT = r".\system$;DEADXACT"
EVERYTHING = POSITIVE_ARRIVAL | POSITIVE_RECEIVE | NEGATIVE_ARRIVAL | NEGATIVE_RECEIVE


def waiting(world: World) -> dict[str, list[bytes]]:
    """What waits in outgoing queues, by destination."""
    return {
        queue.properties.path_name: world.bodies(queue.number)
        for queue in world.engine.outgoing_queues()
    }


# Where names lead.


@pytest.mark.parametrize(
    "name",
    [
        r"DIRECT=OS:.\private$\orders",
        r"DIRECT=OS:HERE\PRIVATE$\Orders",
        r"DIRECT=OS:localhost\private$\orders",
        r"DIRECT=TCP:127.0.0.1\private$\orders",
        f"PRIVATE={GUID}\\10",
    ],
)
@pytest.mark.spec("MS-MQDMPR 3.1.7.1.5", "MS-MQDMPR 3.1.7.1.27")
def test_a_name_of_this_computer_leads_to_its_queue(world: World, name: str) -> None:
    number = world.create("orders")
    assert number == 0x10
    request = world.send_to(name, body=b"a")
    assert world.bodies(number) == [b"a"]
    assert world.messages(number)[0].message_id == world.message_id(request)
    assert waiting(world) == {}


@pytest.mark.spec("MS-MQDMPR 3.1.1.3", "MS-MQDMPR 3.1.7.1.5")
@pytest.mark.parametrize(
    "name",
    [
        REMOTE,
        OTHER,
        r"DIRECT=TCP:fe80::1\PRIVATE$\orders",
        r"DIRECT=OS:there\public",
        r"PRIVATE=99999999-2222-3333-4444-555555555555\00000010",
    ],
)
def test_any_other_name_leads_to_an_outgoing_queue_of_its_own(world: World, name: str) -> None:
    request = world.send_to(name, body=b"far", recoverable=True)
    (queue,) = world.engine.outgoing_queues()
    assert queue.properties.kind is QueueKind.OUTGOING
    assert queue.properties.path_name.lower() == name.lower()
    assert queue.properties.label == queue.properties.path_name
    assert (queue.state, queue.is_active) == (OutgoingState.INACTIVE, True)
    (view,) = world.messages(queue.number)
    assert (view.body, view.message_id) == (b"far", world.message_id(request))
    world.send_to(name.upper().replace("DIRECT", "Direct"), body=b"more")
    assert [len(bodies) for bodies in waiting(world).values()] == [2]


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.5")
@pytest.mark.parametrize(
    "name",
    [
        r"DIRECT=OS:.\private$\missing",
        r"DIRECT=OS:here\private$\missing",
        f"PRIVATE={GUID}\\99",
        f"PRIVATE={GUID}\\80000010",
    ],
)
def test_a_queue_of_this_computer_must_be_there(world: World, name: str) -> None:
    world.create("orders")
    before = world.digest()
    text = refused(HResult.MQ_ERROR_QUEUE_NOT_FOUND, lambda: world.send_to(name))
    assert "PRIVATE" in text
    assert world.digest() == before


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.5")
def test_a_public_name_needs_a_directory(world: World) -> None:
    name = "PUBLIC=99999999-2222-3333-4444-555555555555"
    text = refused(HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION, lambda: world.send_to(name))
    assert "directory" in text


@pytest.mark.spec("MS-MQDMPR 3.1.7.3.8", "MS-MQDMPR 3.1.7.1.5")
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", HResult.MQ_ERROR_ILLEGAL_FORMATNAME),
        ("DIRECT=", HResult.MQ_ERROR_ILLEGAL_FORMATNAME),
        ("nonsense", HResult.MQ_ERROR_ILLEGAL_FORMATNAME),
        (r".\private$\orders", HResult.MQ_ERROR_ILLEGAL_FORMATNAME),
        (f"{REMOTE},", HResult.MQ_ERROR_ILLEGAL_FORMATNAME),
        (f"{REMOTE};JOURNAL", HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION),
        (f"{REMOTE};later", HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION),
        (f"MACHINE={GUID};DEADLETTER", HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION),
        (f"DL={GUID}", HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION),
        ("MULTICAST=234.1.1.1:8001", HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION),
        (f"{REMOTE},DL={GUID}", HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION),
    ],
)
def test_what_cannot_be_sent_to_is_refused(name: str, code: int) -> None:
    text = refused(code, lambda: parse_destination(name))
    assert len(text) > 20


@pytest.mark.spec("MS-MQDMPR 3.1.7.3.8")
def test_a_name_that_is_given_twice_counts_once() -> None:
    names = parse_destination(f"{REMOTE},{OTHER},{REMOTE.upper()}")
    assert [str(name).lower() for name in names] == [REMOTE.lower(), OTHER.lower()]
    (only,) = parse_destination(f"{REMOTE},{REMOTE.lower()}")
    assert str(only).lower() == REMOTE.lower()


# Several destinations.


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.27", "MS-MQMQ 2.2.18.1.3", "MS-MQQB 3.1.1.3")
@pytest.mark.spec("MS-MQMQ note 9")
@pytest.mark.spec("E100")
def test_copies_to_several_queues_have_identifiers_in_a_row_and_say_who_else_got_one(
    world: World,
) -> None:
    here = world.create("orders")
    name = rf"DIRECT=OS:.\private$\orders,{REMOTE},{OTHER}"
    request = world.send_to(name, body=b"to all", recoverable=True)
    assert waiting(world) == {REMOTE: [b"to all"], OTHER: [b"to all"]}
    by_name = {
        str(each.properties.path_name): each.number for each in world.engine.outgoing_queues()
    }
    first = world.message_id(request)
    ordinal = int.from_bytes(first[16:], "little")
    for at, number in enumerate((here, by_name[REMOTE], by_name[OTHER])):
        (view,) = world.messages(number)
        # A receiver with both would take the second for a duplicate of the first.
        assert view.message_id == first[:16] + (ordinal + at).to_bytes(4, "little")
        header = view.decode().multi_queue_format_header
        assert header is not None
        assert len(header.destination.format_name_list) == 3
    world.restart()
    assert (world.bodies(here), len(waiting(world))) == ([b"to all"], 2)


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.27")
@pytest.mark.parametrize("bad", ["missing", "safe", "full"])
def test_if_one_destination_refuses_no_queue_gets_a_copy(world: World, bad: str) -> None:
    world.create("orders")
    world.create("safe", transactional=True)
    world.create("full", quota=0)
    before = world.digest()
    name = rf"DIRECT=OS:.\private$\orders,{REMOTE},DIRECT=OS:.\private$\{bad}"
    code = {
        "missing": HResult.MQ_ERROR_QUEUE_NOT_FOUND,
        "safe": HResult.MQ_ERROR_TRANSACTION_USAGE,
        "full": HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
    }[bad]
    text = refused(code, lambda: world.send_to(name, body=b"x"))
    assert bad in text
    assert world.digest() == before


def test_copies_into_one_queue_under_two_names_keep_to_its_quota_together(world: World) -> None:
    number = world.create("small", quota=1)
    name = r"DIRECT=OS:.\private$\small,DIRECT=TCP:127.0.0.1\private$\small"
    before = world.digest()
    refused(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, lambda: world.send_to(name, body=bytes(500)))
    assert world.digest() == before
    world.send_to(name, body=b"a")
    assert world.bodies(number) == [b"a", b"a"]


def test_all_copies_together_keep_to_the_computers_quota() -> None:
    world = World(limits=Limits(machine_quota=1))
    before = world.digest()
    refused(
        HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
        lambda: world.send_to(f"{REMOTE},{OTHER}", body=bytes(400)),
    )
    assert world.digest() == before
    world.send_to(REMOTE, body=bytes(400))
    assert len(waiting(world)) == 1


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.27", "MS-MQDMPR 3.1.4.4")
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_copies_in_a_transaction_go_together_with_it(world: World, end: str) -> None:
    here = world.create("orders", transactional=True)
    transaction = world.begin()
    world.send_to(rf"DIRECT=OS:.\private$\orders,{REMOTE}", transaction, body=b"x")
    assert [bodies for bodies in waiting(world).values() if bodies] == []
    getattr(world, end)(transaction)
    expected = [b"x"] if end == "commit" else []
    world.restart()
    assert world.bodies(here) == expected
    assert waiting(world) == ({REMOTE: expected} if expected else {})


# Safe over crashes and full disks.


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.spec("MS-MQDMPR 3.1.1.3")
def test_recoverable_messages_wait_on_after_a_restart_and_express_ones_do_not(
    world: World, checkpoint: bool
) -> None:
    world.send_to(REMOTE, body=b"safe", recoverable=True)
    world.send_to(REMOTE, body=b"express")
    world.send_to(OTHER, body=b"express")
    if checkpoint:
        world.checkpoint()
    world.restart()
    assert waiting(world) == {REMOTE: [b"safe"]}, "an empty outgoing queue goes"
    world.send_to(OTHER, body=b"new", recoverable=True)
    world.restart()
    assert waiting(world) == {REMOTE: [b"safe"], OTHER: [b"new"]}


def test_a_send_that_was_not_durable_never_happened(world: World) -> None:
    world.durable_at_once = False
    request = world.send_to(REMOTE, body=b"x", recoverable=True)
    assert not world.answered(request)
    world.restart()
    assert waiting(world) == {}


def test_two_who_make_the_same_outgoing_queue_share_it_even_if_the_first_finds_no_room(
    world: World,
) -> None:
    world.durable_at_once = False
    world.full = 1
    first = world.send_to(REMOTE, body=b"1", recoverable=True)
    second = world.send_to(REMOTE, body=b"2", recoverable=True)
    third = world.send_to(REMOTE, body=b"3", recoverable=True)
    world.sync()
    assert world.code(first) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert world.message_id(second) != world.message_id(third)
    assert waiting(world) == {REMOTE: [b"2", b"3"]}
    world.restart()
    assert waiting(world) == {REMOTE: [b"2", b"3"]}


def test_a_send_without_room_leaves_no_outgoing_queue_behind(world: World) -> None:
    before = world.digest()
    world.full = 1
    request = world.send_to(REMOTE, body=b"1")
    assert world.code(request) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert world.digest() == before


def test_a_transaction_that_aborts_and_one_that_commits_share_an_outgoing_queue(
    world: World,
) -> None:
    world.durable_at_once = False
    first, second = world.begin(), world.begin()
    world.send_to(REMOTE, first, body=b"1")
    world.send_to(REMOTE, second, body=b"2")
    world.abort(first)
    world.commit(second)
    world.sync()
    assert waiting(world) == {REMOTE: [b"2"]}
    world.restart()
    assert waiting(world) == {REMOTE: [b"2"]}


@pytest.mark.limit("merq.engine.outgoing.OUTGOING_MAX")
def test_there_is_a_limit_to_destinations(world: World, lower: Lower) -> None:
    lower("merq.engine.outgoing", "OUTGOING_MAX", 2)
    for computer in ("a", "b"):
        world.send_to(rf"DIRECT=OS:{computer}\q", body=b"x")
    before = world.digest()
    text = refused(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, lambda: world.send_to(r"DIRECT=OS:c\q"))
    assert "2 destinations" in text
    assert world.digest() == before


# In time, or not.


@pytest.mark.parametrize("recoverable", [False, True])
@pytest.mark.spec("MS-MQDMPR 3.1.1.12", "MS-MQDMPR 3.1.7.2.7")
@pytest.mark.spec("MS-MQQB 3.1.7.1.2#expired", "MS-MQQB 3.1.7.1.2#NA", "MS-MQQB 3.1.7.1.2#JN")
def test_what_does_not_leave_in_time_is_told_and_kept_as_dead(
    world: World, recoverable: bool
) -> None:
    admin = world.create("admin")
    request = world.send_to(
        REMOTE,
        body=b"late",
        recoverable=recoverable,
        time_to_reach_queue=10,
        negative_journaling=True,
        admin_queue=ADMIN,
        acknowledgments=EVERYTHING,
    )
    world.tick(10)
    assert waiting(world) == {REMOTE: [b"late"]}
    world.tick(1)
    assert waiting(world) == {REMOTE: []}
    (told,) = world.messages(admin)
    assert told.message_class == MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT
    assert (told.correlation_id, told.body) == (world.message_id(request), b"late")
    assert world.bodies(world.find(DEAD_LETTER)) == [b"late"]


@pytest.mark.parametrize(("reach", "receive"), [(20, 10), (10, 20), (0xFFFFFFFF, 10)])
@pytest.mark.spec("MS-MQDMPR 3.1.2.4", "MS-MQMQ 2.2.18.1.6")
def test_the_shorter_time_counts_and_both_mean_that_it_did_not_arrive(
    world: World, reach: int, receive: int
) -> None:
    admin = world.create("admin")
    world.send_to(
        REMOTE,
        time_to_reach_queue=reach,
        time_to_be_received=receive,
        admin_queue=ADMIN,
        acknowledgments=EVERYTHING,
    )
    world.tick(11)
    reason = MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT
    assert [view.message_class for view in world.messages(admin)] == [reason]


def test_who_asked_only_for_receipts_is_not_told_of_arrival_that_failed(world: World) -> None:
    admin = world.create("admin")
    for wanted in (POSITIVE_ARRIVAL | POSITIVE_RECEIVE | NEGATIVE_RECEIVE, 0):
        world.send_to(REMOTE, time_to_reach_queue=1, admin_queue=ADMIN, acknowledgments=wanted)
    world.tick(2)
    assert world.bodies(admin) == []


@pytest.mark.parametrize("checkpoint", [False, True])
def test_time_goes_on_over_a_restart(world: World, checkpoint: bool) -> None:
    world.send_to(
        REMOTE, body=b"x", recoverable=True, time_to_reach_queue=10, negative_journaling=True
    )
    if checkpoint:
        world.checkpoint()
    world.now += 11
    world.restart()
    assert [bodies for bodies in waiting(world).values() if bodies] == []
    assert world.bodies(world.find(DEAD_LETTER)) == [b"x"]


def test_an_expiry_that_finds_no_room_is_tried_again(world: World) -> None:
    world.send_to(
        REMOTE, body=b"x", recoverable=True, time_to_reach_queue=10, negative_journaling=True
    )
    world.full = 1
    world.tick(11)
    assert (waiting(world), world.bodies(world.find(DEAD_LETTER))) == ({REMOTE: [b"x"]}, [])
    world.tick(1)
    assert (waiting(world), world.bodies(world.find(DEAD_LETTER))) == ({REMOTE: []}, [b"x"])


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("own_transactional", [False, True])
@pytest.mark.spec("MS-MQDMPR 3.1.1.12")
@pytest.mark.spec("MS-MQDMPR note 10", "MS-MQDMPR note 11")
@pytest.mark.spec("MS-MQQB 3.1.7.1.2#JN-transactional")
def test_the_applications_own_dead_letter_queue_is_used_if_it_fits(
    world: World, transactional: bool, own_transactional: bool
) -> None:
    own = world.create("dead", transactional=own_transactional)
    transaction = world.begin() if transactional else 0
    world.send_to(
        REMOTE,
        transaction,
        body=b"x",
        recoverable=True,
        time_to_reach_queue=10,
        negative_journaling=True,
        dead_letter=r".\private$\dead",
    )
    if transaction:
        world.commit(transaction)
    world.checkpoint()
    world.restart()
    world.tick(11)
    system = world.find(DEAD_XACT if transactional else DEAD_LETTER)
    fits = transactional == own_transactional
    assert world.bodies(own) == ([b"x"] if fits else [])
    assert world.bodies(system) == ([] if fits else [b"x"])


@pytest.mark.spec("MS-MQDMPR 3.1.1.12")
def test_a_copy_in_the_own_dead_letter_queue_stays_and_nobody_is_told_of_it(world: World) -> None:
    own, number, admin = world.create("dead"), world.create("orders"), world.create("admin")
    request = world.next_request()
    packet = world.packet(
        number,
        body=b"x",
        recoverable=True,
        time_to_be_received=10,
        negative_journaling=True,
        admin_queue=r"OS:.\private$\admin",
        acknowledgments=0x0F,
    )
    world.engine.send(request, number, [packet], dead_letter=r".\private$\dead")
    world.perform()
    world.tick(11)
    for _ in range(3):
        world.tick(1000)
        assert world.bodies(own) == [b"x"]
        world.restart()
    world.checkpoint()
    world.restart()
    world.tick(1000)
    told = len(world.bodies(admin))
    assert world.body(world.receive(own)) == b"x"
    assert len(world.bodies(admin)) == told == 2, "arrived and timed out, and no more"


def test_if_the_own_dead_letter_queue_is_gone_the_systems_is_used(world: World) -> None:
    own = world.create("dead")
    world.send_to(
        REMOTE,
        body=b"x",
        time_to_reach_queue=10,
        negative_journaling=True,
        dead_letter=r".\private$\dead",
    )
    world.delete(own)
    world.tick(11)
    assert world.bodies(world.find(DEAD_LETTER)) == [b"x"]


@pytest.mark.parametrize(
    "name",
    [r".\private$\missing", r"there\private$\dead", "nonsense;;", r".\private$\orders;JOURNAL"],
)
def test_a_dead_letter_queue_must_be_a_queue_of_this_computer(world: World, name: str) -> None:
    world.create("orders")
    before = world.digest()
    refused(
        HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, lambda: world.send_to(REMOTE, dead_letter=name)
    )
    assert world.digest() == before


# Emptied by hand.


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.7")
def test_what_is_purged_before_it_left_is_told_as_deleted(world: World) -> None:
    admin = world.create("admin")
    world.send_to(
        REMOTE, body=b"x", negative_journaling=True, admin_queue=ADMIN, acknowledgments=EVERYTHING
    )
    (queue,) = world.engine.outgoing_queues()
    assert world.answers[world.purge(queue.number)] == 1
    assert [view.message_class for view in world.messages(admin)] == [
        MessageClass.MQMSG_CLASS_NACK_DELETED
    ]
    assert world.bodies(world.find(DEAD_LETTER)) == [b"x"]


def test_what_is_taken_out_by_hand_is_not_acknowledged_as_received(world: World) -> None:
    admin = world.create("admin")
    world.send_to(REMOTE, body=b"x", admin_queue=ADMIN, acknowledgments=EVERYTHING)
    (queue,) = world.engine.outgoing_queues()
    assert world.body(world.receive(queue.number)) == b"x"
    assert world.bodies(admin) == []


def test_an_outgoing_queue_cannot_be_deleted_or_changed(world: World) -> None:
    world.send_to(REMOTE, body=b"x")
    (queue,) = world.engine.outgoing_queues()
    refused(HResult.MQ_ERROR_ACCESS_DENIED, lambda: world.delete(queue.number))
    refused(
        HResult.MQ_ERROR_ACCESS_DENIED,
        lambda: world.engine.change_queue(world.next_request(), queue.number, {"label": "x"}),
    )


def test_arrival_is_not_acknowledged_before_it_is_known(world: World) -> None:
    admin = world.create("admin")
    for transaction in (0, world.begin()):
        world.send_to(
            REMOTE,
            transaction,
            admin_queue=ADMIN,
            acknowledgments=EVERYTHING,
            positive_journaling=True,
        )
        if transaction:
            world.commit(transaction)
    assert world.bodies(admin) == []
    assert world.bodies(world.find(r".\system$;JOURNAL")) == []


# Acknowledgments to other computers.


@pytest.mark.parametrize("recoverable", [False, True])
@pytest.mark.spec("MS-MQDMPR 3.1.1.12")
def test_acknowledgments_to_an_administration_queue_elsewhere_wait_to_be_sent(
    world: World, recoverable: bool
) -> None:
    number = world.create("orders")
    request = world.send(
        number,
        body=b"x",
        recoverable=recoverable,
        admin_queue=r"OS:there\private$\admin",
        acknowledgments=EVERYTHING,
    )
    world.receive(number)
    ((destination, bodies),) = waiting(world).items()
    assert (destination.lower(), bodies) == (r"direct=os:there\private$\admin", [b"", b""])
    (queue,) = world.engine.outgoing_queues()
    views = world.messages(queue.number)
    assert [view.message_class for view in views] == [
        MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE,
        MessageClass.MQMSG_CLASS_ACK_RECEIVE,
    ]
    assert {view.correlation_id for view in views} == {world.message_id(request)}
    world.restart()
    assert len(waiting(world)) == (1 if recoverable else 0)


# Pausing, and the connection with others.


@pytest.mark.spec(
    "MS-MQDMPR 3.1.4.14",
    "MS-MQDMPR 3.1.4.15",
    "MS-MQDMPR 3.1.7.2.3",
    "MS-MQDMPR 3.1.7.2.4",
    "MS-MQDMPR 3.1.1.3",
)
def test_an_outgoing_queue_is_paused_and_resumed(world: World) -> None:
    world.send_to(REMOTE, body=b"1")
    world.send_to(OTHER, body=b"1")
    first, second = world.engine.outgoing_queues()
    assert world.engine.pause(first.number) is OutgoingState.ON_HOLD
    assert (first.state, second.state) == (OutgoingState.ON_HOLD, OutgoingState.INACTIVE)
    world.send_to(REMOTE, body=b"2")
    assert waiting(world)[REMOTE] == [b"1", b"2"], "it takes messages while it is paused"
    assert world.engine.resume(first.number) is OutgoingState.INACTIVE
    assert first.state is OutgoingState.INACTIVE


@pytest.mark.parametrize("name", ["pause", "resume"])
def test_only_outgoing_queues_are_paused(world: World, name: str) -> None:
    number = world.create("orders")
    text = refused(HResult.MQ_ERROR_INVALID_PARAMETER, lambda: getattr(world.engine, name)(number))
    assert "orders" in text
    refused(HResult.MQ_ERROR_QUEUE_DELETED, lambda: getattr(world.engine, name)(987654))


@pytest.mark.spec("MS-MQDMPR 3.1.4.12", "MS-MQDMPR 3.1.4.13", "MS-MQDMPR 3.1.1.1")
def test_the_queue_manager_is_taken_offline_and_brought_online(world: World) -> None:
    state = world.engine.state
    active = [state.connection_active]
    world.engine.take_offline()
    active.append(state.connection_active)
    world.send_to(REMOTE, body=b"x")
    assert waiting(world) == {REMOTE: [b"x"]}
    world.engine.bring_online()
    active.append(state.connection_active)
    assert active == [True, False, True]
