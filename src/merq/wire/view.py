"""A read-only view over a UserMessage packet's bytes, for hot paths.

A view accepts exactly the packets that `UserMessage.parse` accepts. The common forms are checked
here in one pass over the fixed fields; whatever is not plainly in order, be it rare or wrong, is
left to the full parser, which either accepts it or says what is wrong and where. After that,
fields are read by their offset when they are asked for. Names stay bytes until a person asks.
"""

from __future__ import annotations

import struct
from typing import Final, final
from uuid import UUID

from merq.wire.message import UserMessage, examine
from merq.wire.security import SecurityHeader

# Numbers that headers.py has too stand here again as Final: the compiled build folds them in.
_VERSION: Final = 0x10
_SIGNATURE: Final = 0x524F494C
_PACKET_SIZE_MAX: Final = 0x00400000
_SESSION_SIZE: Final = 16
_SEQUENCE_MAX: Final = 0xFFFFFFFF

# [MS-MQMQ] 2.2.19.1, bits of BaseHeader.Flags.
_PRIORITY: Final = 0x0007
_SESSION: Final = 0x0010
_TRACED: Final = 0x0100
_BASE_RARE: Final = 0x0128  # IN, DH and TR: left to the full parser

# [MS-MQMQ] 2.2.19.2, bits of UserHeader.Flags.
_HOPS: Final = 0x0000001F
_RECOVERABLE: Final = 0x00000020
_NEGATIVE_JOURNAL: Final = 0x00000100
_POSITIVE_JOURNAL: Final = 0x00000200
_OTHER_NAMES: Final = 0x0007E000  # AQ and RQ
_SECURITY: Final = 0x00080000
_TRANSACTION: Final = 0x00100000
_PROPERTIES: Final = 0x00200000
_CONNECTOR: Final = 0x00400000
# CQ, MQ, AH and HH are left to the full parser; MP must be set, and no mode above recoverable is.
_USER_PLAIN_MASK: Final = 0x12C00000 | _PROPERTIES | 0x00000040
_OPTIONAL: Final = _OTHER_NAMES | _SECURITY | _TRANSACTION

_HOPS_MAX: Final = 0x1D
_LABEL_MAX: Final = 0xFA
_NAMES_AT: Final = 64
_PROPERTIES_SIZE: Final = 56
_PLAIN_MIN: Final = _NAMES_AT + _PROPERTIES_SIZE
_TRANSACTION_SIZE: Final = 20
_SECURITY_SIZE: Final = 16
_CONNECTOR_GUID: Final = 0x01  # [MS-MQMQ] 2.2.20.5, CG
_BODY_ENCRYPTED: Final = 0x20  # [MS-MQMQ] 2.2.20.6, EB

# Version, flags, signature, size of the BaseHeader; flags of the UserHeader.
_FIXED: Final = struct.Struct("<BxHII48xI")
# Label length, message size, allocated size, extension size of the MessagePropertiesHeader.
_PROPERTIES_FIXED: Final = struct.Struct("<xB30xII12xI")
# Flags, number and previous number of the TransactionHeader.
_TRANSACTION_FIXED: Final = struct.Struct("<I8xII")
_TRANSACTION_PLACE: Final = struct.Struct("<QII")
_SECURITY_FIXED: Final = struct.Struct("<HHHHII")
_U32: Final = struct.Struct("<I")
_U64: Final = struct.Struct("<Q")

# [MS-MQMQ] 2.2.19.2: bytes that a name of each type takes; direct names (7) tell their own.
_NAME_SIZES: Final = (0, 0, 4, 4, 4, 16, 20)


def is_text(packet: bytes, start: int, end: int) -> bool:
    """Whether the only null character is the last; False where it takes a closer look."""
    # In plain text the first pair of zeros is the terminator, or starts in the high byte before.
    return packet[end - 1] == 0 and packet.find(b"\0\0", start, end) >= end - 3


def sequence_place(packet: bytes) -> tuple[int, int, int, int]:
    """Of a transactional packet that was found to be in order before: where its place is said.

    That is where the TransactionHeader begins, then sequence, number, and the number before it.
    """
    flags: int = _U32.unpack_from(packet, 60)[0]
    if flags & (_OTHER_NAMES | _CONNECTOR):
        view = MessageView(packet)
        return view.user_header_end, *view.tx_place
    kind = flags >> 10 & 7
    at = _NAMES_AT + _NAME_SIZES[kind] if kind != 7 else (packet[64] | packet[65] << 8) + 69 & ~3
    sequence: tuple[int, int, int] = _TRANSACTION_PLACE.unpack_from(packet, at + 4)
    return at, *sequence


@final
class MessageView:
    """[MS-MQMQ] 2.2.20: the fields of a packet that was found to be in order.

    [MS-MQDMPR] 3.1.7.1.31: it is what a message is read from; `decode` has the rest, such as the
    items of a SecurityHeader.
    """

    __slots__ = (
        "_body_at",
        "_body_length",
        "_destination_end",
        "_label_length",
        "_names_end",
        "_properties_at",
        "base_flags",
        "packet",
        "packet_size",
        "user_flags",
    )

    packet: bytes
    packet_size: int
    base_flags: int
    user_flags: int
    _destination_end: int
    _names_end: int
    _properties_at: int
    _label_length: int
    _body_at: int
    _body_length: int

    def __init__(self, packet: bytes) -> None:
        self.packet = packet
        if not self._is_plain():
            self._study()

    # One pass without calls for the commonest packet: in plain Python a call costs as much as
    # the check that it makes.
    def _is_plain(self) -> bool:  # noqa: C901, PLR0911
        """Checks the common forms; False leaves the packet to the full parser."""
        packet = self.packet
        length = len(packet)
        if length < _PLAIN_MIN:
            return False
        fixed: tuple[int, int, int, int, int] = _FIXED.unpack_from(packet)
        version, base_flags, signature, size, flags = fixed
        if (
            version != _VERSION
            or signature != _SIGNATURE
            or base_flags & _BASE_RARE
            or flags & _USER_PLAIN_MASK != _PROPERTIES
            or flags & _HOPS > _HOPS_MAX
            or size > _PACKET_SIZE_MAX
        ):
            return False
        if base_flags & _SESSION:
            if length != size + _SESSION_SIZE or not packet[size + 12] | packet[size + 13]:
                return False
        elif length != size:
            return False

        kind = flags >> 10 & 7
        if kind == 7:
            end = _NAMES_AT + 2 + (packet[_NAMES_AT] | packet[_NAMES_AT + 1] << 8)
            if end & 1 or end < _NAMES_AT + 4 or end > size or not is_text(packet, 66, end):
                return False
            at = end + 3 & ~3
        elif kind in (0, 3, 5):
            at = _NAMES_AT + _NAME_SIZES[kind]
        else:
            return False
        self.packet_size = size
        self.base_flags = base_flags
        self.user_flags = flags
        self._destination_end = self._names_end = at
        if flags & _OPTIONAL:
            at = self._skip_optional(at, flags)
            if at == 0:
                return False

        if at + _PROPERTIES_SIZE > size:
            return False
        sizes: tuple[int, int, int, int] = _PROPERTIES_FIXED.unpack_from(packet, at)
        characters, body, allocated, extension = sizes
        self._properties_at = at
        self._label_length = characters
        at += _PROPERTIES_SIZE
        if characters:
            end = at + 2 * characters
            if characters > _LABEL_MAX or end > size or not is_text(packet, at, end):
                return False
            at = end
        self._body_at = at = at + extension
        self._body_length = body
        # [MS-MQQB] 3.1.7.1.5: an encrypted body takes AllocationBodySize bytes.
        return at + (body if body > allocated else allocated) + 3 & ~3 == size  # noqa: FURB136

    def _skip_optional(self, at: int, flags: int) -> int:
        """Past other names, TransactionHeader and SecurityHeader; 0 if they are not plain."""
        packet, size = self.packet, self.packet_size
        if flags & _OTHER_NAMES:
            admin, response = flags >> 13 & 7, flags >> 16 & 7
            if admin in (1, 4):
                return 0
            at = self._name_end(admin, at)
            if at:
                at = self._name_end(response, at)
            if at == 0:
                return 0
            self._names_end = at
        if flags & _TRANSACTION:
            if at + _TRANSACTION_SIZE > size or not flags & _RECOVERABLE:
                return 0
            place: tuple[int, int, int] = _TRANSACTION_FIXED.unpack_from(packet, at)
            own, sequence_number, previous = place
            if own & 1 or sequence_number == 0 or previous == _SEQUENCE_MAX:
                return 0
            at += _TRANSACTION_SIZE
        return self._skip_security(at) if flags & _SECURITY else at

    def _skip_security(self, at: int) -> int:
        """Past the SecurityHeader; 0 if it is not plain.

        A sender's SID is plain; a queue manager's GUID, an alternative provider or no item at all
        is for the full parser.
        """
        if at + _SECURITY_SIZE > self.packet_size:
            return 0
        fixed: tuple[int, int, int, int, int, int] = _SECURITY_FIXED.unpack_from(self.packet, at)
        own, sender, key, signature, cert, provider = fixed
        if own & 0x000F != 1 or provider or cert > 0xFFFF or not sender | key | signature | cert:
            return 0
        at += _SECURITY_SIZE + (sender + 3 & ~3)
        if key | signature | cert:
            at += (key + 3 & ~3) + (signature + 3 & ~3) + (cert + 3 & ~3)
        return at

    def _name_end(self, kind: int, at: int) -> int:
        """Where the name at `at` ends, filling included; 0 if it is not plain."""
        if kind != 7:
            return at + _NAME_SIZES[kind]
        if at + 2 > self.packet_size:
            return 0
        packet = self.packet
        end = at + 2 + (packet[at] | packet[at + 1] << 8)
        if end & 1 or end < at + 4 or end > self.packet_size or not is_text(packet, at + 2, end):
            return 0
        return end + 3 & ~3

    def _study(self) -> None:
        """Lets the full parser decide, and takes the offsets from what it found."""
        found = examine(self.packet)
        flags = found.user_flags
        self.base_flags, self.user_flags = found.base_flags, flags
        self.packet_size = found.packet_size
        at = self._raw_name_end(flags >> 10 & 7, _NAMES_AT)
        self._destination_end = at
        at = self._raw_name_end(flags >> 13 & 7, at)
        self._names_end = self._raw_name_end(flags >> 16 & 7, at)
        self._properties_at = found.properties_at
        self._label_length = found.label_length
        self._body_at, self._body_length = found.body_at, found.body_length

    # What routing and queues ask for.

    @property
    def priority(self) -> int:
        """0 to 7; 7 goes first.

        [MS-MQDMPR] 3.1.7.1.32: always 0 for a transactional message, whatever its bits are.
        """
        return 0 if self.user_flags & _TRANSACTION else self.base_flags & _PRIORITY

    @property
    def delivery_mode(self) -> int:
        """0 express, 1 recoverable (transactional messages are recoverable)."""
        return self.user_flags >> 5 & 3

    @property
    def transactional(self) -> bool:
        """Whether the message belongs to a transaction."""
        return self.user_flags & _TRANSACTION != 0

    @property
    def hop_count(self) -> int:
        """How many routing servers handled the message."""
        return self.user_flags & _HOPS

    @property
    def traced(self) -> bool:
        """Whether trace messages are wanted."""
        return self.base_flags & _TRACED != 0

    @property
    def positive_journaling(self) -> bool:
        """Whether the sender keeps a copy of what was delivered."""
        return self.user_flags & _POSITIVE_JOURNAL != 0

    @property
    def negative_journaling(self) -> bool:
        """Whether the sender keeps a copy of what could not be delivered."""
        return self.user_flags & _NEGATIVE_JOURNAL != 0

    @property
    def destination_type(self) -> int:
        """The type of the destination's name, as in `merq.wire.queues`."""
        return self.user_flags >> 10 & 7

    @property
    def destination(self) -> bytes:
        """The destination's name as it lies in the packet, without what fills it up."""
        packet = self.packet
        if self.user_flags >> 10 & 7 == 7:
            return packet[_NAMES_AT + 2 : _NAMES_AT + (packet[64] | packet[65] << 8)]
        return packet[_NAMES_AT : self._destination_end]

    @property
    def admin_queue_type(self) -> int:
        """The type of the administration queue's name."""
        return self.user_flags >> 13 & 7

    @property
    def admin_queue(self) -> bytes:
        """The administration queue's name as it lies in the packet."""
        return self._name(self.user_flags >> 13 & 7, self._destination_end)

    @property
    def response_queue_type(self) -> int:
        """The type of the response queue's name; 1 means the administration queue."""
        return self.user_flags >> 16 & 7

    @property
    def response_queue(self) -> bytes:
        """The response queue's name as it lies in the packet."""
        at = self._raw_name_end(self.user_flags >> 13 & 7, self._destination_end)
        return self._name(self.user_flags >> 16 & 7, at)

    @property
    def names_at(self) -> tuple[int, int, int]:
        """Where the names of administration and response queue begin, and where both end."""
        admin_at = self._destination_end
        response_at = self._raw_name_end(self.user_flags >> 13 & 7, admin_at)
        return admin_at, response_at, self._names_end

    def _name(self, kind: int, start: int) -> bytes:
        packet = self.packet
        if kind == 7:
            return packet[start + 2 : start + (packet[start] | packet[start + 1] << 8)]
        return packet[start : start + _NAME_SIZES[kind]]

    def _raw_name_end(self, kind: int, at: int) -> int:
        """Where a name that was checked already ends."""
        if kind == 7:
            return at + 5 + (self.packet[at] | self.packet[at + 1] << 8) & ~3
        return at + _NAME_SIZES[kind]

    # What identifies a message.

    @property
    def message_id(self) -> bytes:
        """[MS-MQMQ] 2.2.18.1.3: the MessageIdentifier's 20 bytes."""
        packet = self.packet
        return packet[16:32] + packet[56:60]

    @property
    def source_queue_manager(self) -> UUID:
        """Who sent the message first."""
        return UUID(bytes_le=self.packet[16:32])

    @property
    def queue_manager_address(self) -> UUID:
        """The destination's queue manager; null for direct names."""
        return UUID(bytes_le=self.packet[32:48])

    @property
    def message_ordinal(self) -> int:
        """The number that the sending queue manager gave the message."""
        return self._u32(56)

    # Times, in seconds.

    @property
    def time_to_reach_queue(self) -> int:
        """Seconds from SentTime until the message must have arrived; 0xFFFFFFFF is for ever."""
        return self._u32(12)

    @property
    def time_to_be_received(self) -> int:
        """Seconds from SentTime until the message must have been received."""
        return self._u32(48)

    @property
    def sent_time(self) -> int:
        """Seconds since 1970, UTC."""
        return self._u32(52)

    # What the application said.

    @property
    def acknowledgments(self) -> int:
        """[MS-MQMQ] 2.2.19.3: the administration acknowledgments asked for, four bits."""
        return self.packet[self._properties_at] & 0x0F

    @property
    def message_class(self) -> int:
        """[MS-MQMQ] 2.2.18.1.6: normal, report, or which acknowledgment."""
        at = self._properties_at + 2
        return self.packet[at] | self.packet[at + 1] << 8

    def with_acknowledgments(self, asked: int) -> bytes:
        """The packet with other administration acknowledgments asked for."""
        at = self._properties_at
        return self.packet[:at] + bytes([self.packet[at] & ~0x0F | asked]) + self.packet[at + 1 :]

    def with_class(self, message_class: int) -> bytes:
        """The packet with another class: why the message is where it is."""
        at = self._properties_at + 2
        return self.packet[:at] + message_class.to_bytes(2, "little") + self.packet[at + 2 :]

    @property
    def correlation_id(self) -> bytes:
        """20 bytes that mean what the application wants, or the message acknowledged."""
        at = self._properties_at + 4
        return self.packet[at : at + 20]

    @property
    def body_type(self) -> int:
        """[MS-MQMQ] 2.2.12: the type of the body."""
        return self._u32(self._properties_at + 24)

    @property
    def application_tag(self) -> int:
        """A number that means what the application wants."""
        return self._u32(self._properties_at + 28)

    @property
    def label(self) -> str:
        """The label; empty where there is none."""
        if self._label_length == 0:
            return ""
        start = self._properties_at + _PROPERTIES_SIZE
        text = self.packet[start : start + 2 * self._label_length - 2]
        return text.decode("utf-16-le", "surrogatepass")

    @property
    def extension(self) -> bytes:
        """The application's own bytes beside the body."""
        start = self._properties_at + _PROPERTIES_SIZE + 2 * self._label_length
        return self.packet[start : self._body_at]

    @property
    def body_size(self) -> int:
        """MessageSize: how long the body is in clear."""
        return self._body_length

    @property
    def body(self) -> bytes:
        """The body as it travels; for an encrypted one, its first MessageSize bytes."""
        return self.packet[self._body_at : self._body_at + self._body_length]

    # A transactional message's place; only where `transactional` is true.

    @property
    def tx_sequence_id(self) -> int:
        """[MS-MQMQ] 2.2.18.1.2: the sequence as the number by which sequences are compared."""
        value: int = _U64.unpack_from(self.packet, self._transaction_at() + 4)[0]
        return value

    @property
    def tx_sequence_number(self) -> int:
        """The message's number in its sequence, from 1."""
        return self._u32(self._transaction_at() + 12)

    @property
    def previous_tx_sequence_number(self) -> int:
        """The number of the message before it, 0 if there is none."""
        return self._u32(self._transaction_at() + 16)

    @property
    def tx_place(self) -> tuple[int, int, int]:
        """All three at once: sequence, number, and the number before it."""
        place: tuple[int, int, int] = _TRANSACTION_PLACE.unpack_from(
            self.packet, self._transaction_at() + 4
        )
        return place

    @property
    def final_ack_required(self) -> bool:
        """Whether the sender waits for a FinalAck."""
        return self.packet[self._transaction_at()] & 2 != 0

    @property
    def privacy_level(self) -> int:
        """[MS-MQMQ] 2.2.19.3: whether and how the body is encrypted; 0 is not."""
        return self._u32(self._properties_at + 40)

    @property
    def is_encrypted(self) -> bool:
        """[MS-MQMQ] 2.2.19.3, 2.2.20.6: whether PrivacyLevel or EB says that the body is."""
        if self.privacy_level:
            return True
        if not self.user_flags & _SECURITY:
            return False
        at = self.user_header_end
        if self.user_flags & _TRANSACTION:
            at += _TRANSACTION_SIZE + (16 if self.packet[at] & _CONNECTOR_GUID else 0)
        return self.packet[at] & _BODY_ENCRYPTED != 0

    @property
    def is_signed(self) -> bool:
        """Whether the message has a signature; whether it is good is not said."""
        header = self.security_header
        return header is not None and header.fields.signature_size > 0

    @property
    def security_header(self) -> SecurityHeader | None:
        """[MS-MQMQ] 2.2.20.6: who sent the message, if it says anything of that."""
        return self.decode().security_header if self.user_flags & _SECURITY else None

    @property
    def properties_at(self) -> int:
        """Where the MessagePropertiesHeader begins."""
        return self._properties_at

    @property
    def body_at(self) -> int:
        """Where the body begins."""
        return self._body_at

    @property
    def user_header_end(self) -> int:
        """Where the UserHeader ends and a TransactionHeader stands, if there is one."""
        return self._names_end + (16 if self.user_flags & _CONNECTOR else 0)

    def _transaction_at(self) -> int:
        assert self.user_flags & _TRANSACTION, "the message is not transactional"
        return self.user_header_end

    def _u32(self, at: int) -> int:
        value: int = _U32.unpack_from(self.packet, at)[0]
        return value

    def decode(self) -> UserMessage:
        """Everything, as a value."""
        return UserMessage.parse(self.packet)
