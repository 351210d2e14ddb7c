r"""Merq for asyncio: the names of `merq`, to be awaited.

async with merq.aio.connect() as mq:
    orders = await mq.create_queue(r".\private$\orders")
    await orders.send("hello", label="first", recoverable=True)
    async with orders.receive_all() as messages:
        async for message in messages:
            print(message.body)

What `merq.Queue` has as properties are methods here, because a queue manager is asked: `await
queue.path_name()`; and `len(queue)` is `await queue.count()`.
"""

from merq.aio.connecting import Connecting, connect
from merq.aio.holding import Holding
from merq.aio.manager import Manager
from merq.aio.queues import Cursor, OutgoingQueue, Queue
from merq.aio.streams import Peeking, Receiving
from merq.aio.transactions import Transaction

__all__ = [
    "Connecting",
    "Cursor",
    "Holding",
    "Manager",
    "OutgoingQueue",
    "Peeking",
    "Queue",
    "Receiving",
    "Transaction",
    "connect",
]
