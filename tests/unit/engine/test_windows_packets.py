"""Packets as Windows makes them, where that differs from ours."""

from __future__ import annotations

import struct

import pytest

from merq.model.message_class import MessageClass
from merq.model.names import PrivateName
from unit.engine.engine_world import GUID, World
from unit.engine.foreign_world import (
    SEQUENCE,
    arrive,
    commit,
    depart,
    foreign,
    place,
    transfer,
)


@pytest.mark.spec("MS-MQQB 2.2.4.1", "MS-MQQB note 17")
def test_an_order_ack_counts_whatever_is_in_its_reserved_bytes(world: World) -> None:
    commit(world, b"a", b"b")
    depart(world)
    sequence_id = transfer(world).unordered[0].sequence_id
    rubbish = bytes(range(0xCD, 0xCD + 20))
    packet = foreign(
        PrivateName(computer=GUID, number=4),
        priority=0,
        label="QM Ordering Ack",
        message_class=MessageClass.MQMSG_CLASS_ORDER_ACK,
        body=struct.pack("<QII", sequence_id, 2, 1) + rubbish,
    )
    arrive(world, packet)
    assert not transfer(world).unordered


@pytest.mark.spec("MS-MQMQ 2.2.20.5", "MS-MQMQ note 18")
def test_messages_that_are_neither_first_nor_last_of_a_transaction_are_taken(world: World) -> None:
    number = world.create("tx", transactional=True)
    for count in (1, 2):
        where = place(count)._replace(is_first=False, is_last=False)
        arrive(world, foreign("tx", count, transaction=where, body=b"%d" % count))
    assert world.bodies(number) == [b"1", b"2"]
    (incoming,) = world.engine.state.sequences.all()
    assert incoming.settled == (SEQUENCE, 2)
