"""Receiving: time-outs, cancelled tasks, and streams that lose nothing."""

from __future__ import annotations

import asyncio
import gc
import time
from pathlib import Path

import pytest

import merq
import merq.aio
from merq.hresult import HResult
from merq.model.selecting import ByLookup, ByMessageId, Seek
from merq.protocol.application.requests import EndReceive, Read
from unit.aio.serving_aio import ORDERS, driver_of, proxied, refused, run, serving, until


async def bodies(queue: merq.aio.Queue) -> list[object]:
    return [each.body async for each in queue.peek_all()]


async def somebody_waits(queue: merq.aio.Queue) -> None:
    for _ in range(1000):
        if (await queue.report()).readers:
            return
        await asyncio.sleep(0.002)
    raise AssertionError("nobody came to wait")


async def all_free(queue: merq.aio.Queue) -> None:
    """Returns when nobody waits at a queue, and nothing in it is held."""
    for _ in range(1000):
        report = await queue.report()
        if not report.readers and not report.locked:
            return
        await asyncio.sleep(0.002)
    raise AssertionError("somebody still waits, or holds a message")


def test_a_receive_ends_when_its_time_is_over(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            began = time.monotonic()
            with pytest.raises(merq.ReceiveTimeout):
                await queue.receive(timeout=0.05)
            with pytest.raises(merq.ReceiveTimeout):
                await queue.peek(timeout=0.05)
            assert 0.09 < time.monotonic() - began < 5
            assert (await queue.report()).readers == 0
            waiting = asyncio.create_task(queue.receive(timeout=20))
            await asyncio.sleep(0)
            await queue.send("late")
            assert (await waiting).body == "late"

    run(story())


def test_many_tasks_wait_at_one_queue_and_each_gets_its_message(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            waiting = [asyncio.create_task(queue.receive()) for _ in range(200)]
            await asyncio.gather(*(queue.send(number) for number in range(200)))
            received = await asyncio.gather(*waiting)
            assert sorted(each.app_specific for each in received) == [0] * 200
            assert [each.body for each in received] == list(range(200))
            assert await queue.count() == 0

    run(story())


def test_however_many_wait_others_get_through_and_so_do_time_outs(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            waiting = [asyncio.create_task(queue.receive(timeout=2)) for _ in range(5000)]
            await asyncio.sleep(0)
            assert await queue.send("x")
            results = await asyncio.gather(*waiting, return_exceptions=True)
            late = [each for each in results if isinstance(each, merq.ReceiveTimeout)]
            assert len(late) == 4999

    run(story())


def test_a_task_that_is_cancelled_leaves_its_message_in_the_queue(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            waiting = asyncio.create_task(queue.receive())
            await somebody_waits(queue)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await all_free(queue)
            await queue.send("x")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await (await mq.create_queue(r".\private$\empty")).receive()
            assert (await queue.receive(timeout=1)).body == "x"
            assert driver_of(mq).unanswered == 0

    run(story())


def test_whenever_a_receive_is_cancelled_the_message_is_there_or_was_being_removed(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with (
            serving(tmp_path / "d") as url,
            proxied(tmp_path, url) as proxy,
            merq.aio.connect(proxy.url) as mq,
        ):
            queue = await mq.create_queue(ORDERS)
            for turns in range(40):
                await queue.send(turns)
                proxy.requests.clear()
                task = asyncio.create_task(queue.receive())
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait((task,))
                await all_free(queue)
                removed = any(each.delete for each in proxy.asked(EndReceive))
                assert await queue.count() == (0 if removed else 1), turns
                if not task.cancelled():
                    assert removed
                await queue.purge()

    run(story())


def test_held_messages_go_when_their_block_ends_well_and_back_otherwise(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            serving(tmp_path / "d") as url,
            proxied(tmp_path, url) as proxy,
            merq.aio.connect(proxy.url) as mq,
        ):
            queue = await mq.create_queue(ORDERS)
            await queue.send_many(range(6))

            async def fail() -> None:
                async with queue.hold(2, timeout=1) as held:
                    assert [each.body for each in held] == [0, 1]
                    raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await fail()
            async with queue.hold(2) as held:
                assert [each.body for each in held] == [0, 1]
                assert (await queue.report()).locked == 2
            async with queue.hold(selection=ByLookup(0, Seek.LAST)) as held:
                assert [each.body for each in held] == [5]
            assert await bodies(queue) == [2, 3, 4]

            async def be_cut_off() -> None:
                async with queue.hold(2):
                    proxy.cut()
                    await until(lambda: driver_of(mq).connection == 0)

            await refused(HResult.MQ_ERROR_TRANSACTION_SEQUENCE, be_cut_off())
            await all_free(queue)
            assert await bodies(queue) == [2, 3, 4]
            with pytest.raises(merq.ReceiveTimeout):
                await queue.hold(selection=ByMessageId(bytes(20)), timeout=0.05).__aenter__()

    run(story())


# Streams.


def test_a_stream_gives_all_messages_in_order_and_removes_them(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            serving(tmp_path / "d") as url,
            proxied(tmp_path, url) as proxy,
            merq.aio.connect(proxy.url) as mq,
        ):
            queue = await mq.create_queue(ORDERS)
            await queue.send_many(range(1000))
            seen = []
            async with queue.receive_all(prefetch=200) as messages:
                async for message in messages:
                    seen.append(message.body)
                    if len(seen) == 1000:
                        break
            assert seen == list(range(1000))
            assert await queue.count() == 0
            assert len(proxy.asked(EndReceive)) <= 11
            assert {each.most for each in proxy.asked(Read)} == {100}
            assert driver_of(mq).unanswered == 0

    run(story())


def test_a_stream_waits_for_messages_that_come_later(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)

            async def consume() -> list[object]:
                seen: list[object] = []
                async with queue.receive_all(prefetch=1) as messages:
                    async for message in messages:
                        seen.append(message.body)
                        if message.body == "end":
                            break
                return seen

            consuming = asyncio.create_task(consume())
            for body in ("a", "b", "c", "end"):
                await queue.send(body)
                await asyncio.sleep(0.005)
            assert await consuming == ["a", "b", "c", "end"]
            assert await queue.count() == 0

    run(story())


def test_what_was_processed_is_removed_when_nothing_more_is_at_hand(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            await queue.send_many(range(3))
            stream = queue.receive_all()
            assert [(await anext(stream)).body for _ in range(3)] == [0, 1, 2]
            waiting = asyncio.ensure_future(anext(stream))
            await somebody_waits(queue)
            for _ in range(1000):
                if not await queue.count():
                    break
            with pytest.raises(RuntimeError, match="another task"):
                await anext(stream)
            await queue.send(3)
            assert (await waiting).body == 3
            await stream.aclose()
            assert await bodies(queue) == [3]
            await stream.aclose()
            with pytest.raises(StopAsyncIteration):
                await anext(stream)

    run(story())


def test_a_loop_that_is_left_by_break_gives_back_its_message_and_the_rest(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            await queue.send_many(range(10))
            async for message in queue.receive_all(prefetch=6):
                if message.body == 4:
                    break
            gc.collect()
            await all_free(queue)
            assert await bodies(queue) == [4, 5, 6, 7, 8, 9]

    run(story())


def test_a_block_that_is_left_by_an_exception_gives_back_the_message_at_hand(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            await queue.send_many(range(10))

            async def fail() -> None:
                async with queue.receive_all() as messages:
                    async for message in messages:
                        if message.body == 7:
                            raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await fail()
            assert await bodies(queue) == [7, 8, 9]
            async with queue.receive_all() as messages:
                async for message in messages:
                    if message.body == 8:
                        break
            assert await bodies(queue) == [9]

    run(story())


def test_a_stream_that_is_cancelled_gives_everything_back(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            await queue.send_many(range(5))
            begun = asyncio.Event()

            async def consume() -> None:
                async with queue.receive_all() as messages:
                    async for message in messages:
                        if message.body == 2:
                            begun.set()
                            await asyncio.sleep(100)

            consuming = asyncio.create_task(consume())
            await begun.wait()
            consuming.cancel()
            with pytest.raises(asyncio.CancelledError):
                await consuming
            assert await bodies(queue) == [2, 3, 4]

    run(story())


def test_a_client_that_crashes_loses_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            await queue.send_many(range(20))
            other = await merq.aio.connect(url)
            stream = (await other.queue(ORDERS)).receive_all(prefetch=10)
            seen = [(await anext(stream)).body for _ in range(8)]
            await asyncio.sleep(0.05)
            link = driver_of(other)._link
            assert link is not None
            driver_of(other)._closed = True  # nothing is made good
            link.abort()
            await all_free(queue)
            assert seen == list(range(8))
            assert await bodies(queue) == list(range(5, 20))  # one batch of five was used up
            driver_of(other)._closed = False
            await other.close()

    run(story())


def test_two_streams_share_a_queue_without_doubling_anything(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            await queue.send_many(range(400))
            seen: list[object] = []

            async def consume() -> None:
                async with queue.receive_all(prefetch=20) as messages:
                    async for message in messages:
                        if message.body == "end":
                            return
                        seen.append(message.body)
                        await asyncio.sleep(0)

            consuming = [asyncio.create_task(consume()) for _ in range(2)]
            await until(lambda: len(seen) == 400)
            await queue.send("end")
            await asyncio.wait(consuming, return_when=asyncio.FIRST_COMPLETED)
            await queue.send("end")
            await asyncio.gather(*consuming)
            assert sorted(map(str, seen)) == sorted(map(str, range(400)))
            assert await queue.count() == 0

    run(story())


def test_a_stream_says_when_its_queue_is_gone(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            waiting = asyncio.ensure_future(anext(queue.receive_all()))
            await somebody_waits(queue)
            await queue.delete()
            with pytest.raises(merq.MessageQueueError) as caught:
                await waiting
            assert caught.value.code == HResult.MQ_ERROR_QUEUE_DELETED

    run(story())


def test_a_refusal_to_remove_what_was_processed_comes_out_of_the_stream(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            await queue.send_many(range(4))
            stream = queue.receive_all(prefetch=4)
            assert [(await anext(stream)).body for _ in range(2)] == [0, 1]
            await queue.delete()
            with pytest.raises(merq.MessageQueueError, match="deleted"):
                [each async for each in stream]
            await stream.aclose()

    run(story())


def test_whoever_waits_is_told_when_the_connection_is_closed(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url:
            mq = await merq.aio.connect(url)
            queue = await mq.create_queue(ORDERS)
            waiting = asyncio.create_task(queue.receive())
            stream = queue.receive_all()
            streaming = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0.01)
            await mq.close()
            unavailable = HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE
            for each in (waiting, streaming):
                with pytest.raises(merq.MessageQueueError) as caught:
                    await each
                assert caught.value.code == unavailable
            await stream.aclose()
            await refused(unavailable, queue.send("x"))

    run(story())
