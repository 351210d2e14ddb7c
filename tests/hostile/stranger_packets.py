"""Packets by `struct` alone, as somebody makes them who has the documents and nothing of ours.

[MS-MQMQ] 2.2.19, 2.2.20 and [MS-MQQB] 2.2. Nothing here is checked: whoever attacks writes what no
builder of ours would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct, pack
from typing import Final

NOBODY: Final = bytes(16)
FOREVER: Final = 0xFFFFFFFF
PACKET_BYTES_MAX: Final = 4 << 20
MADE_AT: Final = 1_760_000_000
"""SentTime of what does not care: in the past, in seconds since 1970."""

ESTABLISH_BYTES, PARAMETERS_BYTES, SESSION_ACK_BYTES = 572, 32, 36

# MessagePropertiesHeader.Flags: positive and negative arrival and receive.
PA, PR, NA, NR = 1, 2, 4, 8
# UserHeader.Flags.
_RECOVERABLE, _DEAD_LETTER, _JOURNAL = 1 << 5, 1 << 8, 1 << 9
_TRANSACTION, _PROPERTIES, _MULTI_QUEUE = 1 << 20, 1 << 21, 1 << 23
_PRIVATE, _PUBLIC, _DIRECT = 3, 5, 7
ORDER_ACK_CLASS: Final = 0x00FF

_BASE: Final = Struct("<BBHIII")
_USER: Final = Struct("<16s16sIIII")
_PROPERTIES_HEADER: Final = Struct("<BBH20sIIIIIIII")


@dataclass(frozen=True, slots=True)
class Transaction:
    """[MS-MQMQ] 2.2.20.5: a place in a sequence."""

    sequence: int
    number: int
    previous: int
    flags: int = 0x0C


def base(size: int, flags: int, time_to_reach: int = FOREVER) -> bytes:
    """[MS-MQMQ] 2.2.19.1: BaseHeader."""
    return _BASE.pack(0x10, 0, flags, 0x524F494C, size, time_to_reach)


def establish(client: bytes, server: bytes = NOBODY) -> bytes:
    """[MS-MQQB] 2.2.3: EstablishConnection."""
    body = client + server + pack("<IHH", 1, 0x0310, 0) + bytes([0x5A]) * 512
    return base(ESTABLISH_BYTES, 0x0B) + pack("<HH", 0, 2) + body


def parameters(window: int = 64, ack_ms: int = 20_000, recoverable_ms: int = 500) -> bytes:
    """[MS-MQQB] 2.2.2: ConnectionParameters."""
    body = pack("<IIHH", recoverable_ms, ack_ms, 0, window)
    return base(PARAMETERS_BYTES, 0x0B) + pack("<HH", 0, 3) + body


def session_ack(came: int, sent: int, *, recoverable: int = 0, window: int = 64) -> bytes:
    """[MS-MQQB] 2.2.6: SessionAck."""
    body = pack("<HHIHHHH", came, recoverable, 0, sent, 0, window, 0)
    return base(SESSION_ACK_BYTES, 0x18) + pack("<HH", 0, 1) + body


def direct_name(text: str) -> bytes:
    """[MS-MQMQ] 2.2.18.1.5.2: a direct name, with its size and its end."""
    name = text.encode("utf-16-le", "surrogatepass") + b"\0\0"
    return _filled(pack("<H", len(name)) + name)


def message(  # noqa: PLR0913 - every field of a packet
    source: bytes,
    ordinal: int,
    destination: str | int | bytes,
    *,
    address: bytes = NOBODY,
    body: bytes = b"",
    label: str = "",
    admin: str = "",
    response: str = "",
    asked: int = 0,
    recoverable: bool = False,
    journal: bool = False,
    dead_letter: bool = False,
    transaction: Transaction | None = None,
    priority: int = 3,
    message_class: int = 0,
    correlation: bytes = bytes(20),
    time_to_reach: int = FOREVER,
    time_to_receive: int = FOREVER,
    sent_time: int = MADE_AT,
    copies_to: Sequence[bytes] = (),
    base_flags: int = 0,
    user_flags: int = 0,
) -> bytes:
    r"""[MS-MQMQ] 2.2.20: a UserMessage.

    Args:
        source: SourceQueueManager.
        ordinal: MessageID.
        destination: A direct name without DIRECT=, the number of a private queue or the GUID of a
            public one.
        address: QueueManagerAddress.
        copies_to: Elements of the MultiQueueFormatHeader's list of destinations; no such header if
            there are none.
    """
    kind, names = _destination(destination)
    flags = _PROPERTIES | kind << 10 | user_flags
    if recoverable or transaction is not None:
        flags |= _RECOVERABLE
    flags |= journal and _JOURNAL
    flags |= dead_letter and _DEAD_LETTER
    if admin:
        flags |= _DIRECT << 13
        names += direct_name(admin)
    if response:
        flags |= _DIRECT << 16
        names += direct_name(response)
    if transaction is not None:
        flags |= _TRANSACTION
        place = transaction
        names += pack("<IQII", place.flags, place.sequence, place.number, place.previous)
    rest = _properties(asked, label, message_class, correlation, body)
    if copies_to:
        flags |= _MULTI_QUEUE
        rest += _multi_queue(copies_to)
    user = _USER.pack(source, address, time_to_receive, sent_time, ordinal, flags)
    size = _BASE.size + len(user) + len(names) + len(rest)
    return base(size, priority | base_flags, time_to_reach) + user + names + rest


def _properties(
    asked: int, label: str, message_class: int, correlation: bytes, body: bytes
) -> bytes:
    wide = label.encode("utf-16-le", "surrogatepass") + b"\0\0" if label else b""
    size = len(body)
    header = _PROPERTIES_HEADER.pack(
        asked, len(wide) // 2, message_class, correlation, 0, 0, size, size, 0, 0, 0, 0
    )
    return _filled(header + wide + body)


def _destination(name: str | int | bytes) -> tuple[int, bytes]:
    if isinstance(name, str):
        return _DIRECT, direct_name(name)
    if isinstance(name, int):
        return _PRIVATE, pack("<I", name)
    return _PUBLIC, name


def order_ack(source: bytes, ordinal: int, sequence: int, number: int, host: str) -> bytes:
    """[MS-MQQB] 2.2.4: an OrderAck, whatever the sender of the sequence thinks of it."""
    body = pack("<QII20x", sequence, number, number - 1)
    return _ack(source, ordinal, host, ORDER_ACK_CLASS, body)


def final_ack(
    source: bytes,
    ordinal: int,
    sequence: int,
    number: int,
    host: str,
    *,
    of: bytes,
    of_ordinal: int,
    message_class: int,
) -> bytes:
    """[MS-MQQB] 2.2.5: a FinalAck about a message of somebody."""
    body = pack("<QII16sI", sequence, number, number - 1, of, of_ordinal)
    return _ack(source, ordinal, host, message_class, body)


def _ack(source: bytes, ordinal: int, host: str, message_class: int, body: bytes) -> bytes:
    return message(
        source,
        ordinal,
        f"{host}\\private$\\order_queue$",
        body=body,
        label="QM Ordering Ack",
        message_class=message_class,
        recoverable=message_class != ORDER_ACK_CLASS,
        priority=0,
    )


def direct_element(text: str) -> bytes:
    """[MS-MQMQ] 2.2.18.1.4: a direct name in a list of destinations."""
    return pack("<H", 3) + text.encode("utf-16-le", "surrogatepass") + b"\0\0"


def private_element(computer: bytes, number: int) -> bytes:
    """[MS-MQMQ] 2.2.18.1.4: a private name in a list of such alone: its GUID wants a boundary."""
    return pack("<H2x", 2) + computer + pack("<I", number)


def _multi_queue(elements: Sequence[bytes]) -> bytes:
    headers = _address_header(0x64, elements) + _address_header(0xC8) + _address_header(0x12C)
    return _filled(headers + pack("<HHI", 0x15E, 0, 0))


def _address_header(identifier: int, elements: Sequence[bytes] = ()) -> bytes:
    names = b"".join(elements)
    return _filled(pack("<IHHI", 12 + len(names), identifier, 0, len(elements)) + names)


def _filled(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
