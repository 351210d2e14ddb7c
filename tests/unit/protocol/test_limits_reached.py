"""What happens at limits of the application protocol that no other test comes near."""

from __future__ import annotations

import pytest

from merq.errors import WireError
from merq.protocol.application.batches import DESTINATIONS_MAX
from merq.protocol.application.client import ANSWER_FRAME_BYTES_MAX, ClientSession
from merq.protocol.application.codec import decode_request, encode_request
from merq.protocol.application.frames import FRAME_BYTES_MAX, HEADER, FrameReader, Kind
from merq.protocol.application.greeting import (
    CLIENT_CHARACTERS_MAX,
    TOKEN_CHARACTERS_MAX,
    Hello,
    decode_hello,
    encode_hello,
)
from merq.protocol.application.requests import SendTo


def request_of(data: bytes) -> object:
    reader = FrameReader(FRAME_BYTES_MAX)
    reader.feed(data)
    found = reader.next()
    assert found is not None
    return decode_request(found)


@pytest.mark.limit("merq.protocol.application.batches.DESTINATIONS_MAX")
def test_a_message_to_more_destinations_than_may_be_is_refused() -> None:
    most = SendTo((("DIRECT=OS:a\\b", b"x"),) * DESTINATIONS_MAX)
    assert request_of(encode_request(1, most)) == most
    with pytest.raises(WireError, match=f"{DESTINATIONS_MAX + 1} destinations"):
        request_of(encode_request(1, SendTo((("DIRECT=OS:a\\b", b"x"),) * (DESTINATIONS_MAX + 1))))


@pytest.mark.limit("merq.protocol.application.frames.FRAME_BYTES_MAX")
def test_a_frame_that_claims_too_much_is_refused_before_it_is_there() -> None:
    reader = FrameReader(FRAME_BYTES_MAX)
    reader.feed(HEADER.pack(FRAME_BYTES_MAX, Kind.ASK, 0, 0, 1, 0))
    assert reader.next() is None
    reader = FrameReader(FRAME_BYTES_MAX)
    reader.feed(HEADER.pack(FRAME_BYTES_MAX + 1, Kind.ASK, 0, 0, 1, 0))
    with pytest.raises(WireError, match=str(FRAME_BYTES_MAX)):
        reader.next()


@pytest.mark.limit("merq.protocol.application.client.ANSWER_FRAME_BYTES_MAX")
def test_a_client_leaves_a_server_that_claims_too_much() -> None:
    session = ClientSession("test")
    session.connected()
    session.receive_data(HEADER.pack(ANSWER_FRAME_BYTES_MAX + 1, Kind.WELCOME, 0, 0, 0, 0))
    assert str(ANSWER_FRAME_BYTES_MAX) in session.broken


@pytest.mark.limit(
    "merq.protocol.application.greeting.TOKEN_CHARACTERS_MAX",
    "merq.protocol.application.greeting.CLIENT_CHARACTERS_MAX",
)
def test_a_greeting_with_a_long_token_or_name_is_refused() -> None:
    def heard(token: int, client: int) -> Hello:
        reader = FrameReader(FRAME_BYTES_MAX)
        reader.feed(
            encode_hello(
                Hello(protocol="merq", oldest=1, newest=1, token="t" * token, client="c" * client)
            )
        )
        found = reader.next()
        assert found is not None
        return decode_hello(found)

    longest = heard(TOKEN_CHARACTERS_MAX, CLIENT_CHARACTERS_MAX)
    assert len(longest.token) == TOKEN_CHARACTERS_MAX
    for token, client in ((TOKEN_CHARACTERS_MAX + 1, 0), (0, CLIENT_CHARACTERS_MAX + 1)):
        with pytest.raises(WireError, match="too long"):
            heard(token, client)
