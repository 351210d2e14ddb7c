r"""Merq: a message queuing system that speaks MSMQ's protocols on any operating system.

import merq

with merq.open("./data") as mq:
    orders = mq.create_queue(r".\private$\orders")
    orders.send("hello", label="first", recoverable=True)
    print(orders.receive(timeout=5).body)
"""

from importlib import import_module
from typing import TYPE_CHECKING

from merq.errors import MerqError, MessageQueueError, ReceiveTimeout

if TYPE_CHECKING:
    from merq.client.messages import Message, ReceivedMessage
    from merq.client.queues import Manager, Queue, Transaction
    from merq.client.queues import open_manager as open  # noqa: A004 - merq.open reads best

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

# Imported when they are asked for: the command line needs no queue manager to decode a packet.
_LATER = {
    "Manager": ("merq.client.queues", "Manager"),
    "Message": ("merq.client.messages", "Message"),
    "Queue": ("merq.client.queues", "Queue"),
    "ReceivedMessage": ("merq.client.messages", "ReceivedMessage"),
    "Transaction": ("merq.client.queues", "Transaction"),
    "open": ("merq.client.queues", "open_manager"),
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'merq' has no attribute {name!r}")
    module, attribute = _LATER[name]
    return getattr(import_module(module), attribute)
