"""[MS-MQQB] 2.2.1, 2.2.2, 2.2.3, 2.2.6: the internal packets that open and acknowledge sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Generic, Self, TypeVar
from uuid import UUID

from merq.errors import WireError
from merq.wire.headers import BaseFlags, BaseHeader, SessionHeader
from merq.wire.layout import (
    BitField,
    Layout,
    bit,
    bit_field,
    bits,
    flag_word,
    guid_field,
    layout,
    number,
    other_bits,
    spare,
    spare_bytes,
)
from merq.wire.reader import Reader

SESSION_ACK = 1
ESTABLISH_CONNECTION = 2
CONNECTION_PARAMETERS = 3

RESPONSE_FILL = 0x5A
"""[MS-MQQB] 2.2.3.1: fills a response's padding; Windows sets BaseHeader.Reserved to it too."""

MERQ_REQUEST_PADDING = b"Merq".ljust(512, bytes([RESPONSE_FILL]))
"""The padding of our requests, where [MS-MQQB] 2.2.3.1 allows anything: another Merq knows us."""

MERQ_RESPONSE_RESERVED = 0x4D
"""BaseHeader.Reserved of our answer to another Merq; [MS-MQMQ] 2.2.19.1 allows any value."""


@bit_field("MS-MQQB 2.2.1", width=16)
class InternalFlags(BitField):
    """[MS-MQQB] 2.2.1: which internal packet this is, and whether it refuses."""

    packet_type: int = bits(
        0, 4, "PT", one_of=(SESSION_ACK, ESTABLISH_CONNECTION, CONNECTION_PARAMETERS), default=0
    )
    refused: bool = bit(4, "CS", default=False)
    reserved: int = other_bits(default=0)


@layout("MS-MQQB 2.2.1", size=4)
class InternalHeader(Layout):
    """[MS-MQQB] 2.2.1: the second header of every internal packet."""

    reserved: int = spare(2, default=0)
    flags: InternalFlags = flag_word(InternalFlags)


@layout("MS-MQQB 2.2.2.1", size=12)
class ConnectionParametersHeader(Layout):
    """[MS-MQQB] 2.2.2.1: how long to wait for acknowledgments, and how many to leave open.

    The times have ranges there. A registry key of Windows takes AckTimeout out of its own, so
    sessions bring them back into range, and nothing is refused here.
    """

    recoverable_ack_timeout: int = number(4)
    ack_timeout: int = number(4)
    reserved: int = spare(2, default=0)
    window_size: int = number(2)


@bit_field("MS-MQQB 2.2.3.1", width=16)
class OperatingSystemFlags(BitField):
    """[MS-MQQB] 2.2.3.1: what the initiator is and how it came."""

    fixed: int = bits(0, 8, "RE", default=0x10)
    without_ping: bool = bit(8, "SE", default=False)
    server_class: bool = bit(9, "OS", default=False)
    quality_of_service: bool = bit(10, "QS", default=False)
    reserved: int = other_bits(default=0)


@layout("MS-MQQB 2.2.3.1", size=552)
class EstablishConnectionHeader(Layout):
    """[MS-MQQB] 2.2.3.1: who wants to talk to whom."""

    client_guid: UUID = guid_field()
    server_guid: UUID = guid_field()
    time_stamp: int = number(4)
    operating_system: OperatingSystemFlags = flag_word(OperatingSystemFlags)
    reserved: int = spare(2, default=0)
    padding: bytes = spare_bytes(512, default=bytes(512))


_H = TypeVar("_H", bound=Layout)


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalPacket(Generic[_H]):
    """[MS-MQQB] 2.2: BaseHeader, InternalHeader and one header more."""

    base_header: BaseHeader
    internal_header: InternalHeader
    header: _H

    PACKET_TYPE: ClassVar[int]
    NAME: ClassVar[str]
    FORM: ClassVar[type[Layout]]

    @classmethod
    def of(cls, header: _H, *, refused: bool = False, base_reserved: int = 0) -> Self:
        """The packet around a header, with everything else as the document asks."""
        return cls(
            base_header=BaseHeader(
                reserved=base_reserved,
                flags=BaseFlags(internal=True, session_header=cls.FORM is SessionHeader),
                packet_size=BaseHeader.SIZE + InternalHeader.SIZE + cls.FORM.SIZE,
            ),
            internal_header=InternalHeader(
                flags=InternalFlags(packet_type=cls.PACKET_TYPE, refused=refused)
            ),
            header=header,
        )

    def pack(self) -> bytes:
        """The bytes."""
        data = self.base_header.pack() + self.internal_header.pack() + self.header.pack()
        if problem := self._problem(len(data)):
            reason, field, _ = problem
            raise WireError(reason, field=f"{type(self).__name__}.{field}")
        return data

    @classmethod
    def unpack(cls, reader: Reader, base: BaseHeader, internal: InternalHeader) -> Self:
        """The rest of a packet whose first two headers were read."""
        with reader.part(cls.NAME):
            header = cls.FORM.unpack(reader)
        reader.finish()
        packet = cls(base_header=base, internal_header=internal, header=header)  # type: ignore[arg-type]
        if problem := packet._problem(reader.position):
            reason, field, offset = problem
            raise reader.fail(reason, field, offset=offset)
        return packet

    def _problem(self, size: int) -> tuple[str, str, int] | None:
        """What the headers say that cannot be true together, in which field and where."""
        found = self.internal_header.flags.packet_type
        flags = self.base_header.flags
        if not flags.internal:
            return "IN is clear in an internal packet", "base_header.flags", 2
        if found != self.PACKET_TYPE:
            reason = f"PT is {found}, not {self.PACKET_TYPE}"
            return reason, "internal_header.flags", BaseHeader.SIZE + 2
        if self.FORM is SessionHeader and not flags.session_header:
            return "SH is clear in a SessionAck packet", "base_header.flags", 2
        if self.base_header.packet_size != size:
            reason = f"PacketSize is {self.base_header.packet_size}, the packet has {size} bytes"
            return reason, "base_header.packet_size", 8
        return None


class EstablishConnection(InternalPacket[EstablishConnectionHeader]):
    """[MS-MQQB] 2.2.3: asks for a session, or answers."""

    PACKET_TYPE = ESTABLISH_CONNECTION
    NAME = "establish_connection_header"
    FORM = EstablishConnectionHeader


class ConnectionParameters(InternalPacket[ConnectionParametersHeader]):
    """[MS-MQQB] 2.2.2: agrees on time-outs and windows."""

    PACKET_TYPE = CONNECTION_PARAMETERS
    NAME = "connection_parameters_header"
    FORM = ConnectionParametersHeader


class SessionAck(InternalPacket[SessionHeader]):
    """[MS-MQQB] 2.2.6: a session acknowledgment that travels alone."""

    PACKET_TYPE = SESSION_ACK
    NAME = "session_header"
    FORM = SessionHeader


INTERNAL_PACKETS: dict[int, type[EstablishConnection | ConnectionParameters | SessionAck]] = {
    SESSION_ACK: SessionAck,
    ESTABLISH_CONNECTION: EstablishConnection,
    CONNECTION_PARAMETERS: ConnectionParameters,
}
