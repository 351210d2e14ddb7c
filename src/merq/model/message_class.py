"""What a message is for: the message classes, in one table.

In it: every class of [MS-MQMQ] 2.2.18.1.6, the three that only [MC-MQAC] 2.2.2.9 names, and what
each tells an operator. Not in it: when a queue manager sends which one; that is the engine's and
the protocols' business.
"""

from enum import Enum, IntEnum, unique
from typing import Final, Self

CUSTOM_CLASS_MASK: Final = 0xE1FF
"""[MS-MQMQ] 2.2.18.1.6: the bits from which an application may make a class of its own."""


def describe_class(value: int) -> str:
    """Say in one line what a message class means, also when it is no predefined one."""
    known = MessageClass.of(value)
    if known is not None:
        return f"0x{value:04X} {known.name}: {known.kind.value}: {known.meaning}"
    if is_custom_class(value):
        return f"0x{value:04X}: a class of the application's own"
    return f"0x{value:04X}: not a message class, it has bits outside 0x{CUSTOM_CLASS_MASK:04X}"


def is_custom_class(value: int) -> bool:
    """Whether an application, and not the documents, gives the class its meaning."""
    return value & ~CUSTOM_CLASS_MASK == 0 and MessageClass.of(value) is None


@unique
class ClassKind(Enum):
    """What a class tells about a message, in an operator's words."""

    ORIGINAL = "sent by an application"
    REPORT = "trace of the way a message took"
    ORDER = "between queue managers"
    ARRIVED = "reached its queue"
    NOT_DELIVERED = "never reached its queue"
    RECEIVED = "taken from its queue by a receiver"
    NOT_RECEIVED = "never taken by a receiver"


@unique
class MessageClass(IntEnum):
    """[MS-MQMQ] 2.2.18.1.6: the predefined classes by name.

    A class that is not here, such as one of an application's own, stays a plain integer. Its bits
    say nothing then: an application may set those that the negative classes have in common.

    Attributes:
        kind: What became of the message that this one speaks of.
        meaning: The particulars, in a phrase.
    """

    kind: ClassKind
    meaning: str

    def __new__(cls, value: int, kind: ClassKind, meaning: str) -> Self:
        """Take one row of the table."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.kind = kind
        member.meaning = meaning
        return member

    @classmethod
    def of(cls, value: int) -> "MessageClass | None":
        """Find a predefined class; None for an application's own and for what is none."""
        return _BY_VALUE.get(value)

    @property
    def is_positive(self) -> bool:
        """Whether it acknowledges that a message arrived or was received."""
        return self.kind in {ClassKind.ARRIVED, ClassKind.RECEIVED}

    @property
    def is_negative(self) -> bool:
        """Whether it says that a message was not delivered or not received."""
        return self.kind in {ClassKind.NOT_DELIVERED, ClassKind.NOT_RECEIVED}

    @property
    def is_acknowledgment(self) -> bool:
        """Whether it answers the sender of a message, positively or negatively.

        An order acknowledgment does not count: no application ever sees one.
        """
        return self.is_positive or self.is_negative

    @property
    def is_about_arrival(self) -> bool:
        """Whether it settles if the message reached its queue."""
        return self.kind in {ClassKind.ARRIVED, ClassKind.NOT_DELIVERED}

    @property
    def is_about_receipt(self) -> bool:
        """Whether it settles if a receiver took the message from its queue."""
        return self.kind in {ClassKind.RECEIVED, ClassKind.NOT_RECEIVED}

    MQMSG_CLASS_NORMAL = 0x0000, ClassKind.ORIGINAL, "an ordinary message"
    MQMSG_CLASS_REPORT = 0x0001, ClassKind.REPORT, "a traced message passed a queue manager"
    MQMSG_CLASS_ACK_REACH_QUEUE = 0x0002, ClassKind.ARRIVED, "the message is in its queue"
    MQMSG_CLASS_ORDER_ACK = (
        0x00FF,
        ClassKind.ORDER,
        "the destination has transactional messages in order up to this one",
    )
    MQMSG_CLASS_ACK_RECEIVE = 0x4000, ClassKind.RECEIVED, "an application has received the message"
    MQMSG_CLASS_NACK_BAD_DST_Q = (
        0x8000,
        ClassKind.NOT_DELIVERED,
        "the queue does not exist or the sender cannot use it",
    )
    MQMSG_CLASS_NACK_DELETED = (
        0x8001,
        ClassKind.NOT_DELIVERED,
        "an administrator deleted the message on its way",
    )
    MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT = (
        0x8002,
        ClassKind.NOT_DELIVERED,
        "its time to reach the queue, or to be received, ran out on the way",
    )
    MQMSG_CLASS_NACK_Q_EXCEED_QUOTA = 0x8003, ClassKind.NOT_DELIVERED, "the queue is full"
    MQMSG_CLASS_NACK_ACCESS_DENIED = (
        0x8004,
        ClassKind.NOT_DELIVERED,
        "the sender may not put messages in the queue",
    )
    MQMSG_CLASS_NACK_HOP_COUNT_EXCEEDED = (
        0x8005,
        ClassKind.NOT_DELIVERED,
        "it passed through too many queue managers",
    )
    MQMSG_CLASS_NACK_BAD_SIGNATURE = (
        0x8006,
        ClassKind.NOT_DELIVERED,
        "its digital signature does not hold",
    )
    MQMSG_CLASS_NACK_BAD_ENCRYPTION = (
        0x8007,
        ClassKind.NOT_DELIVERED,
        "the destination could not decrypt it",
    )
    # [MC-MQAC] 2.2.2.9
    MQMSG_CLASS_NACK_COULD_NOT_ENCRYPT = (
        0x8008,
        ClassKind.NOT_DELIVERED,
        "the sending side could not encrypt it",
    )
    MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_Q = (
        0x8009,
        ClassKind.NOT_DELIVERED,
        "a transactional message for a queue that is not transactional",
    )
    MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_MSG = (
        0x800A,
        ClassKind.NOT_DELIVERED,
        "a message outside any transaction for a transactional queue",
    )
    MQMSG_CLASS_NACK_UNSUPPORTED_CRYPTO_PROVIDER = (
        0x800B,
        ClassKind.NOT_DELIVERED,
        "the destination lacks the cryptographic provider that it asks for",
    )
    # [MC-MQAC] 2.2.2.9
    MQMSG_CLASS_NACK_SOURCE_COMPUTER_GUID_CHANGED = (
        0x800C,
        ClassKind.NOT_DELIVERED,
        "the sending queue manager got a new identifier, as by joining or leaving a domain",
    )
    MQMSG_CLASS_NACK_Q_DELETED = 0xC000, ClassKind.NOT_RECEIVED, "the queue was deleted first"
    MQMSG_CLASS_NACK_Q_PURGED = 0xC001, ClassKind.NOT_RECEIVED, "the queue was purged first"
    MQMSG_CLASS_NACK_RECEIVE_TIMEOUT = (
        0xC002,
        ClassKind.NOT_RECEIVED,
        "its time to be received ran out in the queue",
    )
    # [MC-MQAC] 2.2.2.9
    MQMSG_CLASS_NACK_RECEIVE_TIMEOUT_AT_SENDER = (
        0xC003,
        ClassKind.NOT_RECEIVED,
        "its time to be received ran out before it was put in the queue",
    )
    MQMSG_CLASS_NACK_RECEIVE_REJECTED = (
        0xC004,
        ClassKind.NOT_RECEIVED,
        "the receiving application rejected it",
    )


_BY_VALUE: Final = {int(known): known for known in MessageClass}
