r"""Merq: a message queuing system that speaks MSMQ's protocols on any operating system.

import merq

with merq.open("./data") as mq:
    orders = mq.create_queue(r".\private$\orders")
    orders.send("hello", label="first", recoverable=True)
    print(orders.receive(timeout=5).body)
"""

from importlib import import_module
from typing import TYPE_CHECKING

from merq.errors import InDoubt, MerqError, MessageQueueError, ReceiveTimeout

if TYPE_CHECKING:
    from merq.client.connecting import connect
    from merq.client.manager import Manager
    from merq.client.messages import (
        ACKNOWLEDGE_ARRIVAL,
        ACKNOWLEDGE_RECEIVE,
        Message,
        ReceivedMessage,
    )
    from merq.client.opening import open_manager as open  # noqa: A004 - merq.open reads best
    from merq.client.queues import Cursor, OutgoingQueue, Queue
    from merq.client.transactions import Transaction
    from merq.engine.limits import Limits
    from merq.model.access import Access, Share
    from merq.model.queue import OutgoingState
    from merq.model.selecting import Seek
    from merq.protocol.application.reports import (
        ConnectionAttempt,
        LinkReport,
        SequencePlace,
        SequenceReport,
        TransferReport,
    )

__version__ = "0.1.0"

__all__ = [
    "ACKNOWLEDGE_ARRIVAL",
    "ACKNOWLEDGE_RECEIVE",
    "Access",
    "ConnectionAttempt",
    "Cursor",
    "InDoubt",
    "Limits",
    "LinkReport",
    "Manager",
    "MerqError",
    "Message",
    "MessageQueueError",
    "OutgoingQueue",
    "OutgoingState",
    "Queue",
    "ReceiveTimeout",
    "ReceivedMessage",
    "Seek",
    "SequencePlace",
    "SequenceReport",
    "Share",
    "Transaction",
    "TransferReport",
    "connect",
    "open",
]

# Imported when they are asked for: the command line needs no queue manager to decode a packet.
_LATER = {
    "ACKNOWLEDGE_ARRIVAL": ("merq.client.messages", "ACKNOWLEDGE_ARRIVAL"),
    "ACKNOWLEDGE_RECEIVE": ("merq.client.messages", "ACKNOWLEDGE_RECEIVE"),
    "Access": ("merq.model.access", "Access"),
    "ConnectionAttempt": ("merq.protocol.application.reports", "ConnectionAttempt"),
    "Cursor": ("merq.client.queues", "Cursor"),
    "Limits": ("merq.engine.limits", "Limits"),
    "LinkReport": ("merq.protocol.application.reports", "LinkReport"),
    "Manager": ("merq.client.manager", "Manager"),
    "Message": ("merq.client.messages", "Message"),
    "OutgoingQueue": ("merq.client.queues", "OutgoingQueue"),
    "OutgoingState": ("merq.model.queue", "OutgoingState"),
    "Queue": ("merq.client.queues", "Queue"),
    "ReceivedMessage": ("merq.client.messages", "ReceivedMessage"),
    "Seek": ("merq.model.selecting", "Seek"),
    "SequencePlace": ("merq.protocol.application.reports", "SequencePlace"),
    "SequenceReport": ("merq.protocol.application.reports", "SequenceReport"),
    "Share": ("merq.model.access", "Share"),
    "Transaction": ("merq.client.transactions", "Transaction"),
    "TransferReport": ("merq.protocol.application.reports", "TransferReport"),
    "connect": ("merq.client.connecting", "connect"),
    "open": ("merq.client.opening", "open_manager"),
}


def __getattr__(name: str) -> object:
    if name == "aio":
        return import_module("merq.aio")
    if name not in _LATER:
        raise AttributeError(f"module 'merq' has no attribute {name!r}")
    module, attribute = _LATER[name]
    return getattr(import_module(module), attribute)
