"""What a client asks again over its next connection, and what it never asks again."""

from __future__ import annotations

from uuid import UUID, uuid4

from merq.errors import MessageQueueError, ReceiveTimeout
from merq.hresult import HResult
from merq.model.selecting import First
from merq.protocol.application.client import SPARED_SHARE, ClientSession
from merq.protocol.application.codec import decode_request, encode_result, failed
from merq.protocol.application.frames import FRAME_BYTES_MAX, FrameReader, Kind, frame
from merq.protocol.application.greeting import Welcome, encode_welcome
from merq.protocol.application.requests import (
    AskStatus,
    Begin,
    Cancel,
    EndReceive,
    Read,
    Request,
    Send,
)

MANAGER = UUID(int=1)


def welcomed(session: ClientSession, *, resumed: bool, requests_max: int = 4096) -> None:
    session.connected()
    session.data_to_send()
    welcome = Welcome(
        version=1,
        queue_manager=MANAGER,
        name="alpha",
        conversation=uuid4(),
        resumed=resumed,
        requests_max=requests_max,
    )
    assert session.receive_data(encode_welcome(welcome)) == []


def asked(session: ClientSession) -> list[tuple[int, Request]]:
    reader = FrameReader(FRAME_BYTES_MAX)
    reader.feed(session.data_to_send())
    found = []
    while (each := reader.next()) is not None:
        found.append((each.number, decode_request(each)))
    return found


def waiting() -> Read:
    return Read(1, First(), wait=True, held=True)


def test_ends_of_receives_go_before_everything_that_could_hold_the_messages_anew() -> None:
    session = ClientSession("test")
    welcomed(session, resumed=False)
    session.ask(Read(1, First(), held=True))
    session.ask(waiting())
    end = session.ask(EndReceive(1, [7], delete=True))
    assert len(asked(session)) == 3
    session.disconnected()
    welcomed(session, resumed=True)
    again = asked(session)
    assert len(again) == 3
    assert again[0][0] == end
    assert isinstance(again[0][1], EndReceive)
    assert session.connections == 2


def test_a_transaction_that_may_have_begun_is_not_begun_again() -> None:
    session = ClientSession("test")
    welcomed(session, resumed=False)
    session.abandon(session.ask(Begin(1)))
    send = session.ask(Send(1, [b"x"], 1))
    asked(session)
    session.disconnected()
    session.abandon(session.ask(Begin(2)))
    welcomed(session, resumed=True)
    again = asked(session)
    assert [number for number, each in again if isinstance(each, Send)] == [send]
    assert [each.transaction for _, each in again if isinstance(each, Begin)] == [2]


def test_who_was_not_to_wait_any_longer_does_not_wait_on_the_next_connection() -> None:
    session = ClientSession("test")
    welcomed(session, resumed=False)
    number = session.ask(waiting())
    left = session.ask(waiting())
    asked(session)
    session.cancel(number)
    session.cancel(number)
    session.abandon(left)
    session.cancel(left)
    assert [each.request for _, each in asked(session) if isinstance(each, Cancel)] == [
        number,
        left,
    ]
    session.disconnected()
    (settled,) = session.refusals
    assert settled.number == number
    assert isinstance(settled.result, ReceiveTimeout)
    session.refusals.clear()
    welcomed(session, resumed=True)
    assert not [each for _, each in asked(session) if isinstance(each, Read)]


def test_a_wait_that_no_server_knows_of_ends_at_once() -> None:
    session = ClientSession("test")
    number = session.ask(waiting())
    session.cancel(number)
    (settled,) = session.refusals
    assert settled.number == number
    welcomed(session, resumed=False)
    assert asked(session) == []
    assert session.unanswered == 0


def test_who_waits_leaves_room_for_others() -> None:
    session = ClientSession("test")
    welcomed(session, resumed=False, requests_max=16)
    numbers = [session.ask(waiting()) for _ in range(20)]
    status = session.ask(AskStatus())
    session.cancel(numbers[0])
    sent = asked(session)
    assert sum(isinstance(each, Read) for _, each in sent) == 16 - 16 // SPARED_SHARE
    assert status in [number for number, _ in sent]
    assert any(isinstance(each, Cancel) for _, each in sent)


def test_an_answer_that_makes_no_sense_answers_nothing() -> None:
    session = ClientSession("test")
    welcomed(session, resumed=False)
    number = session.ask(AskStatus())
    asked(session)
    assert session.receive_data(frame(Kind.NUMBER, number, b"short")) == []
    assert session.broken
    session.disconnected()
    welcomed(session, resumed=True)
    assert [each for each, _ in asked(session)] == [number]
    (settled,) = session.receive_data(encode_result(number, 5))
    assert settled.result == 5


def test_a_client_that_was_refused_once_may_try_again() -> None:
    session = ClientSession("test")
    session.connected()
    refusal = MessageQueueError(HResult.MQ_ERROR_ACCESS_DENIED, "no")
    session.receive_data(failed(0, refusal))
    assert session.refused is not None
    session.disconnected()
    welcomed(session, resumed=False)
    assert session.refused is None
