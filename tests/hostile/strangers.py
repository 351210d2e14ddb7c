"""Somebody who reaches port 1801 and means no good: a bare socket that says what it likes."""

from __future__ import annotations

from collections.abc import Iterator
from struct import unpack_from
from typing import Any, Final, Self
from uuid import UUID, uuid4

from hostile import stranger_packets as packets
from kit.raw_sockets import RawSocket

PORT: Final = 1801
PATIENCE_S: Final = 20.0


class Stranger(RawSocket):
    """A connection to a queue manager's port, from an address of one's own.

    Attributes:
        guid: Who it says that it is.
        theirs: Who the queue manager says that it is, once a session is open.
    """

    def __init__(
        self,
        address: str,
        source: str = "127.9.9.9",
        *,
        guid: UUID | None = None,
        port: int = PORT,
        patience_s: float = PATIENCE_S,
    ) -> None:
        super().__init__((address, port), source=source, patience_s=patience_s)
        self.guid = guid or uuid4()
        self.theirs = UUID(int=0)
        self._ordinal = 0
        self._unread = b""

    def say(self, *data: bytes) -> None:
        """Bytes as they are."""
        self.socket.sendall(b"".join(data))

    def open(self, window: int = 64) -> Self:
        """A session, by [MS-MQQB] 3.1.1.7.1; fails if it is refused."""
        self.say(packets.establish(self.guid.bytes_le))
        answer = self.hear()
        assert len(answer) == packets.ESTABLISH_BYTES, answer[:20]
        assert not answer[18] & 0x10, "the session was refused"
        self.theirs = UUID(bytes_le=answer[36:52])
        self.say(packets.parameters(window))
        assert len(self.hear()) == packets.PARAMETERS_BYTES
        return self

    def message(self, destination: str | int | bytes, **what: Any) -> bytes:
        """A message of this stranger; what it is like, `stranger_packets.message` says."""
        self._ordinal += 1
        source = what.pop("source", self.guid.bytes_le)
        return packets.message(source, self._ordinal, destination, **what)

    def hear(self) -> bytes:
        """The next packet.

        Raises:
            ConnectionError: The other side has closed the connection.
            TimeoutError: Nothing comes.
        """
        while True:
            size = _size(self._unread)
            if size and len(self._unread) >= size:
                packet, self._unread = self._unread[:size], self._unread[size:]
                return packet
            data = self.socket.recv(1 << 18)
            if not data:
                raise ConnectionError("the other side has closed the connection")
            self._unread += data

    def hear_messages(self) -> Iterator[bytes]:
        """User messages as they come, without what else comes; ends as `hear` does."""
        while True:
            packet = self.hear()
            if not packet[2] & 0x08:
                yield packet

    def hear_acknowledged(self, count: int) -> None:
        """Waits until so many messages of this session are acknowledged."""
        while True:
            packet = self.hear()
            if len(packet) == packets.SESSION_ACK_BYTES and packet[18] & 0x0F == 1:
                (came,) = unpack_from("<H", packet, 20)
                if came >= count:
                    return


def _size(data: bytes) -> int:
    if len(data) < 16:
        return 0
    size: int = unpack_from("<I", data, 8)[0]
    # [MS-MQMQ] 2.2.19.1: a SessionHeader behind a message is not counted.
    return size + 16 if data[2] & 0x18 == 0x10 else size
