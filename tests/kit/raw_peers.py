"""The other side of a session as a bare socket: it says what it is told to, however impolite."""

from __future__ import annotations

from typing import Final, Self
from uuid import UUID, uuid4

from kit.raw_sockets import RawSocket
from kit.relaying import PATIENCE_S, PORT
from kit.vectors import frame
from merq.wire.build import Outline, build_packet
from merq.wire.connection import (
    ConnectionParameters,
    ConnectionParametersHeader,
    EstablishConnection,
    EstablishConnectionHeader,
    OperatingSystemFlags,
    SessionAck,
)
from merq.wire.packet import parse_packet
from merq.wire.stream import PacketSplitter

NULL_GUID: Final = UUID(int=0)


def establish(client: UUID, server: UUID = NULL_GUID) -> bytes:
    """[MS-MQQB] 2.2.3: who we are, and whom we want."""
    header = EstablishConnectionHeader(
        client_guid=client,
        server_guid=server,
        time_stamp=0,
        operating_system=OperatingSystemFlags(without_ping=True, server_class=True),
    )
    return EstablishConnection.of(header).pack()


def parameters(window: int = 64) -> bytes:
    """[MS-MQQB] 2.2.2: how long to wait, and how much to leave open."""
    header = ConnectionParametersHeader(
        recoverable_ack_timeout=500, ack_timeout=20_000, window_size=window
    )
    return ConnectionParameters.of(header).pack()


class RawPeer(RawSocket):
    """A connection to a queue manager, from an address of one's own."""

    def __init__(self, address: str, source: str = "") -> None:
        super().__init__((address, PORT), source=source, patience_s=PATIENCE_S)
        self.guid = uuid4()
        self._splitter = PacketSplitter()
        self._packets: list[bytes] = []
        self._ordinal = 0

    def say(self, *packets: bytes) -> None:
        self.socket.sendall(b"".join(packets))

    def hear(self) -> bytes:
        """The next packet; fails at the end of the stream."""
        while not self._packets:
            data = self.socket.recv(1 << 18)
            if not data:
                raise ConnectionError("the other side has closed the connection")
            self._packets += self._splitter.feed(data)
            assert self._splitter.failure is None, self._splitter.failure
        return self._packets.pop(0)

    def hear_ack(self) -> SessionAck:
        """The next session acknowledgment; what else comes is not of interest."""
        while True:
            found = parse_packet(self.hear())
            if isinstance(found, SessionAck):
                return found

    def open(self, window: int = 64) -> Self:
        """A session as it should be."""
        self.say(establish(self.guid))
        assert isinstance(parse_packet(self.hear()), EstablishConnection)
        self.say(parameters(window))
        assert isinstance(parse_packet(self.hear()), ConnectionParameters)
        return self

    def message(self, destination: str, body: bytes = b"", *, recoverable: bool = False) -> bytes:
        """A message of this side."""
        self._ordinal += 1
        return build_packet(
            Outline(
                destination=destination.removeprefix("DIRECT="),
                source_queue_manager=self.guid.bytes_le,
                message_ordinal=self._ordinal,
                body=body,
                recoverable=recoverable,
            )
        )


def documented(number: int, *, client: UUID, server: UUID) -> bytes:
    """A frame of [MS-MQQB] 4.1 with other queue managers in the places of its two."""
    data = frame(number)
    if number == 3:
        assert len(data) == 572
        return data[:20] + client.bytes_le + server.bytes_le + data[52:]
    return data
