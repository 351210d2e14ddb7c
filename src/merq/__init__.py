r"""Merq: a message queuing system that speaks MSMQ's protocols on any operating system.

import merq

with merq.open("./data") as mq:
    orders = mq.create_queue(r".\private$\orders")
    orders.send("hello", label="first", recoverable=True)
    print(orders.receive(timeout=5).body)
"""

from merq.client.messages import Message, ReceivedMessage
from merq.client.queues import Manager, Queue, Transaction
from merq.client.queues import open_manager as open  # noqa: A004 - merq.open reads best
from merq.errors import MerqError, MessageQueueError, ReceiveTimeout

__version__ = "0.1.0"

__all__ = [
    "Manager",
    "MerqError",
    "Message",
    "MessageQueueError",
    "Queue",
    "ReceiveTimeout",
    "ReceivedMessage",
    "Transaction",
    "open",
]
