"""A service that refuses to read a request ends the conversation; its client does not insist."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import merq
import merq.aio
from merq.client.dialing import LAST_PAUSE_S, pause_after
from merq.client.remote import RemoteDriver
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.protocol.application.requests import DescribeQueue
from unit.aio.serving_aio import ORDERS, driver_of, refused, run, serving, until

ENDED = "the server ended the conversation"

UNREADABLE = DescribeQueue("no number")  # type: ignore[arg-type]
"""What no client of ours asks for: the service does not read it."""


def in_a_thread(folder: Path, story: Callable[[str], None]) -> None:
    """Tells a story of blocking calls to a service in this thread."""

    async def serve() -> None:
        async with serving(folder) as url:
            await asyncio.to_thread(story, url)

    run(serve())


def test_a_request_that_is_refused_twice_is_given_up_with_the_reason(tmp_path: Path) -> None:
    def story(url: str) -> None:
        with merq.connect(url) as mq:
            driver: Any = mq._driver
            assert isinstance(driver, RemoteDriver)
            queue = mq.create_queue(ORDERS)
            for times in (1, 2):
                with pytest.raises(MessageQueueError, match=ENDED) as caught:
                    driver.ask(UNREADABLE)
                assert caught.value.code == HResult.MQ_ERROR_INVALID_PARAMETER
                queue.send("x")
                assert driver._session.connections == 1 + 2 * times
            assert [each.body for each in queue.receive_many(5, timeout=0)] == ["x", "x"]

    in_a_thread(tmp_path / "d", story)


def test_in_a_loop_a_request_that_is_refused_twice_is_given_up_with_the_reason(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            driver = driver_of(mq)
            queue = await mq.create_queue(ORDERS)
            for times in (1, 2):
                wrong = await refused(HResult.MQ_ERROR_INVALID_PARAMETER, driver.ask(UNREADABLE))
                assert ENDED in str(wrong)
                await queue.send("x")
                assert driver._session.connections == 1 + 2 * times
            assert await queue.count() == 2

    run(story())


def test_who_asks_at_the_same_time_or_waits_for_a_message_is_not_to_blame(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            driver = driver_of(mq)
            queue = await mq.create_queue(ORDERS)
            other = await mq.create_queue(r".\private$\other")
            waiting = asyncio.create_task(queue.receive())
            await until(lambda: driver.unanswered == 1)
            results = await asyncio.gather(
                *(other.send(number) for number in range(5)),
                driver.ask(UNREADABLE),
                driver.ask(DescribeQueue(queue.number)),
                driver.ask(UNREADABLE),
                other.send(5),
                return_exceptions=True,
            )
            failed = [each for each in results if isinstance(each, BaseException)]
            assert [type(each) for each in failed] == [MessageQueueError] * 2
            assert all(ENDED in str(each) for each in failed)
            assert await other.count() == 6
            assert not waiting.done()
            await queue.send("x")
            assert (await waiting).body == "x"

    run(story())


def test_the_more_conversations_break_the_longer_the_pause_before_the_next() -> None:
    pauses = [pause_after(breaks) for breaks in range(12)]
    assert pauses[0] == 0
    assert pauses == sorted(pauses)
    assert 0 < pauses[1] < pauses[2] < pauses[3]
    assert pauses[-1] == pause_after(1 << 40) == LAST_PAUSE_S
