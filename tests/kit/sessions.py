"""Sessions of [MS-MQQB] without a network: made, opened, and joined to each other."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from merq.protocol.binary.acknowledging import SessionHeaderFields
from merq.protocol.binary.session import NULL_GUID, Session
from merq.protocol.binary.settings import SessionSettings
from merq.wire.build import Outline, TransactionPlace, build_packet
from merq.wire.connection import (
    ConnectionParameters,
    ConnectionParametersHeader,
    EstablishConnection,
    EstablishConnectionHeader,
    OperatingSystemFlags,
    SessionAck,
)
from merq.wire.headers import SessionHeader
from merq.wire.packet import parse_packet
from merq.wire.stream import PacketSplitter

OURS = UUID("11111111-2222-3333-4444-555555555555")
THEIRS = UUID("99999999-8888-7777-6666-555555555555")
STRANGER = UUID("77777777-0000-0000-0000-000000000007")
DIRECT = r"TCP:10.0.0.1\private$\q"


def initiator(
    settings: SessionSettings | None = None,
    now: float = 0.0,
    *,
    remote_guid: UUID = THEIRS,
    is_direct: bool = False,
) -> Session[int]:
    """The side that connects."""
    return Session(
        OURS,
        settings or SessionSettings(),
        now,
        is_initiator=True,
        remote_guid=NULL_GUID if is_direct else remote_guid,
        is_direct=is_direct,
    )


def acceptor(settings: SessionSettings | None = None, now: float = 0.0) -> Session[int]:
    """The side that was connected to."""
    return Session(THEIRS, settings or SessionSettings(), now, is_initiator=False)


def output(session: Session[int]) -> bytes:
    """What a session wants written."""
    return b"".join(session.take_output())


def said(session: Session[int]) -> list[object]:
    """The same as packets; internal ones whole, messages with their own header if there is one."""
    return [parse_packet(packet) for packet in PacketSplitter().feed(output(session))]


def joined(
    settings: SessionSettings | None = None,
    other: SessionSettings | None = None,
    now: float = 0.0,
    *,
    is_direct: bool = False,
) -> tuple[Session[int], Session[int]]:
    """An initiator and an acceptor with an open session."""
    first = initiator(settings, now, is_direct=is_direct)
    second = acceptor(other or settings, now)
    for _ in range(2):
        second.receive_data(output(first), now)
        first.receive_data(output(second), now)
    assert first.is_open, first.closing
    assert second.is_open, second.closing
    return first, second


def opened(settings: SessionSettings | None = None, now: float = 0.0) -> Session[int]:
    """An acceptor with an open session whose other side is played by the test."""
    return joined(settings, now=now)[1]


def establish(
    client: UUID = OURS,
    server: UUID = THEIRS,
    *,
    time_stamp: int = 0,
    refused: bool = False,
    without_ping: bool = True,
) -> bytes:
    """An EstablishConnection packet."""
    header = EstablishConnectionHeader(
        client_guid=client,
        server_guid=server,
        time_stamp=time_stamp,
        operating_system=OperatingSystemFlags(without_ping=without_ping, server_class=True),
    )
    return EstablishConnection.of(header, refused=refused).pack()


def parameters(*, recoverable: int = 500, wait: int = 20_000, window: int = 64) -> bytes:
    """A ConnectionParameters packet."""
    header = ConnectionParametersHeader(
        recoverable_ack_timeout=recoverable, ack_timeout=wait, window_size=window
    )
    return ConnectionParameters.of(header).pack()


def session_header(
    received: int = 0,
    *,
    recoverable: int = 0,
    flags: int = 0,
    sent: int = 0,
    recoverable_sent: int = 0,
    window: int = 64,
) -> SessionHeader:
    """A session acknowledgment."""
    return SessionHeader(
        ack_sequence_number=received & 0xFFFF,
        recoverable_msg_ack_seq_number=recoverable & 0xFFFF,
        recoverable_msg_ack_flags=flags,
        user_msg_sequence_number=sent & 0xFFFF,
        recoverable_msg_seq_number=recoverable_sent & 0xFFFF,
        window_size=window,
        reserved=0,
    )


def acknowledgment(received: int = 0, **fields: int) -> bytes:
    """A SessionAck packet."""
    return SessionAck.of(session_header(received, **fields)).pack()


def fields_of(header: SessionHeader) -> SessionHeaderFields:
    """The same as the session has it."""
    return SessionHeaderFields.unpack(header.pack(), 0)


def message(
    body: bytes = b"",
    *,
    recoverable: bool = False,
    transaction: TransactionPlace | None = None,
    ordinal: int = 1,
    destination: str = DIRECT,
) -> bytes:
    """A message as it travels, without a session's part."""
    return build_packet(
        Outline(
            destination=destination,
            source_queue_manager=OURS.bytes_le,
            message_ordinal=ordinal,
            body=body,
            recoverable=recoverable or transaction is not None,
            transaction=transaction,
        )
    )


def with_header(packet: bytes, header: SessionHeader) -> bytes:
    """A message that an acknowledgment travels along with."""
    return packet[:2] + bytes([packet[2] | 0x10]) + packet[3:] + header.pack()


def acks(session: Session[int]) -> list[SessionHeader]:
    """The acknowledgments that a session wants written, which must be all that it wants."""
    packets = said(session)
    assert all(isinstance(each, SessionAck) for each in packets), packets
    return [each.header for each in packets if isinstance(each, SessionAck)]


def give(session: Session[int], packets: Iterable[bytes], now: float = 0.0) -> None:
    """Messages come, and are taken care of at once."""
    session.receive_data(b"".join(packets), now)
    handle(session, now)


def handle(session: Session[int], now: float = 0.0) -> list[bytes]:
    """What came is taken care of; gives the bodies."""
    views = session.take_arrived()
    if views:
        session.handled(now)
    return [view.body for view in views]
