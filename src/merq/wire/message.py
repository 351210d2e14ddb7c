"""[MS-MQMQ] 2.2.20: the UserMessage packet, whole, as a value.

This is for tools, tests and the edges. The hot path reads packets through `merq.wire.view`, which
accepts exactly what `UserMessage.parse` accepts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from merq.errors import WireError
from merq.wire.headers import (
    PACKET_SIZE_MAX,
    BaseHeader,
    DebugHeader,
    SessionHeader,
    TransactionHeader,
)
from merq.wire.multiqueue import MultiQueueFormatHeader
from merq.wire.properties import MessagePropertiesHeader
from merq.wire.reader import Reader, TraceNode
from merq.wire.security import SecurityHeader
from merq.wire.soap import CompoundMessageHeader, SoapHeader, SRMPEnvelopeHeader
from merq.wire.user import UserHeader

_P = TypeVar("_P", bound="_Part")


class _Part(Protocol):
    def pack(self) -> bytes: ...

    @classmethod
    def unpack(cls, reader: Reader) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """[MS-MQMQ] 2.2.20, [MS-MQRR] 2.2.5.1, 2.2.5.1.1, 2.2.5.1.2: one whole message.

    The order of the optional headers is the document's; any other order is malformed. SRMPEnvelope
    and CompoundMessage are there if and only if the message came by HTTP.

    Attributes:
        trailing: Bytes that PacketSize counts behind the last header that the flags announce. They
            mean nothing to us and are carried along: a message that was refused for them would
            stay in its sender's queue, and hold up all behind it.
    """

    base_header: BaseHeader
    user_header: UserHeader
    transaction_header: TransactionHeader | None = None
    security_header: SecurityHeader | None = None
    message_properties_header: MessagePropertiesHeader
    debug_header: DebugHeader | None = None
    srmp_envelope_header: SRMPEnvelopeHeader | None = None
    compound_message_header: CompoundMessageHeader | None = None
    soap_header: SoapHeader | None = None
    multi_queue_format_header: MultiQueueFormatHeader | None = None
    trailing: bytes = b""
    session_header: SessionHeader | None = None

    def pack(self) -> bytes:
        """The bytes; PacketSize and the flags must tell the truth about what is there."""
        base, user = self.base_header, self.user_header.fields.flags
        if base.flags.internal:
            raise WireError("IN is set in a user message", field="BaseHeader.flags")
        for present, part, name in (
            (user.transaction_header, self.transaction_header, "TransactionHeader"),
            (user.security_header, self.security_header, "SecurityHeader"),
            (base.flags.debug_header, self.debug_header, "DebugHeader"),
            (user.from_http, self.srmp_envelope_header, "SRMPEnvelopeHeader"),
            (user.from_http, self.compound_message_header, "CompoundMessageHeader"),
            (user.soap_header, self.soap_header, "SoapHeader"),
            (
                user.multi_queue_format_header,
                self.multi_queue_format_header,
                "MultiQueueFormatHeader",
            ),
            (base.flags.session_header, self.session_header, "SessionHeader"),
        ):
            if present != (part is not None):
                state = "missing" if present else "not announced by its flag"
                raise WireError(f"the header is {state}", field=name)
        if problem := tracing_problem(base):
            raise WireError(problem, field="BaseHeader.flags")
        data = base.pack() + b"".join(part.pack() for part in self._parts()) + self.trailing
        if base.packet_size != len(data):
            raise WireError(
                f"PacketSize is {base.packet_size}, the packet has {len(data)} bytes",
                field="BaseHeader.packet_size",
            )
        return data if self.session_header is None else data + self.session_header.pack()

    def _parts(self) -> list[_Part]:
        """The headers that PacketSize counts, after the first, in order."""
        return [
            part
            for part in (
                self.user_header,
                self.transaction_header,
                self.security_header,
                self.message_properties_header,
                self.debug_header,
                self.srmp_envelope_header,
                self.compound_message_header,
                self.soap_header,
                self.multi_queue_format_header,
            )
            if part is not None
        ]

    def measured(self) -> Self:
        """The same message with PacketSize set to what its headers amount to."""
        size = BaseHeader.SIZE + sum(len(part.pack()) for part in self._parts())
        size += len(self.trailing)
        if size > PACKET_SIZE_MAX:
            raise WireError(
                f"the packet would have {size} bytes, at most {PACKET_SIZE_MAX} may travel",
                field="BaseHeader.packet_size",
            )
        return replace(self, base_header=replace(self.base_header, packet_size=size))

    @classmethod
    def parse(cls, data: bytes, *, trace: TraceNode | None = None) -> Self:
        """The message of exactly these bytes."""
        reader = Reader(data, trace=trace)
        return cls.unpack(reader, read_base(reader))

    @classmethod
    def unpack(cls, reader: Reader, base: BaseHeader) -> Self:
        """The rest of a packet whose BaseHeader was read and which fills the reader."""
        whole = reader.end
        if base.flags.internal:
            raise reader.fail("IN is set in a user message", "base_header.flags", offset=2)
        if problem := tracing_problem(base):
            raise reader.fail(problem, "base_header.flags", offset=2)
        expected = base.packet_size + (SessionHeader.SIZE if base.flags.session_header else 0)
        if expected != whole:
            reason = f"PacketSize calls for {expected} bytes, {whole} are there"
            raise reader.fail(reason, "base_header.packet_size", offset=8)
        with reader.bounded(base.packet_size):
            user = _read(reader, UserHeader, "user_header")
            flags = user.fields.flags
            message: dict[str, Any] = {
                "transaction_header": _optional(
                    reader, flags.transaction_header, TransactionHeader, "transaction_header"
                ),
                "security_header": _optional(
                    reader, flags.security_header, SecurityHeader, "security_header"
                ),
                "message_properties_header": _read(
                    reader, MessagePropertiesHeader, "message_properties_header"
                ),
                "debug_header": _optional(
                    reader, base.flags.debug_header, DebugHeader, "debug_header"
                ),
                "srmp_envelope_header": _optional(
                    reader, flags.from_http, SRMPEnvelopeHeader, "srmp_envelope_header"
                ),
                "compound_message_header": _optional(
                    reader, flags.from_http, CompoundMessageHeader, "compound_message_header"
                ),
                "soap_header": _optional(reader, flags.soap_header, SoapHeader, "soap_header"),
                "multi_queue_format_header": _optional(
                    reader,
                    flags.multi_queue_format_header,
                    MultiQueueFormatHeader,
                    "multi_queue_format_header",
                ),
                "trailing": reader.raw(reader.remaining, "trailing") if reader.remaining else b"",
            }
        session = _optional(reader, base.flags.session_header, SessionHeader, "session_header")
        return cls(base_header=base, user_header=user, session_header=session, **message)


class Examined(NamedTuple):
    """Where things are in a packet that was found to be in order.

    Attributes:
        base_flags: BaseHeader.Flags, as bits.
        user_flags: UserHeader.Flags, as bits.
        packet_size: Its bytes without a SessionHeader.
        properties_at: Where the MessagePropertiesHeader begins.
        label_length: Its characters, the last one null.
        body_at: Where the body begins.
        body_length: Its bytes, decrypted.
    """

    base_flags: int
    user_flags: int
    packet_size: int
    properties_at: int
    label_length: int
    body_at: int
    body_length: int


def examine(packet: bytes) -> Examined:
    """Checks a packet as `UserMessage.parse` does, without making values of its texts and names.

    Raises:
        WireError: It is not in order.
    """
    reader = Reader(packet, skims=True)
    message = UserMessage.unpack(reader, read_base(reader))
    at = reader.starts["message_properties_header"]
    fields = message.message_properties_header.fields
    body_at = at + fields.SIZE + 2 * fields.label_length + fields.extension_size
    return Examined(
        message.base_header.flags.pack(),
        message.user_header.fields.flags.pack(),
        message.base_header.packet_size,
        at,
        fields.label_length,
        body_at,
        fields.message_size,
    )


def read_base(reader: Reader) -> BaseHeader:
    """The BaseHeader at the reader's position."""
    return _read(reader, BaseHeader, "base_header")


def tracing_problem(base: BaseHeader) -> str:
    """[MS-MQMQ] 2.2.19.1: what the tracing flags say that cannot be true; empty if nothing."""
    if base.flags.traced and not base.flags.debug_header:
        return "TR is set without DH, but tracing needs a DebugHeader"
    return ""


def _read(reader: Reader, form: type[_P], name: str) -> _P:
    reader.starts[name] = reader.position
    with reader.part(name):
        value: _P = form.unpack(reader)
    return value


def _optional(reader: Reader, present: bool, form: type[_P], name: str) -> _P | None:  # noqa: FBT001
    return _read(reader, form, name) if present else None
