"""How a conversation begins: HELLO from the client, WELCOME from the server, both JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from merq.errors import WireError
from merq.protocol.application.frames import FRAME_BYTES_MAX, Frame, Kind, frame
from merq.protocol.application.values import from_plain, parse_json, to_json

PROTOCOL: Final = "merq"
VERSION: Final = 1
"""The version that this code speaks."""

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
    if not hello.oldest <= VERSION <= hello.newest:
        raise WireError(
            f"versions {hello.oldest} to {hello.newest}; {VERSION} is spoken here", field="version"
        )
    return hello


def encode_welcome(welcome: Welcome) -> bytes:
    """The first frame of a server."""
    return frame(Kind.WELCOME, 0, to_json(welcome))


def decode_welcome(found: Frame) -> Welcome:
    """What the first frame of a server says.

    Raises:
        WireError: It is no welcome.
    """
    if found.kind != Kind.WELCOME:
        raise WireError(f"frame kind {found.kind} where WELCOME belongs", field="kind")
    welcome = from_plain(Welcome, parse_json(found.body))
    if welcome.version != VERSION:
        raise WireError(f"version {welcome.version}; {VERSION} was offered", field="version")
    return welcome
