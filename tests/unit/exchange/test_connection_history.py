"""What an outgoing queue keeps of each attempt to connect, and its state after it."""

from __future__ import annotations

import pytest

from kit.exchange import START
from merq.exchange import Peer
from merq.hresult import HResult
from merq.model.properties import ConnectionStatus
from merq.model.queue import OutgoingState
from unit.exchange.exchange_world import GUIDS, PLAIN, QUEUE, THREE, TWO, manager, pair


@pytest.mark.spec("MS-MQQB 3.1.5.2#failure")
def test_a_failed_attempt_is_kept_with_its_time_its_error_and_its_address() -> None:
    town, sender, _ = pair()
    town.down.add(TWO)
    town.wait(7.0, step=1.0)
    sender.send(PLAIN, b"a")
    town.run()
    started, failed = sender.transfer(PLAIN).history
    assert (started.status, started.time, started.error) == ("InProcess", START + 7, 0)
    assert (failed.status, failed.time) == ("SocketConnectFailure", START + 7)
    assert failed.error == HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE
    assert failed.addresses == (TWO,)
    town.wait(6.0, step=1.0)
    assert sender.transfer(PLAIN).history[-1].time > failed.time


@pytest.mark.spec("MS-MQQB 3.1.5.2.2#PingFailure")
def test_a_ping_that_nobody_answers_is_kept_and_the_next_attempt_is_made_later() -> None:
    town, sender, receiver = pair()
    sender.send(PLAIN, b"a")
    sender.turn(0.0)
    (link,) = sender.exchange.take_dialing()
    sender.exchange.dial_failed(link, "no answer to a ping", 0.0, ConnectionStatus.PING_FAILURE)
    entry = sender.transfer(PLAIN).history[-1]
    assert (entry.status, entry.time, entry.addresses) == ("PingFailure", START, (TWO,))
    assert entry.error == HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE
    assert sender.exchange.next_deadline() == 5.0
    town.wait(5.2)
    assert receiver.bodies(QUEUE) == [b"a"]


@pytest.mark.spec("MS-MQQB 3.1.5.4.2#Connected", "MS-MQQB 3.1.5.2.3#Waiting")
def test_a_queue_on_hold_stays_so_when_a_session_to_its_place_is_made() -> None:
    town, sender, _ = pair()
    sender.send(PLAIN, b"a")
    sender.turn(0.0)
    assert sender.outgoing(PLAIN).state is OutgoingState.WAITING
    sender.host.engine.pause(sender.outgoing(PLAIN).number)
    town.run()
    assert sender.outgoing(PLAIN).state is OutgoingState.ON_HOLD
    sender.host.engine.resume(sender.outgoing(PLAIN).number)
    town.run()
    assert sender.outgoing(PLAIN).state is OutgoingState.CONNECTED


@pytest.mark.spec("MS-MQQB 3.1.5.9#OnHold")
def test_a_queue_on_hold_stays_so_when_its_session_ends() -> None:
    town, sender, _ = pair()
    sender.send(PLAIN, b"a")
    town.run()
    sender.host.engine.pause(sender.outgoing(PLAIN).number)
    town.cut()
    assert sender.outgoing(PLAIN).state is OutgoingState.ON_HOLD


@pytest.mark.spec("MS-MQQB 3.1.5.2.1#no-route")
def test_without_a_route_a_queue_needs_validation_and_looks_again_by_the_retry_timer() -> None:
    town, sender, _ = pair()
    name = f"PRIVATE={GUIDS[THREE]}\\00000010"
    sender.send(name, b"a")
    town.run()
    assert sender.outgoing(name).state is OutgoingState.NEED_VALIDATION
    assert sender.exchange.next_deadline() == 5.0
    town.wait(5.2)
    assert sender.history(name) == ["RoutingDataNotAvailable"] * 2


@pytest.mark.spec("MS-MQQB 3.1.5.2.1#next-hops")
@pytest.mark.spec("E73")
def test_a_next_hop_is_not_the_destination_but_the_one_on_the_way() -> None:
    two = Peer(name="two", guid=GUIDS[TWO], host=TWO)
    three = Peer(name="three", guid=GUIDS[THREE], via="two")
    sender = manager("10.0.0.1", peers=(two, three))
    name = f"PRIVATE={GUIDS[THREE]}\\00000010"
    sender.send(name, b"a")
    sender.turn(0.0)
    (link,) = sender.exchange.take_dialing()
    assert (link.address, link.expected) == (TWO, GUIDS[TWO])
    assert sender.transfer(name).next_hops == (TWO,)


@pytest.mark.spec("MS-MQQB 3.1.7.12#HTTP")
def test_a_message_by_http_makes_no_connection() -> None:
    town, sender, _ = pair()
    name = r"DIRECT=HTTP://10.0.0.2/msmq/private$/q"
    sender.send(name, b"a")
    town.wait(20.0, step=1.0)
    assert town.dialled == []
    assert sender.waiting(name) == [b"a"]
