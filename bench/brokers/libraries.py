"""The fastest Python client of each broker, as a program would use it.

Tried for RabbitMQ, on the same queue: pika 1.4 sent and received twice as many pipelined messages
as py-amqp 5.4 and three to five times as many as aiormq 7.2; singles were alike (AMQPStorm 3.1 took
ten times as long for them). librabbitmq has no wheel for this Python. For NATS there is nats-py,
whose `publish_async` sent more than many tasks with `publish`; for Redis, redis-py with hiredis.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

from bench.brokers.contender import BODY, MESSAGES_MAX, WINDOW, Contender, Load

QUEUE = "library"
RECEIVED_TOGETHER = 500
FETCH_S_MAX = 5


def redis_py(port: int) -> Contender:
    """redis-py with hiredis; pipelined means its pipeline, of as many as the others batch."""
    client: Any = import_module("redis").Redis(host="127.0.0.1", port=port)
    client.flushall()
    client.xgroup_create(QUEUE, QUEUE, "0", mkstream=True)

    def pipelined(load: Load) -> int:
        sent = 0
        end = time.perf_counter() + load.seconds
        while sent < MESSAGES_MAX and time.perf_counter() < end:
            batch = client.pipeline(transaction=False)
            for _ in range(load.batch):
                batch.xadd(QUEUE, {"body": load.body})
            sent += len(batch.execute())
        return sent

    def receive(count: int) -> None:
        took = 0
        while took < count:
            ((_, entries),) = client.xreadgroup(QUEUE, "one", {QUEUE: ">"}, count=RECEIVED_TOGETHER)
            names = [name for name, _ in entries]
            batch = client.pipeline(transaction=False)
            batch.xack(QUEUE, QUEUE, *names)
            batch.xdel(QUEUE, *names)
            batch.execute()
            took += len(names)

    def close() -> None:
        client.flushall()
        client.close()

    return Contender(
        send=lambda: client.xadd(QUEUE, {"body": BODY}),
        pipelined=pipelined,
        receive=receive,
        close=close,
    )


class _NatsPy:
    """nats-py on a loop of its own, by uvloop where it is installed."""

    def __init__(self, port: int) -> None:
        self._runner = asyncio.Runner(loop_factory=import_module("uvloop").new_event_loop)
        self._loop = self._runner.get_loop()
        self._connection: Any = self.run(import_module("nats").connect(f"nats://127.0.0.1:{port}"))
        self._stream: Any = self._connection.jetstream(publish_async_max_pending=WINDOW)
        self.run(self._stream.add_stream(name=QUEUE, subjects=[QUEUE], retention="workqueue"))

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(work)

    def send(self) -> None:
        self.run(self._stream.publish(QUEUE, BODY))

    def pipelined(self, load: Load) -> int:
        async def send() -> int:
            sent = 0
            end = time.perf_counter() + load.seconds
            while sent < MESSAGES_MAX and time.perf_counter() < end:
                for _ in range(load.batch):
                    await self._stream.publish_async(QUEUE, load.body)
                sent += load.batch
            await self._stream.publish_async_completed()
            return sent

        count: int = self.run(send())
        return count

    def receive(self, count: int) -> None:
        async def take() -> None:
            async with self._taking() as taking:
                took = 0
                while took < count:
                    for message in await taking.fetch(RECEIVED_TOGETHER, timeout=FETCH_S_MAX):
                        await message.ack()
                        took += 1
                await self._connection.flush()

        self.run(take())

    @asynccontextmanager
    async def _taking(self) -> AsyncIterator[Any]:
        taking = await self._stream.pull_subscribe(QUEUE, QUEUE)
        try:
            yield taking
        finally:
            await taking.unsubscribe()

    def close(self) -> None:
        self.run(self._stream.delete_stream(QUEUE))
        self.run(self._connection.close())
        self._runner.close()


def nats_py(port: int) -> Contender:
    """nats-py; pipelined means `publish_async`."""
    client = _NatsPy(port)
    return Contender(
        send=client.send, pipelined=client.pipelined, receive=client.receive, close=client.close
    )


class _Pika:
    """pika: its blocking connection for singles and receives, its own loop for pipelined sends."""

    def __init__(self, port: int) -> None:
        self._pika: Any = import_module("pika")
        self._parameters = self._pika.ConnectionParameters("127.0.0.1", port)
        self._persistent = self._pika.BasicProperties(delivery_mode=2)
        self._connection = self._pika.BlockingConnection(self._parameters)
        self._channel = self._connection.channel()
        self._channel.queue_declare(QUEUE, durable=True, arguments={"x-queue-type": "quorum"})
        self._channel.confirm_delivery()

    def send(self) -> None:
        self._channel.basic_publish("", QUEUE, BODY, self._persistent)

    def pipelined(self, load: Load) -> int:
        return _PikaSending(self._pika, self._parameters, self._persistent, load).run()

    def receive(self, count: int) -> None:
        channel = self._connection.channel()
        channel.basic_qos(prefetch_count=WINDOW)
        for took, (delivered, _, _) in enumerate(channel.consume(QUEUE), 1):
            if took % RECEIVED_TOGETHER == 0 or took == count:
                channel.basic_ack(delivered.delivery_tag, multiple=True)
            if took == count:
                break
        channel.cancel()
        channel.queue_declare(QUEUE, passive=True)

    def close(self) -> None:
        self._channel.queue_delete(QUEUE)
        self._connection.close()


class _PikaSending:
    """One connection for one run of pipelined sends."""

    def __init__(self, pika: Any, parameters: Any, properties: Any, load: Load) -> None:
        self._properties = properties
        self._load = load
        self._end = time.perf_counter() + load.seconds
        self._sent = self._done = 0
        self._channel: Any = None
        self._connection = pika.SelectConnection(
            parameters,
            on_open_callback=lambda it: it.channel(on_open_callback=self._opened),
            on_close_callback=lambda it, _: it.ioloop.stop(),
        )

    def run(self) -> int:
        self._connection.ioloop.start()
        self._connection.close()
        self._connection.ioloop.start()
        return self._sent

    def _opened(self, channel: Any) -> None:
        self._channel = channel
        channel.confirm_delivery(self._confirmed, callback=lambda _: self._more())

    def _more(self) -> None:
        while self._sent - self._done < self._load.window and self._going():
            for _ in range(self._load.batch):
                self._channel.basic_publish("", QUEUE, self._load.body, self._properties)
            self._sent += self._load.batch

    def _going(self) -> bool:
        return self._sent < MESSAGES_MAX and time.perf_counter() < self._end

    def _confirmed(self, frame: Any) -> None:
        # RabbitMQ confirms a queue's messages in order.
        self._done = frame.method.delivery_tag
        if self._going():
            if self._sent - self._done < self._load.window // 2:
                self._more()
        elif self._done >= self._sent:
            self._connection.ioloop.stop()


def pika(port: int) -> Contender:
    """A quorum queue by pika."""
    client = _Pika(port)
    return Contender(
        send=client.send, pipelined=client.pipelined, receive=client.receive, close=client.close
    )
