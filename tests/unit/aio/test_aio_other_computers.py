"""Queues on other computers, from an event loop and from a thread, over a real socket."""

from __future__ import annotations

import asyncio
from pathlib import Path

import merq
import merq.aio
from merq.hresult import HResult
from merq.protocol.application.requests import SendManyTo
from unit.aio.serving_aio import ORDERS, proxied, refused, run, serving, until

FAR = r"DIRECT=TCP:127.0.0.1\private$\nobody"
"""A name that leads to the service itself: no queue is there."""
AWAY = "PRIVATE=0b0d4a8f-5a0e-4f0a-9b0c-6f4d2f3e1a77\\00000010"
"""Of a queue manager of which nobody knows where it is."""


def test_many_messages_are_one_request(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            serving(tmp_path / "d") as url,
            proxied(tmp_path, url) as proxy,
            merq.aio.connect(proxy.url) as mq,
        ):
            await mq.take_offline()
            ids = await mq.send_many(AWAY, range(500), recoverable=True)
            assert [len(each.packets) for each in proxy.asked(SendManyTo)] == [500]
            (queue,) = await mq.outgoing_queues()
            messages = [each async for each in queue.peek_all()]
            assert [each.id for each in messages] == ids
            assert [each.body for each in messages] == list(range(500))
            assert await mq.send_many(AWAY, []) == []
            async with mq.transaction() as tx:
                await mq.send_many(AWAY, ["a", "b"], tx=tx)
            assert await queue.count() == 502
            await refused(HResult.MQ_ERROR_QUEUE_NOT_FOUND, mq.send_many(FAR, ["a"]))

    run(story())


def test_many_messages_are_sent_once_though_the_answer_is_lost(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            serving(tmp_path / "d") as url,
            proxied(tmp_path, url) as proxy,
            merq.aio.connect(proxy.url) as mq,
        ):
            await mq.take_offline()
            proxy.is_mute = True
            sending = asyncio.create_task(mq.send_many(AWAY, ["a", "b"], recoverable=True))
            await until(lambda: bool(proxy.asked(SendManyTo)))
            await asyncio.sleep(0.05)
            proxy.is_mute = False
            proxy.cut()
            ids = await sending
            assert len(proxy.asked(SendManyTo)) == 2, "it was asked again"
            (queue,) = await mq.outgoing_queues()
            assert [each.id async for each in queue.peek_all()] == ids

    run(story())


def test_the_way_to_others_is_told(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            await mq.take_offline()
            assert not (await mq.status()).online
            await mq.send(AWAY, "waits")
            (queue,) = await mq.outgoing_queues()
            told = await queue.transfer()
            assert (told.state, told.waiting) == (merq.OutgoingState.INACTIVE, 1)
            assert await mq.links() == []
            assert await (await mq.create_queue(ORDERS)).sequences() == []
            await mq.bring_online()
            assert (await mq.status()).online

            async with asyncio.timeout(20):
                while not (await queue.transfer()).history:  # noqa: ASYNC110 - it is asked for
                    await asyncio.sleep(0.01)
            told = await queue.transfer()
            assert told.state is merq.OutgoingState.NEED_VALIDATION
            assert told.history[0].status == "RoutingDataNotAvailable"
            assert told.history[0].error == HResult.MQ_ERROR_MACHINE_NOT_FOUND
            assert told.history[0].text

    run(story())


def test_a_thread_asks_the_same(tmp_path: Path) -> None:
    def blocking(url: str) -> None:
        with merq.connect(url) as mq:
            mq.take_offline()
            ids = mq.send_many(AWAY, [b"a", b"b"])
            (queue,) = mq.outgoing_queues()
            assert [each.id for each in queue.peek_all()] == ids
            assert queue.transfer().waiting == 2
            assert mq.links() == []
            assert mq.create_queue(ORDERS).sequences() == []
            mq.bring_online()

    async def story() -> None:
        async with serving(tmp_path / "d") as url:
            await asyncio.to_thread(blocking, url)

    run(story())
