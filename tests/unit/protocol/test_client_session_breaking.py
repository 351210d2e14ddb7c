"""Conversations that break because of a request, and what becomes of it and of the others."""

from __future__ import annotations

from uuid import uuid4

import pytest

from merq.errors import InDoubt, MessageQueueError
from merq.hresult import HResult
from merq.model.selecting import First
from merq.protocol.application.client import BREAKS_MAX, ClientSession, Settled
from merq.protocol.application.codec import encode_result
from merq.protocol.application.frames import FRAME_BYTES_MAX, FrameReader, Kind, frame
from merq.protocol.application.greeting import Welcome, encode_welcome
from merq.protocol.application.requests import AskStatus, EndReceive, Read, Request, Send

SEND = Send(1, [b"x"])
WAITING = Read(1, First(), wait=True, held=True)
REASON = MessageQueueError(HResult.MQ_ERROR_INVALID_PARAMETER, "too much")
ENDING = encode_result(0, REASON)


def welcomed(session: ClientSession, *, resumed: bool = True) -> None:
    session.connected()
    session.data_to_send()
    welcome = Welcome(
        version=1, queue_manager=uuid4(), name="alpha", conversation=uuid4(), resumed=resumed
    )
    assert session.receive_data(encode_welcome(welcome)) == []


def talking(*requests: Request) -> ClientSession:
    session = ClientSession("test")
    welcomed(session, resumed=False)
    for each in requests:
        session.ask(each)
    session.data_to_send()
    return session


def broken(session: ClientSession, data: bytes = ENDING) -> list[Settled]:
    """The conversation breaks and is gone on with; gives what is over with that."""
    assert session.receive_data(data) == []
    assert session.broken
    session.disconnected()
    settled = session.refusals.copy()
    session.refusals.clear()
    welcomed(session)
    return settled


def sent(session: ClientSession) -> list[int]:
    """The numbers of the requests that go out."""
    reader = FrameReader(FRAME_BYTES_MAX)
    reader.feed(session.data_to_send())
    found = []
    while (each := reader.next()) is not None:
        found.append(each.number)
    return found


@pytest.mark.limit("merq.protocol.application.client.BREAKS_MAX")
def test_what_broke_as_many_conversations_as_it_may_is_over_with_the_servers_reason() -> None:
    session = talking(SEND)
    for _ in range(BREAKS_MAX - 1):
        assert broken(session) == []
        assert sent(session) == [1]
    ((number, wrong),) = broken(session)
    assert number == 1
    assert type(wrong) is MessageQueueError
    assert (wrong.code, wrong.text) == (REASON.code, "the server ended the conversation: too much")
    assert (sent(session), session.unanswered) == ([], 0)


def test_what_was_on_its_way_goes_out_alone_until_it_is_known_which_one_it_was() -> None:
    session = talking(SEND, SEND, SEND)
    broken(session)
    session.ask(SEND)
    assert sent(session) == [1]
    assert session.receive_data(encode_result(1, bytes(20))) == [Settled(1, bytes(20))]
    assert sent(session) == [2]
    assert [each.number for each in broken(session)] == [2]
    assert sent(session) == [3]
    session.receive_data(encode_result(3, bytes(20)))
    assert sent(session) == [4]
    session.ask(SEND)
    assert sent(session) == [5], "nobody is suspected any more"


def test_what_is_suspected_waits_for_the_answers_to_others() -> None:
    session = talking(SEND)
    broken(session)
    session.ask(EndReceive(1, [7], delete=True))
    session.disconnected()
    welcomed(session)
    assert sent(session) == [2], "ends of receives go first"
    session.receive_data(encode_result(2, None))
    assert sent(session) == [1]


def test_who_waits_is_suspected_only_if_nobody_else_is() -> None:
    session = talking(WAITING, AskStatus())
    for _ in range(BREAKS_MAX - 1):
        assert broken(session) == []
        assert sent(session) == [2]
    assert [each.number for each in broken(session)] == [2]
    for _ in range(BREAKS_MAX - 1):
        assert sent(session) == [1]
        assert broken(session) == []
    assert sent(session) == [1]
    assert [each.number for each in broken(session)] == [1]


def test_who_waits_comes_back_behind_what_is_on_trial() -> None:
    session = talking(WAITING, SEND)
    broken(session)
    assert sent(session) == [2]
    session.receive_data(encode_result(2, bytes(20)))
    assert sent(session) == [1]


def test_what_nobody_waits_for_goes_without_a_word() -> None:
    session = talking(SEND)
    session.abandon(1)
    for _ in range(BREAKS_MAX):
        assert broken(session) == []
    assert (sent(session), session.unanswered) == ([], 0)


def test_a_server_that_ends_every_conversation_at_once_gets_no_request_for_ever() -> None:
    session = ClientSession("test")
    session.ask(SEND)
    welcome = Welcome(
        version=1, queue_manager=uuid4(), name="alpha", conversation=uuid4(), resumed=True
    )
    for _ in range(BREAKS_MAX):
        session.connected()
        session.receive_data(encode_welcome(welcome) + ENDING)
        session.disconnected()
    assert [each.number for each in session.refusals] == [1]


@pytest.mark.parametrize("request_", [SEND, AskStatus()])
def test_an_answer_that_never_makes_sense_leaves_in_doubt_what_changes_something(
    request_: Request,
) -> None:
    session = talking(request_)
    nonsense = frame(Kind.NUMBER, 1, b"short")
    assert broken(session, nonsense) == []
    ((_, wrong),) = broken(session, nonsense)
    assert isinstance(wrong, InDoubt) == (request_ is SEND)
    assert "makes no sense" in str(wrong)


def test_breaks_are_counted_until_an_answer_comes() -> None:
    session = talking(SEND, AskStatus())
    broken(session)
    assert session.breaks == 1
    session.receive_data(encode_result(1, bytes(20)))
    assert session.breaks == 0


def test_a_connection_that_is_only_lost_blames_nobody() -> None:
    session = talking(SEND, SEND)
    for _ in range(2 * BREAKS_MAX):
        session.disconnected()
        assert session.refusals == []
        welcomed(session)
        assert sent(session) == [1, 2]
    assert session.breaks == 0
