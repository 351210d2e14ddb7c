"""From a capture to packets: each direction of each connection cut on its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from merq.capture import Capture, CaptureEvent, Chunk, Closed, Connection, Datagram, Direction, Gap
from merq.cli.packets import (
    Decoded,
    Finding,
    Origin,
    PingRoles,
    Undecoded,
    decode_packet,
    read_ping,
    undecoded,
)
from merq.errors import CaptureError, WireError
from merq.wire.reader import TraceNode
from merq.wire.stream import PacketSplitter

_HEAD = re.compile(rb"\x10[\s\S]{3}LIOR")
_HEAD_SIZE = 8


class _Talk:
    """One direction of one connection.

    Where the capture lacks bytes, or has bytes that are no packet, the next BaseHeader is sought
    and the stream taken up there again.
    """

    def __init__(self) -> None:
        self._splitter = PacketSplitter()
        self.offset = 0
        self._began = 0
        self._seeking = False
        self._tail = b""

    def seek(self) -> None:
        """The next bytes may begin inside a packet."""
        self._splitter = PacketSplitter()
        self._seeking = True
        self._tail = b""

    def feed(self, data: bytes, pings: PingRoles, origin: Origin) -> Iterator[Finding]:
        """Everything that these bytes complete."""
        while data:
            if self._seeking:
                data = self._sought(data)
            taken = -self._splitter.buffered
            for packet in self._splitter.feed(data):
                yield decode_packet(packet, self.offset, pings, origin)
                self.offset += len(packet)
                taken += len(packet)
            failure = self._splitter.failure
            if failure is None:
                return
            yield undecoded(failure, self._began, origin)
            self.offset += 1
            data = data[max(taken, 0) + 1 :]
            self.seek()

    def _sought(self, data: bytes) -> bytes:
        """The bytes from the next BaseHeader on; empty while there is none."""
        data = self._tail + data
        found = _HEAD.search(data)
        if found is None:
            self._tail = data[-_HEAD_SIZE + 1 :]
            self.offset += len(data) - len(self._tail)
            return b""
        self._seeking = False
        self._tail = b""
        self.offset += found.start()
        self._began = self.offset
        return data[found.start() :]

    def finish(self, origin: Origin | None) -> Iterator[Finding]:
        """No more bytes come: a packet that was begun never becomes whole."""
        failure = self._splitter.finish()
        if failure is not None:
            yield undecoded(failure, self._began, origin)


class CapturedPackets:
    """Every packet of a capture, and what the capture lacks."""

    def __init__(self, file: BinaryIO, *, tcp_port: int, udp_port: int) -> None:
        self._capture = Capture(file, tcp_port=tcp_port, udp_port=udp_port)
        self._talks: dict[tuple[int, Direction], _Talk] = {}
        self._pings = PingRoles()

    def findings(self) -> Iterator[Finding]:
        """Everything, in the order of the frames that completed it."""
        try:
            for event in self._capture.events():
                yield from self._receive(event)
        except CaptureError as wrong:
            yield Undecoded(offset=wrong.offset, reason=wrong.reason)
        for talk in self._talks.values():
            yield from talk.finish(None)

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
                talk = self._talks.pop((event.connection.number, direction), None)
                if talk is not None:
                    yield from talk.finish(_origin(event, event.connection, direction))
        else:
            origin = _origin(event, event.connection, event.direction)
            talk = self._talks.setdefault((event.connection.number, event.direction), _Talk())
            if isinstance(event, Chunk):
                yield from talk.feed(event.data, self._pings, origin)
            else:
                yield from talk.finish(origin)
                if event.missing_bytes is not None:
                    yield Undecoded(
                        offset=talk.offset,
                        reason=f"the capture lacks {event.missing_bytes} bytes here",
                        origin=origin,
                    )
                talk.seek()

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
        kind = self._pings.kind(ping, to_ping_port=event.to_ping_port)
        return Decoded(offset=0, size=len(event.data), kind=kind, tree=tree, origin=origin)


def _origin(event: Chunk | Gap | Closed, connection: Connection, direction: Direction) -> Origin:
    return Origin(
        frame=event.frame_number,
        time_ns=event.time_ns,
        source=str(connection.sender(direction)),
        destination=str(connection.receiver(direction)),
    )
