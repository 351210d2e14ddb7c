"""Everything that applications can do through `merq.aio`, with a real service."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID, uuid4

import pytest

import merq
import merq.aio
from merq.hresult import HResult
from merq.model.access import Access, Share
from merq.model.queue import OutgoingState
from merq.model.selecting import Seek
from merq.protocol.application.reports import Whereabouts
from merq.protocol.application.requests import Family
from unit.aio.serving_aio import ORDERS, refused, run, serving


def public_names(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize("name", ["Manager", "Queue", "OutgoingQueue", "Cursor", "Transaction"])
def test_every_method_of_the_blocking_client_has_its_counterpart(name: str) -> None:
    # Data pipelines block, and work in threads and processes of their own.
    without = {"bulk"} if name == "Manager" else set()
    assert public_names(getattr(merq, name)) - without <= public_names(getattr(merq.aio, name))


def test_connecting_can_be_awaited_or_entered(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d", name="alpha") as url:
            async with merq.aio.connect(url) as mq:
                assert mq.name == "alpha"
                assert isinstance(mq.guid, UUID)
            async with await merq.aio.connect(url) as again:
                assert again.guid == mq.guid
            plain = await merq.aio.connect(url)
            assert (await plain.status()).connections == 1
            await plain.close()
            await plain.close()
            await refused(HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE, plain.status())

    run(story())


def test_nobody_at_the_address_is_an_error_that_says_so(tmp_path: Path) -> None:
    async def story() -> None:
        with pytest.raises(merq.MessageQueueError, match="is `merq serve` running"):
            await merq.aio.connect(f"unix:{tmp_path / 'none.sock'}")
        with pytest.raises(merq.MessageQueueError, match="longer than"):
            await merq.aio.connect(f"unix:{tmp_path / ('x' * 200)}")

    run(story())


def test_queues_are_made_found_changed_and_deleted(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            kind = uuid4()
            queue = await mq.create_queue(ORDERS, label="all orders", quota_kb=77, type_id=kind)
            assert await queue.path_name() == ORDERS
            assert await queue.label() == "all orders"
            assert not await queue.transactional()
            properties = await queue.properties()
            assert (properties.quota, properties.type_id) == (77, kind)
            await queue.change(label="orders", journal=True)
            assert await queue.label() == "orders"
            with pytest.raises(merq.MessageQueueError, match="cannot be changed"):
                await queue.change(transactional=True)
            with pytest.raises(TypeError, match="no 'colour'"):
                await mq.create_queue(ORDERS, colour="red")  # type: ignore[call-arg]
            found = await mq.queue(ORDERS)
            assert found.number == queue.number
            assert [each.number for each in await mq.queues()] == [queue.number]
            assert [each.properties.path_name for each in await mq.reports()] == [ORDERS]
            assert await mq.reports(Family.SYSTEM)
            await queue.delete()
            await refused(HResult.MQ_ERROR_QUEUE_NOT_FOUND, mq.queue(ORDERS))
            assert "queue" in repr(queue)

    run(story())


def test_messages_are_sent_received_and_peeked_in_every_way(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            first = await queue.send("first", label="one")
            second = await queue.send(merq.Message(body=b"second", correlation_id=bytes(range(20))))
            third, fourth = await queue.send_many(["third", "fourth"], recoverable=True)
            assert await queue.send_many([]) == []
            assert await queue.count() == (await queue.report()).messages == 4

            peeked = await queue.peek()
            assert (peeked.id, peeked.body, peeked.label) == (first, "first", "one")
            assert (await queue.peek_by_id(third)).body == "third"
            assert (await queue.peek_by_correlation_id(bytes(range(20)))).id == second
            following = await queue.peek_by_lookup_id(peeked.lookup_id, Seek.NEXT)
            assert following.id == second
            assert [each.body async for each in queue.peek_all()] == [
                "first",
                b"second",
                "third",
                "fourth",
            ]

            assert (await queue.receive_by_id(third)).recoverable
            assert (await queue.receive_by_correlation_id(bytes(range(20)))).id == second
            assert (await queue.receive_by_lookup_id(peeked.lookup_id)).id == first
            assert [each.id for each in await queue.receive_many(9)] == [fourth]
            with pytest.raises(merq.ReceiveTimeout):
                await queue.receive(timeout=0)
            await queue.send_many(range(5))
            assert (await queue.receive(timeout=5)).body == 0
            assert await queue.purge() == 4

    run(story())


def test_peeking_all_goes_on_beyond_one_answer(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            assert [each async for each in queue.peek_all()] == []
            await queue.send_many(range(250))
            assert [each.body async for each in queue.peek_all()] == list(range(250))
            await queue.delete()
            with pytest.raises(merq.MessageQueueError):
                [each async for each in queue.peek_all()]

    run(story())


def test_a_cursor_walks_over_messages(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            await queue.send_many(["a", "b", "c"])
            async with await queue.cursor() as cursor:
                assert (await cursor.peek()).body == "a"
                assert (await cursor.peek_next()).body == "b"
                assert (await cursor.receive()).body == "b"
                assert (await cursor.peek(timeout=1)).body == "c"
            await cursor.close()
            await refused(HResult.MQ_ERROR_INVALID_HANDLE, cursor.peek())

    run(story())


def test_a_queue_that_is_open_for_one_is_shut_for_others_until_it_is_closed(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            await mq.create_queue(ORDERS)
            async with await mq.open_queue(ORDERS, Access.RECEIVE, Share.DENY_RECEIVE) as mine:
                other = mq.open_queue(ORDERS)
                await refused(HResult.MQ_ERROR_SHARING_VIOLATION, other)
                assert mine.number
            await mine.close()
            async with await mq.open_queue(ORDERS, Access.SEND) as sending:
                await sending.send("x")
                await refused(HResult.MQ_ERROR_ACCESS_DENIED, sending.receive(timeout=0))

    run(story())


def test_messages_move_to_subqueues_and_back(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            await queue.send("x")
            later = await queue.subqueue("later")
            assert [each.number for each in await queue.subqueues()] == [later.number]
            message = await queue.peek()
            await queue.move(message, later)
            assert (await later.peek(timeout=0)).body == "x"
            await later.move(message.lookup_id, queue)
            received = await queue.receive(timeout=0)
            assert (received.body, message.move_count, received.move_count) == ("x", 0, 2)
            async with merq.aio.connect(url) as other:
                foreign = await other.queue(ORDERS)
                await refused(HResult.MQ_ERROR_INVALID_PARAMETER, queue.move(1, foreign))
                await refused(HResult.MQ_ERROR_INVALID_PARAMETER, queue.move(1, 7))  # type: ignore[arg-type]

    run(story())


def test_a_transaction_commits_or_aborts_with_its_block(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS, transactional=True)
            async with mq.transaction() as tx:
                await asyncio.gather(*(queue.send(number, tx=tx) for number in range(10)))
                await queue.send_many([10, 11], tx=tx)
                assert await queue.count() == 0
            assert await queue.count() == 12

            async def fail() -> None:
                async with mq.transaction() as tx:
                    assert (await queue.receive(tx=tx, timeout=1)).body == 0
                    raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await fail()
            async with mq.transaction() as tx:
                received = await queue.receive(tx=tx)
                assert (received.body, received.abort_count) == (0, 1)
                assert len(await queue.receive_many(20, tx=tx)) == 11
            await refused(HResult.MQ_ERROR_TRANSACTION_SEQUENCE, queue.send(1, tx=tx))
            await refused(HResult.MQ_ERROR_TRANSACTION_USAGE, queue.send(1))
            tx = mq.transaction()
            await queue.send("x", tx=tx)
            await tx.abort()
            assert await queue.count() == 0
            assert "ended" in repr(tx)

    run(story())


def test_a_prepared_transaction_is_ended_by_whoever_finds_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS, transactional=True)
            async with mq.transaction() as tx:
                await queue.send("x", tx=tx)
                name = await tx.prepare()
            assert tx.name == name
            (found,) = await mq.prepared_transactions()
            assert found.name == name
            await found.commit()
            assert (await queue.peek()).body == "x"
            assert await mq.prepared_transactions() == []

    run(story())


def test_a_transaction_belongs_to_its_connection(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            serving(tmp_path / "d") as url,
            merq.aio.connect(url) as mq,
            merq.aio.connect(url) as other,
        ):
            queue = await mq.create_queue(ORDERS, transactional=True)
            foreign = other.transaction()
            await refused(HResult.MQ_ERROR_TRANSACTION_USAGE, queue.send(1, tx=foreign))
            await refused(HResult.MQ_ERROR_INVALID_PARAMETER, queue.send(1, tx=5))  # type: ignore[arg-type]

    run(story())


def test_messages_to_other_computers_wait_in_outgoing_queues(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d", name="alpha") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            both = r"DIRECT=OS:alpha\private$\orders,DIRECT=OS:beta\private$\orders"
            sent = await mq.send(both, "hello", label="x")
            assert (await queue.receive(timeout=0)).id == sent
            (outgoing,) = await mq.outgoing_queues()
            assert await outgoing.destination() == r"DIRECT=OS:beta\PRIVATE$\orders"
            await outgoing.pause()
            assert await outgoing.state() is OutgoingState.ON_HOLD
            await outgoing.resume()
            assert await outgoing.state() is not OutgoingState.ON_HOLD
            await outgoing.send("more")
            assert await outgoing.count() == 2

    run(story())


def test_the_queue_manager_says_how_it_is_and_where_messages_are(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            sent = await queue.send("x", label="traced")
            (sighting,) = await mq.why(sent)
            assert (sighting.label, sighting.whereabouts) == ("traced", Whereabouts.WAITING)
            status = await mq.status()
            assert (status.messages, status.connections) == (1, 1)
            assert not await mq.throttled()
            await refused(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, mq.why("nonsense"))

    run(story())


def test_bad_arguments_are_refused_before_anything_is_asked(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, merq.aio.connect(url) as mq:
            queue = await mq.create_queue(ORDERS)
            invalid = HResult.MQ_ERROR_INVALID_PARAMETER
            await refused(invalid, queue.receive_many(0))
            await refused(invalid, queue.receive(timeout="soon"))  # type: ignore[arg-type]
            await refused(invalid, queue.send_many("text"))
            await refused(invalid, mq.reports("all"))  # type: ignore[arg-type]
            await refused(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, queue.send(1, priority=9))
            for prefetch in (0, -1, 10**9, True):
                with pytest.raises(merq.MessageQueueError):
                    queue.receive_all(prefetch=prefetch)
            with pytest.raises(TypeError):
                await queue.send(merq.Message(body=1), label="x")

    run(story())
