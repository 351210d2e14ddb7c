"""The properties of [MS-MQMQ] 2.3: what they are called, numbered and typed, and what they may be.

`table` has every property identifier; `values` names the values of those that have a fixed choice.
Not in it: the properties of messages, which are fields of the packet, and any object that carries
properties.
"""

from merq.model.properties.table import ObjectKind, Property
from merq.model.properties.values import (
    ConnectionStatus,
    MachineConnection,
    MachineService,
    QueueAuthentication,
    QueueFact,
    QueueJournal,
    QueueLocation,
    QueuePrivacy,
    QueueState,
    QueueTransaction,
    QueueType,
)

__all__ = [
    "ConnectionStatus",
    "MachineConnection",
    "MachineService",
    "ObjectKind",
    "Property",
    "QueueAuthentication",
    "QueueFact",
    "QueueJournal",
    "QueueLocation",
    "QueuePrivacy",
    "QueueState",
    "QueueTransaction",
    "QueueType",
]
