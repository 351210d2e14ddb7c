"""What a peer that keeps to the documents does, and another Merq does not."""

from __future__ import annotations

from struct import pack, unpack_from
from uuid import UUID

import pytest

from kit.exchange import START, Manager, Town
from kit.raw_sessions import (
    RawSession,
    establish,
    final_ack_packet,
    order_ack_packet,
    parameters,
)
from merq.engine.sequence_keys import SequenceKey
from merq.exchange import Peer
from merq.exchange.switchboard import REFUSED_MAX
from merq.model.message_class import MessageClass
from merq.model.queue import OutgoingState
from merq.protocol.binary.settings import MERQ_WINDOW, WINDOW, SessionSettings
from merq.wire.view import MessageView
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
from unit.exchange.letter_messages import OTHER, incoming, session_ack

RECEIVED = MessageClass.MQMSG_CLASS_ACK_RECEIVE
REJECTED = MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q
JOURNAL, DEAD_XACT = 0xFFFF0001, 0xFFFF0003


def with_session_header(packet: bytes, sent: int, recoverable_sent: int = 0) -> bytes:
    """[MS-MQMQ] 2.2.20.4: a message that carries a SessionHeader."""
    header = pack("<HHIHHHH", 0, 0, 0, sent, recoverable_sent, 64, 0)
    return packet[:2] + bytes([packet[2] | 0x10]) + packet[3:] + header


def place_of(packet: bytes) -> tuple[int, int]:
    sequence_id, number, _ = MessageView(packet).tx_place
    return sequence_id, number


def bodies(packets: list[bytes]) -> list[bytes]:
    return [MessageView(each).body for each in packets]


def later(one: Manager, now: float) -> None:
    """Time has gone on."""
    one.host.engine.tick(START + int(now))
    one.exchange.tick(now)
    one.turn(now)


# Acknowledgments end to end act on the tables of their own session.


@pytest.mark.parametrize("kind", ["order", "received", "rejected"])
@pytest.mark.parametrize("address", [THREE, TWO], ids=["elsewhere", "a neighbour"])
@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.5.6#own-session", "MS-MQQB 3.1.5.7#own-session")
@pytest.mark.spec("MS-MQQB 3.1.5.6", "MS-MQQB 3.1.5.7", "MS-MQQB 3.1.1.3.1")
@pytest.mark.spec("MS-MQQB 3.1.1.3.1#own-tables")
@pytest.mark.spec("E80")
def test_acknowledgments_of_a_stranger_end_nothing(
    kind: str, address: str, *, is_restarted: bool
) -> None:
    town, sender, receiver = pair()
    sender.commit(ORDERED, b"a", positive_journaling=True, negative_journaling=True)
    town.wait(0.3)
    assert receiver.bodies(TX) == [b"a"]
    (waiting,) = sender.messages(sender.outgoing(ORDERED).number)
    sequence_id, number, _ = waiting.tx_place
    if is_restarted:
        town.restart(sender)
    stranger = RawSession.connect(sender, address, OTHER, town.now).establish(town.now)
    if kind == "order":
        packet = order_ack_packet(GUIDS[TWO], sequence_id, number)
    else:
        verdict = RECEIVED if kind == "received" else REJECTED
        ordinal = waiting.message_ordinal
        packet = final_ack_packet(GUIDS[TWO], sequence_id, number, ONE_GUID, ordinal, verdict)
    stranger.say(packet, town.now)
    assert sender.waiting(ORDERED) == [b"a"]
    assert not sender.transfer(ORDERED).awaiting_final
    assert sender.bodies(JOURNAL) == sender.bodies(DEAD_XACT) == []
    town.cut()
    town.wait(7.0)
    assert sender.transfer(ORDERED).awaiting_final, "the receiver's own acknowledgment counts"


ONE_GUID = GUIDS[ONE]


@pytest.mark.spec("MS-MQQB 3.1.5.6", "MS-MQQB 3.1.5.7")
def test_people_are_told_of_acknowledgments_that_were_ignored() -> None:
    town, sender, _ = pair()
    sender.commit(ORDERED, b"a", positive_journaling=True)
    town.wait(0.1)
    (waiting,) = sender.messages(sender.outgoing(ORDERED).number)
    sequence_id, number, _ = waiting.tx_place
    stranger = RawSession.connect(sender, THREE, OTHER, town.now).establish(town.now)
    stranger.say(order_ack_packet(GUIDS[TWO], sequence_id, number), town.now)
    told = dict(sender.exchange.take_told())
    assert told["acknowledgments were ignored"]["peer"] == THREE
    assert told["acknowledgments were ignored"]["count"] == 1


@pytest.mark.spec("MS-MQQB 3.1.5.7")
def test_a_receiver_with_two_addresses_may_acknowledge_from_either() -> None:
    sender = manager(ONE)
    sender.commit(ORDERED, b"a", positive_journaling=True)
    first = RawSession.accept(sender, OTHER)
    (packet,) = first.messages()
    sequence_id, number = place_of(packet)
    first.say(order_ack_packet(OTHER, sequence_id, number))
    first.hang_up()
    second = RawSession.connect(sender, THREE, OTHER).establish()
    ordinal = MessageView(packet).message_ordinal
    second.say(final_ack_packet(OTHER, sequence_id, number, ONE_GUID, ordinal, RECEIVED))
    assert sender.bodies(JOURNAL) == [b"a"]


@pytest.mark.spec("MS-MQQB 3.1.1.5", "MS-MQQB 3.1.5.6")
@pytest.mark.spec("E59")
@pytest.mark.spec("E80")
def test_who_claims_to_be_the_receiver_cannot_foretell_the_sequence() -> None:
    places: set[int] = set()
    for start in range(20):
        sender = manager(ONE)
        sender.host.close()
        sender.disk = sender.disk.crash(kind="kill")
        sender.start(0.0)
        sender.host.engine.state.secret = bytes([start]) * 32
        before = 0
        sender.send(ORDERED, b"not transactional")
        session = RawSession.accept(sender, OTHER)
        session.messages()
        session.say(session_ack(1))
        for body in (b"a", b"b"):
            sender.commit(ORDERED, body)
            session.settle()
            (packet,) = session.messages()
            sequence_id, number = place_of(packet)
            assert sequence_id > before, "each is above the one before it"
            assert sequence_id >> 32 == START, "and says its time"
            places.add(sequence_id & 0xFFFFFFFF)
            before = sequence_id
            session.say(order_ack_packet(OTHER, sequence_id, number, ordinal=len(places)))
    assert len(places) == 40
    assert max(places) - min(places) > 1 << 30


# A message whose SessionHeader miscounts.


@pytest.mark.parametrize("is_busy", [False, True])
@pytest.mark.spec("MS-MQMQ 2.2.20.4", "MS-MQQB 3.1.5.5.5", "MS-MQQB 3.1.5.8.4")
@pytest.mark.spec("MS-MQMQ note 14")
@pytest.mark.spec("MS-MQQB 3.1.5.5.5#on-a-message")
def test_a_message_that_miscounts_goes_to_its_queue_and_then_the_session_is_closed(
    *, is_busy: bool
) -> None:
    receiver = manager(TWO)
    receiver.create("q")
    windows = RawSession.connect(receiver, ONE, OTHER).establish()
    if is_busy:
        # A change is under way: the connection is gone before the message can be taken.
        receiver.exchange.received(windows.link, incoming("q", b"before", ordinal=1), 0.0)
        receiver.exchange.go_on(0.0)
    wrong = with_session_header(incoming("q", b"miscounted", ordinal=2), sent=9)
    receiver.exchange.received(windows.link, wrong, 0.0)
    assert "the other side has sent 9" in windows.link.closing
    receiver.exchange.lost(windows.link, "closed", 0.0)
    receiver.turn(0.0)
    assert receiver.bodies(QUEUE) == ([b"before"] if is_busy else []) + [b"miscounted"]


@pytest.mark.parametrize("sent", [0, 1])
@pytest.mark.spec("MS-MQMQ 2.2.20.4", "MS-MQQB 3.1.5.5.5")
@pytest.mark.spec("E51")
def test_a_header_may_count_its_own_message_or_not(sent: int) -> None:
    receiver = manager(TWO)
    receiver.create("q")
    windows = RawSession.connect(receiver, ONE, OTHER).establish()
    windows.say(with_session_header(incoming("q", b"a"), sent=sent))
    assert receiver.bodies(QUEUE) == [b"a"]
    assert not windows.link.closing


# What survives a restart.


@pytest.mark.parametrize("is_checkpointed", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.1.3.1", "MS-MQQB 3.1.1.3.2", "MS-MQQB 3.1.5.6")
@pytest.mark.spec("MS-MQQB 3.1.1.3.1#AwaitingFinalACKTable")
def test_what_waits_for_its_final_ack_does_not_hold_up_what_is_sent_after_restarts(
    *, is_checkpointed: bool
) -> None:
    town = Town(manager(ONE))
    (sender,) = town.managers.values()
    receiver = OTHER
    ordinals = {}
    for body in (b"first", b"second", b"third"):
        sender.commit(ORDERED, body, positive_journaling=True)
        session = RawSession.accept(sender, receiver)
        (packet,) = session.messages()
        assert MessageView(packet).body == body, "nothing else is sent again"
        ordinals[body] = MessageView(packet).message_ordinal, *place_of(packet)
        # The receiver acknowledges its current sequence and nothing else.
        session.say(order_ack_packet(receiver, *place_of(packet), ordinal=len(ordinals)))
        if is_checkpointed:
            writing, _ = sender.host.begin_checkpoint()
            assert writing is not None
            writing.run()
            sender.host.end_checkpoint(writing)
        town.restart(sender)
    assert len(sender.transfer(ORDERED).awaiting_final) == 3
    back = RawSession.connect(sender, TWO, receiver).establish()
    for number, (ordinal, sequence_id, place) in enumerate(ordinals.values(), start=10):
        back.say(
            final_ack_packet(
                receiver, sequence_id, place, ONE_GUID, ordinal, RECEIVED, ordinal=number
            )
        )
    assert sender.bodies(JOURNAL) == [b"first", b"second", b"third"]
    assert sender.waiting(ORDERED) == []


@pytest.mark.spec("MS-MQQB 3.1.1.3.1", "MS-MQQB 3.1.5.6")
@pytest.mark.spec("E81")
def test_a_new_sequence_waits_until_the_disk_knows_that_the_last_one_arrived() -> None:
    town = Town(manager(ONE))
    (sender,) = town.managers.values()
    sender.commit(ORDERED, b"first")
    sender.turn(0.0)
    town.restart(sender)  # what is sent now begins another sequence
    session = RawSession.accept(sender, OTHER)
    sender.commit(ORDERED, b"second")
    session.settle()
    (packet,) = session.messages()
    assert MessageView(packet).body == b"first"
    sender.exchange.received(session.link, order_ack_packet(OTHER, *place_of(packet)), 0.0)
    sender.exchange.go_on(0.0)
    session.link.collect()
    assert session.link.outbox == [], "the acknowledgment is not on the disk yet"
    session.settle()
    assert bodies(session.messages()) == [b"second"]


@pytest.mark.parametrize("is_checkpointed", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.1.3.1", "MS-MQQB 3.1.5.8.6")
@pytest.mark.spec("MS-MQQB 3.1.1.3.1#TxMessageRejectCount")
def test_the_count_of_rejected_messages_survives(*, is_checkpointed: bool) -> None:
    receiver = manager(TWO)
    receiver.create("q")
    receiver.create("tx", transactional=True)
    windows = RawSession.connect(receiver, ONE, OTHER).establish()
    windows.say(incoming("tx", b"1", number=1))
    for ordinal in (5, 6):
        windows.say(incoming("tx", b"gap", number=ordinal, ordinal=ordinal))
    if is_checkpointed:
        writing, _ = receiver.host.begin_checkpoint()
        assert writing is not None
        writing.run()
        receiver.host.end_checkpoint(writing)
    town = Town(receiver)
    town.restart(receiver)
    key = SequenceKey(OTHER.bytes_le, rf"7:tcp:{TWO}\private$\tx")
    found = receiver.host.engine.state.sequences.find(key)
    assert found is not None
    assert (found.number, found.rejects) == (1, 2)


# Several senders behind one address.


@pytest.mark.spec("MS-MQQB 3.1.7.17", "MS-MQQB 3.1.6.9", "MS-MQQB 3.1.1.3.1")
@pytest.mark.spec("MS-MQQB 3.1.7.17#direct")
def test_two_senders_behind_one_address_get_their_own_order_acks() -> None:
    receiver = manager(TWO)
    receiver.create("q")
    receiver.create("tx", transactional=True)
    guids = [UUID(int=0xC1), UUID(int=0xC2)]
    sessions = [RawSession.connect(receiver, ONE, guid).establish() for guid in guids]
    for session, guid in zip(sessions, guids, strict=True):
        session.say(incoming("tx", guid.bytes, source=guid, number=1))
        session.written.clear()
    later(receiver, 0.6)
    for session in sessions:
        session.settle(0.6)
        (packet,) = session.messages()
        assert MessageView(packet).message_class == MessageClass.MQMSG_CLASS_ORDER_ACK
    assert receiver.exchange.take_dialing() == []


@pytest.mark.spec("MS-MQQB 3.1.7.17")
def test_who_claims_the_identifier_of_a_sender_does_not_get_its_order_acks() -> None:
    receiver = manager(TWO)
    receiver.create("q")
    receiver.create("tx", transactional=True)
    sender = RawSession.connect(receiver, ONE, OTHER).establish()
    sender.say(incoming("tx", b"a", number=1))
    liar = RawSession.connect(receiver, THREE, OTHER).establish()
    later(receiver, 0.6)
    sender.settle(0.6)
    liar.settle(0.6)
    assert len(sender.messages()) == 1
    assert liar.messages() == []


@pytest.mark.spec("MS-MQQB 3.1.7.17", "MS-MQQB 2.2.5")
def test_a_final_ack_finds_its_way_after_a_restart() -> None:
    town, sender, receiver = pair()
    sender.commit(ORDERED, b"a", positive_journaling=True)
    town.wait(1.0)
    town.restart(receiver)
    town.wait(0.2)
    assert receiver.receive(TX) == b"a"
    town.wait(1.0)
    assert sender.bodies(JOURNAL) == [b"a"]
    acknowledgments = rf"DIRECT=TCP:{ONE}\PRIVATE$\order_queue$;{GUIDS[ONE].hex}"
    assert receiver.waiting(acknowledgments) == []


# Establishing.


@pytest.mark.parametrize("is_initiator", [False, True])
@pytest.mark.spec("MS-MQQB 2.2.1", "MS-MQQB 3.1.5.4")
@pytest.mark.spec("MS-MQQB 3.1.5.4.2#CS")
@pytest.mark.spec("E82")
def test_refused_connection_parameters_open_no_session(*, is_initiator: bool) -> None:
    one = manager(ONE)
    if is_initiator:
        one.send(PLAIN, b"a")
        one.turn(0.0)
        (link,) = one.exchange.take_dialing()
        session = RawSession(one, OTHER, link)
        one.exchange.connected(link, 0.0)
        session.say(establish(one.guid, OTHER))
    else:
        session = RawSession.connect(one, TWO, OTHER)
        session.say(establish(OTHER))
    session.say(parameters(refused=True))
    assert not session.link.was_open
    assert "refused" in session.link.closing
    assert session.messages() == []


@pytest.mark.spec("MS-MQQB 3.1.5.3.1", "MS-MQQB 2.2.1")
@pytest.mark.spec("MS-MQQB note 12")
@pytest.mark.spec("E84")
def test_beyond_the_limit_of_connections_a_session_is_refused_with_an_answer() -> None:
    one = manager(ONE, changed(links_max=1))
    RawSession.connect(one, TWO, OTHER).establish()
    refused = RawSession.connect(one, THREE, UUID(int=0xD1))
    refused.say(establish(refused.guid))
    (answer,) = refused.written
    assert unpack_from("<H", answer, 18)[0] == 0x12, "EstablishConnection, CS = 1"
    assert "1 connections that others have made are open" in refused.link.closing
    assert len(one.exchange) == 1


@pytest.mark.limit("merq.exchange.switchboard.REFUSED_MAX")
@pytest.mark.spec("MS-MQQB 3.1.5.3.1")
def test_only_so_many_are_refused_with_an_answer_at_a_time() -> None:
    one = manager(ONE, changed(links_max=1))
    RawSession.connect(one, TWO, OTHER).establish()
    waiting = [RawSession.connect(one, THREE, OTHER) for _ in range(REFUSED_MAX)]
    assert one.exchange.accepted(THREE, 0.0) is None, "it is cut off"
    waiting[0].say(establish(OTHER))
    assert one.exchange.accepted(THREE, 0.0) is not None


@pytest.mark.spec("MS-MQQB 3.1.5.9")
@pytest.mark.spec("MS-MQQB 3.1.5.9#Disconnecting")
@pytest.mark.spec("E84")
def test_a_queue_whose_session_is_being_closed_is_disconnecting() -> None:
    one = manager(ONE)
    one.send(PLAIN, b"a", recoverable=True)
    session = RawSession.accept(one, OTHER)
    states = [one.outgoing(PLAIN).state]
    one.exchange.received(session.link, establish(OTHER), 0.0)
    states.append(one.outgoing(PLAIN).state)
    session.settle()
    states.append(one.outgoing(PLAIN).state)
    assert states == [
        OutgoingState.CONNECTED,
        OutgoingState.DISCONNECTING,
        OutgoingState.DISCONNECTED,
    ]


@pytest.mark.spec("MS-MQQB 3.1.5.9")
def test_a_queue_on_hold_stays_so_when_its_session_is_closed() -> None:
    one = manager(ONE)
    one.send(PLAIN, b"a", recoverable=True)
    session = RawSession.accept(one, OTHER)
    one.host.engine.pause(one.outgoing(PLAIN).number)
    session.say(establish(OTHER))
    assert one.outgoing(PLAIN).state is OutgoingState.ON_HOLD


@pytest.mark.spec("MS-MQQB 2.2.2.1", "MS-MQQB 3.1.5.1.3")
@pytest.mark.spec("MS-MQQB note 51")
@pytest.mark.spec("E82")
def test_an_ack_timeout_that_a_registry_key_put_out_of_range_does_not_end_the_session() -> None:
    receiver = manager(TWO)
    receiver.create("q")
    windows = RawSession.connect(receiver, ONE, OTHER).establish(wait_ms=140_000)
    windows.say(incoming("q", b"a"))
    assert receiver.bodies(QUEUE) == [b"a"]
    assert windows.link.is_open


# Acknowledgments on the wire.


def one_order_ack() -> bytes:
    """An OrderAck that is sent while a session acknowledgment is nearly due."""
    receiver = manager(TWO)
    receiver.create("q")
    receiver.create("tx", transactional=True)
    windows = RawSession.connect(receiver, ONE, OTHER).establish()
    windows.say(incoming("tx", b"a", number=1))
    receiver.exchange.received(windows.link, incoming("tx", b"b", number=2, ordinal=2), 0.49)
    receiver.turn(0.49)
    # Both acknowledgments come due together; the session's own is not sent alone first.
    receiver.exchange.inbound.tick(0.999)
    receiver.turn(0.999)
    windows.settle(0.999)
    (packet,) = windows.messages()
    return packet


@pytest.mark.spec("MS-MQQB 2.2.4", "MS-MQQB 3.1.5.1.1", "MS-MQMQ 2.2.19.1")
@pytest.mark.spec("MS-MQQB 3.1.7.17#OrderAck-lifetime")
@pytest.mark.spec("E48")
def test_an_order_ack_has_no_flag_in_its_base_header_and_lives_for_ever() -> None:
    packet = one_order_ack()
    assert unpack_from("<H", packet, 2)[0] == 0
    assert unpack_from("<I", packet, 8)[0] == len(packet), "no SessionHeader rides on it"
    assert unpack_from("<I", packet, 12)[0] == 0xFFFFFFFF, "exactly once does not hang on clocks"


@pytest.mark.parametrize("flags", [1 << 8, 1 << 9], ids=["JN", "JP"])
@pytest.mark.spec("MS-MQQB 2.2.4", "MS-MQQB 2.2.5")
@pytest.mark.spec("MS-MQQB 3.1.5.1.1#OrderAck")
@pytest.mark.spec("E35")
def test_an_order_ack_with_other_flags_is_none(flags: int) -> None:
    town, sender, _ = pair()
    sender.commit(ORDERED, b"a")
    town.wait(0.3)
    (waiting,) = sender.messages(sender.outgoing(ORDERED).number)
    (sequence_id, number, _) = waiting.tx_place
    packet = bytearray(order_ack_packet(GUIDS[TWO], sequence_id, number))
    packet[60:64] = pack("<I", unpack_from("<I", packet, 60)[0] | flags)
    raw = RawSession.connect(sender, TWO, GUIDS[TWO], town.now).establish(town.now)
    raw.say(bytes(packet), town.now)
    assert sender.waiting(ORDERED) == [b"a"]


# The window.


@pytest.mark.spec("MS-MQQB 3.1.3.2", "MS-MQQB 3.1.1.3.1", "MS-MQMQ 2.2.20.4")
@pytest.mark.spec("MS-MQQB note 36", "MS-MQQB note 50", "MS-MQMQ note 16", "MS-MQMQ note 17")
@pytest.mark.spec("MS-MQQB 3.1.1.3.1#WindowSize")
@pytest.mark.spec("E55")
def test_64_is_announced_and_kept_to_with_windows_and_more_with_another_merq() -> None:
    one = manager(ONE)
    one.send(PLAIN, *[b"%d" % each for each in range(100)])
    session = RawSession.accept(one, OTHER)
    proposal = session.written[1]
    assert unpack_from("<H", proposal, 30)[0] == WINDOW == 64
    assert len(session.messages()) == 64
    town, sender, receiver = pair()
    sender.send(PLAIN, b"a")
    town.wait(0.1)
    windows = [link.session.window for each in (sender, receiver) for link in each.exchange.links
               if link.session is not None]  # fmt: skip
    assert windows == [MERQ_WINDOW, MERQ_WINDOW]


@pytest.mark.spec("MS-MQQB 3.1.1.6.1", "MS-MQQB 3.1.7.1")
def test_a_peer_that_acknowledges_at_half_of_the_announced_window_is_no_slow_peer() -> None:
    one = manager(ONE)
    count = 1000
    one.send(PLAIN, *[b"%d" % each for each in range(count)])
    session = RawSession.accept(one, OTHER)
    announced: int = unpack_from("<H", session.written[1], 30)[0]
    came = acknowledged = 0
    for _ in range(count):
        came += len(session.messages())
        if came - acknowledged < announced // 2:
            break
        acknowledged = came
        session.say(session_ack(acknowledged))
    assert came == count, "none had to wait for a timer"


@pytest.mark.parametrize("window", [1, 2, 64])
@pytest.mark.spec("MS-MQQB 3.1.7.1")
def test_no_more_is_sent_than_the_smaller_window_allows(window: int) -> None:
    one = manager(ONE, changed(session=SessionSettings(window=window)))
    one.send(PLAIN, *[b"%d" % each for each in range(100)])
    assert len(RawSession.accept(one, OTHER).messages()) == window


# A packet with more in it than its flags announce.


@pytest.mark.spec("MS-MQQB 3.1.5.1.3", "MS-MQMQ 2.2.20")
@pytest.mark.spec("E120")
@pytest.mark.spec("E83")
def test_bytes_left_over_in_a_packet_do_not_hold_up_its_queue() -> None:
    receiver = manager(TWO)
    receiver.create("q")
    windows = RawSession.connect(receiver, ONE, OTHER).establish()
    packet = incoming("q", b"odd")
    longer = packet[:8] + pack("<I", len(packet) + 8) + packet[12:] + b"rubbish!"
    windows.say(longer)
    windows.say(incoming("q", b"even", ordinal=2))
    assert receiver.bodies(QUEUE) == [b"odd", b"even"]
    assert windows.link.is_open


@pytest.mark.spec("MS-MQQB 3.1.7.17", "MS-MQQB 2.2.4", "E63")
def test_order_acks_of_a_sender_that_uses_both_kinds_of_names_come_back_through_a_hop() -> None:
    here, there, hop = (GUIDS[each] for each in (ONE, TWO, THREE))
    known_hop = Peer(name="hop", guid=hop, host=THREE)
    sender = manager(ONE, peers=(known_hop, Peer(name="there", guid=there, via="hop")))
    receiver = manager(TWO, peers=(known_hop, Peer(name="here", guid=here, via="hop")))
    ends = (Peer(name="here", guid=here, host=ONE), Peer(name="there", guid=there, host=TWO))
    router = manager(THREE, changed(forwards=True), peers=ends)
    receiver.create("q")
    receiver.create("tx", transactional=True)
    town = Town(sender, receiver, router)
    routed_name = rf"PRIVATE={there}\{TX:08x}"
    sender.commit(routed_name, b"by identifier")
    town.wait(5.0)
    sender.commit(ORDERED, b"by address")
    town.wait(5.0)
    assert sorted(receiver.bodies(TX)) == [b"by address", b"by identifier"]
    assert sender.waiting(routed_name) == sender.waiting(ORDERED) == []
