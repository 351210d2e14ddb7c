"""What others are told of their messages: why one was not taken, that one came, what became of it.

Each rejection has its class, in an administration acknowledgment for who asked for one and in a
FinalAck for transactional messages.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from merq.engine.changes import Change
from merq.engine.notices import (
    NEGATIVE_ARRIVAL,
    NEGATIVE_RECEIVE,
    POSITIVE_ARRIVAL,
    POSITIVE_RECEIVE,
)
from merq.engine.order_acks import order_told
from merq.model.message_class import MessageClass
from merq.model.names import PrivateName, PublicName
from merq.model.queue import PrivacyLevel
from merq.wire.acks import FinalAck, OrderAck
from merq.wire.message import UserMessage
from merq.wire.packet import parse_packet
from merq.wire.queues import PrivateQueueFormatNameId
from merq.wire.view import MessageView
from unit.engine.engine_world import GUID, START, World
from unit.engine.foreign_world import (
    ADMIN,
    ELSEWHERE,
    ORDER_QUEUE,
    SEQUENCE,
    THERE,
    arrive,
    asked_for,
    classes,
    foreign,
    leaving,
    place,
)

ADMIN_QUEUE = asked_for(rf"DIRECT={ADMIN}")
DEAD_LETTER = r".\system$;DEADLETTER"
DEAD_XACT = r".\system$;DEADXACT"
ALL = POSITIVE_ARRIVAL | POSITIVE_RECEIVE | NEGATIVE_ARRIVAL | NEGATIVE_RECEIVE


def told(world: World, name: str = ADMIN_QUEUE) -> list[MessageView]:
    """What waits for somebody elsewhere."""
    return leaving(world).get(name.lower(), [])


def sealed(packet: bytes) -> bytes:
    """The same with a body that would have to be opened."""
    message = UserMessage.parse(packet)
    header = message.message_properties_header
    fields = replace(header.fields, privacy_level=1)
    return replace(message, message_properties_header=replace(header, fields=fields)).pack()


def late(world: World) -> bytes:
    world.tick(61)
    return foreign("q", time_to_reach_queue=60, **WANTING)


def over_quota(world: World) -> bytes:
    world.create("small", quota=1)
    return foreign("small", body=bytes(2000), **WANTING)


def unsigned(world: World) -> bytes:
    world.create("signed", authenticate=True)
    return foreign("signed", **WANTING)


def unsealed(world: World) -> bytes:
    world.create("sealed", privacy_level=PrivacyLevel.BODY)
    return foreign("sealed", **WANTING)


WANTING: dict[str, Any] = {
    "admin_queue": ADMIN,
    "acknowledgments": NEGATIVE_ARRIVAL,
    "label": "mine",
}
Make = Callable[[World], bytes]

REJECTED: list[tuple[str, Make]] = [
    ("BAD_DST_Q", lambda _: foreign("none", **WANTING)),
    ("NOT_TRANSACTIONAL_Q", lambda _: foreign("q", transaction=place(1), **WANTING)),
    ("NOT_TRANSACTIONAL_MSG", lambda _: foreign("tx", **WANTING)),
    ("REACH_QUEUE_TIMEOUT", late),
    ("Q_EXCEED_QUOTA", over_quota),
    ("BAD_ENCRYPTION", lambda _: sealed(foreign("q", **WANTING))),
    ("BAD_SIGNATURE", unsigned),
    ("ACCESS_DENIED", unsealed),
]
INSECURE = {"BAD_DST_Q", "BAD_ENCRYPTION", "BAD_SIGNATURE", "ACCESS_DENIED"}


@pytest.fixture
def queues(world: World) -> World:
    """A world with a queue, a transactional one, and no secrets."""
    world.create("q")
    world.create("tx", transactional=True)
    world.engine.state.sends_insecure_nacks = True
    return world


# Not taken.


@pytest.mark.parametrize(("name", "make"), REJECTED, ids=[name for name, _ in REJECTED])
@pytest.mark.spec("MS-MQQB 3.1.5.8.2", "MS-MQQB 3.1.5.8.8", "MS-MQQB 3.1.7.1.2", "MS-MQQB 3.1.7.15")
@pytest.mark.spec(
    "MS-MQQB 3.1.5.8.2#bad-queue",
    "MS-MQQB 3.1.5.8.2#not-transactional-queue",
    "MS-MQQB 3.1.5.8.2#not-transactional-message",
    "MS-MQQB 3.1.5.8.8#queue-quota",
)
def test_a_message_that_is_not_taken_is_acknowledged_with_the_reason(
    queues: World, name: str, make: Make
) -> None:
    packet = make(queues)
    before = [queue.positions.count for queue in queues.engine.state.queues.values()]
    assert arrive(queues, packet).taken == 1
    (view,) = told(queues)
    assert view.message_class == MessageClass[f"MQMSG_CLASS_NACK_{name}"]
    assert view.correlation_id == MessageView(packet).message_id
    after = [
        queue.positions.count for queue in queues.engine.state.queues.values() if not queue.transfer
    ]
    assert after == before, "it is nowhere"


@pytest.mark.parametrize(("name", "make"), REJECTED, ids=[name for name, _ in REJECTED])
@pytest.mark.spec("MS-MQQB 3.1.7.15", "MS-MQQB 3.1.1.3")
@pytest.mark.spec("MS-MQQB 3.1.7.15#SendInsecureNacks")
def test_strangers_are_not_told_too_much_unless_that_was_chosen(
    queues: World, name: str, make: Make
) -> None:
    queues.engine.state.sends_insecure_nacks = False
    arrive(queues, make(queues))
    assert bool(told(queues)) is (name not in INSECURE)


@pytest.mark.parametrize("wanted", [0, POSITIVE_ARRIVAL, POSITIVE_RECEIVE, NEGATIVE_RECEIVE])
@pytest.mark.spec("MS-MQQB 3.1.5.8.2", "MS-MQQB 3.1.7.15")
@pytest.mark.spec("MS-MQQB 3.1.5.8.2#NA", "MS-MQQB 3.1.7.15#AQ")
def test_who_did_not_ask_for_it_is_not_told(queues: World, wanted: int) -> None:
    arrive(queues, foreign("none", admin_queue=ADMIN, acknowledgments=wanted))
    arrive(queues, foreign("none", 2, acknowledgments=ALL))
    assert leaving(queues) == {}


def _late(world: World) -> bytes:
    world.tick(61)
    return foreign("tx", 77, time_to_reach_queue=60, transaction=place(1))


def _over_quota(world: World) -> bytes:
    world.create("small", quota=1, transactional=True)
    return foreign("small", 77, body=bytes(2000), transaction=place(1))


TRANSACTIONAL: list[tuple[str, Make]] = [
    ("BAD_DST_Q", lambda _: foreign("none", 77, transaction=place(1))),
    ("NOT_TRANSACTIONAL_Q", lambda _: foreign("q", 77, transaction=place(1))),
    ("REACH_QUEUE_TIMEOUT", _late),
    ("Q_EXCEED_QUOTA", _over_quota),
]


@pytest.mark.parametrize(("name", "make"), TRANSACTIONAL, ids=[each for each, _ in TRANSACTIONAL])
@pytest.mark.spec("MS-MQQB 3.1.5.8.2", "MS-MQQB 3.1.5.8.8", "MS-MQQB 3.1.7.17", "MS-MQQB 2.2.5")
@pytest.mark.spec(
    "MS-MQQB 3.1.5.8.2#bad-queue",
    "MS-MQQB 3.1.5.8.2#not-transactional-queue",
    "MS-MQQB 3.1.5.8.8#queue-quota",
)
def test_a_transactional_message_that_is_not_taken_has_a_negative_final_ack(
    queues: World, name: str, make: Make
) -> None:
    queues.engine.state.sends_insecure_nacks = False
    (incoming,) = arrive(queues, make(queues)).sequences
    (view,) = told(queues, ORDER_QUEUE)
    assert view.message_class == MessageClass[f"MQMSG_CLASS_NACK_{name}"]
    packet = parse_packet(view.packet)
    assert isinstance(packet, FinalAck)
    assert packet.body.message_id == 77
    assert incoming.settled == (SEQUENCE, 1), "it has had its turn"
    assert len(queues.engine.state.sequences) == 0, "but nothing is kept of a stranger for it"


@pytest.mark.spec("MS-MQQB 3.1.5.8.8")
@pytest.mark.spec("MS-MQQB 3.1.5.8.8#JN", "E66")
def test_what_finds_a_full_queue_or_is_late_lies_in_the_dead_letter_queue_here(
    queues: World,
) -> None:
    queues.create("small", quota=1)
    dead = queues.find(DEAD_LETTER)
    arrive(queues, foreign("small", 1, body=bytes(2000)))
    assert queues.messages(dead) == []
    arrive(queues, foreign("small", 2, body=bytes(2000), negative_journaling=True))
    arrive(queues, foreign("none", 3, negative_journaling=True))
    (view,) = queues.messages(dead)
    assert view.message_ordinal == 2
    assert view.message_class == MessageClass.MQMSG_CLASS_NACK_Q_EXCEED_QUOTA
    queues.create("tight", quota=1, transactional=True)
    packet = foreign("tight", 4, body=bytes(2000), transaction=place(1), negative_journaling=True)
    arrive(queues, packet)
    assert queues.messages(queues.find(DEAD_XACT)) == [], "its sender has it still"


# Taken.


@pytest.mark.parametrize("recoverable", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.5.8.10", "MS-MQQB 3.1.7.15", "MS-MQQB 3.1.5.11")
@pytest.mark.spec(
    "MS-MQQB 3.1.7.15#CorrelationIdentifier",
    "MS-MQQB 3.1.7.15#DeliveryGuarantee",
    "MS-MQQB 3.1.7.15#attributes",
)
def test_a_message_that_reached_its_queue_is_acknowledged(queues: World, recoverable: bool) -> None:
    packet = foreign(
        "q",
        9,
        admin_queue=ADMIN,
        acknowledgments=ALL,
        recoverable=recoverable,
        label="mine",
        body=b"secret",
    )
    arrive(queues, packet)
    (view,) = told(queues)
    assert view.message_class == MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE
    assert view.correlation_id == THERE.bytes_le + (9).to_bytes(4, "little")
    assert view.source_queue_manager == GUID
    assert view.sent_time == START
    assert view.delivery_mode == recoverable
    assert view.body == b"", "who got through needs no copy"
    assert view.label == "mine"
    assert view.acknowledgments == 0
    assert view.time_to_reach_queue == view.time_to_be_received == 0xFFFFFFFF
    assert not view.positive_journaling
    assert not view.negative_journaling
    assert view.admin_queue_type == 0
    assert view.response_queue.decode("utf-16-le") == r"TCP:10.0.0.1\private$\q"


@pytest.mark.spec("MS-MQQB 3.1.7.15")
@pytest.mark.spec("MS-MQQB 3.1.7.15#Body")
def test_a_negative_acknowledgment_brings_the_body_back_unless_it_is_encrypted(
    queues: World,
) -> None:
    arrive(queues, foreign("none", 1, body=b"mine", body_type=8, **WANTING))
    arrive(queues, sealed(foreign("none", 2, body=b"mine", body_type=8, **WANTING)))
    clear, secret = told(queues)
    assert (clear.body, clear.body_type) == (b"mine", 8)
    assert (secret.body, secret.body_type) == (b"", 0)


@pytest.mark.spec("MS-MQQB 3.1.7.15")
@pytest.mark.spec("MS-MQQB 3.1.7.15#ResponseQueue")
def test_an_acknowledgment_names_the_queue_that_it_is_about(queues: World) -> None:
    number = queues.find(r".\private$\q")
    identifier = queues.engine.queue(number).properties.identifier
    private = PrivateName(computer=GUID, number=number)
    for ordinal, name in enumerate((private, PublicName(queue=identifier))):
        arrive(queues, foreign(name, ordinal, admin_queue=ADMIN, acknowledgments=ALL))
    first, second = told(queues)
    assert first.response_queue == GUID.bytes_le + number.to_bytes(4, "little")
    assert second.response_queue == identifier.bytes_le


def with_admin(kind: int, number: int) -> bytes:
    """A message whose administration queue is on a computer that the packet implies."""
    private = PrivateName(computer=GUID, number=0x10)
    packet = foreign(private, admin_queue=ADMIN, acknowledgments=POSITIVE_ARRIVAL)
    message = UserMessage.parse(packet)
    user = message.user_header
    fields = replace(user.fields, flags=replace(user.fields.flags, admin_queue_type=kind))
    admin = PrivateQueueFormatNameId(private_queue_identifier=number)
    header = replace(user, fields=fields, admin_queue=admin)
    return replace(message, user_header=header).measured().pack()


@pytest.mark.spec("MS-MQQB 3.1.7.15")
@pytest.mark.spec("MS-MQQB 3.1.7.15#destination")
def test_the_administration_queue_may_be_named_in_any_form(queues: World) -> None:
    here = queues.create("admin")
    public = UUID(int=99)
    forms = [
        (with_admin(2, 0x77), asked_for(f"PRIVATE={THERE}\\00000077")),
        (with_admin(3, here), ""),
        (PublicName(queue=public), asked_for(f"PUBLIC={public}")),
        (
            PrivateName(computer=ELSEWHERE, number=0x88),
            asked_for(f"PRIVATE={ELSEWHERE}\\00000088"),
        ),
        (ADMIN, ADMIN_QUEUE),
        (r"OS:here\private$\admin", ""),
        (r"OS:here\private$\none", ""),
        (r"OS:here\private$\tx", ""),
        (r"OS:here\system$;deadletter", ""),
        ("NO:name", ""),
    ]
    for ordinal, (form, expected) in enumerate(forms):
        if isinstance(form, bytes):
            packet = form[:56] + ordinal.to_bytes(4, "little") + form[60:]
        else:
            packet = foreign("q", ordinal, admin_queue=form, acknowledgments=POSITIVE_ARRIVAL)
        before = {name: len(views) for name, views in leaving(queues).items()}
        arrive(queues, packet)
        after = {name: len(views) for name, views in leaving(queues).items()}
        assert [name for name in after if after[name] != before.get(name, 0)] == (
            [expected.lower()] if expected else []
        ), form
    assert len(queues.messages(here)) == 2
    assert queues.messages(queues.find(r".\private$\tx")) == []
    assert queues.messages(queues.find(DEAD_LETTER)) == []


# What became of it later.


def final(world: World) -> FinalAck:
    (view,) = told(world, ORDER_QUEUE)
    packet = parse_packet(view.packet)
    assert isinstance(packet, FinalAck), classes([view])
    return packet


Fate = Callable[[World, int], object]


def outlive(world: World, _: int) -> None:
    world.tick(100)


def leave(world: World, number: int) -> None:
    world.receive(number)


FATES: list[tuple[str, Fate]] = [
    ("ACK_RECEIVE", leave),
    ("NACK_Q_PURGED", World.purge),
    ("NACK_Q_DELETED", World.delete),
    ("NACK_RECEIVE_TIMEOUT", outlive),
]


@pytest.mark.parametrize(("name", "fate"), FATES, ids=[name for name, _ in FATES])
@pytest.mark.spec(
    "MS-MQQB 3.1.7.2", "MS-MQQB 3.1.7.2.1", "MS-MQQB 3.1.7.2.2", "MS-MQQB 3.1.7.17", "MS-MQQB 2.2.5"
)
@pytest.mark.spec("MS-MQQB 3.1.7.17#attributes", "MS-MQQB 3.1.7.17#FinalAck")
def test_a_sender_learns_what_became_of_its_message_in_the_end(
    queues: World, name: str, fate: Fate
) -> None:
    number = queues.find(r".\private$\tx")
    packet = foreign(
        "tx",
        78,
        transaction=place(3, 0),
        negative_journaling=True,
        time_to_be_received=50,
        admin_queue=ADMIN,
        acknowledgments=POSITIVE_RECEIVE | NEGATIVE_RECEIVE,
    )
    arrive(queues, packet)
    assert leaving(queues) == {}
    fate(queues, number)
    expected = MessageClass[f"MQMSG_CLASS_{name}"]
    assert classes(told(queues)) == [expected]
    ack = final(queues)
    header = ack.message.message_properties_header
    assert header.fields.message_class == expected
    assert header.label == "QM Ordering Ack"
    assert header.fields.body_type == 0
    user = ack.message.user_header
    assert user.fields.source_queue_manager == GUID
    assert user.fields.flags.delivery_mode == 1
    assert ack.message.base_header.flags.priority == 0
    assert not ack.message.base_header.flags.traced
    assert user.admin_queue is None
    assert user.response_queue is None
    sequence = ack.body.tx_sequence_id
    assert sequence.pack() == SEQUENCE.to_bytes(8, "little")
    assert ack.body.tx_sequence_number == 3
    assert ack.body.tx_previous_sequence_number == 0
    assert ack.body.source_guid == THERE
    assert ack.body.message_id == 78
    assert queues.messages(queues.find(DEAD_XACT)) == [], "that is its sender's"


@pytest.mark.parametrize(
    ("fields", "is_told"),
    [
        ({}, False),
        ({"positive_journaling": True}, True),
        ({"negative_journaling": True}, True),
        ({"transaction": place(1)._replace(final_ack_required=True)}, True),
    ],
)
@pytest.mark.parametrize("fate", [fate for _, fate in FATES], ids=[name for name, _ in FATES])
@pytest.mark.spec("MS-MQQB 3.1.7.2.2")
@pytest.mark.spec("E64")
def test_that_a_message_has_left_its_queue_is_told_to_who_waits_for_it(
    queues: World, fields: dict[str, Any], is_told: bool, fate: Fate
) -> None:
    number = queues.find(r".\private$\tx")
    arrive(queues, foreign("tx", time_to_be_received=50, **({"transaction": place(1)} | fields)))
    fate(queues, number)
    assert bool(told(queues, ORDER_QUEUE)) is is_told


@pytest.mark.spec("MS-MQQB 3.1.7.17", "MS-MQQB 3.1.7.2.2")
@pytest.mark.spec("MS-MQQB 3.1.7.17#source", "E63")
def test_a_sender_that_did_not_use_a_direct_name_is_told_by_its_identifier(queues: World) -> None:
    name = PrivateName(computer=GUID, number=queues.find(r".\private$\tx"))
    arrive(queues, foreign(name, transaction=place(1), negative_journaling=True))
    queues.receive(name.number)
    (view,) = told(queues, f"PRIVATE={THERE}\\00000004")
    assert view.queue_manager_address == THERE
    assert view.destination == b"\4\0\0\0"


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.7.17", "MS-MQQB 3.1.7.2.2")
def test_that_is_so_after_a_restart_too(queues: World, checkpoint: bool) -> None:
    number = queues.find(r".\private$\tx")
    arrive(queues, foreign("tx", transaction=place(1), positive_journaling=True))
    if checkpoint:
        queues.checkpoint()
    queues.restart()
    queues.receive(number)
    assert classes(told(queues, ORDER_QUEUE)) == [MessageClass.MQMSG_CLASS_ACK_RECEIVE]
    queues.restart()
    assert len(told(queues, ORDER_QUEUE)) == 1, "it is recoverable"


# How far a sequence is.


@pytest.mark.spec("MS-MQQB 3.1.6.9", "MS-MQQB 3.1.7.17", "MS-MQQB 2.2.4", "MS-MQQB 3.1.1.6.2")
@pytest.mark.spec("MS-MQQB 3.1.7.17#OrderAck", "E47")
def test_an_order_ack_says_how_far_a_sequence_has_come(queues: World) -> None:
    packets = [foreign("tx", number, transaction=place(number)) for number in (1, 2, 3)]
    (incoming,) = arrive(queues, *packets).sequences
    change = Change()
    order_told(queues.engine.state, change, incoming)
    queues.engine.state.submit(change)
    queues.perform()
    (view,) = told(queues, ORDER_QUEUE)
    assert struct.unpack("<QII20s", view.body) == (SEQUENCE, 3, 2, bytes(20))
    packet = parse_packet(view.packet)
    assert isinstance(packet, OrderAck)
    assert packet.message.base_header.flags.priority == 0
    assert view.delivery_mode == 0
    assert view.message_class == MessageClass.MQMSG_CLASS_ORDER_ACK
    assert view.source_queue_manager == GUID


@pytest.mark.spec("MS-MQQB 3.1.6.9")
def test_of_a_sequence_of_which_nothing_was_accepted_nothing_is_said(queues: World) -> None:
    (incoming,) = arrive(queues, foreign("tx", 5, transaction=place(5))).sequences
    change = Change()
    order_told(queues.engine.state, change, incoming)
    assert change.steps == []
    assert incoming.settled == (0, 0)
    assert len(queues.engine.state.sequences) == 0


@pytest.mark.spec("MS-MQQB 3.1.6.9", "MS-MQQB 3.1.5.8.6")
@pytest.mark.spec("MS-MQQB 3.1.6.9#earlier-sequence", "E78")
def test_who_sends_of_an_earlier_sequence_again_learns_that_it_has_arrived(queues: World) -> None:
    later = place(1, sequence=SEQUENCE + 1)
    arrive(queues, foreign("tx", 1, transaction=place(1)), foreign("tx", 2, transaction=later))
    (incoming,) = arrive(queues, foreign("tx", 1, transaction=place(1))).sequences
    for expected in ([(SEQUENCE, 1), (SEQUENCE + 1, 1)], [(SEQUENCE + 1, 1)]):
        before = len(told(queues, ORDER_QUEUE))
        change = Change()
        order_told(queues.engine.state, change, incoming)
        queues.engine.state.submit(change)
        queues.perform()
        views = told(queues, ORDER_QUEUE)[before:]
        assert [struct.unpack_from("<QI", view.body) for view in views] == expected


@pytest.mark.spec("MS-MQQB 3.1.7.17")
def test_who_pretends_to_be_this_queue_manager_is_told_nothing(queues: World) -> None:
    name = PrivateName(computer=GUID, number=queues.find(r".\private$\tx"))
    packet = foreign(name, transaction=place(1), source_queue_manager=GUID.bytes_le)
    arrived = arrive(queues, packet)
    assert (arrived.taken, arrived.sequences) == (1, [])
    assert queues.engine.arrivals.impostors == 1
    assert queues.engine.state.sequences.all() == []
