from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merq.errors import InDoubt, MessageQueueError, ReceiveTimeout
from merq.hresult import HResult
from merq.model.delivered import Delivered
from merq.model.selecting import First
from merq.protocol.application.client import NUMBERS, ClientSession, Settled
from merq.protocol.application.codec import decode_request, encode_result
from merq.protocol.application.frames import Frame, FrameReader, Kind, frame
from merq.protocol.application.greeting import Welcome, decode_hello, encode_welcome
from merq.protocol.application.requests import (
    AskStatus,
    Begin,
    Cancel,
    EndReceive,
    FindQueue,
    Read,
    Request,
    Send,
)

GUID, ANOTHER = UUID(int=1), UUID(int=2)
SEND = Send(1, [b"packet"])
MESSAGE = Delivered(b"packet", 77, 1, 0)


def welcome(limits: dict[str, int] | None = None, *, resumed: bool = False) -> bytes:
    return encode_welcome(
        Welcome(
            version=1,
            queue_manager=GUID,
            name="here",
            conversation=GUID,
            resumed=resumed,
            **(limits or {}),
        )
    )


def frames(session: ClientSession) -> list[Frame]:
    reader = FrameReader(1 << 30)
    reader.feed(session.data_to_send())
    found = []
    while (each := reader.next()) is not None:
        found.append(each)
    return found


def asked(session: ClientSession) -> list[tuple[int, type]]:
    """Numbers and kinds of the requests that go out now."""
    return [(each.number, type(decode_request(each))) for each in frames(session)]


def connected(**limits: int) -> ClientSession:
    session = ClientSession("test")
    session.connected()
    assert session.receive_data(welcome(limits)) == []
    session.data_to_send()
    return session


def again(session: ClientSession, *, resumed: bool = True, **limits: int) -> list[Settled]:
    """The connection is lost and made anew; what that settles."""
    session.disconnected()
    session.connected()
    session.data_to_send()
    return session.receive_data(welcome(limits, resumed=resumed))


def code_of(settled: Settled) -> int:
    assert isinstance(settled.result, MessageQueueError)
    return settled.result.code


# Asking.


def test_what_is_asked_early_goes_out_after_the_welcome() -> None:
    session = ClientSession("test", "a token")
    session.ask(AskStatus())
    assert session.data_to_send() == b""
    session.connected()
    (hello,) = frames(session)
    said = decode_hello(hello)
    assert (said.client, said.token, said.resume) == ("test", "a token", None)
    assert session.receive_data(welcome()) == []
    assert asked(session) == [(1, AskStatus)]


def test_answers_go_to_their_numbers_in_any_order() -> None:
    session = connected()
    first, second = session.ask(AskStatus()), session.ask(FindQueue("q"))
    data = encode_result(second, 16) + encode_result(first, None)
    assert session.receive_data(data) == [Settled(second, 16), Settled(first, None)]
    assert session.unanswered == 0


@given(st.data())
def test_however_the_bytes_are_cut_the_answers_are_the_same(data: st.DataObject) -> None:
    session = ClientSession("test")
    session.connected()
    numbers = [session.ask(AskStatus()) for _ in range(4)]
    session.receive_data(welcome())
    stream = b"".join(encode_result(number, number * 10) for number in numbers)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    found: list[Settled] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += session.receive_data(stream[start:end])
    assert found == [Settled(number, number * 10) for number in numbers]


def test_requests_tell_how_many_answers_have_come() -> None:
    session = connected()
    session.ask(AskStatus())
    session.receive_data(encode_result(1, None))
    session.data_to_send()
    session.ask(AskStatus())
    assert [each.received for each in frames(session)] == [1]
    again(session)
    assert [each.received for each in frames(session)] == [0]


def test_numbers_come_round_and_skip_those_in_use() -> None:
    session = connected()
    assert session.ask(AskStatus()) == 1
    session._number = NUMBERS - 1
    assert session.ask(AskStatus()) == NUMBERS
    assert session.ask(AskStatus()) == 2


def test_the_order_is_kept_when_numbers_come_round_and_the_connection_is_lost() -> None:
    session = connected()
    session._number = NUMBERS - 1
    assert [session.ask(SEND), session.ask(SEND)] == [NUMBERS, 1]
    again(session)
    assert [number for number, _ in asked(session)] == [NUMBERS, 1]


# Limits.


@pytest.mark.limit("limits.requests_max")
def test_no_more_requests_are_made_than_the_server_allows() -> None:
    session = connected(requests_max=2)
    for _ in range(4):
        session.ask(AskStatus())
    assert [number for number, _ in asked(session)] == [1, 2]
    session.receive_data(encode_result(2, None))
    assert [number for number, _ in asked(session)] == [3]


@pytest.mark.limit("limits.window_bytes")
def test_no_more_bytes_go_out_than_the_window_has() -> None:
    session = connected(window_bytes=300)
    for _ in range(3):
        session.ask(Send(1, [bytes(200)]))
    assert [number for number, _ in asked(session)] == [1]
    session.receive_data(encode_result(1, bytes(20)))
    assert [number for number, _ in asked(session)] == [2]


def test_one_request_may_be_larger_than_the_window() -> None:
    session = connected(window_bytes=100)
    session.ask(Send(1, [bytes(200)]))
    assert len(asked(session)) == 1


@pytest.mark.limit("limits.frame_bytes_max")
def test_what_the_server_would_not_take_is_refused_at_once() -> None:
    session = connected(frame_bytes_max=100)
    number = session.ask(Send(1, [bytes(200)]))
    (refusal,) = session.refusals
    assert refusal.number == number
    assert code_of(refusal) == HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    assert session.unanswered == 0
    assert asked(session) == []


def test_what_was_asked_too_large_without_a_connection_is_refused_with_the_welcome() -> None:
    session = ClientSession("test")
    number = session.ask(Send(1, [bytes(200)]))
    after = session.ask(AskStatus())
    session.connected()
    session.data_to_send()
    assert session.receive_data(welcome({"frame_bytes_max": 100})) == []
    (refusal,) = session.refusals
    assert refusal.number == number
    assert asked(session) == [(after, AskStatus)]


# Connections that are lost.


def test_what_has_no_answer_is_asked_again_in_order_under_the_same_numbers() -> None:
    session = connected()
    for request in (SEND, AskStatus(), SEND):
        session.ask(request)
    session.receive_data(encode_result(2, None))
    session.data_to_send()
    assert again(session) == []
    assert asked(session) == [(1, Send), (3, Send)]


def test_a_conversation_is_gone_on_with_by_its_name() -> None:
    session = connected()
    session.disconnected()
    session.connected()
    (hello,) = frames(session)
    assert decode_hello(hello).resume == GUID


def test_a_connection_that_is_lost_before_the_welcome_changes_nothing() -> None:
    session = connected()
    session.ask(SEND)
    session.disconnected()
    session.connected()
    assert again(session) == []
    assert asked(session) == [(1, Send)]


@pytest.mark.parametrize("request_", [SEND, EndReceive(1, [2], delete=True), Begin(1)])
def test_what_the_server_may_have_done_is_in_doubt_when_it_knows_nothing(
    request_: Request,
) -> None:
    session = connected()
    number = session.ask(request_)
    session.data_to_send()
    (doubt,) = again(session, resumed=False)
    assert doubt.number == number
    assert isinstance(doubt.result, InDoubt)
    assert type(request_).__name__ in doubt.result.text
    assert asked(session) == []


def test_what_changes_nothing_or_never_went_out_is_asked_again_whatever_happened() -> None:
    session = connected(requests_max=2)
    session.ask(SEND)
    session.ask(AskStatus())
    session.ask(SEND)
    (doubt,) = again(session, resumed=False)
    assert doubt.number == 1
    assert asked(session) == [(2, AskStatus), (3, Send)]


def test_a_doubt_that_nobody_waits_for_is_not_told() -> None:
    session = connected()
    session.abandon(session.ask(SEND))
    assert again(session, resumed=False) == []
    assert session.unanswered == 0


def test_an_answer_that_was_half_there_comes_again_whole() -> None:
    session = connected()
    session.ask(SEND)
    assert session.receive_data(encode_result(1, bytes(20))[:30]) == []
    again(session)
    assert session.receive_data(encode_result(1, bytes(20))) == [Settled(1, bytes(20))]


def test_who_gives_up_tells_everybody_who_waits() -> None:
    session = connected(requests_max=2)
    session.ask(SEND)
    session.ask(AskStatus())
    session.ask(SEND)
    session.abandon(session.ask(SEND))
    session.disconnected()
    settled = session.give_up("nobody answers")
    assert [each.number for each in settled] == [1, 2, 3]
    assert [isinstance(each.result, InDoubt) for each in settled] == [True, False, False]
    assert {code_of(each) for each in settled} == {HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE}
    assert session.unanswered == 0


# Waiting, and no longer.


def test_a_message_that_nobody_waits_for_goes_back() -> None:
    session = connected()
    number = session.ask(Read(1, First(), wait=True, held=True))
    session.abandon(number)
    session.data_to_send()
    assert session.receive_data(encode_result(number, MESSAGE)) == []
    (put_back,) = frames(session)
    request = decode_request(put_back)
    assert isinstance(request, EndReceive)
    assert (list(request.lookup_ids), request.delete) == ([77], False)
    assert session.receive_data(encode_result(put_back.number, None)) == []
    assert session.unanswered == 0


def test_messages_that_nobody_waits_for_go_back_together() -> None:
    session = connected()
    number = session.ask(Read(1, First(), most=2, held=True))
    session.abandon(number)
    session.data_to_send()
    second = Delivered(b"p", 78, 1, 0)
    session.receive_data(encode_result(number, [MESSAGE, second]))
    request = decode_request(frames(session)[0])
    assert isinstance(request, EndReceive)
    assert list(request.lookup_ids) == [77, 78]


@pytest.mark.parametrize(
    "request_", [Read(1, First(), peek=True), Read(1, First(), transaction=3), AskStatus()]
)
def test_what_is_not_held_does_not_go_back(request_: Request) -> None:
    session = connected()
    number = session.ask(request_)
    session.abandon(number)
    session.data_to_send()
    assert session.receive_data(encode_result(number, MESSAGE)) == []
    assert frames(session) == []


@pytest.mark.parametrize("most", [2, 3, 8, 20])
def test_however_many_wait_a_cancel_gets_through(most: int) -> None:
    session = connected(requests_max=most)
    waiting = [session.ask(Read(1, First(), wait=True, held=True)) for _ in range(30)]
    assert len(asked(session)) < most
    session.cancel(waiting[0])
    (cancel,) = frames(session)
    assert decode_request(cancel) == Cancel(waiting[0])
    session.cancel(waiting[0])
    assert frames(session) == [], "once is enough"
    timeout = encode_result(waiting[0], ReceiveTimeout("late"))
    settled = session.receive_data(timeout + encode_result(cancel.number, 1))
    assert [each.number for each in settled] == [waiting[0]]
    assert [kind for _, kind in asked(session)] == [Read], "the next takes its place"


def test_what_is_large_does_not_wait_for_who_waits() -> None:
    session = connected(window_bytes=300)
    session.ask(Read(1, First(), wait=True, held=True))
    session.ask(Send(1, [bytes(400)]))
    assert [kind for _, kind in asked(session)] == [Read, Send]
    session.ask(SEND)
    assert asked(session) == []
    session.receive_data(encode_result(1, MESSAGE))
    assert asked(session) == [], "who waited took nothing of the window"
    session.receive_data(encode_result(2, bytes(20)))
    assert asked(session) == [(3, Send)]


def test_what_was_not_sent_is_cancelled_without_the_server() -> None:
    session = connected(requests_max=2)
    waiting = [session.ask(Read(1, First(), wait=True)) for _ in range(2)]
    session.data_to_send()
    session.cancel(waiting[1])
    (settled,) = session.refusals
    assert settled.number == waiting[1]
    assert isinstance(settled.result, ReceiveTimeout)
    assert frames(session) == []
    assert session.unanswered == 1


def test_what_was_cancelled_does_not_wait_again_on_the_next_connection() -> None:
    session = connected()
    waiting = session.ask(Read(1, First(), wait=True, held=True))
    session.cancel(waiting)
    session.data_to_send()
    session.disconnected()
    (settled,) = session.refusals
    assert settled.number == waiting
    assert isinstance(settled.result, ReceiveTimeout)
    again(session)
    assert Read not in [kind for _, kind in asked(session)]


def test_only_what_waits_can_be_cancelled() -> None:
    session = connected()
    session.cancel(99)
    session.cancel(session.ask(SEND))
    assert [kind for _, kind in asked(session)] == [Send]
    assert session.refusals == []


# Servers that make no sense.


def test_who_is_refused_knows_it() -> None:
    session = ClientSession("test")
    session.connected()
    error = MessageQueueError(HResult.MQ_ERROR_ACCESS_DENIED, "not you")
    assert session.receive_data(encode_result(0, error)) == []
    assert session.refused is not None
    assert session.refused.code == HResult.MQ_ERROR_ACCESS_DENIED
    assert session.broken == "not you"


def test_a_server_that_ends_the_conversation_says_why() -> None:
    session = connected()
    session.ask(SEND)
    error = MessageQueueError(HResult.MQ_ERROR_INVALID_PARAMETER, "too much")
    assert session.receive_data(encode_result(0, error)) == []
    assert "too much" in session.broken
    assert session.unanswered == 1, "it is asked again"


@pytest.mark.parametrize(
    "data",
    [
        encode_result(7, None),
        encode_result(0, None),
        frame(Kind.ASK, 0),
        b"\0" * 16,
        b"\xff" * 16,
    ],
)
def test_what_was_not_asked_for_breaks_the_connection(data: bytes) -> None:
    session = connected()
    session.ask(SEND)
    assert session.receive_data(data) == []
    assert session.broken
    again(session)
    assert not session.broken
    assert session.receive_data(encode_result(1, bytes(20))) == [Settled(1, bytes(20))]


def test_an_answer_to_what_was_not_asked_on_this_connection_breaks_it_and_loses_nothing() -> None:
    session = connected()
    session.ask(SEND)
    session.ask(SEND)
    again(session, requests_max=1)
    session.data_to_send()
    assert session.receive_data(encode_result(2, bytes(20))) == []
    assert "was not made" in session.broken
    again(session)
    assert [number for number, _ in asked(session)] == [1]
    session.receive_data(encode_result(1, bytes(20)))
    assert [number for number, _ in asked(session)] == [2]


@pytest.mark.parametrize("request_", [SEND, AskStatus()])
def test_what_got_an_answer_that_makes_no_sense_is_asked_again(request_: Request) -> None:
    session = connected()
    number = session.ask(request_)
    assert session.receive_data(frame(Kind.NUMBER, number, b"short")) == []
    assert "makes no sense" in session.broken
    again(session)
    assert asked(session) == [(number, type(request_))]


@pytest.mark.parametrize(
    "data", [encode_result(1, None), frame(Kind.WELCOME, 0, b"{}"), frame(Kind.HELLO, 0)]
)
def test_what_is_no_welcome_breaks_the_connection(data: bytes) -> None:
    session = ClientSession("test")
    session.connected()
    assert session.receive_data(data) == []
    assert session.broken
    assert session.welcome is None


def test_a_server_of_another_version_is_not_spoken_to() -> None:
    session = ClientSession("test")
    session.connected()
    other = Welcome(version=9, queue_manager=GUID, name="", conversation=ANOTHER, resumed=False)
    session.receive_data(encode_welcome(other))
    assert "version 9" in session.broken


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_no_bytes_raise(pieces: list[bytes]) -> None:
    for session in (ClientSession("test"), connected()):
        if session.welcome is None:
            session.connected()
        session.ask(SEND)
        session.ask(Read(1, First(), held=True))
        for piece in pieces:
            session.receive_data(piece)
