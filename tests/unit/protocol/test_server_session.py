from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.application import picture, requests
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.selecting import First
from merq.protocol.application.codec import decode_result, encode_request, encode_result
from merq.protocol.application.frames import (
    GREETING_BYTES_MAX,
    Frame,
    FrameReader,
    Kind,
    frame,
)
from merq.protocol.application.greeting import Hello, decode_welcome, encode_hello
from merq.protocol.application.requests import AskStatus, Begin, Cancel, Read, Request, Send
from merq.protocol.application.server import (
    EARLIER_ANSWERS_MAX,
    REMEMBERED_BYTES_MAX,
    Asked,
    Event,
    Memory,
    ServerLimits,
    ServerSession,
)

GUID = UUID(int=1)
HELLO = Hello(protocol="merq", oldest=1, newest=1)
SEND = Send(1, [b"packet"])
LIMITS = ServerLimits(frame_bytes_max=8192, window_bytes=500, requests_max=3, answer_bytes_max=1000)


def first_frame(data: bytes) -> Frame:
    reader = FrameReader(1 << 30)
    reader.feed(data)
    found = reader.next()
    assert found is not None
    return found


def welcome_session(limits: ServerLimits = LIMITS) -> ServerSession:
    session = ServerSession(limits)
    session.feed(encode_hello(HELLO))
    assert session.next() == HELLO
    session.welcome(GUID, "here", GUID)
    return session


def events(session: ServerSession) -> list[Event]:
    found = []
    while (event := session.next()) is not None:
        found.append(event)
    return found


def shown(event: Event) -> object:
    return (event.number, picture(event.request)) if isinstance(event, Asked) else event


@given(st.lists(requests(), max_size=5), st.data())
def test_however_the_bytes_are_cut_the_events_are_the_same(
    wanted: list[Request], data: st.DataObject
) -> None:
    frames = [encode_request(n, request) for n, request in enumerate(wanted, 1)]
    stream = encode_hello(HELLO) + b"".join(frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    found: list[object] = []
    session = ServerSession(ServerLimits())
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        session.feed(stream[start:end])
        while (event := session.next()) is not None:
            found.append(shown(event))
            if isinstance(event, Hello):
                session.welcome(GUID, "here", GUID)
    whole = ServerSession(ServerLimits())
    whole.feed(stream)
    assert found[0] == HELLO == whole.next()
    whole.welcome(GUID, "here", GUID)
    assert found[1:] == [shown(each) for each in events(whole)]
    assert len(found) == len(wanted) + 1
    assert session.unanswered == len(wanted)


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_no_bytes_raise(pieces: list[bytes]) -> None:
    for session in (ServerSession(LIMITS), welcome_session()):
        for piece in pieces:
            session.feed(piece)
            events(session)


# Early frames.


def test_what_comes_before_a_hello_ends_it_without_a_word() -> None:
    session = ServerSession(LIMITS)
    session.feed(encode_request(1, SEND))
    assert session.next() is None
    assert "HELLO" in session.closing
    assert session.goodbye() == b""


@pytest.mark.limit("merq.protocol.application.frames.GREETING_BYTES_MAX")
def test_a_stranger_cannot_say_much() -> None:
    session = ServerSession(LIMITS)
    session.feed(frame(Kind.HELLO, 0, bytes(GREETING_BYTES_MAX))[:100])
    assert session.next() is None
    assert str(GREETING_BYTES_MAX) in session.closing


def test_nothing_is_asked_before_the_welcome() -> None:
    session = ServerSession(LIMITS)
    session.feed(encode_hello(HELLO) + encode_request(1, SEND))
    assert session.next() == HELLO
    assert session.next() is None
    assert not session.is_welcome
    session.welcome(GUID, "here", GUID)
    assert [shown(each) for each in events(session)] == [(1, picture(SEND))]


def test_a_large_frame_may_follow_a_hello_at_once() -> None:
    session = ServerSession(LIMITS)
    large = Send(1, [bytes(6000)])
    session.feed(encode_hello(HELLO) + encode_request(1, large))
    assert session.next() == HELLO
    session.welcome(GUID, "here", GUID)
    assert len(events(session)) == 1


def test_a_second_hello_ends_it() -> None:
    session = welcome_session()
    session.feed(encode_hello(HELLO))
    assert session.next() is None
    assert "number 0" in session.closing


def test_who_is_refused_learns_nothing() -> None:
    session = ServerSession(LIMITS)
    session.feed(encode_hello(HELLO) + encode_request(1, SEND))
    session.next()
    told = decode_result(first_frame(session.refuse("its token expired")))
    assert isinstance(told, MessageQueueError)
    assert told.code == HResult.MQ_ERROR_ACCESS_DENIED
    assert "token" not in told.text
    assert session.next() is None
    assert session.goodbye() == b""


def test_the_welcome_says_what_is_allowed() -> None:
    session = ServerSession(LIMITS)
    session.feed(encode_hello(HELLO))
    session.next()
    found = decode_welcome(first_frame(session.welcome(GUID, "here", GUID)))
    assert (found.window_bytes, found.requests_max) == (500, 3)
    assert (found.frame_bytes_max, found.answer_bytes_max) == (8192, 1000)
    assert not found.resumed


# Refusals.


@pytest.mark.limit("limits.frame_bytes_max", "limits.requests_max", "limits.window_bytes")
@pytest.mark.parametrize(
    ("data", "text"),
    [
        (encode_request(0, AskStatus()), "number 0"),
        (encode_request(1, AskStatus()) * 2, "number 1 is none, or is in use"),
        (b"".join(encode_request(n, AskStatus()) for n in range(1, 5)), "more than 3 requests"),
        (encode_request(1, AskStatus()) + encode_request(2, Send(1, [bytes(600)])), "500 bytes"),
        (encode_request(1, Send(1, [bytes(9000)])), "from 16 to 8192"),
        (frame(99, 1), "kind 99 is no request"),
        (frame(Kind.WELCOME, 1), "is no request"),
        (frame(Kind.CANCEL, 1), "body"),
    ],
)
def test_what_is_not_allowed_ends_the_conversation_with_a_reason(data: bytes, text: str) -> None:
    session = welcome_session()
    session.feed(data)
    events(session)
    assert text in session.closing
    told = decode_result(first_frame(session.goodbye()))
    assert isinstance(told, MessageQueueError)
    assert text in told.text
    session.feed(encode_request(9, AskStatus()))
    assert session.next() is None


def test_one_request_may_be_larger_than_the_window() -> None:
    session = welcome_session()
    session.feed(encode_request(1, Send(1, [bytes(600)])))
    assert len(events(session)) == 1
    session.answer(1, None)
    session.feed(encode_request(2, Send(1, [bytes(600)])))
    assert len(events(session)) == 1
    assert not session.closing


def test_who_waits_takes_nothing_of_the_window() -> None:
    session = welcome_session()
    session.feed(encode_request(1, Read(1, First(), wait=True)))
    session.feed(encode_request(2, Send(1, [bytes(600)])))
    assert len(events(session)) == 2
    assert not session.closing
    session.answer(1, None)
    session.feed(encode_request(3, SEND))
    events(session)
    assert "500 bytes" in session.closing


def test_answers_make_room_for_requests() -> None:
    session = welcome_session()
    for number in range(1, 100):
        session.feed(encode_request(number, AskStatus()))
        assert len(events(session)) == 1
        assert session.answer(number, None)
    assert not session.closing
    assert session.unanswered == 0


def test_whoever_waits_with_all_he_may_can_cancel_that() -> None:
    session = welcome_session()
    for number in range(1, 4):
        session.feed(encode_request(number, Read(1, First(), wait=True)))
    session.feed(encode_request(4, Cancel(1)))
    assert len(events(session)) == 4
    assert not session.closing


@pytest.mark.limit("limits.answer_bytes_max")
def test_no_read_gets_more_than_an_answer_may_have() -> None:
    session = welcome_session()
    for number, wanted, given_bytes in ((1, 0, 1000), (2, 10, 10), (3, 5000, 1000)):
        session.feed(encode_request(number, Read(1, First(), most_bytes=wanted)))
        event = session.next()
        assert isinstance(event, Asked)
        assert isinstance(event.request, Read)
        assert event.request.most_bytes == given_bytes


def test_an_answer_to_nothing_is_not_told() -> None:
    session = welcome_session()
    assert session.answer(5, None) == b""
    session.feed(encode_request(1, AskStatus()))
    events(session)
    assert session.answer(1, None)
    assert session.answer(1, None) == b""


# What is remembered.


def told(session: ServerSession, number: int, request: Request, received: int = 0) -> None:
    session.feed(encode_request(number, request, received))
    assert len(events(session)) == 1
    session.answer(number, bytes(20))


def resumed(memory: Memory) -> ServerSession:
    session = ServerSession(LIMITS)
    session.feed(encode_hello(HELLO))
    session.next()
    session.resume(memory)
    assert decode_welcome(first_frame(session.welcome(GUID, "here", GUID))).resumed
    return session


def test_answers_are_remembered_until_the_client_has_them() -> None:
    session = welcome_session()
    told(session, 1, SEND)
    told(session, 2, SEND)
    told(session, 3, AskStatus())
    assert set(session.memory.answers) == {1, 2}, "what changes nothing is not remembered"
    told(session, 4, SEND, received=1)
    assert set(session.memory.answers) == {2, 4}
    told(session, 5, SEND, received=3)
    assert set(session.memory.answers) == {4, 5}


def test_an_answer_is_given_again_on_the_next_connection() -> None:
    first = welcome_session()
    told(first, 1, SEND)
    second = resumed(first.memory)
    assert second.known_answer(2) is None
    assert second.known_answer(1) == encode_result(1, bytes(20))
    assert second.known_answer(1) is None


def test_what_the_second_connection_did_not_ask_the_third_can() -> None:
    first = welcome_session()
    told(first, 1, SEND)
    first.feed(encode_request(2, SEND))
    events(first)
    third = resumed(resumed(first.memory).memory)
    assert third.known_answer(1) == encode_result(1, bytes(20))
    assert third.is_begun(2)
    assert not third.is_begun(3)


def test_a_transaction_does_not_begin_a_second_time() -> None:
    first = welcome_session()
    first.feed(encode_request(1, Begin(7)))
    events(first)
    first.answer(1, None)
    assert resumed(first.memory).known_answer(1) == encode_result(1, None)


def test_a_new_conversation_knows_nothing() -> None:
    session = welcome_session()
    assert session.known_answer(1) is None
    assert not session.is_begun(1)


def test_an_answer_that_comes_late_is_kept_for_whoever_asks_again() -> None:
    first = welcome_session()
    first.feed(encode_request(2, SEND))
    events(first)
    first.memory.keep(2, b"late")
    second = resumed(first.memory)
    assert not second.is_begun(2)
    assert second.known_answer(2) == b"late"


def test_a_number_that_is_used_again_is_counted_once() -> None:
    session = welcome_session()
    told(session, 1, SEND)
    told(session, 1, SEND)
    told(session, 1, SEND)
    told(session, 2, SEND, received=2)
    assert set(session.memory.answers) == {1, 2}
    told(session, 3, SEND, received=4)
    assert set(session.memory.answers) == {3}
    assert session.memory._size == len(encode_result(1, bytes(20)))


@pytest.mark.limit("merq.protocol.application.server.REMEMBERED_BYTES_MAX")
def test_the_oldest_answers_go_when_there_are_too_many() -> None:
    memory = Memory()
    answer = bytes(REMEMBERED_BYTES_MAX // 4)
    for number in range(1, 4):
        memory.under_way.add(number)
        memory.told(number, answer)
    memory.resume()
    for number in range(4, 8):
        memory.under_way.add(number)
        memory.told(number, answer)
    assert memory.earlier == {}
    assert set(memory.answers) == {4, 5, 6, 7}
    memory.under_way.add(8)
    memory.told(8, answer)
    assert set(memory.answers) == {5, 6, 7, 8}
    memory.keep(9, answer)
    assert memory._size <= REMEMBERED_BYTES_MAX


@pytest.mark.limit("merq.protocol.application.server.EARLIER_ANSWERS_MAX")
def test_answers_of_long_ago_are_not_given_to_numbers_that_come_round() -> None:
    memory = Memory()
    memory.keep(1, b"old")
    memory.resume()
    memory.got(EARLIER_ANSWERS_MAX)
    assert memory.earlier
    memory.got(EARLIER_ANSWERS_MAX + 1)
    assert not memory.earlier
    assert memory._size == 0
