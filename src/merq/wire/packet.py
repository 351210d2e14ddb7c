"""[MS-MQQB] 3.1.5.1.1: which packet these bytes are, and its value.

Everything that travels on a session goes through `parse_packet`; pings, which travel on their own
port, through `merq.wire.ping`.
"""

from __future__ import annotations

from merq.wire.acks import FinalAck, OrderAck, recognise
from merq.wire.connection import (
    INTERNAL_PACKETS,
    ConnectionParameters,
    EstablishConnection,
    InternalHeader,
    SessionAck,
)
from merq.wire.message import UserMessage, read_base
from merq.wire.reader import Reader, TraceNode

Packet = EstablishConnection | ConnectionParameters | SessionAck | OrderAck | FinalAck | UserMessage


def parse_packet(data: bytes, *, trace: TraceNode | None = None) -> Packet:
    """The packet of exactly these bytes; anything else raises WireError."""
    reader = Reader(data, trace=trace)
    base = read_base(reader)
    if not base.flags.internal:
        return recognise(UserMessage.unpack(reader, base), reader)
    with reader.part("internal_header"):
        internal = InternalHeader.unpack(reader)
    return INTERNAL_PACKETS[internal.flags.packet_type].unpack(reader, base, internal)
