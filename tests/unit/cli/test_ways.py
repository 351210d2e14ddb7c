"""What is said of a message on its way to another computer, and of the way."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from merq.cli.rendering import date_of
from merq.cli.transfers import (
    HISTORY_SHOWN_MAX,
    error_name,
    facts_of_transfer,
    object_of_link,
    object_of_transfer,
    table_of_history,
    trouble_of,
)
from merq.cli.ways import OUTSIDE, Ways, told_of_way
from merq.cli.why import story_of
from merq.engine.transfer import HISTORY_MAX
from merq.hresult import HResult
from merq.model.queue import NULL_GUID, OutgoingState
from merq.protocol.application.reports import (
    ConnectionAttempt,
    LinkReport,
    SequencePlace,
    Sighting,
    TransferReport,
    Whereabouts,
)

FAR = r"DIRECT=OS:far\PRIVATE$\q"
SENT = 1_800_000_000
NOW = SENT + 100
SEEN = Sighting(
    queue=FAR,
    whereabouts=Whereabouts.OUTGOING,
    lookup_id=1,
    arrived=SENT,
    sent=SENT,
    label="",
    destination=FAR,
    message_class=0,
    aborts=0,
    about=False,
)
UNREACHABLE = int(HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE)
ESTABLISHED = ConnectionAttempt(
    status="Established", time=SENT, error=0, addresses=("10.0.0.2",), text=""
)
FAILED = replace(
    ESTABLISHED, status="SocketConnectFailure", time=SENT + 9, error=UNREACHABLE, text="refused"
)
WAY = TransferReport(
    state=OutgoingState.DISCONNECTED,
    next_hops=("10.0.0.2",),
    history=(ESTABLISHED, FAILED, replace(FAILED, time=SENT + 14, text="no route")),
    waiting=1,
    under_way=0,
    first_unacknowledged=SequencePlace(),
    last_unacknowledged=SequencePlace(),
    unacknowledged=0,
    unread=0,
    last_acknowledged=SequencePlace(),
    acknowledgments=0,
    acknowledged_at=0,
    next_place=SequencePlace(),
    resends=0,
    resend_interval_s=0,
    resend_at=0,
)


def told(seen: Sighting, way: TransferReport | None = WAY, *, is_online: bool = True) -> str:
    ways = Ways({} if way is None else {FAR: way}, is_online=is_online)
    sentences, advice = told_of_way(seen, NOW, ways)
    assert all(each.endswith(".") for each in sentences)
    return " ".join([*sentences, *advice])


def test_a_destination_that_cannot_be_reached_is_told_with_since_when_and_why() -> None:
    assert trouble_of(WAY) == (
        "It cannot be reached at 10.0.0.2 since 2027-01-15 08:00:09 UTC: no route "
        "(SocketConnectFailure)."
    )
    assert trouble_of(WAY) in told(SEEN)


def test_of_a_long_trouble_the_beginning_is_not_known() -> None:
    long = replace(WAY, history=(FAILED,) * HISTORY_MAX)
    assert "since 2027-01-15 08:00:09 UTC at the latest" in trouble_of(long)
    assert "at the latest" not in trouble_of(replace(WAY, history=(FAILED,)))


def test_a_session_that_was_lost_is_trouble_and_one_that_is_open_is_none() -> None:
    lost = replace(ESTABLISHED, status="ConnectionNotReady", time=SENT + 3, text="cut")
    assert "cut (ConnectionNotReady)" in trouble_of(replace(WAY, history=(ESTABLISHED, lost)))
    assert trouble_of(replace(WAY, state=OutgoingState.CONNECTED)) == ""
    assert trouble_of(replace(WAY, history=(FAILED, ESTABLISHED))) == ""


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (OutgoingState.ON_HOLD, "Its queue is paused."),
        (OutgoingState.LOCKED, "By the settings"),
        (OutgoingState.CONNECTED, "The session with 10.0.0.2 is open"),
    ],
)
def test_a_message_that_waits_is_told_what_it_waits_for(state: OutgoingState, words: str) -> None:
    assert words in told(SEEN, replace(WAY, state=state))


def test_offline_comes_before_all_else() -> None:
    found = told(SEEN, is_online=False)
    assert "offline" in found
    assert "merq online  lets it go" in found
    assert "cannot be reached" not in found


def test_a_message_without_an_order_acknowledgment_is_told_when_it_goes_again() -> None:
    seen = replace(SEEN, whereabouts=Whereabouts.UNORDERED)
    way = replace(WAY, state=OutgoingState.CONNECTED, resends=2, resend_at=NOW + 30)
    found = told(seen, way)
    assert "waits for its order acknowledgment" in found
    assert "sent again 2 times" in found
    assert "sent again on 2027-01-15 08:02:10 UTC" in found
    assert "cannot be reached" in told(seen)


@pytest.mark.parametrize("where", [each for each in Whereabouts if each in OUTSIDE])
def test_every_place_outside_has_its_sentence_also_if_the_way_is_gone(
    where: Whereabouts,
) -> None:
    assert FAR in told(replace(SEEN, whereabouts=where), None)


def test_why_tells_of_the_way() -> None:
    story = story_of(r"{x}\1", [SEEN], UUID(int=1), NOW, Ways({FAR: WAY}))
    assert trouble_of(WAY) in story.sentences


def test_facts_name_what_is_not_acknowledged() -> None:
    way = replace(
        WAY,
        unacknowledged=3,
        first_unacknowledged=SequencePlace(sequence_id=0xAB, number=4),
        last_unacknowledged=SequencePlace(sequence_id=0xAB, number=6, previous=5),
        acknowledgments=2,
        acknowledged_at=NOW - 5,
        last_acknowledged=SequencePlace(sequence_id=0xAB, number=3),
        next_place=SequencePlace(sequence_id=0xAB, number=7, previous=6),
        unread=1,
        resends=1,
        resend_at=NOW,
    )
    facts = dict(facts_of_transfer(way, NOW))
    assert facts["unacknowledged"] == (
        "3 transactional messages, from 4 of 00000000000000ab to 6 of 00000000000000ab"
    )
    assert facts["last order ack"] == "3 of 00000000000000ab, 5 s ago, 2 came"
    assert facts["next in order"] == "7 of 00000000000000ab"
    assert facts["not received yet"].startswith("1 message ")
    assert facts["sent again"].startswith("1 time, and at ")
    assert set(dict(facts_of_transfer(WAY, NOW))) == {"next hops", "under way"}


def test_when_it_is_tried_again_to_connect_is_told() -> None:
    facts = dict(facts_of_transfer(replace(WAY, retry_at=NOW + 40), NOW))
    assert facts["next attempt"] == date_of(NOW + 40)


def test_objects_have_names_for_errors_and_nothing_that_json_lacks() -> None:
    found = object_of_transfer(WAY)
    assert found["state"] == "disconnected"
    assert found["history"][-1]["error_name"] == "MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE"  # type: ignore[index]
    assert error_name(ESTABLISHED) is None
    assert error_name(replace(FAILED, error=0xC0FFEE)) == "0x00C0FFEE"
    link = LinkReport(
        address="10.0.0.2",
        queue_manager=NULL_GUID,
        ours=True,
        secure=False,
        open=False,
        queues=(),
        queue_count=0,
        unacknowledged=0,
    )
    assert object_of_link(link)["queue_manager"] is None


@pytest.mark.limit("merq.cli.transfers.HISTORY_SHOWN_MAX")
def test_a_long_history_is_shown_in_part() -> None:
    long = replace(WAY, history=(FAILED,) * HISTORY_MAX)
    assert table_of_history(long).row_count == HISTORY_SHOWN_MAX
