"""Every request of the application protocol with values that do not belong there.

Each goes through a real socket to a real service, made by hand: whatever comes of the request, the
service stays up and answers the next one.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any, Final, get_args
from uuid import UUID

import pytest

from acceptance.service_process import RawClient, ServiceProcess, serving
from merq.model.queue import QueueSettings
from merq.protocol.application.frames import HEADER
from merq.protocol.application.reports import Status
from merq.protocol.application.requests import (
    AskStatus,
    CreateStage,
    FindQueue,
    Request,
)

PATH: Final = r".\private$\odd"
GUID: Final = UUID("5c9f1a2b-0000-4000-8000-000000000015")
ASK, SEND, SEND_TO, READ, SEND_MANY_TO, SEND_ROWS = 2, 3, 4, 5, 9, 10
END_RECEIVE, TRANSACT, CANCEL = 6, 7, 8

TEXTS: Final = {
    "empty": "",
    "NUL": "\0",
    "lone surrogate": "\ud800",
    "surrogates": "\udfff" * 300,
    "256 characters": "x" * 256,
    "65,535 bytes": "x" * 0xFFFF,
    "65,536 bytes": "x" * 0x10000,
    "few characters of many bytes": "\N{GRINNING FACE}" * 20_000,
    "a megabyte": "x" * (1 << 20),
    "lines": "one\r\ntwo\x1b[31m",
}
NUMBERS: Final = {
    "minus one": -1,
    "2^16": 1 << 16,
    "2^32": 1 << 32,
    "2^56": 1 << 56,
    "2^63": 1 << 63,
    "2^64": 1 << 64,
    "a googol": 10**100,
}

KINDS: Final[tuple[type, ...]] = get_args(Request)
BY_NAME: Final[dict[str, Any]] = {
    each.__name__: each for each in KINDS if hasattr(each, "__dataclass_fields__") and fields(each)
}
"""Requests that have fields and travel as JSON; the others are made by hand below."""

IN_BYTES: Final = {"Cancel", "SendTo", "SendRows", "Begin", "End"}
"""Those that travel in a form of their own."""


def name_of(kind: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in kind).lstrip("_")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with serving(tmp_path_factory.mktemp("odd") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def known(service: ServiceProcess) -> dict[str, Any]:
    """Values that make sense, by the names of fields: a request fails by one odd value alone."""
    with service.connect() as manager:
        queue = manager.create_queue(PATH)
        for _ in range(5):
            queue.send(b"body", recoverable=True)
        packet = queue.peek().packet
    with RawClient(service.socket_path).greet() as client:
        number = client.ask(FindQueue(PATH))
        assert isinstance(number, int)
        stage = client.ask(CreateStage(number, "writer", 1, "part"))
    return {
        "queue": number, "owner": "somebody", "group": "group", "writer": "writer", "part": "1",
        "path_name": PATH, "name": "sub", "batch": 1, "stages": [], "stage": stage, "after": 0,
        "start": 0, "upto": 1, "lookup_id": 1, "target": number, "handle": 0, "cursor": 1,
        "transaction": 0, "identifier": str(GUID), "ending": "abort", "access": 1, "share": 0,
        "settings": {}, "alteration": {"label": "x"}, "packet": packet,
    }  # fmt: skip


def frame(kind: int, body: bytes, *, flags: int = 0, number: int = 1) -> bytes:
    """A request as it travels, by hand."""
    return HEADER.pack(HEADER.size + len(body), kind, flags, 0, number, 0) + body


def ask(kind: str, asked: dict[str, Any]) -> bytes:
    return frame(ASK, json.dumps({name_of(kind): asked}).encode("utf-8"))


def plain(kind: str, known: dict[str, Any]) -> dict[str, Any]:
    """A request of this kind as it should be, with every field that has no default."""
    asked = {
        each.name: known.get(each.name, 0)
        for each in fields(BY_NAME[kind])
        if each.default is MISSING or each.name in {"group", "writer", "owner"}
    }
    if kind == "ListQueues":
        asked["owner"] = 0
    return asked


def odd_asks() -> Iterator[tuple[str, str, str, object]]:
    """Kind, field, what is odd, and the value."""
    inside = {"CreateQueue": ("settings", QueueSettings), "ChangeQueue": ("alteration", None)}
    for kind in sorted(BY_NAME.keys() - IN_BYTES):
        names = [each.name for each in fields(BY_NAME[kind])]
        if kind in inside:
            outer = inside[kind][0]
            names += [f"{outer}.{each.name}" for each in fields(QueueSettings)]
        for name in names:
            for what, value in (TEXTS | NUMBERS).items():
                yield kind, name, what, value


def survives(service: ServiceProcess, *frames: bytes) -> list[Any]:
    """Says frames on a connection of their own; the service answers others as before."""
    answers: list[Any] = []
    with RawClient(service.socket_path).greet() as client:
        for each in frames:
            client.socket.sendall(each)
            # Nobody waits for an answer by name: the session of the client knows no such request.
            answers.append(client.socket.recv(1 << 16))
    assert service.is_alive, service.output[-3000:]
    return answers


def still_answers(service: ServiceProcess) -> None:
    with RawClient(service.socket_path).greet() as other:
        assert isinstance(other.ask(AskStatus()), Status)
    assert len(service.events("running")) == 1, "it was started anew"
    assert not service.events("the queue manager stumbled and starts anew")


@pytest.mark.parametrize("kind", sorted(BY_NAME.keys() - IN_BYTES))
def test_a_request_with_an_odd_value_is_answered_or_ends_its_connection_alone(
    kind: str, service: ServiceProcess, known: dict[str, Any]
) -> None:
    for each, name, _, value in odd_asks():
        if each != kind:
            continue
        asked = plain(kind, known)
        outer, _, inner = name.partition(".")
        asked[outer] = {inner: value} if inner else value
        (answer,) = survives(service, ask(kind, asked))
        assert answer, f"{kind} with an odd {name} is neither answered nor refused"
    still_answers(service)


@pytest.mark.parametrize("what", TEXTS)
def test_odd_names_in_the_frames_that_carry_messages_are_refused(
    what: str, service: ServiceProcess, known: dict[str, Any]
) -> None:
    text = TEXTS[what].encode("utf-8", "surrogatepass")[:0xFFFF]
    packet, queue = known["packet"], known["queue"]
    size = struct.pack("<I", len(packet))
    send = struct.pack("<IIQQHH", queue, 1, 0, 0, len(text), 0) + size + text + packet
    to = struct.pack("<QIHH", 0, 1, 0, 0) + struct.pack("<IHH", len(packet), len(text), 0)
    many = struct.pack("<QIHH", 0, 1, len(text), len(text)) + size + text + text + packet
    for kind, body in ((SEND, send), (SEND_TO, to + text + packet), (SEND_MANY_TO, many)):
        survives(service, frame(kind, body))
    still_answers(service)


@pytest.mark.parametrize("kind", [SEND, SEND_TO, READ, END_RECEIVE, TRANSACT, CANCEL, SEND_ROWS])
def test_a_frame_of_nothing_but_ones_or_nothing_at_all_ends_its_connection_alone(
    kind: int, service: ServiceProcess
) -> None:
    for body in (b"", b"\xff" * 44, bytes(44), b"\xff" * 70_000):
        for flags in (0, 0xFF, 0x50):
            survives(service, frame(kind, body, flags=flags))
    still_answers(service)


@pytest.mark.parametrize("field", ["protocol", "client", "token", "resume", "oldest", "unknown"])
def test_an_odd_greeting_ends_its_connection_alone(field: str, service: ServiceProcess) -> None:
    for value in (TEXTS | NUMBERS).values():
        hello = {"protocol": "merq", "oldest": 1, "newest": 1, field: value}
        with RawClient(service.socket_path) as client:
            client.socket.sendall(frame(1, json.dumps(hello).encode(), number=0)[: 1 << 16])
            client.socket.recv(1 << 16)
    still_answers(service)
