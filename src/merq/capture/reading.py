"""A capture file to the events of MSMQ's conversations in it: where the parts come together."""

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import BinaryIO

from merq.capture.events import CaptureEvent, Datagram
from merq.capture.files import read_frames
from merq.capture.frames import SkipReason, TcpSegment, UdpDatagram, parse_frame
from merq.capture.source import CapturedFrame
from merq.capture.streams import StreamLimits, Streams
from merq.errors import CaptureError

SESSION_TCP_PORT = 1801
"""[MS-MQQB] 2.1.1 where an acceptor listens for protocol sessions."""

PING_UDP_PORT = 3527
"""[MS-MQQB] 2.1.2 where ping requests go."""


class Capture:
    """One capture file, read once.

    Attributes:
        frame_count: Frames read so far.
    """

    def __init__(
        self,
        file: BinaryIO,
        *,
        tcp_port: int = SESSION_TCP_PORT,
        udp_port: int = PING_UDP_PORT,
        limits: StreamLimits | None = None,
    ) -> None:
        self.frame_count = 0
        self._file = file
        self._tcp_port = tcp_port
        self._udp_port = udp_port
        self._skipped: Counter[SkipReason] = Counter()
        self._streams = Streams(port=tcp_port, skipped=self._skipped, limits=limits)
        self._begun = False

    @property
    def skipped(self) -> Mapping[SkipReason, int]:
        """How many frames led to nothing so far, by reason; complete when the events are."""
        return MappingProxyType(self._skipped)

    def events(self) -> Iterator[CaptureEvent]:
        """What the file tells, each direction of each connection in its order.

        Raises:
            CaptureError: The file cannot be read, or not to its end; everything that could be
                read comes before it. What the file object itself raises passes through.
        """
        assert not self._begun, "the file has been read"
        self._begun = True
        failure: CaptureError | None = None
        try:
            for frame in read_frames(self._file):
                self.frame_count += 1
                yield from self._receive(frame)
        except CaptureError as error:
            failure = error
        yield from self._streams.finish()
        if failure is not None:
            raise failure

    def _receive(self, frame: CapturedFrame) -> list[CaptureEvent]:
        found = parse_frame(frame)
        if isinstance(found, TcpSegment):
            if self._tcp_port in {found.source.port, found.destination.port}:
                return [*self._streams.receive(found)]
            found = SkipReason.OTHER_PORT
        if isinstance(found, UdpDatagram):
            if self._udp_port in {found.source.port, found.destination.port}:
                return [self._datagram(found)]
            found = SkipReason.OTHER_PORT
        self._skipped[found] += 1
        return []

    def _datagram(self, datagram: UdpDatagram) -> Datagram:
        return Datagram(
            source=datagram.source,
            destination=datagram.destination,
            data=datagram.payload,
            missing_bytes=datagram.length - len(datagram.payload),
            to_ping_port=datagram.destination.port == self._udp_port,
            time_ns=datagram.time_ns,
            frame_number=datagram.frame_number,
        )


def read_capture(
    file: BinaryIO, *, tcp_port: int = SESSION_TCP_PORT, udp_port: int = PING_UDP_PORT
) -> Iterator[CaptureEvent]:
    """The events of a capture file, for whoever does not ask what was skipped.

    Raises:
        CaptureError: As `Capture.events` does, while the events are iterated.
    """
    return Capture(file, tcp_port=tcp_port, udp_port=udp_port).events()
