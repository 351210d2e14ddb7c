"""What people are told of the way to other queue managers."""

from __future__ import annotations

import pytest

from merq.engine.sequence_keys import Origin
from merq.errors import MessageQueueError
from merq.host import transfers
from merq.hresult import HResult
from merq.model.queue import NULL_GUID, OutgoingState
from merq.model.selecting import First
from merq.protocol.application.reports import (
    LinkReport,
    SequencePlace,
    SequenceReport,
    Sighting,
    Status,
    Whereabouts,
)
from merq.protocol.application.requests import (
    AskStatus,
    AskWhy,
    BringOnline,
    DescribeTransfer,
    ListLinks,
    ListSequences,
    Read,
    TakeOffline,
)
from unit.exchange.reporting_pair import START, Pair, Side

PLAIN = r"DIRECT=TCP:10.0.0.2\private$\plain"
ORDERED = r"DIRECT=TCP:10.0.0.2\private$\ordered"


@pytest.fixture
def pair() -> Pair:
    made = Pair()
    made.there.queue("plain")
    made.there.queue("ordered", transactional=True)
    return made


def links(side: Side) -> list[LinkReport]:
    found = side.ask(ListLinks())
    assert isinstance(found, list)
    return [each for each in found if isinstance(each, LinkReport)]


def sequences(side: Side, name: str) -> list[SequenceReport]:
    number = side.engine.find_queue(rf".\private$\{name}").number
    found = side.ask(ListSequences(number))
    assert isinstance(found, list)
    return [each for each in found if isinstance(each, SequenceReport)]


def whereabouts(side: Side, message_id: bytes) -> list[Whereabouts]:
    found = side.ask(AskWhy(message_id))
    assert isinstance(found, list)
    return [each.whereabouts for each in found if isinstance(each, Sighting)]


def status(side: Side) -> Status:
    found = side.ask(AskStatus())
    assert isinstance(found, Status)
    return found


@pytest.mark.spec("MS-MQDMPR 3.1.1.3")
def test_the_connection_history_says_what_failed_and_what_came_of_it_later(pair: Pair) -> None:
    pair.is_cut = True
    sent = pair.here.send(PLAIN, b"a")
    pair.run()
    told = pair.here.transfer()
    assert (told.state, told.waiting, told.under_way) == (OutgoingState.DISCONNECTED, 1, 0)
    assert whereabouts(pair.here, sent) == [Whereabouts.OUTGOING]
    assert [each.status for each in told.history] == ["InProcess", "SocketConnectFailure"]
    failed = told.history[-1]
    assert (failed.time, failed.addresses, failed.text) == (START, ("10.0.0.2",), "nobody answers")
    assert failed.error == HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE
    pair.is_cut = False
    pair.wait(6)
    told = pair.here.transfer()
    assert (told.state, told.next_hops) == (OutgoingState.CONNECTED, ("10.0.0.2",))
    assert told.history[-1].status == "Established"
    assert told.history[-1].time == START + 6


@pytest.mark.spec("MS-MQDMPR 3.1.1.4")
@pytest.mark.spec("MS-MQQB 3.1.5.6#OutgoingTransferInfo")
def test_transactional_messages_are_counted_until_they_are_acknowledged_in_order(
    pair: Pair,
) -> None:
    sent = pair.here.send(ORDERED, b"1", b"2", b"3", is_together=True)
    assert pair.here.transfer().waiting == 3
    pair.run()
    told = pair.here.transfer()
    sequence = told.next_place.sequence_id
    assert sequence
    assert (told.waiting, told.under_way, told.unacknowledged) == (0, 3, 3)
    assert told.first_unacknowledged == SequencePlace(sequence_id=sequence, number=1)
    assert told.last_unacknowledged == SequencePlace(sequence_id=sequence, number=3, previous=2)
    assert told.next_place == SequencePlace(sequence_id=sequence, number=4, previous=3)
    assert (told.acknowledgments, told.acknowledged_at, told.resend_interval_s) == (0, 0, 30)
    assert told.resend_at == START + 30
    assert whereabouts(pair.here, sent) == [Whereabouts.UNORDERED]
    pair.wait(1)
    told = pair.here.transfer()
    assert (told.waiting, told.under_way, told.unacknowledged, told.unread) == (0, 0, 0, 0)
    assert told.last_acknowledged == SequencePlace(sequence_id=sequence, number=3)
    assert (told.acknowledgments, told.acknowledged_at, told.resend_at) == (1, START + 1, 0)
    assert told.first_unacknowledged == told.last_unacknowledged == SequencePlace()


@pytest.mark.spec("MS-MQDMPR 3.1.1.4")
def test_what_has_arrived_and_is_kept_until_it_is_received_is_counted_apart(pair: Pair) -> None:
    sent = pair.here.send(ORDERED, b"1", b"2", is_together=True, positive_journaling=True)
    pair.run()
    pair.wait(1)
    told = pair.here.transfer()
    assert (told.unread, told.under_way, told.waiting, told.unacknowledged) == (2, 0, 0, 0)
    assert whereabouts(pair.here, sent) == [Whereabouts.UNREAD]
    number = pair.there.engine.find_queue(r".\private$\ordered").number
    pair.there.ask(Read(number, First()))
    pair.run()
    assert pair.here.transfer().unread == 1
    assert whereabouts(pair.here, sent) == [Whereabouts.JOURNAL]


@pytest.mark.spec("MS-MQDMPR 3.1.1.4")
@pytest.mark.spec("MS-MQQB 3.1.5.6#OutgoingTransferInfo")
def test_resends_are_counted_and_end_with_an_order_acknowledgment(pair: Pair) -> None:
    pair.here.send(ORDERED, b"1", is_together=True)
    pair.run()
    # As if the other side never spoke of order: its timer is not served.
    pair.here.exchange.tick(31.0)
    told = pair.here.transfer()
    assert (told.resends, told.unacknowledged) == (1, 1)
    pair.wait(31)
    told = pair.here.transfer()
    assert (told.resends, told.unacknowledged) == (0, 0)


def test_an_express_message_is_under_way_until_the_session_acknowledges_it(pair: Pair) -> None:
    sent = pair.here.send(PLAIN, b"a", priority=7)
    pair.here.send(PLAIN, b"b", priority=0)
    pair.run()
    assert whereabouts(pair.here, sent) == [Whereabouts.TRANSMITTED]
    told = pair.here.transfer()
    assert (told.under_way, told.waiting, told.unacknowledged) == (2, 0, 0)
    (link,) = links(pair.here)
    assert link.unacknowledged == 2
    pair.cut()
    told = pair.here.transfer()
    assert (told.under_way, told.waiting) == (0, 2)
    assert whereabouts(pair.here, sent) == [Whereabouts.OUTGOING]


def test_only_outgoing_queues_have_a_way_out(pair: Pair) -> None:
    number = pair.there.engine.find_queue(r".\private$\plain").number
    with pytest.raises(MessageQueueError, match="not an outgoing queue") as caught:
        pair.there.ask(DescribeTransfer(number))
    assert caught.value.code == HResult.MQ_ERROR_INVALID_PARAMETER


@pytest.mark.spec("MS-MQDMPR 3.1.1.5")
@pytest.mark.spec("MS-MQQB 3.1.5.8.8#IncomingTransactionalTransferInfo", "E67")
def test_a_queue_knows_who_sends_to_it_in_order(pair: Pair) -> None:
    assert sequences(pair.there, "ordered") == []
    pair.here.send(ORDERED, b"1", b"2", is_together=True)
    pair.run()
    (told,) = sequences(pair.there, "ordered")
    assert told.sender == pair.here.guid
    assert told.format_name.lower() == ORDERED.lower()
    assert (told.number, told.rejects, told.address) == (2, 0, "10.0.0.1")
    assert told.last_access == START
    assert told.sequence_id == pair.here.transfer().next_place.sequence_id
    assert sequences(pair.there, "plain") == []


@pytest.mark.spec("MS-MQDMPR 3.1.1.5")
def test_names_by_identifiers_lead_to_their_queues_too(pair: Pair) -> None:
    engine = pair.there.engine
    queue = engine.find_queue(r".\private$\ordered")
    state, source = engine.state, pair.here.guid.bytes_le
    origin = Origin("10.0.0.1", source)
    public = state.sequences.key_of(source, 5, queue.properties.identifier.bytes_le)
    private = state.sequences.key_of(source, 3, queue.number.to_bytes(4, "little"))
    another = state.sequences.key_of(source, 3, b"\x99\0\0\0")
    for sequence_id, key in ((7, public), (8, private), (9, another)):
        state.sequences.learn(key, (sequence_id, 1), origin)
    names = {each.sequence_id: each.format_name for each in sequences(pair.there, "ordered")}
    assert names == {
        7: f"PUBLIC={queue.properties.identifier}",
        8: f"PRIVATE={pair.there.guid}\\{queue.number:08x}",
    }


@pytest.mark.limit("merq.host.transfers.SEQUENCES_TOLD_MAX")
def test_a_crowd_of_senders_is_told_in_part_the_latest_first(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfers, "SEQUENCES_TOLD_MAX", 3)
    state = pair.there.engine.state
    name = r"OS:there\private$\ordered".encode("utf-16-le")
    for number in range(1, 10):
        key = state.sequences.key_of(bytes([number]) * 16, 7, name)
        found = state.sequences.learn(key, (number, 1), Origin("10.0.0.1", key.source))
        assert found is not None
        found.last_access = START + number
    assert [each.sequence_id for each in sequences(pair.there, "ordered")] == [9, 8, 7]


def test_a_connection_says_who_is_there_and_who_made_it(pair: Pair) -> None:
    assert links(pair.here) == []
    assert status(pair.here).sessions == 0
    pair.here.send(PLAIN, b"a")
    pair.run()
    (ours,), (theirs,) = links(pair.here), links(pair.there)
    assert (ours.address, ours.queue_manager) == ("10.0.0.2", pair.there.guid)
    assert (theirs.address, theirs.queue_manager) == ("10.0.0.1", pair.here.guid)
    assert (ours.ours, theirs.ours, ours.open, ours.secure) == (True, False, True, False)
    assert [each.lower() for each in ours.queues] == [PLAIN.lower()]
    assert (ours.queue_count, theirs.queue_count) == (1, 0)
    assert status(pair.here).sessions == status(pair.there).sessions == 1
    assert NULL_GUID not in {ours.queue_manager, theirs.queue_manager}


@pytest.mark.spec("MS-MQDMPR 3.1.4.12", "MS-MQDMPR 3.1.4.13")
def test_offline_there_are_no_sessions_and_online_there_are_again(pair: Pair) -> None:
    pair.here.send(PLAIN, b"a")
    pair.run()
    assert status(pair.here).online
    assert pair.here.ask(TakeOffline()) is None
    pair.run()
    assert (status(pair.here).online, status(pair.here).sessions) == (False, 0)
    assert links(pair.there) == []
    pair.here.send(PLAIN, b"b")
    pair.run()
    assert pair.here.transfer().waiting >= 1
    assert pair.here.ask(BringOnline()) is None
    pair.run()
    pair.wait(6)
    assert status(pair.here).online
    assert pair.here.transfer().waiting == 0
    assert pair.there.engine.find_queue(r".\private$\plain").positions.count == 2
