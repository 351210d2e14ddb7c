"""Whatever bytes a client sends: nothing raises, others are served, and nothing is left of it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from uuid import UUID

import pytest

from merq.model.access import Access, Share
from merq.model.delivered import Delivered
from merq.model.queue import Alteration, QueueSettings
from merq.model.selecting import AtCursor, ByCorrelationId, ByLookup, ByMessageId, First, Seek
from merq.protocol.application import requests as asked
from merq.protocol.application.codec import encode_request
from merq.protocol.application.frames import HEADER, HEADER_SIZE, Kind
from merq.protocol.application.greeting import Hello, encode_hello
from merq.protocol.application.requests import Ending, Family, Request
from unit.service.serving import Client, Service, packet

FRAMES = 10_000
FRAMES_A_CLIENT_MAX = 40
STRIPES = 4
HELLO = encode_hello(Hello(protocol="merq", oldest=1, newest=1))


def corpus(queue: int, strict: int, known: int, lookup_id: int) -> list[Request]:
    """Valid requests of every kind; a handle, cursor or message that is known exists, at times."""
    return [
        asked.Send(queue, [packet()]),
        asked.Send(queue, [packet(recoverable=False), packet()], dead_letter=r".\private$\dead"),
        asked.Send(strict, [packet()], 1),
        asked.SendTo(((r"DIRECT=OS:.\private$\plain", packet()),)),
        asked.SendTo(((r"DIRECT=OS:elsewhere\private$\q", packet()),)),
        asked.Read(queue, First()),
        asked.Read(queue, First(), wait=True),
        asked.Read(queue, First(), held=True),
        asked.Read(queue, First(), held=True, most=5, wait=True),
        asked.Read(strict, First(), transaction=1, wait=True),
        asked.Read(queue, ByLookup(1, Seek.NEXT), peek=True),
        asked.Read(queue, ByLookup(2**63, Seek.PREVIOUS)),
        asked.Read(queue, ByMessageId(bytes(20))),
        asked.Read(queue, ByCorrelationId(bytes(20)), peek=True),
        asked.Read(queue, AtCursor(known), peek=True),
        asked.Read(queue, AtCursor(known, next_one=True), peek=True, wait=True),
        asked.Read(strict, AtCursor(known)),
        asked.Read(queue, First(), handle=known),
        asked.Read(queue, ByLookup(lookup_id)),
        asked.EndReceive(queue, [lookup_id], delete=True),
        asked.EndReceive(queue, [1, 2], delete=True),
        asked.EndReceive(queue, [2**64 - 1], delete=False),
        asked.Cancel(1),
        asked.Begin(1),
        asked.End(1, Ending.COMMIT),
        asked.End(1, Ending.ABORT),
        asked.Prepare(1, UUID(int=1)),
        asked.EndPrepared(UUID(int=1), Ending.COMMIT),
        asked.ListPrepared(),
        asked.CreateQueue(r".\private$\made", QueueSettings(label="x"), UUID(int=3)),
        asked.ChangeQueue(queue, Alteration(label="y", quota=1000)),
        asked.DeleteQueue(strict + 2),
        asked.Purge(queue),
        asked.FindQueue(r".\private$\plain"),
        asked.CreateSubqueue(queue, "below"),
        asked.DescribeQueue(queue),
        asked.ListQueues(Family.ALL),
        asked.PauseQueue(queue),
        asked.ResumeQueue(queue),
        asked.Move(queue, lookup_id, known),
        asked.OpenQueue(queue, Access.RECEIVE, Share.DENY_NONE),
        asked.CloseQueue(known),
        asked.OpenCursor(queue),
        asked.CloseCursor(known),
        asked.AskStatus(),
        asked.AskWhy(bytes(20)),
    ]


def flip(data: bytearray, chance: Random) -> None:
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def put_number(data: bytearray, chance: Random) -> None:
    size = chance.choice((1, 2, 4, 8))
    number = chance.choice((0, 1, 2, 255, 2**31, 2**32 - 1, 2**63, 2**64 - 1))
    at = chance.randrange(len(data))
    data[at : at + size] = (number % 256**size).to_bytes(size, "little")[: len(data) - at]


def cut(data: bytearray, chance: Random) -> None:
    del data[chance.randrange(len(data)) :]
    data += bytes(max(0, HEADER_SIZE - len(data)))


def lengthen(data: bytearray, chance: Random) -> None:
    data += chance.randbytes(chance.randint(1, 30))


def retype(data: bytearray, chance: Random) -> None:
    data[4] = chance.randrange(90)


def garble(data: bytearray, chance: Random) -> None:
    data[HEADER_SIZE:] = chance.randbytes(chance.randint(0, 60))


def renumber_json(data: bytearray, chance: Random) -> None:
    """Other numbers where JSON has some: they have no size there."""
    digits = [at for at in range(HEADER_SIZE, len(data)) if chr(data[at]).isdigit()]
    if digits:
        at = chance.choice(digits)
        data[at : at + 1] = chance.choice((b"-1", b"9" * 30, b"1e9", b"null", b"0", b"[]", b"17"))


MUTATIONS: list[Callable[[bytearray, Random], None]] = [
    flip,
    put_number,
    cut,
    lengthen,
    retype,
    garble,
    renumber_json,
]


def mutated(data: bytes, chance: Random) -> bytes:
    """A frame that is wrong somewhere; most have the size that they say."""
    changed = bytearray(data)
    for _ in range(chance.choice((0, 1, 1, 1, 2, 4))):
        chance.choice(MUTATIONS)(changed, chance)
    if chance.random() < 0.95:
        changed[:4] = len(changed).to_bytes(4, "little")
        changed[6:8] = bytes(2)
    return bytes(changed)


class Storm:
    """A service, clients that say anything, and one that goes on working."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)  # noqa: S311
        self.service = Service()
        self.plain = self.service.queue("plain")
        self.strict = self.service.queue("strict", transactional=True)
        self.own = self.service.queue("own")
        self.quiet = self.service.client()
        self.said = 0

    def strike(self) -> None:
        """One client, from its hello to its end."""
        chance = self.chance
        client = Client(self.service)
        client.say(HELLO if chance.random() < 0.95 else mutated(HELLO, chance))
        known, lookup_id = 1, 1
        for number in range(1, chance.randint(1, FRAMES_A_CLIENT_MAX)):
            request = chance.choice(corpus(self.plain, self.strict, known, lookup_id))
            valid = encode_request(number, request, chance.randint(0, number))
            data = mutated(valid, chance) if chance.random() < 0.6 else valid
            if chance.random() < 0.9 and len(data) >= HEADER_SIZE:
                size, kind, flags, zero, _, received = HEADER.unpack_from(data)
                head = HEADER.pack(size, kind, flags, zero, number, received)
                data = head + data[HEADER_SIZE:]
            at = chance.randint(0, len(data))
            for piece in (data[:at], data[at:]):
                client.say(piece)
            self.said += 1
            if chance.random() < 0.3:
                self.service.settle()
            if client.connection.closing:
                break
            for found in client.hear():
                if found.kind == Kind.NUMBER:
                    known = int.from_bytes(found.body, "little")
                elif found.kind == Kind.MESSAGES:
                    lookup_id = int.from_bytes(found.body[4:12], "little")
        client.hear()
        if chance.random() < 0.5:
            self.service.settle()
        client.leave()

    def others_go_on(self) -> None:
        quiet = self.quiet
        ids = quiet.ask(asked.Send(self.own, [packet(b"mine")]))
        assert isinstance(ids, bytes), ids
        found = quiet.ask(asked.Read(self.own, First(), held=True))
        assert isinstance(found, Delivered), found
        assert quiet.ask(asked.EndReceive(self.own, [found.lookup_id], delete=True)) is None

    def nothing_is_left(self) -> None:
        self.service.settle()
        self.service.reception.forget(self.service.now + 1e6)
        reception, engine = self.service.reception, self.service.host.engine
        assert len(reception) == 1
        assert not reception._departed
        assert not reception._lost
        assert len(reception._conversations) == 1
        assert not engine.opened._descriptors
        assert not [each for each in engine.state.transactions.values() if not each.identifier]
        for queue in engine.state.queues.values():
            assert not queue.waiting
            assert not queue.held


@pytest.mark.parametrize("stripe", range(STRIPES))
def test_random_and_mutated_frames_harm_nobody_else(stripe: int) -> None:
    storm = Storm(stripe)
    while storm.said < FRAMES // STRIPES:
        storm.strike()
        if storm.chance.random() < 0.1:
            storm.others_go_on()
    storm.others_go_on()
    storm.nothing_is_left()


def test_random_bytes_get_no_welcome_and_leave_nothing() -> None:
    service = Service()
    for seed in range(500):
        client = Client(service)
        client.say(Random(seed).randbytes(60))  # noqa: S311
        assert not client.connection.session.is_welcome
        assert not client.hear()
        client.leave()
    assert not len(service.reception)
    assert not service.reception._lost
