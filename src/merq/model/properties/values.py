"""The fixed choices that some properties of [MS-MQMQ] 2.3 have, by the documents' names.

In it: those that a queue manager decides by or reports. Not in it: plain yes or no as 0 or 1, and
what only a directory server needs.
"""

from enum import IntEnum, IntFlag, StrEnum, unique
from typing import Final, Self

_FAILURE_BIT: Final = 0x80000000


@unique
class QueueJournal(IntEnum):
    """[MS-MQMQ] 2.3.1.4: whether a queue keeps copies of the messages that receivers take."""

    MQ_JOURNAL_NONE = 0
    MQ_JOURNAL = 1


@unique
class QueueAuthentication(IntEnum):
    """[MS-MQMQ] 2.3.1.11: whether a queue refuses messages that are not authenticated."""

    MQ_AUTHENTICATE_NONE = 0
    MQ_AUTHENTICATE = 1


@unique
class QueuePrivacy(IntEnum):
    """[MS-MQMQ] 2.3.1.12: whether a queue takes only clear, any, or only encrypted messages."""

    MQ_PRIV_LEVEL_NONE = 0
    MQ_PRIV_LEVEL_OPTIONAL = 1
    MQ_PRIV_LEVEL_BODY = 2


@unique
class QueueTransaction(IntEnum):
    """[MS-MQMQ] 2.3.1.13: whether a queue takes only messages sent in a transaction, or none."""

    MQ_TRANSACTIONAL_NONE = 0
    MQ_TRANSACTIONAL = 1


@unique
class MachineService(IntFlag):
    """[MS-MQMQ] 2.3.2.9: what a machine does for others; the document gives the bits no names."""

    ROUTING_SERVER = 0x01
    BACKUP_SITE_CONTROLLER = 0x02
    PRIMARY_SITE_CONTROLLER = 0x04
    PRIMARY_ENTERPRISE_CONTROLLER = 0x08
    RAS_SERVER = 0x10


@unique
class MachineConnection(StrEnum):
    """[MS-MQMQ] 2.3.11.4: whether the queue manager is on the network or was taken off it."""

    MSMQ_CONNECTED = "CONNECTED"
    MSMQ_DISCONNECTED = "DISCONNECTED"


@unique
class QueueType(StrEnum):
    """[MS-MQMQ] 2.3.12.3: what kind of queue management reports on."""

    MGMT_QUEUE_TYPE_PUBLIC = "PUBLIC"
    MGMT_QUEUE_TYPE_PRIVATE = "PRIVATE"
    MGMT_QUEUE_TYPE_MACHINE = "MACHINE"
    MGMT_QUEUE_TYPE_CONNECTOR = "CONNECTOR"
    MGMT_QUEUE_TYPE_MULTICAST = "MULTICAST"


@unique
class QueueLocation(StrEnum):
    """[MS-MQMQ] 2.3.12.4: whether the queue is on the computer that reports."""

    MGMT_QUEUE_LOCAL_LOCATION = "LOCAL"
    MGMT_QUEUE_REMOTE_LOCATION = "REMOTE"


@unique
class QueueFact(StrEnum):
    """[MS-MQMQ] 2.3.12.5, [MS-MQMQ] 2.3.12.6: whether a queue is transactional, or foreign.

    The documents have a name for each answer to each question; the strings are the same three.
    """

    UNKNOWN = "UNKNOWN"
    YES = "YES"
    NO = "NO"


@unique
class QueueState(StrEnum):
    """[MS-MQMQ] 2.3.12.11: how an outgoing queue stands with the queue manager it leads to."""

    MGMT_QUEUE_STATE_LOCAL = "LOCAL CONNECTION"
    MGMT_QUEUE_STATE_NONACTIVE = "INACTIVE"
    MGMT_QUEUE_STATE_WAITING = "WAITING"
    MGMT_QUEUE_STATE_NEED_VALIDATE = "NEED VALIDATION"
    MGMT_QUEUE_STATE_ONHOLD = "ONHOLD"
    MGMT_QUEUE_STATE_CONNECTED = "CONNECTED"
    MGMT_QUEUE_STATE_DISCONNECTING = "DISCONNECTING"
    MGMT_QUEUE_STATE_DISCONNECTED = "DISCONNECTED"


@unique
class ConnectionStatus(IntEnum):
    """[MS-MQMQ] 2.3.12.25: one entry of an outgoing queue's connection history.

    The numbers have no names there; [MS-MQDMPR] 3.1.1.3 has names for the same seventeen, in the
    same order.

    Attributes:
        meaning: What happened, in a phrase.
    """

    meaning: str

    def __new__(cls, value: int, meaning: str) -> Self:
        """Take one row of the table."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    @property
    def is_failure(self) -> bool:
        """Whether the attempt to connect or to send failed."""
        return bool(self & _FAILURE_BIT)

    @property
    def document_name(self) -> str:
        """[MS-MQDMPR] 3.1.1.3: the name as it is spelled there, which is what people are told."""
        return "".join(part.capitalize() for part in self.name.split("_"))

    IN_PROCESS = 0x00000000, "connecting, nothing has failed so far"
    ESTABLISH_PACKET_RECEIVED = 0x00000001, "the packet that establishes it has come"
    ESTABLISHED = 0x00000002, "connected and ready to send"
    UNKNOWN_FAILURE = 0x80000000, "failed for a reason that could not be found out"
    PING_FAILURE = 0x80000001, "the other side did not answer a ping"
    SOCKET_CREATE_FAILURE = 0x80000002, "no socket could be created"
    SOCKET_BIND_FAILURE = 0x80000003, "the socket could not be bound to an address"
    SOCKET_CONNECT_FAILURE = 0x80000004, "the other side could not be connected to"
    TCP_NOT_ENABLED = 0x80000005, "TCP is switched off"
    SOCKET_SEND_FAILURE = 0x80000006, "sending over the connection failed"
    CONNECTION_NOT_READY = 0x80000007, "not sent, because the connection was not ready yet"
    DNS_FAILURE = 0x80000008, "the name could not be resolved"
    CERTIFICATE_VALIDATION_FAILURE = 0x80000009, "the HTTPS server's certificate is not trusted"
    CONNECTION_LIMIT_REACHED = 0x8000000A, "no more sessions to this destination are allowed"
    CONNECTION_REFUSED = 0x8000000B, "the other side refused: over quota or limit, or a bad packet"
    ROUTING_DATA_NOT_AVAILABLE = 0x8000000C, "no directory server could be asked for the route"
    LOW_RESOURCE = 0x8000000D, "memory ran short"
