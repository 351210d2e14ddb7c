"""The other side of a session as a bare socket: it says what it is told to, however impolite."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Final, Self
from uuid import UUID, uuid4

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


class RawPeer:
    """A connection to a queue manager, from an address of one's own."""

    def __init__(self, address: str, source: str = "") -> None:
        self.guid = uuid4()
        self._splitter = PacketSplitter()
        self._packets: list[bytes] = []
        self._ordinal = 0
        self.socket = socket.socket()
        try:
            self.socket.settimeout(PATIENCE_S)
            if source:
                self.socket.bind((source, 0))
            self.socket.connect((address, PORT))
        except BaseException:
            self.socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

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

    def is_cut_off(self, within_s: float = PATIENCE_S) -> bool:
        """Whether the other side closes the connection; what it says before is thrown away."""
        self.socket.settimeout(within_s)
        try:
            while self.socket.recv(1 << 16):
                pass
        except TimeoutError:
            return False
        except ConnectionError:
            return True
        return True


def documented(number: int, *, client: UUID, server: UUID) -> bytes:
    """A frame of [MS-MQQB] 4.1 with other queue managers in the places of its two."""
    data = frame(number)
    if number == 3:
        assert len(data) == 572
        return data[:20] + client.bytes_le + server.bytes_le + data[52:]
    return data
