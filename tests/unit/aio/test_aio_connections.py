"""Connections that are lost, made again, refused, encrypted and closed."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

import merq
import merq.aio
from kit.certificates import Authority
from merq.client.addresses import Address
from merq.client.dialing import Dialing
from merq.hresult import HResult
from merq.protocol.application.requests import End, EndReceive, Read, Send
from merq.service.sections import ListenSettings
from merq.service.settings import ServiceSettings
from merq.service.tokens import new_token
from unit.aio.serving_aio import (
    ORDERS,
    PATIENCE_S,
    driver_of,
    proxied,
    refused,
    run,
    served,
    serving,
    until,
)

UNAVAILABLE = HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE


def test_a_receive_that_waits_goes_on_over_the_next_connection(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            serving(tmp_path / "d") as url,
            proxied(tmp_path, url) as proxy,
            merq.aio.connect(proxy.url) as mq,
        ):
            queue = await mq.create_queue(ORDERS)
            waiting = asyncio.create_task(queue.receive())
            await until(lambda: bool(proxy.asked(Read)))
            proxy.cut()
            await until(lambda: proxy.accepted == 2)
            async with merq.aio.connect(url) as other:
                await (await other.queue(ORDERS)).send("x")
            assert (await waiting).body == "x"
            assert await queue.count() == 0

    run(story())


def test_a_connection_that_nobody_needs_is_made_again_when_somebody_does(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            serving(tmp_path / "d") as url,
            proxied(tmp_path, url) as proxy,
            merq.aio.connect(proxy.url) as mq,
        ):
            queue = await mq.create_queue(ORDERS)
            proxy.cut()
            await until(lambda: driver_of(mq)._link is None)
            await asyncio.sleep(0.05)
            assert proxy.accepted == 1
            await queue.send("x")
            assert proxy.accepted == 2
            assert (await queue.receive(timeout=0)).body == "x"

    run(story())


def test_sends_whose_answers_are_lost_happen_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            serving(tmp_path / "d") as url,
            proxied(tmp_path, url) as proxy,
            merq.aio.connect(proxy.url) as mq,
        ):
            queue = await mq.create_queue(ORDERS)
            await queue.send("first", recoverable=True)
            proxy.is_mute = True
            sends = [asyncio.create_task(queue.send(n, recoverable=True)) for n in range(50)]
            await until(lambda: len(proxy.asked(Send)) == 2)
            await asyncio.sleep(0.05)
            proxy.cut()
            proxy.is_mute = False
            ids = await asyncio.gather(*sends)
            messages = [each async for each in queue.peek_all()]
            assert [each.id for each in messages[1:]] == ids
            assert [each.body for each in messages] == ["first", *range(50)]

    run(story())


def test_a_receive_whose_end_is_lost_happens_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            serving(tmp_path / "d") as url,
            proxied(tmp_path, url) as proxy,
            merq.aio.connect(proxy.url) as mq,
        ):
            queue = await mq.create_queue(ORDERS)
            for round_number in range(10):
                await queue.send_many(range(5))
                proxy.requests.clear()
                receiving = asyncio.create_task(queue.receive_many(3))
                others = [asyncio.create_task(queue.receive()) for _ in range(2)]
                for _ in range(3 * round_number):
                    await asyncio.sleep(0)
                proxy.cut()
                many = [each.body for each in await receiving]
                single = [(await each).body for each in others]
                if len(many) < 3:
                    many += [each.body for each in await queue.receive_many(3, timeout=1)]
                assert sorted(map(str, many + single)) == ["0", "1", "2", "3", "4"]
                report = await queue.report()
                assert (report.messages, report.locked) == (0, 0)

    run(story())


def test_a_send_is_in_doubt_if_the_service_was_started_anew(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, proxied(tmp_path, url) as proxy:
            mq = await merq.aio.connect(proxy.url)
            queue = await mq.create_queue(ORDERS)
            await queue.send("first", recoverable=True)
            proxy.is_mute = True
            sends = [asyncio.create_task(queue.send(n, recoverable=True)) for n in range(3)]
            waiting = asyncio.create_task(queue.receive_by_correlation_id(bytes(19) + b"x"))
            await until(lambda: len(proxy.asked(Send)) == 2)
            await asyncio.sleep(0.05)
            proxy.cut()
            proxy.is_shut = True
            proxy.is_mute = False
        async with serving(tmp_path / "d") as url, proxied(tmp_path, url) as proxy:
            results = await asyncio.gather(*sends, return_exceptions=True)
            assert all(isinstance(each, merq.InDoubt) for each in results)
            with pytest.raises(merq.MessageQueueError):
                await waiting
            assert await queue.count() == 4  # they had happened; nothing was sent twice
            await queue.send("last")
            await mq.close()

    run(story())


def test_whoever_waits_is_told_when_nobody_comes_back(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            serving(tmp_path / "d") as url,
            proxied(tmp_path, url) as proxy,
            merq.aio.connect(proxy.url, reconnect_s=0.2) as mq,
        ):
            queue = await mq.create_queue(ORDERS)
            await queue.send("x")
            proxy.is_mute = True
            waiting = asyncio.create_task(queue.receive_by_correlation_id(bytes(19) + b"x"))
            receiving = asyncio.create_task(queue.receive())
            sending = asyncio.create_task(queue.send("x"))
            await until(lambda: len(proxy.asked(Send)) == 2)
            proxy.is_shut = True
            proxy.cut()
            await until(lambda: driver_of(mq)._link is None)
            late = asyncio.create_task(queue.send("never left"))
            await refused(UNAVAILABLE, _awaited(receiving))
            await refused(UNAVAILABLE, _awaited(waiting))
            with pytest.raises(merq.InDoubt):
                await sending
            error = await refused(UNAVAILABLE, _awaited(late))
            assert not isinstance(error, merq.InDoubt)
            proxy.is_shut = proxy.is_mute = False
            assert await queue.count() == 2

    run(story())


async def _awaited(task: asyncio.Task[object]) -> object:
    return await task


def test_a_time_out_is_kept_while_there_is_no_connection(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            serving(tmp_path / "d") as url,
            proxied(tmp_path, url) as proxy,
            merq.aio.connect(proxy.url) as mq,
        ):
            queue = await mq.create_queue(ORDERS)
            began = time.monotonic()
            receiving = asyncio.create_task(queue.receive(timeout=0.3))
            await until(lambda: bool(proxy.asked(Read)))
            proxy.is_shut = True
            proxy.cut()
            await refused(UNAVAILABLE, _awaited(receiving))
            assert time.monotonic() - began < 5
            proxy.is_shut = False
            await queue.send("x")
            assert (await queue.receive(timeout=1)).body == "x"
            assert driver_of(mq).unanswered == 0

    run(story())


def test_a_time_out_is_kept_if_its_answer_is_lost(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            serving(tmp_path / "d") as url,
            proxied(tmp_path, url) as proxy,
            merq.aio.connect(proxy.url) as mq,
        ):
            queue = await mq.create_queue(ORDERS)
            proxy.is_mute = True
            receiving = asyncio.create_task(queue.receive(timeout=0.05))
            await until(lambda: len(proxy.asked(Read)) == 1)
            await asyncio.sleep(0.1)
            proxy.cut()
            proxy.is_mute = False
            with pytest.raises(merq.ReceiveTimeout):
                await receiving
            assert (await queue.report()).readers == 0

    run(story())


def test_a_transaction_does_not_survive_its_connection(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            serving(tmp_path / "d") as url,
            proxied(tmp_path, url) as proxy,
            merq.aio.connect(proxy.url) as mq,
        ):
            queue = await mq.create_queue(ORDERS, transactional=True)
            await asyncio.gather(queue.report())
            tx = mq.transaction()
            await queue.send("lost", tx=tx)
            proxy.cut()
            await refused(HResult.MQ_ERROR_TRANSACTION_SEQUENCE, tx.commit())
            assert await queue.count() == 0

    run(story())


def test_a_transaction_whose_beginning_was_not_answered_is_not_begun_again(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with (
            serving(tmp_path / "d") as url,
            proxied(tmp_path, url) as proxy,
            merq.aio.connect(proxy.url) as mq,
        ):
            queue = await mq.create_queue(ORDERS, transactional=True)
            async with mq.transaction() as tx:
                await queue.send("first", tx=tx)
            proxy.is_mute = True
            tx = mq.transaction()
            sending = asyncio.create_task(queue.send("lost", tx=tx))
            await until(lambda: len(proxy.asked(Send)) == 2)
            await asyncio.sleep(0.05)
            proxy.cut()
            proxy.is_mute = False
            await asyncio.wait((sending,))
            assert sending.exception() is None or isinstance(
                sending.exception(), merq.MessageQueueError
            )
            await refused(HResult.MQ_ERROR_TRANSACTION_SEQUENCE, tx.commit())
            assert await queue.count() == 1

    run(story())


def test_a_commit_whose_answer_is_lost_happens_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            serving(tmp_path / "d") as url,
            proxied(tmp_path, url) as proxy,
            merq.aio.connect(proxy.url) as mq,
        ):
            queue = await mq.create_queue(ORDERS, transactional=True)
            tx = mq.transaction()
            await queue.send("x", tx=tx)
            proxy.is_mute = True
            committing = asyncio.create_task(tx.commit())
            await until(lambda: bool(proxy.asked(End)))
            await asyncio.sleep(0.05)
            proxy.cut()
            proxy.is_mute = False
            await committing
            assert await queue.count() == 1

    run(story())


def test_a_stream_goes_on_after_lost_connections_and_loses_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            serving(tmp_path / "d") as url,
            proxied(tmp_path, url) as proxy,
            merq.aio.connect(proxy.url) as mq,
        ):
            queue = await mq.create_queue(ORDERS)
            await queue.send_many(range(300))
            seen: list[object] = []
            async with queue.receive_all(prefetch=20) as messages:
                async for message in messages:
                    seen.append(message.body)
                    if len(seen) % 70 == 0 and proxy.accepted < 4:
                        proxy.cut()
                        await asyncio.sleep(0.01)
                    if message.body == 299:
                        break
            assert set(seen) == set(range(300))
            assert len(seen) <= 300 + 3 * 20
            report = await queue.report()
            assert (report.messages, report.locked) == (0, 0)

    run(story())


def test_a_stream_says_if_it_is_in_doubt_what_was_removed(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, proxied(tmp_path, url) as proxy:
            mq = await merq.aio.connect(proxy.url)
            queue = await mq.create_queue(ORDERS)
            await queue.send_many(range(4), recoverable=True)
            stream = queue.receive_all(prefetch=4)
            assert [(await anext(stream)).body for _ in range(2)] == [0, 1]
            await asyncio.sleep(0.05)
            proxy.is_mute = True
            assert (await anext(stream)).body == 2
            await until(lambda: bool(proxy.asked(EndReceive)))
            await asyncio.sleep(0.05)
            proxy.cut()
            proxy.is_shut = True
        async with serving(tmp_path / "d") as url, proxied(tmp_path, url):
            with pytest.raises(merq.InDoubt):
                await anext(stream)
            assert [(await anext(stream)).body for _ in range(2)] == [2, 3]
            await stream.aclose()
            assert [each.body async for each in queue.peek_all()] == [3]
            await mq.close()

    run(story())


def test_closing_while_the_connection_is_being_made_leaves_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "d") as url, proxied(tmp_path, url) as proxy:
            mq = await merq.aio.connect(proxy.url)
            queue = await mq.create_queue(ORDERS)
            receiving = asyncio.create_task(queue.receive())
            await until(lambda: bool(proxy.asked(Read)))
            proxy.is_shut = True
            proxy.cut()
            await until(lambda: driver_of(mq)._reaching is not None)
            await asyncio.gather(mq.close(), mq.close())
            await refused(UNAVAILABLE, _awaited(receiving))

    run(story())


def test_who_says_nonsense_is_left(tmp_path: Path) -> None:
    class Nonsense(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            transport.write(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 10)

    async def story() -> None:
        path = tmp_path / "n.sock"
        server = await asyncio.get_running_loop().create_unix_server(Nonsense, path)
        with pytest.raises(merq.MessageQueueError, match="makes no sense"):
            await merq.aio.connect(f"unix:{path}")
        server.close()
        await server.wait_closed()

    run(story())


# Secrets.


def secured(folder: Path) -> tuple[ServiceSettings, Path]:
    authority = Authority.made(folder)
    tls = authority.issue("service", "127.0.0.1").settings()
    settings = ServiceSettings(data=folder / "d", tcp=ListenSettings(port=0), tls=tls)
    return settings, authority.ca_file


def test_tls_and_a_token_let_a_client_in_and_nothing_else_does(tmp_path: Path) -> None:
    async def story() -> None:
        settings, ca = secured(tmp_path)
        async with served(settings) as service:
            token, _ = new_token(settings.data, "app", now=datetime.now(UTC))
            url = f"tls://127.0.0.1:{service.tcp_port}"
            async with merq.aio.connect(url, token=token, ca=ca) as mq:
                queue = await mq.create_queue(ORDERS)
                large = bytes(1 << 20)
                await asyncio.gather(*(queue.send(large) for _ in range(5)))
                assert [each.body_bytes async for each in queue.peek_all()] == [large] * 5

                link = driver_of(mq)._link
                assert link is not None
                link.abort()
                assert (await queue.receive(timeout=5)).body == large
            for wrong in ("", "x" * 40):
                with pytest.raises(merq.MessageQueueError) as caught:
                    await merq.aio.connect(url, token=wrong, ca=ca)
                assert caught.value.code == HResult.MQ_ERROR_ACCESS_DENIED
            other = Authority.made(tmp_path / "other")
            with pytest.raises(merq.MessageQueueError, match="no trusted connection"):
                await merq.aio.connect(url, token=token, ca=other.ca_file)

    run(story())


def test_who_is_not_let_in_any_more_is_told_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        settings, ca = secured(tmp_path)
        async with served(settings) as service:
            token, _ = new_token(settings.data, "app", now=datetime.now(UTC))
            mq = await merq.aio.connect(
                f"tls://127.0.0.1:{service.tcp_port}", token=token, ca=ca, reconnect_s=PATIENCE_S
            )
            queue = await mq.create_queue(ORDERS)
            receiving = asyncio.create_task(queue.receive())
            await asyncio.sleep(0.05)
            driver_of(mq)._session._token = "none"  # noqa: S105 - as if it had been revoked
            link = driver_of(mq)._link
            assert link is not None
            began = time.monotonic()
            link.abort()
            error = await refused(UNAVAILABLE, _awaited(receiving))
            assert "does not let this client in" in error.text
            assert time.monotonic() - began < PATIENCE_S / 2
            await mq.close()

    run(story())


def test_a_secret_is_not_shown() -> None:
    assert "hidden" not in repr(Dialing(address=Address(path="x"), token="hidden"))  # noqa: S106
