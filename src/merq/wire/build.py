"""Making UserMessage packets, fast: what applications send and what notices need.

`wire.message` can write any packet. This writes the common ones, with direct or private names, with
a TransactionHeader, a DebugHeader or neither, and no security, in one pass; what comes out is what
`UserMessage.pack` would give.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from merq.errors import WireError
from merq.model.names import PrivateName, PublicName
from merq.wire.headers import (
    DEBUG_QUEUE_PUBLIC,
    INFINITE,
    PACKET_SIZE_MAX,
    SIGNATURE,
    VERSION,
)
from merq.wire.multiqueue import (
    ADMIN_ID,
    DESTINATION_ID,
    RESPONSE_ID,
    MQFAddressHeader,
    MQFDirectQueueFormatName,
    MQFFormatName,
    MQFFormatNameElement,
    MultiQueueFormatHeader,
)
from merq.wire.properties import (
    CORRELATION_ID_SIZE,
    ENCRYPTION_AES_256,
    HASH_SHA_512,
    LABEL_LENGTH_MAX,
    NO_CORRELATION,
)
from merq.wire.queues import (
    DIRECT,
    DIRECT_NAME_BYTES_MAX,
    PRIVATE_ELSEWHERE,
    PRIVATE_ON_DESTINATION,
    PRIVATE_ON_SOURCE,
    PUBLIC,
    PrivateQueueFormatName,
    PublicQueueFormatName,
)
from merq.wire.view import MessageView

_FIXED: Final = struct.Struct("<BBHIII16s16sIIII")
_TRANSACTION: Final = struct.Struct("<IQII")
_PROPERTIES: Final = struct.Struct("<BBH20sIIIIIIII")
TRANSACTION_HEADER_SIZE: Final = _TRANSACTION.size
"""What joining a transaction adds to a packet."""

_DEBUG: Final = struct.Struct("<HH16s")
_STAMP: Final = struct.Struct("<II")
_U32: Final = struct.Struct("<I")
_TIMES: Final = struct.Struct("<IIII")
_HEAD: Final = struct.Struct("<HII")
_NULL_GUID: Final = bytes(16)
_FILLING: Final = (b"", b"\0\0\0", b"\0\0", b"\0")

_DEBUG_FLAG: Final = 1 << 5
_TRACE_FLAG: Final = 1 << 8
_PROPERTIES_FLAG: Final = 1 << 21
_TRANSACTION_FLAG: Final = 1 << 20
_MULTI_QUEUE_FLAG: Final = 1 << 23


class TransactionPlace(NamedTuple):
    """[MS-MQMQ] 2.2.20.5: where in its sequence and transaction a message stands."""

    sequence_id: int
    sequence_number: int
    previous_sequence_number: int
    identifier: int = 0
    is_first: bool = True
    is_last: bool = True
    final_ack_required: bool = False


Destination: TypeAlias = str | PrivateName | PublicName
"""Where a packet goes: a direct format name without its prefix, or a name by identifiers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """What a packet is to say. Names are direct format names without their prefix.

    Attributes:
        destinations: All queues that get a copy, if there are several, as MultiQueueFormatHeader
            has them.
        report_queue: [MS-MQMQ] 2.2.20.8: the identifier of the queue that is told of each hop of
            the message; None if nobody is.
    """

    destination: Destination
    source_queue_manager: bytes = bytes(16)
    message_ordinal: int = 0
    sent_time: int = 0
    body: bytes = b""
    body_type: int = 0
    label: str = ""
    priority: int = 3
    recoverable: bool = False
    admin_queue: Destination = ""
    response_queue: Destination = ""
    acknowledgments: int = 0
    positive_journaling: bool = False
    negative_journaling: bool = False
    time_to_reach_queue: int = INFINITE
    time_to_be_received: int = INFINITE
    correlation_id: bytes = NO_CORRELATION
    application_tag: int = 0
    message_class: int = 0
    extension: bytes = b""
    transaction: TransactionPlace | None = None
    destinations: tuple[Destination, ...] = ()
    report_queue: UUID | None = None


def build_packet(outline: Outline) -> bytes:
    """[MS-MQDMPR] 3.1.7.1.30, 3.1.7.1.32: the packet of a message.

    Each optional header is there if the outline says something that it carries. There is no
    SecurityHeader: nothing is signed or encrypted yet.

    Raises:
        WireError: A value does not fit its field; the text names it and its limit.
    """
    check_outline(outline)
    kind, names, address = _destination(outline.destination)
    flags = _PROPERTIES_FLAG | kind << 10
    flags |= outline.recoverable << 5
    flags |= outline.negative_journaling << 8 | outline.positive_journaling << 9
    if outline.admin_queue:
        kind, name = _other_name(outline.admin_queue, "admin_queue")
        flags |= kind << 13
        names += name
    if outline.response_queue:
        kind, name = _other_name(outline.response_queue, "response_queue")
        flags |= kind << 16
        names += name
    priority = outline.priority
    if outline.transaction is not None:
        flags |= _TRANSACTION_FLAG
        priority = 0
        names += transaction_header(outline.transaction)
    properties = _properties(outline)
    base_flags = priority
    if outline.report_queue is not None:
        base_flags |= _DEBUG_FLAG | _TRACE_FLAG
        properties += _DEBUG.pack(DEBUG_QUEUE_PUBLIC, 0, outline.report_queue.bytes_le)
    if outline.destinations:
        flags |= _MULTI_QUEUE_FLAG
        properties += _multi_queue(outline)
    size = _FIXED.size + len(names) + len(properties)
    if size > PACKET_SIZE_MAX:
        raise WireError(
            f"the packet would have {size} bytes, at most {PACKET_SIZE_MAX} may travel",
            field="packet_size",
        )
    fixed = _FIXED.pack(
        VERSION,
        0,
        base_flags,
        SIGNATURE,
        size,
        outline.time_to_reach_queue,
        outline.source_queue_manager,
        address,
        outline.time_to_be_received,
        outline.sent_time,
        outline.message_ordinal,
        flags,
    )
    return fixed + names + properties


class Template:
    """A packet whose body is filled in again and again: much faster than building each anew."""

    __slots__ = ("_before_sizes", "_extra", "_head", "_rest", "_tail")

    def __init__(self, outline: Outline) -> None:
        packet = build_packet(replace(outline, body=b"", body_type=0))
        view = MessageView(packet)
        at = view.properties_at
        self._head = packet[:8]
        self._before_sizes = packet[12 : at + 24]
        self._extra = packet[at + 28 : at + 32]
        after = view.body_at
        self._rest = packet[at + 40 : after]
        self._tail = packet[after + -(after - at) % 4 :]

    def fill(self, body: bytes, body_type: int) -> bytes:
        """The packet with this body.

        Raises:
            WireError: It would be too large.
        """
        length = len(body)
        rest = self._rest
        filling = _FILLING[(length + len(rest)) & 3]
        size = 12 + len(self._before_sizes) + 16 + len(rest) + length + len(filling)
        size += len(self._tail)
        if size > PACKET_SIZE_MAX:
            raise WireError(
                f"the packet would have {size} bytes, at most {PACKET_SIZE_MAX} may travel",
                field="packet_size",
            )
        return b"".join(
            (
                self._head,
                _U32.pack(size),
                self._before_sizes,
                _U32.pack(body_type),
                self._extra,
                _STAMP.pack(length, length),
                rest,
                body,
                filling,
                self._tail,
            )
        )


def stamp(packet: bytes, source_queue_manager: bytes, sent_time: int, ordinal: int) -> bytes:
    """The packet with what only a queue manager may say: who it is from, when, and its number."""
    return b"".join(
        (
            packet[:16],
            source_queue_manager,
            packet[32:52],
            _STAMP.pack(sent_time, ordinal),
            packet[60:],
        )
    )


def in_transaction(
    view: MessageView,
    header: bytes,
    time_to_be_received: int,
    source_queue_manager: bytes,
    sent_time: int,
    ordinal: int,
) -> bytes:
    """The packet stamped, and as part of a transaction: recoverable, of priority 0.

    Args:
        view: The packet without.
        header: Its place in the transaction, as `transaction_header` says it.
        time_to_be_received: How long it lives, in seconds from when it was sent.
        source_queue_manager: As for `stamp`, and so is what follows.
        sent_time: When it was sent.
        ordinal: Its number.

    Raises:
        WireError: It is in one already, or becomes too large.
    """
    packet = view.packet
    size = view.packet_size + _TRANSACTION.size
    if view.transactional:
        raise WireError("the packet has a TransactionHeader already", field="transaction")
    if size > PACKET_SIZE_MAX:
        raise WireError(
            f"the packet would have {size} bytes, at most {PACKET_SIZE_MAX} may travel",
            field="packet_size",
        )
    at = view.user_header_end
    flags = view.user_flags | _TRANSACTION_FLAG | 1 << 5
    return b"".join(
        (
            packet[:2],
            _HEAD.pack(view.base_flags & ~7, SIGNATURE, size),
            packet[12:16],
            source_queue_manager,
            packet[32:48],
            _TIMES.pack(time_to_be_received, sent_time, ordinal, flags),
            packet[64:at],
            header,
            packet[at:],
        )
    )


QueueReference: TypeAlias = tuple[int, bytes]
"""[MS-MQMQ] 2.2.19.2: how a packet names an administration or response queue: type and bytes."""


def direct_reference(name: str) -> QueueReference:
    """A queue by its direct format name without prefix."""
    return DIRECT, _name(name, "direct_format_name")


def source_reference(number: int) -> QueueReference:
    """A private queue of the queue manager that sends, by its number."""
    return PRIVATE_ON_SOURCE, number.to_bytes(4, "little")


def with_references(
    view: MessageView, admin: QueueReference | None, response: QueueReference | None
) -> bytes:
    """The packet with other names for these queues; None leaves one as it is.

    Raises:
        WireError: It becomes too large.
    """
    packet, flags = view.packet, view.user_flags
    admin_at, response_at, end = view.names_at
    names = []
    for reference, old, shift in (
        (admin, packet[admin_at:response_at], 13),
        (response, packet[response_at:end], 16),
    ):
        kind, name = (flags >> shift & 7, old) if reference is None else reference
        flags = flags & ~(7 << shift) | kind << shift
        names.append(name)
    size = view.packet_size + sum(map(len, names)) - (end - admin_at)
    if size > PACKET_SIZE_MAX:
        raise WireError(
            f"the packet would have {size} bytes, at most {PACKET_SIZE_MAX} may travel",
            field="packet_size",
        )
    head = packet[:8] + _U32.pack(size) + packet[12:60] + _U32.pack(flags)
    return b"".join((head, packet[64:admin_at], *names, packet[end:]))


def without_time_to_reach(packet: bytes) -> bytes:
    """The packet of a message that has all the time to reach its queue."""
    return packet[:12] + _U32.pack(INFINITE) + packet[16:]


def with_previous(packet: bytes, transaction_at: int, number: int) -> bytes:
    """[MS-MQQB] 3.1.7.1.3: the packet that says which message of its sequence was before it."""
    at = transaction_at + 16
    return packet[:at] + _U32.pack(number) + packet[at + 4 :]


def ending_transaction(packet: bytes, *, is_first: bool, is_last: bool) -> bytes:
    """The packet of a transaction's first or last message, which says so."""
    at = MessageView(packet).user_header_end
    (flags,) = _U32.unpack_from(packet, at)
    return packet[:at] + _U32.pack(flags | is_first << 2 | is_last << 3) + packet[at + 4 :]


def one_hop_further(view: MessageView) -> bytes:
    """[MS-MQQB] 3.1.5.8.2: the packet after one more queue manager has handled it."""
    return view.packet[:60] + _U32.pack(view.user_flags + 1) + view.packet[64:]


def check_outline(outline: Outline) -> None:
    """Refuses numbers and identifiers that do not fit their fields.

    Raises:
        WireError: The text says which, and what belongs there.
    """
    if not 0 <= outline.priority <= 7:
        raise WireError(f"{outline.priority} is outside 0..7", field="priority")
    if outline.transaction is not None and not outline.recoverable:
        raise WireError("transactional messages are recoverable", field="recoverable")
    if len(outline.correlation_id) != CORRELATION_ID_SIZE:
        found = len(outline.correlation_id)
        raise WireError(f"{found} bytes where {CORRELATION_ID_SIZE} belong", field="correlation_id")
    if len(outline.source_queue_manager) != 16:
        raise WireError("a GUID has 16 bytes", field="source_queue_manager")
    for name, limit in _NUMBERS:
        value: int = getattr(outline, name)
        if not 0 <= value <= limit:
            raise WireError(f"{value} is outside 0..{limit:#x}", field=name)


_NUMBERS: Final = (
    ("message_ordinal", 0xFFFFFFFF),
    ("sent_time", 0xFFFFFFFF),
    ("time_to_reach_queue", 0xFFFFFFFF),
    ("time_to_be_received", 0xFFFFFFFF),
    ("body_type", 0xFFFFFFFF),
    ("application_tag", 0xFFFFFFFF),
    ("message_class", 0xFFFF),
    ("acknowledgments", 0x0F),
)


def _name(text: str, field: str) -> bytes:
    """[MS-MQMQ] 2.2.18.1.5.2: a direct name with its count, up to the next boundary."""
    if "\0" in text:
        raise WireError("a null character stands inside the name", field=field)
    data = text.encode("utf-16-le", "surrogatepass")
    count = len(data) + 2
    if count > DIRECT_NAME_BYTES_MAX:
        raise WireError(f"{count} bytes, at most {DIRECT_NAME_BYTES_MAX} fit", field=field)
    return count.to_bytes(2, "little") + data + b"\0\0" + _FILLING[(count + 2) & 3]


def _destination(name: Destination) -> tuple[int, bytes, bytes]:
    """[MS-MQMQ] 2.2.19.2: type and bytes of the name, and the QueueManagerAddress."""
    if isinstance(name, PrivateName):
        number = name.number.to_bytes(4, "little")
        return PRIVATE_ON_DESTINATION, number, name.computer.bytes_le
    if isinstance(name, PublicName):
        return PUBLIC, name.queue.bytes_le, _NULL_GUID
    return DIRECT, _name(name, "destination"), _NULL_GUID


def _other_name(name: Destination, field: str) -> tuple[int, bytes]:
    """[MS-MQMQ] 2.2.19.2: type and bytes of an administration or response queue's name."""
    if isinstance(name, PrivateName):
        return PRIVATE_ELSEWHERE, name.computer.bytes_le + name.number.to_bytes(4, "little")
    if isinstance(name, PublicName):
        return PUBLIC, name.queue.bytes_le
    return DIRECT, _name(name, field)


def _multi_queue(outline: Outline) -> bytes:
    """[MS-MQMQ] 2.2.20.1: all the queues that get a copy."""
    elements = tuple(MQFFormatNameElement(format_name=_form(n)) for n in outline.destinations)
    header = MultiQueueFormatHeader(
        destination=MQFAddressHeader(header_id=DESTINATION_ID, format_name_list=elements),
        administration=_one_queue(ADMIN_ID, outline.admin_queue),
        response=_one_queue(RESPONSE_ID, outline.response_queue),
    )
    return header.pack()


def _one_queue(header_id: int, name: Destination) -> MQFAddressHeader:
    names = (MQFFormatNameElement(format_name=_form(name)),) if name else ()
    return MQFAddressHeader(header_id=header_id, format_name_list=names)


def _form(name: Destination) -> MQFFormatName:
    if isinstance(name, PrivateName):
        return PrivateQueueFormatName(
            source_queue_manager=name.computer, private_queue_identifier=name.number
        )
    if isinstance(name, PublicName):
        return PublicQueueFormatName(public_queue_identifier=name.queue)
    return MQFDirectQueueFormatName(direct_format_name=name)


def transaction_header(place: TransactionPlace) -> bytes:
    """[MS-MQMQ] 2.2.20.5: the place of a message in its transaction.

    Raises:
        WireError: A number does not fit its field.
    """
    if not 1 <= place.sequence_number <= 0xFFFFFFFF:
        raise WireError(
            f"{place.sequence_number} is outside 1..0xffffffff", field="sequence_number"
        )
    if not 0 <= place.previous_sequence_number <= 0xFFFFFFFE:
        found = place.previous_sequence_number
        raise WireError(f"{found} is outside 0..0xfffffffe", field="previous_sequence_number")
    if not (0 <= place.identifier < 1 << 20 and 0 <= place.sequence_id < 1 << 64):
        raise WireError("an identifier does not fit its field", field="transaction")
    flags = place.final_ack_required << 1 | place.is_first << 2 | place.is_last << 3
    return _TRANSACTION.pack(
        flags | place.identifier << 4,
        place.sequence_id,
        place.sequence_number,
        place.previous_sequence_number,
    )


def transaction_headers(
    first: TransactionPlace, finals: Sequence[bool], *, is_last: bool
) -> list[bytes]:
    """The same for messages in a row.

    Args:
        first: The place of the first; the others follow it.
        finals: Which of them want a FinalAck.
        is_last: The transaction ends with the last of them.

    Raises:
        WireError: A number does not fit its field.
    """
    end = first.sequence_number + len(finals) - 1
    before = first.previous_sequence_number if len(finals) == 1 else end - 1
    transaction_header(first)
    transaction_header(first._replace(sequence_number=end, previous_sequence_number=before))
    pack, sequence_id, identifier = _TRANSACTION.pack, first.sequence_id, first.identifier << 4
    flags = [identifier | final << 1 for final in finals]
    flags[0] |= first.is_first << 2
    flags[-1] |= is_last << 3
    previous = first.previous_sequence_number
    headers = []
    number = first.sequence_number
    for each in flags:
        headers.append(pack(each, sequence_id, number, previous))
        previous = number
        number += 1
    return headers


def _properties(outline: Outline) -> bytes:
    """[MS-MQMQ] 2.2.19.3: properties, label, extension and body, up to the next boundary."""
    label = b""
    if outline.label:
        if "\0" in outline.label:
            raise WireError("a null character stands inside the label", field="label")
        label = outline.label.encode("utf-16-le", "surrogatepass") + b"\0\0"
        if len(label) > 2 * LABEL_LENGTH_MAX:
            raise WireError(
                f"{len(label) // 2 - 1} characters, at most {LABEL_LENGTH_MAX - 1} fit",
                field="label_length",
            )
    body, extension = outline.body, outline.extension
    fixed = _PROPERTIES.pack(
        outline.acknowledgments,
        len(label) // 2,
        outline.message_class,
        outline.correlation_id,
        outline.body_type,
        outline.application_tag,
        len(body),
        len(body),
        0,
        HASH_SHA_512,
        ENCRYPTION_AES_256,
        len(extension),
    )
    filling = _FILLING[(len(label) + len(extension) + len(body)) & 3]
    return b"".join((fixed, label, extension, body, filling))
