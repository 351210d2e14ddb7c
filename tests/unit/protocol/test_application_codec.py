from __future__ import annotations

import json
from collections.abc import Callable
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.application import ASKED_AS_JSON, picture, requests, results
from merq.errors import MessageQueueError, ReceiveTimeout, WireError
from merq.hresult import HResult
from merq.protocol.application import batches, codec
from merq.protocol.application.codec import (
    decode_request,
    decode_result,
    encode_request,
    encode_result,
)
from merq.protocol.application.frames import HEADER_SIZE, Frame, FrameReader, Kind, frame
from merq.protocol.application.greeting import (
    Hello,
    Welcome,
    decode_hello,
    decode_welcome,
    encode_hello,
    encode_welcome,
)
from merq.protocol.application.reports import Result
from merq.protocol.application.requests import Request, Send


def only_frame(data: bytes) -> Frame:
    reader = FrameReader(1 << 30)
    reader.feed(data)
    found = reader.next()
    assert found is not None
    assert found.size == len(data)
    return found


def made(kind: int, body: bytes, flags: int = 0) -> Frame:
    return only_frame(frame(kind, 1, body, flags=flags))


def fails_shortly(decode: Callable[[], object]) -> None:
    """It goes well, or raises a wire error that fits into a log."""
    text = ""
    try:
        decode()
    except WireError as wrong:
        text = str(wrong)
    assert len(text) < 1000


# Round trips.


@given(requests(), st.integers(1, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_every_request_comes_out_as_it_went_in(
    request: Request, number: int, received: int
) -> None:
    found = only_frame(encode_request(number, request, received))
    assert (found.number, found.received) == (number, received)
    assert picture(decode_request(found)) == picture(request)


@given(results(), st.integers(1, 2**32 - 1))
def test_every_answer_comes_out_as_it_went_in(result: Result, number: int) -> None:
    found = only_frame(encode_result(number, result))
    assert found.number == number
    assert picture(decode_result(found)) == picture(result)


def test_the_strategies_know_every_request() -> None:
    by_hand = {"Send", "Read", "EndReceive", "Cancel", "SendTo", "SendManyTo", "Begin", "End"}
    by_hand |= {"AskWhy", "SendRows"}
    assert {each.__name__ for each in get_args(Request)} == by_hand | {
        each.__name__ for each in ASKED_AS_JSON
    }


def test_a_time_out_comes_out_as_what_applications_catch() -> None:
    found = decode_result(only_frame(encode_result(3, ReceiveTimeout("too late"))))
    assert isinstance(found, ReceiveTimeout)
    assert found.text == "too late"


def test_an_error_with_half_a_character_can_be_told() -> None:
    error = MessageQueueError(HResult.MQ_ERROR_QUEUE_NOT_FOUND, "no \ud800 here")
    found = decode_result(only_frame(encode_result(1, error)))
    assert isinstance(found, MessageQueueError)
    assert found.text == error.text


# Whatever comes.


@given(st.integers(0, 255), st.integers(0, 255), st.binary(max_size=120))
def test_any_frame_is_a_request_or_a_wire_error(kind: int, flags: int, body: bytes) -> None:
    try:
        request = decode_request(made(kind, body, flags))
    except WireError:
        return
    assert isinstance(request, get_args(Request))


@given(st.integers(0, 255), st.integers(0, 255), st.binary(max_size=120))
def test_any_frame_is_an_answer_or_a_wire_error(kind: int, flags: int, body: bytes) -> None:
    try:
        decode_result(made(kind, body, flags))
    except WireError:
        return


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


@given(st.sampled_from(sorted(codec._ASKS)), JSON)
def test_any_json_in_an_ask_is_a_request_or_a_wire_error(name: str, value: object) -> None:
    body = json.dumps({name: value}).encode()
    fails_shortly(lambda: decode_request(made(Kind.ASK, body)))


@given(requests(), st.data())
def test_a_request_with_any_field_of_another_type_is_a_request_or_a_wire_error(
    request: Request, data: st.DataObject
) -> None:
    found = only_frame(encode_request(1, request))
    if found.kind != Kind.ASK:
        return
    ((name, fields),) = json.loads(found.body).items()
    for each in fields:
        fields[each] = data.draw(st.one_of(st.just(fields[each]), JSON))
    body = json.dumps({name: fields}).encode()
    fails_shortly(lambda: decode_request(made(Kind.ASK, body)))


@given(st.sampled_from([Kind.HELLO, Kind.WELCOME]), st.binary(max_size=60) | JSON)
def test_any_greeting_is_understood_or_a_wire_error(kind: Kind, body: object) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    found = only_frame(frame(kind, 0, data))
    fails_shortly(lambda: decode_hello(found))
    fails_shortly(lambda: decode_welcome(found))


@pytest.mark.parametrize(
    ("kind", "flags", "body", "field"),
    [
        (Kind.WELCOME, 0, b"", "kind"),
        (200, 0, b"", "kind"),
        (Kind.SEND, 0, b"", "body"),
        (Kind.SEND, 0, batches._SEND.pack(1, 0, 0, 0, 0, 0), "count"),
        (Kind.SEND, 0, batches._SEND.pack(1, 100_001, 0, 0, 0, 0), "count"),
        (Kind.SEND, 0, batches._SEND.pack(1, 2, 0, 0, 0, 0) + bytes(4), "body"),
        (Kind.SEND, 0, batches._SEND.pack(1, 1, 0, 0, 0, 0) + b"\x05\0\0\0abc", "lengths"),
        (Kind.SEND, 0, batches._SEND.pack(1, 1, 0, 0, 1, 0) + b"\0\0\0\0\xff", "text"),
        (Kind.SEND_TO, 0, batches._SEND_TO.pack(0, 0, 0, 0), "count"),
        (Kind.SEND_TO, 0, batches._SEND_TO.pack(0, 1001, 0, 0), "count"),
        (Kind.SEND_TO, 0, batches._SEND_TO.pack(0, 1, 0, 0), "body"),
        (Kind.SEND_MANY_TO, 0, bytes(15), "body"),
        (Kind.SEND_MANY_TO, 0, batches._SEND_MANY_TO.pack(0, 0, 0, 0), "count"),
        (Kind.SEND_MANY_TO, 0, batches._SEND_MANY_TO.pack(0, 100_001, 0, 0), "count"),
        (Kind.SEND_MANY_TO, 0, batches._SEND_MANY_TO.pack(0, 1, 0, 9) + bytes(8), "body"),
        (Kind.SEND_MANY_TO, 0, batches._SEND_MANY_TO.pack(0, 1, 0, 1) + b"\0\0\0\0\xff", "text"),
        (Kind.SEND_MANY_TO, 0, batches._SEND_MANY_TO.pack(0, 1, 0, 0) + b"\5\0\0\0ab", "lengths"),
        (Kind.READ, 0x08, codec._READ.pack(1, 0, 0, 0, 0, 0, 0), "flags"),
        (Kind.READ, 0x20, codec._READ.pack(1, 0, 0, 0, 0, 0, 0), "flags"),
        (Kind.READ, 0x10, codec._READ.pack(1, 0, 0, 5, 0, 0, 0), "flags"),
        (Kind.READ, 0x40, codec._READ.pack(1, 0, 0, 2, 0, 0, 0), "flags"),
        (Kind.READ, 0x50, codec._READ.pack(1, 0, 0, 0, 0, 0, 0), "flags"),
        (Kind.READ, 0x00, codec._READ.pack(1, 0, 0, 0, 0, 0, 0) + b"x", "body"),
        (Kind.END_RECEIVE, 0, codec._END_RECEIVE.pack(1, 0), "count"),
        (Kind.END_RECEIVE, 2, codec._END_RECEIVE.pack(1, 1) + bytes(8), "count"),
        (Kind.END_RECEIVE, 0, codec._END_RECEIVE.pack(1, 2) + bytes(8), "body"),
        (Kind.TRANSACT, 3, bytes(8), "flags"),
        (Kind.TRANSACT, 0, bytes(7), "body"),
        (Kind.CANCEL, 0, bytes(3), "body"),
        (Kind.ASK, 0, b"[]", "ask"),
        (Kind.ASK, 0, b'{"purge":{},"move":{}}', "ask"),
        (Kind.ASK, 0, b'{"dance":{}}', "ask"),
        (Kind.ASK, 0, b'{"ask_why":{"message_id":"AAAA"}}', "id"),
        (Kind.ASK, 0, b'{"purge":{"queue":true}}', "queue"),
        (Kind.ASK, 0, b'{"purge":{}}', "Purge"),
        (Kind.ASK, 0, b'{"purge":{"queue":1,"who":2}}', "Purge"),
    ],
)
def test_what_is_no_request_says_where_it_is_wrong(
    kind: int, flags: int, body: bytes, field: str
) -> None:
    with pytest.raises(WireError) as caught:
        decode_request(made(kind, body, flags))
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("kind", "flags", "body"),
    [
        (Kind.DONE, 0, b"x"),
        (Kind.NUMBER, 0, b"x"),
        (Kind.IDS, 0, b""),
        (Kind.IDS, 0, bytes(21)),
        (Kind.MESSAGES, 0, b"\1\0\0\0"),
        (Kind.MESSAGES, codec.ALONE, b"\0\0\0\0"),
        (Kind.TOLD, 0, b"3"),
        (Kind.TOLD, 0, b'{"weather":{}}'),
        (Kind.TOLD, 0, b'{"transfer":{}}'),
        (Kind.TOLD, 0, b'{"links":[{"queues":"none"}]}'),
        (Kind.FAILED, 0, b"x"),
        (Kind.ASK, 0, b""),
    ],
)
def test_what_is_no_answer_is_a_wire_error(kind: int, flags: int, body: bytes) -> None:
    with pytest.raises(WireError):
        decode_result(made(kind, body, flags))


def test_json_that_is_too_deep_is_a_wire_error() -> None:
    with pytest.raises(WireError, match="no JSON"):
        decode_request(made(Kind.ASK, b"[" * 1_000_000))


def test_an_error_about_a_long_name_is_short() -> None:
    body = b'{"purge":{"%s":1}}' % (b"x" * 1_000_000)
    with pytest.raises(WireError) as caught:
        decode_request(made(Kind.ASK, body))
    assert len(str(caught.value)) < 1000


# Frames.


@given(st.lists(st.binary(max_size=30), max_size=6), st.data())
def test_however_the_bytes_are_cut_the_frames_are_the_same(
    bodies: list[bytes], data: st.DataObject
) -> None:
    stream = b"".join(frame(Kind.ASK, n + 1, body) for n, body in enumerate(bodies))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    reader = FrameReader(1000)
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        reader.feed(stream[start:end])
        while (each := reader.next()) is not None:
            found.append((each.number, each.body))
    assert found == list(enumerate(bodies, 1))
    assert reader.waiting_bytes == 0


@pytest.mark.parametrize("size", [0, HEADER_SIZE - 1, 1001, 2**32 - 1])
def test_a_frame_of_a_size_that_none_has_is_refused_before_it_is_there(size: int) -> None:
    reader = FrameReader(1000)
    reader.feed(size.to_bytes(4, "little") + bytes(12))
    with pytest.raises(WireError, match="from 16 to 1000"):
        reader.next()


def test_what_is_reserved_must_be_zero() -> None:
    reader = FrameReader(1000)
    reader.feed((16).to_bytes(4, "little") + b"\2\0\1\0" + bytes(8))
    with pytest.raises(WireError, match="where 0 belongs"):
        reader.next()


# Greetings.


@given(st.uuids(), st.text(max_size=20), st.none() | st.uuids())
def test_greetings_come_out_as_they_went_in(guid: object, text: str, resume: object) -> None:
    hello = Hello(protocol="merq", oldest=1, newest=2, client=text, token=text, resume=resume)  # type: ignore[arg-type]
    assert decode_hello(only_frame(encode_hello(hello))) == hello
    welcome = Welcome(version=1, queue_manager=guid, name=text, conversation=guid, resumed=True)  # type: ignore[arg-type]
    assert decode_welcome(only_frame(encode_welcome(welcome))) == welcome


@pytest.mark.parametrize(
    ("hello", "text"),
    [
        (Hello(protocol="http", oldest=1, newest=1), "is spoken here"),
        (Hello(protocol="merq", oldest=3, newest=4), "versions 3 to 4"),
        (Hello(protocol="merq", oldest=0, newest=0), "versions 0 to 0"),
        (Hello(protocol="merq", oldest=1, newest=1, token="x" * 513), "too long"),
        (Hello(protocol="merq", oldest=1, newest=1, client="x" * 201), "too long"),
    ],
)
def test_a_greeting_that_cannot_be_answered_is_refused(hello: Hello, text: str) -> None:
    with pytest.raises(WireError, match=text):
        decode_hello(only_frame(encode_hello(hello)))


def test_a_numbered_hello_is_none() -> None:
    with pytest.raises(WireError, match="HELLO"):
        decode_hello(only_frame(frame(Kind.HELLO, 7, b"{}")))


@pytest.mark.limit("merq.protocol.application.batches.MESSAGES_MAX")
def test_a_request_can_have_as_many_messages_as_it_may() -> None:
    many = Send(1, [b"x"] * batches.MESSAGES_MAX)
    found = decode_request(only_frame(encode_request(1, many)))
    assert isinstance(found, Send)
    assert len(found.packets) == batches.MESSAGES_MAX
