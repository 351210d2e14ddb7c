"""How a conversation begins: HELLO from the client, WELCOME from the server, both JSON."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final
from uuid import UUID

from merq.errors import WireError
from merq.protocol.application.frames import FRAME_BYTES_MAX, Frame, Kind, frame
from merq.protocol.application.values import from_plain, parse_json, to_json

PROTOCOL: Final = "merq"
VERSION: Final = 2
"""The newest version that this code speaks: with pings."""

OLDEST_VERSION: Final = 1
"""The oldest that it speaks: without."""

TOKEN_CHARACTERS_MAX: Final = 512
CLIENT_CHARACTERS_MAX: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What a client says first.

    Attributes:
        protocol: "merq", so that a stranger who got the wrong port is known at once.
        oldest: The oldest version that it speaks.
        newest: The newest.
        client: What it is, for the log.
        token: Who it is, where that is asked for.
        resume: The conversation that it goes on with, if its connection was lost.
    """

    protocol: str
    oldest: int
    newest: int
    client: str = ""
    token: str = ""
    resume: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """What a server says first.

    Attributes:
        version: The version that both speak from here on.
        conversation: Its name, with which it can be gone on with.
        resumed: Whether the server remembers the conversation that the client asked for.
        frame_bytes_max: The largest frame that the server takes.
        window_bytes: The most that requests without an answer may take together; one may always
            be made.
        requests_max: How many requests may be without an answer.
        answer_bytes_max: No further message is added to an answer of this size.
        pong_ms: From version 2 on: a client that holds something and is asked with a PING has so
            many milliseconds to answer; 0 is for ever.
    """

    version: int
    queue_manager: UUID
    name: str
    conversation: UUID
    resumed: bool
    frame_bytes_max: int = FRAME_BYTES_MAX
    window_bytes: int = 8 << 20
    requests_max: int = 4096
    answer_bytes_max: int = 1 << 20
    pong_ms: int = 0


def encode_hello(hello: Hello) -> bytes:
    """The first frame of a client."""
    return frame(Kind.HELLO, 0, to_json(hello))


def decode_hello(found: Frame) -> Hello:
    """What the first frame of a client says.

    Raises:
        WireError: It says nothing that can be answered.
    """
    if found.kind != Kind.HELLO or found.number or found.flags:
        raise WireError(f"frame kind {found.kind} where HELLO belongs", field="kind")
    hello = from_plain(Hello, parse_json(found.body))
    if hello.protocol != PROTOCOL:
        raise WireError(f"{hello.protocol[:20]!r}; {PROTOCOL!r} is spoken here", field="protocol")
    if len(hello.token) > TOKEN_CHARACTERS_MAX or len(hello.client) > CLIENT_CHARACTERS_MAX:
        raise WireError("the token or the client's name is too long", field="hello")
    if hello.oldest > VERSION or hello.newest < OLDEST_VERSION or hello.oldest > hello.newest:
        raise WireError(
            f"versions {hello.oldest} to {hello.newest}; {OLDEST_VERSION} to {VERSION} are spoken "
            "here",
            field="version",
        )
    return hello


def encode_welcome(welcome: Welcome) -> bytes:
    """The first frame of a server."""
    if welcome.version == OLDEST_VERSION:
        # Who speaks it refuses what it does not know.
        told = {each.name: getattr(welcome, each.name) for each in fields(welcome)}
        del told["pong_ms"]
        return frame(Kind.WELCOME, 0, to_json(told))
    return frame(Kind.WELCOME, 0, to_json(welcome))


def encode_ping() -> bytes:
    """From a server: is the client still there?"""
    return frame(Kind.PING, 0)


def encode_pong(received: int) -> bytes:
    """From a client, which has got so many answers: it is."""
    return frame(Kind.PONG, 0, received=received)


def decode_welcome(found: Frame) -> Welcome:
    """What the first frame of a server says.

    Raises:
        WireError: It is no welcome.
    """
    if found.kind != Kind.WELCOME:
        raise WireError(f"frame kind {found.kind} where WELCOME belongs", field="kind")
    welcome = from_plain(Welcome, parse_json(found.body))
    if not OLDEST_VERSION <= welcome.version <= VERSION:
        raise WireError(
            f"version {welcome.version}; {OLDEST_VERSION} to {VERSION} were offered",
            field="version",
        )
    return welcome
