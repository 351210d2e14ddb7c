"""What strangers do with the identifiers of others, and with acknowledgments they ask for."""

from __future__ import annotations

import pytest

from hostile import stranger_packets as packets
from kit.exchange import START, Manager
from kit.raw_sessions import RawSession
from merq.engine import order_queues
from merq.engine.notices import ACK_BYTES_WAITING_MAX
from unit.exchange.exchange_world import GUIDS, ONE, QUEUE, THREE, TWO, manager
from unit.exchange.letter_messages import OTHER

TO_QUEUE = rf"TCP:{TWO}\private$\q"


def receiver_with_a_queue() -> Manager:
    found = manager(TWO)
    assert found.create("q") == QUEUE
    return found


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.5.8.1", "E151")
def test_what_came_in_a_senders_name_is_no_reason_to_drop_what_it_sends(*, is_late: bool) -> None:
    receiver = receiver_with_a_queue()
    source = GUIDS[ONE].bytes_le
    liar = RawSession.connect(receiver, THREE, GUIDS[ONE]).establish()
    lifetime = 0 if is_late else packets.FOREVER
    for ordinal in range(1, 51):
        liar.say(
            packets.message(source, ordinal, TO_QUEUE, recoverable=True, time_to_reach=lifetime)
        )
    honest = RawSession.connect(receiver, ONE, GUIDS[ONE]).establish()
    for ordinal in range(1, 51):
        told = packets.message(source, ordinal, TO_QUEUE, recoverable=True, body=b"honest")
        honest.say(told)
        honest.say(told)
    assert receiver.bodies(QUEUE).count(b"honest") == 50, "each once"


@pytest.mark.limit("merq.engine.order_queues.ORDER_QUEUES_PER_NETWORK_MAX")
@pytest.mark.spec("MS-MQQB 3.1.7.15")
def test_ever_new_administration_queues_at_one_address_make_only_so_many_queues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(order_queues, "ORDER_QUEUES_PER_NETWORK_MAX", 20)
    receiver = receiver_with_a_queue()
    session = RawSession.connect(receiver, THREE, OTHER).establish()
    for number in range(200):
        admin = rf"TCP:{THREE}\private$\a{number}"
        what = packets.message(
            OTHER.bytes_le, number + 1, TO_QUEUE, admin=admin, asked=packets.PA, recoverable=True
        )
        receiver.exchange.received(session.link, what, 0.0)
        receiver.turn(0.0)
    assert len(receiver.host.engine.outgoing_queues()) <= 20
    assert len(receiver.bodies(QUEUE)) == 200


@pytest.mark.limit("merq.engine.notices.ACK_BYTES_WAITING_MAX")
@pytest.mark.spec("MS-MQQB 3.1.7.15")
def test_bodies_that_come_back_with_negative_acknowledgments_do_not_fill_the_quota() -> None:
    receiver = receiver_with_a_queue()
    session = RawSession.connect(receiver, THREE, OTHER).establish()
    for number in range(60):
        what = packets.message(
            OTHER.bytes_le,
            number + 1,
            TO_QUEUE,
            body=bytes(100_000),
            admin=rf"TCP:{THREE}\private$\told",
            asked=packets.NA,
            recoverable=True,
            time_to_reach=0,
            sent_time=START - 1000,
        )
        receiver.exchange.received(session.link, what, 0.0)
        receiver.turn(0.0)
    session.hang_up()
    taken = receiver.host.engine.state.taken_bytes
    assert 0 < taken < ACK_BYTES_WAITING_MAX + 200_000
