r"""Names of queues here, such as `.\private$\told`, in messages that go to other queue managers."""

from __future__ import annotations

import pytest

from kit.exchange import Manager, Town
from merq.client.messages import ReceivedMessage
from merq.engine.notices import NEGATIVE_ARRIVAL, POSITIVE_RECEIVE
from merq.errors import MessageQueueError
from merq.exchange import ExchangeSettings, Peer
from merq.model.delivered import Delivered
from merq.model.message_class import MessageClass
from merq.wire.headers import PACKET_SIZE_MAX
from unit.exchange.exchange_world import (
    GUIDS,
    ONE,
    ORDERED,
    PLAIN,
    QUEUE,
    TWO,
    TX,
    changed,
    manager,
    pair,
)

TOLD = r"OS:.\private$\told"
LISTED = (PLAIN.removeprefix("DIRECT="), r"OS:.\private$\told")


def first(of: Manager, number: int) -> ReceivedMessage:
    state = of.host.engine.state
    place = next(iter(state.queues[number].positions))
    arrival, packet = state.stored(place)
    return ReceivedMessage(Delivered(packet, place.lookup_id, arrival, 0))


@pytest.mark.parametrize("in_transaction", [False, True])
@pytest.mark.parametrize(
    "name", [TOLD, r"os:localhost\private$\told", r"TCP:127.0.0.1\private$\told"]
)
@pytest.mark.spec("MS-MQMQ 2.2.19.2", "MS-MQQB 3.1.7.15")
@pytest.mark.spec("E94")
def test_they_leave_with_the_address_of_the_session(name: str, in_transaction: bool) -> None:
    town, sender, receiver = pair()
    told = sender.create("told")
    send = sender.commit if in_transaction else sender.send
    target, number = (ORDERED, TX) if in_transaction else (PLAIN, QUEUE)
    wanted: dict[str, object] = {"admin_queue": name, "response_queue": name, "recoverable": True}
    send(target, b"a", acknowledgments=POSITIVE_RECEIVE, **wanted)  # type: ignore[arg-type]
    town.run()
    message = first(receiver, number)
    assert message.admin_queue == message.response_queue == r"DIRECT=TCP:10.0.0.1\private$\told"
    assert message.body_bytes == b"a"
    # Nothing but the message itself tells where its sender is.
    town.cut()
    town.restart(receiver)
    receiver.receive(number)
    town.wait(1.0)
    assert [each.message_class for each in sender.messages(told)] == [
        MessageClass.MQMSG_CLASS_ACK_RECEIVE
    ]
    receiver.send(message.response_queue, b"answer")
    town.wait(1.0)
    assert sender.bodies(told)[1:] == [b"answer"]


@pytest.mark.spec("MS-MQMQ 2.2.20.1")
def test_a_list_of_destinations_says_the_same() -> None:
    town, sender, receiver = pair()
    sender.create("told")
    sender.send(PLAIN, b"a", destinations=LISTED, admin_queue=TOLD, response_queue=TOLD)
    town.run()
    message = first(receiver, QUEUE)
    here = r"DIRECT=TCP:10.0.0.1\private$\told"
    assert message.destination_queues == (PLAIN, here)
    header = message.details.multi_queue_format_header
    assert header is not None
    for names in (header.administration, header.response):
        (element,) = names.format_name_list
        assert getattr(element.format_name, "direct_format_name", "") == here[7:]


@pytest.mark.parametrize(
    ("advertised", "expected"),
    [
        ("203.0.113.7", "TCP:203.0.113.7"),
        ("mail.example", "OS:mail.example"),
        ("2001:db8::7", "TCP:2001:db8::7"),
    ],
)
def test_they_leave_with_the_host_that_is_advertised_if_one_is(
    advertised: str, expected: str
) -> None:
    town, sender, receiver = pair(changed(advertised_host=advertised), ExchangeSettings())
    sender.send(PLAIN, b"a", admin_queue=TOLD, response_queue=TOLD, acknowledgments=1)
    town.run()
    message = first(receiver, QUEUE)
    assert message.admin_queue == message.response_queue == rf"DIRECT={expected}\private$\told"


@pytest.mark.spec("MS-MQMQ 2.2.19.2")
def test_who_is_addressed_by_an_identifier_is_told_identifiers() -> None:
    peers = (Peer(name="two", guid=GUIDS[TWO], host=TWO),)
    sender, receiver = manager(ONE, peers=peers), manager(TWO)
    town, number, told = Town(sender, receiver), receiver.create("q"), sender.create("told")
    sender.send(
        rf"PRIVATE={GUIDS[TWO]}\{number:08x}",
        b"a",
        admin_queue=TOLD,
        response_queue=TOLD,
        acknowledgments=1,
    )
    town.run()
    message = first(receiver, number)
    assert message.admin_queue == message.response_queue == rf"PRIVATE={GUIDS[ONE]}\{told:08x}"


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", ""])
def test_an_address_that_everybody_takes_for_its_own_is_not_said(address: str) -> None:
    town, sender, receiver = pair()
    told = sender.create("told")
    town.said_addresses[ONE] = address
    sender.send(PLAIN, b"a", admin_queue=TOLD, response_queue=TOLD, acknowledgments=1)
    town.run()
    message = first(receiver, QUEUE)
    assert message.admin_queue == rf"PRIVATE={GUIDS[ONE]}\{told:08x}"
    assert message.response_queue == r"DIRECT=OS:m1\private$\told"


@pytest.mark.spec("MS-MQQB 3.1.7.1.2")
def test_at_home_they_stay_as_they_were_written() -> None:
    town, sender, _ = pair()
    told = sender.create("told")
    town.down.add(TWO)
    sender.send(
        PLAIN,
        b"a",
        admin_queue=TOLD,
        response_queue=TOLD,
        acknowledgments=NEGATIVE_ARRIVAL,
        time_to_reach_queue=1,
        negative_journaling=True,
    )
    town.wait(3.0, step=1.0)
    assert first(sender, 0xFFFF0002).response_queue == rf"DIRECT={TOLD}"
    assert len(sender.messages(told)) == 1


def test_other_names_and_other_senders_names_stay_as_they_are() -> None:
    town, sender, receiver = pair()
    for name in (r"OS:m1\private$\told", r"TCP:10.0.0.1\private$\told", r"OS:.x\private$\told"):
        sender.send(PLAIN, b"a", response_queue=name)
        town.run()
        assert first(receiver, QUEUE).response_queue == rf"DIRECT={name}"
        receiver.receive(QUEUE)


@pytest.mark.limit("merq.engine.spelling.GROWTH_MAX")
def test_a_message_without_room_for_a_longer_name_is_refused() -> None:
    _, sender, _ = pair()
    with pytest.raises(MessageQueueError, match="names a queue of this computer"):
        sender.send(PLAIN, bytes(PACKET_SIZE_MAX - 300), response_queue=TOLD)
