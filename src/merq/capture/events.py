"""What a capture is read into: bytes of connections in order, what is missing, and datagrams."""

from dataclasses import dataclass
from enum import Enum

from merq.capture.frames import Endpoint


class Direction(Enum):
    """Which way bytes went, by who opened the connection."""

    TO_ACCEPTOR = "initiator → acceptor"
    TO_INITIATOR = "acceptor → initiator"


class Ending(Enum):
    """How a connection came to its end; the value says it to people."""

    FINISHED = "finished by both sides"
    RESET = "reset"
    REPLACED = "replaced by a new connection between the same endpoints"
    FORGOTTEN = "forgotten, too many connections at once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """One TCP connection.

    Attributes:
        number: Counted from 1 in the order of appearance; endpoints may meet more than once.
        initiator: Who sent the SYN; without one, who has not the port that is listened on.
    """

    number: int
    initiator: Endpoint
    acceptor: Endpoint

    def sender(self, direction: Direction) -> Endpoint:
        """Where bytes of that direction come from."""
        return self.initiator if direction is Direction.TO_ACCEPTOR else self.acceptor

    def receiver(self, direction: Direction) -> Endpoint:
        """Where bytes of that direction go."""
        return self.acceptor if direction is Direction.TO_ACCEPTOR else self.initiator


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """The next bytes of one direction; time and frame are those of the frame that had them."""

    connection: Connection
    direction: Direction
    data: bytes
    time_ns: int | None
    frame_number: int

    def __str__(self) -> str:
        return f"{_arrow(self.connection, self.direction)}, frame {self.frame_number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Bytes of one direction that the capture lacks; the next chunk begins after them.

    Attributes:
        missing_bytes: How many, or None where the capture began inside the connection.
        frame_number: The frame that goes on after the gap, or that was captured too short.
    """

    connection: Connection
    direction: Direction
    missing_bytes: int | None
    time_ns: int | None
    frame_number: int

    def __str__(self) -> str:
        return f"{_arrow(self.connection, self.direction)}, frame {self.frame_number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """Nothing more comes of this connection. One still open when the file ends has no such event.

    Attributes:
        frame_number: The last frame of the connection.
    """

    connection: Connection
    ending: Ending
    time_ns: int | None
    frame_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Datagram:
    """One UDP datagram to or from the ping port, [MS-MQQB] 2.1.2.

    Attributes:
        missing_bytes: How many of its bytes, at the end, the capture lacks.
        to_ping_port: Sent to that port, as requests are, not from it.
    """

    source: Endpoint
    destination: Endpoint
    data: bytes
    missing_bytes: int
    to_ping_port: bool
    time_ns: int | None
    frame_number: int

    def __str__(self) -> str:
        return f"{self.source} → {self.destination}, frame {self.frame_number}"


CaptureEvent = Chunk | Gap | Closed | Datagram


def _arrow(connection: Connection, direction: Direction) -> str:
    return f"{connection.sender(direction)} → {connection.receiver(direction)}"
