"""What many tasks send in one turn of the loop travels together."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import merq
import merq.aio
from merq.aio.driving import UNANSWERED_BYTES_MAX
from merq.aio.waiting import JOINT_BYTES_MAX, JOINT_MESSAGES_MAX, Room
from merq.hresult import HResult
from merq.protocol.application.requests import DescribeQueue, Send
from unit.aio.serving_aio import ORDERS, driver_of, proxied, refused, run, serving


def test_sends_of_one_turn_are_one_request_and_keep_their_order(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            serving(tmp_path / "d") as url,
            proxied(tmp_path, url) as proxy,
            merq.aio.connect(proxy.url) as mq,
        ):
            queue = await mq.create_queue(ORDERS)
            ids = await asyncio.gather(*(queue.send(number) for number in range(300)))
            assert [len(each.packets) for each in proxy.asked(Send)] == [300]
            assert len(proxy.asked(DescribeQueue)) == 1
            messages = [each async for each in queue.peek_all()]
            assert [each.id for each in messages] == ids
            assert [each.body for each in messages] == list(range(300))

    run(story())


@pytest.mark.limit("merq.aio.waiting.JOINT_BYTES_MAX", "merq.aio.waiting.JOINT_MESSAGES_MAX")
def test_a_joint_request_has_limits(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            serving(tmp_path / "d") as url,
            proxied(tmp_path, url) as proxy,
            merq.aio.connect(proxy.url) as mq,
        ):
            queue = await mq.create_queue(ORDERS)
            count = 2 * JOINT_MESSAGES_MAX + 1
            await asyncio.gather(*(queue.send(b"") for _ in range(count)))
            assert [len(each.packets) for each in proxy.asked(Send)] == [500, 500, 1]
            proxy.requests.clear()
            large = bytes(JOINT_BYTES_MAX // 2)
            await asyncio.gather(*(queue.send(large) for _ in range(5)))
            assert [len(each.packets) for each in proxy.asked(Send)] == [2, 2, 1]

    run(story())


def test_only_what_is_sent_alike_is_joined_and_a_queue_keeps_its_order(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            serving(tmp_path / "d") as url,
            proxied(tmp_path, url) as proxy,
            merq.aio.connect(proxy.url) as mq,
        ):
            queue = await mq.create_queue(ORDERS)
            other = await mq.create_queue(r".\private$\others")
            dead = r".\private$\dead"
            await mq.create_queue(dead)
            await asyncio.gather(queue.send(0), other.send(0))
            proxy.requests.clear()
            await asyncio.gather(
                queue.send(1),
                other.send(1),
                queue.send(2),
                queue.send(3, dead_letter=True, dead_letter_queue=dead),
                other.send(2),
                queue.send(4),
            )
            joined = {(each.queue, len(each.packets)) for each in proxy.asked(Send)}
            assert joined == {(queue.number, 2), (queue.number, 1), (other.number, 2)}
            assert [each.body async for each in queue.peek_all()] == [0, 1, 2, 3, 4]

    run(story())


def test_if_a_joint_request_is_refused_everybody_gets_the_answer_to_his_own(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with (
            serving(tmp_path / "d") as url,
            proxied(tmp_path, url) as proxy,
            merq.aio.connect(proxy.url) as mq,
        ):
            queue = await mq.create_queue(ORDERS, quota_kb=16)
            sends = (queue.send(bytes(2048), app_specific=number) for number in range(20))
            results = await asyncio.gather(*sends, return_exceptions=True)
            sent = [each for each in results if isinstance(each, str)]
            wrong = [each for each in results if isinstance(each, merq.MessageQueueError)]
            assert len(sent) + len(wrong) == 20
            assert 1 < len(sent) < 10
            assert results[: len(sent)] == sent  # in order, as long as there is room
            assert {each.code for each in wrong} == {HResult.MQ_ERROR_INSUFFICIENT_RESOURCES}
            assert len({id(each) for each in wrong}) == len(wrong)
            messages = [each async for each in queue.peek_all()]
            assert [each.id for each in messages] == sent
            assert [len(each.packets) for each in proxy.asked(Send)] == [20] + [1] * 20

    run(story())


def test_a_send_to_a_queue_that_is_gone_is_refused_for_each(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            await queue.delete()
            results = await asyncio.gather(
                *(queue.send(number) for number in range(3)), return_exceptions=True
            )
            assert all(isinstance(each, merq.MessageQueueError) for each in results)

    run(story())


def test_a_send_that_is_cancelled_before_the_turn_ends_is_not_sent(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            await queue.send("first")
            tasks = [asyncio.create_task(queue.send(number)) for number in range(3)]
            asyncio.get_running_loop().call_soon(tasks[1].cancel)
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert isinstance(results[1], asyncio.CancelledError)
            assert [each.body async for each in queue.peek_all()] == ["first", 0, 2]
            assert driver_of(mq)._room.taken == 0

    run(story())


def test_what_is_asked_after_a_send_comes_after_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            await queue.send(0)
            _, _, purged = await asyncio.gather(queue.send(1), queue.send(2), queue.purge())
            assert purged == 3

    run(story())


def test_many_messages_at_once_are_sent_whole_or_not_at_all(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS, quota_kb=16)
            many = queue.send_many([bytes(2048)] * 20)
            await refused(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, many)
            too_many = queue.send_many([bytes((4 << 20) - 1000)] * 5)
            error = await refused(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, too_many)
            assert "send less" in error.text
            assert await queue.count() == 0
            assert driver_of(mq)._room.taken == 0

    run(story())


@pytest.mark.limit("merq.aio.driving.UNANSWERED_BYTES_MAX")
def test_senders_wait_when_too_much_is_without_an_answer(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            most = 0

            async def send() -> None:
                nonlocal most
                await queue.send(bytes(1 << 20))
                most = max(most, driver_of(mq)._room.taken)

            await asyncio.gather(*(send() for _ in range(40)))
            assert 8 << 20 < most <= UNANSWERED_BYTES_MAX
            assert driver_of(mq)._room.taken == 0
            assert await queue.count() == 40

    run(story())


def test_room_is_given_in_the_order_in_which_it_was_asked_for() -> None:
    async def story() -> None:
        room = Room(asyncio.get_running_loop(), 10)
        assert room.take(100)  # one may always be sent
        order: list[int] = []

        async def come(size: int) -> None:
            await room.wait(size)
            order.append(size)

        tasks = [asyncio.create_task(come(size)) for size in (8, 3, 2)]
        await asyncio.sleep(0)
        assert not room.take(1)
        tasks[1].cancel()
        room.leave(100)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert order == [8, 2]
        assert room.taken == 10
        last = asyncio.create_task(come(5))
        await asyncio.sleep(0)
        room.leave(10)
        last.cancel()  # it was let in, but never knew
        with pytest.raises(asyncio.CancelledError):
            await last
        assert room.taken == 0

    run(story())
