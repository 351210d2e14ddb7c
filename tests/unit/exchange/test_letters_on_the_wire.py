"""Rules of [MS-MQQB] by their numbers and names, not by our own constants."""

from __future__ import annotations

from struct import pack

import pytest

from kit.exchange import START, Town
from kit.raw_sessions import RawSession, order_ack_packet
from merq.exchange import Peer
from merq.model.message_class import MessageClass
from merq.model.names import PrivateName
from merq.wire.build import Outline, TransactionPlace, build_packet
from merq.wire.view import MessageView
from unit.exchange.exchange_world import (
    GUIDS,
    ONE,
    ORDERED,
    PLAIN,
    QUEUE,
    THREE,
    TWO,
    changed,
    manager,
    pair,
)

LABEL = "QM Ordering Ack".encode("utf-16-le")


def waiting_place(town: Town) -> tuple[int, int]:
    """Sequence and number of the only transactional message that waits at the first computer."""
    sender = town.managers[ONE]
    (view,) = sender.messages(sender.outgoing(ORDERED).number)
    return view.tx_place[:2]


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda packet: packet.replace(LABEL, LABEL[:-2] + b"x\0"), id="label"),
        pytest.param(lambda packet: packet[:2] + b"\x01" + packet[3:], id="a flag"),
        pytest.param(lambda packet: packet.replace(b"\xff\0" + bytes(20), bytes(22)), id="class"),
        pytest.param(lambda packet: packet.replace(b"order_queue$".decode().encode("utf-16-le"),
                     "other_queue$".encode("utf-16-le")), id="queue"),
        pytest.param(
            lambda packet: packet.replace(pack("<II", 36, 36), pack("<II", 35, 36)), id="size"
        ),
    ],
)  # fmt: skip
@pytest.mark.spec("MS-MQQB 3.1.5.1.1#OrderAck", "MS-MQQB 2.2.4")
def test_an_order_ack_that_is_not_formed_as_one_ends_nothing(spoil: object) -> None:
    town, sender, _ = pair()
    sender.commit(ORDERED, b"a")
    town.wait(0.3)
    good = order_ack_packet(GUIDS[TWO], *waiting_place(town))
    bad = spoil(good)  # type: ignore[operator]
    assert bad != good
    for packet, left in ((bad, [b"a"]), (good, [])):
        session = RawSession.connect(sender, TWO, GUIDS[TWO], town.now).establish(town.now)
        session.say(packet, town.now)
        assert sender.waiting(ORDERED) == left


@pytest.mark.spec("MS-MQQB 3.1.7.17#direct", "MS-MQQB 2.2.4")
def test_an_order_ack_for_a_direct_name_names_the_address_that_the_message_came_from() -> None:
    receiver = manager(TWO)
    receiver.create("tx", transactional=True)
    place = TransactionPlace(sequence_id=7, sequence_number=1, previous_sequence_number=0)
    message = Outline(
        source_queue_manager=GUIDS[ONE].bytes_le,
        destination=rf"TCP:{TWO}\private$\tx",
        sent_time=START,
        message_ordinal=1,
        recoverable=True,
        transaction=place,
    )
    session = RawSession.connect(receiver, ONE, GUIDS[ONE]).establish()
    session.say(build_packet(message))
    receiver.exchange.tick(0.6)
    session.settle(0.6)
    (packet,) = session.messages()
    view = MessageView(packet)
    assert view.destination_type == 7
    assert view.destination.decode("utf-16-le").lower() == rf"tcp:{ONE}\private$\order_queue$"
    assert packet[32:48] == bytes(16), "a direct name has no identifier beside it"


@pytest.mark.parametrize(("hops", "passes"), [(28, True), (29, False)])
@pytest.mark.spec("MS-MQQB 3.1.5.8.2#too-many-hops", "MS-MQMQ 2.2.19.2")
def test_a_message_that_29_queue_managers_have_handled_is_passed_on_no_more(
    hops: int, *, passes: bool
) -> None:
    peer = Peer(name="two", guid=GUIDS[TWO], host=TWO)
    router, receiver = manager(THREE, changed(forwards=True), peers=(peer,)), manager(TWO)
    receiver.create("q")
    town = Town(router, receiver)
    message = Outline(
        source_queue_manager=GUIDS[ONE].bytes_le,
        destination=PrivateName(computer=GUIDS[TWO], number=QUEUE),
        sent_time=START,
        message_ordinal=1,
        body=b"a",
        admin_queue=rf"TCP:{ONE}\private$\admin",
        acknowledgments=4,
    )
    packet = bytearray(build_packet(message))
    packet[60] = packet[60] & 0xE0 | hops
    session = RawSession.connect(router, ONE, GUIDS[ONE]).establish()
    session.say(bytes(packet))
    town.run()
    session.settle()
    told = [MessageView(each).message_class for each in session.messages()]
    assert receiver.bodies(QUEUE) == ([b"a"] if passes else [])
    assert told == ([] if passes else [MessageClass.MQMSG_CLASS_NACK_HOP_COUNT_EXCEEDED])


@pytest.mark.spec("MS-MQQB 3.1.5.4.2#NextHops")
def test_the_next_hop_is_the_address_that_was_reached() -> None:
    sender = manager(ONE)
    name = PLAIN.replace(f"TCP:{TWO}", "OS:there")
    sender.send(name, b"a")
    sender.turn(0.0)
    sender.exchange.take_lookups()
    sender.exchange.looked_up("there", [THREE, TWO], 0.0)
    assert sender.transfer(name).next_hops == (THREE, TWO)
    RawSession.accept(sender, GUIDS[THREE])
    assert sender.transfer(name).next_hops == (THREE,)
