"""How an outgoing queue finds its way, whom it meets there, and what its history says."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from kit.exchange import START, Manager, Town
from merq.exchange import ExchangeSettings, Peer
from merq.hresult import HResult
from merq.model.queue import OutgoingState
from merq.protocol.binary.settings import SessionSettings
from unit.exchange.exchange_world import (
    GUIDS,
    ONE,
    ORDERED,
    PLAIN,
    QUEUE,
    THREE,
    TWO,
    TX,
    changed,
    manager,
    pair,
)

BY_NAME = r"DIRECT=OS:there\private$\q"
BY_GUID = f"PRIVATE={GUIDS[TWO]}\\00000010"


def state(sender: Manager, name: str = PLAIN) -> OutgoingState:
    return sender.outgoing(name).state


# The way.


@pytest.mark.spec("MS-MQQB 3.1.5.2", "MS-MQQB 3.1.5.2.3", "MS-MQQB 3.1.5.4.2", "MS-MQQB 3.1.7.12")
@pytest.mark.spec(
    "MS-MQQB 3.1.5.2.3#InProcess",
    "MS-MQQB 3.1.5.2.3#Waiting",
    "MS-MQQB 3.1.5.3.2#EstablishPacketReceived",
    "MS-MQQB 3.1.5.4.2#Established",
    "MS-MQQB 3.1.5.4.2#Connected",
)
def test_a_message_makes_a_session_and_the_history_tells_how() -> None:
    town, sender, receiver = pair()
    sender.send(PLAIN, b"a")
    sender.turn(0.0)
    assert state(sender) is OutgoingState.WAITING
    assert sender.history(PLAIN) == ["InProcess"]
    town.run()
    assert state(sender) is OutgoingState.CONNECTED
    assert sender.history(PLAIN) == ["InProcess", "EstablishPacketReceived", "Established"]
    for entry in sender.transfer(PLAIN).history:
        assert (entry.time, entry.error, entry.addresses) == (START, 0, (TWO,))
    assert sender.transfer(PLAIN).next_hops == (TWO,)
    assert receiver.bodies(QUEUE) == [b"a"]
    assert town.dialled == [TWO]


@pytest.mark.spec("MS-MQQB 3.1.5.2.1", "MS-MQQB 3.1.7.4")
@pytest.mark.spec("MS-MQQB note 55")
def test_a_host_name_is_looked_up_once_for_all_who_ask() -> None:
    town, sender, receiver = pair()
    town.names["there"] = [TWO]
    sender.send(BY_NAME, b"a")
    sender.send(r"DIRECT=OS:there\private$\other", b"b")
    sender.turn(0.0)
    assert state(sender, BY_NAME) is OutgoingState.WAITING
    assert sender.exchange.take_lookups() == ["there"]
    sender.exchange.looked_up("there", [TWO], 0.0)
    town.run()
    assert receiver.bodies(QUEUE) == [b"a"]
    assert town.dialled == [TWO]


@pytest.mark.spec("MS-MQQB 3.1.5.2", "MS-MQQB 3.1.5.2.1", "MS-MQQB 3.1.6.1")
@pytest.mark.spec("MS-MQQB 3.1.5.2.1#direct", "MS-MQQB 3.1.6.1#resolve")
def test_a_name_that_nobody_knows_is_looked_up_again_later() -> None:
    town, sender, receiver = pair()
    sender.send(BY_NAME, b"a")
    town.run()
    assert state(sender, BY_NAME) is OutgoingState.DISCONNECTED
    (entry,) = sender.transfer(BY_NAME).history
    assert (entry.status, entry.text) == ("DnsFailure", "nobody knows it")
    assert entry.error == HResult.MQ_ERROR_MACHINE_NOT_FOUND
    assert entry.addresses == ()
    town.names["there"] = [TWO]
    town.wait(5.1)
    assert receiver.bodies(QUEUE) == [b"a"]


@pytest.mark.spec("MS-MQQB 3.1.5.2.1", "MS-MQQB 3.1.6.1")
@pytest.mark.spec("MS-MQQB 3.1.1.3.1.3")
@pytest.mark.spec(
    "MS-MQQB 3.1.5.2.1#next-hops", "MS-MQQB 3.1.5.4.2#NextHops", "MS-MQQB 3.1.6.1#next-hop", "E74"
)
def test_the_addresses_of_a_host_are_tried_one_after_the_other() -> None:
    town, sender, receiver = pair()
    town.names["there"] = ["10.0.0.8", "10.0.0.9", TWO]
    sender.send(BY_NAME, b"a")
    town.run()
    assert town.dialled == ["10.0.0.8", "10.0.0.9", TWO]
    assert sender.history(BY_NAME) == [
        *("InProcess", "SocketConnectFailure") * 2,
        "InProcess",
        "EstablishPacketReceived",
        "Established",
    ]
    assert sender.transfer(BY_NAME).next_hops == (TWO,)
    assert receiver.bodies(QUEUE) == [b"a"]


@pytest.mark.spec("MS-MQQB 3.1.2.3", "MS-MQQB 3.1.5.2", "MS-MQQB 3.1.6.1")
@pytest.mark.spec("MS-MQQB 3.1.6.1#resolve")
def test_where_nobody_answers_is_tried_again_after_a_while() -> None:
    town, sender, receiver = pair(changed(retry_s=5.0))
    town.down.add(TWO)
    sender.send(PLAIN, b"a")
    town.run()
    assert state(sender) is OutgoingState.DISCONNECTED
    entry = sender.transfer(PLAIN).history[-1]
    assert (entry.status, entry.addresses) == ("SocketConnectFailure", (TWO,))
    assert entry.error == HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE
    assert sender.exchange.next_deadline() == 5.0
    town.wait(4.9)
    assert town.dialled == [TWO]
    town.wait(0.2)
    assert town.dialled == [TWO, TWO]
    town.down.clear()
    town.wait(9.7)
    assert receiver.bodies(QUEUE) == [], "each time it is twice as long"
    town.wait(0.4)
    assert receiver.bodies(QUEUE) == [b"a"]
    assert state(sender) is OutgoingState.CONNECTED


@pytest.mark.spec("MS-MQQB 3.1.5.2.1", "MS-MQQB 3.1.7.5")
def test_a_queue_manager_that_nobody_knows_needs_validation() -> None:
    town, sender, _ = pair()
    sender.send(BY_GUID, b"a")
    town.run()
    assert state(sender, BY_GUID) is OutgoingState.NEED_VALIDATION
    (entry,) = sender.transfer(BY_GUID).history
    assert entry.status == "RoutingDataNotAvailable"
    assert entry.error == HResult.MQ_ERROR_MACHINE_NOT_FOUND
    assert town.dialled == []


@pytest.mark.spec("MS-MQQB 3.1.5.2.1", "MS-MQQB 3.1.7.4", "MS-MQQB 3.1.7.5")
@pytest.mark.spec("E73")
def test_a_queue_manager_in_the_settings_is_reached_by_its_identifier() -> None:
    peer = Peer(name="two", guid=GUIDS[TWO], host=TWO, public_queues=(UUID(int=2),))
    sender, receiver = manager(ONE, peers=(peer,)), manager(TWO)
    receiver.create("before")
    receiver.create("q")
    town = Town(sender, receiver)
    sender.send(BY_GUID, b"private")
    sender.send(f"PUBLIC={UUID(int=2)}", b"public")
    town.run()
    assert receiver.bodies(0x10) == [b"private"]
    assert receiver.bodies(0x11) == [b"public"]
    assert receiver.messages(0x11)[0].queue_manager_address == GUIDS[TWO]
    assert town.dialled == [TWO]


@pytest.mark.spec("MS-MQQB 3.1.5.2.3", "MS-MQQB 3.1.5.3.1", "MS-MQQB 3.1.5.2")
def test_somebody_else_at_that_address_refuses() -> None:
    peer = Peer(name="three", guid=GUIDS[THREE], host=TWO)
    sender, receiver = manager(ONE, peers=(peer,)), manager(TWO)
    town = Town(sender, receiver)
    name = f"PRIVATE={GUIDS[THREE]}\\00000010"
    sender.send(name, b"a")
    town.run()
    assert sender.history(name) == ["InProcess", "ConnectionRefused"]
    assert state(sender, name) is OutgoingState.DISCONNECTED
    assert sender.waiting(name) == [b"a"]


@pytest.mark.spec("MS-MQQB 3.1.7.5")
def test_who_has_a_session_with_us_is_known_by_it() -> None:
    town, sender, receiver = pair()
    sender.create("back")
    sender.send(PLAIN, b"a")
    town.run()
    back = f"PRIVATE={GUIDS[ONE]}\\00000010"
    receiver.send(back, b"b")
    town.run()
    assert sender.bodies(0x10) == [b"b"]
    assert town.dialled == [TWO, ONE], "it is called where its session comes from"
    town.cut()
    town.down |= {ONE, TWO}
    receiver.send(back, b"c")
    town.wait(5.2)
    assert receiver.waiting(back)[-1] == b"c"
    assert receiver.history(back)[-1] == "SocketConnectFailure", "it is sought where it was"
    town.down.clear()
    town.wait(10.2)
    assert sender.bodies(0x10) == [b"b", b"c"]


@pytest.mark.spec("MS-MQQB 3.1.5.2.1", "MS-MQQB 3.1.7.4", "MS-MQQB 3.1.7.5")
def test_what_waits_for_a_queue_manager_that_nobody_knew_goes_when_it_calls() -> None:
    elsewhere = UUID(int=77)
    peer = Peer(name="one", guid=GUIDS[ONE], public_queues=(elsewhere,))
    sender, receiver = manager(ONE), manager(TWO, peers=(peer,))
    town = Town(sender, receiver)
    sender.create("back")
    private, public = f"PRIVATE={GUIDS[ONE]}\\00000010", f"PUBLIC={elsewhere}"
    receiver.send(private, b"b")
    receiver.send(public, b"c")
    town.run()
    assert state(receiver, private) is state(receiver, public) is OutgoingState.NEED_VALIDATION
    sender.send(PLAIN, b"a")
    town.run()
    assert sender.bodies(0x10) == [b"b"], "it does not wait until it is time to try again"
    for name in (private, public):
        assert receiver.history(name)[:2] == ["RoutingDataNotAvailable", "InProcess"]
        assert receiver.history(name)[-1] == "Established"
    assert town.dialled == [TWO, ONE], "whether it is there is seen by calling it"


@pytest.mark.spec("MS-MQQB 3.1.7.5")
def test_a_session_with_somebody_else_wakes_nobody() -> None:
    town, sender, receiver = pair()
    name = f"PRIVATE={GUIDS[THREE]}\\00000010"
    receiver.send(name, b"b")
    town.run()
    sender.send(PLAIN, b"a")
    town.run()
    assert state(receiver, name) is OutgoingState.NEED_VALIDATION
    assert receiver.history(name) == ["RoutingDataNotAvailable"]
    town.wait(5.2)
    assert receiver.history(name) == ["RoutingDataNotAvailable"] * 2, "it is time to try again"


# Sharing.


@pytest.mark.spec("MS-MQQB 3.1.5.2")
@pytest.mark.spec("MS-MQQB 3.1.1.3.1#OutgoingQueueReference", "E75")
def test_queues_to_the_same_address_share_a_session_from_either_side() -> None:
    town, sender, receiver = pair(changed(trust_inbound_s=600.0))
    sender.create("back")
    sender.send(PLAIN, b"a")
    sender.commit(ORDERED, b"b")
    town.run()
    receiver.send(r"DIRECT=TCP:10.0.0.1\private$\back", b"c")
    town.wait(1.0)
    assert (receiver.bodies(QUEUE), receiver.bodies(TX)) == ([b"a"], [b"b"])
    assert sender.bodies(0x10) == [b"c"]
    assert (town.dialled, town.links()) == ([TWO, ONE], 2), "the first time each is called"
    assert sender.waiting(ORDERED) == [], "the OrderAck went the same way"
    town.wait(11.0, step=1.0)
    town.cut()
    town.down.add(ONE)
    sender.send(PLAIN, b"d")
    town.run()
    receiver.send(r"DIRECT=TCP:10.0.0.1\private$\back", b"e")
    town.run()
    assert sender.bodies(0x10) == [b"c", b"e"], "the session of who was reached there is used"
    assert (town.dialled, town.links()) == ([TWO, ONE, TWO], 1)


@pytest.mark.spec("MS-MQQB 3.1.4.1", "MS-MQQB 3.1.3.2")
def test_what_waits_at_the_start_is_sent() -> None:
    town, sender, receiver = pair()
    town.down.add(TWO)
    sender.send(PLAIN, b"a", recoverable=True)
    sender.send(PLAIN, b"lost")
    town.run()
    town.restart(sender)
    town.down.clear()
    town.run()
    assert receiver.bodies(QUEUE) == [b"a"]


# Who is not let in.


@pytest.mark.spec("MS-MQQB 3.1.5.2")
def test_a_queue_manager_does_not_send_to_itself() -> None:
    sender = manager(ONE)
    town = Town(sender)
    town.names["me"] = [ONE]
    name = r"DIRECT=OS:me\private$\q"
    sender.send(name, b"a")
    town.run()
    assert sender.waiting(name) == [b"a"]
    last = sender.transfer(name).history[-1]
    assert last.status == "ConnectionRefused"
    assert "this queue manager itself" in last.text or "closed the connection" in last.text
    assert town.links() == 0


@pytest.mark.spec("MS-MQDMPR 3.1.1.1", "MS-MQQB 3.1.5.10")
@pytest.mark.spec("MS-MQQB 3.1.7.12#held")
def test_with_hardened_security_nothing_goes_and_nothing_comes() -> None:
    town, sender, receiver = pair(changed(hardened=True), ExchangeSettings())
    sender.send(PLAIN, b"a")
    town.run()
    assert state(sender) is OutgoingState.LOCKED
    assert town.dialled == []
    name = r"DIRECT=TCP:10.0.0.1\private$\q"
    receiver.send(name, b"b")
    town.run()
    assert receiver.history(name)[-1] == "SocketConnectFailure"


@pytest.mark.spec("MS-MQDMPR 3.1.4.12", "MS-MQDMPR 3.1.4.13", "MS-MQQB 3.1.5.9")
def test_a_queue_manager_that_is_offline_neither_calls_nor_answers() -> None:
    town, sender, receiver = pair()
    sender.send(PLAIN, b"a")
    town.run()
    sender.host.engine.take_offline()
    town.run()
    assert town.links() == 0
    sender.send(PLAIN, b"b")
    receiver.send(r"DIRECT=TCP:10.0.0.1\private$\q", b"c")
    town.wait(12.0)
    assert town.dialled == [TWO, ONE, ONE]
    assert receiver.bodies(QUEUE) == [b"a"]
    sender.host.engine.bring_online()
    town.wait(0.2)
    assert receiver.bodies(QUEUE) == [b"a", b"b"]


@pytest.mark.spec("MS-MQDMPR 3.1.4.12")
def test_addresses_that_are_found_while_offline_are_not_called() -> None:
    town, sender, receiver = pair()
    sender.send(BY_NAME, b"a")
    sender.turn(0.0)
    assert sender.exchange.take_lookups() == ["there"]
    sender.host.engine.take_offline()
    sender.turn(0.0)
    sender.exchange.looked_up("there", ["10.0.0.8", TWO], 0.0)
    town.wait(6.0)
    assert town.dialled == []
    town.names["there"] = [TWO]
    sender.host.engine.bring_online()
    town.wait(0.2)
    assert receiver.bodies(QUEUE) == [b"a"]


@pytest.mark.limit("exchange.dialled_links_max")
@pytest.mark.limit("exchange.links_max")
@pytest.mark.spec("MS-MQQB 3.1.5.2", "MS-MQQB 3.1.5.3.1")
def test_only_so_many_connections_are_made() -> None:
    town, sender, receiver = pair(changed(links_max=1, dialled_links_max=1), ExchangeSettings())
    town.managers[THREE] = manager(THREE)
    sender.send(PLAIN, b"a", recoverable=True)
    town.wait(1.0)
    name = r"DIRECT=TCP:10.0.0.3\private$\q"
    sender.send(name, b"b")
    town.run()
    assert sender.history(name) == ["ConnectionLimitReached"]
    assert state(sender, name) is OutgoingState.DISCONNECTED
    taken = sender.exchange.accepted(THREE, town.now)
    assert taken is not None
    assert not taken.is_refused, "those who connect have room of their own"
    refused = sender.exchange.accepted(THREE, town.now)
    assert refused is not None
    assert refused.is_refused
    assert "a connection was refused" in [text for text, _ in sender.exchange.take_told()]
    assert len(sender.exchange) == 2
    assert receiver.bodies(QUEUE) == [b"a"]
    town.cut()
    town.wait(5.2)
    assert town.dialled[-1] == THREE


@pytest.mark.limit("exchange.links_per_peer_max")
def test_one_address_may_have_only_so_many_connections() -> None:
    receiver = manager(TWO, changed(links_per_peer_max=2))
    links = [receiver.exchange.accepted(ONE, 0.0) for _ in range(3)]
    assert [link is not None and link.is_refused for link in links] == [False, False, True]
    other = receiver.exchange.accepted(THREE, 0.0)
    assert other is not None
    assert not other.is_refused
    assert links[0] is not None
    receiver.exchange.lost(links[0], "gone", 0.0)
    again = receiver.exchange.accepted(ONE, 0.0)
    assert again is not None
    assert not again.is_refused


# The end.


@pytest.mark.spec("MS-MQQB 3.1.5.9", "MS-MQQB 3.1.7.3", "MS-MQQB 3.1.2.3")
@pytest.mark.spec("MS-MQQB 3.1.5.9#Disconnected", "MS-MQQB 3.1.5.9#retry", "E74")
def test_a_session_that_is_lost_is_made_again_while_anything_waits() -> None:
    town, sender, receiver = pair()
    sender.commit(ORDERED, b"a")
    town.wait(0.6)
    assert sender.waiting(ORDERED) == []
    sender.send(PLAIN, b"b")
    town.run()
    town.cut()
    assert state(sender, ORDERED) is OutgoingState.INACTIVE
    assert state(sender, PLAIN) is OutgoingState.DISCONNECTED
    assert sender.history(PLAIN)[-1] == "ConnectionNotReady"
    town.wait(5.1)
    assert state(sender, PLAIN) is OutgoingState.CONNECTED
    assert receiver.bodies(QUEUE) == [b"b"], "it was there already"


@pytest.mark.spec("MS-MQQB 3.1.6.2", "MS-MQQB 3.1.5.9")
@pytest.mark.spec("MS-MQQB 3.1.7.12#connect", "E74")
def test_an_idle_session_is_closed_and_a_message_makes_another() -> None:
    town, sender, receiver = pair(changed(session=SessionSettings(cleanup_s=30.0)))
    sender.send(PLAIN, b"a", recoverable=True)
    town.run()
    town.wait(70.0, step=0.5)
    assert town.links() == 0
    assert state(sender) is OutgoingState.INACTIVE
    sender.send(PLAIN, b"b")
    town.run()
    assert receiver.bodies(QUEUE) == [b"a", b"b"]
    assert town.dialled == [TWO, TWO]


@pytest.mark.spec("MS-MQQB 3.1.6.6", "MS-MQQB 3.1.2.1", "MS-MQQB 3.1.5.2")
@pytest.mark.spec("MS-MQQB 3.1.5.2.3#timer")
def test_who_does_not_answer_in_time_is_called_again() -> None:
    settings = replace(SessionSettings(), initialization_s=60.0)
    town, sender, receiver = pair(changed(session=settings))
    town.deaf.add(TWO)
    sender.send(PLAIN, b"a")
    town.run()
    town.wait(59.0, step=1.0)
    assert town.dialled == [TWO]
    town.deaf.clear()
    town.wait(8.0, step=0.5)
    assert sender.history(PLAIN)[:2] == ["InProcess", "ConnectionRefused"]
    assert town.dialled == [TWO, TWO]
    assert receiver.bodies(QUEUE) == [b"a"]


@pytest.mark.spec("MS-MQQB 3.1.6.3", "MS-MQQB 3.1.2.4", "MS-MQQB 3.1.5.9")
def test_a_session_that_does_not_acknowledge_is_replaced() -> None:
    town, sender, receiver = pair()
    sender.send(PLAIN, b"a")
    town.run()
    town.deaf.add(ONE)
    town.wait(86.0, step=1.0)
    town.deaf.clear()
    assert "ConnectionNotReady" in sender.history(PLAIN)
    town.wait(90.0, step=1.0)
    assert (receiver.bodies(QUEUE), sender.waiting(PLAIN)) == ([b"a"], [])
