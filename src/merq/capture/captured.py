"""From a capture to packets: each direction of each connection cut on its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from merq.capture.events import CaptureEvent, Chunk, Closed, Datagram, Direction, Gap
from merq.capture.packets import (
    Decoded,
    Finding,
    Origin,
    PacketStream,
    PingRoles,
    Undecoded,
    read_ping,
    undecoded,
)
from merq.capture.reading import Capture
from merq.errors import CaptureError, WireError
from merq.wire.reader import TraceNode


class CapturedPackets:
    """Every packet of a capture, and what the capture lacks."""

    def __init__(self, file: BinaryIO, *, tcp_port: int, udp_port: int) -> None:
        self._capture = Capture(file, tcp_port=tcp_port, udp_port=udp_port)
        self._streams: dict[tuple[int, Direction], PacketStream] = {}
        self._pings = PingRoles()

    def findings(self) -> Iterator[Finding]:
        """Everything, in the order of the frames that completed it."""
        try:
            for event in self._capture.events():
                yield from self._receive(event)
        except CaptureError as wrong:
            yield Undecoded(offset=wrong.offset, reason=wrong.reason)
        for stream in self._streams.values():
            yield from stream.finish()

    def summary(self) -> str:
        """How many frames there were, and why some led to nothing."""
        skipped = ", ".join(
            f"{count} {reason.value}" for reason, count in self._capture.skipped.items()
        )
        return f"{self._capture.frame_count} frames" + (f", of these {skipped}" if skipped else "")

    def _receive(self, event: CaptureEvent) -> Iterator[Finding]:
        if isinstance(event, Datagram):
            yield self._ping(event)
        elif isinstance(event, Closed):
            for direction in Direction:
                ended = self._streams.pop((event.connection.number, direction), None)
                if ended is not None:
                    yield from ended.finish()
        else:
            key = event.connection.number, event.direction
            stream = self._streams.setdefault(key, PacketStream())
            if isinstance(event, Chunk):
                yield from stream.feed(event.data, _origin(event))
            else:
                yield from self._pass_gap(event, stream)

    def _pass_gap(self, gap: Gap, stream: PacketStream) -> Iterator[Finding]:
        yield from stream.finish()
        if gap.missing_bytes is not None:
            yield Undecoded(
                offset=stream.offset,
                reason=f"the capture lacks {gap.missing_bytes} bytes here",
                origin=_origin(gap),
            )
        stream.skip(gap.missing_bytes or 0)

    def _ping(self, event: Datagram) -> Finding:
        origin = Origin(
            frame=event.frame_number,
            time_ns=event.time_ns,
            source=str(event.source),
            destination=str(event.destination),
        )
        tree = TraceNode("packet", 0, len(event.data))
        try:
            ping = read_ping(event.data, tree)
        except WireError as wrong:
            return undecoded(wrong, 0, origin)
        # Whoever asks from the ping port itself is told from the answer by the cookie.
        told_by_port = event.source.port != event.destination.port
        kind = self._pings.kind(ping, to_ping_port=event.to_ping_port if told_by_port else None)
        return Decoded(offset=0, size=len(event.data), kind=kind, tree=tree, origin=origin)


def _origin(event: Chunk | Gap) -> Origin:
    return Origin(
        frame=event.frame_number,
        time_ns=event.time_ns,
        source=str(event.connection.sender(event.direction)),
        destination=str(event.connection.receiver(event.direction)),
    )
