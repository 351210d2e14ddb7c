"""[MS-MQQB] 3.1.7.6 to 3.1.7.9: which answers to a ping count, over UDP on this machine."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from uuid import UUID

import pytest

from kit.exchange import Manager
from merq.net.pinging import Pinger
from merq.wire.ping import Ping, PingFlags
from merq.wire.reader import Reader

ADDRESS = "127.0.0.1"
OURS = UUID(int=0xAAAA)
OTHER = UUID(int=0xBBBB)
Answers = Callable[[Ping], list[bytes]]


@contextmanager
def answering(answers: Answers) -> Iterator[tuple[int, list[Ping]]]:
    """Somebody who answers pings in a way of his own; gives the port and what he was asked."""
    asked: list[Ping] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind((ADDRESS, 0))
        listening.settimeout(10.0)

        def serve() -> None:
            while True:
                data, sender = listening.recvfrom(1 << 16)
                if not data:
                    return
                asked.append(Ping.unpack(Reader(data)))
                for answer in answers(asked[-1]):
                    listening.sendto(answer, sender)

        thread = Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1], asked
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ending:
                ending.sendto(b"", listening.getsockname())
            thread.join()


def pinger() -> Pinger:
    return Pinger(Manager(name="one", address="10.0.0.1", guid=OURS).exchange)


def response(cookie: int, *, refused: bool = False) -> bytes:
    return Ping(flags=PingFlags(refused=refused), cookie=cookie, qm_guid=OTHER).pack()


def ask(answers: Answers, times: int = 1) -> tuple[list[bool], list[Ping]]:
    """Whether somebody would take a session, and what he was asked."""
    with answering(answers) as (port, asked):
        asking = pinger()

        async def all_of_them() -> list[bool]:
            return [await asking.ask(ADDRESS, port) for _ in range(times)]

        return asyncio.run(all_of_them()), asked


@pytest.mark.spec("MS-MQQB 3.1.7.6#request")
def test_each_ping_has_the_next_cookie_and_says_who_asks() -> None:
    _, asked = ask(lambda it: [response(it.cookie)], times=3)
    first = asked[0].cookie
    assert [each.cookie for each in asked] == [first, first + 1, first + 2]
    assert {each.qm_guid for each in asked} == {OURS}
    assert not any(each.flags.refused for each in asked)


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.7.6#rStatus", "MS-MQQB 3.1.7.9")
def test_an_answer_says_whether_a_session_would_be_taken(refused: bool) -> None:
    found, _ = ask(lambda it: [response(it.cookie, refused=refused)])
    assert found == [not refused]


@pytest.mark.spec("MS-MQQB 3.1.7.8#signature", "MS-MQQB 3.1.7.8#cookie", "E77")
def test_what_is_no_answer_or_one_to_another_ping_is_passed_over() -> None:
    def confusing(it: Ping) -> list[bytes]:
        wrong = bytearray(response(it.cookie, refused=True))
        place = bytes(wrong).index(b"\x48\x55")
        wrong[place : place + 2] = b"\x49\x55"
        return [b"x", bytes(wrong), response(it.cookie + 1, refused=True), response(it.cookie)]

    found, _ = ask(confusing)
    assert found == [True]


@pytest.mark.spec("MS-MQQB 3.1.7.8#late")
def test_a_second_answer_changes_nothing() -> None:
    found, asked = ask(lambda it: [response(it.cookie), response(it.cookie, refused=True)], times=2)
    assert found == [True, True]
    assert len(asked) == 2


@pytest.mark.spec("MS-MQQB 3.1.7.6#timer", "MS-MQQB 3.1.6.8")
def test_who_gets_no_answer_does_not_wait_for_ever() -> None:
    found, asked = ask(lambda _: [])
    assert (found, len(asked)) == ([False], 1)
