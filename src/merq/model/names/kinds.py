"""The kinds that names come in, with the numbers that the wire gives them.

Not here: the names themselves.
"""

from __future__ import annotations

from enum import Enum, IntEnum


class QueueFormatType(IntEnum):
    """[MS-MQMQ] 2.2.6: which kind of format name a QUEUE_FORMAT carries."""

    UNKNOWN = 0
    PUBLIC = 1
    PRIVATE = 2
    DIRECT = 3
    MACHINE = 4
    CONNECTOR = 5
    DISTRIBUTION_LIST = 6
    MULTICAST = 7
    SUBQUEUE = 8


class QueueSuffixType(IntEnum):
    """[MS-MQMQ] 2.2.11: which queue is meant beside the one that the name identifies.

    CONNECTOR stands in names only: no document gives it a number, and the wire has four bits.
    """

    NONE = 0
    JOURNAL = 1
    DEADLETTER = 2
    DEADXACT = 3
    XACTONLY = 4
    SUBQUEUE = 5
    CONNECTOR = 0x100


READ_ONLY_SUFFIXES = frozenset(
    {QueueSuffixType.JOURNAL, QueueSuffixType.DEADLETTER, QueueSuffixType.DEADXACT}
)
"""[MS-MQMQ] 2.1.7: only the queue manager itself puts messages there."""

SYSTEM_QUEUE_SUFFIXES = READ_ONLY_SUFFIXES
"""[MS-MQMQ] 2.1.2: a computer has these three queues of its own, and no others."""

SUFFIXES_BY_FORMAT = {
    QueueFormatType.PUBLIC: frozenset({QueueSuffixType.NONE, QueueSuffixType.JOURNAL}),
    QueueFormatType.PRIVATE: frozenset({QueueSuffixType.NONE, QueueSuffixType.JOURNAL}),
    QueueFormatType.DIRECT: frozenset({QueueSuffixType.NONE}) | READ_ONLY_SUFFIXES,
    QueueFormatType.MACHINE: SYSTEM_QUEUE_SUFFIXES,
    QueueFormatType.CONNECTOR: frozenset({QueueSuffixType.NONE, QueueSuffixType.XACTONLY}),
    QueueFormatType.DISTRIBUTION_LIST: frozenset({QueueSuffixType.NONE}),
    QueueFormatType.MULTICAST: frozenset({QueueSuffixType.NONE}),
    QueueFormatType.SUBQUEUE: frozenset({QueueSuffixType.SUBQUEUE}),
}
"""[MS-MQMQ] 2.2.7: the suffixes that each kind of format name may have."""


NAME_SUFFIXES = SUFFIXES_BY_FORMAT | {
    QueueFormatType.MACHINE: SYSTEM_QUEUE_SUFFIXES
    | {QueueSuffixType.NONE, QueueSuffixType.CONNECTOR},
    QueueFormatType.CONNECTOR: SUFFIXES_BY_FORMAT[QueueFormatType.CONNECTOR]
    | {QueueSuffixType.CONNECTOR},
}
"""The suffixes that names may be written with: a bare `MACHINE=guid`, which is the grammar's only
form ([MS-MQMQ] 2.1.6), names a computer and no queue; `;CONNECTOR` spells a connector queue out."""


class QueueScope(Enum):
    """[MS-MQMQ] 2.1.1: where on its computer a queue is looked for."""

    PUBLIC = "public"
    PRIVATE = "private"
    SYSTEM = "system"


class DirectProtocol(Enum):
    """[MS-MQMQ] 2.1.2: how a direct format name says where the computer is.

    SPX is also read as `IPX`: [MS-MQMQ] 2.1.2 writes the one, [MS-MQQB] 2.2.4 the other, and both
    mean SPX over IPX.
    """

    OS = "OS"
    TCP = "TCP"
    SPX = "SPX"
    HTTP = "HTTP"
    HTTPS = "HTTPS"

    @property
    def is_http(self) -> bool:
        """Whether messages travel as SOAP over HTTP instead of the binary protocol."""
        return self in HTTP_PORTS

    @property
    def default_port(self) -> int | None:
        """[MS-MQMQ] 2.1.2: the port that is meant when an HTTP name does not say one."""
        return HTTP_PORTS.get(self)


HTTP_PORTS = {DirectProtocol.HTTP: 80, DirectProtocol.HTTPS: 443}
