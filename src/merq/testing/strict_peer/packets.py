"""Packets of [MS-MQQB] 2.2 and [MS-MQMQ] 2.2.19 and 2.2.20, read and written by hand.

This codec shares nothing with `merq.wire`, so that a mistake there is not made here too. `frame`
finds where a packet ends, `read_packet` reads one, the `write_…` functions make one. What a packet
must not be raises `NotConforming`: [MS-MQQB] 3.1.5.1.3 then closes the session.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from struct import Struct
from typing import Any, Final, TypeAlias

SIGNATURE: Final = 0x524F494C
VERSION: Final = 0x10
PACKET_BYTES_MAX: Final = 0x0040_0000
FOREVER: Final = 0xFFFFFFFF
NOBODY: Final = bytes(16)
"""GUID_NULL."""

ACK_TIMEOUT_MS: Final = (0x4E20, 0x1D4C0)
RECOVERABLE_ACK_TIMEOUT_MS: Final = (0x1F4, 0x1D4C0)

BASE: Final = Struct("<BBHIII")
INTERNAL: Final = Struct("<HH")
ESTABLISH: Final = Struct("<16s16sIHH512s")
PARAMETERS: Final = Struct("<IIHH")
SESSION: Final = Struct("<HHIHHHH")
USER: Final = Struct("<16s16sIIII")
TRANSACTION: Final = Struct("<IQII")
SECURITY: Final = Struct("<HHHHII")
PROPERTIES: Final = Struct("<BBH20sIIIIIIII")
TRANSACTIONAL_ACK_BYTES: Final = 36

# BaseHeader.Flags, [MS-MQMQ] 2.2.19.1.
PRIORITY_BITS, INTERNAL_BIT, SESSION_BIT, DEBUG_BIT = 0x07, 0x08, 0x10, 0x20
# InternalHeader.Flags, [MS-MQQB] 2.2.1.
SESSION_ACK, ESTABLISH_CONNECTION, CONNECTION_PARAMETERS = 1, 2, 3
REFUSED_BIT = 0x10
# EstablishConnectionHeader.OperatingSystem, [MS-MQQB] 2.2.3.1.
RESERVED_OPERATING_SYSTEM, NO_PING_BIT, SERVER_BIT = 0x10, 0x100, 0x200
# UserHeader.Flags, [MS-MQMQ] 2.2.19.2.
RECOVERABLE_BIT = 1 << 5
JN_BIT, JP_BIT, SECURITY_BIT, TRANSACTION_BIT = 1 << 8, 1 << 9, 1 << 19, 1 << 20
MP_BIT, CONNECTOR_BIT, MULTI_QUEUE_BIT, SOAP_BIT = 1 << 21, 1 << 22, 1 << 23, 1 << 28
# MessagePropertiesHeader.Flags, [MS-MQMQ] 2.2.19.3.
PA, PR, NA, NR = 1, 2, 4, 8
# TransactionHeader.Flags, [MS-MQMQ] 2.2.20.5.
CONNECTOR_GUID_BIT, FINAL_ACK_BIT, FIRST_BIT, LAST_BIT = 1, 2, 4, 8

# Message classes, [MS-MQMQ] 2.2.18.1.6.
NORMAL, ACK_REACH_QUEUE, ORDER_ACK, ACK_RECEIVE = 0x0000, 0x0002, 0x00FF, 0x4000
NACK_BAD_DST_Q, NACK_REACH_QUEUE_TIMEOUT, NACK_Q_EXCEED_QUOTA = 0x8000, 0x8002, 0x8003
NACK_NOT_TRANSACTIONAL_Q, NACK_NOT_TRANSACTIONAL_MSG = 0x8009, 0x800A
NACK_Q_DELETED, NACK_Q_PURGED, NACK_RECEIVE_TIMEOUT = 0xC000, 0xC001, 0xC002

ORDER_LABEL: Final = "QM Ordering Ack"
ORDER_QUEUE: Final = "\\PRIVATE$\\order_queue$"
ORDER_QUEUE_NUMBER: Final = 4
SHA_512, AES_256 = 0x800E, 0x6610


class NotConforming(ValueError):
    """A packet is not what its section says: the session is closed ([MS-MQQB] 3.1.5.1.3)."""


@dataclass(frozen=True, slots=True)
class Name:
    """A queue's format name as a packet carries it ([MS-MQMQ] 2.2.18.1.5, 2.2.18.1.7).

    Attributes:
        kind: The value of Flags.DQ, AQ or RQ.
        text: A direct name without DIRECT=.
        number: PrivateQueueIdentifier.
        guid: The queue manager of a private name, or a public queue.
    """

    kind: int
    text: str = ""
    number: int = 0
    guid: bytes = NOBODY

    @property
    def is_direct(self) -> bool:
        """Whether it is a direct name."""
        return self.kind == 7

    @property
    def host(self) -> str:
        """The computer of a direct name."""
        return self.text.partition(":")[2].partition("\\")[0]

    @property
    def path(self) -> str:
        """What follows the computer in a direct name, in small letters."""
        return self.text.partition("\\")[2].lower()


NO_NAME: Final = Name(0)


def direct(text: str) -> Name:
    r"""A direct name, as in "TCP:10.0.0.1\private$\orders"."""
    return Name(7, text)


@dataclass(frozen=True, slots=True)
class SessionFields:
    """A SessionHeader ([MS-MQMQ] 2.2.20.4)."""

    ack: int
    recoverable_ack: int
    recoverable_flags: int
    sent: int
    recoverable_sent: int
    window: int

    def pack(self) -> bytes:
        """Its bytes."""
        mask = 0xFFFF
        return SESSION.pack(
            self.ack & mask, self.recoverable_ack & mask, self.recoverable_flags,
            self.sent & mask, self.recoverable_sent & mask, self.window, 0,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Establish:
    """An EstablishConnection packet ([MS-MQQB] 2.2.3)."""

    client: bytes
    server: bytes
    timestamp: int
    operating_system: int
    padding: bytes
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Parameters:
    """A ConnectionParameters packet ([MS-MQQB] 2.2.2)."""

    recoverable_ack_ms: int
    ack_ms: int
    window: int
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Transaction:
    """A TransactionHeader ([MS-MQMQ] 2.2.20.5); the sequence is one number of 64 bits."""

    flags: int
    sequence: int
    number: int
    previous: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """A UserMessage packet ([MS-MQMQ] 2.2.20)."""

    source: bytes
    destination: Name
    label: str = ""
    body: bytes = b""
    address: bytes = NOBODY
    admin: Name = NO_NAME
    response: Name = NO_NAME
    recoverable: bool = False
    transaction: Transaction | None = None
    journal: bool = False
    dead_letter: bool = False
    asked: int = 0
    message_class: int = NORMAL
    correlation: bytes = bytes(20)
    priority: int = 3
    sent_time: int = 0
    message_id: int = 0
    time_to_reach: int = FOREVER
    time_to_receive: int = FOREVER
    body_type: int = 0
    application_tag: int = 0
    base_flags: int = 0
    user_flags: int = 0
    session: SessionFields | None = None

    @property
    def identifier(self) -> tuple[bytes, int]:
        """MessageIdentifier ([MS-MQMQ] 2.2.18.1.3)."""
        return self.source, self.message_id

    def with_transaction(self, sequence: int, number: int, previous: int) -> UserMessage:
        """The same message in another place of a sequence."""
        assert self.transaction is not None
        told = Transaction(self.transaction.flags, sequence, number, previous)
        return replace(self, transaction=told)


Packet: TypeAlias = Establish | Parameters | SessionFields | UserMessage


# Reading.


def frame(data: bytes | bytearray) -> int:
    """The size of the packet that begins here; 0 as long as its BaseHeader is not there.

    Raises:
        NotConforming: The signature or the size cannot be ([MS-MQQB] 3.1.5.1.2).
    """
    if len(data) < BASE.size:
        return 0
    version, _, flags, signature, size, _ = BASE.unpack_from(data)
    if version != VERSION or signature != SIGNATURE:
        raise NotConforming(f"version {version:#x}, signature {signature:#x}")
    if not BASE.size + INTERNAL.size <= size <= PACKET_BYTES_MAX:
        raise NotConforming(f"PacketSize {size}")
    # 2.2.19.1 leaves a SessionHeader out of PacketSize; frame 8 of the example counts it in.
    apart = flags & (INTERNAL_BIT | SESSION_BIT) == SESSION_BIT
    return int(size + SESSION.size if apart else size)


def read_packet(data: bytes) -> Packet:
    """Reads one packet, whole.

    Raises:
        NotConforming: It does not conform to its section.
    """
    _, _, flags, _, _, time_to_reach = BASE.unpack_from(data)
    if flags & INTERNAL_BIT:
        if time_to_reach != FOREVER:
            raise NotConforming(f"an internal packet with TimeToReachQueue {time_to_reach}")
        return _read_internal(data, flags)
    return read_message(data)


def read_message(data: bytes, *, is_sent: bool = True) -> UserMessage:
    """Reads a UserMessage packet; one that was kept before it was sent has no place in a sequence.

    Raises:
        NotConforming: It does not conform to its section.
    """
    message = _Reader(data, BASE.unpack_from(data)[2]).message()
    told = message.transaction
    if told is not None and is_sent and (not told.number or told.previous == FOREVER):
        raise NotConforming(f"{told}")
    return message


def _read_internal(data: bytes, flags: int) -> Packet:
    kind_flags = INTERNAL.unpack_from(data, BASE.size)[1]
    kind, refused = kind_flags & 0xF, bool(kind_flags & REFUSED_BIT)
    rest = data[BASE.size + INTERNAL.size :]
    expected = {SESSION_ACK: SESSION, ESTABLISH_CONNECTION: ESTABLISH,
                CONNECTION_PARAMETERS: PARAMETERS}.get(kind)  # fmt: skip
    if expected is None or len(rest) != expected.size:
        raise NotConforming(f"an internal packet of type {kind} with {len(rest)} bytes")
    if kind == SESSION_ACK:
        if not flags & SESSION_BIT or refused:
            raise NotConforming(f"a SessionAck with flags {flags:#x} and {kind_flags:#x}")
        return _session_fields(rest)
    if kind == ESTABLISH_CONNECTION:
        client, server, timestamp, system, _, padding = ESTABLISH.unpack(rest)
        return Establish(client, server, timestamp, system, padding, refused)
    recoverable_ms, ack_ms, _, window = PARAMETERS.unpack(rest)
    low, high = RECOVERABLE_ACK_TIMEOUT_MS
    if not low <= recoverable_ms <= high or not ACK_TIMEOUT_MS[0] <= ack_ms <= ACK_TIMEOUT_MS[1]:
        raise NotConforming(f"ConnectionParameters {recoverable_ms} ms and {ack_ms} ms")
    return Parameters(recoverable_ms, ack_ms, window, refused)


def _session_fields(data: bytes) -> SessionFields:
    fields = SESSION.unpack(data)
    if not fields[5]:
        raise NotConforming("a SessionHeader with a WindowSize of 0")
    return SessionFields(*fields[:6])


class _Reader:
    """Reads the headers of a user message one after the other."""

    def __init__(self, data: bytes, flags: int) -> None:
        self.data = data
        self.flags = flags
        self.at = BASE.size
        self.end = len(data) - (SESSION.size if flags & SESSION_BIT else 0)

    def take(self, layout: Struct) -> tuple[Any, ...]:
        start = self.skip(layout.size)
        return layout.unpack_from(self.data, start)

    def skip(self, size: int) -> int:
        start = self.at
        if start + size > self.end:
            raise NotConforming(f"{size} bytes expected at {start}, the packet ends at {self.end}")
        self.at += size
        return start

    def align(self) -> None:
        self.skip(-self.at % 4)

    def message(self) -> UserMessage:
        source, address, receive, sent, identifier, user = self.take(USER)
        time_to_reach = BASE.unpack_from(self.data)[5]
        mode = user >> 5 & 3
        if mode > 1 or not user & MP_BIT or user & 0x1F > 0x1D:
            raise NotConforming(f"UserHeader.Flags {user:#x}")
        names = self.names(user, source, address)
        if user & CONNECTOR_BIT:
            self.skip(16)
        transaction = self.transaction(mode) if user & TRANSACTION_BIT else None
        if user & SECURITY_BIT:
            self.security()
        asked, length, kind, correlation, body_type, tag, size, *rest = self.take(PROPERTIES)
        label = self.label(length)
        self.skip(rest[-1])  # ExtensionData
        body = self.data[(start := self.skip(size)) : start + size]
        self.align()
        others = self.flags & DEBUG_BIT or user & (MULTI_QUEUE_BIT | SOAP_BIT)
        if self.at != self.end and not others:
            raise NotConforming(f"{self.end - self.at} bytes are left over")
        session = None
        if self.flags & SESSION_BIT:
            session = _session_fields(self.data[self.end :])
        return UserMessage(
            source=source, address=address, destination=names[0], admin=names[1],
            response=names[2], label=label, body=body, recoverable=mode == 1,
            transaction=transaction, journal=bool(user & JP_BIT), dead_letter=bool(user & JN_BIT),
            asked=asked & 0xF, message_class=kind, correlation=correlation,
            priority=self.flags & PRIORITY_BITS, sent_time=sent, message_id=identifier,
            time_to_reach=time_to_reach, time_to_receive=receive, body_type=body_type,
            application_tag=tag, base_flags=self.flags, user_flags=user, session=session,
        )  # fmt: skip

    def names(self, user: int, source: bytes, address: bytes) -> list[Name]:
        found = []
        for shift, allowed in ((10, "0357"), (13, "023567"), (16, "01234567")):
            kind = user >> shift & 7
            if str(kind) not in allowed:
                raise NotConforming(f"a queue of type {kind}")
            found.append(self.name(kind, source, address))
        return found

    def name(self, kind: int, source: bytes, address: bytes) -> Name:
        if kind in (0, 1):
            return Name(kind)
        if kind in (2, 3, 4):
            start = self.skip(4)
            owner = source if kind == 2 else address
            number = int.from_bytes(self.data[start : start + 4], "little")
            return Name(kind, "", number, owner)
        if kind == 5:
            start = self.skip(16)
            return Name(kind, guid=self.data[start : start + 16])
        if kind == 6:
            start = self.skip(20)
            number = int.from_bytes(self.data[start + 16 : start + 20], "little")
            return Name(kind, "", number, self.data[start : start + 16])
        start = self.skip(2)
        size = int.from_bytes(self.data[start : start + 2], "little")
        if size < 4 or size % 2:
            raise NotConforming(f"a direct name of {size} bytes")
        text = self.text(size // 2)
        self.align()
        return Name(kind, text)

    def text(self, length: int) -> str:
        start = self.skip(length * 2)
        text = self.data[start : self.at].decode("utf-16-le", "surrogatepass")
        if not text.endswith("\0"):
            raise NotConforming(f"a string without its terminating null: {text!r}")
        return text[:-1]

    def label(self, length: int) -> str:
        if length > 250:
            raise NotConforming(f"LabelLength {length}")
        return self.text(length) if length else ""

    def transaction(self, mode: int) -> Transaction:
        told = Transaction(*self.take(TRANSACTION))
        if told.flags & CONNECTOR_GUID_BIT:
            self.skip(16)
        if mode != 1:
            raise NotConforming(f"delivery mode {mode} and {told}")
        return told

    def security(self) -> None:
        _, *sizes = self.take(SECURITY)
        if not any(sizes):
            raise NotConforming("a SecurityHeader in which nothing is")
        for size in sizes:
            self.skip(size)
            self.align()


# Writing. Windows leaves padding and reserved fields as it finds them, so chance fills them.


def rubbish(chance: Random, size: int) -> bytes:
    """What an uninitialized field holds."""
    return chance.randbytes(size)


def _base(flags: int, size: int, chance: Random, time_to_reach: int = FOREVER) -> bytes:
    return BASE.pack(VERSION, chance.getrandbits(8), flags, SIGNATURE, size, time_to_reach)


def _internal(kind: int, body: bytes, chance: Random, flags: int = 0) -> bytes:
    # The published frames have the default priority, 3, in their internal packets.
    size = BASE.size + INTERNAL.size + len(body)
    return _base(flags | INTERNAL_BIT | 3, size, chance) + INTERNAL.pack(0, kind) + body


def write_establish(packet: Establish, chance: Random) -> bytes:
    """An EstablishConnection packet."""
    body = ESTABLISH.pack(
        packet.client, packet.server, packet.timestamp, packet.operating_system, 0, packet.padding
    )
    kind = ESTABLISH_CONNECTION | (REFUSED_BIT if packet.refused else 0)
    return _internal(kind, body, chance)


def write_parameters(packet: Parameters, chance: Random) -> bytes:
    """A ConnectionParameters packet."""
    body = PARAMETERS.pack(packet.recoverable_ack_ms, packet.ack_ms, 0, packet.window)
    return _internal(CONNECTION_PARAMETERS, body, chance)


def write_session_ack(fields: SessionFields, chance: Random) -> bytes:
    """A SessionAck packet."""
    return _internal(SESSION_ACK, fields.pack(), chance, SESSION_BIT)


def write_message(message: UserMessage, chance: Random) -> bytes:
    """A UserMessage packet, with its SessionHeader if it has one."""
    told = message.transaction
    acknowledges = message.message_class and message.destination.path.endswith("order_queue$")
    base = 0 if told or acknowledges else message.priority
    base |= SESSION_BIT if message.session is not None else 0
    user = MP_BIT | (RECOVERABLE_BIT if message.recoverable else 0)
    user |= TRANSACTION_BIT if told is not None else 0
    user |= JN_BIT * message.dead_letter | JP_BIT * message.journal
    names = bytearray()
    for name, shift in ((message.destination, 10), (message.admin, 13), (message.response, 16)):
        user |= name.kind << shift
        names += _write_name(name, USER.size + len(names), chance)
    head = USER.pack(
        message.source, message.address, message.time_to_receive, message.sent_time,
        message.message_id, user,
    ) + names  # fmt: skip
    if told is not None:
        head += TRANSACTION.pack(told.flags, told.sequence, told.number, told.previous)
    label = (message.label + "\0").encode("utf-16-le") if message.label else b""
    body = message.body
    properties = PROPERTIES.pack(
        message.asked, len(label) // 2, message.message_class, message.correlation,
        message.body_type, message.application_tag, len(body), len(body), 0, SHA_512, AES_256, 0,
    ) + label + body  # fmt: skip
    properties += rubbish(chance, -len(properties) % 4)
    size = BASE.size + len(head) + len(properties)
    packet = _base(base, size, chance, message.time_to_reach) + head + properties
    return packet if message.session is None else packet + message.session.pack()


def _write_name(name: Name, at: int, chance: Random) -> bytes:
    if name.kind in (0, 1):
        return b""
    if name.kind in (2, 3, 4):
        return name.number.to_bytes(4, "little")
    if name.kind == 5:
        return name.guid
    if name.kind == 6:
        return name.guid + name.number.to_bytes(4, "little")
    text = (name.text + "\0").encode("utf-16-le", "surrogatepass")
    data = len(text).to_bytes(2, "little") + text
    return data + rubbish(chance, -(at + len(data)) % 4)
