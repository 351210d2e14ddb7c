"""When OrderAcks are sent, and when transactional messages are sent again without one."""

from __future__ import annotations

import itertools

import pytest

from kit.exchange import START, Manager, Town
from merq.exchange import ExchangeSettings
from merq.protocol.binary.settings import SessionSettings
from unit.exchange.exchange_world import ORDERED, TX, changed, pair

QUIET = SessionSettings(ack_wait_s=120.0, cleanup_s=1e6)
"""A session that does not end because nothing happens."""


def acked_at(town: Town, sender: Manager, until: float) -> list[float]:
    """When OrderAcks come, to a tenth of a second."""
    found: list[float] = []
    while town.now < until - 1e-9:
        before = sender.transfer(ORDERED).last_ack_count
        town.wait(0.1)
        found += [round(town.now, 1)] * (sender.transfer(ORDERED).last_ack_count - before)
    return found


@pytest.mark.spec("MS-MQQB 3.1.2.7", "MS-MQQB 3.1.6.9", "MS-MQQB 3.1.5.8.6", "MS-MQQB 3.1.3.2")
@pytest.mark.spec("MS-MQQB 3.1.5.8.6#OrderAck-timer", "MS-MQQB 3.1.6.9#OrderAck")
def test_an_order_ack_is_sent_half_a_second_after_the_last_message() -> None:
    town, sender, _ = pair()
    sender.commit(ORDERED, b"a")
    town.run()
    town.wait(0.3)
    sender.commit(ORDERED, b"b")
    town.run()
    assert acked_at(town, sender, 3.0) == [0.8], "the timer was started again"
    assert sender.waiting(ORDERED) == []
    assert sender.transfer(ORDERED).last_ack[1] == 2


@pytest.mark.spec("MS-MQQB 3.1.2.7", "MS-MQQB 3.1.1.6.2", "MS-MQQB 3.1.5.8.6")
@pytest.mark.spec("MS-MQQB 3.1.5.8.6#MaximumOrderAckDelay")
def test_a_stream_of_messages_does_not_put_it_off_for_ever() -> None:
    town, sender, _ = pair(changed(order_ack_s=0.5, order_ack_max_s=2.0))
    found: list[float] = []
    for number in range(60):
        sender.commit(ORDERED, b"%d" % number)
        town.run()
        found += acked_at(town, sender, town.now + 0.1)
    # Not put off any more once 2 s have passed; it runs out within the next half second.
    assert found
    assert found[0] <= 2.6
    gaps = [later - sooner for sooner, later in itertools.pairwise(found)]
    assert max(gaps) <= 2.7


@pytest.mark.spec("MS-MQQB 3.1.1.6.2")
@pytest.mark.spec("E62")
def test_many_messages_do_not_wait_for_it() -> None:
    town, sender, receiver = pair(changed(order_ack_every=10, order_ack_s=5.0))
    sender.commit(ORDERED, *[b"x"] * 9)
    town.run()
    town.wait(0.1)
    assert sender.transfer(ORDERED).last_ack_count == 0
    sender.commit(ORDERED, b"x")
    town.run()
    town.wait(0.1)
    assert sender.transfer(ORDERED).last_ack_count == 1
    assert sender.waiting(ORDERED) == []
    assert len(receiver.bodies(TX)) == 10


@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "MS-MQQB 3.1.6.9")
def test_a_duplicate_is_answered_with_how_far_the_sequence_is() -> None:
    town, sender, receiver = pair(changed(retry_s=1.0))
    sender.commit(ORDERED, b"a")
    town.run()
    assert receiver.bodies(TX) == [b"a"]
    town.restart(receiver)
    town.wait(2.0)
    assert receiver.bodies(TX) == [b"a"]
    assert sender.waiting(ORDERED) == []


# Without one.


def silent(table: tuple[float, ...]) -> tuple[Town, Manager, Manager]:
    """A receiver that says nothing about sequences."""
    settings = changed(session=QUIET, resend_s=table)
    mute = changed(session=QUIET, order_ack_s=1e6, order_ack_every=1 << 30)
    return pair(settings, mute)


def rejects(receiver: Manager) -> int:
    (incoming,) = receiver.host.engine.state.sequences.all()
    return incoming.rejects


@pytest.mark.spec("MS-MQQB 3.1.2.6", "MS-MQQB 3.1.6.5", "MS-MQQB 3.1.3.1", "MS-MQDMPR 3.1.1.4")
@pytest.mark.spec("MS-MQQB 3.1.7.1.3#resend-timer", "E46")
def test_messages_are_sent_again_by_the_table_whose_last_entry_stays() -> None:
    town, sender, receiver = silent((1.0, 2.0, 4.0))
    sender.commit(ORDERED, b"a", b"b")
    town.run()
    found = []
    before = 0
    for tenth in range(1, 171):
        town.wait(0.1)
        if rejects(receiver) != before:
            assert rejects(receiver) == before + 2, "all that is unacknowledged goes again"
            before = rejects(receiver)
            found.append(tenth / 10)
    assert found == pytest.approx([1.0, 3.0, 7.0, 11.0, 15.0], abs=0.11)
    transfer = sender.transfer(ORDERED)
    assert (transfer.resends, transfer.resend_interval) == (5, 4)
    assert transfer.resend_time == pytest.approx(START + 19, abs=1)
    assert receiver.bodies(TX) == [b"a", b"b"]


@pytest.mark.spec("MS-MQQB 3.1.5.6", "MS-MQQB 3.1.2.6")
@pytest.mark.spec("MS-MQQB 3.1.5.6#ResendIntervalIndex", "E46")
def test_an_order_ack_starts_the_table_anew() -> None:
    town, sender, receiver = silent((1.0, 2.0, 4.0))
    sender.commit(ORDERED, b"a")
    town.run()
    town.wait(3.2)
    assert sender.transfer(ORDERED).resends == 2
    (incoming,) = receiver.host.engine.state.sequences.all()
    sender.commit(ORDERED, b"b")
    town.run()
    receiver.exchange.inbound.tick(2e6)
    town.run()
    transfer = sender.transfer(ORDERED)
    assert (transfer.resends, len(transfer.unordered)) == (0, 0)
    assert incoming.settled[1] == 2
    sender.commit(ORDERED, b"c")
    town.run()
    assert transfer.resend_interval == 1


@pytest.mark.spec("MS-MQQB 3.1.3.1", "MS-MQQB 3.1.3.2")
def test_the_documented_values_are_the_defaults() -> None:
    settings = ExchangeSettings()
    assert list(settings.resend_s) == [30] * 3 + [5 * 60] * 3 + [30 * 60] * 3 + [6 * 3600]
    assert (settings.order_ack_s, settings.order_ack_max_s) == (0.5, 10.0)
    session = settings.session
    assert (session.initialization_s, session.cleanup_s, session.ack_wait_s) == (60.0, 300.0, 20.0)
    assert (settings.history_size, settings.history_s) == (10_000, 1800)
    assert not settings.insecure_nacks


@pytest.mark.spec("MS-MQQB 3.1.2.6", "MS-MQQB 3.1.5.9")
def test_without_a_session_nothing_is_sent_again_by_time() -> None:
    town, sender, receiver = silent((1.0,))
    sender.commit(ORDERED, b"a")
    town.run()
    town.down.add("10.0.0.2")
    town.cut()
    town.wait(3.0)
    assert rejects(receiver) == 0
    town.down.clear()
    town.wait(2.4)
    assert rejects(receiver) == 1, "the new session does it"


@pytest.mark.spec("MS-MQQB 3.1.2.8", "MS-MQQB 3.1.6.7")
def test_old_identifiers_are_forgotten_in_time() -> None:
    town, sender, receiver = pair(changed(history_s=60, session=QUIET))
    sender.send(r"DIRECT=TCP:10.0.0.2\private$\q", b"a")
    town.run()
    recent = receiver.host.engine.state.recent
    assert len(recent) == 1
    town.wait(50.0, step=5.0)
    assert len(recent) == 1
    town.wait(80.0, step=5.0)
    assert len(recent) == 0
